"""Answers as JSON, with the same keys on the command line, by HTTP and over MCP; docs/cli.md lists them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from supervisor_memory.core import PartyRow, Receipt, SessionRow
from supervisor_memory.errors import ConfirmationRequired, RecordNotFound
from supervisor_memory.interfaces.printable import moment, who_said
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.explain import REASONS, why
from supervisor_memory.model.records import Hit, Hits, Record
from supervisor_memory.reading.audit import AuditRow, Injection, Shown

_MICRO = 1e6


def hits_told(hits: Hits, *, explain: bool) -> dict[str, Any]:
    """The hits as JSON has them, and with `explain` every candidate."""
    found = [{"rank": rank, **_hit_told(hit)} for rank, hit in enumerate(hits, start=1)]
    if not explain:
        return {"hits": found}
    considered = [
        {"reason": each.reason, "told": REASONS.get(each.reason, ""), **_hit_told(each.hit)}
        for each in hits.considered
    ]
    return {"hits": found, "considered": considered}


def _hit_told(hit: Hit) -> dict[str, Any]:
    """One hit: the score, its parts in numbers and in words, and the record."""
    return {
        "score": round(hit.score, 4),
        "parts": {name: round(value, 4) for name, value in _without_raw_match(hit.parts).items()},
        "why": why(hit.parts, hit.names),
        "record": hit.record.to_dict(),
        **({"path": [asdict(joint) for joint in hit.path]} if hit.path else {}),
        **({} if hit.excerpt is None else {"excerpt": hit.excerpt}),
        **({"made_of": [{"id": id_, "section": of} for id_, of in hit.made_of]} if hit.made_of else {}),
    }


def _without_raw_match(parts: Mapping[str, float]) -> Mapping[str, float]:
    """The parts of a score without the raw match, whose scale differs by search; `fused` is the match."""
    return {name: value for name, value in parts.items() if name != "match"}


def sessions_told(memory: SupervisorMemory, *, limit: int, **asked: Any) -> dict[str, Any]:
    """A page of sessions, and where the next one begins."""
    rows = memory.sessions.list(limit=limit, **asked)
    return {"sessions": [*map(_session, rows)], "next": rows[-1].cursor if len(rows) == limit else None}


def parties_told(rows: Sequence[PartyRow], *, limit: int) -> dict[str, Any]:
    """A page of users or agents, and where the next one begins."""
    return {"rows": [asdict(row) for row in rows], "next": rows[-1].cursor if len(rows) == limit else None}


def session_told(
    memory: SupervisorMemory, session_id: str, *, user_id: str, with_messages: bool = True
) -> dict[str, Any]:
    """A session, and what was said in it."""
    told = _session(memory.sessions.get(session_id, user_id=user_id))
    if not with_messages:
        return told
    said = memory.sessions.messages(session_id, user_id=user_id)
    return {**told, "messages": [asdict(each) for each in said]}


def timeline_told(memory: SupervisorMemory, *, limit: int, **asked: Any) -> dict[str, Any]:
    """A page of a user's timeline, and where the next one begins."""
    told = [each.to_dict() for each in memory.timeline(limit=limit, **asked)]
    after = told[-1]["cursor"] if len(told) == limit else None
    return {"user_id": asked["user_id"], "sessions": told, "next": after}


def relations_told(memory: SupervisorMemory, about: str, **asked: Any) -> dict[str, Any]:
    """The neighbours of a thing or a record, as JSON has them."""
    return {"user_id": asked["user_id"], **memory.relations(about, **asked).to_dict()}


def _session(row: SessionRow) -> dict[str, Any]:
    told = asdict(row)
    return {**told, "message_count": told.pop("messages"), "status": row.status}


def session_erased(
    memory: SupervisorMemory, session_id: str, *, user_id: str, reviewer: str, confirm: bool
) -> dict[str, Any]:
    """Erase a session in the name of a reviewer, or tell how much that would remove."""
    try:
        done = memory.sessions.erase(session_id, user_id=user_id, confirm=confirm, reviewer=reviewer)
    except ConfirmationRequired as error:
        told = {"user_id": user_id, "erased_at": None, "counts": error.facts["held"], "pending": ()}
        return {**told, "out_of_reach": memory.upkeep.OUT_OF_REACH, "session_id": session_id}
    return _receipt(done) | {"session_id": session_id}


def erased(memory: SupervisorMemory, user: str, *, reviewer: str) -> dict[str, Any]:
    """Erase a user in the name of a reviewer, and tell how much was removed."""
    return _receipt(memory.erase(user_id=user, confirm=True, reviewer=reviewer))


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "user_id": receipt.user_id,
        "erased_at": receipt.erased_at,
        "counts": receipt.removed,
        "pending": receipt.pending,
        "out_of_reach": receipt.out_of_reach,
    }


def to_be_erased(memory: SupervisorMemory, user: str) -> dict[str, Any]:
    """Tell how much `erased` would remove."""
    held: dict[str, int] = {}
    try:
        memory.erase(user_id=user)
    except ConfirmationRequired as error:
        held = error.facts["held"]
    beyond = memory.upkeep.OUT_OF_REACH
    return {"user_id": user, "erased_at": None, "counts": held, "pending": (), "out_of_reach": beyond}


def audit_rows(
    memory: SupervisorMemory, rows: Sequence[AuditRow], *, user_id: str | None = None
) -> list[dict[str, Any]]:
    """Rows of the log with their records as they are now; with `user_id`, nothing of other users."""
    if user_id is not None:
        rows = [row for row in rows if row.outcome != "denied"]
    live = _present_records(
        memory, [row.record_id for row in rows if row.record_id], user_id=user_id, op="audit"
    )
    return [{**row.event, "hash": row.hash.hex(), "record": live.get(row.record_id or "")} for row in rows]


