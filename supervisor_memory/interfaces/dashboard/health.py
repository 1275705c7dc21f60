"""Page 5: whether memory works: the store, what waits, the audit chain, degraded turns, counts."""

from itertools import pairwise
from typing import Final

from fastapi.responses import Response

from supervisor_memory.audit.log import AuditLog, AuditRow, row_hash
from supervisor_memory.audit.verify import verified
from supervisor_memory.interfaces.dashboard import pictures
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import FAMILIES, KINDS, Filter, Status
from supervisor_memory.stores.protocol import Journals

__all__ = ["health"]

_LAST_ROWS: Final = 500
_NOTES: Final = 5_000
_DAYS: Final = 14
_STATUSES: Final[tuple[Status, ...]] = ("pending", "stale", "compressed", "quarantined", "deleted")


def health(visit: Visit) -> Response:
    """For who may see all users; others see the counts of their own alone."""
    memory, user_id = visit.memory, visit.user_id
    backend = memory.backend
    is_operator = visit.asker.user_ids is None
    whole = is_operator and visit.asked("verify") == "all"
    clock = memory.services.clock()
    notes = backend.audit.notes(_NOTES, user_id=user_id)
    return visit.page(
        "health.html",
        is_operator=is_operator,
        health=backend.health() if is_operator else None,
        backlog=backend.backlog() if is_operator and isinstance(backend, Journals) else None,
        queue=memory.queue.counts() if is_operator else None,
        chain=_chain(backend.audit, whole=whole) if is_operator else None,
        whole=whole,
        days=_DAYS,
        notes=pictures.columns([note for note in notes if note.op == "inject"], clock, days=_DAYS),
        searches=pictures.columns([note for note in notes if note.op == "search"], clock, days=_DAYS),
        kinds={kind: backend.count(Filter(user_id=user_id, kinds=(kind,))) for kind in KINDS},
        statuses={each: backend.count(Filter(user_id=user_id, statuses=(each,))) for each in _STATUSES},
        families=FAMILIES,
        user_id=user_id,
    )


def _chain(log: AuditLog, *, whole: bool) -> tuple[int, bool]:
    """How many rows were read, and whether they are as they were written: the last ones, or all."""
    if whole:
        found = verified(log)
        return found.rows, not found.problems
    rows = log.tail(_LAST_ROWS)
    follow = all(a.seq + 1 == b.seq and a.hash == b.prev_hash for a, b in pairwise(rows))
    return len(rows), follow and all(_is_as_written(log, row) for row in rows)


def _is_as_written(log: AuditLog, row: AuditRow) -> bool:
    held = (row.prev_hash, row.payload, row.hash)
    if not all(isinstance(each, bytes) for each in held):  # whoever changed it may have made it a text
        return False
    return row_hash(log.log_id, row.prev_hash, row.payload) == row.hash
