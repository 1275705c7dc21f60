"""Which flights a question is about: months, airports and airlines named in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from common.vocabulary import (
    AIRLINE_NAMES,
    AIRLINE_WORDS,
    DESTINATIONS,
    MONTH_PATTERN,
    ORIGIN_WORDS,
    blank,
    month_of,
)

__all__ = ["ALL_FLIGHTS", "Filters", "take_filters"]

I = re.IGNORECASE  # noqa: E741


@dataclass(frozen=True)
class Filters:
    """Kept values; an empty tuple keeps all.

    Args:
        months: 1 to 12, ascending.
        origins, destinations: Airport codes.
        airlines: Carrier codes.
        unknown: A place or an airline that is named and not known; the question cannot be answered then.
    """

    months: tuple[int, ...] = ()
    origins: tuple[str, ...] = ()
    destinations: tuple[str, ...] = ()
    airlines: tuple[str, ...] = ()
    unknown: str = ""


ALL_FLIGHTS = Filters()

UNKNOWN_NAME = re.compile(
    r"\b(?i:to|into|bound for|from|did|does|for|of|on|by|at|in|with|via|do)\s+(?i:the\s+)?"
    r"(?P<name>(?!New York|NYC)[A-Z][A-Za-z]{2,}(?: [A-Z][a-z]+)*)"
)
# Words of questions that may be written with a capital: "Rate of Delayed Flights by Origin Airport".
_ORDINARY = """
flight airline carrier airport origin destination month hour day departure arrival delay delayed late
cancelled canceled cancellation average mean maximum total number rate share percentage distance mile air
time the each all every minute chart table list bar line highest lowest most fewest top scheduled departing
arriving csv sql
"""
ORDINARY_WORDS = frozenset(_ORDINARY.split())
UNKNOWN_NAME_ZH = re.compile(
    r"(?<![各家个的每哪])[\u4e00-\u9fff]{2,4}(?<!美国)(?<!家)航空(?!公司)"
    r"|从\s*(?![哪各每不三所])[\u4e00-\u9fff]{2,6}?(?:机场)?(?:出发|起飞)"
    r"|(?:飞往|飞到|前往)\s*(?![哪各每不所目])[\u4e00-\u9fff]{2,3}"
)

TOWARDS = (
    r"(?:\b(?:to|into|towards?|bound for|destined for|destinations?(?: of)?|dest)\s+(?:airport\s+)?"
    r"|(?:飞往|飞到|飞向|前往|抵达|到达|去|到|至|目的地(?:是|为)?)\s*)"
)
CODES = r"[A-Z]{3}(?:\s*(?:,|and|or|/|、|和|或|与|及|以及)\s*(?:to\s+)?[A-Z]{3})*(?![A-Za-z])"
# "US" is also a country.
CARRIER_CODE = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(code for code in AIRLINE_NAMES if code != 'US')}"
    r"|(?<!the )US(?!\s+airports))(?![A-Za-z0-9])"
)


def take_filters(text: str) -> tuple[Filters, str]:
    """Read the filters, and return the text with their words blanked."""
    months, text = _months(text)
    text = blank(text, _spans(r"\b2013\b|年", text))
    airlines, text = _airlines(text)
    destinations, text = _destinations(text)
    origins, text = _named(ORIGIN_WORDS, text, after=r"(?:\s+(?:international\s+)?airport\b|国际机场|机场)?")
    strangers = [code for code in destinations if code not in DESTINATIONS | {"JFK", "EWR"}]
    unknown = strangers[0] if strangers else _unknown_name(text)
    return Filters(months, origins, destinations, airlines, unknown), text


def _months(text: str) -> tuple[tuple[int, ...], str]:
    # "1至3月" and "1、2月" name the sign 月 once.
    text = re.sub(r"(?<![\d.])(1[0-2]|[1-9])\s*([-–~至到、和])\s*(?=(?:1[0-2]|[1-9])\s*月)", r"\1月\2", text)
    months: list[int] = []
    previous_end: int | None = None
    spans: list[tuple[int, int]] = []
    for match in re.finditer(MONTH_PATTERN, text):
        month = month_of(match)
        between = text[previous_end : match.start()] if previous_end is not None else ""
        opening = text[: spans[-1][0]] if spans else ""
        is_range = re.fullmatch(r"\s*(?:to|through|thru|until|till|[-–—~至到]+)\s*", between, I) or (
            re.fullmatch(r"\s*and\s*", between, I) and re.search(r"\bbetween\s*$", opening, I)
        )
        if is_range and months:
            first = months[-1]
            steps = (month - first) % 12
            months += [(first + step - 1) % 12 + 1 for step in range(1, steps + 1)]
        else:
            months.append(month)
        spans.append(match.span())
        previous_end = match.end()
    return tuple(sorted(set(months))), blank(text, spans)


def _airlines(text: str) -> tuple[tuple[str, ...], str]:
    named, text = _named(AIRLINE_WORDS, text)
    codes = {match.group() for match in CARRIER_CODE.finditer(text)}
    return tuple(sorted({*named, *codes})), blank(text, _spans(CARRIER_CODE, text))


def _destinations(text: str) -> tuple[tuple[str, ...], str]:
    towards = re.compile(rf"(?:(?i:{TOWARDS}))({CODES})")
    codes = {code for match in towards.finditer(text) for code in re.findall("[A-Z]{3}", match.group(1))}
    text = blank(text, _spans(towards, text))
    # LaGuardia alone is where flights begin.
    bare = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(sorted(DESTINATIONS - {'LGA'}))})(?![A-Za-z])")
    codes |= {match.group() for match in bare.finditer(text)}
    return tuple(sorted(codes)), blank(text, _spans(bare, text))


def _named(words: Iterable[tuple[str, str]], text: str, *, after: str = "") -> tuple[tuple[str, ...], str]:
    """The codes whose names occur, and the text without the names."""
    codes = []
    for pattern, code in words:
        spans = _spans(re.compile(f"(?:{pattern}){after}", I), text)
        if spans:
            codes.append(code)
            text = blank(text, spans)
    return tuple(sorted(codes)), text


def _spans(pattern: str | re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(pattern, text)]


def _unknown_name(text: str) -> str:
    """A place or an airline left over once all known ones are blanked; empty when there is none."""
    for match in UNKNOWN_NAME.finditer(text):
        if match["name"].split()[0].lower().rstrip("s") not in ORDINARY_WORDS:
            return match["name"]
    chinese = UNKNOWN_NAME_ZH.search(text)
    return chinese.group() if chinese else ""
