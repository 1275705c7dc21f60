"""With an anchor every tampering is found, and nothing is found in logs that nobody touched."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from supervisor_memory.audit.anchor import Anchor, anchored, append_to, read_from
from supervisor_memory.audit.archive import archive
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import row_hash
from supervisor_memory.audit.segments import ARCHIVE, Segment
from supervisor_memory.audit.verify import verified
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendError, SettingsError
from supervisor_memory.model.records import AuditEvent

NOW = 1_767_571_200.0
KEY = "a long random text"
LONG = os.environ.get("FAULTS") == "long"
TAMPERINGS = 10_000 if LONG else 96
CLEAN = 1_000 if LONG else 40
Row = list[Any]
COLUMNS = "seq, event_id, ts_us, op, outcome, record_id, subject, payload, prev_hash, hash"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    log = filled(tmp_path / "store", rows=40)
    yield log
    log.close()


def filled(place: Path, *, rows: int) -> AuditLog:
    place.mkdir(exist_ok=True)
    log = AuditLog(Database(place / "audit.db"))
    for number in range(rows):
        user, record = f"user-{number % 3}", f"record-{number % 7}"
        event = AuditEvent(
            "memory.write", user_id=user, record_id=record, after=f"text {number}", version_after=1
        )
        log.append([event], at=NOW + number)
    return log


def tampered(place: Path, how: "Callable[[list[Row], Random], list[Row]]", chance: Random) -> AuditLog:
    """The log after somebody who can write the file has had his way with it."""
    with closing(apsw.Connection(str(place / "audit.db"))) as connection:
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        rows = [list(row) for row in connection.execute(f"SELECT {COLUMNS} FROM audit ORDER BY seq")]
        changed = how([list(row) for row in rows], chance)
        assert changed != rows
        connection.execute("DELETE FROM audit")
        connection.executemany("INSERT INTO audit VALUES(?,?,?,?,?,?,?,?,?,?)", changed)
    return AuditLog(Database(place / "audit.db"))


def flip(rows: list[Row], chance: Random) -> list[Row]:
    row = chance.choice(rows)
    column = chance.choice([c for c in range(1, 10) if row[c] is not None])
    value = row[column]
    if isinstance(value, bytes):
        place = chance.randrange(len(value))
        row[column] = value[:place] + bytes([value[place] ^ 1 << chance.randrange(8)]) + value[place + 1 :]
    else:
        row[column] = value + 1 if isinstance(value, int) else value + "x"
    return rows


def drop(rows: list[Row], chance: Random) -> list[Row]:
    del rows[chance.randrange(len(rows) - 1)]
    return rows


def close_up(rows: list[Row], chance: Random) -> list[Row]:
    first = rows[0][0]
    rows = drop(rows, chance)
    return [[number, *row[1:]] for number, row in enumerate(rows, start=first)]


def swap(rows: list[Row], chance: Random) -> list[Row]:
    one, other = chance.sample(range(len(rows)), 2)
    rows[one][1:], rows[other][1:] = rows[other][1:], rows[one][1:]
    return rows


def insert(rows: list[Row], chance: Random) -> list[Row]:
    place, first = chance.randrange(len(rows)), rows[0][0]
    forged = [0, "forged", *chance.choice(rows)[2:]]
    rows.insert(place, forged)
    return [[number, *row[1:]] for number, row in enumerate(rows, start=first)]


def truncate(rows: list[Row], chance: Random) -> list[Row]:
    return rows[: chance.randrange(len(rows))]


def rehash(log_id: str) -> "Callable[[list[Row], Random], list[Row]]":
    """Change a row, and make the chain anew from there, as who knows the format can."""

    def change(rows: list[Row], chance: Random) -> list[Row]:
        place = chance.randrange(len(rows))
        rows[place][7] = rows[place][7].replace(b'"outcome":"ok"', b'"outcome":"no"')
        rows[place][4] = "no"
        before = rows[place - 1][9] if place else rows[0][8]
        for row in rows[place:]:
            row[8], row[9] = before, row_hash(log_id, before, row[7])
            before = row[9]
        return rows

    return change


def test_every_tampering_is_found_with_an_anchor(
    log: AuditLog, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ways = [flip, drop, close_up, swap, insert, truncate, rehash(log.log_id)]
    anchor = anchored(log, at=NOW, key=KEY)
    log.close()
    chance, unseen = Random(7), []
    for number in range(TAMPERINGS):
        place = Path(shutil.copytree(tmp_path / "store", tmp_path / "copy"))
        with closing(tampered(place, ways[number % len(ways)], chance)) as copy:
            if not verified(copy, anchors=[anchor], key=KEY).faults:
                unseen.append(number)
        shutil.rmtree(place)
    record_property("tamperings", TAMPERINGS)
    assert unseen == []


def test_nothing_is_found_in_logs_that_nobody_touched(tmp_path: Path) -> None:
    """With up to three archives; the latest anchor is of a row that is in the log."""
    chance = Random(8)
    for number in range(CLEAN):
        with closing(filled(tmp_path / str(number), rows=chance.randrange(1, 12))) as log:
            anchors, files = [anchored(log, at=NOW, key=KEY)], [tmp_path / f"{number}.{n}" for n in range(3)]
            for file in files[: chance.randrange(4)]:
                for _ in range(chance.randrange(4)):
                    log.append([AuditEvent("memory.delete", user_id="user-1")], at=NOW)
                archive(log, file, at=NOW, keep=chance.randrange(8))
                anchors.append(anchored(log, at=NOW, key=KEY))
            made = [file for file in files if file.exists()]
            chance.shuffle(made)
            for archives in ([], made):
                assert verified(log, anchors=anchors, key=KEY, archives=archives).faults == []


@pytest.fixture
def rotated(tmp_path: Path) -> tuple[Path, list[Anchor]]:
    """A place with a log that was archived twice, its archives, and anchors from before, between, after."""
    place, anchors = tmp_path / "rotated", []
    place.mkdir()
    with closing(filled(place / "store", rows=40)) as log:
        for keep, file in ((25, "one"), (20, "two")):
            anchors.append(anchored(log, at=NOW, key=KEY))
            archive(log, place / file, at=NOW, keep=keep)
            log.append(
                [AuditEvent("memory.write", user_id="user-1", record_id="r") for _ in range(6)], at=NOW
            )
        anchors.append(anchored(log, at=NOW, key=KEY))
    return place, anchors


def of_rows(how: Callable[[list[Row], Random], list[Row]]) -> Callable[[Path, Random], None]:
    return lambda place, chance: tampered(place / "store", how, chance).close()


def of_store(place: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(place / "store" / "audit.db"))) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


def change_a_boundary(place: Path, chance: Random) -> None:
    column = chance.choice(["through", "hash", "rows", "sha256", "at_us"])
    value = (
        "substr(sha256, 2) || 'f'" if column in {"hash", "sha256"} else f"{column} + {chance.choice([-1, 1])}"
    )
    of_store(place, f"UPDATE segments SET {column} = {value} WHERE through = {chance.choice([15, 27])}")


def drop_a_boundary(place: Path, chance: Random) -> None:
    of_store(place, f"DELETE FROM segments WHERE through = {chance.choice([15, 27])}")


def forge_a_boundary(place: Path, chance: Random) -> None:
    """Rows are removed, and the store says that they were archived."""
    row = f"FROM audit WHERE seq = {chance.randrange(28, 50)}"
    of_store(
        place,
        f"INSERT INTO segments SELECT seq, lower(hex(hash)), seq - 27, lower(hex(hash)), 1 {row}",
        "DELETE FROM audit WHERE seq <= (SELECT max(through) FROM segments)",
    )


def forge_both(place: Path, chance: Random) -> None:
    """All of the log is thrown away, and one begun whose first row says that what was before was archived."""
    through = chance.randrange(1, 90)
    of_store(place, "DELETE FROM audit", "DELETE FROM segments")
    with closing(AuditLog(Database(place / "store" / "audit.db"))) as log:
        segment = Segment(through, chance.randbytes(32).hex(), through, chance.randbytes(32).hex(), 1)
        event = {"seq": through + 1, "ts_us": 1, "op": ARCHIVE, "outcome": "ok", "event_id": "e"}
        event |= {"record_id": None, "subject": None, "detail": dict(segment.event().detail)}
        before, payload = bytes.fromhex(segment.hash), json.dumps(event).encode()
        digest = row_hash(log.log_id, before, payload)
    with closing(apsw.Connection(str(place / "store" / "audit.db"))) as connection:
        row = (through + 1, "e", 1, ARCHIVE, "ok", None, None, payload, before, digest)
        connection.execute("INSERT INTO audit VALUES(?,?,?,?,?,?,?,?,?,?)", row)
        connection.execute("INSERT INTO segments VALUES(?,?,?,?,?)", astuple(segment))


def of_file(how: Callable[[list[bytes], Random], list[bytes]]) -> Callable[[Path, Random], None]:
    def spoil(place: Path, chance: Random) -> None:
        file = place / chance.choice(["one", "two"])
        before = file.read_bytes()
        file.write_bytes(b"".join(how(before.splitlines(keepends=True), chance)))
        assert file.read_bytes() != before

    return spoil


def flip_a_bit(lines: list[bytes], chance: Random) -> list[bytes]:
    content = bytearray(b"".join(lines))
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return [bytes(content)]


def drop_a_line(lines: list[bytes], chance: Random) -> list[bytes]:
    del lines[chance.randrange(len(lines))]
    return lines


def swap_lines(lines: list[bytes], chance: Random) -> list[bytes]:
    one, other = chance.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def cut_off(lines: list[bytes], chance: Random) -> list[bytes]:
    return lines[: chance.randrange(len(lines))]


def rehash_lines(lines: list[bytes], chance: Random) -> list[bytes]:
    """Change a row, and make the chain anew from there to the end of the file."""
    told = [json.loads(line) for line in lines]
    place = chance.randrange(len(told))
    told[place]["payload"] = told[place]["payload"].replace('"outcome":"ok"', '"outcome":"no"')
    before = told[place]["prev"]
    for row in told[place:]:
        row["prev"] = before
        digest = row_hash(row["log_id"], bytes.fromhex(before), row["payload"].encode())
        before = row["hash"] = digest.hex()
    return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in told]


def is_found(place: Path, anchors: list[Anchor], archives: list[Path]) -> bool:
    with closing(AuditLog(Database(place / "store" / "audit.db"))) as log:
        try:
            return bool(verified(log, anchors=anchors, key=KEY, archives=archives).faults)
        except BackendError:  # a file is none of an archive of this log
            return True


def test_every_tampering_with_a_log_that_was_archived_is_found(
    rotated: tuple[Path, list[Anchor]], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Without the archives too, but for what was done to their files."""
    (source, anchors), chance, unseen = rotated, Random(9), []
    with closing(AuditLog(Database(source / "store" / "audit.db"))) as log:
        assert [segment.through for segment in log.segments()] == [15, 27]
        log_id = log.log_id
    in_store = [of_rows(way) for way in (flip, drop, close_up, swap, insert, truncate, rehash(log_id))]
    in_store += [change_a_boundary, drop_a_boundary, forge_a_boundary, forge_both]
    in_files = [of_file(way) for way in (flip_a_bit, drop_a_line, swap_lines, cut_off, rehash_lines)]
    ways = [*in_store, *in_files]
    for number in range(TAMPERINGS):
        place = Path(shutil.copytree(source, tmp_path / "copy"))
        way = ways[number % len(ways)]
        way(place, chance)
        if not is_found(place, anchors, [place / "two", place / "one"]):
            unseen.append((number, "with the archives"))
        if way in in_store and not is_found(place, anchors, []):
            unseen.append((number, "without"))
        shutil.rmtree(place)
    record_property("tamperings", TAMPERINGS)
    assert unseen == []


