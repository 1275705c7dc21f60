"""A team that remembers, from end to end, on each backend: its environment alone is another one.

What is said and asserted is one text for all of them. As a program it holds sessions in its own process, over
the memory that the environment means:

    MEMORY_BACKEND=sqlite MEMORY_PATH=… python -m tests.test_end_to_end NAME first second

`pytest tests/test_end_to_end.py -k as_the_environment_says` holds them over the memory of the shell.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import START
from langgraph_supervisor import create_handoff_tool

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import ConfirmationRequired, RecordNotFound
from supervisor_memory.testing.records import assert_chain
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests import programs
from tests.host.graphs import Graph, Team, config

ROOT = Path(__file__).parent.parent
PREFERENCE = "Always answer in tables."
FIFTEEN, THIRTY = (f"Delayed means arrival more than {minutes} minutes late." for minutes in (15, 30))
CONCLUSION = "In June 12 percent of the flights were delayed, because of two storms in the north."
FILE = "june_delays.csv"
SECRET = "The user's cat is called Pangur."


# --- the team


def team(memory: SupervisorMemory, boss: ScriptedModel, analyst: ScriptedModel) -> Any:
    """A supervisor with memory tools, an agent that concludes, and one that makes a file."""

    def report(state: Any) -> dict[str, Any]:
        return {
            "messages": [AIMessage("The report is written.", name="reporter")],
            "side_effects": [{"type": "csv", "path": FILE, "rows": 30}],
        }

    hand_over = [create_handoff_tool(agent_name=name) for name in ("analyst", "reporter")]
    leader = create_agent(boss, [*memory.tools(), *hand_over], name="supervisor")
    builder = Graph(Team)
    builder.add_node("supervisor", leader, destinations=("analyst", "reporter"))
    builder.add_node("analyst", create_agent(analyst, [], name="analyst"))
    builder.add_node("reporter", report)
    builder.add_edge(START, "supervisor")
    builder.add_edge("analyst", "supervisor")
    builder.add_edge("reporter", "supervisor")
    return memory.attach(builder).compile()


def said(graph: Any, text: str, *, user: str, thread: str) -> str:
    """The team's answer."""
    state = graph.invoke({"messages": [("user", text)]}, config(f"{thread}-{user}", user_id=user))
    return str(state["messages"][-1].text)


def speaking(*script: Any, label: str = "boss") -> ScriptedModel:
    return ScriptedModel(script=list(script), label=label)


def deleting_what_was_found(messages: list[BaseMessage]) -> AIMessage:
    """The first that memory_search has found is to be deleted."""
    return call_of("memory_delete", id=json.loads(str(messages[-1].text))[0]["id"])


# --- the sessions


def first(memory: SupervisorMemory, ada: str, eve: str) -> None:
    """A preference, a definition, a conclusion and a file are kept; of another user, something else."""
    boss = speaking(call_of("transfer_to_analyst"), call_of("transfer_to_reporter"), "12 percent.")
    analyst = speaking(CONCLUSION, label="analyst")
    asked = f"{PREFERENCE} {FIFTEEN} What share of the flights was delayed in June?"
    assert said(team(memory, boss, analyst), asked, user=ada, thread="first") == "12 percent."
    said(team(memory, speaking("Noted."), speaking()), f"Remember: {SECRET}", user=eve, thread="first")
    memory.write(SECRET, user_id=eve)

    kept = {record.content: record for record in memory.get_all(user_id=ada)}
    assert {PREFERENCE, FIFTEEN, CONCLUSION} <= kept.keys()
    assert kept[CONCLUSION].source.agent_id == "analyst"
    assert any(FILE in text for text in kept)
    assert all("cat" not in text for text in kept)


def second(memory: SupervisorMemory, ada: str, eve: str) -> None:
    """All of it is known again, changes, and goes."""
    is_recalled(memory, ada)
    is_superseded(memory, ada)
    is_deleted_by_the_tool(memory, ada)
    is_audited(memory, ada)
    is_erased(memory, ada, eve)


def is_recalled(memory: SupervisorMemory, ada: str) -> None:
    boss, analyst = speaking(call_of("transfer_to_analyst"), "done"), speaking("ok", label="analyst")
    said(team(memory, boss, analyst), "What share of the flights was delayed?", user=ada, thread="second")
    assert PREFERENCE in boss.prompts[0]
    assert FIFTEEN in boss.prompts[0]
    assert CONCLUSION in analyst.prompts[0]
    assert "Pangur" not in str(boss.prompts + analyst.prompts)
    hits = memory.search("what share of flights was delayed?", user_id=ada)
    assert not hits.degraded
    assert {FIFTEEN, CONCLUSION} <= {hit.record.content for hit in hits}


def is_superseded(memory: SupervisorMemory, ada: str) -> None:
    (before,) = (record for record in memory.get_all(user_id=ada) if record.content == FIFTEEN)
    graph = team(memory, speaking("Noted."), speaking())
    said(graph, THIRTY, user=ada, thread="third")
    boss = speaking("done")
    said(team(memory, boss, speaking()), "When is a flight delayed?", user=ada, thread="fourth")
    assert THIRTY in boss.prompts[0]
    assert FIFTEEN not in boss.prompts[0]
    (now,) = (record for record in memory.get_all(user_id=ada) if record.content == THIRTY)
    known = [version.content for id in {before.id, now.id} for version in memory.history(id)]
    assert {FIFTEEN, THIRTY} <= set(known)


