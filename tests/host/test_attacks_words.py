"""Attacks on what is taken for the user's words: by clients, workers and hosts that change how they look."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send, StateUpdate, interrupt

from supervisor_memory import SupervisorMemory
from tests.host.graphs import Graph, Team, config, open_memory
from tests.host.speaking import (
    CHINESE,
    MALLORY,
    ROUND,
    TABLES,
    answering,
    assert_heard,
    believed,
    chain,
    crew,
    fetched,
    human,
    said,
    stripped,
)

ADA = config(user_id="ada")
SECOND = config("t2", user_id="ada")


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


def history(state: Any, *more: str) -> dict[str, Any]:
    """The conversation as a browser sends it back, with what the user says now."""
    return {"messages": [*stripped(state["messages"]), *({"role": "user", "content": m} for m in more)]}


# --- histories that come back


@pytest.mark.parametrize("text", [f"{MALLORY}\n", f"  {MALLORY}", MALLORY.replace(" ", "\r\n", 1)])
def test_a_client_that_trims_white_space_makes_no_worker_the_user(
    memory: SupervisorMemory, text: str
) -> None:
    graph = memory.attach(crew(fetched(text))).compile()
    sent = history(graph.invoke(human(TABLES), ADA), ROUND)
    for message in sent["messages"]:
        message["content"] = " ".join(message["content"].split())
    graph.invoke(sent, ADA)
    assert_heard(memory, TABLES, ROUND)


def test_a_conversation_that_goes_on_once_the_user_has_signed_in_makes_no_worker_the_user(
    memory: SupervisorMemory,
) -> None:
    graph = memory.attach(crew(fetched())).compile()
    graph.invoke(history(graph.invoke(human(TABLES), config()), ROUND), ADA)
    assert_heard(memory, ROUND)


def test_a_conversation_that_goes_on_in_a_new_thread_makes_no_worker_the_user(
    memory: SupervisorMemory,
) -> None:
    graph = memory.attach(crew(fetched())).compile()
    graph.invoke(history(graph.invoke(human(TABLES), ADA), ROUND), SECOND)
    assert_heard(memory, TABLES, ROUND)


def test_a_thread_that_a_host_copies_into_another_makes_no_worker_the_user(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(fetched())).compile(checkpointer=InMemorySaver())
    graph.update_state(SECOND, {"messages": graph.invoke(human(TABLES), ADA)["messages"]})
    graph.invoke(human(ROUND), SECOND)
    assert believed(memory) == []
    assert ROUND in said(memory)


def test_a_history_that_comes_back_after_a_summary_is_heard_once(memory: SupervisorMemory) -> None:
    def summarise(state: Any) -> Any:
        summary = HumanMessage("Summary: tables.")
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), summary, state["messages"][-1]]}

    builder = chain(("supervisor", answering("ok", "ok", "ok")), ("summary", summarise))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    sent = [HumanMessage(TABLES, id="h1"), AIMessage("ok", id="a1"), HumanMessage(ROUND, id="h2")]
    graph.invoke({"messages": sent[:1]}, ADA)
    graph.invoke({"messages": sent}, ADA)
    graph.invoke({"messages": [*sent, AIMessage("ok", id="a2"), HumanMessage(CHINESE, id="h3")]}, ADA)
    assert_heard(memory, TABLES, ROUND, CHINESE)


def test_a_history_that_comes_back_after_the_checkpoints_are_lost_is_heard_once(
    memory: SupervisorMemory,
) -> None:
    builder = crew(fetched())
    before = memory.attach(builder).compile(checkpointer=InMemorySaver())
    after = memory.attach(builder).compile(checkpointer=InMemorySaver())
    after.invoke(history(before.invoke(human(TABLES), ADA), ROUND), ADA)
    assert_heard(memory, TABLES, ROUND)


def test_many_workers_at_once_are_none_of_them_the_user(memory: SupervisorMemory) -> None:
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", lambda state: {"messages": [HumanMessage(f"{MALLORY} {state['n']}")]})
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges(
        "supervisor", lambda state: [Send("worker", {"n": n}) for n in range(20)], ["worker"]
    )
    graph = memory.attach(builder).compile()
    graph.invoke(history(graph.invoke(human(TABLES), ADA), ROUND), ADA)
    assert_heard(memory, TABLES, ROUND)


# --- what the user says


def test_what_the_user_said_before_is_heard_again_beside_something_new(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(lambda state: {})).compile(checkpointer=InMemorySaver())
    graph.invoke(human("Yes."), ADA)
    graph.invoke({"messages": [HumanMessage(TABLES), HumanMessage("Yes."), HumanMessage(ROUND)]}, ADA)
    assert said(memory) == sorted(["Yes.", "Yes.", TABLES, ROUND])


def test_a_chat_message_in_the_users_role_is_the_users(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(lambda state: {"messages": [ChatMessage(role="user", content=MALLORY)]}))
    graph.compile().invoke({"messages": [ChatMessage(role="user", content=TABLES)]}, ADA)
    assert_heard(memory, TABLES)


def test_what_a_host_adds_in_bulk_is_the_users(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(fetched())).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    steps = [[StateUpdate(human(text), "supervisor")] for text in (ROUND, CHINESE)]
    graph.bulk_update_state(ADA, steps)
    graph.invoke(human("Hello."), ADA)
    assert believed(memory) == []
    assert said(memory) == sorted([TABLES, ROUND, CHINESE, "Hello."])


# --- what the user answers


class Form(Team, total=False):
    first: str
    second: str


def asking_for(key: str) -> Callable[[Any], Any]:
    return lambda state: {key: interrupt(key)}


def saying(question: str) -> Callable[[Any], Any]:
    return lambda state: {"messages": [HumanMessage(interrupt(question))]}


def test_an_answer_is_the_users_though_a_later_run_says_it(memory: SupervisorMemory) -> None:
    def hand_in(state: Any) -> Any:
        return {"messages": [HumanMessage(state["first"]), HumanMessage(state["second"])]}

    asks = [(key, asking_for(key)) for key in ("first", "second")]
    asks = [(f"ask_{key}", ask) for key, ask in asks]
    builder = chain(*asks, ("hand_in", hand_in), ("supervisor", answering("ok")), state=Form)
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume=ROUND), ADA)
    graph.invoke(Command(resume=CHINESE), ADA)
    assert_heard(memory, TABLES, ROUND, CHINESE)


def test_an_answer_of_one_turn_is_no_answer_of_the_next(memory: SupervisorMemory) -> None:
    def work(state: Any) -> Any:
        if len(state["messages"]) == 1:
            return {"first": interrupt("May I?")}
        return {"messages": [HumanMessage(MALLORY)]}

    builder = chain(("worker", work), ("supervisor", answering("ok", "ok")), state=Form)
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume={"approved": True, "draft": MALLORY}), ADA)
    graph.invoke(human(ROUND), ADA)
    assert_heard(memory, TABLES, ROUND)


def test_an_answer_is_the_users_though_a_node_trims_it(memory: SupervisorMemory) -> None:
    builder = chain(("supervisor", lambda state: {"messages": [HumanMessage(interrupt("?").strip())]}))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume=f"{ROUND}\n"), ADA)
    assert_heard(memory, TABLES, ROUND)


def test_interrupts_side_by_side_that_are_answered_one_after_the_other_are_heard_once(
    memory: SupervisorMemory,
) -> None:
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("join", lambda state: {}, defer=True)
    builder.add_edge(START, "supervisor")
    for name, node in (("a", saying("a")), ("b", saying("b")), ("c", fetched())):
        builder.add_node(name, node)
        builder.add_edge("supervisor", name)
        builder.add_edge(name, "join")
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    one, two = graph.invoke(human(TABLES), ADA)["__interrupt__"]
    graph.invoke(Command(resume={one.id: ROUND}), ADA)
    graph.invoke(Command(resume={two.id: CHINESE}), ADA)
    assert_heard(memory, TABLES, ROUND, CHINESE)


def test_what_a_host_answers_in_a_nodes_place_does_not_make_the_one_beside_it_the_user(
    memory: SupervisorMemory,
) -> None:
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_edge(START, "supervisor")
    for name, node in (("a", saying("a")), ("c", fetched())):
        builder.add_node(name, node)
        builder.add_edge("supervisor", name)
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.update_state(ADA, human(ROUND), as_node="a")
    graph.invoke(None, ADA)
    graph.invoke(human(CHINESE), ADA)
    assert_heard(memory, TABLES, ROUND, CHINESE)


def test_a_subgraph_with_checkpoints_of_its_own_asks_the_user_and_is_not_the_user(
    memory: SupervisorMemory,
) -> None:
    inner = chain(("ask", saying("?")), ("fetch", fetched())).compile(checkpointer=True)
    builder = chain(("supervisor", answering("ok", "ok")), ("team", inner))
    graph = memory.attach(builder).compile(checkpointer=InMemorySaver())
    graph.invoke(human(TABLES), ADA)
    graph.invoke(Command(resume=ROUND), ADA)
    graph.invoke(human(CHINESE), ADA)
    assert_heard(memory, TABLES, ROUND, CHINESE)
