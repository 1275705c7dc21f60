"""Runs the synchronous core with deadlines, on threads, and from event loops.

The only module that starts a thread or touches an event loop. All threads are daemons, so that a
call which hangs for ever never keeps the process from ending.
"""

import asyncio
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from supervisor_memory.errors import DeadlineExceeded

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")
Outer = TypeVar("Outer")

_IDLE_SECONDS = 5.0
"""How long a thread waits for work before it ends; the next call begins another."""
_INNER_THREADS = 16
_OUTER_THREADS = 32
_SOON = 0.02
"""Seconds by which a call inside another one may be late beyond its own deadline."""
_here = threading.local()
_log = logging.getLogger("supervisor_memory")


def _deadline() -> float:
    """The deadline of the caller that waits for this thread; infinity where it has none."""
    until: float = getattr(_here, "until", inf)
    return until


def seconds_left() -> float:
    """The seconds until the deadline of the caller that waits for this thread; infinity where it has none."""
    return _deadline() - time.monotonic()


_Job: TypeAlias = Callable[[], Callable[[], object]]
"""A job returns a function that wakes the waiting thread. It is called once the worker is free again, so that
the woken thread need not wait for the worker."""


class _HandedCall(Generic[T]):
    """Runs a call on another thread in the caller's context, while the caller waits for its result.

    A turn makes a dozen such calls; a future would do the same at three times the cost.
    """

    __slots__ = ("_call", "_claimed", "_context", "_done", "_error", "_result")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call, self._context = call, contextvars.copy_context()
        self._claimed, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def claim(self) -> bool:
        """Claim the call, to make it or to drop it; False: another thread has claimed it."""
        return self._claimed.acquire(blocking=False)

    def __call__(self) -> Callable[[], None]:
        if self.claim():
            try:
                self._result = self._context.run(self._call)
            except BaseException as error:  # noqa: BLE001  # `result` raises it in the waiting thread
                self._error = error
        return self._done.release

    def wait(self, *, seconds: float) -> bool:
        """Wait at most so many seconds; True once the call is made or dropped."""
        return self._done.acquire(timeout=min(max(seconds, 0), threading.TIMEOUT_MAX))

    def result(self) -> T:
        """Return the call's result or raise its error; to be called once, when the call is done."""
        if (error := self._error) is None:
            return self._result
        try:
            raise error
        finally:
            del error, self._error  # whose traceback leads back here


class _Workers:
    """A pool of up to `size` daemon threads, begun as needed; each job runs in its caller's context."""

    def __init__(self, name: str, *, size: int) -> None:
        self._name = name
        self.size = size
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self.late: set[_Job] = set()
        """Calls that have begun and that nobody waits for any more."""
        self._pid = os.getpid()

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        context = contextvars.copy_context()

        def job() -> Callable[[], object]:
            if not future.set_running_or_notify_cancel():
                return lambda: None
            try:
                return partial(future.set_result, context.run(call))
            except BaseException as error:  # noqa: BLE001  # the future raises it where it is read
                return partial(future.set_exception, error)

        self.put(job)
        return future

    def all_hang(self) -> bool:
        """Whether every thread is busy with a call that nobody waits for any more."""
        self._begin_anew_after_a_fork()
        return len(self.late) >= self.size

    def put(self, job: _Job) -> None:
        """Queue a job for a thread."""
        self._begin_anew_after_a_fork()
        with self._lock:
            self._busy += 1
            if self._busy > self._threads and self._threads < self.size:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._jobs.put(job)

    def _begin_anew_after_a_fork(self) -> None:
        if self._pid != os.getpid():  # threads do not survive one
            self._reset()

    def _work(self) -> None:
        jobs, lock = self._jobs, self._lock
        while True:
            try:
                job = jobs.get(timeout=_IDLE_SECONDS)
            except Empty:
                with lock:
                    if self._busy < self._threads:  # else a job is on its way to the queue
                        self._threads -= 1
                        return
                continue
            tell = job()
            with lock:
                self._busy -= 1
            tell()
            if self.late:
                self.late.discard(job)
            del job, tell  # and the context that they keep

    def abandon(self, call: _HandedCall[Any]) -> bool:
        """Give up waiting for a call; False: it has just ended. A call that has not begun is never made; one
        that has begun keeps its thread until it ends."""
        if call.claim():
            return True
        self.late.add(call)
        if call.wait(seconds=0):
            self.late.discard(call)
            return False
        return True


