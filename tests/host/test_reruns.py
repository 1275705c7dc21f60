"""LangGraph runs a node again after an interrupt, an error, a crash and in a fork: memory is written once."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.graph import END, START
from langgraph.types import Command, RetryPolicy, interrupt

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Scope
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.breadth import HOW
from tests.faults.processes import FORKS, ended, forked
from tests.faulty import NotAnException
from tests.host.graphs import Graph, Team, audit_of, config, open_memory

PREFERENCE = "Always round revenue to whole numbers."
CONCLUSION = "Revenue of May was 4 million in the north."
ANSWER = "It was 4 million; the file has the details."
ASK = f"{PREFERENCE} What was the revenue of May?"
RECORDS = sorted([PREFERENCE, CONCLUSION, "csv file: out/may.csv (3 rows)"])
MESSAGES = sorted([ASK, "Let me ask the worker.", ANSWER])

Step = Callable[[], Any]


def nothing() -> None:
    """What a node does besides."""


def crew(*, boss: Step = nothing, worker: Step = nothing, after: Step = nothing) -> Any:
    """Supervisor, worker, a plain node, supervisor. Each model call answers the same under another id."""

    def supervise(state: Any) -> Any:
        boss()
        was_there = state["messages"][-1].name == "worker"
        return {"messages": [AIMessage(ANSWER if was_there else "Let me ask the worker.")]}

    def work(state: Any) -> Any:
        worker()
        return {
            "messages": [AIMessage(CONCLUSION, name="worker")],
            "final_answer": CONCLUSION,
            "side_effects": [{"path": "out/may.csv", "rows": 3}],
        }

    def check(state: Any) -> Any:
        after()
        return {}

    def following(state: Any) -> str:
        return END if state["messages"][-1].text == ANSWER else "worker"

    builder = Graph(Team)
    builder.add_node("supervisor", supervise)
    builder.add_node("worker", work)
    builder.add_node("after", check)
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", following, ["worker", END])
    builder.add_edge("worker", "after")
    builder.add_edge("after", "supervisor")
    return builder


def attached(memory: SupervisorMemory, builder: Any, saver: Any = None) -> Any:
    graph = memory.attach(builder, agents=["worker"])
    return graph.compile(checkpointer=saver if saver is not None else InMemorySaver())


def asking(id: str | None = None) -> Any:
    return {"messages": [HumanMessage(ASK, id=id)], "user_id": "ada"}


async def run(graph: Any, how: str, given: Any, where: RunnableConfig | None = None) -> Any:
    at = where or config()
    return await graph.ainvoke(given, at) if how == "async" else graph.invoke(given, at)


def held(memory: SupervisorMemory) -> tuple[list[str], list[str]]:
    return (
        sorted(r.content for r in memory.get_all(user_id="ada")),
        sorted(r.content for r in memory.get_all(user_id="ada", families=["session_messages"])),
    )


def rows(memory: SupervisorMemory) -> list[tuple[str, str, str]]:
    """What was decided; that a node failed and ran again is no decision."""
    told = ((row["op"], row["outcome"], row["reason"]) for row in audit_of(memory))
    return sorted(row for row in told if row[0] != "outcome")


def rows_of_one_run() -> list[tuple[str, str, str]]:
    with open_memory() as memory:
        attached(memory, crew()).invoke(asking(), config())
        assert held(memory) == (RECORDS, MESSAGES)
        return rows(memory)


def assert_written_once(memory: SupervisorMemory) -> None:
    assert held(memory) == (RECORDS, MESSAGES)
    assert [row for row in rows(memory) if row[0] == "add"] == [
        row for row in rows_of_one_run() if row[0] == "add"
    ]
    assert rows(memory) == rows_of_one_run()


# --- interrupts and retries


@HOW
@pytest.mark.parametrize("where", ["boss", "worker", "after"])
async def test_an_interrupt_and_its_resumption_are_one_run(how: str, where: str) -> None:
    with open_memory() as memory:
        graph = attached(memory, crew(**{where: lambda: interrupt("may I?")}))
        await run(graph, how, asking())
        while graph.get_state(config()).next:
            await run(graph, how, Command(resume="yes"))
        assert_written_once(memory)


@HOW
@pytest.mark.parametrize("where", ["boss", "worker", "after"])
async def test_a_node_that_fails_twice_is_remembered_once(how: str, where: str) -> None:
    tries = iter([True, True, *[False] * 9])

    def fail() -> None:
        if next(tries):
            raise ConnectionError("try again")

    with open_memory() as memory:
        builder = memory.attach(crew(**{where: fail}), agents=["worker"])
        policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False, retry_on=ConnectionError)
        builder.nodes = {name: _with_retry(spec, policy) for name, spec in builder.nodes.items()}
        await run(builder.compile(checkpointer=InMemorySaver()), how, asking())
        assert_written_once(memory)


def _with_retry(spec: Any, policy: RetryPolicy) -> Any:
    spec.retry_policy = policy
    return spec


@HOW
async def test_a_whole_team_that_runs_three_times_in_one_node_is_remembered_once(how: str) -> None:
    """The node fails after its team has written memory; each attempt runs the team from its start.

    The graph around has no memory: its host says that the user's words are in what it hands to the team.
    """

    async def attempts(memory: SupervisorMemory, wanted: int) -> None:
        inner = memory.attach(crew(), agents=["worker"], nested="user").compile()
        made = iter(range(1, wanted + 1))

        def fail_until_the_last() -> None:
            if next(made) < wanted:
                raise ConnectionError("try again")

        def node(state: Any) -> Any:
            found = inner.invoke(state)
            fail_until_the_last()
            return {"messages": found["messages"]}

        async def anode(state: Any) -> Any:
            found = await inner.ainvoke(state)
            fail_until_the_last()
            return {"messages": found["messages"]}

        outer = Graph(Team)
        policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False, retry_on=ConnectionError)
        outer.add_node("team", anode if how == "async" else node, retry_policy=policy)
        outer.add_edge(START, "team")
        await run(outer.compile(checkpointer=InMemorySaver()), how, asking())
        assert next(made, None) is None
        assert held(memory) == (RECORDS, MESSAGES)

    with open_memory() as once, open_memory() as thrice:
        await attempts(once, 1)
        await attempts(thrice, 3)
        assert rows(thrice) == rows(once)


@HOW
@pytest.mark.parametrize(
    "control",
    [GraphBubbleUp("up"), GraphInterrupt(()), asyncio.CancelledError("stop"), NotAnException("host's own")],
    ids=lambda error: type(error).__name__,
)
async def test_what_a_node_raises_to_steer_its_graph_passes_as_it_is(
    how: str, control: BaseException
) -> None:
    """Not through a graph's loop, which answers some of them: through the node as we wrapped it."""

    def steer() -> None:
        raise control

    with open_memory() as memory:
        node = memory.attach(crew(worker=steer), agents=["worker"]).nodes["worker"].runnable
        given = {"messages": [HumanMessage(ASK, id="m1")], "user_id": "ada"}, config()
        with pytest.raises(type(control)) as raised:
            await node.ainvoke(*given) if how == "async" else node.invoke(*given)
        assert raised.value is control
        assert held(memory) == ([], [])
        assert rows(memory) == []


