"""What a tool call that failed teaches is told to the agent that calls the tool, and to nobody else."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.tools import ToolException, tool
from langgraph.graph import END, START
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.testing.scripted import ScriptedModel
from tests.breadth import HOW
from tests.host.graphs import Graph, Team, asking, config, model, notes_in, open_memory, outcomes

BAD = "SELECT delay FROM flights"
GOOD = "SELECT arr_delay FROM flights"
TOLD = "run_sql: `sql`: `arr_delay`, not `delay` (no such column: delay)."


@tool
def run_sql(sql: str) -> str:
    """Run a statement."""
    if "SELECT delay" in sql:
        raise ToolException("no such column: delay")
    return "rows"


@tool
def draw(kind: str) -> str:
    """Draw a chart."""
    return f"a {kind}"


run_sql.handle_tool_error = True


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as opened:
        yield opened


def calling(name: str, call_id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def failing_first() -> list[Any]:
    return [calling("run_sql", "c1", sql=BAD), calling("run_sql", "c2", sql=GOOD), AIMessage("done")]


def crew(memory: SupervisorMemory, **agents: ScriptedModel) -> Any:
    """A graph of agents that work in turn and a supervisor that answers; agents have both tools."""
    boss = model(*["all right"] * 9, label="boss")

    def supervise(state: Any) -> Any:
        return {"messages": [boss.invoke([SystemMessage("boss"), *state["messages"]])]}

    builder = Graph(Team)
    builder.add_node("supervisor", supervise)
    before = START
    for name, script in agents.items():
        builder.add_node(name, create_agent(script, [run_sql, draw], system_prompt=name, name=name))
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, "supervisor")
    builder.add_edge("supervisor", END)
    return memory.attach(builder).compile(), boss


def guidelines(memory: SupervisorMemory, status: Any = "active") -> list[Record]:
    where = Filter(user_id="ada", attribute="guideline", statuses=(status,))
    return list(memory.upkeep.listed(where, limit=100))


@HOW
async def test_a_failure_and_the_success_after_it_become_the_guideline_of_the_tool(
    memory: SupervisorMemory, how: str
) -> None:
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    given = asking("Which delays?", user_id="ada"), config()
    await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    (record,) = guidelines(memory)
    assert record.content == TOLD
    assert (record.kind, record.family, record.subject) == ("experience", "analyst_memories", "run_sql")
    assert (record.source.source_class, record.source.agent_id) == ("tool", "analyst")
    (lesson,) = record.metadata["lessons"]
    assert lesson["runs"] == [record.source.run_id]


def test_only_the_agent_that_calls_the_tool_is_told(memory: SupervisorMemory) -> None:
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config())
    analyst, painter = model("fine", label="a"), model("fine", label="p")
    graph, boss = crew(memory, analyst=analyst, painter=painter)
    graph.invoke(asking("Which delays now?", user_id="ada"), config("t2"))
    assert TOLD in analyst.prompts[0]
    assert all("not `delay`" not in text for call in (*painter.calls, *boss.calls) for text in notes_in(call))
    other = model("fine", label="a")
    graph, _ = crew(memory, analyst=other)
    graph.invoke(asking("Which delays?", user_id="bob"), config("t3"))
    assert "not `delay`" not in other.prompts[0]


def test_a_guideline_counts_how_often_it_held(memory: SupervisorMemory) -> None:
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config())
    heeding = model(calling("run_sql", "c1", sql=GOOD), "done", label="a")
    graph, _ = crew(memory, analyst=heeding)
    graph.invoke(asking("Which delays?", user_id="ada"), config("t2"))
    assert memory.flush()
    (record,) = guidelines(memory)
    assert record.metadata["lessons"][0]["held"] == 1
    reader = model("done", label="a")
    graph, _ = crew(memory, analyst=reader)
    graph.invoke(asking("Which delays?", user_id="ada"), config("t3"))
    assert f"{TOLD} Held 1 of 1." in reader.prompts[0]
    (shown,) = memory.experience.guidelines(user_id="ada")
    assert shown.told == 2


def test_what_a_guideline_says_is_withdrawn_when_it_fails_and_comes_back_by_hand(
    memory: SupervisorMemory,
) -> None:
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config())

    @tool("run_sql")
    def changed(sql: str) -> str:
        """Run a statement of a database whose column has gone."""
        raise ToolException("no such column: arr_delay")

    changed.handle_tool_error = True
    heeding = model(calling("run_sql", "c1", sql=GOOD), "done", label="a")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [AIMessage("well")]})
    builder.add_node("analyst", create_agent(heeding, [changed], name="analyst"))
    builder.add_edge(START, "analyst")
    builder.add_edge("analyst", "supervisor")
    graph = memory.attach(builder).compile()
    graph.invoke(asking("Which delays?", user_id="ada"), config("t2"))
    assert guidelines(memory) == []
    (gone,) = guidelines(memory, "stale")
    assert ("ok", "what-it-says-failed") in outcomes(memory, "outdate")
    memory.review.restore(gone.id, reviewer="eve@example.com")
    assert [each.content for each in guidelines(memory)] == [TOLD]


def test_a_tool_that_raises_and_a_node_that_is_retried_teach_too(memory: SupervisorMemory) -> None:
    tries: list[str] = []

    @tool
    def fetch(day: str) -> str:
        """Fetch the figures of a day."""
        tries.append(day)
        if "/" in day:
            raise ValueError("invalid date format, expected YYYY-MM-DD")
        return "42"

    script = model(
        calling("fetch", "c1", day="05/31/2024"), calling("fetch", "c2", day="2024-05-31"), "done", label="a"
    )
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {"messages": [AIMessage("well")]})
    agent = create_agent(script, [fetch], name="analyst")
    builder.add_node("analyst", agent, retry_policy=RetryPolicy(max_attempts=2, retry_on=ValueError))
    builder.add_edge(START, "analyst")
    builder.add_edge("analyst", "supervisor")
    memory.attach(builder).compile().invoke(asking("Figures?", user_id="ada"), config())
    assert tries == ["05/31/2024", "2024-05-31"]
    (record,) = guidelines(memory)
    assert "`2024-05-31`, not `05/31/2024`" in record.content
    assert ("failed", "ValueError") in outcomes(memory, "outcome")


def test_a_supervisors_own_tool_teaches_the_supervisor(memory: SupervisorMemory) -> None:
    script = model(*failing_first(), label="b")
    agent = create_agent(script, [run_sql], middleware=[memory.middleware()])
    agent.invoke(asking("Which delays?"), config(user_id="ada"))
    (record,) = guidelines(memory)
    assert (record.family, record.source.agent_id) == ("experience", None)
    again = model("done", label="b")
    agent = create_agent(again, [run_sql], middleware=[memory.middleware()])
    agent.invoke(asking("Which delays?"), config("t2", user_id="ada"))
    assert TOLD in again.prompts[0]


def test_calls_that_work_are_not_even_looked_at(
    memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(memory.experience, "heard", lambda tool, *_, **__: heard.append(tool))
    script = model(calling("run_sql", "c1", sql=GOOD), "done", label="a")
    graph, _ = crew(memory, analyst=script)
    graph.invoke(asking("Which delays?", user_id="ada"), config())
    assert heard == []


def test_a_failure_of_one_agent_and_a_success_of_another_teach_nothing(memory: SupervisorMemory) -> None:
    first = model(calling("run_sql", "c1", sql=BAD), "no", label="a")
    second = model(calling("run_sql", "c2", sql=GOOD), "yes", label="p")
    graph, _ = crew(memory, analyst=first, painter=second)
    graph.invoke(asking("Which delays?", user_id="ada"), config())
    graph, _ = crew(memory, analyst=model(calling("run_sql", "c3", sql=GOOD), "done", label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config("t2"))
    assert guidelines(memory) == []


@pytest.mark.parametrize("caller", ["analyst", "writer", "supervisor"])
def test_of_agents_that_share_a_tool_node_the_one_that_called_learns(
    memory: SupervisorMemory, caller: str
) -> None:
    calls = [calling("run_sql", "c1", sql=BAD), calling("run_sql", "c2", sql=GOOD)]
    builder = Graph(Team)

    def node(name: str) -> Any:
        script = iter([*calls, AIMessage("done")] if name == caller else [AIMessage("nothing to do")] * 3)
        return lambda state: {"messages": [next(script)]}

    def onward(name: str, after: Any) -> None:
        builder.add_node(name, node(name))
        builder.add_conditional_edges(
            name, lambda state: "tools" if state["messages"][-1].tool_calls else after, ["tools", after]
        )

    onward("analyst", "writer")
    onward("writer", "supervisor")
    onward("supervisor", END)
    builder.add_node("tools", ToolNode([run_sql, draw]))
    builder.add_edge(START, "analyst")
    builder.add_edge("tools", caller)
    memory.attach(builder, supervisor="supervisor").compile().invoke(
        asking("Which delays?", user_id="ada"), config()
    )
    [learned] = guidelines(memory)
    assert learned.source.agent_id == (None if caller == "supervisor" else caller)


def test_what_a_person_withdraws_is_not_learned_again(memory: SupervisorMemory) -> None:
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config())
    (record,) = guidelines(memory)
    memory.experience.withdraw(record.id, reviewer="eve@example.com")
    graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
    graph.invoke(asking("Which delays?", user_id="ada"), config("t2"))
    assert guidelines(memory) == []
    assert ("skipped", "withdrawn-before") in outcomes(memory, "skip")
    memory.review.restore(record.id, reviewer="eve@example.com")
    assert [each.id for each in guidelines(memory)] == [record.id]


def test_experience_can_be_switched_off() -> None:
    with open_memory(settings={"experience": False}) as memory:
        graph, _ = crew(memory, analyst=model(*failing_first(), label="a"))
        graph.invoke(asking("Which delays?", user_id="ada"), config())
        assert guidelines(memory) == []


def offering() -> tuple[ScriptedModel, list[dict[str, str]]]:
    """A model that keeps the descriptions of the tools that each call offers."""
    offered: list[dict[str, str]] = []

    class Reading(ScriptedModel):
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            offered.append({each.name: each.description for each in tools})
            return super().bind_tools(tools, **more)

    return Reading(script=[]), offered


@HOW
async def test_with_the_middleware_the_tool_says_its_guideline_in_its_description(
    memory: SupervisorMemory, how: str
) -> None:
    before = {each.name: each.description for each in (run_sql, draw)}

    async def work(name: str, user: str, thread: str, *script: Any) -> list[dict[str, str]]:
        chat, offered = offering()
        chat.script += script
        agent = create_agent(chat, [run_sql, draw], name=name, middleware=[memory.middleware(agent_id=name)])
        asked: Any = {"messages": [("user", "Which flights had a delay?")]}
        where: Any = {"configurable": {"user_id": user, "thread_id": thread}}
        await (
            agent.ainvoke(asked, where) if how == "async" else asyncio.to_thread(agent.invoke, asked, where)
        )
        return offered

    first = await work("analyst", "ada", "t1", *failing_first())
    assert first[0] == before, "nothing is known yet"
    again = await work("analyst", "ada", "t2", "done")
    assert again[0]["run_sql"].startswith(f"{before['run_sql']}\n")
    assert TOLD in again[0]["run_sql"]
    assert again[0]["draw"] == before["draw"]
    for name, user in (("clerk", "ada"), ("analyst", "bob")):
        assert (await work(name, user, f"t-{name}-{user}", "done"))[0] == before
    assert {each.name: each.description for each in (run_sql, draw)} == before
