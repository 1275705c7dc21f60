"""What has to hold while a process forks: nobody writes, nobody reads, and nothing is open.

SQLite would believe that the child holds its parent's locks. And what another thread holds at that moment, a
connection or the lock of a cache, would stay held in the child for ever.
"""

import os
import threading
import weakref
from typing import Final, Protocol

__all__ = ["known", "readers", "stopped_reading", "wait_for_forks"]


class Open(Protocol):
    """What has files open, and is told of forks."""

    @property
    def is_read(self) -> bool:
        """Whether another thread reads it now."""
        ...

    def before_fork(self) -> None:
        """Let no other thread write until `after_fork`."""
        ...

    def let_go(self) -> None:
        """Close all files."""
        ...

    def after_fork(self) -> None: ...


known: "weakref.WeakSet[Open]" = weakref.WeakSet()
readers: Final = threading.Condition()
"""Held to begin and to end reading; not the lock of writers, so that nobody reads later for one who waits."""

_READERS_SECONDS: Final = 1.0
_forks: list[int] = []


def wait_for_forks() -> None:
    """With `readers` held: wait until no other thread forks."""
    if _forks:
        readers.wait_for(lambda: not _forks)


def stopped_reading() -> None:
    """With `readers` held: tell a thread that forks."""
    if _forks:
        readers.notify_all()


def _before() -> None:
    opened = list(known)
    for each in opened:
        each.before_fork()
    readers.acquire()
    _forks.append(threading.get_ident())
    readers.wait_for(lambda: not any(each.is_read for each in opened), timeout=_READERS_SECONDS)
    for each in opened:
        each.let_go()


def _after() -> None:
    _forks.clear()
    readers.notify_all()
    readers.release()
    for each in list(known):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
