"""A bound agent: it recalls and remembers by itself, once, however it is run and wherever."""

import asyncio
import contextvars
import gc
import time
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, interrupt
from langgraph_supervisor import create_supervisor

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, GraphError, InvalidName, WorkerHasMemoryTools
from supervisor_memory.host.run.identity import acting
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.host.graphs import (
    ASK,
    CANARY,
    Broken,
    Graph,
    Team,
    asking,
    audit_of,
    config,
    model,
    open_memory,
    outcomes,
    raising,
    raw,
    seed,
    texts,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
FENCE = "<memory id="
LONG = "Revenue rose by 12 percent in June because of two new contracts in the north."
MODES = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]


def kept(memory: SupervisorMemory, user: str = "ada") -> list[tuple[str | None, str]]:
    """(who, what) of all that was remembered since `seed`."""
    return sorted(
        (record.source.agent_id or "", record.content)
        for record in memory.get_all(user_id=user)
        if CANARY not in record.content
    )


def worker(*script: Any, tools: Any = (), name: str | None = "worker", **options: Any) -> tuple[Any, Any]:
    """The model and the agent."""
    inner = model(*(script or [LONG] * 4), label="w")
    return inner, create_agent(inner, list(tools), name=name, **options)


def assert_informed(inner: Any) -> None:
    assert inner.calls
    for prompt in inner.prompts:
        assert prompt.count(FENCE) == 1
        assert f"{CANARY} worker" in prompt
        assert f"{CANARY} other" not in prompt


async def run(graph: Any, how: str, given: Any = None, where: Any = None) -> Any:
    asked = asking() if given is None else given, where or config(user_id="ada")
    return await graph.ainvoke(*asked) if how == "async" else graph.invoke(*asked)


# --- however it is run


