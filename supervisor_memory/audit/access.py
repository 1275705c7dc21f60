"""The access log: who saw which record. It is capped at a number of rows and not part of the chain.

Entries wait in memory and are written together. A turn writes its notes and searches alone (`turns.py`); the
records that they name get rows of their own once somebody asks for them.
"""

import contextlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeAlias, cast

import apsw

from supervisor_memory.audit import tallies, turns
from supervisor_memory.audit.pseudonyms import Pseudonyms
from supervisor_memory.audit.rows import USED, Access, AccessRow, code
from supervisor_memory.audit.turns import Given
from supervisor_memory.disk.database import Database, select
from supervisor_memory.model.records import Reads

_Values: TypeAlias = tuple[str | int | None, ...]
ACCESS_ROWS: Final = 100_000
_WRITTEN_TOGETHER: Final = 256
_MOST_UNWRITTEN: Final = 4_096
_MICRO: Final = 1_000_000

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS access(
        id INTEGER PRIMARY KEY, ts_us INTEGER NOT NULL, subject TEXT, op TEXT NOT NULL, agent_id TEXT,
        session TEXT, run_id TEXT, record_id TEXT, rank INTEGER, score_milli INTEGER,
        reason TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS access_by_record ON access(record_id)",
    "CREATE INDEX IF NOT EXISTS access_by_subject ON access(subject)",
)
_READS: Final = """SELECT value,
    (SELECT count(*) FROM (SELECT 1 FROM access WHERE record_id = value AND op = ifnull(?2, op) LIMIT 100)),
    (SELECT max(ts_us) FROM (SELECT ts_us FROM access WHERE record_id = value AND op = ifnull(?2, op)
        ORDER BY id DESC LIMIT 100))
    FROM json_each(?1)"""
_COLUMNS: Final = "id, ts_us, subject, op, agent_id, session, run_id, record_id, rank, score_milli, reason"
_PUT: Final = f"INSERT INTO access({_COLUMNS})"
_DELETE_OLDEST: Final = "DELETE FROM access WHERE id <= (SELECT max(id) FROM access) - ?"
WRITTEN_UP_TO: Final = "read_up_to"
"""The name in `audit_meta` of the latest row of `notes` whose records are in `access`."""
_OF_NOTES: Final = f"""{turns.READINGS}
    CAST((SELECT value FROM audit_meta WHERE name = '{WRITTEN_UP_TO}') AS INTEGER)"""
_MARK: Final = f"""INSERT INTO audit_meta
    VALUES('{WRITTEN_UP_TO}', (SELECT ifnull(max(seq), 0) FROM notes))
    ON CONFLICT DO UPDATE SET value = excluded.value"""
_OF_A_READING: Final = Access._fields.index("record_id")


