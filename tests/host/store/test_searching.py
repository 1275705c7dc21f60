"""Batches, filters, listings, and searches with a query, by words and by meaning."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langgraph.store.base import GetOp, IndexConfig, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from supervisor_memory import SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import InvalidContent
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.store import MemoryStore
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case
from tests.host.store.conftest import ADA, BOB, SETTINGS, Letters, keys, value_at


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
