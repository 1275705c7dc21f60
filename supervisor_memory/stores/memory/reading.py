"""The reading half of a backend with its records in memory."""

import threading
from abc import abstractmethod
from collections.abc import Sequence
from itertools import islice

from supervisor_memory.model.records import Filter, Hits, Query, Record, Seed
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.protocol import Ids, Stored, walks_here
from supervisor_memory.stores.verbs import Verbs


class StateBackend(Verbs):
    """Reads from a state under a lock; subclasses provide the state."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @abstractmethod
    def _current(self) -> State:
        """The state to read from; called with the lock held."""

    def search(self, query: Query, *, limit: int) -> Hits:
        with self._lock:
            return self._current().search(query, limit)

    @walks_here
    def related(self, seeds: Sequence[Seed], query: Query, *, limit: int, least: float = 0.0) -> Hits:
        with self._lock:
            return self._current().related(seeds, query, limit, least)

    def naming(
        self, names: Sequence[Sequence[str]], query: Query, *, limit: int
    ) -> Sequence[tuple[int, Sequence[Record]]]:
        with self._lock:
            return self._current().naming(names, query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        with self._lock:
            records = self._current().records
            return tuple(records[record_id] for record_id in ids if record_id in records)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        with self._lock:
            first = max(0, offset)
            return tuple(islice(self._current().latest(where), first, first + max(0, limit)))

    def count(self, where: Filter) -> int:
        with self._lock:
            return sum(1 for _ in self._current().find(where))

    def versions(self, record_id: str) -> Sequence[Record]:
        with self._lock:
            return self._current().versions(record_id)

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        with self._lock:
            return self._current().page(after, limit, user_id)
