"""A preview of a store after commits that are not made."""

from collections.abc import Sequence

from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.amended import Amended
from supervisor_memory.stores.journal.overlay import Found, Listed
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.protocol import Commit, Committed, Ids, MemoryBackend


class Ahead(Amended):
    """Reads like the store behind it with its own commits applied; these never reach that store.

    Not safe between threads. A record whose text stays has no vector here: words alone find it.
    """

    def __init__(self, backend: MemoryBackend) -> None:
        super().__init__(backend, self._apply_ahead)
        self._state = State()

    def _apply_ahead(self, commit: Commit) -> Committed:
        """Apply a commit to the preview. Raises Conflict as the store behind would."""
        changed = [change.record.id for change in commit.changes if change.expects is not None]
        behind = {record.id: record for record in self._backend.get(changed)}
        staged = self._state.stage(commit.changes, elsewhere=behind)
        self._state.apply(staged)
        return Committed(commit.id, tuple(staged.results))

    def search(self, query: Query, *, limit: int) -> Hits:
        assert query.where.user_id is not None
        here = {record.id: record for record in self._state.of_user(query.where.user_id)}
        own = self._state.search(query, limit) if here else Hits(namespaces=0)
        found = Found(own, here, {each for each in here if each in self._state.vectors})
        return found.over(self._backend.search(query, limit=limit + found.more), query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        wanted = [ids] if isinstance(ids, str) else list(ids)
        there = {record.id: record for record in self._backend.get(wanted)} | self._state.records
        return tuple(there[each] for each in wanted if each in there)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        laid_over = Listed(self._state.records.keys(), [*self._state.find(where)])
        behind = self._backend.list(where, limit=limit + offset + len(laid_over.ids))
        return laid_over.over(behind, limit=limit, offset=offset)
