"""Fifty turns in which every model repeats all it is shown, our notes included: nothing of it is kept."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import size
from tests.cases import every_case
from tests.host.graphs import Graph, Team, config, model, open_memory

TURNS = size(50, less=15)
FIRST = {
    "en": (
        "GMV excludes refunds. Always answer in tables.",
        "Delayed means more than 15 minutes late at arrival.",
        "How is GMV of region {} defined, and which flights arrive late?",
        "Show me GMV of region {} in a table.",
    ),
    "zh": (
        "GMV不含退款。请始终用表格回答。",
        "延误是指到达晚点超过15分钟。",
        "区域{}的GMV怎么定义？哪些航班到达晚点？",
        "请给我看区域{}的GMV。",
    ),
}


def shown(messages: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def as_bullets(messages: list[BaseMessage]) -> str:
    """The facts of the note alone, as a model likes to list them."""
    lines = [line for m in messages for line in m.text.splitlines() if line.startswith("- [")]
    return "\n".join(["What I remember:", *(f"* {line.partition('] ')[2]}" for line in lines)])


def as_prose(messages: list[BaseMessage]) -> str:
    facts = [
        line.partition("] ")[2] for m in messages for line in m.text.splitlines() if line.startswith("- [")
    ]
    return "As you know: " + " ".join(f"{fact.rstrip('.。')}." for fact in facts)


WAYS = {"all of it": shown, "bullets": as_bullets, "prose": as_prose}


def echoing(way: Any, *, first: str | None = None) -> ScriptedModel:
    """A model that repeats, in every second call if there is something to say `first`."""
    said = [lambda messages: AIMessage(way(messages))]
    return ScriptedModel(script=([first, *said] if first else said) * 3 * TURNS)


def crew(way: Any) -> Any:
    return pair(echoing(way, first="Your turn."), echoing(way))


def pair(boss: ScriptedModel, worker: ScriptedModel) -> Any:
    """A supervisor that lets one worker speak. Both see their instructions and what was said."""

    def supervise(state: Any) -> Any:
        said = boss.invoke([SystemMessage("You lead a team of analysts."), *state["messages"]])
        return {"messages": [said]}

    def work(state: Any) -> Any:
        said = worker.invoke([SystemMessage("You are an analyst of flights."), *state["messages"]])
        return {"messages": [AIMessage(said.text, name="worker")]}

    builder = Graph(Team)
    builder.add_node("supervisor", supervise)
    builder.add_node("worker", work)
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges(
        "supervisor", lambda state: END if len(state["messages"]) > 2 else "worker", ["worker", END]
    )
    builder.add_edge("worker", "supervisor")
    return builder


def records(memory: SupervisorMemory) -> list[tuple[str, str, int]]:
    return sorted((r.family, r.content, r.version) for r in memory.get_all(user_id="ada", limit=999))


async def say(graph: Any, how: str, text: str, thread: str) -> Any:
    given = {"messages": [("user", text)], "user_id": "ada"}, config(thread, user_id="ada")
    return await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("how", "way"), [("async", "all of it"), *(("sync", way) for way in WAYS)])
@pytest.mark.parametrize("tongue", ["en", pytest.param("zh", marks=pytest.mark.slow)])
async def test_many_turns_of_echo_add_nothing(how: str, way: str, tongue: str) -> None:
    *facts, question, request = FIRST[tongue]
    with open_memory() as memory:
        graph = memory.attach(crew(WAYS[way])).compile(checkpointer=InMemorySaver())
        for number, fact in enumerate(facts):
            await say(graph, how, fact, f"t{number}")
        after_two = records(memory)
        assert len([r for r in after_two if not r[0].endswith("_memories")]) == 3
        for number in range(TURNS):
            text = (question if number % 2 else request).format(number)
            await say(graph, how, text, f"u{number}")
        assert records(memory) == after_two
        skips = [row.event for row in memory.backend.audit.tail(999, op="skip")]
        assert {event["reason"] for event in skips if event["record_id"]} <= {"recalled-text"}
        assert len(skips) >= TURNS


async def test_one_thread_of_echo_adds_nothing() -> None:
    """The thread grows, and with it what is repeated."""
    *facts, question, _ = FIRST["en"]
    with open_memory() as memory:
        builder = crew(as_bullets)
        builder.branches["supervisor"].clear()
        builder.add_conditional_edges(
            "supervisor",
            lambda state: END if state["messages"][-2].name == "worker" else "worker",
            ["worker", END],
        )
        saver = InMemorySaver()
        graph = memory.attach(builder).compile(checkpointer=saver)
        for fact in facts:
            await say(graph, "sync", fact, "t")
        after_two = records(memory)
        for number in range(TURNS):
            await say(graph, "sync", question.format(number), "t")
        assert records(memory) == after_two


async def test_a_new_finding_among_echoes_is_kept() -> None:
    *facts, question, _ = FIRST["en"]
    found = "GMV (excluding refunds) fell by 12 % in May."
    with open_memory() as memory:
        worker = ScriptedModel(script=[as_bullets_of, as_bullets_of, with_finding(found), as_bullets_of])
        boss = echoing(as_bullets, first="Your turn.")
        graph = memory.attach(pair(boss, worker)).compile()
        for text in (*facts, question.format(1), question.format(2)):
            await say(graph, "sync", text, "t")
        kept = [r.content for r in memory.get_all(user_id="ada", families=["worker_memories"])]
        assert kept == [found]


def as_bullets_of(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage(as_bullets(messages))


def with_finding(found: str) -> Any:
    return lambda messages: AIMessage(f"{as_bullets(messages)}\n\n{found}")


# --- handoffs


@every_case("mode", ["last_message", "full_history"])
def test_the_bookkeeping_of_create_supervisor_is_kept_nowhere(mode: Any) -> None:
    with open_memory() as memory:
        boss = model(call_of("transfer_to_math"), "The sum is 4 million for May.")
        math = create_agent(model("Revenue of May was 4 million.", label="math"), [], name="math")
        builder = create_supervisor([math], model=boss, output_mode=mode)
        graph = memory.attach(builder).compile()
        graph.invoke({"messages": [("user", "Add it up.")]}, config(user_id="ada"))
        assert_no_bookkeeping(memory)
        assert [r.content for r in memory.get_all(user_id="ada")] == ["Revenue of May was 4 million."]


def test_the_bookkeeping_of_a_swarm_is_kept_nowhere() -> None:
    with open_memory() as memory:
        alice = create_agent(
            model(call_of("transfer_to_bob"), label="alice"),
            [create_handoff_tool(agent_name="bob")],
            name="alice",
        )
        bob = create_agent(
            model("Revenue of May was 4 million.", label="bob"),
            [create_handoff_tool(agent_name="alice")],
            name="bob",
        )
        builder = create_swarm([alice, bob], default_active_agent="alice")
        graph = memory.attach(builder, supervisor=None).compile()
        graph.invoke({"messages": [("user", "Add it up.")]}, config(user_id="ada"))
        assert_no_bookkeeping(memory)


def assert_no_bookkeeping(memory: SupervisorMemory) -> None:
    kept = memory.get_all(user_id="ada") + memory.get_all(user_id="ada", families=["session_messages"])
    assert kept
    assert not [record.content for record in kept if "transferr" in record.content.lower()]
