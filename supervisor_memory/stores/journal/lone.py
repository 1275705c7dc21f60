"""A lock that only one process at a time can hold."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from supervisor_memory.errors import BackendUnavailable

_open: Final[set[int]] = set()


class Lone:
    """A turn by a lock on a file. It ends at the latest with its process, however that ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def turn(self) -> Iterator[bool]:
        """Try to take the turn for the time of the block; gives False when another process has it.

        Raises:
            BackendUnavailable: the file cannot be opened.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            told = f"{self._path} cannot be opened ({error.strerror}); check its directory"
            raise BackendUnavailable(told, path=str(self._path)) from error
        _open.add(descriptor)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:  # closing alone would leave it to a child that was forked meanwhile
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            if descriptor in _open:
                _open.discard(descriptor)
                os.close(descriptor)


def _after_fork() -> None:
    """Close the parent's locks in a child, which would keep them when the parent dies."""
    while _open:
        with contextlib.suppress(OSError):
            os.close(_open.pop())


os.register_at_fork(after_in_child=_after_fork)
