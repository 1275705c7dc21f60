"""Findings in a text: their places, the words before them, and which finding wins. Pure functions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.unseen import UNSEEN
from supervisor_memory.redact.types import TYPES

FINDERS: Final = lexicon("finders", room=__package__)
"""What the finders look for: words and patterns."""
_SPECIFIC: Final = ("SECRET", "IBAN", "CN_ID", "NATIONAL_ID", "CARD", "US_SSN", "EMAIL", "PHONE", "IP")
_PLACEHOLDER: Final = re.compile(rf"\[(?:{'|'.join(TYPES)})\]")


@dataclass(frozen=True, slots=True)
class Span:
    """A finding of a type, at `text[start:end]`."""

    start: int
    end: int
    type: str


def is_placeholder(text: str) -> bool:
    """Whether a text begins with one of our placeholders."""
    return _PLACEHOLDER.match(text) is not None


def merged(spans: Iterable[Span]) -> Sequence[Span]:
    """Findings in order, with overlapping findings joined under the type of the longest.

    Of equally long findings the more specific type names the join. A join covers all its findings, for a
    part left over would tell something of the rest.
    """
    kept: list[tuple[Span, Span]] = []  # all that is covered, and what names it
    for span in sorted(spans, key=lambda each: each.start):
        if kept and span.start < kept[-1][0].end:
            covered, best = kept[-1]
            end = max(covered.end, span.end)
            kept[-1] = (Span(covered.start, end, covered.type), max(best, span, key=_weight))
        else:
            kept.append((span, span))
    return [Span(covered.start, covered.end, best.type) for covered, best in kept]


def _weight(span: Span) -> tuple[int, int]:
    return span.end - span.start, -_SPECIFIC.index(span.type)


# --- what nobody sees


def without_unseen(text: str) -> tuple[str, Sequence[int]] | None:
    """The text without invisible characters, and the place of each character before; None: it has none."""
    if UNSEEN.search(text) is None:
        return None
    places: list[int] = []
    start = 0
    for match in UNSEEN.finditer(text):
        places += range(start, match.start())
        start = match.end()
    places += range(start, len(text))
    return UNSEEN.sub("", text), places


# --- a text as the finders read it

# Full-width forms and the dashes and spaces that people and keyboards put for "-" and " ": one for one, so
# that a place in the folded text is the same place in the text.
_FOLDS: Final[dict[int, int | str]] = {
    **{full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0x2043), "-"),
    **dict.fromkeys((0xA0, 0x2002, 0x2003, 0x2007, 0x2009, 0x202F, 0x3000), " "),
}
_SIGNS: Final = {"：": ":", "（": "(", "）": ")"}
_FOLDED: Final = re.compile(
    f"[{''.join(chr(c) for c in _FOLDS if chr(c) not in '：（），！？；')}]"
)  # the other marks of Chinese are everywhere, and mean nothing here

_DIGITS: Final = re.compile(r"[0-9](?:[ ().+-]{0,3}[0-9]){6,}")
_BEFORE_DIGITS, _AFTER_DIGITS = 4, 12
"""How far a pattern for digits may reach around them."""
_NEAR: Final = 40


class Read:
    """A text as the finders read it: in plain letters, digits and signs, place for place.

    Attributes:
        lowered: The same in small letters.
        runs: Start and end of each run of seven digits or more, signs between them included.
    """

    __slots__ = ("_before", "lowered", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = _folded(text)
        self.lowered = _lowered(self.text)
        self.runs: Sequence[tuple[int, int]] = [match.span() for match in _DIGITS.finditer(self.text)]
        self._before: dict[int, Before] = {}

    def near_digits(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern around runs of seven digits or more."""
        for start, end in self.runs:
            for match in pattern.finditer(self.text, max(0, start - _BEFORE_DIGITS), end + _AFTER_DIGITS):
                if match.start() >= end:  # of the next ones, which may be cut off here
                    break
                yield match

    def before(self, start: int) -> "Before":
        """The words right before a place."""
        if (known := self._before.get(start)) is None:
            known = self._before[start] = Before.of(self.lowered[max(0, start - _NEAR) : start])
        return known


def _folded(text: str) -> str:
    if text.isascii():
        return text
    if _FOLDED.search(text):
        return text.translate(_FOLDS)
    for full, plain in _SIGNS.items():
        text = text.replace(full, plain)
    return text


def _lowered(text: str) -> str:
    lowered = text.lower()
    # Of few letters the small form is longer, and places would not fit any more.
    return lowered if len(lowered) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


# --- words before a number that tell what it is

_SEPARATORS: Final = " \t\n\r:\"'`=-#("
_COPULAS: Final = FINDERS.listed("copulas")
_NUMBER_WORDS: Final = FINDERS.listed("number_words")


@dataclass(frozen=True, slots=True)
class Label:
    """Words that name what follows. Latin words match as whole words: "tel" is not in "hotel"."""

    words: tuple[str, ...]

    def ends(self, text: str) -> bool:
        return text.endswith(self.words) and any(
            text.endswith(word) and not _goes_on(text, len(word), word) for word in self.words
        )


def _goes_on(text: str, length: int, word: str) -> bool:
    left = text[-length - 1 : -length]
    return word[0].isascii() and word[0].isalpha() and left.isascii() and left.isalpha()


@dataclass(frozen=True, slots=True)
class Before:
    """The words before a number, without signs and "is".

    Attributes:
        bare: The words without "number", "id" and the like.
        sign: The last character before the number, as in "#1".
    """

    whole: str
    bare: str
    sign: str

    @classmethod
    def of(cls, lowered: str) -> "Before":
        whole = lowered.rstrip(_SEPARATORS)
        for _ in range(2):
            if whole.endswith(_COPULAS):
                whole = _without_ending(whole, _COPULAS)
        bare = _without_ending(whole, _NUMBER_WORDS) if whole.endswith(_NUMBER_WORDS) else whole
        return cls(whole, bare, lowered.rstrip(" :")[-1:])

    @property
    def has_number_word(self) -> bool:
        return len(self.bare) < len(self.whole)

    def names(self, label: Label) -> bool:
        return label.ends(self.bare) or label.ends(self.whole)


def _without_ending(text: str, words: Iterable[str]) -> str:
    """The text without its ending, by the first of these words that it ends with."""
    for word in words:
        if text.endswith(word) and not _goes_on(text, len(word), word):
            return text[: -len(word)].rstrip(_SEPARATORS + "_")
    return text
