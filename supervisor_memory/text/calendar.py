"""Spans of days on the calendar: weeks, months, seasons, "two weeks ago". No clock: today is an argument."""

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeAlias

__all__ = [
    "FEW",
    "Annual",
    "Days",
    "ago",
    "back",
    "calendar",
    "chosen",
    "days_on",
    "monthly",
    "portion",
    "span",
    "weekday_near",
    "whole_year",
    "yearly",
    "yearly_days",
    "yearly_months",
]

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
    near = [days for year in years if (days := _possible(annual, year)) and fits(days)]
    if not near:
        raise ValueError("the calendar has no such day in these years")
    return near[-1] if which == "next" else near[0]


def _possible(annual: Annual, year: int) -> Days | None:
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

_PARTS = {
    **dict.fromkeys(("early", "beginning", "start", "初", "上旬"), (0, 3)),
    **dict.fromkeys(("mid", "middle", "中", "中旬"), (1, 3)),
    **dict.fromkeys(("late", "end", "底", "末", "下旬"), (2, 3)),
    **dict.fromkeys(("first half", "上半月"), (0, 2)),
    **dict.fromkeys(("second half", "下半月"), (1, 2)),
}
_OF_A_YEAR = {
    **dict.fromkeys(("beginning", "start", "初"), (0, 4)),
    **dict.fromkeys(("end", "底", "末"), (3, 4)),
}
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
        n, of = (_OF_A_YEAR if length > _LONG else _PARTS).get(part, _PARTS[part])
        return first + timedelta(length * n // of), first + timedelta(length * (n + 1) // of)
    if part == "last week":
        return last - timedelta(7), last
    nth = _WEEKS[part.split(maxsplit=1)[0]] if part.isascii() else int(part[1])
    return days_on(first + timedelta(7 * (nth - 1)), 7)
