"""What the interfaces answer, with the same keys on the command line, by HTTP and over MCP: docs/cli.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from supervisor_memory.eraser import OUT_OF_REACH
from supervisor_memory.errors import ConfirmationRequired
from supervisor_memory.explain import REASONS, why

if TYPE_CHECKING:
    from supervisor_memory.audit.log import AuditRow
    from supervisor_memory.memory import SupervisorMemory
    from supervisor_memory.records import Hit, Hits, Record

__all__ = ["audit_rows", "erased", "hit_told", "hits_told", "to_be_erased"]


def hits_told(hits: "Hits", *, explain: bool) -> dict[str, Any]:
    """The hits as JSON has them, and with `explain` every candidate."""
    found = [{"rank": rank, **hit_told(hit)} for rank, hit in enumerate(hits, start=1)]
    if not explain:
        return {"hits": found}
    considered = [
        {"reason": each.reason, "told": REASONS.get(each.reason, ""), **hit_told(each.hit)}
        for each in hits.considered
    ]
    return {"hits": found, "considered": considered}


def hit_told(hit: "Hit") -> dict[str, Any]:
    """One hit: its score, what that is made of, in numbers and in words, and the record."""
    return {
        "score": round(hit.score, 4),
        "parts": {name: round(value, 4) for name, value in hit.parts.items()},
        "why": why(hit.parts),
        "record": hit.record.to_dict(),
    }


def erased(memory: "SupervisorMemory", user: str) -> dict[str, Any]:
    """What was removed of a user, who is erased by this."""
    receipt = memory.erase(user_id=user, confirm=True)
    return {
        "user_id": receipt.user_id,
        "erased_at": receipt.erased_at,
        "counts": receipt.removed,
        "pending": receipt.pending,
        "out_of_reach": receipt.out_of_reach,
    }


def to_be_erased(memory: "SupervisorMemory", user: str) -> dict[str, Any]:
    """The same, as it would be."""
    held: dict[str, int] = {}
    try:
        memory.erase(user_id=user)
    except ConfirmationRequired as error:
        held = error.facts["held"]
    return {"user_id": user, "erased_at": None, "counts": held, "pending": (), "out_of_reach": OUT_OF_REACH}


def audit_rows(memory: "SupervisorMemory", rows: "Sequence[AuditRow]") -> list[dict[str, Any]]:
    """Rows of the log, each with its live record where there is one."""
    ids = list(dict.fromkeys(row.record_id for row in rows if row.record_id))
    records = {record.id: record for record in memory.backend.get(ids)}
    return [{**row.event, "hash": row.hash.hex(), "record": _beside(row.record_id, records)} for row in rows]


def _beside(record_id: str | None, records: "dict[str, Record]") -> dict[str, str | None] | None:
    """What stands beside a row: the record as it is now, without its text unless it is active."""
    if record_id is None:
        return None
    if (record := records.get(record_id)) is None:
        return {"status": "erased", "user_id": None, "content": None}
    content = record.content if record.status == "active" else None
    return {"status": record.status, "user_id": record.user_id, "content": content}
