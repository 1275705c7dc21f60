"""Mem0 as it is now: records are only added, and found by meaning, words and entities together.

Paper: Chhikara et al., "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory", 2025.
Code: mem0ai/mem0@8d5b786, mem0/utils/scoring.py (score_and_rank) and mem0/memory/main.py. The paper's ADD,
UPDATE, DELETE and NOOP are no longer in it, nor its graph, which became a boost for entities.

Changed: entities are identifiers and names by rule, the same where they are the same words, so that their
similarity is 1 (the code asks a model and compares vectors, from .5 on); how many records hold an entity is
counted among the candidates. Later code has an optional recency, off by default, which is left out. Without
vectors words and entities count alone. Facts, the threshold of a note and its form are the default recipe's.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.decisions import Add, Decision, Rivals
from supervisor_memory.model.records import Candidate, Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.understand.names import identifiers

LEAST_SIMILARITY: Final = 0.1  # main.py: threshold, before the fusion
LEAST_POOL: Final = 60  # main.py: internal_limit = max(limit * 4, 60)
POOL_OF_EACH: Final = 4
ENTITY_WEIGHT: Final = 0.5  # scoring.py: ENTITY_BOOST_WEIGHT
MOST_ENTITIES: Final = 8  # main.py: entities of a question that are looked up
_CURVES: Final = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5))  # scoring.py: get_bm25_params
_LONGEST_CURVE: Final = (12.0, 0.5)


def by_words(bm25: float, count: int) -> float:
    """A BM25 score in (0, 1), by a logistic curve for the number of terms in the question."""
    fitting = ((middle, steepness) for most, middle, steepness in _CURVES if count <= most)
    middle, steepness = next(fitting, _LONGEST_CURVE)
    return 1.0 / (1.0 + math.exp(-steepness * (bm25 - middle)))


def entity_boost(similarity: float, records: int) -> float:
    """An entity's contribution to a record's score; the more records hold the entity, the smaller."""
    return similarity * ENTITY_WEIGHT / (1.0 + 0.001 * (records - 1) ** 2)


def fused(parts: Mapping[str, float], *, active: Iterable[str]) -> float:
    """The sum of "meaning", "words" and "entities" over the most that the active ones can add, in [0, 1]."""
    most = {"meaning": 1.0, "words": 1.0, "entities": ENTITY_WEIGHT}
    total = sum(most[name] for name in active)
    return min(sum(parts.values()) / total, 1.0) if total else 0.0


def find_pool(plan: Recalling, view: ReadStore) -> Recalling:
    """The candidates: the pool that is fused, the nearest by all signals of the store."""
    if plan.query is None:
        return plan
    wanted = plan.turn.limit or view.settings.top_k
    hits = view.search(plan.query, limit=max(POOL_OF_EACH * wanted, LEAST_POOL))
    return replace(plan, hits=replace(hits, notes=(*plan.hits.notes, *hits.notes)))


def fuse(plan: Recalling, view: ReadStore) -> Recalling:
    """Order the hits by Mem0's score; what is too unlike the question is dropped before."""
    query = plan.query
    if query is None or not plan.hits:
        return plan
    near = (hit for hit in plan.hits if hit.parts.get("cosine", 1.0) >= LEAST_SIMILARITY)
    plan = plan.keeping(near, others="below-threshold")
    asked = sorted(_entities(query.text))[:MOST_ENTITIES]
    held = [_entities(hit.record.content) for hit in plan.hits]
    holders = Counter(entity for some in held for entity in some)
    count = len(set(query.terms))
    parts = [
        {
            "meaning": hit.parts.get("cosine", 0.0),
            "words": by_words(hit.parts["bm25"], count) if hit.parts.get("bm25") else 0.0,
            "entities": max((entity_boost(1.0, holders[e]) for e in asked if e in some), default=0.0),
        }
        for hit, some in zip(plan.hits, held, strict=True)
    ]
    active = [name for name in ("meaning", "words", "entities") if any(each[name] for each in parts)]
    return replace(plan, hits=replace(plan.hits, items=tuple(_ordered(plan.hits, parts, active))))


def _ordered(
    hits: Sequence[Hit], parts: Sequence[Mapping[str, float]], active: Sequence[str]
) -> Sequence[Hit]:
    """The hits by Mem0's score, the best first, with its parts."""
    found = []
    for hit, mine in zip(hits, parts, strict=True):
        shown = {**hit.parts, **{f"mem0-{name}": value for name, value in mine.items()}}
        found.append(replace(hit, score=fused(mine, active=active), parts=shown))
    return sorted(found, key=lambda hit: (-hit.score, hit.record.id))


def _entities(text: str) -> frozenset[str]:
    """What a text names: its identifiers, and capitalised words behind the first."""
    names = (word.strip(".,;:!?()'\"") for word in text.split()[1:])
    named = {" ".join(terms(name)) for name in names if name[:1].isupper()} - {""}
    return frozenset(named | {str(each).casefold() for each in identifiers(text)})


def only_add(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """A record of its own, whatever is known. The same words are skipped before a judge is asked."""
    return Add()


MEM0 = replace(
    reranked(DEFAULT, fuse),
    name="mem0",
    retrieval=(find_pool, *DEFAULT.retrieval[1:]),
    insert=(deciding(judge=only_add),),
)
