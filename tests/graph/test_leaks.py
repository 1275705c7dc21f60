"""Notes are read by models and shown nowhere else: no stream, no state, no checkpoint, no interrupt.

A canary stands in the records of each user and in nothing that the scripted models say, so wherever it
shows, a note shows.
"""

import asyncio
import functools
import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from langchain_core.messages import get_buffer_string, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, StreamWriter, interrupt

from supervisor_memory import SupervisorMemory
from tests.graph import hosts
from tests.graph.graphs import Graph, config, raw
from tests.graph.hosts import CANARIES, HOSTS, Built, Chat, Host, How, opened, question

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HOW = pytest.mark.parametrize("how", ["sync", "async"])
CELLS = [pytest.param(host, how, id=f"{host.name}, {how}") for host in HOSTS for how in host.how]
CELL = pytest.mark.parametrize(("host", "how"), CELLS)
MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with opened() as memory:
        yield memory


async def streamed(built: Built, how: How, *, user: str, thread: str, **options: Any) -> list[Any]:
    """Every chunk of a turn; what asks or stops on the way is told to go on."""
    where = config(thread, user_id=user)
    given: Any = {built.key: question(user)}
    seen: list[Any] = []
    while True:
        if how == "async":
            seen += [chunk async for chunk in built.graph.astream(given, where, stream_mode=MODES, **options)]
        else:
            seen += built.graph.stream(given, where, stream_mode=MODES, **options)
        held = built.graph.get_state(where)
        if not held.next:
            return seen
        seen.append(built.graph.get_state(where, subgraphs=True))
        given = Command(resume="yes") if held.interrupts else None


def shown_in(built: Built, thread: str, user: str) -> list[Any]:
    """What a graph gives out of a thread."""
    where = config(thread, user_id=user)
    return [built.graph.get_state(where, subgraphs=True), *built.graph.get_state_history(where)]


def text_of(shown: Any) -> str:
    """All that is in it as one text; the repr of messages takes long."""
    try:
        return pickle.dumps(shown).decode("latin-1")
    except (pickle.PicklingError, AttributeError, TypeError):
        return repr(shown)


def leaks(text: str, host: Host) -> list[str]:
    """The traces of notes. What the supervisor asked of its tools is in its thread, as any tool's result."""
    words = ["<memory id="] if host.asks_memory else ["<memory id=", *CANARIES.values()]
    return [word for word in words if word in text]


