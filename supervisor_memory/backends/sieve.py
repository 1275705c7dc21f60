"""A coarse copy of a matrix, one byte a number, which tells the rows that can be among the best.

It is a quarter of the size, and a scan of many rows costs what it reads. Needs `numkong`, which the extra
`fast` installs; numpy alone multiplies such numbers no faster than floats.
"""

import logging
import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.backends.changes import Vector

__all__ = ["Sieve", "scanner"]

Codes: TypeAlias = npt.NDArray[np.int8]
Scanner: TypeAlias = Callable[[Codes, Codes], npt.NDArray[np.float32]]
"""Takes the codes of a query and of rows, one under the other; gives the inner product with each row."""

_LARGEST: Final = 127
_ENCODED_TOGETHER: Final = 256  # rows, so that what is made of them on the way stays in the cache
_ROUNDING: Final = 1e-5  # of float32 sums of products, in units of the two lengths
_LOG = logging.getLogger(__name__)


class Sieve:
    """The rows of a matrix as int8 codes, each with a scale: row ≈ scale · codes. Its owner locks."""

    def __init__(self, dimension: int) -> None:
        self._codes = np.empty((0, dimension), dtype=np.int8)
        self._scales = np.empty(0, dtype=np.float32)
        self._encoded = 0
        self._lost = 0.0  # the greatest length of what encoding took from a row
        self._length = 0.0  # the greatest length of an encoded row

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes

    def follow(self, rows: npt.NDArray[np.float32], *, room: int) -> None:
        """Encode the rows that are new at the end, and let go of those beyond the end.

        Args:
            rows: All rows of the matrix.
            room: How many rows it can grow to before it must be copied.
        """
        if len(self._codes) < len(rows):
            self._grow(room)
        self._encoded = min(self._encoded, len(rows))
        while self._encoded < len(rows):
            end = min(len(rows), self._encoded + _ENCODED_TOGETHER)
            self._encode(self._encoded, rows[self._encoded : end])
            self._encoded = end

    def replace(self, row: int, vector: Vector) -> None:
        """Encode one row anew, if it was encoded before."""
        if row < self._encoded:
            self._encode(row, vector[None])

    def cosines(self, query: Vector, scan: Scanner) -> tuple[npt.NDArray[np.float32], float]:
        """What the codes say of every row's cosine with the query, and how far off that can be at most.

        The bound is by Cauchy and Schwarz: with x = x' + e for a row and q = q' + f for the query, where x'
        and q' are what the codes stand for, |q·x − q'·x'| = |q·e + f·x'| ≤ |q||e| + |f||x'|. The lengths are
        measured, not assumed. Typical of 384 numbers that are spread evenly: at most 0.015, and 0.0005
        in the middle.
        """
        scale = max(float(query.max()), -float(query.min())) / _LARGEST or 1.0
        codes = np.rint(query * np.float32(1 / scale)).astype(np.int8)
        values = scan(codes[None], self._codes[: self._encoded])
        values *= self._scales[: self._encoded]
        values *= np.float32(scale)
        lost = query - codes * np.float32(scale)
        length = math.sqrt(query @ query)
        return values, length * self._lost + (math.sqrt(lost @ lost) + _ROUNDING * length) * self._length

    def _grow(self, room: int) -> None:
        codes = np.empty((room, self._codes.shape[1]), dtype=np.int8)
        scales = np.empty(room, dtype=np.float32)
        codes[: self._encoded], scales[: self._encoded] = (
            self._codes[: self._encoded],
            self._scales[: self._encoded],
        )
        self._codes, self._scales = codes, scales

    def _encode(self, start: int, rows: npt.NDArray[np.float32]) -> None:
        codes, scales = _encoded(rows)
        end = start + len(rows)
        self._codes[start:end], self._scales[start:end] = codes, scales
        kept = codes * scales[:, None]
        self._length = max(self._length, _longest(kept))
        self._lost = max(self._lost, _longest(rows - kept))


def _encoded(rows: npt.NDArray[np.float32]) -> tuple[Codes, npt.NDArray[np.float32]]:
    scales = np.abs(rows).max(axis=1, initial=0.0) / np.float32(_LARGEST)
    scales[scales == 0.0] = 1.0
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def _longest(rows: npt.NDArray[np.float32]) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))


@cache
def scanner() -> Scanner | None:
    """The fastest way here to multiply codes; None: `numkong` is not installed, or cannot be relied on."""
    try:
        import numkong
    except ImportError:
        return None

    def scan(query: Codes, rows: Codes) -> npt.NDArray[np.float32]:
        values = np.empty(len(rows), dtype=np.float32)
        numkong.cdist(query, rows, "dot", out=values[None], threads=1)
        return values

    if not _is_right(scan):
        _LOG.warning(
            "numkong %s multiplies wrongly on this processor, and is not used; searches of large namespaces "
            "take longer: install another release of it, or uninstall it",
            getattr(numkong, "__version__", ""),
        )
        return None
    return scan


def _is_right(scan: Scanner) -> bool:
    """Whether a kernel, chosen for this processor when the program runs, does what numpy does."""
    for columns in (1, 63, 384, 1_000):
        codes = (np.arange(5 * columns) * 37 % (2 * _LARGEST + 1) - _LARGEST).reshape(5, columns)
        expected = codes[1:] @ codes[0]
        if not np.allclose(scan(codes[:1].astype(np.int8), codes[1:].astype(np.int8)), expected, rtol=1e-6):
            return False
    return True