def is_deleted_by_the_tool(memory: SupervisorMemory, ada: str) -> None:
    (table,) = (record for record in memory.get_all(user_id=ada) if record.content == PREFERENCE)
    boss = speaking(
        call_of("memory_search", query="answer in tables", namespace="user_profile"),
        deleting_what_was_found,
        "It is forgotten.",
    )
    answer = said(team(memory, boss, speaking()), "Forget about tables, please.", user=ada, thread="fifth")
    assert answer == "It is forgotten."
    assert '"deleted": 1' in boss.prompts[-1]
    assert PREFERENCE not in {record.content for record in memory.get_all(user_id=ada)}
    assert [version.status for version in memory.history(table.id)] == ["active", "deleted"]


def is_audited(memory: SupervisorMemory, ada: str) -> None:
    is_chained(memory)
    rows = memory.backend.audit.tail(10_000, user_id=ada)
    done = {(row.op, row.outcome) for row in rows}
    assert {("add", "ok"), ("delete", "ok")} <= done
    assert not [row for row in rows if row.outcome in ("degraded", "denied", "failed")]
    assert "Pangur" not in str([row.event for row in rows])


def is_chained(memory: SupervisorMemory) -> None:
    log = memory.backend.audit
    rows = log.rows(limit=100_000)  # from the first, at one moment: work in the background adds further ones
    assert_chain(rows, log.log_id)


def is_erased(memory: SupervisorMemory, ada: str, eve: str) -> None:
    with pytest.raises(ConfirmationRequired):
        memory.erase(user_id=ada)
    (definition,) = (record for record in memory.get_all(user_id=ada) if record.content == THIRTY)
    receipt = memory.erase(user_id=ada, confirm=True)
    assert receipt.is_complete, receipt.pending
    assert receipt.removed["records"] >= 4
    assert memory.get_all(user_id=ada) == []
    assert list(memory.search("what share of flights was delayed?", user_id=ada)) == []
    with pytest.raises(RecordNotFound):
        memory.get(definition.id)
    boss = speaking("I do not know.")
    said(team(memory, boss, speaking()), "When is a flight delayed?", user=ada, thread="sixth")
    assert "minutes late" not in boss.prompts[0]
    is_chained(memory)
    assert SECRET in {record.content for record in memory.get_all(user_id=eve)}
    assert memory.erase(user_id=ada, confirm=True).is_complete
    assert memory.erase(user_id=eve, confirm=True).is_complete


# --- where they are held

HTTP = "a server"
PLACES: dict[str, Mapping[str, str] | None] = {
    "as_the_environment_says": None,
    "in_memory": {"MEMORY_BACKEND": "in_memory"},
    "json": {"MEMORY_BACKEND": "json"},
    "sqlite": {"MEMORY_BACKEND": "sqlite"},
    "qdrant_in_memory": {"MEMORY_BACKEND": "qdrant", "QDRANT_URL": ":memory:"},
    "qdrant_in_a_directory": {"MEMORY_BACKEND": "qdrant", "QDRANT_URL": "./points"},
    "qdrant_over_http": {"MEMORY_BACKEND": "qdrant", "QDRANT_URL": HTTP},
    "qdrant_with_a_copy": {"MEMORY_BACKEND": "qdrant", "QDRANT_URL": HTTP, "MEMORY_DUAL_WRITE": "true"},
}
VOLATILE = ("in_memory", "qdrant_in_memory")
COMMAND = "from supervisor_memory.interfaces.cli.main import main; main()"
Run = Callable[..., str]


@contextmanager
def environment_of(place: Mapping[str, str] | None, directory: Path) -> Iterator[dict[str, str]]:
    """The environment in which this place is the one memory is kept in, while what it needs is running."""
    if place is None:
        yield {**programs.UNHURRIED, "EMBEDDING_MODEL": "none", **os.environ}
        return
    given = {**programs.environment(EMBEDDING_MODEL="hashing", MEMORY_PATH="memory"), **place}
    if place.get("QDRANT_URL") != HTTP:
        yield given
        return
    from tests.stores.qdrant_process import QdrantProcess  # which the sessions need not import

    with QdrantProcess(directory / "server") as server:
        yield {**given, "QDRANT_URL": server.url}


OFTEN = ("as_the_environment_says", "sqlite", "json", "qdrant_over_http")


@pytest.fixture(
    params=[pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in PLACES]
)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(place: str, tmp_path: Path) -> Iterator[Run]:
    """Runs a program in a process of its own and that environment; what it prints."""
    with environment_of(PLACES[place], tmp_path) as environment:

        def fresh(*command: str | Path) -> str:
            own = {**environment, "PYTHONPATH": str(ROOT)}
            done = programs.run(*command, env=own, cwd=tmp_path, timeout=240)
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
            return done.stdout

        yield fresh


@pytest.mark.one_in(2)
def test_what_one_session_learns_the_next_one_knows_changes_and_erases(run: Run, place: str) -> None:
    found = json.loads(run("-c", COMMAND, "doctor", "--json"))
    is_persistent = found["backend"]["persistent"]
    assert is_persistent == (not any(told.startswith("not persistent: ") for told in found["warnings"]))
    assert is_persistent == (place not in VOLATILE) or PLACES[place] is None
    sessions = [["first"], ["second"]] if is_persistent else [["first", "second"]]
    name = uuid4().hex  # of users of this run's own, where the store outlives the test
    for held in sessions:
        told = run("-m", "tests.test_end_to_end", name, *held)
        assert told.splitlines()[-1] == f"held: {' '.join(held)}"


def hold(name: str, *sessions: str) -> None:
    with SupervisorMemory.from_env() as memory:
        for session in sessions:
            {"first": first, "second": second}[session](memory, f"ada-{name}", f"eve-{name}")
    print(f"held: {' '.join(sessions)}")  # noqa: T201  # for the test


if __name__ == "__main__":
    hold(*sys.argv[1:])
