"""Authenticates each request, and lets it in or refuses it, before any route sees it.

A request passes the `Guard` in this order: the Host it is addressed to, the Origin it comes from, its token,
how many there were, the size of its body. What is refused was never looked at.
"""

import asyncio
import hashlib
import hmac
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from supervisor_memory.errors import (
    IdentityError,
    InvalidContent,
    MemoryAccessDenied,
    SettingsError,
    raised_at,
)
from supervisor_memory.interfaces.http.problems import Unauthenticated, problem
from supervisor_memory.interfaces.printable import one_line
from supervisor_memory.model.records import check_name

COOKIE: Final = "supervisor_memory_token"
"""Where a browser keeps its token; it counts outside /v1 alone."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
MOST_BYTES: Final = 1024 * 1024
_BODY_SECONDS: Final = 30.0
_MOST_CLIENTS: Final = 10_000
_SHORTEST: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9_./@+\-]{1,64}\Z")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.~+/=\-]{16,256}\Z")
_PARTS: Final = 4
_SAFE: Final = ("GET", "HEAD")
_log = logging.getLogger("supervisor_memory.http")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller that a token stands for.

    Args:
        name: A login, which the audit log keeps beside what this caller decides.
        user_ids: Whose memory it may see; None: everybody's.
        may_write: Whether it may change anything.
    """

    name: str
    user_ids: frozenset[str] | None
    may_write: bool

    def user(self, user_id: str | None) -> str | None:
        """The user a request is about. None: the operator acts on any user's memory.

        Raises:
            MemoryAccessDenied: the user is none of this caller's, whether or not there is such a user.
            InvalidContent: nobody is named, and the caller has more users than one.
        """
        if user_id is not None:
            if self.user_ids is not None and user_id not in self.user_ids:
                raise MemoryAccessDenied("this token is not for that user; ask with one that is")
            return check_name(user_id, what="user id")
        if self.user_ids is None:
            return None
        if len(self.user_ids) == 1:
            return next(iter(self.user_ids))
        raise InvalidContent("this token is for several users; say whose memory is meant with user_id")

    def one_user(self, user_id: str | None) -> str:
        """As `user`, where there has to be one."""
        if (found := self.user(user_id)) is None:
            raise InvalidContent("say whose memory is meant with user_id")
        return found

    def as_operator(self) -> None:
        """Raise MemoryAccessDenied for a caller who is bound to users: the request concerns everybody's
        memory."""
        if self.user_ids is not None:
            raise MemoryAccessDenied("this concerns all users; ask with a token for all of them")


