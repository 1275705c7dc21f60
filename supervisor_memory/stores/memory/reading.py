"""The reading half of a backend with its records in memory."""

import threading
from abc import abstractmethod
from collections.abc import Sequence

from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.protocol import Ids, Stored
from supervisor_memory.stores.verbs import Verbs

__all__ = ["StateBackend"]


class StateBackend(Verbs):
    """Reads from a state under a lock; where the state comes from is its subclasses' business."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @abstractmethod
    def _current(self) -> State:
        """The state to read from; called with the lock held."""

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by all signals together; see `MemoryBackend.search`.

        Raises:
            MissingUser: `query.where` names no user.
        """
        with self._lock:
            return self._current().search(query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        """The records of these ids in any status, in the order asked, unknown ones left out."""
        with self._lock:
            records = self._current().records
            return tuple(records[record_id] for record_id in ids if record_id in records)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        """Records that match, most recently updated first; equally recent ones by falling id."""
        with self._lock:
            found = sorted(self._current().find(where), key=lambda r: (r.updated_at, r.id), reverse=True)
            return tuple(found[max(0, offset) :][: max(0, limit)])

    def count(self, where: Filter) -> int:
        with self._lock:
            return sum(1 for _ in self._current().find(where))

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first, the present one last; empty for an unknown id."""
        with self._lock:
            return self._current().versions(record_id)

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records, in order of their ids; see `Moves`."""
        with self._lock:
            return self._current().page(after, limit, user_id)
