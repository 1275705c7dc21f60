"""What was remembered at a moment, as the log tells it, with the texts of then."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory.audit.archive import archive
from supervisor_memory.audit.replay import ERASED, Replay, replayed
from supervisor_memory.errors import BackendError, RecordNotFound
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import NOW, tea

Backend = SqliteBackend | JsonBackend


class Clock:
    """Monday; a test says when it is another day."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


DAY = 86_400
MONDAY, TUESDAY, WEDNESDAY = (NOW + n * DAY for n in range(3))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[SqliteBackend, JsonBackend])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    with closing(request.param(tmp_path / "store", clock=clock)) as backend:
        yield backend


def told(found: Replay) -> list[tuple[str | None, int, str]]:
    return [(each.content, each.version, each.op) for each in found.records]


def week(backend: Backend, clock: Clock) -> None:
    """Green tea on Monday, black on Tuesday, none from Wednesday on; and of Bo, coffee."""
    mine = tea("green tea")
    backend.write([mine, tea("coffee", user="bo")])
    clock.now = TUESDAY
    backend.update([Change(replace(mine, content="black tea"), expects=1)])
    clock.now = WEDNESDAY
    backend.delete([mine.id])


def test_each_record_is_told_as_it_was_then(backend: Backend, clock: Clock) -> None:
    week(backend, clock)
    versions = backend.versions
    monday, tuesday, now = (
        replayed(backend.audit, versions, until=until) for until in (MONDAY, TUESDAY, None)
    )
    assert told(monday) == [("green tea", 1, "memory.write"), ("coffee", 1, "memory.write")]
    assert told(tuesday) == [("coffee", 1, "memory.write"), ("black tea", 2, "memory.update")]
    assert (told(now), now.deleted) == ([("coffee", 1, "memory.write")], 1)
    assert told(replayed(backend.audit, versions, until=MONDAY - 1)) == []
    each = tuesday.records[-1]
    assert (each.at, each.outcome, each.status) == (TUESDAY, "ok", "active")
    assert backend.audit.rows(after=each.row - 1, limit=1)[0].record_id == each.record_id


def test_a_row_that_is_not_there_yet_is_no_moment(backend: Backend, clock: Clock) -> None:
    week(backend, clock)
    with pytest.raises(RecordNotFound, match=r"no row 20260512; its last is \d+"):  # a day without its dashes
        replayed(backend.audit, backend.versions, until_row=20_260_512)


def test_up_to_every_row_it_is_what_the_store_held_then(backend: Backend, clock: Clock) -> None:
    held: dict[int, set[tuple[str, int]]] = {}
    records = [tea(f"tea {number}") for number in range(6)]
    backend.write(records)
    for number in range(12):
        record = records[number % 5]
        current = backend.get([record.id])[0]
        change = replace(current, content=f"{record.content} {number}")
        backend.update([Change(change, expects=current.version)])
        if number % 4 == 3:
            backend.delete([record.id])
            records.remove(record)
            records.append(tea(f"new {number}"))
            backend.write([records[-1]])
        there = backend.get([each.id for each in records])
        held[backend.audit.count()] = {(each.content, each.version) for each in there}
    for row, expected in held.items():
        found = replayed(backend.audit, backend.versions, until_row=row)
        assert {(each.content, each.version) for each in found.records} == expected
        assert found.row == row


def test_one_users_records_alone_are_told_and_nothing_of_who_was_erased(
    backend: Backend, clock: Clock
) -> None:
    week(backend, clock)
    audit, versions = backend.audit, backend.versions
    assert told(replayed(audit, versions, user_id="bo")) == [("coffee", 1, "memory.write")]
    assert told(replayed(audit, versions, user_id="nobody")) == []
    backend.erase("bo", at=WEDNESDAY + 1)
    assert told(replayed(audit, versions, user_id="bo")) == []
    assert (told(replayed(audit, versions)), replayed(audit, versions).deleted) == ([], 2)
    [_, left] = replayed(audit, versions, until=WEDNESDAY - 1).records[::-1]
    assert (left.content, left.status, left.version) == (None, ERASED, 1)


def test_what_was_deleted_before_its_user_was_erased_is_counted_as_deleted(
    backend: Backend, clock: Clock
) -> None:
    week(backend, clock)
    backend.erase("alice", at=WEDNESDAY + 1)
    found = replayed(backend.audit, backend.versions)
    assert (told(found), found.deleted) == ([("coffee", 1, "memory.write")], 1)
    then = replayed(backend.audit, backend.versions, until=TUESDAY)
    assert told(then) == [("coffee", 1, "memory.write"), (None, 2, "memory.update")]


def test_what_only_archived_rows_tell_of_is_read_with_the_archives(
    backend: Backend, clock: Clock, tmp_path: Path
) -> None:
    week(backend, clock)
    whole = replayed(backend.audit, backend.versions, until=TUESDAY)
    files = [tmp_path / name for name in ("one", "two", "three")]
    for file in files:
        backend.write([tea(f"of {file.name}")])
        archive(backend.audit, file, at=WEDNESDAY, keep=1)

    def read(archives: Sequence[Path], until: float | None = TUESDAY) -> Replay:
        return replayed(backend.audit, backend.versions, until=until, archives=archives)

    assert read([files[1], files[2], files[0]]) == whole
    alone = read([])
    assert (alone.records, alone.row) == ((), 0)
    assert alone.archived == backend.audit.segments()[-1].through
    with pytest.raises(BackendError, match="name every archive in between"):
        read([files[0], files[2]])
    assert [each.content for each in read(files, None).records][-3:] == ["of one", "of two", "of three"]
