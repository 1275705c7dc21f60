"""Every kind of host with memory: what its models read, what it says, what is remembered, and for whom."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeTimeoutError
from langgraph.func import entrypoint, task
from langgraph.graph import START
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import CachePolicy, Command, Send
from langgraph_supervisor import create_supervisor
from typing_extensions import TypedDict

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, GraphError, UnknownNode, WorkerHasMemoryTools
from supervisor_memory.flow import Outcome
from supervisor_memory.model.records import Scope
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.host import hosts
from tests.host.graphs import Broken, Graph, audit_of, config, hanging, open_memory, outcomes, raising
from tests.host.hosts import (
    CANARIES,
    CONCLUSION,
    HOSTS,
    Build,
    Built,
    Chat,
    Host,
    How,
    agent_of,
    asking_tool,
    calls_of,
    concluding,
    everything,
    leading,
    led,
    opened,
    play,
    question,
    small,
    speaking,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
CELLS = [pytest.param(host, how, id=f"{host.name}, {how}") for host in HOSTS for how in host.how]
CELL = pytest.mark.parametrize(("host", "how"), CELLS)


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with opened() as memory:
        yield memory


def read_by(call: list[BaseMessage]) -> str:
    return "\n".join(str(message.text) for message in call)


def said(state: Any, built: Built) -> list[tuple[str, str, str | None]]:
    """The messages; of a memory tool's result, that it came."""
    asked = {"memory_search"}
    return [(m.type, "" if m.name in asked else m.text, m.name) for m in state[built.key]]


def of_others(memory: SupervisorMemory) -> list[tuple[str, str, int]]:
    return sorted((r.id, r.content, r.version) for r in everything(memory) if r.user_id != "ada")


