"""The audit desk over a real store: what it reads, proves and writes; and stores that are only looked at."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, BackendUnavailable, SettingsError
from supervisor_memory.model.records import Filter


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(backend="sqlite", path=tmp_path / "store", embedding_model="none")


@pytest.fixture
def memory(settings: Settings) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(settings) as opened:
        opened.write("The user likes tables in reports.", user_id="ada")
        opened.recall("How should the report look, with tables?", Scope("ada"))
        yield opened


def test_the_desk_tells_what_was_done_and_what_readers_were_given(memory: SupervisorMemory) -> None:
    desk = memory.audit
    assert [row.seq for row in desk.rows(limit=100)] == list(range(1, desk.count() + 1))
    assert desk.tail(1)[0].seq == desk.count()
    assert list(desk.users()) == ["ada"]
    [turn] = desk.turns(10, user_id="ada")
    assert list(turn.notes) == list(desk.notes(10))
    assert desk.figures(user_id="ada").total.notes == 1


def test_the_desk_proves_the_log_and_the_records_by_it(memory: SupervisorMemory) -> None:
    found = memory.audit.verify(deep=True)
    assert (found.rows, found.records, found.problems) == (memory.audit.count(), 1, [])
    assert memory.audit.verify_latest(1) == (1, True)
    assert memory.audit.verify_latest(None) == (memory.audit.count(), True)


def test_an_export_has_a_line_a_row_and_is_never_written_over(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    assert memory.audit.export(file) == memory.audit.count()
    lines = file.read_text().splitlines()
    assert {json.loads(line)["log_id"] for line in lines} == {memory.audit.log_id}
    with pytest.raises(SettingsError, match="is there already"):
        memory.audit.export(file)
    assert file.read_text().splitlines() == lines


def test_a_replay_shows_the_records_as_they_were(memory: SupervisorMemory) -> None:
    before = memory.audit.count()
    memory.delete_all(user_id="ada", confirm=True)
    assert [each.status for each in memory.audit.replay(until_row=before).records] == ["active"]
    assert memory.audit.replay().records == ()


def test_what_the_upkeep_desk_lists_and_counts_is_the_same(memory: SupervisorMemory) -> None:
    everything = Filter(user_id="ada")
    [record] = memory.upkeep.listed(everything, limit=10)
    assert memory.upkeep.count(everything) == 1
    assert list(memory.upkeep.records([record.id])) == [record]
    assert list(memory.upkeep.versions(record.id)) == [record]
    assert memory.upkeep.health().ok


def test_a_store_of_this_machine_has_no_journal(memory: SupervisorMemory) -> None:
    assert memory.upkeep.backlog() is None
    assert memory.upkeep.shared_store() is None
    with pytest.raises(BackendError, match="has no journal"):
        memory.upkeep.reconcile()


def test_looking_for_a_store_makes_none(settings: Settings) -> None:
    with pytest.raises(BackendUnavailable, match="there is no sqlite store"):
        SupervisorMemory.existing(settings)
    assert not settings.path.exists()


def test_a_store_that_exists_is_opened_and_keeps_its_records(
    memory: SupervisorMemory, settings: Settings
) -> None:
    with SupervisorMemory.existing(settings, embedder=False) as other:
        assert [each.content for each in other.get_all(user_id="ada")] == [
            "The user likes tables in reports."
        ]
