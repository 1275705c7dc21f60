"""Calls to a LangGraph store: one at a time, from the right thread, with its errors as ours.

The event loop of an async store is asked first whether it answers: a thread that waits for a blocked or
ended loop would never come back.
"""

import asyncio
import contextlib
import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp

from supervisor_memory.disk.database import LOCK_SECONDS
from supervisor_memory.errors import BackendError, BackendUnavailable
from supervisor_memory.model.records import Namespace

_LOOP_SECONDS: Final = 0.3
_PAGE: Final = 1_000
_MOST_GETS: Final = 500
_TRIES: Final = 5
_READS: Final = 3
_log = logging.getLogger("supervisor_memory")
_locks: "weakref.WeakValueDictionary[int, threading.RLock]" = weakref.WeakValueDictionary()
"""A lock for each store object, by the object's id; `StoreCalls` keeps lock and store alive together."""
_making_locks = threading.Lock()


class StoreCalls:
    """The calls to a store. All `StoreCalls` over the same store object share a lock."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store
        self.name = type(store).__name__
        with _making_locks:
            self._lock = _locks.setdefault(id(store), threading.RLock())

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other backends over this store object from reading and writing within the block.

        Raises:
            BackendUnavailable: another backend took too long, or this is the thread of the store's loop.
        """
        # Before the lock is waited for: its holder may be waiting for this very thread.
        with contextlib.suppress(RuntimeError):  # no loop runs here
            if asyncio.get_running_loop() is self._loop():
                raise self._on_loop_thread()
        self._ask_loop()
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            told = (
                f"waited {LOCK_SECONDS:g} s for other calls to {self.name}; look whether its database hangs"
            )
            raise BackendUnavailable(told, store=self.name)
        try:
            yield
        finally:
            self._lock.release()

    @property
    def is_volatile(self) -> bool:
        """Whether the store's content is gone when this process ends."""
        from langgraph.store.memory import InMemoryStore

        return isinstance(self.store, InMemoryStore)

    def gets(self, ops: Sequence[GetOp]) -> Sequence[Item | None]:
        """The items asked for, in order; None for a missing item."""
        found: list[Item | None] = []
        for start in range(0, len(ops), _MOST_GETS):
            found += self._read(ops[start : start + _MOST_GETS])
        return found

    def puts(self, ops: Sequence[PutOp]) -> None:
        """Write items, all in one call to the store. After an error they may be written all the same."""
        self._batch("write", ops)

    def items(self, namespace: Namespace, *, where: dict[str, Any] | None = None) -> Sequence[Item]:
        """All items in a namespace and below it; with `where`, only items with these values."""
        size = _PAGE
        for _ in range(_TRIES):
            rows = list(self._pages(namespace, size, where))
            found = {(item.namespace, item.key): item for item in rows}
            if len(found) == len(rows):
                # Some stores compare namespaces by how they begin, or without regard to case.
                return [item for item in rows if item.namespace[: len(namespace)] == namespace]
            # Pages that overlap leave something out: stores order items by time, and many share one.
            size = 2 * max(size, len(rows))
        told = f"{self.name} gave the same item twice while {'/'.join(namespace)} was read; try again"
        raise BackendUnavailable(told, store=self.name)

    def _pages(self, namespace: Namespace, size: int, where: dict[str, Any] | None) -> Iterator[Item]:
        offset = 0
        while True:
            search = SearchOp(namespace, filter=where, limit=size, offset=offset, refresh_ttl=False)
            (page,) = self._read([search])
            yield from page
            if len(page) < size:
                return
            offset += len(page)

    def _read(self, ops: Sequence[Op]) -> Sequence[Any]:
        # InMemoryStore fails a search while a thread of the host writes; a pool can hold a dead connection.
        return self._batch("read", ops, tries=_READS)

    def _batch(self, verb: str, ops: Sequence[Op], *, tries: int = 1) -> Sequence[Any]:
        self._ask_loop()
        try:
            results = self.store.batch(ops)
        except asyncio.InvalidStateError as error:
            raise self._on_loop_thread() from error
        except Exception as error:
            if tries > 1:
                return self._batch(verb, ops, tries=tries - 1)
            # Its text goes to the log alone: it may name hosts and keys, and ours may reach a model.
            _log.warning("%s failed in a %s", self.name, verb, exc_info=error)
            raise BackendError(
                f"{self.name} failed in a {verb} with {type(error).__name__}; see the log, and check its "
                "database and whether `store.setup()` was called",
                store=self.name,
                verb=verb,
            ) from error
        if not isinstance(results, list | tuple) or len(results) != len(ops):
            raise BackendError(
                f"{self.name} answered a {verb} of {len(ops)} with {type(results).__name__}; "
                "`batch` must give one result for each operation",
                store=self.name,
                verb=verb,
            )
        return results

    def _loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of a store that is async at heart (AsyncBatchedBaseStore)."""
        return getattr(self.store, "_loop", None)

    def _ask_loop(self) -> None:
        loop = self._loop()
        if loop is None:
            return
        answered = threading.Event()
        with contextlib.suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(answered.set)
        if not answered.wait(_LOOP_SECONDS if loop.is_running() else 0):
            raise BackendUnavailable(
                f"the event loop of {self.name} does not answer, so nothing was asked of it; from code "
                "that runs on that loop use the async verbs (`await memory.arecall(…)`), and keep the loop "
                "running as long as the store is used",
                store=self.name,
            )

    def _on_loop_thread(self) -> BackendUnavailable:
        return BackendUnavailable(
            f"{self.name} cannot be called synchronously on the thread of its own event loop; use the async "
            "verbs (`await memory.asearch(…)`), or a synchronous store",
            store=self.name,
        )
