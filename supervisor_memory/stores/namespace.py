"""The index of a namespace's active records, and the search over several namespaces.

Shared by the backends that search in this process. Storage and visibility are the backends' business.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.errors import MissingUser
from supervisor_memory.model.records import FrozenDict, Hit, Hits, Query, Record
from supervisor_memory.model.records.found import hit_of
from supervisor_memory.signals.index import Entry, Index
from supervisor_memory.signals.measure import Asked, Cosines, Measured, measure
from supervisor_memory.stores.changes import Vector, unit
from supervisor_memory.stores.matrix import Matrix

MOST_TERMS = 128
_IN_A_GROUP: Final = 8
_NOTHING: Final = np.float32(0)


def searched_user(query: Query) -> str:
    """The user of a search. Raises MissingUser: the filter names no user."""
    if query.where.user_id is None:
        raise MissingUser("a search names no user; set `user_id` in its filter")
    return query.where.user_id


def searched_terms(query: Query) -> tuple[str, ...]:
    """The first 128 distinct terms of a query: a longer text finds nothing more by its tail."""
    if not query.terms:
        return ()
    return tuple(dict.fromkeys(term for term in query.terms if term))[:MOST_TERMS]


def searched_vector(query: Query) -> tuple[str, Vector] | None:
    """The embedder and the vector of a query, at unit length; None when the search is by words alone."""
    if query.vector is None or query.embedder is None:
        return None
    return query.embedder, unit(query.vector, what="the query vector")


Space: TypeAlias = tuple[str, int]
"""An embedder and the dimension of its vectors."""
Keys: TypeAlias = Sequence[int] | npt.NDArray[np.int64]
Vectors: TypeAlias = Callable[["NamespaceIndex", Space], tuple[Keys, npt.NDArray[np.float32], bool]]
"""Gives the keys of a namespace with vectors in a space, these vectors, and whether they are as new as
the index."""
Readable: TypeAlias = Callable[[Sequence[int]], Mapping[int, Record]]
"""Takes keys; gives the records that the searcher may see, by key."""

_SPARE: Final = 10  # some of the best may not be visible
_EXACT: Final = 64  # cosines; in large namespaces the others are approximate
_OF_EACH: Final = 4  # beside so many candidates come one by meaning alone and one by words alone


class NamespaceIndex:
    """The words, places in conversations and vectors of a namespace's records. Not safe between threads."""

    def __init__(self, index: Index | None = None) -> None:
        self.index = Index() if index is None else index
        self._matrices: dict[Space, Matrix] = {}

    def put(self, key: int, entry: Entry, vector: tuple[str, Vector] | None) -> None:
        """Add a record, or replace it."""
        self._drop_vector(key)
        row = self.index.put(key, entry)
        if vector is not None and (matrix := self._matrices.get((vector[0], len(vector[1])))) is not None:
            matrix.put(row, vector[1])

    def drop(self, key: int) -> None:
        """Remove a record; nothing happens when there is none."""
        self._drop_vector(key)
        self.index.drop(key)

    def cosines(self, space: Space, vector: Vector, vectors: Vectors, *, exact: int) -> Cosines | None:
        """The rows with a vector in the space, and their cosines; the best `exact` cosines are exact."""
        matrix = self.matrix(space, vectors)
        return matrix.cosines(vector, exact=exact) if len(matrix) else None

    def matrix(self, space: Space, vectors: Vectors) -> Matrix:
        """The vectors in a space, by row; loaded when they are first asked for."""
        if (matrix := self._matrices.get(space)) is not None:
            return matrix
        keys, values, is_new = vectors(self, space)
        rows = self.index.rows(keys)
        if not (known := rows >= 0).all():
            rows, values = rows[known], values[known]
        matrix = Matrix.of(rows, values) if len(rows) else Matrix(space[1])
        if is_new:  # else a vector could be missing that no later update would bring
            self._matrices[space] = matrix
        return matrix

    def make_dense(self) -> None:
        """Drop the rows of removed records, where most rows are such. Called before each search."""
        if self.index.is_sparse:
            self.index.compact()
            self._matrices.clear()

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + sum([matrix.nbytes for matrix in self._matrices.values()])

    def _drop_vector(self, key: int) -> None:
        row = self.index.row(key)
        if row is not None:
            for matrix in self._matrices.values():
                matrix.drop(row)


def search(
    namespaces: Sequence[NamespaceIndex], query: Query, *, limit: int, readable: Readable, vectors: Vectors
) -> Hits:
    """The best records by all signals together; see `MemoryBackend.search`."""
    if limit <= 0 or not namespaces:
        return Hits()
    for each in namespaces:
        each.make_dense()
    searched, asked = searched_vector(query), searched_terms(query)
    is_by_vector_alone = not query.text or not any(each.index.has_streams for each in namespaces)
    if searched is not None and not asked and is_by_vector_alone:
        found = _nearest(namespaces, searched, limit, readable, vectors)
        if found is not None:
            return found
    elif searched is None and not asked:
        return Hits()
    cosines = [
        None
        if searched is None
        else each.cosines((searched[0], len(searched[1])), searched[1], vectors, exact=max(_EXACT, 2 * limit))
        for each in namespaces
    ]
    indexes = [each.index for each in namespaces]
    is_cut = len(asked) == MOST_TERMS
    asking = Asked(query.text, asked, query.now, query.unrelated, is_cut=is_cut, names=query.names)
    measured = measure(indexes, asking, cosines, query.weights)
    return chosen(indexes, measured, limit, readable)


