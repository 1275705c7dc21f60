"""The indexes of a SQLite store's namespaces in memory: loaded at the first search, then kept up to date."""

import contextlib
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from math import inf
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import apsw
import numpy as np
import numpy.typing as npt

from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores import namespace
from supervisor_memory.stores.changes import from_bytes
from supervisor_memory.stores.namespace import NamespaceIndex
from supervisor_memory.stores.protocol import ByWords
from supervisor_memory.stores.sqlite import packed, rounded
from supervisor_memory.stores.sqlite.tables import record_of, records_of, visible

MOST_BYTES: Final = 1 << 30
_READ_TOGETHER: Final = 4_096  # vectors
_COUNTED_EVERY: Final = 16  # searches
_log = logging.getLogger("supervisor_memory")
T = TypeVar("T")


class Space(NamedTuple):
    """A namespace as a reader sees it.

    `revision` counts the commits that touched it; an index older than revision `rebuilt` must be loaded anew.
    """

    namespace: str
    user_id: str
    revision: int
    rebuilt: int


@dataclass(slots=True)
class _Place:
    lock: threading.Lock = field(default_factory=threading.Lock)
    revision: int = -1
    index: NamespaceIndex = field(default_factory=NamespaceIndex)
    nbytes: int = 0  # as counted last
    searches: int = 0  # until it is counted again
    begun: dict[namespace.Space, rounded.Begun] = field(default_factory=dict)  # and not read to the end
    since: int = 0
    changed: dict[int, int] = field(default_factory=dict)
    """Key → the revision by which its record was seen to have changed last, after revision `since`."""

    def is_unchanged(self, key: int, revision: int) -> bool:
        """Whether a record is known to be as it was at a revision; the lock is held."""
        return revision >= max(self.since, self.changed.get(key, 0))


class VectorsLate(Exception):
    """There was no time to read all vectors; what was read is kept for the next search."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Indexes of namespaces, at least as new as the connection's view of the file."""

    connection: apsw.Connection
    places: "Sequence[tuple[Space, _Place]]"
    is_in_time: Callable[[], bool] = lambda: True
    """Whether there is time to read vectors."""

    @property
    def indexes(self) -> Sequence[NamespaceIndex]:
        return [place.index for _, place in self.places]

    def vectors(
        self, index: NamespaceIndex, space: namespace.Space
    ) -> tuple[namespace.Keys, npt.NDArray[np.float32], bool]:
        """The keys of a namespace with vectors in a space, the vectors, and whether they are as new as the
        index, which another search may have updated beyond this connection's view.

        Raises:
            VectorsLate: the time is over.
        """
        if not self.is_in_time():
            raise VectorsLate
        embedder, dimension = space
        seen, place = next(each for each in self.places if each[1].index is index)
        is_new = place.revision == seen.revision
        since = packed.packed_at(self.connection, seen.namespace)
        if since is not None and (held := self._packed(seen.namespace, place, space, since)):
            return *held, is_new
        rows: Iterator[Any] = iter(
            self.connection.execute(
                # An active record has an entry; the rows of the records are larger and lie apart.
                "SELECT v.key, v.vector FROM entries e CROSS JOIN vectors v ON v.key = e.key "
                "WHERE e.namespace = ? AND v.embedder = ? AND v.dim = ?",
                (seen.namespace, embedder, dimension),
            )
        )
        keys: list[int] = []
        values = np.empty((len(index.index), dimension), dtype=np.float32)
        while some := list(islice(rows, _READ_TOGETHER)):  # all at once would take the memory twice
            known = len(keys)
            keys += [int(key) for key, _ in some]
            if len(keys) > len(values):  # the index is newer than what is read, and has fewer
                values = np.concatenate([values, np.empty_like(values, shape=(len(keys), dimension))])
            read = np.frombuffer(b"".join([vector for _, vector in some]), dtype="<f4")
            values[known : len(keys)] = read.reshape(-1, dimension)
        return keys, values[: len(keys)], is_new

    def _packed(
        self, name: str, place: _Place, space: namespace.Space, since: int
    ) -> tuple[rounded.Keys, rounded.Rows] | None:
        begun = place.begun.pop(space, None)
        if begun is None or begun.since != since:
            begun = rounded.begin(self.connection, name, space, since=since)
        if begun is None:
            return None
        try:
            if not rounded.go_on(self.connection, name, space, begun, is_in_time=self.is_in_time):
                place.begun[space] = begun
                raise VectorsLate
        except ValueError as error:
            _log.warning("packed vectors are damaged (%s); the vectors themselves are read instead", error)
            return None
        return rounded.finished(self.connection, name, space, begun)


