"""A value made once in each process, on first use."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Holds a value that must neither be made twice nor be carried over a fork, such as a model session.

    Threads of one process share the value; the first to ask makes it while the others wait. A forked
    child makes its own, under a lock of its own: the parent's lock may have been held by a thread
    that does not exist in the child. A failure to make it is raised and not remembered.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # Values of a parent are kept in the child on purpose: freeing a session waits for its threads,
        # and they did not survive the fork.
        self._values: dict[int, T] = {}
        self._locks: dict[int, threading.Lock] = {}

    def get(self) -> T:
        """Return this process's value, making it first if need be."""
        process = os.getpid()
        if process not in self._values:
            with self._locks.setdefault(process, threading.Lock()):
                if process not in self._values:
                    self._values[process] = self._make()
        return self._values[process]

    def __getstate__(self) -> dict[str, object]:
        """A pickled copy (multiprocessing's spawn) starts empty."""
        return {"_make": self._make, "_values": {}, "_locks": {}}