@pytest.mark.parametrize("how", ["sync", "async"])  # a node of each has lines of its own for it
async def test_a_command_to_the_parent_graph_arrives_and_is_remembered(how: str) -> None:
    def leave(state: Any) -> Any:
        said = {"messages": [AIMessage(CONCLUSION, name="worker")]}
        raise ParentCommand(Command(graph=Command.PARENT, goto="after", update=said))

    with open_memory() as memory:
        builder = crew()
        inner = Graph(Team)
        inner.add_node("leave", leave)
        inner.add_edge(START, "leave")
        builder.nodes["worker"] = Graph(Team).add_node("worker", inner.compile()).nodes["worker"]
        builder.edges.discard(("worker", "after"))
        await run(attached(memory, builder), how, asking())
        records, messages = held(memory)
        assert CONCLUSION in records
        assert ANSWER in messages


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_what_a_plain_node_puts_into_a_command_to_the_parent_graph_is_not_the_users(how: str) -> None:
    def leave(state: Any) -> Any:
        words = HumanMessage("Always answer in roman numerals.")
        said = {"messages": [words, AIMessage("It is checked.", name="worker")]}
        raise ParentCommand(Command(graph=Command.PARENT, goto="supervisor", update=said))

    with open_memory() as memory:
        builder = crew()
        inner = Graph(Team)
        inner.add_node("leave", leave)
        inner.add_edge(START, "leave")
        builder.nodes["after"] = Graph(Team).add_node("after", inner.compile()).nodes["after"]
        builder.edges.discard(("after", "supervisor"))
        graph = attached(memory, builder)
        state = await run(graph, how, asking())
        assert "Always answer in roman numerals." in [message.text for message in state["messages"]]
        assert not [text for text in held(memory)[0] if "roman" in text]


# --- time travel


def starts(graph: Any, *, with_input: bool = False) -> list[RunnableConfig]:
    """The checkpoints from which a graph can go on, newest first.

    Args:
        with_input: Also the one before the input was taken in. A message without an id is then given
            another one, so that nothing tells it from a message that was sent again.
    """
    found = list(graph.get_state_history(config()))
    return [s.config for s in found if s.next and (with_input or s.next != ("__start__",))]


