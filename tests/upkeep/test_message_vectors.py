"""What was said is found by its meaning soon after; no turn waits for it, and nothing else changes."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.faults.processes import FORKS, ended, forked
from tests.host.graphs import asking, config, model, team
from tests.opened import EACH, opened
from tests.stores.unreliable import Unreliable
from tests.upkeep.test_reembed import SETTINGS, Model, failing_on

SAID = Filter(families=(SESSION_FAMILY,))
SPOKEN = ("my boat's up in Oslo, right", "Noted, in Oslo.")
ADA = Scope("ada", session_id="s1")


@pytest.fixture(params=EACH)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


def memory_over(backend: MemoryBackend, embedder: Any, **settings: Any) -> SupervisorMemory:
    return SupervisorMemory(SETTINGS.model_copy(update=settings), backend=backend, embedder=embedder)


def say(memory: SupervisorMemory, *texts: str, scope: Scope = ADA) -> None:
    memory.remember([("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(texts)], scope)


def said(backend: MemoryBackend) -> list[Record]:
    return sorted(backend.list(SAID, limit=999), key=lambda record: record.content)


def embedders(backend: MemoryBackend) -> set[str | None]:
    return {record.embedder for record in said(backend)}


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold in a minute."""
    until = time.monotonic() + 60
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def whole(backend: MemoryBackend) -> tuple[Any, ...]:
    """All that is told of the messages, but for how they are found; and of the log, but for commits."""
    records = [record.to_dict() | {"embedder": None} for record in said(backend)]
    versions = [len(backend.versions(str(record["id"]))) for record in records]
    rows = [row.event for row in backend.audit.tail(999) if not row.op.startswith("commit.")]
    return records, versions, rows, backend.audit.accesses(999)


def test_messages_are_found_by_meaning_and_nothing_else_of_them_changes(backend: MemoryBackend) -> None:
    silent = memory_over(backend, None, embedding_model="none")
    say(silent, *SPOKEN)
    before = whole(backend)
    memory = memory_over(backend, Model("one"))
    assert memory.flush()
    assert whole(backend) == before
    assert embedders(backend) == {"one@1/256"}
    assert not memory.audit.verify().problems
    hits = memory.search("boat", user_id="ada", families=[SESSION_FAMILY], threshold=0)
    assert {hit.record.content for hit in hits if "cosine" in hit.parts} == set(SPOKEN)
    assert [hit.record.content for hit in memory.search("boat", user_id="ada", threshold=0)] == []


def test_a_turn_waits_for_no_vector_and_the_background_brings_it(tmp_path: Path) -> None:
    may_go_on = threading.Event()
    with closing(SqliteBackend(tmp_path)) as backend:
        waits = Model("one", before=lambda text: may_go_on.wait(60))
        memory = memory_over(backend, waits, write_timeout_ms=500)
        say(memory, "The boat lies in Oslo, and it is green.")
        assert embedders(backend) == {None}
        may_go_on.set()
        assert eventually(lambda: embedders(backend) == {"one@1/256"})


def test_messages_that_come_while_others_are_embedded_are_embedded_together_by_one_worker() -> None:
    backend, may_go_on, together = InMemoryBackend(), threading.Event(), []
    inside: set[int] = set()

    class Slow(Model):
        def embed_documents(self, texts: Any) -> Any:
            inside.add(threading.get_ident())
            together.append((len(inside), len(texts)))
            may_go_on.wait(60)
            inside.discard(threading.get_ident())
            return super().embed_documents(texts)

    memory = memory_over(backend, Slow("one"))
    for number in range(10):
        say(memory, f"boat {number}", scope=Scope(f"user-{number % 3}", session_id="s"))
    may_go_on.set()
    assert eventually(lambda: embedders(backend) == {"one@1/256"})
    assert max(workers for workers, _ in together) == 1
    assert len(together) < 5


def test_what_an_earlier_process_left_is_embedded_after_the_first_recall(backend: MemoryBackend) -> None:
    say(memory_over(backend, None, embedding_model="none"), *SPOKEN)
    memory = memory_over(backend, Model("one"))
    memory.recall([("user", "Where is it?")], Scope("bo"))
    memory.recall([("user", "Where is it?")], Scope("ada"))
    assert eventually(lambda: embedders(backend) == {"one@1/256"})


