"""Tell an agent its identity and the guidelines of its tools, and no other agent's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Filter, Hit, Kind, Record, family_for
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.retrieval.shared import owner_of, refuted_in, tally_of
from supervisor_memory.understand.lessons.known import beside
from supervisor_memory.understand.lessons.lesson import (
    CORRECTED,
    GUIDELINE,
    LESSONS,
    OWN_KEYS,
    Lesson,
    lessons_of,
)
from supervisor_memory.understand.lessons.wording import Weighed, by_task, worded

TOLD: Final = "guideline"
"""`Hit.found` of a guideline that is told."""
_KINDS: Final[tuple[Kind, ...]] = ("experience", "identity")
_MOST_READ: Final = 200
_SECONDS_A_DAY: Final = 86_400.0


def add_guidelines(plan: Recalling, view: ReadStore) -> Recalling:
    """The guidelines of the reader's tools, and none that a search found of others.

    Of each as many lessons as 60 tokens hold, those first that are about the words of the task, with how
    often they held. What was neither learned nor held for MEMORY_EXPERIENCE_DAYS is not told. What
    MEMORY_TEAM shares of a tool stands beside, without what the reader's own lessons say or contradict, or
    what a person took out of them.
    """
    if plan.turn.purpose == "hits":
        return plan
    scope = plan.turn.scope
    own_families = families_of(scope.agent_id, view.settings.namespaces)
    near = {hit.record.id: hit.record for hit in plan.hits if hit.record.attribute == GUIDELINE}
    is_told = plan.query is not None and view.settings.experience
    own = {
        id_: each
        for id_, each in near.items()
        if is_told and each.family in own_families and each.user_id == scope.user_id
    }
    if near:
        # One's own are told below, in other words than the search found; the others are left out.
        found = tuple(hit for hit in plan.hits if hit.record.id not in own)
        plan = replace(plan, hits=replace(plan.hits, items=found))
        plan = plan.keeping((hit for hit in found if hit.record.id not in near), others="not-for-you")
    if plan.query is None or not is_told:
        return plan
    if plan.hits.namespaces != 0:  # without a namespace the search has just looked there
        where = Filter(scope.user_id, own_families, scope.tasks, kinds=_KINDS, attribute=GUIDELINE)
        own = {**_listed(where, view), **own}
    shared: dict[str, Record] = {}
    if (owner := owner_of(view.settings)) is not None:
        kinds: tuple[Kind, ...] = ("experience",)
        where = Filter(owner, own_families, scope.tasks, kinds=kinds, attribute=GUIDELINE)
        shared = _listed(where, view)
    untold: dict[str, frozenset[object]] = {}
    if shared:  # what failed for this user alone is told to the others
        where = Filter(
            scope.user_id, own_families, scope.tasks, kinds=_KINDS, attribute=GUIDELINE, statuses=("stale",)
        )
        for each in view.list(where, limit=_MOST_READ):
            if tally_of(each) == owner:
                tool = each.subject or ""
                untold[tool] = untold.get(tool, frozenset()) | refuted_in(each)
    known: dict[str, list[Lesson]] = {}
    for each in own.values():
        known.setdefault(each.subject or "", []).extend(
            (*lessons_of(each.metadata), *lessons_of(each.metadata, CORRECTED))
        )
    held: dict[str, tuple[str, Sequence[Lesson]]]
    held = {id_: (each.subject or "", lessons_of(each.metadata)) for id_, each in own.items()}
    for id_, each in shared.items():
        tool = each.subject or ""
        lessons = beside(known.get(tool, ()), lessons_of(each.metadata))
        held[id_] = tool, [lesson for lesson in lessons if lesson.key not in untold.get(tool, ())]
    every = {**own, **shared}
    ranked = by_task(plan.query.terms, held)
    hits = (_guideline_hit(every[id_], weighed, view) for id_, weighed in ranked.items())
    told = [hit for hit in hits if hit is not None]
    if not told:
        return plan
    told.sort(key=lambda hit: -hit.parts["relevance"])
    return replace(plan, hits=replace(plan.hits, items=(*plan.hits, *told)))


def _listed(where: Filter, view: ReadStore) -> dict[str, Record]:
    return {each.id: each for each in view.list(where, limit=_MOST_READ) if each.is_visible(view.now)}


def families_of(agent_id: str | None, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """The families in which an agent's guidelines and its identity are; None: the supervisor's."""
    return tuple(dict.fromkeys(family_for(kind, agent_id, prefixes) for kind in _KINDS))


def _guideline_hit(record: Record, weighed: Sequence[Weighed], view: ReadStore) -> Hit | None:
    """The guideline as told for a task; None: it is too old or empty."""
    if record.kind == "identity":
        return Hit(record, parts={"relevance": 1.0}, found=TOLD)
    oldest = view.now - view.settings.experience_days * _SECONDS_A_DAY
    chosen = [each for each, _ in weighed if each.at >= oldest or each.said]
    tongue = str(record.metadata.get("language", "en"))
    told = worded(record.subject or "", chosen, count=view.count_tokens, tongue=tongue, with_counts=True)
    if not told.text:
        return None
    metadata = {name: each for name, each in record.metadata.items() if name not in OWN_KEYS}
    metadata |= {LESSONS: [each.to_dict() for each in told.lessons]}
    parts = {"relevance": max(share for each, share in weighed if each in told.lessons)}
    return Hit(replace(record, content=told.text, metadata=metadata), parts=parts, found=TOLD)
