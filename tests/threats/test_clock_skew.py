"""Clocks that are wrong, jump or stand still: scores stay in [0, 1], and nothing expires early for good."""

import math
from datetime import datetime

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case

YEAR = 365 * 86_400.0


def memory_at(backend: MemoryBackend, clock: FixedClock) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=clock)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("years", [-50, -10, 0, 10, 1_000])
def test_a_record_of_another_time_is_found_with_a_score_in_bounds(backend: MemoryBackend, years: int) -> None:
    clock = FixedClock()
    memory = memory_at(backend, clock)
    memory.write("Ada drinks green tea.", user_id="ada", created_at=clock() + years * YEAR)
    memory.write("Ada drinks black tea in winter.", user_id="ada", kind="experience")
    hits = memory.search("green tea", user_id="ada", threshold=0)
    assert hits[0].record.content == "Ada drinks green tea."
    for hit in hits:
        assert 0 <= hit.score <= 1
        assert all(0 <= hit.parts[part] <= 1 for part in ("relevance", "decay", "source"))


@every_case("when", [math.nan, math.inf, -math.inf, 1e300, "2026-01-01", datetime.min])
def test_a_time_that_is_none_writes_nothing(backend: MemoryBackend, when: object) -> None:
    memory = memory_at(backend, FixedClock())
    with pytest.raises(InvalidContent):
        memory.write("Ada drinks tea.", user_id="ada", created_at=when)  # type: ignore[arg-type]  # on purpose
    assert memory.get_all(user_id="ada") == []


def test_a_clock_that_jumps_there_and_back_takes_no_record_away(backend: MemoryBackend) -> None:
    clock = FixedClock()
    memory = memory_at(backend, clock)
    memory.write("The tea is hot.", user_id="ada", kind="experience", metadata={"ttl": 3_600})
    assert memory.services.bridge.drain(seconds=30)  # what looks for expired records after a write
    for days, is_found in ((-1, True), (400, False), (-399, True)):
        clock.forward(days=days)
        assert len(memory.search("tea", user_id="ada", threshold=0)) == is_found
        assert len(memory.get_all(user_id="ada")) == is_found
    (record,) = memory.get_all(user_id="ada")
    assert memory.update(record.id, content="The tea is cold.").version == 2
    clock.forward(days=1)
    assert memory.get_all(user_id="ada") == []
    assert len(memory.search("tea", user_id="ada", threshold=0)) == 0


def test_what_is_said_under_a_clock_that_stands_still_keeps_its_order(backend: MemoryBackend) -> None:
    memory = memory_at(backend, FixedClock())
    for drink in ("tea", "coffee", "water"):
        memory.write(f"From now on I drink {drink}.", user_id="ada")
        memory.add("Use tables.", user_id="ada")
    rows = backend.audit.tail(99)
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    assert {hit.parts["decay"] for hit in memory.search("drink", user_id="ada", threshold=0)} == {1.0}
