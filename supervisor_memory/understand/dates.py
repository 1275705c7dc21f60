"""Find the days, months and years that a text names. English and Chinese, by rules.

A text is read in steps, each a small function over what the one before it found:

1. The rules of dates.toml find dates named by themselves: "7 May 2023", "last week", 上周三. Among
   overlapping finds the first and longest stays.
2. Parts of a date: "early May", "the second week of", 去年底.
3. Two ends of a range: "May to July", 5月到7月. A year named by one end holds for both.
4. Ordinary words ("he may", "they fall") and habits ("every January") are dropped.
5. Dates relative to another date, and open ends: "the week before 7 May", 国庆前一周, "last Friday, 23
   January", "since May", "before 2022", 5月以后.

Days are those of UTC, weeks begin on Monday, seasons are those of the northern half of the earth, and
festivals that follow the moon are the days on which they can fall.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.understand.mentions import (
    FEW,
    Annual,
    Days,
    Mention,
    ago,
    back,
    chosen,
    find,
    number_of,
    plain,
    portion,
    span,
    unit_of,
)

MAX_LENGTH = 8_000
"""Characters that are read; questions are far shorter."""
MAX_RANGES = 8
MAX_MENTIONS = 32
DAY = 86_400.0
YEAR = 365.2425 * DAY
_EPOCH = date(1970, 1, 1)
_YEARS = range(1900, 2200)


@dataclass(frozen=True, slots=True)
class DateRange:
    """A time that a text names: seconds since 1970 in UTC, `end` exclusive, always `start < end`.

    Its length says how exact the text was: a day, a week, a month. An open end ("since May") is infinite.
    `year_open`: no year was named, so this is the latest one; the same days of other years may be meant.
    """

    start: float
    end: float
    year_open: bool = False

    @property
    def days(self) -> float:
        """Its length in days."""
        return (self.end - self.start) / DAY


# --- what others call ------------------------------------------------------------------------------------


def named_dates(text: str, now: float) -> tuple[DateRange, ...]:
    """The times that a text names, in its order, at most eight. None: it names no time.

    "In May" is the latest May that has begun, with `year_open`; 7/5/2023 is both of its readings; "two
    weeks ago" is the week around that day. Never raises: an impossible date (31 February) is none.

    Args:
        text: A question, of which the first 8,000 characters are read.
        now: Seconds since 1970, from which "yesterday" is counted.
    """
    today = _day(now)
    if today is None:
        return ()
    found = (_range(each, today) for each in _mentions(text))
    return tuple(islice(dict.fromkeys(each for each in found if each), MAX_RANGES))


def mentions_time(text: str) -> bool:
    """Whether a text says when: a date, a weekday, "yesterday", "in 2019", 上个月."""
    return bool(_mentions(text))


def time_words(text: str) -> frozenset[str]:
    """The words, folded, by which a text says when: "june" and "21" of "on June 21"."""
    read = plain(text[:MAX_LENGTH])[:MAX_LENGTH]
    said = (read[each.begin : each.finish].casefold() for each in _mentions(text))
    return frozenset(word for part in said for word in re.findall(r"\w+", part))


@lru_cache(maxsize=64)
def asks_when(text: str) -> bool:
    """Whether a text asks for a time: "when did", "how long ago", 什么时候, 几号."""
    return _LEXICON["asks_when"].search(unicodedata.normalize("NFKC", text[:MAX_LENGTH])) is not None


def _day(now: float) -> date | None:
    if not math.isfinite(now) or abs(now) > len(_YEARS) * YEAR:
        return None
    day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=now)).date()
    return day if day.year in _YEARS else None


def _range(mention: Mention, today: date) -> DateRange | None:
    try:
        first, last = mention.days(today)
    except (ValueError, OverflowError):  # the calendar has no such day
        return None
    start = -math.inf if first == date.min else (first - _EPOCH).days * DAY
    end = math.inf if last == date.max else (last - _EPOCH).days * DAY
    return DateRange(start, end, mention.annual is not None) if start < end else None


# --- steps: what is named, parts of it, two ends ---------------------------------------------------------


@lru_cache(maxsize=2_048)  # a question is read for each of its searches, and a record for each question
def _mentions(text: str) -> tuple[Mention, ...]:
    text = plain(text[:MAX_LENGTH])[:MAX_LENGTH]
    found = [_part(each, text) for each in _longest(find(text))]
    found = [each for each in _ranges_joined(found, text) if _is_meant(each, text)]
    return tuple(_in_context(found, text))


def _longest(found: Iterator[Mention]) -> Iterator[Mention]:
    """Keep the first and longest of overlapping finds. Two readings of the same span both stay."""
    kept: list[Mention] = []
    for each in sorted(found, key=lambda each: (each.begin, -each.finish)):
        last = kept[-1] if kept else each
        is_same = (each.begin, each.finish) == (last.begin, last.finish)
        if is_same or each.begin >= last.finish:
            kept.append(each)
    return islice(kept, MAX_MENTIONS)


_BEFORE = 40
"""Characters before a mention that are searched for words that change its meaning."""


def _match_before(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str] | None:
    return pattern.search(text, max(0, position - _BEFORE), position)


_LEXICON = lexicon("dates")


def _part(mention: Mention, text: str) -> Mention:
    """Narrow a mention to the part named by the words beside it: "early May", 去年底."""
    before = _match_before(_LEXICON["part_before"], text, mention.begin)
    found = before or _LEXICON["part_after"].match(text, mention.finish)
    if found is None:
        return mention
    part, days, annual = found["part"].casefold(), mention.days, mention.annual
    return replace(
        mention,
        begin=found.start() if before else mention.begin,
        finish=mention.finish if before else found.end(),
        days=lambda today: portion(part, days(today)),
        annual=annual and (lambda year: portion(part, annual(year))),
        needs_cue=False,
    )


def _ranges_joined(found: list[Mention], text: str) -> list[Mention]:
    """Join two ends into a range, and give the items of a list their neighbour's year."""
    joined: list[Mention] = []
    has_ends = False
    for each in found:
        last = joined[-1] if joined else None
        if last and not has_ends and _are_ends(last, each, text):
            joined[-1] = _from_to(last, each)
            has_ends = True  # and cannot be the end of another
            continue
        has_ends = False
        if last and _LEXICON["one_of_several"].fullmatch(text, last.finish, each.begin):
            joined[-1:] = [_in_year_of(last, each), _in_year_of(each, last)]
        else:
            joined.append(each)
    return joined


