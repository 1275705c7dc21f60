"""Where the note stands: behind the system prompt, in the user's latest message, or in the state."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.model.records import Scope
from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import ASK, CANARY, asking, config, model, open_memory, raw, seed, team, texts
from tests.host.prompted import (
    END_OF_NOTE,
    FENCE,
    OWN,
    alone,
    fences,
    note_of,
    plain,
    row,
    talk,
)
from tests.hosts_in_the_wild.few_shot import offline

LONG = "Revenue rose by 12 percent in June because of two new contracts in the north."
CONTINUED = "a continued call of the Responses API is not known, and no own prompt is told anything"


async def asked(memory: SupervisorMemory, prompt: Any, **options: Any) -> list[BaseMessage]:
    """What the model reads when a node sends it this prompt."""
    boss = model()
    await talk(memory, lambda _: boss.invoke(prompt), **options)
    (call,) = boss.calls
    return call


# --- "system", the default


async def test_a_system_prompt_that_is_text_stays_text_with_the_note_at_its_end(
    memory: SupervisorMemory,
) -> None:
    system, human = await asked(memory, OWN)
    assert isinstance(system.content, str)
    assert system.content.startswith("base")
    assert system.content.endswith(END_OF_NOTE)
    assert human.content == "Say it."


async def test_a_system_prompt_of_blocks_gets_a_last_block_behind_the_cached_ones(
    memory: SupervisorMemory,
) -> None:
    blocks: list[Any] = [
        {"type": "text", "text": "base"},
        {"type": "text", "text": "rules", "cache_control": {"type": "ephemeral"}},
    ]
    system, _ = await asked(memory, [SystemMessage([*blocks]), HumanMessage("Say it.")])
    assert system.content[:-1] == blocks
    last: Any = system.content[-1]
    assert last["type"] == "text"
    assert FENCE in last["text"]
    assert "cache_control" not in last


async def test_where_there_is_no_system_prompt_one_is_added(memory: SupervisorMemory) -> None:
    call = await asked(memory, [HumanMessage("2+2?"), AIMessage("4"), HumanMessage("Say it.")])
    assert [message.type for message in call] == ["system", "human", "ai", "human"]
    assert call[0].text.startswith(FENCE)
    assert fences(call) == 1


async def test_what_else_a_system_message_carries_stays(memory: SupervisorMemory) -> None:
    extra = {"__openai_role__": "developer"}
    given = SystemMessage("base", id="s", name="rules", additional_kwargs=extra)
    system, _ = await asked(memory, [given, HumanMessage("Say it.")])
    assert FENCE in system.text
    assert (system.id, system.name, system.additional_kwargs) == ("s", "rules", extra)


@pytest.mark.parametrize(
    "prompt",
    [
        OWN,
        [SystemMessage("base"), HumanMessage("2+2?"), AIMessage("4"), HumanMessage("Say it.")],
        [HumanMessage("Say it.")],
        [SystemMessage(""), HumanMessage("Say it.")],
        [SystemMessage("base"), AIMessage("Hello.")],
    ],
)
async def test_there_is_always_one_leading_system_message(memory: SupervisorMemory, prompt: Any) -> None:
    call = await asked(memory, prompt)
    assert [message.type for message in call].count("system") == 1
    assert call[0].type == "system"
    assert fences(call) == 1
    others = [each for each in plain(call) if each[0] != "system"]
    assert others == [each for each in plain(prompt) if each[0] != "system"]


async def test_the_commonest_node_there_is_sends_one_system_message(memory: SupervisorMemory) -> None:
    boss, worker = model("go", "done"), model("found it", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    for call in boss.calls + worker.calls:
        assert [message.type for message in call].count("system") == 1
        assert call[0].type == "system"
        assert fences(call[:1]) == 1


# --- "last_user"


async def test_the_note_is_the_first_block_of_the_users_latest_message(memory: SupervisorMemory) -> None:
    image = {"type": "image", "url": "https://example.com/a.png"}
    said: list[Any] = [
        HumanMessage("Hello."),
        AIMessage("Hello!"),
        HumanMessage([{"type": "text", "text": ASK}, image]),
    ]
    boss = model()
    await talk(
        memory,
        lambda state: boss.invoke([SystemMessage("base"), *state["messages"]]),
        given={"messages": said},
        placement="last_user",
    )
    (call,) = boss.calls
    assert plain(call[:3]) == [("system", "base"), ("human", "Hello."), ("ai", "Hello!")]
    first: Any = call[3].content[0]
    assert first["type"] == "text"
    assert first["text"].strip().startswith(FENCE)
    assert call[3].content[1:] == said[2].content
    assert fences(call) == 1


async def test_a_message_that_is_text_reads_the_note_first_too(memory: SupervisorMemory) -> None:
    boss = model()
    await talk(memory, lambda state: boss.invoke(state["messages"]), placement="last_user")
    (call,) = boss.calls
    assert [message.type for message in call] == ["human"]
    assert call[0].text.lstrip().startswith(FENCE)
    assert call[0].text.endswith(ASK)


async def test_words_of_an_agent_are_no_message_of_the_user(memory: SupervisorMemory) -> None:
    boss = model("done")

    def planner(_state: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage("First this, then that.", name="planner")]}

    def worker(state: Any) -> dict[str, Any]:
        return {"messages": [boss.invoke(state["messages"])]}

    options: Any = {"placement": "last_user"}
    graph = memory.attach(row(("supervisor", planner), ("worker", worker)), **options).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert [fences([message]) for message in boss.calls[0]] == [1, 0]


async def test_without_a_message_of_the_user_the_note_goes_behind_the_system_prompt(
    memory: SupervisorMemory,
) -> None:
    call = await asked(memory, [SystemMessage("base"), AIMessage("Hello.")], placement="last_user")
    assert [message.type for message in call] == ["system", "ai"]
    assert call[0].text.startswith("base")
    assert call[0].text.endswith(END_OF_NOTE)


def _dumped(messages: list[BaseMessage]) -> list[str]:
    return [message.model_dump_json() for message in messages]


def test_what_stands_before_the_users_message_is_as_without_memory_byte_by_byte(
    memory: SupervisorMemory,
) -> None:
    boss = model("one", "two", "one", "two")

    def node(state: Any) -> dict[str, Any]:
        return {"messages": [boss.invoke([SystemMessage("base", id="s"), *state["messages"]])]}

    options: Any = {"placement": "last_user"}
    for graph in (
        memory.attach(alone(node), **options).compile(checkpointer=InMemorySaver()),
        alone(node).compile(checkpointer=InMemorySaver()),
    ):
        boss.script = [AIMessage("one", id="a"), AIMessage("two", id="b")]
        for turn in ("Hello.", ASK):
            graph.invoke({"messages": [HumanMessage(turn, id=turn)]}, config(user_id="ada"))
    attached, bare = boss.calls[1], boss.calls[3]
    strip = {"id"}  # the scripted model numbers what it says
    assert [m.model_dump_json(exclude=strip) for m in attached[:-1]] == [
        m.model_dump_json(exclude=strip) for m in bare[:-1]
    ]
    assert fences(attached[-1:]) == 1


def test_every_call_of_a_turn_begins_with_the_bytes_of_the_call_before(memory: SupervisorMemory) -> None:
    """What a provider has cached of one call serves the next one, over other nodes and new conclusions."""
    boss, worker = model("go", "done"), model(LONG, label="w")
    options: Any = {"placement": "last_user"}
    graph = memory.attach(team(boss, {"worker": worker}), **options).compile()
    graph.invoke(asking(), config(user_id="ada"))
    first, second = boss.calls
    assert fences(first) == fences(second) == 1
    assert _dumped(second[: len(first)]) == _dumped(first)


def test_the_supervisors_note_is_the_same_bytes_in_every_call_of_a_turn(memory: SupervisorMemory) -> None:
    boss, worker = model("go", "done"), model(LONG, label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    graph.invoke(asking(), config(user_id="ada"))
    first, second = boss.calls
    assert note_of(first) == note_of(second)
    assert _dumped(second[: len(first)]) == _dumped(first)


def test_words_that_are_taken_back_during_a_turn_are_quoted_no_more_in_it() -> None:
    remark = "I prefer tables. By the way, the revenue slipped because Lena was ill."
    with open_memory(settings={"standing_notes": 0}) as memory:
        memory.remember([("user", remark)], Scope("ada", session_id="before"))
        [preference] = memory.get_all(user_id="ada")

        def takes_back(_: Sequence[BaseMessage]) -> AIMessage:
            memory.delete(preference.id, user_id="ada")
            return AIMessage("found it")

        boss, worker = model("go", "done"), model(takes_back, label="w")
        graph = memory.attach(team(boss, {"worker": worker})).compile()
        graph.invoke({"messages": [("user", "Why did the revenue slip?")]}, config(user_id="ada"))
        assert ["Lena" in str(call) for call in boss.calls] == [True, False]


# --- "state"


def test_a_node_may_ask_for_the_note_in_its_state(memory: SupervisorMemory) -> None:
    seen: list[Any] = []

    def node(state: Any) -> dict[str, Any]:
        seen.append(state)
        return {"messages": [*state["messages"], AIMessage("done", id="said")]}

    options: Any = {"placement": "state"}
    saver = InMemorySaver()
    graph = memory.attach(alone(node), **options).compile(checkpointer=saver)
    state = graph.invoke({"messages": [HumanMessage(ASK, id="asked")]}, config(user_id="ada"))
    note, asked_ = seen[0]["messages"]
    assert note.text.startswith(FENCE)
    assert CANARY in note.text
    assert note.id
    assert (asked_.text, asked_.id) == (ASK, "asked")
    assert [message.id for message in state["messages"]] == ["asked", "said"]
    assert CANARY not in raw(saver)


def test_of_what_such_a_node_returns_the_note_alone_is_removed(memory: SupervisorMemory) -> None:
    """A message that quotes the note is the node's own words, and stays as the node said it."""
    quoted: list[str] = []

    def node(state: Any) -> dict[str, Any]:
        quoted.append(f"I was told: {state['messages'][0].text}")
        return {"messages": [*state["messages"], AIMessage(quoted[0], id="said")], "final_answer": quoted[0]}

    options: Any = {"placement": "state"}
    state = memory.attach(alone(node), **options).compile().invoke(asking(), config(user_id="ada"))
    assert FENCE in quoted[0]
    assert [text for _, text, _ in texts(state)] == [ASK, quoted[0]]
    assert state["final_answer"] == quoted[0]


