"""Who has seen a note, which nodes got one in vain, and what each model would read."""

import json
import logging
import threading
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command

from supervisor_memory import SupervisorMemory
from supervisor_memory.audit.turns import grouped
from supervisor_memory.reading.metrics import measure
from tests.breadth import HOW
from tests.host.graphs import (
    ASK,
    CANARY,
    Graph,
    Team,
    asking,
    audit_of,
    config,
    model,
    team,
)
from tests.host.prompted import OWN, alone, fences, plain, row
from tests.interfaces.conftest import Run, run

__all__ = ["run"]

SEEN_BY_NOBODY = "a note that was put into a node's state counts as seen, though no model call held it"
NO_WARNING = "nothing is said of a node whose note reaches no model"
NO_EXPLAINING = "there is no explain_prompt"


def readers(memory: SupervisorMemory) -> set[str]:
    """Who saw a record in a note, by the access log."""
    rows = memory.backend.audit.accesses(10_000, op="inject")
    return {row.agent_id or "supervisor" for row in rows}


def readers_by_why(memory: SupervisorMemory) -> set[str]:
    """Who was told something, by what `why` shows."""
    told = [note for turn in grouped(memory.backend.audit.notes(50, user_id="ada")) for note in turn.notes]
    return {note.agent_id or "supervisor" for note in told if note.op == "inject"}


