"""Graphs of langgraph-supervisor, and agents made by langchain's create_agent."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command
from langgraph_supervisor import create_handoff_tool, create_supervisor

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.host.graphs import (
    ASK,
    CANARY,
    Graph,
    Team,
    asking,
    config,
    model,
    notes_in,
    open_memory,
    outcomes,
    raw,
    seed,
    texts,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LONG = "Revenue rose by 12 percent in June because of two new contracts in the north."


def supervised(memory: SupervisorMemory | None, boss: Any, worker: Any, mode: Any = "last_message") -> Any:
    agent = create_agent(worker, [], name="worker")
    tools: Any = memory.tools() if memory else []
    return create_supervisor([agent], model=boss, prompt="boss", output_mode=mode, tools=tools)


MODE = pytest.mark.parametrize("mode", ["last_message", "full_history"])


@pytest.mark.one_in(2)
@MODE
@HOW
@pytest.mark.parametrize("form", ["builder", "compiled"])
async def test_supervisor_and_agents_read_notes_that_show_nowhere(mode: str, how: str, form: str) -> None:
    with open_memory() as memory:
        seed(memory)
        boss, worker = model(call_of("transfer_to_worker"), "done"), model(LONG, label="w")
        saver = InMemorySaver()
        bare = supervised(memory, boss, worker, mode)
        if form == "builder":
            graph = memory.attach(bare).compile(checkpointer=saver)
        else:
            graph = memory.attach(bare.compile(checkpointer=saver))
        given = asking(), config(user_id="ada")
        options: Any = {"stream_mode": ["values", "updates", "messages"], "subgraphs": True}
        if how == "async":
            seen = [chunk async for chunk in graph.astream(*given, **options)]
        else:
            seen = list(graph.stream(*given, **options))
        assert [len(notes_in(call)) for call in (*boss.calls, *worker.calls)] == [1, 1, 1]
        assert f"{CANARY} worker" in worker.prompts[0]
        assert f"{CANARY} other" not in worker.prompts[0]
        assert CANARY not in repr(seen)
        assert CANARY not in raw(saver)
        kept = memory.get_all(user_id="ada", families=["session_messages", "worker_memories"])
        assert not [r for r in kept if "ransferr" in r.content]
        assert any(LONG in r.content for r in kept if r.family == "worker_memories")


@MODE
async def test_it_says_what_the_bare_graph_says(mode: str) -> None:
    def script() -> tuple[Any, Any]:
        return model(call_of("transfer_to_worker"), "done"), model(LONG, label="w")

    with open_memory() as memory:
        bare = supervised(memory, *script(), mode).compile().invoke(asking(), config(user_id="ada"))
        with_memory = memory.attach(supervised(memory, *script(), mode)).compile()
        assert texts(with_memory.invoke(asking(), config(user_id="ada"))) == texts(bare)
        again = memory.attach(supervised(memory, *script(), mode)).compile()
        assert texts(await again.ainvoke(asking(), config(user_id="bob"))) == texts(bare)


@HOW
async def test_tools_given_at_construction_act_as_the_runs_user(how: str) -> None:
    with open_memory() as memory:
        boss = model(
            call_of("memory_write", content="Fiscal year begins in April", namespace="domain_facts"),
            call_of("memory_search", query="When does the fiscal year begin?"),
            "done",
        )
        graph = memory.attach(supervised(memory, boss, model())).compile()
        given = asking("Note this."), config(user_id="ada")
        state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        assert "memory_search" in boss.bound[0]
        answers = {m.name: m.text for m in state["messages"] if m.type == "tool"}
        assert '"status": "added"' in answers["memory_write"]
        assert "begins in April" in answers["memory_search"]
        assert [r.content for r in memory.get_all(user_id="ada")] == ["Fiscal year begins in April"]


def test_what_the_supervisor_found_is_not_shown_to_an_agent_it_hands_over_to() -> None:
    with open_memory() as memory:
        memory.write(f"The {CANARY} secret of revenue", user_id="ada", kind="task-traces", agent_id="other")
        boss = model(call_of("memory_search", query="secret revenue"), call_of("transfer_to_worker"), "done")
        worker = model(LONG, label="w")
        graph = memory.attach(supervised(memory, boss, worker)).compile()
        graph.invoke(asking(), config(user_id="ada"))
        assert CANARY in boss.prompts[1]
        assert CANARY not in worker.prompts[0]


def test_a_team_inside_a_team_reads_one_note_a_call_and_keeps_none() -> None:
    with open_memory() as memory:
        seed(memory)
        leaf, middle = (
            model(LONG, label="leaf"),
            model(call_of("transfer_to_worker"), "team done", label="mid"),
        )
        top = model(call_of("transfer_to_crew"), "done", label="top")
        inner = create_supervisor([create_agent(leaf, [], name="worker")], model=middle, prompt="mid")
        crew = inner.compile(name="crew")
        saver = InMemorySaver()
        graph = memory.attach(create_supervisor([crew], model=top, prompt="top")).compile(checkpointer=saver)
        seen = list(graph.stream(asking(), config(user_id="ada"), stream_mode="values", subgraphs=True))
        assert [len(notes_in(c)) for c in (*top.calls, *middle.calls, *leaf.calls)] == [1] * 5
        assert CANARY not in repr(seen)
        assert CANARY not in raw(saver)


@HOW
async def test_a_create_agent_supervisor_hands_over_to_its_parent_graph(how: str) -> None:
    with open_memory() as memory:
        seed(memory)
        boss, worker = model(call_of("transfer_to_worker"), "done"), model(LONG, label="w")
        tools = [*memory.tools(), create_handoff_tool(agent_name="worker")]
        builder = Graph(Team)
        builder.add_node("supervisor", create_agent(boss, tools, name="supervisor"), destinations=("worker",))
        builder.add_node("worker", create_agent(worker, [], name="worker"))
        builder.add_edge(START, "supervisor")
        builder.add_edge("worker", "supervisor")
        saver = InMemorySaver()
        graph = memory.attach(builder).compile(checkpointer=saver)
        given = asking(f"{ASK} Use bullet points by default."), config(user_id="ada")
        state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        assert state["messages"][-1].text == "done"
        assert [len(notes_in(call)) for call in (*boss.calls, *worker.calls)] == [1, 1, 1]
        assert CANARY not in raw(saver)
        assert sum("bullet" in r.content for r in memory.get_all(user_id="ada")) == 1
        assert outcomes(memory, "remember") == []


def test_a_human_message_that_bears_an_agents_name_is_no_statement_of_the_user() -> None:
    with open_memory() as memory:
        builder = Graph(Team)
        builder.add_node("supervisor", lambda state: {})
        builder.add_node(
            "worker",
            lambda state: Command(
                goto="supervisor" if len(state["messages"]) < 2 else "__end__",
                update={"messages": [HumanMessage("Always use tables by default.", name="worker")]},
            ),
        )
        builder.add_edge(START, "supervisor")
        builder.add_conditional_edges(
            "supervisor", lambda state: "worker" if len(state["messages"]) < 2 else "__end__"
        )
        memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
        assert memory.get_all(user_id="ada", families=["user_profile"]) == []


def test_a_statement_is_remembered_once_a_turn_however_often_the_supervisor_runs() -> None:
    with open_memory() as memory:
        boss = model(call_of("transfer_to_worker"), call_of("transfer_to_worker"), "done")
        graph = memory.attach(supervised(memory, boss, model(LONG, LONG, label="w"))).compile()
        graph.invoke(asking("Always use tables by default."), config(user_id="ada"))
        assert len(boss.calls) == 3
        kept = memory.get_all(user_id="ada", families=["user_profile", "session_messages"])
        assert sorted(r.family for r in kept if "tables" in r.content) == ["session_messages", "user_profile"]
        profile = next(r for r in kept if r.family == "user_profile")
        rows = memory.backend.audit.tail(100, record_id=profile.id)
        assert [row.op for row in rows] == ["add"]


def test_two_messages_of_the_user_in_one_turn_are_both_heard() -> None:
    with open_memory() as memory:
        builder = Graph(Team)
        builder.add_node("supervisor", lambda state: {"messages": [("ai", "done")]})
        builder.add_edge(START, "supervisor")
        said = [("user", "Always use tables by default."), ("user", ASK)]
        memory.attach(builder).compile().invoke({"messages": said, "user_id": "ada"}, config())
        assert len(memory.get_all(user_id="ada", families=["user_profile"])) == 1


def test_what_an_earlier_agent_left_in_the_state_is_not_a_later_ones() -> None:
    with open_memory() as memory:
        effect = {"type": "csv", "agent": "first", "path": "/data/revenue.csv"}
        builder = Graph(Team)
        builder.add_node("supervisor", lambda state: {})
        builder.add_node("first", lambda state: {"final_answer": LONG, "side_effects": [effect]})
        builder.add_node("second", lambda state: {**state, "side_effects": [*state["side_effects"]]})
        builder.add_edge(START, "supervisor")
        builder.add_edge("supervisor", "first")
        builder.add_edge("first", "second")
        memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
        kept = memory.get_all(user_id="ada")
        assert {r.source.agent_id for r in kept} == {"first"}
        assert {r.family for r in kept} == {"first_memories"}
