"""Which model calls inside a wrapped node are told nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode, tools_condition

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.host.graphs import ASK, Graph, Team, asking, config, model, open_memory, seed
from tests.host.prompted import OWN, Streaming, fences, row, talk

NO_SILENCE = "there is no memory.silent(), and no call that an own prompt makes is told anything"


def translating(inner: Any) -> Any:
    @tool
    def translate(text: str) -> str:
        """Translate a text."""
        return str(inner.invoke([("system", "Translate."), ("user", text)]).text)

    return translate


async def test_a_model_in_a_tool_that_a_node_runs_is_told_nothing(memory: SupervisorMemory) -> None:
    boss, inner = model(), model("Umsatz")

    def body(_state: Any) -> str:
        boss.invoke(OWN)
        translating(inner).invoke({"text": "revenue"})
        return str(boss.invoke(OWN).text)

    await talk(memory, body)
    assert [fences(call) for call in inner.calls] == [0]
    assert [fences(call) for call in boss.calls] == [1, 1]


def test_a_model_in_a_tool_of_a_tool_node_is_told_nothing(memory: SupervisorMemory) -> None:
    boss, inner = model(call_of("translate", text="revenue"), "done"), model("Umsatz")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([translating(inner)]))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", tools_condition, {"tools": "tools", END: END})
    builder.add_edge("tools", "supervisor")
    memory.attach(builder).compile().invoke(asking(), config(user_id="ada"))
    assert [fences(call) for call in inner.calls] == [0]
    assert [fences(call) for call in boss.calls] == [1, 1]


@pytest.mark.parametrize("host", ["node", "closure", "bound", "middleware"])
def test_a_model_in_a_tool_of_an_agent_is_told_nothing(memory: SupervisorMemory, host: str) -> None:
    worker, inner = model(call_of("translate", text="revenue"), "done", label="w"), model("Umsatz")
    tools: Any = [translating(inner)]
    graph: Any = create_agent(worker, tools, name="worker")
    if host == "bound":
        graph = memory.bind_agent(graph)
    elif host == "middleware":
        graph = create_agent(worker, tools, middleware=[memory.middleware(tools=[])])
    else:
        agent = graph

        def call(state: Any) -> dict[str, Any]:
            return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

        worker_node = agent if host == "node" else call
        graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", worker_node))).compile()
    graph.invoke({"messages": [("user", ASK)]}, config(user_id="ada"))
    assert [fences(each) for each in inner.calls] == [0]
    assert [fences(each) for each in worker.calls] == [1, 1]


async def test_an_agent_that_a_tool_runs_reads_its_own_note(memory: SupervisorMemory) -> None:
    inner, boss = model("found it", label="i"), model()
    agent: Any = memory.bind_agent(create_agent(inner, [], name="worker"))

    @tool
    def ask_worker(task: str) -> str:
        """Hand a task over."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    def body(_state: Any) -> str:
        ask_worker.invoke({"task": ASK})
        return str(boss.invoke(OWN).text)

    await talk(memory, body)
    assert [fences(call) for call in inner.calls] == [1]
    assert "zebra worker" in inner.prompts[0]
    assert [fences(call) for call in boss.calls] == [1]


# --- calls that say so


async def test_inside_of_silence_no_model_is_told_anything(memory: Any) -> None:
    boss = model()

    async def body(_state: Any) -> str:
        boss.invoke(OWN)
        with memory.silent():
            boss.invoke(OWN)
            await boss.ainvoke(OWN)
            _ = [*boss.stream(OWN)], [piece async for piece in boss.astream(OWN)]
            with memory.silent():
                boss.invoke(OWN)
            boss.batch([OWN])
        return str(boss.invoke(OWN).text)

    await talk(memory, body)
    assert [fences(call) for call in boss.calls] == [1, 0, 0, 0, 0, 0, 0, 1]


async def test_silence_ends_with_its_block_though_it_raised(memory: Any) -> None:
    boss = model()

    def body(_state: Any) -> str:
        with pytest.raises(ZeroDivisionError), memory.silent():
            _ = 1 / 0
        return str(boss.invoke(OWN).text)

    await talk(memory, body)
    assert [fences(call) for call in boss.calls] == [1]


