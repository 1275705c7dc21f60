"""Memory tools of sub-agents: refused by name, or denied when they are called."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode
from langgraph_supervisor import create_supervisor

from agents.team import build_team
from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import WorkerHasMemoryTools
from supervisor_memory.host.ways_in.workers import memory_tools_of
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import HOW
from tests.host.graphs import (
    Graph,
    Team,
    accesses_of,
    asking,
    audit_of,
    config,
    model,
    open_memory,
    outcomes,
    seed,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOUCHED: list[str] = []


@tool
def manage_memory(content: str) -> str:
    """What langmem calls its tool that writes."""
    TOUCHED.append(content)
    return "written"


@tool
def search_memory(query: str) -> str:
    """What langmem calls its tool that reads."""
    TOUCHED.append(query)
    return "found"


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    TOUCHED.clear()
    with open_memory() as memory:
        seed(memory)
        yield memory


def carrier(*tools: BaseTool, calls: str = "manage_memory") -> Any:
    """An agent that calls its memory tool and repeats what it is answered."""
    arguments = {"query": "revenue"} if "search" in calls else {"content": "Revenue is a lie"}

    def repeat(messages: Any) -> AIMessage:
        return AIMessage(next(m.text for m in reversed(messages) if isinstance(m, ToolMessage)))

    return create_agent(model(call_of(calls, **arguments), repeat), list(tools), name="worker")


class Member:
    """An agent as the reference team writes them; what its node does not use is not its own."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.unused = carrier(search_memory)

    def run(self, state: Team) -> Any:
        return self.update(self.ask(state))

    def ask(self, state: Team) -> Any:
        return self.agent.invoke({"messages": state["messages"]})

    async def arun(self, state: Team) -> Any:
        return self.update(await self.agent.ainvoke({"messages": state["messages"]}))

    def update(self, result: Any) -> Any:
        return {"messages": result["messages"][-1:]}

    def __call__(self, state: Team) -> Any:
        return self.run(state)


def as_graph(agent: Any) -> Any:
    return agent


def as_closure(agent: Any) -> Any:
    def work(state: Team) -> Any:
        return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

    return work


def as_async_closure(agent: Any) -> Any:
    async def work(state: Team) -> Any:
        return {"messages": (await agent.ainvoke({"messages": state["messages"]}))["messages"][-1:]}

    return RunnableLambda(as_closure(agent), afunc=work)


def as_method(agent: Any) -> Any:
    return Member(agent).run


def as_member(agent: Any) -> Any:
    member = Member(agent)
    return RunnableLambda(member.run, afunc=member.arun, name="worker")


def as_partial(agent: Any) -> Any:
    def work(state: Team, *, agent: Any) -> Any:
        return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

    return RunnableLambda(functools.partial(work, agent=agent))


def as_sequence(agent: Any) -> Any:
    return agent | (lambda state: {"messages": state["messages"][-1:]})


def as_subgraph(agent: Any) -> Any:
    inner = Graph(Team)
    inner.add_node("work", agent)
    inner.add_edge(START, "work")
    return inner.compile()


def as_decorated(agent: Any) -> Any:
    function = as_closure(agent)

    @functools.wraps(function)
    def work(state: Team) -> Any:
        return function(state)

    return work


def as_instance(agent: Any) -> Any:
    return RunnableLambda(Member(agent))


def with_retry(agent: Any) -> Any:
    return agent.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)


FORMS = [
    with_retry,
    as_graph,
    as_closure,
    as_async_closure,
    as_method,
    as_member,
    as_partial,
    as_sequence,
    as_subgraph,
    as_decorated,
    as_instance,
]
FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


def led(node: Any) -> Any:
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", node)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    return builder


@FORM
def test_a_sub_agent_with_memory_tools_is_refused_with_all_their_names(
    memory: SupervisorMemory, form: Any
) -> None:
    own = memory.tools(["memory_search"])
    with pytest.raises(WorkerHasMemoryTools, match="'worker'") as caught:
        memory.attach(led(form(carrier(manage_memory, add, *own))))
    assert caught.value.facts["tools"] == ["manage_memory", "memory_search"]
    assert "manage_memory, memory_search" in str(caught.value)


