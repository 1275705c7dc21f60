"""Flipped bytes, rows that were changed, taken out and moved: all are found, in a whole log nothing is."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import apsw
import pytest

from supervisor_memory.audit.verify import verified
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import NOW, direction, tea, with_vector

RECORDS = 20
FLIPS = 1000 if os.environ.get("FAULTS") == "long" else 100


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path)
    records = [with_vector(tea(f"tea number {n}, 绿茶"), direction(n)) for n in range(RECORDS)]
    backend.write(records)
    for record in records[::3]:
        backend.update([Change(replace(record, content=record.content + ", cold"), expects=1)])
    backend.delete([record.id for record in records[::5]])
    backend.write([tea("of bo", user="bo")])
    backend.erase("bo", at=NOW + 1)
    yield backend
    backend.close()


def problems(backend: SqliteBackend) -> list[str]:
    return verified(backend.audit, backend.get).problems


def test_in_a_whole_store_nothing_is_wrong(backend: SqliteBackend) -> None:
    found = verified(backend.audit, backend.get)
    assert found.problems == []
    assert (found.rows, found.records) == (backend.audit.count(), RECORDS + 1)
    assert verified(backend.audit).records == 0


def test_every_flipped_bit_of_a_records_text_is_found(
    backend: SqliteBackend, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """SQLite's own check says "ok" to all of them."""
    chance = Random(3)
    found = 0
    with closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        rows = connection.execute("SELECT key, data FROM records").fetchall()
        for _ in range(FLIPS):
            key, data = chance.choice(rows)
            text = json.dumps(json.loads(str(data))["content"], ensure_ascii=False)[1:-1].encode()
            stored = bytearray(str(data).encode())
            place = stored.index(b'"content":"' + text) + len(b'"content":"') + chance.randrange(len(text))
            stored[place] ^= 1 << chance.randrange(8)
            update = "UPDATE records SET data = CAST(? AS TEXT) WHERE key = ?"
            connection.execute(update, (bytes(stored), key))
            assert connection.pragma("integrity_check") == "ok"
            found += len(problems(backend)) == 1
            connection.execute(update, (str(data).encode(), key))
    assert problems(backend) == []
    record_property("flips", FLIPS)
    record_property("found", found)
    assert found == FLIPS


def test_a_record_that_is_older_or_gone_is_found(backend: SqliteBackend, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute("DELETE FROM records WHERE id = (SELECT min(id) FROM records)")
        connection.execute(
            "UPDATE records SET data = (SELECT data FROM versions v WHERE v.record_id = records.id "
            "AND v.version = 1) WHERE id = (SELECT max(record_id) FROM versions)"
        )
    found = problems(backend)
    assert len(found) == 2
    assert any("not in the store" in problem for problem in found)
    assert any("version 1" in problem for problem in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE audit SET payload = replace(payload, 'ok', 'OK') WHERE seq = 5", "row 5 .* was changed"),
        ("UPDATE audit SET op = 'x' WHERE seq = 5", "row 5 .* filed"),
        ("UPDATE audit SET hash = zeroblob(32) WHERE seq = 5", "row 5 .* was changed"),
        ("DELETE FROM audit WHERE seq BETWEEN 5 AND 7", "rows 5 to 7 .* missing"),
        ("UPDATE audit SET seq = seq + 1000 WHERE seq > 5", "rows 6 to 1005 .* missing"),
    ],
)
def test_a_row_that_was_changed_taken_out_or_moved_is_found(
    backend: SqliteBackend, tmp_path: Path, change: str, said: str
) -> None:
    with closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute("DROP TRIGGER audit_is_never_changed")
        connection.execute("DROP TRIGGER audit_is_never_removed")
        connection.execute(change)
    found = verified(backend.audit)
    assert re.search(said, found.problems[0])


def test_progress_is_told_by_rows_read_and_the_last_one(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor_memory.audit.verify._TOLD_EVERY", 10)
    told: list[tuple[int, int]] = []
    verified(backend.audit, progress=lambda done, total: told.append((done, total)))
    last = backend.audit.count()
    assert told == [(row, last) for row in range(10, last + 1, 10)]
    assert told
