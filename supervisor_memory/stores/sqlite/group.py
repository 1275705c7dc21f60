"""Group commit: the commits of many threads in one transaction, so that they wait for the disk together."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

import apsw

from supervisor_memory.disk.database import Database
from supervisor_memory.errors import (
    BackendUnavailable,
    CorruptStore,
    ReadOnlyStore,
    SupervisorMemoryError,
)
from supervisor_memory.stores.protocol import Commit, Committed

__all__ = ["Group"]

Apply = Callable[[apsw.Connection, Commit], Committed]
_MOST = 64
_LONGEST_WAIT = 0.5  # seconds; the thread that should call may have been interrupted


class Group:
    """The first thread commits for all threads that wait by then; each gets its own answer.

    An answer is given after the transaction has been committed, never before. A thread with its answer goes
    on at once, while a thread that came meanwhile commits the next group.

    Args:
        apply: Makes the changes of a commit on a connection inside a transaction, or raises.
    """

    def __init__(self, database: Database, apply: Apply) -> None:
        self._database = database
        self._apply = apply
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self._waiting: deque[_Request] = deque()

    def commit(self, commit: Commit) -> Committed:
        """Apply a commit, all of it or nothing.

        Raises:
            SupervisorMemoryError: as `apply` or the database raised it; nothing of this commit was stored.
        """
        if self._database.is_writing:  # it is part of a transaction of the caller's
            with self._database.writing() as connection:
                return self._apply(connection, commit)
        if self._pid != os.getpid():  # another thread of the parent may have held the lock
            self._reset()
        request = _Request(commit)
        self._waiting.append(request)
        while not request.is_answered:
            if self._turn.acquire(blocking=False):
                try:
                    self._lead([self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))])
                finally:
                    self._turn.release()
                    self._call_the_next()
            else:
                request.wait()
        return request.answer()

    def _call_the_next(self) -> None:
        with contextlib.suppress(IndexError):  # nobody waits, or somebody has just taken it along
            self._waiting[0].call()

    def _lead(self, requests: "list[_Request]") -> None:
        if len(requests) > 1 and self._together(requests):
            return
        for request in requests:
            self._alone(request)

    def _alone(self, request: "_Request") -> None:
        try:
            with self._database.writing() as connection:
                done = self._apply(connection, request.commit)
            request.done(done)
        except BaseException as error:  # even an error that ends this thread: nobody shall wait for ever
            request.failed(error)
            if not isinstance(error, Exception):
                raise

    def _together(self, requests: "list[_Request]") -> bool:
        """Commit all requests in one transaction. True: each has its answer; False: nothing was stored."""
        answers: list[Committed | SupervisorMemoryError] = []
        try:
            with self._database.writing() as connection:
                answers += [self._in_savepoint(connection, request.commit) for request in requests]
        except (BackendUnavailable, ReadOnlyStore, CorruptStore) as error:  # the same for each of them
            for request in requests:
                request.failed(error)
            return True
        except Exception:  # noqa: BLE001  # whose fault it was shows when each is tried alone
            return False
        except BaseException as error:
            for request in requests:
                request.failed(error)
            raise
        for request, answer in zip(requests, answers, strict=True):
            request.failed(answer) if isinstance(answer, SupervisorMemoryError) else request.done(answer)
        return True

    def _in_savepoint(self, connection: apsw.Connection, commit: Commit) -> Committed | SupervisorMemoryError:
        connection.execute("SAVEPOINT one")
        try:
            return self._apply(connection, commit)
        except SupervisorMemoryError as error:
            connection.execute("ROLLBACK TO one")
            return error
        finally:
            if connection.in_transaction:
                connection.execute("RELEASE one")


class _Request:
    """A commit that waits for its answer."""

    def __init__(self, commit: Commit) -> None:
        self.commit = commit
        self.is_answered = False
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._answer: Committed | None = None
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Wait for a call, which means an answer or the lead; may return without one."""
        with contextlib.suppress(Empty):
            self._calls.get(timeout=_LONGEST_WAIT)

    def call(self) -> None:
        """End its `wait`, or the next one."""
        self._calls.put(None)

    def done(self, answer: Committed) -> None:
        self._answer, self.is_answered = answer, True
        self.call()

    def failed(self, error: BaseException) -> None:
        self._error, self.is_answered = error, True
        self.call()

    def answer(self) -> Committed:
        if self._answer is not None:
            return self._answer
        assert self._error is not None
        raise self._error
