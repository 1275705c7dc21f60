"""Memory as a middleware: what the models read, what stays where, what is remembered, and what may fail."""

import asyncio
import time
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, InvalidName, SettingsError
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
    notes_in,
    open_memory,
    outcomes,
    raising,
    raw,
    seed,
    texts,
)
from tests.host.providers import offline

PLACED = pytest.mark.parametrize("placement", ["system", "last_user"])
FENCE = "<memory id="
LONG = "Revenue rose by 12 percent in June because of two new contracts in the north."


async def run(graph: Any, how: str, given: Any = None, where: Any = None) -> Any:
    asked = asking() if given is None else given, where or config(user_id="ada")
    return await graph.ainvoke(*asked) if how == "async" else graph.invoke(*asked)


def kept(memory: SupervisorMemory, user: str = "ada") -> list[tuple[str | None, str]]:
    """(who said it, what) of all that was remembered since `seed`."""
    return sorted(
        (record.source.agent_id or "", record.content)
        for record in memory.get_all(user_id=user)
        if CANARY not in record.content and record.family != "session_messages"
    )


def delegate(agent: Any, name: str = "ask_worker") -> BaseTool:
    """A tool that runs an agent, in both worlds."""

    def ask(task: str) -> str:
        """Hand a task over."""
        return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    async def aask(task: str) -> str:
        return str((await agent.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

    return StructuredTool.from_function(ask, aask, name=name)


def asks(name: str = "ask_worker", task: str = ASK) -> AIMessage:
    return call_of(name, task=task)


# --- the note


@HOW
@PLACED
async def test_a_note_is_in_the_model_call_and_nowhere_else(
    memory: SupervisorMemory, how: str, placement: Any
) -> None:
    saver, boss = InMemorySaver(), model(LONG)
    graph: Any = create_agent(
        boss,
        [],
        system_prompt="base",
        middleware=[memory.middleware(placement=placement)],
        checkpointer=saver,
    )
    state = await run(graph, how)
    assert boss.prompts[0].count(FENCE) == 1
    assert CANARY in boss.prompts[0]
    assert texts(state) == [("human", ASK, None), ("ai", LONG, None)]
    assert CANARY not in str(state)
    assert CANARY not in raw(saver)
    assert FENCE not in raw(saver)


@HOW
@PLACED
async def test_no_stream_but_that_of_the_models_events_shows_a_note(
    memory: SupervisorMemory, how: str, placement: Any
) -> None:
    boss = model(asks("add", "x"), LONG)

    @tool
    def add(task: str) -> str:
        """Add."""
        return task

    graph: Any = create_agent(
        boss, [add], middleware=[memory.middleware(placement=placement)], checkpointer=InMemorySaver()
    )
    modes = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]
    given = asking(), config(user_id="ada")
    if how == "async":
        seen = [chunk async for chunk in graph.astream(*given, stream_mode=modes, subgraphs=True)]
    else:
        seen = list(graph.stream(*given, stream_mode=modes, subgraphs=True))
    assert CANARY in boss.prompts[1]
    assert seen
    assert CANARY not in str(seen)


@HOW
async def test_the_note_is_behind_the_system_prompt(memory: SupervisorMemory, how: str) -> None:
    boss = model("ok")
    await run(create_agent(boss, [], system_prompt="base", middleware=[memory.middleware()]), how)
    system, asked = boss.calls[0]
    assert isinstance(system, SystemMessage)
    assert isinstance(system.content, str)
    assert system.content.startswith(f"base\n\n{FENCE}")
    assert (asked.type, asked.content) == ("human", ASK)


@HOW
async def test_without_a_system_prompt_the_note_is_it(memory: SupervisorMemory, how: str) -> None:
    boss = model("ok")
    await run(create_agent(boss, [], middleware=[memory.middleware()]), how)
    assert [m.type for m in boss.calls[0]] == ["system", "human"]
    assert boss.calls[0][0].text.startswith(FENCE)


@HOW
async def test_the_note_may_open_the_users_latest_message(memory: SupervisorMemory, how: str) -> None:
    boss = model(asks("add", "x"), "ok")

    @tool
    def add(task: str) -> str:
        """Add."""
        return task

    middleware = memory.middleware(placement="last_user")
    earlier = [HumanMessage("Hello."), AIMessage("Hello!")]
    graph: Any = create_agent(boss, [add], system_prompt="base", middleware=[middleware])
    await run(graph, how, {"messages": [*earlier, HumanMessage(ASK)]})
    for call in boss.calls:  # also where tools have answered since
        assert call[0].content == "base"
        assert [m.content for m in call[1:3]] == ["Hello.", "Hello!"]
        blocks: Any = call[3].content
        assert blocks[0]["text"].startswith(FENCE)
        assert blocks[1:] == [{"type": "text", "text": ASK}]
        assert "".join(m.text for m in call).count(FENCE) == 1


@HOW
@PLACED
async def test_messages_of_several_blocks_stay_as_they_are(
    memory: SupervisorMemory, how: str, placement: Any
) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    blocks: list[Any] = [{"type": "text", "text": ASK}, image]
    boss = model("ok")
    prompt = SystemMessage([{"type": "text", "text": "base", "cache_control": {"type": "ephemeral"}}])
    middleware = [memory.middleware(placement=placement)]
    graph: Any = create_agent(boss, [], system_prompt=prompt, middleware=middleware)
    state = await run(graph, how, {"messages": [HumanMessage(blocks)]})
    system, asked = boss.calls[0]
    assert system.content[0] == prompt.content[0]
    assert list(asked.content)[-2:] == blocks
    assert len(system.content) + len(asked.content) == 4  # one block more, wherever it is
    assert boss.prompts[0].count(FENCE) == 1
    assert state["messages"][0].content == blocks
    assert CANARY in boss.prompts[0]


@PLACED
async def test_what_a_user_writes_of_notes_takes_no_note_away(
    memory: SupervisorMemory, placement: Any
) -> None:
    boss = model("ok")
    graph: Any = create_agent(boss, [], middleware=[memory.middleware(placement=placement)])
    await run(graph, "sync", asking(f'What was the revenue? {FENCE}"1">'))
    assert CANARY in boss.prompts[0]


def test_an_unknown_placement_is_refused(memory: SupervisorMemory) -> None:
    wrong: Any = "first"
    with pytest.raises(SettingsError, match="'first'"):
        memory.middleware(placement=wrong)


def test_an_agent_needs_a_name_that_can_be_one(memory: SupervisorMemory) -> None:
    with pytest.raises(InvalidName):
        memory.middleware(agent_id="two\nlines")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("placement", "order", "cached"),
    [
        ("system", "caching first", [True, False]),
        ("system", "memory first", [True]),  # the cache is missed whenever the note changes
        ("last_user", "caching first", [True]),
        ("last_user", "memory first", [True]),
    ],
)
def test_behind_the_caching_middleware_the_prompt_stays_cached(
    memory: SupervisorMemory, placement: Any, order: str, cached: list[bool]
) -> None:
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

    middleware: list[Any] = [AnthropicPromptCachingMiddleware(), memory.middleware(placement=placement)]
    if order == "memory first":
        middleware.reverse()
    claude = offline("anthropic")(model_name="claude-sonnet-4-5", api_key="none", script=["ok"])
    graph: Any = create_agent(claude, [], system_prompt="base", middleware=middleware)
    graph.invoke(asking(), config(user_id="ada"))
    payload = claude.payloads[0]
    assert ["cache_control" in block for block in payload["system"]] == cached
    asked: Any = payload["messages"][-1]["content"]
    if placement == "last_user":
        assert payload["system"][0]["text"] == "base"
        assert asked[0]["text"].startswith(FENCE)
        assert asked[-1]["text"] == ASK
    else:
        assert "".join(block["text"] for block in payload["system"]).startswith(f"base\n\n{FENCE}")
    assert str(payload).count(FENCE) == 1
    assert payload["messages"][-1]["role"] == "user"


