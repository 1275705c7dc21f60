"""`afrom_env` opens a memory without a blocking call on the event loop: in async factories and lifespans."""

import asyncio
import builtins
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, SupervisorMemory

pytestmark = pytest.mark.xfail(strict=True, reason="there is no constructor for an event loop")

Memory: Any = SupervisorMemory
BLOCKING: list[tuple[Any, str]] = [
    (os, "getcwd"),
    (os, "stat"),
    (os, "mkdir"),
    (os, "open"),
    (os, "scandir"),
    (os, "listdir"),
    (os, "fsync"),
    (os, "replace"),
    (os, "access"),
    (io, "open"),
    (builtins, "open"),
    (time, "sleep"),
]
_IMPORTING = ("importlib", "zipimport", "linecache", "inspect")


def _is_an_import() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None:
        if any(name in frame.f_code.co_filename for name in _IMPORTING):
            return True
        frame = frame.f_back
    return False


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Calls that kept an event loop waiting, imports aside: what LangGraph's dev server refuses."""
    calls: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return function(*args, **options)
            if not _is_an_import():
                calls.append(name)
            return function(*args, **options)

        return call

    for where, name in BLOCKING:
        monkeypatch.setattr(where, name, watched(name, getattr(where, name)))
    yield calls
    monkeypatch.undo()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path / "memory"))
    monkeypatch.setenv("EMBEDDING_MODEL", "none")


@pytest.mark.parametrize("backend", ["in_memory", "json", "sqlite"])
async def test_opening_a_memory_blocks_no_event_loop(
    blocked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, backend: str
) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", backend)
    Path(".env").write_text("MEMORY_MAX_NOTES=3\n", "utf-8")
    blocked.clear()
    memory = await Memory.afrom_env()
    try:
        assert blocked == []
        assert memory.settings.max_notes == 3
        await memory.awrite("Use tables by default.", user_id="ada")
        assert "tables" in (await memory.arecall("how?", Scope("ada"))).text
        assert blocked == []
    finally:
        await asyncio.to_thread(memory.close)


async def test_it_takes_what_from_env_takes(tmp_path: Path) -> None:
    (tmp_path / "own.env").write_text("MEMORY_MAX_NOTES=4\n", "utf-8")
    memory = await Memory.afrom_env(tmp_path / "own.env", clock=lambda: 5.0)
    try:
        assert (memory.settings.max_notes, memory.services.clock()) == (4, 5.0)
    finally:
        await asyncio.to_thread(memory.close)
