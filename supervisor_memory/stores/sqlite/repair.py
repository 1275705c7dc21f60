"""Makes a damaged store anew from the rows that can be read. The old files are put aside, never deleted."""

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final

import apsw

from supervisor_memory.audit.log import AUDIT_FILE_NAME, AuditLog
from supervisor_memory.audit.verify import LOST, verified
from supervisor_memory.disk.database import Database, has
from supervisor_memory.disk.files import log_of, sync_directory
from supervisor_memory.errors import BackendError, BackendUnavailable, Conflict, WasErased
from supervisor_memory.model.records import AuditEvent, Record
from supervisor_memory.stores.memory import json_file
from supervisor_memory.stores.memory.snapshot import decoded, encoded
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.protocol import Ids, Stored
from supervisor_memory.stores.sqlite import store as sqlite
from supervisor_memory.stores.sqlite.pages import Pages
from supervisor_memory.stores.sqlite.salvage import Salvaged, from_json, from_pages
from supervisor_memory.stores.sqlite.tables import SCHEMA, STEPS, Writing

_FRESH: Final = ".repair"
_BESIDE: Final = (
    *("subjects", "record_keys", "tombstones", "erased_verbatim"),
    *("erasures", "access", "archived_events"),
)


@dataclass(slots=True)
class Repaired:
    """What a repair did.

    Args:
        wrong: The faults found, as sentences; empty: there were none, and nothing was done.
        saved: How much is in the new store, by kind.
        lost: Everything unreadable or altered, as sentences.
        put_aside: The files that were there before, under their new names.
    """

    wrong: list[str] = field(default_factory=list)
    saved: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    put_aside: list[Path] = field(default_factory=list)


def repair_sqlite(directory: Path, *, now: float) -> Repaired:
    """Repair `memory.db`. Nobody else may have it open. `now` is in seconds since 1970.

    Raises:
        BackendUnavailable: another process writes it, or a newer release has written it.
        OSError: the directory cannot be written, or is full; then nothing was changed.
    """
    file = directory / sqlite.FILE_NAME
    done = Repaired(wrong=_wrong(lambda: _examined(directory)))
    if not done.wrong:
        return done
    found = _salvaged(file)
    with _fresh(directory) as place:
        with closing(Database(place / file.name, schema=SCHEMA, steps=STEPS)) as database:
            _fill(database, found, done, now=now)
        _exchange([file], place, found, done, now=now)
    return done


def repair_json(directory: Path, *, now: float) -> Repaired:
    """Repair `memory.json` and its `audit.db`; see `repair_sqlite`."""
    file, log = directory / json_file.FILE_NAME, directory / AUDIT_FILE_NAME
    done = Repaired(wrong=_wrong(lambda: _examined_json(file, log)))
    if not done.wrong:
        return done
    text = file.read_bytes().decode(errors="replace") if file.exists() else ""
    found, beside = from_json(text), _salvaged(log)
    found.audit, found.tables, found.meta = beside.audit, beside.tables, beside.meta
    found.unreadable += beside.unreadable
    commit = re.search(r'^ "commit": "([^"]*)"', text, re.MULTILINE)
    with _fresh(directory) as place:
        with closing(Database(place / log.name)) as database:
            kept = _fill(database, found, done, now=now)
        state = State(
            {each.record.id: each.record for each in kept},
            history={each.record.id: [*each.earlier] for each in kept if each.earlier},
            vectors={
                each.record.id: (each.record.embedder, each.vector)
                for each in kept
                if each.record.embedder is not None and each.vector is not None
            },
        )
        _write(place / file.name, encoded(state, Staged(results=[]), commit_id=commit[1] if commit else ""))
        _exchange([file, log], place, found, done, now=now)
    return done


