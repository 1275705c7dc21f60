"""A LangGraph store over a memory of each backend, and the places of two users."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.host.store.store import MemoryStore, label_for
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock

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


class Letters(Embeddings):
    """Counts letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.count(letter) + 0.01 for letter in "abcdefghij"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def value_at(store: MemoryStore, namespace: tuple[str, ...], key: str) -> dict[str, Any]:
    item = store.get(namespace, key)
    assert item is not None
    return item.value


def keys(found: Any) -> list[str]:
    return [item.key for item in found]