def _in_year_of(mention: Mention, other: Mention) -> Mention:
    """Give a mention without a year the year of its neighbour: the May of "May and July 2023"."""
    annual = mention.annual
    if annual is None or other.annual:
        return mention
    return replace(
        mention, days=lambda today: annual(other.days(today)[0].year), annual=None, needs_cue=False
    )


def _are_ends(one: Mention, other: Mention, text: str) -> bool:
    if _LEXICON["end_to_end"].fullmatch(text, one.finish, other.begin):
        return True
    after = _LEXICON["between_zh"].match(text, other.finish)
    is_between = _match_before(_LEXICON["between"], text, one.begin) or after
    return bool(is_between and _LEXICON["end_and_end"].fullmatch(text, one.finish, other.begin))


def _from_to(one: Mention, other: Mention) -> Mention:
    """The range between two mentions. A year at one end holds for both; else the end is the next after the
    start."""

    def days(today: date) -> Days:
        if one.annual and other.annual:
            return chosen(_annual_from_to(one.annual, other.annual), "", today)
        if other.annual:
            start = one.days(today)
            return span(start, _not_before(start[0], other.annual))
        end = other.days(today)
        if one.annual is None:
            return span(one.days(today), end)
        start = one.annual(end[0].year)
        return span(start if start[0] <= end[0] else one.annual(end[0].year - 1), end)

    annual = _annual_from_to(one.annual, other.annual) if one.annual and other.annual else None
    return Mention(one.begin, other.finish, days, annual, one.is_relative and other.is_relative)


def _annual_from_to(one: Annual, other: Annual) -> Annual:
    return lambda year: span(one(year), _not_before(one(year)[0], other))


def _not_before(start: date, annual: Annual) -> Days:
    days = annual(start.year)
    return days if days[0] >= start else annual(start.year + 1)


