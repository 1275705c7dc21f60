"""Records in memory, with indexes to search them. The core of the backends `in_memory` and `json`."""

from bisect import bisect_left, insort
from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge, nsmallest
from operator import attrgetter
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from supervisor_memory.model.records import Filter, Hits, Namespace, Query, Record, Seed
from supervisor_memory.model.records import Place as PlaceInLists
from supervisor_memory.signals.index import entry_of
from supervisor_memory.stores.changes import (
    Place,
    Vector,
    as_stored,
    clash,
    in_order_of_application,
    places,
    vector_to_store,
)
from supervisor_memory.stores.namespace import NamespaceIndex, Space, search, searched_user
from supervisor_memory.stores.protocol import Change, Stored
from supervisor_memory.stores.related import naming, related

StoredVector: TypeAlias = tuple[str, Vector]
"""The name of the embedder, and the vector."""

_Named: TypeAlias = tuple[str, str]
"""A user, and a hash of a wording or a subject."""

_T = TypeVar("_T")
_TASK_SEGMENTS = 3


@dataclass(slots=True)
class Staged:
    """What a commit will do to a state once applied.

    Attributes:
        results: The records as stored, in the order of the changes.
        records: Record id → the record as it will be.
        previous: Present versions that become history.
        vectors: Record id → its vector from then on; None: it has none.
        taken: Place → the id of its holder from then on; None: it is free.
    """

    results: list[Record]
    records: dict[str, Record] = field(default_factory=dict)
    previous: list[Record] = field(default_factory=list)
    vectors: dict[str, StoredVector | None] = field(default_factory=dict)
    taken: dict[Place, str | None] = field(default_factory=dict)


