"""/v1/users: count, export and erase the data of a user."""

import os
import threading
from collections.abc import Generator
from itertools import chain

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from supervisor_memory.interfaces.http import answers, bodies
from supervisor_memory.interfaces.http.given import Memory, UserOfPath, Writing
from supervisor_memory.interfaces.http.problems import PROBLEMS_OF_TEXT
from supervisor_memory.interfaces.present import erased, to_be_erased
from supervisor_memory.memory import SupervisorMemory

router = APIRouter(prefix="/users/{user_id:path}", tags=["users"])
_CHUNK = 64 * 1024


class Lines(StreamingResponse):
    media_type = "application/x-ndjson"


@router.get("/holds")
def holds(memory: Memory, user_id: UserOfPath) -> answers.Held:
    """How much an erasure would remove, by kind."""
    return answers.Held.model_validate(to_be_erased(memory, user_id))


@router.post("/erase")
def erase(body: bodies.Erase, memory: Memory, caller: Writing, user_id: UserOfPath) -> answers.Erased:
    """Remove a user for good, with `confirm`; without, tell how much it would be."""
    told = erased(memory, user_id, reviewer=caller.name) if body.confirm else to_be_erased(memory, user_id)
    return answers.Erased.model_validate(told)


@router.get("/export", response_class=Lines, response_model=None, responses=PROBLEMS_OF_TEXT)
def export(memory: Memory, user_id: UserOfPath) -> Lines:
    """All records of a user in every status, one a line, as `supervisor-memory export` writes them."""
    lines = exported(memory, user_id)
    first = next(lines, b"")  # what fails at once is a problem, not half an answer
    return Lines(
        chain((first,), lines), headers={"Content-Disposition": 'attachment; filename="memories.jsonl"'}
    )


def exported(memory: SupervisorMemory, user_id: str) -> Generator[bytes]:
    """The file of an export while it is written, until nobody reads on; BackendError: it failed."""
    reading, writing = os.pipe()
    failed: list[Exception] = []

    def write() -> None:
        try:
            with open(writing, "wb") as file:
                memory.export(file, user_id=user_id)
        except BrokenPipeError:
            pass  # nobody reads on
        except Exception as error:  # noqa: BLE001  # raised where it is read
            failed.append(error)

    writer = threading.Thread(target=write, name="supervisor-memory-export", daemon=True)
    writer.start()
    with open(reading, "rb") as file:
        while chunk := file.read(_CHUNK):
            if len(chunk) < _CHUNK:
                break
            yield chunk
    writer.join()
    if failed:
        raise failed[0]
    yield chunk
