"""The clock jumps back, far ahead, or stands still: scores and order stay, nothing expires early."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.verify import verified
from supervisor_memory.errors import InvalidContent
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import NOW, query, tea

DAY = 86_400.0
JUMPS = {
    "a day back": -DAY,
    "ten years ahead": 3_652 * DAY,
    "still": 0.0,
    "fifty years back": -50 * 365 * DAY,
}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[SupervisorMemory]:
    memory = SupervisorMemory(
        Settings(embedding_model="hashing"), backend=SqliteBackend(tmp_path, clock=clock), clock=clock
    )
    yield memory
    memory.close()


@pytest.mark.parametrize("jump", JUMPS)
def test_whatever_the_clock_does_scores_stay_in_bounds_and_records_are_found(
    memory: SupervisorMemory, clock: Clock, jump: str
) -> None:
    for number in range(5):
        memory.write(f"Depot {number} opens at {number} o'clock.", user_id="ada")
    clock.now += JUMPS[jump]
    memory.write("Depot 9 opens at 9 o'clock.", user_id="ada")
    first = memory.search("when does the depot open", user_id="ada", limit=9, threshold=0.0)
    assert len(first) == 6
    for hit in first:
        assert 0.0 <= hit.score <= 1.0
        assert all(0.0 <= hit.parts[name] <= 1.0 for name in ("relevance", "decay"))
    again = memory.search("when does the depot open", user_id="ada", limit=9, threshold=0.0)
    assert [hit.record.id for hit in again] == [hit.record.id for hit in first]


@pytest.mark.parametrize("jump", JUMPS)
def test_whatever_the_clock_does_changes_keep_their_order_and_the_log_its_chain(
    memory: SupervisorMemory, clock: Clock, jump: str
) -> None:
    written = memory.write("Depot 1 opens at 1 o'clock.", user_id="ada")
    for number in range(2, 6):
        clock.now += JUMPS[jump]
        memory.update(written.id, content=f"Depot 1 opens at {number} o'clock.", user_id="ada")
    history = memory.history(written.id)
    assert [record.version for record in history] == [1, 2, 3, 4, 5]
    assert history[-1].content == "Depot 1 opens at 5 o'clock."
    assert verified(memory.backend.audit, memory.backend.get).problems == []
    seqs = [row.seq for row in memory.backend.audit.tail(99)]
    assert seqs == sorted(seqs)


def test_a_clock_that_jumps_back_lets_nothing_expire_early_and_removes_nothing(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path)
    backend.write([tea("short tea", expires_at=NOW + DAY), tea("long tea")])
    seen = {}
    for now in (NOW, NOW - DAY, NOW - 9 * DAY, NOW + DAY - 1, NOW + 2 * DAY, NOW):
        hits = backend.search(replace(query("tea"), now=now), limit=9)
        seen[now] = sorted(hit.record.content for hit in hits)
    assert seen[NOW + 2 * DAY] == ["long tea"]
    assert all(found == ["long tea", "short tea"] for now, found in seen.items() if now < NOW + DAY)
    backend.close()


@pytest.mark.parametrize("time", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_no_number_is_refused(tmp_path: Path, time: float) -> None:
    backend = SqliteBackend(tmp_path)
    record = tea()
    for bad in (
        replace(record, created_at=time),
        replace(record, updated_at=time),
        replace(record, expires_at=time),
    ):
        with pytest.raises(InvalidContent, match="no number"):
            backend.write([bad])
    backend.close()


def test_records_of_one_moment_come_in_one_order_every_time(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path)
    texts = [" ".join(words) for words in itertools.permutations(("green", "black", "white"))]
    backend.write([tea(text) for text in texts])
    orders = {
        tuple(hit.record.id for hit in backend.search(query("green black white"), limit=9)) for _ in range(5)
    }
    assert len(orders) == 1
    backend.close()
