"""Page 5: whether memory works: the store, what waits, the audit chain, degraded turns, counts."""

from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard import pictures
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import FAMILIES, KINDS, Filter, Status

_LAST_ROWS: Final = 500
_NOTES: Final = 5_000
_DAYS: Final = 14
_STATUSES: Final[tuple[Status, ...]] = ("pending", "stale", "compressed", "quarantined", "deleted")


def health(visit: Visit) -> Response:
    """Show all figures to callers who may see all users; others see the counts of their own users."""
    memory, user_id = visit.memory, visit.user_id
    log, upkeep = memory.audit, memory.upkeep
    is_operator = visit.asker.user_ids is None
    whole = is_operator and visit.asked("verify") == "all"
    clock = upkeep.now()
    notes = log.notes(_NOTES, user_id=user_id)
    return visit.page(
        "health.html",
        is_operator=is_operator,
        health=upkeep.health() if is_operator else None,
        backlog=upkeep.backlog() if is_operator else None,
        queue=upkeep.queue.counts() if is_operator else None,
        chain=log.verify_latest(None if whole else _LAST_ROWS) if is_operator else None,
        whole=whole,
        days=_DAYS,
        notes=pictures.columns([note for note in notes if note.op == "inject"], clock, days=_DAYS),
        searches=pictures.columns([note for note in notes if note.op == "search"], clock, days=_DAYS),
        kinds={kind: upkeep.count(Filter(user_id=user_id, kinds=(kind,))) for kind in KINDS},
        statuses={each: upkeep.count(Filter(user_id=user_id, statuses=(each,))) for each in _STATUSES},
        families=FAMILIES,
        user_id=user_id,
    )
