"""Graphs in graphs: whose words the inner one hears, and that nothing of ours stays in messages."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.host.graphs import CANARY, config, model, open_memory, seed
from tests.host.speaking import (
    CHINESE,
    TABLES,
    answering,
    assert_heard,
    believed,
    chain,
    crew,
    fetched,
    human,
    run,
    said,
    wanted,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ADA = config(user_id="ada")


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


def inner_team(memory: Any, **options: Any) -> Any:
    return memory.attach(
        chain(("supervisor", answering("done", "done")), ("web", fetched())), **options
    ).compile()


def as_a_node(inner: Any) -> Any:
    return inner


def called(inner: Any) -> Any:
    return lambda state: {"messages": inner.invoke({"messages": state["messages"]})["messages"]}


NESTED = pytest.mark.parametrize("placed", [as_a_node, called], ids=lambda placed: placed.__name__)


@NESTED
@HOW
async def test_in_a_graph_without_memory_a_team_with_memory_hears_nobody(
    memory: SupervisorMemory, placed: Any, how: str
) -> None:
    outer = chain(("task", fetched()), ("team", placed(inner_team(memory)))).compile()
    await run(outer, human(TABLES), ADA, how)
    assert believed(memory) == []
    assert (said(memory), wanted(memory)) == ([], "")


@NESTED
@HOW
async def test_a_host_says_that_a_nested_teams_input_is_the_users(
    memory: SupervisorMemory, placed: Any, how: str
) -> None:
    outer = chain(("team", placed(inner_team(memory, nested="user")))).compile()
    await run(outer, human(TABLES), ADA, how)
    assert_heard(memory, TABLES)


@NESTED
@HOW
async def test_in_a_graph_with_memory_a_team_with_memory_knows_who_the_user_is(
    memory: SupervisorMemory, placed: Any, how: str
) -> None:
    nodes = (("task", fetched()), ("team", placed(inner_team(memory))))
    outer = memory.attach(chain(("supervisor", answering("go")), *nodes)).compile(
        checkpointer=InMemorySaver()
    )
    for text in (TABLES, CHINESE):
        await run(outer, human(text), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


def companies(memory: Any) -> Any:
    """A team in a team, whose supervisors hand back all that was said."""
    worker = create_agent(model("Revenue rose.", label="w"), [], name="worker")
    lead = model(call_of("transfer_to_worker"), "done", label="lead")
    team = create_supervisor([worker], model=lead, output_mode="full_history", supervisor_name="lead")
    boss = model(call_of("transfer_to_team"), "done", label="boss")
    builder = create_supervisor([team.compile(name="team")], model=boss, output_mode="full_history")
    return memory.attach(builder) if memory else builder


def deeply_copying(memory: Any) -> Any:
    """An agent that hands back copies of all messages, as a model of pydantic or JSON does."""

    def work(state: Any) -> Any:
        return {"messages": [*copy.deepcopy(state["messages"]), AIMessage("found", name="research_node")]}

    return memory.attach(crew(work)) if memory else crew(work)


def tutorial(memory: Any) -> Any:
    return memory.attach(crew(fetched())) if memory else crew(fetched())


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize("build", [companies, deeply_copying, tutorial], ids=lambda build: build.__name__)
async def test_nothing_of_ours_stays_in_anybodys_messages(
    memory: SupervisorMemory, build: Any, how: str
) -> None:
    seed(memory)
    bare, attached = (build(each).compile(checkpointer=InMemorySaver()) for each in (None, memory))
    for number, text in enumerate([TABLES, CHINESE]):
        message = HumanMessage(text, id=f"said-{number}", additional_kwargs={"from": "browser"})
        await run(bare, {"messages": [message.model_copy(deep=True)]}, ADA, how)
        await run(attached, {"messages": [message.model_copy(deep=True)]}, ADA, how)
        before, after = (graph.get_state(ADA).values["messages"] for graph in (bare, attached))
        kept = next(m for m in after if m.id == message.id)
        assert kept.model_dump_json() == message.model_dump_json()
        assert [shape(m) for m in after] == [shape(m) for m in before]
    assert_heard_beside_the_seed(memory, TABLES, CHINESE)


def shape(message: Any) -> tuple[Any, ...]:
    """A message without its id, which is made up where the host gave none."""
    extra = (message.additional_kwargs, message.response_metadata)
    return (type(message), message.content, message.name, *extra)


def assert_heard_beside_the_seed(memory: SupervisorMemory, *texts: str) -> None:
    assert CANARY in wanted(memory)
    assert_heard(memory, *texts)
