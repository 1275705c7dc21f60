"""The values of a call's arguments as texts: flattened, bounded, compared."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, Final

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import CJK

_LONGEST_ARGUMENT: Final = 8_000
_LONGEST_NAME: Final = 64
MOST_ARGUMENTS: Final = 40
_DEEPEST: Final = 4
WORDS: Final = lexicon("lessons")
WORD: Final = re.compile(rf"[{CJK}]+|[^\W{CJK}]++(?:[.\-][^\W{CJK}]++)*+")
_NAME: Final = re.compile(rf"[\w.\-]{{1,{_LONGEST_NAME}}}")
_PLACE: Final = re.compile(r"\[\d+\]")
"""The place of a value in a list."""
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+", re.ASCII)
_TOKENLIKE: Final = re.compile(r"[\w.\-]{1,40}", re.ASCII)
_NUMBER: Final = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?", re.ASCII)
_YEAR_MONTH, _MONTH_DAY = "年月", "月日"
_DATE: Final = re.compile(
    r"(?P<before>[A-Za-z_]{1,12}=)?"
    r"(?P<date>[A-Za-z]{3,9} \d{4}|\d{8}|"
    rf"\d{{1,4}}(?:[-/. {_YEAR_MONTH}]\d{{1,4}}){{1,2}}[{_MONTH_DAY}]?)"
    r"(?:T00:00(?::00)?Z?)?",
    re.ASCII,
)
MASK: Final = re.compile(
    r"(?i:(?<![a-z])(?:[a-z_]{1,12}=)?yyyy(?:[-/.]?(?:mm|dd)){1,2}(?:t?hh:mm(?::ss)?)?)(?![a-z])"
)
"""How an error spells out the form of a date."""
QUOTED: Final = re.compile(r"""\A(['"`]).*\1\Z""", re.DOTALL)
_SPACES: Final = re.compile(r"\s+")


def passes_by(error: str) -> bool:
    """Whether a failure is temporary and says nothing of the call: a time-out, a lock, a service that is
    down."""
    return WORDS["passing"].search(error) is not None


def is_name(text: str) -> bool:
    """Whether a text can be the name of a tool or an argument: letters, digits, _ . and -, at most 64."""
    return _NAME.fullmatch(_PLACE.sub("", text)) is not None


def last_name(argument: str) -> str:
    """The last part of an argument's name, without its place in a list: of `a.to[0]` it is `to`."""
    return _PLACE.sub("", argument).rpartition(".")[2]


def stands_in(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", text) is not None


def is_literal(text: str) -> bool:
    """Whether a text is a value, a number, a date or a quotation, and no name or code."""
    return QUOTED.match(text) is not None or (
        any(c.isdigit() for c in text) and not re.search(r"[(_=]", text)
    )


def form_of(text: str) -> str:
    """The form of a value: runs of digits and letters as signs, with their lengths."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))


def squeezed(text: str | None) -> str | None:
    return None if text is None else _SPACES.sub(" ", text).strip()


def folded(text: str | None) -> str | None:
    return None if text is None else _SPACES.sub(" ", text).strip().casefold()


def as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else value[:_LONGEST_ARGUMENT]
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)[:_LONGEST_ARGUMENT]
    except (TypeError, ValueError, RecursionError):
        return None


def flattened(value: object, where: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of arguments by names, `a.b[0].c`, those in JSON texts too; of long texts the beginning."""
    if depth <= _DEEPEST and isinstance(inner := _unpacked(value), (Mapping, list, tuple)) and inner:
        named = isinstance(inner, Mapping)
        pairs = inner.items() if isinstance(inner, Mapping) else enumerate(inner)
        for name, each in islice(pairs, MOST_ARGUMENTS):
            part = f".{name}" if named and where else str(name) if named else f"[{name}]"
            yield from flattened(each, f"{where}{part}", depth + 1)
    elif isinstance(value, (bool, int, float)):
        yield where, value
    elif value is not None and (told := as_text(value)) is not None:
        yield where, told


def _unpacked(value: object) -> object:
    """The object or list in a JSON text; anything else unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and len(value) <= _LONGEST_ARGUMENT:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


STRUCTURE: Final = WORDS.words("structure")
"""Words of a read-only statement's structure, and types."""


def is_same(one: str, other: str, said: str) -> bool:
    """Whether two texts are one value: a date, a number, a word in other case or quotes, a unit."""
    mine, yours = (each.strip().strip("'\"`").strip() for each in (one, other))
    if _TOKENLIKE.fullmatch(mine) and mine.casefold() == yours.casefold():
        return True
    if _NUMBER.fullmatch(mine) and _NUMBER.fullmatch(yours):
        try:
            return Decimal(mine.replace(",", "")) == Decimal(yours.replace(",", ""))
        except InvalidOperation:
            return False
    dates = _date(mine, said), _date(yours, said)
    if dates[0] is not None and dates[0] == dates[1]:
        return True
    units = (set(each.split()) for each in WORDS.table("units").values())
    return any({mine.casefold(), yours.casefold()} <= each for each in units)


def _date(text: str, said: str) -> tuple[int, ...] | None:
    """The numbers of a date, whatever their order; None: it is none.

    A word with = before it counts where an error writes it so before a form.
    """
    found = _DATE.fullmatch(text)
    if found is None or (found["before"] and f"{found['before']}yyyy".casefold() not in said.casefold()):
        return None
    date = found["date"].casefold()
    if date.isdigit():
        date = f"{date[:4]}-{date[4:6]}-{date[6:]}"
    months = WORDS.listed("months")
    for number, month in enumerate(months, 1):
        date = re.sub(rf"\b(?:{month}|{month[:3]})\b", str(number), date)
    numbers = sorted(int(each) for each in re.findall(r"\d+", date))
    is_date = len(numbers) > 1 and 1900 <= numbers[-1] < 2200 and numbers[-2] <= 31  # noqa: PLR2004
    return tuple(numbers) if is_date and not re.search(r"[a-z]", date) else None
