"""The kinds of graphs that memory is put into: each by itself, and with memory.

Every host holds the same conversation. The user asks and states a wish, whoever leads hands over, an agent
concludes, whoever leads says "done". Notes are nowhere in what the models say.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Annotated, Any, Literal

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from langgraph_supervisor import create_handoff_tool, create_supervisor
from langgraph_swarm import create_handoff_tool as create_swarm_handoff_tool
from langgraph_swarm import create_swarm
from pydantic import BaseModel
from typing_extensions import TypedDict

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.host.graphs import Graph, config, open_memory

__all__ = [
    "CANARIES",
    "CONCLUSION",
    "HOSTS",
    "Built",
    "Host",
    "How",
    "everything",
    "opened",
    "play",
    "question",
]

How = Literal["sync", "async"]
CANARIES = {"ada": "zebra", "eve": "giraffe"}
"""A word for each user that stands in their records and in nothing that is said."""
CONCLUSION = "Revenue rose by 12 percent in June because of two new contracts in the north."
AGENTS = ("worker", "other")
_MANY = 200


def question(user: str = "ada") -> list[tuple[str, str]]:
    """What the user says in a turn."""
    return [("user", f"Use bullet points for {user} by default."), ("user", "What was the revenue?")]


def opened(**options: Any) -> SupervisorMemory:
    """A memory in which two users have records that bear on the question, some of them of agents."""
    memory = open_memory(**options)
    for user, canary in CANARIES.items():
        memory.write(f"Revenue means {canary} net of tax", user_id=user, kind="domain-facts")
        for agent in AGENTS:
            memory.write(
                f"Revenue of {canary} {agent} rose in May", user_id=user, kind="task-traces", agent_id=agent
            )
    return memory


def everything(memory: SupervisorMemory) -> list[Record]:
    """Every record of every user, session messages too."""
    found = memory.backend.list(Filter(statuses=None), limit=1000)
    return [*found, *memory.backend.list(Filter(families=("session_messages",), statuses=None), limit=1000)]


# --- what hosts are made of


@dataclasses.dataclass(frozen=True)
class Built:
    """A graph that is ready to run.

    Args:
        boss: The model of whoever leads; None when nobody does.
        agents: The models by the agent whose note they read.
        concluding: The agent whose conclusion is worth keeping.
    """

    graph: Any
    boss: ScriptedModel | None
    agents: Mapping[str, ScriptedModel]
    concluding: str = "worker"
    key: str = "messages"

    def readers(self) -> list[tuple[str | None, ScriptedModel]]:
        """(reader, its model) of each reader; None is the supervisor."""
        return [*([(None, self.boss)] if self.boss else []), *self.agents.items()]


Build = Callable[[SupervisorMemory | None, InMemorySaver], Built]


@dataclasses.dataclass(frozen=True)
class Host:
    """A kind of graph, with its name.

    Args:
        build: With a memory, or None for the bare graph.
        how: The worlds it runs in.
        asks_memory: Whether the supervisor calls its memory tools, so that their results are in the thread.
    """

    name: str
    build: Build
    how: tuple[How, ...] = ("sync", "async")
    asks_memory: bool = False

    def __str__(self) -> str:
        return self.name


HOSTS: list[Host] = []


def host(name: str, **options: Any) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        HOSTS.append(Host(name, build, **options))
        return build

    return register


async def play(built: Built, how: How, *, user: str = "ada", thread: str = "t1") -> Any:
    """The state after a turn; interrupts on the way are resumed."""
    where = config(thread, user_id=user)
    given: Any = {built.key: question(user)}
    while True:
        run = built.graph.ainvoke(given, where) if how == "async" else built.graph.invoke(given, where)
        state = await run if how == "async" else run
        held = built.graph.get_state(where)
        if not held.next:
            return state
        given = Command(resume="yes") if held.interrupts else None


def leading(*steps: AIMessage | str, label: str = "boss") -> ScriptedModel:
    """A model that takes these steps for each thing the user says, whoever else it speaks to meanwhile."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        since = takewhile(lambda m: m.type != "human", reversed(messages))
        taken = sum((message.id or "").startswith(f"{label}-") for message in since)
        step = steps[min(taken, len(steps) - 1)]
        return AIMessage(step) if isinstance(step, str) else step

    return ScriptedModel(script=[reply] * _MANY, label=label)


