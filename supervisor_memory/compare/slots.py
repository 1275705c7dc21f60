"""Tell alike texts apart by their slots: numbers, dates, negation, direction, opposites, identifiers.

Similar wording cannot decide it: "over 30 minutes" and "under 30 minutes" are nearer to each other than to
any paraphrase. A slot differs if each text has a value there that the other lacks; a text that merely says
more does not differ. Two exceptions: dates and negation have to agree.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.language.terms import CJK, STOP_WORDS, terms

_LEXICON = lexicon("slots")
_MORNING_ZH = _LEXICON.words("morning_zh")
_NOON = 12
_SPACED_FIGURE = re.compile(rf"(?<=[{CJK}]) (?=\d)|(?<=\d) (?=[{CJK}])")  # 第 23 页


def plain(text: str) -> str:
    """The text in normal form (NFKC, straight apostrophes, single spaces) and its figures in one spelling.

    Times with a known half of the day become 21:00, negatives -5, fractions 0.5.
    """
    text = _LEXICON["fraction"].sub(_decimal, text)
    text = " ".join(unicodedata.normalize("NFKC", text).replace("’", "'").split())
    text = _SPACED_FIGURE.sub("", text)
    text = _LEXICON["below"].sub(r"-\1", _LEXICON["minus"].sub(_signed, _LEXICON["half"].sub("0.5 ", text)))
    return _LEXICON["clock"].sub(_of_day, text)


def _decimal(match: re.Match[str]) -> str:
    value = int(match[1] or 0) + unicodedata.numeric(match[2])
    return f"{value:.4f}".rstrip("0")


def _signed(match: re.Match[str]) -> str:
    if not (words := match["zh"]):
        return "-"
    return f"-{_of_chinese(words)}"


def _of_day(match: re.Match[str]) -> str:
    if match["half"]:
        hour = int(match["hour"]) % _NOON + (_NOON if match["half"].casefold() == "p" else 0)
        return f"{hour:02}:{match['minute'] or '00'}"
    hour = _number_of(match["hourzh"])
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


class Slots:
    """The details of an English or Chinese text by which alike texts differ, each read at its first use.

    Numbers, as digits or words, carry a normalised unit (times up to hours in minutes, 万 multiplied in).
    `is_negative`: the text denies or excludes. `directions`: "more" and "less". `sides`: one of two
    opposites ("gross"). `identifiers`: code words, paths, quotations, acronyms and names. `labels`: things
    with a number or letter ("line 2"). `rates`: how often or for how long ("month"). `halves`: the halves of
    the day of its times ("am"). `limits`: "only" and "except". `measures`: what its numbers are of, as far as
    that is told: "time", "money", "things".
    """

    def __init__(self, text: str) -> None:
        self._quoted, rest = _taken(_LEXICON["quoted"], plain(text[:MAX_LENGTH]))
        self._labels, rest = _taken(_LEXICON["label"], rest)
        self._codes, self._dated = _codes(rest)

    @cached_property
    def _parted(self) -> tuple[list[str], str]:
        return _read(_LEXICON["date"], self._dated, _date)

    @property
    def _undated(self) -> str:
        return self._parted[1]

    @cached_property
    def _measured(self) -> tuple[list[tuple[Number, str]], str]:
        return _numbers(self._undated)

    @cached_property
    def numbers(self) -> frozenset[Number]:
        return _set(number for number, _ in self._measured[0])

    @property
    def measures(self) -> frozenset[str]:
        return _set(measure for _, measure in self._measured[0] if measure)

    @cached_property
    def dates(self) -> frozenset[str]:
        return _set(self._parted[0])

    @cached_property
    def is_negative(self) -> bool:
        return _is_negative(_LEXICON["direction"].sub(" ", self._undated))

    @cached_property
    def directions(self) -> frozenset[str]:
        return _set(match.lastgroup or "" for match in _LEXICON["direction"].finditer(self._undated))

    @cached_property
    def sides(self) -> frozenset[str]:
        return _set(_sides(self._undated))

    @cached_property
    def identifiers(self) -> frozenset[str]:
        return _set(_identifiers(self._quoted, self._codes, self._measured[1]))

    @cached_property
    def labels(self) -> frozenset[str]:
        return _set(" ".join(label.casefold().split()) for label in self._labels)

    @cached_property
    def rates(self) -> frozenset[str]:
        return _set(name for name, pattern in _RATES if pattern.search(self._dated))

    @cached_property
    def halves(self) -> frozenset[str]:
        return _set(_halves(self._dated))

    @cached_property
    def limits(self) -> frozenset[str]:
        return _set(name for name, pattern in _LIMITS if pattern.search(self._dated))

    @property
    def years(self) -> frozenset[str]:
        """The named years, also those of full dates."""
        return frozenset(date[:4] for date in self.dates if date[:4].isdigit())

    def is_opposite(self, other: "Slots") -> bool:
        """Whether two texts name opposite sides."""
        return any(
            OPPOSITE[side] not in other.sides and self._is_on(OPPOSITE[side]) and not self._is_on(side)
            for side in other.sides
        )

    def _is_on(self, side: str) -> bool:
        return _SIDES[side].search(self._undated) is not None


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
    one, other = Slots(a), Slots(b)
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


def differ(some: Set[str], others: Set[str]) -> bool:
    """Whether both sides have elements, and none in common."""
    return bool(some and others and not some & others)


def dates_differ(one: Slots, other: Slots) -> bool:
    """Whether each names a date or a time that the other does not; 9 am is not 9 pm."""
    halves = one.halves and other.halves and not one.halves & other.halves
    return bool((one.dates - other.dates and other.dates - one.dates) or halves)


def numbers_differ(a: frozenset[Number], b: frozenset[Number]) -> bool:
    def unmatched(mine: frozenset[Number], theirs: frozenset[Number]) -> bool:
        return any(not any(_agree(number, other) for other in theirs) for number in mine)

    return unmatched(a, b) and unmatched(b, a)


def gives_another_figure(old: Slots, new: Slots) -> bool:
    """Whether the later of two texts gives a number, date or time another value of the same kind.

    A number of things gives no duration a new value, and a time of day no weekday.
    """
    if old.halves and new.halves and not old.halves & new.halves:
        return True
    dates = old.dates - new.dates, new.dates - old.dates
    mine, yours = ({_kind_of(date) for date in some} for some in dates)
    if mine & yours:
        return True
    ours, theirs = (_measures_apart(one, from_=other) for one, other in ((old, new), (new, old)))
    return any(a == b or not (a and b) for a in ours for b in theirs)


def _measures_apart(one: Slots, *, from_: Slots) -> set[str]:
    """The units of the numbers that the other text lacks; "" for a number without a known unit."""
    return {of for number, of in one._measured[0] if not any(_agree(number, each) for each in from_.numbers)}


def _kind_of(date: str) -> str:
    if ":" in date:
        return "time"
    return "weekday" if date.startswith("day ") else "date"


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
    return _read(pattern, text, lambda match: match[0])


def _read(
    pattern: re.Pattern[str],
    text: str,
    read: Callable[[re.Match[str]], T | None],
    *,
    stays: Callable[[re.Match[str]], bool] = lambda match: False,
) -> tuple[list[T], str]:
    """The values of the matches of a pattern, and the text without them, in one pass.

    Args:
        read: What a match says; None: nothing.
        stays: Whether a match stays in the text all the same.
    """
    found: list[T] = []

    def take(match: re.Match[str]) -> str:
        if (said := read(match)) is not None:
            found.append(said)
        return match[0] if stays(match) else " "

    return found, pattern.sub(take, text)


# --- identifiers -----------------------------------------------------------------------------------------


_NAME = _LEXICON.pattern("name")
_SQL_WORDS = _LEXICON.words("sql")


def _codes(text: str) -> tuple[list[str], str]:
    """Code words, and the text without them; Q3 is a date."""

    def is_date(match: re.Match[str]) -> bool:
        return _LEXICON["date_like"].fullmatch(match[0]) is not None

    return _read(_LEXICON["code"], text, lambda m: None if is_date(m) else m[0], stays=is_date)


def _identifiers(quoted: list[str], codes: list[str], rest: str) -> Iterator[str]:
    yield from (text.strip("`\"'“”「」『』 ").casefold() for text in quoted)
    yield from (code.casefold() for code in codes)
    yield from (
        word
        for match in _LEXICON["acronym"].finditer(rest)
        if (word := match[0].casefold()) not in _SQL_WORDS
    )
    yield from (match[0].casefold() for match in _NAME.finditer(rest))


# --- dates -----------------------------------------------------------------------------------------------

_MONTHS = _LEXICON.text("months").split("|")
_DAYS = _LEXICON.text("days").split("|")
_QUARTERS = _LEXICON.listed("quarters")
_SUNDAY_ZH = _LEXICON.text("sunday_zh")


def _date(match: re.Match[str]) -> str:
    if match["ymd"]:
        return "-".join(part.zfill(2) for part in re.split(r"[-/.]", match["ymd"]))
    if match["md"]:
        return _month_day(match)
    if match["monthday"]:
        return f"monthly {_number_of(match['mday'])}"
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
        return f"{_nth(match['mdzh'], None, _MONTHS)}-{_number_of(match['ddzh'])}"
    month, day = (match["mdm"], match["mdd"]) if match["mdm"] else (match["dmm"], match["dmd"])
    return f"{_nth('', month, _MONTHS)}-{int(day)}"


def _number_of(number: str) -> int:
    return int(number) if number.isdigit() else int(_of_chinese(number))


def _halves(text: str) -> Iterator[str]:
    """The halves of the day of all unambiguous times: 09:30 and 14:00, not 9:30."""
    if _LEXICON["morning"].search(text):
        yield "am"
    if _LEXICON["afternoon"].search(text):
        yield "pm"


def _clock(match: re.Match[str]) -> str:
    """A time of day by the twelve-hour clock: 五点 may be 17:00."""
    if match["oclock"]:
        return f"{int(match['oclock']) % 12:02}:00"
    if hour := match["hour"]:
        past = 30 if match["half"] else _number_of(match["past"] or "0")
        return f"{_number_of(hour) % 12:02}:{past:02}"
    hour, _, minute = match["clock"].partition(":")
    return f"{int(hour) % 12:02}:{minute}"


def _nth(chinese: str, english: str | None, names: Sequence[str]) -> int:
    if chinese:
        return len(_DAYS) if chinese in _SUNDAY_ZH else _number_of(chinese)
    return names.index((english or "").casefold()) + 1


# --- numbers ---------------------------------------------------------------------------------------------

_UNITS = {
    word: (name, Fraction(number or 1))
    for word, told in _LEXICON.meanings("units").items()
    for number, _, name in (told.rpartition(" "),)
}
"""Each unit's measure, and its size in the measure."""
_COUNTED = ("people", "piece", "flight")  # counted things, not measures
_MEASURES: Mapping[str, str] = (
    dict.fromkeys(("min", "day", "week", "month", "year", "times"), "time")
    | dict.fromkeys(("mile", "km"), "length")
    | dict.fromkeys(("yuan", "usd", "eur"), "money")
    | dict.fromkeys(_COUNTED, "things")
)
"""What a unit measures, where several measure it; how often is told by times, and by the time between."""
UNIT_TERMS: Final = frozenset(
    term for unit, (name, _) in _UNITS.items() if name not in _COUNTED for term in (unit, *terms(unit))
)
"""The unit words of measures, also as compared terms."""
_SCALES = _LEXICON.table("scales")
_NUMERALS = lexicon("common")
_EN_DIGITS = {word: number for number, word in enumerate(_NUMERALS.listed("small_numbers"))}
_EN_DIGITS |= {word: 10 * number for number, word in enumerate(_NUMERALS.listed("tens"), 2)}
_PARTS = _LEXICON.table("parts")
_ZH_DIGITS = {
    numeral: number for number, same in enumerate(_NUMERALS.listed("digits_zh")) for numeral in same
}
_ZH_POWERS = _LEXICON.table("powers_zh")
_LEXICON.give(
    latin_units=alternatives(unit for unit in _UNITS if unit.isascii() and unit.isalpha()),
    chinese_units=alternatives(unit for unit in _UNITS if not unit.isascii()),
)


