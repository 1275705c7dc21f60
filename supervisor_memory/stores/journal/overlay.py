"""Lays the records that wait in the journal over the store's answers, so that readers see both as one."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Final

from supervisor_memory.model.records import Filter, Hit, Hits, Query, Record, content_hash
from supervisor_memory.stores.changes import is_no_new_version, latest_first, vector_to_store
from supervisor_memory.stores.journal.entries import Entries, Entry, Stamp
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.namespace import searched_vector
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.rank_locally import best_of

_MOST_MORE: Final = 200


@dataclass(frozen=True, slots=True)
class Listed:
    """The records that wait, at one moment, for a reader of lists.

    Taken before the store is asked: a record applied meanwhile is then in both, never in neither.

    `ids` are of all records that wait, of the user asked for; `matching` those that match.
    """

    ids: Collection[str]
    matching: Sequence[Record]

    def over(self, records: Sequence[Record], *, limit: int, offset: int) -> Sequence[Record]:
        """A page of stored and waiting records. `records` are the store's first: as many as wanted, plus as
        many as wait."""
        others = [record for record in records if record.id not in self.ids]
        return latest_first((*others, *self.matching), limit=limit, offset=offset)


@dataclass(frozen=True, slots=True)
class Found:
    """The records that wait, at one moment, for a search; taken before the store is asked, as `Listed` is.

    Args:
        own: Candidates among the records that wait.
        records: All records of the user that wait, by id.
        with_vector: Ids of those with a vector here, so that `own` has them if their meaning is near.
    """

    own: Hits
    records: Mapping[str, Record]
    with_vector: Collection[str]

    @property
    def more(self) -> int:
        """How many more candidates to ask the store for, since some of its hits may drop out."""
        return min(_MOST_MORE, sum(record.version > 1 for record in self.records.values()))

    def over(self, hits: Hits, query: Query, limit: int) -> Hits:
        """The best hits of both, scored anew together, since scores of two searches cannot be compared."""
        if not self.records:
            return hits
        kept = [self._as_it_shall_be(hit, query) for hit in hits if hit.record.id in self.records]
        of_store = [hit for hit in hits if hit.record.id not in self.records]
        found = [*of_store, *(hit for hit in kept if hit is not None), *self.own]
        best = best_of(
            {hit.record.id: hit.record for hit in found}.values(),
            query,
            cosines={hit.record.id: hit.parts["cosine"] for hit in found if "cosine" in hit.parts},
            limit=limit,
        )
        spaces = None if hits.namespaces is None else hits.namespaces + (self.own.namespaces is None)
        return replace(best, degraded=hits.degraded, notes=hits.notes, namespaces=spaces)

    def _as_it_shall_be(self, hit: Hit, query: Query) -> Hit | None:
        """The hit with the waiting version of its record, if that is still found and keeps its vector; else
        None."""
        record = self.records[hit.record.id]
        is_found = record.is_visible(query.now) and query.where.matches(record)
        if not is_found or record.id in self.with_vector or record.embedder is None:
            return None
        if record.embedder != hit.record.embedder or "cosine" not in hit.parts or not searched_vector(query):
            return None
        return Hit(record, parts={"cosine": hit.parts["cosine"]})


class Overlay:
    """The records of all entries that wait, as they will be once applied; entries of other processes too.

    A record is as its last entry makes it, and leaves the overlay with that entry: what earlier entries
    made of it is in the store by then.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._stamp: Stamp = (0, 0)
        self._newest = 0
        self._state = State()
        self._last: dict[str, int] = {}
        self._seen: dict[int, Collection[str]] = {}

    def stage(self, commit: Commit, *, elsewhere: Mapping[str, Record]) -> Staged:
        """Work out what a commit would do after all entries that wait; raises as `State.stage`.

        `elsewhere`: known records that no entry changes; an unknown one is taken to be as the commit expects.
        """
        with self._lock:
            self._refresh()
            assumed = {  # with a time that equals none: it is taken to be changed
                change.record.id: replace(change.record, version=change.expects, updated_at=nan)
                for change in commit.changes
                if change.expects is not None
            }
            return self._state.stage(commit.changes, elsewhere={**assumed, **elsewhere})

    def search(self, query: Query, limit: int) -> Found:
        """The user's records that wait, and the candidates among them; `query.where` names a user."""
        with self._lock:
            self._refresh()
            assert query.where.user_id is not None
            records = {record.id: record for record in self._state.of_user(query.where.user_id)}
            own = self._state.search(query, limit) if records else Hits(namespaces=0)
            return Found(own, records, {each for each in records if each in self._state.vectors})

    def list(self, where: Filter) -> Listed:
        """The records that wait, and which of them match."""
        with self._lock:
            self._refresh()
            state, user_id = self._state, where.user_id
            ids = state.records if user_id is None else [record.id for record in state.of_user(user_id)]
            return Listed(frozenset(ids), [*state.find(where)])

    def get(self, ids: Sequence[str]) -> Mapping[str, Record]:
        """The records with these ids that wait, by id."""
        with self._lock:
            self._refresh()
            records = self._state.records
            return {each: records[each] for each in ids if each in records}

    def versions(self, record_id: str) -> Sequence[Record]:
        """The versions of a record that wait, oldest first."""
        with self._lock:
            self._refresh()
            return self._state.versions(record_id)

    def forget(self) -> None:
        """Drop everything; the entries are read again when they are needed."""
        with self._lock:
            self._reset()

    def _refresh(self) -> None:
        stamp, fresh = self._entries.waiting(after=self._newest)
        if stamp == self._stamp:
            return
        came, went = self._stamp
        if stamp != (came + len(fresh), went):  # some went, or came to wait after later ones
            stamp, numbers = self._entries.waiting(after=0)
            waiting = set(numbers)
            for seq in [seq for seq in self._seen if seq not in waiting]:
                for record_id in self._seen.pop(seq):
                    if self._last.get(record_id) == seq:
                        del self._last[record_id]
                        self._state.drop(record_id)
            fresh = [seq for seq in numbers if seq not in self._seen]
        for entry in self._entries.read(fresh):
            self._take_up(entry)
        self._newest = max((self._newest, *fresh))
        self._stamp = stamp

    def _take_up(self, entry: Entry) -> None:
        self._seen[entry.seq] = {change.record.id for change in entry.commit.changes}
        for change in sorted(entry.commit.changes, key=lambda each: each.record.status == "active"):
            record_id = change.record.id
            if self._last.get(record_id, 0) > entry.seq:  # a later one was accepted first
                continue
            self._last[record_id] = entry.seq
            embedder, vector = change.record.embedder, vector_to_store(change.record)
            known = None if vector is None or embedder is None else (embedder, vector)
            before = self._state.vectors.get(record_id)
            kept = before if before is not None and before[0] == embedder else None
            self._state.put(_as_it_shall_be(change, self._state.records.get(record_id)), known or kept)


def _as_it_shall_be(change: Change, before: Record | None) -> Record:
    """The record as the store will probably have it.

    Where the record before is unknown, a change that only brings a vector or links is taken for a new
    version. A commit built on that mistake is decided again.
    """
    record, expects, source = change.record, change.expects, change.record.source
    version, embedder = (expects or 0) + 1, record.embedder
    if before is not None:
        version -= is_no_new_version(change, before)
        source = source if change.changes_source else before.source
    elif expects is None and record.vector is None:
        embedder = None
    words = content_hash(record.content)
    return replace(record, version=version, content_hash=words, embedder=embedder, source=source)
