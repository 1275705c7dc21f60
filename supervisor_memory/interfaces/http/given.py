"""What routes are given: the memory behind the application, and who asks."""

from typing import Annotated, cast

from fastapi import Depends, Request

from supervisor_memory.interfaces.http.access import Caller, caller_of, writer_of
from supervisor_memory.memory import SupervisorMemory

__all__ = ["Asking", "Memory", "Writing"]


def _memory(request: Request) -> SupervisorMemory:
    return cast("SupervisorMemory", request.app.state.memory)


Memory = Annotated[SupervisorMemory, Depends(_memory)]
Asking = Annotated[Caller, Depends(caller_of)]
Writing = Annotated[Caller, Depends(writer_of)]