class State:
    """Records, their earlier versions and their vectors. Not safe between threads: its owner locks.

    Args:
        records, vectors: Record id → the record, its vector.
        history: Record id → the versions before the present one, oldest first.
    """

    def __init__(
        self,
        records: Mapping[str, Record] | None = None,
        *,
        history: Mapping[str, list[Record]] | None = None,
        vectors: Mapping[str, StoredVector] | None = None,
    ) -> None:
        self.records = dict(records or {})
        self.history = dict(history or {})
        self.vectors = dict(vectors or {})
        self._taken = {place: r.id for r in self.records.values() for place in places(r)}
        self._names: list[str] = []  # record ids; the place of one is its key in matrices
        self._numbers: dict[str, int] = {}
        self._users: dict[str, dict[Namespace, _Indexes]] = {}
        self._told_of: defaultdict[str, set[str]] = defaultdict(set)  # message → ids of records
        self._worded: defaultdict[_Named, set[str]] = defaultdict(set)
        for record in self.records.values():
            self._indexes(record.namespace).ids[record.id] = record.place
            self._note_names(None, record)

    def stage(self, changes: Sequence[Change], *, elsewhere: Mapping[str, Record] | None = None) -> Staged:
        """Compute the effect of changes, without making them.

        Args:
            elsewhere: Record id → a record that is not in this state and may be changed all the same.

        Raises:
            Conflict, RecordNotFound, InvalidContent, BadVector: a change cannot be made.
        """
        staged = Staged(results=[change.record for change in changes])
        known = ChainMap(staged.records, self.records, dict(elsewhere or {}))
        for position, change in in_order_of_application(changes):
            staged.results[position] = self._stage_one(staged, change, known.get(change.record.id))
        return staged

    def apply(self, staged: Staged) -> None:
        """Make the staged changes. Cannot fail."""
        for record in staged.previous:
            self.history.setdefault(record.id, []).append(record)
        for place, holder in staged.taken.items():
            if holder is None:
                self._taken.pop(place, None)
            else:
                self._taken[place] = holder
        for record_id, vector in staged.vectors.items():
            self._set_vector(record_id, vector)
        for record in staged.records.values():
            self._reindex(self.records.get(record.id), record)
            self.records[record.id] = record

    def put(self, record: Record, vector: StoredVector | None) -> None:
        """Put a record as another store has it, without checks; a present version becomes history."""
        before = self.records.get(record.id)
        if before is not None:
            if before.version != record.version:
                self.history.setdefault(record.id, []).append(before)
            self._leave_places(before)
        self._taken.update((place, record.id) for place in places(record))
        self._set_vector(record.id, vector)
        self._reindex(before, record)
        self.records[record.id] = record

    def _set_vector(self, record_id: str, vector: StoredVector | None) -> None:
        if vector is None:
            self.vectors.pop(record_id, None)
        else:
            self.vectors[record_id] = vector

    def drop(self, record_id: str) -> None:
        """Remove a record with its history and its vector."""
        record = self.records.pop(record_id, None)
        if record is not None:
            self.history.pop(record_id, None)
            self.vectors.pop(record_id, None)
            self._leave_places(record)
            self._indexes(record.namespace).forget(record_id)
            self._note_names(record, None)

    def holder(self, place: Place, staged: Staged) -> str | None:
        """The id of the record that holds a place once `staged` is applied; None: it is free."""
        return staged.taken.get(place, self._taken.get(place))

    def page(self, after: str | None, limit: int, user_id: str | None) -> Sequence[Stored]:
        """The next records in order of their ids, with all that belongs to them; see `Moves`."""
        ids = self.records if user_id is None else [record.id for record in self.of_user(user_id)]
        wanted = nsmallest(max(0, limit), (each for each in ids if after is None or each > after))
        return tuple(
            Stored(self.records[each], tuple(self.history.get(each, ())), vector and vector[1].copy())
            for each, vector in ((each, self.vectors.get(each)) for each in wanted)
        )

    def search(self, query: Query, limit: int) -> Hits:
        """Candidates by all signals together; see `MemoryBackend.search`."""
        searched_user(query)
        namespaces = [each.searched() for each in self._searched(query.where)]
        if not namespaces:
            return Hits(namespaces=0)
        readable = partial(self._readable, query)
        return search(namespaces, query, limit=limit, readable=readable, vectors=self._vectors_of)

    def related(self, seeds: Sequence[Seed], query: Query, limit: int, least: float) -> Hits:
        """Records that the seeds are joined to; see `Relates`."""
        searched_user(query)
        namespaces = [each.searched() for each in self._searched(query.where)]
        readable = partial(self._readable, query)
        return related(
            namespaces,
            seeds,
            query,
            limit=limit,
            least=least,
            readable=readable,
            keys=self._keys_of,
            vectors=self._vectors_of,
        )

    def naming(
        self, names: Sequence[Sequence[str]], query: Query, limit: int
    ) -> Sequence[tuple[int, Sequence[Record]]]:
        """The records that have all terms of a name; see `Names`."""
        searched_user(query)
        namespaces = [each.searched() for each in self._searched(query.where)]
        return naming(namespaces, names, limit=limit, readable=partial(self._readable, query))

    def find(self, where: Filter) -> Iterator[Record]:
        """The records that match, in no order."""
        if where.ids is not None:
            candidates = [self.records[i] for i in dict.fromkeys(where.ids) if i in self.records]
        elif where.ref_ids is not None:
            told = (self._told_of.get(message, ()) for message in where.ref_ids)
            candidates = [self.records[i] for i in set[str]().union(*told)]
        elif (named := _asked_name(where)) is not None:
            candidates = [self.records[i] for i in self._worded.get(named, ())]
        else:
            candidates = [self.records[i] for indexes in self._searched(where) for i in indexes.ids]
        return (record for record in candidates if where.matches(record))

    def latest(self, where: Filter) -> Iterator[Record]:
        """The records that match, the last updated first, and of equals by falling id."""
        if where.ids is not None or where.ref_ids is not None or _asked_name(where) is not None:
            yield from sorted(self.find(where), key=attrgetter("place"), reverse=True)
            return
        runs = (indexes.latest(where.behind) for indexes in self._searched(where))
        yield from filter(where.matches, (self.records[id] for _, id in merge(*runs, reverse=True)))

    def of_user(self, user_id: str) -> Sequence[Record]:
        """All records of a user, in any status."""
        spaces = self._users.get(user_id, {}).values()
        return [self.records[record_id] for indexes in spaces for record_id in indexes.ids]

    def counted(self, user_id: str) -> dict[str, int]:
        """The number of a user's records, versions and vectors, by kind."""
        return self.counted_of(self.of_user(user_id))

    def counted_of(self, records: Sequence[Record], *, history_of: Sequence[str] = ()) -> dict[str, int]:
        """The number of the given records, versions and vectors, by kind.

        Args:
            history_of: Ids of further records, of which only the earlier versions count.
        """
        ids = [record.id for record in records]
        return {
            "records": len(ids),
            "versions": sum(len(self.history.get(each, ())) for each in (*ids, *history_of)),
            "vectors": sum(each in self.vectors for each in ids),
        }

    def without(self, user_ids: Collection[str]) -> "State":
        """A new state without the records of these users."""
        return self.without_records({r.id for user_id in user_ids for r in self.of_user(user_id)})

    def without_records(self, gone: Collection[str], *, history_of: Collection[str] = ()) -> "State":
        """A new state without these records, and without the earlier versions of others."""
        short = {*gone, *history_of}
        return State(
            {key: record for key, record in self.records.items() if key not in gone},
            history={key: versions for key, versions in self.history.items() if key not in short},
            vectors={key: vector for key, vector in self.vectors.items() if key not in gone},
        )

    def owned(self, ids: Sequence[str], user_id: str) -> list[Record]:
        """The records with these ids that are the user's."""
        found = (self.records.get(each) for each in dict.fromkeys(ids))
        return [record for record in found if record is not None and record.user_id == user_id]

    @property
    def users(self) -> Collection[str]:
        return self._users

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first, the present one last."""
        if record_id not in self.records:
            return ()
        return (*self.history.get(record_id, ()), self.records[record_id])

    def _stage_one(self, staged: Staged, change: Change, current: Record | None) -> Record:
        record_id = change.record.id
        record, _ = as_stored(change, current)
        vector = self._vector_after(staged, change.record)
        record = replace(record, embedder=None if vector is None else vector[0])
        self._take_places(staged, current, record)
        if current is not None and current.version != record.version:
            staged.previous.append(current)
        staged.records[record_id], staged.vectors[record_id] = record, vector
        return record

    def _vector_after(self, staged: Staged, record: Record) -> StoredVector | None:
        vector = vector_to_store(record)
        if vector is not None and record.embedder is not None:
            return record.embedder, vector.copy()
        stored = staged.vectors.get(record.id, self.vectors.get(record.id))
        return stored if stored is not None and stored[0] == record.embedder else None

    def _take_places(self, staged: Staged, current: Record | None, record: Record) -> None:
        for place in places(current) if current is not None else ():
            staged.taken[place] = None
        for place in places(record):
            holder = self.holder(place, staged)
            if holder is not None and holder != record.id:
                raise clash(place[0], holder, record.id)
            staged.taken[place] = record.id

    def _leave_places(self, record: Record) -> None:
        for place in places(record):
            if self._taken.get(place) == record.id:
                del self._taken[place]

    def _reindex(self, before: Record | None, after: Record) -> None:
        if before is not None and before.namespace != after.namespace:
            self._indexes(before.namespace).forget(before.id)
        self._indexes(after.namespace).note(after)
        self._note_names(before, after)

    def _note_names(self, before: Record | None, after: Record | None) -> None:
        if before is not None:
            _drop(self._told_of, before.linked_ids, before.id)
            _drop(self._worded, _names(before), before.id)
        if after is not None:
            for message in after.linked_ids:
                self._told_of[message].add(after.id)
            for name in _names(after):
                self._worded[name].add(after.id)

    def _indexes(self, namespace: Namespace) -> "_Indexes":
        of_user = self._users.setdefault(namespace[1], {})
        if namespace not in of_user:
            of_user[namespace] = _Indexes(self)
        return of_user[namespace]

    def _searched(self, where: Filter) -> Sequence["_Indexes"]:
        users = self._users.values() if where.user_id is None else [self._users.get(where.user_id, {})]
        spaces = [space for of_user in users for space in of_user.items()]
        return [indexes for namespace, indexes in spaces if _may_hold(where, namespace)]

    def number(self, record_id: str) -> int:
        """The key of a record in matrices."""
        number = self._numbers.setdefault(record_id, len(self._names))
        if number == len(self._names):
            self._names.append(record_id)
        return number

    def _readable(self, query: Query, keys: Sequence[int]) -> Mapping[int, Record]:
        """The records with these keys that the searcher may see."""
        records = {key: self.records[self._names[key]] for key in keys}
        return {key: r for key, r in records.items() if r.is_visible(query.now) and query.where.matches(r)}

    def _keys_of(self, ids: Collection[str]) -> Mapping[str, int]:
        return {each: self._numbers[each] for each in ids if each in self._numbers}

    def _vectors_of(
        self, namespace: NamespaceIndex, space: Space
    ) -> tuple[Sequence[int], npt.NDArray[np.float32], bool]:
        keys = namespace.index.living_keys()
        stored = ((key, self.vectors.get(self._names[key])) for key in keys)
        there = [(key, each[1]) for key, each in stored if each and (each[0], len(each[1])) == space]
        values = np.zeros((len(there), space[1]), dtype=np.float32)
        for row, (_, vector) in enumerate(there):
            values[row] = vector
        return [key for key, _ in there], values, True


def _drop(ids_of: dict[_T, set[str]], names: Iterable[_T], record_id: str) -> None:
    """Take a record from the ids of some names; a name without any goes."""
    for name in names:
        ids = ids_of[name]
        ids.discard(record_id)
        if not ids:
            del ids_of[name]


def _names(record: Record) -> Iterator[_Named]:
    """The names by which lists find a record, besides its namespace."""
    yield record.user_id, record.content_hash
    if record.subject is not None:
        yield record.user_id, record.subject


def _asked_name(where: Filter) -> _Named | None:
    """The name that a filter asks for, a content hash or a subject, with its user; None: neither."""
    name = where.subject if where.content_hash is None else where.content_hash
    return None if name is None or where.user_id is None else (where.user_id, name)


def _may_hold(where: Filter, namespace: Namespace) -> bool:
    """Whether a namespace of the right user can hold a record that matches."""
    family, task = namespace[0], namespace[2] if len(namespace) == _TASK_SEGMENTS else None
    in_task = where.tasks is None or task in where.tasks
    if where.families is not None:
        return in_task and family in where.families
    return in_task and family not in where.left_out


class _Indexes:
    """The ids of a namespace with their places in lists, and the index of its active records.

    The order of the places is made by the first list, the index by the first search.
    """

    def __init__(self, state: State) -> None:
        self.ids: dict[str, PlaceInLists] = {}
        self._order: list[PlaceInLists] | None = None
        self._state = state
        self._searched: NamespaceIndex | None = None

    def latest(self, behind: PlaceInLists | None) -> Iterator[PlaceInLists]:
        """The places, the latest first; of those behind a place alone."""
        if self._order is None:
            self._order = sorted(self.ids.values())
        end = len(self._order) if behind is None else bisect_left(self._order, behind)
        return (self._order[n] for n in range(end - 1, -1, -1))

    def searched(self) -> NamespaceIndex:
        if self._searched is None:
            self._searched = NamespaceIndex()
            for record_id in self.ids:
                self._take_up(self._searched, self._state.records[record_id])
        return self._searched

    def note(self, record: Record) -> None:
        """Add a record to the ids and the index, or replace it there."""
        self._drop_id(record.id)
        self.ids[record.id] = record.place
        if self._order is not None:
            insort(self._order, record.place)
        if self._searched is not None:
            self._take_up(self._searched, record)

    def forget(self, record_id: str) -> None:
        """Remove a record that has moved to another namespace or is gone."""
        self._drop_id(record_id)
        if self._searched is not None:
            self._searched.drop(self._state.number(record_id))

    def _drop_id(self, record_id: str) -> None:
        place = self.ids.pop(record_id, None)
        if place is not None and self._order is not None:
            del self._order[bisect_left(self._order, place)]

    def _take_up(self, searched: NamespaceIndex, record: Record) -> None:
        key = self._state.number(record.id)
        if record.status == "active":
            searched.put(key, entry_of(record), self._state.vectors.get(record.id))
        else:
            searched.drop(key)