@FORM
def test_a_sub_agent_without_memory_tools_is_not_refused(memory: SupervisorMemory, form: Any) -> None:
    memory.attach(led(form(create_agent(model(), [add], name="worker"))))


@pytest.mark.one_in(6)
@FORM
@HOW
@pytest.mark.parametrize("name", ["manage_memory", "memory_search"])
async def test_a_denied_tool_answers_and_touches_nothing(
    memory: SupervisorMemory, form: Any, how: str, name: str
) -> None:
    agent = carrier(manage_memory, search_memory, *memory.tools(), calls=name)
    graph = memory.attach(led(form(agent)), worker_memory_tools="deny").compile()
    given = asking("Go on.", user_id="ada"), config()
    state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert "MemoryAccessDenied" in state["messages"][-1].text
    assert TOUCHED == []
    assert not any("lie" in r.content for r in memory.get_all(user_id="ada"))
    assert not [row for row in accesses_of(memory) if row[0] == "search"]
    denied = [row for row in audit_of(memory) if row["op"] == "tool"]
    assert [(row["outcome"], row["agent_id"]) for row in denied] == [("denied", "worker")]


@FORM
def test_the_original_agent_keeps_its_tools(memory: SupervisorMemory, form: Any) -> None:
    builder = led(form(carrier(manage_memory)))
    memory.attach(builder, worker_memory_tools="deny")
    state = builder.compile().invoke(asking("Go on.", user_id="ada"))
    assert state["messages"][-1].text == "written"
    assert TOUCHED == ["Revenue is a lie"]


def test_a_denied_graph_can_be_attached_again(memory: SupervisorMemory) -> None:
    once = memory.attach(led(carrier(manage_memory)), worker_memory_tools="deny")
    memory.attach(once)


@HOW
async def test_agents_of_create_supervisor_are_looked_into(memory: SupervisorMemory, how: str) -> None:
    boss = model(call_of("transfer_to_worker"), "done")
    builder = create_supervisor([carrier(manage_memory)], model=boss, output_mode="full_history")
    with pytest.raises(WorkerHasMemoryTools, match="manage_memory"):
        memory.attach(builder)
    graph = memory.attach(builder, worker_memory_tools="deny").compile()
    given = asking("Go on."), config(user_id="ada")
    state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert any("MemoryAccessDenied" in m.text for m in state["messages"])
    assert TOUCHED == []


GLOBAL: Any = None


def by_global(state: Team) -> Any:
    return {"messages": GLOBAL.invoke({"messages": state["messages"]})["messages"][-1:]}


def test_a_tool_in_a_global_is_found_and_refused_where_it_cannot_be_denied(memory: SupervisorMemory) -> None:
    global GLOBAL  # noqa: PLW0603
    GLOBAL = carrier(manage_memory)
    with pytest.raises(WorkerHasMemoryTools, match="manage_memory"):
        memory.attach(led(by_global))
    with pytest.raises(WorkerHasMemoryTools, match="cannot be denied in a global"):
        memory.attach(led(by_global), worker_memory_tools="deny")


def test_our_own_tools_in_a_global_deny_themselves(memory: SupervisorMemory) -> None:
    global GLOBAL  # noqa: PLW0603
    GLOBAL = carrier(*memory.tools(), calls="memory_search")
    graph = memory.attach(led(by_global), worker_memory_tools="deny").compile()
    state = graph.invoke(asking("Go on.", user_id="ada"), config())
    assert "MemoryAccessDenied" in state["messages"][-1].text
    assert outcomes(memory, "tool") == [("denied", "memory-tool-called-by-a-sub-agent")]


