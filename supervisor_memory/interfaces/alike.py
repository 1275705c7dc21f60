"""Groups of texts that differ in some words: the shared text with gaps, and each text's words in the gaps."""

import difflib
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from supervisor_memory.interfaces.differences import differences
from supervisor_memory.redact.addresses import striking

_HAN: Final = r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_TOKEN: Final = re.compile(
    rf"[{_HAN}]\s*|[.,;:!?]{{1,8}}(?=\s|$)\s*|[^\s{_HAN}]+?(?=[.,;:!?]{{0,8}}(?:\s|$|[{_HAN}]))\s*|\s+"
)
_WORD: Final = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+")
_LONGEST: Final = 600
"""Characters; a longer text is like no other."""
_FEWEST: Final = 3
_TIMES: Final = 2
_MOST_GAPS: Final = 4
"""More places that differ read worse than the whole texts."""


class Part(NamedTuple):
    """A part of a text, and whether it is an address, an account or a secret."""

    text: str
    is_striking: bool = False


@dataclass(frozen=True, slots=True)
class Alike:
    """Texts that are alike. Each is `fixed[0] + own[0] + fixed[1] + …`, to the letter.

    Args:
        at: The places of these texts among all.
        fixed: What all of them say, around what differs.
        own: For each of these texts what it says of its own, one less than `fixed`.
    """

    at: tuple[int, ...]
    fixed: tuple[str, ...]
    own: tuple[tuple[str, ...], ...]

    def own_of(self, text: str) -> tuple[str, ...] | None:
        """The parts of another text in the gaps; None: it does not have the shared text."""
        own, rest = list[str](), text.removeprefix(self.fixed[0])
        if not text.startswith(self.fixed[0]):
            return None
        for stretch in self.fixed[1:-1]:
            before, found, rest = rest.partition(stretch)
            if not found:
                return None
            own.append(before)
        end = len(rest) - len(self.fixed[-1])
        if end < 0 or not rest.endswith(self.fixed[-1]):
            return None
        return (*own, rest[:end])


def alike(texts: Sequence[str]) -> list[Alike]:
    """Group texts that share at least half of their words, in order; three at least make a group.

    A text that is like no other is a group of its own, with nothing in common. So is one that adds more than
    twice the words that the others add: what is slipped in is read as a whole.
    """
    tokens = [tokens_of(text) for text in texts]
    groups: list[_Group] = []
    for at, each in enumerate(tokens):
        if len(texts[at]) > _LONGEST or not any(group.takes(at, each) for group in groups):
            groups.append(_Group([at], each, _words(each).total()))
    found = []
    for group in groups:
        every = set(group.at)
        group.at = _usual(group, tokens)
        shared = _parted(group, tokens) if len(group.at) >= _FEWEST else None
        found += [shared] if shared else []
        alone = every - set(shared.at if shared else ())
        found += [Alike((at,), ("", ""), ((texts[at],),)) for at in alone]
    return sorted(found, key=lambda each: each.at)


def said_once(own: Sequence[Sequence[str]]) -> set[int]:
    """The texts with a unique word in a gap where most texts share their word with others.

    Numbers do not count: they often tell one from another.

    Args:
        own: What each of texts that are alike says of its own, gap by gap.
    """
    found = set[int]()
    for gap in zip(*own, strict=True):
        words = [" ".join(re.sub(r"\d+", " ", each).split()) for each in gap]
        counts = Counter(words)
        once = {at for at, each in enumerate(words) if counts[each] == 1}
        if 2 * len(once) < len(words):
            found |= once
    return found


def tokens_of(text: str) -> list[str]:
    """The words of a text with the spaces behind them; an address, an account or a secret is one word."""
    tokens, begin = list[str](), 0
    for start, end in striking(text):
        tokens += [*_TOKEN.findall(text[begin:start]), text[start:end]]
        begin = end
    return [*tokens, *_TOKEN.findall(text[begin:])]


