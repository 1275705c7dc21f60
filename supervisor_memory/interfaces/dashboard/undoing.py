"""Taking back what a reviewer has just decided: the proposal waits again, what it changed is as before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.records import WriteResult

__all__ = ["Decision", "decide", "take_back"]

_MOST_ROWS: Final = 200
_SET_ASIDE: Final = ("stale", "deleted", "compressed")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and what it changed.

    Args:
        what: "approve", "edit" or "reject".
        text: The proposal's.
        changed: Record id → its version before, None where it is new, and after.
    """

    what: str
    text: str
    result: WriteResult
    changed: dict[str, tuple[int | None, int]]


def decide(
    memory: SupervisorMemory, what: str, text: str, decision: Callable[[], WriteResult], *, reviewer: str
) -> Decision:
    """Decide, and read in the audit log what that changed."""
    log = memory.backend.audit
    last = log.count()
    result = decision()
    changed: dict[str, tuple[int | None, int]] = {}
    for row in log.rows(after=last, limit=_MOST_ROWS):
        event = row.event
        if event["actor"] == reviewer and row.record_id and event["version_after"] is not None:
            before, _ = changed.get(row.record_id, (event["version_before"], 0))
            changed[row.record_id] = before, event["version_after"]
    return Decision(what, text, result, changed)


def take_back(memory: SupervisorMemory, decision: Decision, *, reviewer: str) -> bool:
    """Make it as it was. False where somebody has changed one of the records since; nothing is done then.

    Raises:
        RecordNotFound: a record is gone.
        Conflict: another record has the place by now.
    """
    now = {record.id: record for record in memory.backend.get(list(decision.changed))}
    if any(id_ not in now or now[id_].version != after for id_, (_, after) in decision.changed.items()):
        return False
    # What is active goes first, so that the place of what comes back is free.
    for id_ in sorted(decision.changed, key=lambda id_: now[id_].status in _SET_ASIDE):
        before, _ = decision.changed[id_]
        if now[id_].status in _SET_ASIDE:
            memory.review.restore(id_, reviewer=reviewer)
        elif before is None:
            memory.review.delete(id_, reviewer=reviewer)
        else:
            memory.review.revert(id_, version=before, reviewer=reviewer)
    return True
