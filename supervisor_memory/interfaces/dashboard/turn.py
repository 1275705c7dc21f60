"""Page 2: what each reader was given of memory in a turn, what was left out, and why."""

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import Record
from supervisor_memory.reading.audit import Injection

_PAGE: Final = 100
_MOST_OF_A_TURN: Final = 200
_LARGEST: Final = 2**31


def turns(visit: Visit) -> Response:
    user_id = visit.user_id
    before = visit.number("before", least=0, most=_LARGEST, otherwise=0) or None
    read = visit.memory.audit.turns(_PAGE, user_id=user_id, before=before)
    notes = [note for each in read for note in each.notes]
    people = visit.people
    found = [each for each in read if not all(note.agent_id in people for note in each.notes)]
    ids = {each.record_id for each_turn in found for note in each_turn.notes for each in note.shown[:1]}
    return visit.page(
        "turns.html",
        turns=found,
        looks=len(read) - len(found),
        records=_records(visit, ids),
        older=min(note.seq for note in notes) if len(notes) == _PAGE else None,
        before=before,
        user_id=user_id,
        users=visit.users(),
    )


def turn(visit: Visit) -> Response:
    notes = _notes(visit)
    at = visit.number("edge", least=0, most=_MOST_OF_A_TURN, otherwise=0)
    chosen = notes[at] if at < len(notes) else None
    every = (*chosen.shown, *chosen.dropped) if chosen else ()
    ids = {id_ for each in every for id_ in (each.record_id, *each.source_ids)}
    records = _records(visit, ids)
    user_id = visit.user_id or next((record.user_id for record in records.values()), None)
    question = visit.memory.audit.question(chosen, user_id=user_id) if chosen and user_id else None
    visit.memory.audit.seen("turn", [*records.values(), *([question] if question else [])])
    return visit.page(
        "turn.html",
        status=200 if notes else 404,
        notes=notes,
        at=at,
        chosen=chosen,
        records=records,
        question=question,
        trace=_trace(visit, notes[0], question) if notes else None,
    )


def _trace(visit: Visit, note: Injection, question: Record | None) -> str | None:
    """Where a trace viewer shows the run, by MEMORY_TRACE_URL; None: nothing says where, or what."""
    link, session = visit.memory.settings.trace_url, question.source.session_id if question else None
    known = {"run": note.run_id, "session": session}
    if link is None or any(f"{{{name}}}" in link and not value for name, value in known.items()):
        return None
    return link.format(**{name: quote(value or "", safe="") for name, value in known.items()})


def _notes(visit: Visit) -> Sequence[Injection]:
    """The notes of the turn asked for, oldest first: of a run, or around a note."""
    log, user_id = visit.memory.audit, visit.user_id
    if run_id := visit.asked("run"):
        return log.notes(_MOST_OF_A_TURN, user_id=user_id, run_id=run_id)[::-1]
    if not (note_id := visit.asked("note")):
        return ()
    if not (asked := log.notes(1, user_id=user_id, id=note_id)):
        return ()
    around = log.turns(_MOST_OF_A_TURN, user_id=user_id, before=asked[0].seq + _MOST_OF_A_TURN // 2)
    return next((each.notes for each in around if asked[0] in each.notes), asked)


def _records(visit: Visit, ids: Iterable[str]) -> dict[str, Record]:
    """The records with these ids, as far as they exist and the caller may see them."""
    found = visit.memory.upkeep.records(list(ids))
    return {record.id: record for record in found if visit.may_see(record)}
