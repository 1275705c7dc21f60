"""A LangGraph store as a backend: the contract, and what only a shared store can go through."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from supervisor_memory.backends.base_store import BaseStoreBackend
from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.testing.backend_contract import BackendContract, PersistentBackendContract


def sqlite_store(file: Path) -> SqliteStore:
    store = SqliteStore(sqlite3.connect(file, check_same_thread=False, isolation_level=None))
    store.setup()
    return store


class TestInMemoryStore(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return BaseStoreBackend(InMemoryStore())


class TestSqliteStore(PersistentBackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path)
