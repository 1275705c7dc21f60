"""Finds records that share names with others: a walk over the namespaces that a search reads.

Nothing of it is stored: what joins two records is read off the postings of their index and off their texts,
when it is asked for. So a record that was changed, deleted or erased, that waits for review, or that is
another user's, is on no way: only what a search may find is walked over.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate, islice
from math import ceil
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import FrozenDict, Hit, Hits, Joint, Query, Record, Seed
from supervisor_memory.signals.index import Floats, Index, Rows, entry_of
from supervisor_memory.signals.walk import GO_ON, Reached, Start, walk
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.matrix import Matrix
from supervisor_memory.stores.namespace import (
    NamespaceIndex,
    Readable,
    Vectors,
    searched_terms,
    searched_vector,
)
from supervisor_memory.understand.entities import joining_terms, shared

Keys: TypeAlias = npt.NDArray[np.int64]
KeysOf: TypeAlias = Callable[[Collection[str]], Mapping[str, int]]
"""Takes record ids; returns id → key for the stored records."""
_NO_KEYS: Final = np.zeros(0, dtype=np.int64)
_UNKNOWN = np.float32(-2.0)
_MOST_HOLDERS = 4_096  # of a word of the question, where there are no vectors
_FEW = 64  # rows that are compared with the question to tell how much a row can be like it


def related(
    namespaces: Sequence[NamespaceIndex],
    seeds: Sequence[Seed],
    query: Query,
    *,
    limit: int,
    least: float,
    readable: Readable,
    keys: KeysOf,
    vectors: Vectors,
) -> Hits:
    """The records that the seeds are joined to, best first; see `Relates`."""
    if limit <= 0 or not namespaces or not any(seed.weight > 0 for seed in seeds):
        return Hits()
    for each in namespaces:
        each.make_dense()
    return _Walk(namespaces, seeds, query, readable=readable, keys=keys, vectors=vectors).hits(limit, least)


def related_among(
    records: Iterable[Record], seeds: Sequence[Seed], query: Query, *, limit: int, least: float = 0.0
) -> Hits:
    """As `related`, over the given records only, for stores that cannot walk.

    Args:
        records: Each once, and all visible to the searcher.
    """
    ordered = sorted(records, key=lambda record: record.id)
    namespace = NamespaceIndex()
    namespace.index.load((place, entry_of(record)) for place, record in enumerate(ordered))

    def readable(keys: Sequence[int]) -> Mapping[int, Record]:
        return {key: ordered[key] for key in keys}

    def keys(ids: Collection[str]) -> Mapping[str, int]:
        return {record.id: key for key, record in enumerate(ordered) if record.id in ids}

    by_words = Query(query.text, query.where, query.terms, now=query.now)
    return related(
        [namespace],
        seeds,
        by_words,
        limit=limit,
        least=least,
        readable=readable,
        keys=keys,
        vectors=_no_vectors,
    )


def naming(
    namespaces: Sequence[NamespaceIndex], names: Sequence[Sequence[str]], *, limit: int, readable: Readable
) -> Sequence[tuple[int, Sequence[Record]]]:
    """The records that have all terms of a name, for each name; see `Names`."""
    for each in namespaces:
        each.make_dense()
    indexes = [each.index for each in namespaces]
    held = [_with_all(indexes, frozenset(name)) for name in names]
    newest = [keys[np.argsort(-keys)[:limit]].tolist() for keys in held]
    known = readable(list({key for keys in newest for key in keys})) if limit else {}
    return [
        (len(every), sorted((known[key] for key in keys if key in known), key=_place, reverse=True))
        for every, keys in zip(held, newest, strict=True)
    ]


_place = attrgetter("place")


def _with_all(indexes: Sequence[Index], terms: Collection[str]) -> Keys:
    """The keys of the records that hold all of some terms."""
    found = [_NO_KEYS]
    rarest = sorted(terms, key=lambda term: sum([index.count(term) for index in indexes]))
    for index in indexes if rarest else ():
        rows = index.holders(rarest[0])
        for term in rarest[1:]:
            rows = rows[_are_in(rows, index.holders(term))]
        found.append(index.keys[rows])
    return np.concatenate(found)


def _are_in(rows: Rows, others: Rows) -> npt.NDArray[np.bool_]:
    """Which rows are among other rows; both are in ascending order, as postings are."""
    if not len(others):
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray(others.take(others.searchsorted(rows), mode="clip") == rows)


def _no_vectors(*_: object) -> tuple[Sequence[int], Floats, bool]:
    return [], np.zeros((0, 1), dtype=np.float32), True


class _Walk:
    """One walk, with the records that it has read."""

    def __init__(
        self,
        namespaces: Sequence[NamespaceIndex],
        seeds: Sequence[Seed],
        query: Query,
        *,
        readable: Readable,
        keys: KeysOf,
        vectors: Vectors,
    ) -> None:
        self._namespaces, self._query = namespaces, query
        self._seeds = [seed for seed in seeds if seed.weight > 0]
        self._readable, self._vectors = readable, vectors
        self._indexes: Sequence[Index] = [each.index for each in namespaces]
        self._keys = [*accumulate((index.size for index in self._indexes), initial=0)]
        self._asked, self._searched = frozenset(query.terms), searched_terms(query)
        self._words = max(1, len(self._searched))
        self._vector = searched_vector(query)
        self._known: dict[int, Record] = {}
        self._holding_asked: Sequence[Rows] | None = None
        self._keys_of = keys
        self._begun = self._rows_of([seed.record_id for seed in self._seeds])
        self._untold = [seed.record_id for seed in seeds if not seed.weight]

    @cached_property
    def _left_out(self) -> frozenset[int]:
        """The rows of seeds without weight; computed late, since most walks reach nothing."""
        return frozenset(self._rows_of(self._untold).values())

    def hits(self, limit: int, least: float) -> Hits:
        begun = (self._begun.get(seed.record_id) for seed in self._seeds)
        starts = [_start(seed.text, seed.weight, row) for seed, row in zip(self._seeds, begun, strict=True)]
        reached = walk(
            self._indexes,
            starts,
            without=self._asked,
            fit=self._fit,
            read=self._read,
            is_any=self._is_any,
            least=least,
            most=limit + len(self._untold),
        )
        told = self._first_visible(reached, limit)
        if not told:
            return Hits()
        rows = np.array([each.row for each in told], dtype=np.intp)
        near = [_UNKNOWN] * len(told) if self._vector is None else self._cosines(rows).tolist()
        return Hits(tuple(map(self._hit, told, near)))

    def _first_visible(self, reached: Sequence[Reached], limit: int) -> Sequence[Reached]:
        """The first rows that the searcher may see; reads no more records than needed."""
        others = [each for each in reached if each.row not in self._left_out]
        found: list[Reached] = []
        at = 0
        while at < len(others) and len(found) < limit:
            some = others[at : at + limit - len(found)]
            self._look([each.row for each in some])
            found += [each for each in some if each.row in self._known]
            at += len(some)
        return found

    def _hit(self, reached: Reached, cosine: float) -> Hit:
        """The record of a row, with the path to it."""
        seed, record = self._seeds[reached.start], self._known[reached.row]
        way = [
            (seed.record_id, seed.text),
            *((self._known[by].id, self._known[by].content) for by in reached.by),
        ]
        nexts = [*(text for _, text in way[1:]), record.content]
        path = tuple(
            Joint(id_, shared(text, after, without=self._asked))
            for (id_, text), after in zip(way, nexts, strict=True)
        )
        parts = {"walk": reached.worth} | ({"cosine": cosine} if cosine > _UNKNOWN else {})
        return Hit(record, 0.0, FrozenDict(parts), path=path)

    def _read(self, rows: Sequence[int]) -> Mapping[int, Start]:
        found: dict[int, Start] = {}
        others = [row for row in rows if row not in self._begun.values()]
        for first in range(0, len(others), GO_ON):  # no more records are read than that takes
            self._look(some := others[first : first + GO_ON])
            found |= {row: _start(self._known[row].content, row=row) for row in some if row in self._known}
            if len(found) >= GO_ON:
                break
        return dict(islice(found.items(), GO_ON))

    def _rows_of(self, ids: Iterable[str | None]) -> Mapping[str | None, int]:
        keys = self._keys_of([*filter(None, ids)])
        firsts = [*zip(self._indexes, self._keys, strict=False)]
        rows = ((id_, index.row(key), first) for id_, key in keys.items() for index, first in firsts)
        return {id_: first + row for id_, row, first in rows if row is not None}

    def _look(self, rows: Sequence[int]) -> None:
        """Read the records of rows, those that the searcher may see."""
        keys = {row: self._key(row) for row in rows if row not in self._known}
        found = self._readable([*keys.values()]) if keys else {}
        self._known |= {row: found[key] for row, key in keys.items() if key in found}

    def _key(self, row: int) -> int:
        number = self._place(row)
        return int(self._indexes[number].keys[row - self._keys[number]])

    def _place(self, row: int) -> int:
        return next(number for number, end in enumerate(self._keys[1:]) if row < end)

    def _fit(self, rows: Rows) -> Floats:
        """The similarity of rows to the question: by meaning, else by their share of its words."""
        if self._vector is None:
            return self._by_words(rows)
        least, span = self._query.unrelated, max(self._query.same - self._query.unrelated, 1e-6)
        likeness: Floats = (self._cosines(rows) - np.float32(least)) / np.float32(span)
        return np.clip(likeness, 0.0, 1.0, out=likeness)

    def _cosines(self, rows: Rows) -> Floats:
        assert self._vector is not None
        embedder, vector = self._vector
        if len(self._namespaces) == 1:
            matrix = self._namespaces[0].matrix((embedder, len(vector)), self._vectors)
            return _cosines_of(matrix, rows, vector)
        found = np.full(len(rows), _UNKNOWN, dtype=np.float32)
        for number, namespace in enumerate(self._namespaces):
            here = np.flatnonzero((rows >= self._keys[number]) & (rows < self._keys[number + 1]))
            if len(here):
                matrix = namespace.matrix((embedder, len(vector)), self._vectors)
                found[here] = _cosines_of(matrix, rows[here] - self._keys[number], vector)
        return found

    def _by_words(self, rows: Rows) -> Floats:
        held = np.zeros(len(rows), dtype=np.float32)
        for some in self._with_asked():
            held += _are_in(rows, some)
        return held / np.float32(self._words)

    def _is_any(self, least: float) -> bool:
        """Whether any visible row can reach a given similarity to the question.

        By meaning any can be. One that has so many of the words has one of the rarest of them.
        """
        if self._vector is not None or least <= 0:
            return True
        asked = self._with_asked()
        rarest = asked[: max(0, len(asked) - ceil(least * self._words) + 1)]
        if sum(map(len, rarest)) > _FEW:
            return True
        others = [
            row for row in {row for rows in rarest for row in rows.tolist()} if row not in self._left_out
        ]
        return bool(others) and max(self._by_words(np.array(others, dtype=np.intp)).tolist()) >= least

    def _with_asked(self) -> Sequence[Rows]:
        """The rows that hold each word of the question, rarest word first; words in very many rows are left
        out."""
        if self._holding_asked is None:
            counts = ((term, sum([each.count(term) for each in self._indexes])) for term in self._searched)
            some = [term for term, count in counts if 0 < count <= _MOST_HOLDERS]
            self._holding_asked = sorted(map(self._holders, some), key=len)
        return self._holding_asked

    def _holders(self, term: str) -> Rows:
        """The rows of all indexes that hold a term."""
        held = [index.holders(term) for index in self._indexes]
        if len(held) == 1:
            return held[0]
        return np.concatenate([rows + first for rows, first in zip(held, self._keys, strict=False)])


def _cosines_of(matrix: Matrix, rows: Rows, vector: Vector) -> Floats:
    return matrix.cosines_of(rows.tolist(), vector) if len(matrix) else np.full(len(rows), _UNKNOWN)


def _start(text: str, weight: float = 1.0, row: int | None = None) -> Start:
    return Start(terms(text), partial(joining_terms, text), weight, row)
