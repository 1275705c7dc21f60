"""Answers to errors: `{"error": {"code", "message"}}`, never a traceback."""

import re
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from supervisor_memory.errors import (
    AlreadyReviewed,
    ConfirmationRequired,
    Conflict,
    ContentTooLarge,
    DeadlineExceeded,
    IdentityError,
    InvalidContent,
    MemoryAccessDenied,
    RecordNotFound,
    SupervisorMemoryError,
    WasErased,
)
from supervisor_memory.interfaces.printable import one_line

_SECONDS: Final = 2
_OF_HTTP: Final = {400: "invalid-request", 404: "no-such-route", 405: "method-not-allowed", 413: "too-large"}


class Unauthenticated(MemoryAccessDenied):
    """No token came, or none that is known."""


class What(BaseModel):
    code: str = Field(description="What kind of thing is wrong, such as record-not-found.")
    message: str = Field(description="What happened, to what, and what to do; for people.")


class Problem(BaseModel):
    """The body of an answer to an error."""

    error: What


_TOLD: Final = {"$ref": "#/components/schemas/Problem"}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Problem, "description": told}
    for status, told in {
        400: "No request, or to another host.",
        401: "No token, or none that is known.",
        403: "The token is not for that, or a page of another origin asks.",
        404: "There is no such record of this user's.",
        409: "It was decided on already, or another record has the place.",
        413: "The body or the text is too large.",
        422: "Something in it cannot be.",
        429: "Too many requests; see Retry-After.",
        503: "The store failed, or was too late.",
    }.items()
}
PROBLEMS_OF_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": each["description"], "content": {"application/json": {"schema": _TOLD}}}
    for status, each in PROBLEMS.items()
}
"""For a route whose answer is no JSON, while what is wrong still is."""
_STATUS: Final[tuple[tuple[type[SupervisorMemoryError], int], ...]] = (
    (Unauthenticated, 401),
    (MemoryAccessDenied, 403),
    (RecordNotFound, 404),
    (AlreadyReviewed, 409),
    (ConfirmationRequired, 409),
    (Conflict, 409),
    (WasErased, 409),
    (ContentTooLarge, 413),
    (InvalidContent, 422),
    (IdentityError, 422),
    (SupervisorMemoryError, 503),  # the store, the embedder, the deadline: nothing the request could help
)


def status_of(error: SupervisorMemoryError) -> int:
    """The HTTP status of one of our errors."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def problem(status: int, code: str, message: str, *, retry_after: int | None = None) -> JSONResponse:
    """The answer to an error, on one line; `retry_after` in seconds."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if status == 401:  # noqa: PLR2004
        headers["WWW-Authenticate"] = "Bearer"
    told = Problem(error=What(code=code, message=one_line(message)))
    return JSONResponse(told.model_dump(), status_code=status, headers=headers)


def add_handlers(app: FastAPI) -> None:
    """Answer our own errors, and those of routing and validation, as problems."""

    @app.exception_handler(SupervisorMemoryError)
    def ours(_request: Request, error: SupervisorMemoryError) -> JSONResponse:
        status = status_of(error)
        late = isinstance(error, DeadlineExceeded)
        code = re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()  # such as record-not-found
        return problem(status, code, str(error), retry_after=_SECONDS if late else None)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        """Tell the place and kind of each error, without the value that was sent."""
        told = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return problem(422, "invalid-request", one_line("; ".join(told), most=1_000))

    @app.exception_handler(HTTPException)
    def of_http(_request: Request, error: HTTPException) -> JSONResponse:
        code = _OF_HTTP.get(error.status_code, "refused")
        answer = problem(error.status_code, code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer
