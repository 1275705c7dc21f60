"""Who is acting in a run, and that nobody sees another's memory."""

import dataclasses
from typing import Any
from uuid import UUID

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from supervisor_memory import SupervisorMemory
from supervisor_memory.host.ways_in.attach import _shape_of
from tests.breadth import HOW
from tests.host.graphs import (
    CANARY,
    Graph,
    Team,
    accesses_of,
    asking,
    audit_of,
    config,
    model,
    outcomes,
    seed,
    team,
)
from tests.host.speaking import everything


@dataclasses.dataclass
class Context:
    user_id: str = ""
    langgraph_user_id: str = ""


async def prompt_of(
    memory: SupervisorMemory,
    *,
    how: str = "sync",
    state: Any = None,
    where: Any = None,
    identity: Any = None,
    **options: Any,
) -> str:
    """What reaches the supervisor's model in a run."""
    boss = model("done")
    builder = Graph(Team, context_schema=Context if "context" in options else None)
    builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_edge(START, "supervisor")
    graph = memory.attach(builder, identity=identity).compile()
    given = asking(**(state or {})), where or {"configurable": {}}
    end = await graph.ainvoke(*given, **options) if how == "async" else graph.invoke(*given, **options)
    assert end["messages"][-1].text == "done"
    return boss.prompts[0]


@HOW
@pytest.mark.parametrize(
    "said",
    [
        {"identity": lambda state, config: "ada"},
        {"context": Context(user_id="ada")},
        {"context": Context(langgraph_user_id="ada")},
        {"where": config(user_id="ada")},
        {"where": config(langgraph_user_id="ada")},
        {"where": config(langgraph_auth_user={"identity": "ada"})},
        {"state": {"user_id": "ada"}},
        {"state": {"user_id": "ada"}, "where": config(user_id="ada", langgraph_user_id="ada")},
        {"state": {"user_id": ""}, "where": config(user_id="ada")},
        {"identity": lambda state, config: None, "where": config(user_id="ada")},
    ],
    ids="+".join,
)
async def test_a_user_is_known_from_what_the_host_trusts(
    memory: SupervisorMemory, how: str, said: Any
) -> None:
    assert CANARY in await prompt_of(memory, how=how, **said)
    assert CANARY not in await prompt_of(memory, how=how, where=config(user_id="eve"))


@HOW
@pytest.mark.parametrize(
    "said",
    [
        {"state": {"user_id": "eve"}, "where": config(user_id="ada")},
        {"where": config(user_id="ada", langgraph_user_id="eve")},
        {"identity": lambda state, config: "eve", "state": {"user_id": "ada"}},
        {"context": Context(user_id="eve"), "where": config(user_id="ada")},
        {"where": config(user_id="ada", langgraph_auth_user={"identity": "eve"})},
    ],
    ids="+".join,
)
async def test_two_users_in_one_run_switch_memory_off_and_are_audited(
    memory: SupervisorMemory, how: str, said: Any
) -> None:
    before = len(audit_of(memory))
    assert CANARY not in await prompt_of(memory, how=how, **said)
    assert outcomes(memory, "identity") == [("denied", "IdentityConflict")]
    assert len(audit_of(memory)) == before + 1
    assert accesses_of(memory) == []


async def test_the_log_says_where_two_users_were_named_and_not_who_they_are(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture
) -> None:
    await prompt_of(memory, where=config(user_id="ada-x7", langgraph_user_id="eve-x7"))
    assert "configurable.user_id, configurable.langgraph_user_id" in caplog.text
    assert "x7" not in caplog.text


@pytest.mark.parametrize(
    "user",
    ["ada\u200b", "\u202eada", "ada\u0301\u0000", " ada", "x" * 300, "null", 0, True, ["ada"], {"id": "ada"}],
)
async def test_an_id_that_could_pass_for_another_switches_memory_off(
    memory: SupervisorMemory, user: Any
) -> None:
    assert CANARY not in await prompt_of(memory, where=config(user_id=user))
    assert [outcome for outcome, _ in outcomes(memory, "identity")] == ["denied"]


