"""What a searcher may see of the candidates: read from the file, or known from a search before."""

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
    """Records that searches have read, each as it is while its namespace has the revision it had then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[int, _As] = {}

    def of(
        self, keys: Sequence[int], revisions: Mapping[str, int], now: float
    ) -> tuple[dict[int, Record], list[int]]:
        """Those of these records that are known, unchanged in namespaces of these revisions, and visible; and
        the keys of those that are not known."""
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
        """Know a record from now on, instead of the one that was read first."""
        with self._lock:
            self._records.pop(key, None)
            self._records[key] = record, namespace, revision
            if len(self._records) > MOST_RECORDS:
                del self._records[next(iter(self._records))]


class Readable:
    """Gives those of some records, by key, that a searcher may see.

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
    """Whether all active records of the namespaces it names are meant."""
    narrower = Filter(user_id=where.user_id, families=where.families, tasks=where.tasks)
    return where == narrower


MOST_ANSWERS: Final = 64


@dataclass(frozen=True, slots=True)
class _Answer:
    """Hits as they were found `since` a moment, in namespaces as they were; `until` the first expires."""

    hits: Hits
    spaces: Sequence[Space]
    since: float
    until: float

    def holds(self, spaces: Sequence[Space], now: float) -> bool:
        return self.since <= now < self.until and self.spaces == spaces


class Question:
    """All that an answer depends on, other than the records and the time. Its hash is worked out once."""

    __slots__ = ("_asked", "_hash")

    def __init__(self, *asked: Hashable) -> None:
        self._asked, self._hash = asked, hash(asked)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._asked == other._asked


class Answers:
    """The latest answers, for one question is asked for the supervisor again and again within a turn."""

    def __init__(self) -> None:
        self._answers: dict[Question, _Answer] = {}

    def of(
        self, question: Question, spaces: Sequence[Space], *, now: float, search: Callable[[], Hits]
    ) -> Hits:
        """The answer to a question, searched for unless it is known.

        Args:
            spaces: The namespaces to search as they are now; every commit to one changes its revision.
            now: What expires until then is not found.
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
