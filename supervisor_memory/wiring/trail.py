"""Writes to the audit log and the access log: what was refused or degraded, and who saw which record.

A log that fails or hangs must not take the answer away, so nothing here raises or waits for long.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from supervisor_memory.audit import turns
from supervisor_memory.audit.rows import USED, Access
from supervisor_memory.bridge import Bridge
from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import AuditEvent, Hit, Record, Scope
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Ports, guarded
from supervisor_memory.stores.protocol import Commit, MemoryBackend

_NOT_THEIRS = "record-of-another-user"
_GRACE_SECONDS = 0.1
"""The least time to wait for a log, even past the flow's deadline; after that it finishes alone."""


def event_of(
    op: str,
    scope: Scope | None,
    *,
    outcome: Literal["denied", "degraded"],
    reason: str,
    caller: str | None = None,
    family: str | None = None,
) -> AuditEvent:
    """The audit event of a scope; `caller` takes the place of the agent where the scope names none."""
    return AuditEvent(
        op,
        user_id=scope.user_id if scope else None,
        outcome=outcome,
        reason=reason,
        family=family,
        agent_id=(scope.agent_id if scope else None) or caller,
        session_id=scope.session_id if scope else None,
        run_id=scope.run_id if scope else None,
    )


@dataclass(frozen=True, slots=True)
class Trail:
    """Writes to the logs of one backend.

    Args:
        seconds: How long a caller waits for a log, when no flow's deadline says so.
        reader: Who looks, where it is no agent of a graph: a login, or a way in such as "mcp". None: the
            supervisor or, where nobody says whose record it must be, "operator".
    """

    backend: MemoryBackend
    bridge: Bridge
    clock: Callable[[], float]
    seconds: float
    reader: str | None = None

    def report(self, *events: AuditEvent, ports: Ports | None = None) -> None:
        """Audit something that changed no record."""
        self._log(lambda: self.backend.batch(Commit(audit=tuple(events))), ports)

    def degraded(self, op: str, scope: Scope, reason: str, *, ports: Ports) -> None:
        """Audit that a flow went on without something. `reason` is a code."""
        event = event_of(op, scope, outcome="degraded", reason=reason, caller=self.reader)
        self.report(event, ports=ports)

    def denied(self, record_id: str, user_id: str) -> None:
        """Audit that a user asked for another's record."""
        event = event_of("access", None, outcome="denied", reason=_NOT_THEIRS, caller=self.reader)
        self.report(replace(event, user_id=user_id, record_id=record_id))

    def accessed(
        self,
        op: str,
        found: Iterable[Hit | Record],
        scope: Scope,
        *,
        by_operator: bool = False,
        ports: Ports | None = None,
    ) -> None:
        """Note each record seen in the access log, with its reader, rank and reason."""
        told = ((h.record.id, h.score, h.reason) if isinstance(h, Hit) else (h.id, None, "") for h in found)
        now, who = self.clock(), self._reader(scope.agent_id, by_operator=by_operator)
        entries = [
            Access(op, now, scope.user_id, who, scope.session_id, scope.run_id, id_, rank, score, reason)
            for rank, (id_, score, reason) in enumerate(told, start=1)
        ]
        self._note(entries, ports)

    def seen(self, op: str, records: Iterable[Record], *, by_operator: bool) -> None:
        """Note in the access log who saw these records, each as its user's.

        A record that was imported may have a user whose name no scope takes.
        """
        now, who = self.clock(), self._reader(None, by_operator=by_operator)
        entries = [
            Access(op=op, at=now, user_id=each.user_id, agent_id=who, record_id=each.id, rank=rank)
            for rank, each in enumerate(records, start=1)
        ]
        self._note(entries, None)

    def used(self, share: float, scope: Scope) -> None:
        """Note in the access log how much of a note an answer took up, in [0, 1]; of no record."""
        who = (scope.user_id, scope.agent_id, scope.session_id, scope.run_id)
        used = Access(USED, self.clock(), *who, score=share)
        guarded(lambda: self._note_accesses([used]), otherwise=lambda error: False)

    def telling(
        self, op: str, found: Recalling, *, ports: Ports, is_sure: bool = False
    ) -> Callable[[Scope], None]:
        """A function that logs each record considered, told or left out, for a reader, at each telling.

        Args:
            op: "inject" or "search".
            is_sure: Whether it will surely be told. Then the records are packed at once, on the thread that
                has just used them: to another they are far away.
        """
        # What was considered, until it is packed: the run keeps this function, and needs no more of it.
        kept: list[Recalling | tuple[str, str]] = [found]
        tokens = found.note.tokens if op == "inject" else None
        degraded, records = found.hits.degraded or found.note.degraded, len(found.hits)
        # In a run the same reader may be told the same more than once: with each of its model calls.
        first: dict[Scope, str] = {}

        def packed() -> tuple[str, str]:
            told = kept[0]
            if isinstance(told, Recalling):
                told = kept[0] = turns.packed(told.hits, told.dropped)
            return told

        if is_sure:
            packed()

        def tell(scope: Scope) -> None:
            if self.reader is not None and not scope.agent_id:
                scope = replace(scope, agent_id=self.reader)
            id_ = str(uuid4())
            again = first.setdefault(scope, id_) if scope.run_id is not None else id_
            given = turns.Given(
                *(id_, op, self.clock(), scope, tokens, degraded, *packed(), records),
                again=None if again == id_ else again,
            )
            self._note([given], ports)

        return tell

    def _reader(self, agent_id: str | None, *, by_operator: bool) -> str | None:
        return (self.reader or "operator") if by_operator else (agent_id or self.reader)

    def _note(self, entries: Sequence[Access | turns.Given], ports: Ports | None) -> None:
        if guarded(lambda: self._note_accesses(entries), otherwise=lambda error: False):
            self._log(self.backend.audit.flush, ports)

    def _note_accesses(self, entries: Sequence[Access | turns.Given]) -> bool:
        """Note entries in the access log; returns whether it is time to write them."""
        audit = self.backend.audit
        audit.record_access(entries)
        return audit.has_much_to_write

    def _log(self, write: Callable[[], object], ports: Ports | None) -> None:
        seconds = self.seconds if ports is None else max(ports.left(), _GRACE_SECONDS)
        guarded(lambda: self.bridge.within(seconds, write), otherwise=lambda error: None)
