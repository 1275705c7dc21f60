"""What a team shares: definitions and experience that a person has promoted for all of its users."""

from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import TEAM, Filter, Hit, Kind, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.settings import Settings
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.understand.lessons.lesson import TALLY, lessons_of

SHARED_KINDS: Final[tuple[Kind, ...]] = ("experience", "domain-facts")
"""What can be promoted. Nothing that is about a user can."""
_CANDIDATES: Final = 20


def owner_of(settings: Settings) -> str | None:
    """Whose records a team reads; None: nothing is shared."""
    return f"{TEAM}{settings.team}" if settings.team else None


def tally_of(record: Record) -> str | None:
    """The owner of the guideline that a tally counts; None: the record is no tally."""
    told = record.metadata.get(TALLY)
    return told if record.status == "stale" and isinstance(told, str) else None


def refuted_in(tally: Record) -> frozenset[object]:
    """The keys of the lessons that a tally refutes."""
    return frozenset(each.key for each in lessons_of(tally.metadata) if each.is_refuted)


def add_shared(plan: Recalling, view: ReadStore) -> Recalling:
    """Candidates for a note from what MEMORY_TEAM shares, ranked and gated as one's own are.

    What the user's own candidates say, or say otherwise of the same subject, is left out.
    """
    owner = owner_of(view.settings)
    if owner is None or plan.query is None or plan.turn.purpose == "hits":
        return plan

    def shared(where: Filter) -> Filter:
        return replace(where, user_id=owner, kinds=SHARED_KINDS)

    parts = tuple(replace(each, where=shared(each.where)) for each in plan.query.parts)
    query = replace(plan.query, where=shared(plan.query.where), parts=parts)
    found = found_by(query, limit=_CANDIDATES, view=view)
    known = {key for hit in plan.hits for key in _keys(hit.record)}
    others: list[Hit] = [hit for hit in found if known.isdisjoint(_keys(hit.record))]
    notes = tuple(dict.fromkeys((*plan.hits.notes, *found.notes)))
    degraded = plan.hits.degraded or found.degraded
    return replace(plan, hits=replace(plan.hits, items=(*plan.hits, *others), notes=notes, degraded=degraded))


def _keys(record: Record) -> set[tuple[str, str]]:
    """The keys of a record; records that say the same, or set the same attribute, share one."""
    keys = {("text", record.content_hash)}
    if record.subject is not None and record.attribute is not None:
        keys.add((record.subject, record.attribute))
    return keys
