"""EmotionalRAG: a memory is found by its meaning and by its mood.

Paper: Huang et al., "Emotional RAG: Enhancing Role-Playing Agents through Emotional Retrieval", 2024.
Code: BAI-LAB/EmotionalRAG@bd4855d, get_response.py (retrieval) and data/generate_query_bank.py.
Follows: the code; its default is C-A, the sum of both distances.
Differs: a text's mood is kept with the record, as eight numbers from 1 to 10. No turn waits for a model, so
records from a turn have no mood; records that are written, added or read from the queue have one. The nearest
are sought in a pool of the best by meaning, not in the whole store.
Without a model: there are no moods, and hits are ordered by meaning alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.model.records import Record
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.answers import told_in
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import first, likeness, ordered
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked

MOOD: Final = "mood"
"""The metadata key for the eight numbers of a text."""
NAMES: Final = ("joy", "acceptance", "fear", "surprise", "sadness", "disgust", "anger", "anticipation")
_NONE: Final = (1.0,) * len(NAMES)  # generate_query_bank.py: all 1 where nothing was read
_HIGHEST: Final = 10
_LONGEST: Final = 2_000  # characters of a text that a model is shown


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    strategy: str = constant(
        "C-A",
        "get_response.py: C-A sum, C-M product, S-C context then mood, S-S the reverse",
        choices=("C-A", "C-M", "S-C", "S-S"),
    )
    k: int = constant(10, "get_response.py: k", least=1, most=1000)
    pool: int = constant(20, "get_response.py: the first 20 of S-C and S-S", least=1, most=1000)


def mood(text: str, view: NoStore) -> tuple[float, ...] | None:
    """The eight numbers of a text, by the model; None: there is none, or it did not say them."""
    if not view.has_model:
        return None
    answer = view.complete(view.prompt("mood", text=text[:_LONGEST]))
    told = told_in(answer)
    try:
        values = tuple(float(told[name]) for name in NAMES)
    except (ValueError, KeyError, TypeError):
        return None
    return values if all(1 <= value <= _HIGHEST for value in values) else None


def with_mood(text: str, when: float, view: ReadStore) -> Mapping[str, Any]:
    """The metadata of a text: its mood, where the model says one."""
    found = mood(text, view)
    return {} if found is None else {MOOD: [*found]}


def apart(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine distance of two moods, from 0 to 1: no number is negative."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return max(0.0, 1.0 - product / (math.hypot(*one) * math.hypot(*other)))


def by_strategy(strategy: str, contexts: Sequence[float], moods: Sequence[float], *, pool: int) -> list[int]:
    """The places of hits in the order of a strategy, the nearest first.

    Args:
        contexts, moods: The distances of each hit.
        pool: How many the first of two steps leaves to the second; the others follow behind.
    """
    places = [*range(len(contexts))]
    if strategy == "C-A":
        return sorted(places, key=lambda n: contexts[n] + moods[n])
    if strategy == "C-M":
        return sorted(places, key=lambda n: contexts[n] * moods[n])
    first, second = (contexts, moods) if strategy == "S-C" else (moods, contexts)
    in_order = sorted(places, key=lambda n: first[n])
    return [*sorted(in_order[:pool], key=lambda n: second[n]), *in_order[pool:]]


def in_mood(c: Constants) -> Reading:
    """An operator that orders hits by context and mood."""

    def by_mood(plan: Recalling, view: ReadStore) -> Recalling:
        asked = mood(plan.query.text, view) if plan.query is not None and plan.hits else None
        hits = plan.hits.items
        contexts = [math.sqrt(max(0.0, 2.0 - 2.0 * likeness(hit))) for hit in hits]  # L2 of unit vectors
        moods = [0.0 if asked is None else apart(asked, _mood_of(hit.record)) for hit in hits]
        order = by_strategy(c.strategy if asked else "C-A", contexts, moods, pool=c.pool)
        score = {place: 1.0 / rank for rank, place in enumerate(order, start=1)}
        items = ordered(hits, [score[place] for place in range(len(hits))], "emotional_rag")
        return replace(plan, hits=replace(plan.hits, items=items))

    return by_mood


def _mood_of(record: Record) -> tuple[float, ...]:
    kept = record.metadata.get(MOOD)
    is_one = isinstance(kept, (list, tuple)) and len(kept) == len(NAMES)
    return tuple(map(float, kept)) if is_one else _NONE  # type: ignore[arg-type]  # of a JSON list


def emotional_rag(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, in_mood(c), first(c.k)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        pre_insert=(*PLAIN.pre_insert, beside(with_mood)),
    )


PUBLISHED: Final = Published(
    "emotional_rag", "order by meaning and mood", __doc__ or "", emotional_rag, Constants
)
