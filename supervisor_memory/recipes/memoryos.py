"""MemoryOS: pages move to segments by topic, and hot segments are read for a portrait of the user.

Paper: Kang et al., "Memory OS of AI Agent", EMNLP 2025.
Code: BAI-LAB/MemoryOS@1d71706, memoryos-pypi/memoryos.py, updater.py, mid_term.py, retriever.py.
Follows: the code: over ten pages the oldest leave short-term memory. A model sums up the pages of an episode
by topic. Each topic joins the segment nearest by cosine and keywords, from .6 on, or begins a new one. A note
has the seven nearest pages of the five segments nearest to the question, all of short-term memory, and twenty
lines of knowledge. A segment of heat 5 or more (visits + pages + e^(−hours/24)) is read for the portrait and
for knowledge; its visits and pages then count from 0 again. The segment with the fewest visits is forgotten
first.
Differs: a page is a record, not a pair of messages; messages are quoted beside it. Moves, segments and
portraits are chores of `memory.optimize`, not of a turn; until they have run, all pages are searched. The
visits of a segment are the most reads of any of its pages. When a page is deleted, its segment is made again
from the others. The paper has 7 pages and 200 segments. Knowledge of the assistant is not kept apart.
Without a model: an episode of a conversation is a segment, with the words of its first sentences; the
portrait is the profile's records.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.model.records import FAMILIES, TIER, Filter, Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.operators import topics
from supervisor_memory.recipes.operators.order import likeness, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.operators.tiers import Tier, keep_in, tiered
from supervisor_memory.recipes.operators.topics import KNOWLEDGE, PORTRAIT, TOPIC
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked

SHORT, MID, LONG = "short", "mid", "long"
_MADE: Final = (FAMILIES["experience"],)  # where what is made from others is kept
_SPARE: Final = 3  # times what is short, since the newest are looked at
_MOST_IDS: Final = 500  # pages of the five segments, the newest


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    short: int = constant(10, "memoryos.py: short_term_capacity; the paper has 7", least=1, most=1000)
    mid: int = constant(2000, "memoryos.py: mid_term_capacity; the paper has 200", least=1, most=1_000_000)
    long: int = constant(100, "memoryos.py: long_term_knowledge_capacity", least=1, most=100_000)
    joins_from: float = constant(0.6, "mid_term.py: insert_pages_into_session", least=-1, most=2)
    hot_from: float = constant(5.0, "memoryos.py: H_PROFILE_UPDATE_THRESHOLD", least=0)
    tau_hours: float = constant(24.0, "mid_term.py: RECENCY_TAU_HOURS", least=0.001)
    segments: int = constant(5, "mid_term.py: search_sessions, top_k_sessions", least=1, most=100)
    least: float = constant(0.1, "retriever.py: segment and page thresholds", least=-1, most=1)
    pages: int = constant(7, "memoryos.py: retrieval_queue_capacity", least=1, most=1000)
    knowledge: int = constant(20, "retriever.py: top_k_knowledge", least=0, most=1000)
    least_knowledge: float = constant(0.01, "retriever.py: knowledge_threshold", least=-1, most=1)
    pool: int = constant(60, "ours: records among which loose pages and knowledge are sought", least=1)


def heat(visits: int, pages: int, hours: float, *, tau: float = 24.0) -> float:
    """How hot a segment is, 0 or more."""
    return visits + pages + math.exp(-max(hours, 0.0) / tau)


def joining(cosine: float, mine: Collection[str], theirs: Collection[str]) -> float:
    """How well two topics are one: their cosine, and the share of keywords that they have in common."""
    either = {*mine} | {*theirs}
    return cosine + (len({*mine} & {*theirs}) / len(either) if mine and theirs else 0.0)


def search_tiers(c: Constants) -> Reading:
    """An operator that finds pages by way of their segments, knowledge, the portrait and what is short."""

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        query = plan.query
        if query is None:
            return plan
        where, query = query.where, replace(query, parts=(), unrelated=c.least_knowledge)
        made = replace(where, families=_MADE if where.families is None else where.families)
        topic, portrait = (replace(made, tags=(*(where.tags or ()), tag)) for tag in (TOPIC, PORTRAIT))
        segments = view.search(replace(query, where=topic), limit=c.segments)
        near = [hit.record for hit in _best(segments, c.segments, c.least)]
        ids = tuple(reversed([id for record in near for id in record.made_from]))[:_MOST_IDS]
        of_segments = view.search(replace(query, where=replace(where, ids=ids)), limit=c.pages) if ids else ()
        pool = view.search(query, limit=c.pool)
        loose = [hit for hit in pool if not hit.record.made_from and hit.record.metadata.get(TIER) != LONG]
        held = _pages_of_segments(
            [h.record.id for h in loose if h.record.metadata.get(TIER) == MID], topic, view
        )
        pages = {h.record.id: h for h in (*of_segments, *(h for h in loose if h.record.id not in held))}
        known = [hit for hit in pool if hit.record.metadata.get(TIER) == LONG]
        newest = [r for r in view.list(where, limit=_SPARE * c.short) if r.metadata.get(TIER) == SHORT]
        told = [
            *_best(pages.values(), c.pages, c.least),
            *_best(known, c.knowledge, c.least_knowledge),
            *(Hit(each, found=PORTRAIT) for each in view.list(portrait, limit=1)),
            *(Hit(each, found=SHORT) for each in newest[: c.short] if each.is_visible(view.now)),
        ]
        items = tuple({hit.record.id: hit for hit in reversed(told)}.values())
        return replace(plan, hits=replace(pool, items=items, notes=(*plan.hits.notes, *pool.notes)))

    return found


def _best(hits: Iterable[Hit], most: int, least: float) -> Sequence[Hit]:
    """The hits from a likeness on, the nearest first; where nothing was compared by meaning all pass."""
    like = [hit for hit in hits if hit.parts.get("cosine", least) >= least]
    return sorted(like, key=lambda h: -h.parts.get("cosine", h.parts.get("match", 0.0)))[:most]


def _pages_of_segments(ids: Sequence[str], topic: Filter, view: ReadStore) -> set[str]:
    """The pages whose segment may be found."""
    asked = replace(topic, ref_ids=tuple(ids))
    return {id for record in (view.list(asked, limit=len(ids)) if ids else ()) for id in record.made_from}


def _by_tier(hits: Sequence[Hit], view: ReadStore) -> Sequence[float]:
    """The hits found by likeness first, then the records that are always in the note."""
    return [0.0 if hit.found in (SHORT, PORTRAIT) else max(likeness(hit), 0.0) for hit in hits]


def memoryos(c: Constants) -> Recipe:
    """The recipe of these constants."""
    hot = partial(heat, tau=c.tau_hours)
    tiers = (
        Tier(SHORT, c.short, into=MID),
        Tier(MID, c.mid, "least-read", tag=TOPIC, with_parts=True),
        Tier(LONG, c.long, tag=KNOWLEDGE),
    )
    return replace(
        reranked(PLAIN, weigh("memoryos", _by_tier)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        retrieval=(search_tiers(c), *PLAIN.retrieval[1:]),
        pre_insert=(*PLAIN.pre_insert, keep_in(SHORT)),
        insert=(deciding(judge=only_add),),
        upkeep=(
            tiered(*tiers),
            topics.gather_topics(MID, joining, joins_from=c.joins_from),
            topics.draw_portrait(LONG, hot, hot_from=c.hot_from),
        ),
    )


PUBLISHED: Final = Published(
    "memoryos", "short, mid and long: pages, topics and a portrait", __doc__ or "", memoryos, Constants
)
