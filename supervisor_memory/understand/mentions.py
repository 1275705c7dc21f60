"""The times that a text names directly: "7 May 2023", "last week", 上周三. The words are in dates.toml.

A rule of dates.toml finds such a time, one of the functions here makes a mention of it, and `dates` reads
it in its context.
"""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from supervisor_memory.language.lexicon import lexicon

_LEXICON = lexicon("dates")

Days: TypeAlias = tuple[date, date]
"""(the first day, the day after the last); `date.min` and `date.max` are open ends."""
Annual: TypeAlias = Callable[[int], Days]
"""(a year) → the days that begin in it. Raises ValueError if the year has no such day."""

FEW = (2, 5)
"""The least and the most that "a few" may mean."""
_YEARS_AROUND = 9  # 29 February is at most eight years away
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DAYS_IN = {"hour": 1 / 24, "day": 1, "night": 1, "week": 7, "fortnight": 14}
_HALF_OF = {"week": 3, "fortnight": 3, "month": 15, "quarter": 45, "year": 182, "decade": 1826}
"""Days of tolerance on both sides of "so many units ago"; hours and days are exact."""


def days_on(first: date, number: int) -> Days:
    """A number of days, beginning with `first`."""
    return first, first + timedelta(number)


def span(one: Days, other: Days) -> Days:
    """The time from the earlier start to the later end."""
    return min(one[0], other[0]), max(one[1], other[1])


def whole_year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def yearly(start: tuple[int, int], end: tuple[int, int]) -> Annual:
    """The days from one (month, day) to another, exclusive; over New Year unless the end is later."""
    return lambda year: (date(year, *start), date(year + (end <= start), *end))


def yearly_days(month: int, first: int, last: int) -> Annual:
    return lambda year: (date(year, month, first), date(year, month, last) + timedelta(1))


def yearly_months(first: int, last: int) -> Annual:
    return yearly((first, 1), (last % 12 + 1, 1))


def chosen(annual: Annual, which: str, today: date) -> Days:
    """The annual days meant by "last", "this" or "next"; for "" the latest that have begun.

    Raises:
        ValueError: none of the years around today has them, such as 31 February.
    """
    fits: Callable[[Days], bool] = {
        "last": lambda days: days[1] <= today,
        "this": lambda days: days[0].year == today.year,
        "next": lambda days: days[0] > today,
    }.get(which, lambda days: days[0] <= today)
    years = range(today.year + _YEARS_AROUND, today.year - _YEARS_AROUND, -1)
    near = [days for year in years if (days := _days_if_possible(annual, year)) and fits(days)]
    if not near:
        raise ValueError("the calendar has no such day in these years")
    return near[-1] if which == "next" else near[0]


def _days_if_possible(annual: Annual, year: int) -> Days | None:
    try:
        return annual(year)
    except ValueError:  # 29 February
        return None


def calendar(unit: str, steps: int, today: date) -> Days:
    """The day, week, weekend, month, quarter or year `steps` units from the present one (0)."""
    monday = today - timedelta(today.weekday()) + timedelta(7 * steps)
    if unit == "day":
        return days_on(today + timedelta(steps), 1)
    if unit == "week":
        return days_on(monday, 7)
    if unit == "weekend":
        return days_on(monday + timedelta(5), 2)
    if unit == "year":
        return whole_year(today.year + steps)
    months = 3 if unit == "quarter" else 1
    first = _months_on(today.replace(day=1), months * steps - (today.month - 1) % months)
    return first, _months_on(first, months)


def weekday_near(number: int, steps: int, today: date) -> Days:
    """A weekday (Monday: 0), `steps` weeks from this one; for negative steps the latest before today."""
    if steps < 0:
        return days_on(today - timedelta((today.weekday() - number - 1) % 7 + 1), 1)
    return days_on(calendar("week", steps, today)[0] + timedelta(number), 1)


def monthly(day: int, today: date) -> Days:
    """The latest n-th day of a month, today included. Raises ValueError if that month is too short."""
    first = today.replace(day=1)
    return days_on((first if day <= today.day else _months_on(first, -1)).replace(day=day), 1)


def back(number: float, unit: str, today: date) -> date:
    """The day `number` units before today, after it if negative; half a month is fifteen days."""
    if unit in _MONTHS_IN:
        months = number * _MONTHS_IN[unit]
        return _months_on(today, -int(months)) - timedelta(int(30 * (months % 1)))
    return today - timedelta(int(number * _DAYS_IN[unit]))


