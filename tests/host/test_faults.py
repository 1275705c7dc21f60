"""Memory never breaks the graph, never holds it up for long, and never swallows its control flow."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START
from langgraph.types import Command, RetryPolicy, interrupt
from qdrant_client import QdrantClient

from supervisor_memory import SupervisorMemory
from supervisor_memory.audit.log import RelayedLog
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from tests.breadth import HOW
from tests.cases import every_case
from tests.faulty import FaultyBackend
from tests.host.graphs import (
    ASK,
    CANARY,
    Broken,
    Graph,
    Team,
    asking,
    audit_of,
    config,
    hanging,
    model,
    open_memory,
    raising,
    seed,
    team,
    texts,
)
from tests.opened import opened

READS = ("search", "list", "get")
BRIEF = {"search_timeout_ms": 150, "write_timeout_ms": 150}


class Odd(BaseException):
    """Some libraries' errors are no Exception."""


ERRORS = [BackendUnavailable("down"), Odd("odd"), asyncio.CancelledError()]


@pytest.fixture(params=["in_memory", "json", "sqlite", "qdrant"])
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    """A store of each kind, that others are made of which fail."""
    with opened(request.param, tmp_path / "store") as backend:
        yield backend


async def played(wrap: Callable[[Any], Any], how: str = "sync") -> list[tuple[str, str, str | None]]:
    """What a turn of a team ends in."""
    builder = team(model("go", "done"), {"worker": model("found it", label="w")})
    graph = wrap(builder).compile()
    given = asking(f"{ASK} Use tables by default.", user_id="ada"), config()
    return texts(await graph.ainvoke(*given) if how == "async" else graph.invoke(*given))


def degraded(memory: SupervisorMemory) -> set[str]:
    return {row["op"] for row in audit_of(memory) if row["outcome"] == "degraded"}


@pytest.mark.one_in(6)
@HOW
@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("methods", [READS, ("audit",), ("batch",)], ids=",".join)
async def test_a_backend_that_fails_changes_no_answer(
    inner: MemoryBackend, how: str, error: BaseException, methods: Any
) -> None:
    healthy = open_memory(backend=inner)
    seed(healthy)
    bare = await played(lambda builder: builder)
    backend = Broken(inner, **dict.fromkeys(methods, raising(error)))
    memory = open_memory(backend=backend, settings=BRIEF)
    assert await played(memory.attach, how) == bare
    if methods == READS:
        assert degraded(healthy) == {"recall", "remember"}


@pytest.mark.one_in(3)
@HOW
@pytest.mark.parametrize("answer", ["garbage", None], ids=repr)
async def test_a_backend_that_answers_garbage_changes_no_answer(
    inner: MemoryBackend, how: str, answer: Any
) -> None:
    bare = await played(lambda builder: builder)
    backend = Broken(inner, **dict.fromkeys(READS, lambda *_args, **_options: answer))
    memory = open_memory(backend=backend, settings=BRIEF)
    assert await played(memory.attach, how) == bare
    assert degraded(memory) == {"recall", "remember"}


@HOW
async def test_a_store_that_fails_behind_a_journal_changes_no_answer_and_takes_all_later(how: str) -> None:
    store = FaultyBackend(QdrantBackend(QdrantClient(":memory:"), audit=RelayedLog()))
    journal = JournalBackend(store, breaker=Breaker(seconds=0.05), read_seconds=9, write_seconds=9)
    memory = open_memory(backend=journal)
    for method in ("search", "list", "get", "batch", "health"):
        store.break_(method, "raises")
    bare = await played(lambda builder: builder)
    assert await played(memory.attach, how) == bare
    assert {"recall", "commit.deferred"} <= degraded(memory)
    store.mend()
    until = time.monotonic() + 60
    while any(journal.backlog().values()) and time.monotonic() < until:
        journal.replay()
    assert not any(journal.backlog().values())
    assert sum("Use tables" in r.content for r in store.contents() if r.layer == "abstract") == 1


