"""Words of earlier conversations that a note above this one quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.delays import SENTENCES
from common.vocabulary import legible

__all__ = ["Quotation", "answering", "last_session", "quotations"]

LINE = re.compile(
    r"^- \[(?P<day>\d{4}-\d\d-\d\d) · (?:said|原话) · (?P<who>[^\]\n]+)\] (?P<words>.+)$", re.MULTILINE
)
SESSION = re.compile(
    r"^- \[(?P<day>\d{4}-\d\d-\d\d) · (?:session|会话) · [^\]\n]+\] (?P<words>.+)$", re.MULTILINE
)
SHARE = 0.5
"""Of how the question's words begin, what an answer has to hold."""


@dataclass(frozen=True)
class Quotation:
    """One sentence that somebody said in an earlier conversation, or the digest of all that was said in one.

    Args:
        day: When, as YYYY-MM-DD.
        who: "user", "assistant", or a name; "" for a digest.
        words: The sentence, or the digest.
    """

    day: str
    who: str
    words: str


def quotations(note: str) -> Iterator[Quotation]:
    """Every sentence that a note quotes, in its order."""
    for line in LINE.finditer(note):
        for part in line["words"].split(" … "):
            for sentence in SENTENCES.finditer(part):
                yield Quotation(line["day"], line["who"], sentence.group().strip())


def answering(question: str, notes: Sequence[str]) -> Quotation | None:
    """The quoted sentence that has most in common with a question, and is none itself; None: none has enough.

    Args:
        question: The user's words.
        notes: System texts, of which only lines of quoted words are read.
    """
    asked = _beginnings(question)
    said = (each for note in notes for each in quotations(note) if each.words[-1:] not in "?？")
    best = max(said, key=lambda each: len(asked & _beginnings(each.words)), default=None)
    enough = best is not None and asked and len(asked & _beginnings(best.words)) >= SHARE * len(asked)
    return best if enough else None


def last_session(notes: Sequence[str]) -> Quotation | None:
    """The digest of an earlier conversation that a note tells, because the user goes on with it."""
    told = (SESSION.search(note) for note in notes)
    return next((Quotation(line["day"], "", line["words"]) for line in told if line), None)


def _beginnings(text: str) -> frozenset[str]:
    """The first four letters of each longer word, and each pair of Chinese characters."""
    text = legible(text).lower()
    pairs: list[str] = re.findall(r"(?=([\u4e00-\u9fff]{2}))", text)
    return frozenset((*re.findall(r"\b[a-z]{4}", text), *pairs))
