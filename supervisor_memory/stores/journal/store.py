"""A journal around a store that may be out of reach: commits are kept here until the store has them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from supervisor_memory.audit.log import AuditLog, RelayedLog
from supervisor_memory.bridge import Bridge
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import (
    BackendError,
    BadVector,
    Conflict,
    InvalidContent,
    RecordNotFound,
    SettingsError,
    SupervisorMemoryError,
    WasErased,
)
from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.stores.changes import plain, vector_to_store
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.entries import Entries, Entry
from supervisor_memory.stores.journal.link import Link, OutOfReach
from supervisor_memory.stores.journal.linked import Linked
from supervisor_memory.stores.journal.local_copy import LocalCopy
from supervisor_memory.stores.journal.overlay import Overlay
from supervisor_memory.stores.journal.place import JOURNAL_FILE_NAME, Place, told
from supervisor_memory.stores.journal.reconcile import reconcile
from supervisor_memory.stores.journal.replay import Replay
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.namespace import searched_user
from supervisor_memory.stores.protocol import (
    Commit,
    Committed,
    Copied,
    DecidesAgain,
    Erased,
    Erases,
    ErasesRecords,
    Health,
    Ids,
    Incomplete,
    MemoryBackend,
    Moves,
    Reconciled,
    Stored,
    Taken,
)
from supervisor_memory.stores.verbs import EVERYTHING, Verbs

_CLOSING_SECONDS: Final = 2.0
_LONG: Final = 240.0


class JournalBackend(Verbs):
    """Another backend, with decided commits stored on this machine before they are acknowledged.

    A commit is written into the journal, then applied to the store, then taken out, with its audit events
    in the same transaction. Where the store does not answer in time, the commit waits: it is `saved` and
    not `applied`, searches find it all the same, and it is applied in order when the store answers again,
    be it after a restart. What the store refuses by then, because others changed it meanwhile, is decided
    again (`decides_again`) or kept as a dead letter that `backlog` counts.

    While the store is out of reach, reads answer from the commits that wait and from the copy, if one is
    kept, and say so: hits are `degraded`, lists `Incomplete`. Reads that neither can answer raise.

    Args:
        store: The backend behind the journal; its own audit log is not used. Closed with the journal.
        path: The directory of the journal and its audit log, `journal.db`. Processes of one machine may share
            it. None: in memory, so that nothing survives this process.
        copies: Keep a copy of all that the store takes, and read it while the store is out of reach.
        replays: Whether this process applies the commits that wait; False for a process that only looks.
        clock: Seconds since 1970, for the times of audit rows.
        read_seconds, write_seconds: How long the store may take to answer, in seconds; a caller with a
            deadline waits at most half of its time left.
        breaker: When the store is asked again after it has failed.

    Raises:
        BackendError: the journal cannot be opened. The store is not asked.
    """

    def __init__(
        self,
        store: MemoryBackend,
        path: Path | None = None,
        *,
        copies: bool = False,
        replays: bool = True,
        clock: Callable[[], float] = time.time,
        read_seconds: float = 0.4,
        write_seconds: float = 2.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._replays = replays
        self._erases = store if isinstance(store, Erases) else None
        self._erases_records = store if isinstance(store, ErasesRecords) else None
        self._moves = store if isinstance(store, Moves) else None
        self._bridge = Bridge()
        self._link = Link(store.name, self._bridge, breaker or Breaker())
        database = Database(None if path is None else Path(path) / JOURNAL_FILE_NAME)
        copy = LocalCopy(database) if copies else None
        self._place = Place(database, Entries(database), AuditLog(database), copy, clock)
        if isinstance(store.audit, RelayedLog):
            store.audit.relay_to(self._place.audit)
        self._overlay = Overlay(self._place.entries)
        self._store = Linked(
            store, self._link, self._place, read_seconds=read_seconds, write_seconds=write_seconds
        )
        self._replay = Replay(self._place, self._store, self._erases, self._link, self._bridge)

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def audit(self) -> AuditLog:
        return self._place.audit

    @property
    def store(self) -> Linked:
        """The store behind the journal, for callers who decide commits again."""
        return self._store

    def decides_again(self, decide: DecidesAgain) -> None:
        """Set the function that decides refused commits again, and begin to apply the commits that wait."""
        self._replay.decide_again = decide
        if any(self.backlog().values()):
            self._wake()

    # Writing

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit, or keep it until it can be; all or nothing, audit included.

        Raises:
            Conflict, InvalidContent, BadVector, RecordNotFound: as the protocol says; nothing was written.
                While the store is out of reach only the commits that wait are looked at; other conflicts
                show later.
        """
        place = self._place
        if not commit.changes:
            place.audit.append(commit.audit, at=place.clock())
            return Committed(commit.id)
        for change in commit.changes:
            plain(change.record)
            vector_to_store(change.record)
        place.audit.refuse_erased([change.record for change in commit.changes if change.expects is None])
        place.audit.check_new(commit.audit)
        if place.entries.some_wait():  # it is this one's turn only after those
            return self._keep(commit, "others-wait")
        seq = place.entries.begin(commit, at=place.clock())
        try:
            return self._apply(commit, seq)
        except BaseException:
            if place.entries.counts().get("begun"):  # nobody was told how it ended
                self._wake()
            raise

    def _apply(self, commit: Commit, seq: int) -> Committed:
        """Apply a commit that was begun, or let it wait."""
        place = self._place
        try:
            done = self._store.apply(commit)
        except OutOfReach:
            return self._keep(commit, "out-of-reach", seq=seq)
        except SupervisorMemoryError:
            place.entries.remove(seq)
            raise
        return self._remove_entry(commit, seq, done)

    def _remove_entry(self, commit: Commit, seq: int, done: Committed) -> Committed:
        """Remove the entry of a commit that the store has taken, and audit the commit."""
        place = self._place
        with place.database.writing(durable=False):  # a power cut brings the entry back with its events
            if place.entries.remove(seq):
                place.note(commit, done)
                place.tell(*commit.audit)
        return done

    def _keep(self, commit: Commit, reason: str, *, seq: int | None = None) -> Committed:
        """Let a commit wait. A commit that, as far as is known, cannot be applied raises and is not kept."""
        place = self._place
        deferred = told("commit.deferred", commit, outcome="degraded", reason=reason)
        try:
            staged = self._overlay.stage(commit, elsewhere=self._known_before(commit))
            with place.database.writing():
                # Its user may have been erased since, and all that was begun with it.
                place.audit.refuse_erased([change.record for change in commit.changes])
                if seq is None:
                    seq = place.entries.begin(commit, at=place.clock())
                if not place.entries.mark(seq, "waiting", reason=reason):  # it was taken for left behind
                    return Committed(commit.id, tuple(staged.results))
                place.audit.append([*commit.audit, deferred], at=place.clock())
        except (Conflict, InvalidContent, BadVector, RecordNotFound, WasErased) as error:
            if seq is not None:
                # The answer alone may have been lost: then it is the commit itself that is in the way.
                if isinstance(error, Conflict) and (done := self._replay.done_before(commit)):
                    return self._remove_entry(commit, seq, done)
                place.entries.remove(seq)
            raise
        self._wake()
        return Committed(commit.id, tuple(staged.results), applied=False)

    def _known_before(self, commit: Commit) -> Mapping[str, Record]:
        """The records to change as the store has them, where it answers."""
        ids, place = [change.record.id for change in commit.changes], self._place
        try:
            found = self._store.get(ids)
        except OutOfReach:
            found = () if place.copy is None else place.copy.get(ids)
        return {record.id: record for record in found}

    # Reading

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by all signals together, see `MemoryBackend.search`; `degraded` without the store.

        While commits wait, the hits of both are measured anew together.

        Raises:
            MissingUser: `query.where` names no user.
        """
        searched_user(query)
        waiting = self._overlay.search(query, limit)
        most = limit + waiting.more
        try:
            hits = self._store.search(query, limit=most)
        except OutOfReach:
            searched, hits = "only what waits in the journal", Hits(namespaces=0)
            if self._place.copy is not None:
                searched, hits = "the copy on this machine", self._place.copy.search(query, limit=most)
            note = f"{self.name} is out of reach; {searched} was searched"
            hits = replace(hits, degraded=True, notes=(note,))
        return waiting.over(hits, query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        found = dict(self._overlay.get(ids))
        missing = [record_id for record_id in ids if record_id not in found]
        answer: type[tuple[Record, ...]] = tuple
        if missing:
            try:
                stored = self._store.get(missing)
            except OutOfReach:
                copy = self._place.copy
                stored, answer = () if copy is None else copy.get(missing), Incomplete
            found |= {record.id: record for record in stored}
        return answer(found[record_id] for record_id in ids if record_id in found)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        begin, most, waiting = max(0, offset), max(0, limit), self._overlay.list(where)
        first, count = (0, begin + most + len(waiting.ids)) if waiting.ids else (begin, most)
        try:
            stored = self._store.list(where, limit=count, offset=first)
        except OutOfReach:
            if (copy := self._place.copy) is None:
                return Incomplete(waiting.over((), limit=most, offset=begin))
            known = copy.list(where, limit=begin + most + len(waiting.ids))
            return Copied(waiting.over(known, limit=most, offset=begin))
        return waiting.over(stored, limit=most, offset=begin) if waiting.ids else stored

    def count(self, where: Filter) -> int:
        """How many records match. Raises BackendUnavailable: the store is out of reach, without a copy."""
        waiting = self._overlay.list(where)
        ids = sorted(waiting.ids)
        try:
            changing = self._store.get(ids) if ids else ()
            stored = self._store.count(where)
        except OutOfReach:
            if (copy := self._place.copy) is None:
                raise
            stored, changing = copy.count(where), copy.get(ids)
        counted = State({record.id: record for record in changing}).find(where)
        return stored - sum(1 for _ in counted) + len(waiting.matching)

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first. Raises BackendUnavailable: the store is out of reach."""
        waiting = self._overlay.versions(record_id)
        stored = self._store.versions(record_id)
        known = {version.version for version in waiting}
        return (*(version for version in stored if version.version not in known), *waiting)

    def _targets(self, target: Ids | Filter) -> Sequence[Record]:
        found = super()._targets(target)
        if isinstance(found, Incomplete):
            told = f"{self.name} is out of reach, so it cannot be told what is to be deleted; try again later"
            raise OutOfReach(told, backend=self.name)
        return found

    # What waits

    def backlog(self) -> Mapping[str, int]:
        """How many commits are in each state ("begun", "waiting", "dead"), and how many "erasures" wait."""
        return {**self._place.entries.counts(), "erasures": len(self._place.entries.erasures())}

    def _wake(self) -> None:
        if self._replays:
            self._replay.wake()

    def replay(self) -> bool:
        """Apply the commits that wait, now and in this thread. True when none is left."""
        return self._replay.now()

    def waiting(self, limit: int) -> Sequence[Entry]:
        """The first commits that wait, in order."""
        return self._place.entries.first("waiting", limit=limit)

    def dead_letters(self, limit: int) -> Sequence[Entry]:
        """The first commits that the store refuses; they wait for a person."""
        return self._place.entries.first("dead", limit=limit)

    def retry_dead_letters(self) -> int:
        """Let the dead letters wait again; returns how many."""
        count = self._place.entries.retry_dead()
        self._wake()
        return count

    def reconcile(self) -> Reconciled:
        """Compare the copy on this machine with the store, and mend both; see `reconcile.py`.

        Raises:
            SettingsError: no copy is kept.
            BackendUnavailable: the store is out of reach, or something still waits for it.
        """
        moves = self._moving()
        if (copy := self._place.copy) is None:
            told = "there is no copy to compare with; set MEMORY_DUAL_WRITE=true, and then "
            raise SettingsError(told + "`supervisor-memory reconcile` fills it")
        self._need_nothing_waiting()
        return reconcile(copy, self.stored, moves.take, keep=self._place.keep)

    # Moving

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records; see `Moves`.

        Raises:
            BackendUnavailable: the store is out of reach, or commits still wait for it.
        """
        moves = self._moving()
        self._need_nothing_waiting()
        return self._link.call(_LONG, moves.stored, after=after, limit=limit, user_id=user_id)

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them; see `Moves`. The store must be in reach."""
        taken = self._link.call(_LONG, self._moving().take, records)
        if self._place.copy is not None:
            kept = {each.record_id for each in taken if each.what in ("added", "replaced")}
            self._place.keep((each.record, each.vector) for each in records if each.record.id in kept)
        return taken

    def _need_nothing_waiting(self) -> None:
        if self._place.entries.some_wait() and not self.replay():
            told = (
                f"commits wait for {self.name}, so not everything is there; see `supervisor-memory backlog`"
            )
            raise OutOfReach(told, backend=self.name)

    def _moving(self) -> Moves:
        if self._moves is not None:
            return self._moves
        told = f"the backend {self.name!r} cannot give its records away or take others"
        raise BackendError(told, backend=self.name)

    # Erasing

    def holds(self, user_id: str) -> Mapping[str, int]:
        return _larger_counts(
            self._place.audit.holds(user_id), self._link.call(_LONG, self._erasing().holds, user_id)
        )

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user here and in the store; see `Erases`. A store out of reach erases the user later."""
        place, store = self._place, self._erasing()
        records = self._all_of(user_id)
        with place.database.writing():
            removed = place.audit.erase(user_id, records, at=at, actor=actor)
            if waited := place.entries.forget(user_id):
                removed["waiting"] = waited
            if place.copy is not None:
                place.copy.erase(user_id)
            place.entries.begin_erasure(user_id, at=at)
        self._overlay.forget()
        forget_texts()
        try:
            done = self._link.call(_LONG, store.erase, user_id, at=at)
        except BackendError as error:
            self._wake()
            told = (
                f"{self.name} may still hold records of the user; they are removed when it answers again, by "
            )
            told += f"what runs then over {place.database.where} ({error})"
            return Erased(removed, (told, *self._replay.finish_erasures()))
        if not done.pending:
            place.entries.end_erasure(user_id)
        return Erased(
            _larger_counts(removed, done.removed),
            (*done.pending, *self._replay.finish_erasures()),
            done.out_of_reach,
        )

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records in the store and here, once nothing waits; see `ErasesRecords`."""
        place, store = self._place, self._erases_records
        if store is None:
            raise BackendError(f"the backend {self.name!r} cannot erase single records", backend=self.name)
        if not self.replay():
            raise OutOfReach(
                f"commits wait for {self.name}, so nothing was erased; see `supervisor-memory backlog`",
                backend=self.name,
            )
        records = [each for each in self.get(ids) if each.user_id == user_id]
        erase = partial(store.erase_records, ids, user_id=user_id, at=at, actor=actor, history_of=history_of)
        done = self._link.call(_LONG, erase)
        with place.database.writing():
            told = place.audit.erase_records(user_id, records, at=at, actor=actor)
            if place.copy is not None:
                place.copy.remove(ids)
        self._overlay.forget()
        forget_texts()
        pending = (*done.pending, *self._replay.finish_erasures())
        return Erased(_larger_counts(told, done.removed), pending, done.out_of_reach)

    def _erasing(self) -> Erases:
        if self._erases is not None:
            return self._erases
        told = (
            f"the records are out of reach: the backend {self.name!r} cannot erase, and nothing was removed"
        )
        raise BackendError(told, backend=self.name)

    def _all_of(self, user_id: str) -> Sequence[Record]:
        """The records of a user, in any status, as far as they can be read."""
        wheres = Filter(user_id=user_id, statuses=None).everywhere()
        return [record for where in wheres for record in self.list(where, limit=EVERYTHING)]

    # Its own state

    def health(self) -> Health:
        """The store's health, with the number of commits that wait for it."""
        waits = ", ".join(f"{count} {what}" for what, count in self.backlog().items() if count) or "nothing"
        details = {"journal": f"{waits} ({self._place.database.where})"}
        try:
            stored = self._store.health()
        except OutOfReach as error:
            message = f"{error}; what is remembered meanwhile waits in the journal"
            return Health(self.name, ok=False, persistent=True, message=message, details=details)
        message = stored.message
        if self._place.entries.counts().get("dead"):
            message = "; ".join(filter(None, (message, "dead letters: see `supervisor-memory backlog`")))
        return replace(stored, message=message, details={**stored.details, **details})

    def close(self) -> None:
        """Close the journal and the store. Commits that wait are applied at the next start."""
        self._replay.stop()
        self._bridge.drain(seconds=_CLOSING_SECONDS)
        self._place.audit.close()
        self._store.close()


def _larger_counts(here: Mapping[str, int], there: Mapping[str, int]) -> Mapping[str, int]:
    """The larger count of each kind: most kinds are held in one of the two places only."""
    return {what: max(here.get(what, 0), there.get(what, 0)) for what in (*there, *here)}