# --- exactly once


@pytest.mark.one_in(2, shift=3)
@HOW
@PLACED
async def test_inside_an_attached_graph_there_is_one_note_and_one_memory(
    memory: SupervisorMemory, how: str, placement: Any
) -> None:
    boss, worker = model(LONG), model("Revenue fell by 3 percent in July, said the worker.", label="w")
    builder = Graph(Team)
    middleware = memory.middleware(placement=placement)
    builder.add_node("supervisor", create_agent(boss, [], name="supervisor", middleware=[middleware]))
    theirs = memory.middleware(agent_id="worker", placement=placement)
    builder.add_node("worker", create_agent(worker, [], name="worker", middleware=[theirs]))
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    graph = memory.attach(builder).compile()
    await run(graph, how)
    assert [prompt.count(FENCE) for prompt in [*boss.prompts, *worker.prompts]] == [1, 1]
    assert f"{CANARY} other" in boss.prompts[0]
    assert f"{CANARY} other" not in worker.prompts[0]
    assert [who for who, text in kept(memory) if "July" in text] == ["worker"]
    await run(graph, how, asking("Use tables by default."), config("t2", user_id="ada"))
    assert len([text for _, text in kept(memory) if "tables" in text]) == 1


@HOW
async def test_the_note_of_another_memory_is_enough(memory: SupervisorMemory, how: str) -> None:
    boss = model("ok")
    with open_memory() as another:
        seed(another)
        builder = Graph(Team)
        agent = create_agent(boss, [], name="supervisor", middleware=[another.middleware()])
        builder.add_node("supervisor", agent)
        builder.add_edge(START, "supervisor")
        await run(memory.attach(builder).compile(), how)
    assert boss.prompts[0].count(FENCE) == 1


