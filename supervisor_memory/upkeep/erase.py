"""Erase a user for good, with a receipt."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from supervisor_memory.errors import BackendError
from supervisor_memory.model.records import AUTHOR, PROMOTED, TEAM, Filter, Record, Wanted
from supervisor_memory.ports import Ports, Services
from supervisor_memory.stores.protocol import Erased, Erases, ErasesRecords
from supervisor_memory.upkeep.queue.queue import Queue

OUT_OF_REACH: Final = (
    "checkpoints of the graph: delete the user's threads in the checkpointer",
    "a LangGraph store of the host: delete the user's items there",
    "traces and logs: of LangSmith, of OpenTelemetry, of the host",
    "what the providers of the models were sent",
    "backups and copies of the store's files, and the free blocks of its disk",
    "the memory of processes that run, until they search or end",
)
_SECONDS: Final = 300.0
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of an erasure.

    Args:
        erased_at: In seconds since 1970; anything said before then is refused from now on.
        removed: Amounts by kind: records, versions, vectors, accesses, record_keys, pseudonyms, events.
        pending: What the store may still hold, and why; empty: nothing. No reader can see it, unless a store
            on a server failed halfway. The next `erase` of any user completes it; so does the next opening
            of the store or, on a server, the next commit.
        out_of_reach: Other places where such data may be, which no store can clean.
        session_id: The session that was erased; None: all of the user.
    """

    user_id: str
    erased_at: float
    removed: Mapping[str, int]
    pending: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = OUT_OF_REACH
    session_id: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the user is left that the store can remove."""
        return not self.pending


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases in the queue, in the backend, and in the memory of this process."""

    services: Services
    events: Queue

    def holds(self, user_id: str) -> Mapping[str, int]:
        """How much `erase` would remove, by kind."""
        held = self._ports().store(self._erasing().holds, user_id)
        shared = sum(1 for _ in _shared(user_id, self._ports()))
        return {**held, "events": self.events.count_of(user_id), **({"shared": shared} if shared else {})}

    def erase(self, user_id: str, *, actor: str = "operator") -> Receipt:
        ports, store = self._ports(), self._erasing()
        # First, so that after a kill in between no store claims to hold nothing while events are left.
        before, _ = ports.store(self.events.forget, user_id, at=ports.now)
        done = ports.store(store.erase, user_id, at=ports.now, actor=actor)
        shared = erase_shared(user_id, ports, actor=actor)
        since, in_the_way = ports.store(self.events.forget, user_id, at=ports.now)
        self.services.vectors.clear()
        out_of_reach = (*OUT_OF_REACH, *done.out_of_reach)
        pending = (*done.pending, *shared.pending, *([f"the queue: {in_the_way}"] if in_the_way else []))
        pending = tuple(dict.fromkeys(pending))
        removed = {**done.removed, "events": before + since, **shared.removed}
        return Receipt(user_id, ports.now, removed, pending, out_of_reach)

    def _ports(self) -> Ports:
        """New ports with more time than other verbs have, since files are rewritten."""
        return Ports(self.services, seconds=_SECONDS, now=self.services.clock())

    def _erasing(self) -> Erases:
        backend = self.services.backend
        if isinstance(backend, Erases):
            return backend
        raise BackendError(
            f"the records are out of reach: the backend {backend.name!r} cannot erase, and nothing was "
            "removed; remove the user's data in the database behind it (`delete_all` marks it as deleted)",
            backend=backend.name,
        )


def erase_shared(user_id: str, ports: Ports, *, actor: str, records: Collection[str] | None = None) -> Erased:
    """Remove a user's promoted records, where the user chose so, in every version and status.

    Args:
        records: Only what was promoted of the records with these ids; None: of all.

    Raises:
        BackendError: the store cannot erase single records, or failed.
    """
    found: dict[str, list[str]] = {}
    for each in _shared(user_id, ports):
        if records is None or each.metadata.get(PROMOTED) in records:
            found.setdefault(each.user_id, []).append(each.id)
    if not found:
        return Erased({})
    backend = ports.services.backend
    if not isinstance(backend, ErasesRecords):
        raise BackendError(
            f"what was promoted of the user is out of reach: the backend {backend.name!r} cannot erase "
            "single records; remove them in the database behind it",
            backend=backend.name,
        )
    pending: list[str] = []
    for owner, ids in found.items():
        done = ports.store(backend.erase_records, ids, user_id=owner, at=ports.now, actor=actor)
        pending += done.pending
    return Erased({"shared": sum(map(len, found.values()))}, tuple(pending))


def _shared(user_id: str, ports: Ports) -> Iterator[Record]:
    where = Filter(statuses=None, metadata=(Wanted.of(AUTHOR, user_id),))
    while page := ports.store(ports.services.backend.list, where, limit=_PAGE):
        yield from (each for each in page if each.user_id.startswith(TEAM))
        where = where.after(page[-1])
