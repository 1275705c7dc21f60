"""`supervisor-memory serve`: one process, one memory, one address."""

import ipaddress
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Never

import uvicorn
from starlette.types import ASGIApp

from supervisor_memory.errors import SettingsError
from supervisor_memory.interfaces.cli.options import say
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from supervisor_memory.interfaces.http.connections import BACKLOG, IDLE_SECONDS, Connection
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.settings import Settings

_GRACE_SECONDS: Final = 10
_MOST_CONNECTIONS: Final = 500


def serve(settings: Settings, *, host: str, port: int) -> None:
    """Answer until the process is told to end (SIGINT, SIGTERM).

    Args:
        host: An address of this machine; anything but loopback needs MEMORY_SERVER_TOKENS.
        port: 0: a free one.

    Raises:
        SettingsError: MEMORY_SERVER_TOKENS cannot be read, or is missing where it is needed.
        OSError: the address is in use, or not this machine's.
        BackendError: the store cannot be opened.
    """
    tokens = tokens_of(settings, host)
    with closed_by_sigterm(), listening_on(host, port) as listening, SupervisorMemory(settings) as memory:
        hosts = hosts_of(settings, host)
        run(create_app(memory, tokens=tokens, hosts=hosts, rate=settings.server_rate), listening)


class _Terminated(SystemExit):
    """SIGTERM came."""


@contextmanager
def closed_by_sigterm() -> Iterator[None]:
    """On SIGTERM leave the block in order, and then end the process by that signal."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is told of signals
        return

    def leave(number: int, _frame: FrameType | None) -> Never:
        signal.signal(number, signal.SIG_IGN)  # said once is enough: what is being closed is closed
        raise _Terminated(128 + number)

    earlier = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, earlier)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def listening_on(host: str, port: int) -> socket.socket:
    """A socket that listens at a host and port."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def hosts_of(settings: Settings, host: str) -> list[str]:
    """The allowed host names besides loopback: those in the settings, and the listening address."""
    return [*settings.server_hosts.replace(",", " ").split(), *_names(host)]


def run(app: ASGIApp, listening: socket.socket, *, path: str = "") -> None:
    """Serve on a socket, and print its address."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if listening.family == socket.AF_INET6 else host
    say(f"listening on http://{shown}:{port}{path}")
    _log_to_stderr()
    config = uvicorn.Config(
        app,
        access_log=False,  # paths hold names of users; the guard logs routes
        log_config=None,
        server_header=False,
        proxy_headers=False,  # who asks is told by the token, and by nothing a client can write
        http=Connection,
        ws="none",
        backlog=BACKLOG,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=int(IDLE_SECONDS),
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listening])


def tokens_of(settings: Settings, host: str) -> Tokens:
    """The tokens in the settings, or a new one, printed once, if there are none."""
    if settings.server_tokens is not None:
        tokens = Tokens.read(settings.server_tokens.get_secret_value())
        if len(tokens):
            return tokens
    if not _is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines, and MEMORY_SERVER_TOKENS is not set; set it, or use "
            "--host 127.0.0.1"
        )
    token = secrets.token_urlsafe(32)
    say(f"MEMORY_SERVER_TOKENS is not set; until this process ends the token for everything is {token}")
    return Tokens.read(f"operator:{token}:*:write")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str) -> tuple[str, ...]:
    """The host names that follow from the address the server listens on; none for every address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (host,)
    if address.is_unspecified:
        return ()
    return (f"[{address}]" if address.version == 6 else str(address),)  # noqa: PLR2004


def _log_to_stderr() -> None:
    """Log requests and faults to stderr, a line each; of uvicorn only errors."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("supervisor_memory", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)
        log.propagate = False
