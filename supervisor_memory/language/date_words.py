"""The words for days, months and years, English and Chinese, and the rules that find them in a text.

A rule finds a time that is named by itself; `understand/dates.py` then reads its context. To teach a new
word, add it to a table, or a rule to `RULES`, and a case to the tests. Patterns are applied to text that
`plain` has prepared. Every repetition in them is bounded, so that the work grows in proportion to the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

from supervisor_memory.text.calendar import (
    FEW,
    Annual,
    Days,
    ago,
    back,
    calendar,
    chosen,
    days_on,
    monthly,
    portion,
    span,
    weekday_near,
    whole_year,
    yearly,
    yearly_days,
    yearly_months,
)

__all__ = ["NTH", "NUMBER", "UNIT", "UNIT_ZH", "Mention", "find", "number_of", "plain", "unit_of"]


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

_NUMERAL = re.compile(
    r"(?<![百千万亿点周零〇一二两三四五六七八九十廿卅])(?<!星期)(?<!礼拜)"
    r"[〇零一二两三四五六七八九十廿卅]{1,5}"
    r"(?= ?(?:[年月日号天周个季旬半多]|星期|礼拜|小时|分钟|到|至|-))"
)
_TENS = re.compile(r"([一二三四五六七八九]?)([十廿卅])([一二三四五六七八九]?)")
_FIGURES = {**{c: str(n) for n, c in enumerate("〇一二三四五六七八九")}, "零": "0", "两": "2"}
_COUNT = "one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {
    **{word: n for n, word in enumerate(_COUNT.split(), 1)},
    **dict.fromkeys(("a", "an", "the"), 1),
    **dict.fromkeys(("a couple of", "couple of", "a couple"), 2),
}


def plain(text: str) -> str:
    """Normalise a text: NFKC, straight apostrophes, single spaces, counting Chinese numerals as digits."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _NUMERAL.sub(lambda run: _digits(run[0]), " ".join(text.split()))


def _digits(run: str) -> str:
    """三 → 3, 二十五 → 25, 二〇二三 → 2023; 两三 stays."""
    if tens := _TENS.fullmatch(run):
        factor = {"十": 10, "廿": 20, "卅": 30}[tens[2]]
        return str(int(_FIGURES.get(tens[1], "1")) * factor + int(_FIGURES.get(tens[3], "0")))
    is_number = len(run) in (len("三"), len("二〇二三")) and set(run) <= set(_FIGURES)
    return "".join(_FIGURES[c] for c in run) if is_number else run


def number_of(word: str) -> float | None:
    """The number that "3", "three" or "half a" stands for; None: a few."""
    if word.isdigit():
        return int(word)
    return 0.5 if word.casefold().startswith(("half", "半")) else _NUMBER_WORDS.get(word.casefold())


