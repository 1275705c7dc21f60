"""Whatever is put, found and deleted, and however the labels look alike: a store is a dictionary."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, Op, PutOp, SearchOp

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.bridge import Bridge
from supervisor_memory.host.store.store import MemoryStore
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend

Labels: TypeAlias = tuple[str, ...]
Model: TypeAlias = dict[Labels, dict[str, dict[str, Any]]]

SETTINGS = Settings(embedding_model="none")
EXAMPLES = int(os.environ.get("STORE_EXAMPLES", "50"))
LABELS = (
    *("1", "12", "%", "_", "//", "*", "\u200b", "1\u200b", "K", "\u212a", "k", "%25", "%2E", "null"),
    *("memories", "_store", " 1", "1\n", "session_messages", "\u00e9", "e\u0301"),
)
WORDS = ("tea", "Tea.", "coffee", "", "\x00", "1", "%")

KEYS = ("1", "12", "%", "", "\u212a", "K")
VALUES: tuple[dict[str, Any], ...] = (
    *({"content": word} for word in WORDS),
    *({"kind": "Memory", "content": {"content": word}} for word in WORDS),
    *({}, {"a": None}, {"a": 1, "content": 2}, {"store": {"namespace": ["1"], "key": "1"}}, {"kind": "x"}),
)


def _operation(random: Random) -> Op:
    """Any operation; the fewer labels the likelier, so that the same places are met again."""
    labels = tuple(random.choices(LABELS, k=random.choice((1, 1, 2, 2, 2, 3, 4))))
    match random.randrange(8):
        case 0:
            return SearchOp(labels[: random.randrange(4)], limit=1_000, query=random.choice((None, *WORDS)))
        case 1:
            return GetOp(labels, random.choice(KEYS))
        case 2 | 3:
            return PutOp(labels, random.choice(KEYS), None)
    return PutOp(labels, random.choice(KEYS), random.choice(VALUES))


# Drawn beforehand: hypothesis takes longer to draw an operation than the store to do it.
OPERATIONS = [_operation(Random(number)) for number in range(5_000)]
operations = st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=9)


class Direct(Bridge):
    """Calls at once, without threads: this is about answers, and there are very many."""

    def within(self, seconds: float, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


MEMORY = SupervisorMemory(SETTINGS, backend=InMemoryBackend())


def store_over(backend: MemoryBackend) -> MemoryStore:
    """A new store, without the cost of a new memory."""
    store = MemoryStore(MEMORY)
    store._services = replace(MEMORY.services, backend=backend, bridge=Direct())
    return store


def agrees(store: MemoryStore, batch: list[Op], model: Model) -> None:
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


def follow(store: MemoryStore, given: list[Op]) -> None:
    """Do all to both, up to three at a time, and compare what is there in the end."""
    model: Model = {}
    for start in range(0, len(given), 3):
        agrees(store, given[start : start + 3], model)
    assert store.list_namespaces(limit=1_000) == sorted(namespace for namespace in model if model[namespace])
    prefixes = {(), *model}
    held = [GetOp(namespace, key) for namespace, items in model.items() for key in items]
    agrees(store, [*(SearchOp(prefix, limit=1_000) for prefix in sorted(prefixes)), *held], model)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations)
def test_a_store_in_memory_is_a_dictionary(given_operations: list[Op]) -> None:
    follow(store_over(InMemoryBackend()), given_operations)


@settings(max_examples=max(20, EXAMPLES // 49), deadline=None, suppress_health_check=list(HealthCheck))
@given(operations)
def test_a_store_in_sqlite_is_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, given_operations: list[Op]
) -> None:
    path: Path = tmp_path_factory.mktemp("store")
    backend = SqliteBackend(path)
    follow(store_over(backend), given_operations)
    backend.close()