def _nearest(
    namespaces: Sequence[NamespaceIndex],
    searched: tuple[str, Vector],
    limit: int,
    readable: Readable,
    vectors: Vectors,
) -> Hits | None:
    """The nearest records, for a question by meaning alone; None where too many of them are invisible."""
    embedder, vector = searched
    for wanted in (limit, limit + _SPARE):
        near: list[tuple[float, int]] = []
        is_all = True
        for each in namespaces:
            matrix = each.matrix((embedder, len(vector)), vectors)
            rows, cosines = matrix.nearest(vector, wanted)
            near += zip(cosines.tolist(), each.index.keys[rows].tolist(), strict=True)
            is_all = is_all and len(rows) == len(matrix)
        near.sort(reverse=True)  # of equals the newest first
        is_all = is_all and len(near) <= wanted
        records = readable([key for _, key in near[:wanted]])
        hits = [
            Hit(records[key], 0.0, FrozenDict(cosine=cosine, match=cosine if cosine > 0.0 else 0.0))
            for cosine, key in near[:wanted]
            if key in records
        ]
        if len(hits) >= limit or is_all:
            return Hits(tuple(hits[:limit]))
    return None


def chosen(indexes: Sequence[Index], measured: Measured, limit: int, readable: Readable) -> Hits:
    """The best rows by match, then the very best by meaning alone and by words alone, as hits."""
    keys = np.concatenate([index.keys[: index.size] for index in indexes])
    few = max(1, limit // _OF_EACH)
    match, cosine, found = measured.match, measured.cosine, measured.found
    orders = [
        (_falling(match * found, limit), limit),
        (_falling(np.where(found & (cosine >= -1), cosine, _NOTHING), few), few),
        (_falling(measured.bm25 * found, few), few),
    ]
    firsts = [list(islice(order, wanted)) for order, wanted in orders]
    rows = list(dict.fromkeys(chain(*firsts)))
    likely: list[int] = keys[rows].tolist()
    records = readable(likely)  # all at once
    if len(records) == len(likely):
        seen = [records[key] for key in likely]
    else:
        by_row: dict[int, Record] = {}
        known = {**dict.fromkeys(likely), **records}
        for first, (order, wanted) in zip(firsts, orders, strict=True):
            for row, record in _first_visible(chain(first, order), keys, wanted, readable, known):
                by_row.setdefault(row, record)
        rows, seen = [*by_row], [*by_row.values()]
    return Hits(tuple(map(hit_of, seen, repeat(0.0), measured.parts(rows))))


def _falling(scores: npt.NDArray[np.float32], wanted: int) -> Iterator[int]:
    """Rows by falling score, without rows of score 0; of equal scores the newest first.

    Sorts only as much as is read: first the rows that reach a bound, which is one of the greatest values of
    groups of rows.
    """
    groups, look, least = len(scores) // _IN_A_GROUP, wanted + _SPARE, 0.0
    if groups > look:
        in_groups = scores[: groups * _IN_A_GROUP].reshape(_IN_A_GROUP, groups)
        greatest: npt.NDArray[np.float32] = np.maximum.reduce(in_groups)
        greatest.partition(groups - look)
        least = max(least, greatest.item(groups - look))
    if least:
        yield from _descending(scores, (scores >= least).nonzero()[0])
    yield from _descending(scores, (((scores < least) & (scores != 0)) if least else scores).nonzero()[0])


def _descending(scores: npt.NDArray[np.float32], rows: npt.NDArray[np.intp]) -> Sequence[int]:
    """These rows by falling score, of equal scores the last first."""
    rows = rows[::-1]
    found: list[int] = rows[(-scores[rows]).argsort(kind="stable")].tolist()
    return found


def _first_visible(
    order: Iterator[int],
    keys: npt.NDArray[np.int64],
    wanted: int,
    readable: Readable,
    known: dict[int, Record | None],
) -> Iterable[tuple[int, Record]]:
    """The first `wanted` rows in this order that the searcher may see, with their records.

    `known` has records from earlier look-ups, None for an invisible one; new ones are added.
    """
    seen: list[tuple[int, Record]] = []
    spare = 0
    while len(seen) < wanted and (chunk := list(islice(order, wanted - len(seen) + spare))):
        named: list[int] = keys[chunk].tolist()
        if asked := [key for key in named if key not in known]:
            answer = readable(asked)
            known.update((key, answer.get(key)) for key in asked)
        seen += [(row, record) for row, key in zip(chunk, named, strict=True) if (record := known[key])]
        spare = _SPARE + 4 * spare
    return seen[:wanted]
