"""Undo decisions: go back to an earlier version, or restore a record. This only adds to the history."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import Conflict, InvalidContent, RecordNotFound
from supervisor_memory.model.records import Record, Status, WriteResult, WriteStatus
from supervisor_memory.ports import Deciding, Ports
from supervisor_memory.review.proposal import event
from supervisor_memory.stages.insert.draft import embedded
from supervisor_memory.stages.insert.review_reasons import REVIEW
from supervisor_memory.stages.post_retrieval.quotable import SAID_KEPT
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.edit import Curator, again_when_late

_SAID: Final = (
    "content",
    "kind",
    "metadata",
    "tags",
    "importance",
    "subject",
    "attribute",
    "ref_id",
    "joined_ref_ids",
    "former_ref_ids",
    "source",
)
"""The fields that a revert takes from the earlier version; the owner and the times stay."""
_INSTEAD: Final[dict[Status, str]] = {
    "deleted": "was deleted; bring it back with `memory.review.restore` first",
    "stale": "was replaced, or rests on what has changed; bring it back with `memory.review.restore`",
    "compressed": "became a part of a summary; bring it back with `memory.review.restore`",
    "pending": "waits for a reviewer; use `memory.review.edit`",
    "quarantined": "is quarantined; release it first with `memory.review.release`",
}
_SAYS_SOMETHING: Final[tuple[Status, ...]] = ("active", "pending")
_RESTORED: Final[tuple[Status, ...]] = ("deleted", "stale", "compressed")


_DECISIONS: Final = ("approve", "edit", "reject", "promote")
_MOST_ROWS: Final = 200


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on a proposal, read from the audit log.

    Args:
        op: "approve", "edit", "reject" or "promote".
        changed: Record id → (its version before, None for a new record; its version after).
    """

    op: str
    actor: str
    changed: Mapping[str, tuple[int | None, int]]


def decision_on(id: str, log: AuditLog) -> Decision | None:
    """The latest decision on a proposal; None if the rows that were read have none.

    A decision and its changes are in the same commit; the decision's row is the last. A promotion is a
    decision on the copy, not on the record that was promoted, which it does not change.
    """
    told = log.tail(_MOST_ROWS, record_id=id)
    decided = (row for row in reversed(told) if row.op in _DECISIONS)
    last = next((row for row in decided if row.op != "promote" or row.event["version_after"]), None)
    if last is None:
        return None
    actor = last.event["actor"]
    before = log.rows(after=max(0, last.seq - _MOST_ROWS), limit=_MOST_ROWS)
    changed: dict[str, tuple[int | None, int]] = {}
    for row in reversed([row for row in before if row.seq <= last.seq]):
        event = row.event
        if row.ts_us != last.ts_us or event["actor"] != actor:
            break
        if row.record_id and event["version_after"] is not None:
            _, after = changed.get(row.record_id, (None, event["version_after"]))
            changed[row.record_id] = event["version_before"], after
    return Decision(last.op, actor, changed)


def revert(
    id: str, version: int, user_id: str | None, *, actor: str, curator: Curator, writing: Callable[[], Ports]
) -> WriteResult:
    """Give a record the text it had in an earlier version, as a new one; see `SupervisorMemory.revert`.

    Going back to a pending version undoes the approval: the record waits again.
    """
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidContent(
            f"version is {type(version).__name__}; pass a whole number, as `history` has them"
        )

    def once() -> WriteResult:
        ports = writing()
        now = curator.own(id, user_id, ports)
        if now.status != "active":
            raise RecordNotFound(f"record {id!r} {_INSTEAD[now.status]}", id=id, status=now.status)
        versions = ports.store(ports.services.backend.versions, now.id)
        then = _version(versions, version)
        view = ports.deciding()
        shall_be = as_before(now, then, versions, view)
        if all(getattr(shall_be, name) == getattr(now, name) for name in _SAID):
            return WriteResult(now.id, "skipped", reason="is-current", version=now.version)
        told = event("revert", now, actor=actor, after=shall_be.content, reason=f"to-version-{version}")
        change = Change(shall_be, expects=now.version, changes_source=shall_be.source != now.source)
        done = view.commit(Commit((change,), (told,)))
        status: WriteStatus = "pending" if shall_be.status == "pending" else "updated"
        return WriteResult(now.id, status, done.saved, "reverted", now.version + 1, done.applied)

    return again_when_late(once)