@HOW
async def test_a_resolver_that_fails_switches_memory_off_and_not_the_graph(
    memory: SupervisorMemory, how: str
) -> None:
    def resolver(state: Any, config: Any) -> str:
        raise LookupError("no such session")

    assert CANARY not in await prompt_of(memory, how=how, identity=resolver, where=config(user_id="ada"))
    assert outcomes(memory, "identity") == [("denied", "IdentityError")]


def test_a_resolver_reads_values_of_a_state_as_it_reads_the_state() -> None:
    @dataclasses.dataclass
    class Fields:
        user_id: str = "bob"

    class Model(BaseModel):
        user_id: str = "bob"

    for schema in (Fields, Model):
        assert _shape_of(schema)({"user_id": "ada"}).user_id == "ada"
    assert _shape_of(Team)({"user_id": "ada"}) == {"user_id": "ada"}


@pytest.mark.parametrize("user", ["ada@example.com", "org.team.ada", "用户一", "a/b", "O'Brien; DROP"])
async def test_ids_of_every_honest_kind_work(memory: SupervisorMemory, user: str) -> None:
    seed(memory, user)
    assert CANARY in await prompt_of(memory, where=config(user_id=user))
    assert CANARY not in await prompt_of(memory, where=config(user_id=user + "x"))


@HOW
async def test_a_thread_without_a_user_has_an_anonymous_one_of_its_own(
    memory: SupervisorMemory, how: str
) -> None:
    statement = "Always round revenue to whole numbers."
    boss, worker = model("go", "done", "go", "done"), model("found", "found", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    for thread in ("one", "two"):
        given = asking(statement), config(thread)
        _ = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    owners = {memory.backend.get([row.record_id])[0].user_id for row in _written(memory, "user_profile")}
    ada, *anonymous = sorted(owners)
    assert (ada, len(anonymous)) == ("ada", 2)
    assert all(owner.startswith("anon:") for owner in anonymous)
    for prompt in worker.prompts:
        assert prompt.count("whole numbers") == 1


def _written(memory: SupervisorMemory, family: str) -> Any:
    return [row for row in memory.backend.audit.tail(1000, op="add") if row.event["family"] == family]


def test_an_anonymous_user_is_the_same_at_every_hook_and_in_every_turn(memory: SupervisorMemory) -> None:
    boss, worker = model("go", "done", "go", "done"), model("found", "found", label="w")
    graph = memory.attach(team(boss, {"worker": worker})).compile()
    graph.invoke(asking("Always round revenue to whole numbers."), config("one"))
    graph.invoke(asking("What was the revenue?"), config("one"))
    seen = memory.backend.audit.accesses(100)
    assert len({row.subject for row in seen}) == 1
    assert {row.agent_id for row in seen} == {None, "worker"}
    assert all("whole numbers" in prompt for prompt in (*boss.prompts[2:], *worker.prompts[1:]))


@HOW
async def test_without_user_and_thread_memory_is_off(memory: SupervisorMemory, how: str) -> None:
    before = len(audit_of(memory))
    assert CANARY not in await prompt_of(memory, how=how)
    assert outcomes(memory, "identity") == [("denied", "MissingUser")]
    assert len(audit_of(memory)) == before + 1


def test_a_node_that_reads_few_keys_still_knows_the_user_of_the_graph(memory: SupervisorMemory) -> None:
    class Narrow(TypedDict):
        messages: list[Any]

    seen: list[Any] = []
    inner = model("done")

    def work(state: Any) -> Any:
        seen.append(state)
        return {"messages": [inner.invoke(state["messages"])]}

    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: {})
    builder.add_node("worker", work, input_schema=Narrow)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    memory.attach(builder).compile().invoke(asking(user_id="ada"), config())
    assert set(seen[0]) == {"messages"}
    assert CANARY in inner.prompts[0]


