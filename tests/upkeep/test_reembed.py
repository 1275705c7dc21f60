"""Records that the present embedder has not read are found by words, wait, and are embedded anew."""

import signal
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Matrix, Vector
from supervisor_memory.errors import BackendError, EmbeddingError, MissingUser, SettingsError
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.upkeep.reembed import Reembedded, waiting_for
from tests import programs
from tests.opened import EACH, opened
from tests.stores.qdrant_double import Asked, QdrantDouble, broken, running

FACTS = ("Ada drinks green tea.", "Ada reads novels.", "Ada plays chess on Sundays.", "Ada sings.")
QUESTION = "green tea"
SETTINGS = Settings()


class Model(HashingEmbedder):
    """An embedder of any name, in whose vectors the same numbers stand elsewhere.

    Args:
        before: Called with each text before it is embedded.
    """

    def __init__(
        self,
        name: str,
        *,
        languages: tuple[str, ...] = ("*",),
        before: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__()
        self.name, self._languages, self.before = name, languages, before
        self.texts: list[str] = []

    @property
    def fingerprint(self) -> str:
        return f"{self.name}@1/256"

    @property
    def languages(self) -> tuple[str, ...]:
        return self._languages

    def embed_query(self, text: str) -> Vector:
        return np.roll(super().embed_query(text), 7 * len(self.name))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        for text in texts:
            self.before(text)
        self.texts += texts
        return super().embed_documents(texts)


@pytest.fixture(params=EACH)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


def memory_over(backend: MemoryBackend, embedder: Any) -> SupervisorMemory:
    return SupervisorMemory(SETTINGS, backend=backend, embedder=embedder)


def filled(backend: MemoryBackend, embedder: Any = None, *, user: str = "ada") -> list[Record]:
    memory = memory_over(backend, embedder or Model("one"))
    for fact in FACTS:
        memory.write(fact, user_id=user, kind="experience")
    return sorted(backend.list(Filter(user_id=user), limit=99), key=lambda record: record.id)


def stored(backend: MemoryBackend, user: str = "ada") -> list[Record]:
    return sorted(backend.list(Filter(user_id=user), limit=99), key=lambda record: record.id)


def cosines(memory: SupervisorMemory, question: str = QUESTION, *, user: str = "ada") -> list[float]:
    """Of all that is found, where it has one to compare."""
    hits = memory.search(question, user_id=user, threshold=0, limit=99)
    return [hit.parts["cosine"] for hit in hits if "cosine" in hit.parts]


def failing_on(*words: str) -> Callable[[str], None]:
    def fail(text: str) -> None:
        if any(word in text for word in words):
            raise RuntimeError("the model is on fire")

    return fail


def test_after_another_model_of_the_same_dimension_words_find_until_all_is_embedded_anew(
    backend: MemoryBackend,
) -> None:
    before = filled(backend)
    memory = memory_over(backend, Model("three"))
    hits = memory.search(QUESTION, user_id="ada", limit=9)
    assert [hit.record.content for hit in hits] == [FACTS[0]]
    assert cosines(memory) == []

    assert memory.reembed() == Reembedded("three@1/256", embedded=len(FACTS))
    found = cosines(memory)
    assert len(found) == len(FACTS)
    assert max(found) == pytest.approx(
        float(Model("one").embed_query(QUESTION) @ Model("one").embed_query(FACTS[0])), abs=1e-4
    )
    assert cosines(memory_over(backend, Model("one"))) == []
    assert stored(backend) == [replace(record, embedder="three@1/256") for record in before]
    assert memory.reembed().embedded == 0


def test_nothing_but_one_event_a_page_tells_of_it_and_that_without_content(backend: MemoryBackend) -> None:
    before = filled(backend)
    rows = backend.audit.count()
    memory_over(backend, Model("three")).reembed(user_id="ada")
    events = [row.event for row in backend.audit.tail(99) if row.seq > rows]
    (event,) = [event for event in events if not event["op"].startswith("commit.")]
    assert (event["op"], event["actor"], event["record_id"]) == ("memory.reembed", "operator", None)
    assert event["detail"] == {"records": len(FACTS), "embedder": "three@1/256"}
    for record in before:
        assert len(backend.versions(record.id)) == 1


def test_what_was_written_while_the_embedder_failed_is_embedded_later(backend: MemoryBackend) -> None:
    model = Model("one", before=failing_on("green", "Sundays"))
    records = filled(backend, model)
    assert sorted(record.embedder or "" for record in records) == ["", "", "one@1/256", "one@1/256"]
    memory = memory_over(backend, model)
    changed = next(record for record in records if record.embedder)
    model.before = failing_on("now")
    memory.update(changed.id, content="Ada sings in a choir now.")
    model.before = failing_on()
    model.texts.clear()
    assert memory.reembed().embedded == 3
    assert len(model.texts) == 3
    assert len(cosines(memory)) == len(FACTS)
    assert [len(backend.versions(record.id)) for record in records].count(2) == 1


def test_one_users_records_can_be_embedded_alone(backend: MemoryBackend) -> None:
    filled(backend)
    filled(backend, user="bo")
    memory = memory_over(backend, Model("three"))
    assert memory.reembed(user_id="bo").embedded == len(FACTS)
    assert (len(cosines(memory, user="bo")), cosines(memory)) == (len(FACTS), [])
    with pytest.raises(MissingUser):
        memory.reembed(user_id="")
    assert memory.reembed().embedded == len(FACTS)


def test_a_model_that_fails_halfway_leaves_what_is_done_and_goes_on_the_next_time(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor_memory.upkeep.reembed._TOGETHER", 1)
    filled(backend)
    model = Model("three")
    model.before = lambda _: failing_on("")("") if len(model.texts) >= 2 else None
    memory = memory_over(backend, model)
    told: list[tuple[int, int]] = []
    with pytest.raises(EmbeddingError, match="fails on every text") as raised:
        memory.reembed(progress=lambda done, total: told.append((done, total)))
    assert raised.value.facts["embedded"] == 2
    assert told == [(0, 4), (1, 4), (2, 4)]
    assert backend.count(waiting_for(model.fingerprint)) == 2
    model.before = failing_on()
    assert memory.reembed().embedded == 2
    assert len(cosines(memory)) == len(FACTS)


def test_a_text_that_it_fails_on_is_named_and_the_others_are_embedded(backend: MemoryBackend) -> None:
    records = filled(backend)
    poison = next(record.id for record in records if "novels" in record.content)
    memory = memory_over(backend, Model("three", before=failing_on("novels")))
    for embedded in (3, 0):
        done = memory.reembed()
        assert (done.embedded, done.unread, done.refused) == (embedded, 0, (poison,))
    assert len(cosines(memory)) == 3


def test_what_the_model_does_not_read_is_left_to_words(backend: MemoryBackend) -> None:
    filled(backend)
    memory_over(backend, None).write("小明喜欢喝绿茶", user_id="ada", kind="experience")
    done = memory_over(backend, Model("three", languages=("en",))).reembed()
    assert (done.embedded, done.unread, done.refused) == (len(FACTS), 1, ())
    assert memory_over(backend, Model("three")).reembed().embedded == 1


def test_a_record_that_others_change_meanwhile_is_read_again(backend: MemoryBackend) -> None:
    filled(backend)
    model = Model("three")
    other = memory_over(backend, Model("one"))

    def meanwhile(_: str) -> None:
        model.before = failing_on()
        ids = {record.content: record.id for record in stored(backend)}
        other.update(ids["Ada reads novels."], content="Ada reads poems.")
        other.delete(ids["Ada sings."])

    model.before = meanwhile
    memory = memory_over(backend, model)
    assert memory.reembed().embedded == 3
    kept = {record.content: record for record in stored(backend)}
    assert sorted(kept) == sorted([FACTS[0], FACTS[2], "Ada reads poems."])
    assert {record.embedder for record in kept.values()} == {model.fingerprint}
    assert kept["Ada reads poems."].version == 2
    assert max(cosines(memory, "Ada reads poems.")) == pytest.approx(1.0, abs=1e-3)


def test_more_than_a_page_is_embedded_and_what_stays_is_passed_over(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor_memory.upkeep.reembed._PAGE", 3)
    monkeypatch.setattr("supervisor_memory.upkeep.reembed._TOGETHER", 2)
    memory = memory_over(backend, None)
    texts = [f"Ada wrote letter {n}." if n % 2 else f"小明写了第{n}封信" for n in range(14)]
    memory.add_many(texts, user_id="ada")
    done = memory_over(backend, Model("three", languages=("en",))).reembed()
    assert (done.embedded, done.unread) == (7, 7)
    assert backend.count(waiting_for("three@1/256")) == 7


def test_without_an_embedder_there_is_nothing_to_embed_with(backend: MemoryBackend) -> None:
    with pytest.raises(SettingsError, match="EMBEDDING_MODEL"):
        SupervisorMemory(Settings(embedding_model="none"), backend=backend).reembed()


async def test_it_can_be_awaited(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        filled(backend)
        done = await memory_over(backend, Model("three")).areembed(user_id="ada")
    assert done.embedded == len(FACTS)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import supervisor_memory.upkeep.reembed as upkeep
    from supervisor_memory import Settings, SupervisorMemory
    from supervisor_memory.embedding.hashing import HashingEmbedder

    upkeep._TOGETHER, calls = 5, 0

    class Mortal(HashingEmbedder):
        def embed_documents(self, texts):
            global calls
            calls += 1
            if calls > int(sys.argv[3]):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().embed_documents(texts)

    settings = Settings(backend=sys.argv[1], path=Path(sys.argv[2]))
    SupervisorMemory(settings, embedder=Mortal(64)).reembed()
"""


@pytest.mark.parametrize("name", ["json", "sqlite"])
def test_killed_anywhere_it_is_run_again_and_nothing_is_done_twice(name: str, tmp_path: Path) -> None:
    texts = [f"Ada wrote letter {n}." for n in range(18)]
    with opened(name, tmp_path) as backend:
        memory_over(backend, HashingEmbedder()).add_many(texts, user_id="ada")
    for survived, left in ((0, 18), (2, 8), (1, 3)):
        done = programs.run("-c", textwrap.dedent(KILLED), name, tmp_path, str(survived), timeout=60)
        assert done.returncode == -signal.SIGKILL, done.stderr
        with opened(name, tmp_path) as backend:
            assert backend.count(waiting_for(HashingEmbedder(64).fingerprint)) == left
    with opened(name, tmp_path) as backend:
        memory = memory_over(backend, HashingEmbedder(64))
        assert memory.reembed().embedded == 3
        assert len(cosines(memory, "letter")) == 18
        assert {len(backend.versions(record.id)) for record in stored(backend)} == {1}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("after", range(0, 24, 2))
def test_cut_off_at_any_request_to_a_server_it_is_completed(after: int, tmp_path: Path) -> None:
    with running(QdrantDouble()) as server:
        client = QdrantClient(url=server.url, check_compatibility=False, verify=False)
        backend = QdrantBackend(client, audit=tmp_path)
        before = filled(backend)
        asked = 0

        def count(_: Asked) -> Any:
            nonlocal asked
            asked += 1
            return broken(503)(_) if asked > after else None

        memory = memory_over(backend, Model("three"))
        server.before = count
        with pytest.raises(BackendError):
            memory.reembed()
        server.before = lambda _: None
        memory.reembed()
        memory.write("A commit completes what was on its way.", user_id="bo")
        assert len(cosines(memory)) == len(FACTS)
        assert stored(backend) == [replace(record, embedder="three@1/256") for record in before]
        backend.close()
