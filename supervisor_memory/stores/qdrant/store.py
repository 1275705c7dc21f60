"""Records in Qdrant, for many instances over one cluster."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final, Literal

from qdrant_client import QdrantClient, models

from supervisor_memory.audit.log import AuditLog, open_log
from supervisor_memory.errors import BackendError, Conflict, WasErased
from supervisor_memory.model.records import AuditEvent, Filter, Hits, Namespace, Query, Record
from supervisor_memory.stores.arrival import as_commit, pages, staged_in
from supervisor_memory.stores.changes import Place, clash, latest_first, places, plain
from supervisor_memory.stores.intents import Intents
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.namespace import searched_terms, searched_user, searched_vector
from supervisor_memory.stores.protocol import Commit, Committed, Erased, Health, Ids, Stored, Taken
from supervisor_memory.stores.qdrant.calls import QdrantCalls, chunks
from supervisor_memory.stores.qdrant.collection_names import CollectionNames, Division
from supervisor_memory.stores.qdrant.erasing import QdrantErasing
from supervisor_memory.stores.qdrant.moving import histories, stored_page
from supervisor_memory.stores.qdrant.points import (
    Found,
    Marker,
    also,
    current,
    found,
    holders,
    is_told_by_server,
    of_commit,
    of_records,
    older,
    place_point,
    point_id,
    record_point,
    updated_at,
    updated_before,
    upsert,
    version_id,
    version_point,
    visible,
)
from supervisor_memory.stores.qdrant.search import Candidates, requests_for
from supervisor_memory.stores.verbs import EVERYTHING, Verbs

_INSERT: Final = models.UpdateMode.INSERT_ONLY
_UPDATE: Final = models.UpdateMode.UPDATE_ONLY
_UPSERT: Final = models.UpdateMode.UPSERT
_TAKEN_TOGETHER: Final = 500
_ALL_OF_A_USER: Final = 100_000
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True, slots=True)
class _Located:
    """A record as it was found, and its collection."""

    collection: str
    record: Record
    found: Found


@dataclass(slots=True)
class _Plan:
    """The writes of a commit by collection, in this order, and the writes that undo them."""

    beside: list[models.PointStruct] = field(default_factory=list)
    inserts: dict[str, list[models.PointStruct]] = field(default_factory=dict)
    updates: dict[str, list[models.UpsertOperation]] = field(default_factory=dict)
    leaving: list[tuple[str, Found]] = field(default_factory=list)
    undoing: dict[str, list[models.UpsertOperation]] = field(default_factory=dict)
    written: dict[str, dict[str, str]] = field(default_factory=dict)
    """Collection → point id → record id, to read back which points the commit has written."""


class QdrantBackend(Verbs):
    """A Qdrant server or cluster as a backend: `SupervisorMemory(backend=QdrantBackend(client))`.

    A record is one point, whole in its payload, so that any number of instances share a cluster; there
    is a collection for each family and embedder, the user is an `is_tenant` index in it. Candidates by
    meaning and by words come from the server, filtered there and looked at again here: one that belongs
    to another user is dropped and audited as "foreign-hit". A search asks each collection of the searched
    families once.

    What it promises: Qdrant has no transactions. A change of one record is compared and set by the
    server, whichever instance makes it: it is written only over the version and commit it was decided
    on, and counts as written only if the point bears the commit's id when read back. An erased record
    does not come back through an update. Backends of this process over the same server take turns, so
    that wordings, and commits of several records, are whole within a process.

    What it does not: between instances, (1) two that write the same words, or the same subject and
    attribute, at the same moment can both succeed; (2) a commit of several records is seen in parts while
    it is written, new records before those they replace. When it fails halfway, the parts are undone;
    where that is impossible, since the server or this process is gone, the parts stay and the audit log
    says so with "commit.unknown". The same commit given again is completed. (3) A record that changes
    its family or its embedder moves to another collection, and meanwhile no search finds it; the next
    commit of this audit log completes a move that a killed process left halfway. (4) A write that the
    server took without completing it ("acknowledged") raises BackendUnavailable, but may be made later.

    Local mode (`QdrantClient(":memory:")`, `QdrantClient(path=…, force_disable_check_same_thread=True)`)
    is for development: one process, no indexes.

    Args:
        client: Closed by its owner. Its own timeout bounds a single wait for bytes, no more.
        prefix: The beginning of the collections' names.
        collections: "namespace" keeps each user's records apart, in collections of their own that can be
            dropped; every search lists all collections, so that is for hundreds of users, not more.
        audit: Where the audit log is kept: a log, or the directory of its `audit.db`. None: in memory.
        clock: Seconds since 1970, for the times of audit rows.
        on_close: Called by `close`, such as to close a client made for this backend alone.

    Raises:
        SettingsError: the prefix cannot begin a name, or the client is async.
        BackendError: the audit log cannot be opened. The server is not asked yet.
    """

    def __init__(
        self,
        client: QdrantClient,
        *,
        prefix: str = "memory",
        collections: Division = "family",
        audit: AuditLog | Path | str | None = None,
        clock: Callable[[], float] = time.time,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._on_close = on_close
        self._names = CollectionNames(prefix, collections)
        self._calls = QdrantCalls(client)
        self._clock = clock
        self._keeps_audit = audit is not None
        self._audit = audit if isinstance(audit, AuditLog) else open_log(audit)
        self._closes_audit = self._keeps_audit and self._audit is not audit
        self._intents = Intents(self._audit, clock)
        self._erasing = QdrantErasing(self._calls, self._names, self._audit, clock)

    @property
    def name(self) -> Literal["qdrant"]:
        return "qdrant"

    @property
    def audit(self) -> AuditLog:
        return self._audit

    def search(self, query: Query, *, limit: int) -> Hits:
        """See `MemoryBackend.search`. Raises CorruptStore, too: a point of that user cannot be read.

        The server answers with the best by meaning and by words. The other signals come from these alone:
        the words said before a record count only where they were found, too.
        """
        user_id = searched_user(query)
        searched = [n for n in self._calls.collections_lately() if self._names.may_hold(n, query.where)]
        condition = visible(query.where, now=query.now)
        if not searched or condition is None or limit <= 0:
            return Hits(namespaces=len(searched))
        candidates = Candidates()
        for collection in searched:
            self._ask(collection, query, condition, limit, candidates)
        if candidates.without:  # they took the places of others, which come when all are asked for
            for collection in searched:
                self._ask(collection, query, condition, max(limit, _ALL_OF_A_USER), candidates)
        if candidates.foreign:
            self._tell_foreign(user_id, candidates.foreign)
        return candidates.hits(query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        located = self._by_id(ids)
        return tuple(located[record_id].record for record_id in ids if record_id in located)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        condition = of_records(where)
        begin, most = max(0, offset), max(0, limit)
        if condition is None or not most:
            return ()
        # Where the server cannot tell, none of the newest it knows of may match.
        read = partial(self._calls.newest, most=begin + most) if is_told_by_server(where) else self._calls.all
        parts = [(condition, read)]
        if where.behind is not None:  # the server orders by time alone
            at, _ = where.behind
            parts = [(also(condition, updated_before(at)), read)]
            parts += [(also(condition, updated_at(at)), self._calls.all)]
        records = (
            record
            for collection in self._searched(where)
            for narrowed, read_points in parts
            for point in read_points(collection, narrowed)
            if (record := found(point, collection).record) is not None and where.matches(record)
        )
        return latest_first(records, limit=most, offset=begin)

    def count(self, where: Filter) -> int:
        condition = of_records(where)
        if condition is None:
            return 0
        if not is_told_by_server(where):
            return len(self.list(where, limit=EVERYTHING))
        return sum(self._calls.count(collection, condition) for collection in self._searched(where))

    def versions(self, record_id: str) -> Sequence[Record]:
        located = self._by_id([record_id]).get(record_id)
        if located is None:
            return ()
        asked = [version_id(record_id, number) for number in range(1, located.record.version)]
        points = self._calls.retrieve(self._names.versions, asked)
        earlier = [found(point, self._names.versions).record for point in points]
        mine = [record for record in earlier if record is not None and record.id == record_id]
        return (*sorted(mine, key=attrgetter("version")), located.record)

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit, or complete it where it was applied in parts before; see `MemoryBackend.batch`.

        After another BackendError, read again to see whether it was written all the same.
        """
        with self._calls.writing():
            checked = [plain(change.record) for change in commit.changes]
            located = self._located_before(commit)
            staged = _state(located.values(), self._holders(checked, but=commit.id)).stage(commit.changes)
            self._audit.check_new(commit.audit)
            if commit.changes:
                self._save(commit, staged, located)
            else:
                self._audit.append(commit.audit, at=self._clock())
            return Committed(commit.id, tuple(staged.results))

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records, in order of their points; see `Moves`."""
        return stored_page(self._calls, self._names, after=after, limit=limit, user_id=user_id)

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them, some hundreds in a commit; see `Moves`."""
        with self._calls.writing():
            return [taken for page in pages(records, most=_TAKEN_TOGETHER) for taken in self._take(page)]

    def _take(self, page: Sequence[Stored], *, tries: int = 5) -> Sequence[Taken]:
        located = self._by_id([each.record.id for each in page], vectors=True)
        holders = self._holders([each.record for each in page], but="")
        state = _state(located.values(), holders)
        brought = {each.record.id: each.record.version for each in page}
        newer = [each.record for each in located.values() if each.record.version > brought[each.record.id]]
        state.history |= histories(self._calls, self._names, newer)
        staged, decided = staged_in(state, page, tombstones=self._erasing)
        if not staged.records:
            self._audit.append(decided.events, at=self._clock())
            return decided.in_order()
        try:
            self._save(as_commit(staged, decided), staged, located)
        except (Conflict, WasErased):  # another instance was faster; nothing was written
            if tries <= 1:
                raise
            return self._take(page, tries=tries - 1)
        return decided.in_order()

    def holds(self, user_id: str) -> Mapping[str, int]:
        return self._erasing.holds(user_id)

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user by the ids of all points, and prove it; see `Erases`."""
        self._intents.doubt()  # its rows come after what another process may have begun
        return self._erasing.erase(user_id, at=at, actor=actor)

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records; see `ErasesRecords`."""
        gone, kept = ([r for r in self.get(some) if r.user_id == user_id] for some in (ids, history_of))
        return self._erasing.erase_records(gone, user_id=user_id, at=at, actor=actor, trimmed=kept)

    def health(self) -> Health:
        details: dict[str, str] = {"collections": self._names.division}
        message = "" if self._keeps_audit else "the audit log is in memory; pass `audit`, a directory"
        if self._calls.is_volatile:
            message = "memories are lost when this process ends; use a server, or a directory, to keep them"
        try:
            ours = [name for name in self._calls.collections() if self._names.hold_records(name)]
            details |= {"server": self._calls.server_version(), "collections in use": str(len(ours))}
            ok = True
        except BackendError as error:
            ok, message = False, str(error)
        return Health(
            self.name,
            ok=ok,
            persistent=not self._calls.is_volatile,
            location=f"{self._calls.address}, prefix {self._names.prefix}",
            message=message,
            details=details,
        )

    def close(self) -> None:
        """Write what is outstanding in the audit log. The client is its owner's to close."""
        if self._closes_audit:
            self._audit.close()
        else:
            self._audit.flush_at_last()
        if self._on_close is not None:
            self._on_close()

    # Reading

    def _searched(self, where: Filter) -> Sequence[str]:
        return [name for name in self._calls.collections() if self._names.may_hold(name, where)]

    def _ask(
        self, collection: str, query: Query, condition: models.Filter, limit: int, candidates: Candidates
    ) -> None:
        vector, words = searched_vector(query), searched_terms(query)
        if vector is not None and not self._names.hold_vectors(collection, vector[0], len(vector[1])):
            vector = None
        requests = requests_for(None if vector is None else vector[1], words, condition, limit)
        answers = self._calls.queries(collection, [*requests.values()]) if requests else ()
        for way, points in zip(requests, answers, strict=True):
            candidates.add(way, points, collection, query)

    def _tell_foreign(self, user_id: str, foreign: Sequence[str]) -> None:
        what = "%s answered a search with %d records that do not match it; they were dropped (foreign-hit)"
        _log.error(what, self._calls.address, len(foreign))
        event = AuditEvent(
            "search",
            user_id=user_id,
            actor="backend",
            record_id=foreign[0],
            outcome="denied",
            reason="foreign-hit",
            detail={"hits": len(foreign)},
        )
        with contextlib.suppress(BackendError):  # a log that cannot be written stops no search
            self._audit.append([event], at=self._clock())

    def _by_id(self, ids: Ids, *, vectors: bool = False, new: Sequence[Record] = ()) -> dict[str, _Located]:
        wanted = {point_id(record_id): record_id for record_id in ids}
        asked: dict[str, list[str]] = {}
        for point in self._erasing.places([*wanted], new):
            asked.setdefault(str((point.payload or {}).get("collection")), []).append(str(point.id))
        located: dict[str, _Located] = {}
        seen: set[tuple[str, str]] = set()
        while asked:
            further: dict[str, list[str]] = {}
            for collection, points in asked.items():
                with_vectors = vectors and self._names.have_vectors(collection)
                for point in self._calls.retrieve(collection, points, vectors=with_vectors):
                    each, record_id = found(point, collection), wanted[str(point.id)]
                    if each.record is not None and each.record.id == record_id:
                        before = located.get(record_id)
                        if before is None or before.record.version <= each.version:
                            located[record_id] = _Located(collection, each.record, each)
                    if each.moved_to is not None and (each.moved_to, record_id) not in seen:
                        seen.add((each.moved_to, record_id))
                        further.setdefault(each.moved_to, []).append(str(point.id))
            asked = further
        return located

    def _located_before(self, commit: Commit) -> dict[str, _Located]:
        """The records to change; those that this commit has written before, in parts, as they were before."""
        new = [change.record for change in commit.changes if change.expects is None]
        located = self._by_id([change.record.id for change in commit.changes], vectors=True, new=new)
        expected: dict[str, int | None] = {}
        for change in commit.changes:
            expected.setdefault(change.record.id, change.expects)
        for record_id, each in list(located.items()):
            if each.found.commit != commit.id:
                continue
            version = expected[record_id]
            if version is None:
                del located[record_id]
                continue
            for point in self._calls.retrieve(self._names.versions, [version_id(record_id, version)]):
                earlier = found(point, self._names.versions)
                if (record := earlier.record) is not None:
                    was = replace(earlier, vector=each.found.vector, moved_to=each.found.moved_to)
                    located[record_id] = _Located(each.collection, record, was)
        return located

    def _holders(self, records: Sequence[Record], *, but: str) -> Sequence[Record]:
        """The active records that hold places of these records, without records that commit `but` wrote."""
        wanted: dict[Namespace, set[Place]] = {}
        for place in (each for record in records for each in places(record)):
            wanted.setdefault(place[1], set()).add(place)
        names = self._calls.collections() if wanted else ()
        return [
            holder
            for namespace, taken in sorted(wanted.items())
            for collection in names
            if self._names.may_hold(collection, _all_of(namespace))
            for point in self._calls.all(collection, holders(namespace, sorted(taken)))
            if (each := found(point, collection)).commit != but and (holder := each.record) is not None
        ]

    # Writing

    def _save(self, commit: Commit, staged: Staged, located: Mapping[str, _Located]) -> None:
        self._settle()
        self._erasing.catch_up()
        plan = self._plan(commit, staged, located)
        self._intents.begin(commit)
        try:
            self._write(plan, staged)
            self._erasing.refuse_late([r for r in staged.records.values() if r.id not in located])
            lost = self._lost(plan, commit.id)
            if lost is not None:
                self._undo(plan, commit.id, staged)
        except BackendError:
            self._intents.doubt()
            with contextlib.suppress(BackendError):  # else the parts stay, and the next commit says so
                self._undo(plan, commit.id, staged)
                self._settle()
            raise
        if lost is not None:
            self._intents.answer(commit.id, applied=False)
            raise lost
        try:
            self._arrive(plan.leaving)
        except BackendError:
            self._intents.doubt()
            with contextlib.suppress(BackendError):  # else the next commit does
                self._erasing.tidy(record.user_id for record in staged.records.values())
            raise
        self._intents.done(commit)

    def _plan(self, commit: Commit, staged: Staged, located: Mapping[str, _Located]) -> _Plan:
        plan = _Plan()
        for record in staged.previous:
            was = located.get(record.id)
            is_stored = was is not None and was.record.version == record.version
            plan.beside.append(version_point(record, was.found.commit if was and is_stored else commit.id))
        for record in staged.records.values():
            vector, was = staged.vectors[record.id], located.get(record.id)
            collection = self._names.of(record, vector)
            is_leaving = was is not None and collection != was.collection
            moves = (0 if was is None else was.found.moves) + is_leaving
            point = record_point(record, vector, commit=commit.id, moves=moves)
            if was is None:
                plan.beside.append(place_point(record, collection))
                plan.inserts.setdefault(collection, []).append(point)
            else:
                if is_leaving:
                    marker = Marker(collection)
                    point = record_point(record, vector, commit=commit.id, moves=moves, marker=marker)
                    gone = Found(commit.id, record.version, record, vector, collection, moves)
                    plan.leaving.append((was.collection, gone))
                collection = was.collection
                unchanged = current(was.record.version, was.found.commit)
                plan.updates.setdefault(collection, []).append(upsert([point], _UPDATE, unchanged))
                ours = models.Filter(must=of_commit(commit.id))
                plan.undoing.setdefault(collection, []).append(upsert([_as_it_was(was)], _UPDATE, ours))
            plan.written.setdefault(collection, {})[str(point.id)] = record.id
        return plan

    def _write(self, plan: _Plan, staged: Staged) -> None:
        """Write earlier versions, then new records, then changes, so that an interruption loses nothing."""
        dimensions = {
            self._names.of(record, vector): 0 if vector is None else len(vector[1])
            for record in staged.records.values()
            for vector in [staged.vectors[record.id]]
        }
        for collection in plan.inserts:
            self._calls.ensure(collection, dimension=dimensions[collection])
        for collection in plan.updates:
            self._calls.index(collection)
        self._write_beside(plan.beside)
        steps = [
            (collection, upsert(some, _INSERT))
            for collection, points in plan.inserts.items()
            for some in chunks(points)
        ]
        steps += [(collection, each) for collection, some in plan.updates.items() for each in some]
        for collection, together in groupby(steps, key=itemgetter(0)):
            self._calls.write(collection, [operation for _, operation in together])

    def _write_beside(self, points: Sequence[models.PointStruct]) -> None:
        if points:
            self._calls.ensure(self._names.versions, dimension=None)
            self._calls.write(self._names.versions, [upsert(some, _UPSERT) for some in chunks(points)])

    def _written(self, plan: _Plan, commit_id: str) -> Iterator[tuple[str, str, bool]]:
        """The collection and the id of each planned point, and whether this commit wrote it last."""
        for collection, points in plan.written.items():
            now = {
                str(point.id): (point.payload or {}).get("commit")
                for point in self._calls.retrieve(collection, [*points], payload=["commit"])
            }
            for point in points:
                yield collection, point, now.get(point) == commit_id

    def _lost(self, plan: _Plan, commit_id: str) -> Conflict | None:
        """The error for a record that another instance has changed in between; None: all is written."""
        for collection, point, is_ours in self._written(plan, commit_id):
            if not is_ours:
                record_id = plan.written[collection][point]
                if any(point == each.id for each in plan.inserts.get(collection, ())):
                    return clash("id", record_id, record_id)
                told = "was changed or erased by another instance; read it again and decide again"
                ids = {"record_id": record_id, "change_id": record_id}
                return Conflict(f"record {record_id} {told}", what="version", **ids)
        return None

    def _undo(self, plan: _Plan, commit_id: str, staged: Staged) -> None:
        written = self._written(plan, commit_id)
        ours = [(collection, point) for collection, point, is_ours in written if is_ours]
        for collection, points in plan.inserts.items():
            if added := [str(point.id) for point in points if (collection, str(point.id)) in ours]:
                self._calls.remove(collection, added)
        for collection, operations in plan.undoing.items():
            if any(collection == name for name, _ in ours):
                self._calls.write(collection, operations)
        self._erasing.tidy(record.user_id for record in staged.records.values())

    def _arrive(self, leaving: Iterable[tuple[str, Found]]) -> None:
        """Put records that leave a collection into the collection they move to."""
        moves: dict[tuple[str, str], list[tuple[Record, Found]]] = {}
        for left, each in leaving:
            if each.record is not None and each.moved_to is not None:
                moves.setdefault((left, each.moved_to), []).append((each.record, each))
        for (left, target), some in moves.items():
            vector, arriving, leaving_marks = some[0][1].vector, [], []
            for record, each in some:
                point = record_point(record, each.vector, commit=each.commit, moves=each.moves)
                arriving.append(upsert([point], _UPSERT, older(record.version, each.moves)))
                gone = Marker(target, has_arrived=True)
                mark = record_point(record, None, commit=each.commit, moves=each.moves, marker=gone)
                leaving_marks.append(upsert([mark], _UPDATE, models.Filter(must=of_commit(each.commit))))
            self._calls.ensure(target, dimension=0 if vector is None else len(vector[1]))
            self._calls.write(target, arriving)
            self._write_beside([place_point(record, target) for record, _ in some])
            self._calls.write(left, leaving_marks)
            users = {point_id(record.id): record.user_id for record, _ in some}
            there = {str(each.id) for each in self._calls.retrieve(left, [*users], payload=["commit"])}
            if erased := [each for each in users if each not in there]:  # in between
                self._calls.remove(target, erased)
                self._erasing.tidy(users[each] for each in erased)

    def _settle(self) -> None:
        self._intents.settle(self._arrived)

    def _arrived(self, commit_id: str) -> bool:
        """Whether anything of a commit is stored; it is made whole then."""
        ours = models.Filter(must=of_commit(commit_id))
        names = [name for name in self._calls.collections() if self._names.hold_records(name)]
        stored = [(name, found(point, name)) for name in names for point in self._calls.all(name, ours)]
        self._arrive(stored)
        self._erasing.tidy(each.record.user_id for _, each in stored if each.record is not None)
        return bool(stored)


def _as_it_was(located: _Located) -> models.PointStruct:
    was = located.found
    marker = None if was.moved_to is None else Marker(was.moved_to)
    return record_point(located.record, was.vector, commit=was.commit, moves=was.moves, marker=marker)


def _state(located: Iterable[_Located], rivals: Iterable[Record]) -> State:
    changed = list(located)
    return State(
        {record.id: record for record in (*rivals, *(each.record for each in changed))},
        vectors={e.record.id: e.found.vector for e in changed if e.found.vector is not None},
    )


def _all_of(namespace: Namespace) -> Filter:
    family, user_id, *task = namespace
    return Filter(user_id=user_id, families=(family,), tasks=(task[0] if task else None,))