class Bridge:
    """Calls with a deadline, calls from an event loop, and work in the background."""

    def __init__(self) -> None:
        # A nested call must never wait for a thread that an outer call holds, so each level has its own pool.
        self._inner = _Workers("memory-io", size=_INNER_THREADS)
        self._nested = _Workers("memory-step", size=_INNER_THREADS)
        self._outer = _Workers("memory", size=_OUTER_THREADS)
        self._pending: set[Future[object]] = set()
        self._lock = threading.Lock()

    def within(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a call, or raise DeadlineExceeded after so many seconds.

        The thread of a call that is late is left to finish alone; when all threads hang in earlier
        calls the error comes at once. A call from inside another one that will be late no later needs
        no thread of its own.
        """
        name = getattr(function, "__qualname__", "call")
        until = time.monotonic() + seconds
        outer_deadline = _deadline()
        if outer_deadline - until < _SOON:
            return function(*args, **kwargs)
        workers = self._inner if outer_deadline == inf else self._nested
        if workers.all_hang():
            raise DeadlineExceeded(
                f"{name}: all {workers.size} memory threads hang in earlier calls; "
                "check the backend and the embedder with `supervisor-memory doctor`"
            )

        def call() -> T:
            _here.until = until
            try:
                return function(*args, **kwargs)
            finally:
                _here.until = inf

        handed = _HandedCall(call)
        workers.put(handed)
        if not handed.wait(seconds=seconds) and workers.abandon(handed):
            raise DeadlineExceeded(
                f"{name} took longer than {seconds * 1000:.0f} ms; the deadlines are "
                "MEMORY_SEARCH_TIMEOUT_MS for reads and MEMORY_WRITE_TIMEOUT_MS for writes"
            )
        return handed.result()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a synchronous call on a thread, without blocking the event loop.

        A cancelled caller stops waiting; what was begun is finished, so that nothing is half written.
        """
        return await asyncio.wrap_future(_shielded(self._outer.submit(lambda: function(*args, **kwargs))))

    def background(self, function: Callable[[], object]) -> None:
        """Run a call later, in its own thread; `drain` waits for it."""
        future = self._outer.submit(partial(_logged, function))
        with self._lock:
            self._pending.add(future)
        future.add_done_callback(self._forget)

    def aside(self, function: Callable[[], object]) -> None:
        """Run a call later, in its own thread; `drain` does not wait for it."""
        self._outer.submit(partial(_logged, function))

    def _forget(self, future: "Future[object]") -> None:
        with self._lock:
            self._pending.discard(future)

    def drain(self, *, seconds: float) -> bool:
        """Wait until nothing is left in the background. False when the time ran out."""
        with self._lock:
            waiting = list(self._pending)
        for future in waiting:
            try:
                future.exception(timeout=seconds)
            except FutureTimeout:
                return False
        return True


def _logged(function: Callable[[], object]) -> object:
    """Make a call whose result nobody reads, and log the error that it raises."""
    try:
        return function()
    except Exception:
        _log.exception("work in the background failed")
        raise


def _shielded(future: "Future[T]") -> "Future[T]":
    """A future that leaves its work running when it is cancelled."""
    outer: Future[T] = Future()

    def settle(done: "Future[T]") -> None:
        if outer.set_running_or_notify_cancel():
            if error := done.exception():
                outer.set_exception(error)
            else:
                outer.set_result(done.result())

    future.add_done_callback(settle)
    return outer


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, on one of memory's own threads: they have no event loop."""
    return asyncio.run(coroutine)


@contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable a value inside the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class _HasBridge(Protocol):
    @property
    def bridge(self) -> Bridge: ...


class _Served(Protocol):
    @property
    def services(self) -> _HasBridge: ...


S = TypeVar("S", bound=_Served)


def passed_on(
    inner: Callable[[Outer], D], verb: Callable[Concatenate[D, P], T]
) -> Callable[Concatenate[Outer, P], T]:
    """A verb of an inner object as a verb of the outer one."""

    def called(self: Outer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verb(inner(self), *args, **kwargs)

    update_wrapper(called, verb)
    return called


def twin(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The async twin of a verb: the same call, off the event loop."""

    async def called(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.services.bridge.run(partial(verb, self), *args, **kwargs)

    update_wrapper(called, verb)
    return called