def _wrong(examine: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(examine())
    except BackendUnavailable:
        raise
    except (BackendError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [str(error)]


def _examined(directory: Path) -> list[str]:
    with closing(sqlite.SqliteBackend(directory, read_only=True)) as backend:
        return [*_of_sqlite(backend.database), *verified(backend.audit, backend.get).problems]


def _examined_json(file: Path, log: Path) -> list[str]:
    state = decoded(file.read_text("utf-8")).state if file.exists() else State()

    def get(ids: Ids) -> list[Record]:
        return [state.records[record_id] for record_id in ids if record_id in state.records]

    with closing(Database(log, read_only=True)) as database:
        return [*_of_sqlite(database), *verified(AuditLog(database), get).problems]


def _of_sqlite(database: Database) -> list[str]:
    with database.reading() as connection:
        rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
    return [] if rows == ["ok"] else rows


def _salvaged(file: Path) -> Salvaged:
    """Everything in a database and its log; nothing where there is none."""
    parts = [each.read_bytes() if each.exists() else b"" for each in (file, log_of(file))]
    return from_pages(Pages(*parts))


def _fill(database: Database, found: Salvaged, done: Repaired, *, now: float) -> Sequence[Stored]:
    """Put what was found into new tables. Returns the records that were kept."""
    _continue_log(database, found)
    log = AuditLog(database)
    lost = _lost_records(found)
    kept: list[Stored] = []
    events: list[AuditEvent] = []
    with database.writing() as connection:
        has_records = has(connection, "records")
        for stored, wrong in found.stored():
            record = stored.record
            try:
                log.refuse_erased([record])
                if has_records:
                    Writing(connection).put_stored(stored, None)
            except (Conflict, WasErased) as error:
                lost[record.id] = str(error)
                continue
            kept.append(stored)
            if wrong:
                done.lost.append(f"record {record.id}: {wrong}; it is kept, and not recalled")
            if wrong or not found.has_whole_log:
                events.append(_salvage(record, wrong))
        done.lost += [f"record {record_id}: {why}" for record_id, why in lost.items()]
        done.lost += _lost_beside(found, kept)
        if found.has_whole_log:
            events += [AuditEvent(LOST, actor="operator", record_id=each, outcome="failed") for each in lost]
        log.append([_repaired(found), *events], at=now)
    done.saved += Counter(
        records=len(kept),
        versions=sum(len(each.earlier) for each in kept),
        vectors=sum(each.vector is not None for each in kept),
        audit_rows=len(found.audit) if found.has_whole_log else 0,
        accesses=len(found.tables.get("access", ())),
    )
    return kept


def _continue_log(database: Database, found: Salvaged) -> None:
    """Give the new log what was found beside the old one, and its rows where they are all there."""
    AuditLog(database)  # makes the tables
    meta = found.meta if found.has_whole_log else {k: v for k, v in found.meta.items() if k == "session_key"}
    with database.writing() as connection:
        connection.executemany("INSERT OR REPLACE INTO audit_meta VALUES(?, ?)", meta.items())
        for table in _BESIDE:
            _insert(connection, table, found.tables.get(table, ()))
        if found.has_whole_log:
            rows = [astuple(row) for _, row in sorted(found.audit.items())]
            _insert(connection, "segments", found.tables.get("segments", ()))
            _insert(connection, "audit", rows)


def _insert(connection: apsw.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES({marks})", rows)


def _lost_records(found: Salvaged) -> dict[str, str]:
    """Record id → a sentence, for records in the log that were not erased and have left no trace."""
    # An erasure takes both: the record's key, and the name that its user has in the log.
    keys, names = found.keys(), {row[1] for row in found.tables.get("subjects", ())}
    names_of = {row.record_id: row.subject for row in found.audit.values()}
    return {
        record_id: "nothing of it is left"
        for record_id in found.last_versions()
        if record_id not in found.records
        and record_id not in found.versions
        and (record_id in keys or names_of[record_id] in names)
    }


def _lost_beside(found: Salvaged, kept: Sequence[Stored]) -> Iterator[str]:
    missing = {
        "vectors: those records are found by words until `supervisor-memory reembed`": sum(
            each.vector is None
            and (record := found.records.get(each.record.id)) is not None
            and record.embedder is not None
            for each in kept
        ),
        "earlier versions": sum(each.record.version - 1 - len(each.earlier) for each in kept),
        "pages or rows that could not be read": found.unreadable,
    }
    yield from (f"{number} {what}" for what, number in missing.items() if number)
    if not found.has_whole_log:
        yield (
            f"the audit log is whole up to row {found.last_whole_row()}; a new one was begun, and the "
            f"{len(found.audit)} rows that are left of the old one are in the file *.audit.jsonl"
        )
    if "session_key" not in found.meta:
        yield "the key of the audit log: who was erased before is not recognised any more; erase them again"


def _repaired(found: Salvaged) -> AuditEvent:
    if found.has_whole_log:
        return AuditEvent("store.repaired", actor="operator", detail={"unreadable": found.unreadable})
    last = found.last_whole_row()
    detail: dict[str, str | int] = {
        "log": found.meta.get("log_id", ""),
        "whole_until": last,
        "hash": found.audit[last].hash.hex() if last in found.audit else "",
        "rows_left": len(found.audit),
        "unreadable": found.unreadable,
    }
    ended = AuditEvent("store.repaired", actor="operator", detail=detail)
    return replace(ended, outcome="degraded", reason="the-log-broke")


def _salvage(record: Record, wrong: str) -> AuditEvent:
    whose = ("store.salvaged", record.user_id, "operator", record.family, record.id)
    reason = "quarantined" if wrong else ""
    return AuditEvent(*whose, version_after=record.version, after=record.content, reason=reason)


@contextmanager
def _fresh(directory: Path) -> Iterator[Path]:
    """An empty directory for the new files; it is removed after the block."""
    place = directory / _FRESH
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _exchange(files: Sequence[Path], place: Path, found: Salvaged, done: Repaired, *, now: float) -> None:
    """Put the new files in the places of the old ones, and give these other names.

    There is a file at every moment: a process that finds none would begin an empty store.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    names = (f"damaged-{stamp}" if number == 1 else f"damaged-{stamp}-{number}" for number in count(1))
    name = next(each for each in names if not any(f.with_name(f"{f.name}.{each}").exists() for f in files))
    if not found.has_whole_log and found.audit:
        rows = (
            {
                "seq": r.seq,
                "prev_hash": r.prev_hash.hex(),
                "hash": r.hash.hex(),
                "payload": r.payload.decode(),
            }
            for _, r in sorted(found.audit.items())
        )
        aside = files[-1].with_name(f"{files[-1].name}.{name}.audit.jsonl")
        _write(aside, "".join(json.dumps(row) + "\n" for row in rows))
        done.put_aside.append(aside)
    for file in files:
        aside = file.with_name(f"{file.name}.{name}")
        if file.exists():
            os.link(file, aside)
            done.put_aside.append(aside)
        for end in ("-wal", "-shm"):
            if (beside := file.with_name(file.name + end)).exists():
                done.put_aside.append(beside.rename(f"{aside}{end}"))
        (place / file.name).replace(file)
    sync_directory(files[0].parent)


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    with path.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file)
