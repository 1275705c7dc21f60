"""One backend of each kind, for tests that hold with any backend."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient

from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.stores.qdrant_double import QdrantDouble, running

__all__ = ["EACH", "IN_PROCESS", "STORES", "opened"]


@contextlib.contextmanager
def _qdrant_over_http(_: Path) -> Iterator[MemoryBackend]:
    with running(QdrantDouble()) as server:
        yield QdrantBackend(QdrantClient(url=server.url, check_compatibility=False, verify=False))


def _closing(
    make: Callable[[Path], MemoryBackend],
) -> Callable[[Path], AbstractContextManager[MemoryBackend]]:
    return lambda directory: contextlib.closing(make(directory))


STORES: dict[str, Callable[[Path], AbstractContextManager[MemoryBackend]]] = {
    "in_memory": _closing(lambda _: InMemoryBackend()),
    "json": _closing(JsonBackend),
    "sqlite": _closing(SqliteBackend),
    "base_store": _closing(lambda _: BaseStoreBackend(InMemoryStore())),
    "qdrant": _closing(lambda _: QdrantBackend(QdrantClient(":memory:"))),
    "qdrant_over_http": _qdrant_over_http,
}
"""Name → (a directory of its own → the backend, while it is open)."""
IN_PROCESS = [
    pytest.param("sqlite"),
    *(
        pytest.param(name, marks=pytest.mark.one_in(4, shift="by name"))
        for name in ("in_memory", "json", "base_store", "qdrant")
    ),
]
"""The names. What a store promises, its contract suite proves; so `make test` tries what is built on stores
over SQLite and one of the others, which differs from test to test."""
EACH = [*IN_PROCESS, pytest.param("qdrant_over_http", marks=pytest.mark.slow)]
"""Over HTTP too: it is the client of `qdrant`."""


def opened(name: str, directory: Path) -> AbstractContextManager[MemoryBackend]:
    return STORES[name](directory)
