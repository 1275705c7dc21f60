"""A circuit breaker: a failing server is left alone for a while, then asked by one call at a time."""

import threading
import time
from collections.abc import Callable


class Breaker:
    """A circuit breaker: closed, open, and half open while a single call tries.

    Args:
        failures: How many failures in a row open it.
        seconds: How long it stays open before a call may try.
        clock: Monotonic seconds.

    Source: M. Nygard, "Release It!".
    """

    def __init__(
        self, *, failures: int = 3, seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._clock = failures, seconds, clock
        self._lock = threading.Lock()
        self._failed = 0
        self._closed_again: float | None = None

    def allows(self) -> bool:
        """Whether a call may be made. After an allowed call, say `worked` or `failed`."""
        with self._lock:
            if self._closed_again is None:
                return True
            if self._clock() < self._closed_again:
                return False
            self._closed_again = self._clock() + self._seconds  # one tries, the others go on waiting
            return True

    def worked(self) -> None:
        """Note that the server answered, even with a refusal."""
        with self._lock:
            self._failed, self._closed_again = 0, None

    def failed(self) -> None:
        """Note that the server did not answer, or not in time."""
        with self._lock:
            self._failed += 1
            if self._failed >= self._most:
                self._closed_again = self._clock() + self._seconds

    @property
    def is_closed(self) -> bool:
        """Whether calls may be made freely."""
        with self._lock:
            return self._closed_again is None

    @property
    def open_for(self) -> float:
        """Seconds until a call may be made; 0: now."""
        with self._lock:
            return 0.0 if self._closed_again is None else max(0.0, self._closed_again - self._clock())