def concluding(label: str = "worker") -> ScriptedModel:
    return ScriptedModel(script=[CONCLUSION] * _MANY, label=label)


def small(label: str = "other") -> ScriptedModel:
    """An agent that says nothing worth keeping."""
    return ScriptedModel(script=["ok"] * _MANY, label=label)


def calls_of(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """A reply that calls several tools at once."""
    return AIMessage(
        "", tool_calls=[tool_call(name=n, args=args, id=f"call-{i}") for i, (n, args) in enumerate(calls)]
    )


def agent_of(model: ScriptedModel, name: str, tools: Iterable[BaseTool] = (), **options: Any) -> Any:
    return create_agent(model, list(tools), name=name, system_prompt=f"You are {name}.", **options)


def attached(memory: SupervisorMemory | None, graph: Any, **options: Any) -> Any:
    return graph if memory is None else memory.attach(graph, **options)


def middlewares(memory: SupervisorMemory | None, **options: Any) -> list[Any]:
    return [] if memory is None else [memory.middleware(**options)]


def bound(memory: SupervisorMemory | None, agent: Any) -> Any:
    return agent if memory is None else memory.bind_agent(agent)


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]


def led(worker: Any, boss: ScriptedModel, *, state: Any = Chat, **options: Any) -> Any:
    """A supervisor that is a function, and one node that it leads."""
    builder = Graph(state)
    builder.add_node("supervisor", speaking(boss))
    builder.add_node("worker", worker, **options)
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", chosen, ["worker", END])
    builder.add_edge("worker", "supervisor")
    return builder


def messages_in(state: Any) -> list[Any]:
    return state["messages"] if isinstance(state, dict) else state.messages  # type: ignore[no-any-return]


def speaking(model: ScriptedModel) -> Callable[[Any], Any]:
    """A node that is a function; an agent's answer bears its name."""

    def speak(state: Any) -> dict[str, Any]:
        said = model.invoke([SystemMessage(f"You are {model.label}."), *messages_in(state)])
        return {
            "messages": [said if model.label == "boss" else said.model_copy(update={"name": model.label})]
        }

    return speak


def chosen(state: Any) -> str:
    return "worker" if messages_in(state)[-1].text == "go" else END


def of_function(
    memory: SupervisorMemory | None, saver: InMemorySaver, *, state: Any = Chat, **options: Any
) -> Built:
    boss, worker = leading("go", "done"), concluding()
    builder = led(speaking(worker), boss, state=state, **options)
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


def of_node(
    memory: SupervisorMemory | None, saver: InMemorySaver, make: Callable[[Any], Any], **options: Any
) -> Built:
    """A host of which the worker is an agent, in its node as `make` puts it there."""
    boss, worker = leading("go", "done"), concluding()
    builder = led(make(agent_of(worker, "worker", **options)), boss)
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


# --- create_supervisor


def supervised(
    memory: SupervisorMemory | None,
    *steps: AIMessage | str,
    mode: Literal["last_message", "full_history"] = "last_message",
    tools: Any = (),
    bind: bool = False,
) -> tuple[Any, Built]:
    boss, worker, other = leading(*steps), concluding(), small()
    agents = [agent_of(worker, "worker"), agent_of(other, "other")]
    if bind:
        agents = [bound(memory, agent) for agent in agents]
    builder = create_supervisor(agents, model=boss, prompt="boss", output_mode=mode, tools=list(tools))
    return builder, Built(None, boss, {"worker": worker, "other": other})


