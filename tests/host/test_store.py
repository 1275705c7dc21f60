"""Our records as a LangGraph store: what is put is memory, what memory writes is there, and nobody's else."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import (
    Conflict,
    ContentTooLarge,
    IdentityError,
    InvalidContent,
    InvalidName,
    MissingUser,
)
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.store import MemoryStore, label_for, user_for
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change, Commit, Committed, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from tests import programs
from tests.cases import every_case

SETTINGS = Settings(embedding_model="none")
ADA = ("memories", label_for("ada@x.com"))
BOB = ("memories", "bob")


@pytest.fixture(params=["in_memory", "json", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> MemoryBackend:
    if request.param == "in_memory":
        return InMemoryBackend(clock=clock)
    kind = JsonBackend if request.param == "json" else SqliteBackend
    return kind(tmp_path, clock=clock)


@pytest.fixture
def memory(backend: MemoryBackend, clock: FixedClock) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(SETTINGS, backend=backend, clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory: SupervisorMemory) -> MemoryStore:
    return MemoryStore(memory)


@pytest.fixture
def volatile(clock: FixedClock) -> SupervisorMemory:
    """A memory where the backend does not matter."""
    return SupervisorMemory(SETTINGS, clock=clock)


def value_at(store: MemoryStore, namespace: tuple[str, ...], key: str) -> dict[str, Any]:
    item = store.get(namespace, key)
    assert item is not None
    return item.value


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


# --- an item is a record


@pytest.mark.parametrize(
    "value",
    [
        {"content": " Likes green tea "},
        {"kind": "Memory", "content": {"content": "Likes green tea"}, "more": 1},
    ],
)
def test_what_is_put_for_a_user_is_found_in_memory(
    store: MemoryStore, memory: SupervisorMemory, value: dict[str, Any]
) -> None:
    store.put(ADA, "k", value)
    assert value_at(store, ADA, "k") == value
    (hit,) = memory.search("who likes tea?", user_id="ada@x.com")
    assert hit.record.content == "Likes green tea"
    assert not memory.search("who likes tea?", user_id="bob")


def test_a_third_label_is_a_task(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put((*ADA, "trip"), "k", {"content": "the train leaves at nine"})
    assert not memory.search("train", user_id="ada@x.com")
    assert len(memory.search("train", user_id="ada@x.com", task="trip")) == 1


def test_any_json_value_comes_back_and_is_found_by_its_words(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    value = {"a": [1, None, {"b": "caf\u00e9 \x00 \x7f"}], "content": "", "n": 1.5, "dotted.name": True}
    store.put(ADA, "k", value)
    store.put(ADA, "empty", {})
    assert value_at(store, ADA, "k") == value
    assert value_at(store, ADA, "empty") == {}
    assert len(memory.search("café", user_id="ada@x.com")) == 1


def test_what_memory_wrote_is_an_item_with_its_id_as_key(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write(
        "GMV excludes refunds", user_id="ada@x.com", kind="domain-facts", metadata={"tags": ["kpi"], "row": 7}
    ).id
    (item,) = store.search(("domain_facts", label_for("ada@x.com")))
    assert item.key == id_
    assert item.value["kind"] == "Memory"
    assert item.value["content"] == {"content": "GMV excludes refunds"}
    beside = item.value["supervisor_memory"]
    assert (beside["kind"], beside["tags"], beside["metadata"]["row"]) == ("domain-facts", ["kpi"], 7)
    json.dumps(item.dict())


def test_a_foreign_put_changes_the_text_and_keeps_the_rest(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write(
        "GMV excludes refunds", user_id="ada@x.com", kind="domain-facts", metadata={"tags": ["kpi"], "row": 7}
    ).id
    before = memory.get(id_)
    namespace = ("domain_facts", label_for("ada@x.com"))
    store.put(namespace, id_, {"kind": "Memory", "content": {"content": "GMV includes refunds"}})
    after = memory.get(id_)
    assert after.content == "GMV includes refunds"
    assert (after.kind, after.tags, after.source, after.importance, after.created_at) == (
        *(before.kind, before.tags, before.source, before.importance, before.created_at),
    )
    assert after.metadata["row"] == 7
    assert after.version == before.version + 1
    assert [old.content for old in memory.history(id_)] == ["GMV excludes refunds", "GMV includes refunds"]
    value = value_at(store, namespace, id_)
    assert value["content"] == {"content": "GMV includes refunds"}
    assert value["supervisor_memory"]["metadata"]["row"] == 7
    assert len(memory.get_all(user_id="ada@x.com")) == 1


def test_what_memory_updates_the_store_shows(store: MemoryStore, memory: SupervisorMemory) -> None:
    values: dict[str, dict[str, Any]] = {
        "flat": {"content": "likes tea", "n": 1},
        "nested": {"kind": "Memory", "content": {"content": "likes cake", "n": 1}},
        "other": {"n": 1},
    }
    for key, value in values.items():
        store.put(ADA, key, value)
        memory.update(Address(ADA, key).id, content=f"new {key}", user_id="ada@x.com")
    assert value_at(store, ADA, "flat") == {"content": "new flat", "n": 1}
    assert value_at(store, ADA, "nested") == {"kind": "Memory", "content": {"content": "new nested", "n": 1}}
    assert value_at(store, ADA, "other") == {"n": 1, "content": "new other"}


def test_an_item_that_lost_its_key_gets_it_back_with_the_next_put(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    memory.update(Address(ADA, "k").id, metadata={"a": 1}, merge=False)
    assert store.get(ADA, "k") is None
    store.put(ADA, "k", {"content": "likes coffee"})
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}
    assert len(memory.get_all(user_id="ada@x.com")) == 1


def test_equal_values_may_stand_under_different_keys(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "a", {"content": "likes tea"})
    store.put(ADA, "b", {"content": "Likes tea."})
    store.batch([PutOp(ADA, key, {"same": 1}) for key in "cdefg"])
    assert value_at(store, ADA, "a") == {"content": "likes tea"}
    assert value_at(store, ADA, "b") == {"content": "Likes tea."}
    assert len(store.search(ADA)) == 7
    assert memory.get(Address(ADA, "b").id).layer == "history"
    store.delete(ADA, "a")
    store.put(ADA, "b", {"content": "Likes tea."})
    assert memory.get(Address(ADA, "b").id).layer == "abstract"


def test_a_deleted_item_is_gone_and_its_history_stays(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    store.delete(ADA, "k")
    store.delete(ADA, "never there")
    assert store.get(ADA, "k") is None
    assert store.search(ADA) == []
    assert store.list_namespaces() == []
    id_ = Address(ADA, "k").id
    assert [old.status for old in memory.history(id_)] == ["active", "deleted"]
    store.put(ADA, "k", {"content": "likes coffee"})
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}
    assert memory.get(id_).version == 3


def test_memory_deletes_what_was_put(store: MemoryStore, memory: SupervisorMemory) -> None:
    for namespace in (ADA, (*ADA, "t"), (*ADA, "t", "deep", "er"), (*ADA, "zero\u200bwidth")):
        store.put(namespace, "k", {"content": "likes tea"})
    store.put(BOB, "k", {"content": "likes tea"})
    memory.delete_all(user_id="ada@x.com", confirm=True)
    assert [item.namespace for item in store.search(())] == [BOB]


# --- whose it is


def test_the_label_of_a_user_is_another_spelling_of_the_same_user() -> None:
    users = ["ada", "ada@x.com", "a.b", "a%2Eb", "a%b", "a%25b", "100%", "%", "%2", "..", "陈", "A", "a"]
    labels = [label_for(user) for user in users]
    assert len(set(labels)) == len(users)
    assert not any("." in label for label in labels)
    assert [user_for(label) for label in labels] == users


@every_case("label", ["a.b", "100%", "%2e", "%41", "a%2", "K\u212a", "zero\u200bwidth"])
def test_a_label_that_label_for_did_not_make_is_no_user(label: str) -> None:
    with pytest.raises(InvalidName):
        user_for(label)


@given(st.text(alphabet="aK\u212a.%25E\u200b e\u0301", min_size=1, max_size=8))
def test_labels_and_users_are_one_to_one(text: str) -> None:
    with contextlib.suppress(IdentityError):
        assert user_for(label_for(text)) == text
    with contextlib.suppress(IdentityError):
        assert label_for(user_for(text)) == text


def test_nobody_has_no_label() -> None:
    with pytest.raises(MissingUser):
        label_for("")
    with pytest.raises(MissingUser):
        label_for("null")


ODD = [
    ("docs",),
    ("memories", "100%"),
    ("memories", "%41da"),
    ("memories", "null"),
    ("memories", "K"),
    ("memories", "\u212a"),
    ("memories", "zero\u200bwidth"),
    ("memories", " ada"),
    ("memories", "x" * 200),
    ("_store", "ada"),
    ("two words", "ada"),
    ("memories", "ada", "t", "deep"),
    ("memories", "ada", "t", "deep", "er"),
    ("memories", "ada", "bad\u202etask"),
    ("memories", "ada", "t"),
    ("memories", "ada"),
    ("memories", "Ada"),
    ("memories",),
    ("//", "*", "%", "_"),
]


def test_every_namespace_has_rows_of_its_own(store: MemoryStore) -> None:
    for number, namespace in enumerate(ODD):
        store.put(namespace, "k", {"n": number})
    for number, namespace in enumerate(ODD):
        assert value_at(store, namespace, "k") == {"n": number}
        found = store.search(namespace, limit=100)
        assert {item.namespace for item in found} == {n for n in ODD if n[: len(namespace)] == namespace}
    assert store.list_namespaces() == sorted(ODD)


def test_labels_that_name_nobody_are_no_users_memory(store: MemoryStore, memory: SupervisorMemory) -> None:
    for namespace in (("docs",), ("memories", "100%"), ("memories", "\u212a")):
        store.put(namespace, "k", {"content": "the secret is tea"})
    for user in ("100%", "K", "docs"):
        assert not memory.search("secret tea", user_id=user)
    for record in memory.backend.list(Filter(), limit=10):
        with pytest.raises(InvalidName):
            memory.search("secret tea", user_id=record.user_id)


def test_a_key_that_is_anothers_record_id_does_not_reach_it(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write("GMV excludes refunds", user_id="bob", family="memories").id
    assert store.get(BOB, id_) is not None
    assert store.get(ADA, id_) is None
    store.put(ADA, id_, {"content": "mine"})
    store.delete(ADA, id_)
    store.put(ADA, id_, {"content": "mine again"})
    assert value_at(store, BOB, id_)["content"] == {"content": "GMV excludes refunds"}
    assert memory.get(id_).version == 1
    put = Address(BOB, "k").id
    store.put(BOB, "k", {"content": "bob's"})
    assert store.get(BOB, put) is None
    assert store.get(ADA, put) is None


def test_what_a_records_metadata_claims_of_another_place_is_not_believed(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    claim = {"namespace": list(BOB), "key": "k", "value": {"content": "forged"}}
    id_ = memory.write("likes tea", user_id="ada@x.com", family="memories", metadata={"store": claim}).id
    assert store.search(BOB) == []
    assert store.get(BOB, "k") is None
    assert keys(store.search(ADA)) == [id_]
    own = {"namespace": list(ADA), "key": id_, "value": {"content": "likes tea"}}
    nonsense: list[Any] = [
        *([1], "x", {"value": {}}, {**own, "value": 3}, {**own, "namespace": 1}, {**own, "namespace": [[1]]}),
        *({**own, "ttl": "x"}, {**own, "vectors": 1}, {**own, "vectors": {"embedder": None, "rows": "x"}}),
    ]
    indexed = MemoryStore(memory, index={"dims": 10, "embed": Letters()})
    for each in nonsense:
        memory.update(id_, metadata={"store": each})
        assert keys(store.search(())) == keys(indexed.search((), query="tea")) == [id_]


def test_keys_and_labels_are_any_text(store: MemoryStore) -> None:
    odd = ["", " ", "a.b", "../..", "陈", "\U0001f375", "a\nb", "\u200b", "k" * 5000]
    for number, key in enumerate(odd):
        store.put(("笔记", "陈"), key, {"n": number})
    assert [value_at(store, ("笔记", "陈"), key)["n"] for key in odd] == list(range(len(odd)))
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("valid",), "k", {}), GetOp(("a.b",), "k")])
    assert store.search(("valid",)) == []


# --- batches, filters, listings


def test_a_batch_answers_in_order_and_its_last_put_counts(store: MemoryStore) -> None:
    store.put(ADA, "old", {"n": 0})
    answers = store.batch(
        [
            PutOp(ADA, "k", {"n": 1}),
            GetOp(ADA, "old"),
            PutOp(ADA, "gone", {"n": 1}),
            SearchOp(ADA),
            PutOp(ADA, "k", {"n": 2}),
            ListNamespacesOp(),
            PutOp(ADA, "gone", None),
        ]
    )
    assert [answers[at] for at in (0, 2, 4, 6)] == [None] * 4
    assert answers[1].value == {"n": 0}  # type: ignore[union-attr]
    assert keys(answers[3]) == ["old"]
    assert answers[5] == [ADA]
    assert value_at(store, ADA, "k") == {"n": 2}
    assert store.get(ADA, "gone") is None


def test_a_batch_with_a_bad_value_puts_nothing(store: MemoryStore) -> None:
    with pytest.raises(InvalidContent):
        store.batch([PutOp(ADA, "good", {"n": 1}), PutOp(ADA, "bad", {"n": object()})])
    assert store.search(ADA) == []


@every_case(
    ("condition", "found"),
    [
        ({"n": 2}, "b"),
        ({"n": {"$eq": 2}}, "b"),
        ({"n": {"$ne": 2}}, "acd"),
        ({"n": {"$gt": 1, "$lte": 3}}, "bc"),
        ({"n": {"$gte": 3}}, "c"),
        ({"n": {"$lt": 2}}, "a"),
        ({"n": True}, ""),
        ({"day": {"$gt": "2026-01-01"}}, "b"),
        ({"in": {"a": 1}}, "c"),
        ({"in.a": {"$lt": 2}}, "c"),
        ({"tags": ["x", "y"]}, "a"),
        ({"n": 1, "tags": ["x", "y"]}, "a"),
        ({"missing": {"$gt": 0}}, ""),
        ({"missing": None}, "abcd"),
    ],
)
def test_filters_compare_fields(volatile: SupervisorMemory, condition: dict[str, Any], found: str) -> None:
    store = MemoryStore(volatile)
    store.put(ADA, "a", {"n": 1, "tags": ["x", "y"], "day": "2026-01-01"})
    store.put(ADA, "b", {"n": 2, "tags": ["x"], "day": "2026-01-02"})
    store.put(ADA, "c", {"n": 3, "in": {"a": 1, "b": 2}})
    store.put(ADA, "d", {"n": "many"})
    assert sorted(keys(store.search(ADA, filter=condition))) == list(found)
    assert sorted(keys(store.search(ADA, filter=condition, query="x"))) == list(found)


def test_an_operator_that_is_none_is_told(volatile: SupervisorMemory) -> None:
    store = MemoryStore(volatile)
    store.put(ADA, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$like"):
        store.search(ADA, filter={"n": {"$like": 1}})
    with pytest.raises(ValueError, match="middle"):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])  # type: ignore[arg-type]


def test_a_star_stands_for_one_label_in_listings_alone(store: MemoryStore) -> None:
    for namespace in (("a", "b"), ("a", "c", "b"), ("a", "*", "d")):
        store.put(namespace, "k", {})
    assert store.list_namespaces(prefix=("a", "*"), suffix=("b",)) == [("a", "b"), ("a", "c", "b")]
    assert store.list_namespaces(max_depth=2, limit=2, offset=1) == [("a", "b"), ("a", "c")]
    assert [item.namespace for item in store.search(("a", "*"))] == [("a", "*", "d")]


def test_pages_are_cut_from_one_order(store: MemoryStore, clock: FixedClock) -> None:
    for number in range(7):
        store.put(("a", str(number % 3)), f"k{number}", {"content": f"tea number {number}"})
        clock.now += 1
    newest = [f"k{number}" for number in reversed(range(7))]
    assert keys(store.search(("a",), limit=100)) == newest
    assert keys(store.search((), limit=3, offset=2)) == newest[2:5]
    assert keys(store.search((), limit=0)) == []
    assert len(store.search((), limit=2**80)) == 7


# --- searching with a query


def test_without_an_embedder_words_are_looked_for(store: MemoryStore) -> None:
    store.put(ADA, "tea", {"content": "green tea in the morning"})
    store.put(ADA, "car", {"title": "a red car"})
    store.put(BOB, "tea", {"content": "bob likes green tea"})
    found = store.search(ADA, query="green tea")
    assert [(item.key, item.score) for item in found] == [("tea", 1.0), ("car", None)]
    assert {item.namespace for item in store.search((), query="green tea", limit=2)} == {ADA, BOB}


@pytest.fixture
def meaning(backend: MemoryBackend, clock: FixedClock) -> Iterator[MemoryStore]:
    with SupervisorMemory(SETTINGS, backend=backend, embedder=HashingEmbedder(), clock=clock) as memory:
        yield MemoryStore(memory)


def test_with_an_embedder_the_nearest_come_first(meaning: MemoryStore) -> None:
    for number in range(30):
        meaning.put(ADA, f"n{number}", {"content": f"invoice number {number}", "even": number % 2 == 0})
    meaning.put(ADA, "tea", {"content": "green tea in the morning", "even": False})
    meaning.put(ADA, "unindexed", {"content": "green tea in the evening"}, index=False)
    meaning.put(BOB, "tea", {"content": "bob likes green tea"})
    found = meaning.search(ADA, query="green tea", limit=100)
    assert found[0].key == "tea"
    assert len(found) == 32
    assert (found[-1].key, found[-1].score) == ("unindexed", None)
    scores = [item.score for item in found[:-1]]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert keys(meaning.search(ADA, query="green tea", limit=1)) == ["tea"]
    assert keys(meaning.search(ADA, query="green tea", limit=5, offset=1)) == keys(found[1:6])
    even = meaning.search(ADA, query="green tea", filter={"even": True}, limit=3)
    assert keys(even) == [item.key for item in found if item.value.get("even")][:3]
    assert {item.namespace for item in meaning.search(("memories",), query="green tea", limit=2)} == {
        ADA,
        BOB,
    }


def test_paths_of_a_put_say_what_is_embedded(meaning: MemoryStore) -> None:
    meaning.put(ADA, "paths", {"title": "green tea", "body": "x " * 200}, index=["title"])
    meaning.put(ADA, "whole", {"title": "green tea", "body": "x " * 200})
    found = meaning.search(ADA, query="green tea")
    assert keys(found) == ["paths", "whole"]
    assert found[0].score == pytest.approx(1.0)


class Letters(Embeddings):
    """Counts letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.count(letter) + 0.01 for letter in "abcdefghij"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_with_an_index_the_best_field_counts(backend: MemoryBackend, clock: FixedClock) -> None:
    with SupervisorMemory(SETTINGS, backend=backend, embedder=HashingEmbedder(), clock=clock) as memory:
        store = MemoryStore(memory, index={"dims": 10, "embed": Letters(), "fields": ["x", "y[*]"]})
        store.put(ADA, "one", {"x": "aaa", "y": ["bbb", "ccc"]})
        store.put(ADA, "two", {"x": "ddd", "y": []})
        store.put(ADA, "three", {"z": "bbb"}, index=["z"])
        store.put(ADA, "none", {"x": "bbb"}, index=False)
        store.put(ADA, "blank", {"x": " "})
        found = store.search(ADA, query="bbb")
        assert {item.key for item in found[:2]} == {"one", "three"}
        assert [item.score for item in found[:2]] == [pytest.approx(1.0)] * 2
        assert found[2].key == "two"
        assert {(item.key, item.score) for item in found[3:]} == {("none", None), ("blank", None)}
        memory.update(Address(ADA, "two").id, content="bbb")
        assert store.search(ADA, query="ddd")[-1].score is None  # its vectors were of another text


