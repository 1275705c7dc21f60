"""What the messages of a run ask for, all statements in them weighed against each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from common.delays import ASKING, SENTENCES
from common.preferences import STANDING, Preferences, apply, standing, statements
from common.questions import REMARK, Question, asks_for_figures, read_question, wants_chart
from common.quotations import Quotation, answering, last_session
from common.vocabulary import is_chinese, legible

__all__ = ["Turn", "read_turn"]

# "Show numbers with 3 decimals" is a wish; "show the weather in Chinese" asks for something.
REQUEST = re.compile(
    r"\b(?:tell|show|give|list|calculate|compute|find|plot|draw|explain|write)\b"
    r"(?!(?:\s+(?:me|us|all|the|your|my|numbers?|results?|answers?|figures?|values?|everything"
    r"|it|them|only))*"
    r"\s*(?:$|[.,!;]|\b(?:with|in|as|to)\b))"
    r"|告诉我|查一?下|查询|列出|统计|给我|算一?下|解释",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Turn:
    """One request, understood.

    Args:
        words: The user's latest message.
        question: What it asks; None when it asks nothing that the data can answer.
        preferences: How to answer, resolved; `language` is always set.
        is_remark: Whether it only states something, such as a preference.
        wants_chart: Whether it asks for a picture.
        quotation: What a note quotes of earlier conversations that answers it; None where the data does, or
            no quoted sentence does and no note tells of the session that it goes on with.
    """

    words: str
    question: Question | None
    preferences: Preferences
    is_remark: bool
    wants_chart: bool
    quotation: Quotation | None = None

    @property
    def language(self) -> Literal["en", "zh"]:
        return self.preferences.language or "en"


def read_turn(messages: Sequence[BaseMessage]) -> Turn:
    """Read the latest request in the light of everything said before it.

    On one thing the latest message wins over system text, and system text over earlier messages;
    inside one rank the later statement wins.
    """
    said = [legible(message.text) for message in messages if isinstance(message, HumanMessage)]
    notes = [legible(message.text) for message in messages if isinstance(message, SystemMessage)]
    words = said[-1] if said else ""
    wishes = Preferences(language="zh" if is_chinese(words) else "en")
    for text in (*said[:-1], *notes):
        wishes = apply(wishes, standing(text, asks=asks_for_figures))
    own = statements(words)
    wishes = apply(wishes, own)
    request = " ".join(_requests(words))
    found = read_question(request)
    question = found if isinstance(found, Question) else None
    return Turn(
        words=words,
        question=question,
        preferences=wishes,
        is_remark=question is None and _is_remark(words, has_wishes=bool(own)),
        wants_chart=wants_chart(request),
        quotation=(answering(words, notes) or last_session(notes)) if question is None else None,
    )


def _requests(words: str) -> list[str]:
    """The sentences of a message without those that only lay down a rule or make a remark."""
    sentences = [match.group() for match in SENTENCES.finditer(words)]
    return [
        sentence
        for sentence in sentences
        if asks_for_figures(sentence) or not (STANDING.search(sentence) or REMARK.search(sentence))
    ]


def _is_remark(words: str, *, has_wishes: bool) -> bool:
    if ASKING.search(words):
        return False
    if STANDING.search(words) or REMARK.search(words):
        return True
    bare = words
    for wish in reversed(statements(words)):
        bare = bare[: wish.start] + bare[wish.end :]
    return has_wishes and not REQUEST.search(bare)