def office(boss: Any) -> Any:
    """A supervisor that asks a model, and a clerk that asks none."""
    return row(
        ("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]}),
        ("clerk", lambda _: {"messages": [AIMessage("From nine to five.", name="clerk")]}),
    )


@HOW
async def test_only_who_called_a_model_with_it_has_seen_a_note(memory: SupervisorMemory, how: str) -> None:
    boss = model("done")
    graph = memory.attach(office(boss)).compile()
    if how == "async":
        await graph.ainvoke(asking(), config(user_id="ada"))
    else:
        graph.invoke(asking(), config(user_id="ada"))
    assert fences(boss.calls[0]) == 1
    assert readers(memory) == {"supervisor"}
    assert readers_by_why(memory) == {"supervisor"}
    figures = measure(memory.backend, queue=memory.queue.counts()).agents
    assert {agent for agent, each in figures.items() if each.notes} == {None}


def test_a_node_whose_models_are_kept_silent_has_seen_nothing(memory: SupervisorMemory) -> None:
    boss = model("done")
    off: Any = {"tags": ["memory:off"]}
    graph = memory.attach(alone(lambda _: {"final_answer": boss.invoke(OWN, off).text})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert fences(boss.calls[0]) == 0
    assert readers(memory) == readers_by_why(memory) == set()


def test_who_called_a_model_with_it_has_seen_every_record_of_the_note(memory: SupervisorMemory) -> None:
    boss, worker = model("go", "done"), model("found it", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert readers(memory) == readers_by_why(memory) == {"supervisor", "worker"}
    rows = memory.backend.audit.accesses(10_000, op="inject")
    seen = {memory.get(str(row.record_id), user_id="ada").content for row in rows if row.agent_id == "worker"}
    assert seen
    assert all(text in worker.prompts[0] for text in seen)


def test_one_node_that_calls_its_model_three_times_has_seen_its_note_once(memory: SupervisorMemory) -> None:
    boss = model()

    def node(state: Any) -> dict[str, Any]:
        for _ in range(3):
            boss.invoke(state["messages"])
        return {"final_answer": "x"}

    memory.attach(alone(node)).compile().invoke(asking(), config(user_id="ada"))
    assert [fences(call) for call in boss.calls] == [1, 1, 1]
    told = [note for turn in grouped(memory.backend.audit.notes(50, user_id="ada")) for note in turn.notes]
    assert [note.op for note in told] == ["inject"]


def test_a_model_call_that_failed_in_the_provider_held_the_note_all_the_same(
    memory: SupervisorMemory,
) -> None:
    """Sent is sent: what left the process was seen, whatever came back."""

    def refuse(_messages: Any) -> AIMessage:
        raise ConnectionError("no provider here")

    boss = model(refuse)

    def node(_state: Any) -> dict[str, Any]:
        with pytest.raises(ConnectionError):
            boss.invoke(OWN)
        return {}

    graph = memory.attach(row(("supervisor", node), ("clerk", lambda _: {}))).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert readers(memory) == {"supervisor"}


def test_the_command_line_names_only_who_has_seen_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    boss = model("done")
    with SupervisorMemory.from_env() as memory:
        written = memory.write("Use tables by default.", user_id="ada", kind="user-profile")
        memory.attach(office(boss)).compile().invoke(asking(), config(user_id="ada"))
    shown = run("show", written.id, "--json")
    assert shown.code == 0
    seen = [row for row in json.loads(shown.stdout)["accesses"] if row["op"] == "inject"]
    assert {row["agent_id"] or "supervisor" for row in seen} == {"supervisor"}
    assert "clerk" not in run("why", written.id).stdout


# --- the warning


def warnings(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and word in record.getMessage()
    ]


def test_a_node_whose_note_reaches_no_model_is_named_once_with_what_helps(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture
) -> None:
    graph = memory.attach(office(model())).compile()
    for thread in ("one", "two", "three"):
        graph.invoke(asking(), config(thread, user_id="ada"))
    (told,) = warnings(caplog, "clerk")
    assert "attach(" in told
    assert "agents=" in told or "placement=" in told


def test_another_graph_warns_for_itself(memory: SupervisorMemory, caplog: pytest.LogCaptureFixture) -> None:
    for thread in ("one", "two"):
        memory.attach(office(model())).compile().invoke(asking(), config(thread, user_id="ada"))
    assert len(warnings(caplog, "clerk")) == 2


@pytest.mark.parametrize("user", ["ada", "nobody"])
def test_nobody_is_warned_of_nodes_that_ask_their_model_or_have_no_note(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture, user: str
) -> None:
    boss, worker = model("go", "done"), model("found it", label="w")
    builder = team(boss, {"worker": worker}) if user == "ada" else office(boss)
    memory.attach(builder).compile().invoke(asking(), config(user_id=user))
    assert warnings(caplog, "worker") == warnings(caplog, "clerk") == []


def test_a_warning_holds_no_words_of_notes_or_users(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.attach(office(model())).compile().invoke(asking(), config(user_id="ada"))
    assert CANARY not in caplog.text
    assert ASK not in caplog.text


# --- explain_prompt


@HOW
async def test_explain_prompt_shows_what_each_model_would_read_without_calling_any(
    memory: Any, how: str
) -> None:
    boss, worker = model("go", "done"), model("found it", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    if how == "async":
        prompts = await memory.aexplain_prompt(graph, asking(), config(user_id="ada"))
    else:
        prompts = memory.explain_prompt(graph, asking(), config(user_id="ada"))
    assert boss.calls == worker.calls == []
    assert [(each.node, each.agent) for each in prompts] == [("supervisor", None), ("worker", "worker")]
    assert all(isinstance(each.messages, tuple) for each in prompts)
    assert [fences(each.messages) for each in prompts] == [1, 1]
    assert f"{CANARY} worker" in str(prompts[1].messages)
    graph.invoke(asking(), config(user_id="ada"))
    assert plain(prompts[0].messages) == plain(boss.calls[0])


def test_explain_prompt_leaves_no_thread_that_keeps_the_process_from_ending(memory: Any) -> None:
    daemons: list[bool] = []

    async def only(_: Any) -> dict[str, Any]:
        daemons.append(threading.current_thread().daemon)
        return {}

    builder = Graph(Team)
    builder.add_node("only", only)
    builder.add_edge(START, "only")
    graph = memory.attach(builder, supervisor="only").compile()
    memory.explain_prompt(graph, asking(), config(user_id="ada"))
    assert daemons == [True]


def test_explain_prompt_keeps_nothing(memory: Any) -> None:
    saver = InMemorySaver()
    graph = memory.attach(team(model(), {"worker": model()})).compile(checkpointer=saver)
    before = audit_of(memory), memory.get_all(user_id="ada"), list(saver.list(None))
    memory.explain_prompt(graph, asking("Always answer in French."), config(user_id="ada"))
    assert (audit_of(memory), memory.get_all(user_id="ada"), list(saver.list(None))) == before
    assert readers(memory) == readers_by_why(memory) == set()


def test_explain_prompt_shows_that_a_node_asks_no_model(memory: Any) -> None:
    boss = model()
    graph = memory.attach(office(boss)).compile()
    prompts = {each.node: each for each in memory.explain_prompt(graph, asking(), config(user_id="ada"))}
    assert prompts["clerk"].messages == ()
    assert [message.type for message in prompts["supervisor"].messages] == ["system", "human"]
    assert fences(prompts["supervisor"].messages) == 1
    assert boss.calls == []


def test_explain_prompt_shows_an_own_prompt_with_the_placement_that_was_asked_for(
    memory: Any,
) -> None:
    boss = model()
    options: Any = {"placement": "last_user"}
    node = alone(lambda state: {"messages": [boss.invoke(state["messages"])]})
    graph = memory.attach(node, **options).compile()
    (prompt,) = memory.explain_prompt(graph, asking(), config(user_id="ada"))
    assert [message.type for message in prompt.messages] == ["human"]
    assert fences(prompt.messages) == 1


def test_explain_prompt_of_a_user_without_records_shows_the_prompt_as_it_is(
    memory: Any,
) -> None:
    graph = memory.attach(office(model())).compile()
    prompts = memory.explain_prompt(graph, asking(), config(user_id="nobody"))
    assert plain(prompts[0].messages) == [("human", ASK)]


def test_explain_prompt_shows_an_agent_that_is_a_graph(memory: Any) -> None:
    worker = model(label="w")
    agent = create_agent(worker, [], name="worker", system_prompt="base")
    graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", agent))).compile()
    prompts = {each.node: each for each in memory.explain_prompt(graph, asking(), config(user_id="ada"))}
    assert worker.calls == []
    assert fences(prompts["worker"].messages) == 1
    assert prompts["worker"].messages[0].text.startswith("base")


def test_what_was_explained_is_what_is_sent(memory: Any) -> None:
    boss = model("done")
    graph = memory.attach(alone(lambda _: {"final_answer": boss.invoke(OWN).text})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    (prompt,) = memory.explain_prompt(graph, asking(), config("t2", user_id="ada"))
    assert plain(prompt.messages) == plain(boss.calls[0])


async def test_explain_prompt_shows_nodes_that_route_by_command(memory: Any) -> None:
    leading, writing = model(label="boss"), model(label="writer")

    async def supervisor(state: Team) -> Command[Literal["writer"]]:
        return Command(goto="writer", update={"messages": [await leading.ainvoke(state["messages"])]})

    def writer(state: Team) -> Command[Literal["supervisor", "__end__"]]:
        return Command(goto="__end__", update={"messages": [writing.invoke(state["messages"])]})

    builder = Graph(Team).add_node("supervisor", supervisor).add_node("writer", writer)
    graph = memory.attach(builder.add_edge(START, "supervisor")).compile()
    prompts = await memory.aexplain_prompt(graph, asking(), config(user_id="ada"))
    assert [(each.node, each.agent, each.error, fences(each.messages)) for each in prompts] == [
        ("supervisor", None, "", 1),
        ("writer", "writer", "", 1),
    ]
    assert leading.calls == writing.calls == []


def test_a_run_is_known_by_the_message_it_answers_whoever_gave_it_its_id(memory: SupervisorMemory) -> None:
    graph = memory.attach(alone(lambda state: {"messages": [model().invoke(state["messages"])]})).compile()
    graph.invoke({"messages": [HumanMessage(ASK, id="msg_1")]}, config(user_id="ada"))
    assert [note.run_id for note in memory.backend.audit.notes(5)] == ["msg_1"]
