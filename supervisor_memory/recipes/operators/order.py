"""Put hits into the order of a score of one's own: weigh, keep the first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from supervisor_memory.flow import Reading, Recalling
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore

Scoring: TypeAlias = Callable[[Sequence[Hit], ReadStore], Sequence[float]]
"""From hits to one score each, 0 or more."""


def ordered(hits: Sequence[Hit], scores: Sequence[float], name: str, *, most: float = 1.0) -> tuple[Hit, ...]:
    """The hits by their scores, the highest first and of equals the newest, with the score as a part.

    Args:
        name: Of the part.
        most: The highest score there can be, which makes a hit's score 1.
    """
    both = zip(scores, hits, strict=True)
    best = sorted(both, key=lambda pair: (pair[0], pair[1].record.id), reverse=True)
    return tuple(
        replace(hit, score=min(max(score / most, 0.0), 1.0), parts={**hit.parts, name: score})
        for score, hit in best
    )


def weigh(name: str, scoring: Scoring, *, most: float = 1.0) -> Reading:
    """An operator that orders ranked hits by a score; `most` as in `ordered`."""

    def weighed(plan: Recalling, view: ReadStore) -> Recalling:
        if not plan.hits:
            return plan
        items = ordered(plan.hits.items, scoring(plan.hits.items, view), name, most=most)
        return replace(plan, hits=replace(plan.hits, items=items))

    return weighed


def likeness(hit: Hit) -> float:
    """How like the question a hit is: the cosine or, where nothing was compared by meaning, the relevance."""
    return hit.parts.get("cosine", hit.parts.get("relevance", 0.0))


def by_meaning(hits: Sequence[Hit], view: ReadStore) -> Sequence[float]:
    """The likeness of each hit alone; below 0 counts as 0."""
    return [max(likeness(hit), 0.0) for hit in hits]


def normalised(values: Sequence[float]) -> list[float]:
    """Each value on the scale from the least, 0, to the greatest, 1; .5 where all are equal."""
    if not values:
        return []
    least, width = min(values), max(values) - min(values)
    return [(value - least) / width if width else 0.5 for value in values]


def first(most: int) -> Reading:
    """An operator that keeps the first hits, and fewer where the turn wants fewer.

    What stands in every note, such as preferences, is kept beside them.
    """

    def kept(plan: Recalling, view: ReadStore) -> Recalling:
        standing = {hit.record.id for hit in plan.hits if "standing" in hit.parts}
        found = [hit.record.id for hit in plan.hits if hit.record.id not in standing]
        wanted = most if plan.turn.limit is None else min(most, plan.turn.limit)
        chosen = standing | set(found[:wanted])
        return plan.keeping((hit for hit in plan.hits if hit.record.id in chosen), others="over-limit")

    return kept
