"""/v1/audit and /v1/turns: who did what, and what readers were told."""

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BeforeValidator

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.http import answers
from supervisor_memory.interfaces.http.given import Asking, Memory, User
from supervisor_memory.interfaces.present import audit_rows, notes_of, notes_told

router = APIRouter(tags=["audit"])
_MOST: Final = 2**53
Limit = Annotated[int, Query(ge=1, le=1000)]


def _is_named(value: object) -> object:
    """Read a flag: a parameter without a value counts as true."""
    return True if value == "" else value


@router.get("/audit")
def list_audit(
    memory: Memory,
    caller: Asking,
    user_id: User,
    *,
    record_id: Annotated[str | None, Query(max_length=200)] = None,
    op: Annotated[str | None, Query(max_length=200, description="Such as add or erase.begin.")] = None,
    limit: Limit = 100,
    before: Annotated[int | None, Query(ge=0, le=_MOST, description="The `next` of the page before.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=_MOST, description="The whole log from its beginning, behind this seq.")
    ] = None,
) -> answers.AuditPage:
    """Rows of the log, newest first, each beside its record's present text; with `after` oldest first."""
    if after is not None:
        caller.as_operator()
        page = memory.audit.rows(after=after, limit=limit)
        more = page[-1].seq if len(page) == limit else None
    else:
        found = memory.audit.tail(limit, user_id=user_id, record_id=record_id, op=op, before=before)
        page = found[::-1]
        more = page[-1].seq if len(page) == limit else None
    rows = audit_rows(memory, page, user_id=user_id)
    return answers.AuditPage(rows=[answers.AuditRow.model_validate(row) for row in rows], next=more)


@router.get("/audit/verify")
def verify(
    memory: Memory,
    caller: Asking,
    *,
    deep: Annotated[
        bool,
        BeforeValidator(_is_named),
        Query(description="Also compare the text of every record; `?deep` is enough."),
    ] = False,
) -> answers.Verified:
    """Prove the log row by row, and with `deep` the records by it."""
    caller.as_operator()
    if deep and (name := memory.upkeep.shared_store()):
        raise InvalidContent(
            f"deep compares a store of this machine, and the records of {name} are changed by "
            "other instances too, whose logs are elsewhere; without it, the rows are proved"
        )
    found = memory.audit.verify(deep=deep)
    return answers.Verified(rows=found.rows, records=found.records, problems=found.problems)


@router.get("/why/{id}")
def list_notes(memory: Memory, user_id: User, id: str, *, limit: Limit = 20) -> answers.Why:
    """What readers were told in a note, in a run or of a record, newest first; what was left out, and why."""
    return answers.Why.model_validate({"notes": notes_of(memory, id, limit=limit, user_id=user_id)})


@router.get("/turns")
def list_turns(
    memory: Memory,
    user_id: User,
    *,
    before: Annotated[int | None, Query(ge=0, le=_MOST, description="`next` of a page before.")] = None,
    limit: Limit = 50,
) -> answers.Turns:
    """What readers were told, turn by turn, newest first: by which scores, and what was left out."""
    found = memory.audit.turns(limit, user_id=user_id, before=before)
    notes = [note for turn in found for note in turn.notes]
    told = {each["id"]: each for each in notes_told(memory, notes, user_id=user_id)}
    turns = [{**asdict(turn), "notes": [told[note.id] for note in turn.notes]} for turn in found]
    more = min(note.seq for note in notes) if len(notes) == limit else None
    return answers.Turns.model_validate({"turns": turns, "next": more})
