"""Our own recipes keep what every recipe promises."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from supervisor_memory.errors import StageDenied
from supervisor_memory.flow import Recalling, Remembering
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Message, Scope
from supervisor_memory.ports import Maintaining, ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.recipes.open import open_recipe, published
from supervisor_memory.settings import Settings
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.recipe_contract import ADA, BOB, CONVERSATIONS, RecipeContract, hold
from tests.cases import every_case
from tests.recipes.names import NAMES

STORES = ("sqlite", "json", "qdrant")
SETTINGS = Settings(embedding_model="hashing", queue_worker=False)


@contextmanager
def opened(kind: str, place: Path) -> Iterator[MemoryBackend]:
    """A store of files in a place, which may have been opened before."""
    if kind == "qdrant":
        with closing(QdrantClient(path=str(place))) as client:
            yield QdrantBackend(client)
    else:
        with closing({"sqlite": SqliteBackend, "json": JsonBackend}[kind](place)) as backend:
            yield backend


@pytest.mark.one_in(8)
@pytest.mark.parametrize("recipe", ["default", *NAMES])
class TestEach(RecipeContract):
    """Over a store in memory. What a store promises is in its own contract."""


@every_case("recipe", ["default", *NAMES])
def test_every_recipe_answers_an_empty_question_thanks_and_a_question_in_plain_words(recipe: str) -> None:
    with SupervisorMemory(Settings(embedding_model="none", queue_worker=False), recipe=recipe) as memory:
        memory.write("Amounts are in euros.", user_id=ADA)
        memory.write("Reports go out on Fridays. " * 400, user_id=ADA)
        assert not memory.search("", user_id=ADA).degraded
        assert not memory.recall([Message("user", "Thank you!")], Scope(ADA)).degraded
        found = memory.search("which amounts are in euros", user_id=ADA, threshold=0.0)
        assert not found.degraded
        assert "Amounts are in euros." in [hit.record.content for hit in found]


def test_an_operator_that_reaches_too_far_is_refused_and_audited() -> None:
    def reaching(plan: Recalling, view: ReadStore) -> Recalling:
        view.commit(None)  # type: ignore[attr-defined]
        return plan

    def erasing(said: Remembering, view: Maintaining) -> Remembering:
        view.erase()  # type: ignore[attr-defined]
        return said

    mine = replace(DEFAULT, name="mine", post_retrieval=(reaching,), post_insert=(erasing,))
    with SupervisorMemory(SETTINGS, recipe=mine) as memory:
        assert memory.write("Tea is at five.", user_id=ADA).status == "added"  # and it stays
        with pytest.raises(StageDenied, match="may not 'commit'"):
            memory.search("tea", user_id=ADA)
        assert memory.recall("When is tea?", Scope(ADA)).degraded
        assert [hit.content for hit in memory.get_all(user_id=ADA)] == ["Tea is at five."]
        told = [json.loads(row.payload) for row in memory.audit.tail(10)]
        assert [(e["op"], e["outcome"], e["reason"]) for e in told if e["outcome"] != "ok"] == [
            ("write", "degraded", "post-insert-erasing:StageDenied"),
            ("search", "degraded", "StageDenied"),
            ("recall", "degraded", "StageDenied"),
        ]


@pytest.mark.one_in(20)
@pytest.mark.parametrize("recipe", ["default", *NAMES])
@pytest.mark.parametrize("kind", STORES)
def test_what_one_memory_wrote_another_finds_and_an_erasure_leaves_nothing(
    recipe: str, kind: str, tmp_path: Path
) -> None:
    """With vectors, over each store that keeps files."""
    with opened(kind, tmp_path) as backend:
        memory = SupervisorMemory(SETTINGS, backend=backend, recipe=recipe)
        notes = [note for name in CONVERSATIONS for note in hold(memory, name, user_id=ADA)]
        hold(memory, "preferences", user_id=BOB)
        assert not any(note.degraded for note in notes)
        assert {hit.record.user_id for note in notes for hit in note.hits} <= {ADA}
        assert not memory.optimize(user_id=ADA).left
        memory.close()
    with opened(kind, tmp_path) as backend:
        memory = SupervisorMemory(SETTINGS, backend=backend, recipe=recipe)
        found = memory.search("What is GMV before refunds?", user_id=ADA, threshold=0.0, limit=10)
        assert found
        assert not found.degraded
        assert {hit.record.user_id for hit in found} == {ADA}
        assert memory.erase(user_id=ADA, confirm=True).is_complete
        assert not memory.get_all(user_id=ADA)
        assert not memory.search("What is GMV before refunds?", user_id=ADA, threshold=0.0)
        assert {record.user_id for record in memory.get_all(user_id=BOB)} == {BOB}
        memory.close()
    if kind != "qdrant":  # whose files are its own; it has no power to erase what it has overwritten
        left = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        assert b"Leuven" not in left


@every_case("name", NAMES)
def test_each_says_where_it_is_from_what_differs_and_what_its_constants_are(name: str) -> None:
    told = published(name)
    assert told is not None
    assert told.name == name == open_recipe(name).name
    assert all(told.said.values())
    assert told.said["Follows"].startswith(("the paper", "the code"))
    assert all(source and value == getattr(told.constants(), key) for key, value, source in told.sources)
    lines = Path(f"supervisor_memory/recipes/{told.build.__module__.rpartition('.')[2]}.py").read_text(
        "utf-8"
    )
    assert len(lines.splitlines()) <= 150
