"""A user's records as they were at a moment, to search and list like any other."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import ReadOnlyStore
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.model.versions import valid_at
from supervisor_memory.stores.memory.reading import StateBackend
from supervisor_memory.stores.memory.state import State, StoredVector
from supervisor_memory.stores.protocol import Commit, Committed, Health, MemoryBackend, Moves

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

Embed = Callable[[Sequence[str]], "Sequence[Vector | None]"]
_PAGE: Final = 500


class AsOf(StateBackend):
    """A user's records at a moment, read once, with all their versions, when the object is made.

    Args:
        when: The moment, in seconds since 1970.
        embed, embedder: Embed texts that records no longer have: only present texts have stored vectors.
    """

    def __init__(
        self, backend: MemoryBackend, user_id: str, when: float, *, embed: Embed, embedder: str | None
    ) -> None:
        super().__init__()
        self._backend = backend
        records: dict[str, Record] = {}
        vectors: dict[str, StoredVector] = {}
        changed: list[Record] = []  # without a stored vector of the text as it was
        for versions, vector in _histories(backend, user_id):
            now = versions[-1]
            if (then := valid_at(versions, when)) is None:
                continue
            records[then.id] = then
            if then.embedded_text != now.embedded_text or now.status != "active":
                changed.append(then)
            elif vector is not None and now.embedder is not None:
                vectors[then.id] = (now.embedder, vector)
        if embedder is not None:
            for record, vector in zip(changed, embed([each.embedded_text for each in changed]), strict=True):
                if vector is not None:
                    vectors[record.id] = (embedder, vector)
        self._state = State(records, vectors=vectors)

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def audit(self) -> AuditLog:
        return self._backend.audit

    def batch(self, commit: Commit) -> Committed:
        """Refuse every commit. Raises ReadOnlyStore: always."""
        raise ReadOnlyStore("the past cannot be changed; write to the memory itself")

    def health(self) -> Health:
        return self._backend.health()

    def close(self) -> None:
        """Do nothing: the store behind stays open."""

    def _current(self) -> State:
        return self._state


def _histories(backend: MemoryBackend, user_id: str) -> "Iterator[tuple[Sequence[Record], Vector | None]]":
    """For each record of a user: all versions, oldest first, and the vector of the present version."""
    if isinstance(backend, Moves):
        after: str | None = None
        while page := backend.stored(after=after, limit=_PAGE, user_id=user_id):
            yield from (((*each.earlier, each.record), each.vector) for each in page)
            after = page[-1].record.id
        return
    where = Filter(user_id=user_id, statuses=None)
    while found := backend.list(where, limit=_PAGE):
        yield from ((backend.versions(record.id), None) for record in found)
        where = where.after(found[-1])
