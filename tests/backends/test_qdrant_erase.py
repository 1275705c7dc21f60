"""Erasing from Qdrant: proven, completed after every interruption, known to every instance."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.backends.qdrant import QdrantBackend
from supervisor_memory.testing.erasing_contract import ErasingContract, SharedErasingContract
from tests.backends.qdrant_double import QdrantDouble, running
from tests.backends.test_qdrant_server import client_of


@pytest.fixture
def double() -> Iterator[QdrantDouble]:
    with running(QdrantDouble()) as server:
        yield server


class TestInMemory(ErasingContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"))


class TestLocalPath(SharedErasingContract):
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


@pytest.mark.parametrize("division", ["family", "namespace"])
class TestServer(SharedErasingContract):
    """Each handle is an instance with an audit log of its own: only the server tells of tombstones."""

    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> MemoryBackend:
        return reopen()

    @pytest.fixture
    def reopen(self, double: QdrantDouble, division: str) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client_of(double), collections=division)  # type: ignore[arg-type]  # is one