def test_rows_that_are_withheld_as_if_they_were_archived_are_missed_when_the_archives_are_named(
    rotated: tuple[Path, list[Anchor]],
) -> None:
    """Whoever can write the store can archive, too, and throw the file away: a limit in docs/auditing.md."""
    place, anchors = rotated
    with closing(AuditLog(Database(place / "store" / "audit.db"))) as log:
        archive(log, place / "thrown away", at=NOW, keep=10)
        archives = [place / "one", place / "two"]
        assert verified(log, anchors=anchors, key=KEY).faults == []
        [fault, *_] = verified(log, anchors=anchors, key=KEY, archives=archives).faults
        assert (fault.kind, "are missing" in fault.told) == ("chain", True)


def test_without_an_anchor_a_log_that_was_cut_off_or_made_anew_looks_whole(
    log: AuditLog, tmp_path: Path
) -> None:
    """The limit that docs/auditing.md names."""
    log_id = log.log_id
    log.close()
    for way in (truncate, rehash(log_id)):
        place = Path(shutil.copytree(tmp_path / "store", tmp_path / "copy"))
        with closing(tampered(place, way, Random(1))) as copy:
            assert verified(copy).faults == []
        shutil.rmtree(place)


def test_what_is_wrong_is_told_by_its_kind_and_first_row(log: AuditLog, tmp_path: Path) -> None:
    anchor, log_id = anchored(log, at=NOW, key=KEY), log.log_id
    log.close()
    ways: list[tuple[Callable[[list[Row], Random], list[Row]], str, int]] = [
        (lambda rows, _: rows[:20], "truncated", 20),
        (lambda rows, _: rows[:15] + rows[16:], "chain", 17),
        (rehash(log_id), "chain", 40),
    ]
    for way, kind, row in ways:
        place = Path(shutil.copytree(tmp_path / "store", tmp_path / "copy"))
        with closing(tampered(place, way, Random(3))) as copy:
            fault = verified(copy, anchors=[anchor], key=KEY).faults[0]
            assert (fault.kind, fault.row) == (kind, row)
        shutil.rmtree(place)