def test_such_a_nodes_state_is_a_copy_and_the_hosts_list_stays_as_it_is(memory: SupervisorMemory) -> None:
    lists: list[Any] = []
    options: Any = {"placement": "state", "agents": ["worker"]}

    def supervisor(state: Any) -> dict[str, Any]:
        lists.append(state["messages"])
        return {"final_answer": "x"}

    def plain_node(state: Any) -> dict[str, Any]:
        lists.append(state["messages"])
        return {}

    builder = row(("before", plain_node), ("supervisor", supervisor), ("after", plain_node))
    memory.attach(builder, **options | {"agents": []}).compile().invoke(asking(), config(user_id="ada"))
    before, inside, after = lists
    assert before is after
    assert [message.text for message in after] == [ASK]
    assert inside is not before
    assert len(inside) == 2


def test_such_a_nodes_model_reads_the_note_where_the_node_passes_it_on_and_once(
    memory: SupervisorMemory,
) -> None:
    boss = model()

    def node(state: Any) -> dict[str, Any]:
        boss.invoke(OWN)
        boss.invoke(state["messages"])
        return {"final_answer": "x"}

    options: Any = {"placement": "state"}
    memory.attach(alone(node), **options).compile().invoke(asking(), config(user_id="ada"))
    assert [fences(call) for call in boss.calls] == [0, 1]


