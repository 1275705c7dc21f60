"""Erased is gone: out of every answer, out of the files, and for what comes late."""

import ast
import contextlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient

import supervisor_memory
from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, ConfirmationRequired, SupervisorMemoryError, WasErased
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter
from supervisor_memory.stores.caches import MODULES_THAT_KEEP_TEXTS
from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.records import assert_chain
from supervisor_memory.testing.scripted import ScriptedModel
from tests import programs
from tests.canaries import CANARIES, USERS, Dense, World, left_of
from tests.opened import IN_PROCESS

ROOT = Path(__file__).parent.parent
WITHOUT_TEXTS = {
    "supervisor_memory.audit.turns",
    "supervisor_memory.language.prompts",
    "supervisor_memory.language.lexicon",
    "supervisor_memory.model.replacing",
    "supervisor_memory.host.tools",
    "supervisor_memory.understand.sense",
    "supervisor_memory.wiring.models",
    "supervisor_memory.host.ways_in.inside",
    "supervisor_memory.interfaces.dashboard.visit",
    "supervisor_memory.disk.files",
    "supervisor_memory.embedding.word_pieces",  # single characters
    "supervisor_memory.stages.pre_insert.specialists",
    "supervisor_memory.understand.relations",
}


def opened(name: str, path: Path) -> MemoryBackend:
    kinds: dict[str, Callable[[], MemoryBackend]] = {
        "in_memory": InMemoryBackend,
        "json": lambda: JsonBackend(path),
        "sqlite": lambda: SqliteBackend(path),
        "base_store": lambda: BaseStoreBackend(InMemoryStore(), audit=path),
        "qdrant": lambda: QdrantBackend(QdrantClient(":memory:"), audit=path),
    }
    return kinds[name]()


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    backend = opened(request.param, tmp_path / "store")
    yield backend
    backend.close()


@pytest.fixture
def memory(backend: MemoryBackend) -> SupervisorMemory:
    return SupervisorMemory(
        Settings(keep_messages=True), backend=backend, embedder=Dense(), clock=FixedClock()
    )


# --- the whole


@pytest.mark.parametrize("name", ["json", "sqlite"])
def test_no_file_holds_a_message_or_what_tells_about_it(name: str, tmp_path: Path) -> None:
    with contextlib.closing(opened(name, tmp_path)) as backend:
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=FixedClock())
        for text in (
            "Delayed means 15 minutes.",
            "Delayed means 30 minutes.",
            "Forget that delayed means 30.",
        ):
            memory.remember([("user", text)], Scope("ada", session_id="s1"))
        said = memory.get_all(user_id="ada", families=[SESSION_FAMILY])
        [one] = backend.list(Filter("ada", statuses=None, ref_ids=tuple(each.id for each in said)), limit=9)
        assert len(one.ref_ids) == 3
        words = [each.content.encode() for each in said]

        def held() -> list[bytes]:
            files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
            return [word for word in words if any(word in file for file in files)]

        assert held() == words
        assert memory.erase(user_id="ada", confirm=True).is_complete
        assert held() == []
        assert backend.list(Filter(statuses=None, ref_ids=one.ref_ids), limit=9) == ()
        if isinstance(backend, SqliteBackend):
            with backend.database.reading() as connection:
                assert connection.execute("SELECT count(*) FROM told_of").get == 0