BOTH = (call_of("transfer_to_other"), call_of("transfer_to_worker"), "done")


@host("create_supervisor gives back the last message")
def last_message(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    builder, built = supervised(memory, *BOTH)
    return dataclasses.replace(built, graph=attached(memory, builder).compile(checkpointer=saver))


@host("create_supervisor gives back the full history")
def full_history(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    builder, built = supervised(memory, *BOTH, mode="full_history")
    return dataclasses.replace(built, graph=attached(memory, builder).compile(checkpointer=saver))


@host("create_supervisor is compiled already")
def compiled_supervisor(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    builder, built = supervised(memory, *BOTH)
    return dataclasses.replace(built, graph=attached(memory, builder.compile(checkpointer=saver)))


@host("create_supervisor leads bound agents")
def bound_agents(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    builder, built = supervised(memory, *BOTH, bind=True)
    return dataclasses.replace(built, graph=attached(memory, builder).compile(checkpointer=saver))


@host("create_supervisor asks its memory and then hands over", asks_memory=True)
def asking_memory(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    tools = (memory or opened()).tools()
    steps = call_of("memory_search", query="revenue"), *BOTH
    builder, built = supervised(memory, *steps, tools=tools)
    return dataclasses.replace(built, graph=attached(memory, builder).compile(checkpointer=saver))


@host("a team is in a team of create_supervisor")
def nested(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    top, middle, leaf = (
        leading(call_of("transfer_to_crew"), "done"),
        leading(call_of("transfer_to_worker"), CONCLUSION, label="crew"),
        small("worker"),
    )
    inner = create_supervisor(
        [agent_of(leaf, "worker")], model=middle, prompt="crew", supervisor_name="chief"
    )
    builder = create_supervisor([inner.compile(name="crew")], model=top, prompt="boss")
    graph = attached(memory, builder).compile(checkpointer=saver)
    return Built(graph, top, {"crew": middle}, concluding="crew")


@host("each of two nested teams has memory of its own accord")
def nested_both(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    top, middle, leaf = (
        leading(call_of("transfer_to_crew"), "done"),
        leading(call_of("transfer_to_worker"), "team done", label="crew"),
        concluding(),
    )
    inner = create_supervisor(
        [agent_of(leaf, "worker")], model=middle, prompt="crew", supervisor_name="chief"
    )
    crew = attached(memory, inner, supervisor="chief").compile(name="crew")
    builder = create_supervisor([crew], model=top, prompt="boss")
    return Built(attached(memory, builder).compile(checkpointer=saver), top, {"worker": leaf})


# --- create_agent, deepagents


@host("a create_agent supervisor hands over to its parent graph")
def to_parent(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _to_parent(memory, saver, [])


@host("a create_agent supervisor with a middleware is in an attached graph")
def middleware_in_attached(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _to_parent(memory, saver, middlewares(memory))


def _to_parent(memory: SupervisorMemory | None, saver: InMemorySaver, middleware: list[Any]) -> Built:
    boss, worker = leading(call_of("transfer_to_worker"), "done"), concluding()
    tools = [create_handoff_tool(agent_name="worker")]
    builder = Graph(Chat)
    leader = agent_of(boss, "supervisor", tools, middleware=middleware)
    builder.add_node("supervisor", leader, destinations=("worker",))
    builder.add_node("worker", agent_of(worker, "worker"))
    builder.add_edge(START, "supervisor")
    builder.add_edge("worker", "supervisor")
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


def asking_tool(agent: Any, name: str) -> BaseTool:
    """A tool that runs an agent, which its functions hold in their closure."""

    def ask(task: str) -> str:
        return str(agent.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)

    async def aask(task: str) -> str:
        return str((await agent.ainvoke({"messages": [HumanMessage(task)]}))["messages"][-1].text)

    return StructuredTool.from_function(ask, aask, name=f"ask_{name}", description="Delegate.")


def commanding_tool(agent: Any, name: str) -> BaseTool:
    """A tool that runs an agent and answers with a Command."""

    async def aask(task: str, runtime: ToolRuntime) -> Command[Any]:
        said = await agent.ainvoke({"messages": [HumanMessage(task)]})
        return answer(said, runtime)

    def ask(task: str, runtime: ToolRuntime) -> Command[Any]:
        return answer(agent.invoke({"messages": [HumanMessage(task)]}), runtime)

    def answer(said: Any, runtime: ToolRuntime) -> Command[Any]:
        told = ToolMessage(said["messages"][-1].text, tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [told]})

    return StructuredTool.from_function(ask, aask, name=f"ask_{name}", description="Delegate.")


PARALLEL = (
    calls_of(("ask_worker", {"task": "Revenue of June?"}), ("ask_other", {"task": "Revenue of May?"})),
    "done",
)


def _as_tools(
    memory: SupervisorMemory | None,
    saver: InMemorySaver,
    make: Callable[[Any, str], BaseTool],
    **options: Any,
) -> Built:
    boss, worker, other = leading(*PARALLEL), concluding(), small()
    tools = [make(agent_of(worker, "worker"), "worker"), make(agent_of(other, "other"), "other")]
    graph = agent_of(boss, "boss", tools, middleware=middlewares(memory, **options), checkpointer=saver)
    return Built(graph, boss, {"worker": worker, "other": other})


@host("create_agent calls agents as tools in parallel")
def as_tools(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _as_tools(memory, saver, asking_tool)


@host("create_agent puts its note into the user's message")
def in_last_user(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _as_tools(memory, saver, asking_tool, placement="last_user")


@host("create_agent calls agents as tools that answer with a Command")
def as_commanding_tools(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _as_tools(memory, saver, commanding_tool)


@host("create_agent calls bound agents as tools")
def as_bound_tools(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return _as_tools(memory, saver, lambda agent, name: asking_tool(bound(memory, agent), name))


GLOBAL: dict[str, Any] = {}
"""Agents that only the module knows."""


@tool
def ask_worker(task: str) -> str:
    """Delegate."""
    return str(GLOBAL["worker"].invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)


@tool
def ask_other(task: str) -> str:
    """Delegate."""
    return str(GLOBAL["other"].invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)


@host("create_agent calls bound agents that its tools reach as a global")
def as_global_tools(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    def make(agent: Any, name: str) -> BaseTool:
        GLOBAL[name] = bound(memory, agent)
        return {"worker": ask_worker, "other": ask_other}[name]

    return _as_tools(memory, saver, make)


@host("a function supervisor calls agents as tools of its tool node")
def in_tool_node(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker, other = leading(*PARALLEL), concluding(), small()
    tools = [
        asking_tool(agent_of(worker, "worker"), "worker"),
        asking_tool(agent_of(other, "other"), "other"),
    ]
    builder = Graph(Chat)
    builder.add_node("supervisor", speaking(boss))
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", tools_condition)
    builder.add_edge("tools", "supervisor")
    graph = attached(memory, builder).compile(checkpointer=saver)
    return Built(graph, boss, {"worker": worker, "other": other})


@host("deepagents delegates to a raw and to a compiled sub-agent in parallel")
def deep(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    tasks = [("task", {"description": f"Revenue, {a}?", "subagent_type": a}) for a in AGENTS]
    boss, worker, other = leading(calls_of(*tasks), "done"), concluding(), small()
    raw: Any = {
        "name": "worker",
        "description": "Works.",
        "system_prompt": "You are worker.",
        "model": worker,
        "tools": [],
        "middleware": middlewares(memory, agent_id="worker"),
    }
    compiled: Any = {
        "name": "other",
        "description": "Helps.",
        "runnable": bound(memory, agent_of(other, "other")),
    }
    graph = create_deep_agent(
        boss,
        tools=[],
        system_prompt="You are boss.",
        middleware=middlewares(memory),
        subagents=[raw, compiled],
        checkpointer=saver,
    )
    return Built(graph, boss, {"worker": worker, "other": other})


# --- StateGraph


@host("a function supervisor leads a function by conditional edges")
def functions(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_function(memory, saver)


@host("a function supervisor goes where its Command says")
def goto(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()

    def supervise(state: Any) -> Command[Any]:
        update = speaking(boss)(state)
        return Command(goto=chosen(update), update=update)

    def work(state: Any) -> Command[Any]:
        return Command(goto="supervisor", update=speaking(worker)(state))

    builder = Graph(Chat)
    builder.add_node("supervisor", supervise, destinations=("worker", END))
    builder.add_node("worker", work, destinations=("supervisor",))
    builder.add_edge(START, "supervisor")
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


@host("tasks are sent to one agent in parallel")
def fan_out(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()

    def fan(state: Any) -> Any:
        if chosen(state) == END:
            return END
        return [Send("worker", {"messages": [HumanMessage(f"Revenue of {m}?")]}) for m in ("June", "July")]

    builder = Graph(Chat)
    builder.add_node("supervisor", speaking(boss))
    builder.add_node(
        "worker", agent_of(worker, "worker") | (lambda state: {"messages": state["messages"][-1:]})
    )
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", fan, ["worker", END])
    builder.add_edge("worker", "supervisor")
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []


@host("the state is a pydantic model")
def pydantic_state(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_function(memory, saver, state=Model)


@dataclasses.dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages] = dataclasses.field(default_factory=list)


@host("the state is a dataclass")
def dataclass_state(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_function(memory, saver, state=Data)


class Replacing(TypedDict):
    messages: list[AnyMessage]


@host("messages replace each other in the state")
def no_reducer(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()

    def adding(model: ScriptedModel) -> Callable[[Any], Any]:
        return lambda state: {"messages": [*state["messages"], *speaking(model)(state)["messages"]]}

    def start(state: Any) -> Any:
        return {"messages": [HumanMessage(text) for _role, text in state["messages"]]}

    builder = led(adding(worker), boss, state=Replacing)
    builder.nodes["supervisor"] = Graph(Replacing).add_node("supervisor", adding(boss)).nodes["supervisor"]
    builder.add_node("start", start)
    builder.edges.discard((START, "supervisor"))
    builder.add_edge(START, "start")
    builder.add_edge("start", "supervisor")
    graph = attached(memory, builder, agents=["worker"]).compile(checkpointer=saver)
    return Built(graph, boss, {"worker": worker})


class Chatting(TypedDict, total=False):
    chat: Annotated[list[AnyMessage], add_messages]


@host("messages have a key of their own")
def own_key(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()

    def chatting(model: ScriptedModel) -> Callable[[Any], Any]:
        return lambda state: {"chat": speaking(model)({"messages": state["chat"]})["messages"]}

    builder = Graph(Chatting)
    builder.add_node("supervisor", chatting(boss))
    builder.add_node("worker", chatting(worker))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges(
        "supervisor", lambda state: chosen({"messages": state["chat"]}), ["worker", END]
    )
    builder.add_edge("worker", "supervisor")
    graph = attached(memory, builder, messages_key="chat").compile(checkpointer=saver)
    return Built(graph, boss, {"worker": worker}, key="chat")


class Wide(Chat, total=False):
    topic: str


@host("a node has an input schema of its own")
def input_schema(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_function(memory, saver, state=Wide, input_schema=Chat)


async def aspeak(model: ScriptedModel, state: Any) -> dict[str, Any]:
    said = await model.ainvoke([SystemMessage(f"You are {model.label}."), *messages_in(state)])
    return {"messages": [said if model.label == "boss" else said.model_copy(update={"name": model.label})]}


def async_only(memory: SupervisorMemory | None, saver: InMemorySaver, **options: Any) -> Built:
    boss, worker = leading("go", "done"), concluding()

    async def supervise(state: Any) -> Any:
        return await aspeak(boss, state)

    async def work(state: Any) -> Any:
        return await aspeak(worker, state)

    builder = led(work, boss, **options)
    builder.nodes["supervisor"] = Graph(Chat).add_node("supervisor", supervise).nodes["supervisor"]
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


@host("nodes are only async", how=("async",))
def coroutines(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return async_only(memory, saver)


@host("a node may take so long and no longer", how=("async",))
def timed(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return async_only(memory, saver, timeout=10.0)


@host("a node fails twice and is run again")
def retried(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()
    tried: Counter[str] = Counter()

    def work(state: Any, config: RunnableConfig) -> Any:
        update = speaking(worker)(state)
        thread = config["configurable"]["thread_id"]
        tried[thread] += 1
        if tried[thread] % 3:
            raise ConnectionError("flaky")
        return update

    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, jitter=False)
    builder = led(work, boss, retry_policy=policy)
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


@host("what nodes said is cached")
def cached(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()
    builder = led(speaking(worker), boss, cache_policy=CachePolicy())
    graph = attached(memory, builder).compile(checkpointer=saver, cache=InMemoryCache())
    return Built(graph, boss, {"worker": worker})


@host("a node waits for all others")
def deferred(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_function(memory, saver, defer=True)


@host("a compiled graph stops before its agent")
def stopping(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()
    graph = led(speaking(worker), boss).compile(
        checkpointer=saver, interrupt_before=["worker"], name="company"
    )
    return Built(attached(memory, graph), boss, {"worker": worker})


@host("memory is attached twice")
def twice(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss, worker = leading("go", "done"), concluding()
    builder = led(agent_of(worker, "worker"), boss)
    graph = attached(memory, attached(memory, attached(memory, builder)).compile(checkpointer=saver))
    return Built(graph, boss, {"worker": worker})


# --- agents in nodes


@host("an agent is its node")
def agent_node(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_node(memory, saver, lambda agent: agent)


@host("an agent is in the closure of its node")
def agent_in_closure(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    def make(agent: Any) -> Any:
        def work(state: Any, config: RunnableConfig) -> Any:
            return {"messages": agent.invoke({"messages": state["messages"]}, config)["messages"][-1:]}

        return work

    return of_node(memory, saver, make)


@host("a bound agent is a global of its node's module")
def agent_in_global(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    def make(agent: Any) -> Any:
        GLOBAL["worker"] = bound(memory, agent)
        return work_by_global

    return of_node(memory, saver, make)


def work_by_global(state: Any) -> Any:
    return {"messages": GLOBAL["worker"].invoke({"messages": state["messages"]})["messages"][-1:]}


@host("an agent has a thread of its own")
def agent_with_thread(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    return of_node(memory, saver, lambda agent: agent, checkpointer=True)


@tool
def ask_user(what: str) -> str:
    """Ask the user."""
    return str(interrupt({"what": what}))


@host("an agent asks the user on the way")
def asking_agent(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    boss = leading("go", "done")
    worker = leading(call_of("ask_user", what="June?"), CONCLUSION, label="worker")
    builder = led(agent_of(worker, "worker", [ask_user]), boss)
    return Built(attached(memory, builder).compile(checkpointer=saver), boss, {"worker": worker})


@host("nobody leads a swarm")
def swarm(memory: SupervisorMemory | None, saver: InMemorySaver) -> Built:
    hand_over = create_swarm_handoff_tool(agent_name="other")
    worker = leading(call_of("transfer_to_other"), label="worker")
    other = concluding("other")
    agents = [agent_of(worker, "worker", [hand_over]), agent_of(other, "other")]
    builder = create_swarm(agents, default_active_agent="worker")
    graph = attached(memory, builder, supervisor=None).compile(checkpointer=saver)
    return Built(graph, None, {"worker": worker, "other": other}, concluding="other")