@HOW
@PLACED
async def test_two_middlewares_of_two_memories_add_one_note(
    memory: SupervisorMemory, how: str, placement: Any
) -> None:
    boss = model("ok")
    with open_memory() as another:
        seed(another)
        both: list[Any] = [
            memory.middleware(placement=placement),
            another.middleware(agent_id="boss", placement=placement),
        ]
        await run(create_agent(boss, [], middleware=both), how)
    assert boss.prompts[0].count(FENCE) == 1


def test_two_supervisors_on_one_agent_are_refused_by_langchain(memory: SupervisorMemory) -> None:
    with open_memory() as another, pytest.raises(AssertionError, match="duplicate middleware"):
        create_agent(model(), [], middleware=[memory.middleware(), another.middleware()])


# --- tools


def test_the_six_tools_come_with_it(memory: SupervisorMemory) -> None:
    boss = model("ok")
    graph: Any = create_agent(boss, [], middleware=[memory.middleware()])
    graph.invoke(asking(), config(user_id="ada"))
    assert boss.bound == [[tool.name for tool in memory.tools()]]


@pytest.mark.parametrize("names", [["memory_search"], []])
def test_tools_can_be_left_out(memory: SupervisorMemory, names: list[str]) -> None:
    boss = model("ok")
    graph: Any = create_agent(boss, [], middleware=[memory.middleware(tools=names)])
    graph.invoke(asking(), config(user_id="ada"))
    assert boss.bound == ([names] if names else [])
    assert FENCE in boss.prompts[0]


def test_tools_that_do_not_exist_are_named(memory: SupervisorMemory) -> None:
    with pytest.raises(SettingsError, match="memory_serach"):
        memory.middleware(tools=["memory_serach"])


def test_tools_that_the_host_passed_too_are_there_once(memory: SupervisorMemory) -> None:
    boss = model("ok")
    graph: Any = create_agent(boss, memory.tools(), middleware=[memory.middleware()])
    graph.invoke(asking(), config(user_id="ada"))
    assert sorted(boss.bound[0]) == sorted(tool.name for tool in memory.tools())


def test_a_sub_agents_middleware_brings_no_tools(memory: SupervisorMemory) -> None:
    worker = model("ok")
    graph: Any = create_agent(worker, [], middleware=[memory.middleware(agent_id="worker")])
    graph.invoke(asking(), config(user_id="ada"))
    assert worker.bound == []
    assert f"{CANARY} worker" in worker.prompts[0]
    assert f"{CANARY} other" not in worker.prompts[0]


# --- what is remembered


@HOW
async def test_what_the_user_states_and_what_is_answered_is_kept(memory: SupervisorMemory, how: str) -> None:
    graph: Any = create_agent(model(LONG), [], middleware=[memory.middleware()])
    await run(graph, how, asking("Use tables by default. What was the revenue?"))
    assert ("", "Use tables by default.") in kept(memory)
    said = [r.content for r in memory.get_all(user_id="ada", families=["session_messages"])]
    assert any(LONG in text for text in said)


@HOW
async def test_what_the_user_states_is_kept_before_the_model_fails(
    memory: SupervisorMemory, how: str
) -> None:
    def fail(_messages: Any) -> AIMessage:
        raise ConnectionError("no model")

    graph: Any = create_agent(model(fail), [], middleware=[memory.middleware()])
    with pytest.raises(ConnectionError, match="no model"):
        await run(graph, how, asking("Use tables by default."))
    assert ("", "Use tables by default.") in kept(memory)


