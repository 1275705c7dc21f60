"""The queue's promises, over a file and over memory: nothing is lost, nobody reads what another reads."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory.model.records import Scope
from supervisor_memory.upkeep.queue.event import Event, event_id
from supervisor_memory.upkeep.queue.tables import (
    BATCH,
    LEASE_SECONDS,
    QUEUE_FILE_NAME,
    TRIES,
    Batch,
    Gate,
    QueueFile,
)
from tests.faults.processes import ended, forked

NOW = 1_800_000_000.0
GATE = Gate(least=3, cooldown=300)
ADA = Scope("ada", "analyst", "s1")


@pytest.fixture(params=["file", "memory"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QueueFile]:
    opened = QueueFile(tmp_path if request.param == "file" else None)
    yield opened
    opened.close()


def events(count: int, *, scope: Scope = ADA, at: float = NOW, label: str = "rows") -> list[Event]:
    return [Event(scope, f"{label} {number}", tool="run_sql", created_at=at) for number in range(count)]


def texts(batch: Batch | None) -> list[str]:
    assert batch is not None
    return [event.text for event in batch.events]


def test_what_goes_in_comes_out_as_it_was_and_in_order(file: QueueFile) -> None:
    scope = Scope("ada", "分析", "s1", "r1", "t1")
    one = Event(scope, "销售额 🎉", effects=({"path": "a.csv", "rows": 3},), created_at=NOW, turn_id="m1")
    two = replace(one, id="second", text="more", source_class="agent", ref_id="r", message_id="m2")
    assert file.add([one, two]) == 2
    batch = file.lease("ada", now=NOW)
    assert batch is not None
    assert batch.events == (one, two)
    assert file.lease("ada", now=NOW) is None


def test_an_event_comes_once_whether_it_waits_is_read_or_was_read(file: QueueFile) -> None:
    (event,) = events(1)
    assert [file.add([event]) for _ in range(2)] == [1, 0]
    batch = file.lease("ada", now=NOW)
    assert batch is not None
    assert file.add([event]) == 0
    file.finish(batch, now=NOW)
    assert file.add([event]) == 0
    assert file.counts() == {"waiting": 0, "dead": 0}


def test_a_batch_is_of_one_user_and_one_task_and_not_too_large(file: QueueFile) -> None:
    file.add(events(BATCH + 2))
    file.add(events(2, scope=replace(ADA, task="audit"), label="audit"))
    file.add(events(1, scope=Scope("bo"), label="bo"))
    assert file.users() == ["ada", "bo"]
    sizes = []
    while (batch := file.lease("ada", now=NOW)) is not None:
        assert {(e.scope.user_id, e.scope.task) for e in batch.events} in (
            {("ada", None)},
            {("ada", "audit")},
        )
        sizes.append(len(batch.events))
    assert sizes == [BATCH, 2, 2]
    assert texts(file.lease("bo", now=NOW)) == ["bo 0"]


# --- gates


def test_too_few_events_pass_no_gate_and_are_kept(file: QueueFile) -> None:
    file.add(events(2))
    assert not file.may_pass("ada", GATE, now=NOW)
    assert file.lease("ada", now=NOW, gate=GATE) is None
    file.add(events(1, label="one more"))
    assert file.may_pass("ada", GATE, now=NOW)
    assert len(texts(file.lease("ada", now=NOW, gate=GATE))) == 3


def test_who_has_passed_passes_again_only_after_the_cooldown(file: QueueFile) -> None:
    file.add(events(3))
    assert file.lease("ada", now=NOW, gate=GATE)
    file.add(events(3, label="later"))
    assert file.lease("ada", now=NOW + 299, gate=GATE) is None
    assert not file.may_pass("ada", GATE, now=NOW + 299)
    file.add(events(3, scope=Scope("bo")))
    assert file.lease("bo", now=NOW + 299, gate=GATE), "another user's gate"
    assert texts(file.lease("ada", now=NOW + 300, gate=GATE))[0] in ("rows 0", "later 0")


def test_a_clock_that_went_back_shuts_no_gate_and_holds_no_lease(file: QueueFile) -> None:
    file.add(events(3))
    assert file.lease("ada", now=NOW + 10**7, gate=GATE)
    assert len(texts(file.lease("ada", now=NOW, gate=GATE))) == 3


def test_the_same_again_passes_no_gate_but_is_there_for_who_forces_it(file: QueueFile) -> None:
    file.add(events(3))
    first = file.lease("ada", now=NOW, gate=GATE)
    assert first is not None
    file.finish(first, now=NOW)
    file.add(events(3))
    assert file.lease("ada", now=NOW + 999, gate=GATE) is None
    assert len(texts(file.lease("ada", now=NOW + 999, gate=GATE, is_forced=True))) == 3


def test_who_forces_a_gate_shuts_it_for_others(file: QueueFile) -> None:
    file.add(events(1))
    assert file.lease("ada", now=NOW, gate=GATE, is_forced=True)
    file.add(events(3, label="later"))
    assert file.lease("ada", now=NOW + 1, gate=GATE) is None


def test_only_what_is_left_over_is_taken_before_a_time(file: QueueFile) -> None:
    file.add(events(1, at=NOW - 601, label="old"))
    file.add(events(1, label="new", scope=Scope("bo")))
    assert texts(file.lease("ada", now=NOW, gate=GATE, is_forced=True, before=NOW - 600)) == ["old 0"]
    assert file.lease("bo", now=NOW, gate=GATE, is_forced=True, before=NOW - 600) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_of_eight_processes_one_passes_the_gate(tmp_path: Path) -> None:
    with_events = QueueFile(tmp_path)
    with_events.add(events(8 * BATCH))
    with_events.close()
    reading, writing = os.pipe()

    def race() -> None:
        mine = QueueFile(tmp_path)
        os.read(reading, 1)  # all of them start at once
        passed = mine.lease("ada", now=NOW, gate=GATE)
        os._exit(7 if passed else 0)

    children = [forked(race) for _ in range(8)]
    os.write(writing, b"x" * 8)
    assert sorted(ended(child) for child in children) == [0] * 7 + [7]
    os.close(reading)
    os.close(writing)


# --- leases


def test_a_lease_that_ran_out_is_taken_over_and_its_first_worker_changes_nothing(file: QueueFile) -> None:
    file.add(events(3))
    first = file.lease("ada", now=NOW)
    assert first is not None
    assert file.lease("ada", now=NOW + LEASE_SECONDS - 1) is None
    second = file.lease("ada", now=NOW + LEASE_SECONDS + 1)
    assert second is not None
    assert (second.id, second.events) == (first.id, first.events)
    assert file.is_held(second)
    assert not file.is_held(first)
    assert not file.keep_reply(first, "[]")
    assert file.give_back(first, "late", is_its_own=True) == ()
    file.finish(first, now=NOW)
    assert file.counts() == {"waiting": 3, "dead": 0}
    file.finish(second, now=NOW)
    assert file.counts() == {"waiting": 0, "dead": 0}


def test_what_a_model_answered_is_kept_for_who_takes_over_and_needs_no_gate(file: QueueFile) -> None:
    file.add(events(3))
    first = file.lease("ada", now=NOW, gate=GATE)
    assert first is not None
    assert file.keep_reply(first, "[1]")
    file.add(events(1, label="new"))
    second = file.lease("ada", now=NOW + LEASE_SECONDS + 1, gate=GATE)
    assert second is not None
    assert second.reply == "[1]"
    assert second.events == first.events


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_lease_of_a_dead_process_ends_with_it(tmp_path: Path) -> None:
    file = QueueFile(tmp_path)
    file.add(events(3))
    assert ended(forked(lambda: os._exit(0 if QueueFile(tmp_path).lease("ada", now=NOW) else 1))) == 0
    assert len(texts(file.lease("ada", now=NOW))) == 3
    file.close()


# --- failures


def test_what_fails_three_times_is_dead_and_takes_no_others_along(file: QueueFile) -> None:
    """A bad event is tried alone in the end."""
    file.add([*events(4), Event(ADA, "poison", created_at=NOW), *events(4, label="good")])
    for _ in range(3):
        tried: set[int] = set()
        while (batch := file.lease("ada", now=NOW, tried=tried)) is not None:
            tried.update(each.seq for each in batch.waiting)
            if "poison" in texts(batch):
                file.give_back(batch, "poisoned", is_its_own=True)
            else:
                file.finish(batch, now=NOW)
    (dead,) = file.listed("dead")
    assert (dead.event.text, dead.attempts, dead.reason) == ("poison", TRIES, "poisoned")
    assert file.counts() == {"waiting": 0, "dead": 1}
    assert file.lease("ada", now=NOW) is None
    assert file.retry([dead.event.id]) == 1
    assert texts(file.lease("ada", now=NOW)) == ["poison"]


def test_a_store_that_is_down_kills_no_event_and_keeps_the_answer(file: QueueFile) -> None:
    file.add(events(2))
    for _ in range(5):
        batch = file.lease("ada", now=NOW)
        assert batch is not None
        file.keep_reply(batch, "[2]")
        assert file.give_back(batch, "BackendUnavailable", is_its_own=False) == ()
    again = file.lease("ada", now=NOW)
    assert again is not None
    assert again.reply == "[2]"


def test_what_failed_is_not_held_up_for_being_the_same(file: QueueFile) -> None:
    file.add(events(3))
    batch = file.lease("ada", now=NOW, gate=GATE)
    assert batch is not None
    file.give_back(batch, "model:TimeoutError", is_its_own=True)
    assert file.lease("ada", now=NOW + 299, gate=GATE) is None
    assert file.lease("ada", now=NOW + 300, gate=GATE)


# --- the end


def test_a_user_who_goes_takes_all_along_but_what_keeps_it_from_coming_back(file: QueueFile) -> None:
    mine, others = events(3), events(2, scope=Scope("bo"))
    file.add([*mine, *others])
    held = file.lease("ada", now=NOW, gate=GATE)
    assert held is not None
    assert file.count_of("ada") == 3
    assert file.forget("ada", at=NOW) == 3
    assert file.scrub() == ""
    assert file.is_clean()
    assert not file.is_held(held)
    file.finish(held, now=NOW)
    assert file.give_back(held, "x", is_its_own=True) == ()
    assert file.add(mine) == 0
    assert [each.event for each in file.listed("waiting")] == others
    assert file.add(events(1, label="new")) == 1


def test_no_byte_of_a_user_who_went_is_left_in_the_file(tmp_path: Path) -> None:
    file = QueueFile(tmp_path)
    for number in range(30):
        of_ada = replace(ADA, user_id="ada-zebra")
        file.add([Event(of_ada, f"zebra {number} " + "x" * 3_000, created_at=NOW)])
        file.add([Event(Scope("bo"), f"lion {number} " + "y" * 3_000, created_at=NOW)])
    read = file.lease("ada-zebra", now=NOW)
    assert read is not None
    file.keep_reply(read, "zebra reply")
    file.finish(read, now=NOW)
    file.forget("ada-zebra", at=NOW)
    assert file.scrub() == ""
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"zebra" not in held
    assert held.count(b"lion 29") == 1
    file.close()


def test_what_was_added_is_there_after_the_process_has_gone(tmp_path: Path) -> None:
    file = QueueFile(tmp_path)
    file.add(events(2))
    file.close()
    again = QueueFile(tmp_path)
    assert again.counts()["waiting"] == 2
    assert again.oldest() == NOW
    assert (tmp_path / QUEUE_FILE_NAME).stat().st_mode & 0o777 == 0o600
    again.close()


def test_an_id_is_the_same_for_the_same_in_the_same_place_alone() -> None:
    assert event_id(ADA, "call", "text") == event_id(replace(ADA, run_id="another"), "call", "text")
    others = [Scope("bo", "analyst", "s1"), replace(ADA, session_id="s2"), replace(ADA, agent_id="other")]
    assert event_id(ADA, "call") not in {event_id(scope, "call") for scope in others}