async def test_an_index_may_embed_asynchronously(volatile: SupervisorMemory) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return Letters().embed_documents(list(texts))

    index: IndexConfig = {"dims": 10, "embed": embed, "fields": ["x"]}
    store = MemoryStore(volatile, index=index)
    await store.aput(ADA, "a", {"x": "aaa"})
    await store.aput(ADA, "b", {"x": "bbb"})
    assert keys(await store.asearch(ADA, query="bbb")) == ["b", "a"]
    assert keys(store.search(ADA, query="aaa")) == ["a", "b"]


def test_an_embedder_that_fails_leaves_words(clock: FixedClock) -> None:
    class Broken(HashingEmbedder):
        def embed_query(self, text: str) -> Any:
            raise OSError("gone")

        embed_documents = embed_query  # type: ignore[assignment]

    store = MemoryStore(SupervisorMemory(SETTINGS, embedder=Broken(), clock=clock))
    store.put(ADA, "tea", {"content": "green tea"})
    store.put(ADA, "car", {"content": "a red car"})
    assert keys(store.search(ADA, query="tea")) == ["tea", "car"]


# --- how long it lives


def test_an_item_lives_its_minutes_after_it_was_last_read(store: MemoryStore, clock: FixedClock) -> None:
    store.put(ADA, "k", {"content": "likes tea"}, ttl=10)
    store.put(ADA, "for ever", {"content": "likes cake"})
    for _ in range(3):
        clock.now += 9 * 60
        assert store.get(ADA, "k") is not None
    clock.now += 9 * 60
    assert len(store.search(ADA)) == 2
    clock.now += 9 * 60
    assert store.get(ADA, "k", refresh_ttl=False) is not None
    clock.now += 2 * 60
    assert store.get(ADA, "k") is None
    assert keys(store.search(ADA)) == ["for ever"]
    store.put(ADA, "k", {"content": "likes coffee"})
    clock.now += 1e6
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}


