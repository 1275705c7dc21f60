"""MEMORY_CAPACITY is kept by itself: no command is needed, each step is audited and can be undone."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import FixedClock
from tests.opened import IN_PROCESS, opened

CAPACITY = 5
TOWNS = (
    "Aachen",
    "Bergen",
    "Cork",
    "Delft",
    "Espoo",
    "Faro",
    "Ghent",
    "Haifa",
    "Izmir",
    "Jena",
    "Kiel",
    "Lund",
)
ENOUGH = (CAPACITY - 1, CAPACITY)
"""How many are left: a rule may take one more than it must, so as not to run after each write."""


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


@pytest.fixture
def one_backend() -> MemoryBackend:
    return InMemoryBackend()


def bounded(backend: MemoryBackend, **settings: Any) -> SupervisorMemory:
    given = {"capacity": CAPACITY, "embedding_model": "none", "keep_messages": False, **settings}
    return SupervisorMemory(Settings(**given), backend=backend, clock=FixedClock())


def conclude(memory: SupervisorMemory, *, user: str = "ada", minutes: float = 10) -> list[str]:
    """One conclusion for each town, minutes apart; their ids, oldest first."""
    ids: list[str] = []
    for turn, town in enumerate(TOWNS):
        memory.services.clock.now += 60 * minutes  # type: ignore[attr-defined]
        said = Outcome(final_answer=f"The office in {town} rents {turn * 7 + 11} desks.")
        ids += [each.id for each in memory.remember((), Scope(user, "analyst", f"s{turn}"), outcome=said)]
        memory.flush()
    return ids


def active(backend: MemoryBackend, user: str = "ada") -> int:
    return backend.count(Filter(user_id=user, statuses=("active",)))


def settled(memory: SupervisorMemory, backend: MemoryBackend) -> int:
    """How many are active once what runs in the background has had its time."""
    until = time.monotonic() + 1.5
    while active(backend) > CAPACITY and time.monotonic() < until:
        memory.flush()
        time.sleep(0.05)
    return active(backend)


def test_a_namespace_stays_within_its_capacity_without_a_command(backend: MemoryBackend) -> None:
    memory = bounded(backend)
    ids = conclude(memory)
    assert settled(memory, backend) in ENOUGH
    assert memory.get(ids[-1]).status == "active"


def test_it_stays_so_within_one_hour_of_many_turns(one_backend: MemoryBackend) -> None:
    memory = bounded(one_backend)
    conclude(memory, minutes=0.1)
    assert settled(memory, one_backend) <= CAPACITY + 1


def test_what_was_set_aside_is_in_the_audit_and_can_be_restored(backend: MemoryBackend) -> None:
    memory = bounded(backend)
    ids = conclude(memory)
    settled(memory, backend)
    gone = [each for each in ids if memory.get(each).status != "active"]
    rows = [row.event for row in backend.audit.tail(999, op="forget")]
    assert {row["record_id"] for row in rows} == set(gone)
    assert {row["reason"] for row in rows} == {"over-capacity"}
    assert len(TOWNS) - len(gone) in ENOUGH
    memory.review.restore(gone[0], reviewer="rita@example.com")
    assert memory.get(gone[0]).status == "active"
    assert TOWNS[ids.index(gone[0])] in memory.get(gone[0]).content


def test_what_is_worth_least_goes_and_wishes_stay(one_backend: MemoryBackend) -> None:
    memory = bounded(one_backend)
    wish = memory.write("Always answer in tables.", user_id="ada", kind="user-profile").id
    pinned = memory.write(
        "The lift is out of order.", user_id="ada", kind="task-traces", metadata={"pinned": True}
    ).id
    ids = conclude(memory)
    settled(memory, one_backend)
    assert {memory.get(each).status for each in (wish, pinned, ids[-1])} == {"active"}
    assert memory.get(ids[0]).status != "active"


def test_what_a_program_writes_is_bounded_too(one_backend: MemoryBackend) -> None:
    memory = bounded(one_backend)
    for turn, town in enumerate(TOWNS):
        memory.services.clock.now += 600  # type: ignore[attr-defined]
        text = f"The office in {town} rents {turn * 7 + 11} desks."
        memory.write(text, user_id="ada", kind="task-traces")
        memory.flush()
    assert settled(memory, one_backend) in ENOUGH


def test_each_user_has_a_capacity_of_their_own(one_backend: MemoryBackend) -> None:
    memory = bounded(one_backend)
    conclude(memory, user="bo")
    few = [
        memory.write(f"The yard in {town} has a crane.", user_id="ada", kind="task-traces").id
        for town in TOWNS[:3]
    ]
    conclude(memory, user="cy")
    assert {memory.get(each).status for each in few} == {"active"}
    assert active(one_backend, "ada") == 3


def test_who_forgets_by_hand_is_asked_first(backend: MemoryBackend) -> None:
    memory = bounded(backend, forget="manual")
    conclude(memory)
    memory.flush()
    assert active(backend) == len(TOWNS)
    assert memory.forget(user_id="ada").counts == {"over-capacity": len(TOWNS) - CAPACITY}
