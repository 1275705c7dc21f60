"""Put hits into the order of a score of one's own: weigh, keep the first."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from supervisor_memory.flow import Reading, Recalling
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore

Scoring: TypeAlias = Callable[[Sequence[Hit], ReadStore], Sequence[float]]
"""From hits to one score each, 0 or more."""
_K1, _B, _LEAST_IDF = 1.5, 0.75, 0.25  # rank_bm25: BM25Okapi


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
        return _keep_first(plan, plan.hits, most)

    return kept


def first_by(
    plan: Recalling, scores: Sequence[float], name: str, *, keep: int, most: float = 1.0
) -> Recalling:
    """The best hits by their scores, as `ordered` and `first` have it, the others never put into words."""
    score_of = {hit.record.id: score for hit, score in zip(plan.hits, scores, strict=True)}
    best = sorted(plan.hits, key=lambda hit: (score_of[hit.record.id], hit.record.id), reverse=True)
    kept = _keep_first(plan, best, keep)
    items = ordered(kept.hits.items, [score_of[hit.record.id] for hit in kept.hits], name, most=most)
    return replace(kept, hits=replace(kept.hits, items=items))


def _keep_first(plan: Recalling, best: Sequence[Hit], most: int) -> Recalling:
    """The plan with the first of its hits, which are given best first."""
    standing = {hit.record.id for hit in best if "standing" in hit.parts}
    found = [hit.record.id for hit in best if hit.record.id not in standing]
    wanted = most if plan.turn.limit is None else min(most, plan.turn.limit)
    chosen = standing | set(found[:wanted])
    return plan.keeping((hit for hit in plan.hits if hit.record.id in chosen), others="over-limit")


def bm25(
    asked: Sequence[str], documents: Sequence[Sequence[str]], *, were_found: bool = False
) -> list[float]:
    """The score of each document for some terms, as BM25Okapi has it.

    Args:
        were_found: The documents were sought by these terms, so that most hold one: no term counts against
            them, as Lucene has it.
    """
    counts = [Counter(each) for each in documents]
    holders = Counter(term for each in counts for term in each)
    odds = {term: (len(documents) - n + 0.5) / (n + 0.5) for term, n in holders.items()}
    idf = {term: math.log1p(each) if were_found else math.log(each) for term, each in odds.items()}
    floor = _LEAST_IDF * sum(idf.values()) / len(idf) if idf else 0.0
    usual = sum(map(len, documents)) / len(documents) if documents else 0.0

    def score(count: Counter[str]) -> float:
        wide = _K1 * (1 - _B + _B * count.total() / usual) if usual else 0.0
        known = ((floor if idf[term] < 0 else idf[term], count[term]) for term in asked if term in count)
        return sum(weight * n * (_K1 + 1) / (n + wide) for weight, n in known)

    return [score(each) for each in counts]