def test_the_middleware_refuses_the_state_with_a_sentence(memory: SupervisorMemory) -> None:
    placement: Any = "state"
    with pytest.raises(SettingsError, match="last_user"):
        memory.middleware(placement=placement)


def test_a_placement_that_there_is_not_is_refused_by_name(memory: SupervisorMemory) -> None:
    options: Any = {"placement": "top"}
    with pytest.raises(SettingsError, match="top"):
        memory.attach(alone(lambda _: {}), **options)
    with pytest.raises(SettingsError, match="top"):
        memory.bind_agent(create_agent(model(), [], name="worker"), **options)
    with pytest.raises(SettingsError, match="top"):
        memory.middleware(**options)


# --- one meaning


def _by_attach(memory: SupervisorMemory, boss: Any, name: str, options: Any) -> Any:
    def node(state: Any) -> dict[str, Any]:
        return {"messages": [boss.invoke([SystemMessage("base"), *state["messages"]])]}

    leads = {"supervisor": name} if name == "supervisor" else {"supervisor": None, "agents": [name]}
    return memory.attach(alone(node, name=name), **leads, **options).compile()


def _by_middleware(memory: SupervisorMemory, boss: Any, name: str, options: Any) -> Any:
    agent = None if name == "supervisor" else name
    middleware = memory.middleware(agent_id=agent, tools=[], **options)
    return create_agent(boss, [], system_prompt="base", middleware=[middleware], name=name)


