"""Caches of a search: records read before, and the latest answers."""

import contextlib
import json
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, Final, TypeAlias

import apsw

from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.sqlite.conditions import visible
from supervisor_memory.stores.sqlite.namespaces import Space
from supervisor_memory.stores.sqlite.tables import record_of

__all__ = [
    "Answers",
    "Kept",
    "Question",
    "Readable",
]

MOST_RECORDS: Final = 2_048
LONGEST: Final = 2_000  # characters of a row
_UNKNOWN: Final = (None, "", 0)
_As: TypeAlias = tuple[Record, str, int]  # in a namespace of that revision


class Kept:
    """Records that searches have read; each is valid as long as its namespace has the same revision."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[int, _As] = {}

    def of(
        self, keys: Sequence[int], revisions: Mapping[str, int], now: float
    ) -> tuple[dict[int, Record], list[int]]:
        """The known and visible records with these keys, and the keys that have to be read.

        Args:
            revisions: Namespace → its present revision.
            now: In seconds since 1970; expired records are not visible.
        """
        found: dict[int, Record] = {}
        missing: list[int] = []
        for key in keys:
            record, namespace, revision = self._records.get(key, _UNKNOWN)
            if record is None or revisions.get(namespace) != revision:
                missing.append(key)
            elif record.is_visible(now):
                found[key] = record
        return found, missing

    def keep(self, key: int, record: Record, namespace: str, revision: int) -> None:
        """Keep a record; the record kept longest makes room."""
        with self._lock:
            self._records.pop(key, None)
            self._records[key] = record, namespace, revision
            if len(self._records) > MOST_RECORDS:
                del self._records[next(iter(self._records))]


class Readable:
    """Takes keys; gives the records that a searcher may see, by key.

    Args:
        connection: Sees one state of the store throughout.
        spaces: The namespaces the records are in, as the connection sees them.
    """

    def __init__(
        self, connection: apsw.Connection, kept: Kept, query: Query, spaces: Sequence[Space]
    ) -> None:
        self._connection, self._kept, self._query = connection, kept, query
        self._revisions = {space.namespace: space.revision for space in spaces}

    def __call__(self, keys: Sequence[int]) -> Mapping[int, Record]:
        if not _asks_for_namespaces_alone(self._query.where):  # SQLite can tell which, without reading all
            return self._read_visible(keys)
        now = self._query.now
        found, missing = self._kept.of(keys, self._revisions, now)
        if missing:
            found |= {key: record for key, record in self._read(missing).items() if record.is_visible(now)}
        return found

    def _read_visible(self, keys: Sequence[int]) -> dict[int, Record]:
        sql, bindings = visible(self._query.where, now=self._query.now)
        rows: Iterable[Any] = self._connection.execute(
            f"SELECT records.key, data {_OF_KEYS} WHERE {sql}", (json.dumps(keys), *bindings)
        )
        return {key: record_of(data) for key, data in rows}

    def _read(self, keys: Sequence[int]) -> dict[int, Record]:
        rows: Iterable[Any] = self._connection.execute(
            f"SELECT records.key, namespace, data {_OF_KEYS}", (json.dumps(keys),)
        )
        found: dict[int, Record] = {}
        for key, namespace, data in rows:
            if namespace in self._revisions:
                found[key] = record_of(data)
                if len(data) <= LONGEST:
                    self._kept.keep(key, found[key], namespace, self._revisions[namespace])
        return found


# `CROSS JOIN` keeps SQLite from walking an index of the user's records to find them.
_OF_KEYS: Final = (
    "FROM (SELECT value FROM json_each(?)) AS candidates CROSS JOIN records ON records.key = candidates.value"
)


@lru_cache(maxsize=256)
def _asks_for_namespaces_alone(where: Filter) -> bool:
    """Whether a filter matches all active records of the namespaces it names."""
    narrower = Filter(user_id=where.user_id, families=where.families, tasks=where.tasks)
    return where == narrower


MOST_ANSWERS: Final = 64


@dataclass(frozen=True, slots=True)
class _Answer:
    """Hits of a search in `spaces`, valid from `since` until the first hit expires."""

    hits: Hits
    spaces: Sequence[Space]
    since: float
    until: float

    def holds(self, spaces: Sequence[Space], now: float) -> bool:
        return self.since <= now < self.until and self.spaces == spaces


class Question:
    """Everything an answer depends on, except for the records and the time. The hash is computed once."""

    __slots__ = ("_asked", "_hash")

    def __init__(self, *asked: Hashable) -> None:
        self._asked, self._hash = asked, hash(asked)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._asked == other._asked


class Answers:
    """The latest answers, for a question is often asked again within a turn."""

    def __init__(self) -> None:
        self._answers: dict[Question, _Answer] = {}

    def of(
        self, question: Question, spaces: Sequence[Space], *, now: float, search: Callable[[], Hits]
    ) -> Hits:
        """The answer to a question, searched for unless it is known.

        Args:
            spaces: The namespaces to search, as they are now; a commit to a namespace changes its revision.
            now: In seconds since 1970; an answer with a record that has expired by then is not used.
        """
        answer = self._answers.pop(question, None)
        if answer is None or not answer.holds(spaces, now):
            hits = search()
            ends = [hit.record.expires_at for hit in hits if hit.record.expires_at is not None]
            answer = _Answer(hits, spaces, now, min(ends, default=inf))
        self._answers[question] = answer
        if len(self._answers) > MOST_ANSWERS:
            with contextlib.suppress(StopIteration, RuntimeError):  # another thread makes room meanwhile
                self._answers.pop(next(iter(self._answers)), None)
        return answer.hits