@CELL
async def test_no_stream_state_or_checkpoint_shows_a_note_to_its_user_or_to_another(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    saver = InMemorySaver()
    built = host.build(memory, saver)
    turns = [
        functools.partial(streamed, built, how, user=user, thread=f"of-{user}", subgraphs=user == "ada")
        for user in CANARIES
    ]
    if how == "async":
        seen = await asyncio.gather(*(turn() for turn in turns))
    else:
        with ThreadPoolExecutor(len(turns)) as pool:
            seen = list(pool.map(lambda turn: asyncio.run(turn()), turns))

    for user, chunks in zip(CANARIES, seen, strict=True):
        assert chunks
        for shown in (chunks, shown_in(built, f"of-{user}", user)):
            text = text_of(shown)
            assert "bullet points" in text
            assert leaks(text, host) == []
            assert not [c for u, c in CANARIES.items() if u != user and c in text]
    assert leaks(raw(saver), host) == []
    prompts = [prompt for _, model in built.readers() for prompt in model.prompts]
    for user, canary in CANARIES.items():
        assert any(canary in prompt for prompt in prompts)
        assert not [
            p for p in prompts if canary in p and any(f"for {u} by" in p for u in CANARIES if u != user)
        ]
        assert not [
            p for p in prompts if canary in p and any(c in p for c in CANARIES.values() if c != canary)
        ]


# --- nodes that hand on what they read


class Copying(Chat, total=False):
    copied: Any


def in_json(messages: Any) -> str:
    return json.dumps(messages_to_dict(messages))


WAYS: dict[str, Callable[[Any], Any]] = {
    "as messages": list,
    "deep in other values": lambda messages: {"kept": [{"all": tuple(messages)}]},
    "as dictionaries": messages_to_dict,
    "as JSON": in_json,
    "as JSON in JSON": lambda messages: json.dumps({"said": in_json(messages)}),
    "as LangChain dumps": dumps,
    "as one text": get_buffer_string,
    "as repr": repr,
    "as str of the state": lambda messages: str({"messages": messages}),
    "as texts": lambda messages: [message.text for message in messages],
}
WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def copying(hand_on: Callable[[Any], Any], how: str) -> Any:
    """A supervisor and a worker that both hand on what they read."""

    async def ahand_on(state: Any) -> Any:
        return hand_on(state)

    builder = Graph(Copying)
    for name in ("supervisor", "worker"):
        builder.add_node(name, ahand_on if how == "async" else hand_on)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    return builder


async def all_of(graph: Any, given: Any, how: str, **options: Any) -> list[Any]:
    if how == "async":
        return [c async for c in graph.astream(given, config(user_id="ada"), stream_mode=MODES, **options)]
    return list(graph.stream(given, config(user_id="ada"), stream_mode=MODES, **options))


GIVEN: Any = {"messages": question()}


@WAY
@HOW
async def test_what_a_node_copies_into_another_key_holds_no_note(
    memory: SupervisorMemory, how: How, way: Any
) -> None:
    saver = InMemorySaver()
    read: list[str] = []

    def copy(state: Any) -> Any:
        read.append(repr(state))
        return {"copied": way(state["messages"])}

    graph = memory.attach(copying(copy, how)).compile(checkpointer=saver)
    seen = await all_of(graph, GIVEN, how)
    assert all(CANARIES["ada"] in each for each in read)
    assert "bullet points" in repr(graph.get_state(config()).values["copied"])
    assert not [c for c in ("<memory", CANARIES["ada"]) if c in repr(seen) + raw(saver)]


@WAY
@HOW
async def test_what_a_node_asks_the_user_holds_no_note(memory: SupervisorMemory, how: How, way: Any) -> None:
    saver = InMemorySaver()

    def ask(state: Any) -> Any:
        return {"copied": interrupt({"messages": way(state["messages"])})}

    graph = memory.attach(copying(ask, how)).compile(checkpointer=saver)
    seen = await all_of(graph, GIVEN, how)
    seen += [graph.get_state(config())]
    seen += await all_of(graph, Command(resume="yes"), how)
    assert "Interrupt" in repr(seen)
    assert not [c for c in ("<memory", CANARIES["ada"]) if c in repr(seen) + raw(saver)]


@pytest.mark.parametrize("reached", ["by import", "as an argument", "by the runtime"])
@HOW
async def test_what_a_node_writes_into_the_custom_stream_holds_no_note(
    memory: SupervisorMemory, how: How, reached: str
) -> None:
    def tell(state: Any, writer: Any) -> None:
        for way in WAYS.values():
            writer({"read": way(state["messages"])})

    def by_import(state: Any) -> None:
        tell(state, get_stream_writer())

    def by_argument(state: Any, writer: StreamWriter) -> None:
        tell(state, writer)

    def by_runtime(state: Any, runtime: Runtime) -> None:
        tell(state, runtime.stream_writer)

    ways = {"by import": by_import, "as an argument": by_argument, "by the runtime": by_runtime}
    builder = Graph(Copying)
    builder.add_node("supervisor", ways[reached])
    builder.add_edge(START, "supervisor")
    seen = await all_of(memory.attach(builder).compile(), GIVEN, how)
    assert len([chunk for mode, chunk in seen if mode == "custom"]) == len(WAYS)
    assert not [c for c in ("<memory", CANARIES["ada"]) if c in repr(seen)]


@HOW
async def test_what_a_node_sends_or_commands_holds_no_note(memory: SupervisorMemory, how: How) -> None:
    got: list[Any] = []

    def send(state: Any) -> Any:
        sent = {name: way(state["messages"]) for name, way in WAYS.items()}
        return Command(goto=[Send("plain", {"messages": [], "copied": sent})], update={"copied": sent})

    builder = Graph(Copying)
    builder.add_node("supervisor", send, destinations=("plain",))
    builder.add_node("plain", got.append)
    builder.add_edge(START, "supervisor")
    saver = InMemorySaver()
    seen = await all_of(memory.attach(builder, agents=[]).compile(checkpointer=saver), GIVEN, how)
    assert got
    assert not [c for c in ("<memory", CANARIES["ada"]) if c in repr(got) + repr(seen) + raw(saver)]


# --- what shows the input of models by its nature

SHOW_MODEL_INPUT = {
    "on_chat_model_start": "what is asked",
    "on_chat_model_end": "repeats what was asked",
}
"""Events of a model call itself."""
SHOW_STEPS = {
    "call_model": "the model's node of create_react_agent, and so of create_supervisor",
    "call_agent": "the function in which create_supervisor runs an agent",
    "RunnableSequence": "what a host made of several steps",
    "Prompt": "how create_react_agent puts its prompt before the messages",
}
"""Steps inside of a node that are traced one by one: what the step that calls the model is given."""


@pytest.mark.parametrize("host", HOSTS, ids=str)
async def test_only_events_of_what_calls_a_model_show_its_input(memory: SupervisorMemory, host: Host) -> None:
    built = host.build(memory, InMemorySaver())
    where = config(user_id="ada")
    shown = set()
    async for event in built.graph.astream_events({built.key: question()}, where, version="v2"):
        if leaks(text_of(event["data"]), host):
            shown.add((event["event"], event["name"]))
    assert {event for event, _ in shown} >= set(SHOW_MODEL_INPUT)
    steps = {name for event, name in shown if event not in SHOW_MODEL_INPUT}
    assert steps <= set(SHOW_STEPS)
    assert {event for event, _ in shown} <= {*SHOW_MODEL_INPUT, "on_chain_start", "on_chain_end"}


class Listening(BaseCallbackHandler):
    """Keeps the names of callbacks that were given a note."""

    def __init__(self) -> None:
        self.shown: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("on_"):
            return found

        def heard(*given: Any, **facts: Any) -> Any:
            if "<memory id=" in repr((given, facts)):
                self.shown.add(name)
            return found(*given, **facts)

        return heard


CALLBACKS_OF_MODELS = {"on_chat_model_start", "on_llm_start"}  # the second for who lacks the first
CALLBACKS_OF_STEPS = {"on_chain_start", "on_chain_end"}


@HOW
@pytest.mark.parametrize(
    ("build", "callbacks"),
    [
        (hosts.functions, CALLBACKS_OF_MODELS),
        (hosts.agent_node, CALLBACKS_OF_MODELS),
        (hosts.as_tools, CALLBACKS_OF_MODELS),
        (hosts.deep, CALLBACKS_OF_MODELS),
        (hosts.last_message, CALLBACKS_OF_MODELS | CALLBACKS_OF_STEPS),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
async def test_only_callbacks_of_what_calls_a_model_are_given_its_input(
    memory: SupervisorMemory, how: How, build: hosts.Build, callbacks: set[str]
) -> None:
    built = build(memory, InMemorySaver())
    listening = Listening()
    given: Any = {built.key: question()}, {**config(user_id="ada"), "callbacks": [listening]}
    await (built.graph.ainvoke(*given) if how == "async" else asyncio.to_thread(built.graph.invoke, *given))
    assert listening.shown == callbacks


# --- the known limit: an agent that is a global of its node's module


def by_global(memory: SupervisorMemory, saver: InMemorySaver, *, bind: bool) -> Built:
    def make(agent: Any) -> Any:
        hosts.GLOBAL["worker"] = memory.bind_agent(agent) if bind else agent
        return hosts.work_by_global

    return hosts.of_node(memory, saver, make)


@HOW
async def test_a_global_agent_shows_its_note_in_its_own_stream_and_checkpoints_only(
    memory: SupervisorMemory, how: How
) -> None:
    saver = InMemorySaver()
    built = by_global(memory, saver, bind=False)
    inner = await streamed(built, how, user="ada", thread="t1", subgraphs=True)
    outer = await streamed(built, how, user="ada", thread="t2", subgraphs=False)
    shown = [chunk for chunk in inner if CANARIES["ada"] in repr(chunk)]
    assert shown
    assert all(chunk[0] and chunk[0][0].startswith("worker:") for chunk in shown)
    assert CANARIES["ada"] not in repr(outer)
    kept = [key for key, value in saver.blobs.items() if CANARIES["ada"].encode() in (value[1] or b"")]
    assert kept
    assert all(namespace.startswith("worker:") for _thread, namespace, *_ in kept)


@HOW
async def test_a_global_agent_that_is_bound_shows_its_note_nowhere(
    memory: SupervisorMemory, how: How
) -> None:
    saver = InMemorySaver()
    built = by_global(memory, saver, bind=True)
    seen = await streamed(built, how, user="ada", thread="t1", subgraphs=True)
    assert CANARIES["ada"] in built.agents["worker"].prompts[0]
    assert CANARIES["ada"] not in repr(seen) + raw(saver)
