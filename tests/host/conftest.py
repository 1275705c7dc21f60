"""The memory with which most tests of hosts begin."""

from collections.abc import Iterator

import pytest

from supervisor_memory import SupervisorMemory
from tests.host.graphs import open_memory, seed


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    """A memory with one record in each family that a team has."""
    with open_memory() as memory:
        seed(memory)
        yield memory