@pytest.mark.parametrize(
    "changes", [{"seq": 39}, {"hash": "00" * 32}, {"at_us": 1}, {"mac": ""}, {"log_id": "x"}]
)
def test_an_anchor_that_was_changed_is_no_proof(log: AuditLog, changes: dict[str, Any]) -> None:
    anchor = replace(anchored(log, at=NOW, key=KEY), **changes)
    [fault] = verified(log, anchors=[anchor], key=KEY).faults
    assert ("is not signed" if changes == {"mac": ""} else "was changed, or is signed with") in fault.told


def test_an_anchor_of_another_log_tells_that_this_one_was_begun_anew(log: AuditLog, tmp_path: Path) -> None:
    with closing(filled(tmp_path / "other", rows=40)) as other:
        [fault] = verified(log, anchors=[anchored(other, at=NOW, key=KEY)], key=KEY).faults
    assert (fault.kind, "begun anew" in fault.told) == ("chain", True)


def test_anchors_are_kept_as_lines_outside_the_store(log: AuditLog, tmp_path: Path) -> None:
    file = tmp_path / "anchors.jsonl"
    first = anchored(log, at=NOW, key=None)
    append_to(file, first, log)
    log.append([AuditEvent("memory.delete")], at=NOW)
    append_to(file, anchored(log, at=NOW, key=KEY), log)
    assert read_from(file)[0] == first
    assert [anchor.seq for anchor in read_from(file)] == [40, 41]
    with pytest.raises(SettingsError, match="beside the log"):
        append_to(tmp_path / "store" / "anchors.jsonl", first, log)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "nonsense", "{}", '{"seq": 1}', "[1, 2]", '{"log_id":1,"seq":"x","hash":"zz","at_us":1}'],
)
def test_a_file_that_holds_no_anchor_says_so(tmp_path: Path, text: str) -> None:
    file = tmp_path / "anchors.jsonl"
    file.write_text(text)
    with pytest.raises(BackendError, match="anchor"):
        read_from(file)


