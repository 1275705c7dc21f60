"""Whether it works, and how much there is: for people, for probes, for Prometheus."""

import threading
from collections.abc import Iterator
from typing import Final, Literal, get_args

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from supervisor_memory.interfaces.http.given import Asking, Memory
from supervisor_memory.interfaces.http.problems import PROBLEMS_OF_TEXT
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Filter, Status
from supervisor_memory.reading.metrics import exposition

open_router = APIRouter()
router = APIRouter(tags=["health"])
_PAGE: Final = 1_000
_DAY: Final = 86_400


class Alive(BaseModel):
    status: Literal["ok"]


class Health(BaseModel):
    ok: bool
    backend: str
    persistent: bool
    message: str


class Metrics(PlainTextResponse):
    media_type = "text/plain; version=0.0.4; charset=utf-8"


class Degraded:
    """Counts the rows of the audit log that tell of something memory had to do without."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = 0
        self._count = 0

    def count(self, memory: SupervisorMemory) -> int:
        """How many there are; what was read once is not read again."""
        with self._lock:
            while page := memory.audit.rows(after=self._seq, limit=_PAGE):
                self._count += sum(row.outcome == "degraded" for row in page)
                self._seq = page[-1].seq
            return self._count


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
def metrics(request: Request, memory: Memory, caller: Asking) -> Metrics:
    """How much there is, what went wrong, and the figures of the last 24 hours, as Prometheus reads them."""
    caller.as_operator()
    degraded: Degraded = request.app.state.degraded
    figures = memory.audit.figures(since=memory.upkeep.now() - _DAY)
    now = "".join(f"{line}\n" for line in _lines(memory, degraded.count(memory)))
    return Metrics(now + exposition(figures))


def _lines(memory: SupervisorMemory, degraded: int) -> Iterator[str]:
    yield from _head("records", "gauge", "Records by status; session messages are not counted.")
    for status in get_args(Status):
        count = memory.upkeep.count(Filter(statuses=(status,)))
        yield f'supervisor_memory_records{{status="{status}"}} {count}'
    if (waiting := memory.upkeep.messages_waiting()) is not None:
        yield from _head("messages_waiting", "gauge", "Session messages without a vector by the embedder.")
        yield f"supervisor_memory_messages_waiting {waiting}"
    yield from _head("degraded_total", "counter", "Flows that went on without a part of memory.")
    yield f"supervisor_memory_degraded_total {degraded}"
    yield from _head("audit_rows_total", "counter", "Rows of the audit log.")
    yield f"supervisor_memory_audit_rows_total {memory.audit.count()}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP supervisor_memory_{name} {told}"
    yield f"# TYPE supervisor_memory_{name} {kind}"
