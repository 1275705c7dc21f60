"""Backends, embedders and models that fail in every way, for tests."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.model.records import Filter, Hits, Query, Record, WriteResult
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit, Committed, Health, Ids, MemoryBackend

__all__ = ["FAULTS", "LOST", "FaultyBackend", "FaultyEmbedder", "NotAnException", "faulty_model"]

HANG_SECONDS = 3.0
LOST = "loses the answer of what it has done"
"""A fault of a backend alone, beside those of `FAULTS`."""


class NotAnException(BaseException):
    """As langmem's ConfigurationError is."""


def _raise(error: BaseException) -> Any:
    raise error


FAULTS: dict[str, Callable[[], Any]] = {
    "raises": lambda: _raise(RuntimeError("the disk is on fire")),
    "raises no Exception": lambda: _raise(NotAnException("misconfigured")),
    "hangs": lambda: time.sleep(HANG_SECONDS),
    "answers garbage": lambda: "garbage",
    "answers None": lambda: None,
}


class FaultyBackend:
    """A real backend that works until `break_`.

    Args:
        behind: None: one in memory.
    """

    def __init__(self, behind: MemoryBackend | None = None) -> None:
        self.behind = InMemoryBackend() if behind is None else behind
        self._faults: dict[str, Callable[[Callable[[], Any]], Any]] = {}

    @property
    def name(self) -> str:
        return self.behind.name

    @property
    def audit(self) -> AuditLog:
        return self.behind.audit

    def break_(self, method: str, fault: str) -> None:
        self._faults[method] = _loses_the_answer if fault == LOST else lambda _: FAULTS[fault]()

    def mend(self) -> None:
        self._faults.clear()

    def _call(self, method: str, *args: Any, **options: Any) -> Any:
        work = functools.partial(getattr(self.behind, method), *args, **options)
        return self._faults[method](work) if method in self._faults else work()

    def search(self, query: Query, *, limit: int) -> Hits:
        return self._call("search", query, limit=limit)  # type: ignore[no-any-return]

    def write(self, records: Sequence[Record]) -> Sequence[WriteResult]:
        return self._call("write", records)  # type: ignore[no-any-return]

    def update(self, changes: Sequence[Change]) -> Sequence[WriteResult]:
        return self._call("update", changes)  # type: ignore[no-any-return]

    def delete(self, target: Ids | Filter) -> int:
        return self._call("delete", target)  # type: ignore[no-any-return]

    def batch(self, commit: Commit) -> Committed:
        return self._call("batch", commit)  # type: ignore[no-any-return]

    def get(self, ids: Ids) -> Sequence[Record]:
        return self._call("get", ids)  # type: ignore[no-any-return]

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return self._call("list", where, limit=limit, offset=offset)  # type: ignore[no-any-return]

    def count(self, where: Filter) -> int:
        return self._call("count", where)  # type: ignore[no-any-return]

    def versions(self, record_id: str) -> Sequence[Record]:
        return self._call("versions", record_id)  # type: ignore[no-any-return]

    def health(self) -> Health:
        return self._call("health")  # type: ignore[no-any-return]

    def close(self) -> None:
        self.behind.close()

    def contents(self) -> Sequence[Record]:
        self.mend()
        return [
            *self.behind.list(Filter(), limit=999),
            *self.behind.list(Filter(families=("session_messages",)), limit=999),
        ]


def _loses_the_answer(work: Callable[[], Any]) -> Any:
    work()
    raise ConnectionError("the line was cut before the answer came")


class FaultyEmbedder(HashingEmbedder):
    """An embedder with a fault. `where` is "embedding", or a property that loads the model first."""

    def __init__(self, fault: str, *, where: str = "embedding") -> None:
        super().__init__()
        self._fault, self._where = fault, where
        self.calls = 0

    def _vectors(self, rows: int) -> Any:
        self.calls += 1
        shapes = {
            "wrong dimension": np.ones((rows, 3), np.float32),
            "NaN": np.full((rows, 256), np.nan, np.float32),
            "zero": np.zeros((rows, 256), np.float32),
            "too many": np.ones((rows + 1, 256), np.float32),
        }
        return shapes[self._fault] if self._fault in shapes else FAULTS[self._fault]()

    @property
    def fingerprint(self) -> str:
        return FAULTS[self._fault]() if self._where == "fingerprint" else "faulty@1/256"

    @property
    def calibration(self) -> Any:
        return FAULTS[self._fault]() if self._where == "calibration" else super().calibration

    def embed_query(self, text: str) -> Any:
        vectors = self._vectors(1)
        return vectors[0] if isinstance(vectors, np.ndarray) else vectors

    def embed_documents(self, texts: Any) -> Any:
        return self._vectors(len(texts))


def faulty_model(fault: str) -> Any:
    """A chat model with a fault."""
    from supervisor_memory.testing.scripted import ScriptedModel

    def reply(messages: Any) -> Any:
        return FAULTS[fault]()

    return ScriptedModel(script=[reply] * 99)
