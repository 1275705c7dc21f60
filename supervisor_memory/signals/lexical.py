"""How well records match the words of a question: BM25 over terms.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
idf of Lucene, log(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. A record counts a term once,
however often it has it: records are short, and measured it makes no difference.
"""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["K1", "B", "Floats", "Rows", "bm25", "idf", "idfs"]

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

K1 = 1.2
B = 0.75


def idf(records: int, holders: int) -> float:
    """What a term is worth that `holders` of `records` hold; above 0."""
    return math.log(1 + (records - holders + 0.5) / (holders + 0.5))


def idfs(records: int, holders: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The same of many terms."""
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