def test_a_store_has_a_time_to_live_of_its_own(volatile: SupervisorMemory, clock: FixedClock) -> None:
    store = MemoryStore(volatile, ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(ADA, "k", {})
    store.put(ADA, "for ever", {}, ttl=None)
    clock.now += 9 * 60
    assert len(store.search(ADA)) == 2
    clock.now += 60
    assert keys(store.search(ADA)) == ["for ever"]
    assert store.list_namespaces() == [ADA]


@every_case("ttl", [-1, float("nan"), float("inf"), 1e300])
def test_a_time_to_live_is_a_number_of_minutes(volatile: SupervisorMemory, ttl: float) -> None:
    with pytest.raises(InvalidContent, match="minutes"):
        MemoryStore(volatile).put(ADA, "k", {}, ttl=ttl)


def test_a_burst_of_reads_is_no_burst_of_commits(volatile: SupervisorMemory, clock: FixedClock) -> None:
    store = MemoryStore(volatile)
    store.put(ADA, "k", {}, ttl=100)
    for _ in range(50):
        clock.now += 1
        store.get(ADA, "k")
    assert volatile.get(Address(ADA, "k").id).version == 1
    clock.now += 60
    store.get(ADA, "k")
    assert volatile.get(Address(ADA, "k").id).version == 2


def test_a_foreign_put_does_not_make_a_record_live_longer(
    volatile: SupervisorMemory, clock: FixedClock
) -> None:
    store = MemoryStore(volatile)
    id_ = volatile.write("likes tea", user_id="bob", family="memories", metadata={"ttl": 600}).id
    store.put(BOB, id_, {"content": "likes coffee"})
    assert volatile.get(id_).expires_at == clock.now + 600
    store.put(BOB, id_, {"content": "likes coffee"}, ttl=1)
    assert volatile.get(id_).expires_at == clock.now + 60


# --- what is refused, and what is told


@every_case(
    "value",
    [
        {"a": object()},
        {"a": float("nan")},
        {"a": "\ud800"},
        {1: "a"},
        {"a": {2: 3}},
        ["a"],
        "a",
        {"a": {1, 2}},
    ],
)
def test_a_value_that_json_cannot_hold_is_refused(store: MemoryStore, value: Any) -> None:
    with pytest.raises(InvalidContent, match="put a dictionary"):
        store.put(ADA, "k", value)
    assert store.get(ADA, "k") is None


def test_a_value_that_goes_round_in_circles_is_refused(store: MemoryStore) -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(InvalidContent):
        store.put(ADA, "k", value)


def test_a_key_that_is_no_text_of_unicode_is_refused(store: MemoryStore) -> None:
    assert store.get(ADA, "\ud800") is None
    with pytest.raises(InvalidContent):
        store.put(ADA, "\ud800", {})


def test_a_value_that_is_too_large_is_refused(store: MemoryStore) -> None:
    with pytest.raises(ContentTooLarge, match="split it"):
        store.put(ADA, "k", {"content": "x" * 70_000})
    with pytest.raises(ContentTooLarge, match="split it"):
        store.put(ADA, "k", {"rows": list(range(30_000))})


def test_every_change_is_audited_without_its_words(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    store.put(ADA, "k", {"content": "likes coffee"})
    store.put(ADA, "twin", {"content": "likes coffee"})
    store.delete(ADA, "k")
    rows = [row.event for row in memory.backend.audit.tail(100) if str(row.event["op"]).startswith("store.")]
    told = [(row["op"], row["reason"], row["version_before"], row["version_after"]) for row in rows]
    assert sorted(told, key=str) == sorted(
        [
            ("store.put", "", None, 1),
            ("store.put", "", 1, 2),
            ("store.put", "verbatim", None, 1),
            ("store.delete", "", 2, 3),
        ],
        key=str,
    )
    assert {row["actor"] for row in rows} == {"store"}
    assert "coffee" not in str(rows)


# --- many at once


class Hurried(InMemoryBackend):
    """Somebody else is faster: each of the first commits finds its records changed."""

    def __init__(self, faster: int) -> None:
        super().__init__()
        self.faster = faster

    def batch(self, commit: Commit) -> Committed:
        if self.faster and commit.changes and commit.changes[0].expects is not None:
            self.faster -= 1
            (held,) = self.get([commit.changes[0].record.id])
            super().batch(Commit((Change(held, held.version),)))
        return super().batch(commit)


def test_a_lost_race_is_decided_again() -> None:
    backend = Hurried(faster=3)
    store = MemoryStore(SupervisorMemory(SETTINGS, backend=backend))
    store.put(ADA, "k", {"n": 1})
    store.put(ADA, "k", {"n": 2})
    assert value_at(store, ADA, "k") == {"n": 2}
    assert backend.get([Address(ADA, "k").id])[0].version == 5


def test_a_race_that_is_always_lost_is_told() -> None:
    store = MemoryStore(SupervisorMemory(SETTINGS, backend=Hurried(faster=10_000)))
    store.put(ADA, "k", {"n": 1})
    with pytest.raises(Conflict):
        store.put(ADA, "k", {"n": 2})


def test_threads_that_put_the_same_key_all_succeed(store: MemoryStore) -> None:
    def put(number: int) -> None:
        store.put(ADA, "k", {"n": number})
        store.put(ADA, f"k{number}", {"content": "the same text"})

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value_at(store, ADA, "k")["n"] in range(4)
    assert len(store.search(ADA)) == 5


def test_two_handles_on_one_directory_see_each_others_items(tmp_path: Path) -> None:
    handles = [SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path)) for _ in range(2)]
    one, other = map(MemoryStore, handles)
    for namespace in (ADA, ("docs",), (*ADA, "t", "deep")):
        one.put(namespace, "k", {"content": "likes tea"})
        assert value_at(other, namespace, "k") == {"content": "likes tea"}
        other.put(namespace, "k", {"content": "likes coffee"})
        assert value_at(one, namespace, "k") == {"content": "likes coffee"}
    for handle in handles:
        handle.close()


