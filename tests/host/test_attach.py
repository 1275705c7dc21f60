"""What attach takes and gives back, and the reference team with and without memory."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, interrupt

from agents.team import build_team
from common.memory_state import checkpoint_serializer
from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import GraphError, UnknownNode
from supervisor_memory.settings import Settings
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.cases import every_case
from tests.host.graphs import (
    ASK,
    CANARY,
    Graph,
    Team,
    accesses_of,
    asking,
    audit_of,
    config,
    model,
    notes_in,
    open_memory,
    raw,
    seed,
    team,
    texts,
)

# --- what comes back


def test_a_compiled_graph_comes_back_compiled_as_it_was() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    bare = team(model("done"), {"worker": model()}).compile(
        checkpointer=saver, store=store, interrupt_before=["worker"], interrupt_after=["worker"], name="crew"
    )
    bare = bare.with_config({"recursion_limit": 77, "tags": ["prod"]})
    bare.step_timeout = 9
    with open_memory() as memory:
        graph = memory.attach(bare)
    assert isinstance(graph, CompiledStateGraph)
    assert graph is not bare
    assert (graph.checkpointer, graph.store, graph.name, graph.step_timeout) == (saver, store, "crew", 9)
    assert graph.config == bare.config
    assert graph.interrupt_before_nodes == graph.interrupt_after_nodes == ["worker"]
    assert list(graph.nodes) == list(bare.nodes)
    assert graph.get_graph().to_json() == bare.get_graph().to_json()
    assert graph.get_output_jsonschema() == bare.get_output_jsonschema()


def test_a_builder_comes_back_as_a_builder_of_its_own_class() -> None:
    class Own(Graph):  # type: ignore[misc]
        pass

    builder = Own(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        assert isinstance(memory.attach(builder), Own)
    assert type(builder) is Own


def test_the_original_stays_as_it_was_and_runs_bare() -> None:
    boss, worker = model("go", "done", "go", "done"), model("found", "found", label="w")
    builder = team(boss, {"worker": worker})
    nodes, edges = dict(builder.nodes), set(builder.edges)
    with open_memory() as memory:
        seed(memory)
        wrapped = memory.attach(builder)
        wrapped.add_node("later", lambda state: {})
        wrapped.add_edge("worker", "later")
        wrapped.add_conditional_edges("supervisor", lambda state: "later", ["later"])
        assert (builder.nodes, builder.edges) == (nodes, edges)
        assert len(builder.branches["supervisor"]) == 1
        builder.compile().invoke(asking(user_id="ada"))
        assert not any(CANARY in prompt for prompt in boss.prompts + worker.prompts)
        assert accesses_of(memory) == []


def test_attached_twice_it_recalls_and_remembers_once() -> None:
    boss = model("done", "done")
    with open_memory() as memory:
        seed(memory)
        once = memory.attach(team(boss, {"worker": model()}))
        twice = memory.attach(memory.attach(once).compile())
        twice.invoke(asking("Always round revenue to whole numbers.", user_id="ada"), config())
        assert len(notes_in(boss.calls[0])) == 1
        added = [
            row for row in audit_of(memory) if row["op"] in ("add", "skip") and row["source_class"] == "user"
        ]
        assert [row["family"] for row in added].count("user_profile") == 1 + 1  # seeded, said


def test_a_wrapped_node_is_not_cached_across_users() -> None:
    boss = model("done", "done")
    builder = Graph(Team)
    builder.add_node(
        "supervisor",
        lambda state: {"messages": [boss.invoke(state["messages"])]},
        cache_policy=CachePolicy(),
    )
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        seed(memory)
        graph = memory.attach(builder).compile(cache=InMemoryCache())
        for user in ("ada", "eve"):
            graph.invoke({"messages": [("user", ASK)]}, config(user_id=user))
    assert [CANARY in prompt for prompt in boss.prompts] == [True, False]


def test_subgraphs_stay_visible_and_interrupts_resume() -> None:
    asked: list[Any] = []

    def gate(state: Any) -> Any:
        asked.append(interrupt("may I?"))
        return {}

    inner = Graph(Team)
    inner.add_node("gate", gate)
    inner.add_edge(START, "gate")
    builder = team(model("go", "done"), {"worker": model()})
    builder.nodes["worker"] = Graph(Team).add_node("worker", inner.compile()).nodes["worker"]
    builder.edges.discard(("worker", "supervisor"))
    with open_memory() as memory:
        seed(memory)
        saver = InMemorySaver()
        graph = memory.attach(builder).compile(checkpointer=saver)
        assert [name for name, _ in graph.get_subgraphs()] == ["worker"]
        graph.invoke(asking("Always use tables by default.", user_id="ada"), config())
        paused = graph.get_state(config(), subgraphs=True)
        assert paused.tasks[0].interrupts[0].value == "may I?"
        assert paused.tasks[0].state.next == ("gate",)
        graph.invoke(Command(resume="yes"), config())
        assert asked == ["yes"]
        assert not graph.get_state(config()).next
        assert CANARY not in raw(saver)
        assert sum("by default" in r.content for r in memory.get_all(user_id="ada")) == 1


def test_interrupts_before_and_after_nodes_still_hold() -> None:
    boss, worker = model("go", "done"), model("found", label="w")
    compiled = team(boss, {"worker": worker}).compile(
        checkpointer=InMemorySaver(), interrupt_before=["worker"]
    )
    with open_memory() as memory:
        graph = memory.attach(compiled)
        graph.invoke(asking(user_id="ada"), config())
        assert (len(boss.calls), len(worker.calls)) == (1, 0)
        assert graph.invoke(None, config())["messages"][-1].text == "done"


# --- what it refuses


def test_an_unknown_node_is_named_with_those_there_are() -> None:
    builder = team(model(), {"worker": model()})
    with open_memory() as memory:
        with pytest.raises(UnknownNode, match=r"'chief'.*'supervisor', 'worker'") as caught:
            memory.attach(builder, supervisor="chief")
        assert caught.value.facts["nodes"] == ["supervisor", "worker"]
        with pytest.raises(UnknownNode, match="'wroker'"):
            memory.attach(builder, agents=["wroker"])


@every_case("thing", [None, "graph", object(), lambda state: state, ToolNode([])])
def test_what_is_no_graph_is_refused(thing: Any) -> None:
    with open_memory() as memory, pytest.raises(GraphError, match="pass a StateGraph"):
        memory.attach(thing)


# --- nothing changes without memories


@HOW
@pytest.mark.parametrize("settings", [{"enabled": False}, {}], ids=["disabled", "empty"])
async def test_without_memories_a_graph_says_what_it_said_bare(how: str, settings: Any) -> None:
    async def play(wrap: Any) -> tuple[Any, Any]:
        boss, worker = model("go", "done", "go", "well"), model("found", "more", label="w")
        graph = wrap(team(boss, {"worker": worker})).compile(checkpointer=InMemorySaver())
        for text in ("What was the revenue?", "And the costs?"):
            given = asking(text, user_id="ada"), config()
            state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        return texts(state), boss.prompts + worker.prompts

    with open_memory(settings=settings) as memory:
        assert await play(memory.attach) == await play(lambda builder: builder)
        if settings:
            assert not audit_of(memory)
            assert not accesses_of(memory)


QUESTIONS = (
    "Which three airlines had the highest share of delayed flights from JFK in June?",
    "Draw it as a picture.",
)


async def talk(graph: Any, how: str, *, user: str = "ada", asks: tuple[str, ...] = QUESTIONS) -> Any:
    state: Any = {}
    for number, text in enumerate(asks):
        message = {"role": "user", "content": text, "id": f"q{number}"}
        given = {"messages": [message], "user_id": user}, config()
        state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    return state


def built(wrap: Any, flights: Path, folder: Path, tools: Any = ()) -> Any:
    saver = InMemorySaver(serde=checkpoint_serializer())
    return wrap(build_team(database=flights, output_dir=folder, tools=tools)).compile(checkpointer=saver)


@pytest.mark.parametrize("settings", [{"enabled": False}, {}], ids=["disabled", "empty"])
async def test_without_memories_the_team_says_what_it_said_bare(
    flights: Path, tmp_path: Path, settings: Any
) -> None:
    ask = QUESTIONS[:1]
    with open_memory(settings=settings) as memory:
        bare = await talk(built(lambda graph: graph, flights, tmp_path), "sync", asks=ask)
        wrapped = await talk(built(memory.attach, flights, tmp_path), "sync", asks=ask)
        assert texts(wrapped) == texts(bare)
        assert wrapped["final_answer"] == bare["final_answer"]
        assert wrapped["analysis"] == bare["analysis"]


async def test_both_ways_of_running_end_in_the_same_state_and_the_same_log(
    flights: Path, tmp_path: Path
) -> None:
    asks = (
        "Use tables by default. Delayed means arrival more than 15 minutes late.",
        *QUESTIONS,
        "From now on answer in Chinese.",
    )
    ends = []
    for how in ("sync", "async"):
        with open_memory() as memory:
            graph = built(memory.attach, flights, tmp_path)
            state = await talk(graph, how, asks=asks)
            records = [
                (r.family, r.kind, r.content, r.subject, r.attribute, r.version, r.source.source_class)
                for r in memory.get_all(user_id="ada")
            ]
            messages = [r.content for r in memory.get_all(user_id="ada", families=["session_messages"])]
            told = (state["final_answer"], state["analysis"], state["side_effects"])
            log = (audit_of(memory), accesses_of(memory))
            ends.append((texts(state), told, sorted(records, key=repr), sorted(messages), *log))
    assert ends[0] == ends[1]
    assert len(ends[0][2]) > 3
    assert len(ends[0][4]) > 5
    assert len(ends[0][5]) > 5


@HOW
async def test_only_the_supervisor_acts_in_a_whole_turn_of_the_team(
    flights: Path, tmp_path: Path, how: str
) -> None:
    with open_memory() as memory:
        graph = built(memory.attach, flights, tmp_path, memory.tools())
        await talk(graph, how, asks=("Use tables by default.", QUESTIONS[0]))
        rows = audit_of(memory)
        assert {row["actor"] for row in rows} == {"supervisor"}
        assert {"text2sql_memories", "analysis_memories", "user_profile"} <= {row["family"] for row in rows}


async def test_many_runs_at_once_keep_their_users_apart() -> None:
    with open_memory() as memory:
        users = [f"user-{number}" for number in range(40)]
        for user in users:
            memory.write(f"Revenue secret of {user}", user_id=user, kind="domain-facts")
        seen: dict[str, str] = {}

        def speak(state: Any) -> Any:
            boss = model("done")
            said = boss.invoke(state["messages"])
            seen[state["user_id"]] = boss.prompts[0]
            return {"messages": [said]}

        builder = Graph(Team)
        builder.add_node("supervisor", speak)
        builder.add_edge(START, "supervisor")
        graph = memory.attach(builder).compile()
        await asyncio.gather(*(graph.ainvoke(asking(user_id=user), config(user)) for user in users))
        assert all(f"secret of {user}\n" in seen[user] and seen[user].count("secret") == 1 for user in users)
        assert not [row for row in audit_of(memory) if row["outcome"] == "degraded"]


def test_the_supervisor_may_be_a_compiled_agent_with_a_recursion_limit_of_its_own() -> None:
    agent = create_agent(model("done"), [], name="supervisor")
    with open_memory() as memory:
        graph = Graph(Team)
        graph.add_node("supervisor", agent)
        graph.add_edge(START, "supervisor")
        wrapped = memory.attach(graph)
        (inner,) = [held for _, held in wrapped.compile().get_subgraphs()]
        assert inner.config == agent.config


def test_missing_tools_are_told_once_and_not_when_they_are_there(caplog: pytest.LogCaptureFixture) -> None:
    with open_memory() as memory, caplog.at_level("INFO", logger="supervisor_memory"):
        memory.attach(team(model(), {}))
        assert "tools=memory.tools()" in caplog.text
        assert not [each for each in caplog.records if "tools" in each.msg and each.levelname != "INFO"]
        caplog.clear()
        builder = team(model(), {})
        builder.add_node("tools", ToolNode(memory.tools()))
        memory.attach(builder)
        assert "tools=memory.tools()" not in caplog.text


def test_disabled_memory_gives_tools_that_still_answer() -> None:
    memory = SupervisorMemory(Settings(enabled=False, embedding_model="none"))
    boss = model(call_of("memory_search", query="revenue"), "done")
    builder = Graph(Team)
    builder.add_node("supervisor", create_agent(boss, memory.tools(), name="supervisor"))
    builder.add_edge(START, "supervisor")
    state = memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
    assert state["messages"][-1].text == "done"
