"""A damaged store, repaired: what can be read is saved, the rest is named, and nothing is deleted."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import apsw
import pytest

from supervisor_memory.audit.archive import archive
from supervisor_memory.audit.rows import Access, row_hash
from supervisor_memory.audit.verify import verified
from supervisor_memory.errors import Conflict, CorruptStore, WasErased
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Record
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite.repair import Repaired, repair_json, repair_sqlite
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import NOW, assert_chain, direction, query, tea, with_vector
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, forked

PAGE = 4096
RECORDS = 60
FIRST_PAGE = "1 pages or rows that could not be read"
Backend = SqliteBackend | JsonBackend


def filled(backend: Backend) -> dict[str, Record]:
    """Short and long records, changed and deleted ones, accesses, and a user who was erased."""
    records = [
        with_vector(tea(f"tea {n}, 绿茶 " + "leaf " * (n % 7 * 400), user=f"user-{n % 3}"), direction(n))
        for n in range(RECORDS)
    ]
    backend.write(records)
    backend.update(
        [Change(replace(record, content=f"{record.content} cold"), expects=1) for record in records[::4]]
    )
    backend.delete([record.id for record in records[1::9]])
    backend.write([tea(f"said {n}", family=SESSION_FAMILY, layer="history") for n in range(5)])
    backend.write([tea("of bo", user="bo")])
    backend.erase("bo", at=NOW + 1)
    backend.audit.record_access([Access("search", NOW, "user-1", record_id=records[1].id)])
    backend.audit.flush()
    return all_of(backend)


def all_of(backend: Backend) -> dict[str, Record]:
    found = [
        *backend.list(Filter(statuses=None), limit=10**6),
        *backend.list(Filter(statuses=None, families=(SESSION_FAMILY,)), limit=10**6),
    ]
    return {record.id: record for record in found}


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    place = tmp_path_factory.mktemp("sqlite")
    with closing(SqliteBackend(place)) as backend:
        return place, filled(backend)


@pytest.fixture
def store(filled_once: tuple[Path, dict[str, Record]], tmp_path: Path) -> tuple[Path, dict[str, Record]]:
    place, records = filled_once
    return Path(shutil.copytree(place, tmp_path / "store")), dict(records)


def pages_of(place: Path, table: str, kind: str = "leaf") -> list[int]:
    """The numbers of a table's pages."""
    with closing(apsw.Connection(str(place / "memory.db"))) as connection:
        rows = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno", (table, kind)
        )
        return [int(str(number)) for (number,) in rows]


def damage(place: Path, pages: list[int], name: str = "memory.db", seed: int = 0) -> bytes:
    content = bytearray((place / name).read_bytes())
    for number in pages:
        content[(number - 1) * PAGE : number * PAGE] = Random(seed + number).randbytes(PAGE)
    (place / name).write_bytes(content)
    return bytes(content)


def assert_sound(place: Path, original: dict[str, Record], done: Repaired) -> dict[str, Record]:
    """The new store is whole, and holds nothing but what there was; returns what it holds."""
    found = inspected(place)
    assert found.damage == found.gaps == []
    assert [each for each in found.mismatches if not each.startswith(("versions", "audited"))] == []
    with closing(SqliteBackend(place)) as backend:
        assert verified(backend.audit, backend.get).problems == []
        assert_chain(backend.audit.tail(10**6), backend.audit.log_id)
        kept = all_of(backend)
        backend.write([with_vector(tea("a tea of later"), direction(1))])
        assert backend.search(query("later", vector=direction(1)), limit=5)
    for record in kept.values():
        if record.status != "quarantined":
            assert replace(record, embedder=original[record.id].embedder) == original[record.id]
    assert done.saved["records"] == len(kept)
    return kept


def test_a_whole_store_is_left_as_it_is(store: tuple[Path, dict[str, Record]]) -> None:
    place, _ = store
    before = {file.name: file.read_bytes() for file in place.iterdir() if file.suffix != ".db-shm"}
    assert repair_sqlite(place, now=NOW) == Repaired()
    assert {name: (place / name).read_bytes() for name in before} == before