@pytest.mark.one_in(2, shift=3)
@HOW
@pytest.mark.parametrize("id_", [None, "m1"])
async def test_time_travel_writes_nothing_twice(how: str, id_: str | None) -> None:
    with open_memory() as memory:
        graph = attached(memory, crew())
        await run(graph, how, asking(id_))
        places = starts(graph, with_input=id_ is not None)
        assert len(places) >= 4
        for place in places:
            await run(graph, how, None, place)
        assert_written_once(memory)


@HOW
async def test_what_was_deleted_or_changed_does_not_come_back_by_time_travel(how: str) -> None:
    with open_memory() as memory:
        graph = attached(memory, crew())
        await run(graph, how, asking())
        ids = {record.content: record.id for record in memory.get_all(user_id="ada")}
        memory.delete(ids[PREFERENCE], user_id="ada")
        memory.update(ids[CONCLUSION], content="Revenue of May was 5 million in the north.", user_id="ada")
        before = held(memory), rows(memory)
        for place in starts(graph):
            await run(graph, how, None, place)
        assert (held(memory), rows(memory)) == before


async def test_the_same_question_asked_again_is_another_turn() -> None:
    with open_memory() as memory:
        graph = attached(memory, crew())
        graph.invoke(asking(), config())
        graph.invoke(asking(), config())
        records, messages = held(memory)
        assert records == RECORDS
        assert messages == sorted(MESSAGES * 2)


async def test_another_answer_in_a_fork_is_kept_beside_the_first() -> None:
    """A model that is asked again may say something else: that is new, and what the user said is not."""
    said = iter(["found nothing of note in the north", "Revenue of May was 9 million in the south."])

    def work(state: Any) -> Any:
        return {"messages": [AIMessage(next(said), name="worker")]}

    with open_memory() as memory:
        builder = crew()
        builder.nodes["worker"] = Graph(Team).add_node("worker", work).nodes["worker"]
        graph = attached(memory, builder)
        graph.invoke(asking(), config())
        graph.invoke(None, starts(graph)[-1])
        records, messages = held(memory)
        assert "Revenue of May was 9 million in the south." in records
        assert records.count(PREFERENCE) == messages.count(ASK) == 1


# --- crashes


def opened(folder: Path) -> SupervisorMemory:
    return open_memory(backend=SqliteBackend(folder))


def go_on(folder: Path, durability: Literal["sync", "async", "exit"], crash: str) -> None:
    """Run the thread from where it stands, until it is over or this process dies with 9."""
    memory = opened(folder)
    remember = memory.remember

    def die() -> None:
        os._exit(9)

    def remember_and_die(messages: Any, scope: Scope, **more: Any) -> Any:
        done = remember(messages, scope, **more)
        if scope.agent_id == "worker":
            die()
        return done

    if crash == "right after the agent":
        memory.remember = remember_and_die  # type: ignore[method-assign]
    steps = {"after": die} if crash == "in the next node" else {}
    with SqliteSaver.from_conn_string(str(folder / "thread.db")) as saver:
        graph = attached(memory, crew(**steps), saver)
        waits = graph.get_state(config()).next
        graph.invoke(None if waits else asking("m1"), config(), durability=durability)
        assert not graph.get_state(config()).next
    memory.close()


def process(folder: Path, durability: Literal["sync", "async", "exit"], crash: str) -> int:
    """The same in a process of its own; its exit code."""
    return ended(forked(lambda: go_on(folder, durability, crash)))


@pytest.mark.one_in(3)
@FORKS[0]
@FORKS[1]
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_process_that_is_killed_and_goes_on_writes_once(
    durability: Literal["sync", "async", "exit"], tmp_path: Path
) -> None:
    for crash in ("right after the agent", "in the next node"):
        assert process(tmp_path, durability, crash) == 9
        with opened(tmp_path) as memory:
            assert CONCLUSION in held(memory)[0]  # the crash came after it was written
            assert ANSWER not in held(memory)[1]
    assert process(tmp_path, durability, "no more") == 0
    with opened(tmp_path) as memory:
        assert_written_once(memory)


async def test_with_a_checkpointer_on_disk_a_fork_is_the_same_turn(tmp_path: Path) -> None:
    with opened(tmp_path) as memory, SqliteSaver.from_conn_string(str(tmp_path / "thread.db")) as saver:
        graph = attached(memory, crew(), saver)
        graph.invoke(asking(), config())
        for place in starts(graph):
            graph.invoke(None, place)
        assert_written_once(memory)
