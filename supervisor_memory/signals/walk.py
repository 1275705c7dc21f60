"""Walk from records to records that name the same things.

Two records are joined by what they share and few others hold: a table, a person, a rare word. The postings of
an index (`index.py`) tell who holds a term, so the walk needs no graph of its own: nothing to build when a
store is opened, nothing to keep up to date at an insert, and what is erased is gone from it at once. Names
count more than other words; what many records hold joins nothing, however often it is named, so that no hub
floods a walk.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import numpy as np

from supervisor_memory.signals.index import Floats, Index, Rows

MOST_HOLDERS = 64
"""A term that more records hold joins nothing."""
MOST_TERMS = 256
"""Different terms of a text that are looked at."""
# Weights of words outside names; a name weighs 1. Chinese names have no form of their own.
_NO_NAME, _NO_NAME_IN_CJK = 0.3, 0.5
_JOINED = 32  # of those joined to a record, the closest are compared with the question
GO_ON = 2
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


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows that share rare terms with some texts, one after the other for each text, by rising row.

    Attributes:
        texts: The number of the text that a row is joined to.
        close: How closely, in [0, 1], where 1 is one name that only two records hold.
    """

    rows: Rows
    texts: Rows
    close: Floats


Fit = Callable[[Rows], Floats]
"""Takes rows; gives how much each is like the question, in [0, 1]."""
Read = Callable[[Sequence[int]], Mapping[int, Start]]
"""Takes rows, the best first; gives the texts of the first `GO_ON` that may be gone on from."""


def joined(indexes: Sequence[Index], texts: Sequence[Start], *, without: Collection[str]) -> Joined:
    """Join rows to texts by rare terms, all texts in one go.

    Args:
        without: Terms that do not count, since they are searched for anyway.
    """
    records = sum([len(index) for index in indexes])
    places = [*accumulate((index.size for index in indexes), initial=0)]
    known: dict[str, tuple[Rows, float] | None] = dict.fromkeys(without)
    held: list[Rows] = []
    worth: list[float] = []
    for number, text in enumerate(texts):
        for term in islice(dict.fromkeys(text.terms), MOST_TERMS):
            if term not in known:
                known[term] = _holders(indexes, places, term, records)
            if (found := known[term]) is not None:
                rows, rarity = found
                held.append(rows + number * places[-1] if number else rows)
                share = 1.0 if term in text.named else _NO_NAME if term.isascii() else _NO_NAME_IN_CJK
                worth.append(share * rarity)
    if not held:
        return Joined(_NO_ROWS, _NO_ROWS, np.zeros(0, dtype=np.float32))
    every, weights = np.concatenate(held), np.repeat(worth, [len(rows) for rows in held])
    order = every.argsort(kind="stable")
    every = every[order]
    firsts = np.flatnonzero(np.concatenate([_ONE, every[1:] != every[:-1]]))
    sums = np.add.reduceat(weights[order], firsts)
    numbers, rows = np.divmod(every[firsts], places[-1])
    return Joined(rows, numbers, np.minimum(sums / math.log1p(records / 2), 1.0).astype(np.float32))


_NO_ROWS = np.zeros(0, dtype=np.intp)
_ONE = np.ones(1, dtype=np.bool_)


def _holders(
    indexes: Sequence[Index], places: Sequence[int], term: str, records: int
) -> tuple[Rows, float] | None:
    """The rows with a term, and its rarity; None: too many hold it, or nobody."""
    counts = [index.count(term) for index in indexes]
    if not 0 < sum(counts) <= MOST_HOLDERS:
        return None
    told = zip(indexes, places, counts, strict=False)
    some = [index.holders(term) + at if at else index.holders(term) for index, at, count in told if count]
    rows = some[0] if len(some) == 1 else np.concatenate(some)
    return (rows, math.log1p(records / len(rows))) if len(rows) else None


def walk(
    indexes: Sequence[Index],
    starts: Sequence[Start],
    *,
    without: Collection[str],
    fit: Fit,
    read: Read,
    steps: int = 2,
    least: float = 0.0,
    most: int = 100,
) -> Sequence[Reached]:
    """The rows that are joined to some texts, or to what is joined to them, the best first.

    A row's worth is the weight of its start, less what each join leaves open, and what the row is like the
    question. Of several ways to a row the best counts. What was said in a conversation is no part of a walk:
    its words are understood by the words around it.

    Args:
        least: Of the worth; a way that has less left is not gone on, so that most walks end at once.
        most: Rows.
    """
    best: dict[int, Reached] = {}
    texts = starts
    ways = [Reached(-1, start.weight, start.weight, number) for number, start in enumerate(starts)]
    ways_on = GO_ON + len(starts)  # those that the walk has begun at are among them
    for step in range(steps):
        told, further = _step(
            indexes,
            texts,
            ways,
            without=without,
            fit=fit,
            least=least,
            most=most,
            ways_on=ways_on,
            best=best,
        )
        best |= {each.row: each for each in told}
        if step + 1 == steps or not further:
            break
        known = read([each.row for each in further])
        ways = [each for each in further if each.row in known][:GO_ON]
        texts = [known[each.row] for each in ways]
    return sorted(best.values(), key=lambda each: (-each.worth, -each.row))[:most]


def _step(
    indexes: Sequence[Index],
    texts: Sequence[Start],
    ways: Sequence[Reached],
    *,
    without: Collection[str],
    fit: Fit,
    least: float,
    most: int,
    ways_on: int,
    best: Mapping[int, Reached],
) -> tuple[Sequence[Reached], Sequence[Reached]]:
    """Take one step from each text. Returns the best rows, without those in `best` by a better way, and
    the rows to go on from."""
    near = joined(indexes, texts, without=without)
    left = np.array([way.carried * (_FURTHER if way.row >= 0 else 1.0) for way in ways], dtype=np.float32)
    carried = left[near.texts] * near.close
    kept = _closest(near.texts, carried, np.float32(least))
    if any(index.has_streams for index in indexes):
        kept = kept[[not _is_said(indexes, row) for row in near.rows[kept].tolist()]]
    rows, numbers, carried = near.rows[kept], near.texts[kept], carried[kept]
    worth = carried * (_BY_PATH + (1 - _BY_PATH) * fit(rows))
    order = np.lexsort((-rows, -worth))
    found: dict[int, Reached] = {}
    further: dict[int, Reached] = {}
    told = zip(*(each[order].tolist() for each in (rows, worth, carried, numbers)), strict=True)
    for row, value, remains, number in told:
        way = ways[number]
        is_known = row in found or row in further or (row in best and best[row].worth >= value)
        if is_known or row in way.by:
            continue
        by = way.by if way.row < 0 else (*way.by, way.row)
        reached = Reached(row, value, remains, way.start, by)
        if value >= least and len(found) < most:
            found[row] = reached
        if len(further) < ways_on and remains * _FURTHER >= least:
            further[row] = reached
        elif len(found) == most or value < least:
            break
    return [*found.values()], [*further.values()]


def _closest(numbers: Rows, carried: Floats, least: np.float32) -> Rows:
    """The places of those joined closest to each text."""
    kept = np.flatnonzero(carried >= least)
    if len(kept) <= _JOINED:
        return kept
    kept = kept[np.lexsort((-carried[kept], numbers[kept]))]
    of_texts = numbers[kept]
    return kept[np.arange(len(kept)) - np.searchsorted(of_texts, of_texts) < _JOINED]


def _is_said(indexes: Sequence[Index], row: int) -> bool:
    for index in indexes:
        if row < index.size:
            return index.is_said(row)
        row -= index.size
    return False
