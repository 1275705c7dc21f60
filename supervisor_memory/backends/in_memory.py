"""Records in the memory of this process, gone when it ends. The reference meaning of the protocol."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.backends.changes import copied
from supervisor_memory.backends.database import Database
from supervisor_memory.backends.protocol import Commit, Committed, Health, Ids
from supervisor_memory.backends.state import State
from supervisor_memory.backends.verbs import Verbs
from supervisor_memory.records import Filter, Hits, Query, Record

__all__ = ["InMemoryBackend"]


class InMemoryBackend(Verbs):
    """Dictionaries behind a lock, with an audit log that is just as volatile.

    Args:
        clock: Seconds since 1970, for the times of audit rows.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._state = State()
        self._database = Database(None)
        self._audit = AuditLog(self._database)

    @property
    def name(self) -> Literal["in_memory", "json"]:
        return "in_memory"

    @property
    def audit(self) -> AuditLog:
        return self._audit

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by meaning and by words, at most `limit` of each.

        Raises:
            MissingUser: `query.where` names no user.
        """
        with self._lock:
            return self._current().search(query, limit)

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing, audit included."""
        with self._lock:
            staged = self._state.stage(commit.changes)
            self._audit.append(commit.audit, at=self._clock())
            self._state.apply(staged)
            return Committed(commit.id, tuple(copied(record) for record in staged.results))

    def get(self, ids: Ids) -> Sequence[Record]:
        """The records of these ids in any status, in the order asked, unknown ones left out."""
        with self._lock:
            records = self._current().records
            return tuple(copied(records[record_id]) for record_id in ids if record_id in records)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        """Records that match, most recently updated first; equally recent ones by falling id."""
        with self._lock:
            found = sorted(self._current().find(where), key=lambda r: (r.updated_at, r.id), reverse=True)
            return tuple(copied(record) for record in found[max(0, offset) :][: max(0, limit)])

    def count(self, where: Filter) -> int:
        with self._lock:
            return sum(1 for _ in self._current().find(where))

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first, the present one last; empty for an unknown id."""
        with self._lock:
            return self._current().versions(record_id)

    def health(self) -> Health:
        return Health(
            self.name,
            ok=True,
            persistent=False,
            location="memory",
            message="memories are lost when this process ends; set MEMORY_BACKEND=sqlite to keep them",
            details={"records": str(self.count(Filter(statuses=None)))},
        )

    def close(self) -> None:
        """Nothing is outstanding and no file is open."""

    def _current(self) -> State:
        """The state to read from."""
        return self._state
