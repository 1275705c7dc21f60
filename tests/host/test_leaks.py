"""Notes are read by models and shown nowhere else: no stream, no state, no checkpoint, no interrupt.

A canary stands in the records of each user and in nothing that the scripted models say, so wherever it
shows, a note shows.
"""

import asyncio
import functools
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import SystemMessage, get_buffer_string, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, Send, StreamWriter, interrupt

from supervisor_memory import SupervisorMemory
from tests.breadth import HOW
from tests.host import hosts
from tests.host.graphs import Graph, config, raw
from tests.host.hosts import CANARIES, HOSTS, Built, Chat, Host, How, opened, question

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
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


@pytest.mark.one_in(9)
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


GIVEN: Any = {"messages": question()}


@HOW
async def test_a_node_reads_no_note_so_that_whatever_it_hands_on_holds_none(
    memory: SupervisorMemory, how: str
) -> None:
    saver, inner = InMemorySaver(), hosts.concluding()
    sent: list[Any] = []

    def speak(state: Any, writer: StreamWriter) -> Any:
        said = inner.invoke([SystemMessage("You conclude."), *state["messages"]])
        writer({"read": messages_to_dict(state["messages"])})
        interrupt({"read": get_buffer_string(state["messages"])})
        update = {"messages": [*state["messages"], said], "copied": repr(state)}
        task = {"messages": [], "copied": list(state["messages"])}
        return Command(goto=[Send("plain", task)], update=update)

    async def aspeak(state: Any, writer: StreamWriter) -> Any:
        return speak(state, writer)

    builder = Graph(Copying)
    for name in ("supervisor", "worker"):
        builder.add_node(name, aspeak if how == "async" else speak, destinations=("plain",))
    builder.add_node("plain", sent.append)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    graph = memory.attach(builder, agents=["worker"]).compile(checkpointer=saver)
    seen: list[Any] = []
    resumed: Any = Command(resume="yes")
    for given in (GIVEN, resumed, resumed):
        seen += await all_of(graph, given, how)
        seen.append(graph.get_state(config()))
    assert len(sent) == 2
    assert "Interrupt" in repr(seen)
    assert all(CANARIES["ada"] in prompt for prompt in inner.prompts)
    assert not [c for c in ("<memory", CANARIES["ada"]) if c in repr(seen) + repr(sent) + raw(saver)]


async def all_of(graph: Any, given: Any, how: str) -> list[Any]:
    if how == "async":
        return [c async for c in graph.astream(given, config(user_id="ada"), stream_mode=MODES)]
    return list(graph.stream(given, config(user_id="ada"), stream_mode=MODES))


# --- what shows the input of models by its nature

SHOW_MODEL_INPUT = {
    "on_chat_model_start": "what is asked",
    "on_chat_model_end": "repeats what was asked",
}
"""Events of a model call itself."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("host", HOSTS, ids=str)
async def test_only_events_of_what_calls_a_model_show_its_input(memory: SupervisorMemory, host: Host) -> None:
    built = host.build(memory, InMemorySaver())
    where = config(user_id="ada")
    shown = set()
    async for event in built.graph.astream_events({built.key: question()}, where, version="v2"):
        if leaks(text_of(event["data"]), host):
            shown.add((event["event"], event["name"]))
    assert {event for event, _ in shown} == set(SHOW_MODEL_INPUT), shown


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


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize(
    "build",
    [hosts.functions, hosts.agent_node, hosts.as_tools, hosts.deep, hosts.last_message],
    ids=lambda build: build.__name__,
)
async def test_only_callbacks_of_what_calls_a_model_are_given_its_input(
    memory: SupervisorMemory, how: How, build: hosts.Build
) -> None:
    built = build(memory, InMemorySaver())
    listening = Listening()
    given: Any = {built.key: question()}, {**config(user_id="ada"), "callbacks": [listening]}
    await (built.graph.ainvoke(*given) if how == "async" else asyncio.to_thread(built.graph.invoke, *given))
    assert listening.shown == CALLBACKS_OF_MODELS


# --- an agent that is a global of its node's module


@HOW
@pytest.mark.parametrize("bind", [False, True], ids=["as it is", "bound"])
async def test_a_global_agent_reads_its_note_and_shows_it_nowhere(
    memory: SupervisorMemory, how: How, bind: bool
) -> None:
    def make(agent: Any) -> Any:
        hosts.GLOBAL["worker"] = memory.bind_agent(agent) if bind else agent
        return hosts.work_by_global

    saver = InMemorySaver()
    built = hosts.of_node(memory, saver, make)
    seen = await streamed(built, how, user="ada", thread="t1", subgraphs=True)
    assert [prompt.count("<memory id=") for prompt in built.agents["worker"].prompts] == [1]
    assert CANARIES["ada"] in built.agents["worker"].prompts[0]
    assert CANARIES["ada"] not in repr(seen) + raw(saver)
