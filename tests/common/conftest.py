from __future__ import annotations

import functools
from pathlib import Path

import pytest

from common.database import ensure_database


@functools.cache
def built_in(folder: Path) -> Path:
    return ensure_database(folder / "flights.sqlite")


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real database; building takes seconds, so all tests read the same file."""
    return built_in(tmp_path_factory.getbasetemp())