def test_without_its_first_page_everything_is_saved(store: tuple[Path, dict[str, Record]]) -> None:
    """It holds the header and the list of tables."""
    place, original = store
    damaged = damage(place, [1])
    with pytest.raises(CorruptStore, match="repair"):
        SqliteBackend(place)
    done = repair_sqlite(place, now=NOW)
    assert done.wrong
    assert done.lost == [FIRST_PAGE]
    assert assert_sound(place, original, done) == original
    assert re.fullmatch(r"memory\.db\.damaged-\d{8}T\d{6}Z", done.put_aside[0].name)
    assert done.put_aside[0].read_bytes() == damaged


def test_of_random_pages_everything_else_is_saved_and_what_is_lost_is_named(
    store: tuple[Path, dict[str, Record]], tmp_path: Path, figures: Callable[..., None]
) -> None:
    place, original = store
    pages = (place / "memory.db").stat().st_size // PAGE
    saved = lost = aside = 0
    times = 100 if LONG else 3
    for seed in range(times):
        copy = tmp_path / str(seed)
        shutil.copytree(place, copy)
        damaged = damage(copy, Random(seed).sample(range(1, pages + 1), 4), seed=seed)
        done = repair_sqlite(copy, now=NOW)
        if not done.wrong:  # free pages
            continue
        kept = assert_sound(copy, original, done)
        assert done.put_aside[-1].exists()
        assert any(file.read_bytes() == damaged for file in done.put_aside if file.suffix != ".jsonl")
        missing = set(original) - set(kept)
        assert all(any(each in sentence for sentence in done.lost) for each in missing) or any(
            "audit log" in sentence for sentence in done.lost
        )
        quarantined = sum(record.status == "quarantined" for record in kept.values())
        saved, lost, aside = saved + len(kept) - quarantined, lost + len(missing), aside + quarantined
        shutil.rmtree(copy)
    figures(stores=times, of_pages=pages, records_saved=saved, put_aside=aside, records_lost=lost)
    assert saved > times * len(original) * 0.5


def test_a_log_with_a_damaged_page_is_left_and_the_new_one_says_where_it_broke(
    store: tuple[Path, dict[str, Record]],
) -> None:
    place, original = store
    with closing(SqliteBackend(place)) as backend:
        rows, log_id = backend.audit.count(), backend.audit.log_id
    leaf = pages_of(place, "audit")[2]
    damage(place, [leaf])
    done = repair_sqlite(place, now=NOW)
    assert assert_sound(place, original, done) == original
    with closing(SqliteBackend(place)) as backend:
        first = backend.audit.rows(limit=1)[0]
        assert (first.seq, first.op, first.event["reason"]) == (1, "store.repaired", "the-log-broke")
        assert backend.audit.log_id != log_id
    told = first.event["detail"]
    assert told["log"] == log_id
    beside = next(file for file in done.put_aside if file.suffix == ".jsonl")
    left = [json.loads(line) for line in beside.read_text().splitlines()]
    assert len(left) == told["rows_left"] < rows
    assert next(row for row in left if row["seq"] == told["whole_until"])["hash"] == told["hash"]
    assert told["whole_until"] + 1 not in {row["seq"] for row in left}
    for row in left:
        digest = row_hash(log_id, bytes.fromhex(row["prev_hash"]), row["payload"].encode())
        assert digest.hex() == row["hash"]


def test_a_log_whose_oldest_rows_are_archived_goes_on_behind_them(
    store: tuple[Path, dict[str, Record]], tmp_path: Path
) -> None:
    place, original = store
    with closing(SqliteBackend(place)) as backend:
        archived = backend.audit.rows(limit=1)[0].event_id
        archive(backend.audit, tmp_path / "archive", at=NOW, keep=10)
        log_id, segments = backend.audit.log_id, backend.audit.segments()
    damage(place, [1])
    done = repair_sqlite(place, now=NOW)
    assert done.lost == [FIRST_PAGE]
    with closing(SqliteBackend(place)) as backend:
        assert (backend.audit.log_id, backend.audit.segments()) == (log_id, segments)
        assert verified(backend.audit, backend.get, archives=[tmp_path / "archive"]).problems == []
        assert all_of(backend) == original
        with pytest.raises(Conflict):
            backend.audit.check_new([AuditEvent("memory.write", id=archived)])


