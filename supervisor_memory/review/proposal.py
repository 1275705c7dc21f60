"""A proposal: a statement that waits for a person, with the effect that approving it would have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from supervisor_memory.errors import AlreadyReviewed, Conflict
from supervisor_memory.flow import Inserting, Remembering, run
from supervisor_memory.model.records import (
    AuditEvent,
    Candidate,
    Event,
    Filter,
    Record,
    Scope,
    WriteResult,
    check_content,
)
from supervisor_memory.ports import Deciding, Ports
from supervisor_memory.stages.insert.review_reasons import REVIEW, without_review
from supervisor_memory.stages.insert.revise import in_a_persons_words, is_for_people
from supervisor_memory.stages.post_retrieval.quotable import with_said_kept
from supervisor_memory.stages.pre_insert.extract import describe
from supervisor_memory.stores.protocol import Change, Commit, Committed, MemoryBackend
from supervisor_memory.understand.lessons.known import with_lesson
from supervisor_memory.understand.lessons.lesson import GUIDELINE, LESSONS, lessons_of
from supervisor_memory.understand.lessons.wording import worded

Insert = tuple[Inserting, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement that waits for a person, beside the record it concerns.

    Args:
        record: The pending record with the proposed text.
        why: Why it waits, as codes; docs/reviewing.md lists them.
        evidence: The text it was read from; "" if that is the same.
        decision, reason: The effect of approving it now, as in a `WriteResult`: "added", "merged",
            "updated", "skipped" …; or "refused" and the error's name, if it cannot be approved.
        existing: The record that would be changed, replaced or left unchanged; None: there is none.
        text: The text that would be kept.
    """

    record: Record
    why: tuple[str, ...]
    evidence: str
    decision: str
    reason: str
    existing: Record | None
    text: str

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def said_by(self) -> str:
        """The source in words: "tool, agent sql, run run-17"."""
        source = self.record.source
        names = ("agent", source.agent_id), ("speaker", source.speaker), ("run", source.run_id)
        places = ("session", source.session_id), ("message", source.message_id)
        told = (f"{what} {name}" for what, name in (*names, *places) if name)
        return ", ".join([source.source_class, *told])

    def to_dict(self) -> dict[str, Any]:
        """The proposal as a plain dictionary for JSON."""
        return {
            "id": self.id,
            "user_id": self.record.user_id,
            "content": self.record.content,
            "why": list(self.why),
            "said_by": self.said_by,
            "evidence": self.evidence,
            "decision": self.decision,
            "reason": self.reason,
            "text": self.text,
            "existing": self.existing.to_dict() if self.existing else None,
            "record": self.record.to_dict(),
        }

    def __str__(self) -> str:
        known = f"\n  known:    {self.existing.content}" if self.existing else ""
        kept = f"\n  kept:     {self.text}" if self.text != self.record.content else ""
        return (
            f"{self.id}  {', '.join(self.why)}  → {self.decision}{known}"
            f"\n  by:       {self.said_by}\n  proposed: {self.record.content}{kept}"
        )


