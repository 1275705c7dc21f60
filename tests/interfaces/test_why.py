"""`why` takes a whole id: what is only a part of one is not found."""

from pathlib import Path

import pytest

from supervisor_memory import Scope, SupervisorMemory
from tests.interfaces.conftest import Run

PARTS = pytest.mark.xfail(
    strict=True, reason="a part of an id, or of any word of the row, is taken for the id"
)


@pytest.fixture
def told(backend: str) -> dict[str, str]:
    """Ids in a store in which two users were told something."""
    with SupervisorMemory.from_env() as memory:
        record = memory.write("Use tables by default.", user_id="ada").id
        memory.write("Tables are made of oak.", user_id="bo")
        memory.recall("which tables?", Scope("ada", session_id="session-ada", run_id="run-ada"))
        memory.recall("which tables?", Scope("bo", session_id="session-bo", run_id="run-bo"))
        [note] = memory.backend.audit.notes(9, user_id="ada")
    return {"record": record, "note": note.id, "run": "run-ada"}


@pytest.mark.parametrize(
    "part",
    [*(pytest.param(part, marks=PARTS) for part in ("a", "x", "0", "-", "e", '"', ":")), "record", "%", "_"],
)
def test_one_letter_is_no_id(run: Run, told: dict[str, str], part: str) -> None:
    assert "nobody was told" in run("why", "--", part).stdout


@pytest.mark.parametrize("cut", [slice(0, 8), slice(1, None), slice(9, 23)], ids=["start", "end", "middle"])
@PARTS
def test_a_part_of_an_id_is_no_id(run: Run, told: dict[str, str], cut: slice) -> None:
    assert "nobody was told" in run("why", "--", told["record"][cut]).stdout


@pytest.mark.parametrize("what", ["record", "note", "run"])
def test_a_whole_id_is_found(run: Run, told: dict[str, str], what: str) -> None:
    [note] = run("why", told[what], "--json").json["notes"]
    assert note["id"] == told["note"]


def test_an_id_of_nothing_is_not_found(run: Run, told: dict[str, str], tmp_path: Path) -> None:
    assert "nobody was told" in run("why", "01a200fb-f670-7000-8000-000000000000").stdout
    assert run("why", "run-ad", "--json").json["notes"] == []