@pytest.mark.one_in(5)
@CELL
async def test_notes_are_read_the_host_says_the_same_and_the_turn_is_kept(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    before = of_others(memory)
    bare = host.build(None, InMemorySaver())
    expected = await play(bare, how)
    built = host.build(memory, InMemorySaver())
    state = await play(built, how)

    # Each call holds one note, of the reader's own.
    own, foreign = CANARIES["ada"], CANARIES["eve"]
    for agent, model in built.readers():
        assert model.calls
        for call in model.calls:
            # What the supervisor found by a tool stands in its messages, and need not be in a note again.
            is_found = agent is None and "memory_search" in [m.name for m in call]
            assert read_by(call).count("<memory id=") in ((0, 1) if is_found else (1,))
            assert foreign not in read_by(call)
        for other in ("worker", "other"):
            is_read = f"{own} {other}" in read_by(model.calls[0])
            assert is_read == (agent in (None, other)), (agent, other)
        assert f"{own} net of tax" in read_by(model.calls[0])

    # The host says what it says without memory.
    assert said(state, built) == said(expected, bare)

    # What the user stated and the agent concluded is kept, for this user alone.
    kept = {(r.family, r.content) for r in memory.get_all(user_id="ada")}
    assert any(f == "user_profile" and "bullet points" in text for f, text in kept)
    assert any(f == f"{built.concluding}_memories" and CONCLUSION in text for f, text in kept)
    assert of_others(memory) == before


ADA = config(user_id="ada")
GIVEN: Any = {"messages": question()}


async def run(graph: Any, how: str, given: Any = None, where: Any = None) -> Any:
    given, where = given or GIVEN, where or ADA
    return await graph.ainvoke(given, where) if how == "async" else graph.invoke(given, where)


def by(*builds: Build) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("build", builds, ids=lambda build: build.__name__)


# --- what upstream cannot do


@HOW
@pytest.mark.parametrize("with_memory", [False, True])
async def test_of_two_handoffs_in_one_message_upstream_runs_one_only(
    memory: SupervisorMemory, how: str, with_memory: bool
) -> None:
    both = calls_of(("transfer_to_worker", {}), ("transfer_to_other", {}))
    builder, built = hosts.supervised(None, "done")
    assert built.boss is not None
    built.boss.script[:] = [both, "done"]
    await run(hosts.attached(memory if with_memory else None, builder).compile(), how)
    assert sum(len(model.calls) for model in built.agents.values()) == 1


# --- deepagents


@HOW
async def test_no_sub_agent_of_deepagents_gets_memory_tools_the_general_purpose_one_neither(
    memory: SupervisorMemory, how: str
) -> None:
    tasks = [("task", {"description": "Revenue?", "subagent_type": a}) for a in ("general-purpose", "worker")]
    boss, worker = leading(calls_of(*tasks), "done"), concluding()
    spec: Any = {
        "name": "worker",
        "description": "Works.",
        "system_prompt": "You are worker.",
        "model": worker,
        "tools": [],
        "middleware": [memory.middleware(agent_id="worker")],
    }
    graph = create_deep_agent(boss, tools=[], middleware=[memory.middleware()], subagents=[spec])
    await run(graph, how)
    assert len(boss.calls) >= 3  # the general-purpose agent speaks with the model of whoever leads
    for tools in (*boss.bound, *worker.bound):
        is_leading = "task" in tools
        assert ("memory_search" in tools) == is_leading
    assert all(read_by(call).count("<memory id=") == 1 for call in (*boss.calls, *worker.calls))


# --- how nodes run


@HOW
async def test_a_cached_node_speaks_to_each_user_anew(memory: SupervisorMemory, how: str) -> None:
    worker = concluding()
    builder = led(speaking(worker), leading("go", "done"), cache_policy=CachePolicy())
    graph = memory.attach(builder).compile(cache=InMemoryCache())
    same: Any = {"messages": [HumanMessage("What was the revenue?", id="h")]}
    for user in CANARIES:
        await run(graph, how, same, config(user, user_id=user))
    read = [read_by(call) for call in worker.calls]
    assert [[c for c in CANARIES.values() if c in text] for text in read] == [["zebra"], ["giraffe"]]


def test_a_timeout_of_a_sync_node_is_refused_as_without_memory(memory: SupervisorMemory) -> None:
    builder = led(speaking(concluding()), leading("go", "done"), timeout=1.0)
    for each in (builder, memory.attach(builder)):
        with pytest.raises(ValueError, match="'worker' is sync"):
            each.compile()


async def test_a_timeout_of_an_async_node_holds(memory: SupervisorMemory) -> None:
    async def slow(state: Any) -> Any:
        await asyncio.sleep(10)

    graph = memory.attach(led(slow, leading("go", "done"), timeout=0.3)).compile()
    started = time.monotonic()
    with pytest.raises(NodeTimeoutError):
        await graph.ainvoke(GIVEN, ADA)
    assert time.monotonic() - started < 5


def test_an_async_node_cannot_be_run_synchronously_as_without_memory(memory: SupervisorMemory) -> None:
    said = []
    for given in (None, memory):
        with pytest.raises(TypeError, match="No synchronous function") as caught:
            hosts.coroutines(given, InMemorySaver()).graph.invoke(GIVEN, ADA)
        said.append(str(caught.value))
    assert said[0] == said[1]


class Task(TypedDict):
    topic: str


@HOW
async def test_a_node_whose_input_has_no_messages_runs_as_it_did(memory: SupervisorMemory, how: str) -> None:
    read: list[Any] = []
    builder = led(read.append, leading("go", "done"), state=hosts.Wide, input_schema=Task)
    builder.edges.discard(("worker", "supervisor"))
    state = await run(memory.attach(builder).compile(), how, {**GIVEN, "topic": "revenue"})
    assert read == [{"topic": "revenue"}]
    assert state["topic"] == "revenue"


@HOW
async def test_what_is_sent_may_hold_no_messages(memory: SupervisorMemory, how: str) -> None:
    read: list[Any] = []
    builder = Graph(Chat)
    builder.add_node(
        "supervisor", lambda state: Command(goto=[Send("worker", "x"), Send("worker", {"y": 1})])
    )
    builder.add_node("worker", read.append)
    builder.add_edge(START, "supervisor")
    await run(memory.attach(builder).compile(), how)
    assert sorted(map(repr, read)) == ["'x'", "{'y': 1}"]


@HOW
async def test_what_is_done_beside_a_node_that_crashes_is_remembered_once(
    memory: SupervisorMemory, how: str
) -> None:
    worker, crashes = concluding(), [RuntimeError("boom")]

    def crash(state: Any) -> Any:
        if crashes:
            time.sleep(0.5)  # until the other is done
            raise crashes.pop()
        return {"messages": [("ai", "ok")]}

    builder = Graph(Chat)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", speaking(worker))
    builder.add_node("other", crash)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    builder.add_edge("supervisor", "other")
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="boom"):
        await run(graph, how)
    state = await (graph.ainvoke(None, ADA) if how == "async" else asyncio.to_thread(graph.invoke, None, ADA))
    assert len(worker.calls) == 1
    assert [m.text for m in state["messages"]].count(CONCLUSION) == 1
    kept = [r for r in everything(memory) if CONCLUSION in r.content and r.family == "worker_memories"]
    assert [r.version for r in kept] == [1]


