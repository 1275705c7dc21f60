"""The route that tells what is related to what."""

from typing import Annotated

from fastapi import APIRouter, Query

from supervisor_memory.interfaces.http import answers
from supervisor_memory.interfaces.http.given import Memory, OneUser
from supervisor_memory.interfaces.http.memories import AsOf
from supervisor_memory.interfaces.present import relations_told

router = APIRouter(tags=["memories"])


@router.get("/relations")
def relations(
    memory: Memory,
    user_id: OneUser,
    about: Annotated[str, Query(min_length=1, max_length=200, description="A name, or a record's id.")],
    *,
    to: Annotated[
        str | None, Query(min_length=1, max_length=200, description="Also the shortest way to this one.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most neighbours, and most links.")] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The `next` of the page before.")] = 0,
    as_of: AsOf = None,
) -> answers.Relations:
    """The neighbours and the lineage of a thing or a record, and the way to another."""
    told = relations_told(memory, about, user_id=user_id, to=to, limit=limit, offset=offset, as_of=as_of)
    return answers.Relations.model_validate(told)
