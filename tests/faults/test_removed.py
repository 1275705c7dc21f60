"""The files of a store are removed or replaced while it is open: nothing is acknowledged that is lost."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendUnavailable, CorruptStore
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.stores.sqlite.tables import STEPS
from supervisor_memory.testing.records import assert_chain, direction, query, tea, with_vector
from tests.faults.inspection import inspected
from tests.faults.processes import addition
from tests.stores.test_group import in_threads


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def backend(place: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(place, lock_seconds=0.5)
    backend.write([with_vector(tea("first tea"), direction(0))])
    assert len(_searched(backend)) == 1  # a reader is open as well
    yield backend
    backend.close()


def _searched(backend: SqliteBackend) -> list[str]:
    hits = backend.search(query("tea", vector=direction(0)), limit=99)
    return sorted(hit.record.content for hit in hits)


def _saved_copy(place: Path) -> Path:
    """A backup, as one makes it of a store that nobody has open."""
    copy = place.with_name("backup")
    source = place.with_name("source")
    shutil.copytree(place, source)
    with closing(SqliteBackend(source)):
        pass
    copy.mkdir()
    shutil.copy(source / "memory.db", copy)
    return copy


def test_into_a_removed_directory_nothing_is_saved_and_nothing_read(
    backend: SqliteBackend, place: Path
) -> None:
    shutil.rmtree(place)
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match=r"memory\.db was removed"):
            backend.write([tea("lost tea")])
        with pytest.raises(BackendUnavailable, match=r"memory\.db was removed"):
            backend.search(query(), limit=5)
    assert not backend.health().ok
    assert not place.exists()


def test_a_file_removed_between_begin_and_commit_is_noticed(backend: SqliteBackend, place: Path) -> None:
    def removed_meanwhile() -> None:
        with backend.database.writing():
            backend.write([tea("lost tea")])
            (place / "memory.db").unlink()

    with pytest.raises(BackendUnavailable, match="while it was written"):
        removed_meanwhile()


def test_many_that_wait_are_all_told_and_none_waits_for_the_others(
    backend: SqliteBackend, place: Path
) -> None:
    shutil.rmtree(place)
    errors = in_threads([partial(backend.batch, addition(f"tea {n}")) for n in range(32)])
    assert {type(error) for error in errors} == {BackendUnavailable}


def test_a_restored_backup_is_read_and_written_from_the_next_call_on(
    backend: SqliteBackend, place: Path
) -> None:
    backup = _saved_copy(place)
    backend.write([with_vector(tea("second tea"), direction(0))])
    assert _searched(backend) == ["first tea", "second tea"]
    shutil.rmtree(place)
    backup.rename(place)
    assert _searched(backend) == ["first tea"]
    backend.write([with_vector(tea("third tea"), direction(0))])
    assert _searched(backend) == ["first tea", "third tea"]
    assert inspected(place).is_fine
    assert_chain(backend.audit.tail(99), backend.audit.log_id)


def test_another_store_put_in_its_place_is_continued_in_its_own_log(
    backend: SqliteBackend, place: Path
) -> None:
    other = place.with_name("other")
    with closing(SqliteBackend(other)) as another:
        another.write([tea("tea of another")])
        log_id = another.audit.log_id
    shutil.rmtree(place)
    other.rename(place)
    backend.write([tea("fourth tea")])
    assert {record.content for record in backend.list(Filter(), limit=9)} == {"tea of another", "fourth tea"}
    assert backend.audit.log_id == log_id
    assert inspected(place).is_fine


def test_what_is_no_store_is_refused_in_its_place(backend: SqliteBackend, place: Path) -> None:
    shutil.rmtree(place)
    place.mkdir()
    (place / "memory.db").write_bytes(b"")
    with pytest.raises(BackendUnavailable, match="put the right file back"):
        backend.write([tea("lost tea")])
    (place / "memory.db").unlink()
    (place / "memory.db").write_bytes(b"some notes " * 400)
    with pytest.raises(CorruptStore):
        backend.write([tea("lost tea")])


def test_a_log_that_is_removed_loses_nothing_acknowledged_and_nothing_more_is_saved(
    backend: SqliteBackend, place: Path
) -> None:
    (place / "memory.db-wal").unlink()
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match=r"memory\.db-wal was removed"):
            backend.write([tea("second tea")])
    backend.close()
    with closing(SqliteBackend(place)) as again:
        assert _searched(again) == ["first tea"]
        again.write([tea("third tea")])
    assert inspected(place).is_fine


def test_a_file_that_is_only_moved_elsewhere_and_back_is_the_same(
    backend: SqliteBackend, place: Path
) -> None:
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(BackendUnavailable):
        backend.write([tea("second tea")])
    place.with_name("elsewhere").rename(place)
    backend.write([tea("second tea")])
    assert inspected(place).is_fine


def test_a_process_whose_store_was_migrated_by_a_newer_release_writes_nothing(
    backend: SqliteBackend, place: Path
) -> None:
    with closing(Database(place / "memory.db", steps=[*STEPS, lambda c: c.execute("CREATE TABLE new(x)")])):
        pass
    with pytest.raises(BackendUnavailable, match="restart this process"):
        backend.write([tea("second tea")])
    with closing(apsw.Connection(str(place / "memory.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM records").get == 1
