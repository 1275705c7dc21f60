"""Judges of an answer: an exact match, rules, the values of a query, or a model."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from supervisor_memory.errors import SettingsError
from supervisor_memory.evaluation.threads import Asked

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Judge: TypeAlias = Callable[[Asked, str], "bool | None"]
"""(a turn, the answer) → whether it is right; None: there is nothing to judge it by. May raise."""
Names: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Column → value → how else people call it."""

_NUMBER: Final = re.compile(r"(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_END: Final = ".!。！"
_EQUAL: Final = 1e-9
_CLOSE: Final = 0.01
"""The share by which a rounded number may differ: "12" says 12.04, and does not say 12.4."""
_PROMPT: Final = """\
You judge an answer. Say whether it gives what the reference gives: other words, layout and rounding do not
matter; another figure, another thing or no answer is wrong.

Question:
{question}

Reference:
{expected}

Answer:
{answer}

Say one word: right or wrong."""


class JudgeFailed(Exception):
    """A judge could not say whether an answer is right."""


def exact(asked: Asked, answer: str) -> bool | None:
    """Whether the answer is one of those expected, but for case, width, spaces and a full stop."""
    if not asked.expected:
        return None
    return _plain(answer) in {_plain(each) for each in asked.expected}


def by_rules(asked: Asked, answer: str) -> bool | None:
    """Whether every `must` is found in the answer, and no `must_not`; case does not count."""
    if not asked.must and not asked.must_not:
        return None

    def is_found(pattern: str) -> bool:
        try:
            return re.search(pattern, answer, re.IGNORECASE) is not None
        except re.error as error:
            raise JudgeFailed(f"{pattern!r} is no regular expression: {error}") from error

    return all(map(is_found, asked.must)) and not any(map(is_found, asked.must_not))


class SqlJudge:
    """Whether the values of a query stand in the answer: numbers as numbers, texts as words.

    A number may be rounded as the answer rounds it, by a hundredth of it at most; its sign may be told in
    words. NULL says nothing.

    Args:
        database: A SQLite file; it is only read.
        names: How else values are called: `{"month": {"7": ["July", "七月"]}}`. A value with names is
            looked for by these and by itself, unless it is a number, which alone could mean anything.
    """

    def __init__(self, database: Path, *, names: Names | None = None) -> None:
        if not database.is_file():
            raise SettingsError(f"there is no database {database}")
        self._database = database.resolve()
        self._names = names or {}
        self._known: dict[str, list[tuple[str, Any]]] = {}

    def __call__(self, asked: Asked, answer: str) -> bool | None:
        if not asked.sql:
            return None
        values = self._values(asked.sql)
        if not values:
            raise JudgeFailed("the query has no value to look for")
        return all(self._is_told(column, value, answer) for column, value in values)

    def _values(self, sql: str) -> list[tuple[str, Any]]:
        if sql not in self._known:
            import apsw

            try:
                connection = apsw.Connection(f"{self._database.as_uri()}?mode=ro", flags=_READ_ONLY)
                try:
                    cursor = connection.execute(sql)
                    columns = [name for name, *_ in cursor.get_description()]
                    rows = [*cursor]
                finally:
                    connection.close()
            except apsw.Error as error:
                raise JudgeFailed(f"the query failed: {error}") from error
            self._known[sql] = [
                (column, value)
                for row in rows
                for column, value in zip(columns, row, strict=True)
                if value is not None
            ]
        return self._known[sql]

    def _is_told(self, column: str, value: Any, answer: str) -> bool:
        names = self._names.get(column, {}).get(str(value), ())
        if any(_has_word(answer, name) for name in names):
            return True
        if isinstance(value, int | float):
            return not names and any(_says(told, value) for told in _NUMBER.findall(answer))
        return _has_word(answer, str(value))


class ModelJudge:
    """Asks a chat model whether an answer gives what `expected` says. The model reads question and answer."""

    def __init__(self, model: "BaseChatModel") -> None:
        self._model = model

    def __call__(self, asked: Asked, answer: str) -> bool | None:
        if not asked.expected:
            return None
        prompt = _PROMPT.format(
            question=asked.text, expected="\n".join(asked.expected), answer=answer or "(nothing)"
        )
        reply = str(self._model.invoke(prompt).text).strip().lower()
        for word, verdict in (("right", True), ("wrong", False)):
            if reply.startswith(word):
                return verdict
        raise JudgeFailed(f"the judge said {reply[:60]!r}, which is neither right nor wrong")


def together(*judges: Judge) -> Judge:
    """Judge an answer by all judges that apply; it is right where each of them says so."""

    def judge(asked: Asked, answer: str) -> bool | None:
        said = [found for each in judges if (found := each(asked, answer)) is not None]
        return all(said) if said else None

    return judge


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(_END)


def _has_word(text: str, word: str) -> bool:
    """Whether a text has a word; in Latin letters it must stand by itself."""
    before = r"(?<![A-Za-z0-9])" if word[:1].isascii() else ""
    after = r"(?![A-Za-z0-9])" if word[-1:].isascii() else ""
    flags = 0 if word.isupper() else re.IGNORECASE  # a code such as AS or US is no word in small letters
    return bool(re.search(before + re.escape(word) + after, text, flags))


def _says(told: str, value: float) -> bool:
    """Whether a written number equals a value, at the precision it is written with."""
    plain = told.replace(",", "").replace("−", "-")
    decimals = len(plain.partition(".")[2])
    off = min(abs(float(plain) - value), abs(abs(float(plain)) - abs(value)))
    return off <= min(0.5 * 0.1**decimals, _CLOSE * abs(value)) + _EQUAL


_READ_ONLY: Final = 0x41  # SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
