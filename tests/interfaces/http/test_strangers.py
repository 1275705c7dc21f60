"""A server whose clients never finish what they begin, and one that is told to end, as processes."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.settings import Settings
from tests.interfaces.http.test_serve import SECONDS, Server, serving

MANY = 520
PATIENCE = 25.0
"""Seconds in which somebody else has to be answered. Nobody waits that long for the rest of a header."""


@contextmanager
def connected(address: str, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent so much and no more."""
    there = urlsplit(address)
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection((there.hostname, there.port or 80), timeout=10)
            held.append(connection)
            connection.sendall(sent)
        yield held
    finally:
        for connection in held:
            connection.close()


def answered(server: Server) -> bool:
    """Whether a client with a token is answered within a while."""
    headers = {"Authorization": f"Bearer {server.token()}"}
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            answer = httpx.get(f"{server.address}/v1/health", headers=headers, timeout=PATIENCE)
        except httpx.TransportError:
            time.sleep(0.5)
            continue
        if answer.status_code == 200:
            return True
        time.sleep(0.5)
    return False


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: a"],
    ids=["nothing", "half a header"],
)
def test_strangers_who_never_finish_a_request_lock_nobody_out(tmp_path: Path, sent: bytes) -> None:
    with serving(MEMORY_PATH=str(tmp_path)) as server:
        assert answered(server)
        with connected(server.address, MANY, sent):
            assert answered(server)


def test_strangers_who_never_finish_a_body_lock_nobody_out(tmp_path: Path) -> None:
    head = b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    sent = head + b"Content-Length: 900\r\n\r\n{"
    with serving(MEMORY_PATH=str(tmp_path)) as server, connected(server.address, MANY, sent):
        assert answered(server)


def test_who_is_slow_and_finishes_is_answered(tmp_path: Path) -> None:
    with serving(MEMORY_PATH=str(tmp_path)) as server:
        head = f"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token()}\r\n"
        with connected(server.address, 1, head.encode()) as [connection]:
            time.sleep(2)
            connection.sendall(b"Connection: close\r\n\r\n")
            assert b"200 OK" in connection.recv(4096)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_has_logged_who_read_what(tmp_path: Path, ending: signal.Signals) -> None:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none")
    with SupervisorMemory(settings) as memory:
        kept = memory.write("Tea is green.", user_id="ada").id
    with serving(MEMORY_PATH=str(tmp_path), EMBEDDING_MODEL="none") as server:
        headers = {"Authorization": f"Bearer {server.token()}"}
        for _ in range(3):
            body = {"query": "tea", "user_id": "ada"}
            found = httpx.post(f"{server.address}/v1/search", headers=headers, json=body, timeout=SECONDS)
            assert kept in found.raise_for_status().text
        server.process.send_signal(ending)
        try:
            server.process.wait(SECONDS)
        except subprocess.TimeoutExpired:  # pragma: no cover
            pytest.fail("the server did not end")
    with SupervisorMemory(settings) as memory:
        assert len(memory.backend.audit.accesses(9, record_id=kept, op="search")) == 3
