"""Qdrant as a backend, in local mode: the contract, and what only it can go through."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from qdrant_client import QdrantClient

from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.backends.qdrant import QdrantBackend
from supervisor_memory.testing.backend_contract import BackendContract, Limit, PersistentBackendContract


class TestInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"))


class TestACollectionForEachNamespace(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"), collections="namespace")


class TestLocalPath(PersistentBackendContract):
    """Only one client at a time can open a path: the handles share it, and take turns."""

    limits: ClassVar[Mapping[Limit, str]] = {
        "is whole after a kill": "the process that is killed shares its client with the one that looks"
    }

    @pytest.fixture
    def client(self, tmp_path: Path) -> Iterator[QdrantClient]:
        client = QdrantClient(path=str(tmp_path / "qdrant"), force_disable_check_same_thread=True)
        yield client
        client.close()

    @pytest.fixture
    def backend(self, client: QdrantClient, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = QdrantBackend(client, audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, client: QdrantClient, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client, audit=tmp_path)
