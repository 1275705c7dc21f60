"""What tools find in one session is remembered in the next, in every kind of host, and changes no graph."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import Record
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.breadth import HOW
from tests.cases import every_case
from tests.host.graphs import Graph, Team, asking, config, model, open_memory, outcomes, raw

SQL = "SELECT region FROM sales WHERE year = 2026"
EXPECTED = f"SQL: {SQL}"


@tool
def run_sql(sql: str) -> str:
    """Run a statement."""
    return "Error: no such table" if "nowhere" in sql else "north\nsouth"


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"saved to {path}"


TOOLS = [run_sql, read_file]


def calling(name: str, call_id: str = "c1", **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def script() -> list[Any]:
    """A sub-agent that asks the database, once in vain, and reads a file."""
    return [
        calling("run_sql", "c1", sql=SQL),
        calling("run_sql", "c2", sql="SELECT x FROM nowhere"),
        calling("run_sql", "c3", sql="PRAGMA table_info(sales)"),
        calling("read_file", "c4", path="/data/raw.csv"),
        AIMessage("done"),
    ]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as opened:
        yield opened


def artifacts(memory: SupervisorMemory, user: str = "ada") -> list[Record]:
    assert memory.flush()
    return [r for r in memory.get_all(user_id=user) if r.kind == "tool-effects"]


def supervised(worker: Any, memory: SupervisorMemory) -> Any:
    """A graph of a supervisor that hands to one worker and answers."""
    boss = model("all right", "all right")

    def supervise(state: Any) -> Any:
        return {"messages": [boss.invoke(state["messages"])]}

    builder = Graph(Team)
    builder.add_node("supervisor", supervise)
    builder.add_node("worker", worker)
    builder.add_edge(START, "worker")
    builder.add_edge("worker", "supervisor")
    builder.add_edge("supervisor", END)
    return memory.attach(builder).compile()


def as_graph(agent: Any) -> Any:
    return agent


def as_function(agent: Any) -> Any:
    def work(state: Any) -> Any:
        answer = agent.invoke({"messages": state["messages"]})["messages"][-1]
        return {"messages": [AIMessage(answer.text, name="worker")]}

    return work


@pytest.mark.parametrize("shape", [as_graph, as_function])
@HOW
async def test_what_a_sub_agents_tools_answer_is_remembered_by_rules(
    memory: SupervisorMemory, shape: Callable[[Any], Any], how: str
) -> None:
    if shape is as_function and how == "async":
        pytest.skip("a function that calls its agent synchronously")
    agent = create_agent(model(*script()), TOOLS)
    graph = supervised(shape(agent), memory)
    given = asking("Which regions?", user_id="ada"), config()
    await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    (record,) = artifacts(memory)
    assert record.content == EXPECTED
    source = record.source
    assert (record.family, source.source_class, source.agent_id) == ("worker_memories", "tool", "worker")
    assert source.session_id == "t1"
    assert outcomes(memory, "queue") == []


def test_the_graph_sends_and_stores_what_it_does_without_memory(memory: SupervisorMemory) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    def messages(attached: bool) -> list[tuple[str, str]]:
        saver = InMemorySaver()
        agent = create_agent(model(*script()), TOOLS)
        builder = Graph(Team)
        builder.add_node("supervisor", agent)
        builder.add_edge(START, "supervisor")
        graph = (memory.attach(builder) if attached else builder).compile(checkpointer=saver)
        given = asking("Which regions?", user_id="ada"), config()
        said = [(m.type, m.text) for m in graph.invoke(*given)["messages"]]
        assert "event" not in raw(saver)
        return said

    assert messages(attached=True) == messages(attached=False)


def test_a_tool_node_of_a_sub_agent_in_the_graph_itself(memory: SupervisorMemory) -> None:
    worker = model(calling("run_sql", sql=SQL), "north and south")

    def work(state: Any) -> Any:
        return {"messages": [worker.invoke(state["messages"])]}

    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", work)
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    builder.add_conditional_edges(
        "worker", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    builder.add_edge("tools", "worker")
    graph = memory.attach(builder, agents=["worker"]).compile()
    graph.invoke(asking("Which regions?", user_id="ada"), config())
    (record,) = artifacts(memory)
    assert (record.content, record.source.agent_id) == (EXPECTED, "worker")


def test_tools_that_a_sub_agent_calls_by_itself_are_read_from_its_messages(memory: SupervisorMemory) -> None:
    def work(state: Any) -> Any:
        call = calling("run_sql", sql=SQL)
        result = run_sql.invoke({**call.tool_calls[0], "type": "tool_call"})
        assert isinstance(result, ToolMessage)
        return {"messages": [call, result, AIMessage("done", name="worker")]}

    supervised(work, memory).invoke(asking("Which regions?", user_id="ada"), config())
    assert [record.content for record in artifacts(memory)] == [EXPECTED]


@HOW
async def test_the_supervisors_own_tools_and_its_agents_by_the_middleware(
    memory: SupervisorMemory, how: str
) -> None:
    inner = create_agent(model(calling("run_sql", sql=SQL), "north"), TOOLS, name="analyst")

    @tool
    def sql_expert(question: str) -> str:
        """Ask the analyst."""
        return str(inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text)

    own = "SELECT 1 FROM own"
    boss = model(
        calling("sql_expert", question="regions?"), calling("run_sql", "c9", sql=own), AIMessage("well")
    )
    agent = create_agent(boss, [sql_expert, *TOOLS], middleware=[memory.middleware()])
    given: Any = ({"messages": [HumanMessage("Which regions?")]}, config(user_id="ada"))
    await agent.ainvoke(*given) if how == "async" else agent.invoke(*given)
    found = {(r.content, r.family) for r in artifacts(memory)}
    assert found == {(EXPECTED, "analyst_memories"), (f"SQL: {own}", "tool_effects")}


def test_memory_tools_are_no_events_whatever_the_lists_say() -> None:
    with open_memory(settings={"capture_tools": ("*",), "skip_tools": (), "queue_worker": False}) as memory:
        boss = model(calling("memory_write", content="tea", namespace="domain_facts"), "noted")
        agent = create_agent(boss, [], middleware=[memory.middleware()])
        agent.invoke({"messages": [HumanMessage("note: tea")]}, config(user_id="ada"))
        assert memory.queue.waiting() == []


def test_a_bound_agent_is_observed_too(memory: SupervisorMemory) -> None:
    agent = memory.bind_agent(create_agent(model(*script()), TOOLS, name="analyst"))
    agent.invoke({"messages": [HumanMessage("regions?")]}, config(user_id="ada"))
    assert [(r.content, r.family) for r in artifacts(memory)] == [(EXPECTED, "analyst_memories")]


def test_a_turn_that_runs_again_adds_nothing(memory: SupervisorMemory) -> None:
    agent = create_agent(model(*script(), *script()), TOOLS)
    graph = supervised(agent, memory)
    question = {"messages": [HumanMessage("Which regions?", id="m1")], "user_id": "ada"}
    graph.invoke(question, config())
    (record,) = artifacts(memory)
    memory.delete(record.id)
    graph.invoke(question, config())
    assert artifacts(memory) == []


# --- the next session, with a model


@pytest.mark.parametrize("backend", ["sqlite", "json"])
def test_what_a_tool_found_is_recalled_in_the_next_session(backend: str, tmp_path: Path) -> None:
    @tool
    def query_stock(item: str) -> str:
        """Ask the depot."""
        return "The Kiel depot holds 31 left-handed teapots."

    finds = json.dumps([{"content": "The Kiel depot holds 31 left-handed teapots", "kind": "domain-facts"}])

    def opened(**options: Any) -> SupervisorMemory:
        settings = Settings(backend=backend, path=tmp_path, embedding_model="none", queue_min_events=9)
        return SupervisorMemory(settings, clock=FixedClock(), **options)

    def asked(memory: SupervisorMemory, tools: list[BaseTool], boss: ScriptedModel, text: str) -> None:
        agent = create_agent(model(calling("query_stock", item="teapots"), "31"), tools)
        builder = Graph(Team)
        builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
        builder.add_node("worker", agent)
        builder.add_edge(START, "worker")
        builder.add_edge("worker", "supervisor")
        memory.attach(builder).compile().invoke(asking(text, user_id="ada"), config(text[:9]))

    extractor = ScriptedModel(script=[finds])
    with opened(llm=extractor) as first:
        asked(first, [query_stock], model("31"), "How many teapots are there?")
        assert len(first.queue.waiting()) >= 2
    assert len(extractor.calls) == 1
    with opened() as second:
        boss = model("31, as before")
        asked(second, [], boss, "What do we know of left-handed teapots?")
        assert "31 left-handed teapots" in boss.prompts[0]


@every_case("fault", ["hangs", "nonsense"])
def test_a_model_that_hangs_or_talks_nonsense_changes_no_answer(fault: str) -> None:
    def bad(_: Any) -> str:
        if fault == "hangs":
            time.sleep(0.5)
        return "]["

    answers = []
    for llm in (None, ScriptedModel(script=[bad] * 20)):
        settings = {"queue_min_events": 1, "queue_cooldown_s": 0, "queue_llm_timeout_ms": 40}
        with open_memory(llm=llm, settings=settings) as memory:
            graph = supervised(create_agent(model(*script()), TOOLS), memory)
            told = graph.invoke(asking("Which regions?", user_id="ada"), config())
            answers.append([(m.type, m.text) for m in told["messages"]])
            if llm is not None:
                for _ in range(4):
                    assert memory.flush(seconds=9)
                assert memory.queue.counts()["waiting"] == 0
                assert {each.event.source_class for each in memory.queue.dead()} == {"user", "tool", "agent"}
    assert answers[0] == answers[1]