# --- compiled graphs


def test_a_compiled_graph_keeps_how_it_was_compiled(memory: SupervisorMemory) -> None:
    saver = InMemorySaver()
    builder = led(speaking(concluding()), leading("go", "done"), state=hosts.Model)
    graph = builder.compile(checkpointer=saver, interrupt_before=["worker"], name="company")
    graph.config = {"recursion_limit": 77}
    wrapped = memory.attach(graph)
    assert isinstance(wrapped, type(graph))
    assert wrapped.checkpointer is saver
    assert (wrapped.name, wrapped.interrupt_before_nodes) == ("company", ["worker"])
    assert wrapped.config == {"recursion_limit": 77}
    results = [
        g.invoke(GIVEN, config(name, user_id="ada"), version="v2")
        for name, g in (("bare", graph), ("wrapped", wrapped))
    ]
    assert {type(r) for r in results} == {type(results[0])}
    assert {type(r.value) for r in results} == {hosts.Model}


@HOW
async def test_an_agent_that_asks_is_seen_in_its_graphs_state(memory: SupervisorMemory, how: str) -> None:
    built = hosts.asking_agent(memory, InMemorySaver())
    state = await run(built.graph, how)
    assert [i.value for i in state["__interrupt__"]] == [{"what": "June?"}]
    held = built.graph.get_state(ADA, subgraphs=True).tasks[0].state
    assert held.values["messages"][-1].tool_calls
    assert [name for name, _ in built.graph.get_subgraphs()] == ["worker"]


@HOW
async def test_an_agent_with_a_thread_of_its_own_reads_only_the_current_note(
    memory: SupervisorMemory, how: str
) -> None:
    built = hosts.agent_with_thread(memory, InMemorySaver())
    for turn in range(3):
        memory.write(f"Revenue number {turn} is known", user_id="ada", kind="domain-facts")
        await run(built.graph, how)
    calls = built.agents["worker"].calls
    assert len(calls) == 3
    for turn, call in enumerate(calls):
        assert read_by(call).count("<memory id=") == 1
        assert [message.type for message in call].count("system") == 1
        assert call[0].text.startswith("You are worker.\n\n<memory id=")
        assert f"number {turn}" in call[0].text
    assert len(calls[2]) > len(calls[1]) > len(calls[0])  # it does remember its own thread


# --- graphs that nothing can be attached to


@HOW
async def test_the_functional_api_recalls_and_remembers_in_tasks(memory: SupervisorMemory, how: str) -> None:
    asked, worker = "What was the revenue?", concluding()
    scope = Scope("ada", "worker", "t1")

    @task
    async def consult(text: str) -> str:
        note = await memory.arecall(text, scope)
        return str((await worker.ainvoke([("system", note.text), ("user", text)])).text)

    @task
    async def keep(said: str) -> None:
        await memory.aremember(asked, scope, outcome=Outcome(final_answer=said))

    @entrypoint(checkpointer=InMemorySaver())
    async def company(text: str) -> str:
        said = await consult(text)
        await keep(said)
        return said

    if how == "async":
        assert await company.ainvoke(asked, ADA) == CONCLUSION
    else:

        @task
        def consult_now(text: str) -> str:
            note = memory.recall(text, scope)
            return str(worker.invoke([("system", note.text), ("user", text)]).text)

        @entrypoint(checkpointer=InMemorySaver())
        def firm(text: str) -> str:
            said = consult_now(text).result()
            memory.remember(asked, scope, outcome=Outcome(final_answer=said))
            return said

        assert firm.invoke(asked, ADA) == CONCLUSION
    assert CANARIES["ada"] in worker.prompts[0]
    assert any(CONCLUSION in r.content for r in memory.get_all(user_id="ada", families=["worker_memories"]))
    with pytest.raises(GraphError, match=r"cannot attach to Pregel.*memory\.recall and memory.remember"):
        memory.attach(company)


