"""Attacks on what memory leaves alone: streams, states, and whoever else calls a model in the process."""

import operator
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from supervisor_memory import SupervisorMemory
from tests.host.graphs import Team, asking, config
from tests.host.prompted import alone, fences, streaming
from tests.host.speaking import answering, chain

ADA = config(user_id="ada")


async def test_a_model_is_called_with_its_prompt_by_name(memory: SupervisorMemory) -> None:
    reader = streaming(*["a b"] * 8)

    async def body(state: Any) -> Any:
        asked = state["messages"]
        list(reader.stream(input=asked))
        reader.generate(messages=[asked])
        [chunk async for chunk in reader.astream(input=asked)]
        await reader.agenerate(messages=[asked])
        return {}

    await body(asking_messages := {"messages": [HumanMessage("x")]})  # outside of every graph
    assert [fences(call) for call in reader.calls] == [0] * 4
    reader.calls.clear()
    await memory.attach(alone(body)).compile().ainvoke(asking(), ADA)
    assert [fences(call) for call in reader.calls] == [1] * 4
    assert asking_messages["messages"][0].text == "x"


@pytest.mark.parametrize("mode", ["debug", "checkpoints", "tasks"])
def test_no_stream_holds_the_beginning(memory: SupervisorMemory, mode: Any) -> None:
    builder = alone(answering("done"))
    keys: list[list[set[str]]] = []
    for graph in (
        builder.compile(checkpointer=InMemorySaver()),
        memory.attach(builder).compile(checkpointer=InMemorySaver()),
    ):
        events = list(graph.stream(asking(), ADA, stream_mode=mode))
        told = [event.get("payload", event) for event in events]
        keys.append([set((each.get("config") or {}).get("configurable", {})) for each in told])
    assert keys[0] == keys[1]


class Notes(Team, total=False):
    found: Annotated[list[AnyMessage], operator.add]


def test_a_message_under_a_key_that_gives_no_ids_gets_none(memory: SupervisorMemory) -> None:
    worker = ("worker", lambda state: {"found": [HumanMessage("Found it.")]})
    builder = chain(("supervisor", answering("ok")), worker, state=Notes)
    state = memory.attach(builder, messages_key=("messages", "found")).compile().invoke(asking(), ADA)
    assert [message.id for message in state["found"]] == [None]
