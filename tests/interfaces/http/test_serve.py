"""The command `serve`, as a process that is asked over a socket."""

import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.settings import Settings
from tests import programs
from tests.interfaces.conftest import Run
from tests.interfaces.http.conftest import SETTING, TOKENS

SECONDS = 60.0


@dataclass
class Server:
    """A server that runs; `said` is what stands on its stderr so far."""

    process: programs.Program
    address: str
    said: list[str]

    def token(self) -> str:
        return next(
            found[1] for line in self.said if (found := re.search(r"token for everything is (\S+)", line))
        )


@contextmanager
def serving(*arguments: str, command: str = "serve", **environment: str) -> Iterator[Server]:
    """A server over a free port, and the end of it."""
    process = programs.start(
        programs.COMMAND,
        *(command, "--port", "0", *arguments),
        env={**os.environ, "MEMORY_BACKEND": "sqlite", "PYTHONUNBUFFERED": "1", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            if found := re.match(r"listening on (http://\S+)$", line):
                break
        else:
            raise AssertionError(said)
        stderr = process.stderr
        threading.Thread(
            target=lambda: said.extend(line.rstrip("\n") for line in stderr), daemon=True
        ).start()
        yield Server(process, found[1], said)
    finally:
        process.kill()
        process.wait(SECONDS)


class Generated:
    """A client made from an OpenAPI document: each operation is a call by its operationId."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        document = client.get("/openapi.json").raise_for_status().json()
        self._operations = {
            told["operationId"]: (method, path, told)
            for path, methods in document["paths"].items()
            for method, told in methods.items()
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method, path, told = self._operations[name]

        def call(**given: Any) -> Any:
            places = {each["name"]: each["in"] for each in told.get("parameters", ())}
            filled = re.sub(r"\{(\w+)\}", lambda found: quote(str(given.pop(found[1])), safe=""), path)
            query = {key: given.pop(key) for key in list(given) if places.get(key) == "query"}
            body = given if "requestBody" in told else None
            assert body is not None or not given, given
            answer = self._client.request(method, filled, params=query, json=body).raise_for_status()
            kind = answer.headers["content-type"].split(";")[0]
            assert kind in told["responses"]["200"]["content"] or kind == "text/plain"
            return answer.json() if kind == "application/json" else answer.text

        return call


def test_a_client_made_from_the_document_goes_through_a_session(tmp_path: Path) -> None:
    with (
        serving(MEMORY_PATH=str(tmp_path), MEMORY_SERVER_TOKENS=SETTING, MEMORY_REVIEW="all") as server,
        httpx.Client(
            base_url=server.address, headers={"Authorization": f"Bearer {TOKENS['ada']}"}, timeout=SECONDS
        ) as client,
    ):
        ask = Generated(client)
        (waits,) = ask.add(text="Ada drinks green tea.", metadata={"topic": "tea"})["results"]
        assert waits["status"] == "pending"
        (proposal,) = ask.list_proposals(limit=5)["proposals"]
        assert ask.approve(id=proposal["id"])["status"] == "added"
        (hit,) = ask.search(query="green tea", explain=True)["results"]
        assert (hit["id"], hit["memory"]) == (waits["id"], "Ada drinks green tea.")
        assert ask.update_memory(id=hit["id"], content="Ada drinks black tea.")["status"] == "updated"
        history = ask.history(id=hit["id"])["versions"]
        assert [each["content"] for each in history][-2:] == [
            "Ada drinks green tea.",
            "Ada drinks black tea.",
        ]
        assert history[-1]["actor"] == "ada"
        assert ask.undo(id=hit["id"], version=history[-2]["version"])["reason"] == "reverted"
        assert ask.get_memory(id=hit["id"])["content"] == "Ada drinks green tea."
        ops = {row["op"] for row in ask.list_audit(limit=50)["rows"]}
        assert {"approve", "update", "revert"} <= ops
        assert "Ada drinks black tea." in ask.export(user_id="ada")
        assert ask.holds(user_id="ada")["counts"]["records"] == 1
        assert ask.erase(user_id="ada")["erased_at"] is None
        assert ask.erase(user_id="ada", confirm=True)["counts"]["records"] == 1
        assert ask.list_memories()["records"] == []
        assert client.get("/v1/memories", params={"user_id": "bo"}).status_code == 403
        assert not any("drinks" in line for line in server.said)


def test_without_tokens_one_is_made_that_works_and_is_said_once(tmp_path: Path) -> None:
    with serving(MEMORY_PATH=str(tmp_path)) as first, serving(MEMORY_PATH=str(tmp_path)) as second:
        assert first.token() != second.token()
        for server, status in ((first, 200), (second, 401)):
            headers = {"Authorization": f"Bearer {first.token()}"}
            answer = httpx.get(f"{server.address}/v1/health", headers=headers, timeout=SECONDS)
            assert answer.status_code == status
        assert sum(first.token() in line for line in first.said) == 1
        assert "server" not in answer.headers


def test_told_to_end_it_ends_and_what_was_written_is_there(tmp_path: Path) -> None:
    with serving(MEMORY_PATH=str(tmp_path)) as server:
        headers = {"Authorization": f"Bearer {server.token()}"}
        body = {"text": "Tea is green.", "user_id": "ada"}
        httpx.post(
            f"{server.address}/v1/memories", headers=headers, json=body, timeout=SECONDS
        ).raise_for_status()
        for _ in range(3):
            asked = {"query": "tea", "user_id": "ada"}
            httpx.post(
                f"{server.address}/v1/search", headers=headers, json=asked, timeout=SECONDS
            ).raise_for_status()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SECONDS) == -signal.SIGTERM
        assert "Traceback" not in "\n".join(server.said)
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none")
    with SupervisorMemory(settings) as memory:
        assert [each.content for each in memory.get_all(user_id="ada")] == ["Tea is green."]
        assert [each.op for each in memory.backend.audit.accesses(10)].count("search") == 3


def test_lines_that_somebody_sends_forge_none_of_the_log(tmp_path: Path) -> None:
    nasty = b"GET /%0d%0aINFO%20forged%1b[2J HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    broken = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n"
    with serving(MEMORY_PATH=str(tmp_path)) as server:
        for raw in (nasty, broken, b"\x16\x03\x01\x00", b"GET / HTTP/9.9\r\n\r\n"):
            _sent(server.address, raw)
        before = time.monotonic()
        while len(server.said) < 3 and time.monotonic() < before + SECONDS:
            time.sleep(0.05)
        assert any("/\\r\\nINFO forged\\x1b[2J" in line or "INFO forged\\x1b" in line for line in server.said)
        assert not any(line.startswith("INFO forged") or "\x1b" in line for line in server.said)


def test_a_body_in_pieces_that_never_ends_is_cut_off_at_a_mebibyte(tmp_path: Path) -> None:
    with serving(MEMORY_PATH=str(tmp_path)) as server:
        head = (
            f"POST /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token()}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        answered = _sent(server.address, head.encode() + piece * 17)
        assert answered.startswith(b"HTTP/1.1 413 ")


def _sent(address: str, raw: bytes) -> bytes:
    url = httpx.URL(address)
    with socket.create_connection((url.host, url.port or 0), timeout=SECONDS) as connection:
        connection.sendall(raw)
        connection.settimeout(2)
        answered = b""
        try:
            while piece := connection.recv(65_536):
                answered += piece
        except (TimeoutError, ConnectionError):
            pass
    return answered


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_other_machines_are_not_served_without_tokens(
    run: Run, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    for text in (None, "", " , "):
        if text is not None:
            monkeypatch.setenv("MEMORY_SERVER_TOKENS", text)
        refused = run("serve", "--host", host, "--port", "0")
        assert refused.code == 1
        assert "can be reached from other machines, and MEMORY_SERVER_TOKENS is not set" in refused.stderr
    assert not Path(".supervisor_memory").exists()


def test_tokens_that_cannot_be_read_are_told_without_showing_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_SERVER_TOKENS", "ada:s3cr3t-of-ada:*")
    refused = run("serve", "--port", "0")
    assert (refused.code, "s3cr3t" in refused.stderr + refused.stdout) == (1, False)
    assert "MEMORY_SERVER_TOKENS: entry 1 has a token that is none" in refused.stderr


def test_a_port_that_is_taken_is_told_on_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run("serve", "--port", str(taken.getsockname()[1]))
    assert refused.code == 1
    assert refused.stderr.splitlines()[-1].startswith("error: ")


def test_with_tokens_it_serves_under_the_names_that_are_set(tmp_path: Path) -> None:
    settings = {"MEMORY_SERVER_TOKENS": SETTING, "MEMORY_SERVER_HOSTS": "memory.example.com"}
    with serving("--host", "0.0.0.0", MEMORY_PATH=str(tmp_path), **settings) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")

        def status(host: str) -> int:
            headers = {"Authorization": f"Bearer {TOKENS['ada']}", "Host": host}
            return httpx.get(f"{address}/v1/health", headers=headers, timeout=SECONDS).status_code

        assert (status("memory.example.com"), status("127.0.0.1"), status("0.0.0.0")) == (200, 200, 400)
        assert "MEMORY_SERVER_TOKENS is not set" not in "\n".join(server.said)
