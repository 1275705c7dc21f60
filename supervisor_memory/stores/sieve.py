"""A sieve: a coarse copy of a matrix, with a byte a number, to find the rows that can be among the best.

The copy is a quarter of the size, and the time of a scan grows with the bytes read. For very many rows half
of the copy is read first, four bits a number. Needs `numkong`, which the extra `fast` installs; numpy alone
multiplies such numbers no faster than floats.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.stores.changes import Vector

Codes: TypeAlias = npt.NDArray[np.int8]
Bytes: TypeAlias = npt.NDArray[Any]  # int8 or uint8
Sums: TypeAlias = npt.NDArray[np.int32]
Rows: TypeAlias = npt.NDArray[np.float32]

_LARGEST: Final = 119  # 16 · 7 + 7: more would not fit into two numbers of four bits, -8 to 7
_STEP: Final = 16  # what one in the upper four bits is worth in the lower four
_HALVED_FROM: Final = 1 << 24  # bytes; more are read from memory rather than from a cache each time
_TURNS: Final = 2
_DEVIATIONS: Final = 6.5  # exceeded by one error in a thousand million
_PACKED_FROM: Final = 1_024  # rows; fewer new or changed ones are compared as they are
_MOST_IN_A_BLOCK: Final = 16_384  # rows, all of which are packed anew where many have changed
_ENCODED_TOGETHER: Final = 256  # rows, so that what is made of them on the way stays in the cache
_ROUNDING: Final = 1e-5  # of float32 sums of products, in units of the two lengths
_CANCELLED: Final = 2e-6  # of the difference of two such sums, in units of each
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kernel:
    """The functions that multiply codes.

    `written` turns codes into the form that `pack` takes; `pack` lays out the codes of many rows; `products`
    multiplies the codes of queries with packed rows, into an array of queries by rows.
    """

    written: Callable[[Codes], Bytes]
    pack: Callable[[Bytes], Any]
    products: Callable[[Codes, Any], Sums]


@dataclass(frozen=True)
class Kernels:
    """A kernel for codes of a byte, and a kernel for codes from -8 to 7, packed in pairs in a byte."""

    wholes: Kernel
    halves: Kernel


@dataclass(slots=True)
class _Block:
    """The `size` rows from `start` on, as codes.

    `packed` are the codes: whole, or the upper halves and the lower halves. `scales` and `lost` have an entry
    for each way to read the codes (whole; or upper halves alone, and both halves): the factor for each row's
    codes, and the greatest length that rounding took from a row, in units of the row's scale. The rows in
    `changed` have changed since they were packed.
    """

    start: int
    size: int
    packed: Sequence[Any]
    scales: Sequence[Rows]
    lost: Sequence[float]
    length: float  # the greatest of a row
    changed: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Query:
    """A query as `scale` · `codes`, its length, and the length that rounding took from it."""

    codes: Codes
    scale: float
    length: float
    lost: float


class Sieve:
    """The rows of a matrix, rounded to codes, each with a scale. Not safe between threads.

    Where there are many, rows and queries are turned by the same random rotation: then the error of rounding
    points in any direction across the row, and has little to do with a query.

    Source: the estimator of RaBitQ (Gao and Long, SIGMOD 2024; with more bits 2025).
    """

    def __init__(self, multiply: Kernels, dimension: int) -> None:
        self._kernels = multiply
        self._signs = np.random.default_rng(0).choice([-1.0, 1.0], (_TURNS, dimension)).astype(np.float32)
        self._blocks: list[_Block] = []
        self.is_halved = False
        """Whether codes are kept in halves: for very many rows, reading upper halves first is quicker."""

    @property
    def nbytes(self) -> int:
        return sum(sum(int(each.nbytes) for each in (*block.packed, *block.scales)) for block in self._blocks)

    def replace(self, row: int) -> None:
        """Note that a row has changed, or is there again."""
        for block in self._blocks:
            if block.start <= row < block.start + block.size:
                block.changed.add(row)

    def cosines(
        self, rows: Rows, query: Vector, exactly: Callable[[Rows, Vector], Rows], *, finely: bool
    ) -> tuple[Rows, Rows]:
        """The approximate cosine of every row with the query, and how far off each can be.

        The bound: with x = x' + e for a row and q = q' + f for the query, where x' and q' are the values of
        the codes, scaled so that e is across x and f across q,

            q·x − q'·x' = q·e + f·x − f·e

        Each product is at most the product of the lengths, which are measured, not assumed. For turned rows,
        e points anywhere across x in n - 1 dimensions, so that q·e is normal with a deviation of at most
        |q||e| / √(n - 1), and f·x likewise; 6.5 deviations are allowed. Typical for 384 numbers: at most
        0.016 with eight bits, 0.005 turned, and 0.0005 in the middle; 0.045 and 0.006 with four.

        Args:
            rows: All rows of the matrix.
            exactly: Gives the cosines of some rows with the query, for rows that are not encoded.
            finely: Use eight bits; else four where `is_halved`, which takes half the time.

        Returns:
            Two arrays with an entry for each row: the cosines, and their bounds.
        """
        self._follow(rows)
        asked = self._encoded_query(query)
        way = -1 if finely else 0
        share = min(1.0, _DEVIATIONS / math.sqrt(max(1, rows.shape[1] - 1))) if self.is_halved else 1.0
        values, off = np.empty((2, len(rows)), dtype=np.float32)
        for block in self._blocks:
            place = slice(block.start, min(len(rows), block.start + block.size))
            size = place.stop - place.start
            scales = block.scales[way][:size]
            np.multiply(self._sums(block, asked.codes, finely=finely)[:size], scales, out=values[place])
            np.multiply(scales, block.lost[way] * (share * asked.length + asked.lost), out=off[place])
            off[place] += (share * asked.lost + _ROUNDING * asked.length) * block.length
        packed = self._packed
        values[:packed] *= np.float32(asked.scale)  # rows beyond have no value yet
        loose = [row for block in self._blocks for row in block.changed if row < len(rows)]
        if loose:
            values[loose], off[loose] = exactly(rows[loose], query), _ROUNDING
        if packed < len(rows):
            values[packed:], off[packed:] = exactly(rows[packed:], query), _ROUNDING
        return values, off

    @property
    def _packed(self) -> int:
        return self._blocks[-1].start + self._blocks[-1].size if self._blocks else 0

    def _sums(self, block: _Block, codes: Codes, *, finely: bool) -> Sums:
        """The products of a query's codes with a block's; with upper halves only, a sixteenth of the
        products."""
        if not self.is_halved:
            whole: Sums = self._kernels.wholes.products(codes, block.packed[0])[0]
            return whole
        asked = np.concatenate(_halves(codes))
        sums: Sums = np.zeros(1, dtype=np.int32)
        for packed in block.packed if finely else block.packed[:1]:
            upper, lower = self._kernels.halves.products(asked, packed)
            upper += sums
            upper *= _STEP
            sums = np.add(upper, lower, out=upper)
        return sums

    def _follow(self, rows: Rows) -> None:
        """Encode new rows at the end, and blocks with changed rows, once there are many."""
        while self._blocks and self._blocks[-1].start >= len(rows):
            self._blocks.pop()
        self.is_halved = self.is_halved or rows.size >= _HALVED_FROM
        for place, block in enumerate(self._blocks):
            if len(block.changed) >= _PACKED_FROM or len(block.packed) != 1 + self.is_halved:
                self._blocks[place] = self._block(rows, block.start, min(len(rows), block.start + block.size))
        while len(rows) - self._packed >= _PACKED_FROM:
            start = self._packed
            if self._blocks and self._blocks[-1].size < _MOST_IN_A_BLOCK:
                start = self._blocks.pop().start
            self._blocks.append(self._block(rows, start, min(len(rows), start + _MOST_IN_A_BLOCK)))

    def _block(self, rows: Rows, start: int, end: int) -> _Block:
        kernel = self._kernels.halves if self.is_halved else self._kernels.wholes
        written: list[list[Bytes]] = [[] for _ in range(1 + self.is_halved)]
        scales = np.empty((len(written), end - start), dtype=np.float32)
        lost, length = [0.0] * len(written), 0.0
        for first in range(start, end, _ENCODED_TOGETHER):
            some = self._turned(rows[first : min(end, first + _ENCODED_TOGETHER)])
            place = slice(first - start, first - start + len(some))
            codes = _rounded(some)
            upper, lower = _halves(codes)
            for way, read in enumerate((upper, codes) if self.is_halved else (codes,)):
                scales[way, place], of_rows = _fitted(some, read)
                lost[way] = max(lost[way], float(_ratios(of_rows, scales[way, place]).max()))
            for part, each in zip(written, (upper, lower) if self.is_halved else (codes,), strict=True):
                part.append(kernel.written(each))
            length = max(length, float(_lengths(some).max()))
        packed = [kernel.pack(np.concatenate(part)) for part in written]
        return _Block(start, end - start, packed, [*scales], lost, length)

    def _encoded_query(self, query: Vector) -> _Query:
        turned = self._turned(query[None])
        codes = _rounded(turned)
        scales, lost = _fitted(turned, codes)
        return _Query(codes, float(scales[0]), float(_lengths(turned)[0]), float(lost[0]))

    def _turned(self, rows: Rows) -> Rows:
        return _turned(rows, self._signs) if self.is_halved else rows


def _turned(rows: Rows, signs: Rows) -> Rows:
    """The rows under a rotation: signs at random and a Fourier transform, one after the other.

    Source: Ailon and Chazelle, The Fast Johnson-Lindenstrauss Transform, STOC 2006.
    """
    count = rows.shape[1]
    for sign in signs:
        parts = np.fft.rfft(rows * sign, norm="ortho").astype(np.complex64, copy=False).view(np.float32)
        rows = np.empty((len(rows), count), dtype=np.float32)  # for real rows half of the transform is enough
        rows[:, 0] = parts[:, 0]
        np.multiply(parts[:, 2 : count + 1], np.float32(math.sqrt(2)), out=rows[:, 1:])
        if count % 2 == 0:
            rows[:, -1] *= np.float32(math.sqrt(0.5))
    return rows


def _rounded(rows: Rows) -> Codes:
    """Round each row to codes from -119 to 119; the scale is left out."""
    widest = np.abs(rows).max(axis=1, keepdims=True)
    widest[widest == 0.0] = 1.0
    codes: Codes = np.rint(rows * (_LARGEST / widest)).astype(np.int8)
    return codes


def _halves(codes: Codes) -> tuple[Codes, Codes]:
    """The upper and the lower four bits of each code: 16 · upper + lower."""
    upper: Codes = (codes + np.int8(_STEP // 2)) >> 4
    lower: Codes = codes - upper * np.int8(_STEP)
    return upper, lower


def _fitted(rows: Rows, codes: Codes) -> tuple[Rows, Rows]:
    """The scales by which the rounding error is orthogonal to each row, and the length of the error."""
    values = codes.astype(np.float32)
    squares, along, of_codes = (_products(*two) for two in ((rows, rows), (rows, values), (values, values)))
    scales = _ratios(squares, along)
    return scales, np.sqrt(np.maximum(scales**2 * of_codes - squares, 0.0) + _CANCELLED * squares)


def _ratios(some: Rows, others: Rows) -> Rows:
    """The quotients, element by element; 0 where the divisor is 0, as for zero rows."""
    ratios: Rows = np.divide(some, others, out=np.zeros_like(some), where=others > 0.0)
    return ratios


def _lengths(rows: Rows) -> Rows:
    lengths: Rows = np.sqrt(_products(rows, rows))
    return lengths


def _products(some: Rows, others: Rows) -> Rows:
    """The inner products of rows at the same place in two arrays."""
    found: Rows = np.einsum("ij,ij->i", some, others)
    return found


@cache
def kernels() -> Kernels | None:
    """The fastest way here to multiply codes; None: `numkong` is not installed, or cannot be relied on."""
    try:
        import numkong
    except ImportError:
        return None

    def products(queries: npt.NDArray[Any], packed: Any) -> Sums:
        found: Sums = np.asarray(numkong.dots_packed(queries, packed))
        return found

    found = Kernels(
        wholes=Kernel(lambda codes: codes, numkong.dots_pack, products),
        halves=Kernel(
            _in_pairs,
            lambda pairs: numkong.dots_pack(pairs, "int4"),
            lambda queries, packed: products(_in_pairs(queries), packed),
        ),
    )
    if not (_is_right(found.wholes, _LARGEST) and _is_right(found.halves, _STEP // 2)):
        _LOG.warning(
            "numkong %s multiplies wrongly on this processor, and is not used; searches of large namespaces "
            "take longer: install another release of it, or uninstall it",
            getattr(numkong, "__version__", ""),
        )
        return None
    return found


def _in_pairs(codes: Codes) -> npt.NDArray[np.uint8]:
    """Pack two codes into a byte, the first in the lower half."""
    bits = codes.view(np.uint8)
    if bits.shape[1] % 2:
        bits = np.pad(bits, ((0, 0), (0, 1)))
    pairs: npt.NDArray[np.uint8] = (bits[:, ::2] & np.uint8(15)) | (bits[:, 1::2] << np.uint8(4))
    return pairs


def _is_right(found: Kernel, largest: int) -> bool:
    """Whether a kernel gives the same as numpy on this processor."""
    for columns in (1, 63, 384, 1_000):
        codes = (np.arange(70 * columns) * 37 % (2 * largest) - largest).reshape(70, columns)
        expected = codes[:2] @ codes[2:].T
        packed = found.pack(found.written(codes[2:].astype(np.int8)))
        if not np.array_equal(found.products(codes[:2].astype(np.int8), packed), expected):
            return False
    return True
