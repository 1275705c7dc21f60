"""Dependencies of the routes: the memory, the caller, and the user that the request is about."""

from typing import Annotated, cast

from fastapi import Depends, Query, Request

from supervisor_memory.interfaces.http.access import Caller, caller_of, writer_of
from supervisor_memory.memory import SupervisorMemory

Asking = Annotated[Caller, Depends(caller_of)]


def _memory(request: Request, caller: Asking) -> SupervisorMemory:
    return cast("SupervisorMemory", request.app.state.memory).read_by(caller.name)


Memory = Annotated[SupervisorMemory, Depends(_memory)]
"""The memory, as it is read by whoever asks."""
Writing = Annotated[Caller, Depends(writer_of)]
_UserId = Annotated[
    str | None, Query(description="Whose memory; may be left out where the token is for one user, or all.")
]


def _user(caller: Asking, user_id: _UserId = None) -> str | None:
    return caller.user(user_id)


def _one_user(caller: Asking, user_id: _UserId = None) -> str:
    return caller.one_user(user_id)


def _user_of_path(caller: Asking, user_id: str) -> str:
    return caller.one_user(user_id)


User = Annotated[str | None, Depends(_user)]
"""Whose memory the request is about; None: anybody's, an operator asks."""
OneUser = Annotated[str, Depends(_one_user)]
UserOfPath = Annotated[str, Depends(_user_of_path)]
