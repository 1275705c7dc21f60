"""What waits in the journal, laid over what the store answers: a reader sees both as one."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from supervisor_memory.backends.candidates import as_hits, searched_vector
from supervisor_memory.backends.changes import copied, plain
from supervisor_memory.backends.journal_entries import Entries, Entry
from supervisor_memory.backends.protocol import Commit
from supervisor_memory.backends.state import Staged, State
from supervisor_memory.records import Filter, Hit, Hits, Query, Record

__all__ = ["Overlay"]


class Overlay:
    """The records as they shall be, of all entries that wait, of this process or another.

    Each record is known by the last entry that changes it, and goes with it: what earlier entries made
    of it is in the store by then.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._stamp = (0, 0, 0)
        self._state = State()
        self._last: dict[str, int] = {}
        self._seen: dict[int, Collection[str]] = {}

    def ids(self) -> Collection[str]:
        """The records that it knows."""
        with self._lock:
            self._refresh()
            return set(self._state.records)

    def stage(self, commit: Commit, *, elsewhere: Mapping[str, Record]) -> Staged:
        """What a commit would do after all that waits.

        Args:
            elsewhere: What is known of records that no entry changes. One of which nothing is known is
                taken to be as the commit expects it.

        Raises:
            Conflict, RecordNotFound, InvalidContent, BadVector: it cannot be done.
        """
        with self._lock:
            self._refresh()
            assumed = {
                change.record.id: replace(change.record, version=change.expects)
                for change in commit.changes
                if change.expects is not None
            }
            return self._state.stage(commit.changes, elsewhere={**assumed, **elsewhere})

    def over_hits(self, hits: Hits, query: Query, limit: int) -> Hits:
        """Candidates of both, at most `limit` by meaning and by words each."""
        with self._lock:
            self._refresh()
            if not self._last:
                return hits
            own = self._state.search(query, limit)
            kept = [self._as_it_shall_be(hit, query) for hit in hits if hit.record.id in self._last]
        found = {hit.record.id: hit for hit in hits if hit.record.id not in self._last}
        found |= {hit.record.id: hit for hit in kept if hit is not None}
        for hit in own:
            before = found.get(hit.record.id)
            found[hit.record.id] = (
                hit if before is None else replace(hit, parts={**before.parts, **hit.parts})
            )
        spaces = None if hits.namespaces is None else hits.namespaces + (own.namespaces is None)
        return replace(_best(found, limit), degraded=hits.degraded, notes=hits.notes, namespaces=spaces)

    def over_list(
        self, records: Sequence[Record], where: Filter, *, limit: int, offset: int
    ) -> Sequence[Record]:
        """Records of both that match, most recently updated first.

        Args:
            records: Those of the store from the first on: as many as are wanted, and as many more as
                records wait.
        """
        with self._lock:
            self._refresh()
            others = [record for record in records if record.id not in self._last]
            mine = [copied(record) for record in self._state.find(where)]
        found = sorted((*others, *mine), key=lambda r: (r.updated_at, r.id), reverse=True)
        return tuple(found[offset : offset + limit])

    def find(self, where: Filter) -> Sequence[Record]:
        """The records that match, in no order."""
        with self._lock:
            self._refresh()
            return [copied(record) for record in self._state.find(where)]

    def get(self, ids: Sequence[str]) -> Mapping[str, Record]:
        """Of these records, those that it knows."""
        with self._lock:
            self._refresh()
            records = self._state.records
            return {each: copied(records[each]) for each in ids if each in records}

    def versions(self, record_id: str) -> Sequence[Record]:
        """The versions of a record that wait, oldest first."""
        with self._lock:
            self._refresh()
            return self._state.versions(record_id)

    def forget(self) -> None:
        """Know nothing; what waits is read again when it is needed."""
        with self._lock:
            self._reset()

    def _refresh(self) -> None:
        stamp = self._entries.stamp()
        if stamp == self._stamp:
            return
        waiting = set(self._entries.numbers())
        for seq in [seq for seq in self._seen if seq not in waiting]:
            for record_id in self._seen.pop(seq):
                if self._last.get(record_id) == seq:
                    del self._last[record_id]
                    self._state.drop(record_id)
        for entry in self._entries.read(sorted(waiting - self._seen.keys())):
            self._take_up(entry)
        self._stamp = stamp

    def _take_up(self, entry: Entry) -> None:
        self._seen[entry.seq] = {change.record.id for change in entry.commit.changes}
        for change in sorted(entry.commit.changes, key=lambda each: each.record.status == "active"):
            record = replace(plain(change.record), version=(change.expects or 0) + 1)
            if self._last.get(record.id, 0) > entry.seq:  # a later one was accepted first
                continue
            self._last[record.id] = entry.seq
            vector, embedder = change.record.vector, change.record.embedder
            known = None if vector is None or embedder is None else (embedder, vector)
            before = self._state.vectors.get(record.id)
            kept = before if before is not None and before[0] == embedder else None
            self._state.put(record, known or kept)

    def _as_it_shall_be(self, hit: Hit, query: Query) -> Hit | None:
        """A hit of the store whose record is about to change, and keeps the vector it was found by."""
        record = self._state.records[hit.record.id]
        is_found = record.is_visible(query.now) and query.where.matches(record)
        if not is_found or record.id in self._state.vectors or record.embedder is None:
            return None
        if record.embedder != hit.record.embedder or "cosine" not in hit.parts or not searched_vector(query):
            return None
        return Hit(copied(record), parts={"cosine": hit.parts["cosine"]})


def _best(found: Mapping[str, Hit], limit: int) -> Hits:
    """The best by meaning, then by words."""
    values = {
        part: {key: hit.parts[part] for key, hit in found.items() if part in hit.parts}
        for part in ("cosine", "bm25")
    }
    best = {
        part: sorted(scores, key=lambda key: (-scores[key], key))[: max(0, limit)]
        for part, scores in values.items()
    }
    return as_hits(
        [found[key].record for key in best["cosine"]],
        [found[key].record for key in best["bm25"]],
        cosines=values["cosine"],
        scores=values["bm25"],
    )