@HOW
async def test_a_sub_agent_in_a_tool_reads_its_own_note_and_is_remembered_by_name(
    memory: SupervisorMemory, how: str
) -> None:
    saver, worker = InMemorySaver(), model(LONG, label="w")
    boss = model(asks(), "done")
    agent = create_agent(worker, [], name="worker")
    middleware = [memory.middleware()]
    graph: Any = create_agent(boss, [delegate(agent)], middleware=middleware, checkpointer=saver)
    state = await run(graph, how)
    assert worker.prompts[0].count(FENCE) == 1
    assert f"{CANARY} worker" in worker.prompts[0]
    assert f"{CANARY} other" not in worker.prompts[0]
    assert kept(memory) == [("worker", LONG)]
    assert [m.text for m in state["messages"] if isinstance(m, ToolMessage)] == [LONG]
    assert CANARY not in raw(saver)


@HOW
@pytest.mark.parametrize("agents", [(), ("remote",)])
async def test_a_tool_that_the_host_named_is_an_agent_too(
    memory: SupervisorMemory, how: str, agents: tuple[str, ...]
) -> None:
    @tool
    def remote(task: str) -> str:
        """Ask an agent behind HTTP."""
        return LONG

    boss = model(asks("remote"), "done")
    graph: Any = create_agent(boss, [remote], middleware=[memory.middleware(agents=agents)])
    await run(graph, how)
    assert kept(memory) == ([("remote", LONG)] if agents else [])


def by_message(agent: Any) -> Any:
    @tool
    def ask_worker(task: str, runtime: ToolRuntime) -> ToolMessage:
        """Hand over."""
        text = agent.invoke({"messages": [("user", task)]})["messages"][-1].text
        return ToolMessage(text, tool_call_id=runtime.tool_call_id)

    return ask_worker


def by_command(agent: Any) -> Any:
    @tool
    def ask_worker(task: str, runtime: ToolRuntime) -> Command[Any]:
        """Hand over."""
        text = agent.invoke({"messages": [("user", task)]})["messages"][-1].text
        return Command(update={"messages": [ToolMessage(text, tool_call_id=runtime.tool_call_id)]})

    return ask_worker


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize("way", [delegate, by_message, by_command], ids=lambda way: way.__name__)
async def test_whatever_shape_an_agent_answers_in_it_is_remembered_once(
    memory: SupervisorMemory, how: str, way: Any
) -> None:
    agent = create_agent(model(LONG, label="w"), [], name="worker")
    graph: Any = create_agent(model(asks(), "done"), [way(agent)], middleware=[memory.middleware()])
    state = await run(graph, how)
    assert kept(memory) == [("worker", LONG)]
    assert [m.text for m in state["messages"] if isinstance(m, ToolMessage)] == [LONG]


@HOW
async def test_the_error_of_an_agent_is_the_hosts_and_nothing_is_remembered(
    memory: SupervisorMemory, how: str
) -> None:
    def fail(_messages: Any) -> AIMessage:
        raise ConnectionError("no model")

    agent = create_agent(model(fail, label="w"), [], name="worker")
    graph: Any = create_agent(model(asks(), "done"), [delegate(agent)], middleware=[memory.middleware()])
    with pytest.raises(ConnectionError, match="no model"):
        await run(graph, how)
    assert kept(memory) == []


@HOW
async def test_an_error_that_the_tool_tells_is_not_remembered(memory: SupervisorMemory, how: str) -> None:
    agent: Any = create_agent(model(LONG, label="w"), [], name="worker")

    @tool
    def ask_worker(task: str, runtime: ToolRuntime) -> ToolMessage:
        """Hand over."""
        agent.invoke({"messages": [("user", task)]})
        return ToolMessage(LONG, tool_call_id=runtime.tool_call_id, status="error")

    graph: Any = create_agent(model(asks(), "done"), [ask_worker], middleware=[memory.middleware()])
    await run(graph, how)
    assert kept(memory) == []


@HOW
async def test_an_agent_that_asks_the_user_first_is_remembered_once_it_has_answered(
    memory: SupervisorMemory, how: str
) -> None:
    @tool
    def confirm() -> str:
        """Ask the user."""
        return str(interrupt("Really?"))

    worker = model(call_of("confirm"), call_of("confirm"), LONG, label="w")
    agent = create_agent(worker, [confirm], name="worker")
    boss = model(asks(), "done")
    options: dict[str, Any] = {"middleware": [memory.middleware()], "checkpointer": InMemorySaver()}
    graph: Any = create_agent(boss, [delegate(agent)], **options)
    state = await run(graph, how)
    assert "__interrupt__" in state
    assert kept(memory) == []
    state = await run(graph, how, Command(resume="yes"))
    if "__interrupt__" in state:  # the agent runs anew: it has no thread of its own
        state = await run(graph, how, Command(resume="yes"))
    assert state["messages"][-1].text == "done"
    assert kept(memory) == [("worker", LONG)]