@HOW
async def test_it_reads_its_note_and_what_it_answers_is_kept(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker(system_prompt="base")
    saver = InMemorySaver()
    bound = memory.bind_agent(agent)
    bound.checkpointer = saver
    state = await run(bound, how)
    assert_informed(inner)
    assert "base" in inner.prompts[0]
    assert texts(state) == [("human", ASK, None), ("ai", LONG, "worker")]
    assert CANARY not in raw(saver)
    assert kept(memory) == [("worker", LONG)]
    assert acting() is None


@HOW
async def test_the_original_is_untouched(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker()
    bound = memory.bind_agent(agent)
    assert bound is not agent
    await run(agent, how)
    assert FENCE not in inner.prompts[0]
    assert kept(memory) == []


@pytest.mark.one_in(6)
@HOW
@pytest.mark.parametrize("mode", [*MODES, MODES], ids=[*MODES, "all"])
@pytest.mark.parametrize("subgraphs", [True, False])
async def test_every_stream_is_the_original_ones_and_is_remembered_once(
    memory: SupervisorMemory, how: str, mode: Any, subgraphs: bool
) -> None:
    told: list[Any] = []
    for is_bound in (False, True):
        inner, agent = worker(checkpointer=InMemorySaver())
        graph: Any = memory.bind_agent(agent) if is_bound else agent
        given = {"messages": [HumanMessage(ASK, id="ask")]}, config(user_id="ada")
        options = {"stream_mode": mode, "subgraphs": subgraphs}
        if how == "async":
            chunks = [chunk async for chunk in graph.astream(*given, **options)]
        else:
            chunks = list(graph.stream(*given, **options))
        told.append([shape(chunk) for chunk in chunks])
    assert told[0] == told[1]
    assert_informed(inner)
    assert CANARY not in str(chunks)
    assert kept(memory) == [("worker", LONG)]


def shape(chunk: Any) -> Any:
    """A chunk without ids, times, and what a run writes of itself."""
    if isinstance(chunk, BaseMessage):
        return chunk.type, chunk.text
    if isinstance(chunk, dict):
        names = ("messages", "model", "payload", "result", "input", "values", "type", "name")
        return {name: shape(value) for name, value in chunk.items() if name in names}
    if isinstance(chunk, (list, tuple)):
        return [shape(each) for each in chunk]
    return chunk if isinstance(chunk, (str, int)) else type(chunk).__name__


@HOW
async def test_a_batch_is_as_many_runs(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker(*[tell] * 4)
    bound: Any = memory.bind_agent(agent)
    users = ["ada", "bo"]
    given = [asking(f"What was the revenue of {user}?") for user in users]
    where = [config(user, user_id=user) for user in users]
    await bound.abatch(given, where) if how == "async" else bound.batch(given, where)
    for user in users:
        assert kept(memory, user) == [("worker", f"Revenue of {user} rose by 12 percent in June.")]
    by_user = {user: prompt for user in users for prompt in inner.prompts if f"of {user}?" in prompt}
    assert CANARY in by_user["ada"]
    assert CANARY not in by_user["bo"]


def tell(messages: list[BaseMessage]) -> AIMessage:
    asked = next(m.text for m in messages if isinstance(m, HumanMessage))
    return AIMessage(f"Revenue of {asked.removesuffix('?').split()[-1]} rose by 12 percent in June.")


async def test_the_events_of_a_run_are_told_and_it_is_remembered_once(memory: SupervisorMemory) -> None:
    inner, agent = worker()
    bound: Any = memory.bind_agent(agent)
    events = [event async for event in bound.astream_events(asking(), config(user_id="ada"), version="v2")]
    assert events[-1]["event"] == "on_chain_end"
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_copies_with_a_config_are_bound_too(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker()
    copy: Any = (
        memory.bind_agent(agent)
        .with_config({"tags": ["a"]})
        .with_config(configurable={"user_id": "ada", "thread_id": "q"})
    )
    await (copy.ainvoke(asking()) if how == "async" else asyncio.to_thread(copy.invoke, asking()))
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_it_is_bound_in_a_sequence_and_with_retries(memory: SupervisorMemory, how: str) -> None:
    def fail(_messages: Any) -> AIMessage:
        raise ConnectionError("once")

    inner, agent = worker(fail, LONG)
    retried = memory.bind_agent(agent).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    chain: Any = retried | (lambda state: state["messages"][-1].text)
    assert await run(chain, how) == LONG
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_a_callers_callbacks_hear_what_they_would_hear_without(
    memory: SupervisorMemory, how: str
) -> None:
    class Hears(BaseCallbackHandler):
        def __init__(self) -> None:
            self.heard: list[str] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **facts: Any) -> None:
            self.heard.append(f"start {facts.get('name')}")

        def on_chain_end(self, outputs: Any, **facts: Any) -> None:
            self.heard.append("end")

    told = []
    for is_bound in (False, True):
        _, agent = worker()
        hears = Hears()
        where: Any = {**config(user_id="ada"), "callbacks": [hears]}
        await run(memory.bind_agent(agent) if is_bound else agent, how, where=where)
        told.append(hears.heard)
        assert where["callbacks"] == [hears]
    assert told[0] == told[1]


# --- asked, failed, left


@tool
def confirm() -> str:
    """Ask the user."""
    return str(interrupt("Really?"))


@HOW
async def test_what_waits_for_the_user_is_remembered_when_it_has_gone_on(
    memory: SupervisorMemory, how: str
) -> None:
    inner, agent = worker(call_of("confirm"), LONG, tools=[confirm], checkpointer=InMemorySaver())
    bound = memory.bind_agent(agent)
    state = await run(bound, how)
    assert state["__interrupt__"][0].value == "Really?"
    assert kept(memory) == []
    state = await run(bound, how, Command(resume="yes"))
    assert "yes" in [m.text for m in state["messages"] if isinstance(m, ToolMessage)]
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


def test_a_resolver_reads_an_empty_state_where_the_kept_one_cannot_be_read(memory: SupervisorMemory) -> None:
    bound: Any = memory.bind_agent(worker()[1], identity=lambda state, config: state.get("user_id", "ada"))
    visit = bound._enter(Command(resume="yes"), config())  # without a checkpointer nothing is kept
    assert visit.scope.user_id == "ada"


@HOW
async def test_a_run_that_fails_is_not_remembered(memory: SupervisorMemory, how: str) -> None:
    def fail(_messages: Any) -> AIMessage:
        raise ConnectionError("no model")

    _, agent = worker(fail)
    with pytest.raises(ConnectionError, match="no model"):
        await run(memory.bind_agent(agent), how)
    assert kept(memory) == []
    assert acting() is None


def test_a_stream_that_is_closed_early_leaves_nothing_behind(memory: SupervisorMemory) -> None:
    _, agent = worker()
    steps: Any = memory.bind_agent(agent).stream(asking(), config(user_id="ada"), stream_mode="values")
    next(steps)
    steps.close()
    assert acting() is None
    assert kept(memory) == []
    with pytest.raises(StopIteration):
        next(steps)


async def test_an_async_stream_that_is_closed_early_leaves_nothing_behind(memory: SupervisorMemory) -> None:
    _, agent = worker()
    bound: Any = memory.bind_agent(agent)
    steps = bound.astream(asking(), config(user_id="ada"), stream_mode="values")
    await anext(steps)
    await steps.aclose()
    assert acting() is None
    assert kept(memory) == []


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_that_is_forgotten_leaves_nothing_behind(memory: SupervisorMemory) -> None:
    _, agent = worker()
    steps: Any = memory.bind_agent(agent).stream(asking(), config(user_id="ada"), stream_mode="values")
    next(steps)
    del steps
    gc.collect()
    assert acting() is None
    assert kept(memory) == []


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
async def test_an_async_stream_that_is_forgotten_leaves_nothing_behind(memory: SupervisorMemory) -> None:
    _, agent = worker()
    bound: Any = memory.bind_agent(agent)
    async for _chunk in bound.astream(asking(), config(user_id="ada"), stream_mode="values"):
        break
    gc.collect()
    await asyncio.sleep(0.05)
    assert acting() is None
    assert kept(memory) == []


MINE: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="")


def test_between_two_chunks_the_caller_is_nobody(memory: SupervisorMemory) -> None:
    inner, agent = worker()
    search = memory.tools(["memory_search"])[0]
    bound: Any = memory.bind_agent(agent)
    MINE.set("before")
    count = 0
    for _chunk in bound.stream(asking(), config(user_id="ada"), stream_mode=["values", "tasks"]):
        count += 1
        assert acting() is None
        assert MINE.get() == ("before" if count == 1 else f"after {count - 1}")
        MINE.set(f"after {count}")
        assert "MemoryAccessDenied" in str(search.invoke({"query": "revenue"}))
    assert count > 2
    assert_informed(inner)


async def test_between_two_async_chunks_the_caller_is_nobody(memory: SupervisorMemory) -> None:
    inner, agent = worker()
    bound: Any = memory.bind_agent(agent)
    count = 0
    async for _chunk in bound.astream(asking(), config(user_id="ada"), stream_mode=["values", "tasks"]):
        count += 1
        assert acting() is None
        MINE.set(f"after {count}")
        await asyncio.sleep(0)
        assert MINE.get() == f"after {count}"
    assert count > 2
    assert_informed(inner)


async def test_chunks_may_be_taken_by_different_tasks_and_threads(memory: SupervisorMemory) -> None:
    inner, agent = worker()
    bound: Any = memory.bind_agent(agent)
    steps = bound.stream(asking(), config(user_id="ada"), stream_mode=["values", "tasks"])
    while await asyncio.to_thread(next, steps, None) is not None:
        assert acting() is None
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


async def test_two_streams_in_turn_keep_their_own_notes(memory: SupervisorMemory) -> None:
    memory.write("Revenue means the number of bo", user_id="bo")
    inner, agent = worker(*[tell] * 4)
    bound: Any = memory.bind_agent(agent)
    users = ["ada", "bo"]
    streams = {
        user: bound.stream(
            asking(f"What was the revenue of {user}?"), config(user, user_id=user), stream_mode="tasks"
        )
        for user in users
    }
    for _ in range(8):
        for steps in streams.values():
            next(steps, None)
    by_user = {user: prompt for user in users for prompt in inner.prompts if f"of {user}?" in prompt}
    assert CANARY in by_user["ada"]
    assert "number of bo" not in by_user["ada"]
    assert CANARY not in by_user["bo"]
    assert "number of bo" in by_user["bo"]
    for user in users:
        assert kept(memory, user)[-1] == ("worker", f"Revenue of {user} rose by 12 percent in June.")


@HOW
async def test_many_users_at_once_keep_their_own(memory: SupervisorMemory, how: str) -> None:
    users = [f"user{n}" for n in range(8)]
    for user in users:
        memory.write(f"Revenue means the number of {user}", user_id=user)

    def slowly(messages: list[BaseMessage]) -> AIMessage:
        time.sleep(0.01)
        return tell(messages)

    inner, agent = worker(*[slowly] * len(users))
    bound: Any = memory.bind_agent(agent)

    async def one(user: str) -> None:
        given = asking(f"What was the revenue of {user}?"), config(user, user_id=user)
        await (bound.ainvoke(*given) if how == "async" else asyncio.to_thread(bound.invoke, *given))

    await asyncio.gather(*map(one, users))
    for prompt in inner.prompts:
        named = {user for user in users if f"the number of {user}" in prompt}
        assert named == {user for user in users if f"revenue of {user}?" in prompt}
        assert len(named) == 1
    for user in users:
        brought = [text for who, text in kept(memory, user) if who == "worker"]
        assert brought == [f"Revenue of {user} rose by 12 percent in June."]


# --- wherever it is run


@HOW
@pytest.mark.parametrize("attached", [True, False])
async def test_in_create_supervisor_it_recalls_and_remembers_once(
    memory: SupervisorMemory, how: str, attached: bool
) -> None:
    inner, agent = worker()
    boss = model(call_of("transfer_to_worker"), "done")
    builder = create_supervisor([memory.bind_agent(agent)], model=boss)
    graph = (memory.attach(builder) if attached else builder).compile(checkpointer=InMemorySaver())
    state = await run(graph, how)
    assert state["messages"][-1].text == "done"
    assert_informed(inner)
    assert [text for who, text in kept(memory) if who == "worker"] == [LONG]
    assert [FENCE in prompt for prompt in boss.prompts] == [attached] * 2
    assert CANARY not in str(state)


def delegate(agent: Any) -> Any:
    def ask(task: str) -> str:
        """Hand a task over."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    async def aask(task: str) -> str:
        return str((await agent.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

    return StructuredTool.from_function(ask, aask, name="ask_worker")


HELD: Any = None


def delegate_to_global(agent: Any) -> Any:
    global HELD  # noqa: PLW0603
    HELD = agent

    def ask(task: str) -> str:
        """Hand a task over."""
        return str(HELD.invoke({"messages": [("user", task)]})["messages"][-1].text)

    async def aask(task: str) -> str:
        return str((await HELD.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

    return StructuredTool.from_function(ask, aask, name="ask_worker")


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("held", [delegate, delegate_to_global], ids=lambda held: held.__name__)
async def test_in_a_tool_it_recalls_and_remembers_once(
    memory: SupervisorMemory, how: str, led: bool, held: Any
) -> None:
    inner, agent = worker()
    boss = model(call_of("ask_worker", task=ASK), "done")
    middleware = [memory.middleware()] if led else []
    graph = create_agent(boss, [held(memory.bind_agent(agent))], middleware=middleware)
    await run(graph, how)
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize(
    ("asked", "task", "states"),
    [
        ("How did sales develop?", "Sales", None),
        ("Plot how the sales of Ghent developed", "Sales of Ghent", None),
        ("The sales of Ghent are counted in April. How did sales develop?", "Sales", "counted in April"),
        (
            "Ask about sales. The shop in Ghent was closed in March. How did sales develop?",
            "Sales of the shop in Ghent",
            "was closed in March",
        ),
        ("根特的店三月份关门了。销售情况怎么样？", "根特的店三月份的销售", "关门了"),
        ("销售情况怎么样？", "销售", None),
        ("根特的销售都算在四月里。销售情况怎么样？", "销售", "算在四月里"),
    ],
)
async def test_in_a_tool_it_is_not_told_what_the_running_turn_asks(
    how: str, asked: str, task: str, states: str | None
) -> None:
    inner, agent = worker()
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        boss = model(call_of("ask_worker", task=task), "done")
        bound = delegate(memory.bind_agent(agent))
        await run(create_agent(boss, [bound], middleware=[memory.middleware()]), how, asking(asked))
    [prompt] = inner.prompts
    assert asked[-7:] not in prompt
    assert (FENCE in prompt) == bool(states)
    assert (states or "") in prompt


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("name", ["worker", "another"])
async def test_in_deepagents_it_recalls_and_remembers_once(
    memory: SupervisorMemory, how: str, led: bool, name: str
) -> None:
    inner, agent = worker(name=name)
    boss = model(call_of("task", description=ASK, subagent_type="worker"), "done")
    spec: Any = {"name": "worker", "description": "works", "runnable": memory.bind_agent(agent, "worker")}
    middleware = [memory.middleware()] if led else []
    await run(create_deep_agent(boss, subagents=[spec], middleware=middleware), how)
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_in_deepagents_the_agents_beside_it_are_led_too(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker()
    other = model("Revenue fell by 3 percent in July, for lack of rain.", label="o")
    specs: Any = [
        {"name": "worker", "description": "works", "runnable": memory.bind_agent(agent)},
        {"name": "other", "description": "works", "runnable": create_agent(other, [], name="other")},
    ]
    boss = model(
        call_of("task", description=ASK, subagent_type="worker"),
        call_of("task", description=ASK, subagent_type="other"),
        "done",
    )
    await run(create_deep_agent(boss, subagents=specs, middleware=[memory.middleware()]), how)
    assert_informed(inner)
    assert f"{CANARY} other" in other.prompts[0]
    assert [who for who, _ in kept(memory)] == ["other", "worker"]


@HOW
@pytest.mark.parametrize("own_thread", [True, False])
async def test_as_a_node_of_a_graph_it_recalls_and_remembers_once(
    memory: SupervisorMemory, how: str, own_thread: bool
) -> None:
    inner, agent = worker(checkpointer=InMemorySaver() if own_thread else None)
    builder = Graph(Team)
    builder.add_node("work", memory.bind_agent(agent))
    builder.add_edge(START, "work")
    saver = InMemorySaver()
    state = await run(builder.compile(checkpointer=saver), how)
    assert [m.text for m in state["messages"]] == [ASK, LONG]
    assert_informed(inner)
    assert CANARY not in raw(saver)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_an_interrupt_inside_a_node_is_asked_and_resumed(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker(call_of("confirm"), LONG, tools=[confirm])
    builder = Graph(Team)
    builder.add_node("work", memory.bind_agent(agent))
    builder.add_edge(START, "work")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" in await run(graph, how)
    assert kept(memory) == []
    state = await run(graph, how, Command(resume="yes"))
    assert state["messages"][-1].text == LONG
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_bound_twice_it_recalls_and_remembers_once(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker()
    await run(memory.bind_agent(memory.bind_agent(agent)), how)
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


# --- who it is


@HOW
async def test_the_name_given_wins(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker(name="another")
    await run(memory.bind_agent(agent, "worker"), how)
    assert_informed(inner)
    assert kept(memory) == [("worker", LONG)]


def test_an_agent_that_nobody_named_is_refused(memory: SupervisorMemory) -> None:
    _, agent = worker(name=None)
    with pytest.raises(GraphError, match="pass name="):
        memory.bind_agent(agent)
    memory.bind_agent(agent, "worker")


def test_a_name_that_cannot_be_one_is_refused(memory: SupervisorMemory) -> None:
    _, agent = worker()
    with pytest.raises(InvalidName):
        memory.bind_agent(agent, "two\nlines")


@pytest.mark.parametrize("thing", [lambda state: state, Graph(Team), "worker", None, model()])
def test_what_is_no_compiled_graph_is_refused(memory: SupervisorMemory, thing: Any) -> None:
    with pytest.raises(GraphError, match="cannot bind"):
        memory.bind_agent(thing, "worker")


@pytest.mark.parametrize("refused", [True, False])
@HOW
async def test_memory_tools_are_refused_or_denied(memory: SupervisorMemory, refused: bool, how: str) -> None:
    heard: list[str] = []

    def repeat(messages: Any) -> AIMessage:
        heard.extend(m.text for m in messages if isinstance(m, ToolMessage))
        return AIMessage("done")

    _, agent = worker(call_of("memory_search", query="revenue"), repeat, tools=memory.tools())
    if refused:
        with pytest.raises(WorkerHasMemoryTools, match=r"'worker'.*memory_search.*'deny'") as caught:
            memory.bind_agent(agent)
        assert caught.value.facts["agent"] == "worker"
        assert not memory.is_fenced
        return
    await run(memory.bind_agent(agent, worker_memory_tools="deny"), how)
    assert len(heard) == 1
    assert "MemoryAccessDenied" in heard[0]
    rows = [row for row in audit_of(memory) if row["op"] == "tool"]
    assert [(row["outcome"], row["agent_id"]) for row in rows] == [("denied", "worker")]


# --- off, and broken


def test_a_memory_that_is_switched_off_gives_the_agent_back() -> None:
    _, agent = worker()
    with open_memory(settings={"enabled": False}) as memory:
        assert memory.bind_agent(agent) is agent


@HOW
async def test_without_a_user_or_a_thread_it_works_without_memory(memory: SupervisorMemory, how: str) -> None:
    inner, agent = worker()
    state = await run(memory.bind_agent(agent), how, where={"configurable": {}})
    assert state["messages"][-1].text == LONG
    assert FENCE not in inner.prompts[0]
    assert kept(memory) == []
    assert set(outcomes(memory, "identity")) == {("denied", "MissingUser")}


@HOW
async def test_a_store_that_fails_takes_nothing_from_the_agent(how: str) -> None:
    failing = raising(BackendUnavailable("down"))
    with open_memory(backend=Broken(InMemoryBackend(), search=failing, commit=failing)) as memory:
        inner, agent = worker()
        state = await run(memory.bind_agent(agent), how)
        assert state["messages"][-1].text == LONG
        assert len(inner.calls) == 1


async def test_the_event_loop_is_never_blocked_by_a_slow_store() -> None:
    backend = InMemoryBackend()

    def search(*given: Any, **options: Any) -> Any:
        time.sleep(0.3)
        return backend.search(*given, **options)

    with open_memory(backend=Broken(backend, search=search)) as memory:
        seed(memory)
        _, agent = worker(*[LONG] * 3)
        bound: Any = memory.bind_agent(agent)
        await bound.ainvoke(asking(), config("warm", user_id="nobody"))
        running = asyncio.create_task(bound.ainvoke(asking(), config(user_id="ada")))
        longest, last = 0.0, time.perf_counter()
        while not running.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
        assert longest < 0.2