def test_a_log_that_is_archived_and_damaged_is_left_and_a_new_one_begun(
    store: tuple[Path, dict[str, Record]], tmp_path: Path
) -> None:
    place, original = store
    with closing(SqliteBackend(place)) as backend:
        archive(backend.audit, tmp_path / "archive", at=NOW, keep=40)
        log_id = backend.audit.log_id
    damage(place, [pages_of(place, "audit")[0]])
    assert assert_sound(place, original, repair_sqlite(place, now=NOW)) == original
    with closing(SqliteBackend(place)) as backend:
        assert backend.audit.log_id != log_id
        assert backend.audit.segments() == ()
        assert backend.audit.rows(limit=1)[0].event["reason"] == "the-log-broke"


def test_a_record_of_which_only_an_earlier_version_is_left_is_kept_and_not_recalled(
    store: tuple[Path, dict[str, Record]],
) -> None:
    place, original = store
    with closing(apsw.Connection(str(place / "memory.db"))) as connection:
        record_id = str(connection.execute("SELECT id FROM records WHERE version = 2 LIMIT 1").get)
        connection.execute("UPDATE records SET data = zeroblob(9) WHERE id = ?", (record_id,))
    done = repair_sqlite(place, now=NOW)
    kept = assert_sound(place, original, done)
    assert (kept[record_id].status, kept[record_id].version) == ("quarantined", 1)
    assert any(record_id in each and "not recalled" in each for each in done.lost)
    assert kept.keys() == original.keys()


def test_a_text_with_a_flipped_bit_is_kept_and_not_recalled(store: tuple[Path, dict[str, Record]]) -> None:
    place, original = store
    content = (place / "memory.db").read_bytes()
    (place / "memory.db").write_bytes(content.replace(b'"content":"tea 5,', b'"content":"tea 7,'))
    done = repair_sqlite(place, now=NOW)
    kept = assert_sound(place, original, done)
    (changed,) = [record for record in kept.values() if record.status == "quarantined"]
    assert changed.content.startswith("tea 7,")
    assert any("its text is damaged" in each for each in done.lost)
    with closing(SqliteBackend(place)) as backend:
        assert repair_sqlite(place, now=NOW) == Repaired()
        assert backend.audit.tail(9, op="store.salvaged")


def test_what_is_only_in_the_log_beside_the_file_is_saved(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "open")
    original = filled(backend)
    place = Path(shutil.copytree(tmp_path / "open", tmp_path / "store"))
    backend.close()
    damage(place, [1])
    done = repair_sqlite(place, now=NOW)
    assert done.lost == [FIRST_PAGE]
    assert assert_sound(place, original, done) == original
    assert any(file.name.endswith("-wal") for file in done.put_aside)


