"""Walk from records to records that name the same things.

Two records are joined by what they share and few others hold: a table, a person, a rare word. The postings of
an index (`index.py`) tell who holds a term, so the walk needs no graph of its own: nothing to build when a
store is opened, nothing to keep up to date at an insert, and what is erased is gone from it at once. Names
count more than other words; what many records hold joins nothing, however often it is named, so that no hub
floods a walk.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from supervisor_memory.signals.index import Floats, Index, Rows

MOST_HOLDERS = 64
"""A term that more records hold joins nothing."""
MOST_TERMS = 256
"""Different terms of a text that are looked at."""
_NO_NAME, _NO_NAME_IN_CJK = 0.3, 0.5
"""Of the rarity of a term that is of no name. The names of Chinese have no form of their own, and one of
three characters has two terms."""
_JOINED = 32  # of those joined to a record, the closest are compared with the question
GO_ON = 4
"""Of those reached by a step, so many are gone on from, the best."""
_FURTHER = 0.8
_BY_PATH = 0.6  # of a record's worth; the rest is by its likeness to the question


@dataclass(frozen=True, slots=True)
class Start:
    """A text from which a walk begins.

    Args:
        terms: Its terms, in order.
        named: Those that are of names.
        weight: How much what is found from here counts, in [0, 1].
    """

    terms: Sequence[str]
    named: Collection[str]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Reached:
    """A row that a walk has reached.

    Attributes:
        worth: In [0, 1], and never above `carried`.
        carried: What the way here has left of the weight of the start.
        start: The number of the start.
        by: The rows between the start and this one.
    """

    row: int
    worth: float
    carried: float
    start: int
    by: tuple[int, ...] = ()


Fit = Callable[[Rows], Floats]
"""Takes rows; gives how much each is like the question, in [0, 1]."""
Read = Callable[[Sequence[int]], Mapping[int, Start]]
"""Takes rows, the best first; gives the texts of the first `GO_ON` that may be gone on from."""


def joined(indexes: Sequence[Index], start: Start, *, without: Collection[str]) -> tuple[Rows, Floats]:
    """The rows that share rare terms with a text, and how closely, in [0, 1], where 1 is one name that only
    two records hold.

    Args:
        without: Terms that do not count, since they are searched for anyway.
    """
    records = sum([len(index) for index in indexes])
    starts = [*accumulate([index.size for index in indexes], initial=0)]
    sums: defaultdict[int, float] = defaultdict(float)  # most terms have few holders: arrays would cost more
    for term in list(dict.fromkeys(start.terms))[:MOST_TERMS]:
        if term in without or not 0 < sum([index.count(term) for index in indexes]) <= MOST_HOLDERS:
            continue
        held = [
            row + at
            for index, at in zip(indexes, starts, strict=False)
            for row in index.holders(term).tolist()
        ]
        share = 1.0 if term in start.named else _NO_NAME if term.isascii() else _NO_NAME_IN_CJK
        worth = share * math.log1p(records / max(1, len(held)))
        for row in held:
            sums[row] += worth
    found = sorted(sums)
    close = np.array([sums[row] for row in found]) / math.log1p(records / 2)
    return np.array(found, dtype=np.intp), np.minimum(close, 1.0).astype(np.float32)


def walk(
    indexes: Sequence[Index],
    starts: Sequence[Start],
    *,
    without: Collection[str],
    fit: Fit,
    read: Read,
    steps: int = 2,
    least: float = 0.0,
) -> Sequence[Reached]:
    """The rows that are joined to some texts, or to what is joined to them, the best first.

    A row's worth is the weight of its start, less what each join leaves open, and what the row is like the
    question. Of several ways to a row the best counts. What was said in a conversation is no part of a walk:
    its words are understood by the words around it.

    Args:
        least: Of the worth; a way that has less left is not gone on, so that most walks end at once.
    """
    best: dict[int, Reached] = {}
    frontier = [
        (start, Reached(-1, start.weight, start.weight, number)) for number, start in enumerate(starts)
    ]
    for step in range(steps):
        fresh: dict[int, Reached] = {}
        for text, at in frontier:
            for reached in _beside(indexes, text, at, without=without, fit=fit, least=least):
                known = best.get(reached.row)
                if reached.row not in at.by and (known is None or known.worth < reached.worth):
                    best[reached.row] = fresh[reached.row] = reached
        if step + 1 < steps:
            lasting = (each for each in fresh.values() if each.carried * _FURTHER >= least)
            nearest = sorted(lasting, key=lambda each: -each.worth)[: GO_ON + len(starts)]
            texts = read([each.row for each in nearest]) if nearest else {}
            frontier = [(texts[each.row], each) for each in nearest if each.row in texts][:GO_ON]
    found = (each for each in best.values() if each.worth >= least)
    return sorted(found, key=lambda each: (-each.worth, -each.row))


def _beside(
    indexes: Sequence[Index],
    text: Start,
    at: Reached,
    *,
    without: Collection[str],
    fit: Fit,
    least: float,
) -> Sequence[Reached]:
    rows, close = joined(indexes, text, without=without)
    carried = np.float32(at.carried * (_FURTHER if at.row >= 0 else 1.0)) * close
    nearest = np.flatnonzero(carried >= np.float32(least))
    if not len(nearest):
        return []
    nearest = nearest[np.argsort(-carried[nearest], kind="stable")[:_JOINED]]
    rows, carried = rows[nearest], carried[nearest]
    worth = carried * (_BY_PATH + (1 - _BY_PATH) * fit(rows))
    by = at.by if at.row < 0 else (*at.by, at.row)
    told = zip(rows.tolist(), worth.tolist(), carried.tolist(), strict=True)
    return [
        Reached(row, value, left, at.start, by) for row, value, left in told if not _is_said(indexes, row)
    ]


def _is_said(indexes: Sequence[Index], row: int) -> bool:
    for index in indexes:
        if row < index.size:
            return index.is_said(row)
        row -= index.size
    return False
