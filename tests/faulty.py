"""Backends, embedders and models that fail in every way, for tests."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supervisor_memory.backends.in_memory import InMemoryBackend
from supervisor_memory.backends.protocol import Commit, Committed
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.records import Filter, Hits, Query, Record

__all__ = ["FAULTS", "FaultyBackend", "FaultyEmbedder", "NotAnException", "faulty_model"]

HANG_SECONDS = 3.0


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


class FaultyBackend(InMemoryBackend):
    """Works until `break_`."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: dict[str, Callable[[], Any]] = {}

    def break_(self, method: str, fault: str) -> None:
        self._faults[method] = FAULTS[fault]

    def mend(self) -> None:
        self._faults.clear()

    def _call(self, method: str, working: Callable[[], Any]) -> Any:
        return self._faults.get(method, working)()

    def search(self, query: Query, *, limit: int) -> Hits:
        work = super().search
        return self._call("search", lambda: work(query, limit=limit))  # type: ignore[no-any-return]

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Any:
        work = super().list
        return self._call("list", lambda: work(where, limit=limit, offset=offset))

    def get(self, ids: Any) -> Any:
        work = super().get
        return self._call("get", lambda: work(ids))

    def versions(self, record_id: str) -> Any:
        work = super().versions
        return self._call("versions", lambda: work(record_id))

    def count(self, where: Filter) -> int:
        work = super().count
        return self._call("count", lambda: work(where))  # type: ignore[no-any-return]

    def batch(self, commit: Commit) -> Committed:
        work = super().batch
        return self._call("batch", lambda: work(commit))  # type: ignore[no-any-return]

    def contents(self) -> Sequence[Record]:
        self.mend()
        return [
            *self.list(Filter(), limit=999),
            *self.list(Filter(families=("session_messages",)), limit=999),
        ]


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
