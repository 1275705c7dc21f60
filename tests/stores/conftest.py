"""Directories for files, and a context in which they cannot be written."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

NOBODY = 65_534


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that any user can reach; pytest's own are closed to all but its user."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    for path in (directory, *directory.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(directory)


@pytest.fixture
def read_only() -> Callable[[Path], AbstractContextManager[None]]:
    """Within the block, this process can read a directory and its files, and change nothing.

    Modes do not bind root, so root becomes nobody for the time being.
    """

    @contextlib.contextmanager
    def closed(directory: Path) -> Iterator[None]:
        for path in directory.iterdir():
            path.chmod(0o444)
        directory.chmod(0o555)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if was_root:
                os.seteuid(0)

    return closed
