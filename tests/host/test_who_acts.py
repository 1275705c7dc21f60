"""Whose run it is, is settled at its beginning: no node and no tool makes it another's."""

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import HOW
from tests.host.graphs import CANARY, Graph, Team, config, model, open_memory, seed
from tests.host.speaking import (
    CHINESE,
    TABLES,
    assert_heard,
    chain,
    crew,
    everything,
    fetched,
    human,
    run,
)


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    """Bob has records, which nobody else may read."""
    with open_memory() as memory:
        seed(memory, "bob")
        yield memory


@tool
def switch(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Name another user in the state."""
    answer = ToolMessage("switched", tool_call_id=call_id)
    return Command(update={"user_id": "bob", "messages": [answer]})


def by_tool(boss: ScriptedModel) -> Any:
    def following(state: Any) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    boss.script = [call_of("switch")]
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([switch]))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", following, ["tools", END])
    builder.add_edge("tools", "supervisor")
    return builder


def by_node(boss: ScriptedModel, update: Any) -> Any:
    def speak(state: Any) -> Any:
        return {"messages": [boss.invoke(state["messages"])]}

    return chain(("supervisor", speak), ("worker", lambda state: update), ("after", speak))


def by_command(boss: ScriptedModel) -> Any:
    return by_node(boss, Command(update={"user_id": "bob"}))


def by_dict(boss: ScriptedModel) -> Any:
    return by_node(boss, {"user_id": "bob", "messages": [AIMessage("I am bob now.", name="worker")]})


def before_the_supervisor(boss: ScriptedModel) -> Any:
    def speak(state: Any) -> Any:
        return {"messages": [boss.invoke(state["messages"])]}

    return chain(("worker", lambda state: {"user_id": "bob"}), ("supervisor", speak))


SWITCHES = [by_tool, by_command, by_dict, before_the_supervisor]


def owners(memory: SupervisorMemory, text: str) -> set[str]:
    """Who the records that say this belong to."""
    found = {r.user_id or "" for r in everything(memory) if text.rstrip(".。") in r.content}
    return {"anonymous" if owner.startswith("anon:") else owner for owner in found}


def switches() -> Iterator[Any]:
    for switch, first in itertools.product(SWITCHES, ("ada", None)):
        id = f"{switch.__name__}-{first or 'nobody'}"
        yield pytest.param(switch, first, id=id)


@HOW
@pytest.mark.parametrize(("switch", "first"), [*switches()])
@pytest.mark.parametrize("then", ["ada", None], ids=["then ada", "then unnamed"])
async def test_a_run_and_its_thread_stay_whose_they_are(
    memory: SupervisorMemory, switch: Any, first: str | None, then: str | None, how: str
) -> None:
    boss = model()
    graph = memory.attach(switch(boss)).compile(checkpointer=InMemorySaver())
    held = {(r.id, r.version) for r in everything(memory)}
    for user, text in ((first, TABLES), (then, CHINESE)):
        given = human(text) | ({"user_id": user} if user else {})
        await run(graph, given, config(), how)
    assert not any(CANARY in prompt for prompt in boss.prompts)
    assert owners(memory, TABLES) == {first or "anonymous"}
    assert owners(memory, CHINESE) == {then or first or "anonymous"}
    assert {(r.id, r.version) for r in everything(memory) if r.user_id == "bob"} == held


@HOW
@pytest.mark.parametrize(
    "switch",
    SWITCHES,
    ids=lambda switch: switch.__name__,
)
async def test_the_user_of_the_config_stays_in_the_next_run_too(
    memory: SupervisorMemory, switch: Any, how: str
) -> None:
    boss = model()
    graph = memory.attach(switch(boss)).compile(checkpointer=InMemorySaver())
    for text in (TABLES, CHINESE):
        await run(graph, human(text), config(user_id="ada"), how)
    assert not any(CANARY in prompt for prompt in boss.prompts)
    assert (owners(memory, TABLES), owners(memory, CHINESE)) == ({"ada"}, {"ada"})


@HOW
async def test_a_host_may_name_the_user_between_runs(memory: SupervisorMemory, how: str) -> None:
    boss = model()
    graph = memory.attach(by_tool(boss)).compile(checkpointer=InMemorySaver())
    graph.update_state(config(), {"user_id": "ada"}, as_node="__start__")
    await run(graph, human(TABLES), config(), how)
    assert owners(memory, TABLES) == {"ada"}


# --- Studio

STUDIO = "langgraph-studio-user"
AS_STUDIO: dict[str, Any] = {
    "a dict": {"langgraph_auth_user": {"identity": STUDIO}},
    "an object": {"langgraph_auth_user": SimpleNamespace(identity=STUDIO)},
    "with its id": {"langgraph_auth_user": {"identity": STUDIO}, "langgraph_auth_user_id": STUDIO},
}


@HOW
@pytest.mark.parametrize("signed_in", AS_STUDIO)
async def test_studio_is_nobody_and_configurable_may_name_the_user(
    memory: SupervisorMemory, signed_in: str, how: str
) -> None:
    graph = memory.attach(crew(fetched())).compile()
    await run(graph, human(TABLES), config(user_id="ada", **AS_STUDIO[signed_in]), how)
    assert_heard(memory, TABLES)
    assert owners(memory, TABLES) == {"ada"}


@pytest.mark.parametrize("signed_in", [*AS_STUDIO.values(), {"user_id": STUDIO}])
def test_studio_without_a_user_is_an_anonymous_thread(
    memory: SupervisorMemory, signed_in: dict[str, Any]
) -> None:
    graph = memory.attach(crew(lambda state: {})).compile()
    for thread, text in (("t1", TABLES), ("t2", CHINESE)):
        graph.invoke(human(text), config(thread, **signed_in))
    users = {(r.user_id or "") for r in everything(memory) if r.user_id != "bob"}
    assert len(users) == 2
    assert all(user.startswith("anon:") for user in users)


def test_anybody_else_who_is_signed_in_may_not_act_for_another(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(lambda state: {})).compile()
    graph.invoke(human(TABLES), config(user_id="ada", langgraph_auth_user={"identity": "eve"}))
    assert owners(memory, TABLES) == set()
