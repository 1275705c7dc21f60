"""What reviewing leaves behind: a log that is whole, moves, outages and erasures that take it along."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.verify import verified
from supervisor_memory.errors import RecordNotFound
from tests.opened import IN_PROCESS, opened

RITA = "rita"
CANARY = "zebra-canary"


@pytest.fixture(params=IN_PROCESS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        yield SupervisorMemory(Settings(embedding_model="none"), backend=backend)


def proposed(memory: SupervisorMemory, text: str, **more: Any) -> str:
    options = {"user_id": "ada", "kind": "user-profile", "source_class": "tool", "run_id": "r1"}
    return memory.write(text, **options | more).id


def test_after_everything_a_reviewer_can_do_the_log_proves_every_record(memory: SupervisorMemory) -> None:
    desk = memory.review
    approved = proposed(memory, f"The user wants {CANARY} tables.")
    desk.approve(approved, reviewer=RITA)
    edited = proposed(memory, "The user has a heron as mascot.")
    desk.edit(edited, "The user keeps a heron.", reviewer=RITA)
    rejected = proposed(memory, "The user sings at night.")
    desk.reject(rejected, reviewer=RITA, reason=f"{CANARY} said so")
    desk.restore(rejected, reviewer=RITA)
    known = memory.write("The port of Kiel has nine quays.", user_id="ada", run_id="r2").id
    twice = proposed(memory, "The port of Kiel has nine quays.", family="user_profile", kind="identity")
    desk.approve(twice, reviewer=RITA)
    memory.update(known, content="The port of Kiel has ten quays.")
    memory.revert(known, version=1)
    desk.quarantine(user_id="ada", run_id="r1", reviewer=RITA)
    desk.release(user_id="ada", run_id="r1", reviewer=RITA)
    desk.roll_back(user_id="ada", run_id="r1", reviewer=RITA)
    found = verified(memory.backend.audit, memory.backend.get)
    assert (found.problems, found.records >= 5) == ([], True)
    rows = memory.backend.audit.tail(999)
    assert not [row for row in rows if CANARY.encode() in row.payload]
    actors = {row.op: row.event["actor"] for row in rows}
    for op in ("approve", "edit", "reject", "restore", "quarantine", "release", "roll-back"):
        assert actors[op] == RITA


def test_what_waits_moves_as_it_is(memory: SupervisorMemory, tmp_path: Path) -> None:
    id_ = proposed(memory, "The user wants tables.")
    file = io.BytesIO()
    memory.export(file)
    other = SupervisorMemory(Settings(embedding_model="none"))
    other.import_from(io.BytesIO(file.getvalue()))
    assert [each.id for each in other.review.pending()] == [id_]
    assert other.review.approve(id_, reviewer=RITA).status == "added"


def test_an_erased_user_has_nothing_that_waits(memory: SupervisorMemory) -> None:
    id_ = proposed(memory, f"The user wants {CANARY} tables.")
    memory.erase(user_id="ada", confirm=True)
    assert memory.review.pending() == []
    for verb in (memory.review.approve, memory.review.restore):
        with pytest.raises(RecordNotFound, match="there is no record"):
            verb(id_, reviewer=RITA)


def test_what_waits_survives_the_process(tmp_path: Path) -> None:
    for name in ("json", "sqlite"):
        directory = tmp_path / name
        with opened(name, directory) as backend:
            id_ = proposed(
                SupervisorMemory(Settings(embedding_model="none"), backend=backend), "The user sings."
            )
        with opened(name, directory) as backend:
            again = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
            assert again.review.approve(id_, reviewer=RITA).version == 2
