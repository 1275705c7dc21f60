"""Records in the memory of this process, gone when it ends. The reference meaning of the protocol."""

import time
from collections.abc import Callable
from typing import Literal

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.backends.changes import copied
from supervisor_memory.backends.protocol import Commit, Committed, Health
from supervisor_memory.backends.state import State
from supervisor_memory.backends.state_backend import StateBackend
from supervisor_memory.database import Database
from supervisor_memory.records import Filter

__all__ = ["InMemoryBackend"]


class InMemoryBackend(StateBackend):
    """Dictionaries behind a lock, with an audit log that is just as volatile.

    Args:
        clock: Seconds since 1970, for the times of audit rows.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._state = State()
        self._audit = AuditLog(Database(None))

    @property
    def name(self) -> Literal["in_memory"]:
        return "in_memory"

    @property
    def audit(self) -> AuditLog:
        return self._audit

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing, audit included."""
        with self._lock:
            staged = self._state.stage(commit.changes)
            self._audit.append(commit.audit, at=self._clock())
            self._state.apply(staged)
            return Committed(commit.id, tuple(copied(record) for record in staged.results))

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
        return self._state