def test_each_recall_but_the_first_looks_for_nothing() -> None:
    looks: list[Filter] = []

    class Watched(InMemoryBackend):
        def list(self, where: Filter, **options: Any) -> Any:
            looks.extend([where] if where.not_embedded_by else [])
            return super().list(where, **options)

    memory = memory_over(Watched(), Model("one"))
    for _ in range(3):
        memory.recall([("user", "Where is it?")], ADA)
        assert eventually(lambda: not memory._vectors._is_working)
    assert len(looks) == 1


def test_without_background_workers_a_users_next_message_brings_the_vectors_or_a_flush() -> None:
    backend, model = InMemoryBackend(), Model("one")
    say(memory_over(backend, None, embedding_model="none"), "I sail.", scope=Scope("bo", session_id="s"))
    say(memory_over(backend, None, embedding_model="none"), "I row.")
    memory = memory_over(backend, model, queue_worker=False)
    memory.recall([("user", "Where is it?")], ADA)
    memory.remember([("assistant", "You sail.")], ADA)
    assert embedders(backend) == {None}
    say(memory, "I swim.")
    assert {r.content: r.embedder for r in said(backend)} == {
        "I sail.": None, "I row.": "one@1/256", "You sail.": "one@1/256", "I swim.": "one@1/256"
    }  # fmt: skip
    assert memory.flush()
    assert embedders(backend) == {"one@1/256"}


def test_without_an_embedder_nothing_is_looked_for() -> None:
    memory = memory_over(InMemoryBackend(), None, embedding_model="none")
    say(memory, *SPOKEN)
    assert memory.flush()
    assert embedders(memory.backend) == {None}
    assert memory.upkeep.messages_waiting() is None


def test_a_failing_embedder_disturbs_no_graph_is_left_alone_for_a_while_and_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend, calls = InMemoryBackend(), list[str]()
    fails: Callable[[str], object] = failing_on("")

    def ask(text: str) -> None:
        calls.append(text)
        fails(text)

    memory = memory_over(backend, Model("one", before=ask))
    graph = memory.attach(team(model(*[AIMessage("It lies in Oslo.")] * 4), {})).compile()
    for number in range(4):
        answer = graph.invoke(asking(f"Where is boat {number}?"), config(user_id="ada", thread=f"t{number}"))
        assert answer["messages"][-1].content == "It lies in Oslo."
    assert eventually(lambda: not memory._vectors._is_working)
    assert embedders(backend) == {None}
    assert sum(text == "What did we agree on?" for text in calls) == 1
    assert not memory.flush()
    monkeypatch.setattr("supervisor_memory.upkeep.automatic._SECONDS_OF_REST", 0.0)
    memory._vectors._rests_until = 0.0
    fails = failing_on()
    say(memory, "And now?")
    assert eventually(lambda: embedders(backend) == {"one@1/256"})


def test_a_message_that_the_embedder_refuses_or_does_not_read_holds_up_no_other() -> None:
    backend = InMemoryBackend()
    memory = memory_over(backend, Model("one", languages=("en",), before=failing_on("poison")))
    say(memory, "I sail boats.", "The poison is here.", "小明喜欢喝绿茶", "I row boats.")
    assert memory.flush()
    waiting = {record.content for record in said(backend) if record.embedder is None}
    assert waiting == {"The poison is here.", "小明喜欢喝绿茶"}
    assert memory.upkeep.messages_waiting() == 2
    assert memory.reembed().unread == 1


def test_what_is_embedded_was_redacted() -> None:
    backend, embedder = InMemoryBackend(), Model("one")
    say(memory_over(backend, None, embedding_model="none"), "Write to ada@example.com about the boat.")
    memory = memory_over(backend, embedder, redact="EMAIL")
    assert memory.flush()
    assert len(embedder.texts) == 1
    assert "ada@example.com" not in embedder.texts[0]


