"""Erasing from a LangGraph store: proven, completed after every interruption, known to every instance."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from supervisor_memory.audit.tombstones import Tombstones
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendError, BackendUnavailable
from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.erasing_contract import LATER, SharedErasingContract
from supervisor_memory.testing.records import tea
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


def _unavailable(*_: object, **_options: object) -> str:
    raise BackendUnavailable("waited for other threads")


def test_an_instance_tells_that_its_log_still_holds_who_was_erased_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise BackendError("no room left; nothing was saved: free some space")

    store = InMemoryStore()
    one, other = BaseStoreBackend(store), BaseStoreBackend(store, audit=tmp_path)
    other.write([tea()])
    one.erase("alice", at=LATER)
    with monkeypatch.context() as broken:
        broken.setattr(Tombstones, "finish", full)
        other.write([tea("a later tea", created_at=LATER)])
        assert "an erasure could not be completed" in caplog.text
        assert "no room left" in caplog.text
    other.close()
    caplog.clear()
    BaseStoreBackend(store, audit=tmp_path).close()
    assert caplog.text == ""


def test_a_log_that_cannot_be_had_is_told_and_stops_no_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = InMemoryStore()
    backend = BaseStoreBackend(store, audit=tmp_path)
    backend.write([tea()])
    monkeypatch.setattr(Database, "scrub", _unavailable)
    assert backend.erase("alice", at=LATER).pending == ("waited for other threads",)
    backend.close()
    BaseStoreBackend(store, audit=tmp_path).close()
    assert "an erasure could not be completed" in caplog.text
