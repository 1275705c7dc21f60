"""The vectors of a large namespace once more, side by side, with two bytes a number.

A vector lies where its record was written, among those of everybody: a new process reads 100,000 of them in
most of a second, or in many from a slow disk. Of a namespace that is packed (`packed.py`) they are therefore
kept together too, half the bytes, in chunks by key, as of the revision of what is packed. Whoever reads them
brings in what has changed since.

Rounding moves a cosine by at most √n / 65,534 of a vector's largest number: by 0.00005 for 384 numbers that
are evenly spread, and by a thirtieth of that as a rule, which is what float32 loses in a product.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

import apsw
import numpy as np
import numpy.typing as npt

ROUNDED_TABLE: Final = """CREATE TABLE rounded(
    namespace TEXT NOT NULL, embedder TEXT NOT NULL, dim INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY(namespace, embedder, dim, first))"""
MOST_IN_A_CHUNK: Final = 8_192
"""Vectors; of more a chunk is parted, so that a change rewrites little."""
_LARGEST: Final = 32_767.0
_OF: Final = "namespace = ? AND embedder = ? AND dim = ?"
_EVERY: Final = """SELECT v.key, v.vector FROM entries e CROSS JOIN vectors v ON v.key = e.key
    WHERE e.namespace = ? AND v.embedder = ? AND v.dim = ? AND e.key BETWEEN ? AND ? ORDER BY e.key"""
_ALL_KEYS: Final = (-(1 << 63), (1 << 63) - 1)
_SPACES: Final = """SELECT v.embedder, v.dim, count(*) FROM entries e CROSS JOIN vectors v ON v.key = e.key
    WHERE e.namespace = ? GROUP BY 1, 2"""
_CHANGED: Final = """SELECT r.key, v.embedder, v.dim, v.vector FROM records r
    LEFT JOIN entries e ON e.namespace = r.namespace AND e.key = r.key
    LEFT JOIN vectors v ON v.key = e.key WHERE r.namespace = ? AND r.revision > ? ORDER BY r.key"""

Space: TypeAlias = tuple[str, int]
"""An embedder and the dimension of its vectors."""
Keys: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.float32]
_Changes: TypeAlias = Mapping[int, bytes | None]
"""The vector of each changed record by key; None: it has none in the space."""


@dataclass(slots=True)
class Begun:
    """The rounded vectors of a namespace that were read so far: the first `end` places are filled.

    `since` is the revision that the chunks are of, `last` the last key that was read.
    """

    since: int
    keys: Keys
    rows: Rows
    end: int = 0
    last: int = _ALL_KEYS[0]


def begin(connection: apsw.Connection, namespace: str, space: Space, *, since: int) -> Begun | None:
    """Make room for the vectors of a namespace; None: none are packed."""
    sql = f"SELECT sum(size) FROM rounded WHERE {_OF}"
    size = connection.execute(sql, (namespace, *space)).get
    if not size:
        return None
    return Begun(since, np.empty(size, dtype=np.int64), np.empty((size, space[1]), dtype=np.float32))


def go_on(
    connection: apsw.Connection, namespace: str, space: Space, begun: Begun, *, is_in_time: Callable[[], bool]
) -> bool:
    """Read chunk by chunk, at least one. False: there was no time for all of them.

    Raises:
        ValueError: a chunk is damaged.
    """
    sql = f"SELECT size, last, data FROM rounded WHERE {_OF} AND first > ? ORDER BY first"
    for size, last, data in connection.execute(sql, (namespace, *space, begun.last)):
        place = slice(begun.end, begun.end + size)
        begun.keys[place], scales, codes = _parts(data, size, space[1])
        np.multiply(codes, scales[:, None], out=begun.rows[place])
        begun.end, begun.last = place.stop, last
        if begun.end < len(begun.keys) and not is_in_time():
            return False
    return True


def finished(connection: apsw.Connection, namespace: str, space: Space, begun: Begun) -> tuple[Keys, Rows]:
    """The vectors by key as they are now, with what has changed since they were rounded."""
    changes = _changed(connection, namespace, since=begun.since, spaces=(space,))[space]
    keys, rows = begun.keys[: begun.end], begun.rows[: begun.end]
    if not changes:
        return keys, rows
    is_kept = ~np.isin(keys, np.fromiter(changes, np.int64))
    new = {key: np.frombuffer(vector, dtype="<f4") for key, vector in changes.items() if vector is not None}
    if not new:
        return keys[is_kept], rows[is_kept]
    return np.append(keys[is_kept], list(new)), np.concatenate([rows[is_kept], np.stack(list(new.values()))])


def pack(connection: apsw.Connection, namespace: str, *, since: int | None, least: int) -> None:
    """Round the vectors of a namespace anew, or those that have changed, inside a transaction.

    Args:
        since: The revision that the present chunks are of; None: there are none that hold.
        least: How many vectors there have to be in a space.
    """
    if since is None:
        unpack(connection, "(?)", (namespace,))
        spaces: Iterable[Any] = connection.execute(_SPACES, (namespace,)).fetchall()
        for embedder, dim, count in spaces:
            if count >= least:
                _pack(connection, namespace, (embedder, dim), _ALL_KEYS)
        return
    sql = "SELECT DISTINCT embedder, dim FROM rounded WHERE namespace = ?"
    packed: set[Any] = {*connection.execute(sql, (namespace,)).fetchall()}
    for space, changes in _changed(connection, namespace, since=since, spaces=packed).items():
        if space in packed:
            _pack_changed(connection, namespace, space, changes)
        elif 2 * len(changes) >= least:
            _pack(connection, namespace, space, _ALL_KEYS)


def unpack(connection: apsw.Connection, namespaces: str, bindings: tuple[str, ...]) -> None:
    """Drop the chunks of namespaces, an SQL expression behind IN with its bindings."""
    connection.execute(f"DELETE FROM rounded WHERE namespace IN {namespaces}", bindings)


def _changed(
    connection: apsw.Connection, namespace: str, *, since: int, spaces: Iterable[Space] = ()
) -> dict[Space, dict[int, bytes | None]]:
    """Changed vectors since a revision, by space; each of `spaces` has an entry."""
    rows: list[Any] = connection.execute(_CHANGED, (namespace, since)).fetchall()
    every = {*spaces, *((embedder, dim) for _, embedder, dim, _ in rows if embedder is not None)}
    return {
        space: {key: vector if (embedder, dim) == space else None for key, embedder, dim, vector in rows}
        for space in every
    }


def _pack_changed(connection: apsw.Connection, namespace: str, space: Space, changes: _Changes) -> None:
    """Write changed chunks anew; new keys beyond the last chunk join it."""
    sql = f"SELECT first, last FROM rounded WHERE {_OF} ORDER BY first"
    chunks: list[tuple[int, int]] = [*connection.execute(sql, (namespace, *space))]
    of_chunk: dict[tuple[int, int], list[int]] = {}
    for key in changes:
        chunk = chunks[max(0, bisect_right(chunks, (key, _ALL_KEYS[1])) - 1)]
        of_chunk.setdefault(chunk, [*chunk]).append(key)
    for (first, _), keys in of_chunk.items():
        connection.execute(f"DELETE FROM rounded WHERE {_OF} AND first = ?", (namespace, *space, first))
        _pack(connection, namespace, space, (min(keys), max(keys)))


def _pack(connection: apsw.Connection, namespace: str, space: Space, keys: tuple[int, int]) -> None:
    """Make chunks of the vectors with keys in a range, both ends included."""
    rows: Iterator[Any] = iter(connection.execute(_EVERY, (namespace, *space, *keys)))
    while some := list(islice(rows, MOST_IN_A_CHUNK)):
        _put(connection, namespace, space, some)


def _put(
    connection: apsw.Connection, namespace: str, space: Space, some: Sequence[tuple[int, bytes]]
) -> None:
    keys = np.array([key for key, _ in some], dtype="<i8")
    rows = np.frombuffer(b"".join([vector for _, vector in some]), dtype="<f4").reshape(-1, space[1])
    widest = np.abs(rows).max(axis=1)
    scales = np.where(widest > 0.0, widest / _LARGEST, 1.0).astype("<f4")
    codes = np.rint(rows / scales[:, None]).astype("<i2")
    data = b"".join([each.tobytes() for each in (keys, scales, codes)])
    row = (namespace, *space, int(keys[0]), int(keys[-1]), len(keys), data)
    connection.execute("INSERT INTO rounded VALUES(?, ?, ?, ?, ?, ?, ?)", row)


def _parts(data: bytes, size: int, dim: int) -> tuple[Keys, Rows, npt.NDArray[np.int16]]:
    """The keys, the scales and the rounded numbers of a chunk. Raises ValueError: it is damaged."""
    if len(data) != size * (12 + 2 * dim):
        raise ValueError(f"{len(data)} bytes for {size} vectors of {dim} numbers")
    keys = np.frombuffer(data, dtype="<i8", count=size)
    scales = np.frombuffer(data, dtype="<f4", count=size, offset=8 * size)
    return keys, scales, np.frombuffer(data, dtype="<i2", offset=12 * size).reshape(size, dim)
