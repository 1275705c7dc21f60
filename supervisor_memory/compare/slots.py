"""Tell alike texts apart by their slots: numbers, dates, negation, direction, opposites, identifiers.

Similar wording cannot decide it: "over 30 minutes" and "under 30 minutes" are nearer to each other than to
any paraphrase. A slot differs if each text has a value there that the other lacks; a text that merely says
more does not differ. Two exceptions: dates and negation have to agree.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, TypeVar

from supervisor_memory.language.sides import OPPOSITE, sides
from supervisor_memory.text.terms import terms

__all__ = [
    "UNIT_TERMS",
    "Slots",
    "dates_differ",
    "difference",
    "holds",
    "numbers_differ",
    "one_thing",
    "plain",
    "same_slots",
    "slots",
]

_FRACTION = re.compile(r"(?:(?<![\d.,])(\d{1,9}) ?)?([¼-¾⅐-⅞])")
_HALF = re.compile(r"\bhalf an? (?!hour\b)(?=[a-z])|半(?=[吨斤升米克里箱桶]|公[斤里])", re.IGNORECASE)
_MINUS = re.compile(
    r"(?:零下|摄氏负|华氏负|负) ?(?=\d)|(?:零下|负)(?P<zh>[一二两三四五六七八九]?十[一二三四五六七八九]?|"
    r"[一二两三四五六七八九])(?=度|摄氏|华氏|[,，。]|$)"
    r"|\b(?:minus|negative) (?=\d)|(?<![A-Za-z0-9_%)])−(?=\d)",
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"(?<![\w.-])(\d{1,4}(?:\.\d{1,4})? ?(?:degrees?|°)? ?[CF]?) below (?:zero|freezing)\b", re.I
)
_CHINESE = {**{c: n for n, c in enumerate("零一二三四五六七八九十")}, "两": 2, "十一": 11, "十二": 12}
_CLOCK = re.compile(
    r"(?<![A-Za-z0-9_.:])(?P<hour>1[0-2]|0?[1-9])(?:[:.](?P<minute>[0-5]\d))? ?(?P<half>[ap])(?:\.m\.|\.?m\b)"
    r"|(?P<zh>凌晨|清晨|早[上晨]|上午|今早|明早|中午|下午|午后|傍晚|晚上|今晚|明晚|夜[里间]) ?"
    r"(?P<hourzh>2[0-3]|1\d|0?\d|十[一二]?|[一二两三四五六七八九])"
    r"(?:[:：](?P<minutezh>[0-5]\d)| ?点(?:钟|(?P<thirty>半)|(?P<past>[0-5]?\d)分?)?)(?!\d)",
    re.IGNORECASE,
)
_MORNING_ZH = frozenset(["凌晨", "清晨", "早上", "早晨", "上午", "今早", "明早"])
_NOON = 12


def plain(text: str) -> str:
    """The text in normal form (NFKC, straight apostrophes, single spaces) and its figures in one spelling.

    Times with a known half of the day become 21:00, negatives -5, fractions 0.5.
    """
    text = _FRACTION.sub(_decimal, text)
    text = " ".join(unicodedata.normalize("NFKC", text).replace("’", "'").split())
    text = _BELOW.sub(r"-\1", _MINUS.sub(_signed, _HALF.sub("0.5 ", text)))
    return _CLOCK.sub(_of_day, text)


def _decimal(match: re.Match[str]) -> str:
    value = int(match[1] or 0) + unicodedata.numeric(match[2])
    return f"{value:.4f}".rstrip("0")


def _signed(match: re.Match[str]) -> str:
    if not (words := match["zh"]):
        return "-"
    tens, ten, ones = words.rpartition("十")
    return f"-{10 * _CHINESE.get(tens, 1) * len(ten) + _CHINESE.get(ones, 0)}"


def _of_day(match: re.Match[str]) -> str:
    if match["half"]:
        hour = int(match["hour"]) % _NOON + (_NOON if match["half"].casefold() == "p" else 0)
        return f"{hour:02}:{match['minute'] or '00'}"
    hour = _CHINESE[match["hourzh"]] if match["hourzh"] in _CHINESE else int(match["hourzh"])
    minute = match["minutezh"] or ("30" if match["thirty"] else (match["past"] or "0").zfill(2))
    if match["zh"] in _MORNING_ZH:
        hour %= _NOON
    elif match["zh"] != "中午" or hour < _NOON - 1:
        hour = hour % _NOON + _NOON if hour < _NOON else hour
    return f"{hour:02}:{minute}"


T = TypeVar("T")
Number: TypeAlias = tuple[str, str]
"""(value, unit); the unit is "" if none is named."""

MAX_LENGTH = 8_000
"""Characters that are compared; statements are far shorter."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The details of a text by which alike texts differ.

    Numbers carry a normalised unit (times up to hours in minutes, 万 multiplied in). `is_negative`: the text
    denies or excludes. `directions`: "more" and "less". `sides`: one of two opposites ("gross").
    `identifiers`: code words, paths, quotations, acronyms and names. `labels`: things with a number or letter
    ("line 2"). `rates`: how often or for how long ("month"). `halves`: the halves of the day of its
    times ("am"). `limits`: "only" and "except".
    """

    numbers: frozenset[Number] = frozenset()
    dates: frozenset[str] = frozenset()
    is_negative: bool = False
    directions: frozenset[str] = frozenset()
    sides: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    rates: frozenset[str] = frozenset()
    halves: frozenset[str] = frozenset()
    limits: frozenset[str] = frozenset()

    @property
    def years(self) -> frozenset[str]:
        """The named years, also those of full dates."""
        return frozenset(date[:4] for date in self.dates if date[:4].isdigit())

    def is_opposite(self, other: "Slots") -> bool:
        """Whether two texts name opposite sides."""
        return any(OPPOSITE[side] in other.sides - self.sides for side in self.sides - other.sides)


def slots(text: str) -> Slots:
    """Read the slots of an English or Chinese text; numbers may be digits or words."""
    quoted, rest = _taken(_QUOTED, plain(text[:MAX_LENGTH]))
    labels, rest = _taken(_LABEL, rest)
    codes, rest = _codes(rest)
    limits = {name for name, pattern in _LIMITS if pattern.search(rest)}
    rates = {name for name, pattern in _RATES if pattern.search(rest)}
    halves = set(_halves(rest))
    dates, rest = _dates(rest)
    numbers, unnumbered = _numbers(rest)
    directions, undirected = _directions(rest)
    return Slots(
        numbers=_set(numbers),
        dates=_set(dates),
        is_negative=_is_negative(undirected),
        directions=_set(directions),
        sides=_set(sides(rest)),
        identifiers=_set(_identifiers(quoted, codes, unnumbered)),
        rates=_set(rates),
        halves=_set(halves),
        limits=_set(limits),
        labels=_set(" ".join(label.casefold().split()) for label in labels),
    )


_EMPTY: Final[frozenset[Any]] = frozenset()


def _set(found: Iterable[T]) -> frozenset[T]:
    """A frozen set; empty ones share an object to save memory, since most slots are empty."""
    return frozenset(found) or _EMPTY


def same_slots(a: str, b: str) -> bool:
    """Whether no slot differs."""
    return difference(a, b) == ""


def holds(larger: Slots, smaller: Slots) -> bool:
    """Whether `larger` has every number, date, identifier and label of `smaller`."""
    return (
        all(any(_agree(number, other) for other in larger.numbers) for number in smaller.numbers)
        and all(any(one_thing(name, other) for other in larger.identifiers) for name in smaller.identifiers)
        and smaller.dates <= larger.dates
        and smaller.labels <= larger.labels
    )


def difference(a: str, b: str) -> str:
    """The first slot in which two texts differ; "" if none does.

    One of "number", "date", "negation", "direction", "opposite", "identifier".
    """
    one, other = slots(a), slots(b)
    if numbers_differ(one.numbers, other.numbers):
        return "number"
    if (one.dates and other.dates and one.dates != other.dates) or dates_differ(one, other):
        return "date"
    if one.is_negative != other.is_negative:
        return "negation"
    if one.directions and other.directions and not one.directions & other.directions:
        return "direction"
    if one.is_opposite(other):
        return "opposite"
    if _identifiers_differ(one.identifiers, other.identifiers) or _labels_differ(one.labels, other.labels):
        return "identifier"
    return ""


def dates_differ(one: Slots, other: Slots) -> bool:
    """Whether each names a date or a time that the other does not; 9 am is not 9 pm."""
    halves = one.halves and other.halves and not one.halves & other.halves
    return bool((one.dates - other.dates and other.dates - one.dates) or halves)


def numbers_differ(a: frozenset[Number], b: frozenset[Number]) -> bool:
    def unmatched(mine: frozenset[Number], theirs: frozenset[Number]) -> bool:
        return any(not any(_agree(number, other) for other in theirs) for number in mine)

    return unmatched(a, b) and unmatched(b, a)


def _identifiers_differ(a: frozenset[str], b: frozenset[str]) -> bool:
    def unmatched(mine: frozenset[str], theirs: frozenset[str]) -> bool:
        return any(not any(one_thing(name, other) for other in theirs) for name in mine)

    return unmatched(a, b) and unmatched(b, a)


def _labels_differ(a: frozenset[str], b: frozenset[str]) -> bool:
    return bool(a - b) and bool(b - a)


def one_thing(a: str, b: str) -> bool:
    """Whether two identifiers may name the same thing: orders.amount and amount."""
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")


def _agree(a: Number, b: Number) -> bool:
    return a[0] == b[0] and (a[1] == b[1] or not a[1] or not b[1])


def _taken(pattern: re.Pattern[str], text: str) -> tuple[list[str], str]:
    """The matches of a pattern, and the text without them."""
    return [match[0] for match in pattern.finditer(text)], pattern.sub(" ", text)


# --- identifiers -----------------------------------------------------------------------------------------

NUMBERED = (
    r"(?<![\w-])(?!(?:top|mid|pre|post|under|over|non|sub|last|first|max|min|utc|gmt|covid)-)"
    r"[A-Za-z][A-Za-z]*-(?:[A-Za-z]{1,8}-){0,2}\d{1,6}[A-Za-z]?(?![\w%-])"
)
"""A name that ends in a number: srv-01, HP-04; not top-10."""

_QUOTED = re.compile(
    r"`[^`]{1,80}`|\"[^\"]{1,80}\"|“[^”]{1,80}”|「[^」]{1,80}」|『[^』]{1,80}』|(?<!\w)'[^']{1,80}'(?!\w)"
)
_CODE = re.compile(
    r"(?<![\w~./-])(?:[A-Za-z]:)?[\w~.-]*/[\w./~-]*\w"  # a path
    r"|\b[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+"  # schema.table, file.csv
    r"|\b[A-Za-z0-9]*_\w*"  # snake_case
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"  # an address of a network
    rf"|{NUMBERED}"  # srv-01
    r"|\b[A-Z]{1,4}-?\d{1,6}(?![\w%])|\b[a-z]\d{1,3}(?![\w%])",  # V3, B6, AIR-12, p1
    re.ASCII,
)
_ACRONYM = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z&]{1,9}s?(?![A-Za-z0-9_])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_SQL = """
select from where group order by and or not null as on in is join left right inner limit having count sum avg
min max distinct desc asc case when then else end like between sql id ok
"""
_SQL_WORDS = frozenset(_SQL.split())


def _codes(text: str) -> tuple[list[str], str]:
    """Code words, and the text without them; Q3 is a date."""
    found = [word for match in _CODE.finditer(text) if not _DATE_LIKE.fullmatch(word := match[0])]
    return found, _CODE.sub(lambda match: match[0] if _DATE_LIKE.fullmatch(match[0]) else " ", text)


def _identifiers(quoted: list[str], codes: list[str], rest: str) -> Iterator[str]:
    yield from (text.strip("`\"'“”「」『』 ").casefold() for text in quoted)
    yield from (code.casefold() for code in codes)
    yield from (word for match in _ACRONYM.finditer(rest) if (word := match[0].casefold()) not in _SQL_WORDS)
    yield from (match[0].casefold() for match in _NAME.finditer(rest))


_LABELLED = """
line ward level press grade tier step item fact note record number room gate floor phase version ticket
order invoice case team group zone section chapter page slide port batch lot unit plant store shop bus
warehouse route figure question topic statement message customer option type class category priority rank
stage round machine truck desk bed bay dock building terminal platform sensor tank shift
"""
_LABEL = re.compile(
    rf"\b(?:{'|'.join(_LABELLED.split())}) (?:\d{{1,6}}[A-Za-z]?|[A-Z]|(?-i:[A-Z])-?\d{{1,4}})"
    r"(?![\w.,]*\w|%)"
    r"|(?:daily|weekly|monthly|quarterly|annual|yearly) (?:report|review|meeting|newsletter|digest|summary)\b"
    r"|[日周月季年](?:报|例会|会)(?![表销告名价到警喜酬议员计场社])"
    r"|第[\d一二三四五六七八九十百]{1,6}(?:条|号|项|个|期|组|批|版|步|页|章|课|楼|层|排)"
    r"|(?:仓库|车间|产线|生产线|班组|小组|分店|门店|会议室|教室|宿舍|病区|展厅|机房|项目|方案|阶段|附件|表格|"
    r"图表|柜台|站台|泵站|机组|分公司|服务器|通道|号线|工位|炉子?|水箱|冷库)"
    r"(?:[二三四五六七八九](?![个名条张件人天月年周成十百千万倍次位]|分之)|"
    r"一(?![个名条张件人天月年周共般直定样起些"
    r"旦律致切向半下边面次位度]|分之)|十[一二三四五六七八九]?(?![个名条张件人天月年周分万足]))"
    r"|(?:年级|[初高大][一二三四])[(（]?[\d一二三四五六七八九十]{1,3}[)）]?班"
    r"|(?:^|(?<=[,，。的级校厂院]))[\d一二三四五六七八九十]{1,3}[班队组科栋](?![人次天年月楼])"
    r"|[\d一二三四五六七八九十百]{1,6}号(?:线|楼|机|库|仓|门|店|站|车|桌|房|窗口|柜|厅|压机)",
    re.IGNORECASE,
)


# --- dates -----------------------------------------------------------------------------------------------

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DATE_LIKE = re.compile(r"[qhQH][1-4]|(?:fy|FY)\d{2,4}|\d{1,4}[/.-]\d{1,2}(?:[/.-]\d{1,4})?")
_DATE = re.compile(
    r"(?P<ymd>\b(?:19|20)\d{2}[-/.]\d{1,2}[-/.]\d{1,2}\b)"
    rf"|(?P<md>\b(?P<mdm>{'|'.join(_MONTHS)}) (?P<mdd>\d{{1,2}})(?:st|nd|rd|th)?\b(?![,.]?\d)"
    rf"|\b(?P<dmd>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<dmm>{'|'.join(_MONTHS)})\b"
    r"|(?P<mdzh>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九]) ?月 ?"
    r"(?P<ddzh>[0-3]?\d|[一二三四五六七八九十]{1,3}) ?[日号])"
    r"|(?P<monthday>每个?月的? ?(?P<mday>[0-3]?\d|[一二三四五六七八九十]{1,3}) ?[日号])"
    r"|(?P<year>(?<![\d.,])(?:19|20)\d{2})(?![\d.,]*\d|%)(?! ?(?:minutes?|mins?|miles?|usd|dollars?|rows?|元|"
    r"万|分钟|公里|件|人|次|行|条))年?"
    r"|\bFY ?(?P<fy>(?:19|20)\d{2})\b"
    r"|(?P<quarter>\b[Qq](?P<q>[1-4])\b|第?(?P<qzh>[一二三四1-4])季度?|"
    r"\b(?P<qen>first|second|third|fourth) (?:fiscal )?quarter\b)"
    rf"|(?P<month>\b(?:{'|'.join(_MONTHS[:4] + _MONTHS[5:])}|(?<=[a-z] )May)\b"
    r"|(?<!\d)(?P<mzh>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月(?!份?内))"
    rf"|(?P<day>\b(?:{'|'.join(_DAYS)})s?\b|(?:周|星期|礼拜)(?P<dzh>[一二三四五六日天1-6])(?![年月]))"
    r"|(?P<clock>\b\d{1,2}:\d{2}\b|(?<![\d.])(?P<hour>[012]?\d|十[一二]?|[一二两三四五六七八九]) ?点"
    r"(?P<half>半)?(?!\d|多|击|评|赞|名|五)|\b(?P<oclock>1[0-2]|\d) ?(?:[ap]\.?m\b\.?|o'clock))",
    re.IGNORECASE,
)
_ORDER = {**{c: n for n, c in enumerate("一二三四五六七八九十", 1)}, "十一": 11, "十二": 12, "日": 7, "天": 7}
_QUARTERS = ("first", "second", "third", "fourth")


def _dates(text: str) -> tuple[list[str], str]:
    return [_date(match) for match in _DATE.finditer(text)], _DATE.sub(" ", text)


def _date(match: re.Match[str]) -> str:
    if match["ymd"]:
        return "-".join(part.zfill(2) for part in re.split(r"[-/.]", match["ymd"]))
    if match["md"]:
        return _month_day(match)
    if match["monthday"]:
        return f"monthly {_nth_day(match['mday'])}"
    if year := match["year"] or match["fy"]:
        return year
    if match["quarter"]:
        return f"q{_nth(match['q'] or match['qzh'] or '', match['qen'], _QUARTERS)}"
    if match["month"]:
        return f"month {_nth(match['mzh'] or '', match['month'], _MONTHS)}"
    if match["day"]:
        return f"day {_nth(match['dzh'] or '', match['day'].rstrip('sS') if not match['dzh'] else '', _DAYS)}"
    return _clock(match)


def _month_day(match: re.Match[str]) -> str:
    if match["mdzh"]:
        return f"{_nth(match['mdzh'], None, _MONTHS)}-{_nth_day(match['ddzh'])}"
    month, day = (match["mdm"], match["mdd"]) if match["mdm"] else (match["dmm"], match["dmd"])
    return f"{_nth('', month, _MONTHS)}-{int(day)}"


def _nth_day(day: str) -> int:
    return int(day) if day.isdigit() else int(_of_chinese(day))


_MORNING = re.compile(r"(?<![\d:])(?:0\d|1[01]):\d{2}\b")
_AFTERNOON = re.compile(r"(?<![\d:])(?:1[3-9]|2[0-3]):\d{2}\b")


def _halves(text: str) -> Iterator[str]:
    """The halves of the day of all unambiguous times: 09:30 and 14:00, not 9:30."""
    if _MORNING.search(text):
        yield "am"
    if _AFTERNOON.search(text):
        yield "pm"


def _clock(match: re.Match[str]) -> str:
    """A time of day by the twelve-hour clock: 五点 may be 17:00."""
    if match["oclock"]:
        return f"{int(match['oclock']) % 12:02}:00"
    if hour := match["hour"]:
        return f"{_nth_day(hour.replace('两', '二')) % 12:02}:{'30' if match['half'] else '00'}"
    hour, _, minute = match["clock"].partition(":")
    return f"{int(hour) % 12:02}:{minute}"


def _nth(chinese: str, english: str | None, names: "tuple[str, ...] | list[str]") -> int:
    if chinese:
        return int(chinese) if chinese.isdigit() else _ORDER[chinese]
    return names.index((english or "").casefold()) + 1


# --- numbers ---------------------------------------------------------------------------------------------

_UNITS: dict[str, tuple[str, Fraction]] = {
    **dict.fromkeys(("second", "sec", "秒", "秒钟"), ("min", Fraction(1, 60))),
    **dict.fromkeys(("minute", "min", "分钟"), ("min", Fraction(1))),
    **dict.fromkeys(("hour", "hr", "小时", "个小时"), ("min", Fraction(60))),
    **dict.fromkeys(("day", "天", "日"), ("day", Fraction(1))),
    **dict.fromkeys(("week", "周", "星期"), ("week", Fraction(1))),
    **dict.fromkeys(("month", "个月"), ("month", Fraction(1))),
    **dict.fromkeys(("year", "年"), ("year", Fraction(1))),
    **dict.fromkeys(("mile", "英里"), ("mile", Fraction(1))),
    **dict.fromkeys(("km", "kilometer", "kilometre", "公里", "千米"), ("km", Fraction(1))),
    **dict.fromkeys(("元", "块", "块钱", "yuan", "rmb", "cny"), ("yuan", Fraction(1))),
    **dict.fromkeys(("usd", "dollar", "美元"), ("usd", Fraction(1))),
    **dict.fromkeys(("eur", "euro", "欧元"), ("eur", Fraction(1))),
    **dict.fromkeys(("%", "percent", "pct"), ("%", Fraction(1))),
    **dict.fromkeys(("位小数", "decimal"), ("decimals", Fraction(1))),
    **dict.fromkeys(("人", "名", "people", "person"), ("people", Fraction(1))),
    **dict.fromkeys(("件",), ("piece", Fraction(1))),
    **dict.fromkeys(("次", "回", "times"), ("times", Fraction(1))),
    **dict.fromkeys(("班", "架次", "flight"), ("flight", Fraction(1))),
    **dict.fromkeys(("kg", "kilo", "kilogram", "公斤", "千克"), ("kg", Fraction(1))),
    **dict.fromkeys(("gram", "克"), ("kg", Fraction(1, 1000))),
    **dict.fromkeys(("ton", "tonne", "吨"), ("kg", Fraction(1000))),
    **dict.fromkeys(("个钟头", "钟头"), ("min", Fraction(60))),
    **dict.fromkeys(("刻钟",), ("min", Fraction(15))),
}
_COUNTED = ("people", "piece", "flight")  # counted things, not measures
UNIT_TERMS: Final = frozenset(
    term for unit, (name, _) in _UNITS.items() if name not in _COUNTED for term in (unit, *terms(unit))
)
"""The unit words of measures, also as compared terms."""
_SCALES = {
    **dict.fromkeys(("万",), 10**4),
    **dict.fromkeys(("亿",), 10**8),
    **dict.fromkeys(("thousand", "k"), 10**3),
    **dict.fromkeys(("million",), 10**6),
    **dict.fromkeys(("billion",), 10**9),
}
_LATIN_UNITS = "|".join(sorted((u for u in _UNITS if u.isascii() and u.isalpha()), key=len, reverse=True))
_CHINESE_UNITS = "|".join(sorted((u for u in _UNITS if not u.isascii()), key=len, reverse=True))
_UNIT = rf"(?P<unit>%|(?:{_LATIN_UNITS})s?\b|{_CHINESE_UNITS})"
_SCALE = r"(?P<scale>万|亿|(?:thousand|million|billion|k)\b)"
_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_EN_DIGITS = {word: number for number, word in enumerate(_SMALL.split())}
_EN_DIGITS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_PARTS = {"third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_EN_WORD = "(?:" + "|".join(sorted(_EN_DIGITS, key=len, reverse=True)) + "|hundred)"
_ZH_DIGITS = {**{c: n for n, c in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2}
_ZH_POWERS = {"十": 10, "百": 100, "千": 1000}
_NUMBER = re.compile(
    r"(?P<three>\bthree quarters of an hour\b|三刻钟)"
    r"|(?P<quarter>\b(?:a )?quarter of an hour\b|一刻钟|(?<!\d)刻钟)"
    rf"|\b(?P<parts>a|one|two|three|four) (?P<of>thirds?|quarters?|fifths?|tenths?)\b"
    r"|(?P<cheng>[一二三四五六七八九])成(?P<chenghalf>半)?(?![立功为本绩长果员都分])"
    r"|(?P<short>[二两三四五六七八九])(?P<power>万|千|百)(?P<tail>[一二三四五六七八九])(?![十百千万点零])"
    r"|\b(?P<often>once|twice)\b(?= (?:a|an|per|every|each)\b)"
    r"|(?P<half>\bhalf an hour\b|半个?小时|\bhalf[- ]hour\b)"
    r"|百分之(?P<percent>\d+(?:\.\d+)?|[零一二两三四五六七八九十百点]{1,8})"
    rf"|(?P<sign>(?<![A-Za-z0-9_%)])[-−](?=\d))?(?P<digits>(?<![\w.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|"
    rf"(?<![A-Za-z_])\d{{1,30}}(?:\.\d{{1,"
    rf"20}})?)[ -]?{_SCALE}?[ -]?{_UNIT}?"
    rf"|(?P<zh>[零〇一二两三四五六七八九十百千万亿]{{2,20}}|"
    rf"[一二两三四五六七八九十半](?=个?(?:{_CHINESE_UNITS})))(?P<zhunit>{_CHINESE_UNITS})?"
    rf"|\b(?P<en>{_EN_WORD}(?:[ -](?:and )?{_EN_WORD}){{0,6}})\b[ -]?(?:(?P<enscale>thousand|million|"
    rf"billion)\b)?[ -]?(?P<enunit>(?:{_LATIN_UNITS})s?\b|places\b)?",
    re.IGNORECASE,
)
_NOT_NUMBERS = re.compile(r"千万(?=别|不|要)|万一|一一|三三两两|七七八八|千千万万|一千零一夜")


def _numbers(text: str) -> tuple[list[Number], str]:
    text = _NOT_NUMBERS.sub(" ", text)
    found = [number for match in _NUMBER.finditer(text) if (number := _number(match))]
    return found, _NUMBER.sub(lambda match: " " if match["digits"] else match[0], text)


def _number(match: re.Match[str]) -> Number | None:
    if match["three"]:
        return _scaled(Fraction(45), "minute")
    if match["quarter"]:
        return _scaled(Fraction(15), "minute")
    if match["parts"]:
        part = Fraction(1, _PARTS[match["of"].casefold().rstrip("s")])
        return _scaled(100 * part * _EN_DIGITS.get(match["parts"].casefold(), 1), "%")
    if match["cheng"]:
        return _scaled(Fraction(10 * _ZH_DIGITS[match["cheng"]] + (5 if match["chenghalf"] else 0)), "%")
    if match["short"]:  # 四万二 is 42,000
        power = {**_ZH_POWERS, "万": 10**4}[match["power"]]
        return _scaled(
            Fraction(_ZH_DIGITS[match["short"]] * power + _ZH_DIGITS[match["tail"]] * power // 10), None
        )
    if match["often"]:
        return _scaled(Fraction(1 if match["often"].casefold() == "once" else 2), "times")
    if match["half"]:
        return _scaled(Fraction(30), "minute")
    if percent := match["percent"]:
        return _scaled(_of_digits(percent) if percent[0].isdigit() else _of_chinese(percent), "%")
    if digits := match["digits"]:
        sign = -1 if match["sign"] else 1
        return _scaled(
            sign * _of_digits(digits) * _SCALES.get((match["scale"] or "").casefold(), 1), match["unit"]
        )
    if chinese := match["zh"]:
        return _scaled(Fraction(1, 2) if chinese == "半" else _of_chinese(chinese), match["zhunit"])
    words, unit = match["en"], match["enunit"]
    if (
        " " not in words
        and "-" not in words
        and not unit
        and not match["enscale"]
        and words.casefold() == "one"
    ):
        return None  # "one of them" counts nothing
    return _scaled(_of_words(words) * _SCALES.get((match["enscale"] or "").casefold(), 1), unit)


def _scaled(value: Fraction, unit: str | None) -> Number:
    word = (unit or "").casefold()
    name, factor = _UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or ("", Fraction(1))
    return str(value * factor), name


def _of_digits(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))


def _of_chinese(text: str) -> Fraction:
    """十五 → 15, 三千零五十万 → 30500000, 二〇一三 → 2013."""
    whole, _, decimals = text.partition("点")
    if not set(whole) & {"十", "百", "千", "万", "亿"}:
        digits = "".join(str(_ZH_DIGITS.get(c, 0)) for c in whole) or "0"
        return Fraction(f"{digits}.{''.join(str(_ZH_DIGITS.get(c, 0)) for c in decimals) or 0}")
    total = section = digit = 0
    for c in whole:
        if c in _ZH_POWERS:
            section, digit = section + (digit or 1) * _ZH_POWERS[c], 0
        elif c in ("万", "亿"):
            total, section, digit = (total + section + digit or 1) * _SCALES[c], 0, 0
        else:
            digit = _ZH_DIGITS.get(c, 0)
    return Fraction(total + section + digit)


def _of_words(text: str) -> Fraction:
    """Fifteen hundred → 1500, twenty-five → 25."""
    total = 0
    for word in re.split(r"[ -]", text.casefold()):
        if word == "hundred":
            total = (total or 1) * 100
        else:
            total += _EN_DIGITS.get(word, 0)
    return Fraction(total)


# --- direction, negation, opposites ----------------------------------------------------------------------

_LESS = (
    r"\b(?:less|fewer|lower|shorter|earlier|smaller|cheaper) than\b|\b(?:under|below|at most|up to|within|"
    r"no more than|not more than|no later than|no longer than|drops? below|falls? below)\b|<=?|≤|"
    r"不超过|不高于|不大于|不多于|不晚于|不满|不到|不足|未满|未超过|低于|小于|少于|早于|以下|以内|之内|至多|"
    r"最多"
)
_MORE = (
    r"\b(?:more|greater|higher|longer|later|larger|bigger) than\b|\b(?:above|at least|exceed(?:s|ed|ing)?|"
    r"no less than|not less than|no fewer than|or more|rises? above|beyond|over(?= ?(?:\d|[a-z]+ty\b|"
    r"a quarter)))\b|>=?|≥|不低于|不少于|不小于|不早于|超过|大于|高于|多于|晚于|以上|至少|最少|满(?= ?\d)|"
    r"比(?=.{1,12}还[多大高重沉长久晚])"
)
_DIRECTION = re.compile(rf"(?P<less>{_LESS})|(?P<more>{_MORE})", re.IGNORECASE)

_CONTRAST = re.compile(
    r",? ?\b(?:rather than|instead of)\b[^,;。.]*|, ?(?:not|never)\b[^,;。.]*|[,，]?(?:而不是|而非)[^,;。.]*"
    r"|(?:[,，]|[用是][^,，;。.]{1,12}?)(?:不是|不再用|不用)[^,;。.]*"
    r"|\bnot only\b|\bnot just\b",
    re.IGNORECASE,
)
"""The rejected part of a contrast: "minutes, not hours" asserts minutes."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|exclud\w+|except|omit\w*|ignor\w+|stop|avoid|drop(?! below)|"
    r"leave out|left out|removed?|cannot)\b|n't\b"
    r"|[不没勿](?!同|过(?![敏期滤热分夜节户剩载])|仅|但|管|论|久|断|错|只|得不|限于|一定)|"
    r"(?<!分)(?<!特)(?<!级)(?<!类)(?<!区)(?<!性)(?<!识)别(?!名|的|人|称)"
    r"|无(?!论|锡|线|关)|非(?!常|洲|得)|未(?!来)|除外|剔除|排除|扣除|去掉|取消(?=了)",
    re.IGNORECASE,
)
_NOT_NEGATIONS = re.compile(r"差不多|对不起|不得不|\bno\. ?\d|除非|南非", re.IGNORECASE)

