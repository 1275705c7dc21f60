"""A store as a graph leaves it, and the command line over it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.cli.main import app
from tests import programs

Run = Callable[..., "Result"]
NASTY = "[red]tea[/red] \x9b31m \u202ereversed 绿茶"


class Result:
    """What a command printed and how it ended."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.env_names().values():
        monkeypatch.delenv(name, raising=False)
    for name, value in {**programs.UNHURRIED, "EMBEDDING_MODEL": "hashing"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    def invoke(*arguments: str) -> Result:
        done = CliRunner().invoke(app, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return invoke


@pytest.fixture(params=["sqlite", pytest.param("json", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a backend that keeps files, set in the environment.

    Every backend holds one contract (tests/stores), so one of them is enough each time.
    """
    monkeypatch.setenv("MEMORY_BACKEND", request.param)
    return str(request.param)


_filled: dict[str, tuple[Path, dict[str, str]]] = {}
"""Backend → files of a filled store, and its record ids."""


@pytest.fixture
def ids(backend: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Record ids in a store of two users, which is filled once and copied."""
    if backend not in _filled:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place := tmp_path_factory.mktemp(backend))
            _filled[backend] = place, _fill()
    place, written = _filled[backend]
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    return dict(written)


def _fill() -> dict[str, str]:
    with SupervisorMemory.from_env() as memory:
        written = {
            "table": memory.write("Use tables by default.", user_id="ada"),
            "delayed": memory.write("Delayed means arrival more than 15 minutes late.", user_id="ada"),
            "nasty": memory.write(NASTY, user_id="ada", kind="task-traces", family="task_traces"),
            "bo": memory.write("Bo drinks coffee.", user_id="bo"),
            "gone": memory.write("This was a mistake.", user_id="ada", kind="tool-effects"),
        }
        memory.update(written["bo"].id, content="Bo drinks black coffee.", user_id="bo")
        memory.delete(written["gone"].id, user_id="ada")
        memory.remember([("user", "Hello there.")], Scope("ada", session_id="s-1"))
    return {name: result.id for name, result in written.items()}
