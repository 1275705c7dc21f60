"""Counts that are kept rise as things happen, and agree with what the logs tell when they are read."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory import RecordNotFound, Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import AuditEvent, new_id
from supervisor_memory.telemetry import Durations


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(backend="sqlite", path=tmp_path, embedding_model="none")) as held:
        yield held


def kept(memory: SupervisorMemory, name: str) -> dict[str, float]:
    return {agent: value for (agent, each), value in memory.backend.audit.kept().items() if each == name}


def test_what_is_written_is_counted_as_it_is_written(memory: SupervisorMemory) -> None:
    memory.write("Delays are counted in minutes.", user_id="ada")
    memory.write("Delays are counted in minutes.", user_id="ada")
    assert kept(memory, "writes") == {"": 2}
    assert kept(memory, "duplicates") == {"": 1}


def test_notes_are_counted_by_agent_and_searches_under_no_name(memory: SupervisorMemory) -> None:
    memory.write("Delays are counted in minutes.", user_id="ada")
    for agent in (None, "sql", "sql"):
        memory.recall([("user", "How are delays counted?")], Scope("ada", agent))
    memory.read_by("rita@example.com").search("delays", user_id="ada")
    assert kept(memory, "notes") == {"": 1, "sql": 2}
    assert kept(memory, "searches") == {"": 1}
    assert kept(memory, "tokens")["sql"] > 0
    assert "rita" not in memory.audit.counted()


def test_the_counts_agree_with_the_figures_of_the_logs(memory: SupervisorMemory) -> None:
    for number in range(5):
        memory.write(f"The hangar of town {number} is painted red.", user_id="ada")
        scope = Scope("ada", session_id=f"s{number}", run_id=f"r{number}")
        asked = [("user", f"Which colour has the hangar of town {number}?")]
        note = memory.recall(asked, scope)
        memory.remember([*asked, ("assistant", "It is painted red.")], scope, note=note)
    total = memory.audit.figures().total
    for name in ("writes", "duplicates", "notes", "hits", "tokens", "shown", "answers"):
        assert sum(kept(memory, name).values()) == getattr(total, name), name
    assert sum(kept(memory, "used").values()) == pytest.approx(total.used, abs=1e-3)


def test_counts_outlive_the_process_and_the_rows_that_were_capped(tmp_path: Path) -> None:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none")
    for _ in range(2):
        with SupervisorMemory(settings) as memory:
            memory.recall([("user", "How are delays counted?")], Scope("ada"))
    with SupervisorMemory(settings) as memory:
        memory.backend.audit.flush()
        assert kept(memory, "notes") == {"": 2}


def test_a_store_of_before_begins_to_count_when_it_is_opened(tmp_path: Path) -> None:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none")
    with SupervisorMemory(settings) as memory:
        memory.write("Delays are counted in minutes.", user_id="ada")
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("DROP TABLE tallies_by_day")
    with SupervisorMemory(settings) as memory:
        assert kept(memory, "writes") == {}
        memory.write("Gates are numbered.", user_id="ada")
        assert kept(memory, "writes") == {"": 1}


def test_each_day_has_its_own_counts_and_new_records_by_kind(memory: SupervisorMemory) -> None:
    log, event = memory.backend.audit, AuditEvent("add", "ada", record_id="r1", agent_id="sql")
    detail = {"kind": "task-traces", "layer": "abstract"}
    for day in (3, 3, 5):
        log.append([replace(event, id=new_id(), detail=detail)], at=86_400.0 * day + 1)
    every = log.kept_by_day(since=0.0)
    assert {key: amount for key, amount in every.items() if key[2].startswith("kept:")} == {
        (3, "sql", "kept:task-traces"): 2,
        (5, "sql", "kept:task-traces"): 1,
    }
    assert {day for day, _, _ in log.kept_by_day(since=86_400.0 * 4)} == {5}
    assert log.kept()["sql", "writes"] == 3  # of all days
    assert not any(name.startswith("kept:") for _, name in log.kept())  # nor in /metrics


def test_an_erased_user_leaves_numbers_alone(memory: SupervisorMemory) -> None:
    memory.write("Delays are counted in minutes.", user_id="zoe@example.com")
    memory.read_by("zoe@example.com").search("delays", user_id="zoe@example.com")
    memory.erase(user_id="zoe@example.com", confirm=True)
    assert not any("zoe" in agent for agent, _ in memory.backend.audit.kept())


def test_durations_are_counted_by_operation_and_outcome(memory: SupervisorMemory) -> None:
    memory.write("Delays are counted in minutes.", user_id="ada")
    with pytest.raises(RecordNotFound):
        memory.delete("nobody-has-this-id", user_id="ada")
    told = memory.audit.counted()
    assert 'duration_seconds_count{operation="upsert_memory",outcome="ok"} 1' in told
    assert 'duration_seconds_count{operation="delete_memory",outcome="error"} 1' in told
    assert 'operation="upsert_memory",outcome="ok",le="+Inf"} 1' in told


def test_a_bucket_holds_what_took_at_most_so_long() -> None:
    durations = Durations()
    durations.timed("write", lambda: None)
    [((operation, outcome), (counts, seconds))] = durations.snapshot().items()
    assert (operation, outcome, sum(counts)) == ("write", "ok", 1)
    assert 0 < seconds < 1
