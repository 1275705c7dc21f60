"""The addresses of the pages, and what each request goes through: who asks, its form, errors as pages."""

import hmac
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from supervisor_memory.errors import MemoryAccessDenied, SupervisorMemoryError
from supervisor_memory.interfaces.dashboard import (
    browse,
    door,
    experience,
    figures,
    health,
    inbox,
    preview,
    record,
    relations,
    share,
    timeline,
    together,
    turn,
)
from supervisor_memory.interfaces.dashboard.visit import (
    BASE,
    HEADERS,
    FormIsOld,
    Handler,
    Visit,
    asset,
    form_of,
)
from supervisor_memory.interfaces.http.access import caller_of
from supervisor_memory.interfaces.http.problems import Unauthenticated, status_of
from supervisor_memory.memory import SupervisorMemory

LOGIN: Final = f"{BASE}/sign-in"
_ASSETS: Final = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
}
OPEN: Final = ("/", LOGIN, *(f"{BASE}/static/{name}" for name in _ASSETS))
"""The paths that need no token."""
_log = logging.getLogger("supervisor_memory.dashboard")
_READING: Final[dict[str, Handler]] = {
    "/inbox": inbox.inbox,
    "/inbox/together": together.together,
    "/turns": turn.turns,
    "/turn": turn.turn,
    "/timeline": timeline.timeline,
    "/relations": relations.relations,
    "/experience": experience.experience,
    "/records": browse.browse,
    "/records/{id}": record.show,
    "/records/{id}/delete": record.ask_delete,
    "/records/{id}/share": share.ask,
    "/users/forget": record.ask_forget,
    "/receipts/{id}": record.receipt,
    "/preview": preview.preview,
    "/figures": figures.figures,
    "/health": health.health,
}
_WRITING: Final[dict[str, Handler]] = {
    "/inbox/{id}/approve": inbox.approve,
    "/inbox/{id}/edit": inbox.edit,
    "/inbox/{id}/reject": inbox.reject,
    "/inbox/undo": inbox.undo,
    "/inbox/approve": inbox.approve_all,
    "/inbox/reject": inbox.reject_all,
    "/inbox/split": inbox.split,
    "/records/{id}/revert": record.revert,
    "/records/{id}/delete": record.delete,
    "/records/{id}/restore": record.restore,
    "/records/{id}/share": share.share,
    "/users/forget": record.forget,
    "/experience/{id}/withdraw": experience.withdraw,
}


def router() -> APIRouter:
    """The pages, over what the application's state holds: its `memory`, `tokens` and `shelf`."""
    routes = APIRouter()

    def add(method: str, path: str, handler: Handler, may: Callable[[Visit], None]) -> None:
        name = f"dashboard_{method.lower()}_{handler.__name__}"
        endpoint = _served(name, handler, may)
        routes.add_api_route(
            path, endpoint, methods=[method], name=name, response_model=None, include_in_schema=False
        )

    for path, handler in _READING.items():
        add("GET", BASE + path, handler, _reader)
    for path, handler in _WRITING.items():
        add("POST", BASE + path, handler, _writer)
    add("GET", LOGIN, door.ask, _anybody)
    add("POST", LOGIN, door.sign_in, _anybody)
    add("POST", f"{BASE}/sign-out", door.sign_out, _by_form)
    add("GET", "/", door.home, _anybody)
    add("GET", BASE, door.home, _anybody)
    routes.add_api_route(
        f"{BASE}/static/{{name}}",
        _static,
        name="dashboard_static",
        response_model=None,
        include_in_schema=False,
    )
    add("GET", f"{BASE}/", door.home, _anybody)
    add("GET", f"{BASE}/{{path:path}}", _no_page, _reader)
    add("POST", f"{BASE}/{{path:path}}", _no_page, _reader)
    return routes


def _served(name: str, handler: Handler, may: Callable[[Visit], None]) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        try:
            asker = None if may is _anybody else caller_of(request)
        except Unauthenticated:
            root = str(request.scope.get("root_path", ""))
            return RedirectResponse(root + LOGIN, 303, dict(HEADERS))
        memory: SupervisorMemory = request.app.state.memory
        theirs = memory if asker is None else memory.read_by(asker.name)
        visit = Visit(theirs, request, request.app.state.shelf, asker)
        try:
            form = await form_of(request) if request.method == "POST" else {}
            visit = replace(visit, form=form)
            may(visit)
            return await run_in_threadpool(handler, visit)
        except SupervisorMemoryError as error:
            return await run_in_threadpool(_went_wrong, visit, error)

    answer.__name__ = name  # what the log of requests calls it
    return answer


def _anybody(visit: Visit) -> None:
    """No token is needed."""


def _reader(visit: Visit) -> None:
    """Any token will do; whose memory it is for, the pages ask themselves."""


def _by_form(visit: Visit) -> None:
    """Refuse what was not sent by a form of ours; raises FormIsOld."""
    told = visit.form.get("word", "")
    if not hmac.compare_digest(
        told.encode("utf-8", "surrogatepass"), visit.shelf.form_word(visit.asker).encode()
    ):
        raise FormIsOld("the form has no word of this process")


def _writer(visit: Visit) -> None:
    """Refuse who may read alone, and what was not sent by a form of ours."""
    _by_form(visit)
    if not visit.asker.may_write:
        raise MemoryAccessDenied("this token may read alone; ask with one that may write")


def _went_wrong(visit: Visit, error: SupervisorMemoryError) -> Response:
    status = status_of(error)
    if status >= 500:  # noqa: PLR2004
        _log.warning("%s", type(error).__name__)
    told = visit.say("error-form-old") if isinstance(error, FormIsOld) else visit.say(f"error.{status}")
    return visit.page("error.html", status=status, told=told, detail=str(error))


def _no_page(visit: Visit) -> Response:
    return visit.page("error.html", status=404, told=visit.say("error-no-page"), detail="")


async def _static(name: str) -> Response:
    if name not in _ASSETS:
        return Response("not found", 404, dict(HEADERS), "text/plain")
    content, _ = asset(name)
    headers = {**HEADERS, "Cache-Control": "public, max-age=86400"}
    return Response(content, 200, headers, _ASSETS[name])
