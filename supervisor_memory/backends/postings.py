"""A small lexical index in memory: which records hold a term, and how often. Scored by BM25.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
idf of Lucene, log(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Postings", "bm25", "idf", "score"]

K1 = 1.2
B = 0.75
_FIRST_ROWS = 64


def idf(records: int, holders: int) -> float:
    """What a term is worth that `holders` of `records` hold; above 0."""
    return math.log(1 + (records - holders + 0.5) / (holders + 0.5))


def score(terms: Sequence[str], worth: Mapping[str, float], *, average_length: float) -> float:
    """The score of one record by its terms; 0 when it shares none.

    Args:
        worth: The idf of each term that is searched for.
    """
    norm = K1 * (1 - B + B * len(terms) / average_length)
    counts: dict[str, int] = {}
    for term in terms:
        if term in worth:
            counts[term] = counts.get(term, 0) + 1
    return sum(worth[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items())


class Postings:
    """The terms of the records of one namespace."""

    def __init__(self) -> None:
        self.ids: list[str | None] = []
        self.total_terms = 0
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._counts: dict[str, Counter[str]] = {}
        self._lengths = np.zeros(_FIRST_ROWS)
        self._by_term: dict[str, dict[int, int]] = {}
        self._arrays: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, record_id: str, terms: Sequence[str]) -> None:
        """Add a record, or replace its terms."""
        self.drop(record_id)
        row = self._new_row(record_id)
        self._lengths[row] = len(terms)
        self.total_terms += len(terms)
        counts = self._counts[record_id] = Counter(terms)
        for term, count in counts.items():
            self._by_term.setdefault(term, {})[row] = count
            self._arrays.pop(term, None)

    def drop(self, record_id: str) -> None:
        """Remove a record; nothing happens when it is not there."""
        row = self._rows.pop(record_id, None)
        if row is None:
            return
        for term in self._counts.pop(record_id):
            holders = self._by_term[term]
            del holders[row]
            self._arrays.pop(term, None)
            if not holders:
                del self._by_term[term]
        self.total_terms -= int(self._lengths[row])
        self.ids[row] = None
        self._free.append(row)

    def holders(self, term: str) -> int:
        """How many records hold the term."""
        return len(self._by_term.get(term, ()))

    def scores(self, worth: Mapping[str, float], *, average_length: float) -> npt.NDArray[np.float64]:
        """The score of every row of `ids`; 0 where no term is shared."""
        scores = np.zeros(len(self.ids))
        for term, weight in worth.items():
            if term in self._by_term:
                rows, counts = self._array(term)
                norm = K1 * (1 - B + B * self._lengths[rows] / average_length)
                scores[rows] += weight * counts * (K1 + 1) / (counts + norm)
        return scores

    def _array(self, term: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        if term not in self._arrays:
            holders = self._by_term[term]
            self._arrays[term] = (
                np.fromiter(holders.keys(), dtype=np.intp, count=len(holders)),
                np.fromiter(holders.values(), dtype=np.float64, count=len(holders)),
            )
        return self._arrays[term]

    def _new_row(self, record_id: str) -> int:
        if self._free:
            row = self._free.pop()
            self.ids[row] = record_id
        else:
            row = len(self.ids)
            self.ids.append(record_id)
        if row == len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros(row)])
        self._rows[record_id] = row
        return row


def bm25(
    namespaces: Sequence[Postings], terms: Iterable[str]
) -> tuple[Sequence[str | None], npt.NDArray[np.float64]]:
    """The ids of all rows, None for removed ones, and their scores, with statistics over all namespaces."""
    records = sum(len(postings) for postings in namespaces)
    total = sum(postings.total_terms for postings in namespaces)
    if not records or not total:
        return (), np.zeros(0)
    worth = {
        term: idf(records, sum(postings.holders(term) for postings in namespaces))
        for term in dict.fromkeys(terms)
    }
    scores = [postings.scores(worth, average_length=total / records) for postings in namespaces]
    return [name for postings in namespaces for name in postings.ids], np.concatenate(scores)