def _present_records(
    memory: SupervisorMemory, ids: Sequence[str], *, op: str, user_id: str | None = None
) -> dict[str, dict[str, str | None]]:
    """The record beside a row, as it is now; its text only if it is active. `op` is for the access log."""
    known = dict.fromkeys(ids)
    found = {record.id: record for record in memory.upkeep.records(list(known))}
    told = {id_: _present_state(found.get(id_), user_id) for id_ in known}
    shown = [found[id_] for id_, now in told.items() if now["content"] is not None]
    memory.audit.seen(op, shown)
    return told


def _present_state(record: Record | None, user_id: str | None) -> dict[str, str | None]:
    if record is None or user_id not in (None, record.user_id):
        return {"status": "erased", "user_id": None, "content": None, "changed": None}
    content = record.content if record.status == "active" else None
    changed = ", ".join(record.unsettled) or None
    return {"status": record.status, "user_id": record.user_id, "content": content, "changed": changed}


_DECISIONS = frozenset({"add", "merge", "update", "append", "skip", "propose", "supersede"})


def decisions_of(memory: SupervisorMemory, id: str, *, limit: int) -> list[dict[str, Any]]:
    """The decisions on a record, newest first, with their evidence.

    `nearest` is the known record that came nearest to saying the same, as it is now, and `apart` the code of
    why it is another thing.

    Args:
        limit: Most rows of the log that are looked at.
    """
    found = [row for row in reversed(memory.audit.tail(limit, record_id=id)) if row.op in _DECISIONS]
    told = [(row, row.event["detail"]) for row in found]
    live = _present_records(
        memory, [detail["nearest_id"] for _, detail in told if "nearest_id" in detail], op="why"
    )
    return [
        {
            "at": row.ts_us / _MICRO,
            "op": row.op,
            "reason": row.event["reason"],
            "nearest": {"id": near, **live[near]} if (near := detail.get("nearest_id")) else None,
            "apart": detail.get("apart", ""),
        }
        for row, detail in told
    ]


def notes_of(
    memory: SupervisorMemory,
    id: str,
    *,
    limit: int,
    user_id: str | None = None,
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Notes and search results, newest first, selected by their own id, a run's or a record's.

    Args:
        id: Of a note, a run or a record, or the pseudonym by which the chain names a run.
        limit: Most notes.
        user_id: As in `audit_rows`.
        before: Only those with a smaller `seq`, such as that of the last note of the page before.

    Raises:
        RecordNotFound: nobody was told anything of it, as far as the log goes back.
    """
    log = memory.audit
    notes = (
        log.notes(limit, user_id=user_id, id=id, before=before)
        or log.notes(limit, user_id=user_id, run_id=log.run_behind(id) or id, before=before)
        or log.notes(limit, user_id=user_id, record_id=id, before=before)
    )
    if not notes:
        raise RecordNotFound(_why_nothing_was_told(memory, id, user_id), id=id)
    return notes_told(memory, notes, user_id=user_id)


def _why_nothing_was_told(memory: SupervisorMemory, id: str, user_id: str | None) -> str:
    """A message for an id without notes: the reasons, and what to do."""
    if any(user_id in (None, record.user_id) for record in memory.upkeep.records([id])):
        return (
            f"the record {id!r} is kept, but nobody was told anything of it: as far as the log goes back, no "
            "note or search came near it; `supervisor-memory preview QUESTION --user ID` shows what a "
            "question would be told now, and what is left out"
        )
    return (
        f"nobody was told anything of {id!r}: as far as the log goes back, there is no record, note or run "
        "with this id; give the whole id: `supervisor-memory list --user ID --json` tells those of records, "
        "`supervisor-memory why RECORD --json` those of the runs that were told a record"
    )


def notes_told(
    memory: SupervisorMemory, notes: Sequence[Injection], *, user_id: str | None = None
) -> list[dict[str, Any]]:
    """Notes and search results, each record with its scores in words, its present text and its text then.

    `then` is the text that the reader was given, where it is another than the present one.

    Args:
        user_id: As in `audit_rows`.
    """
    every = [each for note in notes for each in (*note.shown, *note.dropped)]
    ids = [id_ for each in every for id_ in (each.record_id, *each.source_ids)]
    live = _present_records(memory, ids, user_id=user_id, op="why")
    said = {id_: memory.upkeep.versions(id_) for id_, now in live.items() if now["content"] is not None}

    def told(each: Shown, at: float) -> dict[str, Any]:
        record, versions = live[each.record_id], said.get(each.record_id, ())
        quoted = versions[0] if versions and each.reason == "said" else None
        source = f"quoted from {who_said(quoted)}, {moment(quoted.created_at)}; " if quoted else ""
        words = {"why": f"{source}{why(each.parts)}", "told": REASONS.get(each.reason, "")}
        then = next((version.content for version in reversed(versions) if version.updated_at <= at), None)
        then = None if then == record["content"] else then
        made_of = [{"id": id_, "section": of, "record": live[id_]} for id_, of in each.made_of]
        made = {"record": record, "then": then, "made_of": made_of}
        return {**asdict(each), "parts": _without_raw_match(each.parts), **words, **made}

    return [
        {
            **asdict(note),
            "shown": [told(each, note.at) for each in note.shown],
            "dropped": [told(each, note.at) for each in note.dropped],
        }
        for note in notes
    ]