def _by_binding(memory: SupervisorMemory, boss: Any, name: str, options: Any) -> Any:
    return memory.bind_agent(create_agent(boss, [], system_prompt="base", name=name), name, **options)


@pytest.mark.parametrize("placement", ["system", "last_user"])
@pytest.mark.parametrize("name", ["supervisor", "worker"])
def test_a_placement_means_the_same_wherever_it_is_said(
    memory: SupervisorMemory, placement: str, name: str
) -> None:
    ways = [_by_attach, _by_middleware, *([_by_binding] if name == "worker" else [])]
    prompts = []
    for number, way in enumerate(ways):
        boss = model("done")
        graph = way(memory, boss, name, {"placement": placement})
        graph.invoke({"messages": [("user", ASK)]}, config(f"t{number}", user_id="ada"))
        prompts.append([plain(call) for call in boss.calls])
    assert all(prompt == prompts[0] for prompt in prompts)
    assert str(prompts[0]).count(FENCE) == 1


# --- equal notes are equal bytes


async def test_equal_notes_of_two_threads_and_two_processes_are_equal_bytes(tmp_path: Path) -> None:
    settings = {"backend": "sqlite", "path": str(tmp_path)}
    with open_memory(settings=settings) as memory:
        seed(memory)
    prompts = []
    for thread in ("one", "two"):
        with open_memory(settings=settings) as memory:
            prompts.append(_dumped(await asked(memory, OWN, thread=thread)))
    assert FENCE in str(prompts[0])
    assert prompts[0] == prompts[1]


# --- calls that would drop or refuse a system message


@pytest.mark.parametrize("way", ["invoke", "bind", "stream"])
async def test_a_call_that_goes_on_from_a_response_tells_the_note_in_the_users_message(
    memory: SupervisorMemory, way: str
) -> None:
    boss = model()
    response: Any = {"previous_response_id": "resp_1"}
    ways: dict[str, Any] = {
        "invoke": lambda prompt: boss.invoke(prompt, **response),
        "bind": lambda prompt: boss.bind(**response).invoke(prompt),
        "stream": lambda prompt: [*boss.stream(prompt, **response)],
    }
    await talk(memory, lambda state: ways[way]([SystemMessage("base"), *state["messages"]]))
    system, user = boss.calls[0]
    assert system.content == "base"
    assert user.text.lstrip().startswith(FENCE)
    assert user.text.endswith(ASK)


async def test_a_model_that_goes_on_from_its_responses_sends_the_note(memory: SupervisorMemory) -> None:
    boss = offline("openai")(
        model="gpt-5",
        api_key="none",
        use_previous_response_id=True,
        disable_streaming=True,
        script=["one", "two"],
    )
    said = [
        HumanMessage("Hello."),
        AIMessage("Hello!", response_metadata={"id": "resp_1"}),
        HumanMessage(ASK),
    ]
    await talk(
        memory,
        lambda state: boss.invoke([SystemMessage("base"), *state["messages"]]),
        given={"messages": said},
    )
    (payload,) = boss.payloads
    assert payload["previous_response_id"] == "resp_1"
    assert str(payload["input"]).count(FENCE) == 1


async def test_the_first_call_of_such_a_model_holds_it_as_any_other(memory: SupervisorMemory) -> None:
    boss = offline("openai")(
        model="gpt-5",
        api_key="none",
        use_previous_response_id=True,
        disable_streaming=True,
        script=["one"],
    )
    await talk(memory, lambda state: boss.invoke([SystemMessage("base"), *state["messages"]]))
    assert [fences([message]) for message in boss.calls[0]] == [1, 0]
    assert str(boss.payloads[0]).count(FENCE) == 1


def test_the_messages_of_tools_behind_the_user_change_nothing(memory: SupervisorMemory) -> None:
    boss = model(call_of("add", a=1, b=2), "3")

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def node(state: Any) -> dict[str, Any]:
        asked_ = boss.bind_tools([add]).invoke(state["messages"])
        found = ToolMessage("3", tool_call_id=asked_.tool_calls[0]["id"])
        return {"messages": [boss.bind_tools([add]).invoke([*state["messages"], asked_, found])]}

    options: Any = {"placement": "last_user"}
    memory.attach(alone(node), **options).compile().invoke(asking(), config(user_id="ada"))
    first, second = boss.calls
    assert [fences([message]) for message in second] == [1, 0, 0]
    assert _dumped(second[:1]) == _dumped(first)
