"""Read a lesson from a failed call of a tool and the working one after. Rules alone, pure.

A lesson holds what was different between the two calls, and the essence of the error in fixed words. It is
taken without a person where each difference is of a kind that can say neither whom, nor where, nor what to do
(`doubts`); what the error bears out otherwise waits, and what no error speaks of is no lesson.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import CJK, STOP_WORDS, has_cjk, terms
from supervisor_memory.language.unseen import visible
from supervisor_memory.understand.lineage import tables_by_words
from supervisor_memory.understand.rejection import gives_orders
from supervisor_memory.understand.sql import OWN_WORDS, query_of, without_comments
from supervisor_memory.understand.statements import sentences

GUIDELINE: Final = "guideline"
"""The attribute of the record that holds the lessons of one tool; its subject is the tool's name."""
LESSONS: Final = "lessons"
"""The metadata key of a guideline with its lessons."""
CORRECTED: Final = "corrected"
"""The metadata key of a guideline with the lessons that a person's words took the place of: not told, and not
learned again."""
RATED_RUNS: Final = "rated"
"""The metadata key of a guideline with its user's last ratings: pairs of a run and whether it was good."""
TALLY: Final = "tally"
"""The metadata key of a user's record of how a team's guideline did for this user; its value is the owner."""
OWN_KEYS: Final = frozenset({LESSONS, CORRECTED, RATED_RUNS, TALLY})
"""What nobody writes into a guideline's metadata by hand."""
MOST_LESSONS: Final = 12
"""Lessons that are kept of a tool."""
MOST_TOKENS: Final = 60
"""Most tokens of a guideline."""
MOST_OF_IDENTITY: Final = 150
"""Most tokens of the record that says who an agent is."""

_LONGEST_ERROR: Final = 4_000
_LONGEST_ARGUMENT: Final = 8_000
_LONGEST_PART: Final = 120
"""Most characters of either side of a change; a guideline has no room for more."""
_LONGEST_NAME: Final = 64
_WHOLE: Final = 40
"""Characters up to which two values are told whole; of longer ones, and of SQL, what differs."""
_MOST_ARGUMENTS: Final = 40
_MOST_CHANGES: Final = 3
_MOST_TOKENS_COMPARED: Final = 1_500
_LEAST_ALIKE: Final = 0.4
"""The share of common words from which two values are a change."""
_MOST_SAID: Final = 2
"""Phrases of an error that are told."""
_DEEPEST: Final = 4
_GAP: Final = 2
"""Words between two differences that are told as one."""
_MOST_RUNS: Final = 10
_MOST_ASKED: Final = 24
"""Terms of tasks that are kept with a lesson."""
_PROSE: Final = 4
"""Words in a row, without a sign of code, that make a text prose."""

