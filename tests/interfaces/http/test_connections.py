"""Strangers who open connections and say little keep nobody else from being answered."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from supervisor_memory.interfaces.http import connections
from supervisor_memory.interfaces.http.connections import MOST_WAITING, Connection
from tests.interfaces.http.test_serve import serving

HALF = b"POST /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Mine: "
SIGN_IN = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nto"
SECONDS = 30.0


@contextmanager
def held(address: str, how_many: int, *, saying: bytes) -> Iterator[list[socket.socket]]:
    """Connections on each of which that is said, and nothing more."""
    url = httpx.URL(address)
    with ExitStack() as stack:
        opened = []
        for _ in range(how_many):
            opened.append(stack.enter_context(socket.create_connection((url.host, url.port or 0), SECONDS)))
            opened[-1].sendall(saying)
        yield opened


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        pass
    return False


@pytest.fixture
def _many_files() -> Iterator[None]:
    """As many connections as these tests open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize(
    "saying",
    [
        pytest.param(b"", id="nothing", marks=pytest.mark.slow),
        pytest.param(HALF, id="half a head"),
        pytest.param(SIGN_IN, id="half a body", marks=pytest.mark.slow),
    ],
)
def test_others_are_answered_while_600_connections_say_half_of_what_they_want(
    tmp_path: Path, saying: bytes
) -> None:
    with (
        serving(MEMORY_PATH=str(tmp_path), MEMORY_SERVER_RATE="100000") as server,
        httpx.Client(base_url=server.address, timeout=SECONDS) as client,
        held(server.address, 600, saying=saying) as opened,
    ):
        for _ in range(5):
            assert client.get("/healthz").status_code == 200
            assert httpx.get(f"{server.address}/healthz", timeout=SECONDS).status_code == 200
        assert sum(is_open(each) for each in opened) <= MOST_WAITING
        assert not any("Traceback" in line for line in server.said)


async def _slow(scope: Scope, receive: Receive, send: Send) -> None:
    """It answers /slow after a second, refuses all else unread as the guard does."""
    import asyncio

    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    await PlainTextResponse("done", 200 if scope["path"] == "/slow" else 401)(scope, receive, send)


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """The address of an application behind our connections, in this process."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = uvicorn.Server(uvicorn.Config(app, http=Connection, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


REFUSED = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    "first", [b"GET / HT", REFUSED, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"], ids=["head", "body", "second"]
)
def test_a_connection_that_trickles_is_closed_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.5)
    with listening(_slow) as address, held(address, 1, saying=first) as [connection]:
        until = time.monotonic() + SECONDS
        while is_open(connection):
            assert time.monotonic() < until
            time.sleep(0.05)
            try:
                connection.sendall(b"x")
            except ConnectionError:
                break


def test_an_answer_that_takes_longer_than_a_connection_may_wait_is_not_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    with listening(_slow) as address, httpx.Client(timeout=SECONDS) as client:
        assert [client.get(f"{address}/slow").text for _ in range(2)] == ["done", "done"]


def test_one_connection_is_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 1)
    with listening(_slow) as address, httpx.Client(timeout=SECONDS) as client:
        assert [client.get(address).status_code for _ in range(50)] == [401] * 50