class AccessLog:
    """The entries that wait to be written, and the tables `access` and `notes` in the log's database.

    Args:
        most: Rows of `access` that are kept.
    """

    def __init__(self, database: Database, *, most: int = ACCESS_ROWS) -> None:
        self._database = database
        self._most = most
        self._unwritten: deque[Access | Given] = deque(maxlen=_MOST_UNWRITTEN)
        self._writes_notes_at_once = False

    @property
    def waiting(self) -> int:
        """How many entries wait."""
        return len(self._unwritten)

    @property
    def has_much_to_write(self) -> bool:
        """Whether so many entries wait that it is time to write them."""
        return len(self._unwritten) >= _WRITTEN_TOGETHER

    def add(self, entries: Sequence[Access | Given]) -> None:
        """Let entries wait; the oldest make room."""
        self._unwritten.extend(entries)

    def write(
        self,
        connection: apsw.Connection,
        names: Pseudonyms,
        counted: Mapping[float, Mapping[tallies.Tally, float]] = MappingProxyType({}),
    ) -> None:
        """Write the waiting entries, and add them to the counts of their day."""
        entries: list[Access | Given] = []
        with contextlib.suppress(IndexError):  # another thread may write the last one
            while True:
                entries.append(self._unwritten.popleft())
        by_day = {day: {**amounts} for day, amounts in counted.items()}
        for entry in entries:
            _count(by_day.setdefault(entry.at // tallies.A_DAY, {}), entry)
        for day, amounts in by_day.items():
            tallies.add(connection, amounts, at=day * tallies.A_DAY)
        for kind, some in groupby(entries, type):
            if kind is Given:
                turns.keep(connection, _note_rows(names, cast("Iterable[Given]", some)))
            else:
                rows = _access_rows(names, cast("Iterable[Access]", some))
                connection.executemany(f"{_PUT} VALUES(NULL,?,?,?,?,?,?,?,?,?,?)", rows)
                if connection.last_insert_rowid() > self._most:
                    connection.execute(_DELETE_OLDEST, (self._most,))
        if entries and self._writes_notes_at_once:
            self.write_notes(connection)

    def write_notes(self, connection: apsw.Connection) -> None:
        """Put the records of the latest notes and searches into `access`.

        The rows of `notes` name them, so a turn does not write them twice: this is done once somebody asks.
        """
        connection.execute(f"{_PUT} {_OF_NOTES} ORDER BY notes.seq, json_each.key")
        mark_notes_as_written(connection)
        connection.execute(_DELETE_OLDEST, (self._most,))

    def last(
        self,
        connection: apsw.Connection,
        limit: int,
        *,
        subject: str | None,
        record_id: str | None,
        op: str | None,
    ) -> Sequence[AccessRow]:
        """The last rows, newest last, optionally of one pseudonym, record or operation."""
        wanted = {"record_id": record_id, "op": op, "subject": subject}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in given) or "1"
        source = "access"
        if self._database.read_only:
            source = f"(SELECT {_COLUMNS} FROM access UNION ALL {_OF_NOTES})"
        # The records of notes come into the table later than they were read.
        sql = f"SELECT {_COLUMNS} FROM {source} WHERE {where} ORDER BY ts_us DESC, id DESC LIMIT ?"
        rows = select(connection, "access", sql, *given.values(), max(0, limit))
        return tuple(AccessRow(*row) for row in reversed(rows))

    def reads(self, record_ids: Sequence[str], *, op: str | None) -> dict[str, Reads]:
        """How often and when last each of these was read; see `AuditLog.reads`."""
        if not (self._writes_notes_at_once or self._database.read_only):
            with self._database.writing(durable=False) as connection:
                self.write_notes(connection)
            self._writes_notes_at_once = True  # from now on each commit does so
        with self._database.reading() as connection:
            rows = select(connection, "access", _READS, json.dumps(list(record_ids)), op)
        return {str(id_): Reads(times, None if last is None else last / 1e6) for id_, times, last in rows}


def mark_notes_as_written(connection: apsw.Connection) -> None:
    """Mark that the records of all rows of `notes` are in `access`, or need not be."""
    connection.execute(_MARK)


def _access_rows(names: Pseudonyms, entries: Iterable[Access]) -> Iterator[_Values]:
    # Name the reader once for all records of a reading.
    read: dict[tuple[object, ...], _Values | None] = {}
    for entry in entries:
        if (reading := entry[:_OF_A_READING]) not in read:
            is_erased = names.erased_since(entry.user_id, entry.at)
            read[reading] = None if is_erased else _reading(names, entry)
        if (told := read[reading]) is not None:
            yield told + _of_record(entry)


def _note_rows(names: Pseudonyms, entries: Iterable[Given]) -> list[turns.Values]:
    kept = [each for each in entries if not names.erased_since(each.scope.user_id, each.at)]
    return [
        turns.row_of(
            each,
            *names.of(each.scope.user_id, each.scope.session_id),
            names.run_name(each.scope.run_id),
        )
        for each in kept
    ]


def _count(tallied: dict[tallies.Tally, float], entry: Access | Given) -> None:
    """Add a note, a search or an answer to the counts of a day."""
    if isinstance(entry, Given):
        amounts: Mapping[str, float] = tallies.of_note(
            entry.op, shown=entry.records, tokens=entry.tokens, degraded=entry.degraded
        )
        agent = entry.scope.agent_id if entry.op == tallies.NOTE else None  # a search may be a person's
    elif entry.op == USED:
        amounts, agent = {"answers": 1, "used": entry.score or 0.0}, entry.agent_id
    else:
        return
    tallies.add_up(tallied, agent, amounts)


def _reading(names: Pseudonyms, entry: Access) -> _Values:
    """When a reading happened and who read: the same for all its rows."""
    subject, session = names.of(entry.user_id, entry.session_id)
    run = names.run_name(entry.run_id)
    return int(entry.at * _MICRO), subject, code(entry.op), entry.agent_id, session, run


def _of_record(entry: Access) -> _Values:
    score = None if entry.score is None else round(entry.score * 1000)
    return code(entry.record_id), entry.rank, score, code(entry.reason)