def test_of_a_file_that_was_cut_off_the_beginning_is_saved(store: tuple[Path, dict[str, Record]]) -> None:
    place, original = store
    content = (place / "memory.db").read_bytes()
    (place / "memory.db").write_bytes(content[: len(content) // 2])
    done = repair_sqlite(place, now=NOW)
    kept = assert_sound(place, original, done)
    assert 0 < len(kept) <= len(original)
    assert done.lost


def test_who_was_erased_stays_erased(store: tuple[Path, dict[str, Record]]) -> None:
    place, _ = store
    damage(place, [1])
    repair_sqlite(place, now=NOW)
    with closing(SqliteBackend(place)) as backend:
        assert not any(backend.holds("bo").values())
        with pytest.raises(WasErased):
            backend.write([tea("again of bo", user="bo")])
        assert backend.audit.accesses(9)


# --- memory.json


@pytest.fixture(scope="module")
def json_filled_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    place = tmp_path_factory.mktemp("json")
    with closing(JsonBackend(place)) as backend:
        return place, filled(backend)


@pytest.fixture
def json_store(
    json_filled_once: tuple[Path, dict[str, Record]], tmp_path: Path
) -> tuple[Path, dict[str, Record]]:
    place, records = json_filled_once
    return Path(shutil.copytree(place, tmp_path / "store")), dict(records)


def test_a_whole_json_store_is_left_as_it_is(json_store: tuple[Path, dict[str, Record]]) -> None:
    place, _ = json_store
    before = (place / "memory.json").read_bytes()
    assert repair_json(place, now=NOW) == Repaired()
    assert (place / "memory.json").read_bytes() == before


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_of_a_json_file_that_was_cut_off_the_beginning_is_saved(
    json_store: tuple[Path, dict[str, Record]], part: float
) -> None:
    place, original = json_store
    content = (place / "memory.json").read_bytes()
    (place / "memory.json").write_bytes(content[: int(len(content) * part)])
    with pytest.raises(CorruptStore, match="repair"):
        JsonBackend(place)
    done = repair_json(place, now=NOW)
    with closing(JsonBackend(place)) as backend:
        kept = all_of(backend)
        assert verified(backend.audit, backend.get).problems == []
        backend.write([tea("a tea of later")])
    assert kept
    assert all(replace(r, embedder=original[r.id].embedder) == original[r.id] for r in kept.values())
    missing = set(original) - set(kept)
    assert all(any(each in sentence for sentence in done.lost) for each in missing)
    assert done.put_aside[0].read_bytes() == content[: int(len(content) * part)]


def test_flipped_bytes_in_a_json_file_cost_no_more_than_what_they_hit(
    json_store: tuple[Path, dict[str, Record]],
) -> None:
    place, original = json_store
    content = bytearray((place / "memory.json").read_bytes())
    places = Random(5).sample(range(200, len(content)), 20)
    for each in places:
        content[each] ^= 1 << Random(each).randrange(8)
    (place / "memory.json").write_bytes(content)
    done = repair_json(place, now=NOW)
    with closing(JsonBackend(place)) as backend:
        kept = all_of(backend)
        assert verified(backend.audit, backend.get).problems == []
    assert done.lost
    assert len(kept) >= len(original) - 20
    for record in kept.values():
        if record.status != "quarantined":
            assert record.content == original[record.id].content


def test_a_damaged_log_beside_a_whole_json_file_is_begun_anew(
    json_store: tuple[Path, dict[str, Record]],
) -> None:
    place, original = json_store
    damage(place, [1, 3, 4, 5], name="audit.db")
    repair_json(place, now=NOW)
    with closing(JsonBackend(place)) as backend:
        assert all_of(backend) == original
        assert verified(backend.audit, backend.get).problems == []


# --- killed


@FORKS[0]
@FORKS[1]
def test_a_repair_that_is_killed_at_any_moment_can_be_done_again(
    store: tuple[Path, dict[str, Record]], tmp_path: Path
) -> None:
    place, original = store
    damaged = damage(place, [1])
    begun = time.perf_counter()
    whole = Path(shutil.copytree(place, tmp_path / "whole"))
    repair_sqlite(whole, now=NOW)
    seconds = time.perf_counter() - begun
    chance = Random(11)
    for number in range(60 if LONG else 3):
        copy = Path(shutil.copytree(place, tmp_path / str(number)))
        child = forked(partial(_repair, copy))
        time.sleep(chance.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert (copy / "memory.db").exists()
        done = repair_sqlite(copy, now=NOW)
        assert all_of_place(copy) == original
        assert any(file.read_bytes() == damaged for file in copy.glob("memory.db.damaged-*"))
        assert done.lost in ([], [FIRST_PAGE])  # done before it was killed, or now
        assert not (copy / ".repair").exists()
        shutil.rmtree(copy)


def _repair(place: Path) -> None:
    repair_sqlite(place, now=NOW)


def all_of_place(place: Path) -> dict[str, Record]:
    with closing(SqliteBackend(place)) as backend:
        return all_of(backend)
