"""A disk that fails at the n-th write or sync, and counts both: a layer over SQLite's own file access."""

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import pytest

from supervisor_memory.disk import database

_numbers = itertools.count()


class Disk(apsw.VFS):
    """Counts what is done to it. `fails_after` lets that many of `failing` succeed; None: all.

    Args:
        failing: Which operations fail, of "write", "sync" and "truncate".
        error: What they fail with.
        only_once: Whether the disk works again after one failure.
    """

    def __init__(
        self,
        *,
        failing: tuple[str, ...] = ("write",),
        error: type[apsw.Error] = apsw.FullError,
    ) -> None:
        self.name_ = f"disk-{next(_numbers)}"
        self.failing, self.error = failing, error
        self.fails_after: int | None = None
        self.done: Counter[str] = Counter()
        self.failed = 0
        super().__init__(self.name_, "")

    def xOpen(self, name: Any, flags: list[int]) -> "_File":  # noqa: N802
        return _File(self, name, flags)

    def before(self, operation: str) -> None:
        if operation in self.failing and self.fails_after is not None:
            if self.fails_after <= 0:
                self.failed += 1
                raise self.error(f"the disk fails at a {operation}")
            self.fails_after -= 1
        self.done[operation] += 1


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.before("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.before("truncate")
        super().xTruncate(size)


@contextmanager
def on(disk: Disk, patch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Within the block, whoever opens a database opens it on this disk."""

    class OnDisk(database.Opened):
        def __init__(self, name: str, *, flags: int = 6) -> None:
            super().__init__(name, flags=flags, vfs=disk.name_)

    with patch.context() as patched:
        patched.setattr(database, "Opened", OnDisk)
        yield disk
