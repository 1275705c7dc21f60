"""Mem0 as its code is now: records are only added, and found by meaning, words and entities together.

Paper: Chhikara et al., "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory", 2025.
Code: mem0ai/mem0@8d5b786, mem0/utils/scoring.py (score_and_rank) and mem0/memory/main.py.
Follows: the code. It no longer has the paper's ADD, UPDATE, DELETE and NOOP (see `mem0`), nor the graph,
which became a boost for entities.
Differs: rules find entities: identifiers and names. Entities with the same words are the same, so their
similarity is 1; the code asks a model and compares vectors, from .5 on. The records that hold an entity are
counted among the candidates. Later code has an optional recency, off by default, which is left out. Without
vectors words and entities count alone. Facts, the threshold of a note and its form are those of the default
recipe.
Without a model: rules read the facts.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.decisions import Add, Decision, Rivals
from supervisor_memory.model.records import Candidate, Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.understand.names import identifiers

_CURVES: Final = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5))  # scoring.py: get_bm25_params
_LONGEST_CURVE: Final = (12.0, 0.5)


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    least_similarity: float = constant(0.1, "main.py: threshold, before the fusion", least=-1, most=1)
    least_pool: int = constant(60, "main.py: internal_limit = max(limit * 4, 60)", least=1, most=1000)
    pool_of_each: int = constant(4, "main.py: internal_limit = max(limit * 4, 60)", least=1, most=100)
    entity_weight: float = constant(0.5, "scoring.py: ENTITY_BOOST_WEIGHT", least=0, most=1)
    most_entities: int = constant(8, "main.py: entities of a question that are looked up", least=0, most=100)


def by_words(bm25: float, count: int) -> float:
    """A BM25 score in (0, 1), by a logistic curve for the number of terms in the question."""
    fitting = ((middle, steepness) for most, middle, steepness in _CURVES if count <= most)
    middle, steepness = next(fitting, _LONGEST_CURVE)
    return 1.0 / (1.0 + math.exp(-steepness * (bm25 - middle)))


def entity_boost(similarity: float, records: int, *, weight: float = 0.5) -> float:
    """An entity's contribution to a record's score; the more records hold the entity, the smaller."""
    return similarity * weight / (1.0 + 0.001 * (records - 1) ** 2)


def fused(parts: Mapping[str, float], *, active: Iterable[str], weight: float = 0.5) -> float:
    """The sum of "meaning", "words" and "entities" over the most that the active ones can add, in [0, 1]."""
    most = {"meaning": 1.0, "words": 1.0, "entities": weight}
    total = sum(most[name] for name in active)
    return min(sum(parts.values()) / total, 1.0) if total else 0.0


def find_pool(c: Constants) -> Reading:
    """An operator that finds the candidates: the nearest by all signals of the store."""

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None:
            return plan
        wanted = plan.turn.limit or view.settings.top_k
        hits = view.search(plan.query, limit=max(c.pool_of_each * wanted, c.least_pool))
        return replace(plan, hits=replace(hits, notes=(*plan.hits.notes, *hits.notes)))

    return found


def fuse(c: Constants) -> Reading:
    """An operator that orders hits by Mem0's score; what is too unlike the question is dropped before."""

    def by_mem0(plan: Recalling, view: ReadStore) -> Recalling:
        query = plan.query
        if query is None or not plan.hits:
            return plan
        near = (hit for hit in plan.hits if hit.parts.get("cosine", 1.0) >= c.least_similarity)
        plan = plan.keeping(near, others="below-threshold")
        asked = sorted(_entities(query.text))[: c.most_entities]
        held = [_entities(hit.record.content) for hit in plan.hits]
        holders = Counter(entity for some in held for entity in some)
        count = len(set(query.terms))
        boost = {each: entity_boost(1.0, holders[each], weight=c.entity_weight) for each in asked}
        parts = [
            {
                "meaning": hit.parts.get("cosine", 0.0),
                "words": by_words(hit.parts["bm25"], count) if hit.parts.get("bm25") else 0.0,
                "entities": max((boost[each] for each in asked if each in some), default=0.0),
            }
            for hit, some in zip(plan.hits, held, strict=True)
        ]
        active = [name for name in ("meaning", "words", "entities") if any(each[name] for each in parts)]
        scores = [fused(each, active=active, weight=c.entity_weight) for each in parts]
        items = _ordered(plan.hits, parts, scores)
        return replace(plan, hits=replace(plan.hits, items=tuple(items)))

    return by_mem0


def _ordered(
    hits: Sequence[Hit], parts: Sequence[Mapping[str, float]], scores: Sequence[float]
) -> Sequence[Hit]:
    """The hits by Mem0's score, the best first, with its parts."""
    found = []
    for hit, mine, score in zip(hits, parts, scores, strict=True):
        shown = {**hit.parts, **{f"mem0-{name}": value for name, value in mine.items()}}
        found.append(replace(hit, score=score, parts=shown))
    return sorted(found, key=lambda hit: (-hit.score, hit.record.id))


def _entities(text: str) -> frozenset[str]:
    """What a text names: its identifiers, and capitalised words behind the first."""
    names = (word.strip(".,;:!?()'\"") for word in text.split()[1:])
    named = {" ".join(terms(name)) for name in names if name[:1].isupper()} - {""}
    return frozenset(named | {str(each).casefold() for each in identifiers(text)})


def only_add(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """A record of its own, whatever is known. The same words are skipped before a judge is asked."""
    return Add()


def mem0_now(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, fuse(c)),
        retrieval=(find_pool(c), *PLAIN.retrieval[1:]),
        insert=(deciding(judge=only_add),),
    )


PUBLISHED: Final = Published(
    "mem0_now",
    "only add; meaning, words and entities in one score",
    __doc__ or "",
    mem0_now,
    Constants,
)
