"""The audit log: events in a chain that shows every change, without contents and names.

The table `audit` is the chain: each row holds the hash of the row before. Rows are never changed, nor
removed before a file has them. They hold no content, no user's name and no free text, so that the chain
stays whole when a person is forgotten. `access` says who saw which record, `notes` what each reader was
shown (`turns.py`); both are capped and not chained.

The ties of rows to people and texts lie beside the chain and can be erased: `subjects` gives each user a
random pseudonym, `record_keys` each record the key of its commitments. `erase` removes both and puts a
tombstone in their place (`tombstones.py`).

    hash = SHA-256("sm-audit/v1" NUL, log id, hash of the row before, payload)

`payload` is the whole event as RFC 8785 canonical JSON, the very bytes that were hashed.

The oldest rows can be moved into files (`archive.py`), which go on being the beginning of the chain; what
is left begins behind them (`segments.py`).
"""

import json
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import apsw

from supervisor_memory.audit import access, pseudonyms, segments, tallies, tombstones, turns
from supervisor_memory.audit.access import ACCESS_ROWS, AccessLog
from supervisor_memory.audit.pseudonyms import Pseudonyms
from supervisor_memory.audit.rows import (
    GENESIS,
    Access,
    AccessRow,
    AuditRow,
    code,
    plain,
    row_hash,
)
from supervisor_memory.audit.segments import Segment
from supervisor_memory.audit.tombstones import Tombstones
from supervisor_memory.audit.turns import Given, Injection
from supervisor_memory.disk.database import Database, has, select
from supervisor_memory.errors import BackendError, Conflict
from supervisor_memory.model.records import AuditEvent, Reads, Record

_log = logging.getLogger("supervisor_memory")
_Values: TypeAlias = tuple[str | int | None, ...]
SCHEMA_NUMBER: Final = 1
_TOLD_BY_JOURNAL: Final = ("commit.", "erase.")
_MICRO: Final = 1_000_000
_CANONICAL: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
)
SELDOM: Final = ("memory.forget",)
"""Operations that are looked for by name, and lie far apart in a long log."""
_OF_SELDOM_OP: Final = f"op IN ({', '.join(map(repr, SELDOM))})"
_BY_SELDOM_OP: Final = (f"CREATE INDEX IF NOT EXISTS audit_by_seldom_op ON audit(op) WHERE {_OF_SELDOM_OP}",)
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS audit(
        seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, ts_us INTEGER NOT NULL, op TEXT NOT NULL,
        outcome TEXT NOT NULL, record_id TEXT, subject TEXT, payload BLOB NOT NULL,
        prev_hash BLOB NOT NULL, hash BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS audit_by_record ON audit(record_id) WHERE record_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS audit_by_subject ON audit(subject) WHERE subject IS NOT NULL",
    """CREATE TRIGGER IF NOT EXISTS audit_is_never_changed BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    "CREATE TABLE IF NOT EXISTS audit_meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS subjects(
        user_id TEXT PRIMARY KEY, subject TEXT NOT NULL UNIQUE, key BLOB NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS record_keys(
        record_id TEXT PRIMARY KEY, subject TEXT, key BLOB NOT NULL) WITHOUT ROWID""",
    *segments.TABLES,
    *tombstones.TABLES,
    *turns.TABLES,
    *tallies.TABLES,
    *access.TABLES,
    *_BY_SELDOM_OP,
)
_LATEST: Final = ("erasures", "notes", "notes_by_session", "segments", "tallies_by_day")
"""Tables and indexes that a store of an earlier release may lack."""
_IS_THERE: Final = f"""SELECT 1 FROM audit WHERE event_id = ?1
    UNION ALL SELECT 1 FROM archived_events WHERE id = {segments.ID.format("?1")}"""
_AUDIT_COLUMNS: Final = "seq, event_id, ts_us, op, outcome, record_id, subject, payload, prev_hash, hash"
_AMOUNTS: Final = f"""SELECT date(ts_us / 1000000, 'unixepoch'), told ->> '$.agent_id', op, outcome,
        told ->> '$.actor', iif(told ->> '$.reason' = 'verbatim', 'verbatim', ''), record_id IS NOT NULL,
        json_type(told, '$.detail.layer') IS NOT NULL, count(*)
    FROM (SELECT ts_us, op, outcome, record_id, CAST(payload AS TEXT) AS told FROM audit
        WHERE seq > ?1 AND ts_us >= ?2 AND (?3 IS NULL OR subject = ?3)
            AND (outcome = 'degraded' OR op IN ({", ".join(map(repr, sorted(tallies.COUNTED)))})))
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"""
AUDIT_FILE_NAME: Final = "audit.db"