def _numbers(text: str) -> tuple[list[tuple[Number, str]], str]:
    text = _LEXICON["not_numbers"].sub(" ", text)
    return _read(_LEXICON["number"], text, _figure, stays=lambda match: match["digits"] is None)


def _figure(match: re.Match[str]) -> tuple[Number, str] | None:
    number = _number(match)
    if number is None:
        return None
    if unit := number[1]:
        return number, _MEASURES.get(unit, unit)
    things = _LEXICON["counted"].match(match.string, match.end())
    return number, "things" if things and things[0].casefold() not in STOP_WORDS else ""


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


_RATES = (
    *(
        (f"{often}{name}", _LEXICON.compiled(_LEXICON.text(key, **words), f"periods.{name}"))
        for key, often in (("every_other", "2 "), ("every", ""))
        for name, words in _LEXICON.table("periods").items()
    ),
    *_LEXICON.patterns("rates"),
)

_LIMITS = _LEXICON.patterns("limits")


_OPPOSITES = lexicon("sides")
_WAYS, _PARTED = _OPPOSITES.rows("ways"), _OPPOSITES.rows("parts")
_TEXTS = {side: text for row in (*_WAYS, *_PARTED) for side, text in row.items()}
_SIDES = {side: _OPPOSITES.compiled(text, side) for side, text in _TEXTS.items()}
_ANY_SIDE = _OPPOSITES.compiled("|".join(_TEXTS.values()), "sides")
OPPOSITE: Mapping[str, str] = {
    side: other for row in (*_WAYS, *_PARTED) for side, other in zip(row, reversed(row), strict=True)
}
WAYS = frozenset(side for row in _WAYS for side in row)
"""Sides that are ways to do one thing: the other one is a new value."""


def _sides(text: str) -> Iterable[str]:
    """The sides that a text names."""
    return (
        (name for name, pattern in _SIDES.items() if pattern.search(text)) if _ANY_SIDE.search(text) else ()
    )


def _is_negative(text: str) -> bool:
    return (
        _LEXICON["negation"].search(_LEXICON["not_negations"].sub(" ", _LEXICON["contrast"].sub(" ", text)))
        is not None
    )