class Remote(RemoteGraph):
    """A remote graph whose server is a model."""

    def __init__(self, model: Any) -> None:
        super().__init__("assistant", url="http://localhost:1", name="worker")
        self.model = model

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return speaking(self.model)(input)

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return speaking(self.model)(input)


@HOW
async def test_a_remote_graph_runs_and_is_sent_no_note(
    memory: SupervisorMemory, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = concluding()
    graph = memory.attach(led(Remote(worker), leading("go", "done"))).compile()
    assert "'worker' is a RemoteGraph" in caplog.text
    state = await run(graph, how)
    assert state["messages"][-1].text == "done"
    assert len(worker.calls) == 1
    assert "<memory" not in read_by(worker.calls[0])
    assert any(CONCLUSION in r.content for r in memory.get_all(user_id="ada", families=["worker_memories"]))


def test_langchain_refuses_two_middlewares_of_memory(memory: SupervisorMemory) -> None:
    twice = [memory.middleware(), memory.middleware()]
    with pytest.raises(AssertionError, match="remove duplicate middleware"):
        create_agent(leading("done"), [], middleware=twice)


# --- who acts

TEAMS = by(hosts.last_message, hosts.as_tools, hosts.deep, hosts.functions, hosts.swarm)


@pytest.mark.one_in(2)
@HOW
@TEAMS
async def test_without_anybody_named_memory_is_off_and_the_audit_says_so(
    memory: SupervisorMemory, how: str, build: Build
) -> None:
    before = len(everything(memory))
    built, bare = build(memory, None), build(None, None)  # type: ignore[arg-type]
    state = await run(built.graph, how, where={"configurable": {}})
    expected = await run(bare.graph, how, where={"configurable": {}})
    assert said(state, built) == said(expected, bare)
    assert not [c for _, model in built.readers() for c in model.calls if "<memory id=" in read_by(c)]
    assert len(everything(memory)) == before
    assert set(outcomes(memory, "identity")) == {("denied", "MissingUser")}


@pytest.mark.one_in(3)
@HOW
@TEAMS
async def test_a_thread_without_a_user_has_an_anonymous_one(
    memory: SupervisorMemory, how: str, build: Build
) -> None:
    before = {r.id for r in everything(memory)}
    await play_as(build(memory, InMemorySaver()), how, {})
    new = [r for r in everything(memory) if r.id not in before]
    assert len({r.user_id for r in new}) == 1
    assert new[0].user_id.startswith("anon:")


@pytest.mark.one_in(3)
@HOW
@TEAMS
async def test_a_user_may_be_an_address(memory: SupervisorMemory, how: str, build: Build) -> None:
    await play_as(build(memory, InMemorySaver()), how, {"user_id": "ada@x.com"})
    kept = memory.get_all(user_id="ada@x.com")
    assert {"user_profile"} < {r.family for r in kept}
    assert not [r for r in everything(memory) if r.user_id != "ada@x.com" and CONCLUSION in r.content]


async def play_as(built: Built, how: str, who: dict[str, str]) -> Any:
    return await run(built.graph, how, {built.key: question()}, config(**who))


# --- stores that fail


class ConfigurationError(BaseException):
    """As langmem's: no Exception."""


FAULTS: dict[str, Callable[[], Callable[..., Any]]] = {
    "raise": lambda: raising(BackendUnavailable("down")),
    "raise no Exception": lambda: raising(ConfigurationError("Missing key")),
    "hang": lambda: hanging(1.0),
}
METHODS = ("search", "list", "get", "write", "update", "batch", "count")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@HOW
@TEAMS
async def test_a_host_says_the_same_when_the_store_fails(how: How, build: Build, fault: Any) -> None:
    broken: Any = Broken(InMemoryBackend(), **dict.fromkeys(METHODS, fault()))
    brief = {"search_timeout_ms": 60, "write_timeout_ms": 60}
    with open_memory(backend=broken, settings=brief) as memory:
        built, bare = build(memory, InMemorySaver()), build(None, InMemorySaver())
        started = time.monotonic()
        state = await play(built, how)
        assert time.monotonic() - started < 6
        assert said(state, built) == said(await play(bare, how), bare)


@TEAMS
async def test_a_host_whose_store_cannot_be_read_is_degraded_in_the_audit(build: Build) -> None:
    down = raising(BackendUnavailable("down"))
    broken: Any = Broken(InMemoryBackend(), search=down, list=down, get=down)
    with open_memory(backend=broken) as memory:
        await play(build(memory, InMemorySaver()), "sync")
        assert "recall" in {row["op"] for row in audit_of(memory) if row["outcome"] == "degraded"}


# --- sub-agents and models that reach for memory


def rogue(memory: SupervisorMemory) -> Any:
    model = leading(call_of("memory_search", query="revenue"), CONCLUSION, label="worker")
    return agent_of(model, "worker", memory.tools()), model


def test_a_sub_agent_with_memory_tools_is_refused_wherever_it_is_bound(memory: SupervisorMemory) -> None:
    agent, _ = rogue(memory)
    boss = leading(call_of("transfer_to_worker"), "done")
    for refused in (
        lambda: memory.attach(create_supervisor([agent], model=boss)),
        lambda: memory.attach(led(agent, boss)),
        lambda: memory.bind_agent(agent),
    ):
        with pytest.raises(WorkerHasMemoryTools, match="memory_search") as caught:
            refused()
        assert caught.value.facts["agent"] == "worker"


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("kind", ["denied by attach", "bound and denied", "a tool of a middleware's agent"])
async def test_a_sub_agent_with_memory_tools_is_answered_a_denial(
    memory: SupervisorMemory, how: str, kind: str
) -> None:
    agent, model = rogue(memory)
    if kind == "denied by attach":
        graph = memory.attach(led(agent, leading("go", "done")), worker_memory_tools="deny").compile()
    else:
        if kind == "bound and denied":
            agent = memory.bind_agent(agent, worker_memory_tools="deny")
        asks = call_of("ask_worker", task="Revenue?")
        graph = agent_of(
            leading(asks, "done"), "boss", [asking_tool(agent, "worker")], middleware=[memory.middleware()]
        )
    await run(graph, how)
    answered = [m.text for m in model.calls[-1] if m.type == "tool" and m.name == "memory_search"]
    assert ["MemoryAccessDenied" in text and CANARIES["ada"] not in text for text in answered] == [True]
    assert "denied" in [outcome for outcome, _ in outcomes(memory, "tool")]


@HOW
@pytest.mark.parametrize("host", ["create_supervisor", "middleware"])
async def test_a_model_cannot_name_a_user_or_their_namespace(
    memory: SupervisorMemory, how: str, host: str
) -> None:
    before = of_others(memory)
    steps = (
        call_of("memory_write", content="Revenue is a secret", user_id="eve", langgraph_user_id="eve"),
        call_of("memory_search", query="revenue", user_id="eve", scope={"user_id": "eve"}),
        call_of("memory_search", query="revenue", namespace="user_profile/eve"),
        call_of("memory_delete", filters={"user_id": "eve", "namespace": "domain_facts"}),
        "done",
    )
    boss = leading(*steps)
    if host == "middleware":
        graph = agent_of(boss, "boss", middleware=[memory.middleware()])
    else:
        team = create_supervisor([agent_of(small(), "other")], model=boss, tools=list(memory.tools()))
        graph = memory.attach(team).compile()
    state = await run(graph, how)
    answers = [m.text for m in state["messages"] if m.type == "tool"]
    assert len(answers) == 4
    assert CANARIES["eve"] not in "".join(answers)
    assert all("error" in answer for answer in answers[2:])
    assert of_others(memory) == before
    assert any(r.content == "Revenue is a secret" for r in memory.get_all(user_id="ada"))
    told = [reason for outcome, reason in outcomes(memory, "tool") if outcome == "denied"]
    assert any(reason.startswith("argument-ignored") for reason in told)


@pytest.mark.parametrize("form", ["builder", "compiled"])
def test_an_unknown_supervisor_is_told_the_nodes(memory: SupervisorMemory, form: str) -> None:
    builder, _ = hosts.supervised(None, "done")
    with pytest.raises(UnknownNode) as caught:
        memory.attach(builder if form == "builder" else builder.compile(), supervisor="boss")
    assert all(repr(name) in str(caught.value) for name in ("boss", "supervisor", "worker", "other"))