PUTTING = """
import sys
from pathlib import Path
from tests.host.test_store import ADA, SETTINGS, MemoryStore, SqliteBackend, SupervisorMemory

name, path = sys.argv[1:]
with SupervisorMemory(SETTINGS, backend=SqliteBackend(Path(path))) as memory:
    store = MemoryStore(memory)
    for number in range(10):
        store.put(ADA, f"{name}{number}", {"content": "the same text"})
        store.put(("docs",), "shared", {"by": name, "n": number})
"""


def test_two_processes_put_into_one_directory(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    both = [programs.start("-c", PUTTING, name, str(tmp_path), cwd=root) for name in "ab"]
    assert [process.wait(120) for process in both] == [0, 0]
    with SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path)) as memory:
        store = MemoryStore(memory)
        assert len(store.search(ADA, limit=100)) == 20
        assert value_at(store, ("docs",), "shared")["n"] == 9


async def test_the_async_twin_answers_alike_and_leaves_the_loop_free() -> None:
    class Slow(InMemoryBackend):
        def batch(self, commit: Commit) -> Committed:
            time.sleep(0.3)
            return super().batch(commit)

    store = MemoryStore(SupervisorMemory(SETTINGS, backend=Slow()))
    late: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late.append(time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(store.aput(ADA, f"k{number}", {"n": number}) for number in range(3)))
    ticking.cancel()
    assert len(late) > 5
    assert max(late) < 0.25
    assert (await store.aget(ADA, "k1")) == store.get(ADA, "k1")
    assert (await store.asearch(ADA)) == store.search(ADA)
    assert (await store.alist_namespaces()) == [ADA]
    await store.adelete(ADA, "k1")
    assert store.get(ADA, "k1") is None
