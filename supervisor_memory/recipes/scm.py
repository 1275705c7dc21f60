"""SCM: each hit is dropped, summarised or told raw, so that the note fits its budget.

Paper: Liang et al., "Unleashing Infinite-Length Input Capacity for Large-scale Language Models with
Self-Controlled Memory System", 2023.
Code: wbbeyourself/SCM4LLMs@05456d0, core/chat.py (ChatBot) and dialogue_test.py.
Follows: the code, which orders hits by cosine alone; the paper adds recency.
Differs: a hit that does not fit even as a summary is dropped, the least similar to the question first. The
host shows the turn before this one. The note's own budget holds as well.
Without a model: rules decide whether memory is needed. Over the budget a hit below the threshold is dropped,
and any other hit is summarised by its first sentence and its sentences with a term of the question.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Gathering, Reading, Recalling, Recipe, Remembering
from supervisor_memory.model.records import Candidate, Hit, Record
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.compress import extract, leading
from supervisor_memory.recipes.operators.order import by_meaning, first, likeness, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.format import format_note
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stages.retrieval.search import least_relevance

SUMMARY: Final = "summary"
"""The metadata key for the summary of a long text."""
_LONGEST: Final = 4_000  # characters of a text that a model is shown


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants. Numbers of tokens are the memory's own count."""

    top_k: int = constant(6, "dialogue_test.py: similar_top_k", least=1, most=1000)
    history_tokens: int = constant(2500, "chat.py: ChatBot.MAX_HISTORY_TOKENS", least=1, most=1_000_000)
    summarised_from: int = constant(300, "chat.py: summarize_embed_one_turn", least=1, most=1_000_000)


def ask_whether_needed(plan: Recalling, view: NoStore) -> Recalling:
    """Skip memory for a turn where the model says that it needs none. A search has been decided already."""
    if plan.turn.purpose == "hits" or not plan.route.should_read or not view.has_model:
        return plan
    answer = view.complete(view.prompt("route", message=plan.turn.text[:_LONGEST]))
    if answer is None or not answer.strip().casefold().startswith("no"):
        return plan
    route = replace(plan.route, should_read=False, families=(), reasons=(*plan.route.reasons, "model"))
    return replace(plan, route=route)


def summarise_long(over: int) -> Gathering:
    """An operator that keeps a summary beside each text of more tokens than `over`; the text stays whole."""

    def summarised(said: Remembering, view: ReadStore) -> Remembering:
        def of(text: str) -> dict[str, str]:
            if view.count_tokens(text) <= over:
                return {}
            asked = view.prompt("summary", goal="a reader who asks for it later", notes=text[: 4 * _LONGEST])
            told = view.complete(asked) if view.has_model else None
            short = leading(text, most_tokens=over, count_tokens=view.count_tokens)
            return {SUMMARY: told.strip() if told and told.strip() else short}

        def candidate(each: Candidate) -> Candidate:
            return replace(each, metadata={**each.metadata, **of(each.content)})

        def record(each: Record) -> Record:
            return replace(each, metadata={**each.metadata, **of(each.content)})

        candidates, verbatim = map(candidate, said.candidates), map(record, said.verbatim)
        return replace(said, candidates=tuple(candidates), verbatim=tuple(verbatim))

    return summarised


def three_ways(most: int) -> Reading:
    """An operator that drops hits, tells them in summary or raw, until they have at most so many tokens."""

    def told(plan: Recalling, view: ReadStore) -> Recalling:
        def size(hits: Iterable[Hit]) -> int:
            return sum(view.count_tokens(hit.excerpt or hit.record.content) for hit in hits)

        if plan.query is None or size(plan.hits) <= most:
            return plan
        best, *others = sorted(plan.hits, key=likeness, reverse=True)
        kept = [best, *(each for hit in others if (each := _raw_or_summary(hit, plan, view)) is not None)]
        for place in reversed(range(len(kept))):
            if size(kept) > most and kept[place].excerpt is None:
                kept[place] = replace(kept[place], excerpt=_summary(kept[place], plan))
        while len(kept) > 1 and size(kept) > most:
            kept.pop()
        by_id = {hit.record.id: hit for hit in kept}
        left = plan.keeping((hit for hit in plan.hits if hit.record.id in by_id), others="over-budget")
        items = tuple(by_id[hit.record.id] for hit in left.hits)
        return replace(left, hits=replace(left.hits, items=items))

    return told


def _raw_or_summary(hit: Hit, plan: Recalling, view: ReadStore) -> Hit | None:
    """A hit that stays raw, one with its summary, or None."""
    if not view.has_model:
        is_near = hit.parts.get("relevance", 0.0) >= least_relevance(plan.turn, view.settings)
        return replace(hit, excerpt=_summary(hit, plan)) if is_near else None
    if _says_no(plan.turn.text, hit.record.content, view):
        return None
    short = _summary(hit, plan)
    return hit if _says_no(plan.turn.text, short, view) else replace(hit, excerpt=short)


def _says_no(question: str, text: str, view: ReadStore) -> bool:
    """Whether the model says that a text does not answer the question; no answer is no such verdict."""
    answer = view.complete(view.prompt("answers", question=question[:_LONGEST], text=text[:_LONGEST]))
    return answer is not None and answer.strip().casefold().startswith("no")


def _summary(hit: Hit, plan: Recalling) -> str:
    kept = hit.record.metadata.get(SUMMARY)
    asked = frozenset(plan.query.terms) if plan.query else frozenset[str]()
    return kept if isinstance(kept, str) and kept else extract(hit.record.content, asked=asked)


def in_order_of_time(plan: Recalling, view: ReadStore) -> Recalling:
    """The hits of a note in the order in which they were said."""
    if plan.turn.purpose == "hits":
        return plan
    items = tuple(sorted(plan.hits, key=lambda hit: (hit.record.created_at, hit.record.id)))
    return replace(plan, hits=replace(plan.hits, items=items))


def scm(c: Constants) -> Recipe:
    """The recipe of these constants."""
    found = weigh("scm", by_meaning), first(c.top_k), three_ways(c.history_tokens)
    *steps, last = reranked(PLAIN, *found).post_retrieval
    assert last is format_note
    route, *query = PLAIN.pre_retrieval
    return replace(
        PLAIN,
        pre_retrieval=(route, ask_whether_needed, *query, search_by(meaning=1.0)),
        post_retrieval=(*steps, in_order_of_time, format_note),
        pre_insert=(*PLAIN.pre_insert, summarise_long(c.summarised_from)),
    )


PUBLISHED: Final = Published(
    "scm", "drop, summary or raw within a budget of tokens; in order of time", __doc__ or "", scm, Constants
)
