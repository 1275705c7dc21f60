"""The oldest rows moved into a file: nothing of the chain is lost on the way, and it is proved as before."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from supervisor_memory.audit.anchor import anchored
from supervisor_memory.audit.archive import archive, oldest
from supervisor_memory.audit.chain import line_of
from supervisor_memory.audit.log import AuditLog, RelayedLog
from supervisor_memory.audit.segments import ARCHIVE, Segment
from supervisor_memory.audit.verify import verified, verified_exports
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendError, BackendUnavailable, Conflict, ReadOnlyStore, SettingsError
from supervisor_memory.model.records import AuditEvent
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import NOW, tea
from tests.audit.test_anchor import KEY, filled

ROWS = 40


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    log = filled(tmp_path / "store", rows=ROWS)
    yield log
    log.close()


def moved(log: AuditLog, file: Path, *, keep: int) -> Segment:
    segment = archive(log, file, at=NOW + 0.000_001, keep=keep)
    assert segment is not None
    return segment


def seqs(log: AuditLog) -> list[int]:
    return [row.seq for row in log.rows(limit=999)]


def test_what_is_moved_is_an_export_of_the_oldest_rows_that_only_its_owner_reads(
    log: AuditLog, tmp_path: Path
) -> None:
    before = log.rows(limit=25)
    segment = moved(log, tmp_path / "one", keep=15)
    content = (tmp_path / "one").read_bytes()
    assert content.decode() == "".join(line_of(log.log_id, row) for row in before)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert (segment.first, segment.through, segment.hash) == (1, 25, before[-1].hash.hex())
    assert segment.sha256 == hashlib.sha256(content).hexdigest()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one", "store"]


def test_the_log_goes_on_behind_it_and_says_what_was_moved(log: AuditLog, tmp_path: Path) -> None:
    segment = moved(log, tmp_path / "one", keep=15)
    assert seqs(log) == [*range(26, 42)]
    told = log.tail(1)[0]
    assert (told.op, told.event["actor"]) == (ARCHIVE, "operator")
    detail = {"through": 25, "hash": segment.hash, "rows": 25, "sha256": segment.sha256}
    assert told.event["detail"] == detail
    assert (list(log.segments()), log.count()) == ([segment], 41)
    log.append([AuditEvent("memory.write", user_id="user-1")], at=NOW)
    assert log.tail(1, user_id="user-1")[0].seq == 42


def test_all_rows_can_be_moved_and_the_one_that_says_so_stays(log: AuditLog, tmp_path: Path) -> None:
    moved(log, tmp_path / "one", keep=0)
    assert seqs(log) == [ROWS + 1]
    assert archive(log, tmp_path / "two", at=NOW, keep=0) is None
    assert not (tmp_path / "two").exists()
    log.append([AuditEvent("memory.write")], at=NOW)
    moved(log, tmp_path / "two", keep=0)
    assert seqs(log) == [ROWS + 3]
    assert verified(log, archives=[tmp_path / "two", tmp_path / "one"]).problems == []


def test_where_few_rows_are_there_nothing_is_moved(log: AuditLog, tmp_path: Path) -> None:
    assert not oldest(log, keep=ROWS)
    assert archive(log, tmp_path / "one", at=NOW, keep=ROWS) is None
    assert log.count() == ROWS
    assert not (tmp_path / "one").exists()


def test_rows_are_proved_before_they_are_moved(log: AuditLog, tmp_path: Path) -> None:
    change(tmp_path, "UPDATE audit SET payload = replace(payload, 'ok', 'OK') WHERE seq = 5")
    with pytest.raises(BackendError, match=r"row 5 .* was changed, so nothing was archived"):
        archive(log, tmp_path / "one", at=NOW, keep=10)
    assert log.count() == ROWS
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def change(tmp_path: Path, *statements: str) -> None:
    """What somebody does who can write the file."""
    with closing(apsw.Connection(str(tmp_path / "store" / "audit.db"))) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        *("DELETE FROM audit WHERE seq = 26", "DELETE FROM audit", "UPDATE audit SET op = 'x'"),
        *("DELETE FROM segments", "UPDATE segments SET through = 40"),
    ],
)
def test_what_is_not_archived_cannot_be_removed_and_what_says_so_cannot_be_changed(
    log: AuditLog, tmp_path: Path, statement: str
) -> None:
    moved(log, tmp_path / "one", keep=15)
    with (
        closing(apsw.Connection(str(tmp_path / "store" / "audit.db"))) as connection,
        pytest.raises(apsw.ConstraintError, match="append-only"),
    ):
        connection.execute(statement)
    assert verified(log).problems == []


def test_an_event_that_is_archived_is_still_logged_once(log: AuditLog, tmp_path: Path) -> None:
    odd = AuditEvent("memory.write", id="no uuid")
    log.append([odd], at=NOW)
    again = [AuditEvent("memory.write", id=row.event_id) for row in (*log.rows(limit=1), *log.tail(1))]
    moved(log, tmp_path / "one", keep=0)
    for event in again:
        with pytest.raises(Conflict):
            log.check_new([event])
        with pytest.raises(Conflict):
            log.append([event], at=NOW)
    log.check_new([AuditEvent("memory.write")])
    assert log.count() == ROWS + 2


def test_a_file_that_is_there_is_refused_with_what_it_is(log: AuditLog, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    with pytest.raises(SettingsError, match="there already; the log has archived no such file"):
        archive(log, tmp_path / "other", at=NOW, keep=0)
    assert (tmp_path / "other").read_text() == "mine"
    moved(log, tmp_path / "one", keep=10)
    with pytest.raises(SettingsError, match=r"has the rows 1 to 30, which are nowhere else: keep it"):
        archive(log, tmp_path / "one", at=NOW, keep=0)
    with pytest.raises(SettingsError, match=r"/dev/zero is there already, and no file"):
        archive(log, Path("/dev/zero"), at=NOW, keep=0)
    (tmp_path / "two.part").touch()
    with pytest.raises(SettingsError, match=r"two.part is there already: .* the log still has its rows"):
        archive(log, tmp_path / "two", at=NOW, keep=0)
    assert log.count() == ROWS + 1


def killed(place: Path, file: Path, at: str) -> None:
    """A process that archives, and is killed where it would call a method of the log."""
    if (child := os.fork()) == 0:
        has_noted = at == "remove_archived"
        setattr(AuditLog, at, lambda log, *_, **__: os._exit(9) if bool(log.segments()) == has_noted else 0)
        with closing(AuditLog(Database(place / "audit.db"))) as log:
            archive(log, file, at=NOW, keep=10)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_killed_before_the_log_says_so_the_rows_are_there_and_the_file_is_for_nothing(
    log: AuditLog, tmp_path: Path
) -> None:
    log.close()
    killed(tmp_path / "store", tmp_path / "one", "note_archived")
    with closing(AuditLog(Database(tmp_path / "store" / "audit.db"))) as again:
        assert (seqs(again), again.segments()) == ([*range(1, ROWS + 1)], ())
        with pytest.raises(SettingsError, match="its rows still are in the log, so remove it"):
            archive(again, tmp_path / "one", at=NOW, keep=10)
        assert moved(again, tmp_path / "two", keep=10).through == 30
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_killed_before_the_rows_are_removed_they_are_no_harm_and_the_next_one_removes_them(
    log: AuditLog, tmp_path: Path
) -> None:
    log.close()
    killed(tmp_path / "store", tmp_path / "one", "remove_archived")
    with closing(AuditLog(Database(tmp_path / "store" / "audit.db"))) as again:
        assert seqs(again) == [*range(1, ROWS + 2)]
        assert [segment.through for segment in again.segments()] == [30]
        assert verified(again, archives=[tmp_path / "one"]).problems == []
        with pytest.raises(SettingsError, match="keep it"):
            archive(again, tmp_path / "one", at=NOW, keep=10)
        assert archive(again, tmp_path / "two", at=NOW, keep=10) is None
        assert seqs(again) == [*range(31, ROWS + 2)]


def test_rows_that_are_archived_and_not_removed_yet_are_no_harm(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = anchored(log, at=NOW, key=KEY)
    with monkeypatch.context() as patched:
        patched.setattr(AuditLog, "remove_archived", lambda *_, most: 0)
        moved(log, tmp_path / "one", keep=10)
    assert seqs(log) == [*range(1, ROWS + 2)]
    for archives in ((), (tmp_path / "one",)):
        assert verified(log, archives=archives, anchors=[anchor], key=KEY).problems == []
    assert log.remove_archived(most=7) == 7
    assert verified(log).problems == []
    assert archive(log, tmp_path / "two", at=NOW, keep=10) is None
    assert seqs(log) == [*range(31, ROWS + 2)]


def test_rows_that_were_changed_since_they_were_archived_stay_for_who_looks_into_it(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(AuditLog, "remove_archived", lambda *_, most: 0)
        moved(log, tmp_path / "one", keep=10)
    change(tmp_path, "UPDATE audit SET op = 'memory.other' WHERE seq = 12")
    assert verified(log).problems == verified(log, archives=[tmp_path / "one"]).problems != []
    with pytest.raises(BackendError, match="not the same, so nothing was archived"):
        archive(log, tmp_path / "two", at=NOW, keep=10)
    assert seqs(log) == [*range(1, ROWS + 2)]


def test_of_two_that_archive_at_once_one_wins(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = AuditLog.note_archived

    def late(self: AuditLog, segment: Segment) -> None:
        monkeypatch.setattr(AuditLog, "note_archived", note)
        moved(self, tmp_path / "first", keep=20)
        note(self, segment)

    monkeypatch.setattr(AuditLog, "note_archived", late)
    with pytest.raises(Conflict, match="by another process meanwhile"):
        archive(log, tmp_path / "late", at=NOW, keep=10)
    assert not (tmp_path / "late").exists()
    assert seqs(log) == [*range(21, ROWS + 2)]
    assert verified(log, archives=[tmp_path / "first"]).problems == []


def test_where_the_log_cannot_be_written_there_is_no_file(tmp_path: Path) -> None:
    filled(tmp_path / "store", rows=ROWS).close()
    file = tmp_path / "store" / "audit.db"
    with closing(AuditLog(Database(file, read_only=True))) as log, pytest.raises(ReadOnlyStore):
        archive(log, tmp_path / "one", at=NOW, keep=0)
    with (
        closing(apsw.Connection(str(file))) as other,
        closing(AuditLog(Database(file, lock_seconds=0.1))) as log,
    ):
        log.remove_archived(most=1)
        log.remove_archived = lambda *, most: 0  # type: ignore[method-assign]  # the other begins after it
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailable):
            archive(log, tmp_path / "one", at=NOW, keep=0)
        other.execute("ROLLBACK")
        assert seqs(log) == [*range(1, ROWS + 1)]
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


def test_a_store_of_before_learns_to_archive_when_it_is_opened(tmp_path: Path) -> None:
    filled(tmp_path / "store", rows=ROWS).close()
    of_before = """CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"""
    change(tmp_path, "DROP TABLE segments", "DROP TABLE archived_events", of_before)
    with closing(AuditLog(Database(tmp_path / "store" / "audit.db", read_only=True))) as old:
        assert (old.segments(), verified(old).problems) == ((), [])
    with closing(AuditLog(Database(tmp_path / "store" / "audit.db"))) as log:
        moved(log, tmp_path / "one", keep=10)
        assert seqs(log) == [*range(31, ROWS + 2)]


def test_with_the_archives_in_any_order_all_is_proved_and_without_what_is_left(
    log: AuditLog, tmp_path: Path
) -> None:
    early = anchored(log, at=NOW, key=KEY)
    files = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    for file in files:
        moved(log, file, keep=10)
        log.append([AuditEvent("memory.write") for _ in range(20)], at=NOW)
    anchors = [early, anchored(log, at=NOW, key=KEY)]
    through = log.segments()[-1].through
    rest = verified(log, anchors=anchors, key=KEY)
    assert (rest.problems, rest.archived, rest.unseen) == ([], through, [early.seq])
    whole = verified(log, anchors=anchors, key=KEY, archives=[files[2], files[0], files[1]])
    assert (whole.problems, whole.archived, whole.unseen) == ([], 0, [])
    assert (whole.rows, rest.rows) == (log.count(), log.count() - through)
    latest = verified(log, archives=[files[2]])
    assert (latest.problems, latest.archived) == ([], log.segments()[1].through)
    assert verified(log, archives=[files[0], files[2]]).faults[0].kind == "chain"


def test_an_archive_of_another_log_or_of_rows_that_are_in_the_log_is_refused(
    log: AuditLog, tmp_path: Path
) -> None:
    with closing(filled(tmp_path / "other", rows=5)) as other:
        moved(other, tmp_path / "others", keep=0)
    (tmp_path / "export").write_text("".join(line_of(log.log_id, row) for row in log.rows(limit=9)))
    with pytest.raises(BackendError, match="is of another audit log"):
        verified(log, archives=[tmp_path / "others"])
    with pytest.raises(BackendError, match="begins with row 1, and the log has that itself"):
        verified(log, archives=[tmp_path / "export"])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: lines[:-1], "was changed"),
        (lambda lines: lines[1:], "rows 1 to 1 .* missing"),
        (lambda lines: [*lines[:4], b"\xff" + lines[4], *lines[5:]], "line 5 of .* is no row"),
        (
            lambda lines: [*lines[:4], lines[4].replace(b'\\"ok\\"', b'\\"no\\"'), *lines[5:]],
            "row 5 .* changed",
        ),
        (lambda lines: [*lines, b"\n"], "line 31 of .* is no row"),
        (lambda lines: [line.replace(b": ", b":") for line in lines], "is not the file that was archived"),
    ],
)
def test_an_archive_that_was_changed_is_found(
    log: AuditLog, tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    moved(log, tmp_path / "one", keep=10)
    lines = (tmp_path / "one").read_bytes().splitlines(keepends=True)
    (tmp_path / "one").write_bytes(b"".join(spoil(lines)))
    found = verified(log, archives=[tmp_path / "one"])
    assert {fault.kind for fault in found.faults} == {"chain"}
    assert any(re.search(said, problem) for problem in found.problems)
    assert verified(log).problems == []


def boundary(through: int, row: Any) -> str:
    return f"INSERT INTO segments VALUES({through}, '{row.hash.hex()}', {through}, '{'0' * 64}', 1)"


def test_rows_that_are_gone_behind_a_forged_boundary_are_found(log: AuditLog, tmp_path: Path) -> None:
    change(tmp_path, "DELETE FROM audit WHERE seq <= 20", boundary(20, log.rows(after=19, limit=1)[0]))
    [fault] = verified(log).faults
    assert (fault.kind, fault.row) == ("chain", 20)
    assert "its log does not say so" in fault.told


@pytest.mark.parametrize(
    "row", ["20, 'zz', 20, 'abc', 1", "20, lower(hex((SELECT hash FROM audit WHERE seq = 20))), 20, '', 1"]
)
def test_rows_that_are_only_said_to_be_archived_are_not_removed(
    log: AuditLog, tmp_path: Path, row: str
) -> None:
    change(tmp_path, f"INSERT INTO segments VALUES({row})")
    with pytest.raises(BackendError, match="so nothing was archived"):
        archive(log, tmp_path / "one", at=NOW, keep=5)
    assert seqs(log) == list(range(1, ROWS + 1))
    assert not (tmp_path / "one").exists()


def test_a_boundary_that_was_removed_or_changed_is_found(log: AuditLog, tmp_path: Path) -> None:
    moved(log, tmp_path / "one", keep=20)
    moved(log, tmp_path / "two", keep=10)
    for statement in (
        *("DELETE FROM segments WHERE through = 20", "DELETE FROM segments"),
        *("UPDATE segments SET at_us = at_us + 1", "UPDATE segments SET rows = rows - 1 WHERE through = 20"),
        *("UPDATE segments SET sha256 = hash", "UPDATE segments SET hash = 'x' WHERE through > 20"),
        "UPDATE segments SET through = through - 1",
    ):
        with closing(apsw.Connection(str(tmp_path / "store" / "audit.db"))) as connection:
            held = connection.execute("SELECT * FROM segments").fetchall()
            change(tmp_path, statement)
            assert {fault.kind for fault in verified(log).faults} == {"chain"}, statement
            connection.execute("DELETE FROM segments")
            connection.executemany("INSERT INTO segments VALUES(?,?,?,?,?)", held)
    assert verified(log).problems == []


def test_anchors_that_are_all_of_archived_rows_prove_nothing_until_the_archive_is_named(
    log: AuditLog, tmp_path: Path
) -> None:
    """Or all of the log could be written anew behind a boundary that somebody has made up."""
    anchor = anchored(log, at=NOW, key=KEY)
    moved(log, tmp_path / "one", keep=0)
    assert verified(log, anchors=[anchor], key=KEY, archives=[tmp_path / "one"]).problems == []
    log.append([AuditEvent("memory.write")], at=NOW)
    moved(log, tmp_path / "two", keep=0)
    found = verified(log, anchors=[anchor], key=KEY)
    assert ([fault.kind for fault in found.faults], found.unseen) == (["truncated"], [ROWS])
    anchors = [anchor, anchored(log, at=NOW, key=KEY)]
    assert verified(log, anchors=anchors, key=KEY).problems == []


def test_exports_begin_behind_what_their_log_has_archived(log: AuditLog, tmp_path: Path) -> None:
    moved(log, tmp_path / "one", keep=10)
    lines = [line_of(log.log_id, row) for row in log.rows(limit=99)]
    (tmp_path / "rest").write_text("".join(lines))
    [alone] = verified_exports([tmp_path / "rest"]).values()
    assert (alone.problems, alone.archived) == ([], 30)
    [both] = verified_exports([tmp_path / "rest", tmp_path / "one"]).values()
    assert (both.problems, both.rows) == ([], ROWS + 1)
    (tmp_path / "rest").write_text("".join(lines[1:]))
    assert verified_exports([tmp_path / "rest"])[log.log_id].problems == [
        "the rows 1 to 31 of the audit log are missing"
    ]


def test_records_that_were_written_last_in_archived_rows_are_compared_with_the_archive(
    tmp_path: Path,
) -> None:
    with closing(SqliteBackend(tmp_path / "store")) as backend:
        record = tea("green tea")
        backend.write([record])
        backend.write([tea(f"tea {number}") for number in range(5)])
        moved(backend.audit, tmp_path / "one", keep=5)
        assert verified(backend.audit, backend.get, archives=[tmp_path / "one"]).records == 6
        with closing(apsw.Connection(str(tmp_path / "store" / "memory.db"))) as connection:
            connection.execute("UPDATE records SET data = replace(data, 'green', 'black')")
        assert verified(backend.audit, backend.get).problems == []
        [fault] = verified(backend.audit, backend.get, archives=[tmp_path / "one"]).faults
        assert fault.kind == "content"


def test_a_user_is_erased_after_the_rows_were_archived(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path / "store")) as backend:
        backend.write([tea("of bo", user="bo")])
        moved(backend.audit, tmp_path / "one", keep=0)
        assert backend.holds("bo")["record_keys"] == 1
        backend.erase("bo", at=NOW + 1)
        assert backend.audit.tail(9, user_id="bo") == ()
        assert verified(backend.audit, backend.get, archives=[tmp_path / "one"]).problems == []
    assert b"of bo" not in (tmp_path / "one").read_bytes()
    assert json.loads((tmp_path / "one").read_text().splitlines()[0])["prev"] == "00" * 32


def test_the_log_of_a_store_inside_a_journal_goes_on_in_the_journals_which_is_archived(
    log: AuditLog, tmp_path: Path
) -> None:
    relayed = RelayedLog()
    relayed.relay_to(log)
    moved(log, tmp_path / "one", keep=0)
    relayed.append([AuditEvent("memory.write"), AuditEvent("commit.done")], at=NOW)
    assert [row.op for row in log.rows(limit=9)] == [ARCHIVE, "memory.write"]
    assert archive(relayed, tmp_path / "nothing", at=NOW, keep=0) is None
    assert verified(log, archives=[tmp_path / "one"]).problems == []
