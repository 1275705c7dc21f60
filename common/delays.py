"""What people say about lateness: which delay they mean, from how many minutes on, and by what definition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from common.vocabulary import NUMBER, parse_number

__all__ = [
    "ARRIVAL",
    "ASKING",
    "DEPARTURE",
    "LATE",
    "LIMIT",
    "SENTENCES",
    "Delay",
    "DelayColumn",
    "definitions",
    "delay_column",
    "limit_of",
]

DelayColumn = Literal["arr_delay", "dep_delay"]

I = re.IGNORECASE  # noqa: E741

SENTENCES = re.compile(r"(?:[^。！？!?；;\n.]|\.(?=\d|\w))+[。！？!?；;.]*")
ASKING = re.compile(
    r"[?？]|\bhow (?:many|much|often|long)\b|\bwh(?:at|ich)\b|多少|哪|几个|什么"
    r"|^\s*(?:[-*]\s*)?(?:question|asked)\b",
    I,
)
HOUR = r"(?:hours?|hrs?|小时|个小时|个钟头)"
MINUTE = r"(?:minutes?|mins?|分钟|分)"
UNIT = rf"(?:\s|-)*(?P<unit>{HOUR}|{MINUTE})"
AT_LEAST = r"(?:at least|no less than|not less than|a minimum of|>=|≥|至少|不少于|不低于|不小于|达到?|满)"
MORE_THAN = (
    r"(?:more than|over|above|longer than|greater than|exceed(?:s|ing)?|beyond|later than|>|超过|大于"
    r"|超出|多于|高于|逾)"
)
LIMIT = re.compile(
    rf"(?:(?P<least>{AT_LEAST})|(?P<more>{MORE_THAN}))?\s*(?:by\s+)?(?P<n>half an?|半个?"
    rf"|{NUMBER})(?P<plus>\s*\+)?{UNIT}"
    r"(?P<after>\s*(?:or (?:more|longer|later|over)|及以上|或以上|或更多|以上))?",
    I,
)
LATE = re.compile(r"\bdelay(?:s|ed)?\b|\blate(?:r|ness)?\b|延误|晚点|误点|迟到|延迟", I)
DEFINES = re.compile(
    r"\bmeans?\b|\bcount(?:s|ed|ing)?\b(?!\()(?=.*\b(?:as|when|if|once|only)\b)|\bdefin\w+\b"
    r"|\bconsider\w*\b|\btreat\w*\b|\bcall(?:s|ed)?\b|\b(?:delayed|late) (?:if|when|only)\b"
    r"|\bis when\b|\bregard\w*\b"
    r"|\brefers? to\b|\bonly if\b|\bcriteri\w+\b|\bthreshold\b|[:=]\s*(?:arr|dep)"
    r"|(?<![到达发均大长])(?:延误|晚点)(?:是|为|：|:|=)"
    r"|是指|指的?是?|定义|算作?|视为|视作|认定|才叫|叫做|即(?!可|使|将)|口径|标准|阈值|计为|记为",
    I,
)
# "What is the rate if delayed means ...": the question before "if" is no part of the definition.
CONDITION = re.compile(
    rf"\b(?:if|where|assuming|given(?: that)?)\b(?=[^，,]*(?:{DEFINES.pattern}))|(?:如果|假如|假设"
    rf"|若)(?=[^，,]*(?:{DEFINES.pattern}))",
    I,
)
ARRIVAL = re.compile(
    r"\barriv\w*|\barr_delay\b|\barr\b|\blanding\b|\blanded\b|到达|抵达|到港|进港|落地|降落", I
)
DEPARTURE = re.compile(
    r"\bdepart\w*|\bdep_delay\b|\bdep\b|\btake-?offs?\b|\bleav(?:e|es|ing)\b|\bleft\b|出发|起飞|离港|出港|始发",
    I,
)


@dataclass(frozen=True)
class Delay:
    """When a flight counts as delayed: `column` in minutes, beyond `minutes` (or from it on).

    Args:
        column: None when the words leave open which delay is meant; arrival is then taken.
        minutes: The limit.
        or_equal: Whether the limit itself already counts.
    """

    column: DelayColumn | None = None
    minutes: float = 0
    or_equal: bool = False


def delay_column(text: str) -> DelayColumn | None:
    """Which delay the words name: departure, arrival, or neither or both (None)."""
    arrival, departure = ARRIVAL.search(text), DEPARTURE.search(text)
    if bool(arrival) == bool(departure):
        return None
    return "arr_delay" if arrival else "dep_delay"


def limit_of(match: re.Match[str]) -> tuple[float, bool]:
    """Minutes named by a match of `LIMIT`, and whether the limit itself counts.

    以上 is read as "more than", as people say it, not as the law counts it.
    """
    words = match["n"].lower()
    number = 0.5 if words.startswith(("half", "半")) else parse_number(words)
    assert number is not None
    minutes = number * 60 if re.fullmatch(HOUR, match["unit"], I) else number
    after = (match["after"] or "").strip()
    return minutes, bool(match["least"] or match["plus"] or (after and after != "以上"))


def definitions(text: str) -> Iterator[tuple[int, int, Delay]]:
    """Every definition of "delayed" in the text, with its place."""
    for sentence in SENTENCES.finditer(text):
        words = sentence.group()
        span = _definition_span(words)
        if span is None:
            continue
        start, end = span
        limit = LIMIT.search(words)
        if limit is None and (ASKING.search(words) or delay_column(words[start:end]) is None):
            continue
        minutes, or_equal = limit_of(limit) if limit else (0.0, False)
        delay = Delay(delay_column(words[start:end]), minutes, or_equal)
        yield sentence.start() + start, sentence.start() + end, delay


def _definition_span(sentence: str) -> tuple[int, int] | None:
    """The clauses of a sentence that hold a definition of "delayed", so that a question beside it stays."""
    clauses = [match.span() for match in re.finditer(r"[^，,]+", sentence)]
    defining = [
        index
        for index, (start, end) in enumerate(clauses)
        if DEFINES.search(sentence[start:end]) and LATE.search(sentence[start:end])
    ]
    if not defining:
        return None
    marks = defining + [i for i, (start, end) in enumerate(clauses) if LIMIT.search(sentence[start:end])]
    start, end = clauses[min(marks)][0], clauses[max(marks)][1]
    condition = CONDITION.search(sentence, start, end)
    return (condition.start() if condition else start), end
