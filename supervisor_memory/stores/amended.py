"""A store that hands every commit to a function, which may amend or refuse it."""

from collections.abc import Callable, Sequence

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.protocol import Commit, Committed, Health, Ids, MemoryBackend
from supervisor_memory.stores.verbs import Verbs


class Amended(Verbs):
    """Reads like the store behind it. `commit` makes each commit there, changed or not, or refuses it."""

    def __init__(self, backend: MemoryBackend, commit: Callable[[Commit], Committed]) -> None:
        self._backend, self._commit = backend, commit

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def audit(self) -> AuditLog:
        return self._backend.audit

    def batch(self, commit: Commit) -> Committed:
        return self._commit(commit)

    def search(self, query: Query, *, limit: int) -> Hits:
        return self._backend.search(query, limit=limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        return self._backend.get(ids)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return self._backend.list(where, limit=limit, offset=offset)

    def count(self, where: Filter) -> int:
        return self._backend.count(where)

    def versions(self, record_id: str) -> Sequence[Record]:
        return self._backend.versions(record_id)

    def health(self) -> Health:
        return self._backend.health()

    def close(self) -> None:
        """Do nothing: the store behind stays open."""
