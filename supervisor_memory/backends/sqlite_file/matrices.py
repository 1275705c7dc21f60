"""The vectors of a SQLite store in memory: loaded when first searched, kept as fresh as the file."""

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import apsw
import numpy as np

from supervisor_memory.backends.matrix import Matrix

__all__ = ["Matrices", "Space", "SpaceKey"]

MOST_BYTES: Final = 1 << 30
SpaceKey: TypeAlias = tuple[str, str, int]
"""A namespace as text, an embedder, and the dimension of its vectors."""


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace as a reader sees it.

    `revision` counts the commits that touched it; a matrix of before `rebuilt` must be loaded afresh.
    `indexed` active records have `terms` terms between them.
    """

    namespace: str
    revision: int
    rebuilt: int
    indexed: int
    terms: int


@dataclass(slots=True)
class _Loaded:
    lock: threading.Lock = field(default_factory=threading.Lock)
    revision: int = -1
    matrix: Matrix = field(default_factory=lambda: Matrix(1))
    nbytes: int = 0  # as counted last


class Matrices:
    """One matrix for each namespace and embedder, the least recently searched ones dropped.

    Args:
        most_bytes: How much they may take together; the one being searched may exceed it alone.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._reset()

    def fresh(self, connection: apsw.Connection, space: Space, embedder: str, dim: int) -> Matrix:
        """The matrix of a namespace, at least as new as the connection's view of it; keys are records'."""
        if self._pid != os.getpid():
            self._reset()
        key = (space.namespace, embedder, dim)
        with self._lock:
            loaded = self._loaded.setdefault(key, _Loaded())
            self._loaded.move_to_end(key)
        with loaded.lock:
            if loaded.revision < space.rebuilt or loaded.revision < 0:
                loaded.matrix = _all_rows(connection, key)
                loaded.revision = space.revision
            elif loaded.revision < space.revision:
                _follow(connection, key, loaded)
                loaded.revision = space.revision
            matrix = loaded.matrix
        self._make_room(key, loaded, matrix.nbytes)
        return matrix

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._loaded: OrderedDict[SpaceKey, _Loaded] = OrderedDict()
        self._nbytes = 0

    def _make_room(self, key: SpaceKey, loaded: _Loaded, nbytes: int) -> None:
        with self._lock:
            if self._loaded.get(key) is not loaded:  # another search needed its room meanwhile
                return
            self._nbytes += nbytes - loaded.nbytes
            loaded.nbytes = nbytes
            while self._nbytes > self._most_bytes and len(self._loaded) > 1:
                _, oldest = self._loaded.popitem(last=False)
                self._nbytes -= oldest.nbytes


def _all_rows(connection: apsw.Connection, key: SpaceKey) -> Matrix:
    namespace, embedder, dim = key
    rows: Sequence[Any] = connection.execute(
        "SELECT v.key, v.vector FROM records r CROSS JOIN vectors v ON v.key = r.key "
        "WHERE r.namespace = ? AND r.status = 'active' AND v.embedder = ? AND v.dim = ?",
        (namespace, embedder, dim),
    ).fetchall()
    values = np.frombuffer(bytearray().join(vector for _, vector in rows), dtype="<f4").reshape(-1, dim)
    return Matrix.of([row[0] for row in rows], values)


def _follow(connection: apsw.Connection, key: SpaceKey, loaded: _Loaded) -> None:
    namespace, embedder, dim = key
    for record, vector in connection.execute(
        "SELECT r.key, CASE WHEN r.status = 'active' AND v.embedder = ? AND v.dim = ? THEN v.vector END "
        "FROM records r LEFT JOIN vectors v ON v.key = r.key WHERE r.namespace = ? AND r.revision > ?",
        (embedder, dim, namespace, loaded.revision),
    ):
        if vector is None:
            loaded.matrix.drop(record)
        else:
            loaded.matrix.put(record, np.frombuffer(vector, dtype="<f4"))