@HOW
async def test_a_sub_agent_reads_nothing_of_the_supervisors_memory_calls(
    memory: SupervisorMemory, how: str
) -> None:
    worker = model("ok", label="w")
    graph: Any = create_agent(worker, [], middleware=[memory.middleware(agent_id="worker")])
    history = [
        HumanMessage(ASK),
        call_of("memory_search", query="revenue"),
        ToolMessage("the secret of another agent", tool_call_id="call-memory_search", name="memory_search"),
    ]
    await run(graph, how, {"messages": history})
    assert "secret" not in worker.prompts[0]


# --- off, and broken


@HOW
async def test_a_memory_that_is_switched_off_leaves_the_host_bare(how: str) -> None:
    agent = create_agent(model(LONG, label="w"), [], name="worker")
    with open_memory(settings={"enabled": False}) as memory:
        seed(memory)
        rows = len(audit_of(memory))
        boss, bare = model(asks(), "done"), model(asks(), "done")
        agent = create_agent(model(LONG, LONG, label="w"), [], name="worker")
        graph: Any = create_agent(boss, [delegate(agent)], middleware=[memory.middleware()])
        plain: Any = create_agent(bare, [delegate(agent)])
        state, expected = await run(graph, how), await run(plain, how)
        assert texts(state) == texts(expected)
        assert boss.prompts == bare.prompts
        assert boss.bound == bare.bound
        assert kept(memory) == []
        assert len(audit_of(memory)) == rows


@HOW
async def test_without_a_user_or_a_thread_memory_is_off_and_the_audit_says_so(
    memory: SupervisorMemory, how: str
) -> None:
    boss, worker = model(asks(), "done"), model(LONG, label="w")
    agent = create_agent(worker, [], name="worker")
    graph: Any = create_agent(boss, [delegate(agent)], middleware=[memory.middleware()])
    state = await run(graph, how, asking("Use tables by default."), {"configurable": {}})
    assert state["messages"][-1].text == "done"
    assert not any(FENCE in prompt for prompt in [*boss.prompts, *worker.prompts])
    assert kept(memory) == []
    assert set(outcomes(memory, "identity")) == {("denied", "MissingUser")}


@HOW
async def test_two_users_in_one_run_are_nobody(memory: SupervisorMemory, how: str) -> None:
    boss = model(call_of("memory_search", query="revenue"), "done")
    graph: Any = create_agent(boss, [], middleware=[memory.middleware()])
    where = config(user_id="ada", langgraph_user_id="bo")
    state = await run(graph, how, asking("Use tables by default."), where)
    assert not any(FENCE in prompt for prompt in boss.prompts)
    assert CANARY not in str(state)
    assert "IdentityConflict" in next(m.text for m in state["messages"] if isinstance(m, ToolMessage))
    assert kept(memory) == []


@HOW
async def test_the_hosts_own_identity_is_asked_first(memory: SupervisorMemory, how: str) -> None:
    boss = model("ok")
    middleware = memory.middleware(identity=lambda state, config: "ada")
    await run(create_agent(boss, [], middleware=[middleware]), how, where=config())
    assert CANARY in boss.prompts[0]


@HOW
async def test_a_store_that_fails_takes_nothing_from_the_host(how: str) -> None:
    failing = raising(BackendUnavailable("down"))
    with open_memory(backend=Broken(InMemoryBackend(), search=failing, commit=failing)) as memory:
        boss, worker = model(asks(), "done"), model(LONG, label="w")
        agent = create_agent(worker, [], name="worker")
        graph: Any = create_agent(boss, [delegate(agent)], middleware=[memory.middleware()])
        state = await run(graph, how, asking("Use tables by default."))
        assert state["messages"][-1].text == "done"
        assert ("degraded", "BackendUnavailable") in outcomes(memory, "recall")


