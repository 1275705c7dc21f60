"""Inside a wrapped node the state is the host's own; the note is in what the model is sent."""

import dataclasses
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from supervisor_memory import SupervisorMemory
from tests.breadth import HOW
from tests.host.graphs import (
    ASK,
    CANARY,
    Team,
    asking,
    config,
    model,
    raw,
    team,
    texts,
)
from tests.host.prompted import OWN, alone, fences, plain, row, streaming

FIRST = "the note is the first message of the state that a node sees"


@dataclasses.dataclass
class Chat:
    messages: Annotated[list[AnyMessage], add_messages] = dataclasses.field(default_factory=list)


class Checked(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []


def messages_of(state: Any) -> Any:
    return state["messages"] if isinstance(state, dict) else state.messages


@pytest.mark.parametrize("schema", [Team, Chat, Checked])
@pytest.mark.parametrize("role", ["supervisor", "worker"])
def test_a_node_sees_the_messages_that_are_there_and_no_more(
    memory: SupervisorMemory, schema: Any, role: str
) -> None:
    seen: list[Any] = []

    def node(state: Any) -> dict[str, Any]:
        seen.append([*messages_of(state)])
        return {"messages": [model().invoke(messages_of(state))]}

    graph = memory.attach(alone(node, name=role, state=schema), supervisor=None, agents=[role]).compile()
    graph.invoke({"messages": [HumanMessage(ASK, id="asked")]}, config(user_id="ada"))
    assert [(message.text, message.id) for message in seen[0]] == [(ASK, "asked")]


def test_a_nodes_list_and_messages_are_the_very_objects_of_the_host(memory: SupervisorMemory) -> None:
    asked, box, seen = HumanMessage(ASK, id="asked"), object(), []

    def node(state: Any) -> dict[str, Any]:
        seen.append((state["messages"], [*state["messages"]], state.get("side_effects")))
        model().invoke(state["messages"])
        return {"final_answer": "x"}

    graph = memory.attach(row(("supervisor", node), ("worker", node))).compile()
    effects = [{"box": box}]
    graph.invoke({"messages": [asked], "side_effects": effects}, config(user_id="ada"))
    (first, held, given), (second, _, _) = seen
    assert first is second
    assert held[0] is asked
    assert given is effects


@pytest.mark.parametrize("user", ["ada", "nobody"])
def test_what_a_node_appends_in_place_is_there_for_the_next_and_in_the_thread(
    memory: SupervisorMemory, user: str
) -> None:
    lengths = []

    def first(state: Any) -> dict[str, Any]:
        state["messages"].append(HumanMessage("Appended."))
        return {"messages": []}

    def second(state: Any) -> dict[str, Any]:
        lengths.append(len(state["messages"]))
        return {"messages": [model("ok").invoke(state["messages"])]}

    builder = row(("supervisor", first), ("worker", second))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(asking(), config(user_id=user))
    assert lengths == [2]
    assert [text for _, text, _ in texts(graph.get_state(config()).values)] == [ASK, "Appended.", "ok"]


def test_a_node_that_writes_the_whole_state_back_changes_nothing(memory: SupervisorMemory) -> None:
    def node(state: Any) -> Any:
        model().invoke(state["messages"])
        return state

    graph = memory.attach(row(("supervisor", node), ("worker", node))).compile()
    state = graph.invoke(asking(), config(user_id="ada"))
    assert texts(state) == [("human", ASK, None)]


def test_what_a_node_copies_out_of_the_messages_is_no_note(memory: SupervisorMemory) -> None:
    def node(state: Any) -> dict[str, Any]:
        said = model("done").invoke(state["messages"])
        whole = " | ".join(message.text for message in state["messages"])
        return {"messages": [said], "final_answer": whole}

    state = memory.attach(alone(node)).compile().invoke(asking(), config(user_id="ada"))
    assert state["final_answer"] == ASK


def test_a_custom_key_is_the_hosts_own_too(memory: SupervisorMemory) -> None:
    @dataclasses.dataclass
    class Own:
        chat: Annotated[list[AnyMessage], add_messages] = dataclasses.field(default_factory=list)

    asked, boss = model("done"), []

    def node(state: Own) -> dict[str, Any]:
        boss.append([*state.chat])
        return {"chat": [asked.invoke(state.chat)]}

    graph = memory.attach(alone(node, state=Own), messages_key="chat").compile()
    graph.invoke({"chat": [("user", ASK)]}, config(user_id="ada"))
    assert [message.text for message in boss[0]] == [ASK]
    assert CANARY in asked.prompts[0]


def test_an_agent_that_a_node_calls_as_a_function_gets_the_hosts_messages(memory: SupervisorMemory) -> None:
    """Neither the agent's state nor what it answers has a note."""
    inner = model("found it", label="w")
    agent: Any = create_agent(inner, [], name="worker", system_prompt="base")
    held: list[Any] = []

    def node(state: Any) -> dict[str, Any]:
        held.append(len(state["messages"]))
        done = agent.invoke({"messages": state["messages"]})["messages"]
        held.append(len(done))
        return {"messages": done[-1:]}

    graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", node))).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert held == [1, 2]
    assert fences(inner.calls[0]) == 1


@pytest.mark.parametrize("schema", [Team, Chat, Checked])
def test_a_model_still_reads_the_note(memory: SupervisorMemory, schema: Any) -> None:
    boss = model("done")

    def node(state: Any) -> dict[str, Any]:
        return {"messages": [boss.invoke(messages_of(state))]}

    memory.attach(alone(node, state=schema)).compile().invoke(asking(), config(user_id="ada"))
    assert fences(boss.calls[0]) == 1
    assert CANARY in boss.prompts[0]


def test_a_chain_that_is_a_node_has_the_note_in_its_prompt(memory: SupervisorMemory) -> None:
    boss = model("done")
    read: list[int] = []

    def prompt(state: Any) -> list[Any]:
        read.append(len(state["messages"]))
        return [SystemMessage("base"), *state["messages"]]

    chain = RunnableLambda(prompt) | boss | (lambda said: {"messages": [said]})
    memory.attach(alone(chain)).compile().invoke(asking(), config(user_id="ada"))
    assert read == [1]
    assert [kind for kind, _ in plain(boss.calls[0])] == ["system", "human"]
    assert boss.calls[0][0].text.startswith("base")
    assert fences(boss.calls[0]) == 1


# --- nothing of a note is anywhere else


@HOW
async def test_no_stream_mode_and_no_checkpoint_holds_a_note(memory: SupervisorMemory, how: str) -> None:
    boss, worker = streaming("go now", "all done"), streaming("found it", label="w")
    saver = InMemorySaver()
    graph: Any = memory.attach(team(boss, {"worker": worker})).compile(checkpointer=saver)
    modes: Any = ["values", "updates", "messages", "debug", "tasks", "checkpoints", "custom"]
    options = {"stream_mode": modes, "subgraphs": True}
    where = config(user_id="ada")
    if how == "sync":
        seen = list(graph.stream(asking(), where, **options))
    else:
        seen = [chunk async for chunk in graph.astream(asking(), where, **options)]
    assert all(fences(call) == 1 for call in boss.calls + worker.calls)
    assert {chunk[1] for chunk in seen} >= {"values", "updates", "messages", "debug"}
    assert CANARY not in repr(seen)
    assert CANARY not in raw(saver)
    assert CANARY not in repr([*graph.get_state_history(where)])


async def test_only_the_events_of_models_hold_a_note(memory: SupervisorMemory) -> None:
    boss = streaming("all done")
    chain = RunnableLambda(lambda state: state["messages"]) | boss | (lambda said: {"messages": [said]})
    graph = memory.attach(alone(chain)).compile()
    holding = set()
    async for event in graph.astream_events(asking(), config(user_id="ada"), version="v2"):
        if CANARY in repr(event):
            holding.add(event["event"])
    assert holding == {"on_chat_model_start", "on_chat_model_end"}


def test_the_hosts_own_prompt_objects_are_not_changed(memory: SupervisorMemory) -> None:
    boss = model("done")
    prompt = [SystemMessage([{"type": "text", "text": "base"}], id="s"), HumanMessage("Say it.", id="h")]
    before = [message.model_dump_json() for message in prompt]

    def node(_state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(boss.invoke(prompt).text)]}

    memory.attach(alone(node)).compile().invoke(asking(), config(user_id="ada"))
    assert fences(boss.calls[0]) == 1
    assert [message.model_dump_json() for message in prompt] == before
    assert len(prompt) == 2


def test_where_there_is_nothing_to_say_the_prompt_is_the_hosts_own(memory: SupervisorMemory) -> None:
    boss = model("done")
    memory.attach(alone(lambda _: {"final_answer": boss.invoke(OWN).text})).compile().invoke(
        asking(), config(user_id="nobody")
    )
    assert plain(boss.calls[0]) == plain(OWN)


def test_outside_of_a_node_no_model_is_told_anything(memory: SupervisorMemory) -> None:
    boss = model("in", "out")
    graph = memory.attach(alone(lambda state: {"messages": [boss.invoke(state["messages"])]})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    boss.invoke(OWN)
    assert [fences(call) for call in boss.calls] == [1, 0]
