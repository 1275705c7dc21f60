"""Fetch candidates: what resembles the question, and what the user wants whatever the question."""

from dataclasses import replace

from supervisor_memory.flow import Recalling
from supervisor_memory.ports import ReadStore
from supervisor_memory.records import FAMILIES, Filter, Hit

__all__ = ["add_standing", "search_store"]

_CANDIDATES = 50  # of each signal, for every hit that is wanted; ranking chooses among them
_MOST = 1_000


def search_store(plan: Recalling, view: ReadStore) -> Recalling:
    """Candidates by meaning and by words."""
    if plan.query is None:
        return plan
    wanted = plan.turn.limit or view.settings.top_k
    hits = view.search(plan.query, limit=min(max(_CANDIDATES, 4 * wanted), _MOST))
    return replace(plan, hits=hits)


def add_standing(plan: Recalling, view: ReadStore) -> Recalling:
    """The user's newest preferences, marked `standing`: "use tables" resembles no question.

    They count against the note's limits like any other record.
    """
    most = view.settings.standing_notes
    if plan.query is None or plan.turn.purpose == "hits" or not most:
        return plan
    where = Filter(
        user_id=plan.turn.scope.user_id,
        families=(FAMILIES["user-profile"],),
        tasks=plan.turn.scope.tasks,
        kinds=("user-profile",),
    )
    standing = {r.id: r for r in view.list(where, limit=most) if r.is_visible(view.now)}
    found = [
        replace(hit, parts={**hit.parts, "standing": 1.0}) if hit.record.id in standing else hit
        for hit in plan.hits
    ]
    seen = {hit.record.id for hit in found}
    added = [Hit(record, parts={"standing": 1.0}) for id_, record in standing.items() if id_ not in seen]
    return replace(plan, hits=replace(plan.hits, items=(*found, *added)))
