"""Stores of an earlier format: taken forward when opened, in one transaction, however often it is killed."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import apsw
import pytest

from supervisor_memory.disk.database import Database, Step
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.sqlite import store as sqlite
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.stores.sqlite.tables import SCHEMA, STEPS
from supervisor_memory.testing.records import direction, query, tea, with_vector
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, ended, forked

RECORDS = 200


def _invented(connection: apsw.Connection) -> None:
    """What a step may be: a column, filled from what is there, and an index over it."""
    connection.execute("ALTER TABLE records ADD COLUMN letters INTEGER")
    connection.execute("UPDATE records SET letters = length(json_extract(data, '$.content'))")
    connection.execute("CREATE INDEX records_by_letters ON records(letters)")


def _renaming(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE records RENAME COLUMN letters TO characters")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of the first format."""
    place = tmp_path / "store"
    with closing(SqliteBackend(place)) as backend:
        backend.write([with_vector(tea(f"tea {n}"), direction(n)) for n in range(RECORDS)])
    return place


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[Step]], None]:
    """Make this a release with more formats."""

    def release(steps: Sequence[Step]) -> None:
        monkeypatch.setattr(sqlite, "STEPS", (*STEPS, *steps))

    return release


def _format_of(place: Path) -> int:
    with closing(apsw.Connection(str(place / "memory.db"))) as connection:
        return int(connection.pragma("user_version"))


def test_a_store_of_every_earlier_format_is_taken_forward_and_keeps_everything(
    store: Path, later: Callable[[Sequence[Step]], None]
) -> None:
    for number, steps in enumerate(([_invented], [_invented, _renaming]), start=len(STEPS) + 2):
        later(steps)
        with closing(SqliteBackend(store)) as backend:
            assert backend.count(Filter()) == RECORDS
            assert len(backend.search(query(vector=direction(0)), limit=999)) == RECORDS
            assert backend.health().details["format"] == str(number)
        assert _format_of(store) == number


def test_all_steps_that_are_missing_are_made_at_once_and_no_step_twice(
    store: Path, later: Callable[[Sequence[Step]], None]
) -> None:
    made: list[str] = []
    later([lambda _: made.append("first"), lambda _: made.append("second")])
    for _ in range(2):
        SqliteBackend(store).close()
    assert made == ["first", "second"]


def test_a_step_that_fails_leaves_the_store_as_it_was(
    store: Path, later: Callable[[Sequence[Step]], None]
) -> None:
    def failing(connection: apsw.Connection) -> None:
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as release:
        release.setattr(sqlite, "STEPS", (*STEPS, _invented, failing))
        with pytest.raises(ZeroDivisionError):
            SqliteBackend(store)
    assert _format_of(store) == len(STEPS) + 1
    with closing(SqliteBackend(store)) as backend:
        backend.write([tea("later")])


def test_where_nothing_can_be_written_an_earlier_format_is_refused_with_what_to_do(
    store: Path, later: Callable[[Sequence[Step]], None]
) -> None:
    later([_invented])
    with pytest.raises(BackendUnavailable, match="open it once where it can be written"):
        SqliteBackend(store, read_only=True)


def test_a_new_store_has_the_newest_format_at_once(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "memory.db", schema=SCHEMA, steps=[_invented])) as database:
        assert database.format == 2
    assert _format_of(tmp_path) == 2


@FORKS[0]
@FORKS[1]
def test_a_kill_in_the_middle_of_steps_leaves_the_old_format_or_the_new_and_the_next_start_goes_on(
    store: Path, tmp_path: Path, later: Callable[[Sequence[Step]], None], figures: Callable[..., None]
) -> None:
    later([_invented, _renaming])
    begun = time.perf_counter()
    SqliteBackend(Path(shutil.copytree(store, tmp_path / "whole"))).close()
    seconds = time.perf_counter() - begun
    chance, formats = Random(4), []
    kills = 200 if LONG else 6
    for number in range(kills):
        place = Path(shutil.copytree(store, tmp_path / str(number)))
        child = forked(partial(_open, place))
        time.sleep(chance.uniform(0, seconds * 1.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        formats.append(_format_of(place))
        with closing(SqliteBackend(place)) as backend:
            assert backend.count(Filter()) == RECORDS
        assert _format_of(place) == len(STEPS) + 3
        shutil.rmtree(place)
    assert set(formats) <= {len(STEPS) + 1, len(STEPS) + 3}
    figures(kills=kills, in_the_old_format=formats.count(len(STEPS) + 1))


@FORKS[0]
@FORKS[1]
def test_processes_that_start_a_new_release_at_once_make_the_steps_once(
    store: Path, later: Callable[[Sequence[Step]], None]
) -> None:
    later([_invented, _renaming])
    children = [forked(partial(_open, store)) for _ in range(8)]
    assert [ended(child) for child in children] == [0] * 8
    assert _format_of(store) == len(STEPS) + 3


def _open(place: Path) -> None:
    SqliteBackend(place).close()


# --- kills while the files are tended


def _checkpoints(place: Path) -> None:
    backend = SqliteBackend(place)
    with backend.database.writing() as connection:
        connection.execute("UPDATE records SET updated_at = updated_at")  # fills the log
    while True:
        with backend.database.writing() as connection:
            connection.execute("UPDATE namespaces SET revision = revision")
        backend.database._writer_connection().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _scrubs(place: Path) -> None:
    backend = SqliteBackend(place)
    while True:
        backend.database.scrub()


@FORKS[0]
@FORKS[1]
@pytest.mark.parametrize("work", [_checkpoints, _scrubs], ids=["checkpoint", "scrub"])
def test_a_kill_while_the_file_is_tended_loses_nothing(
    store: Path, work: Callable[[Path], None], figures: Callable[..., None]
) -> None:
    chance = Random(9)
    kills = 200 if LONG else 8
    for number in range(kills):
        child = forked(partial(work, store))
        time.sleep(chance.uniform(0.01, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with closing(SqliteBackend(store)) as backend:
            backend.write([with_vector(tea(f"after kill {number}"), direction(number))])
        found = inspected(store)
        assert found.is_fine
        assert len(found.stored) == RECORDS + number + 1
    figures(kills=kills, lost=0)
