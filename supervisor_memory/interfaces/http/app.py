"""The application: routes by noun under /v1, the dashboard, and the guard before both."""

from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import version

from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from supervisor_memory.interfaces import dashboard
from supervisor_memory.interfaces.http import (
    audit,
    experience,
    health,
    memories,
    relations,
    review,
    sessions,
    users,
)
from supervisor_memory.interfaces.http.access import Guard, Tokens
from supervisor_memory.interfaces.http.problems import PROBLEMS, add_handlers
from supervisor_memory.memory import SupervisorMemory

_bearer = HTTPBearer(auto_error=False, description="A token of MEMORY_SERVER_TOKENS.")


def create_app(
    memory: SupervisorMemory, *, tokens: Tokens, hosts: Collection[str] = (), rate: int = 600
) -> FastAPI:
    """The application over a memory, which stays open: whoever made it closes it.

    Args:
        tokens: Who may ask.
        hosts: Names it may be addressed to, besides loopback; without a port.
        rate: Requests a minute of one caller.
    """
    guard = Middleware(
        Guard,
        tokens=tokens,
        hosts=hosts,
        rate=rate,
        open_paths={"/healthz", *dashboard.OPEN},
        login=dashboard.LOGIN,
    )
    app = FastAPI(
        title="supervisor-memory",
        version=version("supervisor-memory"),
        middleware=[guard],
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        # Its spans would hold paths with names of users, and its logs what errors say.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.memory = memory
    app.state.tokens = tokens
    app.state.shelf = dashboard.Shelf()
    add_handlers(app)
    app.router.routes.extend(_routes())
    return app


@cache  # what FastAPI works out of the routes is the same for every application
def _routes() -> Sequence[BaseRoute]:
    whole = APIRouter(generate_unique_id_function=lambda route: route.name)
    whole.include_router(health.open_router)
    whole.add_api_route("/metrics", health.metrics, response_model=None, include_in_schema=False)
    whole.include_router(dashboard.router(), include_in_schema=False)
    v1 = APIRouter(prefix="/v1", dependencies=[Depends(_bearer)], responses=PROBLEMS)
    v1.include_router(sessions.speakers)
    for part in (memories, relations, review, experience, audit, sessions, users, health):
        v1.include_router(part.router)
    whole.include_router(v1)
    return whole.routes