class AuditLog:
    """The log in a database, which may hold the records too.

    Reasons, ids and the strings in an event's `detail` are codes ("near-duplicate", "cosine=0.97"): a string
    with a space or a letter outside ASCII is stored as "redacted", for it could be content.
    """

    def __init__(self, database: Database, *, access_rows: int = ACCESS_ROWS) -> None:
        self._database = database
        self._accesses = AccessLog(database, most=access_rows)
        self._create()
        with database.reading() as connection:
            self._read_meta(connection)
        database.when_replaced(self._read_meta)

    @property
    def log_id(self) -> str:
        """The random name of this log; part of every hash. Empty where there is no log yet."""
        return self._log_id

    @property
    def directory(self) -> Path | None:
        """The directory of the log's file; None: the log is in memory."""
        return None if self._database.path is None else self._database.path.parent

    def append(self, events: Sequence[AuditEvent], *, at: float) -> None:
        """Add events to the chain; joins an open transaction of the database.

        Args:
            at: The time of recording, in seconds since 1970.

        Raises:
            Conflict: an event of the same id is already there.
        """
        if not events:
            return
        with self._database.writing() as connection:
            names = self._names(connection)
            seq, prev_hash = _last_link(connection)
            for event in events:
                seq += 1
                prev_hash = self._append_one(connection, names, event, seq, prev_hash, round(at * _MICRO))
            self._accesses.write(connection, names, {at // tallies.A_DAY: tallies.of_events(events)})

    def check_new(self, events: Sequence[AuditEvent]) -> None:
        """Raise Conflict where `append` would, for callers who must know before the transaction."""
        seen: set[str] = set()
        with self._database.reading() as connection:
            for event in events:
                if event.id in seen or select(connection, "audit", _IS_THERE, event.id):
                    raise _already_there(event.id)
                seen.add(event.id)

    def record_access(self, entries: Sequence[Access | Given]) -> None:
        """Note who saw which record, and what readers were shown, in memory; the oldest entries make room.

        They are written with the next commit, when the log is read or closed, and by `flush`.
        """
        self._accesses.add(entries)

    @property
    def has_much_to_write(self) -> bool:
        """Whether so many entries wait that it is time to `flush`."""
        return self._accesses.has_much_to_write

    def flush(self) -> None:
        """Write the entries that `record_access` noted."""
        if self._accesses.waiting and not self._database.read_only:
            with self._database.writing(durable=False) as connection:
                self._accesses.write(connection, self._names(connection))

    def flush_at_last(self) -> None:
        """Write the entries that `record_access` noted; only warn where that fails, as on a full disk."""
        count = self._accesses.waiting
        try:
            self.flush()
        except BackendError as error:
            _log.warning("%d rows of the access log were not written: %s", count, error)

    def tail(
        self,
        limit: int,
        *,
        user_id: str | None = None,
        record_id: str | None = None,
        op: str | None = None,
        before: int | None = None,
    ) -> Sequence[AuditRow]:
        """The last rows of the chain, newest last, optionally of one user, record or operation.

        Args:
            before: Only rows with a smaller `seq`.
        """
        with self._database.reading() as connection:
            wanted = {"record_id": record_id, "op": op, "subject": _subject_of(connection, user_id)}
            given = {column: value for column, value in wanted.items() if value is not None}
            where = [f"{column} = ?" for column in given]
            if op in SELDOM:
                where.append(_OF_SELDOM_OP)  # SQLite uses a partial index only where this is repeated
            if before is not None:
                where.append("seq < ?")
            sql = f"""SELECT {_AUDIT_COLUMNS} FROM audit WHERE {" AND ".join(where) or "1"}
                ORDER BY seq DESC LIMIT ?"""
            bindings = (*given.values(), *(() if before is None else (before,)), max(0, limit))
            rows = select(connection, "audit", sql, *bindings)
        return tuple(AuditRow(*row) for row in reversed(rows))

    def ids(self, beginning: str, *, limit: int = 10) -> Sequence[str]:
        """Record ids with this beginning, as far as the log has rows for them, in order."""
        sql = """SELECT DISTINCT record_id FROM audit
            WHERE record_id >= ?1 AND record_id < ?1 || char(1114111) ORDER BY record_id LIMIT ?2"""
        with self._database.reading() as connection:
            return tuple(row[0] for row in select(connection, "audit", sql, beginning, limit))

    def ids_by_end(self, end: str, *, limit: int = 10) -> Sequence[str]:
        """Record ids with this end, as far as the log has rows for them, in order; it looks at all ids."""
        sql = """SELECT DISTINCT record_id FROM audit
            WHERE record_id IS NOT NULL AND substr(record_id, -length(?1)) = ?1 ORDER BY record_id LIMIT ?2"""
        with self._database.reading() as connection:
            return tuple(row[0] for row in select(connection, "audit", sql, end, limit))

    def rows(self, *, after: int = 0, limit: int, user_id: str | None = None) -> Sequence[AuditRow]:
        """A page of the rows behind row `after`, oldest first, optionally of one user; archived rows may be
        missing."""
        with self._database.reading() as connection:
            subject = _subject_of(connection, user_id)
            of_user, bindings = ("", ()) if subject is None else (" AND subject = ?", (subject,))
            sql = f"SELECT {_AUDIT_COLUMNS} FROM audit WHERE seq > ?{of_user} ORDER BY seq LIMIT ?"
            return tuple(AuditRow(*row) for row in select(connection, "audit", sql, after, *bindings, limit))

    def accesses(
        self, limit: int, *, user_id: str | None = None, record_id: str | None = None, op: str | None = None
    ) -> Sequence[AccessRow]:
        """The last rows of the access log, newest last, optionally of one user, record or operation."""
        self._write_notes_as_accesses()
        with self._database.reading() as connection:
            subject = _subject_of(connection, user_id)
            return self._accesses.last(connection, limit, subject=subject, record_id=record_id, op=op)

    def notes(
        self,
        limit: int,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        record_id: str | None = None,
        id: str | None = None,
        op: str | None = None,
        session_ids: Sequence[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        before: int | None = None,
    ) -> Sequence[Injection]:
        """The latest notes and searches, newest first; see `turns.injections`.

        Args:
            session_ids: Sessions of the user that is named.
        """
        self.flush()
        named = None
        if session_ids is not None:
            named = [self.session_name(user_id or "", each) or "" for each in session_ids]
        with self._database.reading() as connection:
            subject = _subject_of(connection, user_id)
            return turns.injections(
                connection,
                subject=subject,
                run_id=self.run_name(run_id),
                record_id=record_id,
                id=id,
                op=op,
                sessions=named,
                since=since,
                until=until,
                before=before,
                limit=max(0, limit),
            )

    def reads(self, record_ids: Sequence[str], *, op: str | None = None) -> dict[str, Reads]:
        """How often and when last each of these was read, by the rows that are written and still kept.

        Args:
            op: Only by this operation, such as "inject", in a note; None: by any, by people too.
        """
        return self._accesses.reads(record_ids, op=op)

    def segments(self) -> Sequence[Segment]:
        """The archived segments of the chain, oldest first."""
        with self._database.reading() as connection:
            return segments.listed(connection)

    def note_archived(self, segment: Segment) -> None:
        """Note, in the chain and beside it, that the oldest rows are safely in a file; see `segments.put`."""
        with self._database.writing() as connection:
            segments.put(connection, segment)
            self.append([segment.event()], at=segment.at_us / _MICRO)

    def remove_archived(self, *, most: int) -> int:
        """Remove up to `most` archived rows, oldest first; returns how many."""
        with self._database.writing(durable=False) as connection:
            return segments.remove(connection, most=most)

    def count(self) -> int:
        """How many rows the chain has, archived rows included: the number of its last row."""
        with self._database.reading() as connection:
            return _last_link(connection)[0]

    def kept(self) -> dict[tallies.Tally, float]:
        """The running totals since this log began to keep them, by agent and name; see `tallies.py`."""
        self.flush()
        with self._database.reading() as connection:
            return tallies.all_of(connection)

    def kept_by_day(self, *, since: float) -> dict[tuple[int, str, str], float]:
        """The running totals of each day (UTC, days since 1970) from the day of `since` on, by agent and
        name."""
        self.flush()
        with self._database.reading() as connection:
            return tallies.by_day(connection, since=since)

    def amounts(
        self, *, after: int = 0, since: float | None = None, user_id: str | None = None
    ) -> Iterator[tuple[str, str | None, dict[str, int]]]:
        """The amounts that the rows behind row `after`, from `since` on, add to the figures: (day, agent,
        amounts).

        SQLite adds them up. Days are dates in UTC.
        """
        start = 0 if since is None else round(since * _MICRO)
        with self._database.reading() as connection:
            subject = _subject_of(connection, user_id)
            rows = select(connection, "audit", _AMOUNTS, after, start, subject)
        for day, agent, op, outcome, actor, reason, is_of_a_record, has_layer, count in rows:
            amounts = tallies.of_event(
                op,
                outcome=outcome,
                actor=actor,
                reason=reason,
                is_of_a_record=bool(is_of_a_record),
                has_layer=bool(has_layer),
            )
            yield day, agent, {name: amount * count for name, amount in amounts.items()}

    def subject(self, user_id: str) -> str | None:
        """The pseudonym of a user in the rows; None where the log does not know the user."""
        with self._database.reading() as connection:
            subject: str | None = pseudonyms.of_user(connection, "subject", user_id)
        return subject

    def session_name(self, user_id: str, session_id: str | None) -> str | None:
        """The pseudonym of a user's session in the rows; None where the log does not know the user."""
        return None if session_id is None else self._pseudonym(user_id, pseudonyms.session_name, session_id)

    def run_pseudonym(self, user_id: str, run_id: str | None) -> str | None:
        """The pseudonym of a user's run in the chain; None where the log does not know the user."""
        return None if run_id is None else self._pseudonym(user_id, pseudonyms.run_pseudonym, run_id)

    def _pseudonym(self, user_id: str, named: Callable[[bytes, str], str], id_: str) -> str | None:
        with self._database.reading() as connection:
            key = pseudonyms.of_user(connection, "key", user_id)
        return None if key is None else named(bytes(key), id_)

    def run_name(self, run_id: str | None) -> str | None:
        """The name of a run in `access` and `notes`: its id where that is a code, else a keyed hash."""
        return pseudonyms.run_name(self._session_key.encode(), run_id)

    def run_behind(self, pseudonym: str) -> str | None:
        """Find the run that a pseudonym of the chain stands for, as `access` and `notes` name it.

        None: no note of it is kept, or its id is no code.
        """
        if not pseudonyms.is_run_pseudonym(pseudonym):
            return None
        self.flush()
        sql = """SELECT DISTINCT run_id, key FROM notes JOIN subjects USING (subject)
            WHERE run_id IS NOT NULL"""
        with self._database.reading() as connection:
            told = select(connection, "notes", sql)
        return next(
            (run for run, key in told if pseudonyms.run_pseudonym(bytes(key), run) == pseudonym), None
        )

    def key(self, record_id: str) -> bytes | None:
        """The key of a record's commitments; None when the record has none, or the key was erased."""
        with self._database.reading() as connection:
            return pseudonyms.key_of(connection, record_id)

    @property
    def tombstones(self) -> Tombstones:
        """The erased users, and the erasures under way."""
        return self._tombstones

    def refuse_erased(self, records: Sequence[Record]) -> None:
        """Refuse new records that were said before their user was erased; see `Tombstones`."""
        self._tombstones.refuse_erased(records)

    def holds(self, user_id: str) -> dict[str, int]:
        """How many rows `erase` would remove, by kind."""
        self._write_notes_as_accesses()
        with self._database.reading() as connection:
            return _counted(connection, pseudonyms.of_user(connection, "subject", user_id), [])

    def erase(
        self, user_id: str, records: Sequence[Record], *, at: float, actor: str = "operator"
    ) -> dict[str, int]:
        """Remove all ties of the log to a user, and refuse records said before `at` from now on.

        The chain keeps its rows and gets an "erase.begin"; `finish_erasures` adds "erase.done". Inside an
        open transaction of the database this is part of it.

        Args:
            records: All of the user's, in any status.
            at: In seconds since 1970, by the clock of the records' times.

        Returns:
            How many rows were removed, by kind.
        """
        begin = AuditEvent("erase.begin", user_id=user_id, actor=actor, detail={"records": len(records)})
        ids = [record.id for record in records]
        verbatim = [record.id for record in records if record.layer == "history"]
        with self._database.writing() as connection:
            self.append([begin], at=at)
            self._accesses.write_notes(connection)
            subject = pseudonyms.of_user(connection, "subject", user_id)
            removed = _counted(connection, subject, ids)
            for table, where, of_user in _rows_of(subject, ids).values():
                connection.execute(f"DELETE FROM {table} WHERE {where}", of_user)
            access.mark_notes_as_written(connection)
            connection.execute("DELETE FROM subjects WHERE user_id = ?", (user_id,))
            self._tombstones.put(user_id, verbatim, at=at, erasure=begin.id)
        return removed

    def erase_records(
        self, user_id: str, records: Sequence[Record], *, at: float, actor: str = "operator"
    ) -> dict[str, int]:
        """Remove the keys and accesses of some records of a user; `erase` removes all.

        The chain gets an "erase.records", which says how many.
        """
        begin = AuditEvent("erase.records", user_id=user_id, actor=actor, detail={"records": len(records)})
        ids = [record.id for record in records]
        with self._database.writing() as connection:
            self.append([begin], at=at)
            self._accesses.write_notes(connection)
            removed = _counted(connection, None, ids)
            for table, where, bindings in _rows_of(None, ids).values():
                connection.execute(f"DELETE FROM {table} WHERE {where}", bindings)
            verbatim = [record.id for record in records if record.layer == "history"]
            self._tombstones.put_marks(verbatim, erasure=begin.id)
        return {what: count for what, count in removed.items() if what not in {"notes", "pseudonyms"}}

    def users(self) -> Sequence[str]:
        """The ids of all users with a pseudonym in the log."""
        with self._database.reading() as connection:
            return [str(row[0]) for row in select(connection, "subjects", "SELECT user_id FROM subjects")]

    @property
    def is_read_only(self) -> bool:
        return self._database.read_only

    def finish_erasures(
        self, erasures: Sequence[str] | None = None, *, at: float, seconds: float | None = None
    ) -> tuple[str, ...]:
        """Remove the last traces of erased users from the log's file; `seconds` as in `Database.scrub`.

        Args:
            erasures: Those with nothing left elsewhere; None: all that are begun.

        Returns:
            What is in the way, as sentences; empty: the erasures are done.
        """
        if not (erasures := self._tombstones.unfinished() if erasures is None else erasures):
            return ()
        try:
            if obstacle := self._database.scrub(seconds=seconds):
                return (obstacle,)
            with self._database.writing():
                done = self._tombstones.finish(erasures)
                told = [AuditEvent("erase.done", actor="operator", detail={"erasure": each}) for each in done]
                self.append(told, at=at)
        except BackendError as error:
            return (str(error),)
        return ()

    def _write_notes_as_accesses(self) -> None:
        """Write the entries that wait, and put the records of all notes into the access log."""
        if not self._database.read_only:
            with self._database.writing(durable=False) as connection:
                self._accesses.write(connection, self._names(connection))
                self._accesses.write_notes(connection)

    def _names(self, connection: apsw.Connection) -> Pseudonyms:
        return Pseudonyms(connection, self._session_key, self._tombstones)

    def close(self) -> None:
        """Write what waits, and close the database underneath."""
        self.flush_at_last()
        self._database.close()

    def _read_meta(self, connection: apsw.Connection) -> None:
        self._log_id, self._session_key = (_meta(connection, name) for name in ("log_id", "session_key"))
        self._tombstones = Tombstones(self._database, self._session_key)

    def _create(self) -> None:
        with self._database.reading() as connection:
            is_made = all(has(connection, name) for name in _LATEST)
            is_named = bool(_meta(connection, "log_id") and _meta(connection, access.WRITTEN_UP_TO))
        if (is_made and is_named) or self._database.read_only:
            return
        with self._database.writing() as connection:
            connection.execute(";".join(_TABLES))
            put = "INSERT OR IGNORE INTO audit_meta VALUES('log_id', ?), ('session_key', ?)"
            connection.execute(put, (secrets.token_hex(16), secrets.token_hex(32)))
            if not _meta(
                connection, access.WRITTEN_UP_TO
            ):  # an earlier release put each note's records there at once
                access.mark_notes_as_written(connection)

    def _append_one(  # noqa: PLR0917
        self,
        connection: apsw.Connection,
        names: Pseudonyms,
        event: AuditEvent,
        seq: int,
        prev_hash: bytes,
        ts_us: int,
    ) -> bytes:
        names_anew = event.version_after is not None and event.op != pseudonyms.SKIP
        subject, session = names.of(event.user_id, event.session_id, names_anew=names_anew)
        run = names.run_of(event.user_id, event.run_id)
        op, record_id = code(event.op), code(event.record_id)
        told = _CANONICAL.encode(
            {
                "schema": SCHEMA_NUMBER,
                "log_id": self._log_id,
                "seq": seq,
                "event_id": event.id,
                "ts_us": ts_us,
                "op": op,
                "outcome": event.outcome,
                "reason": code(event.reason),
                "actor": code(event.actor),
                "source_class": event.source_class,
                "subject": subject,
                "family": event.family,
                "record_id": record_id,
                "version_before": event.version_before,
                "version_after": event.version_after,
                **pseudonyms.commitments(connection, event, subject),
                "agent_id": event.agent_id,
                "session": session,
                "run_id": run,
                "detail": dict(plain(event.detail)),
            }
        )
        payload = told.encode()
        digest = row_hash(self._log_id, prev_hash, payload)
        filed = (seq, event.id, ts_us, op, event.outcome, record_id, subject)
        insert = f"INSERT INTO audit({_AUDIT_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?)"
        try:
            connection.execute(insert, (*filed, payload, prev_hash, digest))
        except apsw.ConstraintError as error:
            raise _already_there(event.id) from error
        return digest


def _subject_of(connection: apsw.Connection, user_id: str | None) -> str | None:
    """The pseudonym of a user; None where no user is named, "" where the log does not know the user."""
    return None if user_id is None else pseudonyms.of_user(connection, "subject", user_id) or ""


def _already_there(event_id: str) -> Conflict:
    told = f"the audit event {event_id} is already in the log; its commit was applied before"
    return Conflict(told, what="event", event_id=event_id)


def _last_link(connection: apsw.Connection) -> tuple[int, bytes]:
    rows = select(connection, "audit", "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
    return (int(rows[0][0]), bytes(rows[0][1])) if rows else (0, GENESIS)


def _meta(connection: apsw.Connection, name: str) -> str:
    rows = select(connection, "audit_meta", "SELECT value FROM audit_meta WHERE name = ?", name)
    return str(rows[0][0]) if rows else ""


def _counted(connection: apsw.Connection, subject: str | None, ids: Sequence[str]) -> dict[str, int]:
    """How many rows of a user lie beside the chain, by kind."""
    counts = {
        what: select(connection, table, f"SELECT count(*) FROM {table} WHERE {where}", *of_user)
        for what, (table, where, of_user) in _rows_of(subject, ids).items()
    }
    found = {what: int(rows[0][0]) for what, rows in counts.items() if rows}
    return {**found, "pseudonyms": int(subject is not None)} if found else {}


def _rows_of(subject: str | None, ids: Sequence[str]) -> dict[str, tuple[str, str, tuple[str | None, ...]]]:
    """Kind → table, condition and bindings of a user's rows beside the chain."""
    of_records = "(subject = ? OR record_id IN (SELECT value FROM json_each(?)))", (subject, json.dumps(ids))
    return {
        "accesses": ("access", *of_records),
        "record_keys": ("record_keys", *of_records),
        "notes": ("notes", "subject = ?", (subject,)),
    }


class RelayedLog(AuditLog):
    """The log of a store inside a journal. It keeps nothing: it passes events on to the journal's log.

    Events about the outcome of commits and erasures are left out: the journal writes its own.
    """

    def __init__(self) -> None:
        super().__init__(Database(None))
        self._relayed_to: AuditLog | None = None

    def relay_to(self, log: AuditLog) -> None:
        """Pass all later events on to `log`."""
        self._relayed_to = log

    def append(self, events: Sequence[AuditEvent], *, at: float) -> None:
        """Pass events on, except those about the outcome of commits and erasures."""
        told = [event for event in events if not event.op.startswith(_TOLD_BY_JOURNAL)]
        if told and self._relayed_to is not None:
            self._relayed_to.append(told, at=at)


def open_log(directory: Path | str | None) -> AuditLog:
    """Open the log of a backend with records elsewhere: in `directory`, or with None in memory."""
    return AuditLog(Database(None if directory is None else Path(directory) / AUDIT_FILE_NAME))