class Namespaces:
    """The indexes of the namespaces searched lately, in `most_bytes`; those searched longest ago go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._reset()

    def look(
        self,
        connection: apsw.Connection,
        spaces: Sequence[Space],
        at: Callable[[Loaded], T],
        *,
        is_in_time: Callable[[], bool] = lambda: True,
    ) -> T:
        """Call `at` with the namespaces' indexes, brought up to date and locked, and return its result."""
        if self._pid != os.getpid():
            self._reset()
        places = [(space, self._place(space.namespace)) for space in spaces]
        with _locked(places):
            for space, place in places:
                if place.revision < space.revision:
                    _bring_up_to_date(connection, space, place)
            seen = at(Loaded(connection, places, is_in_time))
            sizes = [_size(place) for _, place in places]
        if sizes != [place.nbytes for _, place in places]:
            self._make_room(places, sizes)
        return seen

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._nbytes = 0

    def _place(self, name: str) -> _Place:
        with self._lock:
            place = self._places.get(name)
            if place is None:
                place = self._places[name] = _Place()
            self._places.move_to_end(name)
            return place

    def _make_room(self, searched: Sequence[tuple[Space, _Place]], sizes: Sequence[int]) -> None:
        with self._lock:
            for (space, place), nbytes in zip(searched, sizes, strict=True):
                if self._places.get(space.namespace) is place:  # else others needed its room meanwhile
                    self._nbytes += nbytes - place.nbytes
                    place.nbytes = nbytes
            while self._nbytes > self._most_bytes and len(self._places) > len(searched):
                _, oldest = self._places.popitem(last=False)
                self._nbytes -= oldest.nbytes


def _size(place: _Place) -> int:
    """The bytes of an index: counted after changes and at every 16th search, since searches load vectors."""
    if place.searches == 0:
        place.searches = _COUNTED_EVERY
        return place.index.nbytes
    place.searches -= 1
    return place.nbytes


def _locked(places: Sequence[tuple[Space, _Place]]) -> AbstractContextManager[object]:
    """The locks of all places, taken in the order of names, so that no two searches wait for each other."""
    if len(places) == 1:
        return places[0][1].lock
    with ExitStack() as stack:
        for _, place in sorted(places, key=lambda each: each[0].namespace):
            stack.enter_context(place.lock)
        return stack.pop_all()


def _bring_up_to_date(connection: apsw.Connection, space: Space, place: _Place) -> None:
    if place.revision < space.rebuilt or place.revision < 0:
        place.index = NamespaceIndex(packed.load(connection, space.namespace))
        place.begun.clear()
        place.since, place.changed = space.revision, {}
    else:
        _follow(connection, space, place)
    place.revision, place.searches = space.revision, 0


def _follow(connection: apsw.Connection, space: Space, place: _Place) -> None:
    """Bring an index up to date with the records changed since its revision."""
    for key, entry, embedder, blob in packed.changed(connection, space.namespace, since=place.revision):
        place.changed[key] = space.revision
        if entry is None:
            place.index.drop(key)
            continue
        vector = None if blob is None else (str(embedder), from_bytes(blob))
        place.index.put(key, entry, vector)
    if len(place.changed) > MOST_RECORDS:
        place.since, place.changed = space.revision, {}


MOST_RECORDS: Final = 4_096
LONGEST: Final = 2_000  # characters of a row
_UNKNOWN: Final = (None, "", 0)
_As: TypeAlias = tuple[Record, str, int]  # in a namespace of that revision


