"""/v1/sessions: list, show, name, close and erase sessions.

/v1/users and /v1/agents: who spoke in them.
"""

from typing import Annotated

from fastapi import APIRouter, Query

from supervisor_memory.interfaces.http import answers, bodies
from supervisor_memory.interfaces.http.given import Asking, Memory, OneUser, User, Writing
from supervisor_memory.interfaces.present import parties_told, session_erased, session_told, sessions_told

router = APIRouter(prefix="/sessions", tags=["sessions"])
speakers = APIRouter(tags=["sessions"])
_Most = Annotated[int, Query(ge=1, le=1000)]
_After = Annotated[str | None, Query(description="The `next` of the page before.")]


@router.get("")
def list_sessions(
    memory: Memory,
    user_id: User,
    *,
    limit: _Most = 100,
    after: _After = None,
    agent: Annotated[str | None, Query(description="In which this agent spoke.")] = None,
    since: Annotated[str | None, Query(description="With a message from then on.")] = None,
    until: Annotated[str | None, Query(description="Begun before.")] = None,
) -> answers.Sessions:
    """Sessions, the one with the newest message first."""
    asked = {"user_id": user_id, "agent_id": agent, "since": since, "until": until, "after": after}
    return answers.Sessions.model_validate(sessions_told(memory, limit=limit, **asked))


@router.get("/{session_id:path}")
def get_session(session_id: str, memory: Memory, user_id: OneUser) -> answers.WholeSession:
    """A session, and what was said in it, in order."""
    return answers.WholeSession.model_validate(session_told(memory, session_id, user_id=user_id))


@router.patch("/{session_id:path}")
def change_session(
    session_id: str, body: bodies.ChangeSession, memory: Memory, caller: Writing, user_id: OneUser
) -> answers.Session:
    """Name a session, or end it."""
    if body.name is not None:
        memory.sessions.rename(session_id, body.name, user_id=user_id)
    if body.closed:
        memory.sessions.close(session_id, user_id=user_id)
    told = session_told(memory, session_id, user_id=user_id, with_messages=False)
    return answers.Session.model_validate(told)


@router.delete("/{session_id:path}")
def erase_session(
    session_id: str, memory: Memory, caller: Writing, user_id: OneUser, *, confirm: bool = False
) -> answers.ErasedSession:
    """Remove a session for good, with `confirm`; without, tell how much it would be."""
    told = session_erased(memory, session_id, user_id=user_id, reviewer=caller.name, confirm=confirm)
    return answers.ErasedSession.model_validate(told)


@speakers.get("/users")
def list_users(
    memory: Memory, caller: Asking, *, limit: _Most = 100, after: _After = None
) -> answers.Parties:
    """The users with a session, the one who spoke last first; for a token of all users."""
    caller.as_operator()
    rows = memory.sessions.users(limit=limit, after=after)
    return answers.Parties.model_validate(parties_told(rows, limit=limit))


@speakers.get("/agents")
def list_agents(
    memory: Memory, user_id: User, *, limit: _Most = 100, after: _After = None
) -> answers.Parties:
    """The agents that spoke in sessions, the one who spoke last first."""
    rows = memory.sessions.agents(user_id=user_id, limit=limit, after=after)
    return answers.Parties.model_validate(parties_told(rows, limit=limit))
