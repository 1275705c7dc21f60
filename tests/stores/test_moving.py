"""Records move between all stores we have."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient

from supervisor_memory.audit.log import RelayedLog
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.moving_contract import MovingContract

KINDS = (
    *("in_memory", "json", "sqlite", "base_store", "base_store in sqlite"),
    *("qdrant", "qdrant in a directory", "qdrant by namespace", "qdrant in a journal"),
)


def opened(kind: str, path: Path, ending: ExitStack) -> MemoryBackend:
    """An empty store of a kind; `ending` closes what it needs."""
    match kind:
        case "in_memory":
            return InMemoryBackend()
        case "json":
            return JsonBackend(path)
        case "sqlite":
            return SqliteBackend(path)
        case "base_store":
            return BaseStoreBackend(InMemoryStore())
        case "base_store in sqlite":
            path.mkdir()
            base = ending.enter_context(SqliteStore.from_conn_string(str(path / "store.db")))
            base.setup()
            return BaseStoreBackend(base)
        case "qdrant in a directory":
            client = QdrantClient(path=str(path), force_disable_check_same_thread=True)
            ending.callback(client.close)
            return QdrantBackend(client)
        case "qdrant in a journal":
            store = QdrantBackend(QdrantClient(":memory:"), audit=RelayedLog())
            return JournalBackend(store, path, copies=True, read_seconds=60, write_seconds=60)
        case "qdrant by namespace":
            return QdrantBackend(QdrantClient(":memory:"), collections="namespace")
    return QdrantBackend(QdrantClient(":memory:"))


@pytest.mark.one_in(6)
class TestMoving(MovingContract):
    @pytest.fixture(params=KINDS)
    def backend(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
        with ExitStack() as ending:
            backend = opened(request.param, tmp_path / "store", ending)
            ending.callback(backend.close)
            yield backend
