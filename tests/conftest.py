"""Settings of all tests."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair; `make slow` asks for more of them.
settings.register_profile("any-machine", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25")))
settings.load_profile("any-machine")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30


def _files_lie_in_memory() -> None:
    """Where there is room: a disk that syncs takes a third of the time, and proves nothing of a process that
    is killed. `TMPDIR` says otherwise, and is the disk in `make slow` and `make faults`."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


_files_lie_in_memory()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `slow` run where SLOW is set, as `make slow` does."""
    if not os.environ.get("SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes long: `make slow` runs it"))


def pytest_collection_finish() -> None:
    """What was imported stays to the end; without this, each full collection of garbage walks all of it."""
    gc.collect()
    gc.freeze()
