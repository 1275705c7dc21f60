"""The journal: the contract around each store, and what it is for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient

from supervisor_memory.audit.log import RelayedLog
from supervisor_memory.stores.journal.lone import Lone
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.backend_contract import BackendContract, PersistentBackendContract
from supervisor_memory.testing.erasing_contract import ErasingContract, SharedErasingContract

UNHURRIED: Mapping[str, Any] = {"read_seconds": 60.0, "write_seconds": 60.0}


class TestAroundMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[MemoryBackend]:
        with closing(JournalBackend(InMemoryBackend(), **UNHURRIED)) as backend:
            yield backend


@pytest.mark.one_in(6)
class TestAroundQdrantInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[MemoryBackend]:
        with closing(JournalBackend(QdrantBackend(QdrantClient(":memory:")), **UNHURRIED)) as backend:
            yield backend


@pytest.mark.one_in(6, shift=1)
class TestAroundABaseStore(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[MemoryBackend]:
        with closing(JournalBackend(BaseStoreBackend(InMemoryStore()), **UNHURRIED)) as backend:
            yield backend


@pytest.mark.one_in(3, shift=2)
class _Persistent(PersistentBackendContract):
    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> Iterator[MemoryBackend]:
        with closing(reopen()) as backend:
            yield backend


class TestAroundJson(_Persistent):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: JournalBackend(JsonBackend(tmp_path / "store"), tmp_path, **UNHURRIED)


class TestAroundSqlite(_Persistent):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: JournalBackend(SqliteBackend(tmp_path / "store"), tmp_path, **UNHURRIED)


class TestErasing(ErasingContract):
    @pytest.fixture
    def backend(self) -> Iterator[MemoryBackend]:
        with closing(JournalBackend(InMemoryBackend(), **UNHURRIED)) as backend:
            yield backend


class TestErasingInQdrant(SharedErasingContract):
    """As `MEMORY_BACKEND=qdrant` opens it, over one server and one directory."""

    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> Iterator[MemoryBackend]:
        with closing(reopen()) as backend:
            yield backend

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        client = QdrantClient(":memory:")
        return lambda: JournalBackend(QdrantBackend(client, audit=RelayedLog()), tmp_path, **UNHURRIED)


class TestErasingInSqliteWithACopy(SharedErasingContract):
    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> Iterator[MemoryBackend]:
        with closing(reopen()) as backend:
            yield backend

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: JournalBackend(SqliteBackend(tmp_path / "store"), tmp_path, copies=True, **UNHURRIED)


def test_a_turn_that_somebody_else_has_is_not_given(tmp_path: Path) -> None:
    with Lone(tmp_path / "lock").turn() as first, Lone(tmp_path / "lock").turn() as second:
        assert (first, second) == (True, False)
    with Lone(tmp_path / "lock").turn() as later:
        assert later
