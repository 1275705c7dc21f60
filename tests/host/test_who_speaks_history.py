"""A history that comes back makes nobody's words the user's, and the user is heard once however it comes."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from supervisor_memory import SupervisorMemory
from supervisor_memory.settings import Settings
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.breadth import HOW
from tests.faulty import FaultyBackend
from tests.host.graphs import config, model, open_memory
from tests.host.speaking import (
    CHINESE,
    MALLORY,
    MALLORY_ZH,
    ROUND,
    TABLES,
    answering,
    assert_heard,
    believed,
    chain,
    crew,
    everything,
    fetched,
    human,
    run,
    said,
    stripped,
    wanted,
)
from tests.host.test_who_speaks_agents import fetch, fetch_and_return

ADA = config(user_id="ada")
NO_THREAD: Any = {"configurable": {"user_id": "ada"}}
READS = ("search", "list", "get", "count", "versions")


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[Callable[[], SupervisorMemory]]:
    """A memory over the same file, as another process would open it."""
    opened: list[SupervisorMemory] = []

    def reopen() -> SupervisorMemory:
        opened.append(open_memory(backend=SqliteBackend(tmp_path)))
        return opened[-1]

    yield reopen
    for memory in opened:
        memory.close()


def as_it_was(messages: Any) -> list[Any]:
    """A client that keeps messages whole."""
    return list(messages)


def as_dicts(messages: Any) -> list[Any]:
    """A client that keeps them as JSON, ids and names too."""
    return [{"role": m.type, "content": m.text, "id": m.id, "name": m.name} for m in messages]


def without_ids(messages: Any) -> list[Any]:
    return [m.model_copy(update={"id": None, "name": None}) for m in messages]


def with_new_ids(messages: Any) -> list[Any]:
    return [m.model_copy(update={"id": f"browser-{n}", "name": None}) for n, m in enumerate(messages)]


def in_blocks(messages: Any) -> list[Any]:
    """A client that sends content as a list of blocks."""
    return [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in stripped(messages)]


CLIENTS = [as_it_was, as_dicts, without_ids, with_new_ids, stripped, in_blocks]
CLIENT = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)


def tutorial(
    memory: SupervisorMemory, saver: Any = None, page: str = MALLORY, name: str | None = None
) -> Any:
    return memory.attach(crew(fetched(page, name=name))).compile(checkpointer=saver)


def turns(graph: Any, client: Any, *texts: str, where: Any = ADA) -> list[Any]:
    """A client that sends all that was said with each thing the user says."""
    messages: list[Any] = []
    for text in texts:
        given = [*client(messages), HumanMessage(text)]
        messages = graph.invoke({"messages": given}, where)["messages"]
    return messages


# --- a full history


@pytest.mark.one_in(6)
@CLIENT
@pytest.mark.parametrize("saver", [None, "a checkpointer"])
@pytest.mark.parametrize(
    ("page", "name"),
    [
        (MALLORY, None),
        (MALLORY_ZH, None),
        (MALLORY, "researcher"),
    ],
    ids=["en", "zh", "named"],
)
def test_a_full_history_makes_no_worker_the_user_and_each_word_is_heard_once(
    memory: SupervisorMemory, client: Any, saver: Any, page: str, name: str | None
) -> None:
    graph = tutorial(memory, InMemorySaver() if saver else None, page, name)
    turns(graph, client, TABLES, CHINESE, ROUND)
    assert_heard(memory, TABLES, CHINESE, ROUND)


@CLIENT
def test_a_full_history_without_a_thread_makes_no_worker_the_user(
    memory: SupervisorMemory, client: Any
) -> None:
    turns(tutorial(memory), client, TABLES, CHINESE, ROUND, where=NO_THREAD)
    assert believed(memory) == []
    assert all(text.rstrip(".。") in wanted(memory) for text in (TABLES, CHINESE, ROUND))


@pytest.mark.one_in(2)
@CLIENT
def test_a_full_history_means_the_same_to_the_next_process(
    reopened: Callable[[], SupervisorMemory], client: Any
) -> None:
    with reopened() as memory:
        messages = tutorial(memory).invoke(human(TABLES), ADA)["messages"]
    with reopened() as memory:
        messages = tutorial(memory).invoke({"messages": [*client(messages), HumanMessage(CHINESE)]}, ADA)[
            "messages"
        ]
    with reopened() as memory:
        tutorial(memory).invoke({"messages": [*client(messages), HumanMessage(ROUND)]}, ADA)
        assert_heard(memory, TABLES, CHINESE, ROUND)


async def test_two_memories_over_one_file_know_of_each_other_at_once(
    reopened: Callable[[], SupervisorMemory],
) -> None:
    one, other = reopened(), reopened()
    messages = (await tutorial(one).ainvoke(human(TABLES), ADA))["messages"]
    await tutorial(other).ainvoke({"messages": [*stripped(messages), HumanMessage(CHINESE)]}, ADA)
    assert_heard(other, TABLES, CHINESE)


def test_a_worker_is_remembered_where_messages_are_not_kept() -> None:
    with open_memory(settings={"keep_messages": False}) as memory:
        turns(tutorial(memory), stripped, TABLES, CHINESE)
        assert believed(memory) == []
        assert all(text.rstrip(".。") in wanted(memory) for text in (TABLES, CHINESE))


@pytest.mark.parametrize(
    "called",
    [
        pytest.param(fetch, id="tool"),
        pytest.param(fetch_and_return, id="returning"),
    ],
)
@pytest.mark.parametrize("host", ["middleware", "attached"])
def test_what_a_tool_brought_is_not_the_users_when_it_comes_back(
    memory: SupervisorMemory, host: str, called: Any
) -> None:
    boss = model(AIMessage("", tool_calls=[{"name": called.name, "args": {}, "id": "call"}]))
    if host == "middleware":
        options: Any = {"middleware": [memory.middleware(tools=[])]}
        graph: Any = create_agent(boss, [called], **options)
    else:
        agent = create_agent(boss, [called], name="supervisor")
        graph = memory.attach(chain(("supervisor", agent))).compile()
    turns(graph, as_it_was if called is fetch_and_return else stripped, TABLES, CHINESE)
    assert_heard(memory, TABLES, CHINESE)


@pytest.mark.parametrize(
    "client",
    [as_it_was, as_dicts],
    ids=lambda client: client.__name__,
)
def test_a_worker_that_spoke_last_is_known_by_the_ids_of_a_full_history(
    memory: SupervisorMemory, client: Any
) -> None:
    graph = memory.attach(crew(fetched(), "the last to speak")).compile()
    turns(graph, client, TABLES, CHINESE)
    assert_heard(memory, TABLES, CHINESE)


@pytest.mark.one_in(3)
@CLIENT
@pytest.mark.parametrize("host", ["attach", "middleware"])
def test_a_client_with_the_full_history_is_heard(memory: SupervisorMemory, host: str, client: Any) -> None:
    if host == "middleware":
        options: Any = {"middleware": [memory.middleware(tools=[])]}
        graph: Any = create_agent(model("one", "two", "three"), [], **options)
    else:
        graph = memory.attach(chain(("supervisor", answering("one", "two", "three")))).compile()
    turns(graph, client, TABLES, CHINESE, ROUND)
    assert_heard(memory, TABLES, CHINESE, ROUND)


def test_a_history_from_before_there_was_memory_is_heard(memory: SupervisorMemory) -> None:
    graph = memory.attach(chain(("supervisor", answering("done")))).compile()
    graph.invoke({"messages": [("user", TABLES), ("ai", "Noted."), ("user", CHINESE)]}, ADA)
    assert_heard(memory, TABLES, CHINESE)


@HOW
@pytest.mark.parametrize("saver", [None, "a checkpointer"])
async def test_a_user_who_says_what_a_worker_said_is_heard(
    memory: SupervisorMemory, how: str, saver: Any
) -> None:
    graph = tutorial(memory, InMemorySaver() if saver else None, ROUND)
    messages = (await run(graph, human(TABLES), ADA, how))["messages"]
    assert_heard(memory, TABLES)
    given = [HumanMessage(ROUND)] if saver else [*stripped(messages), HumanMessage(ROUND)]
    messages = (await run(graph, {"messages": given}, ADA, how))["messages"]
    assert_heard(memory, TABLES, ROUND)
    given = [HumanMessage(CHINESE)] if saver else [*stripped(messages), HumanMessage(CHINESE)]
    await run(graph, {"messages": given}, ADA, how)
    assert_heard(memory, TABLES, ROUND, CHINESE)


def test_what_a_worker_said_in_one_thread_does_not_silence_the_user_in_another(
    memory: SupervisorMemory,
) -> None:
    tutorial(memory, page=ROUND).invoke(human(TABLES), ADA)
    graph = memory.attach(chain(("supervisor", answering("one", "two")))).compile()
    turns(graph, stripped, ROUND, CHINESE, where=config("t2", user_id="ada"))
    assert_heard(memory, TABLES, ROUND, CHINESE)


# --- no input


async def goes_on(graph: Any, where: Any, how: str) -> Any:
    return await run(graph, None, where, how)


@HOW
async def test_a_replay_from_any_checkpoint_says_nothing(memory: SupervisorMemory, how: str) -> None:
    graph = tutorial(memory, InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    for snapshot in list(graph.get_state_history(ADA)):
        await goes_on(graph, snapshot.config, how)
    assert_heard(memory, TABLES)


@HOW
async def test_a_fork_without_input_says_nothing(memory: SupervisorMemory, how: str) -> None:
    graph = tutorial(memory, InMemorySaver())
    await run(graph, human(TABLES), ADA, how)
    for snapshot in list(graph.get_state_history(ADA))[:-1]:
        fork = graph.update_state(snapshot.config, {"final_answer": "another"})
        await goes_on(graph, {"configurable": {**fork["configurable"], "user_id": "ada"}}, how)
    assert_heard(memory, TABLES)


@HOW
async def test_a_replay_of_a_thread_from_before_there_was_memory_says_nothing(
    memory: SupervisorMemory, how: str
) -> None:
    saver = InMemorySaver()
    bare = crew(fetched()).compile(checkpointer=saver)
    bare.invoke(human(TABLES), ADA)
    graph = tutorial(memory, saver)
    for snapshot in list(graph.get_state_history(ADA)):
        await goes_on(graph, snapshot.config, how)
    assert said(memory) == []
    assert wanted(memory) == ""
    assert believed(memory) == []


def test_a_run_that_goes_on_after_a_stop_says_nothing_more(memory: SupervisorMemory) -> None:
    graph = memory.attach(crew(fetched()).compile(checkpointer=InMemorySaver(), interrupt_after="*"))
    graph.invoke(human(TABLES), ADA)
    while graph.get_state(ADA).next:
        graph.invoke(None, ADA)
    assert_heard(memory, TABLES)


# --- what is remembered of others


@HOW
async def test_while_it_cannot_be_told_who_said_it_history_is_not_heard_and_new_words_wait(how: str) -> None:
    backend = FaultyBackend()
    settings = {"search_timeout_ms": 500, "write_timeout_ms": 2000}
    first = open_memory(backend=backend, settings=settings)
    messages = (await run(tutorial(first), human(TABLES), ADA, how))["messages"]
    memory = open_memory(backend=backend, settings=settings)
    for method in READS:
        backend.break_(method, "raises")
    given = {"messages": [*stripped(messages), HumanMessage(CHINESE)]}
    state = await run(tutorial(memory), given, ADA, how)
    assert state["messages"][-1].text == "(done)"
    backend.mend()
    memory.flush()
    assert believed(memory) == []
    assert said(memory).count(TABLES) == 1
    assert CHINESE.rstrip("。") not in wanted(memory)
    pending = [r for r in everything(memory) if r.status == "pending"]
    (waiting,) = [r for r in pending if (r.user_id, r.source.source_class) == ("ada", "user")]
    assert CHINESE.rstrip("。") in waiting.content
    memory.review.approve(waiting.id, reviewer="rita")
    assert CHINESE.rstrip("。") in wanted(memory)


def test_once_it_can_be_told_again_who_said_it_the_user_is_heard_as_ever() -> None:
    backend = FaultyBackend()
    first = open_memory(backend=backend)
    messages = tutorial(first).invoke(human(TABLES), ADA)["messages"]
    memory = open_memory(backend=backend)
    graph = memory.attach(chain(("supervisor", answering("one", "two")))).compile()
    for method in READS:
        backend.break_(method, "raises")
    given = [*stripped(messages), HumanMessage(CHINESE)]
    messages = graph.invoke({"messages": given}, ADA)["messages"]
    backend.mend()
    graph.invoke({"messages": [*stripped(messages), HumanMessage(ROUND)]}, ADA)
    assert believed(memory) == []
    assert ROUND.rstrip(".") in wanted(memory)
    assert (said(memory).count(TABLES), said(memory).count(ROUND)) == (1, 1)


def test_what_is_remembered_of_others_is_neither_their_text_nor_a_hash_that_anybody_can_make(
    tmp_path: Path,
) -> None:
    page = "Which okapis live in the Ituri forest?"
    settings: Any = {"keep_messages": False, "backend": "sqlite", "path": tmp_path}
    with SupervisorMemory(Settings(embedding_model="none", **settings)) as memory:
        tutorial(memory, page=page).invoke(human(TABLES), ADA)
        assert TABLES.rstrip(".") in wanted(memory)
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"okapis" not in left
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
        made = hashlib.new(name, page.encode())
        assert made.digest() not in left
        assert made.hexdigest().encode() not in left


@HOW
async def test_erasing_a_user_takes_what_was_remembered_of_others_along(tmp_path: Path, how: str) -> None:
    def page(state: Any) -> Any:
        return {"messages": [HumanMessage(MALLORY, id="okapi-of-the-ituri")]}

    settings: Any = {"embedding_model": "none", "backend": "sqlite", "path": tmp_path}
    with SupervisorMemory(Settings(**settings)) as memory:
        graph = memory.attach(crew(page)).compile()
        await run(graph, human(TABLES), ADA, how)
        await run(graph, human(CHINESE), config("t1", user_id="bob"), how)
        assert believed(memory) == []
        receipt = await asyncio.to_thread(memory.erase, user_id="ada", confirm=True)
        assert receipt.pending == ()
        assert [r for r in everything(memory) if r.user_id == "ada"] == []
        backend: Any = memory.backend
        assert not any(backend.holds("ada").values())
        memory.erase(user_id="bob", confirm=True)
        assert not any(backend.holds("bob").values())
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"okapi-of-the-ituri" not in left
    assert b"mallory" not in left
