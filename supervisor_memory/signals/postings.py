"""Postings: which rows hold a term. A compact block sorted by term, and later rows beside the block."""

import math
from array import array
from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "K1",
    "B",
    "Filling",
    "Floats",
    "Postings",
    "Rows",
    "bm25",
    "idf",
    "idfs",
]

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

K1 = 1.2
B = 0.75


def idf(records: int, holders: int) -> float:
    """The weight of a term held by `holders` of `records`; above 0."""
    return math.log(1 + (records - holders + 0.5) / (holders + 0.5))


def idfs(records: int, holders: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """`idf` for many terms."""
    worth: npt.NDArray[np.float64] = np.log1p((records - holders + 0.5) / (holders + 0.5))
    return worth


def bm25(
    postings: Mapping[str, Rows], worth: Mapping[str, float], *, lengths: Floats, average_length: float
) -> Floats:
    """The BM25 score of every row; 0 where no term is shared.

    Args:
        postings: For each term the rows that hold it. A row that is named twice holds it twice.
        worth: The idf of each term.
        lengths: Of each row, in terms.
        average_length: Of all records that are searched.
    """
    scores = np.zeros(len(lengths), dtype=np.float32)
    norms = K1 * (1 - B + B * lengths / max(average_length, 1.0))
    for term, rows in postings.items():
        counts = np.bincount(rows, minlength=len(lengths))
        held = np.flatnonzero(counts)
        tf = counts[held]
        scores[held] += worth[term] * (K1 + 1) * tf / (tf + norms[held])
    return scores


_Numbers: TypeAlias = npt.NDArray[np.int32]
_FEW = 4_096  # entries beside the block
_BYTES_A_TERM = 130  # of a short text and its place in a dictionary
_BYTES_AN_ARRAY = 200


class Postings:
    """For each term the rows that hold it, each once. Rows are only ever added; the owner skips dead ones."""

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._starts = np.zeros(1, dtype=np.int64)
        self._rows: _Numbers = np.zeros(0, dtype=np.int32)
        self._later: dict[str, array[int]] = {}
        self._added = 0

    @classmethod
    def of(cls, number_of: dict[str, int], numbers: npt.NDArray[np.int64], rows: _Numbers) -> "Postings":
        """Make postings from pairs: row `rows[i]` holds the term `numbers[i]`; rows in rising order."""
        postings = cls()
        postings._number_of = number_of
        postings._sort(numbers, rows)
        return postings

    def _sort(self, numbers: npt.NDArray[np.int64], rows: _Numbers) -> None:
        """Make the block from pairs: row `rows[i]` holds the term `numbers[i]`."""
        counts = np.bincount(numbers, minlength=len(self._number_of))
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        self._rows = rows[np.argsort(numbers, kind="stable")]

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        arrays = len(self._later) * _BYTES_AN_ARRAY + 4 * self._added
        return self._rows.nbytes + self._starts.nbytes + len(self._number_of) * _BYTES_A_TERM + arrays

    def add(self, row: int, terms: Collection[str]) -> None:
        """Add a row with its terms, each term once. A row may be added only once."""
        for term in terms:
            held = self._later.get(term)
            if held is None:
                self._later[term] = array("i", (row,))
            else:
                held.append(row)
        self._added += len(terms)

    def rows(self, term: str) -> Rows:
        """The rows that hold a term."""
        number = self._number_of.get(term)
        later = self._later.get(term)
        parts = [] if number is None else [self._rows[self._starts[number] : self._starts[number + 1]]]
        parts += [] if later is None else [np.array(later, dtype=np.int32)]
        return np.concatenate(parts).astype(np.intp) if parts else np.zeros(0, dtype=np.intp)

    def count(self, term: str) -> int:
        """How many rows hold a term."""
        number = self._number_of.get(term)
        block = 0 if number is None else int(self._starts[number + 1] - self._starts[number])
        return block + len(self._later.get(term, ()))

    def all(self) -> tuple[npt.NDArray[np.int64], _Numbers]:
        """How many rows each term has, and these rows, one term after the other."""
        self._fold()
        return np.diff(self._starts), self._rows

    def fold_some(self) -> None:
        """Merge the later rows into the block, where they are many."""
        if self._added > max(_FEW, len(self._rows) // 2):
            self._fold()

    def moved(self, places: _Numbers) -> "Postings":
        """Postings with row `r` renumbered to `places[r]`; rows renumbered to -1 are left out."""
        counts, rows = self.all()
        numbers, moved = np.repeat(np.arange(len(counts)), counts), places[rows]
        kept = moved >= 0
        held = np.bincount(numbers[kept], minlength=len(counts)) > 0
        names = (term for term, is_held in zip(self._number_of, held.tolist(), strict=True) if is_held)
        number_of = {term: number for number, term in enumerate(names)}
        return Postings.of(number_of, (np.cumsum(held) - 1)[numbers[kept]], moved[kept])

    def _fold(self) -> None:
        if not self._later:
            return
        known = len(self._number_of)
        for term in self._later:
            self._number_of.setdefault(term, len(self._number_of))
        block = np.repeat(np.arange(known), np.diff(self._starts))
        later = np.repeat(
            np.array([self._number_of[term] for term in self._later]),
            np.array([len(rows) for rows in self._later.values()]),
        )
        terms = np.concatenate([block, later])
        rows = np.concatenate(
            [self._rows, *(np.array(each, dtype=np.int32) for each in self._later.values())]
        )
        self._sort(terms, rows)
        self._later, self._added = {}, 0


class Filling:
    """Builds postings row by row, in rising order, without keeping the terms of earlier rows."""

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._numbers, self._lengths = array("q"), array("q")

    def add(self, terms: Collection[str]) -> None:
        """Add the next row with its terms, each term once."""
        numbers = self._number_of
        self._numbers.extend([numbers.setdefault(term, len(numbers)) for term in terms])
        self._lengths.append(len(terms))

    def done(self) -> Postings:
        """The postings of all rows."""
        lengths = np.array(self._lengths, dtype=np.int64)
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        return Postings.of(self._number_of, np.array(self._numbers, dtype=np.int64), rows)
