"""Records in the memory of this process, gone when it ends. The reference meaning of the protocol."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.disk.database import Database
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.arrival import staged_in
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.stores.memory.reading import StateBackend
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.protocol import Commit, Committed, Erased, Health, Ids, Stored, Taken


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
        with self._lock:
            self._audit.refuse_erased([change.record for change in commit.changes if change.expects is None])
            staged = self._state.stage(commit.changes)
            self._audit.append(commit.audit, at=self._clock())
            self._state.apply(staged)
            return Committed(commit.id, tuple(staged.results))

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        with self._lock:
            staged, decided = staged_in(self._state, records, tombstones=self._audit)
            self._audit.append(decided.events, at=self._clock())
            self._state.apply(staged)
            return decided.in_order()

    def holds(self, user_id: str) -> Mapping[str, int]:
        with self._lock:
            return {**self._state.counted(user_id), **self._audit.holds(user_id)}

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user; see `Erases`."""
        with self._lock:
            removed = self._state.counted(user_id)
            removed |= self._audit.erase(user_id, self._state.of_user(user_id), at=at, actor=actor)
            self._state = self._state.without([user_id])
            pending = self._audit.finish_erasures(at=self._clock())
        forget_texts()
        return Erased(removed, pending)

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records; see `ErasesRecords`."""
        with self._lock:
            records = self._state.owned(ids, user_id)
            removed = self._state.counted_of(records, history_of=history_of)
            removed |= self._audit.erase_records(user_id, records, at=at, actor=actor)
            self._state = self._state.without_records({r.id for r in records}, history_of=history_of)
            pending = self._audit.finish_erasures(at=self._clock())
        forget_texts()
        return Erased(removed, pending)

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
        """Do nothing: no write waits and no file is open."""

    def _current(self) -> State:
        return self._state