@HOW
async def test_one_user_never_reads_another(memory: SupervisorMemory, how: str) -> None:
    boss = model("Hello there.", "Hello there.")
    graph = memory.attach(team(boss, {})).compile(checkpointer=InMemorySaver())
    for user, text in (("bob", "Always mention the badger."), ("eve", "Always mention the ferret.")):
        given = asking(text), config(user, user_id=user)
        _ = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    for user, own, other in (("bob", "badger", "ferret"), ("eve", "ferret", "badger")):
        prompt = await prompt_of(memory, how=how, where=config("new", user_id=user))
        assert own in prompt
        assert other not in prompt
        assert CANARY not in prompt


@HOW
async def test_what_was_said_in_one_task_is_not_read_in_another(memory: SupervisorMemory, how: str) -> None:
    boss = model("Well.", "Well.")
    graph = memory.attach(team(boss, {})).compile()
    for task, text in (("north", "Always mention the badger."), ("south", "Always mention the ferret.")):
        given = asking(text), config(task, user_id="bob", memory_task=task)
        _ = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    north = await prompt_of(memory, how=how, where=config("new", user_id="bob", memory_task="north"))
    assert ("badger" in north, "ferret" in north) == (True, False)
    outside = await prompt_of(memory, how=how, where=config("new", user_id="bob"))
    assert ("badger" in outside, "ferret" in outside) == (False, False)


def test_the_next_speaker_of_a_thread_does_not_inherit_its_user(memory: SupervisorMemory) -> None:
    boss = model("done", "done")
    graph = memory.attach(team(boss, {})).compile(checkpointer=InMemorySaver())
    graph.invoke(asking(user_id="ada"), config("shared", user_id="ada"))
    graph.invoke(asking(), config("shared", user_id="eve"))
    assert [CANARY in prompt for prompt in boss.prompts] == [True, False]
    assert outcomes(memory, "identity") == [("denied", "IdentityConflict")]


@HOW
@pytest.mark.parametrize("form", ["dict", "command", "pairs"])
async def test_a_node_cannot_make_the_run_anothers(memory: SupervisorMemory, how: str, form: str) -> None:
    update: Any = {"user_id": "ada", "messages": [("ai", "I am somebody else now")]}
    forms = {"dict": update, "command": Command(update=update), "pairs": Command(update=list(update.items()))}
    boss = model("go", "done")
    builder = team(boss, {"worker": model()}, order=["worker"])
    builder.nodes["worker"] = Graph(Team).add_node("worker", lambda state: forms[form]).nodes["worker"]
    builder.branches.pop("supervisor")
    builder.add_conditional_edges("supervisor", lambda state: END if len(boss.calls) > 1 else "worker")
    given = asking(user_id="eve"), config()
    graph = memory.attach(builder).compile()
    state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert not any(CANARY in prompt for prompt in boss.prompts)
    assert state["user_id"] == "ada"  # the state is the host's, and as it would be without memory
    assert {record.user_id for record in everything(memory) if CANARY not in record.content} == {"eve"}


def test_a_node_cannot_name_the_user_where_nobody_is(memory: SupervisorMemory) -> None:
    boss = model("done")
    builder = team(boss, {})
    builder.add_node("login", lambda state: {"user_id": "ada"})
    builder.edges.discard((START, "supervisor"))
    builder.add_edge(START, "login")
    builder.add_edge("login", "supervisor")
    state = memory.attach(builder).compile().invoke(asking(), config())
    assert state["user_id"] == "ada"
    assert CANARY not in boss.prompts[0]


@pytest.mark.parametrize(
    ("given", "user"),
    [(42, "42"), (UUID(int=7), "00000000-0000-0000-0000-000000000007")],
    ids=["int", "uuid"],
)
def test_the_key_of_a_database_is_a_user_as_text(memory: SupervisorMemory, given: Any, user: str) -> None:
    memory.write(f"Revenue means {CANARY} net of tax", user_id=user, kind="domain-facts")
    boss = model("done")
    graph = memory.attach(team(boss, {}).compile())
    graph.invoke(asking(), config(user_id=given))
    assert CANARY in boss.prompts[0]
