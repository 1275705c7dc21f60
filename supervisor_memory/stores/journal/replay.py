"""Applies the entries that wait in a journal, in order: after an outage, after a crash, in any process."""

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import (
    BackendError,
    Conflict,
    DeadlineExceeded,
    ReadOnlyStore,
    SupervisorMemoryError,
    WasErased,
)
from supervisor_memory.model.records import Record
from supervisor_memory.stores.journal.entries import Entry
from supervisor_memory.stores.journal.link import Link, NotAsked, OutOfReach
from supervisor_memory.stores.journal.linked import Linked
from supervisor_memory.stores.journal.lone import Lone
from supervisor_memory.stores.journal.place import Place, told
from supervisor_memory.stores.journal.together import as_one, divided, next_together
from supervisor_memory.stores.protocol import Change, Commit, Committed, DecidesAgain, Erases

_ORPHANED_AFTER: Final = 60.0
_MOST_ORPHANS: Final = 500
_MOST_ATTEMPTS: Final = 3
_ERASE_SECONDS: Final = 240.0
_TOGETHER_SECONDS: Final = 30.0
_SHORTEST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 5.0
_TRIED_BEFORE_BURIED: Final = 20
_log = logging.getLogger("supervisor_memory")


class Replay:
    """Applies entries and carries out erasures. One process at a time, in the background.

    An entry that the store refuses, because others have changed its records meanwhile, is decided again. An
    entry that cannot be decided again is a dead letter: it is kept, and blocks no other.
    """

    def __init__(
        self, place: Place, store: Linked, erases: Erases | None, link: Link, bridge: Bridge
    ) -> None:
        self.decide_again: DecidesAgain | None = None
        self._place, self._store, self._erases, self._link = place, store, erases, link
        self._bridge = bridge
        path = place.database.path
        self._lone = None if path is None else Lone(path.with_name("journal.lock"))
        self._stop = threading.Event()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self._is_running = self._has_failed = False

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():  # threads do not survive a fork, and leave their locks
            self._reset()

    def wake(self) -> None:
        """Begin to apply the entries in the background, unless that is going on."""
        if self._place.database.read_only:
            return
        self._notice_fork()
        with self._state:
            if self._is_running or self._stop.is_set():
                return
            self._is_running = True
        self._bridge.background(self._run)

    def stop(self) -> None:
        """Apply nothing more. The entries that wait are left to another process, or to the next start."""
        self._stop.set()

    def now(self) -> bool:
        """Apply all entries that can be applied, in this thread. True when none is left."""
        self._notice_fork()
        with self._turn:
            if self._lone is None:
                return self._apply_in_order()
            with self._lone.turn() as is_ours:
                return self._apply_in_order() if is_ours else not self._is_left()

    def _run(self) -> None:
        wait = _SHORTEST_WAIT
        try:
            while not self._stop.is_set():
                if self._attempted():
                    with self._state:
                        if not self._is_left():
                            self._is_running = False
                            return
                    wait = _SHORTEST_WAIT
                self._stop.wait(max(wait, min(self._link.breaker.open_for, _LONGEST_WAIT)))
                wait = min(2 * wait, _LONGEST_WAIT)
        finally:
            with self._state:
                self._is_running = False

    def _attempted(self) -> bool:
        """Try once in the background. True when nothing is left to do. Failures in a row are logged once."""
        try:
            is_done = self.now() and not self._is_left()
        except Exception:  # noqa: BLE001  # logged once with its trace, and tried again
            if not self._has_failed and not self._stop.is_set():
                _log.exception("what waits in the journal could not be applied; it is tried again")
            self._has_failed = True
            return False
        self._has_failed = False
        return is_done

    def _is_left(self) -> bool:
        counts = self._place.entries.counts()
        return bool(counts.get("waiting") or counts.get("begun") or self._place.entries.erasures())

    def _apply_in_order(self) -> bool:
        """Apply in order until nothing is left (True), or the store is out of reach."""
        entries = self._place.entries
        try:
            for user_id, at in entries.erasures().items():
                self._erase(user_id, at)
            for begun in entries.first("begun", limit=_MOST_ORPHANS):
                if begun.at < self._place.clock() - _ORPHANED_AFTER:  # its process may have died
                    self._apply(begun)
            while not self._stop.is_set() and (next_ones := next_together(entries))[1]:
                if not self._apply_all(*next_ones):
                    return False
        except OutOfReach:
            return False
        if self._is_left():
            return False
        if not entries.counts().get("dead"):  # nothing can mean what was merged any more
            entries.forget_merged()
        return True

    def _apply_all(self, commit_id: str, entries: Sequence[Entry]) -> bool:
        """Apply entries together, or one by one where the store refuses. True when all are dealt with."""
        if not commit_id:
            return self._apply(entries[0])
        try:
            done = self._store.apply(as_one(commit_id, entries), seconds=_TOGETHER_SECONDS)
        except NotAsked:
            raise
        except (OutOfReach, ReadOnlyStore) as error:
            if self._place.entries.note_attempt(entries[0].seq, _code_of(error)) < _MOST_ATTEMPTS:
                return False
        except SupervisorMemoryError:
            pass  # whose fault it was shows when each is tried alone
        else:
            with self._place.database.writing(durable=False):
                for entry, own in divided(done, entries):
                    self._end(entry, "commit.applied", done=own)
            return True
        self._place.entries.join([entry.seq for entry in entries], None)
        return all(self._apply(entry) for entry in entries)

    def _apply(self, entry: Entry) -> bool:
        """Apply an entry, decide it again, or make it a dead letter. False when it has to be tried again."""
        if not entry.is_legible:
            self._bury(entry, "illegible")
            return True
        try:
            done = self._store.apply(entry.commit)
        except (OutOfReach, ReadOnlyStore) as error:
            return self._gave_up(entry, error)
        except WasErased:
            self._end(entry, "commit.refused", reason="erased-before")
            return True
        except SupervisorMemoryError as error:
            return self._decide_anew(entry, error)
        self._end(entry, "commit.applied", done=done)
        return True

    def _decide_anew(self, entry: Entry, refusal: SupervisorMemoryError) -> bool:
        reason = _code_of(refusal)
        if isinstance(refusal, Conflict) and (done := self.done_before(entry.commit)):
            self._end(entry, "commit.applied", done=done)
            return True
        if self.decide_again is None:
            self._bury(entry, reason)
            return True
        try:
            merged = self.decide_again(entry.commit, self._place.entries.became)
        except (OutOfReach, ReadOnlyStore, DeadlineExceeded) as error:
            return self._gave_up(entry, error)
        except WasErased:
            self._end(entry, "commit.refused", reason="erased-before")
            return True
        except Exception as error:  # noqa: BLE001  # an operator of the recipe, which may be a stranger's
            _log.warning("a commit that waited could not be decided again", exc_info=error)
            if self._place.entries.note_attempt(entry.seq, _code_of(error)) < _MOST_ATTEMPTS:
                return False
            self._bury(entry, _code_of(error))
            return True
        self._place.entries.note_merged(merged)
        self._end(entry, "commit.decided-again", reason=reason)
        return True

    def done_before(self, commit: Commit) -> Committed | None:
        """The result of a commit whose answer was lost, without records changed since; None: not taken."""
        if not all(_is_among(self._store.versions(change.record.id), change) for change in commit.changes):
            return None
        versions = {change.record.id: _version(change) for change in commit.changes}
        stored = self._store.get(list(versions))
        return Committed(commit.id, tuple(each for each in stored if each.version == versions[each.id]))

    def _gave_up(self, entry: Entry, error: SupervisorMemoryError) -> bool:
        """Make an entry a dead letter after too many attempts, if the store accepts another one. False: it is
        tried again later.

        Raises:
            OutOfReach: the store is not well.
        """
        if isinstance(error, NotAsked):  # that says nothing about the entry
            raise error
        if not self._store.health().ok:
            raise OutOfReach(f"{self._store.name} is not well", backend=self._store.name) from error
        reason = _code_of(error.__cause__ or error)
        attempts = self._place.entries.note_attempt(entry.seq, reason)
        if attempts < _MOST_ATTEMPTS or not self._takes_another(entry):
            return False
        self._bury(entry, reason)
        return True

    def _takes_another(self, entry: Entry) -> bool:
        for other in self._place.entries.first("waiting", limit=_TRIED_BEFORE_BURIED):
            if other.seq != entry.seq:
                try:
                    done = self._store.apply(other.commit)
                except (OutOfReach, ReadOnlyStore):
                    return False
                except SupervisorMemoryError:  # it may be built on this one
                    continue
                self._end(other, "commit.applied", done=done)
                return True
        return False

    def _bury(self, entry: Entry, reason: str) -> None:
        what = "a commit of %d changes cannot be applied (%s); it is kept: see `supervisor-memory backlog`"
        _log.error(what, len(entry.commit.changes), reason)
        with self._place.database.writing():
            self._place.entries.mark(entry.seq, "dead", reason=reason)
            self._place.tell(told("commit.dead", entry.commit, outcome="failed", reason=reason))

    def _end(self, entry: Entry, op: str, *, reason: str = "", done: Committed | None = None) -> None:
        with self._place.database.writing(durable=False):  # a power cut brings it back with its events
            if not self._place.entries.remove(entry.seq):
                return
            if done is not None:
                self._place.note(entry.commit, done)
                if entry.state == "begun":
                    self._append_new(entry.commit)
            self._place.tell(told(op, entry.commit, reason=reason))

    def _append_new(self, commit: Commit) -> None:
        """Audit a commit after its process died; skips events in the log, from a turn that ran again."""
        for event in commit.audit:
            with contextlib.suppress(Conflict):
                self._place.audit.check_new([event])
                self._place.tell(event)

    def _erase(self, user_id: str, at: float) -> None:
        if self._erases is None:
            return
        try:
            erased = self._link.call(_ERASE_SECONDS, self._erases.erase, user_id, at=at)
        except OutOfReach:
            raise
        except BackendError as error:  # others shall not wait for it
            _log.error("a user who was erased is still in %s, it is tried again: %s", self._store.name, error)
            return
        if not erased.pending:
            self._place.entries.end_erasure(user_id)
            self.finish_erasures()

    def finish_erasures(self) -> tuple[str, ...]:
        """Remove the last traces of erased users from the file; returns what is in the way, as sentences."""
        begun = self._place.audit.tombstones.unfinished()  # before the look: others may begin one meanwhile
        if not self._place.entries.erasures():
            return self._place.audit.finish_erasures(begun, at=self._place.clock())
        obstacle = self._place.database.scrub()
        return (obstacle,) if obstacle else ()


def _version(change: Change) -> int:
    return (change.expects or 0) + 1


def _is_among(versions: Sequence[Record], change: Change) -> bool:
    """Whether a change made one of these versions."""
    for each in versions:
        if each.version == _version(change):
            kept = {name: getattr(each, name) for name in ("version", "source", "embedder", "content_hash")}
            return replace(change.record, **kept) == each
    return False


def _code_of(error: BaseException) -> str:
    what = error.facts.get("what", "") if isinstance(error, SupervisorMemoryError) else ""
    return f"{type(error).__name__}:{what}" if what else type(error).__name__