async def test_a_bound_agent_that_runs_inside_of_silence_is_told_nothing(memory: Any) -> None:
    inner = model("found it")
    agent: Any = memory.bind_agent(create_agent(inner, [], name="worker"))

    def body(state: Any) -> str:
        with memory.silent():
            agent.invoke({"messages": state["messages"]})
        return "done"

    await talk(memory, body)
    assert [fences(call) for call in inner.calls] == [0]


OFF = {"tags": ["memory:off"]}
SUMMARISING = {"metadata": {"lc_source": "summarization"}}
UNTOLD: dict[str, Callable[[Any], Any]] = {
    "tag": lambda boss: boss.invoke(OWN, OFF),
    "tag_of_a_binding": lambda boss: boss.with_config(OFF).invoke(OWN),
    "tag_of_a_stream": lambda boss: [*boss.stream(OWN, OFF)],
    "tag_of_a_batch": lambda boss: boss.batch([OWN], OFF),
    "tag_of_generate": lambda boss: boss.generate([OWN], tags=["memory:off"]),
    "tag_of_a_v3_stream": lambda boss: [*boss.stream_events(OWN, OFF, version="v3")],
    "tag_of_the_model": lambda boss: boss.model_copy(update=OFF).invoke(OWN),
    "tag_of_tools": lambda boss: boss.bind_tools([translating(boss)]).with_config(OFF).invoke(OWN),
    "source": lambda boss: boss.invoke(OWN, SUMMARISING),
    "source_of_a_stream": lambda boss: [*boss.stream(OWN, SUMMARISING)],
    "source_of_a_binding": lambda boss: boss.with_config(SUMMARISING).invoke(OWN),
}


@pytest.mark.parametrize("way", UNTOLD)
async def test_a_call_that_is_marked_is_told_nothing_and_the_others_are(
    memory: SupervisorMemory, way: str
) -> None:
    boss = Streaming()

    def body(_state: Any) -> str:
        boss.invoke(OWN)
        UNTOLD[way](boss)
        return str(boss.invoke(OWN).text)

    await talk(memory, body)
    assert [fences(call) for call in boss.calls] == [1, 0, 1]


@pytest.mark.parametrize("host", ["node", "middleware"])
def test_langchains_summariser_is_told_nothing(memory: SupervisorMemory, host: str) -> None:
    worker, summariser = model("done", label="w"), model("They talked about colours.", label="s")
    summarising: Any = SummarizationMiddleware(summariser, trigger=("messages", 3), keep=("messages", 1))
    if host == "node":
        agent = create_agent(worker, [], name="worker", middleware=[summarising])
        graph: Any = memory.attach(row(("supervisor", lambda _: {}), ("worker", agent))).compile()
    else:
        graph = create_agent(worker, [], middleware=[summarising, memory.middleware(tools=[])])
    said = [HumanMessage("Red?"), AIMessage("Blue."), HumanMessage("Green?"), AIMessage("Yes.")]
    graph.invoke({"messages": [*said, HumanMessage(ASK)]}, config(user_id="ada"))
    assert [fences(call) for call in summariser.calls] == [0]
    assert [fences(call) for call in worker.calls] == [1]


def test_memorys_own_model_is_told_nothing() -> None:
    own = ScriptedModel(script=[])
    boss = model(call_of("look_up", what="revenue"), "done")

    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        return "Revenue rose by 12 percent in June because of two new contracts in the north."

    with open_memory(llm=own) as memory:
        seed(memory)
        graph: Any = create_agent(boss, [look_up], middleware=[memory.middleware(tools=[])])
        graph.invoke({"messages": [("user", ASK)]}, config(user_id="ada"))
        memory.flush()
    assert own.calls
    assert [fences(call) for call in own.calls] == [0] * len(own.calls)
    assert [fences(call) for call in boss.calls] == [1, 1]


# --- nodes and edges that are not wrapped


def test_nodes_that_are_no_agents_and_edges_are_told_nothing(memory: SupervisorMemory) -> None:
    boss, other, judge = model("done"), model("other"), model("yes")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_node("other", lambda _: {"final_answer": other.invoke(OWN).text})
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", lambda _: judge.invoke(OWN).text, {"yes": "other"})
    builder.add_edge("other", END)
    memory.attach(builder, agents=[]).compile().invoke(asking(), config(user_id="ada"))
    assert [fences(call) for call in boss.calls] == [1]
    assert [fences(call) for call in other.calls + judge.calls] == [0, 0]
