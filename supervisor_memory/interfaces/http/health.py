"""Health and metrics, for people, for probes and for Prometheus."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal, get_args

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from supervisor_memory.interfaces.http.given import Asking, Memory
from supervisor_memory.interfaces.http.problems import PROBLEMS_OF_TEXT
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Filter, Status
from supervisor_memory.reading.metrics import exposition

open_router = APIRouter()
router = APIRouter(tags=["health"])
_HOUR: Final = 3_600
_MOST_HOURS: Final = 31 * 24


class Alive(BaseModel):
    status: Literal["ok"]


class Health(BaseModel):
    ok: bool
    backend: str
    persistent: bool
    message: str


class Metrics(PlainTextResponse):
    media_type = "text/plain; version=0.0.4; charset=utf-8"


@open_router.get("/healthz", tags=["health"])
async def healthz() -> Alive:
    """Whether the process answers. It says nothing of the store."""
    return Alive(status="ok")


@router.get("/health")
def health(memory: Memory, caller: Asking) -> Health:
    """Whether the store works."""
    found = memory.upkeep.health()
    message = found.message if caller.user_ids is None else ""
    return Health(ok=found.ok, backend=found.name, persistent=found.persistent, message=message)


@router.get("/metrics", response_class=Metrics, response_model=None, responses=PROBLEMS_OF_TEXT)
def metrics(
    memory: Memory,
    caller: Asking,
    hours: Annotated[
        int | None, Query(ge=1, le=_MOST_HOURS, description="Also the figures of so many hours; slow.")
    ] = None,
) -> Metrics:
    """Sizes, counters and durations of calls, in the format of Prometheus."""
    caller.as_operator()
    now = "".join(f"{line}\n" for line in _lines(memory)) + memory.audit.counted()
    if hours is None:
        return Metrics(now)
    since = memory.upkeep.now() - hours * _HOUR
    return Metrics(now + exposition(memory.audit.figures(since=since), with_present=False))


def _lines(memory: SupervisorMemory) -> Iterator[str]:
    counts = {status: memory.upkeep.count(Filter(statuses=(status,))) for status in get_args(Status)}
    yield from _head("records", "gauge", "Records by status; session messages are not counted.")
    yield from (f'supervisor_memory_records{{status="{each}"}} {count}' for each, count in counts.items())
    yield from _head("pending", "gauge", "Records that wait for a person now.")
    yield f"supervisor_memory_pending {counts['pending']}"
    yield from _head("queue_depth", "gauge", "Events of the queue now, by state.")
    depths = memory.queue.counts().items()
    yield from (f'supervisor_memory_queue_depth{{state="{state}"}} {count}' for state, count in depths)
    if (waiting := memory.upkeep.messages_waiting()) is not None:
        yield from _head("messages_waiting", "gauge", "Session messages without a vector by the embedder.")
        yield f"supervisor_memory_messages_waiting {waiting}"
    yield from _head("audit_rows_total", "counter", "Rows of the audit log.")
    yield f"supervisor_memory_audit_rows_total {memory.audit.count()}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP supervisor_memory_{name} {told}"
    yield f"# TYPE supervisor_memory_{name} {kind}"
