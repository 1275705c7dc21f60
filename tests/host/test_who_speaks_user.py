"""The user is heard once, however a run begins, whoever speaks first, and in whatever the user answers."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from supervisor_memory import Scope, SupervisorMemory
from tests.breadth import HOW
from tests.host.graphs import CANARY, config, model, open_memory, seed
from tests.host.speaking import (
    CHINESE,
    MALLORY,
    ROUND,
    TABLES,
    answering,
    assert_heard,
    chain,
    crew,
    fetched,
    human,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ADA = config(user_id="ada")


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


# --- how a run begins


async def by_events(graph: Any, given: Any) -> None:
    async for _ in graph.astream_events(given, ADA, version="v2"):
        pass


async def by_astream(graph: Any, given: Any) -> None:
    async for _ in graph.astream(given, ADA, stream_mode="values", subgraphs=True):
        pass


def as_the_server_runs_it(graph: Any, given: Any) -> Any:
    return graph.copy(update={"checkpointer": InMemorySaver()}).ainvoke(given, ADA)


ENTRIES: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda graph, given: graph.invoke(given, ADA),
    "ainvoke": lambda graph, given: graph.ainvoke(given, ADA),
    "stream": lambda graph, given: list(graph.stream(given, ADA, stream_mode=["updates", "messages"])),
    "astream": by_astream,
    "batch": lambda graph, given: graph.batch([given], ADA),
    "abatch": lambda graph, given: graph.abatch([given], ADA),
    "astream_events": by_events,
    "copy": as_the_server_runs_it,
    "with_config": lambda graph, given: graph.with_config(ADA).with_config(tags=["x"]).invoke(given),
    "a chain": lambda graph, given: (graph | (lambda state: state)).invoke(given, ADA),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("attached", ["builder", "compiled"])
async def test_however_a_graph_is_run_the_user_is_heard_once_and_a_worker_never(
    memory: SupervisorMemory, entry: str, attached: str
) -> None:
    builder = crew(fetched())
    graph = memory.attach(builder).compile() if attached == "builder" else memory.attach(builder.compile())
    began = ENTRIES[entry](graph, human(TABLES))
    if inspect.isawaitable(began):
        await began
    assert_heard(memory, TABLES)


@dataclasses.dataclass
class Chat:
    messages: Annotated[list[AnyMessage], add_messages] = dataclasses.field(default_factory=list)


INPUTS: dict[str, Any] = {
    "a message": HumanMessage(TABLES),
    "a text": TABLES,
    "a tuple in a list": [("user", TABLES)],
    "a dict in a list": [{"role": "user", "content": TABLES}],
    "blocks": [HumanMessage([{"type": "text", "text": TABLES}])],
    "a person's name on it": [HumanMessage(TABLES, name="ada")],
    "the name of a node on it": [HumanMessage(TABLES, name="research_node")],
}


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize("form", INPUTS)
async def test_in_whatever_form_it_comes_the_input_is_the_users(
    memory: SupervisorMemory, form: str, how: str
) -> None:
    graph = memory.attach(crew(lambda state: {})).compile()
    await run(graph, {"messages": INPUTS[form]}, ADA, how)
    assert_heard(memory, TABLES)


def test_an_input_that_is_an_object_is_the_users(memory: SupervisorMemory) -> None:
    builder = chain(("supervisor", lambda state: {"messages": [AIMessage("done")]}), state=Chat)
    memory.attach(builder).compile().invoke(Chat([HumanMessage(TABLES)]), ADA)
    assert_heard(memory, TABLES)


@HOW
async def test_two_things_that_the_user_says_at_once_are_both_heard(
    memory: SupervisorMemory, how: str
) -> None:
    graph = memory.attach(crew(fetched())).compile()
    await run(graph, {"messages": [("user", TABLES), ("user", CHINESE)]}, ADA, how)
    assert_heard(memory, TABLES, CHINESE)


@HOW
async def test_the_update_of_a_command_that_is_the_input_is_the_users(
    memory: SupervisorMemory, how: str
) -> None:
    graph = memory.attach(crew(fetched())).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    await run(graph, Command(update=human(CHINESE), goto="supervisor"), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


@HOW
async def test_what_a_host_adds_between_runs_is_the_users(memory: SupervisorMemory, how: str) -> None:
    graph = memory.attach(crew(fetched())).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    graph.update_state(ADA, human(CHINESE))
    await run(graph, human(ROUND), ADA, how)
    assert_heard(memory, TABLES, CHINESE, ROUND)


@HOW
@pytest.mark.parametrize("written_as", ["__start__", "research_node"])
async def test_what_a_host_adds_and_then_runs_without_input_is_the_users(
    memory: SupervisorMemory, how: str, written_as: str
) -> None:
    graph = memory.attach(crew(fetched())).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    graph.update_state(ADA, human(CHINESE), as_node=written_as)
    await run(graph, None, ADA, how)
    assert_heard(memory, TABLES, CHINESE)


async def test_what_a_host_adds_while_a_run_is_stopped_is_the_users(memory: SupervisorMemory) -> None:
    bare = crew(fetched()).compile(checkpointer=InMemorySaver(), interrupt_before=["research_node"])
    graph = memory.attach(bare)
    await graph.ainvoke(human(TABLES), ADA)
    await graph.aupdate_state(ADA, human(CHINESE), as_node="research_node")
    await graph.ainvoke(None, ADA)
    assert_heard(memory, TABLES, CHINESE)


# --- what the user answers on the way


def asks(questions: int, *, form: Callable[[str], Any] = HumanMessage) -> Callable[[Any], Any]:
    return lambda state: {"messages": [form(interrupt(f"question {n}")) for n in range(questions)]}


FORMS: dict[str, Callable[[str], Any]] = {
    "a message": HumanMessage,
    "a named message": lambda text: HumanMessage(text, name="ada"),
    "a tuple": lambda text: ("user", text),
    "a dict": lambda text: {"role": "user", "content": text},
}


@pytest.mark.one_in(3)
@HOW
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("node", ["supervisor", "ask_human"])
async def test_what_the_user_answers_to_an_interrupt_is_the_users(
    memory: SupervisorMemory, how: str, form: str, node: str
) -> None:
    nodes = {"supervisor": answering("hm"), "ask_human": answering("ok"), node: asks(1, form=FORMS[form])}
    graph = memory.attach(chain(*nodes.items(), ("web", fetched()))).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    await run(graph, Command(resume=CHINESE), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


@HOW
async def test_what_the_user_answers_before_the_supervisor_speaks_is_the_users(
    memory: SupervisorMemory, how: str
) -> None:
    builder = chain(("ask_human", asks(1)), ("supervisor", answering("ok")), ("web", fetched()))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    await run(graph, Command(resume=CHINESE), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


@HOW
async def test_two_answers_in_one_node_are_both_the_users(memory: SupervisorMemory, how: str) -> None:
    builder = chain(("supervisor", answering("hm")), ("ask_human", asks(2)), ("web", fetched()))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    turns: list[Any] = [human(TABLES), Command(resume=CHINESE), Command(resume=ROUND)]
    for given in turns:
        await run(graph, given, ADA, how)
    assert_heard(memory, TABLES, CHINESE, ROUND)


@HOW
async def test_answers_by_the_ids_of_their_questions_are_the_users(
    memory: SupervisorMemory, how: str
) -> None:
    builder = chain(("supervisor", answering("hm")), ("ask_human", asks(1)), ("web", fetched()))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    (asked,) = graph.get_state(ADA).interrupts
    await run(graph, Command(resume={asked.id: CHINESE}), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


def test_an_answer_and_an_update_in_one_command_are_both_the_users(memory: SupervisorMemory) -> None:
    builder = chain(("supervisor", answering("hm")), ("ask_human", asks(1)), ("web", fetched()))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume=CHINESE, update=human(ROUND)), ADA)
    assert_heard(memory, TABLES, CHINESE, ROUND)


def test_an_agent_that_asks_the_user_brings_the_users_words(memory: SupervisorMemory) -> None:
    agent = chain(("ask", asks(1)), ("web", fetched())).compile()
    builder = chain(("supervisor", answering("hm")), ("worker", agent))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume=CHINESE), ADA)
    assert_heard(memory, TABLES, CHINESE)


# --- whoever speaks first


def planner(state: Any) -> Any:
    return {"messages": [HumanMessage('{"steps": ["look", "tell"]}', name="planner")]}


@HOW
async def test_before_a_coordinator_and_a_planner_have_spoken_the_user_is_heard(
    memory: SupervisorMemory, how: str
) -> None:
    nodes = (("coordinator", answering("handing over")), ("planner", planner), ("web", fetched()))
    graph = memory.attach(chain(*nodes, ("supervisor", answering("done")))).compile()
    await run(graph, human(TABLES), ADA, how)
    assert_heard(memory, TABLES)


@HOW
async def test_the_user_is_heard_where_the_supervisor_is_never_reached(
    memory: SupervisorMemory, how: str
) -> None:
    def coordinate(state: Any) -> Any:
        return Command(goto=END, update={"messages": [AIMessage("Hello.")]})

    builder = chain(("coordinator", coordinate), ("supervisor", answering("done")))
    builder.edges.discard(("coordinator", "supervisor"))
    graph = memory.attach(builder).compile()
    await run(graph, human(TABLES), ADA, how)
    assert_heard(memory, TABLES)


@HOW
async def test_the_user_is_heard_by_clarify_with_user_first(memory: SupervisorMemory, how: str) -> None:
    nodes = (("clarify_with_user", asks(1)), ("write_research_brief", planner))
    builder = chain(*nodes, ("research_supervisor", answering("done")))
    graph = memory.attach(builder, supervisor="research_supervisor").compile(checkpointer=InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    await run(graph, Command(resume=CHINESE), ADA, how)
    assert_heard(memory, TABLES, CHINESE)


# --- hosts without a graph


@HOW
async def test_a_turn_is_heard_as_the_host_says(memory: Any, how: str) -> None:
    boss = model("| a |", "Noted.")
    scope = Scope("ada", session_id="t1")

    def speak(text: str) -> None:
        with memory.turn(scope, text) as turn:
            answer = boss.invoke([HumanMessage(MALLORY), HumanMessage(text)]).text
            turn.answered(answer)

    if how == "sync":
        chat: Any = entrypoint(checkpointer=InMemorySaver())(speak)
    else:

        async def aspeak(text: str) -> None:
            speak(text)

        chat = entrypoint(checkpointer=InMemorySaver())(aspeak)
    for text in (TABLES, CHINESE):
        await run(chat, text, ADA, how)
    assert_heard(memory, TABLES, CHINESE)
    assert {r.content for r in memory.session("t1", user_id="ada")} == {TABLES, CHINESE, "| a |", "Noted."}


def test_in_a_turn_the_supervisors_note_reaches_the_model(memory: Any) -> None:
    seed(memory)
    boss = model("done", "done")
    with memory.turn(Scope("ada", session_id="t1"), "What was the revenue?") as turn:
        boss.invoke([HumanMessage("What was the revenue?")])
        assert CANARY in turn.note.text
    boss.invoke([HumanMessage("What was the revenue?")])
    assert [CANARY in prompt for prompt in boss.prompts] == [True, False]
