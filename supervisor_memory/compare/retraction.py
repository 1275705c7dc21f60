"""Which record the user means who takes something back: "forget that I want tables", "the note on invoices".

All that is named has to be in the record. "Forget that my manager is Bob" says nothing of a record by which
she is Dana, and "靠窗座位" nothing of "靠过道的位子".
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from supervisor_memory.compare.evidence import Reading, beside, read
from supervisor_memory.compare.verdict import closest_statement
from supervisor_memory.text.terms import CJK, STOP_WORDS, has_cjk, stem
from supervisor_memory.understand.statements import judge

__all__ = ["exchanges", "fit"]

_WISHES = """
want need prefer use wish ask tell told said say mention rule note thing default alway usual statement fact
definit remember instruct request everi all your answer not no never
"""  # as `terms.stem` leaves them
_WISH = frozenset(_WISHES.split())
_WISH_ZH = re.compile(
    r"我们?|咱们?|以后|今后|每次|总是|一直|一般|通常|想要?|希望|喜欢|偏好|要求?|使用|用|都|得|会|关于|对"
    r"(?!话|比|象|账)|一律|默认|(?:的|这件)?事[情儿]?$"
)
_FACTS = frozenset({"personal-fact", "identity", "definition", "decision", "correction", "house-rule"})
_IS_STATEMENT = re.compile(r"(?:i|i'm|i'd|i've|we|we're|my|our|the user)\b|我|咱|用户", re.IGNORECASE)
_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}](?:[^\W{CJK}]|[-.'](?=\w))*")
_EMPTY = frozenset("的了吧呢") | STOP_WORDS
_CALLING = re.compile(
    r"\b(?:address(?:ing)?|refer(?:ring)? to|speak(?:ing)? to|calling)(?= (?:me|us)\b)", re.IGNORECASE
)
"""What is done to somebody by a name; one of many words for it."""
_LEAST_STEM = 5
_ONE_MISSING_OF = 5
_HEAD_NOUN = 2  # characters


def fit(named: str, text: str) -> float:
    """How well a record fits what is named, in [0, 1]; 0: it is about something else, or another value.

    Args:
        named: What is taken back, without the words that take it back.
    """
    said = closest_statement(text, named)
    asked, known = read(named), read(said)
    if _IS_STATEMENT.match(named) and not _same_attitude(asked, known):
        return 0.0
    mine = _without_wishes(asked.text, said) or _words(asked.text)
    yours = _words(known.text)
    if not mine or not _holds(mine, yours):
        return 0.0
    return (1 + len(set(mine)) / max(len(set(yours)), len(set(mine)))) / 2


def exchanges(named: str, text: str) -> bool:
    """Whether a record is the same sentence without something that is named, or with another thing."""
    pair = beside(read(closest_statement(text, named)), read(named))
    return any(each.yours for each in pair.exchanges)


def _same_attitude(asked: Reading, known: Reading) -> bool:
    """A statement is taken back, not its opposite."""
    if asked.slots.is_negative != known.slots.is_negative:
        return False
    return asked.attitude in (None, known.attitude) or known.attitude is None


def _without_wishes(named: str, known: str) -> Sequence[str]:
    """What is named beside that it is wanted; of a fact that is no wish, every word counts."""
    if _IS_STATEMENT.match(named) and judge(known).reason in _FACTS:
        return _words(named)
    return tuple(word for word in _words(_WISH_ZH.sub(" ", named)) if word not in _WISH)


def _words(text: str) -> Sequence[str]:
    """Words, and Chinese characters, without those that only hold a sentence together."""
    found = (match[0] for match in _WORD.finditer(_CALLING.sub("call", text).casefold()))
    return tuple(stem(word) for word in found if word not in _EMPTY)


def _holds(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether all of it is there. The noun that ends a Chinese phrase may have other names (座位, 位子): one
    character of it may be missing, where nothing else stands in its place."""
    missing = [word for word in mine if not any(_is_one(word, each) for each in yours)]
    if not has_cjk("".join(mine)):
        return not missing
    if len(missing) * _ONE_MISSING_OF > len(mine) or any(each not in mine[-_HEAD_NOUN:] for each in missing):
        return False
    codes = [tag for tag, *_ in SequenceMatcher(None, mine, yours, autojunk=False).get_opcodes()]
    return codes.count("equal") <= 1 + len(mine) // 2 and not (missing and "replace" in codes)


def _is_one(token: str, other: str) -> bool:
    """The same word, or one that is made of the other: allergy, allergic."""
    if token == other:
        return True
    short, long = sorted((token, other), key=len)
    stem = short[:-1] if short.endswith("i") else short
    return len(stem) >= _LEAST_STEM and stem.isalpha() and stem.isascii() and long.startswith(stem)
