"""/v1/review: what waits for a person, what a person decides, and what is taken back."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query

from supervisor_memory.interfaces.http import answers, bodies
from supervisor_memory.interfaces.http.access import Caller
from supervisor_memory.interfaces.http.given import Asking, Memory, OneUser, User, Writing
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.review.sweep import Swept

router = APIRouter(prefix="/review", tags=["review"])


@router.get("")
def list_proposals(
    memory: Memory, user_id: User, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> answers.Proposals:
    """What waits, the newest first: why, and what approving it would do."""
    waiting = memory.review.pending(user_id=user_id, limit=limit)
    return answers.Proposals(proposals=[answers.Proposal.model_validate(each.to_dict()) for each in waiting])


@router.get("/shared")
def list_shared(
    memory: Memory, caller: Asking, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> answers.Shared:
    """What MEMORY_TEAM shares with all of its users, the last promoted first."""
    caller.as_operator()
    found = memory.review.shared(limit=limit)
    return answers.Shared(records=[answers.Record.model_validate(each.to_dict()) for each in found])


@router.get("/{id}/promotion")
def preview_promotion(id: str, memory: Memory, caller: Asking, user_id: User) -> answers.Promotion:
    """Preview a promotion: the text the team would read, its readers, and the objections."""
    _as_operator(id, memory, caller, user_id)
    return answers.Promotion.model_validate(memory.review.preview_promotion(id).to_dict())


@router.post("/{id}/promote")
def promote(id: str, body: bodies.Promote, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Share a definition or a guideline with all users of the team; its deletion takes it back."""
    _as_operator(id, memory, caller, user_id)
    done = memory.review.promote(
        id,
        reviewer=caller.name,
        on_erase=body.on_erase,
        names_ok=tuple(body.names_ok),
        version=body.version,
    )
    return answers.written(done)


def _as_operator(id: str, memory: SupervisorMemory, caller: Caller, user_id: str | None) -> None:
    """Refuse callers bound to users; a record of another user counts as missing for them."""
    memory.get(id, user_id=user_id)
    caller.as_operator()


@router.get("/{id}")
def show_proposal(id: str, memory: Memory, user_id: User) -> answers.Shown:
    """A proposal beside the known record, with its source words."""
    waiting = memory.review.show(id, user_id=user_id)
    said = memory.messages(id, user_id=user_id)
    return answers.Shown.model_validate({**waiting.to_dict(), "messages": [each.to_dict() for each in said]})


@router.post("/{id}/approve")
def approve(id: str, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Let it be remembered, decided against what is known by now."""
    return answers.written(memory.review.approve(id, reviewer=caller.name, user_id=user_id))


@router.post("/{id}/edit")
def edit(id: str, body: bodies.Edit, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Let it be remembered in your words; where it came from stays as it is."""
    return answers.written(memory.review.edit(id, body.content, reviewer=caller.name, user_id=user_id))


@router.post("/{id}/reject")
def reject(
    id: str, memory: Memory, caller: Writing, user_id: User, body: bodies.Reject | None = None
) -> answers.Written:
    """Do not remember it, nor have it proposed again."""
    reason = body.reason if body else ""
    return answers.written(memory.review.reject(id, reviewer=caller.name, reason=reason, user_id=user_id))


@router.post("/undo")
def undo(body: bodies.Undo, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Go back to a version of a record, or bring back one that was deleted, rejected or replaced."""
    desk, by = memory.review, caller.name
    if body.version is None:
        return answers.written(desk.restore(body.id, reviewer=by, user_id=user_id))
    return answers.written(desk.revert(body.id, version=body.version, reviewer=by, user_id=user_id))


@router.post("/quarantine")
def quarantine(body: bodies.Sweep, memory: Memory, caller: Writing, user_id: OneUser) -> answers.Swept:
    """Set aside all that came from a source, run, session, agent or time: found no more, and kept."""
    return _swept(memory.review.quarantine, body, caller, user_id)


@router.post("/release")
def release(body: bodies.Sweep, memory: Memory, caller: Writing, user_id: OneUser) -> answers.Swept:
    """End a quarantine: what was set aside of this is as it was before."""
    return _swept(memory.review.release, body, caller, user_id)


@router.post("/roll-back")
def roll_back(body: bodies.Sweep, memory: Memory, caller: Writing, user_id: OneUser) -> answers.Swept:
    """Take back all writes of a source: added records are withdrawn, changed records are as before."""
    return _swept(memory.review.roll_back, body, caller, user_id)


def _swept(verb: Callable[..., Swept], body: bodies.Sweep, caller: Caller, user_id: str) -> answers.Swept:
    which = body.model_dump(exclude={"confirm"}, exclude_none=True)
    swept = verb(user_id=user_id, reviewer=caller.name, dry_run=not body.confirm, **which)
    return answers.Swept.model_validate(swept.to_dict())
