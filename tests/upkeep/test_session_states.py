"""A session has one state: what it is called, when it was closed, and its digest."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.model.records import Record, Scope
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sessions import CLOSED_AT, NAME, UNTIL, states_of
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.upkeep.sessions import keep_state, state_of
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0
Change = Callable[[Record], Record | None]


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


def memory_over(backend: MemoryBackend, *, now: float = MONDAY) -> SupervisorMemory:
    settings = Settings(embedding_model="none", compact_over={"task-traces": 2}, capacity=1)
    return SupervisorMemory(settings, backend=backend, clock=FixedClock(now), embedder=HashingEmbedder())


def named(name: str) -> Change:
    def change(state: Record) -> Record | None:
        metadata = {**state.metadata, NAME: name}
        return None if metadata == state.metadata else replace(state, content=name, metadata=metadata)

    return change


def closed(state: Record) -> Record | None:
    if CLOSED_AT in state.metadata:
        return None
    return replace(state, metadata={**state.metadata, CLOSED_AT: MONDAY})


def digested(text: str) -> Change:
    return lambda state: replace(state, content=text, metadata={**state.metadata, UNTIL: MONDAY})


def kept(memory: SupervisorMemory, session: str, change: Change, *, task: str | None = None) -> Record | None:
    scope = Scope("ada", session_id=session, task=task)
    ports = lambda: memory.services.ports(5_000)  # noqa: E731
    return keep_state(scope, ports, change, reason="test", actor="operator")


def test_a_session_is_named_then_digested_then_closed_in_one_record(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    for change in (named("The trip"), digested("Ada wants a table by the window."), closed):
        assert kept(memory, "t1", change) is not None
    (state,) = backend.list(states_of("ada"), limit=9)
    assert dict(state.metadata) == {NAME: "The trip", UNTIL: MONDAY, CLOSED_AT: MONDAY}
    assert (state.content, state.version) == ("Ada wants a table by the window.", 3)
    assert memory.history(state.id, user_id="ada")[0].content == "The trip"
    assert kept(memory, "t1", closed) is None
    assert backend.list(states_of("ada", "t1"), limit=9) == backend.get([state.id])


def test_sessions_with_the_same_words_have_a_state_each(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    for session in ("t1", "t2"):
        for change in (named("Planning"), closed):
            kept(memory, session, change)
    states = {state.attribute: state for state in backend.list(states_of("ada"), limit=9)}
    assert {name: state.content for name, state in states.items()} == {
        "t1": "Planning",
        "t2": "Planning\n[t2]",
    }
    assert {state.metadata[NAME] for state in states.values()} == {"Planning"}


def test_a_digest_is_found_by_its_layer_and_not_among_ordinary_records(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    memory.write("Ada likes green tea", user_id="ada")
    kept(memory, "t1", digested("Ada asked for green tea and got it."))
    ordinary = memory.search("green tea", user_id="ada", threshold=0)
    (hit,) = memory.search("green tea", user_id="ada", threshold=0, layers=["summary"])
    assert [each.record.content for each in ordinary] == ["Ada likes green tea"]
    assert hit.record.content == "Ada asked for green tea and got it."
    assert [record.content for record in memory.get_all(user_id="ada")] == ["Ada likes green tea"]
    assert "got it" not in str(memory.topics(user_id="ada"))


def test_no_rule_of_forgetting_takes_a_state(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    for number in range(9):
        kept(memory, f"t{number}", digested(f"Digest number {number} of green tea."))
    later = memory_over(backend, now=MONDAY + 4_000 * DAY)
    assert not later.forget(user_id="ada").taken
    assert backend.count(states_of("ada")) == 9


def test_a_state_goes_with_the_records_of_its_user_and_comes_back_anew(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    kept(memory, "t1", named("The trip"))
    assert memory.delete_all(user_id="ada", confirm=True) == 1
    assert not backend.count(states_of("ada"))
    kept(memory, "t1", named("The trip"))
    assert backend.count(states_of("ada")) == 1


def test_the_state_of_a_task_is_not_seen_outside_it(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    kept(memory, "t1", named("Secret"), task="merger")
    view = memory.services.ports(5_000).read_store()
    assert state_of(Scope("ada", session_id="t1"), view) is None
    found = state_of(Scope("ada", session_id="t1", task="merger"), view)
    assert found is not None
    assert found.content == "Secret"
    assert not memory.search("Secret", user_id="ada", threshold=0, layers=["summary"])


def test_memories_that_close_and_name_a_session_at_once_lose_nothing(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as first, closing(SqliteBackend(tmp_path)) as second:
        memories = [memory_over(first), memory_over(second)]
        begin = threading.Barrier(8)

        def act(number: int) -> None:
            begin.wait()
            key = f"key-{number}"
            kept(memories[number % 2], "t1", lambda s: replace(s, metadata={**s.metadata, key: number}))

        threads = [threading.Thread(target=act, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        (state,) = first.list(states_of("ada"), limit=9)
        assert dict(state.metadata) == {f"key-{number}": number for number in range(8)}
        assert state.version == 8
