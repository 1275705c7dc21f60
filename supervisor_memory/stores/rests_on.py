"""Updates the records that rest on a changed thing: they are set aside, flagged, or put back in use.

A record names what it rests on in `metadata["rests_on"]`. Where a commit gives a metric another definition, a
file other contents or a table other rows, the records that rest on it are set aside in the same commit; a
user's own words stay and are flagged. `metadata[UNSETTLED]` keeps what each rested on, so that the record is
back in use as soon as that holds again, in whatever way it was undone.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from operator import ne
from typing import Any, Final, NamedTuple

from supervisor_memory.compare.slots import same_slots
from supervisor_memory.compare.verdict import INSTEAD_FROM, Compared, verdicts
from supervisor_memory.model.records import ARTIFACT, UNSETTLED, WRITTEN_ANEW, AuditEvent, Filter, Record
from supervisor_memory.model.records import content_hash as hash_of
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.sql import one_query

_SAME: Final = frozenset({"merge", "append", "skip"})
_LONGEST_CHAIN: Final = 8
Listing = Callable[[Filter], Sequence[Record]]


class _ChangedThing(NamedTuple):
    """A changed thing: its state before and now (None: unknown or gone), and its record."""

    was: str | None
    now: str | None
    by: str
    is_change: bool


def settled(commit: Commit, listed: Listing, now: float) -> Commit:
    """Add to a commit the changes of all records that rest on the things it changes.

    Args:
        listed: Lists the records of a filter.
    """
    # What the commit changes or confirms has been decided anew.
    known = {change.record.id for change in commit.changes} | {event.record_id for event in commit.audit}
    changes, events = list(commit.changes), list(commit.audit)
    for user_id in {change.record.user_id for change in commit.changes}:
        some = [c for c in commit.changes if c.record.user_id == user_id and c.record.is_borne_on]
        moves, at = (
            _changed_things(some, commit, listed),
            max((c.record.updated_at for c in some), default=now),
        )
        for _ in range(_LONGEST_CHAIN):
            resting = Filter(user_id, statuses=("active", "stale"), ref_ids=tuple(moves))
            further: dict[str, _ChangedThing] = {}
            for old in listed(resting) if moves else ():
                new = None if old.id in known else _changed_record(old, moves, now, at)
                if new is None or (new.status == "active" != old.status and _is_taken(new, listed)):
                    continue
                known.add(old.id)
                changes.append(Change(new, expects=old.version))
                events.append(_event(old, new, commit))
                if new.status != old.status and (file := _name(new)):
                    is_gone, state = new.status != "active", _state(old)
                    was, becomes = (state, None) if is_gone else (None, state)
                    further[file] = _ChangedThing(was, becomes, new.id, is_gone)
            moves = further
    return replace(commit, changes=tuple(changes), audit=tuple(events))


def _changed_things(some: Sequence[Change], commit: Commit, listed: Listing) -> dict[str, _ChangedThing]:
    """Changed metrics, files and tables by name."""
    ids = tuple(change.record.id for change in some if change.expects is not None)
    olds = listed(Filter(ids=ids, statuses=("active",))) if ids else ()
    before = {(_name(old) or old.id, old.attribute): old for old in olds}
    told = {event.record_id: event for event in commit.audit}
    moves: dict[str, _ChangedThing] = {}
    for new in sorted((change.record for change in some), key=lambda record: record.status == "active"):
        name, event = _name(new), told.get(new.id)
        old = before.get((name or new.id, new.attribute))
        writes = new.metadata.get("writes")
        tables = [f"table:{each}" for each in writes] if isinstance(writes, list) else []
        if new.status != "active":
            if old is not None and new.attribute == ARTIFACT:
                moves |= dict.fromkeys(
                    [name] if name else tables, _ChangedThing(None, new.id, new.id, is_change=False)
                )
        elif name is None:
            if old is None or (event is not None and event.reason == WRITTEN_ANEW):
                moves |= dict.fromkeys(tables, _ChangedThing(None, None, new.id, is_change=True))
        elif new.attribute != ARTIFACT or any(_parts(new)):
            old = old or _same_file_elsewhere(new, listed)
            is_same = old is None or (event is not None and event.op in _SAME)
            is_other = not is_same and old is not None and _is_other(old, new)
            if old is not None or new.attribute != ARTIFACT:
                moves[name] = _ChangedThing(_state(old) if old else None, _state(new), new.id, is_other)
    return {name: move for name, move in moves.items() if move.is_change or move.was != move.now}


def _name(record: Record) -> str | None:
    """The name under which others rest on a metric or a file; None for SQL."""
    if record.attribute != ARTIFACT:
        return f"metric:{record.subject}".casefold() if record.is_borne_on else None
    return f"file:{record.metadata['path']}" if "path" in record.metadata else None


def _state(record: Record) -> str:
    """A digest of a definition's statement or a file's content."""
    told = json.dumps(_parts(record)) if record.attribute == ARTIFACT else hash_of(record.content)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _parts(file: Record) -> tuple[Any, ...]:
    sql = file.metadata.get("sql")
    query = one_query(sql) if isinstance(sql, str) else None
    return file.metadata.get("digest"), file.metadata.get("rows"), query


def _same_file_elsewhere(new: Record, listed: Listing) -> Record | None:
    """The file as another agent left it."""
    if new.attribute != ARTIFACT:
        return None
    every = listed(Filter(new.user_id, subject=new.subject, attribute=ARTIFACT))
    return next((record for record in every if record.id != new.id and any(_parts(record))), None)


def _is_other(old: Record, new: Record) -> bool:
    """Whether a file's content is known to differ, or a definition states something else, not just other
    words."""
    if new.attribute == ARTIFACT:
        both = [each for each in zip(_parts(old), _parts(new), strict=True) if None not in each]
        is_told_by_digest = all("digest" in each.metadata for each in (old, new))
        return any(starmap(ne, both[:1] if is_told_by_digest else both))
    if hash_of(old.content) == hash_of(new.content):
        return False
    if old.metadata.get("value") != new.metadata.get("value") or not same_slots(old.content, new.content):
        return True
    [verdict] = verdicts(new.content, [Compared.of(old.content, new.content, None)], None)
    return verdict.instead >= INSTEAD_FROM


def _changed_record(old: Record, moves: Mapping[str, _ChangedThing], now: float, at: float) -> Record | None:
    """The changed record; None: it stays as it is. `at`: when the changes were said."""
    held = old.unsettled
    if old.status != "active" and not held:
        return None  # set aside for another reason
    marks: dict[str, Any] = dict(held)
    for name in {":".join(each) for each in old.rests_on} & set(moves):
        move = moves[name]
        if name in marks and move.now in marks[name]:
            del marks[name]
        elif name not in marks and move.is_change and old.updated_at <= at:
            marks[name] = [move.was or "", move.by]
    if marks == held:
        return None
    kept = {name: value for name, value in old.metadata.items() if name != UNSETTLED}
    new = replace(old, metadata={**kept, UNSETTLED: marks} if marks else kept)
    if not marks and old.status == "stale":
        return replace(new, status="active", valid_from=now, valid_to=None)
    # What a person said, and the steps of a task of which only one may rest on it, are flagged alone.
    is_flagged = old.status != "active" or old.source.source_class == "user" or "\n" in old.content
    return new if is_flagged or not marks else replace(new, status="stale", valid_to=now)


def _is_taken(record: Record, listed: Listing) -> bool:
    """Whether another record has taken the place of a record that would be put back in use."""
    places: list[dict[str, Any]] = [{"content_hash": record.content_hash}]
    places += [{"subject": record.subject, "attribute": record.attribute}] if record.subject else []
    return any(listed(replace(Filter.beside(record), **each)) for each in places)


def _event(old: Record, new: Record, commit: Commit) -> AuditEvent:
    """The row for a record that is set aside or back, by whoever made the commit."""
    is_back = len(new.unsettled) < len(old.unsettled)
    by = {name: getattr(commit.audit[0], name) for name in _WHO} if commit.audit else {}
    facts = {"version_before": old.version, "version_after": old.version + 1, **by}
    reason = "what-it-rests-on-is-back" if is_back else "what-it-rests-on-changed"
    return AuditEvent.of("outdate", old, reason=reason, detail={"kind": old.kind}, **facts)


_WHO: Final = ("actor", "agent_id", "session_id", "run_id")
