"""Memory's HTTP API, metrics and dashboard, below /memory of the same server.

They have tokens of their own, MEMORY_SERVER_TOKENS. Mounted, they leave the server's routes alone; given as
`http.app` itself, memory's guard would stand before those, too.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from remembering import memory

from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Close memory when the server ends: what this process heard is read, and files are let go of."""
    yield
    await asyncio.to_thread(memory.close)


app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
tokens = memory.settings.server_tokens
if tokens is None:
    logging.getLogger(__name__).warning("without MEMORY_SERVER_TOKENS nobody can open /memory/dashboard")


@app.get("/memory")
def dashboard() -> RedirectResponse:
    """Lead to the dashboard, since the server adds no slash."""
    return RedirectResponse("/memory/dashboard/inbox")


app.mount(
    "/memory",
    create_app(
        memory,
        tokens=Tokens.read(tokens.get_secret_value() if tokens else ""),
        hosts=memory.settings.server_hosts.replace(",", " ").split(),
    ),
)
