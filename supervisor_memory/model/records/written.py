"""The result of a write, and the event for the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from supervisor_memory.model.records.names import Scope, SourceClass, WriteStatus, new_id
from supervisor_memory.model.records.record import Record, Source


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of writing one text.

    `id` is the record with the text now (the older one after a merge); "" if there is none. "pending": it has
    no effect until a person approves it, see `memory.review`; `reason` says why it waits. `saved` says that
    it is durable; False comes with a `reason`. `applied` says that every reader sees it; a change that waits
    in a journal for an unreachable store is seen on this machine alone.
    """

    id: str
    status: WriteStatus
    saved: bool = True
    reason: str = ""
    version: int = 1
    applied: bool = True


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What happened, to what, by whom, why. The stored row holds no content.

    `before` and `after` are texts only on their way in: the log keeps keyed commitments of them.
    `detail` values are str, int, bool or None, never content.
    """

    op: str
    user_id: str | None = None
    actor: str = "supervisor"
    family: str | None = None
    record_id: str | None = None
    version_before: int | None = None
    version_after: int | None = None
    before: str | None = field(default=None, repr=False)
    after: str | None = field(default=None, repr=False)
    outcome: Literal["ok", "skipped", "denied", "degraded", "failed"] = "ok"
    reason: str = ""
    source_class: SourceClass | None = None
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    detail: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    id: str = field(default_factory=new_id)

    @classmethod
    def of(cls, op: str, record: Record, *, source: Source | None = None, **facts: Any) -> "AuditEvent":
        """The event of a record: its user, family, id and source, unless the facts say otherwise."""
        source = source or record.source
        whole: dict[str, Any] = {
            "user_id": record.user_id,
            "family": record.family,
            "record_id": record.id,
            "source_class": source.source_class,
            "agent_id": source.agent_id,
            "session_id": source.session_id,
            "run_id": source.run_id,
        }
        return cls(op, **{**whole, **facts})

    @classmethod
    def changed(cls, record: Record, reason: str) -> "AuditEvent":
        """The event of a record that is about to get another version with the same text."""
        after = record.version + 1
        return cls.of("update", record, version_before=record.version, version_after=after, reason=reason)

    @classmethod
    def by(cls, scope: Scope, op: str, **facts: Any) -> "AuditEvent":
        """The event of a scope: its user, agent, session and run, unless the facts say otherwise."""
        who = {name: getattr(scope, name) for name in ("user_id", "agent_id", "session_id", "run_id")}
        return cls(op, **{**who, **facts})
