"""Rank: how relevant a record is, and its place by that and what else weighs in (`weights.py`).

The threshold reads relevance alone, which is made of absolute parts, so that the best of nonsense
stays nonsense; the rest of the score only orders what passed.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from supervisor_memory.flow import Recalling
from supervisor_memory.ports import ReadStore
from supervisor_memory.recall.weights import parts_of, weighted
from supervisor_memory.records import Hit, Record
from supervisor_memory.settings import Settings
from supervisor_memory.terms import terms

__all__ = ["coverage", "rank", "relevance", "score"]

_AGREEMENT = 0.25  # what a second signal adds to what the best one left open
_NAMED = 0.8  # relevance of a definition whose term the question uses


@lru_cache(maxsize=8192)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def coverage(asked: Collection[str], record: Record) -> float:
    """Share of the question's terms that the record holds, in its text, `use_when` or tags, in [0, 1]."""
    if not asked:
        return 0.0
    held = _term_set(record.searched_text)
    if record.tags:
        held = held | _term_set(" ".join(record.tags))
    return sum(term in held for term in asked) / len(asked)


def relevance(dense: float | None, covered: float, *, named: bool) -> float:
    """The fused evidence for a record, in [0, 1].

    Args:
        dense: Calibrated cosine in [0, 1]; None without vectors of one embedder.
        covered: Share of the question's terms found.
        named: Whether the question uses the very term that the record defines.
    """
    signals = sorted((dense or 0.0, covered, _NAMED if named else 0.0), reverse=True)
    return signals[0] + _AGREEMENT * (1.0 - signals[0]) * signals[1]


def score(
    hit: Hit,
    *,
    asked: frozenset[str],
    dense: float | None,
    now: float,
    settings: Settings,
    times_read: int = 0,
) -> Hit:
    """The hit with its score and the parts it is made of."""
    record = hit.record
    subject = _term_set(record.subject) if record.subject and record.kind == "domain-facts" else frozenset()
    named = bool(subject) and subject <= asked
    covered = coverage(asked, record)
    evidence = relevance(dense, covered, named=named)
    beside = parts_of(record, now=now, settings=settings, times_read=times_read)
    parts = {**hit.parts, "relevance": evidence, "coverage": covered, **beside}
    if dense is not None:
        parts["sim"] = dense
    if named:
        parts["named"] = _NAMED
    return Hit(record, weighted(parts, settings), parts)


def rank(plan: Recalling, view: ReadStore) -> Recalling:
    """Score every candidate and put the best first.

    Scores that differ by less than a hundredth are as good as equal: relevance ends at 1, and seconds of
    age say nothing. What is closer in meaning and words then comes first; equals by id, so that runs agree.
    """
    if plan.query is None:
        return plan
    embedder = view.embedder if plan.query.vector is not None else None
    calibration = embedder.calibration if embedder else None
    asked = frozenset(plan.query.terms)
    read = view.times_read([hit.record.id for hit in plan.hits]) if view.settings.weight_reads else {}
    scored = [
        score(
            hit,
            asked=asked,
            dense=calibration.relevance(hit.parts["cosine"])
            if calibration and "cosine" in hit.parts
            else None,
            now=view.now,
            settings=view.settings,
            times_read=read.get(hit.record.id, 0),
        )
        for hit in plan.hits
    ]
    scored.sort(key=_place)
    return replace(plan, hits=replace(plan.hits, items=tuple(scored)))


def _place(hit: Hit) -> tuple[float, float, float, str]:
    closeness = hit.parts.get("cosine", 0.0) + hit.parts["coverage"]
    return -round(hit.score, 2), -closeness, -hit.score, hit.record.id