_WORDS: Final = lexicon("lessons")
_TOKEN: Final = re.compile(
    rf"""'(?:[^'\n]|'')*'|"[^"\n]*"|`[^`\n]*`|\d(?:[\d./:\-T]*\d)?(?![^\W{CJK}])|[{CJK}]+|"""
    rf"""[^\W{CJK}]++(?:\.[^\W{CJK}]++)*+|[^\w\s]"""
)
"""Quotations, numbers and dates as they are written, words, names with dots, signs."""
_WORD: Final = re.compile(rf"[{CJK}]+|[^\W{CJK}]++(?:[.\-][^\W{CJK}]++)*+")
_NAME: Final = re.compile(rf"[\w.\-]{{1,{_LONGEST_NAME}}}")
_PLACE: Final = re.compile(r"\[\d+\]")
"""The place of a value in a list."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+", re.ASCII)
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
_MASK: Final = re.compile(
    r"(?i:(?<![a-z])(?:[a-z_]{1,12}=)?yyyy(?:[-/.]?(?:mm|dd)){1,2}(?:t?hh:mm(?::ss)?)?)(?![a-z])"
)
"""How an error spells out the form of a date."""
_MIXED: Final = re.compile(r"(?=\w*[A-Za-z])(?=\w*[\u0370-\u052f])[^\W\d_]{4,}")
"""A word of two scripts that look alike."""
_QUOTED: Final = re.compile(r"""\A(['"`]).*\1\Z""", re.DOTALL)
_CODE: Final = re.compile(r"""[_=(){}\[\]<>*/\\|"'`$#@]|\d""")
_SPACES: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as it was heard: its arguments flat, by names with dots.

    `error` is what it failed with; None: it worked.
    """

    tool: str
    arguments: Mapping[str, Any]
    error: str | None = None

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any], error: str | None = None) -> "Call":
        """The call of a tool, bounded: of long values and errors their beginning."""
        flat = dict(islice(_flat(arguments), 2 * _MOST_ARGUMENTS))
        return cls(tool, flat, None if error is None else error[:_LONGEST_ERROR])


@dataclass(frozen=True, slots=True)
class Edit:
    """A difference of two calls. `before` None: added; `after` None: left out."""

    argument: str
    before: str | None
    after: str | None

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        """The same for edits that teach the same, in any case of letters: of values in another form, their
        forms."""
        both = (self.before, self.after)
        forms = [_form(each) for each in both if each is not None and _is_literal(each)]
        if len(set(forms)) == len(both):
            return self.argument, forms[0], forms[1]
        return self.argument, _folded(self.before), _folded(self.after)


@dataclass(frozen=True, slots=True)
class Lesson:
    """The lesson of a tool's failed call and the working one after.

    Args:
        error: The essence of what the tool said; "": nothing of it is told.
        runs: The runs in which it was learned, the latest last: the evidence.
        times: How often it was learned.
        held, failed: How often a call that did as it says worked, and failed.
        helped, hurt: How often a run in which it was learned or told was rated well, and badly.
        at: When it was learned or held last, in seconds since 1970.
        asked: Terms of the tasks in which it was learned, by which it is chosen for another; told to nobody.
        said: What a person says in place of edits, word for word; "": nobody has.
    """

    edits: tuple[Edit, ...]
    error: str = ""
    runs: tuple[str, ...] = ()
    times: int = 1
    held: int = 0
    failed: int = 0
    helped: int = 0
    hurt: int = 0
    at: float = 0.0
    asked: tuple[str, ...] = ()
    said: str = ""

    @property
    def key(self) -> tuple[tuple[str, str | None, str | None], ...]:
        if self.said:
            return (("", None, self.said),)
        return tuple(sorted((each.key for each in self.edits), key=repr))

    @property
    def is_refuted(self) -> bool:
        """Whether what it says failed, or went with bad results, more often than it held."""
        return self.failed > self.held or self.hurt > self.helped + self.held

    def to_dict(self) -> dict[str, Any]:
        """The lesson as it is kept in a record's metadata."""
        edits = [[each.argument, each.before, each.after] for each in self.edits]
        values = {name: getattr(self, name) for name in Lesson.__slots__}
        return {**values, "edits": edits, "runs": list(self.runs), "asked": list(self.asked)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Lesson | None":
        """The reverse of `to_dict`; None where it is none, as in a record that somebody made by hand."""
        try:
            edits = tuple(Edit(str(a), _text(b), _text(c)) for a, b, c in told["edits"])
            counts = {n: int(told.get(n, 0)) for n in ("times", "held", "failed", "helped", "hurt")}
            runs, asked = (tuple(map(str, told.get(name, ()))) for name in ("runs", "asked"))
            at = float(told.get("at", 0.0))
            said = str(told.get("said", ""))
            return cls(edits, str(told.get("error", "")), runs, at=at, asked=asked, said=said, **counts)
        except (KeyError, TypeError, ValueError):
            return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


# --- what was different


def learned(
    failed: Sequence[Call], worked: Call, *, run: str | None = None, at: float = 0.0, asked: str = ""
) -> Lesson | None:
    """The lesson of failed calls and a working call; None: they teach nothing.

    The first failed call is compared that the working one is a change of. Differences that no error bears out
    are left out; failures that pass by themselves teach nothing, nor does an error that gives orders.
    """
    lasting = [each for each in failed if each.error and not passes_by(each.error)]
    if any(_orders(each.error or "") for each in failed):
        return None
    said = "\n".join(each.error or "" for each in lasting)
    for call in lasting:
        edits = differences(call, worked, said=said)
        if edits:
            words = tuple(dict.fromkeys(terms(asked)))[:_MOST_ASKED]
            runs = () if run is None else (run,)
            return Lesson(edits, essence(call.error or "", edits), runs, at=at, asked=words)
    return None


def passes_by(error: str) -> bool:
    """Whether a failure says nothing of the call: a time-out, a lock, a service that is away."""
    return _WORDS["passing"].search(error) is not None


def is_name(text: str) -> bool:
    """Whether a text can be the name of a tool or an argument: letters, digits, _ . and -, at most 64."""
    return _NAME.fullmatch(_PLACE.sub("", text)) is not None


def _orders(error: str) -> bool:
    """Whether an error tells its reader what to do with others than this call, as no error does."""
    plain = unicodedata.normalize("NFKC", visible(error))
    orders = gives_orders([*islice(sentences(plain), 50), plain], by_others=True)
    return orders or _MIXED.search(plain) is not None


def differences(before: Call, after: Call, *, said: str = "") -> tuple[Edit, ...]:
    """What is different in the second of two calls, three edits at most; empty: nothing, or another call.

    Args:
        said: What the errors said.
    """
    found: list[Edit] = []
    for name in dict.fromkeys((*before.arguments, *after.arguments)):
        one, other = before.arguments.get(name), after.arguments.get(name)
        if one == other and type(one) is type(other):
            continue
        edits = _edits(name, *_both_shown(one, other))
        if edits is None:
            return ()
        found += edits
    borne_out = [each for each in found if _is_named(each, said) or _is_safe(each, before, after, said)]
    kept = list(dict.fromkeys(each for each in borne_out if _teaches(each)))
    others = sum(not _teaches(each) for each in borne_out)
    if others > len(kept) or len(kept) > _MOST_CHANGES or not all(is_name(each.argument) for each in kept):
        return ()
    return tuple(kept)


def _both_shown(one: object, other: object) -> tuple[str | None, str | None]:
    """Two values as texts; a text and a number of the same digits by their types."""
    shown = _shown(one), _shown(other)
    if shown[0] == shown[1] and shown[0] is not None:
        return json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
    return shown


def _edits(name: str, one: str | None, other: str | None) -> list[Edit] | None:
    """The edits from a value of an argument to another; None: they are two unlike values."""
    if one is None or other is None:
        edit = Edit(name, one, other)
        return [edit] if _fits(edit) else None
    if _is_prose(one) and _is_prose(other):
        return [Edit(name, one[:_LONGEST_PART], other[:_LONGEST_PART])]  # which teaches nothing
    is_sql = query_of(one) is not None and query_of(other) is not None
    if is_sql:
        one, other = without_comments(one), without_comments(other)
    mine, yours = _tokens(one), _tokens(other)
    if max(len(mine), len(yours)) > _MOST_TOKENS_COMPARED:
        return None
    old, new = ([token.casefold() for token, *_ in tokens] for tokens in (mine, yours))
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    is_short = not is_sql and max(len(one), len(other)) <= _WHOLE
    if is_short or matcher.ratio() < _LEAST_ALIKE:
        edit = Edit(name, one, other)
        return [edit] if _fits(edit) and not (_is_prose(one) or _is_prose(other)) else None
    edits = [
        Edit(name, _cut(one, mine[a:b]), _cut(other, yours[c:d]))
        for a, b, c, d in _spans(matcher, len(mine), len(yours))
    ]
    return edits if all(map(_fits, edits)) and len(edits) <= 2 * _MOST_CHANGES else None


def _spans(matcher: Any, mine: int, yours: int) -> Iterator[tuple[int, int, int, int]]:
    """Differing stretches, those with little between them as one; an insertion takes along a neighbour."""
    joined: list[list[int]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        if joined and a - joined[-1][1] <= _GAP and c - joined[-1][3] <= _GAP:
            joined[-1][1], joined[-1][3] = b, d
        else:
            joined.append([a, b, c, d])
    for a, b, c, d in joined:
        is_inside = (a == b or c == d) and a > 0 and b < mine and d < yours
        yield (a - 1, b, c - 1, d) if is_inside and c > 0 else (a, b, c, d)


def _cut(text: str, tokens: Sequence[tuple[str, int, int]]) -> str | None:
    """The stretch of a text with these tokens; None for none."""
    return _squeezed(text[tokens[0][1] : tokens[-1][2]]) if tokens else None


def _tokens(text: str) -> list[tuple[str, int, int]]:
    return [(found[0], *found.span()) for found in _TOKEN.finditer(text)]


def _fits(edit: Edit) -> bool:
    return all(each is None or len(each) <= _LONGEST_PART for each in (edit.before, edit.after))


def _is_named(edit: Edit, said: str) -> bool:
    """Whether the errors name what was changed."""
    text = said.casefold()
    argument = last_name(edit.argument)
    own = {word.casefold() for part in (edit.before, edit.after) for word in _WORD.findall(part or "")}
    words = {word for word in {*own - _STRUCTURE, argument.casefold()} if len(word) > 1}
    return any(_stands_in(text, word) for word in words - STOP_WORDS)


def last_name(argument: str) -> str:
    """The last part of an argument's name, without its place in a list: of `a.to[0]` it is `to`."""
    return _PLACE.sub("", argument).rpartition(".")[2]


def _stands_in(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", text) is not None


def _teaches(edit: Edit) -> bool:
    """Whether an edit may hold for another call: prose does not, nor do other words in quotes."""
    parts = [each for each in (edit.before, edit.after) if each is not None]
    if any(map(_is_prose, parts)):
        return False
    is_quoted = all(_QUOTED.match(each) for each in parts)
    return not (len(parts) > 1 and is_quoted and not _is_same(parts[0], parts[1], ""))


def _is_literal(text: str) -> bool:
    """Whether a text is a value, a number, a date or a quotation, and no name or code."""
    return _QUOTED.match(text) is not None or (
        any(c.isdigit() for c in text) and not re.search(r"[(_=]", text)
    )


def _is_prose(text: str) -> bool:
    """Whether a text is written for people: words in a row without a sign of code, and no SQL."""
    if query_of(text) is not None:
        return False
    plain = text.strip("'\"` ")
    if has_cjk(plain):
        return len(plain) > 3 * _PROSE and not _CODE.search(plain)
    words = re.findall(r"[^\W\d_]{2,}", plain)
    return len(words) >= _PROSE and not _CODE.search(plain)


def _form(text: str) -> str:
    """The form of a value: runs of digits and letters as signs, with their lengths."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))


def _squeezed(text: str | None) -> str | None:
    return None if text is None else _SPACES.sub(" ", text).strip()


def _folded(text: str | None) -> str | None:
    return None if text is None else _SPACES.sub(" ", text).strip().casefold()


def _shown(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else value[:_LONGEST_ARGUMENT]
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)[:_LONGEST_ARGUMENT]
    except (TypeError, ValueError, RecursionError):
        return None


def _flat(value: object, where: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of arguments by names, `a.b[0].c`, those in JSON texts too; of long texts the beginning."""
    if depth <= _DEEPEST and isinstance(inner := _unpacked(value), (Mapping, list, tuple)) and inner:
        named = isinstance(inner, Mapping)
        pairs = inner.items() if isinstance(inner, Mapping) else enumerate(inner)
        for name, each in islice(pairs, _MOST_ARGUMENTS):
            part = f".{name}" if named and where else str(name) if named else f"[{name}]"
            yield from _flat(each, f"{where}{part}", depth + 1)
    elif isinstance(value, (bool, int, float)):
        yield where, value
    elif value is not None and (told := _shown(value)) is not None:
        yield where, told


def _unpacked(value: object) -> object:
    """What a text holds that is JSON of an object or a list; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and len(value) <= _LONGEST_ARGUMENT:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# --- what the error said


def essence(error: str, edits: Sequence[Edit]) -> str:
    """The essence of an error: fixed phrases, numbers and forms of dates, and the name that was wrong.

    "": there is nothing of it that may be told.
    """
    found = [each[0].casefold() for each in islice(_WORDS["said"].finditer(error), 8)]
    said = list(dict.fromkeys(found))[:_MOST_SAID]
    said += [f"{_wording(error)['form']} {each[0]}" for each in islice(_MASK.finditer(error), 1)]
    wrong = next((each.before for each in edits if each.before and _IDENTIFIER.fullmatch(each.before)), None)
    for place, phrase in enumerate(said):
        if wrong and _stands_in(error.casefold(), wrong.casefold()) and _WORDS["of_names"].search(phrase):
            said[place] = f"{phrase}: {wrong}"
            break
    return ", ".join(said)


def _wording(text: str) -> Mapping[str, str]:
    told: Mapping[str, str] = _WORDS.table("wording")["zh" if has_cjk(text) else "en"]
    return told


# --- what is taken without a person

_STRUCTURE: Final = _WORDS.words("structure")
"""Words of a read-only statement's structure, and types."""


def doubts(lesson: Lesson, failed: Sequence[Call], worked: Call) -> tuple[str, ...]:
    """Why a person should decide on a lesson, as codes; empty: it may be told."""
    lasting = [each for each in failed if each.error and not passes_by(each.error)]
    said = "\n".join(each.error or "" for each in lasting)
    of = next((each for each in lasting if differences(each, worked, said=said) == lesson.edits), None)
    names = [worked.tool, *(each.argument for each in lesson.edits)]
    is_plain = all(name.isascii() and not _is_credential(name) for name in names)
    if of is not None and is_plain and all(_is_safe(each, of, worked, said) for each in lesson.edits):
        return ()
    return ("not-taken-by-itself",)


def _is_safe(edit: Edit, before: Call, after: Call, said: str) -> bool:
    """Whether an edit can say neither whom, nor where, nor what to do, and the errors bear it out."""
    one, other = (_shown(each.arguments.get(edit.argument)) for each in (before, after))
    if one and other and query_of(one) is not None and query_of(other) is not None:
        return _is_of_structure(edit, without_comments(one), without_comments(other), said)
    if edit.after is None:
        return False
    if edit.before is not None and _is_same(edit.before, edit.after, said):
        return _is_named(edit, said) or _MASK.search(said) is not None or bool(_WORDS["of_form"].search(said))
    return _is_quantity(edit, said) or _is_name_of_data(edit, said)


def _is_name_of_data(edit: Edit, said: str) -> bool:
    """Whether a table, a column or the like takes the place of one that an error names."""
    names = (edit.before or "", edit.after or "")
    if not all(map(_IDENTIFIER.fullmatch, names)) or any(map(_is_credential, names)):
        return False
    is_of_data = not _WORDS.words("of_data").isdisjoint(_parts(last_name(edit.argument))[-1:])
    return is_of_data and _stands_in(said.casefold(), names[0].casefold())


def _is_same(one: str, other: str, said: str) -> bool:
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
    units = (set(each.split()) for each in _WORDS.table("units").values())
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
    months = _WORDS.listed("months")
    for number, month in enumerate(months, 1):
        date = re.sub(rf"\b(?:{month}|{month[:3]})\b", str(number), date)
    numbers = sorted(int(each) for each in re.findall(r"\d+", date))
    is_date = len(numbers) > 1 and 1900 <= numbers[-1] < 2200 and numbers[-2] <= 31  # noqa: PLR2004
    return tuple(numbers) if is_date and not re.search(r"[a-z]", date) else None


def _is_of_structure(edit: Edit, one: str, other: str, said: str) -> bool:
    """Whether an edit of a statement that reads changes names an error calls unknown, or its structure."""
    if not all(map(_reads, (one, other))):
        return False
    parts = [each or "" for each in (edit.before, edit.after)]
    if all(map(_QUOTED.match, parts)) and _is_same(parts[0], parts[1], said):
        return _is_named(edit, said) or bool(_WORDS["of_form"].search(said))
    if any(re.search(r"'|[^\w\s(),.=<>*+\-/:\"`]", each) for each in parts):
        return False
    old, new = (_IDENTIFIER.findall(each.casefold()) for each in parts)
    wholes = [set(_IDENTIFIER.findall(each.casefold())) for each in (one, other)]
    lost = set(old) - wholes[1] - _STRUCTURE
    added = set(new) - wholes[0] - _STRUCTURE
    numbers = [set(re.findall(r"(?<![\w.])\d+", each)) for each in parts]
    is_limit = all(re.search(rf"(?i)\blimit\s+{each}\b", other) for each in numbers[1] - numbers[0])
    is_one = all(map(_IDENTIFIER.fullmatch, parts))
    if (not is_one and (lost | added) & OWN_WORDS) or len(added) > len(lost) or not is_limit:
        return False
    if any(not each.isascii() or _is_credential(each) for each in added):
        return False
    if any(
        re.search(rf"(?i)\b{re.escape(each)}\s*\(", other) for each in added - OWN_WORDS
    ):  # may do anything
        return False
    text = said.casefold()
    if added or lost:
        is_unknown = _WORDS["of_names"].search(said) and any(_stands_in(text, each) for each in lost)
        is_told = _WORDS["right"].search(said) and any(_stands_in(text, each) for each in added)
        return bool(is_unknown or is_told)
    of_it = {*old, *new} | ({"limit"} if numbers[0] != numbers[1] else set())
    return edit.after is not None and any(_stands_in(text, each) for each in of_it)


def _reads(statement: str) -> bool:
    plain = statement.strip().rstrip(";")
    return (
        re.match(r"(?i)select\b|with\b", plain) is not None
        and ";" not in plain
        and not tables_by_words(plain).written
        and re.search(r"(?i)\b(?:into|insert|update|delete|merge)\b", plain) is None
    )


def _is_quantity(edit: Edit, said: str) -> bool:
    """Whether an edit gives a limit or a size another number that is not zero, and an error speaks of it."""
    parts = set(_parts(last_name(edit.argument)))
    numbers = [each for each in (edit.before, edit.after) if each is not None]
    is_number = all(re.fullmatch(r"[1-9]\d{0,8}", each, re.ASCII) for each in numbers)
    return is_number and bool(parts) and parts <= _WORDS.words("quantities") and _is_named(edit, said)


def _is_credential(name: str) -> bool:
    parts = _parts(name)
    pairs = (one + other for one, other in pairwise(parts))
    return not _WORDS.words("credentials").isdisjoint((*parts, *pairs))


def _parts(name: str) -> list[str]:
    """The words of a name in one word: `maxRows`, `max_rows`."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold())


# --- the lessons of a tool


def with_lesson(known: Sequence[Lesson], new: Lesson) -> tuple[Lesson, ...]:
    """Add a lesson to a tool's lessons: a known lesson counts again, a contradicted lesson goes.

    Twelve are kept at most; of more, those go that were learned and held least.
    """
    again = next((each for each in known if each.key == new.key), None)
    if again is not None:
        runs = tuple(dict.fromkeys((*again.runs, *new.runs)))[-_MOST_RUNS:]
        fresh = replace(again, edits=new.edits, runs=runs, times=again.times + 1, at=new.at)
        words = tuple(dict.fromkeys((*new.asked, *again.asked)))[:_MOST_ASKED]
        fresh = replace(fresh, error=new.error or again.error, asked=words)
    else:
        fresh = new
    others = [each for each in known if each.key != new.key and not _is_contradicted(each, new)]
    kept = sorted(others, key=lambda each: (bool(each.said), each.held + each.times, each.at), reverse=True)
    return (fresh, *kept[: MOST_LESSONS - 1])


def beside(own: Sequence[Lesson], others: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """The lessons of others of the same tool that one's own neither say nor contradict."""
    keys = {each.key for each in own}
    return tuple(
        each
        for each in others
        if each.key not in keys and not any(_is_contradicted(each, mine) for mine in own)
    )


def _is_contradicted(old: Lesson, new: Lesson) -> bool:
    """Whether a new lesson takes back what an old one says, or says something else of the same.

    Values whose forms were corrected are compared by their forms, as in `Edit.key`.
    """
    for (argument, before, after), mine in zip((each.key for each in old.edits), old.edits, strict=True):
        for (other, from_, _), yours in zip((each.key for each in new.edits), new.edits, strict=True):
            if argument != other:
                continue
            if before is not None and before == from_:
                return True
            if after is not None and after == from_:
                return True
            if mine.after is not None and yours.before is not None and _holds(yours.before, mine.after):
                return True
    return False


def says_also(lesson: Lesson, other: Lesson) -> bool:
    """Whether a lesson contains every edit of another lesson."""
    return lesson.key == other.key or (
        bool(other.edits)
        and all(
            any(
                mine.argument == each.argument
                and (mine.before is None) == (each.before is None)
                and (mine.after is None) == (each.after is None)
                and _holds(mine.before or "", each.before or "") == (each.before is not None)
                and _holds(mine.after or "", each.after or "") == (each.after is not None)
                for mine in lesson.edits
            )
            for each in other.edits
        )
    )


def is_followed(lesson: Lesson, call: Call) -> bool:
    """Whether a call does as a lesson says."""
    return bool(lesson.edits) and all(_follows(each, call) for each in lesson.edits)


def _follows(edit: Edit, call: Call) -> bool:
    given = call.arguments.get(edit.argument)
    value = _shown(given)
    if edit.after is not None and edit.before == json.dumps(edit.after):  # a number that was a text
        return given is not None and not isinstance(given, str)
    if edit.after is None:
        return value is None or (edit.before is not None and not _holds(value, edit.before))
    if value is None:
        return False
    if edit.before and _is_literal(edit.after) and _form(edit.after) != _form(edit.before):
        return _form(edit.after) in _form(value)
    return _holds(value, edit.after)


def repeats(lesson: Lesson, call: Call) -> bool:
    """Whether a call does what a lesson says not to do."""
    return any(
        each.before is not None and _holds(_shown(call.arguments.get(each.argument)) or "", each.before)
        for each in lesson.edits
    ) and not is_followed(lesson, call)


def _holds(text: str, part: str) -> bool:
    """Whether a text holds a part, as whole words; case and spaces do not count."""
    mine = [token.casefold() for token, *_ in _tokens(text)]
    yours = [token.casefold() for token, *_ in _tokens(part)]
    return bool(yours) and any(mine[n : n + len(yours)] == yours for n in range(len(mine) - len(yours) + 1))


def is_refuted_by(lesson: Lesson, error: str) -> bool:
    """Whether an error is about what a lesson says to do, where a call had done so."""
    text = error.casefold()
    for each in lesson.edits:
        old = {word.casefold() for word in _WORD.findall(each.before or "")}
        new = {word.casefold() for word in _WORD.findall(each.after or "") if len(word) > 1}
        words = new - old - _STRUCTURE - STOP_WORDS
        if any(_stands_in(text, word) for word in words):
            return True
    return False


# --- in words


def lessons_of(metadata: Mapping[str, Any], key: str = LESSONS) -> tuple[Lesson, ...]:
    """The lessons in a guideline's metadata; what is none is left out."""
    told = metadata.get(key)
    given = told if isinstance(told, (list, tuple)) else ()
    return tuple(found for each in given if isinstance(each, Mapping) and (found := Lesson.from_dict(each)))


@dataclass(frozen=True, slots=True)
class Worded:
    """The guideline of a tool as a text, "" where no lesson fits, and the lessons that are in it."""

    text: str
    lessons: tuple[Lesson, ...] = ()


def worded(
    tool: str,
    lessons: Sequence[Lesson],
    *,
    count: Callable[[str], int],
    tongue: str = "en",
    with_counts: bool = False,
    most: float = MOST_TOKENS,
) -> Worded:
    """The guideline of a tool: as many lessons, in their order, as 60 tokens hold.

    What a person says comes first; alone it is told as it is.

    Args:
        count: Counts the tokens of a text.
        with_counts: Whether to say how often they held.
        most: Tokens of all of it.
    """
    words = _WORDS.table("wording")[tongue if tongue == "zh" else "en"]
    name = tool if len(tool) <= _LONGEST_PART else tool[: _LONGEST_PART - 1] + "…"

    def whole(told: Sequence[Lesson], errors: Collection[Lesson] = ()) -> str:
        held, tried = sum(each.held for each in told), sum(each.held + each.failed for each in told)
        counts = words["held"].format(held=held, tried=tried) if tried and with_counts else ""
        if len(told) == 1 and told[0].said:
            return told[0].said
        parts = [_without(name, each.said) for each in told if each.said]
        if learned := _together([each for each in told if not each.said], words, errors):
            parts.append(learned)
        return f"{name}: {words['between'].join(parts)}{words['stop']}{counts}"

    told: list[Lesson] = []
    for lesson in sorted(lessons, key=lambda each: not each.said):
        if count(whole([*told, lesson])) <= most:
            told.append(lesson)
    errors: list[Lesson] = []  # what was corrected comes before what the errors said
    for lesson in told:
        if lesson.error and count(whole(told, [*errors, lesson])) <= most:
            errors.append(lesson)
    return Worded(whole(told, errors), tuple(told)) if told else Worded("")


def _without(name: str, said: str) -> str:
    """What a person says of a tool, to stand behind its name and beside what it taught."""
    return said.removeprefix(f"{name}:").strip().rstrip(".。")


def in_persons_words(
    tool: str, text: str, metadata: Mapping[str, Any], *, at: float, count: Callable[[str], int]
) -> dict[str, Any]:
    """The metadata of a guideline whose text a person has changed: that text is told, and nothing else.

    The lessons that the person has read in the text before are not learned again while it stands.

    Args:
        at: When it was changed, in seconds since 1970.

    Raises:
        InvalidContent: the text is too long to be told.
    """
    check_size(text, MOST_TOKENS, count, what="guideline of a tool")
    old = lessons_of(metadata)
    read = worded(tool, old, count=count, tongue=str(metadata.get("language", "en"))).lessons
    corrected = {each.key: each for each in (*lessons_of(metadata, CORRECTED), *read) if not each.said}
    mine = Lesson((), at=at, said=text)
    return {
        **metadata,
        LESSONS: [mine.to_dict()],
        CORRECTED: [each.to_dict() for each in corrected.values()],
    }


def check_size(text: str, most: int, count: Callable[[str], int], *, what: str) -> None:
    """Refuse a text that is too long for the notes in which it would stand.

    Raises:
        InvalidContent: it has more tokens than `most`.
    """
    if (size := count(text)) > most:
        raise InvalidContent(
            f"a {what} with {size} tokens is too long for notes; use {most} at most", size=size
        )


def _together(lessons: Sequence[Lesson], words: Mapping[str, str], errors: Collection[Lesson]) -> str:
    """The lessons in words; an argument is named where another was named before."""
    parts: list[str] = []
    named = ""
    for lesson in lessons:
        edits = []
        for edit in lesson.edits:
            form = "added" if edit.before is None else "gone" if edit.after is None else "instead"
            told = words[form].format(before=f"`{edit.before}`", after=f"`{edit.after}`")
            edits.append(told if edit.argument == named else f"`{edit.argument}`{words['colon']}{told}")
            named = edit.argument
        said = words["said"].format(error=lesson.error) if lesson in errors else ""
        parts.append(words["between"].join(edits) + said)
    return words["between"].join(parts)


Weighed: TypeAlias = tuple[Lesson, float]
"""A lesson, and how much of a task it is about, in [0, 1]."""


def by_task(
    asked: Sequence[str], held: Mapping[str, tuple[str, Sequence[Lesson]]]
) -> dict[str, list[Weighed]]:
    """The lessons of each guideline, those first that are about the task, then by times held.

    A lesson is about a task by its tool's name, by what it says, and by the tasks in which it was learned. A
    term that few lessons have counts more than one of many, and one that none has counts for nothing.

    Args:
        asked: The terms of the task.
        held: Of each guideline of the reader, the tool's name and the lessons.
    """
    words = {key: [_words_of(tool, each) for each in lessons] for key, (tool, lessons) in held.items()}
    every = [each for many in words.values() for each in many]
    weights = {}
    for term in set(asked):
        if having := sum(term in each for each in every):
            weights[term] = math.log(1.0 + len(every) / having)
    whole = sum(weights.values())
    found: dict[str, list[Weighed]] = {}
    for key, (_, lessons) in held.items():
        shares = (sum(weights[term] for term in weights.keys() & each) for each in words[key])
        weighed = [
            (each, share / whole if whole else 0.0) for each, share in zip(lessons, shares, strict=True)
        ]
        found[key] = sorted(
            weighed, key=lambda pair: (-pair[1], -(pair[0].held + pair[0].times), -pair[0].at)
        )
    return found


def _words_of(tool: str, lesson: Lesson) -> frozenset[str]:
    parts = (part for each in lesson.edits for part in (each.argument, each.before, each.after) if part)
    said = (term for part in (tool, *parts, lesson.error, lesson.said) for term in terms(part))
    return frozenset((*lesson.asked, *said))