class Tokens:
    """Token → caller. The tokens themselves are not kept, only their digests."""

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self._callers = tuple((_digest(token), caller) for token, caller in callers.items())

    def __len__(self) -> int:
        return len(self._callers)

    @property
    def names(self) -> frozenset[str]:
        """The names of the callers, as the logs have them."""
        return frozenset(caller.name for _, caller in self._callers)

    @classmethod
    def read(cls, text: str) -> "Tokens":
        """Read MEMORY_SERVER_TOKENS: `name:token:users:rights`, with spaces or commas in between.

        `users` is `*` or user ids with `|` in between, percent-encoded where they hold one of `%:|,*` or a
        space. `rights` is `read` or `write`; read where it is missing.

        Raises:
            SettingsError: an entry is none, told by its number: what it says is secret.
        """
        callers: dict[str, Caller] = {}
        for number, entry in enumerate(text.replace(",", " ").split(), start=1):
            token, caller = _entry(entry, number)
            if token in callers or caller.name in (each.name for each in callers.values()):
                raise SettingsError(
                    f"MEMORY_SERVER_TOKENS: entry {number} has the name or the token of an earlier one"
                )
            callers[token] = caller
        return cls(callers)

    def are_of_use(self, user_id: str | None) -> bool:
        """Whether a token gives access to a user or, with None, to exactly one user."""
        mine = [caller.user_ids for _, caller in self._callers]
        if user_id is None:
            return any(ids is not None and len(ids) == 1 for ids in mine)
        return any(ids is None or user_id in ids for ids in mine)

    def caller(self, token: str) -> Caller | None:
        """The caller of a token; a wrong token takes as long as a right one."""
        asked, found = _digest(token), None
        for known, caller in self._callers:
            if hmac.compare_digest(known, asked):
                found = caller
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _entry(entry: str, number: int) -> tuple[str, Caller]:
    name, token, users, rights, *more = [*entry.split(":"), "", "", ""]
    if not rights:
        rights, more = "read", more[1:]
    where = f"MEMORY_SERVER_TOKENS: entry {number}"
    if "".join(more) or not users or rights not in ("read", "write"):
        raise SettingsError(f"{where} is not name:token:users:rights, as ada:TOKEN:user-1|user-2:write")
    if not _NAME.match(name):
        raise SettingsError(f"{where} has a name that is no login; use letters, digits and _./@+-")
    if not _TOKEN.match(token):
        raise SettingsError(
            f"{where} has a token that is none; use {_SHORTEST} to 256 letters, digits and _.~+/=-, such as "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` makes"
        )
    try:
        ids = (
            None
            if users == "*"
            else frozenset(
                check_name(unquote(each, errors="strict"), what="user id") for each in users.split("|")
            )
        )
    except (IdentityError, UnicodeError) as error:
        raise SettingsError(f"{where} names a user that cannot be one: {error}") from error
    return token, Caller(name, ids, rights == "write")


def caller_of(request: Request) -> Caller:
    """The caller of a request; raises Unauthenticated where there is none, on a path that is open to all."""
    found = request.scope.get("caller")
    if isinstance(found, Caller):
        return found
    raise Unauthenticated("send a token: `Authorization: Bearer …`")


def writer_of(request: Request) -> Caller:
    """The caller of a request; raises MemoryAccessDenied unless it may write."""
    caller = caller_of(request)
    if not caller.may_write:
        raise MemoryAccessDenied("this token may read alone; ask with one that may write")
    return caller


class Guard:
    """Lets a request in or refuses it, and logs the outcome of each request on one line.

    Args:
        hosts: Names it may be addressed to, besides loopback; without a port.
        open_paths: What anybody may ask for.
        login: Where a browser without a token is sent; None: nowhere. The folder it is in has pages: who asks
            for one of them is taken for a browser, whatever it accepts.
        rate: Requests a minute of one caller, or of one address without a token; they may come at once.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        hosts: Collection[str] = (),
        open_paths: Collection[str] = (),
        login: str | None = None,
        rate: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK, *hosts))
        self._open = frozenset(open_paths)
        self._login = login
        self._rate = _Rate(rate)
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, status = self._clock(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if (refusal := self._refusal(scope)) is None:
                await self._pass_on(scope, receive, answer)
            else:
                await refusal(scope, receive, answer)
        except Exception as error:  # noqa: BLE001  # a defect: its message may quote a user's text
            raised = error.__cause__ or error
            fault = f"{type(raised).__name__} at {raised_at(raised)}"
            _log.error("%s", fault)
            if status:
                raise RuntimeError(f"{fault}, in the middle of an answer") from None
            await problem(500, "internal", "this is a fault of the server; its log says where")(
                scope, receive, answer
            )
        finally:
            _log_request(scope, status, self._clock() - began)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _hostname(hosts[0]) not in self._hosts:
            return problem(
                400, "host-not-allowed", "this server goes by other names; see MEMORY_SERVER_HOSTS"
            )
        if not _is_own(headers, hosts[0], scope["method"]):
            return problem(403, "origin-not-allowed", "a page of another origin may not ask here")
        path = _path(scope)
        caller = scope["caller"] = self._caller(headers, scope)
        client = scope.get("client") or ("",)
        key = caller.name if caller else f" {client[0]}"
        if wait := self._rate.wait(key, self._clock()):
            return problem(429, "too-many-requests", "this is too fast; see Retry-After", retry_after=wait)
        if caller is None and path not in self._open:
            if self._login and scope["method"] == "GET" and self._is_browser(path, headers):
                return RedirectResponse(scope.get("root_path", "") + self._login, 303)
            return problem(401, "unauthenticated", "send a token: `Authorization: Bearer …`")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return problem(400, "invalid-request", "Content-Length is no number")
        return _too_large() if int(length[:_DIGITS]) > MOST_BYTES else None

    def _is_browser(self, path: str, headers: Headers) -> bool:
        pages = (self._login or "").rpartition("/")[0]
        return f"{path}/".startswith(f"{pages}/") or "text/html" in headers.get("accept", "")

    def _caller(self, headers: Headers, scope: Scope) -> Caller | None:
        """The caller by the bearer token or, outside /v1, by a cookie, if a change comes from our pages."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind:
            return self._tokens.caller(token.strip()) if kind.lower() == "bearer" else None
        if _path(scope).startswith("/v1/"):
            return None
        by_page = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
        if scope["method"] not in _SAFE and not by_page:
            return None
        return self._tokens.caller(kept) if (kept := _cookie(headers)) else None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, refuse one that is too large or too slow, and pass the request on."""
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > MOST_BYTES:
                        await _too_large()(scope, receive, send)
                        return
        except TimeoutError:
            await problem(408, "too-slow", "the body did not come in time")(scope, receive, send)
            return
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            if (message := whole) is None:
                return await receive()
            whole = None
            return message

        await self._app(scope, replay, send)


class _Rate:
    """A limit on requests a minute: a token bucket for each client."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, now: float) -> int:
        """Seconds until the client may send its next request; 0: this one is let in."""
        left, then = self._left.pop(key, (float(self._most), now))
        left = min(self._most, left + (now - then) * self._most / 60)
        self._left[key] = (max(left - 1, left if left < 1 else 0), now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0 if left >= 1 else math.ceil((1 - left) * 60 / self._most)


_DIGITS: Final = 20


def _too_large() -> Response:
    return problem(413, "too-large", f"the body is over {MOST_BYTES:,} bytes; send less at a time")


def _hostname(host: str) -> str:
    """The name in a Host header, without its port."""
    return re.sub(r":\d{1,5}\Z", "", host.lower())


def _path(scope: Scope) -> str:
    """The path of a request below the place at which this application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path


def _is_own(headers: Headers, host: str, method: str) -> bool:
    """Whether a request comes from no page of another origin; only browsers name an origin."""
    if "origin" in headers:
        [origin, *more] = headers.getlist("origin")
        try:
            return not more and urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return method in _SAFE and headers.get("sec-fetch-mode") == "navigate"  # a link on another page


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    """The name of the operation, for the log; a path may hold a user's name."""
    caller, endpoint = scope.get("caller"), scope.get("endpoint")
    begin = one_line("/".join(scope["path"].split("/")[:3]), most=80)
    name = caller.name if isinstance(caller, Caller) else "-"
    what = getattr(endpoint, "__name__", begin)
    _log.info("%s %s %s %d %.0f ms", name, one_line(scope["method"], most=20), what, status, seconds * 1000)
