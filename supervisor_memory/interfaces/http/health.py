"""Whether it works: /healthz for anybody, /v1/health for who has a token."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from supervisor_memory.interfaces.http.given import Asking, Memory

__all__ = ["open_router", "router"]

open_router = APIRouter()
router = APIRouter(tags=["health"])


class Alive(BaseModel):
    status: Literal["ok"]


class Health(BaseModel):
    ok: bool
    backend: str
    persistent: bool
    message: str


@open_router.get("/healthz")
async def healthz() -> Alive:
    """Whether the process answers. It says nothing of the store."""
    return Alive(status="ok")


@router.get("/health")
def health(memory: Memory, _caller: Asking) -> Health:
    """Whether the store works."""
    found = memory.backend.health()
    return Health(ok=found.ok, backend=found.name, persistent=found.persistent, message=found.message)
