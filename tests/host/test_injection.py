"""What reaches the models, and that nothing of it stays."""

import dataclasses
import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, Overwrite, Send
from langgraph.warnings import LangGraphDeprecatedSinceV10
from pydantic import BaseModel

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import call_of
from tests.breadth import HOW
from tests.host.graphs import (
    ASK,
    CANARY,
    Graph,
    Team,
    asking,
    config,
    model,
    notes_in,
    raw,
    team,
    texts,
)


async def run(graph: Any, state: Any, where: Any, how: str) -> Any:
    return await graph.ainvoke(state, where) if how == "async" else graph.invoke(state, where)


async def streamed(graph: Any, state: Any, where: Any, how: str, modes: list[str]) -> list[Any]:
    """Every chunk of a run, those of subgraphs too."""
    options: Any = {"stream_mode": modes, "subgraphs": True}
    if how == "sync":
        return list(graph.stream(state, where, **options))
    return [chunk async for chunk in graph.astream(state, where, **options)]


@HOW
async def test_supervisor_and_sub_agent_each_read_their_own_note_first(
    memory: SupervisorMemory, how: str
) -> None:
    boss, worker = model("go", "done"), model("found it", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    await run(graph, asking(user_id="ada"), config(), how)
    for call in (*boss.calls, *worker.calls):
        assert [message.type for message in call].count("system") == 1
        assert notes_in(call) == [call[0].text]
        assert call[0].text.startswith(("boss\n\n<memory id=", "worker\n\n<memory id="))
    assert all(agent in boss.prompts[0] for agent in (f"{CANARY} worker", f"{CANARY} other"))
    assert f"{CANARY} worker" in worker.prompts[0]
    assert f"{CANARY} table" in worker.prompts[0]
    assert f"{CANARY} net of tax" in worker.prompts[0]
    assert f"{CANARY} other" not in worker.prompts[0]


@HOW
async def test_no_note_stays_in_state_checkpoint_or_stream(memory: SupervisorMemory, how: str) -> None:
    saver = InMemorySaver()
    boss, worker = model("go", "done", "go", "done"), model("found it", "again", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile(checkpointer=saver)
    modes = ["values", "updates", "messages", "debug", "tasks", "checkpoints", "custom"]
    for turn in range(2):
        seen = await streamed(graph, asking(f"{ASK} {turn}", user_id="ada"), config(), how, modes)
        assert CANARY not in repr(seen)
    assert CANARY not in repr(graph.get_state(config()))
    assert CANARY not in raw(saver)
    assert all(CANARY in prompt for prompt in boss.prompts + worker.prompts)


def test_nothing_piles_up_over_turns(memory: SupervisorMemory) -> None:
    boss = model(*["answer"] * 5)
    graph = memory.attach(team(boss, {})).compile(checkpointer=InMemorySaver())
    for turn in range(5):
        state = graph.invoke(asking(f"{ASK} {turn}", user_id="ada"), config())
        assert len(notes_in(boss.calls[-1])) == 1
        assert len(boss.calls[-1]) == 1 + 2 * turn + 1
    assert len(state["messages"]) == 10


def test_a_file_of_checkpoints_holds_no_note(memory: SupervisorMemory, tmp_path: Path) -> None:
    boss, inner = model("go", "done"), model("found it", label="w")
    builder = team(boss, {"worker": model()})
    builder.nodes["worker"].runnable = create_agent(inner, [], name="worker")
    connection = sqlite3.connect(tmp_path / "thread.db", check_same_thread=False)
    graph = memory.attach(builder).compile(checkpointer=SqliteSaver(connection))
    graph.invoke(asking(user_id="ada"), config())
    connection.close()
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert CANARY in inner.prompts[0]
    assert b"found it" in held
    assert CANARY.encode() not in held


class Everything:
    """Agents that sit in their node in every way that graphs are written."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def as_graph(self) -> Any:
        return self.agent

    def as_closure(self) -> Any:
        agent = self.agent

        def work(state: Team) -> Any:
            return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

        return work

    def as_sequence(self) -> Any:
        return self.agent | (lambda state: {"messages": state["messages"][-1:]})

    def as_subgraph(self) -> Any:
        inner = Graph(Team)
        inner.add_node("prepare", lambda state: {"final_answer": ""})
        inner.add_node("work", self.agent)
        inner.add_edge(START, "prepare")
        inner.add_edge("prepare", "work")
        return inner.compile()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["as_graph", "as_closure", "as_sequence", "as_subgraph"])
@pytest.mark.parametrize("make", [create_agent, create_react_agent])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_compiled_sub_agent_reads_its_note_and_keeps_none(
    memory: SupervisorMemory, form: str, make: Any
) -> None:
    saver = InMemorySaver()
    inner = model("found it", "found it", label="w")
    builder = team(model("go", "done", "go", "done"), {"worker": model()})
    node = getattr(Everything(make(inner, [], name="worker")), form)()
    again = Graph(Team).add_node("worker", node).nodes["worker"]
    builder.nodes["worker"] = again
    builder.add_conditional_edges("worker", lambda state: END, [END])
    builder.edges.discard(("worker", "supervisor"))
    graph = memory.attach(builder).compile(checkpointer=saver)
    modes = ["values", "debug"]
    seen = await streamed(graph, asking(user_id="ada"), config(), "sync", modes)
    seen += await streamed(graph, asking(user_id="ada"), config("t2"), "async", modes)
    assert [CANARY in prompt for prompt in inner.prompts] == [True, True]
    assert all(len(notes_in(call)) == 1 and call[0].type == "system" for call in inner.calls)
    assert CANARY not in repr(seen)
    assert CANARY not in raw(saver)


def test_a_sub_agent_with_a_thread_of_its_own_keeps_no_note(memory: SupervisorMemory) -> None:
    saver = InMemorySaver()
    inner = model("one", "two", "three", label="w")
    builder = team(model(*["go"] * 6), {"worker": model()})
    builder.nodes["worker"].runnable = create_agent(inner, [], name="worker", checkpointer=True)
    builder.edges.discard(("worker", "supervisor"))
    builder.add_edge("worker", END)
    graph = memory.attach(builder).compile(checkpointer=saver)
    for turn in range(3):
        graph.invoke(asking(f"{ASK} {turn}", user_id="ada"), config())
    assert [len(notes_in(call)) for call in inner.calls] == [1, 1, 1]
    assert CANARY not in raw(saver)


def test_an_agent_reached_by_a_global_reads_its_note_and_keeps_none(memory: SupervisorMemory) -> None:
    global REACHED  # noqa: PLW0603
    saver = InMemorySaver()
    inner = model("found it")
    REACHED = create_agent(inner, [], name="worker")
    builder = team(model("go"), {"worker": model()})
    builder.nodes["worker"] = Graph(Team).add_node("worker", by_global).nodes["worker"]
    builder.edges.discard(("worker", "supervisor"))
    graph = memory.attach(builder).compile(checkpointer=saver)
    graph.invoke(asking(user_id="ada"), config())
    assert any(key[1].startswith("worker:") for key in saver.blobs)
    assert f"{CANARY} worker" in inner.prompts[0]
    assert CANARY not in raw(saver)


REACHED: Any = None


def by_global(state: Team) -> Any:
    return {"messages": REACHED.invoke({"messages": state["messages"]})["messages"][-1:]}


def test_a_pre_model_hook_does_not_hide_the_note(memory: SupervisorMemory) -> None:
    inner = model("found it")

    def last_three(state: Any) -> Any:
        return {"llm_input_messages": state["messages"][-3:]}

    with pytest.warns(LangGraphDeprecatedSinceV10):
        agent = create_react_agent(inner, [], name="worker", pre_model_hook=last_three)
    builder = Graph(Team)
    builder.add_node("supervisor", agent)
    builder.add_edge(START, "supervisor")
    graph = memory.attach(builder).compile()
    graph.invoke(asking(user_id="ada"), config())
    assert CANARY in inner.prompts[0]


@pytest.mark.parametrize(
    "giving_back",
    [
        lambda state, said: {**state, "messages": [*state["messages"], said]},
        lambda state, said: {"messages": Overwrite([*state["messages"], said])},
        lambda state, said: {"messages": [*(RemoveMessage(m.id) for m in state["messages"][:-1]), said]},
        lambda state, said: {"messages": [SystemMessage(state["messages"][0].text), said]},
        lambda state, said: Command(update={"messages": [*state["messages"], said]}),
        lambda state, said: Command(update=[("messages", [*state["messages"], said])]),
        lambda state, said: [Command(update={"messages": [*state["messages"], said]})],
        lambda state, said: {"messages": said, "copied": state["messages"]},
    ],
    ids=["state", "overwrite", "trim", "rewritten", "command", "pairs", "commands", "another-key"],
)
def test_a_node_that_gives_back_what_it_read_gives_back_no_note(
    memory: SupervisorMemory, giving_back: Any
) -> None:
    class Wide(Team, total=False):
        copied: list[Any]

    saver = InMemorySaver()
    boss = model("hello")
    builder = Graph(Wide)
    builder.add_node("supervisor", lambda state: giving_back(state, boss.invoke(state["messages"])))
    builder.add_edge(START, "supervisor")
    graph = memory.attach(builder).compile(checkpointer=saver)
    state = graph.invoke(asking(user_id="ada"), config())
    assert CANARY in boss.prompts[0]
    assert CANARY not in repr(state)
    assert CANARY not in raw(saver)
    assert state["messages"][-1].text == "hello"


@pytest.mark.parametrize(
    "giving_back",
    [
        lambda messages, said: {"messages": [*messages, said]},
        lambda messages, said: {"messages": Overwrite([*messages, said])},
        lambda messages, said: {"messages": [*(RemoveMessage(m.id) for m in messages[:-1]), said]},
        lambda messages, said: Command(update={"messages": [*messages, said]}),
        lambda messages, said: Command(update=[("messages", [*messages, said])]),
        lambda messages, said: [Command(update={"messages": [*messages, said]})],
    ],
    ids=["update", "overwrite", "trim", "command", "pairs", "commands"],
)
def test_a_node_that_is_shown_the_note_in_its_state_gives_back_none(
    memory: SupervisorMemory, giving_back: Any
) -> None:
    seen: list[Any] = []

    def supervise(state: Any) -> Any:
        seen.append(list(state["messages"]))
        return giving_back(state["messages"], AIMessage("hello", id="a1"))

    saver = InMemorySaver()
    builder = Graph(Team)
    builder.add_node("supervisor", supervise)
    builder.add_edge(START, "supervisor")
    graph = memory.attach(builder, placement="state").compile(checkpointer=saver)
    state = graph.invoke(asking(user_id="ada"), config())
    assert notes_in(seen[0]) == [seen[0][0].text]
    assert [m.text for m in state["messages"]][-2:] == [ASK, "hello"]
    assert CANARY not in repr(state)
    assert CANARY not in raw(saver)


def test_a_sent_task_carries_no_note(memory: SupervisorMemory) -> None:
    seen: list[Any] = []

    def supervise(state: Any) -> Any:
        return Command(goto=[Send("plain", {"messages": state["messages"]})])

    builder = Graph(Team)
    builder.add_node("supervisor", supervise, destinations=("plain",))
    builder.add_node("plain", seen.append)
    builder.add_edge(START, "supervisor")
    memory.attach(builder, agents=[]).compile().invoke(asking(user_id="ada"), config())
    assert seen
    assert CANARY not in repr(seen)


def test_the_supervisors_memory_calls_are_hidden_from_agents_and_stay_in_the_thread(
    memory: SupervisorMemory,
) -> None:
    both = AIMessage(
        [{"type": "text", "text": "let me see"}, {"type": "tool_use", "id": "c1", "name": "memory_search"}],
        id="both",
        tool_calls=[
            {"name": "memory_search", "args": {"query": "revenue"}, "id": "c1"},
            {"name": "transfer_to_worker", "args": {"task": "sum"}, "id": "c2"},
        ],
    )
    history = [
        HumanMessage(ASK, id="h"),
        both,
        {"role": "tool", "content": f"RAW {CANARY}", "tool_call_id": "c1", "id": "r1"},
        {"role": "tool", "content": "ok", "tool_call_id": "c2", "id": "r2"},
    ]
    inner = model("found it")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", create_agent(inner, [], name="worker"))
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    graph = memory.attach(builder).compile()
    state = graph.invoke({"messages": history, "user_id": "ada"}, config())
    assert "RAW" not in inner.prompts[0]
    assert "tool_use" not in repr(inner.calls[0])
    asked = next(m for m in inner.calls[0] if isinstance(m, AIMessage))
    assert [call["name"] for call in asked.tool_calls] == ["transfer_to_worker"]
    assert [m.id for m in state["messages"][:4]] == ["h", "both", "r1", "r2"]
    assert len(state["messages"][1].tool_calls) == 2


# --- states of every shape


class Replaced(TypedDict, total=False):
    messages: list[AnyMessage]
    user_id: str


@pytest.mark.parametrize("placement", ["system", "state"])
@pytest.mark.parametrize("shape", ["pydantic", "dataclass", "frozen", "slots"])
def test_nodes_of_state_classes_read_their_note_and_keep_their_messages(
    memory: SupervisorMemory, shape: str, placement: Any
) -> None:
    if shape == "pydantic":

        class State(BaseModel):
            messages: Annotated[list[AnyMessage], add_messages] = []
            user_id: str = ""

        kind: Any = State
    else:
        kind = dataclasses.make_dataclass(
            "State",
            [
                (
                    "messages",
                    Annotated[list[AnyMessage], add_messages],
                    dataclasses.field(default_factory=list),
                ),
                ("user_id", str, ""),
            ],
            frozen=shape == "frozen",
            slots=shape == "slots",
        )
    inner = model("hello", "unused")
    seen: list[Any] = []

    def speak(state: Any) -> Any:
        seen.append(list(state.messages))
        return {"messages": [inner.invoke(state.messages)]}

    def give_state(state: Any) -> Any:
        seen.append(list(state.messages))
        inner.invoke(state.messages)
        return state

    builder = Graph(kind)
    builder.add_node("supervisor", speak)
    builder.add_node("worker", give_state)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    graph = memory.attach(builder, placement=placement).compile()
    state = graph.invoke({"messages": [("user", ASK)], "user_id": "ada"}, config())
    assert [len(notes_in(call)) for call in inner.calls] == [1, 1]
    assert [len(notes_in(each)) for each in seen] == ([1, 1] if placement == "state" else [0, 0])
    assert [m.text for m in state["messages"]] == [ASK, "hello"]


def test_a_graph_without_messages_runs_as_it_did(memory: SupervisorMemory) -> None:
    class Count(TypedDict):
        number: int

    builder = Graph(Count)
    builder.add_node("supervisor", lambda state: {"number": state["number"] + 1})
    builder.add_edge(START, "supervisor")
    assert memory.attach(builder).compile().invoke({"number": 1}) == {"number": 2}


def test_messages_may_have_another_key(memory: SupervisorMemory) -> None:
    class Chatting(TypedDict, total=False):
        chat: Annotated[list[AnyMessage], add_messages]
        user_id: str

    inner = model("hello")
    builder = Graph(Chatting)
    builder.add_node("supervisor", lambda state: {"chat": [inner.invoke(state["chat"])]})
    builder.add_edge(START, "supervisor")
    graph = memory.attach(builder, messages_key="chat").compile()
    state = graph.invoke({"chat": [("user", f"{ASK} Use tables by default.")], "user_id": "ada"}, config())
    assert CANARY in inner.prompts[0]
    assert CANARY not in repr(state)
    assert any("Use tables" in r.content for r in memory.get_all(user_id="ada"))


def test_where_messages_replace_each_other_nothing_is_lost(memory: SupervisorMemory) -> None:
    asked = call_of("memory_search", query="x")
    answered = {"role": "tool", "content": "[]", "tool_call_id": "call-memory_search"}
    inner = model("found it")

    def work(state: Any) -> Any:
        return {"messages": [*state["messages"], inner.invoke(state["messages"])]}

    builder = Graph(Replaced)
    builder.add_node("supervisor", lambda state: {"messages": [*state["messages"], AIMessage("go")]})
    builder.add_node("worker", work)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    history = convert_to_messages([("user", ASK), asked, answered])
    state = memory.attach(builder).compile().invoke({"messages": history, "user_id": "ada"}, config())
    assert [m.text for m in state["messages"]] == [ASK, "", "[]", "go", "found it"]
    assert len(notes_in(inner.calls[0])) == 1


def test_each_sent_task_reads_its_own_note_and_knows_the_user_of_the_graph(memory: SupervisorMemory) -> None:
    inner = model("one", "two")

    def fan(state: Any) -> list[Send]:
        return [
            Send("worker", {"messages": [HumanMessage(f"What about the {task}?")]})
            for task in ("revenue", "weather")
        ]

    memory.write("The weather was mild in May", user_id="ada", kind="task-traces", agent_id="worker")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", lambda state: {"messages": [inner.invoke(state["messages"])]})
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", fan, ["worker"])
    memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
    by_task = {str(call[-1].text): str(call[0].text) for call in inner.calls}
    assert "rose in May" in by_task["What about the revenue?"]
    assert "mild" not in by_task["What about the revenue?"]
    assert "mild" in by_task["What about the weather?"]
    assert all("table" in note for note in by_task.values())


def test_the_same_messages_come_out_as_without_memory(memory: SupervisorMemory) -> None:
    def played(wrap: Any) -> Any:
        builder = team(model("go", "done"), {"worker": model("found it", label="w")})
        return texts(wrap(builder).compile().invoke(asking(user_id="ada"), config()))

    assert played(memory.attach) == played(lambda builder: builder)
