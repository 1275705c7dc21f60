"""Background work: forgetting by rule, vectors of session messages, digests of sessions."""

import atexit
import logging
import os
import threading
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import ClassVar, Final

from supervisor_memory.errors import BackendUnavailable
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
        """The namespaces that may be full: more additions than free places, or free places unknown."""
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


_SECONDS_A_TURN: Final = 2.0
_SECONDS_OF_REST: Final = 60.0
_SECONDS_OF_A_STEP: Final = 600.0
"""What hangs for so long is left alone."""
_SECONDS_AT_THE_END: Final = 20.0
_OPENED: "weakref.WeakSet[_BackgroundWork]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for each in list(_OPENED):
        each.end()


class _BackgroundWork:
    """A base for background work on users, read off the state of the store; nothing here raises.

    Noted here is only where to look next, so what a process leaves is done by the next one that recalls or
    writes for the user. After a failure it rests for a minute.
    """

    pause: ClassVar[float] = 0.0
    """Seconds that work waits for more, unless somebody waits for it."""

    def __init__(self, services: Services) -> None:
        self._services, self._is_closed = services, False
        self._reset()
        _OPENED.add(self)

    def _reset(self) -> None:
        self._pid, self._changed = os.getpid(), threading.Condition()
        self._ids: set[str] = set()
        self._users: OrderedDict[str, None] = OrderedDict()
        self._known: dict[str, str | None] = {}
        self._is_working, self._rests_until = False, -inf
        self._waiting = 0

    def _note(self, user_id: str, ids: Collection[str] = (), *, place: str | None = None) -> None:
        """Queue some records and, unless their place is known, their user for later work."""
        if not self._services.settings.queue_worker:
            return
        with self._locked():
            if len(self._known) + len(self._ids) > _MOST_USERS:  # the store knows them
                self._known, self._ids = {}, set()
            self._ids.update(ids)
            if self._known.get(user_id, self) != place:
                self._known[user_id] = place
                self._users[user_id] = None
            if self._is_working or not self._has_work():
                return
            self._is_working = True
        self._services.bridge.aside(self._work)

    def flush(self, *, seconds: float, user_id: str | None = None) -> bool:
        """Do all the work that waits, of everybody or of a user. False: time ran out, or something failed."""
        until = time.monotonic() + seconds
        self._wait(seconds)
        left = until - time.monotonic()
        work = partial(self._services.bridge.within, left, self._do_work, left, user_id)
        return left > 0 and guarded(work, otherwise=lambda error: False)

    def close(self) -> None:
        """Begin nothing more; wait a second for queued work, and another for the commit under way."""
        for _ in range(2):
            self._wait(1.0)
            self._is_closed = True

    def end(self) -> None:
        """Begin nothing more, and wait for the commit under way: its thread dies with the interpreter."""
        self._is_closed = True
        self._wait(_SECONDS_AT_THE_END)

    def _wait(self, seconds: float) -> None:
        with self._locked():
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_working, timeout=seconds)
            self._waiting -= 1

    def _locked(self) -> threading.Condition:
        if self._pid != os.getpid():  # threads do not survive a fork, and a lock may have been held
            self._reset()
        return self._changed

    def _has_work(self) -> bool:
        may_work = not self._is_closed and time.monotonic() >= self._rests_until
        return may_work and bool(self._ids or self._users)

    def _work(self) -> None:
        """Do the queued work: for records just kept first, then user by user."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting, timeout=self.pause)
        while True:
            with self._changed:
                if not self._has_work():
                    self._is_working = False
                    self._changed.notify_all()
                    return
                ids, self._ids = self._ids, set()
                users = {} if ids else {self._users.popitem(last=False)[0]: None}
            if not self._do_work(_SECONDS_A_TURN, next(iter(users), None), ids or None):
                with self._changed:
                    self._ids |= ids
                    self._users.update(users)

    def _do_work(
        self, seconds: float, user_id: str | None = None, ids: Collection[str] | None = None
    ) -> bool:
        """Whether all was done; after so many seconds, only the commit under way is finished."""
        until = time.monotonic() + seconds

        def work() -> bool:
            try:
                steps = self._steps(user_id, ids)
                return not any(self._is_closed or time.monotonic() >= until for _ in steps)
            except BackendUnavailable:
                if self._is_closed:  # and the store with it, which no step under way knows
                    return False
                raise

        def failed(error: BaseException) -> bool:
            self._rests_until = time.monotonic() + _SECONDS_OF_REST
            return False

        # On a thread of its own, so that the calls of the store inside it need none each.
        return guarded(lambda: self._services.bridge.within(_SECONDS_OF_A_STEP, work), otherwise=failed)

    def _steps(self, user_id: str | None, ids: Collection[str] | None) -> Iterator[None]:
        """Do the work, with a pause after each commit. `user_id` None: everybody's."""
        raise NotImplementedError


class MessageVectors(_BackgroundWork):
    """Embeds session messages in the background: those just kept, and once a process all that a user has.

    The store tells which have no vector.
    """

    def look_for(self, user_id: str, kept: Sequence[Record] = ()) -> None:
        """Embed later the session messages among records just kept, and once a process all of the user's."""
        if self._services.embedder is not None:
            said = {r.id for r in kept if r.family == SESSION_FAMILY and r.status == "active"}
            self._note(user_id, said)

    def _steps(self, user_id: str | None, ids: Collection[str] | None) -> Iterator[None]:
        return (
            iter(()) if self._services.embedder is None else embedding_messages(self._services, user_id, ids)
        )


class Digests(_BackgroundWork):
    """Makes the digests of sessions that have ended, in the background; `upkeep/digest.py` says which.

    A process looks at all sessions of a user when it meets them first. Whenever they have gone on to another
    session, it looks at those in which something was said since.
    """

    pause = 1.0

    def _reset(self) -> None:
        super()._reset()
        self._looked: dict[str, float] = {}
        self._small_talk: dict[tuple[str, str], float] = {}

    def look_for(self, user_id: str, session_id: str | None) -> None:
        """Digest later the user's sessions that have ended, if this is another session than before."""
        if session_id is not None and self._services.settings.session_quiet:
            self._note(user_id, place=session_id)

    def closed(self, user_id: str, session_id: str) -> None:
        """Digest later a session that was closed."""
        if self._services.settings.session_quiet:
            self._note(user_id, place=f"closed {session_id}")

    def _steps(self, user_id: str | None, ids: Collection[str] | None) -> Iterator[None]:
        from supervisor_memory.upkeep.digest import digesting  # no turn waits for it

        if len(self._looked) + len(self._small_talk) > _MOST_USERS:  # the store knows them
            self._looked, self._small_talk = {}, {}
        since = None if user_id is None else self._looked.get(user_id)
        newest = yield from digesting(self._services, user_id, since=since, small_talk=self._small_talk)
        if user_id is not None and newest is not None:
            self._looked[user_id] = newest
