"""A pytest plugin: LangGraph's own tests of its stores get ours in their place."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import langgraph.store.memory
import langgraph.store.sqlite
from langgraph.store.base import IndexConfig, TTLConfig

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.host.store.store import MemoryStore
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend

_SETTINGS = Settings(embedding_model="none")


class InMemoryStore(MemoryStore):
    """Ours, made as theirs is."""

    def __init__(self, *, index: IndexConfig | None = None) -> None:
        super().__init__(SupervisorMemory(_SETTINGS, backend=InMemoryBackend()), index=index)


class SqliteStore(MemoryStore):
    """Ours in a SQLite file, opened as theirs is."""

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: dict[str, Any] | None = None, ttl: TTLConfig | None = None
    ) -> Iterator["SqliteStore"]:
        config = None if index is None else cast(IndexConfig, {**index, "fields": index.get("text_fields")})
        with (
            tempfile.TemporaryDirectory() as directory,
            SupervisorMemory(_SETTINGS, backend=SqliteBackend(Path(directory))) as memory,
        ):
            yield cls(memory, index=config, ttl=ttl)

    def setup(self) -> None:
        """Ours needs none."""


def pytest_configure() -> None:
    langgraph.store.memory.InMemoryStore = InMemoryStore  # type: ignore[misc,assignment]
    langgraph.store.sqlite.SqliteStore = SqliteStore  # type: ignore[misc,assignment]
