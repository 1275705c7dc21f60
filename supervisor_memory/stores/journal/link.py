"""Calls from a journal to its store: with a deadline, and none while the store is out of reach."""

import logging
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Final, ParamSpec, TypeVar

from supervisor_memory.bridge import Bridge, seconds_left
from supervisor_memory.errors import (
    BackendError,
    BackendUnavailable,
    Conflict,
    CorruptStore,
    DeadlineExceeded,
    ReadOnlyStore,
    SupervisorMemoryError,
    WasErased,
)
from supervisor_memory.stores.journal.breaker import Breaker

P = ParamSpec("P")
T = TypeVar("T")
_SHARE: Final = 0.5  # of the caller's time left, so that there is some for doing without the store
_HURRIED: Final = 0.25
"""Seconds, or this share of the store's time: with less, giving up is no failure of the store."""
_ANSWERS: Final = (Conflict, WasErased, CorruptStore, ReadOnlyStore)
_log = logging.getLogger("supervisor_memory")


class OutOfReach(BackendUnavailable):
    """The store did not answer in time, or was not asked."""


class NotAsked(OutOfReach):
    """The call was not made: no time was left, or the store has not answered lately."""


class Link:
    """Calls to a store. Threads of the bridge wait for the store; a thread that hangs is left alone."""

    def __init__(self, name: str, bridge: Bridge, breaker: Breaker) -> None:
        self._name, self._bridge, self.breaker = name, bridge, breaker
        self._lock = threading.Lock()
        self._since: float | None = None

    def call(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the store, and wait at most `seconds`, or half of the time that the caller has left.

        Raises:
            OutOfReach: the store does not answer. Unless it is NotAsked, a write may be made all the same.
            SupervisorMemoryError: the store answered with this error.
        """
        given = min(seconds, _SHARE * seconds_left())
        is_hurried = given < min(_HURRIED, _HURRIED * seconds)
        if given <= 0:
            raise NotAsked(f"no time is left to ask {self._name}", backend=self._name)
        if not (self.breaker.is_closed if is_hurried else self.breaker.allows()):
            told = f"{self._name} did not answer lately; it is asked again in {self.breaker.open_for:.0f} s"
            raise NotAsked(told, backend=self._name)
        try:
            if given == inf:  # nobody waits
                answer = function(*args, **kwargs)
            else:
                answer = self._bridge.within(given, function, *args, **kwargs)
        except (BackendError, DeadlineExceeded) as error:
            if isinstance(error, _ANSWERS):
                self._worked()
                raise
            if is_hurried and isinstance(error, DeadlineExceeded):
                told = f"no time was left for {self._name} to answer"
                raise OutOfReach(told, backend=self._name) from error
            raise self._failed(error) from error
        except SupervisorMemoryError:
            self._worked()
            raise
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a client's own, some of which are no Exception
            raise self._failed(error) from error
        self._worked()
        return answer

    def _worked(self) -> None:
        self.breaker.worked()
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            _log.info("%s answers again after %.0f s", self._name, time.monotonic() - since)

    def _failed(self, error: BaseException) -> OutOfReach:
        self.breaker.failed()
        with self._lock:
            is_news, self._since = self._since is None, self._since or time.monotonic()
        told = str(error) if isinstance(error, SupervisorMemoryError) else type(error).__name__
        if is_news:
            trace = None if isinstance(error, SupervisorMemoryError) else error
            what = "%s is out of reach, memory goes on without it: %s"
            _log.warning(what, self._name, told, exc_info=trace)
        return OutOfReach(f"{self._name} does not answer: {told}", backend=self._name)