# --- words -----------------------------------------------------------------------------------------------


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_CLEAR_MONTHS = frozenset("january february july september october november december".split())  # noqa: SIM905
"""Months that are neither names nor other words."""
_WEEKDAYS = "mon tue wed thu fri sat sun".split()  # noqa: SIM905
_WEEKDAYS_ZH = {**{c: n for n, c in enumerate("一二三四五六日")}, "天": 6}
_WHICH_MEANS = {"previous": "last", "past": "last", "current": "this", "coming": "next"}
_STEPS = {"last": -1, "this": 0, "next": 1}
_ANNUAL: dict[str, Annual] = {
    "spring": yearly_months(3, 5),
    "summer": yearly_months(6, 8),
    "autumn": yearly_months(9, 11),
    "fall": yearly_months(9, 11),
    "winter": yearly_months(12, 2),
    "christmas": yearly_days(12, 24, 26),
    "new year": yearly((12, 31), (1, 3)),
    **dict.fromkeys(("valentine's day", "valentines day"), yearly_days(2, 14, 14)),
    "easter": yearly((3, 22), (4, 26)),
    "halloween": yearly_days(10, 31, 31),
    "thanksgiving": yearly_days(11, 22, 29),
    "black friday": yearly_days(11, 23, 29),
}
_SEASONS = frozenset(("spring", "summer", "autumn", "fall", "winter"))
_ANNUAL_ZH: dict[str, Annual] = {
    **dict.fromkeys(("春天", "春季"), yearly_months(3, 5)),
    **dict.fromkeys(("夏天", "夏季"), yearly_months(6, 8)),
    **dict.fromkeys(("秋天", "秋季"), yearly_months(9, 11)),
    **dict.fromkeys(("冬天", "冬季"), yearly_months(12, 2)),
    "上半年": yearly_months(1, 6),
    "下半年": yearly_months(7, 12),
    **dict.fromkeys(("元旦", "跨年"), yearly((12, 31), (1, 4))),
    # By the moon until 寒假: the days on which they can fall.
    **dict.fromkeys(("春节", "除夕", "过年", "大年三十", "大年初", "正月"), yearly((1, 20), (2, 22))),
    "元宵": yearly((2, 4), (3, 7)),
    "端午": yearly((5, 25), (6, 26)),
    "中秋": yearly((9, 7), (10, 9)),
    "寒假": yearly((1, 10), (2, 26)),
    "情人节": yearly_days(2, 14, 14),
    "清明": yearly_days(4, 4, 6),
    **dict.fromkeys(("五一", "劳动节"), yearly_days(5, 1, 5)),
    **dict.fromkeys(("六一", "儿童节"), yearly_days(6, 1, 1)),
    "暑假": yearly_months(7, 8),
    **dict.fromkeys(("国庆", "十一假期", "十一长假", "十一黄金周"), yearly_days(10, 1, 7)),
    **dict.fromkeys(("双十一", "双11"), yearly_days(11, 11, 11)),
    **dict.fromkeys(("双十二", "双12"), yearly_days(12, 12, 12)),
    **dict.fromkeys(("圣诞", "平安夜"), yearly_days(12, 24, 26)),
}
_NEAR_DAYS = {
    **dict.fromkeys(("the day before yesterday", "day before yesterday"), -2),
    **dict.fromkeys(("yesterday", "last night"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening"), 0),
    "tomorrow": 1,
    **dict.fromkeys(("the day after tomorrow", "day after tomorrow"), 2),
    "大前天": -3,
    **dict.fromkeys(("前天", "前日", "前晚"), -2),
    **dict.fromkeys(("昨天", "昨日", "昨晚", "昨夜", "昨儿"), -1),
    **dict.fromkeys(("今天", "今日", "今晚", "今早", "今晨", "今儿"), 0),
    **dict.fromkeys(("明天", "明日", "明早", "明晚", "明儿"), 1),
    "后天": 2,
    "大后天": 3,
}
_YEARS_ZH = {"大前年": -3, "前年": -2, "去年": -1, "上1年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_UNITS_ZH = {
    **dict.fromkeys(("小时", "个小时", "分钟"), "hour"),
    **dict.fromkeys(("天", "日"), "day"),
    **dict.fromkeys(("周", "个星期", "星期", "个礼拜", "礼拜"), "week"),
    **dict.fromkeys(("个季度", "季度"), "quarter"),
    "个月": "month",
    "年": "year",
}
_PERIODS_ZH = {"周末": "weekend", "月": "month"}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}


def unit_of(word: str) -> str:
    """The unit of an English or Chinese word: "day", "week", "month" …"""
    return _UNITS_ZH.get(word) or _PERIODS_ZH.get(word) or word.casefold()


def _which(found: re.Match[str]) -> str:
    word = (_group(found, "which") or "").casefold()
    return _WHICH_MEANS.get(word, word)


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
    if which := _which(found):
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
    return int(found["nth"]) if found["nth"].isdigit() else _ORDINALS[found["nth"].casefold()]


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
    unit, which = unit_of(found["unit"]), _which(found)
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
    steps = _NEAR_DAYS[found["name"].casefold()]
    return _relative(found, lambda today: calendar("day", steps, today))


def _weekday(found: re.Match[str]) -> Mention:
    """Read a weekday: the latest before today, or the one of this or the next week."""
    word = found["weekday"].casefold()
    number = _WEEKDAYS_ZH[word] if word in _WEEKDAYS_ZH else _WEEKDAYS.index(word[:3])
    steps = _STEPS.get(_which(found), -1)
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


# --- rules -----------------------------------------------------------------------------------------------

_TO = r" ?(?:-|–|—|~|to|through|thru|until|till|and) ?(?:the )?"
_TO_ZH = r" ?(?:-|–|—|~|到|至) ?"
_Y = r"(?:19|20)\d\d"
_TH = r"(?:st|nd|rd|th)"
_ALONE = r"(?<![\w./:,$#-])"
"""Before a number: it is not part of a version, an amount, a path or an id."""
_WHOLE = r"(?![\w%]|[.,:/-]\d)"
"""After a number: it is not 2023.5, 20,230 or 2023%."""
_NOT_COUNTED = (
    r"(?! (?:usd|eur|dollars?|ms|kb|mb|km|miles?|rows?|records?|lines?|users?|people|persons?|times|items?|"
    r"flights?|orders?|tokens?|characters?|words?|files?|bytes?|steps?|hours?|minutes?|days?|units?|points?)\b"
    r"| ?[元块万亿人次条行个件班米])"
)
_WHICH = r"(?P<which>last|previous|past|this|current|next|coming)"
_WEEKDAY = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_OF = rf"(?:(?:,| of| in|-)? ?(?P<year>{_Y}){_WHOLE}|(?:,| of)? (?P<word>(?:last|this|next) year)\b)"
"""The year behind a month or season."""
_YEAR_ZH = (
    rf"(?:(?P<word>{_any_of(_YEARS_ZH)})"
    rf"|(?<![\d.])(?P<year>{_Y}|\d\d(?= ?年 ?(?:\d{{1,2}} ?月|[春夏秋冬国第q]|[上下]半))) ?年(?!代|级|龄)度?)"
    r"(?: ?的)? ?"
)
_WEEKDAY_ZH = (  # 上周三个航班 is last week and three flights; 上周一共 is last week in all
    r"(?P<weekday>[一二三四五六日天])"
    r"(?![个次天条趟班位名家份篇封场种项件张架台本只回遍点十百千万共直起般些定切律均时常]|下子)"
)
_MONTH_ZH = (
    rf"(?:(?P<from>\d{{1,2}}) ?月?份?{_TO_ZH})?(?P<month>\d{{1,2}}) ?月(?![内薪租]|[1-9一两三][次回趟])份?"
    rf"(?:的? ?(?P<day>\d{{1,2}}) ?(?:[日号]?{_TO_ZH}(?P<to>\d{{1,2}}) ?)?[日号])?"
)
NTH = _any_of(_ORDINALS)
NUMBER = rf"(?P<number>\d{{1,4}}|half an?|a few|few|several|{_any_of(_NUMBER_WORDS)})"
UNIT = r"(?P<unit>hour|day|night|week|fortnight|weekend|month|quarter|year|decade)s?"
UNIT_ZH = rf"(?P<unit>{_any_of(_UNITS_ZH)})"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule. A text without any of the `signs` is skipped, without trying the slower pattern."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    read: Read


def _rule(signs: str, pattern: str, read: Read) -> _Rule:
    return _Rule(tuple(signs.split()), re.compile(pattern, re.IGNORECASE | re.ASCII), read)


_WEEKDAY_SIGNS = "monday tuesday wednesday thursday friday saturday sunday"

RULES = (
    # 2023-05-07, 2023/5/7, 2023.5.7, 2023-05; both readings of 7/5/2023
    _rule(
        "19 20",
        rf"{_ALONE}(?P<year>{_Y})(?P<s>[-/.])(?P<month>\d{{1,2}})(?P=s)(?P<day>\d{{1,2}})"
        r"(?![\d_]|[./-]\w|[a-su-z])",
        _full_date,
    ),
    _rule(
        "19 20",
        rf"{_ALONE}(?P<day>\d{{1,2}})(?P<s>[-/.])(?P<month>\d{{1,2}})(?P=s)(?P<year>{_Y})(?!\w|[./-]\w)",
        _full_date,
    ),
    _rule(
        "19 20",
        rf"{_ALONE}(?P<month>\d{{1,2}})(?P<s>[-/])(?P<day>\d{{1,2}})(?P=s)(?P<year>{_Y})(?!\w|[./-]\w)",
        _full_date,
    ),
    _rule("19 20", rf"{_ALONE}(?P<year>{_Y})[-/](?P<month>0[1-9]|1[0-2])(?!\w|[./-]\w)", _year_month),
    # 7 May 2023, May 7th, 7-10 May, May 2023, May
    _rule(
        " ".join(_MONTHS),
        rf"(?<![\w./:,$#])(?:{_WHICH} )?"
        rf"(?:(?P<day>\d{{1,2}})(?P<ordinal>{_TH})?(?:{_TO}(?P<to>\d{{1,2}}){_TH}?)?[ -]?(?:of )?)?"
        rf"{_MONTH}(?![a-z])(?:\.(?= ?\d))?"
        rf"(?: ?(?:the )?(?P<day_after>\d{{1,2}})(?P<ordinal_after>{_TH})?"
        rf"(?:{_TO}(?P<to_after>\d{{1,2}}){_TH}?)?"
        rf"(?![\w%:]|[./]\d|,\d{{3}}(?!\d)))?{_OF}?(?!\w)",
        _month,
    ),
    # last summer, Christmas 2022; Q2, 2023Q2, second quarter, H1 2023
    _rule(
        " ".join(name.split()[0] for name in _ANNUAL),
        rf"(?:{_ALONE}(?P<year_before>{_Y}) ?|\b(?:{_WHICH} )?)"
        rf"(?P<name>{_any_of(_ANNUAL)})(?:'?s)?(?: eve| day)?\b"
        rf"(?! (?:boot|framework|batch|chicken|roll))(?: season)?{_OF}?",
        _season,
    ),
    _rule(
        "q1 q2 q3 q4",
        rf"(?:{_YEAR_ZH}|(?:{_ALONE}(?P<year_before>{_Y})[ -]?|(?<![\w.-])))q(?P<nth>[1-4])(?![\w:)=.-])",
        _quarter,
    ),
    _rule("q1 q2 q3 q4", rf"(?<![\w.-])q(?P<nth>[1-4]){_OF}", _quarter),
    _rule("quarter", rf"\b(?P<nth>{NTH}) quarter\b(?: of the year\b|{_OF}|(?! of))", _quarter),
    _rule(
        "h1 h2",
        rf"(?:{_ALONE}(?P<year_before>{_Y})[ -]?|(?<![\w.-]))h(?P<nth>[12])(?![\w:)=.-]){_OF}?",
        _half,
    ),
    _rule("half", rf"\b(?P<nth>first|second) half(?: of the year\b|{_OF})", _half),
    # in 2023, since 2019, the 2022 conference; from 2021 to 2023; the 90s
    _rule(
        "19 20",
        rf"\b(?:in|during|since|until|till|year|fy|throughout|mid|early|late|around)[ -]?(?:the year )?"
        rf"(?P<year>{_Y}){_WHOLE}{_NOT_COUNTED}",
        _year,
    ),
    _rule(  # the plural shows what is counted
        "19 20",
        rf"\b(?:before|after|by|of|from|for|the|my|our|'s) (?P<year>{_Y}){_WHOLE}{_NOT_COUNTED}"
        r"(?! [a-z]{1,30}[a-rt-z]s\b)",
        _year,
    ),
    _rule("19 20", rf"{_ALONE}(?P<year>{_Y}){_TO}(?P<until>{_Y}){_WHOLE}{_NOT_COUNTED}", _years),
    _rule("0s 0's", r"\b(?:the )?(?P<tens>(?:19|20)\d0|(?<=the )[2-9]0)'?s\b", _decade),
    # last week, the past month, the last three weeks, two weeks ago, yesterday, on Tuesday, on the 5th
    _rule(
        "week month quarter year",
        rf"\b(?P<the>the )?{_WHICH} (?P<unit>week|weekend|month|quarter|year)\b(?! of\b)",
        _period,
    ),
    _rule("weekend", r"\b(?:over|on|at|during) (?:the )?weekend\b", _the_weekend),
    _rule("last past recent previous", rf"\b(?:last|past|recent|previous) {NUMBER} {UNIT}\b", _latest),
    _rule("past recent", r"\b(?:past|recent) (?P<unit>day|week|month|year)s\b", _latest),
    _rule("ago back", rf"(?<![\w.]){NUMBER} {UNIT} (?:ago|back)\b", _ago),
    _rule(
        "yesterday today tomorrow night morning afternoon evening",
        rf"\b(?P<name>{_any_of(filter(str.isascii, _NEAR_DAYS))})\b",
        _near_day,
    ),
    _rule(
        _WEEKDAY_SIGNS,
        rf"(?<!every )(?<!each )\b(?:(?P<which>last|past|this|next|coming) |on )?{_WEEKDAY}\b"
        rf"(?!,? (?:the )?(?:\d|{_MONTH}\b))",
        _weekday,
    ),
    _rule(
        "mon tue wed thu fri sat sun",
        r"\b(?:(?P<which>last|past|this|next|coming)|on) "
        r"(?-i:(?P<weekday>Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))\b(?!,? \d)",
        _weekday,
    ),
    _rule(
        "on",
        rf"\bon the (?P<day>\d{{1,2}}){_TH}(?= ?(?:[?.,!;]|$|(?:at|in|after|before|when|with|for|we|i)\b))",
        _day_of_month,
    ),
    # 2023年5月7日, 去年五月, 5月7日到10日, 5-7月, 第二季度, 2023年国庆, 去年, 90年代
    _rule(
        f"月 季度 {' '.join(_ANNUAL_ZH)}",
        rf"(?:{_YEAR_ZH})?(?<![\d.第])(?:{_MONTH_ZH}|第?(?P<nth>[1-4]) ?季度"
        rf"|(?<![一二三四五六七八九十])(?P<name>{_any_of(_ANNUAL_ZH)})(?![二三四五六七八九十]|广场|大道|路))",
        _annual_zh,
    ),
    _rule("年", _YEAR_ZH, _year_zh),
    _rule("年", rf"{_ALONE}(?P<year>{_Y}) ?年?{_TO_ZH}(?P<until>{_Y}) ?年", _years),
    _rule("年代", r"(?<!\d)(?P<tens>(?:19|20)?\d0) ?年代", _decade),
    # 上周, 上周三, 上个月5号, 周三, 前天, 三天前, 最近两周, 月底, 5号那天
    _rule(
        "周 星期 礼拜 月 季度",
        r"(?<![晚早马网线路桌世以])(?P<which>上上|上|这|本|下下|下)1? ?个?"
        r"(?P<unit>周末|周(?![边围转期年岁折])|星期|礼拜|月|季度)"
        rf"(?:(?<=[周期拜]){_WEEKDAY_ZH})?(?:(?<=月)份?的? ?(?P<day>\d{{1,2}}) ?[日号])?",
        _period_zh,
    ),
    _rule(
        "周 星期 礼拜",
        r"(?<![每\d两几半单双逢日号])(?<!每个)(?<![日号][ (])(?:周|星期|礼拜)"
        rf"{_WEEKDAY_ZH}(?!{_TO_ZH}(?:周|星期)?[一二三四五六日天])",
        _weekday,
    ),
    _rule(
        "天 日 晚 夜 儿 早 晨",
        f"(?P<name>{_any_of(word for word in _NEAR_DAYS if not word.isascii())})",
        _near_day,
    ),
    _rule(
        "前",
        r"(?<![\d第年月.])(?P<number>\d{1,3}|半|几|数|好几|[一二两三四五六七八][二两三四五六七八九])多?"
        rf"{UNIT_ZH}多?[以之]?前(?![后面台端\d])",
        _ago,
    ),
    _rule("近 过去 这 前", rf"(?:最近|过去|近|这|前(?=几))的?(?P<number>\d{{1,3}}|半|几){UNIT_ZH}", _latest),
    _rule(
        "年 月",
        r"(?<![\d年月今去前明后上下本这个每])(?P<unit>年|月)(?P<part>初|中(?![国午心间文学转])|底|末)",
        _edge_zh,
    ),
    _rule("号", r"(?<![\d第月.])(?P<day>\d{1,2})号(?=那天|当天|早上|上午|中午|下午|晚|夜)", _day_of_month),
)


def find(text: str) -> Iterator[Mention]:
    """The finds of all rules in a prepared text, one rule after the other."""
    lowered = text.lower()
    for rule in RULES:
        if any(sign in lowered for sign in rule.signs):
            yield from filter(None, map(rule.read, rule.pattern.finditer(text)))
