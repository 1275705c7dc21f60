"""The template, served by `langgraph dev` from a copy of its folder."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

TEMPLATE = Path(__file__).parents[2] / "examples/langgraph_server"
TOKENS = {"ada": "token-of-ada-0123456789", "bo": "token-of-bo-0123456789"}
OPERATOR = "operator-0123456789abcdef"
_PATIENCE = 90.0


@dataclass(frozen=True)
class Server:
    """A server, its folder, and its log."""

    url: str
    folder: Path
    log: Path

    def client(self, user: str | None) -> LangGraphClient:
        """What a user's program holds; None: nobody has signed in."""
        headers = {} if user is None else {"authorization": f"Bearer {TOKENS[user]}"}
        return get_client(url=self.url, headers=headers, timeout=60)

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                if httpx.get(f"{self.url}/ok", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                pass  # it is not there yet
            time.sleep(0.2)
        raise TimeoutError(self.log.read_text("utf-8", "replace")[-4_000:])

    def memory(self, path: str) -> httpx.Response:
        """Ask memory's own API below /memory, as an operator."""
        headers = {"authorization": f"Bearer {OPERATOR}"}
        return httpx.get(f"{self.url}/memory{path}", headers=headers, timeout=30)


@contextmanager
def open_server(folder: Path, *, with_auth: bool = True) -> Iterator[Server]:
    """Serve a copy of the template in that folder."""
    shutil.copytree(TEMPLATE, folder)
    shutil.copy(folder / ".env.example", folder / ".env")
    if not with_auth:
        config = json.loads((folder / "langgraph.json").read_text("utf-8"))
        del config["auth"]
        (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder.with_name(f"{folder.name}.log")
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--port", str(port)]
    patient = {"MEMORY_SEARCH_TIMEOUT_MS": "20000", "MEMORY_WRITE_TIMEOUT_MS": "20000"}
    environment = {**os.environ, **patient, "EMBEDDING_MODEL": "none", "LANGSMITH_TRACING": "false"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        server = Server(f"http://127.0.0.1:{port}", folder, log)
        server.wait()
        yield server
    finally:
        os.killpg(process.pid, 15)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait(20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("served") / "template") as opened:
        yield opened
