"""Whatever is put, found and deleted, and however the labels look alike: a store is a dictionary."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, PutOp, SearchOp

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.backends.in_memory import InMemoryBackend
from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.backends.sqlite import SqliteBackend
from supervisor_memory.bridge import Bridge
from supervisor_memory.graph.store import MemoryStore

Labels: TypeAlias = tuple[str, ...]
Model: TypeAlias = dict[Labels, dict[str, dict[str, Any]]]

SETTINGS = Settings(embedding_model="none", search_timeout_ms=60_000, write_timeout_ms=60_000)
LABELS = (
    *("1", "12", "%", "_", "//", "*", "\u200b", "1\u200b", "K", "\u212a", "k", "%25", "%2E", "null"),
    *("memories", "_store", " 1", "1\n", "session_messages", "\u00e9", "e\u0301"),
)
WORDS = ("tea", "Tea.", "coffee", "", "\x00", "1", "%")

labels = st.lists(st.sampled_from(LABELS), min_size=1, max_size=4).map(tuple)
keys = st.sampled_from(("1", "12", "%", "", "\u212a", "K"))
values = st.one_of(
    st.sampled_from(WORDS).map(lambda word: {"content": word}),
    st.sampled_from(WORDS).map(lambda word: {"kind": "Memory", "content": {"content": word}}),
    st.dictionaries(st.sampled_from(("a", "content", "kind", "store")), st.none() | st.integers(0, 2)),
)
prefixes = st.lists(st.sampled_from(LABELS), max_size=3).map(tuple)
puts = st.tuples(labels, keys, values).map(lambda put: PutOp(*put))
deletions = st.tuples(labels, keys).map(lambda at: PutOp(*at, None))
gets = st.tuples(labels, keys).map(lambda at: GetOp(*at))
searches = st.tuples(prefixes, st.none() | st.sampled_from(WORDS)).map(
    lambda asked: SearchOp(asked[0], limit=1_000, query=asked[1])
)
operations = st.one_of(puts, puts, puts, deletions, gets, searches)
batches = st.lists(st.lists(operations, min_size=1, max_size=5), min_size=1, max_size=4)


class Direct(Bridge):
    """Calls at once, without threads: this is about answers, and there are very many."""

    def within(self, seconds: float, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


MEMORY = SupervisorMemory(SETTINGS, backend=InMemoryBackend())


def store_over(backend: MemoryBackend) -> MemoryStore:
    """A new store, without the cost of a new memory."""
    store = MemoryStore(MEMORY)
    store._services = replace(MEMORY._services, backend=backend, bridge=Direct())
    return store


def agrees(store: MemoryStore, batch: list[Any], model: Model) -> None:
    """Do a batch to both. What the store answers is what the dictionary holds."""
    answers = store.batch(batch)
    for op, answer in zip(batch, answers, strict=True):
        if isinstance(op, GetOp):
            held = model.get(op.namespace, {}).get(op.key)
            found: Any = answer
            assert (None if found is None else (found.namespace, found.key, found.value)) == (
                None if held is None else (op.namespace, op.key, held)
            )
        elif isinstance(op, SearchOp):
            items: Any = answer
            found = sorted((item.namespace, item.key, repr(item.value)) for item in items)
            assert found == sorted(under(op.namespace_prefix, model))
    for op in batch:
        if isinstance(op, PutOp):
            if op.value is None:
                model.get(op.namespace, {}).pop(op.key, None)
            else:
                model.setdefault(op.namespace, {})[op.key] = dict(op.value)


def under(prefix: Labels, model: Model) -> list[tuple[Labels, str, str]]:
    return [
        (namespace, key, repr(value))
        for namespace, items in model.items()
        if namespace[: len(prefix)] == prefix
        for key, value in items.items()
    ]


def follow(store: MemoryStore, given: list[list[Any]]) -> None:
    model: Model = {}
    for batch in given:
        agrees(store, batch, model)
    agrees(store, [SearchOp((), limit=1_000)], model)
    assert store.list_namespaces(limit=1_000) == sorted(namespace for namespace in model if model[namespace])
    for namespace, items in model.items():
        agrees(store, [SearchOp(namespace, limit=1_000), *(GetOp(namespace, key) for key in items)], model)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches)
def test_a_store_in_memory_is_a_dictionary(given_batches: list[list[Any]]) -> None:
    follow(store_over(InMemoryBackend()), given_batches)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches)
def test_a_store_in_sqlite_is_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, given_batches: list[list[Any]]
) -> None:
    path: Path = tmp_path_factory.mktemp("store")
    backend = SqliteBackend(path)
    follow(store_over(backend), given_batches)
    backend.close()
