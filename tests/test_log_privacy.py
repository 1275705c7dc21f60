"""What a logger prints of us, extras included, is ids and counts: no text of anybody's, nobody's name."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.testing.clock import FixedClock
from tests.host.graphs import asking, config, model, open_memory, team

WORD = "quagga"
USER = "wilhelmina@example.com"
TEXTS = (WORD, USER, "wilhelmina")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none", forget="auto"), clock=FixedClock()) as memory:
        yield memory


def printed(log: pytest.LogCaptureFixture) -> list[str]:
    """Each record as a formatter prints it that prints all there is."""
    return [
        f"{each.getMessage()} {json.dumps(vars(each), default=repr, ensure_ascii=False)}"
        for each in log.records
        if each.name.startswith("supervisor_memory")
    ]


def assert_nobody_is_told_of(log: pytest.LogCaptureFixture) -> None:
    lines = printed(log)
    assert lines
    assert [line for line in lines if any(text in line.lower() for text in TEXTS)] == []


def test_a_recall_prints_neither_the_note_nor_the_user(
    memory: SupervisorMemory, log: pytest.LogCaptureFixture
) -> None:
    memory.write(f"Use {WORD} tables by default.", user_id=USER)
    assert WORD in memory.recall(f"which {WORD} tables?", Scope(USER, session_id=f"{USER} s1")).text
    assert any("recalled" in line for line in printed(log))
    assert_nobody_is_told_of(log)


def test_a_recall_still_says_how_many_records_by_which_ids(
    memory: SupervisorMemory, log: pytest.LogCaptureFixture
) -> None:
    kept = memory.write(f"Use {WORD} tables by default.", user_id=USER)
    memory.recall(f"which {WORD} tables?", Scope(USER))
    [line] = [line for line in printed(log) if "recalled" in line]
    assert "recalled 1 record" in line
    assert kept.id in line


def test_no_verb_prints_what_was_said_or_by_whom(
    memory: SupervisorMemory, log: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    scope = Scope(USER, session_id="s1", run_id="r1")
    kept = memory.write(f"The {WORD} is striped.", user_id=USER, metadata={"tags": [WORD]})
    memory.add(f"Always draw the {WORD}.", user_id=USER, session_id="s1")
    memory.add_many([f"the {WORD} is up"], user_id=USER)
    memory.update(kept.id, content=f"The {WORD} was striped.", user_id=USER)
    memory.search(f"what about the {WORD}?", user_id=USER, explain=True)
    memory.remember([("user", f"From now on use {WORD} units.")], scope)
    said = Outcome(final_answer=f"The {WORD} weighs 42 kilos.", side_effects=({"path": f"out/{WORD}.csv"},))
    memory.remember((), Scope(USER, "analyst", "s1", "r1"), outcome=said)
    memory.recall(f"the {WORD}?", Scope(USER, "analyst", "s1", "r1"))
    memory.preview(f"the {WORD}?", scope)
    memory.topics(user_id=USER)
    memory.export(tmp_path / "all.jsonl", user_id=USER)
    memory.delete(kept.id, user_id=USER)
    memory.forget(user_id=USER)
    memory.flush()
    memory.erase(user_id=USER, confirm=True)
    assert_nobody_is_told_of(log)


async def test_a_graph_prints_neither_in_either_world(log: pytest.LogCaptureFixture) -> None:
    for how in ("sync", "async"):
        with open_memory() as memory:
            memory.write(f"Revenue means {WORD} net of tax", user_id=USER)
            boss, worker = model("go", "done"), model(f"Revenue of {WORD} rose by 3 percent.")
            graph = memory.attach(team(boss, {"worker": worker})).compile()
            given: Any = (asking(), config(user_id=USER))
            if how == "async":
                await graph.ainvoke(*given)
            else:
                graph.invoke(*given)
            assert any(WORD in prompt for prompt in boss.prompts)
    assert_nobody_is_told_of(log)


def test_two_users_in_one_run_are_told_of_without_their_names(log: pytest.LogCaptureFixture) -> None:
    with open_memory() as memory:
        graph = memory.attach(team(model("done"), {})).compile()
        graph.invoke(asking(user_id="wilhelmina-state"), config(user_id=USER))
        denied = [row.event for row in memory.backend.audit.tail(9, op="identity")]
        assert denied
    assert_nobody_is_told_of(log)
