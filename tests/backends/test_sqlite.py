"""SQLite: the contract, and what only a file can go through."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.backends.sqlite import SqliteBackend
from supervisor_memory.testing.backend_contract import PersistentBackendContract


class TestSqlite(PersistentBackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = SqliteBackend(tmp_path / "store")
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: SqliteBackend(tmp_path / "store")