@pytest.mark.parametrize("name", ["json", "sqlite"])
def test_no_file_holds_anything_of_an_erased_user_and_the_others_keep_all(name: str, tmp_path: Path) -> None:
    backend = opened(name, tmp_path)
    world = World.made(backend, users=USERS if name == "sqlite" else max(3, USERS // 3))
    assert len(world.canaries) >= CANARIES
    found = world.traces(tmp_path)
    assert {word for word in world.canaries if any(each.startswith(word) for each in found)} == set(
        world.canaries
    )
    assert any(each.startswith("vector") for each in found)
    before = world.of_others()
    victims = left_of(backend, world.victim)
    assert {each.embedder for each in victims if each.family == SESSION_FAMILY} == {Dense.fingerprint}
    versions = sum(len(backend.versions(each.id)) - 1 for each in victims)

    receipt = world.memory.erase(user_id=world.victim, confirm=True)

    assert receipt.is_complete
    assert (receipt.removed["records"], receipt.removed["versions"]) == (len(victims), versions)
    assert receipt.removed["vectors"] > 0
    assert receipt.removed["accesses"] > 0
    assert receipt.removed["record_keys"] >= len(victims)
    assert world.traces(tmp_path) == []
    assert left_of(backend, world.victim) == []
    assert [backend.get([each.id]) for each in victims] == [()] * len(victims)
    assert world.of_others() == before
    rows = backend.audit.tail(10**6)
    assert_chain(rows, backend.audit.log_id)
    assert [row.op for row in rows if row.op.startswith("erase")] == ["erase.begin", "erase.done"]
    backend.close()
    assert world.traces(tmp_path) == []


def test_what_was_committed_or_said_before_writes_nothing_when_it_comes_again(backend: MemoryBackend) -> None:
    world = World.made(backend, users=3, rounds=2)
    commits = [
        commit for commit in world.commits if any(c.record.user_id == world.victim for c in commit.changes)
    ]
    world.memory.erase(user_id=world.victim, confirm=True)
    for commit in commits:
        with pytest.raises(SupervisorMemoryError):
            backend.batch(commit)
    for turn in world.turns:
        turn()
    assert left_of(backend, world.victim) == []
    assert backend.audit.tail(9, user_id=world.victim) == ()


def test_an_erased_user_who_comes_back_is_remembered_anew(backend: MemoryBackend) -> None:
    world = World.made(backend, users=3, rounds=2)
    memory, user = world.memory, world.victim
    old = {record.id for record in left_of(backend, user)}
    memory.erase(user_id=user, confirm=True)
    kept = memory.write("The refund code is 1234.", user_id=user)
    scope = Scope(user, session_id="a new session")
    memory.remember([("user", "From now on use lists.")], scope, turn_id="a new turn")
    assert kept.saved
    assert memory.search("refund code", user_id=user)[0].record.content == "The refund code is 1234."
    assert {record.content for record in left_of(backend, user)} == {
        "The refund code is 1234.",
        "From now on use lists.",
    }
    assert not old & {record.id for record in left_of(backend, user)}
    assert {row.op for row in backend.audit.tail(99, user_id=user)} == {"add"}
    memory.erase(user_id=user, confirm=True)
    assert left_of(backend, user) == []


# --- what comes late


def test_a_turn_that_runs_again_keeps_what_is_new_of_it(memory: SupervisorMemory) -> None:
    said = [("user", "Delayed means 15 minutes.")]
    scope = Scope("ada", session_id="s1")
    memory.remember(said, scope, turn_id="t1")
    memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
    memory.erase(user_id="ada", confirm=True)
    memory.remember([*said, ("user", "From now on use tables.")], scope, turn_id="t1")
    assert {record.content for record in left_of(memory.backend, "ada")} == {"From now on use tables."}


def test_what_a_model_finds_after_the_erasure_in_what_was_said_before_is_refused(
    backend: MemoryBackend,
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def late(_: Any) -> AIMessage:
        asked.set()
        answer.wait(10)
        return AIMessage('[{"content": "Ada likes tea.", "kind": "user-profile"}]')

    clock = FixedClock()
    settings = Settings(embedding_model="none", queue_min_events=1)
    memory = SupervisorMemory(settings, backend=backend, llm=ScriptedModel(script=[late]), clock=clock)
    memory.remember([("user", "Ada here, I do like tea.")], Scope("ada", session_id="s1"))
    assert asked.wait(10)
    clock.forward(days=1)
    memory.erase(user_id="ada", confirm=True)
    clock.forward(days=1)
    answer.set()
    assert memory.flush()
    assert left_of(backend, "ada") == []
    assert backend.audit.tail(9, user_id="ada") == ()
    assert memory.queue.counts() == {"waiting": 0, "dead": 0}


def test_an_import_of_what_was_said_before_is_refused_and_says_why(memory: SupervisorMemory) -> None:
    memory.erase(user_id="ada", confirm=True)
    with pytest.raises(WasErased, match="said before their user was erased"):
        memory.write("Tea at five.", user_id="ada", created_at=memory.services.clock() - 1)
    assert memory.write("Tea at five.", user_id="ada").saved
    assert memory.write("Tea at five.", user_id="bo", created_at=memory.services.clock() - 1).saved


def test_an_item_of_the_store_that_is_put_again_under_its_key_is_new(memory: SupervisorMemory) -> None:
    store = memory.store(guarded=False)
    store.put(("memories", "ada"), "profile", {"text": "likes tea"})
    memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
    memory.erase(user_id="ada", confirm=True)
    assert store.get(("memories", "ada"), "profile") is None
    store.put(("memories", "ada"), "profile", {"text": "likes coffee"})
    found = store.get(("memories", "ada"), "profile")
    assert found is not None
    assert found.value == {"text": "likes coffee"}


def test_who_writes_while_a_user_is_erased_leaves_only_what_was_said_afterwards(
    backend: MemoryBackend,
) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
    enough, written = threading.Event(), []

    def write(user: str) -> None:
        for number in itertools.count():
            with contextlib.suppress(WasErased):
                written.append(
                    (user, memory.write(f"The code of {user} {number} is {number * 31}.", user_id=user))
                )
            if enough.is_set():
                return

    writers = [threading.Thread(target=write, args=(user,)) for user in ("ada", "bo", "ada", "bo")]
    for writer in writers:
        writer.start()
    while {user for user, _ in list(written)} != {"ada", "bo"}:
        time.sleep(0.05)
    time.sleep(0.3)
    receipts = [memory.erase(user_id="ada", confirm=True) for _ in range(2)]
    time.sleep(0.3)
    enough.set()
    for writer in writers:
        writer.join()
    left = left_of(backend, "ada")
    assert receipts[0].removed["records"] > 0
    assert all(record.created_at >= receipts[-1].erased_at for record in left)
    assert {record.id for record in left_of(backend, "bo")} == {
        done.id for user, done in written if user == "bo"
    }
    memory.close()


# --- asking for it


def test_without_confirmation_nothing_is_erased_and_the_error_counts(memory: SupervisorMemory) -> None:
    memory.write("Tea at five.", user_id="ada")
    with pytest.raises(ConfirmationRequired) as caught:
        memory.erase(user_id="ada")
    assert caught.value.facts["held"]["records"] == 1
    for truthy in (1, "yes"):
        with pytest.raises(ConfirmationRequired):
            memory.erase(user_id="ada", confirm=truthy)  # type: ignore[arg-type]
    assert len(left_of(memory.backend, "ada")) == 1
    held = dict(caught.value.facts["held"])
    assert memory.erase(user_id="ada", confirm=True).removed == held


def test_erasing_somebody_unknown_leaves_a_tombstone_and_a_receipt(memory: SupervisorMemory) -> None:
    receipt = memory.erase(user_id="nobody at all", confirm=True)
    assert receipt.removed["records"] == 0
    assert receipt.is_complete
    assert any("checkpoints" in line for line in receipt.out_of_reach)


async def test_the_async_twin_erases(memory: SupervisorMemory) -> None:
    memory.write("Tea at five.", user_id="ada")
    receipt = await memory.aerase(user_id="ada", confirm=True)
    assert receipt.removed["records"] == 1
    assert left_of(memory.backend, "ada") == []


def test_a_backend_that_cannot_erase_says_so_and_removes_nothing() -> None:
    class Keeping(InMemoryBackend):
        erase = None  # type: ignore[assignment]  # so that it has none

    memory = SupervisorMemory(Settings(embedding_model="none"), backend=Keeping())
    memory.write("Tea at five.", user_id="ada")
    for confirm in (False, True):
        with pytest.raises(BackendError, match="out of reach"):
            memory.erase(user_id="ada", confirm=confirm)
    assert len(memory.get_all(user_id="ada")) == 1


def test_the_memory_of_the_process_lets_go_of_the_texts(memory: SupervisorMemory) -> None:
    from supervisor_memory.language import terms
    from supervisor_memory.stores.sqlite import tables

    memory.write("Tea at five.", user_id="ada")
    memory.search("tea", user_id="ada")
    assert memory.services.vectors
    memory.erase(user_id="ada", confirm=True)
    assert not memory.services.vectors
    assert terms._known.cache_info().currsize == 0
    assert tables._known.cache_info().currsize == 0


def _keeps_all(node: ast.AST) -> bool:
    """Whether this is a function that keeps each result, by what it is asked for."""
    if not isinstance(node, ast.FunctionDef):
        return False
    is_asked_for_something = any(isinstance(each, ast.arg) for each in ast.walk(node.args))
    return is_asked_for_something and any(
        ast.unparse(each) in ("cache", "functools.cache") for each in node.decorator_list
    )


def test_every_function_that_remembers_texts_is_known_to_erase() -> None:
    package = Path(supervisor_memory.__file__).parent
    texts = {
        ".".join(("supervisor_memory", *file.relative_to(package).with_suffix("").parts)): file.read_text(
            "utf-8"
        )
        for file in package.rglob("*.py")
        if file.name != "caches.py"
    }
    remembering = {
        name
        for name, text in texts.items()
        if "lru_cache" in text or ("cache" in text and any(map(_keeps_all, ast.walk(ast.parse(text)))))
    }
    assert remembering - WITHOUT_TEXTS == set(MODULES_THAT_KEEP_TEXTS)


# --- several processes

READER = """
import json, sys
from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.stores.open import open_backend
from pathlib import Path
from tests.canaries import Dense, left_of
backend = open_backend(sys.argv[1], Path(sys.argv[2]))
memory = SupervisorMemory(Settings(search_timeout_ms=60_000), backend=backend, embedder=Dense())
for line in sys.stdin:
    user, query, ids = json.loads(line)
    found = [hit.record.content for hit in memory.search(query, user_id=user, threshold=0, limit=50)]
    by_id = [record.content for record in backend.get(ids)]
    print(json.dumps([found, by_id, len(left_of(backend, user))]), flush=True)
"""


@pytest.mark.parametrize("name", ["json", "sqlite"])
def test_another_process_with_warm_caches_serves_nothing_of_the_erased(name: str, tmp_path: Path) -> None:
    import json

    backend = opened(name, tmp_path)
    world = World.made(backend, users=3, rounds=2)
    user, ids = world.victim, [record.id for record in left_of(backend, world.victim)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with programs.start(
        "-c", READER, name, tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask() -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([user, "refund code", ids]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        for _ in range(2):
            found, by_id, left = ask()
            assert (len(found) > 5, len(by_id), left) == (True, len(ids), len(ids))
        assert world.memory.erase(user_id=user, confirm=True).is_complete
        for _ in range(2):
            assert ask() == [[], [], 0]
        new = world.memory.write("The refund code is 1234.", user_id=user)
        for _ in range(2):
            assert ask() == [["The refund code is 1234."], [], 1]
        assert new.saved
        process.stdin.close()
        process.wait(10)
    backend.close()


def test_an_outcome_brought_to_an_erased_user_names_nobody_in_the_log(memory: SupervisorMemory) -> None:
    memory.remember(
        (), Scope("ada", "analyst", "s1"), outcome=Outcome(final_answer="Sales rose by 5 percent.")
    )
    memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
    memory.erase(user_id="ada", confirm=True)
    memory.report(AuditEvent("recall", user_id="ada", outcome="degraded"))
    assert memory.backend.audit.tail(9, user_id="ada") == ()
    assert memory.backend.audit.tail(1)[0].subject is None
