"""Signing in and out: the token is entered once, and kept in a cookie that no script can read."""

from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.interfaces.http.access import COOKIE, Tokens

_LONGEST: Final = 256


def home(visit: Visit) -> Response:
    return visit.go("/inbox")


def ask(visit: Visit) -> Response:
    return visit.page("sign_in.html", wrong=False)


def sign_in(visit: Visit) -> Response:
    tokens: Tokens = visit.request.app.state.tokens
    token = visit.form.get("token", "").strip()
    if len(token) > _LONGEST or tokens.caller(token) is None:
        return visit.page("sign_in.html", status=401, wrong=True)
    answer = visit.go("/inbox")
    secure = visit.request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, path=visit.root, httponly=True, samesite="strict", secure=secure)
    return answer


def sign_out(visit: Visit) -> Response:
    answer = visit.go("/sign-in", said="sign-out")
    answer.delete_cookie(COOKIE, path=visit.root, httponly=True, samesite="strict")
    return answer
