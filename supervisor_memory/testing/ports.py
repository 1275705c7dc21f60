"""Ports over records in memory, for tests of a flow or of one operator: no disk, no event loop."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from supervisor_memory.bridge import Bridge
from supervisor_memory.language.tokens import COUNTERS
from supervisor_memory.model.records import FAMILIES, Kind, Record, Scope, new_id
from supervisor_memory.ports import Complete, Ports, Services
from supervisor_memory.settings import Settings
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import MONDAY

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder


def ports(
    records: Iterable[Record] = (),
    *,
    now: float = MONDAY,
    settings: Settings | None = None,
    embedder: "Embedder | None" = None,
    complete: Complete | None = None,
    backend: MemoryBackend | None = None,
    seconds: float = 5.0,
    count_tokens: Callable[[str], int] | None = None,
) -> Ports:
    """Ports over a store of these records.

    Args:
        complete: The model: a prompt in, its text out.
        backend: Where the records go; None: a new one in memory.
        seconds: The deadline of the flow.
    """
    settings = settings or Settings()
    backend = backend if backend is not None else InMemoryBackend(clock=lambda: now)
    if given := list(records):
        backend.write(given)
    services = Services(
        settings=settings,
        backend=backend,
        embedder=embedder,
        complete=complete,
        bridge=Bridge(),
        clock=lambda: now,
        count_tokens=count_tokens or COUNTERS[settings.tokenizer],
    )
    return Ports(services, seconds=seconds, now=now)


def record(
    content: str,
    *,
    user_id: str = "alice",
    kind: Kind = "domain-facts",
    family: str | None = None,
    now: float = MONDAY,
    **facts: Any,
) -> Record:
    """A record of a user, as if it had been written at `now`."""
    namespace = Scope(user_id).namespace(family or FAMILIES[kind])
    whole = {"id": new_id(), "created_at": now, "updated_at": now, "namespace": namespace, **facts}
    return Record(content=content, kind=kind, **whole)