_PERIODS = (
    ("day", "day", "daily", "天日"),
    ("week", "week", "weekly", "周|星期|礼拜"),
    ("month", "month", "monthly", "月"),
    ("quarter", "quarter", "quarterly", "季(?:度)?"),
    ("year", "year", "yearly|annual(?:ly)?", "年"),
)


def _every(english: str, adverb: str, chinese: str) -> tuple[str, str]:
    """The patterns of "every other week", and of "every week"."""
    chinese = f"[{chinese}]" if chinese == "天日" else f"(?:{chinese})"
    other = (
        rf"\bevery (?:other|second|2|two) {english}s?\b|\bbi-?(?:{adverb})\b"
        rf"|[每间]?隔[一1]?个?{chinese}(?!后)|每[两2二双]个?{chinese}"
    )
    return (
        other,
        rf"(?<!\bbi-)\b(?:(?:per|a|each|every) {english}|(?:{adverb}))\b|每个?{chinese}|"
        rf"{chinese}报(?![表销告名价到警喜酬])",
    )


_EVERY = [(name, *_every(english, adverb, chinese)) for name, english, adverb, chinese in _PERIODS]
_RATES = [
    *((f"2 {name}", re.compile(other, re.IGNORECASE)) for name, other, _ in _EVERY),
    ("2 week", re.compile(r"\bfortnight(?:ly)?\b", re.IGNORECASE)),
    *((name, re.compile(each, re.IGNORECASE)) for name, _, each in _EVERY),
    ("month", re.compile("月均|月租")),
    ("year", re.compile("年均")),
]
_LIMITS = (
    ("only", re.compile(r"\b(?:only(?! (?:if|when|after|because))|solely|exclusively|(?:no ?body|no one|"
     r"none) "
                        r"(?:but|except))\b|只有|唯有|仅(?!仅)|只(?=[能可许限对让准由在有])", re.IGNORECASE)),
    ("except", re.compile(r"\b(?:except(?:ing)?|apart from|other than|with the exception of|unless|"
                          r"save for)\b|除了|除非|除[^,，。;；]{1,12}(?:外|之外|以外)", re.IGNORECASE)),
)  # fmt: skip


def _directions(text: str) -> tuple[set[str], str]:
    found = {match.lastgroup or "" for match in _DIRECTION.finditer(text)}
    return found, _DIRECTION.sub(" ", text)


def _is_negative(text: str) -> bool:
    return _NEGATION.search(_NOT_NEGATIONS.sub(" ", _CONTRAST.sub(" ", text))) is not None
