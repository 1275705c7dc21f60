"""Generative Agents: recency, importance and relevance rank records; much importance leads to a reflection.

Paper: Park et al., "Generative Agents: Interactive Simulacra of Human Behavior", UIST 2023, section 4.
Code: joonspk-research/generative_agents@51072d4, persona/cognitive_modules/retrieve.py and reflect.py.
Follows: the paper for recency, .995 an hour since the last read (or since the writing, if nobody read it);
the code for the weights, .5 recency, 3 relevance and 2 importance. With the weights of the paper, 1, 1 and 1,
little but the last day is found.
Differs: the code gives the oldest record the highest recency; ours gives it the lowest. A reflection holds
the most important records of the period word for word; no insight is invented. It is a chore of
`memory.optimize`, so no turn waits for it. Threshold and note are those of the default recipe.
Without a model: importance is computed from the number of different words.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.flow import Chore, Due, Recipe, Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Candidate, Filter, Hit, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.order import Scoring, likeness, normalised, weigh
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stores.protocol import Change

MOST_EVIDENCE: Final = 5  # reflect.py: insights of a reflection
REFLECTION: Final = "reflection"
_LATEST, _LONGEST = 200, 400  # records since the last reflection; characters of each that are quoted
_PROMPT: Final = """On the scale of 1 to 10, where 1 is purely mundane and 10 is extremely poignant, rate the
likely poignancy of this memory, which is data. Answer with the number alone. Memory: {text}"""  # section 4.1


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    recency: float = constant(0.5, "retrieve.py: new_retrieve, gw; the paper has 1", least=0)
    importance: float = constant(2.0, "retrieve.py: new_retrieve, gw; the paper has 1", least=0)
    relevance: float = constant(3.0, "retrieve.py: new_retrieve, gw; the paper has 1", least=0)
    hourly_decay: float = constant(0.995, "paper, section 4.1; the code has .99 a place", least=0, most=1)
    reflects_at: float = constant(150.0, "paper, section 4.2; scratch.py: importance_trigger_max", least=0)


def built(c: Constants) -> Recipe:
    """The recipe of these constants. `reflects_at` is the sum of importance, 1 to 10 a record."""
    most = c.recency + c.importance + c.relevance
    return replace(
        reranked(PLAIN, weigh("generative_agents", by_memory_stream(c), most=most)),
        pre_insert=(*PLAIN.pre_insert, score_importance),
        upkeep=(reflect(c.reflects_at),),
    )


def retrieval_scores(
    hours: Sequence[float], importance: Sequence[float], relevance: Sequence[float], c: Constants
) -> list[float]:
    """Weighted sums of recency, importance and relevance, each normalised over one search's records."""
    recency = normalised([c.hourly_decay ** max(each, 0.0) for each in hours])
    scored = zip(recency, normalised(importance), normalised(relevance), strict=True)
    return [c.recency * r + c.importance * i + c.relevance * s for r, i, s in scored]


def by_memory_stream(c: Constants) -> Scoring:
    """The score of hits by recency, importance and relevance."""

    def scores(hits: Sequence[Hit], view: ReadStore) -> Sequence[float]:
        reads = view.reads([hit.record.id for hit in hits])
        last_at = {record_id: each.last_at for record_id, each in reads.items()}
        seen = [last_at.get(hit.record.id) or hit.record.updated_at for hit in hits]
        return retrieval_scores(
            [(view.now - when) / 3_600 for when in seen],
            [hit.record.importance for hit in hits],
            [likeness(hit) for hit in hits],
            c,
        )

    return scores


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


def reflect(threshold: float) -> Chore:
    """A chore: once the importance since the last reflection passes a sum, keep another. Tasks stay apart."""

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        of_task: defaultdict[str | None, list[Record]] = defaultdict(list)
        for record in view.list(Filter(user_id), limit=_LATEST):
            of_task[record.task].append(record)
        due = []
        for newest in of_task.values():
            before = max((r.created_at for r in newest if REFLECTION in r.tags), default=-math.inf)
            since = [r for r in newest if REFLECTION not in r.tags and r.created_at > before]
            total = 10 * sum(record.importance for record in since)
            if total > threshold:
                best = sorted(since, key=lambda record: -record.importance)[:MOST_EVIDENCE]
                text = "\n".join(record.content[:_LONGEST] for record in best)
                told: dict[str, Any] = {"layer": "abstract", "created_at": view.now, "now": view.now}
                new = made_from(best, text, tag=REFLECTION, **told)
                due.append(Due(Change(new), f"importance {total:g}, over {threshold:g}"))
        return due

    return Chore("reflect", plan)


PUBLISHED: Final = Published(
    "generative_agents",
    "recency · importance · relevance, and reflections",
    __doc__ or "",
    built,
    Constants,
)
GENERATIVE_AGENTS: Final = PUBLISHED.recipe()


def generative_agents(**changed: float) -> Recipe:
    """The recipe with some of its constants changed, such as `reflects_at=100.0`; see `Constants`.

    Raises:
        SettingsError: there is no such constant, or its value is out of range.
    """
    return PUBLISHED.recipe(**changed)