def test_a_user_who_is_erased_while_it_is_embedded_does_not_come_back(backend: MemoryBackend) -> None:
    memory = memory_over(backend, None, embedding_model="none")
    say(memory, *SPOKEN)
    say(memory, "Bo has a boat.", scope=Scope("bo", session_id="s"))
    embedder = Model("one")

    def erase(_: str) -> None:
        embedder.before = failing_on()
        memory.erase(user_id="ada", confirm=True)

    embedder.before = erase
    assert memory_over(backend, embedder).flush()
    assert [(record.content, record.embedder) for record in said(backend)] == [
        ("Bo has a boat.", "one@1/256")
    ]
    assert not any(memory.upkeep.listed(Filter(user_id="ada", statuses=None), limit=9))
    assert not memory.audit.verify().problems


def test_a_message_deleted_while_it_is_embedded_stays_deleted(backend: MemoryBackend) -> None:
    memory = memory_over(backend, None, embedding_model="none")
    say(memory, *SPOKEN)
    embedder, gone = Model("one"), said(backend)[0].id

    def delete(_: str) -> None:
        embedder.before = failing_on()
        memory.delete(gone)

    embedder.before = delete
    assert memory_over(backend, embedder).flush()
    assert [record.embedder for record in said(backend)] == ["one@1/256"]
    assert backend.get([gone])[0].status == "deleted"


def test_reembedding_counts_messages_too(backend: MemoryBackend) -> None:
    silent = memory_over(backend, None, embedding_model="none")
    say(silent, *SPOKEN)
    silent.write("Ada drinks tea.", user_id="ada")
    told: list[tuple[int, int]] = []
    done = memory_over(backend, Model("one")).reembed(progress=lambda *counts: told.append(counts))
    total = backend.count(Filter()) + 2
    assert (done.embedded, told[0], told[-1]) == (total, (0, total), (total, total))
    assert embedders(backend) == {"one@1/256"}


def test_closing_waits_for_no_hanging_embedder_and_the_next_process_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hangs = threading.Event()
    hanging = Model("one", before=lambda text: hangs.wait(60))
    memory = memory_over(SqliteBackend(tmp_path), hanging, write_timeout_ms=500)
    say(memory, *SPOKEN)
    began = time.monotonic()
    memory.close()
    assert time.monotonic() - began < 20
    caplog.clear()
    hangs.set()
    assert eventually(lambda: not memory._vectors._is_working)
    assert not caplog.messages, "a memory that was closed is not degraded"
    with closing(SqliteBackend(tmp_path)) as backend:
        assert embedders(backend) == {None}
        assert memory_over(backend, Model("one")).flush()
        assert embedders(backend) == {"one@1/256"}


def test_flushing_ends_in_its_time_and_says_so() -> None:
    hangs = threading.Event()
    hanging = Model("one", before=lambda text: hangs.wait(60))
    memory = memory_over(InMemoryBackend(), hanging, write_timeout_ms=500)
    say(memory, *SPOKEN)
    assert not memory.flush(seconds=0.2)
    hangs.set()
    assert memory.flush()


@pytest.mark.parametrize("mark", FORKS[:1])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_was_forked_amid_it_embeds_by_itself(tmp_path: Path, mark: Any) -> None:
    memory = SupervisorMemory(Settings(backend="sqlite", path=tmp_path), embedder=Model("one"))
    memory._vectors._is_working = True  # as if a thread were at it, with the lock
    with memory._vectors._changed:

        def work() -> None:
            say(memory, *SPOKEN)
            assert eventually(lambda: embedders(memory.backend) == {"one@1/256"})
            assert memory.flush(seconds=30)
            memory.close()

        child = forked(work)
    assert ended(child) == 0
    assert embedders(memory.backend) == {"one@1/256"}
    assert memory._vectors._pid == os.getpid()


def test_while_a_server_is_away_messages_wait_for_their_vectors(tmp_path: Path) -> None:
    store = Unreliable(InMemoryBackend())
    with closing(JournalBackend(store, tmp_path, breaker=Breaker(seconds=0.05))) as backend:
        memory = memory_over(backend, Model("one"))
        store.how = "refuses"
        say(memory, *SPOKEN)
        assert not memory.flush(seconds=5)
        store.how = "works"
        assert eventually(backend.replay)
        assert memory.flush(seconds=60)
        assert embedders(backend) == {"one@1/256"}
        assert [record.version for record in said(backend)] == [1, 1]
