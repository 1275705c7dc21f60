"""What a commit makes of records that rest on what it changes: set aside, flagged, or back in use.

A record names what it rests on in `metadata["rests_on"]`. Where a commit gives a metric another definition, a
file other contents or a table other rows, the records that rest on it are set aside in the same commit; a
user's own words stay and are flagged. `metadata[UNSETTLED]` keeps what each rested on, so that the record is
back in use as soon as that holds again, in whatever way it was undone.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.compare.slots import same_slots
from supervisor_memory.compare.verdict import INSTEAD_FROM, Compared, verdicts
from supervisor_memory.model.records import (
    ARTIFACT,
    UNSETTLED,
    WRITTEN_ANEW,
    AuditEvent,
    Filter,
    Record,
    content_hash,
)
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.sql import one_query

CHANGED: Final = "what-it-rests-on-changed"
BACK: Final = "what-it-rests-on-is-back"
_SAME: Final = frozenset({"merge", "append", "skip"})
_LONGEST_CHAIN: Final = 8
Listing = Callable[[Filter], Sequence[Record]]


@dataclass(frozen=True, slots=True)
class _Move:
    """What became of a thing that records rest on.

    `was` and `now` are digests of what it is; None: unknown, or nothing. `by` is the record that tells of it,
    `at` when it was said.
    """

    was: str | None
    now: str | None
    by: str
    at: float
    is_change: bool


def settled(commit: Commit, listed: Listing, now: float) -> Commit:
    """The commit with the changes to all that rests on what it changes.

    Args:
        listed: Lists the records of a filter.
    """
    changed = {change.record.id for change in commit.changes}
    confirmed = {event.record_id for event in commit.audit}  # said again just now
    beside: dict[str, Change] = {}
    events: list[AuditEvent] = []
    for user_id in {change.record.user_id for change in commit.changes}:
        moves = _moves(commit, user_id, listed)
        for _ in range(_LONGEST_CHAIN):
            names = Filter(user_id, statuses=("active", "stale"), ref_ids=tuple(moves))
            further: dict[str, _Move] = {}
            for old in listed(names) if moves else ():
                if old.id in changed | confirmed or old.id in beside:
                    continue
                new = _after(old, moves, now)
                if new is None or (new.status == "active" != old.status and _is_taken(new, listed)):
                    continue
                beside[old.id] = Change(new, expects=old.version)
                events.append(_event(old, new, commit))
                if new.status != old.status and (name := _file(new)):
                    holds = _contents(old)
                    gone = new.status != "active"
                    was, becomes = (holds, None) if gone else (None, holds)
                    at = min(move.at for move in moves.values())
                    further[name] = _Move(was, becomes, new.id, at, is_change=gone)
            moves = further
    if not beside:
        return commit
    changes, audit = (*commit.changes, *beside.values()), (*commit.audit, *events)
    return replace(commit, changes=changes, audit=audit)


def _moves(commit: Commit, user_id: str, listed: Listing) -> dict[str, _Move]:
    """What became of each metric, file and table that the commit tells of, by its name."""
    some = [c for c in commit.changes if c.record.user_id == user_id and c.record.is_borne_on]
    known = tuple(change.record.id for change in some if change.expects is not None)
    every = listed(Filter(user_id, ids=known, statuses=None)) if known else ()
    before = {record.id: record for record in every if record.status == "active"}
    told = {event.record_id: event for event in commit.audit}
    moves: dict[str, _Move] = {}
    metrics: dict[tuple[str, str | None], list[Record | None]] = {}
    for new in (change.record for change in some):
        old, is_active = before.get(new.id), new.status == "active"
        if new.attribute != ARTIFACT and new.subject is not None:
            was, becomes = metrics.setdefault((new.subject, new.attribute), [None, None])
            metrics[new.subject, new.attribute] = [old or was, new if is_active else becomes]
        elif file := _file(new):
            if is_active and any(_parts(new)):
                held = old or _elsewhere(new, listed)
                is_other = held is not None and _differ(held, new)
                moves[file] = _Move(
                    _contents(held) if held else None, _contents(new), new.id, new.updated_at, is_other
                )
        elif is_active and (old is None or (new.id in told and told[new.id].reason == WRITTEN_ANEW)):
            moves |= {
                table: _Move(None, None, new.id, new.updated_at, is_change=True) for table in _written(new)
            }
        elif old is not None and not is_active:
            moves |= {
                table: _Move(None, new.id, new.id, new.updated_at, is_change=False) for table in _written(new)
            }
    for (subject, _), (was, now) in metrics.items():
        if now is not None:
            is_same = now.id in told and told[now.id].op in _SAME
            is_other = was is not None and not is_same and _redefines(was, now)
            name, becomes_hash = f"metric:{subject.casefold()}", content_hash(now.content)[:16]
            moves[name] = _Move(
                was.content_hash[:16] if was else None, becomes_hash, now.id, now.updated_at, is_other
            )
    return {name: move for name, move in moves.items() if move.is_change or move.was != move.now}


def _redefines(old: Record, new: Record) -> bool:
    """Whether a definition states another value, and not the same in other words."""
    if old.content_hash == content_hash(new.content):
        return False
    if old.metadata.get("value") != new.metadata.get("value") or not same_slots(old.content, new.content):
        return True
    [verdict] = verdicts(new.content, [Compared.of(old.content, new.content, None)], None)
    return verdict.instead >= INSTEAD_FROM


def _file(record: Record) -> str | None:
    path = record.metadata.get("path") if record.attribute == ARTIFACT else None
    return f"file:{path}" if isinstance(path, str) else None


def _written(record: Record) -> Iterable[str]:
    tables = record.metadata.get("writes")
    return (f"table:{name}" for name in tables) if isinstance(tables, (list, tuple)) else ()


def _elsewhere(new: Record, listed: Listing) -> Record | None:
    """The file as another agent left it."""
    every = listed(Filter(new.user_id, subject=new.subject, attribute=ARTIFACT))
    return next((record for record in every if record.id != new.id and any(_parts(record))), None)


def _parts(file: Record) -> tuple[Any, ...]:
    sql = file.metadata.get("sql")
    query = one_query(sql) if isinstance(sql, str) else None
    return file.metadata.get("digest"), file.metadata.get("rows"), query


def _contents(file: Record) -> str:
    return hashlib.sha256(json.dumps(_parts(file)).encode()).hexdigest()[:16]


def _differ(old: Record, new: Record) -> bool:
    """Whether a file is known to hold something else: by its digest, else by its rows or its query."""
    digest, *others = [
        None if None in (mine, yours) else mine != yours
        for mine, yours in zip(_parts(old), _parts(new), strict=True)
    ]
    return any(others) if digest is None else digest


def _after(old: Record, moves: Mapping[str, _Move], now: float) -> Record | None:
    """What becomes of a record; None: nothing."""
    held = old.metadata.get(UNSETTLED)
    marks: dict[str, Any] = dict(held) if isinstance(held, Mapping) else {}
    if old.status != "active" and not marks:
        return None  # set aside for another reason
    for name in {":".join(each) for each in old.rests_on} & set(moves):
        move = moves[name]
        if name not in marks:
            is_older = old.updated_at <= move.at
            marks |= {name: [move.was, move.by]} if move.is_change and is_older else {}
        elif move.now is not None and move.now in marks[name]:
            del marks[name]
    if marks == (held or {}):
        return None
    rest = {name: value for name, value in old.metadata.items() if name != UNSETTLED}
    told = replace(old, metadata={**rest, UNSETTLED: marks} if marks else rest)
    if not marks:
        is_back = old.status == "stale"
        return replace(told, status="active", valid_from=now, valid_to=None) if is_back else told
    # What a person said, and the steps of a task of which only one may rest on it, are flagged alone.
    if old.status != "active" or old.source.source_class == "user" or "\n" in old.content:
        return told
    return replace(told, status="stale", valid_to=now)


def _is_taken(record: Record, listed: Listing) -> bool:
    """Whether another record has taken the place of one that would be back in use."""
    beside = Filter.beside(record)
    places = [replace(beside, content_hash=record.content_hash)]
    if record.subject is not None:
        places.append(replace(beside, subject=record.subject, attribute=record.attribute))
    return any(map(listed, places))


def _event(old: Record, new: Record, commit: Commit) -> AuditEvent:
    """The row for a record that is set aside or back, by whoever made the commit."""
    by = commit.audit[0] if commit.audit else AuditEvent("outdate")
    is_back = len(new.metadata.get(UNSETTLED, ())) < len(old.metadata.get(UNSETTLED, ()))
    return AuditEvent.of(
        "outdate",
        old,
        actor=by.actor,
        agent_id=by.agent_id,
        session_id=by.session_id,
        run_id=by.run_id,
        version_before=old.version,
        version_after=old.version + 1,
        reason=BACK if is_back else CHANGED,
        detail={"kind": old.kind, "status": new.status},
    )
