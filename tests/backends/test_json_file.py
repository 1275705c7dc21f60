"""The JSON file: the contract, and what only a file can go through."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from supervisor_memory.backends.json_file import JsonBackend
from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.testing.backend_contract import PersistentBackendContract


class TestJson(PersistentBackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = JsonBackend(tmp_path / "store")
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: JsonBackend(tmp_path / "store")
