"""The vectors of an embedder in a namespace, as a matrix in memory, compared exactly."""

import sys
import threading
from collections.abc import Iterable
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.sieve import Sieve, kernels

Keys: TypeAlias = npt.NDArray[np.int64]
Cosines: TypeAlias = npt.NDArray[np.float32]
_Array = TypeVar("_Array", npt.NDArray[np.float32], npt.NDArray[np.int64])

_FIRST_ROWS: Final = 16
_FIRST_LOOK: Final = 64
_SIEVED_FROM: Final = 5_000  # rows; below, the sieve costs more than it spares
_MOST_COMPARED: Final = 8  # one row in so many: comparing more of them one by one costs as much as all
_IN_A_GROUP: Final = 32  # values of which one is the greatest
_MOST_SORTED: Final = 256  # values; of more the best are picked first
_BYTES_A_NUMBER: Final = 32  # of an int object
_ONE: Final = np.float32(1.0)


class Matrix:
    """A contiguous float32 matrix that grows, with an integer key for each row.

    Rows and queries are vectors of unit length. Safe to share between threads; it starts none.
    """

    def __init__(self, dimension: int) -> None:
        self._lock = threading.Lock()
        self._size = 0
        self._keys: Keys = np.empty(_FIRST_ROWS, dtype=np.int64)
        self._keys_are_lent = False
        self._values = np.empty((_FIRST_ROWS, dimension), dtype=np.float32)
        self._rows: dict[int, int] | None = None  # key → row; made when the first row is looked for
        self._sieve: Sieve | None = None
        self._was_compared = False  # the first time without a sieve, which takes longer to make
        self._is_in_order = True  # each key is greater than those of the rows before

    @classmethod
    def of(cls, keys: Iterable[int] | Keys, values: npt.NDArray[np.float32]) -> "Matrix":
        """Make a matrix from rows with different keys; takes the array over where it is writable."""
        matrix = cls(values.shape[1])
        if len(values):
            matrix._keys = np.array(keys if isinstance(keys, np.ndarray) else [*keys], dtype=np.int64)
            matrix._values = np.require(values, dtype=np.float32, requirements=["C", "W"])
            matrix._size = len(values)
            matrix._is_in_order = bool(np.all(matrix._keys[1:] > matrix._keys[:-1]))
        return matrix

    def __len__(self) -> int:
        return self._size

    @property
    def dimension(self) -> int:
        return int(self._values.shape[1])

    @property
    def nbytes(self) -> int:
        """The bytes it takes, room to grow included."""
        with self._lock:
            found = 0 if self._rows is None else sys.getsizeof(self._rows) + 2 * _BYTES_A_NUMBER * self._size
            coarse = 0 if self._sieve is None else self._sieve.nbytes
            return self._values.nbytes + self._keys.nbytes + found + coarse

    def put(self, key: int, vector: Vector) -> None:
        """Add a row, or replace it."""
        with self._lock:
            rows = self._found_rows()
            row = rows.get(key)
            if row is None:
                row = rows[key] = self._new_row(key)
            self._set_row(row, vector)

    def drop(self, key: int) -> None:
        """Remove a row; nothing happens when there is none."""
        with self._lock:
            rows = self._found_rows()
            row = rows.pop(key, None)
            if row is None:
                return
            self._size -= 1
            self._own_keys()
            if row != self._size:
                self._is_in_order = False
                last = int(self._keys[self._size])
                self._keys[row], rows[last] = last, row
                self._set_row(row, self._values[self._size])
            self._values[self._size] = 0.0

    def cosines(self, query: Vector, *, exact: int | None = None) -> tuple[Keys, Cosines]:
        """All keys, and the cosine of each with the query.

        Args:
            exact: How many of the best cosines must be exact. The others may be approximate: off by less
                than 0.02 where the numbers of a vector are spread evenly, and by 0.0005 in the middle
                (`Sieve.cosines` gives the bound), but never so far that they pass the exact ones. None:
                all are exact.

            Returns:
                Two arrays in the same order. The array of keys must not be written to.
        """
        with self._lock:
            if exact is None:
                return self._lent_keys(), _bounded(products(self._values[: self._size], query))
            values, rows, found = self._compared(query, exact, finely=True)
            if rows is not None:
                values[rows] = found
            return self._lent_keys(), _bounded(values)

    def nearest(self, query: Vector, k: int) -> tuple[Keys, Cosines]:
        """The keys of the `k` rows nearest to the query, nearest first, and their cosines, all exact.

        Of equally near rows the greater key, which is the later one, comes first.
        """
        with self._lock:
            if k <= 0:
                return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
            _, rows, values = self._compared(query, k, finely=False)
            keys = self._keys[: self._size] if rows is None else self._keys[rows]
            if len(values) > _MOST_SORTED:
                best = _best(values, k)
                keys, values = keys[best], values[best]
            if self._is_in_order:
                order = values.argsort(kind="stable")[: -k - 1 : -1]
            else:
                order = np.lexsort((-keys, -values))[:k]
            values = values[order]
            is_bounded = len(values) == 0 or (values[0] <= _ONE and values[-1] >= -_ONE)
            return keys[order], values if is_bounded else _bounded(values)

    def cosines_of(self, keys: Iterable[int], query: Vector) -> Cosines:
        """The cosine of each of some rows with the query, exact; -2 where there is no such row."""
        with self._lock:
            asked = np.fromiter(keys, dtype=np.int64)
            if self._rows is None and self._is_in_order:  # so that nobody has to make it
                rows = np.minimum(np.searchsorted(self._keys[: self._size], asked), self._size - 1)
                rows[self._keys[rows] != asked] = -1
            else:
                found = self._found_rows()
                rows = np.array([found.get(key, -1) for key in asked.tolist()], dtype=np.intp)
            there = rows >= 0
            values = np.full(len(rows), -2.0, dtype=np.float32)
            values[there] = _bounded(self._values[rows[there]] @ query)
            return values

    def cosine(self, key: int, query: Vector) -> float | None:
        """The cosine of one row with the query; None when there is no such row."""
        with self._lock:
            row = self._found_rows().get(key)
            return None if row is None else max(-1.0, min(1.0, float(self._values[row] @ query)))

    def _compared(
        self, query: Vector, exact: int, *, finely: bool
    ) -> tuple[Cosines, npt.NDArray[np.intp] | None, Cosines]:
        """Approximate cosines of all rows; the rows that can be among the best; and their exact cosines.

        None for the rows: all rows, with all cosines exact.
        """
        all_rows = self._values[: self._size]
        looked_at = max(_FIRST_LOOK, 2 * exact)
        is_large = self._size >= max(_SIEVED_FROM, _MOST_COMPARED * looked_at)
        if is_large and self._was_compared and (multiply := kernels()) is not None:
            if self._sieve is None:
                self._sieve = Sieve(multiply, self.dimension)
            for is_last in (True,) if finely else (False, True):
                values, off = self._sieve.cosines(all_rows, query, products, finely=is_last)
                # At least `exact` rows are this near or nearer. So a row of the best is, too, and its
                # approximate cosine is at most `off` below.
                first = products(all_rows[_some_of_the_best(values, looked_at)], query)
                least = np.partition(first, len(first) - exact)[len(first) - exact] if exact > 0 else np.inf
                rows = np.flatnonzero(values + off >= least)
                if len(rows) <= self._size // _MOST_COMPARED:
                    return values, rows, products(all_rows[rows], query)
                if not self._sieve.is_halved:
                    break
        self._was_compared = True
        values = products(all_rows, query)
        return values, None, values

    def _set_row(self, row: int, vector: Vector) -> None:
        self._values[row] = vector
        if self._sieve is not None:
            self._sieve.replace(row)

    def _new_row(self, key: int) -> int:
        row = self._size
        if row == len(self._values):
            self._values, self._keys = _grown(self._values), _grown(self._keys)
            self._keys_are_lent = False
        self._is_in_order = self._is_in_order and (row == 0 or bool(key > self._keys[row - 1]))
        self._keys[row] = key
        self._size += 1
        return row

    def _found_rows(self) -> dict[int, int]:
        if self._rows is None:
            self._rows = {key: row for row, key in enumerate(self._keys[: self._size].tolist())}
        return self._rows

    def _lent_keys(self) -> Keys:
        """The keys, not copied; `_own_keys` copies them before a key that was lent changes."""
        self._keys_are_lent = True
        keys = self._keys[: self._size]
        keys.flags.writeable = False
        return keys

    def _own_keys(self) -> None:
        if self._keys_are_lent:
            self._keys, self._keys_are_lent = self._keys.copy(), False


