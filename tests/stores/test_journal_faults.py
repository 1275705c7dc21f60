"""Whatever breaks behind a journal: nothing that was said is lost, and every read that is poorer says so."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.audit.log import RelayedLog
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from tests.faulty import FAULTS, LOST, FaultyBackend

ALICE = Scope("alice", session_id="s1")
BOUND = 2.0
"""Seconds. The journal waits .2 s for its store, and a busy machine adds to it; what hangs takes 3."""
QUICK = Settings(embedding_model="none", search_timeout_ms=5_000, write_timeout_ms=5_000)
TABLES = "Always answer in tables."
EVERY = (*FAULTS, LOST)


@pytest.fixture
def store() -> FaultyBackend:
    return FaultyBackend(QdrantBackend(QdrantClient(":memory:"), audit=RelayedLog()))


@pytest.fixture
def journal(store: FaultyBackend, tmp_path: Path) -> Iterator[JournalBackend]:
    journal = JournalBackend(
        store, tmp_path, breaker=Breaker(seconds=0.05), read_seconds=0.2, write_seconds=0.2
    )
    assert isinstance(store.behind.audit, RelayedLog)
    store.behind.audit.relay_to(journal.audit)
    yield journal
    store.mend()
    journal.close()


@pytest.fixture
def memory(journal: JournalBackend) -> SupervisorMemory:
    return SupervisorMemory(QUICK, backend=journal)


def breaks(store: FaultyBackend, fault: str) -> None:
    for method in ("search", "list", "get", "count", "versions", "batch", "health"):
        store.break_(method, fault)


def degraded(memory: SupervisorMemory, op: str) -> int:
    return sum(row.outcome == "degraded" for row in memory.backend.audit.tail(999, op=op))


def drained(journal: JournalBackend) -> None:
    give_up = time.monotonic() + 30
    while any(journal.backlog().values()):
        assert time.monotonic() < give_up, journal.backlog()
        journal.replay()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fault", EVERY)
def test_a_turn_is_in_time_and_saved_and_says_that_it_is_degraded(
    store: FaultyBackend, journal: JournalBackend, memory: SupervisorMemory, fault: str
) -> None:
    breaks(store, fault)
    begin = time.monotonic()
    results = memory.remember(f"{TABLES} GMV means total sales.", ALICE)
    assert time.monotonic() - begin < BOUND
    assert results
    assert all(result.saved and not result.applied for result in results), results
    begin = time.monotonic()
    note = memory.recall("what does GMV mean?", ALICE)
    assert time.monotonic() - begin < BOUND
    assert TABLES in note.text
    assert "GMV means" in note.text
    assert (note.degraded, note.hits.degraded) == (True, True)
    assert degraded(memory, "recall") == 1
    hits = memory.search("GMV", user_id="alice")
    assert hits.degraded
    assert len(hits) == 1
    assert degraded(memory, "search") == 1
    assert degraded(memory, "commit.deferred") >= 1
    store.mend()
    drained(journal)
    kept = sorted(r.content for r in store.contents() if r.layer == "abstract")
    assert kept == [TABLES, "GMV means total sales."]
    assert not memory.recall("what does GMV mean?", ALICE).degraded


@pytest.mark.one_in(6)
@pytest.mark.parametrize("fault", EVERY)
@pytest.mark.parametrize("method", ["search", "list", "get", "batch"])
def test_a_method_that_breaks_alone_loses_nothing(
    store: FaultyBackend, journal: JournalBackend, memory: SupervisorMemory, method: str, fault: str
) -> None:
    memory.write("GMV means total sales.", user_id="alice")
    store.break_(method, fault)
    assert all(result.saved for result in memory.remember(TABLES, ALICE))
    note = memory.recall("what does GMV mean?", ALICE)
    assert note.degraded or TABLES in note.text
    store.mend()
    drained(journal)
    kept = sorted(r.content for r in store.contents() if r.layer == "abstract")
    assert kept == [TABLES, "GMV means total sales."]
