"""A server is killed in the middle of a run, then the run is; both come back, nothing is lost or doubled.

As a program it is the run: a team that is told something in every turn, over the memory that the environment
means. It prints one line of JSON a turn, once the turn is over.

    MEMORY_BACKEND=qdrant QDRANT_URL=… python -m tests.test_qdrant_down FIRST LAST
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import BaseMessage

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Scope
from supervisor_memory.stores.protocol import Journals
from supervisor_memory.testing.scripted import ScriptedModel
from tests import programs
from tests.host.graphs import asking, config, team

if TYPE_CHECKING:
    from tests.stores.qdrant_process import QdrantProcess

ROOT = Path(__file__).parent.parent
USER = "ada"
SEARCH_SECONDS = 1.0
BUSY = 2.0
"""What a busy machine may add to a deadline."""
TURN_SECONDS = 3 * (SEARCH_SECONDS + BUSY) + 3 * (2.0 + BUSY)
"""Three notes, and what three nodes leave behind."""
SETTINGS = {
    "MEMORY_BACKEND": "qdrant",
    "MEMORY_PATH": "memory",
    "EMBEDDING_MODEL": "none",
    "MEMORY_SEARCH_TIMEOUT_MS": str(int(SEARCH_SECONDS * 1000)),
    "MEMORY_WRITE_TIMEOUT_MS": "2000",
}


def definition(number: int, meaning: int | None = None) -> str:
    return f"Zeta{number} means the tickets of queue {number if meaning is None else meaning}."


# --- the run


def answers_of(memory: SupervisorMemory | None, number: int) -> list[str]:
    """What the team says in a turn; without a memory, what it says by itself."""

    def boss(messages: list[BaseMessage]) -> Any:
        said = [message.text for message in messages if message.type == "human"]
        return f"I heard: {said[-1]}"

    builder = team(
        ScriptedModel(script=[boss] * 9),
        {"worker": ScriptedModel(script=["Queue counted."] * 9, label="w")},
    )
    graph = (builder if memory is None else memory.attach(builder)).compile()
    state = graph.invoke(asking(definition(number)), config(f"turn-{number}", user_id=USER))
    return [message.text for message in state["messages"]]


def degraded_rows(memory: SupervisorMemory, op: str) -> int:
    return sum(row.outcome == "degraded" for row in memory.backend.audit.tail(10_000, op=op))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.monotonic()
    return work(), time.monotonic() - begin


def turn(memory: SupervisorMemory, number: int) -> dict[str, Any]:
    """A turn of the graph, then a recall and a search; how they went."""
    rows = [degraded_rows(memory, op) for op in ("recall", "search")]
    said, turn_seconds = timed(lambda: answers_of(memory, number))
    rows_of_graph = degraded_rows(memory, "recall") - rows[0]
    note, recall_seconds = timed(
        lambda: memory.recall(f"What is Zeta{number}?", Scope(USER, session_id="look"))
    )
    hits = memory.search(f"Zeta{number}", user_id=USER)
    return {
        "turn": number,
        "answers the same": said == answers_of(None, number),
        "seconds": turn_seconds,
        "recall seconds": recall_seconds,
        "finds it": definition(number) in note.text
        and definition(number) in [h.record.content for h in hits],
        "degraded": [note.degraded, hits.degraded],
        "rows of the graph": rows_of_graph,
        "rows": [
            degraded_rows(memory, "recall") - rows[0] - rows_of_graph,
            degraded_rows(memory, "search") - rows[1],
        ],
    }


def run(first: int, last: int) -> None:
    memory = SupervisorMemory.from_env(env_file=None)
    for number in range(first, last):
        print(json.dumps(turn(memory, number)), flush=True)  # noqa: T201  # for the test
    assert isinstance(memory.backend, Journals)
    while any(memory.backend.backlog().values()):
        time.sleep(0.1)
    print(json.dumps({"waits": dict(memory.backend.backlog())}), flush=True)  # noqa: T201  # for the test
    memory.close()


# --- the test


class Run:
    """The program above in a process of its own."""

    def __init__(self, environment: dict[str, str], directory: Path, first: int, last: int) -> None:
        self._process = programs.start(
            *("-m", "tests.test_qdrant_down", str(first), str(last)),
            env=environment,
            cwd=directory,
            stdout=subprocess.PIPE,
        )

    def lines(self, most: int) -> list[dict[str, Any]]:
        """The next lines that it prints."""
        assert self._process.stdout is not None
        return [json.loads(line) for line in itertools.islice(self._process.stdout, most)]

    def kill(self) -> list[dict[str, Any]]:
        """As kill -9 does; what it had printed by then."""
        self._process.send_signal(signal.SIGKILL)
        left = self.lines(10_000)
        self._process.wait()
        return left

    def wait(self) -> int:
        return self._process.wait(timeout=240)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[QdrantProcess]:
    from tests.stores.qdrant_process import QdrantProcess  # which the program need not import

    with QdrantProcess(tmp_path / "server") as server:
        yield server


@pytest.fixture
def environment(server: QdrantProcess) -> dict[str, str]:
    return programs.environment(**SETTINGS, QDRANT_URL=server.url, PYTHONPATH=str(ROOT))


@contextmanager
def another_instance(server: QdrantProcess, directory: Path) -> Iterator[SupervisorMemory]:
    """One on another machine, as it were: with a journal of its own."""
    settings = Settings(
        backend="qdrant",
        path=directory / "elsewhere",
        qdrant_url=server.url,
        embedding_model="none",
    )
    with SupervisorMemory(settings) as memory:
        yield memory


def asked(environment: dict[str, str], directory: Path, *arguments: str, code: int) -> Any:
    done = programs.run(programs.COMMAND, *arguments, "--json", env=environment, cwd=directory, timeout=120)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def is_sound(told: dict[str, Any], *, degraded: bool) -> bool:
    """Whether a turn said what it had to, knew what was said, in time, and told of what was missing."""
    assert told["answers the same"], told
    assert told["finds it"], told
    assert told["degraded"] == [degraded, degraded], told
    assert told["rows"] == [int(degraded)] * 2, told
    assert bool(told["rows of the graph"]) is degraded, told
    assert told["recall seconds"] < SEARCH_SECONDS + BUSY, told
    assert told["seconds"] < TURN_SECONDS, told
    return True


@pytest.mark.slow
def test_a_server_and_a_run_are_killed_and_come_back_with_every_record_once(
    server: QdrantProcess, environment: dict[str, str], tmp_path: Path
) -> None:
    working = Run(environment, tmp_path, 0, 1000)
    before = working.lines(4)
    server.kill()
    meanwhile = working.lines(8)
    meanwhile += working.kill()
    assert all(is_sound(told, degraded=False) for told in before)
    # The server may have gone in the middle of the fifth turn.
    assert all(is_sound(told, degraded=True) for told in meanwhile[1:])
    acknowledged = 1 + meanwhile[-1]["turn"]

    assert "answer" in asked(environment, tmp_path, "doctor", code=1)["backend"]["message"]
    waiting = asked(environment, tmp_path, "backlog", code=0)["counts"]["waiting"]
    assert waiting >= acknowledged - 5
    down = Run(environment, tmp_path, acknowledged + 1, acknowledged + 2)
    assert all(is_sound(told, degraded=True) for told in down.lines(1))
    down.kill()

    server.start()
    with another_instance(server, tmp_path) as other:
        other.write(definition(6), user_id=USER)
        other.write(definition(7, meaning=70), user_id=USER)
    again = Run(environment, tmp_path, 0, 0)
    (told,) = again.lines(1)
    assert again.wait() == 0
    assert not any(told["waits"].values())
    assert asked(environment, tmp_path, "doctor", code=0)["ok"]

    said = {definition(number) for number in (*range(acknowledged), acknowledged + 1)}
    expected = said - {definition(7)} | {definition(7, meaning=70)}
    with another_instance(server, tmp_path) as other:
        found = Counter(r.content for r in other.get_all(user_id=USER) if r.content.startswith("Zeta"))
        assert expected <= found.keys() <= expected | {definition(acknowledged)}
        assert set(found.values()) == {1}
        rival = next(r for r in other.get_all(user_id=USER) if r.content == definition(7, meaning=70))
        everything = Filter(user_id=USER, statuses=None)
        set_aside = [r for r in other.backend.list(everything, limit=1000) if r.content == definition(7)]
        in_history = [version.content for version in other.history(rival.id)]
        assert set_aside or definition(7) in in_history
        messages = other.backend.list(Filter(user_id=USER, families=(SESSION_FAMILY,)), limit=1000)
        assert set(Counter((r.content, r.source.session_id) for r in messages).values()) == {1}


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
