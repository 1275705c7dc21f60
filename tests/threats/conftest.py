"""Every kind of store, for the promises of each, and the number of attempts to break them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor_memory.stores.protocol import MemoryBackend
from tests.opened import IN_PROCESS, opened

EXAMPLES = int(os.environ.get("THREAT_EXAMPLES", "12"))
"""How many inputs are made up for a test and a backend; `make slow` asks for many more."""
STORES = ("in_memory", "json", "sqlite", "qdrant")


@pytest.fixture(params=[each for each in IN_PROCESS if each.values != ("base_store",)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend
