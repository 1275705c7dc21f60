from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from common.database import ensure_database


@functools.cache
def built_in(folder: Path) -> Path:
    return ensure_database(folder / "flights.sqlite")


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real database; building takes seconds, so all tests of a run read the same file."""
    own = tmp_path_factory.getbasetemp()
    return built_in(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
