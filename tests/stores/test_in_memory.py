"""The reference meaning."""

import pytest

from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.backend_contract import BackendContract


class TestInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return InMemoryBackend()


def test_it_says_that_it_forgets() -> None:
    health = InMemoryBackend().health()
    assert not health.persistent
    assert "MEMORY_BACKEND=sqlite" in health.message
