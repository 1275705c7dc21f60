"""Log commits to a place that is not in the log's own transaction: an intent before, the outcome after."""

from collections.abc import Callable
from typing import Literal

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.model.records import AuditEvent
from supervisor_memory.stores.protocol import Commit


class Intents:
    """The intents and outcomes of one store's commits, in its audit log."""

    def __init__(self, audit: AuditLog, clock: Callable[[], float]) -> None:
        self._audit, self._clock = audit, clock
        self._has_settled = False

    def begin(self, commit: Commit) -> None:
        """Log the intent of a commit."""
        self._audit.append([_event("commit.intent", commit, "ok")], at=self._clock())

    def done(self, commit: Commit) -> None:
        """Log the events of a commit, and its success."""
        self._audit.append([*commit.audit, _event("commit.done", commit, "ok")], at=self._clock())

    def failed(self, commit: Commit) -> None:
        """Log that nothing of a commit was applied."""
        self._audit.append([_event("commit.done", commit, "failed")], at=self._clock())

    def doubt(self) -> None:
        """Look through the whole log at the next `settle`, not at its last row alone."""
        self._has_settled = False

    def settle(self, is_applied: Callable[[str], bool]) -> None:
        """Log the outcome of an intent that a failure or a kill left open, by whether the store holds the
        commit."""
        # Once looked for, a new one can only be the last row: another process's over the same log.
        if self._has_settled and not any(row.op == "commit.intent" for row in self._audit.tail(1)):
            return
        intents = self._audit.tail(1, op="commit.intent")
        answers = [*self._audit.tail(1, op="commit.done"), *self._audit.tail(1, op="commit.unknown")]
        if intents and not any(row.seq > intents[0].seq for row in answers):
            commit_id = str(intents[0].event["detail"]["commit"])
            self.answer(commit_id, applied=is_applied(commit_id))
        self._has_settled = True

    def answer(self, commit_id: str, *, applied: bool) -> None:
        """Log a late outcome."""
        detail: dict[str, str | bool] = {"commit": commit_id, "applied": applied}
        event = AuditEvent("commit.unknown", actor="backend", outcome="degraded", detail=detail)
        self._audit.append([event], at=self._clock())


def _event(op: str, commit: Commit, outcome: Literal["ok", "failed"]) -> AuditEvent:
    counts = {"changes": len(commit.changes), "events": len(commit.audit)}
    return AuditEvent(op, actor="backend", outcome=outcome, detail={"commit": commit.id, **counts})