@dataclass(slots=True)
class Approval:
    """The approval of a proposal: decided against the present records, and ended, in one commit.

    Args:
        content: The reviewer's wording; None: the proposed one.
    """

    proposal: Record
    reviewer: str
    content: str | None = None
    _new_id: str = ""

    def decide(self, ports: Ports, insert: Insert) -> WriteResult:
        """Let the insert stage decide on the proposal, and commit; AlreadyReviewed: another was faster."""

        def commit(decided: Commit) -> Committed:
            return self._commit_or_refuse(ports.services.backend, self.amended(decided, ports.now))

        result = _decided(self.proposal, self.content, ports, commit, insert)
        if result.id == self._new_id:
            return replace(result, id=self.proposal.id, version=self.proposal.version + 1)
        return result

    def commit(self, ports: Ports, commit: Commit) -> Committed:
        """Commit another decision, such as a rejection; AlreadyReviewed: another reviewer was faster."""
        return ports.store(self._commit_or_refuse, ports.services.backend, commit)

    def _commit_or_refuse(self, backend: MemoryBackend, commit: Commit) -> Committed:
        try:
            return backend.batch(commit)
        except Conflict as conflict:
            if conflict.facts.get("record_id") != self.proposal.id:
                raise  # decided again by the insert stage
            raise AlreadyReviewed(
                f"record {self.proposal.id} was decided on by somebody else first; look at it again",
                id=self.proposal.id,
            ) from conflict

    def amended(self, commit: Commit, now: float) -> Commit:
        """The commit of the insert stage, with the proposal ended in it."""
        proposal, was = self.proposal, with_said_kept(self.proposal)
        if self.content is not None:  # the message says it otherwise
            was = proposal.no_longer_said_in(*proposal.present_ref_ids)
        new = next((c for c in commit.changes if c.expects is None and c.record.status == "active"), None)
        self._new_id = new.record.id if new else ""
        by_reviewer = (replace(each, actor=self.reviewer) for each in commit.audit)
        if new is None:
            gone = replace(was, status="stale", valid_to=now, updated_at=now)
            changes = [*commit.changes, Change(gone, expects=proposal.version)]
            events = list(by_reviewer)
        else:  # the pending record itself becomes active, since callers know its id
            record = new.record.also_said_in(*was.joined_ref_ids).no_longer_said_in(*was.former_ref_ids)
            became = Change(replace(record, id=proposal.id), expects=proposal.version)
            changes = [became if change is new else change for change in commit.changes]
            events = [self._renamed(each) for each in by_reviewer]
        after = proposal.content if new is None else new.record.content
        op = "approve" if self.content is None else "edit"
        outcome = "+".join(dict.fromkeys(each.op for each in commit.audit))  # the decision as a code
        events.append(event(op, proposal, actor=self.reviewer, after=after, reason=outcome))
        return replace(commit, changes=tuple(changes), audit=tuple(events))

    def _renamed(self, told: AuditEvent) -> AuditEvent:
        detail = {
            name: self.proposal.id if value == self._new_id else value for name, value in told.detail.items()
        }
        if told.record_id != self._new_id:
            return replace(told, detail=detail)
        version = self.proposal.version
        return replace(
            told,
            detail=detail,
            record_id=self.proposal.id,
            version_before=version,
            version_after=version + 1,
            before=self.proposal.content,
        )


def foreseen(
    record: Record, ports: Ports, insert: Insert, *, then: Callable[[Commit], Committed] | None = None
) -> Proposal:
    """The proposal with the decision that the insert stage would take now. Nothing is changed.

    Args:
        then: Is given the commit that approving the proposal would make.
    """
    seen: list[Commit] = []

    def commit(decided: Commit) -> Committed:
        seen.append(decided)
        return Committed(decided.id, tuple(change.record for change in decided.changes))

    result = _decided(record, None, ports, commit, insert)
    records = [change.record for each in seen for change in each.changes]
    kept = next((each for each in records if each.id == result.id), None)
    touched = [change.record.id for each in seen for change in each.changes if change.expects is not None]
    ids = touched or ([result.id] if kept is None and result.id else [])
    existing = ports.store(ports.services.backend.get, ids)[:1] if ids else ()
    if then is not None:
        for each in seen:
            then(Approval(record, record.user_id).amended(each, ports.now))
    return replace(
        _proposed(record),
        decision=result.status,
        reason=result.reason,
        existing=existing[0] if existing else None,
        text=kept.content if kept else existing[0].content if existing else record.content,
    )


def unfit(record: Record, why: str) -> Proposal:
    """A proposal that cannot be approved as it is. `why` is a code."""
    return replace(_proposed(record), decision="refused", reason=why)


def reasons(record: Record) -> tuple[str, ...]:
    """Why a record waits, as codes."""
    told = record.metadata.get(REVIEW)
    why = told.get("why") if isinstance(told, dict) else None
    return tuple(map(str, why)) if isinstance(why, list | tuple) else ()