def parts_of(*pieces: str) -> list[list[Part]]:
    """Split each piece of a text at the addresses, accounts and secrets of the whole text."""
    found, parted, begin = striking("".join(pieces)), list[list[Part]](), 0
    for piece in pieces:
        end, at, parts = begin + len(piece), begin, list[Part]()
        for start, stop in found:
            if at < min(stop, end) and start < end:
                parts += [
                    Part(piece[at - begin : max(start, at) - begin]),
                    Part(piece[max(start, at) - begin : stop - begin], is_striking=True),
                ]
                at = min(stop, end)
        parts.append(Part(piece[at - begin :]))
        parted.append([part for part in parts if part.text])
        begin = end
    return parted


def compared(before: str, after: str) -> list[tuple[str, list[Part]]]:
    """The differences between two texts, with addresses, accounts and secrets as pieces of their own."""
    pieces = differences(before, after)
    left = iter(parts_of(*(piece.text for piece in pieces if piece.what != "del")))
    return [(what, parts_of(text)[0] if what == "del" else next(left)) for what, text in pieces]


@dataclass(slots=True)
class _Group:
    """Texts by their places, the tokens that all of them have in this order, and the words of the longest."""

    at: list[int]
    shared: list[str]
    most: int

    def takes(self, at: int, tokens: list[str]) -> bool:
        """Take a text in, where all would still share half of their words."""
        words = _words(tokens)
        most = max(self.most, words.total(), 1)
        if 2 * (words & _words(self.shared)).total() < most:
            return False
        shared = _common(self.shared, tokens)
        if 2 * _words(shared).total() < most:
            return False
        self.at.append(at)
        self.shared, self.most = shared, most
        return True


def _words(tokens: Sequence[str]) -> Counter[str]:
    """How often each token is there, marks alone left out."""
    return Counter(token for token in tokens if _WORD.search(token))


def _common(first: list[str], second: list[str]) -> list[str]:
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    return [token for at, _, size in matcher.get_matching_blocks() for token in first[at : at + size]]


def _usual(group: _Group, tokens: Sequence[Sequence[str]]) -> list[int]:
    """The texts of a group that add at most twice as many words as its median text."""
    shared = _words(group.shared).total()
    added = {at: _words(tokens[at]).total() - shared for at in group.at}
    most = _TIMES * max(statistics.median_low(added.values()), 1)
    return [at for at, n in added.items() if n <= most]


def _parted(group: _Group, tokens: Sequence[Sequence[str]]) -> Alike | None:
    """Parts a group into its shared text and gaps; None if there are too many gaps."""
    shared = group.shared
    each = [_texts_between(shared, tokens[at]) for at in group.at]
    breaks = [n for n in range(len(shared) + 1) if any(between[n] for between in each)]
    # Marks alone between two places that differ join what differs.
    kept = [n for i, n in enumerate(breaks) if i == 0 or _words(shared[breaks[i - 1] : n])]
    if not kept or len(kept) > _MOST_GAPS:
        return None
    ends = [*kept[1:], len(shared) + 1]
    last = [max(n for n in breaks if n < end) for end in ends]
    fixed = [
        shared[: kept[0]],
        *(shared[n:end] for n, end in zip(last, (*kept[1:], len(shared)), strict=True)),
    ]

    def own(between: Sequence[str]) -> tuple[str, ...]:
        """The parts of a text between the shared stretches."""
        return tuple(
            "".join(between[n] + (shared[n] if n < to else "") for n in range(begin, to + 1))
            for begin, to in zip(kept, last, strict=True)
        )

    return Alike(tuple(group.at), tuple(map("".join, fixed)), tuple(map(own, each)))


def _texts_between(shared: Sequence[str], tokens: Sequence[str]) -> list[str]:
    """The text before each shared token, and the rest after the last one."""
    between, at = list[str](), 0
    for token in shared:
        there = tokens.index(token, at)
        between.append("".join(tokens[at:there]))
        at = there + 1
    return [*between, "".join(tokens[at:])]
