"""Tell an agent its identity and the guidelines of its tools, and no other agent's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Hit, Kind, Record, family_for
from supervisor_memory.ports import ReadStore
from supervisor_memory.understand.lessons import GUIDELINE, LESSONS, fitting, lessons_of, worded

TOLD: Final = "guideline"
"""`Hit.found` of a guideline that is told."""
_KINDS: Final[tuple[Kind, ...]] = ("experience", "identity")
_MOST_READ: Final = 200
_SECONDS_A_DAY: Final = 86_400.0


def add_guidelines(plan: Recalling, view: ReadStore) -> Recalling:
    """The guidelines of the reader's tools, and none that a search found of others.

    Of each as many lessons as 60 tokens hold, those first that are about the words of the task, with how
    often they held. What was neither learned nor held for MEMORY_EXPERIENCE_DAYS is not told.
    """
    if plan.turn.purpose == "hits":
        return plan
    scope = plan.turn.scope
    own_families = families_of(scope.agent_id, view.settings.namespaces)
    near = [hit.record for hit in plan.hits if hit.record.attribute == GUIDELINE]
    if near:
        others = tuple(hit for hit in plan.hits if hit.record.attribute != GUIDELINE)
        plan = plan.keeping(others, others="not-for-you")
    if plan.query is None or not view.settings.experience or plan.hits.namespaces == 0:
        return plan  # without a namespace the search has just looked there
    where = Filter(scope.user_id, own_families, scope.tasks, kinds=_KINDS, attribute=GUIDELINE)
    listed = [each for each in view.list(where, limit=_MOST_READ) if each.is_visible(view.now)]
    own = {each.id: each for each in (*listed, *(each for each in near if each.family in own_families))}
    told = [hit for each in own.values() if (hit := _told(each, plan.query.terms, view)) is not None]
    if not told:
        return plan
    told.sort(key=lambda hit: -hit.parts["relevance"])
    return replace(plan, hits=replace(plan.hits, items=(*plan.hits, *told)))


def families_of(agent_id: str | None, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """The families in which an agent's guidelines and its identity are; None: the supervisor's."""
    return tuple(dict.fromkeys(family_for(kind, agent_id, prefixes) for kind in _KINDS))


def _told(record: Record, asked: Sequence[str], view: ReadStore) -> Hit | None:
    """The guideline as it is told for a task; None: all of it is too old."""
    if record.kind == "identity":
        return Hit(record, parts={"relevance": 1.0}, found=TOLD)
    oldest = view.now - view.settings.experience_days * _SECONDS_A_DAY
    lessons = [each for each in lessons_of(record.metadata) if each.at >= oldest]
    if not lessons:
        return None
    tongue = str(record.metadata.get("language", "en"))
    chosen, tool = fitting(lessons, asked), record.subject or ""
    told = worded(tool, chosen, count=view.count_tokens, tongue=tongue, with_counts=True)
    if not told.text:
        return None
    metadata = {**record.metadata, LESSONS: [each.to_dict() for each in told.lessons]}
    parts = {"relevance": _share(record, asked)}
    return Hit(replace(record, content=told.text, metadata=metadata), parts=parts, found=TOLD)


def _share(record: Record, asked: Sequence[str]) -> float:
    """How much of a task's words are in a guideline, in [0, 1]; its tool's name counts, too."""
    words = set(asked)
    if not words:
        return 0.0
    held = {term for text in (record.subject or "", record.content) for term in terms(text)}
    return len(words & held) / len(words)
