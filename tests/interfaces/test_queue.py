"""The commands for the queue, and what doctor says of it."""

from pathlib import Path

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.upkeep.queue.event import Event
from supervisor_memory.upkeep.queue.tables import TRIES, QueueFile
from tests.interfaces.conftest import NASTY, Run

PAGE = Path(__file__).parents[2] / "docs/cli.md"
SQL = "SELECT region FROM sales"


@pytest.fixture
def waiting(backend: str) -> Path:
    """A store whose queue holds an event of ada's that waits and one of bo's that is dead."""
    with SupervisorMemory.from_env():
        place = Settings.from_env().path
    file = QueueFile(place)
    file.add([Event(Scope("bo"), f"dead {NASTY}", tool="run_sql", created_at=1.0)])
    for _ in range(TRIES):
        batch = file.lease("bo", now=2.0)
        assert batch is not None
        file.give_back(batch, "model:TimeoutError", is_its_own=True)
    file.add([Event(Scope("ada"), "north", tool="run_sql", effects=({"sql": SQL},), created_at=3.0)])
    file.close()
    return place


def keys(command: str) -> set[str]:
    line = next(
        row for row in PAGE.read_text("utf-8").split("<!-- keys -->")[1].splitlines() if command in row
    )
    return {part for part in line.split("`")[1::2] if part.islower() and part != command}


def test_what_waits_and_what_is_dead_is_listed(waiting: Path, run: Run) -> None:
    told = run("queue", "list", "--json")
    assert (told.code, told.json["counts"]) == (0, {"waiting": 1, "dead": 1})
    assert [event["text"] for event in told.json["events"]] == ["north"]
    assert set(told.json) == {"counts", "events"} <= keys("`queue list`")
    assert run("queue", "list", "--user", "bo", "--json").json["events"] == []
    dead = run("queue", "dead", "--json")
    assert dead.code == 1
    assert [(e["reason"], e["attempts"]) for e in dead.json["events"]] == [("model:TimeoutError", TRIES)]
    text = run("queue", "dead").stdout
    assert "model:TimeoutError" in text
    assert "\x9b" not in text
    assert "\u202e" not in text


def test_all_that_waits_is_read_now(waiting: Path, run: Run) -> None:
    told = run("queue", "flush", "--json")
    assert (told.code, told.stderr) == (0, "")
    assert told.json == {"read": 1, "in_time": True, "counts": {"waiting": 0, "dead": 1}}
    assert f"SQL: {SQL}" in run("list", "--user", "ada").stdout


def test_the_dead_wait_again(waiting: Path, run: Run) -> None:
    assert run("queue", "retry", "no-such-id", "--json").json == {"retried": 0}
    assert run("queue", "retry").stdout == "1 event waits again\n"
    assert run("queue", "dead").code == 0
    assert run("queue", "list", "--json").json["counts"] == {"waiting": 2, "dead": 0}


def test_doctor_tells_what_waits_for_how_long_and_what_is_dead(waiting: Path, run: Run) -> None:
    told = run("doctor", "--json")
    assert told.code == 0
    found = told.json["queue"]
    assert (found["waiting"], found["dead"]) == (1, 1)
    assert found["oldest_seconds"] > 86_400
    text = run("doctor").stdout
    assert "warning: 1 event could not be read (dead letters)" in " ".join(text.split())
    assert "warning: 1 event waits to be read, one for" in " ".join(text.split())
    assert str(waiting / "queue.db") in {file["path"] for file in told.json["files"]} or any(
        file["path"].endswith("queue.db") for file in told.json["files"]
    )


def test_looking_into_a_queue_that_is_not_there_makes_none(backend: str, run: Run, tmp_path: Path) -> None:
    assert run("queue", "list").stdout == "nothing waits\n"
    assert run("queue", "dead").code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("backend")
def test_a_damaged_queue_is_told_of_and_spoils_nothing_else(run: Run, tmp_path: Path) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.write("Use tables by default.", user_id="ada")
    (Settings.from_env().path / "queue.db").write_bytes(b"no database at all" * 99)
    told = run("doctor", "--json")
    assert told.code == 0
    assert any(line.startswith("queue: ") for line in told.json["warnings"])
    assert "tables" in run("list", "--user", "ada").stdout
    assert run("queue", "list").code == 1
