"""What one turn brought is written once, however often it is told, and whatever became of it in between."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.model.records import Message
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Commit, Committed, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel

BOSS = Scope("ada", session_id="t1")
ANALYST = Scope("ada", "analyst", "t1")
PREFERENCE = "Always answer in tables."
CONCLUSION = "Late flights fell by 5 percent in March at Newark."
FILE = {"path": "out/late.csv", "rows": 12}
SAID = [Message("user", PREFERENCE, id="m1"), Message("assistant", "Noted.", id="a1")]
BROUGHT = Outcome(final_answer=CONCLUSION, side_effects=(FILE,))

Open = Callable[[Path], MemoryBackend]
BACKENDS: dict[str, Open] = {
    "in_memory": lambda path: InMemoryBackend(),
    "json": JsonBackend,
    "sqlite": SqliteBackend,
}


def opened(backend: MemoryBackend, **options: Any) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=FixedClock(), **options)


@pytest.fixture(params=BACKENDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(BACKENDS[request.param](tmp_path)) as memory:
        yield memory


def turn(memory: SupervisorMemory, turn_id: str | None = "m1", outcome: Outcome = BROUGHT) -> list[str]:
    done = memory.remember(SAID, BOSS, turn_id=turn_id)
    done += memory.remember((), ANALYST, outcome=outcome, turn_id=turn_id)
    assert all(result.saved for result in done)
    return [f"{result.status} {result.reason}".strip() for result in done]


def held(memory: SupervisorMemory) -> tuple[list[str], list[str], list[str]]:
    """The records, the session messages, and what the audit says."""
    rows = [row.event for row in memory.backend.audit.tail(999) if not row.op.startswith("commit.")]
    return (
        sorted(r.content for r in memory.get_all(user_id="ada")),
        sorted(r.content for r in memory.get_all(user_id="ada", families=["session_messages"])),
        sorted(f"{row['op']} {row['reason']}" for row in rows),
    )


def test_a_turn_that_runs_again_leaves_nothing_behind(memory: SupervisorMemory) -> None:
    assert turn(memory) == ["added", "added verbatim", "added verbatim", "added", "added"]
    once = held(memory)
    for _ in range(3):
        assert turn(memory) == ["skipped remembered-before"] * 3
    assert held(memory) == once


async def test_both_worlds_know_the_same_turn(memory: SupervisorMemory) -> None:
    memory.remember(SAID, BOSS, turn_id="m1")
    once = held(memory)
    await memory.aremember(SAID, BOSS, turn_id="m1")
    assert held(memory) == once


def test_a_model_that_gives_its_answer_another_id_says_nothing_new(memory: SupervisorMemory) -> None:
    memory.remember(SAID, BOSS, turn_id="m1")
    once = held(memory)
    memory.remember([SAID[0], Message("assistant", "Noted.", id="a2")], BOSS, turn_id="m1")
    assert held(memory) == once


def test_what_the_user_deleted_does_not_come_back(memory: SupervisorMemory) -> None:
    turn(memory)
    memory.delete_all(user_id="ada", confirm=True)
    assert turn(memory) == ["skipped remembered-before"] * 3
    assert held(memory)[:2] == ([], [])


def test_what_the_user_deleted_does_not_come_back_with_another_answer(memory: SupervisorMemory) -> None:
    (kept, *_) = memory.remember(SAID, BOSS, turn_id="m1")
    memory.delete(kept.id, user_id="ada")
    memory.remember([SAID[0], Message("assistant", "As you like.")], BOSS, turn_id="m1")
    assert held(memory)[0] == []
    assert held(memory)[1] == [PREFERENCE, "As you like.", "Noted."]


def test_what_the_user_changed_is_not_changed_back(memory: SupervisorMemory) -> None:
    (kept, *_) = memory.remember(SAID, BOSS, turn_id="m1")
    memory.update(kept.id, content="Always answer in lists.", user_id="ada")
    memory.remember(SAID, BOSS, turn_id="m1")
    assert held(memory)[0] == ["Always answer in lists."]


def test_what_was_superseded_since_is_not_put_back(memory: SupervisorMemory) -> None:
    def define(minutes: int) -> None:
        text = f"delayed means more than {minutes} minutes late"
        memory.remember([Message("user", text, id=f"m{minutes}")], BOSS, turn_id=f"m{minutes}")

    define(15)
    define(30)
    define(15)
    assert held(memory)[0] == ["delayed means more than 30 minutes late"]


def test_the_same_words_in_a_later_turn_are_another_statement(memory: SupervisorMemory) -> None:
    turn(memory)
    memory.delete_all(user_id="ada", confirm=True)
    again = [Message("user", PREFERENCE, id="m2")]
    assert memory.remember(again, BOSS, turn_id="m2")[0].status == "added"
    assert memory.remember((), ANALYST, outcome=BROUGHT, turn_id="m2")[0].status == "added"


def test_another_thread_user_or_agent_is_another_turn(memory: SupervisorMemory) -> None:
    turn(memory)
    for scope in (
        Scope("ada", "analyst", "t2"),
        Scope("bob", "analyst", "t1"),
        Scope("ada", "plotter", "t1"),
    ):
        done = memory.remember((), scope, outcome=BROUGHT, turn_id="m1")
        assert "remembered-before" not in {result.reason for result in done}


def test_what_a_second_run_brings_besides_is_kept(memory: SupervisorMemory) -> None:
    turn(memory)
    more = Outcome(final_answer=CONCLUSION, side_effects=(FILE, {"path": "out/early.csv"}))
    done = memory.remember((), ANALYST, outcome=more, turn_id="m1")
    assert [result.status for result in done] == ["skipped", "skipped", "added"]


def test_an_edited_message_says_something_new(memory: SupervisorMemory) -> None:
    turn(memory)
    memory.remember([Message("user", "Never use pie charts.", id="m1")], BOSS, turn_id="m1")
    records, messages, _ = held(memory)
    assert "Never use pie charts." in records
    assert "Never use pie charts." in messages


def test_messages_without_ids_are_known_by_their_place(memory: SupervisorMemory) -> None:
    said = [Message("user", "ok"), Message("user", "ok"), Message("user", PREFERENCE)]
    for _ in range(3):
        memory.remember(said, BOSS, turn_id="third")
    assert held(memory)[:2] == ([PREFERENCE], [PREFERENCE, "ok", "ok"])
    memory.remember(said[:1], BOSS, turn_id="fourth")
    assert held(memory)[1] == [PREFERENCE, "ok", "ok", "ok"]


def test_skips_are_audited_once(memory: SupervisorMemory) -> None:
    memory.remember("x" * 5_000_000, BOSS, turn_id="m0")
    memory.write(CONCLUSION, user_id="ada", agent_id="analyst", kind="task-traces")
    turn(memory)
    once = held(memory)
    assert {"skip content-too-large", "skip duplicate"} <= set(once[2])
    memory.remember("x" * 5_000_000, BOSS, turn_id="m0")
    turn(memory)
    assert held(memory) == once


def test_the_same_statement_in_two_spellings_is_decided_twice_and_written_once(
    memory: SupervisorMemory,
) -> None:
    twice = [Message("user", "Always answer in tables. always answer in TABLES!", id="m1")]
    first = memory.remember(twice, BOSS, turn_id="m1")
    assert [result.status for result in first][:2] == ["added", "skipped"]
    assert {r.reason for r in memory.remember(twice, BOSS, turn_id="m1")} == {"remembered-before"}


def test_a_long_list_of_statements_is_known_again_in_time(memory: SupervisorMemory) -> None:
    text = " ".join(f"Term{n} means more than {n} minutes late." for n in range(25))
    said = [Message("user", text, id="m1")]
    assert len(memory.remember(said, BOSS, turn_id="m1")) > 20
    once = held(memory)
    memory.remember(said, BOSS, turn_id="m1")
    assert held(memory) == once


def test_without_a_turn_everything_is_compared_as_before(memory: SupervisorMemory) -> None:
    turn(memory, None)
    memory.delete_all(user_id="ada", confirm=True)
    assert "added" in turn(memory, None)


@pytest.mark.parametrize("turn_id", ["", 7, "\ud800", "x" * 100_000])
def test_an_odd_turn_id_breaks_nothing(memory: SupervisorMemory, turn_id: Any) -> None:
    for _ in range(2):
        assert all(result.saved for result in memory.remember(SAID, BOSS, turn_id=turn_id))
    assert held(memory)[0] == [PREFERENCE]


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_two_processes_that_run_one_turn_write_it_once(kind: str, tmp_path: Path) -> None:
    memories = [opened(BACKENDS[kind](tmp_path)) for _ in range(2)]  # two handles, as two processes have
    started = threading.Barrier(8)

    def run(memory: SupervisorMemory) -> None:
        started.wait()
        turn(memory)

    threads = [threading.Thread(target=run, args=(memories[n % 2],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records, messages, audit = held(memories[0])
    assert records == sorted([CONCLUSION, "csv file: out/late.csv (12 rows)", PREFERENCE])
    assert messages == [PREFERENCE, "Noted."]
    assert len([row for row in audit if row.startswith("add")]) == 5
    for memory in memories:
        memory.close()


def test_what_was_not_written_is_written_by_the_next_run() -> None:
    class Failing(InMemoryBackend):
        is_down = True

        def batch(self, commit: Commit) -> Committed:
            if self.is_down:
                raise BackendUnavailable("down")
            return super().batch(commit)

    backend = Failing()
    memory = opened(backend)
    assert not any(result.saved for result in memory.remember(SAID, BOSS, turn_id="m1"))
    backend.is_down = False
    assert memory.remember(SAID, BOSS, turn_id="m1")[0].status == "added"


def test_a_turn_that_runs_again_is_not_sharpened_again() -> None:
    finds = '[{"content": "the depot is in Kiel", "kind": "domain-facts"}]'
    rephrases = '[{"content": "our depot: Kiel", "kind": "domain-facts"}]'
    model = ScriptedModel(script=[finds, rephrases])
    with opened(InMemoryBackend(), llm=model) as memory:
        said = [Message("user", "by the way, the depot is in Kiel", id="m1")]
        memory.remember(said, BOSS, turn_id="m1")
        memory.flush()
        (found,) = memory.get_all(user_id="ada")
        memory.delete(found.id)
        memory.remember([*said, Message("assistant", "Good to know.")], BOSS, turn_id="m1")
        memory.flush()
        assert memory.get_all(user_id="ada") == []
        assert len(model.calls) == 1
