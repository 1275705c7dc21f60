"""Whatever breaks underneath: the flows answer in time, degraded; direct verbs raise typed errors."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, DeadlineExceeded, SupervisorMemoryError
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case
from tests.faulty import FAULTS, LOST, FaultyBackend, FaultyEmbedder, faulty_model
from tests.opened import opened

ALICE = Scope("alice", session_id="s1")
SECONDS = 1.0
BOUND = SECONDS + 0.7
"""The deadline, what a log may take, and what a busy machine adds. What hangs takes three seconds."""
QUICK: dict[str, Any] = {
    "search_timeout_ms": 1_000,
    "write_timeout_ms": 1_000,
    "llm_timeout_ms": 1_000,
    "queue_llm_timeout_ms": 1_000,
    "embedding_model": "none",
}
LOUD = [fault for fault in FAULTS if fault not in ("answers None",)]


@pytest.fixture(params=["in_memory", "json", "sqlite", "qdrant"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyBackend]:
    """A real one of each kind, that can be made to fail."""
    with opened(request.param, tmp_path / "store") as behind:
        yield FaultyBackend(behind)


def memory_over(backend: MemoryBackend, **options: Any) -> SupervisorMemory:
    return SupervisorMemory(Settings(**QUICK), backend=backend, **options)


def outcomes(backend: FaultyBackend) -> list[tuple[str, str]]:
    backend.mend()
    time.sleep(0.05)
    return [(row.event["op"], row.event["outcome"]) for row in backend.audit.tail(99)]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.monotonic()
    return call(), time.monotonic() - began


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["search", "list", "batch"])
def test_recall_answers_in_time_whatever_the_store_does(
    backend: FaultyBackend, method: str, fault: str
) -> None:
    memory = memory_over(backend)
    memory.write("Always answer in tables", user_id="alice", kind="user-profile")
    backend.break_(method, fault)
    note, seconds = timed(lambda: memory.recall("what does GMV mean?", ALICE))
    assert seconds < BOUND
    if method == "batch":
        assert note
        assert not note.degraded
    else:
        assert note.degraded
        assert note.hits.degraded
        assert note.hits.notes
        assert not note.text
        assert ("recall", "degraded") in outcomes(backend)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["search", "list", "batch"])
def test_remember_answers_in_time_whatever_the_store_does(
    backend: FaultyBackend, method: str, fault: str
) -> None:
    memory = memory_over(backend)
    backend.break_(method, fault)
    results, seconds = timed(lambda: memory.remember("Always answer in tables. The moon is up.", ALICE))
    assert seconds < BOUND
    assert results
    assert not any(r.saved for r in results)
    assert all(r.reason for r in results)
    if method != "batch":
        assert ("remember", "degraded") in outcomes(backend)
        assert backend.contents() == []


def test_a_write_whose_answer_is_lost_is_there_once_however_often_it_is_said(backend: FaultyBackend) -> None:
    memory = memory_over(backend)
    backend.break_("batch", LOST)
    results = memory.remember("Always answer in tables.", ALICE)
    assert not any(result.saved for result in results)
    backend.mend()
    memory.remember("Always answer in tables.", ALICE)
    assert [r.content for r in backend.contents() if r.kind == "user-profile"] == ["Always answer in tables."]


@every_case("method", ["list", "search", "batch"])
def test_a_store_that_hangs_holds_up_no_other_memory(method: str) -> None:
    hanging, whole = FaultyBackend(), FaultyBackend()
    hanging.break_(method, "hangs")
    assert not any(result.saved for result in memory_over(hanging).remember("I prefer tables.", ALICE))
    assert any(result.saved for result in memory_over(whole).remember("I prefer tables.", ALICE))


DIRECT: dict[str, tuple[str, Callable[[SupervisorMemory, str], Any]]] = {
    "write": ("batch", lambda m, i: m.write("tea", user_id="alice")),
    "add": ("batch", lambda m, i: m.add("Always answer in lists.", user_id="alice")),
    "add_many": ("batch", lambda m, i: m.add_many(["tea", "milk"], user_id="alice")),
    "update": ("batch", lambda m, i: m.update(i, content="milk")),
    "delete": ("batch", lambda m, i: m.delete(i)),
    "delete_all": ("list", lambda m, i: m.delete_all(user_id="alice", confirm=True)),
    "count before delete_all": ("count", lambda m, i: m.delete_all(user_id="alice")),
    "search": ("search", lambda m, i: m.search("tea", user_id="alice")),
    "get": ("list", lambda m, i: m.get(i)),
    "get_all": ("list", lambda m, i: m.get_all(user_id="alice")),
    "history": ("versions", lambda m, i: m.history(i)),
    "summarize": ("list", lambda m, i: m.summarize([i])),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("fault", ["raises", "raises no Exception", "hangs"])
@pytest.mark.parametrize("verb", DIRECT)
def test_a_direct_verb_raises_a_typed_error_in_time(backend: FaultyBackend, verb: str, fault: str) -> None:
    memory = memory_over(backend)
    id_ = memory.write("Always answer in tables", user_id="alice").id
    before = backend.contents()
    method, call = DIRECT[verb]
    backend.break_(method, fault)
    began = time.monotonic()
    with pytest.raises((BackendError, DeadlineExceeded)) as raised:
        call(memory, id_)
    assert time.monotonic() - began < BOUND
    assert "on fire" not in str(raised.value)
    if fault != "hangs":
        assert str(raised.value.__cause__) in ("the disk is on fire", "misconfigured")
    assert backend.contents() == before


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "verb", ["write", "add", "add_many", "update", "delete", "search", "get_all", "delete_all"]
)
def test_garbage_from_the_store_is_a_typed_error(backend: FaultyBackend, verb: str) -> None:
    memory = memory_over(backend)
    id_ = memory.write("Always answer in tables", user_id="alice").id
    method, call = DIRECT[verb]
    backend.break_(method, "answers garbage")
    with pytest.raises(BackendError, match="answered str"):
        call(memory, id_)


EMBEDDER_FAULTS = [*FAULTS, "wrong dimension", "NaN", "zero"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", EMBEDDER_FAULTS)
def test_a_failing_embedder_leaves_words(backend: FaultyBackend, fault: str) -> None:
    memory = memory_over(backend, embedder=FaultyEmbedder(fault))
    result, seconds = timed(lambda: memory.write("GMV excludes refunds", user_id="alice"))
    assert result.saved
    assert seconds < BOUND
    hits, seconds = timed(lambda: memory.search("GMV refunds", user_id="alice"))
    assert seconds < BOUND
    assert hits.degraded
    assert hits.notes
    assert [hit.record.content for hit in hits] == ["GMV excludes refunds"]
    note, seconds = timed(lambda: memory.recall("what about GMV refunds?", ALICE))
    assert seconds < BOUND
    assert note.degraded
    assert "GMV excludes refunds" in note.text
    results, seconds = timed(lambda: memory.remember("Always answer in tables.", ALICE))
    assert seconds < BOUND
    assert all(r.saved for r in results)
    assert {
        ("write", "degraded"),
        ("search", "degraded"),
        ("recall", "degraded"),
        ("remember", "degraded"),
    } <= set(outcomes(backend))


@pytest.mark.parametrize("where", ["fingerprint", "calibration"])
@pytest.mark.parametrize("fault", ["raises", "raises no Exception", "hangs"])
def test_an_embedder_that_fails_while_loading_leaves_words(fault: str, where: str) -> None:
    memory = memory_over(FaultyBackend(), embedder=FaultyEmbedder(fault, where=where))
    result, seconds = timed(lambda: memory.write("GMV excludes refunds", user_id="alice"))
    assert result.saved
    assert seconds < BOUND
    hits, seconds = timed(lambda: memory.search("GMV refunds", user_id="alice"))
    assert len(hits) == 1
    assert hits.degraded
    assert seconds < BOUND
    note, seconds = timed(lambda: memory.recall("what about GMV refunds?", ALICE))
    assert "GMV" in note.text
    assert seconds < BOUND


def test_one_vector_too_many_leaves_words() -> None:
    memory = memory_over(FaultyBackend(), embedder=FaultyEmbedder("too many"))
    assert memory.write("GMV excludes refunds", user_id="alice").saved


def test_an_embedder_that_failed_is_not_asked_again_in_the_same_flow() -> None:
    embedder, alone = FaultyEmbedder("raises"), Settings(queue_worker=False)
    memory = SupervisorMemory(alone, backend=FaultyBackend(), embedder=embedder)
    memory.add(["Always answer in tables.", "GMV means total sales."], user_id="alice", session_id="s")
    assert embedder.calls == 1


def test_the_reason_in_the_audit_is_a_code() -> None:
    backend = FaultyBackend()
    memory = memory_over(backend, embedder=FaultyEmbedder("NaN"))
    memory.search("GMV", user_id="alice")
    (row,) = backend.audit.tail(9, op="search")
    assert row.event["reason"] == "embedder:BadVector"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", LOUD)
def test_a_failing_model_changes_nothing_but_the_audit(backend: FaultyBackend, fault: str) -> None:
    memory = memory_over(backend, llm=faulty_model(fault))
    results, seconds = timed(lambda: memory.remember("GMV means total sales. Later: the moon is up.", ALICE))
    assert seconds < BOUND
    assert all(r.saved for r in results)
    assert memory.flush(seconds=5)
    merged, seconds = timed(lambda: memory.write("GMV means total sales in euro", user_id="alice"))
    assert seconds < SECONDS + BOUND
    assert merged.saved
    added, seconds = timed(lambda: memory.add("Always answer in tables.", user_id="alice"))
    assert seconds < SECONDS + BOUND
    assert [r.status for r in added] == ["added"]
    text, seconds = timed(lambda: memory.summarize(["a 1", "b 2"], goal="a report"))
    assert seconds < SECONDS + BOUND
    assert text == ("garbage" if fault == "answers garbage" else "- a 1\n- b 2")
    assert {"degraded", "skipped"} & {outcome for _, outcome in outcomes(backend)}


def test_a_model_is_never_waited_for_in_a_turn() -> None:
    memory = memory_over(FaultyBackend(), llm=faulty_model("hangs"))
    memory.remember("delayed means more than 15 minutes late at arrival.", ALICE)
    _, seconds = timed(lambda: memory.remember("delayed means more than 15 minutes late, by the way.", ALICE))
    assert seconds < 0.25


def test_the_answer_of_a_slow_model_is_not_lost_to_the_stores_deadline() -> None:
    def slow(messages: Any) -> Any:
        time.sleep(0.4)
        return "nothing of use"

    settings = Settings(**{**QUICK, "llm_timeout_ms": 2_000})
    memory = SupervisorMemory(settings, backend=FaultyBackend(), llm=ScriptedModel(script=[slow] * 9))
    memory.write("delayed means more than 15 minutes", user_id="alice")
    assert memory.write("delayed means more than 15 minutes at arrival in March", user_id="alice").saved


def test_a_store_that_is_down_at_the_start_does_not_stop_the_program() -> None:
    class Down(FaultyBackend):
        def health(self) -> Any:
            raise ConnectionError("no route")

    assert memory_over(Down()).recall("what does GMV mean?", ALICE).hits is not None


def test_a_store_that_hangs_at_the_start_does_not_stop_the_program() -> None:
    class Hanging(FaultyBackend):
        def health(self) -> Any:
            time.sleep(9)

    _, seconds = timed(lambda: memory_over(Hanging()))
    assert seconds < 3


def test_after_the_store_recovers_everything_works_again() -> None:
    backend = FaultyBackend()
    memory = memory_over(backend)
    backend.break_("search", "hangs")
    for _ in range(3):
        assert memory.recall("GMV?", ALICE).degraded
    backend.mend()
    memory.write("GMV excludes refunds", user_id="alice")
    assert "refunds" in memory.recall("what about GMV refunds?", ALICE).text


@every_case("outcome", [Outcome(conclusion=object()), Outcome(side_effects=(object(), 5, None))])
def test_odd_things_an_agent_brings_do_not_break_remember(outcome: Outcome) -> None:
    memory = memory_over(FaultyBackend())
    assert isinstance(memory.remember((), Scope("alice", "analyst"), outcome=outcome), list)


def test_ctrl_c_is_not_swallowed() -> None:
    class Interrupted(FaultyBackend):
        def search(self, query: Any, *, limit: int) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory_over(Interrupted()).recall("what does GMV mean?", ALICE)


def test_an_access_log_that_fails_takes_no_answer_away(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FaultyBackend()
    memory = memory_over(backend)
    memory.write("GMV excludes refunds", user_id="alice")

    def fail(entries: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(backend.audit, "record_access", fail)
    assert memory.search("GMV refunds", user_id="alice")
    assert memory.recall("GMV refunds?", ALICE)
    assert memory.get_all(user_id="alice")


def test_errors_are_of_one_tree() -> None:
    assert issubclass(DeadlineExceeded, SupervisorMemoryError)
    assert issubclass(BackendError, SupervisorMemoryError)
