"""Page 2: what each reader was given of memory in a turn, what was left out, and why."""

from collections.abc import Iterable
from typing import Final

from fastapi.responses import Response

from supervisor_memory.audit.turns import Injection
from supervisor_memory.audit.turns import turns as turns_of
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.records import Record

__all__ = ["turn", "turns"]

_PAGE: Final = 50
_MOST_OF_A_RUN: Final = 200
_LARGEST: Final = 2**31


def turns(visit: Visit) -> Response:
    user_id = visit.user_id
    before = visit.number("before", least=0, most=_LARGEST, otherwise=0) or None
    found = turns_of(visit.memory.backend.audit, user_id=user_id, before=before, limit=_PAGE)
    read = sum(len(each.notes) for each in found)
    oldest = min((note.seq for each in found for note in each.notes), default=None)
    ids = {each.record_id for one in found for note in one.notes for each in note.shown[:1]}
    return visit.page(
        "turns.html",
        turns=found,
        records=_records(visit, ids),
        older=oldest if read == _PAGE else None,
        before=before,
        user_id=user_id,
        users=visit.users(),
    )


def turn(visit: Visit) -> Response:
    run_id, note_id = visit.asked("run") or None, visit.asked("note") or None
    log, user_id = visit.memory.backend.audit, visit.user_id
    named = run_id is not None or note_id is not None
    found = log.notes(_MOST_OF_A_RUN, user_id=user_id, run_id=run_id, id=note_id) if named else ()
    notes: list[Injection] = list(reversed(found))
    at = visit.number("edge", least=0, most=_MOST_OF_A_RUN, otherwise=0)
    chosen = notes[at] if at < len(notes) else None
    ids = {each.record_id for each in (*chosen.shown, *chosen.dropped)} if chosen else set[str]()
    records = _records(visit, ids)
    visit.looked_at("turn", list(records.values()))
    return visit.page(
        "turn.html",
        status=200 if notes else 404,
        notes=notes,
        at=at,
        chosen=chosen,
        records=records,
        run_id=run_id,
    )


def _records(visit: Visit, ids: Iterable[str]) -> dict[str, Record]:
    """Those of the ids that are still there and that the caller may see."""
    found = visit.memory.backend.get(list(ids))
    return {record.id: record for record in found if visit.may_see(record)}
