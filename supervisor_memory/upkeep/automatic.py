"""Forgetting in the background: after a write, once an hour for each user, or if a namespace may be full."""

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from supervisor_memory.model.records import Namespace
from supervisor_memory.ports import Services, guarded
from supervisor_memory.upkeep.forget import forget
from supervisor_memory.upkeep.rules import BY_ITSELF, WITHIN_CAPACITY, Extent

_HOUR: Final = 3600.0
_MOST_USERS: Final = 10_000
_log = logging.getLogger("supervisor_memory")


@dataclass(slots=True)
class _Look:
    """The time of the latest look at a user's records, the records added since, and the free places.

    `places` counts from the same moment as `added`; it is infinite while a background run counts.
    """

    at: float
    added: Counter[Namespace] = field(default_factory=Counter)
    places: dict[Namespace, float] = field(default_factory=dict)

    def may_be_full(self) -> frozenset[Namespace]:
        """The namespaces with more additions than free places, or with uncounted places."""
        return frozenset(name for name, added in self.added.items() if added > self.places.get(name, 0))


class Rarely:
    """Starts background forgetting for a user, at most once an hour unless a namespace may be full.

    If no rule applies, a run costs a few small queries. Each process counts by itself; two runs in the same
    hour do no harm, since the second finds nothing left to take.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._looks: OrderedDict[str, _Look] = OrderedDict()

    def after_a_write(self, user_id: str, *, added: Sequence[Namespace]) -> None:
        """Start a background run if one is due; does not wait, and never raises.

        Args:
            added: The namespace of each new record.
        """
        if self._services.settings.forget not in BY_ITSELF:
            return
        look, is_hourly = self._look_of(user_id)
        with self._lock:
            look.added.update(added)
            full = look.may_be_full()
            if not is_hourly and not full:
                return
            look.places.update(dict.fromkeys(full, inf))
        by_itself = BY_ITSELF[self._services.settings.forget]
        within = replace(WITHIN_CAPACITY, namespaces=full)
        extents = (by_itself, WITHIN_CAPACITY, within) if is_hourly else (within,)
        self._services.bridge.background(lambda: self._look(user_id, look, extents))

    def _look_of(self, user_id: str) -> tuple[_Look, bool]:
        """The latest look at a user's records, and whether it is a new one because an hour has passed."""
        now = self._services.clock()
        with self._lock:
            look = self._looks.get(user_id)
            if look is not None and abs(now - look.at) < _HOUR:
                return look, False
            look = self._looks[user_id] = _Look(now)
            self._looks.move_to_end(user_id)
            if len(self._looks) > _MOST_USERS:
                self._looks.popitem(last=False)
            return look, True

    def _look(self, user_id: str, look: _Look, extents: tuple[Extent, ...]) -> None:
        settings = self._services.settings
        milliseconds = settings.write_timeout_ms + (settings.llm_timeout_ms if self._services.complete else 0)

        def once(extent: Extent) -> None:
            with self._lock:
                before = look.added.copy()
            seconds = milliseconds / 1000
            done = forget(self._services, user_id, extent=extent, actor="supervisor", seconds=seconds)
            if done.taken:
                counts = ", ".join(f"{count} {rule}" for rule, count in done.counts.items())
                _log.info("set aside %d records: %s", len(done.taken), counts)
            with self._lock:
                look.places.update({name: before[name] + free for name, free in done.free.items()})

        for extent in extents:
            guarded(lambda extent=extent: once(extent), otherwise=lambda error: None)  # type: ignore[misc]