def _version(versions: Sequence[Record], number: int) -> Record:
    found = next((each for each in versions if each.version == number), None)
    known = [each.version for each in versions if each.status in _SAYS_SOMETHING]
    there = ", ".join(map(str, known))
    if found is None or found.status not in _SAYS_SOMETHING:
        what = "has no" if found is None else f"was {found.status} in"
        raise RecordNotFound(
            f"record {versions[-1].id} {what} version {number}; it can go back to {there}",
            id=versions[-1].id,
            version=number,
            known=tuple(known),
        )
    return found


def as_before(now: Record, then: Record, versions: Sequence[Record], view: Deciding) -> Record:
    """The record with the text of an earlier version, valid from now; pending if that version was.

    It contradicts the messages of its other texts, and no longer those that only a later text contradicted.
    """
    said = {name: getattr(then, name) for name in _SAID}
    shall_be = replace(
        now, **said, content_hash=then.content_hash, updated_at=view.now, valid_from=view.now, valid_to=None
    )
    if then.content_hash == now.content_hash:
        shall_be = shall_be.also_said_in(*now.present_ref_ids)
    else:
        gone = (m for m in changing_no_message(now, versions).ref_ids if m not in then.present_ref_ids)
        shall_be = shall_be.no_longer_said_in(*gone)
    if then.status == "pending":
        return replace(shall_be, status="pending", vector=None, embedder=None)
    return shall_be if shall_be.embedded_text == now.embedded_text else embedded(shall_be, view)


def changing_no_message(record: Record, versions: Sequence[Record]) -> Record:
    """The record without the messages that it contradicts but never told itself: they may be quoted again."""
    own = {message for each in versions for message in each.present_ref_ids}
    return replace(record, former_ref_ids=tuple(m for m in record.former_ref_ids if m in own))


def restore(
    id: str, user_id: str | None, *, actor: str, curator: Curator, writing: Callable[[], Ports]
) -> WriteResult:
    """Bring back a record that was deleted, rejected, replaced or forgotten; see `Desk.restore`."""

    def once() -> WriteResult:
        ports = writing()
        now = curator.own(id, user_id, ports)
        if now.status not in _RESTORED:
            if now.status == "quarantined":
                raise RecordNotFound(f"record {id!r} {_INSTEAD[now.status]}", id=id, status=now.status)
            return WriteResult(now.id, "skipped", reason=f"is-{now.status}", version=now.version)
        versions = ports.store(ports.services.backend.versions, now.id)
        back = set_back(now, version_before(versions), ports.now)
        told = event("restore", now, actor=actor, reason=f"was-{now.status}")
        try:
            done = ports.deciding().commit(Commit((Change(back, expects=now.version),), (told,)))
        except Conflict as conflict:
            if conflict.facts.get("what") not in ("attribute", "content_hash"):
                raise
            other = str(conflict.facts["record_id"])
            raise Conflict(
                f"record {now.id} cannot come back, since record {other} has taken its place: keep that one, "
                f"or delete it first, `memory.review.delete({other!r}, reviewer=…)`, then restore this one",
                **conflict.facts,
            ) from conflict
        status: WriteStatus = "pending" if back.status == "pending" else "updated"
        return WriteResult(now.id, status, done.saved, "restored", now.version + 1, done.applied)

    return again_when_late(once)


def version_before(versions: Sequence[Record]) -> Record | None:
    """The version in which a record had another status than now; None if it never had."""
    now = versions[-1].status
    return next((each for each in reversed(versions) if each.status != now), None)


def set_back(now: Record, before: Record | None, moment: float) -> Record:
    """The record with the status of an earlier version, or active, without the verdict and the times of its
    end. It contradicts the messages again that it contradicted then."""
    status: Status = "active" if before is None else before.status
    now = now.no_longer_said_in(*(() if before is None else before.former_ref_ids))
    metadata = {name: value for name, value in now.metadata.items() if name != SAID_KEPT}
    if isinstance(told := metadata.get(REVIEW), dict):
        metadata[REVIEW] = {name: each for name, each in told.items() if name not in _VERDICT}
    return replace(
        now,
        status=status,
        metadata=metadata,
        updated_at=moment,
        valid_from=moment if status == "active" else now.valid_from,
        valid_to=None,
        expires_at=None if now.has_expired(moment) else now.expires_at,
    )


_VERDICT: Final = ("verdict", "by", "reason")
