"""Connections with a time-out: uvicorn alone lets a silent client hold one for ever."""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS: Final = 15.0
"""How long a connection may take for the head of its next request, from the first byte to the last."""
MOST_WAITING: Final = 250
"""Connections whose request has not wholly come; the one that waits longest makes room for another."""
BACKLOG: Final = 100
"""Connections that are taken at once. Fewer than may wait, even twice: what came with them is read before
one of them is closed for another."""


class Connection(H11Protocol):
    """A connection of uvicorn that is closed when it is idle for too long, or when there are too many.

    The time is not prolonged by bytes that trickle in. What is being answered is never cut off.
    """

    _since: float
    _deadline: asyncio.TimerHandle | None = None

    @property
    def _waits(self) -> bool:
        """Whether a request, or the rest of one, has still to come."""
        cycle = self.cycle
        return not self.transport.is_closing() and (
            cycle is None or cycle.response_complete or cycle.more_body
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._wait()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._has_come()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._has_come()
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(IDLE_SECONDS, self.transport.abort)
        waiting = [each for each in self.connections if isinstance(each, Connection) and each._waits]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda each: each._since).transport.abort()

    def _has_come(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
