"""Records that were found before are not read from the file again, and are never out of date."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from supervisor_memory.model.records import Filter, Hits, Query, Record, new_id
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite import namespaces as readable
from supervisor_memory.stores.sqlite.store import SqliteBackend

HERE = Filter(user_id="ada", families=("domain_facts",))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path)
    yield backend
    backend.close()


def vector(number: int) -> npt.NDArray[np.float32]:
    angle = number / 100
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def record(number: int, **values: object) -> Record:
    made = Record(
        new_id(),
        ("domain_facts", "ada"),
        f"fact {number}",
        "domain-facts",
        created_at=1.0,
        updated_at=1.0,
        metadata={"number": number},
        embedder="test",
        vector=vector(number),
    )
    return replace(made, **values)  # type: ignore[arg-type]


def found(backend: SqliteBackend, number: int, *, now: float = 2.0, where: Filter = HERE) -> Hits:
    query = Query("", where, vector=vector(number), embedder="test", now=now)
    return backend.search(query, limit=3)


def contents(hits: Hits) -> list[str]:
    return [hit.record.content for hit in hits]


def test_what_another_handle_changed_is_found_as_it_is_now(backend: SqliteBackend, tmp_path: Path) -> None:
    backend.write([record(number) for number in range(3)])
    before = found(backend, 0)[0].record
    with_two_handles = SqliteBackend(tmp_path)
    with_two_handles.update([Change(replace(before, content="it changed"), expects=1)])
    assert contents(found(backend, 0)) == ["it changed", "fact 1", "fact 2"]
    with_two_handles.delete(before.id)
    assert contents(found(backend, 1)) == ["fact 1", "fact 2"]
    with_two_handles.close()


def test_what_is_undone_was_never_known(backend: SqliteBackend) -> None:
    backend.write([record(0)])
    with contextlib.suppress(ZeroDivisionError), backend.database.writing():
        backend.write([record(1)])
        assert contents(found(backend, 1)) == ["fact 1", "fact 0"]
        raise ZeroDivisionError
    assert contents(found(backend, 1)) == ["fact 0"]
    backend.write([record(2)])
    assert contents(found(backend, 1)) == ["fact 2", "fact 0"]


def test_a_known_record_is_not_found_when_its_time_is_over(backend: SqliteBackend) -> None:
    backend.write([record(0, expires_at=10.0), record(1)])
    assert contents(found(backend, 0)) == ["fact 0", "fact 1"]
    assert contents(found(backend, 2, now=20.0)) == ["fact 1"]


def test_a_filter_holds_for_known_records_too(backend: SqliteBackend) -> None:
    backend.write([record(number, tags=("odd",) if number % 2 else ()) for number in range(6)])
    assert contents(found(backend, 0)) == ["fact 0", "fact 1", "fact 2"]
    assert contents(found(backend, 0, where=replace(HERE, tags=("odd",)))) == ["fact 1", "fact 3", "fact 5"]


def test_more_may_be_found_than_are_kept(backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "MOST_RECORDS", 2)
    backend.write([record(number) for number in range(9)])
    for number in (0, 8, 4, 0, 8):
        nearest = sorted(range(9), key=lambda each: abs(each - number))[:3]
        assert set(contents(found(backend, number))) == {f"fact {each}" for each in nearest}
