"""After an erasure nothing names the runs of the erased: whoever has traces by run id finds no row."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.audit.verify import verified
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from tests.host.graphs import asking, config, model, team

BACKENDS = {"json": JsonBackend, "sqlite": SqliteBackend}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    backend: Any = BACKENDS[request.param](tmp_path)
    yield backend
    backend.close()


def opened(backend: MemoryBackend) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=FixedClock())


def lived(memory: SupervisorMemory, user: str, runs: list[str]) -> None:
    """A life of a user: what is written, recalled, changed and removed in these runs."""
    for number, run in enumerate(runs):
        scope = Scope(user, session_id=f"s{number}", run_id=run)
        memory.remember([("user", f"From now on use {number} decimals.")], scope)
        said = Outcome(final_answer=f"Revenue of {user} rose by {number} percent.")
        memory.remember((), Scope(user, "analyst", f"s{number}", run), outcome=said)
        memory.recall("how many decimals?", scope)
        kept = memory.write(f"Fact {number} of {user}.", user_id=user, run_id=run).id
        memory.update(kept, content=f"Fact {number} of {user}, changed.", user_id=user)
        memory.delete(kept, user_id=user)


def traces(tmp_path: Path, memory: SupervisorMemory, words: list[str]) -> list[str]:
    """Which of the words stand in a row of the audit or, once all is closed, in any file."""
    rows = [row.payload for row in memory.backend.audit.tail(10**6)]
    memory.close()
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    return [word for word in words if any(word.encode() in each for each in (*rows, *files))]


def names() -> list[str]:
    return [str(uuid.uuid4()), "run-of-ada-7", "4711abcdef", f"{uuid.uuid4().hex}"]


def test_no_row_and_no_file_names_a_run_of_the_erased(tmp_path: Path, backend: MemoryBackend) -> None:
    runs = names()
    memory = opened(backend)
    lived(memory, "ada", runs)
    memory.erase(user_id="ada", confirm=True)
    assert traces(tmp_path, memory, runs) == []


def test_a_run_of_a_graph_is_named_nowhere_after_the_erasure(tmp_path: Path, backend: MemoryBackend) -> None:
    memory = opened(backend)
    run = uuid.uuid4()
    graph = memory.attach(
        team(model("go", "done"), {"worker": model("Revenue rose by 3 percent.")})
    ).compile()
    graph.invoke(asking("Always use two decimals."), {**config(user_id="ada"), "run_id": run})
    memory.erase(user_id="ada", confirm=True)
    assert traces(tmp_path, memory, [str(run), run.hex]) == []


def test_before_the_erasure_a_run_is_found_by_its_id(backend: MemoryBackend) -> None:
    memory = opened(backend)
    runs = names()
    lived(memory, "ada", runs)
    for run in runs:
        assert memory.backend.audit.notes(9, run_id=run)


def test_the_runs_of_others_are_found_after_it_and_the_chain_is_whole(backend: MemoryBackend) -> None:
    memory = opened(backend)
    lived(memory, "ada", names())
    others = names()
    lived(memory, "bo", others)
    memory.erase(user_id="ada", confirm=True)
    for run in others:
        assert memory.backend.audit.notes(9, run_id=run)
    assert verified(memory.backend.audit).faults == []