def _proposed(record: Record) -> Proposal:
    """The proposal without a decision."""
    told = record.metadata.get(REVIEW)
    asks = told if isinstance(told, dict) else {}
    return Proposal(
        record=record,
        why=reasons(record),
        evidence=str(asks.get("evidence", "")),
        decision="",
        reason="",
        existing=None,
        text=record.content,
    )


def _decided(
    record: Record, content: str | None, ports: Ports, commit: Callable[[Commit], Committed], insert: Insert
) -> WriteResult:
    """Run the insert stage on a proposal, against the present records. No model is asked: the kept text is
    the one that the reviewer saw."""
    from supervisor_memory.stores.amended import Amended  # with it comes numpy

    source, said_at = record.source, record.created_at
    backend = Amended(ports.services.backend, commit)
    view = replace(ports, services=replace(ports.services, backend=backend, complete=None)).deciding()
    if record.attribute == GUIDELINE and content is None:  # what was learned since stays
        record, said_at = _with_what_is_known(record, view), ports.now
    said = Remembering(
        Scope(record.user_id, source.agent_id, source.session_id, source.run_id, record.task),
        candidates=(_candidate(record, content, view),),
        family=record.family,
        created_at=said_at,
        is_reviewed=True,
    )
    return run(insert, said, view).results[0]


def _with_what_is_known(record: Record, view: Deciding) -> Record:
    """Join the new lesson of a proposed guideline, its first, with the lessons that the tool has now."""
    where = replace(Filter.beside(record), subject=record.subject, attribute=GUIDELINE)
    now = next(iter(view.list(where, limit=1)), None)
    proposed = lessons_of(record.metadata)[:1]
    if not proposed:
        return record
    lessons = with_lesson(() if now is None else lessons_of(now.metadata), proposed[0])
    tongue = str(record.metadata.get("language", "en"))
    told = worded(record.subject or "", lessons, count=view.count_tokens, tongue=tongue)
    asks: dict[str, Any] = {"why": list(reasons(record))}
    asks |= {} if now is None else {"event": "UPDATE", "target": now.id}
    metadata = {**record.metadata, LESSONS: [each.to_dict() for each in lessons], REVIEW: asks}
    return replace(record, content=told.text or record.content, metadata=metadata)


_ASKED: Final = ("strategy", "event", "target")


def _candidate(record: Record, content: str | None, view: Deciding) -> Candidate:
    asks = record.metadata.get(REVIEW)
    asked = {name: asks.get(name) for name in _ASKED} if isinstance(asks, dict) else dict.fromkeys(_ASKED)
    metadata = without_review(record.metadata)
    subject, attribute, value = record.subject, record.attribute, metadata.get("value")
    if content is not None and is_for_people(record):
        metadata = in_a_persons_words(record, content, metadata, view)
    elif content is not None:  # reworded about the same subject; if it had none, the new words may name one
        told = describe(content, kind=record.kind, source=record.source)
        if subject in (None, told.subject):
            value = told.value
        if subject is None:
            subject, attribute = told.subject, told.attribute
        metadata = {name: each for name, each in metadata.items() if name != "value"}
        metadata |= {} if value is None else {"value": value}
    return Candidate(
        check_content(content) if content is not None else record.content,
        record.kind,
        record.source,
        subject=subject,
        attribute=attribute,
        value=value if isinstance(value, str) else None,
        tags=record.tags,
        metadata=metadata,
        strategy=asked["strategy"],
        evidence=record.content,
        ref_id=record.ref_id,
        event=cast("Event | None", asked["event"]),
        target=asked["target"],
    )


def event(
    op: str,
    record: Record,
    *,
    actor: str,
    after: str | None = None,
    reason: str = "",
    detail: Mapping[str, str] | None = None,
) -> AuditEvent:
    """The audit event of a person's change of a record, which leads to its next version."""
    return AuditEvent.of(
        op,
        record,
        actor=actor,
        version_before=record.version,
        version_after=record.version + 1,
        before=record.content,
        after=record.content if after is None else after,
        reason=reason,
        detail={"kind": record.kind, **(detail or {})},
    )
