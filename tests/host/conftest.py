"""The memory that most tests of hosts begin with."""

from collections.abc import Iterator

import pytest

from supervisor_memory import SupervisorMemory
from tests.host.graphs import open_memory, seed


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    """With one record in each family that a team has."""
    with open_memory() as memory:
        seed(memory)
        yield memory
