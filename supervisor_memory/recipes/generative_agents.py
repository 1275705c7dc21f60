"""Generative Agents: the recent, important and relevant come first, and much that matters is reflected on.

Paper: Park et al., "Generative Agents: Interactive Simulacra of Human Behavior", UIST 2023, section 4.
Code: joonspk-research/generative_agents@51072d4, persona/cognitive_modules/retrieve.py and reflect.py.

Changed: recency is .995 an hour since the last read (or the writing, where nobody read), as in the paper; the
code gives the oldest record the highest. Without a model importance comes from the number of different words,
and a reflection holds the most important records of the period word for word: no insight is invented.
Threshold and note are the default recipe's. A reflection outlives what it was made from."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe, Remembering, Upkeep
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import AuditEvent, Candidate, Filter, Record, Source
from supervisor_memory.ports import Maintaining, ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.draft import record_of
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stores.protocol import Change, Commit

HOURLY_DECAY: Final = 0.995  # paper, section 4.1
REFLECTS_AT: Final = 150.0  # paper, section 4.2; scratch.py: importance_trigger_max
MOST_EVIDENCE: Final = 5  # reflect.py: insights of a reflection
REFLECTION: Final = "reflection"
_LATEST, _LONGEST = 200, 400  # records since the last reflection; characters of each that are quoted
_PROMPT: Final = """On the scale of 1 to 10, where 1 is purely mundane and 10 is extremely poignant, rate the
likely poignancy of this memory, which is data. Answer with the number alone. Memory: {text}"""  # section 4.1


@dataclass(frozen=True, slots=True)
class Weights:
    """What recency, importance and relevance count in the score."""

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0


IN_THE_PAPER: Final = Weights()
IN_THE_CODE: Final = Weights(recency=0.5, importance=2.0, relevance=3.0)  # retrieve.py: new_retrieve


def generative_agents(weights: Weights = IN_THE_PAPER, *, reflects_at: float = REFLECTS_AT) -> Recipe:
    """The recipe. `reflects_at` is the sum of importance, 1 to 10 a record, that calls for a reflection."""
    return replace(
        reranked(DEFAULT, weigh(weights)),
        name="generative_agents",
        pre_insert=(*DEFAULT.pre_insert, score_importance),
        post_insert=(reflect(reflects_at),),
    )


def normalised(values: Sequence[float]) -> list[float]:
    """Each value on the scale from the least, 0, to the greatest, 1; .5 where all are equal."""
    least, width = min(values), max(values) - min(values)
    return [(value - least) / width if width else 0.5 for value in values]


def retrieval_scores(
    hours: Sequence[float], importance: Sequence[float], relevance: Sequence[float], weights: Weights
) -> list[float]:
    """Weighted sums of recency, importance and relevance, each normalised over one search's records."""
    recency = normalised([HOURLY_DECAY ** max(each, 0.0) for each in hours])
    scored = zip(recency, normalised(importance), normalised(relevance), strict=True)
    return [weights.recency * r + weights.importance * i + weights.relevance * s for r, i, s in scored]


def weigh(weights: Weights) -> Reading:
    """An operator that orders ranked hits by recency, importance and relevance."""

    def weighed(plan: Recalling, view: ReadStore) -> Recalling:
        if not plan.hits:
            return plan
        reads = view.reads([hit.record.id for hit in plan.hits])
        last_at = {record_id: each.last_at for record_id, each in reads.items()}
        seen = [last_at.get(hit.record.id) or hit.record.updated_at for hit in plan.hits]
        scores = retrieval_scores(
            [(view.now - when) / 3_600 for when in seen],
            [hit.record.importance for hit in plan.hits],
            [hit.parts.get("cosine", hit.parts.get("relevance", 0.0)) for hit in plan.hits],
            weights,
        )
        most = weights.recency + weights.importance + weights.relevance
        both = sorted(zip(scores, plan.hits, strict=True), key=lambda pair: -pair[0])
        hits = (replace(h, score=s / most, parts={**h.parts, "generative_agents": s}) for s, h in both)
        return replace(plan, hits=replace(plan.hits, items=tuple(hits)))

    return weighed


def importance_by_words(text: str) -> float:
    """The stand-in for a model's rating, 1 to 10: it grows with the logarithm of the different words."""
    return min(10.0, 1.0 + 1.5 * math.log2(1 + len(set(terms(text)))))


def score_importance(said: Remembering, view: ReadStore) -> Remembering:
    """Rate each candidate and each text that is given, in [0, 1], unless the host has."""

    def rate(text: str) -> float:
        found = re.search(r"\b(10|[1-9])\b", view.complete(_PROMPT.format(text=text)) or "")
        return (float(found[1]) if found else importance_by_words(text)) / 10

    def scored(each: Candidate) -> Candidate:
        known = {"importance": rate(each.content)} if "importance" not in each.metadata else {}
        return replace(each, metadata={**each.metadata, **known})

    def rated(each: Record) -> Record:
        is_known = "importance" in each.metadata or not said.is_given  # nobody rates session messages
        return each if is_known else replace(each, importance=rate(each.content))

    candidates, rest = map(scored, said.candidates), map(rated, said.verbatim)
    return replace(said, candidates=tuple(candidates), verbatim=tuple(rest))


def reflect(threshold: float) -> Upkeep:
    """An operator that keeps a reflection once the importance since the last one passes a sum."""

    def reflected(said: Remembering, view: Maintaining) -> Remembering:
        where = Filter(user_id=said.scope.user_id, tasks=(said.scope.task,))
        newest = view.list(where, limit=_LATEST) if any(done.id for done in said.results) else ()
        before = max((record.created_at for record in newest if REFLECTION in record.tags), default=-math.inf)
        since = [r for r in newest if REFLECTION not in r.tags and r.created_at > before]
        if 10 * sum(record.importance for record in since) <= threshold:
            return said
        new = _reflection(sorted(since, key=lambda record: -record.importance), said, view)
        row = AuditEvent("add", new.user_id, record_id=new.id, after=new.content, reason=REFLECTION)
        view.commit(Commit((Change(new),), (replace(row, family=new.family, version_after=1),)))
        return said

    return reflected


def _reflection(records: Sequence[Record], said: Remembering, view: Maintaining) -> Record:
    """The record of a reflection. It counts as an agent's words, so the user's own stay as they are."""
    best = records[:MOST_EVIDENCE]
    text = "\n".join(record.content[:_LONGEST] for record in best)
    facts = {"made_from": [record.id for record in best], "importance": best[0].importance}
    new = Candidate(text, "experience", Source("agent"), tags=(REFLECTION,), metadata=facts)
    return record_of(new, view.embed([text])[0], replace(said, family=None), view)


GENERATIVE_AGENTS = generative_agents()
