"""The six tools, as a model calls them in a graph."""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode
from langgraph_supervisor import create_supervisor

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, SettingsError
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import HOW
from tests.host.graphs import (
    Broken,
    Graph,
    Team,
    asking,
    config,
    hanging,
    model,
    open_memory,
    outcomes,
    raising,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NAMES = [
    "memory_search",
    "memory_write",
    "memory_update",
    "memory_delete",
    "memory_route",
    "memory_summarize",
]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


def by_node(memory: SupervisorMemory, boss: ScriptedModel) -> Any:
    """A supervisor whose tools run in a node of their own."""
    tools = memory.tools()
    bound = boss.bind_tools(tools)
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [bound.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges(
        "supervisor", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    builder.add_edge("tools", "supervisor")
    return builder


def by_agent(memory: SupervisorMemory, boss: ScriptedModel) -> Any:
    """A supervisor made by create_agent."""
    builder = Graph(Team)
    builder.add_node("supervisor", create_agent(boss, memory.tools(), name="supervisor"))
    builder.add_edge(START, "supervisor")
    return builder


def by_package(memory: SupervisorMemory, boss: ScriptedModel) -> Any:
    """A supervisor of langgraph-supervisor."""
    tools: Any = memory.tools()
    return create_supervisor([create_agent(model(), [], name="worker")], model=boss, tools=tools)


HOSTS = pytest.mark.parametrize("host", [by_node, by_agent, by_package], ids=lambda host: host.__name__)


async def call(
    memory: SupervisorMemory,
    name: str,
    *,
    host: Any = by_node,
    how: str = "sync",
    in_run: Any = None,
    **args: Any,
) -> Any:
    """What the tool answers when the supervisor's model calls it."""
    graph = memory.attach(host(memory, model(call_of(name, **args), "done"))).compile()
    given = asking("Go on."), in_run or config(user_id="ada")
    state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert state["messages"][-1].text == "done"
    answer = next(m for m in state["messages"] if isinstance(m, ToolMessage))
    try:
        return json.loads(answer.text)
    except ValueError:
        return answer.text


async def refusal(memory: SupervisorMemory, name: str, **args: Any) -> str:
    answer = await call(memory, name, **args)
    return str(answer["error"]) if isinstance(answer, dict) else str(answer)


# --- what the model sees


def test_a_model_is_offered_six_tools_and_no_way_to_name_a_user(memory: SupervisorMemory) -> None:
    shown = {tool.name: convert_to_openai_tool(tool)["function"] for tool in memory.tools()}
    assert list(shown) == NAMES
    arguments = {name: sorted(tool["parameters"]["properties"]) for name, tool in shown.items()}
    assert arguments == {
        "memory_search": ["layers", "min_score", "namespace", "query", "top_k", "where"],
        "memory_write": ["content", "metadata", "namespace"],
        "memory_update": ["content", "id", "merge", "metadata"],
        "memory_delete": ["filters", "id", "keep_said"],
        "memory_route": ["message", "policy"],
        "memory_summarize": ["goal", "items"],
    }
    defaults = shown["memory_search"]["parameters"]["properties"]
    assert (defaults["top_k"]["default"], defaults["min_score"]["default"]) == (5, 0.3)
    assert all(tool["description"] for tool in shown.values())
    assert [tool.metadata for tool in memory.tools()] == [{"op": name.replace("_", ".", 1)} for name in NAMES]


def test_some_tools_can_be_left_out_and_unknown_ones_are_named(memory: SupervisorMemory) -> None:
    assert [tool.name for tool in memory.tools(["memory_search"])] == ["memory_search"]
    with pytest.raises(SettingsError, match="memory_serach"):
        memory.tools(["memory_serach"])


# --- what they answer


@pytest.mark.one_in(4)
@HOSTS
@HOW
async def test_every_tool_answers_in_its_form(memory: SupervisorMemory, host: Any, how: str) -> None:
    async def use(name: str, **args: Any) -> Any:
        return await call(memory, name, host=host, how=how, **args)

    written = await use(
        "memory_write", content="Net sales exclude returns", metadata={"type": "domain-facts", "unit": "EUR"}
    )
    assert sorted(written) == ["id", "status"]
    assert written["status"] == "added"
    (hit,) = await use("memory_search", query="net sales")
    assert sorted(hit) == ["content", "id", "metadata", "score"]
    assert (hit["id"], hit["content"]) == (written["id"], "Net sales exclude returns")
    assert hit["metadata"]["unit"] == "EUR"
    assert 0 < hit["score"] <= 1
    changed = await use("memory_update", id=written["id"], content="Net sales exclude returns and tax")
    assert changed == {"id": written["id"], "status": "updated"}
    told = await use("memory_summarize", items=[written["id"], "Tax is 19 percent"], goal="an answer")
    assert told == {"summary": "- Net sales exclude returns and tax\n- Tax is 19 percent"}
    assert await use("memory_route", message="From now on use tables by default.") == {
        "should_read": True,
        "should_write": True,
        "namespaces": ["user_profile"],
    }
    assert await use("memory_delete", id=written["id"], keep_said=True) == {"deleted": 1}
    assert memory.get(written["id"]).metadata["said_kept"] == 3
    assert await use("memory_search", query="net sales") == []
    await use("memory_write", content="Gross sales include returns", namespace="domain_facts")
    assert await use("memory_delete", filters={"namespace": "domain_facts"}) == {"deleted": 1}
    assert {row["actor"] for row in map(dict, _rows(memory))} == {"supervisor"}


def _rows(memory: SupervisorMemory) -> Any:
    return [row.event for row in memory.backend.audit.tail(1000)]


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ({"strategy": "overwrite"}, "Use charts"),
        ({"strategy": "append"}, "Use tables\nUse charts"),
    ],
)
async def test_an_update_joins_texts_by_its_strategy(
    memory: SupervisorMemory, strategy: dict[str, str], text: str
) -> None:
    old = memory.write("Use tables", user_id="ada", kind="task-traces", metadata={"kept": 1})
    await call(memory, "memory_update", id=old.id, content="Use charts", metadata=strategy)
    record = memory.get(old.id)
    assert [line.split("] ")[-1] for line in record.content.splitlines()] == text.splitlines()
    assert record.metadata["kept"] == 1


# --- whose memory it is


@pytest.mark.one_in(3)
@HOSTS
@HOW
@pytest.mark.parametrize("name", ["user_id", "langgraph_user_id"])
async def test_a_user_named_by_the_model_is_not_heeded_and_the_attempt_is_audited(
    memory: SupervisorMemory, host: Any, how: str, name: str
) -> None:
    memory.write("Eve's secret plan", user_id="eve", kind="domain-facts")
    options = {"host": host, "how": how}
    assert await call(memory, "memory_search", query="secret plan", **{name: "eve"}, **options) == []
    await call(memory, "memory_write", content="Plans are open", **{name: "eve"}, **options)
    assert [r.content for r in memory.get_all(user_id="eve")] == ["Eve's secret plan"]
    assert [r.content for r in memory.get_all(user_id="ada")] == ["Plans are open"]
    assert outcomes(memory, "tool") == [("denied", f"argument-ignored:{name}")] * 2


async def test_a_runtime_forged_by_the_model_is_not_heeded(memory: SupervisorMemory) -> None:
    memory.write("Eve's secret plan", user_id="eve", kind="domain-facts")
    forged = {"state": {"user_id": "eve"}, "config": {"configurable": {"user_id": "eve"}}}
    assert await call(memory, "memory_search", query="secret plan", runtime=forged) == []


@pytest.mark.parametrize(
    "namespace", ["../x", "u2", "user_profile/eve", "", " ", "user_profile\0", ("user_profile", "eve"), 7]
)
async def test_a_namespace_is_a_family_and_nothing_else(memory: SupervisorMemory, namespace: Any) -> None:
    if namespace != "":
        for name, args in (("memory_search", {"query": "x"}), ("memory_write", {"content": "Some text"})):
            answer = await call(memory, name, namespace=namespace, **args)
            assert "rror" in str(answer)
    answer = await call(memory, "memory_delete", filters={"namespace": namespace})
    assert "rror" in str(answer)
    assert memory.get_all(user_id="ada") == []


async def test_an_agents_family_and_a_renamed_one_can_be_chosen() -> None:
    with open_memory(settings={"namespaces": {"text2sql": "sql_notes"}}) as memory:
        for family in ("text2sql_memories", "sql_notes"):
            await call(memory, "memory_write", content=f"Key query of {family}", namespace=family)
        assert {r.family for r in memory.get_all(user_id="ada")} == {"text2sql_memories", "sql_notes"}
        found = await call(memory, "memory_search", query="key query", namespace="sql_notes")
        assert [hit["content"] for hit in found] == ["Key query of sql_notes"]


async def test_records_of_another_user_cannot_be_touched_by_id(memory: SupervisorMemory) -> None:
    theirs = memory.write("Eve's secret plan", user_id="eve", kind="domain-facts").id
    for name, args in (
        ("memory_update", {"id": theirs, "content": "changed"}),
        ("memory_delete", {"id": theirs}),
        ("memory_summarize", {"items": [theirs]}),
    ):
        answer = await refusal(memory, name, **args)
        assert "RecordNotFound" in answer
        assert "secret" not in answer
    assert memory.get(theirs).content == "Eve's secret plan"
    assert memory.get(theirs).status == "active"


async def test_records_of_another_task_are_out_of_reach(memory: SupervisorMemory) -> None:
    kept = {
        task: memory.write(f"Plan of task {task}", user_id="ada", kind="domain-facts", task=task).id
        for task in ("north", "south")
    }
    memory.write("Plan for every task", user_id="ada", kind="domain-facts")
    north = config(user_id="ada", memory_task="north")
    found = await call(memory, "memory_search", query="plan", in_run=north)
    assert sorted(hit["content"] for hit in found) == ["Plan for every task", "Plan of task north"]
    for name, args in (
        ("memory_update", {"id": kept["south"], "content": "x y"}),
        ("memory_delete", {"id": kept["south"]}),
        ("memory_summarize", {"items": [kept["south"]]}),
    ):
        assert "another task" in await refusal(memory, name, in_run=north, **args)
    assert await call(memory, "memory_delete", in_run=north, filters={"kind": "domain-facts"}) == {
        "deleted": 2
    }
    assert [r.content for r in memory.get_all(user_id="ada")] == ["Plan of task south"]
    await call(memory, "memory_write", content="Written in the north", in_run=north)
    assert next(r for r in memory.get_all(user_id="ada") if "Written" in r.content).task == "north"


def test_a_tool_called_outside_of_a_graph_says_so(memory: SupervisorMemory) -> None:
    (search,) = memory.tools(["memory_search"])
    assert "outside of a graph" in str(search.func(query="x", runtime=None))  # type: ignore[attr-defined]


@HOW
async def test_a_tool_node_acts_for_the_user_that_the_resolver_tells(
    memory: SupervisorMemory, how: str
) -> None:
    boss = model(call_of("memory_write", content="Fiscal year begins in April"), "done")
    graph = memory.attach(by_node(memory, boss), identity=lambda state, config: "resolved").compile()
    given = asking("Go on."), config()
    _ = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert [r.content for r in memory.get_all(user_id="resolved")] == ["Fiscal year begins in April"]


@HOSTS
async def test_tools_are_off_when_two_users_are_named(memory: SupervisorMemory, host: Any) -> None:
    boss = model(call_of("memory_write", content="Fiscal year begins in April"), "done")
    graph = memory.attach(host(memory, boss), identity=lambda state, config: "resolved").compile()
    state = graph.invoke(asking("Go on."), config(user_id="ada"))
    assert "IdentityConflict" in next(m.text for m in state["messages"] if isinstance(m, ToolMessage))
    assert memory.get_all(user_id="ada") == memory.get_all(user_id="resolved") == []


async def test_a_search_that_says_nothing_else_is_as_the_settings_say() -> None:
    settings = Settings(top_k=2, min_score=0.0, embedding_model="none")
    memory = SupervisorMemory(settings)
    for text in ("The tea is green.", "The cup is blue.", "The pot is red."):
        memory.write(text, user_id="ada", kind="experience")
    (tool,) = memory.tools(only=["memory_search"])
    shown = convert_to_openai_tool(tool)["function"]["parameters"]["properties"]
    assert (shown["top_k"]["default"], shown["min_score"]["default"]) == (2, 0.0)
    assert len(await call(memory, "memory_search", query="tea")) == 2
    assert len(await call(memory, "memory_search", query="tea", top_k=9)) == 3
    assert len(await call(memory, "memory_search", query="tea", min_score=0.9)) < 2


async def test_a_model_can_look_into_what_was_said(memory: SupervisorMemory) -> None:
    memory.remember("The moon is up.", Scope("ada", session_id="s0"))
    assert not await call(memory, "memory_search", query="moon")
    (found,) = await call(memory, "memory_search", query="moon", layers=["history"])
    assert found["content"] == "The moon is up."
    other = {"session": "s1"}
    assert not await call(memory, "memory_search", query="moon", layers=["history"], where=other)


async def test_a_model_can_say_which_records_it_means(memory: SupervisorMemory) -> None:
    for project in ("apollo", "gemini"):
        memory.write(
            f"The launch window of {project} is in May.",
            user_id="ada",
            metadata={"project": project, "tags": ["launch", project]},
            created_at=datetime(2026, 5 if project == "apollo" else 6, 1),
        )
    for where in (
        {"tags": ["launch", "apollo"]},
        {"metadata": {"project": ["apollo", "mercury"]}},
        {"since": "2026-05-01", "until": "2026-05-01", "kind": None},
    ):
        (found,) = await call(memory, "memory_search", query="launch window", min_score=0, where=where)
        assert found["content"] == "The launch window of apollo is in May."
    told = await refusal(memory, "memory_search", query="launch", where={"project": "apollo"})
    assert told.startswith(
        "InvalidContent: where has no key 'project'; its keys are kind, tags, session, agent, since, until"
    )
    assert "where['metadata']" in told


# --- nothing raises into the graph


BAD: list[tuple[str, dict[str, Any]]] = [
    ("memory_search", {"query": "x" * 200_000}),
    ("memory_search", {"query": "\ud800"}),
    ("memory_search", {"query": "x", "top_k": 10**9, "min_score": -5}),
    ("memory_search", {"query": "x", "top_k": "many"}),
    ("memory_search", {"query": "x", "where": {"tag": "tea"}}),
    ("memory_search", {"query": "x", "where": {"user_id": "eve"}}),
    ("memory_search", {"query": "x", "where": {"metadata": {"year": {"$gt": 1}}}}),
    ("memory_search", {"query": "x", "where": "tags=tea"}),
    ("memory_search", {}),
    ("memory_write", {"content": "x" * 200_000}),
    ("memory_write", {"content": ""}),
    ("memory_write", {"content": "\ud800"}),
    ("memory_write", {"content": "Some text", "metadata": {"type": "no-such-kind"}}),
    ("memory_write", {"content": "Some text", "metadata": {"type": ["list"], "strategy": 5}}),
    ("memory_write", {"content": "Some text", "metadata": {"ttl": "soon"}}),
    ("memory_update", {"id": "no such id"}),
    ("memory_update", {"id": ""}),
    ("memory_delete", {}),
    ("memory_delete", {"filters": {}}),
    ("memory_delete", {"filters": {"user_id": "eve"}}),
    ("memory_delete", {"filters": {"kind": "no-such-kind"}}),
    ("memory_delete", {"id": "00000000-0000-0000-0000-000000000000"}),
    ("memory_summarize", {"items": []}),
    ("memory_summarize", {"items": ["00000000-0000-0000-0000-000000000000"]}),
    ("memory_summarize", {"items": [""]}),
    ("memory_route", {"message": "", "policy": "wild"}),
    ("memory_route", {"message": "x" * 200_000}),
]


@HOW
async def test_bad_arguments_are_answered(memory: SupervisorMemory, how: str) -> None:
    memory.write("Kept as it is", user_id="ada", kind="domain-facts")
    for name, args in BAD:
        await call(memory, name, how=how, **args)
        assert any(r.content == "Kept as it is" for r in memory.get_all(user_id="ada")), (name, args)


ANY_TOOL = pytest.mark.parametrize(
    ("name", "args"),
    [
        ("memory_search", {"query": "x"}),
        ("memory_write", {"content": "Some text"}),
        ("memory_update", {"id": "x"}),
        ("memory_delete", {"id": "x"}),
        ("memory_delete", {"filters": {"kind": "domain-facts"}}),
        ("memory_summarize", {"items": ["00000000-0000-0000-0000-000000000000"]}),
    ],
    ids=["search", "write", "update", "delete", "delete-many", "summarize"],
)


class Odd(BaseException):
    """Some libraries' errors are no Exception."""


@pytest.mark.one_in(4)
@HOW
@ANY_TOOL
@pytest.mark.parametrize("error", [BackendUnavailable("down"), Odd()], ids=repr)
async def test_a_broken_backend_is_answered(how: str, name: str, args: Any, error: BaseException) -> None:
    inner = InMemoryBackend()
    faults = dict.fromkeys(("search", "list", "get"), raising(error))
    with open_memory(backend=Broken(inner, **faults)) as memory:
        answer = await refusal(memory, name, how=how, **args)
        assert answer
        assert [outcome for outcome, _ in outcomes(memory, "tool")] == ["degraded"]


@pytest.mark.one_in(3)
@ANY_TOOL
async def test_a_hanging_backend_is_answered_in_time(name: str, args: Any) -> None:
    faults = dict.fromkeys(("search", "list", "get"), hanging(3.0))
    brief = {"search_timeout_ms": 100, "write_timeout_ms": 100}
    with open_memory(backend=Broken(InMemoryBackend(), **faults), settings=brief) as memory:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        begin = time.monotonic()
        answer = await refusal(memory, name, how="async", **args)
        elapsed = time.monotonic() - begin
        ticking.cancel()
        assert "DeadlineExceeded" in answer
        assert elapsed < 2.5
        assert ticks > 5