def products(rows: npt.NDArray[np.float32], query: Vector) -> Cosines:
    """The inner product of each row with the query.

    Not `@`: BLAS would use all cores for it, and where others use them too its threads wait for each other,
    8 ms instead of 1 for 10,000 rows. `vecdot` asks BLAS for one row at a time, and takes as long as `@` does
    with one thread; `einsum` takes 1.1 to 1.9 times as long.
    """
    if _VECDOT is None:
        summed: Cosines = np.einsum("ij,j->i", rows, query)
        return summed
    found: Cosines = _VECDOT(rows, query)
    return found


_VECDOT: Final = getattr(np, "vecdot", None)  # numpy 2


def _best(values: Cosines, count: int) -> npt.NDArray[np.intp]:
    """The positions of the `count` greatest values, with all ties for the last place."""
    if count >= len(values):
        return np.arange(len(values))
    place = len(values) - count
    return np.flatnonzero(values >= np.partition(values, place)[place])


def _some_of_the_best(values: Cosines, count: int) -> npt.NDArray[np.intp]:
    """Positions of at least `count` values, most of them among the greatest.

    Takes a fifth of the time of `_best`: the greatest value of each group is taken, then the `count`-th
    greatest of these as a bound, then all values that reach the bound.
    """
    groups = len(values) // _IN_A_GROUP
    if groups < 2 * count:
        return _best(values, count)[:count]
    greatest = values[: groups * _IN_A_GROUP].reshape(_IN_A_GROUP, groups).max(axis=0)
    found = np.flatnonzero(values >= np.partition(greatest, groups - count)[groups - count])
    return found if len(found) <= 2 * count else found[_best(values[found], count)[:count]]


def _bounded(values: Cosines) -> Cosines:
    """The values, cut to [-1, 1], which rounding may exceed."""
    np.minimum(values, _ONE, out=values)
    np.maximum(values, -_ONE, out=values)
    return values


def _grown(array: _Array) -> _Array:
    larger: _Array = np.empty((len(array) * 2, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