def ago(number: float | None, unit: str, today: date) -> Days:
    """The time about `number` units ago: the day and half a unit on both sides; None: a few."""
    if number is None:
        return ago(FEW[1], unit, today)[0], ago(FEW[0], unit, today)[1]
    if unit == "weekend":
        return calendar(unit, -int(number), today)
    half = timedelta(_HALF_OF.get(unit, 0) // (1 if abs(number) >= 1 else 4))
    middle = back(number, unit, today)
    return middle - half, middle + half + timedelta(1)


def _months_on(day: date, months: int) -> date:
    """The same day some months later; in a shorter month its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


# --- parts -----------------------------------------------------------------------------------------------

_PARTS, _OF_A_YEAR = _LEXICON.meanings("parts_of_a_month"), _LEXICON.meanings("parts_of_a_year")
"""The end of a month is its last third, the end of a year its last quarter."""
_WEEKS = {
    name: n
    for n, names in enumerate(("first 1st", "second 2nd", "third 3rd", "fourth 4th"), 1)
    for name in names.split()
}
_SHORTEST, _LONG = 28, 93


def portion(part: str, days: Days) -> Days:
    """The part of a time named by "early", "second half", "first week", 底, 第2周.

    "week" is the week around its first day. A time shorter than four weeks is returned whole.
    """
    first, last = days
    length = (last - first).days
    if part == "week":
        return calendar("week", 0, first)
    if length < _SHORTEST:
        return days
    if part in _PARTS:
        n, of = map(int, (_OF_A_YEAR if length > _LONG else _PARTS).get(part, _PARTS[part]).split())
        return first + timedelta(length * n // of), first + timedelta(length * (n + 1) // of)
    if part == "last week":
        return last - timedelta(7), last
    nth = _WEEKS[part.split(maxsplit=1)[0]] if part.isascii() else int(part[1])
    return days_on(first + timedelta(7 * (nth - 1)), 7)


@dataclass(frozen=True, slots=True)
class Mention:
    """A time named between two positions of the text.

    `days`: today → the named days; raises ValueError or OverflowError if the calendar has no such day.
    `annual`: a year → the named days, for a text that names no year. `is_relative`: it depends on today.
    `needs_cue`: the word is also an ordinary one, so a word before it must show that it means a time.
    """

    begin: int
    finish: int
    days: Callable[[date], Days]
    annual: Annual | None = None
    is_relative: bool = False
    needs_cue: bool = False


# --- numbers ---------------------------------------------------------------------------------------------

_FIGURES = {c: str(n) for n, same in enumerate(lexicon("common").listed("digits_zh")) for c in same}
_LENGTHS = (1, 4)  # of a digit, and of a year
_NUMBER_WORDS = {word: int(number) for word, number in _LEXICON.meanings("number_words").items()}
_NUMBER_WORDS |= {word: number for number, word in enumerate(lexicon("common").listed("small_numbers"))}


def plain(text: str) -> str:
    """Normalise a text: NFKC, straight apostrophes, single spaces, counting Chinese numerals as digits."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _LEXICON["numeral"].sub(lambda run: _digits(run[0]), " ".join(text.split()))


def _digits(run: str) -> str:
    """三 → 3, 二十五 → 25, 二〇二三 → 2023; 两三 stays."""
    if tens := _LEXICON["tens"].fullmatch(run):
        factor = _LEXICON.table("tens_zh")[tens[2]]
        return str(int(_FIGURES.get(tens[1], "1")) * factor + int(_FIGURES.get(tens[3], "0")))
    is_number = len(run) in _LENGTHS and set(run) <= set(_FIGURES)
    return "".join(_FIGURES[c] for c in run) if is_number else run


def number_of(word: str) -> float | None:
    """The number that "3", "three" or "half a" stands for; None: a few."""
    if word.isdigit():
        return int(word)
    return 0.5 if word.casefold().startswith(("half", "半")) else _NUMBER_WORDS.get(word.casefold())


# --- words -----------------------------------------------------------------------------------------------


def _yearly(key: str) -> dict[str, Annual]:
    """The times that come back every year, by name; each is a first day and the day after its last one."""
    return {name: yearly(*map(_month_day, days.split())) for name, days in _LEXICON.meanings(key).items()}


def _month_day(text: str) -> tuple[int, int]:
    month, _, day = text.partition("-")
    return int(month), int(day)


_MONTHS = _LEXICON.listed("months")
_CLEAR_MONTHS = _LEXICON.words("clear_months")
_WEEKDAYS = _LEXICON.listed("weekdays")
_WEEKDAYS_ZH = _LEXICON.table("weekdays_zh")
_STEPS = _LEXICON.table("steps")
_ANNUAL = _yearly("annual")
_SEASONS = _LEXICON.words("seasons")
_ANNUAL_ZH = _yearly("annual_zh")
_NEAR_DAYS = {**_LEXICON.meanings("near_days"), **_LEXICON.meanings("near_days_zh")}
_YEARS_ZH = _LEXICON.table("years_zh")
_UNITS_ZH = _LEXICON.meanings("units_zh")
_PERIODS_ZH: Mapping[str, str] = _LEXICON.table("periods_zh")


def unit_of(word: str) -> str:
    """The unit of an English or Chinese word: "day", "week", "month" …"""
    return _UNITS_ZH.get(word) or _PERIODS_ZH.get(word) or word.casefold()


def _chosen_word(found: re.Match[str]) -> str:
    word = (_group(found, "which") or "").casefold()
    return str(_LEXICON.table("which_means").get(word, word))


def _group(found: re.Match[str], *names: str) -> str | None:
    """The text of the first of these groups that matched; a group may be missing from the pattern."""
    groups: Mapping[str, str | None] = found.groupdict()
    return next((value for name in names if (value := groups.get(name))), None)


# --- from what a rule found to a mention -----------------------------------------------------------------

Read: TypeAlias = Callable[[re.Match[str]], Mention | None]


def _fixed(found: re.Match[str], days: Callable[[], Days]) -> Mention:
    return Mention(found.start(), found.end(), lambda _: days())


def _relative(found: re.Match[str], days: Callable[[date], Days]) -> Mention:
    return Mention(found.start(), found.end(), days, is_relative=True)


def _of_year(found: re.Match[str], annual: Annual, *, needs_cue: bool = False) -> Mention:
    """Annual days in a year that is named, relative ("last year"), chosen ("last May") or left open."""
    if year := _group(found, "year", "year_before"):
        number = int(year) + (0 if len(year) == len("2023") else 2000)
        return _fixed(found, lambda: annual(number))
    if word := _group(found, "word"):
        steps = _YEARS_ZH[word] if word in _YEARS_ZH else _STEPS[word.split()[0].casefold()]
        return _relative(found, lambda today: annual(today.year + steps))
    if which := _chosen_word(found):
        return _relative(found, lambda today: chosen(annual, which, today))
    return Mention(
        found.start(), found.end(), lambda today: chosen(annual, "", today), annual, needs_cue=needs_cue
    )


def _full_date(found: re.Match[str]) -> Mention:
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    return _fixed(found, lambda: days_on(date(year, month, day), 1))


def _year_month(found: re.Match[str]) -> Mention:
    return _of_year(found, yearly_months(int(found["month"]), int(found["month"])))


def _month(found: re.Match[str]) -> Mention:
    """Read a month with or without days: May, 7 May, May 7-10."""
    word = found["month"].casefold()
    month = _MONTHS.index(word[:3]) + 1
    day = _group(found, "day", "day_after")
    if day is None:
        return _of_year(found, yearly_months(month, month), needs_cue=word not in _CLEAR_MONTHS)
    last = _group(found, "to", "to_after") or day
    is_verb_like = found["month"].islower() and not _group(found, "ordinal", "ordinal_after")
    return _of_year(
        found,
        yearly_days(month, int(day), int(last)),
        needs_cue=is_verb_like and word in ("may", "march", "mar"),
    )


def _season(found: re.Match[str]) -> Mention:
    name = found["name"].casefold()
    return _of_year(found, _ANNUAL[name], needs_cue=name in _SEASONS)


def _quarter(found: re.Match[str]) -> Mention:
    n = _nth(found)
    return _of_year(found, yearly_months(3 * n - 2, 3 * n))


def _half(found: re.Match[str]) -> Mention:
    n = _nth(found)
    return _of_year(found, yearly_months(6 * n - 5, 6 * n), needs_cue=found["nth"].isdigit())  # <h1>


def _nth(found: re.Match[str]) -> int:
    nth = found["nth"].casefold()
    return int(nth) if nth.isdigit() else int(_LEXICON.table("ordinals")[nth])


def _annual_zh(found: re.Match[str]) -> Mention:
    """Read 五月, 5月7日, 5-7月, 第二季度, 国庆, each with or without a year."""
    if name := found["name"]:
        return _of_year(found, _ANNUAL_ZH[name])
    if found["nth"]:
        return _quarter(found)
    month, day = int(found["month"]), found["day"]
    if day:
        return _of_year(found, yearly_days(month, int(day), int(found["to"] or day)))
    return _of_year(found, yearly_months(int(found["from"] or month), month))


def _year(found: re.Match[str]) -> Mention:
    """Read a year; the word before it, such as "in", is not part of the mention."""
    year = int(found["year"])
    return Mention(found.start("year"), found.end(), lambda _: whole_year(year))


def _year_zh(found: re.Match[str]) -> Mention:
    return _of_year(found, whole_year)


def _years(found: re.Match[str]) -> Mention:
    first, last = int(found["year"]), int(found["until"])
    return _fixed(found, lambda: span(whole_year(first), whole_year(last)))


def _decade(found: re.Match[str]) -> Mention:
    tens = found["tens"]
    first = int(tens) if len(tens) == len("1990") else int(("19" if tens >= "30" else "20") + tens)
    return _fixed(found, lambda: span(whole_year(first), whole_year(first + 9)))


def _period(found: re.Match[str]) -> Mention | None:
    """Read "last week", "this month"; "the last month" ends now; None for "the next week" of a story."""
    unit, which = unit_of(found["unit"]), _chosen_word(found)
    if found["the"] and which == "next":
        return None
    if unit in ("week", "month", "year") and (
        found["which"].casefold() == "past" or (found["the"] and found["which"].casefold() == "last")
    ):
        return _until_now(found, 1, unit)
    return _relative(found, lambda today: calendar(unit, _STEPS[which], today))


def _the_weekend(found: re.Match[str]) -> Mention:
    """Read "the weekend": the latest that has begun."""
    return _relative(found, lambda today: calendar("weekend", 0 if today.isoweekday() > 5 else -1, today))  # noqa: PLR2004


def _until_now(found: re.Match[str], number: float, unit: str) -> Mention:
    return _relative(found, lambda today: (back(number, unit, today), today + timedelta(1)))


def _latest(found: re.Match[str]) -> Mention:
    number = number_of(_group(found, "number") or "few")
    return _until_now(found, FEW[1] if number is None else number, unit_of(found["unit"]))


def _ago(found: re.Match[str]) -> Mention:
    number, unit = number_of(found["number"]), unit_of(found["unit"])
    return _relative(found, lambda today: ago(number, unit, today))


def _near_day(found: re.Match[str]) -> Mention:
    steps = int(_NEAR_DAYS[found["name"].casefold()])
    return _relative(found, lambda today: calendar("day", steps, today))


def _weekday(found: re.Match[str]) -> Mention:
    """Read a weekday: the latest before today, or the one of this or the next week."""
    word = found["weekday"].casefold()
    number = _WEEKDAYS_ZH[word] if word in _WEEKDAYS_ZH else _WEEKDAYS.index(word[:3])
    steps = _STEPS.get(_chosen_word(found), -1)
    return _relative(found, lambda today: weekday_near(number, steps, today))


def _period_zh(found: re.Match[str]) -> Mention:
    """Read 上周, 上周三, 上个月, 上个月5号."""
    word, unit = found["which"], unit_of(found["unit"])
    steps = {"上": -len(word), "下": len(word)}.get(word[0], 0)
    weekday, day = found["weekday"], found["day"]

    def days(today: date) -> Days:
        first, last = calendar(unit, steps, today)
        if weekday:
            return days_on(first + timedelta(_WEEKDAYS_ZH[weekday]), 1)
        return days_on(first.replace(day=int(day)), 1) if day else (first, last)

    return _relative(found, days)


def _edge_zh(found: re.Match[str]) -> Mention:
    """Read 月底 or 年初 by itself: of this month or year."""
    unit, part = unit_of(found["unit"]), found["part"]
    return _relative(found, lambda today: portion(part, calendar(unit, 0, today)))


def _day_of_month(found: re.Match[str]) -> Mention:
    day = int(found["day"])
    return _relative(found, lambda today: monthly(day, today))


# --- rules ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule. A text without any of the `signs` is skipped, without trying the slower pattern."""

    signs: frozenset[str]
    pattern: re.Pattern[str]
    read: Read


def _signs(block: Mapping[str, Any]) -> Iterator[str]:
    yield from block.get("signs", "").split()
    if "signs_of" in block:
        yield from (name.split()[0] for name in _LEXICON.meanings(block["signs_of"]))


_READERS: dict[str, Read] = {
    each.__name__.removeprefix("_"): each
    for each in (
        *(_full_date, _year_month, _month, _season, _quarter, _half, _year, _years, _decade),
        *(_period, _the_weekend, _latest, _ago, _near_day, _weekday, _day_of_month),
        *(_annual_zh, _year_zh, _period_zh, _edge_zh),
    )
}
RULES = tuple(
    _Rule(frozenset(_signs(block)), pattern, _READERS[block["reads"]])
    for block, pattern in _LEXICON.blocks("rules")
)
_SIGNS = frozenset().union(*(rule.signs for rule in RULES))
_IN_ASCII = frozenset(filter(str.isascii, _SIGNS))


def signs_in(text: str, among: Collection[str] | None = None) -> list[str]:
    """The signs of the rules in a text; a text without any names no time.

    Args:
        among: Those that are looked for, such as the signs of a text of which this is a part; None: all.
    """
    lowered = text.lower()
    if among is None:
        among = _IN_ASCII if lowered.isascii() else _SIGNS
    return [sign for sign in among if sign in lowered]


def find(text: str) -> Iterator[Mention]:
    """The finds of all rules in a prepared text, one rule after the other."""
    found = signs_in(text)
    for rule in RULES:
        if not rule.signs.isdisjoint(found):
            yield from filter(None, map(rule.read, rule.pattern.finditer(text)))
