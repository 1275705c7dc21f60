"""Clients of the real command, over stdio and over HTTP, and a store of two users."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from supervisor_memory import Scope, Settings, SupervisorMemory
from tests import programs

CODE = "from supervisor_memory.interfaces.cli.main import main; main()"
MARK = "zanzibar"
"""A word that only bo says."""
TOKENS = {name: f"token-of-{name}-0123456789" for name in ("ada", "reader", "both")}
SETTING = (
    f"ada:{TOKENS['ada']}:ada:write,reader:{TOKENS['reader']}:ada:read,both:{TOKENS['both']}:ada|bo:write"
)
SECONDS = 60.0


def environment(path: Path) -> dict[str, str]:
    own = {"MEMORY_BACKEND": "sqlite", "MEMORY_PATH": str(path), "EMBEDDING_MODEL": "hashing"}
    return {**os.environ, **own, "PYTHONUNBUFFERED": "1", "MEMORY_SERVER_TOKENS": SETTING}


@asynccontextmanager
async def over_stdio(path: Path, *arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of `supervisor-memory mcp` as a process of its own."""
    served = StdioServerParameters(
        command=sys.executable,
        args=["-c", CODE, "mcp", "--user", "ada", *arguments],
        env=environment(path),
        cwd=path,
    )
    async with Client(stdio_client(served), mode=mode) as client:
        yield client


@contextmanager
def served(path: Path, arguments: Sequence[str] = ()) -> Iterator[str]:
    """The address of `supervisor-memory mcp --http` on a free port."""
    process = programs.start(
        programs.COMMAND,
        *("mcp", "--http", "--port", "0", *arguments),
        env=environment(path),
        cwd=path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.match(r"listening on (http://\S+)$", line):
                break
        else:
            raise AssertionError(said)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1]
    finally:
        process.kill()
        process.wait(SECONDS)


@asynccontextmanager
async def over_http(address: str, token: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def opened(store: Path) -> Callable[[], SupervisorMemory]:
    """Opens the store, as the command line and a graph would."""
    settings = Settings(backend="sqlite", path=store, embedding_model="hashing")
    return lambda: SupervisorMemory(settings)


@pytest.fixture
def ids(opened: Callable[[], SupervisorMemory]) -> dict[str, str]:
    """The ids of bo's records, and of one record of ada's."""
    with opened() as memory:
        bo = Scope("bo", session_id="bos-session", run_id="bos-run")
        secret = memory.write(
            f"Bo met the {MARK} committee on Friday.", user_id="bo", session_id="bos-session"
        )
        memory.remember([("user", f"I prefer {MARK} coffee.")], bo)
        memory.recall([("user", f"What about the {MARK} committee?")], bo)
        [note] = memory.backend.audit.notes(1, user_id="bo")
        said = memory.session("bos-session", user_id="bo")
        own = memory.write("The hangar of Oslo is painted red.", user_id="ada", session_id="adas-session")
        return {
            "record": secret.id,
            "message": said[0].id,
            "note": note.id,
            "run": "bos-run",
            "session": "bos-session",
            "own": own.id,
        }