def with_tool_node(inner: ScriptedModel, tools: Any, *, shared: bool = False) -> Any:
    """A sub-agent whose tools run in a node beside it."""

    def work(state: Team) -> Any:
        return {"messages": [inner.invoke(state["messages"])]}

    def following(state: Any) -> str:
        return "tools" if state["messages"][-1].tool_calls else END

    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", work)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    builder.add_conditional_edges("worker", following, ["tools", END])
    builder.add_edge("tools", "worker")
    if shared:
        builder.add_conditional_edges("supervisor", following, ["tools", END])
    return builder


@HOW
@pytest.mark.parametrize("name", ["manage_memory", "memory_search"])
async def test_a_tool_node_that_only_an_agent_reaches_is_its_own(
    memory: SupervisorMemory, how: str, name: str
) -> None:
    arguments = {"query": "revenue"} if name == "memory_search" else {"content": "x"}
    builder = with_tool_node(model(call_of(name, **arguments), "done"), [manage_memory, *memory.tools()])
    with pytest.raises(WorkerHasMemoryTools, match=r"'worker'.*manage_memory.*memory_search"):
        memory.attach(builder)
    graph = memory.attach(builder, worker_memory_tools="deny").compile()
    given = asking("Go on.", user_id="ada"), config()
    state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert "MemoryAccessDenied" in state["messages"][-2].text
    assert TOUCHED == []
    denied = [row for row in audit_of(memory) if row["op"] == "tool"]
    assert [(row["outcome"], row["agent_id"]) for row in denied] == [("denied", "worker")]


def test_a_tool_node_shared_with_the_supervisor_is_refused_either_way(memory: SupervisorMemory) -> None:
    builder = with_tool_node(model(), memory.tools(), shared=True)
    for policy in ("refuse", "deny"):
        with pytest.raises(WorkerHasMemoryTools):
            memory.attach(builder, worker_memory_tools=policy)


def test_one_class_may_hold_the_supervisor_and_the_agents(memory: SupervisorMemory) -> None:
    class Crew:
        def __init__(self) -> None:
            self.boss: Any = create_agent(model("go"), memory.tools(), name="boss")
            self.worker: Any = create_agent(model("found"), [add], name="worker")

        def supervise(self, state: Team) -> Any:
            return {"messages": self.boss.invoke({"messages": state["messages"]})["messages"][-1:]}

        def work(self, state: Team) -> Any:
            return {"messages": self.worker.invoke({"messages": state["messages"]})["messages"][-1:]}

    crew = Crew()
    builder = Graph(Team)
    builder.add_node("supervisor", crew.supervise)
    builder.add_node("worker", crew.work)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    state = memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
    assert state["messages"][-1].text == "found"


def test_tools_that_a_hand_written_loop_calls_are_found_and_denied(memory: SupervisorMemory) -> None:
    by_name = {"manage_memory": manage_memory}

    def work(state: Team) -> Any:
        return {"messages": [("ai", str(by_name["manage_memory"].invoke({"content": "x"})))]}

    with pytest.raises(WorkerHasMemoryTools, match="manage_memory"):
        memory.attach(led(work))
    graph = memory.attach(led(work), worker_memory_tools="deny").compile()
    state = graph.invoke(asking("Go on.", user_id="ada"), config())
    assert "MemoryAccessDenied" in state["messages"][-1].text
    assert TOUCHED == []


def test_agents_as_tools_are_looked_into(memory: SupervisorMemory) -> None:
    inner = carrier(manage_memory)

    @tool
    def ask_inner(task: str) -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [("user", task)]}))

    with pytest.raises(WorkerHasMemoryTools, match="manage_memory"):
        memory.attach(led(create_agent(model(), [ask_inner], name="worker")))


def test_no_agent_of_the_reference_team_carries_a_memory_tool(
    memory: SupervisorMemory, flights: Path, tmp_path: Path
) -> None:
    builder = build_team(database=flights, output_dir=tmp_path, tools=memory.tools())
    carried = {name: memory_tools_of(spec.runnable) for name, spec in builder.nodes.items()}
    assert carried.pop("supervisor") == carried.pop("tools") == {tool.name for tool in memory.tools()}
    assert carried == {"text2sql": set(), "statistics": set(), "analysis": set()}
