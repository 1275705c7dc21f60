"""Work in the background: forgetting by rule, and the vectors of session messages."""

import logging
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Final

from supervisor_memory.errors import ReadOnlyStore
from supervisor_memory.model.records import SESSION_FAMILY, Namespace, Record
from supervisor_memory.ports import Services, guarded
from supervisor_memory.upkeep.forget import forget
from supervisor_memory.upkeep.reembed import embedding_messages
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


_MOST_NOTED: Final = 10_000
_SECONDS_A_USER: Final = 2.0
_SECONDS_TO_CLOSE: Final = 1.0
_SECONDS_OF_REST: Final = 60.0


class MessageVectors:
    """Embeds session messages: those just kept, and, once a process, all that a user has without a vector.

    The store tells which messages wait. Noted here is only where to look next, so what a process leaves is
    embedded by the next one that recalls or writes for the user. One thread works; users take turns. After a
    failure it rests for a minute.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Condition()
        self._ids: set[str] = set()
        self._users: OrderedDict[str, None] = OrderedDict()
        self._known: set[str] = set()
        """The users who are among `_users`, or were."""
        self._is_working = False
        self._rests_until = -inf

    def after_a_write(self, user_id: str, kept: Sequence[Record]) -> None:
        """Embed the session messages among these records later; does not wait, and never raises."""
        if ids := [r.id for r in kept if r.family == SESSION_FAMILY and r.status == "active"]:
            self._note(user_id, ids)

    def after_a_recall(self, user_id: str) -> None:
        """Look once for messages that an earlier process left; does not wait, and never raises."""
        if self._pid != os.getpid() or user_id not in self._known or self._ids or self._users:
            self._note(user_id)

    def next_message(self, user_id: str) -> None:
        """Without background workers: embed a user's messages now, in the time of a write."""
        if not self._services.settings.queue_worker:
            self._embed_within(self._services.settings.write_timeout_ms / 1000, user_id)

    def flush(self, *, seconds: float) -> bool:
        """Embed all that wait in the store. False: the time ran out, or the embedder or the store failed."""
        until = time.monotonic() + seconds
        self._wait(seconds)
        return self._embed_within(until - time.monotonic())

    def close(self) -> None:
        """Wait a second for what was noted, and another for the commit under way; begin nothing more."""
        for _ in range(2):
            self._wait(_SECONDS_TO_CLOSE)
            self._is_closed = True

    def _wait(self, seconds: float) -> None:
        with self._locked():
            self._lock.wait_for(lambda: not self._is_working, timeout=seconds)

    def _locked(self) -> threading.Condition:
        if self._pid != os.getpid():  # threads do not survive a fork, and a lock may have been held
            self._reset()
        return self._lock

    def _note(self, user_id: str, ids: Sequence[str] = ()) -> None:
        if self._services.embedder is None or not self._services.settings.queue_worker:
            return
        with self._locked():
            if max(len(self._known), len(self._ids)) > _MOST_NOTED:  # the store knows them
                self._known.clear()
                self._ids.clear()
            self._ids.update(ids)
            if user_id not in self._known:
                self._known.add(user_id)
                self._users[user_id] = None
            if self._is_working or not self._may_work():
                return
            self._is_working = True
        self._services.bridge.aside(self._work)

    def _may_work(self) -> bool:
        return not self._is_closed and time.monotonic() >= self._rests_until

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._may_work() or not (self._ids or self._users):
                    self._is_working = False
                    self._lock.notify_all()
                    return
                ids, self._ids = self._ids, set()
                user_id = None if ids else self._users.popitem(last=False)[0]
            if not self._embed(_SECONDS_A_USER, user_id, ids):
                with self._lock:
                    self._ids |= ids
                    self._users.update({} if user_id is None else {user_id: None})

    def _embed_within(self, seconds: float, user_id: str | None = None) -> bool:
        embed = partial(self._embed, seconds, user_id)
        within = partial(self._services.bridge.within, seconds, embed)
        return seconds > 0 and guarded(within, otherwise=lambda error: False)

    def _embed(self, seconds: float, user_id: str | None, ids: Collection[str] = ()) -> bool:
        """Whether all were embedded; after so many seconds, only the commit under way is finished."""
        until = time.monotonic() + seconds

        def embed() -> bool:
            for _ in embedding_messages(self._services, user_id, ids=ids or None):
                if self._is_closed or time.monotonic() >= until:
                    return False
            return True

        def failed(error: BaseException) -> bool:
            rest = inf if isinstance(error, ReadOnlyStore) else _SECONDS_OF_REST
            self._rests_until = time.monotonic() + rest
            return False

        return self._services.embedder is None or guarded(embed, otherwise=failed)
