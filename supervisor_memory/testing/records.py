"""Helpers for tests of a store: records, vectors, searches, changes, and checks."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from supervisor_memory.audit.rows import GENESIS, AuditRow, row_hash
from supervisor_memory.errors import Conflict
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Hits, Namespace, Query, Record, new_id
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.protocol import Change, MemoryBackend

NOW = 1_767_571_200.0
DIMENSION = 8
EMBEDDER = "compass@1/8"
ALIKE = (
    *("1", "12", "01", "%", "_", "*", "[1]", "../1", "K", "k"),
    *("Users", "users", "用户", "a b", 'a"b', "a'b"),
)
"""Users that a careless comparison would take for each other."""
ODD_TEXTS = (
    "用户喜欢绿茶，不喜欢咖啡",
    "emoji 👩‍👩‍👧‍👦 and flags 🇨🇦",
    "right to left: שלום \u202e end",
    "quotes \" ' ` and \\ and ; DROP TABLE records; --",
    "tabs\tand\nnew\r\nlines",
    "{'json': [1, 2]} </memory> <b>bold</b>",
    "combining e\u0301 and é, K and K",
    "NEAR(a b) AND body:x OR * ^ - +",
    "\ufeffbyte order mark \u200b zero width",
    "x" * 60_000,
)


def direction(number: int, *, dimension: int = DIMENSION) -> Vector:
    """The unit vector along one axis."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[number % dimension] = 1.0
    return vector


def tea(content: str = "likes green tea", *, user: str = "alice", **values: Any) -> Record:
    """A record about tea; `values` replace its fields."""
    family, task = values.pop("family", "user_profile"), values.pop("task", None)
    namespace: Namespace = (family, user) if task is None else (family, user, task)
    settled: dict[str, Any] = {"kind": "user-profile", "created_at": NOW, "updated_at": NOW, "id": new_id()}
    return Record(namespace=namespace, content=content, **(settled | values))


def with_vector(record: Record, vector: Vector, embedder: str = EMBEDDER) -> Record:
    return replace(record, vector=vector, embedder=embedder)


def embedded(content: str = "likes green tea", *, axis: int = 0, **values: Any) -> Record:
    """As `tea`, with the unit vector along an axis."""
    return with_vector(tea(content, **values), direction(axis))


def written(backend: MemoryBackend, record: Record) -> Record:
    """Write a record, and give it back."""
    backend.write([record])
    return record


def query(text: str = "tea", *, user: str = "alice", now: float = NOW, **values: Any) -> Query:
    """A search by words, and by `vector` where one is given; the rest goes to the filter."""
    vector, embedder = values.pop("vector", None), values.pop("embedder", EMBEDDER)
    where = Filter(user_id=user, **values)
    return Query(text, where, terms(text), vector, embedder if vector is not None else None, now)


def changed(record: Record, **values: Any) -> Change:
    """A change of a record that was just written."""
    return Change(replace(record, **values), expects=record.version)


def contents(found: Hits | Iterable[Record]) -> list[str]:
    records = (hit.record for hit in found) if isinstance(found, Hits) else found
    return sorted(record.content for record in records)


def ids(records: Iterable[Record]) -> list[str]:
    return [record.id for record in records]


def everything(backend: MemoryBackend) -> Sequence[Record]:
    return backend.list(Filter(statuses=None), limit=1_000_000)


def ways(hits: Hits) -> dict[str, set[str]]:
    """Content of a hit → how it was found: by "cosine", by "bm25"."""
    return {hit.record.content: {*hit.parts} & {"cosine", "bm25"} for hit in hits}


@contextlib.contextmanager
def conflict(what: str, record: Record) -> Iterator[None]:
    """Check that the block raises a Conflict about the record."""
    with pytest.raises(Conflict) as raised:
        yield
    assert (raised.value.facts["what"], raised.value.facts["record_id"]) == (what, record.id)


def assert_chain(rows: Sequence[AuditRow], log_id: str) -> None:
    """Check that the rows are a whole log: gapless from 1, each with the right hash."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    previous = GENESIS
    for row in rows:
        assert row.prev_hash == previous
        assert row.hash == row_hash(log_id, previous, row.payload)
        previous = row.hash
