"""The indexes of a SQLite store's namespaces in memory: loaded at the first search, then kept up to date."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

import apsw
import numpy as np
import numpy.typing as npt

from supervisor_memory.signals.index import entry_of
from supervisor_memory.stores import namespace
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.namespace import NamespaceIndex
from supervisor_memory.stores.sqlite.tables import load_entries, record_of

__all__ = ["Loaded", "Namespaces", "Space"]

MOST_BYTES: Final = 1 << 30
_READ_TOGETHER: Final = 4_096  # vectors
_COUNTED_EVERY: Final = 16  # searches
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Space:
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


@dataclass(frozen=True, slots=True)
class Loaded:
    """Indexes of namespaces, at least as new as the connection's view of the file."""

    connection: apsw.Connection
    places: "Sequence[tuple[Space, _Place]]"

    @property
    def indexes(self) -> Sequence[NamespaceIndex]:
        return [place.index for _, place in self.places]

    def vectors(
        self, index: NamespaceIndex, space: namespace.Space
    ) -> tuple[Sequence[int], npt.NDArray[np.float32], bool]:
        """The keys of a namespace with vectors in a space, these vectors, and whether they are as new as the
        index: another search may have brought the index beyond what this connection sees."""
        embedder, dimension = space
        seen, place = next(each for each in self.places if each[1].index is index)
        rows: Iterator[Any] = iter(
            self.connection.execute(
                "SELECT v.key, v.vector FROM records r CROSS JOIN vectors v ON v.key = r.key "
                "WHERE r.namespace = ? AND r.status = 'active' AND v.embedder = ? AND v.dim = ?",
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
        return keys, values[: len(keys)], place.revision == seen.revision


class Namespaces:
    """The indexes of the namespaces searched lately; the least recently searched are dropped first.

    Args:
        most_bytes: How much memory they may take together; the namespaces of a running search may take more.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._reset()

    def look(self, connection: apsw.Connection, spaces: Sequence[Space], at: Callable[[Loaded], T]) -> T:
        """Call `at` with the namespaces' indexes, brought up to date and locked, and return its result."""
        if self._pid != os.getpid():
            self._reset()
        places = [(space, self._place(space.namespace)) for space in spaces]
        with _held(places):
            for space, place in places:
                if place.revision < space.revision:
                    _bring_up_to_date(connection, space, place)
            seen = at(Loaded(connection, places))
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


def _held(places: Sequence[tuple[Space, _Place]]) -> AbstractContextManager[object]:
    """The locks of all places, taken in the order of names, so that no two searches wait for each other."""
    if len(places) == 1:
        return places[0][1].lock
    with ExitStack() as stack:
        for _, place in sorted(places, key=lambda each: each[0].namespace):
            stack.enter_context(place.lock)
        return stack.pop_all()


def _bring_up_to_date(connection: apsw.Connection, space: Space, place: _Place) -> None:
    if place.revision < space.rebuilt or place.revision < 0:
        place.index = NamespaceIndex()
        place.index.index.load(load_entries(connection, space.namespace))
    else:
        _follow(connection, space, place)
    place.revision, place.searches = space.revision, 0


def _follow(connection: apsw.Connection, space: Space, place: _Place) -> None:
    """Bring an index up to date with the records changed since its revision."""
    rows: Iterable[Any] = connection.execute(
        "SELECT r.key, r.status, r.data, v.embedder, v.vector FROM records r "
        "LEFT JOIN vectors v ON v.key = r.key WHERE r.namespace = ? AND r.revision > ? ORDER BY r.key",
        (space.namespace, place.revision),
    )
    for key, status, data, embedder, blob in rows:
        if status != "active":
            place.index.drop(int(key))
            continue
        vector: tuple[str, Vector] | None = None
        if blob is not None:
            vector = str(embedder), np.frombuffer(blob, dtype="<f4")
        place.index.put(int(key), entry_of(record_of(data)), vector)