async def test_the_event_loop_is_never_blocked_by_a_slow_store() -> None:
    inner = InMemoryBackend()

    def search(*given: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return inner.search(*given, **options)

    with open_memory(backend=Broken(inner, search=search)) as memory:
        seed(memory)
        worker: Any = create_agent(model(LONG, label="w"), [], name="worker")
        boss = model(asks(), call_of("memory_search", query="revenue"), "done")
        graph: Any = create_agent(boss, [delegate(worker)], middleware=[memory.middleware()])
        await graph.ainvoke(asking(), config("warm", user_id="nobody"))
        boss.script[:] = [asks(), call_of("memory_search", query="revenue"), "done"]
        longest, last, done = 0.0, time.perf_counter(), False

        async def beat() -> None:
            nonlocal longest, last
            while not done:
                await asyncio.sleep(0.005)
                longest, last = max(longest, time.perf_counter() - last), time.perf_counter()

        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        last = time.perf_counter()
        started = last
        await graph.ainvoke(asking(), config(user_id="ada"))
        took = time.perf_counter() - started
        done = True
        await beating
        assert took > 0.6, "the store was not asked"
        assert longest < 0.15


# --- shared


@HOW
async def test_one_middleware_serves_two_graphs_and_two_users_at_once(how: str) -> None:
    users = [f"user{n}" for n in range(8)]
    with open_memory() as memory:
        for user in users:
            memory.write(f"Revenue means the number of {user}", user_id=user)
        middleware = memory.middleware()
        workers = [model(*[echo] * 8, label=f"w{n}") for n in range(2)]
        bosses = [model(*[hand_on] * 16, label=f"b{n}") for n in range(2)]
        graphs: list[Any] = [
            create_agent(boss, [delegate(create_agent(worker, [], name="worker"))], middleware=[middleware])
            for boss, worker in zip(bosses, workers, strict=True)
        ]

        async def one(n: int, user: str) -> Any:
            given = asking(f"What was the revenue of {user}?"), config(user, user_id=user)
            if how == "sync":
                return await asyncio.to_thread(graphs[n % 2].invoke, *given)
            return await graphs[n % 2].ainvoke(*given)

        await asyncio.gather(*(one(n, user) for n, user in enumerate(users)))
        calls = [prompt for each in [*bosses, *workers] for prompt in each.prompts]
        assert len(calls) == 24
        for prompt in calls:
            named = {user for user in users if f"the number of {user}" in prompt}
            asked = {user for user in users if f"revenue of {user}?" in prompt}
            assert named == asked
            assert len(asked) == 1
            assert prompt.count(FENCE) == 1
        for user in users:
            brought = [text for who, text in kept(memory, user) if who == "worker"]
            assert len(brought) == 1
            assert f"Revenue of {user} rose" in brought[0]


def echo(messages: list[BaseMessage]) -> AIMessage:
    asked = next(m.text for m in messages if isinstance(m, HumanMessage))
    user = asked.removesuffix("?").split()[-1]
    return AIMessage(f"Revenue of {user} rose by 12 percent in June because of two new contracts.")


def hand_on(messages: list[BaseMessage]) -> AIMessage:
    asked = next(m.text for m in messages if isinstance(m, HumanMessage))
    answered = any(isinstance(m, ToolMessage) for m in messages)
    return AIMessage("done") if answered else asks(task=asked)


async def test_sync_and_async_do_the_same() -> None:
    told: list[Any] = []
    for how in ("sync", "async"):
        with open_memory() as memory:
            seed(memory)
            agent = create_agent(model(LONG, label="w"), [], name="worker")
            boss = model(asks(), call_of("memory_search", query="revenue"), "done")
            graph: Any = create_agent(boss, [delegate(agent)], middleware=[memory.middleware()])
            state = await run(graph, how, asking("Use tables by default. What was the revenue?"))
            found = [(m.type, m.name) for m in state["messages"]]
            notes = [len(notes_in(call)) for call in boss.calls]
            told.append((found, notes, kept(memory), audit_of(memory)))
    assert told[0] == told[1]


class Naming(AgentMiddleware[Any, Any, Any]):
    """A host's middleware that rewrites the system prompt and wraps tools."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(system_message=SystemMessage("rewritten")))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(system_message=SystemMessage("rewritten")))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@HOW
@pytest.mark.parametrize("outer", [True, False])
async def test_a_middleware_of_the_host_before_or_behind_changes_no_right(
    memory: SupervisorMemory, how: str, outer: bool
) -> None:
    boss = model(call_of("memory_search", query="revenue"), "done")
    middleware: list[Any] = [Naming(), memory.middleware()]
    if not outer:
        middleware.reverse()
    state = await run(create_agent(boss, [], system_prompt="base", middleware=middleware), how)
    assert CANARY in next(m.text for m in state["messages"] if isinstance(m, ToolMessage))
    assert boss.calls[0][0].text.startswith("rewritten")
    assert (FENCE in boss.prompts[0]) == outer  # one that comes later may drop what it was given
