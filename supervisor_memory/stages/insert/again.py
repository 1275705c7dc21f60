"""Decide a commit again that waited for a store, where others have changed its records meanwhile.

A statement goes through the insert stage once more, so that it is merged, supersedes, or is older than what
is known by now. A record that was to be deleted or set aside is so, whatever became of it since; a rule
of upkeep is left to plan anew. Nothing is lost: replaced versions stay in history.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Inserting, Remembering, run
from supervisor_memory.model.records import TEAM, AuditEvent, Candidate, Filter, Record, Scope
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import embedded
from supervisor_memory.stages.insert.place import OLDER
from supervisor_memory.stages.post_retrieval.quotable import hides, with_said_kept
from supervisor_memory.stores.protocol import Change, Commit

FORGET: Final = "forget"
"""The audit log's `op` for records set aside by a rule of `upkeep/forget.py`."""


def decide_again(
    commit: Commit, became: Callable[[str], str], *, insert: tuple[Inserting, ...], view: Deciding
) -> Mapping[str, str]:
    """Take the decisions of a commit anew and commit them.

    Args:
        became: Tells into which record another one of earlier commits was merged.
        insert: The operators of the insert stage.

    Returns:
        Record id → the record that it was merged into, for those of this commit.

    Raises:
        WasErased: the user was erased after this was said.
    """
    if any(event.op == FORGET for event in commit.audit):
        return {}  # what was changed meanwhile is left, and planned anew
    superseded = {event.record_id for event in commit.audit if event.op == "supersede"}
    merged: dict[str, str] = {}
    for record in (change.record for change in commit.changes):
        now = _stored(became(record.id), record, view)
        if record.status == "pending" and now is None:
            _commit(Change(replace(record, version=1)), "propose", view)
        elif record.status != "active":
            if record.id not in superseded or record.status == "deleted":
                _set_aside(record, now, view)
        elif record.layer == "history":
            if now is None:
                _commit(Change(replace(record, version=1)), "add", view)
        elif now is not None and now.status == "deleted" and now.updated_at >= record.updated_at:
            continue  # whoever deleted it said so later
        elif now is not None and now.status == "active" and now.content_hash == record.content_hash:
            _merge_into(record, now, view)
        elif record.user_id.startswith(TEAM):
            if now is None:  # another was promoted in its place meanwhile; a person can restore this one
                _keep_as_history(record, view)
        else:
            merged |= _insert_again(record, now, insert, view)
    return merged


def _stored(record_id: str, record: Record, view: Deciding) -> Record | None:
    found = view.list(Filter(user_id=record.user_id, ids=(record_id,), statuses=None), limit=1)
    return found[0] if found else None


def _set_aside(record: Record, now: Record | None, view: Deciding) -> None:
    if now is not None and now.status != record.status:
        since = max(now.updated_at, record.updated_at)
        shall_be = replace(now, status=record.status, valid_to=record.valid_to, updated_at=since)
        shall_be = shall_be.no_longer_said_in(*record.former_ref_ids)
        if record.status == "deleted" and not hides(record):
            shall_be = with_said_kept(shall_be)
        op = "delete" if record.status == "deleted" else "update"
        _commit(Change(shall_be, expects=now.version), op, view)


def _merge_into(record: Record, now: Record, view: Deciding) -> None:
    """Merge the metadata of a record into the stored record with the same words."""
    shall_be = replace(
        now,
        metadata={**now.metadata, **record.metadata},
        tags=tuple(dict.fromkeys((*now.tags, *record.tags))),
        expires_at=record.expires_at,
        updated_at=max(now.updated_at, record.updated_at),
    ).also_said_in(*record.present_ref_ids)
    if shall_be.embedded_text != now.embedded_text:
        shall_be = embedded(shall_be, view)
    if shall_be != now:
        _commit(Change(shall_be, expects=now.version), "update", view)


def _insert_again(
    record: Record, now: Record | None, insert: tuple[Inserting, ...], view: Deciding
) -> Mapping[str, str]:
    source, value = record.source, record.metadata.get("value")
    candidate = Candidate(
        record.content,
        record.kind,
        source,
        subject=record.subject,
        attribute=record.attribute,
        value=value if isinstance(value, str) else None,
        tags=record.tags,
        metadata=record.metadata,
        evidence=record.content,
        ref_id=record.ref_id,
    )
    said = Remembering(
        Scope(record.user_id, source.agent_id, source.session_id, source.run_id, record.task),
        candidates=(candidate,),
        family=record.family,
        created_at=record.updated_at,
    )
    results = run(insert, said, view).results
    if now is None and any(result.reason == OLDER for result in results):
        _keep_as_history(record, view)
    kept = {result.id for result in results if result.id}
    return {} if not kept or record.id in kept else {record.id: min(kept)}


def _keep_as_history(record: Record, view: Deciding) -> None:
    """Keep an acknowledged record as history, as it would be if the store had been in reach."""
    back = replace(record, version=1, status="stale", valid_to=view.now, vector=None, embedder=None)
    _commit(Change(back), "supersede", view)


def _commit(change: Change, op: str, view: Deciding) -> None:
    record, version = change.record, change.expects
    event = AuditEvent.of(
        op,
        record,
        version_before=version,
        version_after=(version or 0) + 1,
        after=None if op == "delete" else record.content,
        reason="waited",
    )
    view.commit(Commit((change,), (event,)))
