"""Forgetting by itself: after a write, in the background, at most once an hour for each user."""

import logging
import threading
from collections import OrderedDict
from typing import Final

from supervisor_memory.ports import Services, guarded
from supervisor_memory.upkeep.forget import forget
from supervisor_memory.upkeep.rules import BY_ITSELF

__all__ = ["Rarely"]

_HOUR: Final = 3600.0
_MOST_USERS: Final = 10_000
_log = logging.getLogger("supervisor_memory")


class Rarely:
    """Remembers for whom it has looked. Where nothing is due, it costs four small questions to the store.

    A process knows of itself alone. Two that look in the same hour do no harm: what one of them takes is not
    there any more for the other.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._looked: OrderedDict[str, float] = OrderedDict()

    def after_a_write(self, user_id: str) -> None:
        """Look in the background, unless that was done within the hour; does not wait, and never raises."""
        if self._services.settings.forget in BY_ITSELF and self._is_due(user_id):
            self._services.bridge.background(lambda: self._look(user_id))

    def _is_due(self, user_id: str) -> bool:
        now = self._services.clock()
        with self._lock:
            last = self._looked.get(user_id)
            if last is not None and abs(now - last) < _HOUR:
                return False
            self._looked[user_id] = now
            self._looked.move_to_end(user_id)
            if len(self._looked) > _MOST_USERS:
                self._looked.popitem(last=False)
            return True

    def _look(self, user_id: str) -> None:
        settings = self._services.settings
        milliseconds = settings.write_timeout_ms + (settings.llm_timeout_ms if self._services.complete else 0)

        def look() -> None:
            seconds = milliseconds / 1000
            extent = BY_ITSELF[settings.forget]
            done = forget(self._services, user_id, extent=extent, actor="supervisor", seconds=seconds)
            if done.taken:
                counts = ", ".join(f"{count} {rule}" for rule, count in done.counts.items())
                _log.info("set aside %d records: %s", len(done.taken), counts)

        guarded(look, otherwise=lambda error: None)
