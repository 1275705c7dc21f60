"""Two texts side by side, the earlier first, with the words exchanged between them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache, wraps
from typing import Any, TypeVar

from supervisor_memory.compare.reading import Reading, is_number

T = TypeVar("T")

TEMPLATE = 0.5
"""The share of common words, in order, from which two texts count as one sentence with words exchanged."""
ONE_SENTENCE = 0.75
"""The share from which nothing but a word or two was exchanged."""
_HEAD = 0.34
_DOTS = 3  # in an address of a network


@dataclass(frozen=True, slots=True)
class Exchange:
    """Words of the earlier text (`mine`) and the later one (`yours`) in the same place; either may be empty.

    `start` is the relative position, 0 to 1, in the text where the words come later. `is_in_subject` says
    that they are part of the subject in both texts: the window of apollo, and of gemini. `start_mine` and
    `start_yours` count the tokens before them; `is_last` says that nothing follows in either text.
    """

    mine: tuple[str, ...]
    yours: tuple[str, ...]
    start: float
    is_in_subject: bool = False
    start_mine: int = 0
    start_yours: int = 0
    is_last: bool = False

    @property
    def is_at_head(self) -> bool:
        return self.start < _HEAD

    @property
    def is_of_numbers(self) -> bool:
        return any(map(is_number, self.mine)) and any(map(is_number, self.yours))

    @property
    def is_of_codes(self) -> bool:
        return any(map(is_code, self.mine)) and any(map(is_code, self.yours))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts side by side, the earlier one first.

    `ratio` is the share of words that both have in the same order. `is_template` says that they are one
    sentence with words exchanged; then these words decide. Other texts are weighed by their common words.
    """

    old: Reading
    new: Reading
    exchanges: tuple[Exchange, ...]
    ratio: float
    _found: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_template(self) -> bool:
        return self.ratio >= TEMPLATE

    @property
    def announces(self) -> bool:
        """Whether the later text announces a change or a correction, and the earlier one no change."""
        return (self.new.announces or self.new.corrects) and not self.old.announces

    @property
    def replaced(self) -> list[Exchange]:
        """The exchanges with words on both sides."""
        return [each for each in self.exchanges if each.mine and each.yours]


def of_each_pair(find: Callable[[Pair], T]) -> Callable[[Pair], T]:
    """Cache a function of a pair in the pair itself, since several judges call it."""

    @wraps(find)
    def known(pair: Pair) -> T:
        found: dict[str, T] = pair._found
        if find.__name__ not in found:
            found[find.__name__] = find(pair)
        return found[find.__name__]

    return known


@lru_cache(maxsize=512)  # of one candidate and its rivals, which are read in several places
def beside(old: Reading, new: Reading) -> Pair:
    """Two texts side by side."""
    a, b = old.tokens, new.tokens
    if not a or not b:
        return Pair(old, new, (), 0.0)
    common = sum(min(old.counts[each], new.counts[each]) for each in old.counts.keys() & new.counts.keys())
    if 2 * common < TEMPLATE * (len(a) + len(b)):
        return Pair(old, new, (), 0.0)  # whatever their order
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    found = (
        Exchange(
            _without_moved(a[i:j], b, beside=b[k:m]),
            _without_moved(b[k:m], a, beside=a[i:j]),
            max(i / len(a), k / len(b)),
            is_in_subject=j <= old.subject and m <= new.subject,
            start_mine=i,
            start_yours=k,
            is_last=j == len(a) and m == len(b),
        )
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    )
    return Pair(old, new, tuple(each for each in found if each.mine or each.yours), matcher.ratio())


def _without_moved(
    words: Sequence[str], others: Collection[str], *, beside: Sequence[str]
) -> tuple[str, ...]:
    """Drop exchanges of words that merely moved; a number in place of another number stays."""
    is_exchanged = any(map(is_number, beside))
    return tuple(word for word in words if word not in others or (is_exchanged and is_number(word)))


def is_code(word: str) -> bool:
    """Whether a word is an identifier or a path: a_table, app.v2, 10.0.0.1."""
    if word.count(".") == _DOTS and is_number(word):
        return True  # 10.0.0.1
    return not is_number(word) and any(c in "_/." or c.isdigit() for c in word)
