"""/v1/experience: guidelines of tools with their evidence, ratings of runs, and what a person withdraws."""

from typing import Annotated

from fastapi import APIRouter, Query

from supervisor_memory.interfaces.http import answers, bodies
from supervisor_memory.interfaces.http.given import Memory, OneUser, User, Writing

router = APIRouter(prefix="/experience", tags=["experience"])


@router.get("")
def list_guidelines(
    memory: Memory,
    user_id: User,
    *,
    agent: Annotated[str | None, Query(description="Only what this agent learned.")] = None,
    tool: Annotated[str | None, Query(description="Only that of the tool of exactly this name.")] = None,
    withdrawn: Annotated[bool, Query(description="Those that are not told any more.")] = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> answers.Guidelines:
    """The guidelines of agents' tools: their lessons, the runs that taught them, and how often they held."""
    found = memory.experience.guidelines(
        user_id=user_id, agent_id=agent, tool=tool, withdrawn=withdrawn, limit=limit
    )
    return answers.Guidelines(guidelines=[answers.Guideline.model_validate(each.to_dict()) for each in found])


@router.post("/rate")
def rate(body: bodies.Rate, memory: Memory, caller: Writing, user_id: OneUser) -> answers.Rated:
    """Rate a run from 0 (failed) to 1 (right); its lessons count the rating."""
    done = memory.rate(body.run_id, body.score, user_id=user_id, error=body.error, reviewer=caller.name)
    return answers.Rated.model_validate(done, from_attributes=True)


@router.post("/{id}/withdraw")
def withdraw(id: str, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Tell a guideline no more, and do not learn it again; `POST /v1/review/undo` brings it back."""
    return answers.written(memory.experience.withdraw(id, reviewer=caller.name, user_id=user_id))
