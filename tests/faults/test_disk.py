"""The disk is full, fails, or is counted: all or nothing of a commit, reads go on, writes come back."""

import textwrap
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import apsw
import pytest

from supervisor_memory.errors import BackendError
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import direction, query, tea, with_vector
from tests import programs
from tests.faults.conftest import LONG
from tests.faults.disk import Disk, on
from tests.faults.inspection import inspected
from tests.faults.processes import addition
from tests.stores.test_group import in_threads

FAULTS = [
    (("write",), apsw.FullError),
    (("write",), apsw.IOError),
    (("sync",), apsw.IOError),
    (("write", "sync", "truncate"), apsw.FullError),
]


@pytest.mark.parametrize(("failing", "error"), FAULTS, ids=["full", "write", "sync", "all"])
def test_a_disk_that_fails_anywhere_in_a_commit_leaves_the_store_before_or_after(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: tuple[str, ...],
    error: type[apsw.Error],
    figures: Callable[..., None],
) -> None:
    """At the first operation of a commit, at a later one, and so on, until the commit succeeds."""
    points = 0
    with on(Disk(failing=failing, error=error), monkeypatch) as disk:
        while True:
            place = tmp_path / str(points)
            with closing(SqliteBackend(place)) as backend:
                backend.write([with_vector(tea("the first tea"), direction(0))])
                later = [with_vector(tea(f"{n} tea " + "leaf " * 2_000), direction(n)) for n in range(3)]
                disk.fails_after, disk.failed = points, 0
                if (told := _told(backend, later)) is not None:
                    assert "nothing was saved" in str(told)
                    assert str(place) in str(told)
                failed = disk.failed
                assert len(backend.search(query("tea", vector=direction(0)), limit=9)) >= 1  # still broken
                stored = backend.count(Filter())
                disk.fails_after = None
                assert stored == (1 if told else 4)
                assert backend.count(Filter()) == stored
                backend.write([tea("a tea of later")])
                if told is not None:
                    backend.write(later)
                assert backend.count(Filter()) == 5
            assert inspected(place).is_fine
            if not failed:
                break
            points += 1 if LONG else 7
    figures(points_of_failure=points)
    assert points >= 1


def _told(backend: SqliteBackend, records: Sequence[Record]) -> BackendError | None:
    try:
        backend.write(records)
    except BackendError as error:
        return error
    return None


def test_a_disk_that_fails_anywhere_while_a_store_is_made_leaves_one_that_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Callable[..., None]
) -> None:
    points = 0
    with on(Disk(failing=("write", "sync", "truncate")), monkeypatch) as disk:
        while True:
            place = tmp_path / str(points)
            disk.fails_after, disk.failed = points, 0
            with suppress(BackendError):
                SqliteBackend(place).close()
            disk.fails_after = None
            with closing(SqliteBackend(place)) as backend:
                backend.write([tea()])
            assert inspected(place).is_fine
            if not disk.failed:
                break
            points += 1 if LONG else 11
    figures(points_of_failure=points)
    assert points >= 1


def test_every_acknowledged_commit_was_synced_and_those_that_wait_share_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Callable[..., None]
) -> None:
    with on(Disk(), monkeypatch) as disk, closing(SqliteBackend(tmp_path)) as backend:
        before = disk.done["sync"]
        for number in range(50):
            backend.batch(addition(f"alone {number}"))
        alone = disk.done["sync"] - before

        def produce(producer: int) -> None:
            for number in range(20):
                backend.batch(addition(f"together {producer} {number}"))

        before = disk.done["sync"]
        assert in_threads([partial(produce, p) for p in range(64)]) == [None] * 64
        together = disk.done["sync"] - before
        assert backend.count(Filter()) == 50 + 64 * 20
    assert inspected(tmp_path).is_fine
    figures(syncs_of_50_commits=alone, syncs_of_1280_commits_by_64=together)
    assert alone >= 50
    assert 64 * 20 / 64 <= together < 64 * 20


def test_a_limit_on_the_size_of_files_is_told_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    program = """
        import resource, signal, sys
        from pathlib import Path
        from supervisor_memory.stores.sqlite.store import SqliteBackend
        from supervisor_memory.errors import BackendError
        from supervisor_memory.model.records import Filter
        from supervisor_memory.testing.records import tea
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        backend = SqliteBackend(Path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        acknowledged = 0
        try:
            while True:
                backend.write([tea(f"tea {acknowledged} " + "leaf " * 500)])
                acknowledged += 1
        except BackendError as error:
            assert "nothing was saved" in str(error), error
        assert backend.count(Filter()) == acknowledged > 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        backend.write([tea("tea of later")])
        print(acknowledged + 1)
    """
    done = programs.run("-c", textwrap.dedent(program), tmp_path, timeout=120, check=True)
    acknowledged = int(done.stdout)
    found = inspected(tmp_path)
    assert found.is_fine
    assert len(found.stored) == acknowledged


def test_a_store_at_its_largest_size_refuses_more_and_goes_on_when_it_may_grow(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([tea("the first tea")])
        with backend.database.writing() as connection:
            connection.pragma("max_page_count", connection.pragma("page_count") + 4)
        stored = 1
        while (told := _told(backend, [tea(f"tea {stored} " + "leaf " * 500)])) is None:
            stored += 1
        assert "no room left" in str(told)
        assert "nothing was saved" in str(told)
        assert backend.count(Filter()) == stored
        with backend.database.writing() as connection:
            connection.pragma("max_page_count", 10**6)
        backend.write([tea("tea of later")])
    assert inspected(tmp_path).is_fine
