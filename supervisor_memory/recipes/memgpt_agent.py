"""MemGPT with tools: a model pages through messages and archive, in at most three steps.

Paper: Packer et al., "MemGPT: Towards LLMs as Operating Systems", 2023.
Code: letta-ai/letta@0712141af, memgpt/functions/function_sets/base.py; intellistream/SAGE@18ab7a0,
memgpt_agent: six tools, three steps.
Follows: the code: conversation_search finds a string in any case, conversation_search_date a range of days,
both oldest first; archival_memory_search goes by meaning. Each gives a page of five.
Differs: core_memory_append and archival_memory_insert are one question to the model about each text: whether
it belongs into core memory. core_memory_replace is the default judge's decision about a contradicting
statement, so nobody has to quote letter by letter. An answer without a call ends the search. No turn waits
for a model, so a record from a turn goes where its kind says. The rest is `memgpt`.
Without a model: it is `memgpt`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.model.records import SESSION_FAMILY, TIER, Filter, Hit, Record, Wanted
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes import memgpt
from supervisor_memory.recipes.operators.answers import told_in
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.excerpts import is_heard
from supervisor_memory.stages.post_retrieval.quotable import what_became
from supervisor_memory.stages.post_retrieval.rank import gate
from supervisor_memory.stages.pre_retrieval.route import asking

CORE, ARCHIVE = "core", "archive"
SAID, PAGED = "said", "paged"
"""`Hit.found` of messages and archive records the model looked up."""
_MOST_MESSAGES: Final = 2_000  # the newest that a string is looked for in
_MOST_CORE: Final = 50
_RETURNED: Final = 3_000  # constants.py: FUNCTION_RETURN_CHAR_LIMIT
_LONGEST: Final = 2_000  # characters of a text that a model is shown


@dataclass(frozen=True, slots=True)
class Constants(memgpt.Constants):
    """The published constants."""

    steps: int = constant(3, "SAGE: memgpt_agent, max_iterations", least=1, most=10)


def containing(messages: Sequence[Record], text: str, page: int, *, size: int) -> Sequence[Record]:
    """A page, from 0, of the messages with a string, whatever its case; the oldest first."""
    found = [each for each in messages if text.casefold() in each.content.casefold()]
    return sorted(found, key=lambda each: (each.created_at, each.id))[page * size : (page + 1) * size]


def page_in(c: Constants) -> Reading:
    """An operator: the model searches, again and again, until it has enough."""

    def paged(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None or not view.has_model:
            return plan
        found = {hit.record.id: hit for hit in plan.hits}
        seen = "nothing yet"
        for _ in range(c.steps):
            asked = view.prompt("page", question=plan.turn.text[:_LONGEST], found=seen[:_RETURNED])
            call = told_in(view.complete(asked))
            page = str(call.get("page")).strip()
            hits = _looked_up(call, int(page) if page.isdecimal() else 0, plan, c, view)
            if hits is None:
                break
            found |= {hit.record.id: hit for hit in hits}
            seen = "\n".join(hit.record.content for hit in hits) or "no results found"
        return replace(plan, hits=replace(plan.hits, items=tuple(found.values())))

    return paged


def _looked_up(
    call: Mapping[str, Any], page: int, plan: Recalling, c: Constants, view: ReadStore
) -> Sequence[Hit] | None:
    """Run a call of a tool. None: there is no such tool, or its arguments are wrong."""
    assert plan.query is not None
    text, tool = str(call.get("query") or "")[:_LONGEST], call.get("tool")
    where = replace(plan.query.where, families=(SESSION_FAMILY,))
    if tool == "archival_memory_search" and text:
        anything = replace(asking(text, replace(plan.query, parts=()), view), unrelated=-1.0)
        hits = view.search(anything, limit=(page + 1) * c.page)
        return [replace(hit, found=PAGED) for hit in hits[page * c.page :]]
    if tool == "conversation_search_date":
        try:
            begin, end = (datetime.strptime(str(call.get(day)), "%Y-%m-%d") for day in ("start", "end"))
        except ValueError:
            return None
        until = end.replace(tzinfo=UTC) + timedelta(days=1)
        where = replace(where, since=begin.replace(tzinfo=UTC).timestamp(), until=until.timestamp())
    elif tool != "conversation_search" or not text:
        return None
    messages = _told_of(where, plan, view)
    return [Hit(each, found=SAID) for each in containing(messages, text, page, size=c.page)]


def _told_of(where: Filter, plan: Recalling, view: ReadStore) -> Sequence[Record]:
    """Messages that the reader may be told, without those that no longer hold."""
    messages = view.list(where, limit=_MOST_MESSAGES)
    heard = [each for each in messages if is_heard(each, plan.turn.scope.agent_id)]
    untold = what_became(heard, view).untold
    return [each for each in heard if each.id not in untold and each.is_visible(view.now)]


def _belonging(text: str, when: float, view: ReadStore) -> Mapping[str, Any]:
    """Whether a text goes into core memory or into the archive, as the model says."""
    asked = view.complete(view.prompt("core", text=text[:_LONGEST])) if view.has_model else None
    tiers = {"core_memory_append": CORE, "archival_memory_insert": ARCHIVE}
    tool = told_in(asked).get("tool")
    return {TIER: tiers[tool]} if isinstance(tool, str) and tool in tiers else {}


def add_core(plan: Recalling, view: ReadStore) -> Recalling:
    """Add what the model has put into core memory, the newest first."""
    if plan.query is None or plan.turn.purpose == "hits" or not view.settings.standing_notes:
        return plan
    core = Wanted.of(TIER, CORE)
    where = replace(plan.query.where, metadata=(*(plan.query.where.metadata or ()), core))
    there = {each.id: each for each in view.list(where, limit=_MOST_CORE) if each.is_visible(view.now)}
    others = (hit for hit in plan.hits if hit.record.id not in there)
    added = (Hit(record, parts={"standing": 1.0}) for record in there.values())
    return replace(plan, hits=replace(plan.hits, items=(*others, *added)))


def memgpt_agent(c: Constants) -> Recipe:
    """The recipe of these constants."""
    built = memgpt.memgpt(c)
    at = built.post_retrieval.index(gate)
    return replace(
        built,
        retrieval=(*built.retrieval, add_core),
        post_retrieval=(*built.post_retrieval[:at], page_in(c), *built.post_retrieval[at:]),
        pre_insert=(*built.pre_insert, beside(_belonging)),
    )


PUBLISHED: Final = Published(
    "memgpt_agent",
    "memgpt, and a model that searches in up to three steps",
    __doc__ or "",
    memgpt_agent,
    Constants,
)
