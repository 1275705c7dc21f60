"""Walk from records to records that name the same things.

Two records are joined by what they share and few others hold: a table, a person, a rare word. The postings of
an index (`index.py`) tell who holds a term, so the walk needs no graph of its own: nothing to build when a
store is opened, nothing to keep up to date at an insert, and what is erased is gone from it at once. Names
count more than other words; what many records hold joins nothing, however often it is named, so that no hub
floods a walk.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from supervisor_memory.signals.index import Floats, Index, Rows

MOST_HOLDERS = 64
"""A term that more records hold joins nothing."""
MOST_TERMS = 256
"""Different terms of a text that are looked at."""
# Weights of words outside names; a name weighs 1. Chinese names have no form of their own.
_NO_NAME, _NO_NAME_IN_CJK = 0.3, 0.5
_TIES = 3  # rows that share as much with a text, up to which they are looked at before its names
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
        named: Gives those that are of names.
        weight: How much what is found from here counts, in [0, 1].
    """

    terms: Sequence[str]
    named: Callable[[], Collection[str]]
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
Own = Callable[[Sequence[int]], Collection[int]]
"""Takes rows; gives those that a walk has begun at."""


def joined(
    indexes: Sequence[Index],
    text: Start,
    *,
    without: Collection[str],
    least: float = 0.0,
    own: Own = lambda _: (),
) -> Mapping[int, float]:
    """Rows that share rare terms with a text → how closely, in (0, 1], where 1 is one name that two hold.

    What a text names is looked for only where a row would be close enough if all that it shares were named.

    Args:
        without: Terms that do not count, since they are searched for anyway.
        least: How closely.
        own: Takes rows that share most with the text; gives those of them whose text it is.
    """
    records = sum([len(index) for index in indexes])
    shared = [*_shared(indexes, text.terms, without, records)]
    scale = math.log1p(records / 2)
    at_most: dict[int, float] = {}
    for _, rows, rarity in shared:
        for row in rows:
            at_most[row] = at_most.get(row, 0.0) + rarity
    near = {row: most for row, most in at_most.items() if most >= least * scale}
    closest = max(near.values(), default=0.0)
    ties = [row for row, value in near.items() if value == closest]
    for row in own(ties) if 0 < len(ties) <= _TIES else ():
        near.pop(row, None)
    if not near:
        return {}
    named, close = text.named(), dict.fromkeys(near, 0.0)
    for term, rows, rarity in shared:
        worth = rarity * (1.0 if term in named else _NO_NAME if term.isascii() else _NO_NAME_IN_CJK)
        for row in rows:
            if row in close:
                close[row] += worth
    return {row: min(sum_ / scale, 1.0) for row, sum_ in close.items() if sum_ >= least * scale}


def _shared(
    indexes: Sequence[Index], some: Sequence[str], without: Collection[str], records: int
) -> Iterator[tuple[str, Sequence[int], float]]:
    """The rare ones of some terms, each with the rows that hold it and its rarity."""
    for term in islice(dict.fromkeys(some), MOST_TERMS):
        if term in without or not 0 < sum([index.count(term) for index in indexes]) <= MOST_HOLDERS:
            continue
        rows, first = list[int](), 0
        for index in indexes:
            held = index.holders(term).tolist()
            rows += [row + first for row in held] if first else held
            first += index.size
        if rows:
            yield term, rows, math.log1p(records / len(rows))


def walk(
    indexes: Sequence[Index],
    starts: Sequence[Start],
    *,
    without: Collection[str],
    fit: Fit,
    read: Read,
    own: Own = lambda _: (),
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
            own=own,
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
    own: Own,
    least: float,
    most: int,
    ways_on: int,
    best: Mapping[int, Reached],
) -> tuple[Sequence[Reached], Sequence[Reached]]:
    """Take one step from each text. Returns the best rows, without those in `best` by a better way, and
    the rows to go on from."""
    near = list[tuple[float, int, int]]()
    may_be_said = any(index.has_streams for index in indexes)
    for number, (text, way) in enumerate(zip(texts, ways, strict=True)):
        left = way.carried * (_FURTHER if way.row >= 0 else 1.0)
        if not 0 < left >= least:
            continue
        begun = own if way.row < 0 else partial(_itself, way.row)
        close = joined(indexes, text, without=without, least=least / left, own=begun)
        rows = [row for row in close if not _is_said(indexes, row)] if may_be_said else close
        near += sorted([(left * close[row], number, row) for row in rows], reverse=True)[:_JOINED]
    if not near:
        return (), ()
    likeness = fit(np.array([row for _, _, row in near], dtype=np.intp)).tolist()
    told = sorted(
        (
            (carried * (_BY_PATH + (1 - _BY_PATH) * like), row, carried, number)
            for (carried, number, row), like in zip(near, likeness, strict=True)
        ),
        key=lambda each: (-each[0], -each[1]),
    )
    found: dict[int, Reached] = {}
    further: dict[int, Reached] = {}
    for value, row, remains, number in told:
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


def _itself(row: int, _: Sequence[int]) -> Sequence[int]:
    return (row,)


def _is_said(indexes: Sequence[Index], row: int) -> bool:
    for index in indexes:
        if row < index.size:
            return index.has_streams and index.is_said(row)
        row -= index.size
    return False
