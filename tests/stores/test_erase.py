"""What a store that `Erases` goes through: readers in the way, kills at any moment, pages that were split."""

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from supervisor_memory.audit.rows import Access
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendUnavailable, ReadOnlyStore
from supervisor_memory.model.records import Source
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change, Erases, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.erasing_contract import (
    LATER,
    ErasingContract,
    SharedErasingContract,
)
from supervisor_memory.testing.records import NOW, assert_chain, tea
from tests.canaries import World, left_of, traces

KILLS = int(os.environ.get("ERASE_KILLS", "1"))
Opening = Callable[[Path], JsonBackend | SqliteBackend]
OPENINGS: dict[str, Opening] = {
    "json": lambda path: JsonBackend(path, lock_seconds=0.3),
    "sqlite": lambda path: SqliteBackend(path, lock_seconds=0.3),
}
FILES = {"json": "audit.db", "sqlite": "memory.db"}


@pytest.fixture(params=["json", "sqlite"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- what every one of them promises


class TestInMemory(ErasingContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return InMemoryBackend()


class TestFiles(SharedErasingContract):
    @pytest.fixture
    def backend(self, name: str, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = OPENINGS[name](tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, name: str, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: OPENINGS[name](tmp_path)


def test_accesses_of_before_that_another_process_writes_later_are_dropped(tmp_path: Path, name: str) -> None:
    with closing(OPENINGS[name](tmp_path)) as one, closing(OPENINGS[name](tmp_path)) as other:
        record = tea()
        one.write([record])
        other.audit.record_access([Access("search", NOW, "alice", record_id=record.id)])
        one.erase("alice", at=LATER)
        other.audit.flush()
        assert other.audit.accesses(9) == ()
        assert b"alice" not in (tmp_path / FILES[name]).read_bytes()


# --- files


def test_every_connection_overwrites_what_it_deletes_and_keeps_no_files_elsewhere(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        for opening in (backend.database.writing, backend.database.reading):
            with opening() as connection:
                found = [connection.pragma(name) for name in ("synchronous", "secure_delete", "temp_store")]
                assert found == [2, 1, 2]


def test_pages_that_were_split_keep_no_copy(tmp_path: Path) -> None:
    """Long and random keys split the pages of indexes; `secure_delete` alone leaves copies in these."""
    chance = random.Random(1)
    mine: list[str] = []

    def word(user: str) -> str:
        letters = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=24))
        if user == "alice":
            mine.append(letters)
        return letters

    with closing(SqliteBackend(tmp_path)) as backend:
        for number in range(300):
            user = "alice" if number % 10 == 0 else f"user-{number % 10}"
            record = tea(
                word(user), user=user, source=Source(session_id=word(user)), subject=word(user), attribute="a"
            )
            backend.write([record])
            if number % 3 == 0:
                backend.update(
                    [Change(replace(record, content=word(user), subject=word(user) * 4), expects=1)]
                )
        assert traces(tmp_path, mine, [])
        assert backend.erase("alice", at=LATER).pending == ()
        assert traces(tmp_path, mine, []) == []


def test_a_reader_that_holds_the_log_makes_it_pending_and_the_next_call_completes_it(
    tmp_path: Path, name: str
) -> None:
    with closing(OPENINGS[name](tmp_path)) as backend:
        backend.write([tea("canarycanary"), tea(user="bo")])
        with _held(tmp_path / FILES[name]):
            erased = backend.erase("alice", at=LATER)
            assert len(erased.pending) == 1
            assert FILES[name] in erased.pending[0]
            assert left_of(backend, "alice") == []
            assert _begun_and_done(backend) == (1, 0)
            backend.write([tea("a later tea", created_at=LATER)])
        assert backend.erase("bo", at=LATER).pending == ()
        assert _begun_and_done(backend) == (2, 2)
        assert [record.content for record in left_of(backend, "alice")] == ["a later tea"]
        assert traces(tmp_path, ["canarycanary"], []) == []
        assert_chain(backend.audit.tail(999), backend.audit.log_id)


def test_what_is_pending_is_completed_when_the_store_is_opened(tmp_path: Path, name: str) -> None:
    with closing(OPENINGS[name](tmp_path)) as backend:
        backend.write([tea("canarycanary"), tea(user="bo")])
        with _held(tmp_path / FILES[name]):
            assert backend.erase("alice", at=LATER).pending
        with closing(OPENINGS[name](tmp_path)) as other:
            assert _begun_and_done(other) == (1, 1)
            assert traces(tmp_path, ["canarycanary"], []) == []


@pytest.mark.parametrize("opening", [*OPENINGS.values(), lambda _: InMemoryBackend()])
def test_a_log_that_cannot_be_had_makes_it_pending_and_stops_no_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: Callable[[Path], MemoryBackend]
) -> None:
    def busy(*_: object, **_options: object) -> str:
        raise BackendUnavailable("waited for other threads")

    with closing(opening(tmp_path)) as backend:
        backend.write([tea(), tea(user="bo")])
        with monkeypatch.context() as broken:
            broken.setattr(Database, "scrub", busy)
            assert isinstance(backend, Erases)
            assert backend.erase("alice", at=LATER).pending == ("waited for other threads",)
            assert left_of(backend, "alice") == []
            opening(tmp_path).close()
        assert _begun_and_done(backend)[0] == 1
        assert backend.erase("bo", at=LATER).pending == ()
        assert _begun_and_done(backend) == (2, 2)


def test_a_json_file_left_beside_by_a_crash_goes_as_well(tmp_path: Path) -> None:
    with closing(JsonBackend(tmp_path)) as backend:
        backend.write([tea("canarycanary")])
        shutil.copy(tmp_path / "memory.json", tmp_path / ".memory.json.tmp")
        backend.erase("alice", at=LATER)
        assert traces(tmp_path, ["canarycanary"], []) == []


def test_who_still_holds_the_old_json_file_open_reads_zeros_in_it(tmp_path: Path) -> None:
    with closing(JsonBackend(tmp_path)) as backend:
        backend.write([tea("canarycanary")])
        with (tmp_path / "memory.json").open("rb") as old:
            backend.erase("alice", at=LATER)
            assert set(old.read()) == {0}


def test_a_store_that_cannot_be_written_erases_nothing(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]], name: str
) -> None:
    with closing(OPENINGS[name](open_place)) as backend:
        backend.write([tea()])
    with read_only(open_place), closing(OPENINGS[name](open_place)) as backend:
        assert backend.holds("alice")["records"] == 1
        with pytest.raises(ReadOnlyStore):
            backend.erase("alice", at=LATER)
        assert len(left_of(backend, "alice")) == 1


def test_a_store_of_before_there_were_tombstones_can_erase(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([tea("canarycanary")])
        with backend.database.writing() as connection:
            for table in ("tombstones", "erased_verbatim", "erasures"):
                connection.execute(f"DROP TABLE {table}")
    with closing(SqliteBackend(tmp_path)) as backend:
        assert backend.erase("alice", at=LATER).pending == ()
        assert traces(tmp_path, ["canarycanary"], []) == []


# --- kills


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_kill_at_any_moment_leaves_all_or_nothing_and_the_next_call_completes_it(
    tmp_path: Path, name: str
) -> None:
    original = tmp_path / "original"
    with closing(OPENINGS[name](original)) as backend:
        world = World.made(backend, users=4, rounds=6 if KILLS > 1 else 2)
        victims, others = left_of(backend, world.victim), _others(backend, world)
        assert world.traces(original)
    seconds = _seconds_of_a_whole_one(original, tmp_path / "whole", name, world)
    chance = random.Random(7)
    outcomes = set()
    for number in range(KILLS):
        place = shutil.copytree(original, tmp_path / str(number))
        _erase_and_be_killed(place, name, world, after=chance.uniform(0, seconds * 1.1))
        with closing(OPENINGS[name](place)) as backend:
            left = left_of(backend, world.victim)
            assert left in ([], victims)
            assert _begun_and_done(backend) == ((0, 0) if left else (1, 1))
            assert left or world.traces(place) == []
            outcomes.add(bool(left))
            assert backend.erase(world.victim, at=world.clock()).pending == ()
            assert left_of(backend, world.victim) == []
            assert _others(backend, world) == others
            assert_chain(backend.audit.tail(10**6), backend.audit.log_id)
        assert world.traces(place) == []
        with closing(apsw.Connection(str(place / FILES[name]))) as connection:
            assert connection.pragma("integrity_check") == "ok"
        shutil.rmtree(place)
    assert outcomes == {True, False} or KILLS < 20


def _erase_and_be_killed(place: Path, name: str, world: World, *, after: float) -> None:
    reading, writing = os.pipe()
    if not (child := os.fork()):
        with contextlib.suppress(BaseException):
            backend = OPENINGS[name](place)
            os.write(writing, b"!")
            backend.erase(world.victim, at=world.clock())
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _seconds_of_a_whole_one(original: Path, place: Path, name: str, world: World) -> float:
    shutil.copytree(original, place)
    with closing(OPENINGS[name](place)) as backend:
        begun = time.perf_counter()
        backend.erase(world.victim, at=world.clock())
        return time.perf_counter() - begun


def _others(backend: MemoryBackend, world: World) -> list[str]:
    return sorted(record.to_json() for user in world.others for record in left_of(backend, user))


def _begun_and_done(backend: MemoryBackend) -> tuple[int, int]:
    return len(backend.audit.tail(99, op="erase.begin")), len(backend.audit.tail(99, op="erase.done"))


@contextlib.contextmanager
def _held(file: Path) -> Iterator[None]:
    """Another connection reads, and goes on seeing the file as it was."""
    connection = apsw.Connection(str(file))
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018
    try:
        yield
    finally:
        connection.close()