def _is_meant(mention: Mention, text: str) -> bool:
    """Whether a mention means a time, not the verb of "he may" or the habit of "every January"."""
    if _match_before(_LEXICON["habit"], text, mention.begin):
        return False
    return not mention.needs_cue or _match_before(_LEXICON["cue"], text, mention.begin) is not None


# --- steps: what is told from another day, and what has an open end --------------------------------------


def _in_context(found: list[Mention], text: str) -> Iterator[Mention]:
    """Apply the words around each mention: relative dates and open ends."""
    base: Mention | None = None
    for each, following in zip(found, [*found[1:], None], strict=False):
        if following and _is_told_from(each, following, text):
            base = following
            yield _told_from(each, base)
        elif each is base:
            yield each  # the "before" in front of it belongs to what is told from it
        elif counted := _counted_from(each, text):
            yield from (counted, each)
        else:
            yield _opened(each, text)


def _is_told_from(one: Mention, other: Mention, text: str) -> bool:
    is_pair = one.is_relative and not other.is_relative and one.finish < other.begin  # not 昨天5月7日
    return is_pair and _LEXICON["told_from"].fullmatch(text, one.finish, other.begin) is not None


def _told_from(mention: Mention, base: Mention) -> Mention:
    """Count a mention from another date: the Friday of "last Friday, 23 January"."""
    return replace(mention, days=lambda today: mention.days(base.days(today)[0]))


def _counted_from(mention: Mention, text: str) -> Mention | None:
    """The time counted from a mention: the week before 7 May, 国庆前一周; None if nothing is."""
    after = _LEXICON["counted_from_zh"].match(text, mention.finish)
    found = _match_before(_LEXICON["counted_from"], text, mention.begin) or after
    if found is None:
        return None
    number, unit = number_of(found["number"] or "the") or FEW[1], unit_of(found["unit"])
    is_before, is_the_time_between = found["before"] is not None, bool(after) or number <= 1

    def days(today: date) -> Days:
        first, last = mention.days(today)
        if unit == "weekend" or not is_the_time_between:
            return ago(number if is_before else -number, unit, first)
        return (back(number, unit, first), first) if is_before else (last, back(-number, unit, last))

    return Mention(mention.begin, mention.finish, days)


def _opened(mention: Mention, text: str) -> Mention:
    """Open one end of a mention (since May, before 2022, 5月以后); other mentions stay unchanged."""
    found = _match_before(_LEXICON["open"], text, mention.begin) or _LEXICON["open_zh"].match(
        text, mention.finish
    )
    if found is None:
        return mention
    side = found.lastgroup

    def days(today: date) -> Days:
        first, last = mention.days(today)
        if side in ("since", "after"):
            return (first if side == "since" else last), date.max
        return date.min, (first if side == "before" else last)

    return replace(mention, days=days, annual=None)


# --- how close two times are ------------------------------------------------------------------------------

OTHER_YEAR = 0.8
"""How well "in May" fits a May other than the latest."""
FACT_DATED = 0.5
"""How much a date match counts for a fact by itself: its time says less than an utterance's."""


def closeness(asked: Sequence[DateRange], named: Sequence[DateRange]) -> float | None:
    """How well the times in a text fit the times in a question, in [0, 1].

    1: a time of the text lies within one of the question. `OTHER_YEAR`: it does so in another year, and the
    question names no year. 0: all times lie elsewhere. None: the text names no time, or only longer times
    that overlap the question's, and nothing can be told.
    """
    fits = [_share_within(each, time) for each in asked for time in named]
    known = [fit for fit in fits if fit is not None]
    best = max(known, default=0.0)
    return best if best or (known and len(known) == len(fits)) else None


def _share_within(asked: DateRange, time: DateRange) -> float | None:
    years = round((asked.start - time.start) / YEAR) if asked.year_open and math.isfinite(time.start) else 0
    start, end = time.start + years * YEAR, time.end + years * YEAR
    if start >= asked.end - DAY / 2 or end <= asked.start + DAY / 2:
        return 0.0
    if start < asked.start - DAY or end > asked.end + DAY:
        return None
    return OTHER_YEAR if years else 1.0


# --- asking when -----------------------------------------------------------------------------------------