@pytest.mark.one_in(3)
@HOW
async def test_a_backend_that_hangs_costs_its_deadline_and_no_more(inner: MemoryBackend, how: str) -> None:
    backend = Broken(inner, **dict.fromkeys(READS, hanging()))
    memory = open_memory(backend=backend, settings=BRIEF)
    bare = await played(lambda builder: builder)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    begin = time.monotonic()
    assert await played(memory.attach, how) == bare
    elapsed = time.monotonic() - begin
    ticking.cancel()
    assert elapsed < 2.5
    assert how == "sync" or ticks > 20
    assert "recall" in degraded(memory)


@HOW
async def test_a_backend_whose_every_method_hangs_still_lets_the_graph_answer(how: str) -> None:
    class Hanging(Broken):
        def batch(self, *args: Any) -> Any:
            return hanging()()

    backend = Hanging(InMemoryBackend(), **dict.fromkeys(READS, hanging()))
    memory = open_memory(backend=backend, settings=BRIEF)
    bare = await played(lambda builder: builder)
    begin = time.monotonic()
    assert await played(memory.attach, how) == bare
    assert time.monotonic() - begin < 3


class Embedder(Embeddings):
    def __init__(self, fail: Callable[..., Any]) -> None:
        self.fail = fail

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.fail(texts)  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        return self.fail(text)  # type: ignore[no-any-return]


@pytest.mark.one_in(2)
@HOW
@pytest.mark.parametrize(
    "fail",
    [raising(RuntimeError("no model")), raising(Odd()), hanging(), lambda given: "nonsense"],
    ids=["raises", "raises-oddly", "hangs", "nonsense"],
)
async def test_an_embedder_that_fails_changes_no_answer_and_words_still_find(how: str, fail: Any) -> None:
    inner = InMemoryBackend()
    with open_memory(backend=inner) as healthy:
        seed(healthy)
    bare = await played(lambda builder: builder)
    brief = {"search_timeout_ms": 800, "write_timeout_ms": 800}
    memory = open_memory(backend=inner, embedder=Embedder(fail), settings=brief)
    assert await played(memory.attach, how) == bare
    assert "recall" in degraded(memory)
    boss = model("done")
    memory.attach(team(boss, {})).compile().invoke(asking(user_id="ada"), config())
    assert CANARY in boss.prompts[0]


@HOW
async def test_what_an_agent_leaves_behind_may_be_of_any_kind(how: str) -> None:
    class Uncomparable:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    effects = [np.zeros(3), Uncomparable(), {"type": "csv", "path": 5}, None, object()]

    def work(state: Any) -> Any:
        return {
            "side_effects": [*state.get("side_effects", []), *effects],
            "final_answer": np.zeros(2),
            "conclusion": SimpleNamespace(conclusion=5),
        }

    class Odd(Team, total=False):
        conclusion: Any

    builder = Graph(Odd)
    builder.add_node("supervisor", lambda state: {"side_effects": effects})
    builder.add_node("worker", work)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    with open_memory() as memory:
        graph = memory.attach(builder).compile()
        given = asking(user_id="ada"), config()
        state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        assert len(state["side_effects"]) == 2 * len(effects)


@every_case("result", [None, "text", 7, [], (), [None], {}, {"messages": None}])
def test_a_node_may_give_back_anything_that_langgraph_takes(result: Any) -> None:
    def wrapped(wrap: Callable[[Any], Any]) -> Any:
        builder = Graph(Team)
        builder.add_node("supervisor", lambda state: result)
        builder.add_edge(START, "supervisor")
        try:
            return texts(wrap(builder).compile().invoke(asking(user_id="ada"), config()))
        except Exception as error:  # noqa: BLE001
            return type(error)

    with open_memory() as memory:
        assert wrapped(memory.attach) == wrapped(lambda builder: builder)


# --- control flow


@HOW
async def test_a_node_that_asks_the_user_is_resumed_and_remembered_once(how: str) -> None:
    def work(state: Any) -> Any:
        return {"messages": [AIMessage(f"They said {interrupt('which month?')}.", name="worker")]}

    builder = team(model("go", "done"), {"worker": model()})
    builder.nodes["worker"] = Graph(Team).add_node("worker", work).nodes["worker"]
    with open_memory() as memory:
        seed(memory)
        graph = memory.attach(builder).compile(checkpointer=InMemorySaver())

        async def run(given: Any) -> Any:
            return await graph.ainvoke(given, config()) if how == "async" else graph.invoke(given, config())

        paused = await run(asking("Always use tables by default.", user_id="ada"))
        assert paused["__interrupt__"][0].value == "which month?"
        end = await run(Command(resume="May"))
        assert [text for _, text, _ in texts(end)][-2:] == ["They said May.", "done"]
        assert sum("by default" in r.content for r in memory.get_all(user_id="ada")) == 1
        assert degraded(memory) == set()