def test_an_empty_log_cannot_be_anchored(tmp_path: Path) -> None:
    with closing(filled(tmp_path / "empty", rows=0)) as log, pytest.raises(BackendError, match="no rows"):
        anchored(log, at=NOW, key=KEY)


def test_what_is_signed_is_all_but_the_signature(log: AuditLog) -> None:
    anchor = anchored(log, at=NOW, key=KEY)
    assert anchor.is_signed_with(KEY)
    assert not anchor.is_signed_with(KEY + " ")
    assert not Anchor(anchor.log_id, anchor.seq, anchor.hash, anchor.at_us).is_signed_with(KEY)


@pytest.mark.parametrize("payload", [b"", b"not json", b"[1]", b"{}", b"\xff\xfe"])
def test_whoever_makes_the_chain_anew_around_nonsense_is_found(
    log: AuditLog, tmp_path: Path, payload: bytes
) -> None:
    log_id = log.log_id
    log.close()

    def nonsense(rows: list[Row], chance: Random) -> list[Row]:
        rows[-1][7] = payload
        rows[-1][9] = row_hash(log_id, rows[-1][8], payload)
        return rows

    with closing(tampered(tmp_path / "store", nonsense, Random(1))) as copy:
        [fault] = verified(copy).faults
        assert (fault.kind, fault.row) == ("chain", 40)
