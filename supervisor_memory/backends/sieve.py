"""A coarse copy of a matrix, one byte a number, which tells the rows that can be among the best.

It is a quarter of the size, and a scan of many rows costs what it reads. Needs `numkong`, which the extra
`fast` installs; numpy alone multiplies such numbers no faster than floats.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.backends.changes import Vector

__all__ = ["Kernel", "Sieve", "kernel"]

Codes: TypeAlias = npt.NDArray[np.int8]
Rows: TypeAlias = npt.NDArray[np.float32]

_LARGEST: Final = 127
_PACKED_FROM: Final = 1_024  # rows; fewer new or changed ones are compared as they are
_MOST_IN_A_BLOCK: Final = 16_384  # rows, all of which are packed anew where many have changed
_ENCODED_TOGETHER: Final = 256  # rows, so that what is made of them on the way stays in the cache
_ROUNDING: Final = 1e-5  # of float32 sums of products, in units of the two lengths
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kernel:
    """How codes are multiplied: `pack` lays those of many rows out for `products` with those of a query."""

    pack: Callable[[Codes], Any]
    products: Callable[[Codes, Any], npt.NDArray[np.int32]]


@dataclass(slots=True)
class _Block:
    """The rows from `start` on, packed. Those of `changed` are not what they were then."""

    start: int
    size: int
    packed: Any
    scales: npt.NDArray[np.float32]
    changed: set[int]


class Sieve:
    """The rows of a matrix as int8 codes, each with a scale: row ≈ scale · codes. Its owner locks."""

    def __init__(self, multiply: Kernel) -> None:
        self._kernel = multiply
        self._blocks: list[_Block] = []
        self._lost = 0.0  # the greatest length of what encoding took from a row
        self._length = 0.0  # the greatest length of an encoded row

    @property
    def nbytes(self) -> int:
        return sum(int(block.packed.nbytes) + block.scales.nbytes for block in self._blocks)

    def replace(self, row: int) -> None:
        """Take note that a row is not what it was, or is there again."""
        for block in self._blocks:
            if block.start <= row < block.start + block.size:
                block.changed.add(row)

    def cosines(
        self, rows: Rows, query: Vector, exactly: Callable[[Rows, Vector], Rows]
    ) -> tuple[Rows, float]:
        """What the codes say of every row's cosine with the query, and how far off that can be at most.

        The bound is by Cauchy and Schwarz: with x = x' + e for a row and q = q' + f for the query, where x'
        and q' are what the codes stand for, |q·x − q'·x'| = |q·e + f·x'| ≤ |q||e| + |f||x'|. The lengths are
        measured, not assumed. Typical of 384 numbers that are spread evenly: at most 0.015, and 0.0005
        in the middle.

        Args:
            rows: All rows of the matrix.
            exactly: Gives the cosines of some rows with the query, for those that are not encoded.
        """
        self._follow(rows)
        scale = max(float(query.max()), -float(query.min())) / _LARGEST or 1.0
        codes = np.rint(query * np.float32(1 / scale)).astype(np.int8)
        values = np.empty(len(rows), dtype=np.float32)
        for block in self._blocks:
            place = slice(block.start, min(len(rows), block.start + block.size))
            size = place.stop - place.start
            of_block = self._kernel.products(codes, block.packed)[:size]
            values[place] = of_block
            values[place] *= block.scales[:size]
        values *= np.float32(scale)
        loose = [row for block in self._blocks for row in block.changed if row < len(rows)]
        if loose:
            values[loose] = exactly(rows[loose], query)
        if (packed := self._packed) < len(rows):
            values[packed:] = exactly(rows[packed:], query)
        lost = query - codes * np.float32(scale)
        length = math.sqrt(query @ query)
        return values, length * self._lost + (math.sqrt(lost @ lost) + _ROUNDING * length) * self._length

    @property
    def _packed(self) -> int:
        return self._blocks[-1].start + self._blocks[-1].size if self._blocks else 0

    def _follow(self, rows: Rows) -> None:
        """Encode what is new at the end, and what was changed, where it is much."""
        while self._blocks and self._blocks[-1].start >= len(rows):
            self._blocks.pop()
        for place, block in enumerate(self._blocks):
            if len(block.changed) >= _PACKED_FROM:
                self._blocks[place] = self._block(rows, block.start, min(len(rows), block.start + block.size))
        while len(rows) - self._packed >= _PACKED_FROM:
            start = self._packed
            if self._blocks and self._blocks[-1].size < _MOST_IN_A_BLOCK:
                start = self._blocks.pop().start
            self._blocks.append(self._block(rows, start, min(len(rows), start + _MOST_IN_A_BLOCK)))

    def _block(self, rows: Rows, start: int, end: int) -> _Block:
        codes = np.empty((end - start, rows.shape[1]), dtype=np.int8)
        scales = np.empty(end - start, dtype=np.float32)
        for first in range(start, end, _ENCODED_TOGETHER):
            some = rows[first : min(end, first + _ENCODED_TOGETHER)]
            place = slice(first - start, first - start + len(some))
            codes[place], scales[place] = _encoded(some)
            kept = codes[place] * scales[place, None]
            self._length = max(self._length, _longest(kept))
            self._lost = max(self._lost, _longest(some - kept))
        return _Block(start, end - start, self._kernel.pack(codes), scales, set())


def _encoded(rows: Rows) -> tuple[Codes, npt.NDArray[np.float32]]:
    scales = np.abs(rows).max(axis=1, initial=0.0) / np.float32(_LARGEST)
    scales[scales == 0.0] = 1.0
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def _longest(rows: Rows) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))


@cache
def kernel() -> Kernel | None:
    """The fastest way here to multiply codes; None: `numkong` is not installed, or cannot be relied on."""
    try:
        import numkong
    except ImportError:
        return None

    def products(query: Codes, packed: Any) -> npt.NDArray[np.int32]:
        found: npt.NDArray[np.int32] = np.asarray(numkong.dots_packed(query[None], packed))[0]
        return found

    multiply = Kernel(numkong.dots_pack, products)
    if not _is_right(multiply):
        _LOG.warning(
            "numkong %s multiplies wrongly on this processor, and is not used; searches of large namespaces "
            "take longer: install another release of it, or uninstall it",
            getattr(numkong, "__version__", ""),
        )
        return None
    return multiply


def _is_right(found: Kernel) -> bool:
    """Whether kernels, chosen for this processor when the program runs, do what numpy does."""
    for columns in (1, 63, 384, 1_000):
        codes = (np.arange(70 * columns) * 37 % (2 * _LARGEST + 1) - _LARGEST).reshape(70, columns)
        expected = codes[1:] @ codes[0]
        packed = found.pack(codes[1:].astype(np.int8))
        if not np.array_equal(found.products(codes[0].astype(np.int8), packed), expected):
            return False
    return True
