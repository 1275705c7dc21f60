"""Erasing from a LangGraph store: proven, completed after every interruption, known to every instance."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.erasing_contract import SharedErasingContract
from tests.stores.test_base_store import sqlite_store


class TestInMemoryStore(SharedErasingContract):
    """Each handle has an audit log of its own, so that only the store tells of tombstones."""

    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore()

    @pytest.fixture
    def backend(self, store: BaseStore) -> MemoryBackend:
        return BaseStoreBackend(store)

    @pytest.fixture
    def reopen(self, store: BaseStore) -> Callable[[], MemoryBackend]:
        return lambda: BaseStoreBackend(store)


class TestSqliteStore(SharedErasingContract):
    """Each handle has a store of its own over one file, as two processes have, and shares the log."""

    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> Iterator[MemoryBackend]:
        backend = reopen()
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path)
