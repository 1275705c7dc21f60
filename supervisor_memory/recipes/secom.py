"""SeCom: conversations are kept in segments, and a segment is found and told whole.

Paper: Pan et al., "On Memory Construction and Retrieval for Personalized Conversational Agents" (SeCom), ICLR
2025.
Code: microsoft/SeCom@1738e56, secom/secom.py.
Follows: the code for the case that its model fails to segment: runs of three exchanges; three segments are
told. It is configured as in `configs/fast.yaml`, which compresses nothing and finds segments by BM25.
Differs: a segment begins as soon as its session has enough messages. A session's last few messages wait; they
and facts are found beside the segments. BM25 takes the rarity of a word from the hits, not from the whole
store. LLMLingua-2, which compresses for `bm25.yaml` and `mpnet.yaml`, is left out; it is a model of its own.
Without a model: the same.
"""

from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import FAMILIES
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.order import bm25, by_meaning, first, ordered, weigh
from supervisor_memory.recipes.operators.segments import SEGMENT, keep_segments
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stages.retrieval.search import search_store


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    exchanges: int = constant(3, "secom.py: segment, runs where the model fails", least=1, most=50)
    top_k: int = constant(3, "secom.py: retrieve_topk", least=1, most=1000)
    retriever: str = constant(
        "words",
        "configs/fast.yaml, which does not compress either: BM25; mpnet.yaml: meaning",
        choices=("words", "meaning"),
    )
    pool: int = constant(50, "ours: segments among which BM25 counts words", least=1, most=1000)


def search_units(c: Constants) -> Reading:
    """An operator that finds segments, and beside them what is in none."""

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None:
            return plan
        of = plan.query.where
        families = (FAMILIES["experience"],) if of.families is None else of.families
        where = replace(of, families=families, tags=(*(of.tags or ()), SEGMENT))
        segments = view.search(replace(plan.query, where=where, parts=()), limit=max(c.pool, c.top_k))
        others = search_store(plan, view).hits
        ids = [hit.record.id for hit in others]
        holding = view.list(replace(where, ref_ids=tuple(ids)), limit=len(ids)) if ids else ()
        held = {id for record in holding for id in record.made_from}
        loose = (h for h in others if h.record.id not in held and SEGMENT not in h.record.tags)
        return replace(plan, hits=replace(others, items=(*segments, *loose)))

    return found


def by_words(plan: Recalling, view: ReadStore) -> Recalling:
    """Order hits by BM25 over what was found, the best being 1."""
    asked = plan.query.terms if plan.query is not None else ()
    scores = bm25(asked, [terms(hit.record.content) for hit in plan.hits], were_found=True)
    items = ordered(plan.hits.items, scores, "secom", most=max(scores, default=0.0) or 1.0)
    return replace(plan, hits=replace(plan.hits, items=items))


def secom(c: Constants) -> Recipe:
    """The recipe of these constants."""
    order = by_words if c.retriever == "words" else weigh("secom", by_meaning)
    return replace(
        reranked(PLAIN, order, first(c.top_k)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(**{c.retriever: 1.0})),
        retrieval=(search_units(c), *PLAIN.retrieval[1:]),
        post_insert=(keep_segments(c.exchanges),),
    )


PUBLISHED: Final = Published(
    "secom", "conversations in segments of three exchanges, told whole", __doc__ or "", secom, Constants
)
