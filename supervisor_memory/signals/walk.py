"""Walk from records to records that name the same things.

Two records are joined by what they share and few others hold: a table, a person, a rare word. The postings of
an index (`index.py`) tell who holds a term, so the walk needs no graph of its own: nothing to build when a
store is opened, nothing to keep up to date at an insert, and what is erased is gone from it at once. Names
count more than other words; what many records hold joins nothing, however often it is named, so that no hub
floods a walk.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from supervisor_memory.signals.index import Floats, Index, Rows

MOST_HOLDERS = 64
"""A term that more records hold joins nothing."""
MOST_TERMS = 256
"""Different terms of a text that are looked at."""
_NO_NAME = 0.3  # the weight of a word outside names; a name weighs 1
_JOINED = 32  # of those joined to a record, the closest are compared with the question
GO_ON = 2
"""Of those reached by a step, so many are gone on from, the best."""
_FURTHER = 0.8
_ALMOST = 1 - 1e-6  # a likeness has seven digits; how it is rounded decides nothing
_BY_PATH = 0.7  # of a record's worth; the rest is by its likeness to the question


class Start(NamedTuple):
    """A text from which a walk begins.

    Attributes:
        terms: Its terms, in order.
        named: Gives those that are of names.
        weight: How much what is found from here counts, in [0, 1].
        row: That has the text; None: none.
    """

    terms: Sequence[str]
    named: Callable[[], Collection[str]]
    weight: float = 1.0
    row: int | None = None


class Reached(NamedTuple):
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
IsAny = Callable[[float], bool]
"""Takes a likeness to the question; gives whether any row that may be told can have as much."""


class Joints:
    """What terms join: for each the rows that hold it, where they are few. Each term is looked up once.

    Args:
        without: Terms that do not count, since they are searched for anyway.
    """

    def __init__(self, indexes: Sequence[Index], without: Collection[str]) -> None:
        self.indexes, self._records = indexes, sum([len(index) for index in indexes])
        self._known = dict.fromkeys(without, _NOBODY)
        self.scale = math.log1p(self._records / 2)
        """The rarity of a term that two hold."""

    def of(self, some: Sequence[str]) -> Sequence[tuple[str, Sequence[int], float]]:
        """The rare ones of some terms, each with the rows that hold it and its rarity."""
        known, found = self._known, []
        for term in islice(dict.fromkeys(some), MOST_TERMS):
            joint = known.get(term)
            if joint is None:
                joint = known[term] = self._look(term)
            if joint[0]:
                found.append((term, *joint))
        return found

    def _look(self, term: str) -> tuple[Sequence[int], float]:
        rows: list[int] = []
        first, most = 0, MOST_HOLDERS
        for index in self.indexes:
            held = index.few(term, most)
            if held is None:
                return _NOBODY
            most -= len(held)
            rows += [row + first for row in index.living(held)] if first else index.living(held)
            first += index.size
        return (rows, math.log1p(self._records / len(rows))) if rows else _NOBODY


_NOBODY: tuple[Sequence[int], float] = ((), 0.0)


def joined(
    joints: Joints,
    text: Start,
    *,
    least: float = 0.0,
    may_follow: Callable[[Mapping[int, float]], bool] = bool,
) -> Mapping[int, float]:
    """Rows that share rare terms with a text → how closely, in (0, 1], where 1 is one name that two hold.

    What a text names is looked for only where a row would be close enough if all that it shares were named.

    Args:
        least: How closely.
        may_follow: Takes rows and the most rarity of names that each can share; gives whether anything can
            follow from them. Where nothing can, there are none.
    """
    shared, scale = joints.of(text.terms), joints.scale
    least *= scale
    if sum([rarity for _, _, rarity in shared]) < least:
        return {}
    at_most: dict[int, float] = {}
    for _, rows, rarity in shared:
        for row in rows:
            at_most[row] = at_most.get(row, 0.0) + rarity
    near = {row: most for row, most in at_most.items() if most >= least and row != text.row}
    if not near or not may_follow(near):
        return {}
    named = text.named()
    worths = [1.0 if term in named else _NO_NAME for term, _, _ in shared]
    enough = least / max(worths) * _ALMOST
    close = dict.fromkeys([row for row, most in near.items() if most >= enough], 0.0)
    for (_, rows, rarity), worth in zip(shared, worths, strict=True) if close else ():
        for row in rows:
            if row in close:
                close[row] += rarity * worth
    return {row: sum_ / scale if sum_ < scale else 1.0 for row, sum_ in close.items() if sum_ >= least}


def walk(
    indexes: Sequence[Index],
    starts: Sequence[Start],
    *,
    without: Collection[str],
    fit: Fit,
    read: Read,
    is_any: IsAny = lambda _: True,
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
    joints = Joints(indexes, without)
    best: dict[int, Reached] = {}
    texts = starts
    ways = [Reached(-1, start.weight, start.weight, number) for number, start in enumerate(starts)]
    further: Sequence[Reached] = ways
    ways_on = GO_ON + len(starts)  # those that the walk has begun at are among them
    for step in range(1, steps + 1):
        left = max([each.carried for each in further], default=0.0) * (_FURTHER if step > 1 else 1.0)
        if step == steps and len(best) >= most:  # what is worth less than these will not be told
            least = max(least, sorted([each.worth for each in best.values()])[-most] * _ALMOST)
        goes_on = step < steps and _may_find(is_any, left * _FURTHER, least)
        if not goes_on and not _may_find(is_any, left, least):
            break
        if step > 1:
            known = read([each.row for each in further])
            ways = [each for each in further if each.row in known][:GO_ON]
            texts = [known[each.row] for each in ways]
        told, further = _step(
            joints,
            texts,
            ways,
            begun=[start.row for start in starts],
            fit=fit,
            least=least,
            most=most,
            best=best,
            ways_on=ways_on if goes_on else 0,
        )
        best |= {each.row: each for each in told}
    return sorted(best.values(), key=lambda each: (-each.worth, -each.row))[:most]


def _may_find(is_any: IsAny, left: float, least: float) -> bool:
    """Whether a row can be like the question enough to be worth that where so much is left of a way."""
    return 0 < left >= least and is_any((least / left * _ALMOST - _BY_PATH) / (1 - _BY_PATH))


def _step(
    joints: Joints,
    texts: Sequence[Start],
    ways: Sequence[Reached],
    *,
    begun: Sequence[int | None],
    fit: Fit,
    least: float,
    most: int,
    best: Mapping[int, Reached],
    ways_on: int,
) -> tuple[Sequence[Reached], Sequence[Reached]]:
    """Take one step from each text. Returns the best rows, without those in `best` by a better way, and
    the rows to go on from, at most `ways_on`. No way leads back to the row that it has begun at."""
    near: list[tuple[float, int, int]] = []
    may_be_said = any(index.has_streams for index in joints.indexes)
    for number, (text, way) in enumerate(zip(texts, ways, strict=True)):
        left = way.carried * (_FURTHER if way.row >= 0 else 1.0)
        if not 0 < left >= least:
            continue
        is_new = partial(_is_new, best, way, left)
        may_follow = partial(
            _may_follow, is_new, scale=joints.scale, left=left, fit=None if ways_on else fit, least=least
        )
        close = joined(joints, text, least=least / left, may_follow=may_follow)
        rows = [row for row in close if not _is_said(joints.indexes, row)] if may_be_said else close
        closest = sorted([(left * close[row], number, row) for row in rows], reverse=True)[:_JOINED]
        near += [each for each in closest if is_new(each[2], close[each[2]])] if best else closest
    if not near:
        return (), ()
    likeness = fit(np.array([row for _, _, row in near], dtype=np.intp)).tolist()
    told = sorted(
        [
            (carried * (_BY_PATH + (1 - _BY_PATH) * like), row, carried, number)
            for (carried, number, row), like in zip(near, likeness, strict=True)
        ],
        key=lambda each: (-each[0], -each[1]),
    )
    found: dict[int, Reached] = {}
    further: dict[int, Reached] = {}
    for value, row, remains, number in told:
        way = ways[number]
        is_known = row in found or row in further or (row in best and best[row].worth >= value)
        if is_known or row in way.by or row == begun[way.start]:
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


def _is_new(best: Mapping[int, Reached], way: Reached, left: float, row: int, most: float) -> bool:
    """Whether a row that is joined so closely at most may be worth more than by a way that is known."""
    known = best.get(row)
    return (known is None or known.worth < left * most) and row not in way.by


def _may_follow(
    is_new: Callable[[int, float], bool],
    near: Mapping[int, float],
    *,
    scale: float,
    left: float,
    fit: Fit | None,
    least: float,
) -> bool:
    """Whether one of some rows can be worth enough, or be gone on from: then there is no `fit`."""
    news = ((row, close) for row, most in near.items() if is_new(row, close := min(most / scale, 1.0)))
    if fit is None:
        return any(True for _ in news)
    new = dict(news)
    if len(new) > 2 * _JOINED:
        return True
    likeness = fit(np.array([*new], dtype=np.intp)).tolist() if new else ()
    return any(
        left * close * (_BY_PATH + (1 - _BY_PATH) * like) >= least
        for close, like in zip(new.values(), likeness, strict=True)
    )


def _is_said(indexes: Sequence[Index], row: int) -> bool:
    for index in indexes:
        if row < index.size:
            return index.has_streams and index.is_said(row)
        row -= index.size
    return False