class Kept:
    """Records that searches have read; each is valid as long as its namespace has the same revision."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[int, _As] = {}
        self._keys: dict[str, int] = {}

    def of(
        self, keys: Sequence[int], revisions: Mapping[str, int], now: float
    ) -> tuple[dict[int, Record], list[int]]:
        """The known and visible records with these keys, and the keys that have to be read.

        `revisions`: namespace → its present revision; `now`: in seconds since 1970.
        """
        found: dict[int, Record] = {}
        missing: list[int] = []
        for key in keys:
            record, namespace, revision = self._records.get(key, _UNKNOWN)
            if record is None or revisions.get(namespace) != revision:
                missing.append(key)
            elif record.is_visible(now):
                found[key] = record
        return found, missing

    def keys_of(self, ids: Iterable[str], revisions: Mapping[str, int]) -> dict[str, int]:
        """The keys of the known ones of some records, by id; `revisions` as above."""
        found: dict[str, int] = {}
        for id_ in ids:
            key = self._keys.get(id_, -1)
            record, namespace, revision = self._records.get(key, _UNKNOWN)
            if record is not None and record.id == id_ and revisions.get(namespace) == revision:
                found[id_] = key
        return found

    def known(self, keys: Sequence[int]) -> dict[int, _As]:
        """The known records with these keys, of whatever revision."""
        return {key: each for key in keys if (each := self._records.get(key)) is not None}

    def keep(self, some: Mapping[int, _As]) -> None:
        """Keep records by their keys; the oldest make room."""
        with self._lock:
            for key, each in some.items():
                self._let_go(key)
                self._records[key] = each
                self._keys[each[0].id] = key
            while len(self._records) > MOST_RECORDS:
                self._let_go(next(iter(self._records)))

    def _let_go(self, key: int) -> None:
        if former := self._records.pop(key, None):
            self._keys.pop(former[0].id, None)


class Readable:
    """Takes keys; gives the records that a searcher may see, by key.

    The connection sees one state of the store throughout, and the `spaces` the records are in.
    """

    def __init__(
        self, connection: apsw.Connection, kept: Kept, query: Query, spaces: Sequence[Space]
    ) -> None:
        self._connection, self._kept, self._query = connection, kept, query
        self._revisions = {space.namespace: space.revision for space in spaces}
        self._rebuilt = {space.namespace: space.rebuilt for space in spaces}
        self._places: Mapping[str, _Place] = {}

    def beside(self, loaded: Loaded) -> "Readable":
        """The same, beside indexes that know what has changed, as long as these are locked."""
        self._places = {space.namespace: place for space, place in loaded.places}
        return self

    def __call__(self, keys: Sequence[int]) -> Mapping[int, Record]:
        if not _asks_for_namespaces_alone(self._query.where):  # SQLite can tell which, without reading all
            return self._read_visible(keys)
        now = self._query.now
        found, missing = self._kept.of(keys, self._revisions, now)
        if missing:
            same = self._unchanged(missing)
            read = self._read([key for key in missing if key not in same])
            found |= {key: record for key, record in (same | read).items() if record.is_visible(now)}
        return found

    def keys_of(self, ids: Collection[str]) -> Mapping[str, int]:
        """The keys of the stored ones of some records, by id."""
        known = self._kept.keys_of(ids, self._revisions)
        if others := [id_ for id_ in ids if id_ not in known]:
            marks = ", ".join("?" * len(others))
            rows: Iterable[Any] = self._connection.execute(
                f"SELECT id, key FROM records WHERE id IN ({marks})", tuple(others)
            )
            known |= dict(rows)
        return known

    def _unchanged(self, keys: Sequence[int]) -> dict[int, Record]:
        """The known records that are unchanged, though their namespace has changed."""
        known = self._kept.known(keys)
        same: dict[int, _As] = {}
        for key, (record, space, seen) in known.items():
            place = self._places.get(space)
            if place is not None and place.is_unchanged(key, seen):
                same[key] = record, space, self._revisions[space]
        asked = [key for key in known if key not in same]
        select = f"SELECT records.key, namespace, records.revision {_OF_KEYS}"
        rows: Iterable[Any] = self._connection.execute(select, (json.dumps(asked),)) if asked else ()
        for key, present, revision in rows:
            record, space, seen = known[key]
            if space == present and max(revision, self._rebuilt.get(space, inf)) <= seen:
                same[key] = record, space, self._revisions[space]
        self._kept.keep(same)
        return {key: record for key, (record, _, _) in same.items()}

    def _read_visible(self, keys: Sequence[int]) -> dict[int, Record]:
        sql, bindings = visible(self._query.where, now=self._query.now)
        select = f"SELECT records.key, data {_OF_KEYS} WHERE {sql}"
        rows: Iterable[Any] = self._connection.execute(select, (json.dumps(keys), *bindings))
        return {key: record_of(data) for key, data in rows}

    def _read(self, keys: Sequence[int]) -> dict[int, Record]:
        select = f"SELECT records.key, namespace, data {_OF_KEYS}"
        asked: Iterable[Any] = self._connection.execute(select, (json.dumps(keys),))
        rows = [row for row in asked if row[1] in self._revisions]
        records = records_of([data for _, _, data in rows])
        found = list(zip(rows, records, strict=True))
        short = ((key, record, space) for (key, space, data), record in found if len(data) <= LONGEST)
        self._kept.keep({key: (record, space, self._revisions[space]) for key, record, space in short})
        return {row[0]: record for row, record in found}


# `CROSS JOIN` keeps SQLite from walking an index of the user's records to find them.
_OF_KEYS: Final = (
    "FROM (SELECT value FROM json_each(?)) AS candidates CROSS JOIN records ON records.key = candidates.value"
)


@lru_cache(maxsize=256)
def _asks_for_namespaces_alone(where: Filter) -> bool:
    """Whether a filter matches all active records of the namespaces it names."""
    return where == Filter(user_id=where.user_id, families=where.families, tasks=where.tasks)


MOST_ANSWERS: Final = 16
"""A turn asks four or so. Each of their hits that is kept for longer brings the next full
collection of garbage nearer."""


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """What was found in `spaces`, valid from `since` until the first of it expires."""

    found: T
    spaces: Sequence[Space]
    since: float
    until: float

    def holds(self, spaces: Sequence[Space], now: float) -> bool:
        return self.since <= now < self.until and self.spaces == spaces


class Question:
    """The key of an answer: all that it depends on but the records and the time. Hashed only once."""

    __slots__ = ("_asked", "_hash")

    def __init__(self, *asked: Hashable) -> None:
        self._asked, self._hash = asked, hash(asked)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._asked == other._asked


class Answers(Generic[T]):
    """A cache of the latest answers, since a turn repeats many queries; outdated answers are dropped.

    Args:
        ends: When an answer ends to hold though nothing has changed, in seconds since 1970; one that has
            ended is not kept.
    """

    def __init__(self, ends: Callable[[T], float]) -> None:
        self._ends = ends
        self._answers: dict[Hashable, _Answer[T]] = {}
        self._latest: Sequence[Space] = ()

    def known(self, question: Hashable, spaces: Sequence[Space], *, now: float) -> T | None:
        """The answer to a question where it is known; None: it is not."""
        answer = self._answers.get(question)
        return answer.found if answer is not None and answer.holds(spaces, now) else None

    def of(self, question: Hashable, spaces: Sequence[Space], *, now: float, find: Callable[[], T]) -> T:
        """The answer to a question, looked for unless it is known.

        `spaces` are the namespaces as they are now. An answer with a record that has expired by `now`, in
        seconds since 1970, is not used.
        """
        answer = self._answers.pop(question, None)
        if answer is None or not answer.holds(spaces, now):
            found = find()
            if isinstance(found, ByWords):  # the same question may be answered better soon
                return found
            if (until := self._ends(found)) <= now:
                return found
            answer = _Answer(found, spaces, now, until)
            self._forget_former(spaces)
        self._answers[question] = answer
        if len(self._answers) > MOST_ANSWERS:
            with contextlib.suppress(StopIteration, RuntimeError):  # another thread makes room meanwhile
                self._answers.pop(next(iter(self._answers)), None)
        return answer.found

    def _forget_former(self, spaces: Sequence[Space]) -> None:
        """Drop the answers from an earlier state of these namespaces."""
        if spaces == self._latest:  # so it was done when they were seen last
            return
        self._latest = spaces
        present = {space.namespace: space.revision for space in spaces}
        for question, answer in [*self._answers.items()]:
            for name, _, revision, _ in answer.spaces:
                if present.get(name, revision) != revision:
                    self._answers.pop(question, None)
                    break


def first_expiry(hits: Hits) -> float:
    """When the first of some hits expires, in seconds since 1970; infinite: none does."""
    return min([at for hit in hits.items if (at := hit.record.expires_at) is not None], default=inf)
