"""LD-Agent: the one memory that shares most words with the question; newer memories count more.

Paper: Li et al., "Hello Again! LLM-powered Personalized Agent for Long-term Dialogue", NAACL 2025.
Code: leolee99/LD-Agent@20c1a67, Module/EventMemory.py and config.py.
Follows: the code: e^(−1e-7·seconds) · ½(c/|Q| + c/|R|) over the ten nearest by meaning. One memory is told,
and it must share a word with the question. The filter by distance is commented out in the code, and left out
here.
Differs: words are the terms of a text; the code takes the nouns that spaCy finds. The ten nearest are sought
among all records, not only among summaries of sessions; `memory.optimize` makes a summary a day. Personas are
the profile's records, which are in every note.
Without a model: a day's summary has the first sentences of its records.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.digests import daily
from supervisor_memory.recipes.operators.order import first, likeness, ordered
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    pool: int = constant(10, "EventMemory.py: context_retrieve, n_results", least=1, most=1000)
    decay: float = constant(1e-7, "config.py: decay_temp, a second", least=0, most=1)
    memories: int = constant(1, "config.py: relevance_memory_number", least=1, most=1000)


def overlap(asked: Collection[str], held: Collection[str]) -> float:
    """½(c/|Q| + c/|R|) for c words in common, in [0, 1]; 0 where one has none."""
    one, other = set(asked), set(held)
    common = len(one & other)
    return (common / len(one) + common / len(other)) / 2 if common else 0.0


def topic_score(asked: Collection[str], held: Collection[str], seconds: float, *, decay: float) -> float:
    """The overlap times e^(−decay·seconds); a time in the future counts as now."""
    return math.exp(-decay * max(seconds, 0.0)) * overlap(asked, held)


def by_topic(c: Constants) -> Reading:
    """An operator that orders the nearest hits by their topic, and drops those without a common word."""

    def ordered_by_topic(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None or not plan.hits:
            return plan
        found = (hit for hit in plan.hits if "standing" not in hit.parts)
        near = sorted(found, key=likeness, reverse=True)[: c.pool]
        asked, now = plan.query.terms, view.now

        def score(hit: Hit) -> float:
            held = terms(hit.record.content)
            return topic_score(asked, held, now - hit.record.created_at, decay=c.decay)

        ids = {hit.record.id for hit in near if score(hit)}
        kept = plan.keeping(
            (h for h in plan.hits if h.record.id in ids or "standing" in h.parts), others="over-limit"
        )
        items = ordered(kept.hits.items, [*map(score, kept.hits)], "ld_agent")
        return replace(kept, hits=replace(kept.hits, items=items))

    return ordered_by_topic


def ld_agent(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, by_topic(c), first(c.memories)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        upkeep=(daily(),),
    )


PUBLISHED: Final = Published(
    "ld_agent",
    "the one memory that shares most words with the question; newer ones count more",
    __doc__ or "",
    ld_agent,
    Constants,
)