@HOW
async def test_commands_lead_where_they_led(how: str) -> None:
    inner = Graph(Team)
    inner.add_node(
        "step",
        lambda state: Command(graph=Command.PARENT, goto="last", update={"messages": [("ai", "from below")]}),
    )
    inner.add_edge(START, "step")
    builder = Graph(Team)
    builder.add_node("supervisor", lambda state: Command(goto="worker", update={"messages": [("ai", "go")]}))
    builder.add_node("worker", inner.compile(), destinations=("last",))
    builder.add_node("last", lambda state: {"messages": [("ai", "last")]})
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        seed(memory)
        graph = memory.attach(builder).compile()
        given = asking(user_id="ada"), config()
        state = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        assert [text for _, text, _ in texts(state)] == [ASK, "go", "from below", "last"]


@HOW
async def test_errors_of_the_hosts_nodes_are_the_hosts_and_the_user_is_heard(how: str) -> None:
    def fail(state: Any) -> Any:
        raise ZeroDivisionError("of the host")

    builder = Graph(Team)
    builder.add_node("supervisor", fail)
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        graph = memory.attach(builder).compile()
        given = asking("Always use tables by default.", user_id="ada"), config()
        with pytest.raises(ZeroDivisionError, match="of the host"):
            _ = await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
        known = [record.content for record in memory.get_all(user_id="ada")]
        assert known == ["Always use tables by default."]


def test_retries_and_recursion_limits_hold() -> None:
    tries: list[int] = []

    def flaky(state: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("again")
        return {"messages": [("ai", "done")]}

    builder = Graph(Team)
    policy = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False)
    builder.add_node("supervisor", flaky, retry_policy=policy)
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        memory.attach(builder).compile().invoke(
            asking("Always use tables by default.", user_id="ada"), config()
        )
        assert len(tries) == 3
        assert len(memory.get_all(user_id="ada")) == 1
        builder.add_edge("supervisor", "supervisor")
        with pytest.raises(GraphRecursionError):
            memory.attach(builder).compile().invoke(asking(user_id="ada"), {**config(), "recursion_limit": 4})


async def test_a_cancelled_run_ends_at_once_and_the_next_one_works() -> None:
    async def slow(state: Any) -> Any:
        await asyncio.sleep(30)

    builder = team(model("go"), {"worker": model()})
    builder.nodes["worker"] = Graph(Team).add_node("worker", slow).nodes["worker"]
    with open_memory() as memory:
        seed(memory)
        running = asyncio.create_task(
            memory.attach(builder).compile().ainvoke(asking(user_id="ada"), config())
        )
        await asyncio.sleep(0.3)
        begin = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - begin < 1
        assert len(await played(memory.attach, "async")) == 4


async def test_a_run_cancelled_while_memory_hangs_ends_at_once() -> None:
    backend = Broken(InMemoryBackend(), search=hanging(), list=hanging())
    memory = open_memory(backend=backend, settings={"search_timeout_ms": 3000})
    running = asyncio.create_task(played(memory.attach, "async"))
    await asyncio.sleep(0.2)
    begin = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - begin < 1


@HOW
async def test_a_node_of_one_kind_stays_of_that_kind(how: str) -> None:
    async def speak(state: Any) -> Any:
        return {"messages": [("ai", "done")]}

    builder = Graph(Team)
    builder.add_node("supervisor", speak)
    builder.add_edge(START, "supervisor")
    with open_memory() as memory:
        graph = memory.attach(builder).compile()
        if how == "sync":
            with pytest.raises(TypeError, match="No synchronous function"):
                graph.invoke(asking(user_id="ada"), config())
        else:
            assert (await graph.ainvoke(asking(user_id="ada"), config()))["messages"][-1].text == "done"
