"""The journal's table: decided commits, from before they are applied until they are.

It lies in the file of the audit log, so that a commit leaves the journal and its audit events enter the log
in one transaction. A row holds the texts of its records, and goes when they are applied.

    begun → (applied: gone)          not acknowledged yet
    begun → waiting → (applied: gone)    acknowledged; the store was out of reach
    waiting → dead                   the store refuses it again and again; a person looks at it
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from supervisor_memory.disk.database import Database, select
from supervisor_memory.model.records import AuditEvent, Record
from supervisor_memory.stores.changes import as_text, from_text
from supervisor_memory.stores.protocol import Change, Commit

State: TypeAlias = Literal["begun", "waiting", "dead"]
Stamp: TypeAlias = tuple[int, int]
"""How many entries ever came to wait, and how many no longer do: changes when other entries wait."""
_TABLES: Final = (
    # AUTOINCREMENT: the number of an entry that went is never another's.
    """CREATE TABLE IF NOT EXISTS journal(
        seq INTEGER PRIMARY KEY AUTOINCREMENT, commit_id TEXT NOT NULL, state TEXT NOT NULL, at REAL NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', together TEXT,
        body TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS journal_by_state ON journal(state, seq)",
    # Records that waited and then were merged into others: what was said of them means those.
    "CREATE TABLE IF NOT EXISTS journal_merged(id TEXT PRIMARY KEY, became TEXT NOT NULL) WITHOUT ROWID",
    # Users erased here whose records the store still holds. The name goes when they are gone.
    "CREATE TABLE IF NOT EXISTS journal_erasures(user_id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    # How many entries ever came to wait, and how many of these no longer do: to see changes without counting.
    "CREATE TABLE IF NOT EXISTS journal_moves(came INTEGER NOT NULL, went INTEGER NOT NULL)",
    """CREATE TRIGGER IF NOT EXISTS journal_waits AFTER INSERT ON journal WHEN new.state = 'waiting'
        BEGIN UPDATE journal_moves SET came = came + 1; END""",
    """CREATE TRIGGER IF NOT EXISTS journal_goes AFTER DELETE ON journal WHEN old.state = 'waiting'
        BEGIN UPDATE journal_moves SET went = went + 1; END""",
    """CREATE TRIGGER IF NOT EXISTS journal_moves_on AFTER UPDATE OF state ON journal
        WHEN (old.state = 'waiting') <> (new.state = 'waiting')
        BEGIN UPDATE journal_moves
            SET came = came + (new.state = 'waiting'), went = went + (old.state = 'waiting'); END""",
    """INSERT INTO journal_moves SELECT (SELECT count(*) FROM journal WHERE state = 'waiting'), 0
        WHERE NOT EXISTS (SELECT 1 FROM journal_moves)""",
)
_PAGE: Final = 500
_COLUMNS: Final = "seq, commit_id, state, at, attempts, reason, together, body"


@dataclass(frozen=True, slots=True)
class Entry:
    """A commit in the journal.

    Attributes:
        at: When the commit was begun, in seconds since 1970.
        attempts: How many attempts have failed by a fault of this entry.
        reason: The code of the last failure, or why the commit waits.
        together: The id of a larger commit that this entry is applied in; None: it is applied alone.
        is_legible: False where another release wrote the entry, or it is damaged; its commit is then empty.
    """

    seq: int
    commit: Commit
    state: State
    at: float
    attempts: int = 0
    reason: str = ""
    together: str | None = None
    is_legible: bool = True


class Entries:
    """The rows of a journal. Inside an open transaction of the database each call joins it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.make(_TABLES, unless="journal_moves")

    def begin(self, commit: Commit, *, at: float) -> int:
        """Store a commit before it is applied; returns its number."""
        insert = "INSERT INTO journal(commit_id, state, at, body) VALUES(?, 'begun', ?, ?) RETURNING seq"
        return int(self._write(insert, commit.id, at, _encoded(commit))[0][0])

    def remove(self, seq: int) -> bool:
        """Remove an entry. False when it was gone already."""
        return bool(self._write("DELETE FROM journal WHERE seq = ? RETURNING seq", seq))

    def mark(self, seq: int, state: State, *, reason: str = "") -> bool:
        """Change the state of an entry. `reason` is a code. False when the entry is gone."""
        change = "UPDATE journal SET state = ?, reason = ? WHERE seq = ? RETURNING seq"
        return bool(self._write(change, state, reason, seq))

    def note_attempt(self, seq: int, reason: str) -> int:
        """Count a failure of the entry itself; returns how many there are by now."""
        note = "UPDATE journal SET attempts = attempts + 1, reason = ? WHERE seq = ? RETURNING attempts"
        rows = self._write(note, reason, seq)
        return int(rows[0][0]) if rows else 0

    def join(self, numbers: Sequence[int], commit_id: str | None) -> None:
        """Let entries be applied together, as a commit with this id; None: each alone again."""
        change = "UPDATE journal SET together = ? WHERE seq IN (SELECT value FROM json_each(?))"
        self._write(change, commit_id, json.dumps(numbers))

    def retry_dead(self) -> int:
        """Let the dead entries wait again; returns how many."""
        again = """UPDATE journal SET state = 'waiting', attempts = 0, together = NULL
            WHERE state = 'dead' RETURNING seq"""
        return len(self._write(again))

    def some_wait(self) -> bool:
        """Whether an entry waits."""
        came, went = self.waiting()[0]
        return came > went

    def waiting(self, *, after: int | None = None) -> tuple[Stamp, Sequence[int]]:
        """The present stamp, and the numbers behind `after` of the entries that wait; None: no numbers."""
        numbers = "SELECT seq FROM journal WHERE state = 'waiting' AND seq > ? ORDER BY seq"
        with self._database.reading() as connection:
            moves = select(connection, "journal_moves", "SELECT came, went FROM journal_moves")
            rows = () if after is None else select(connection, "journal", numbers, after)
        came, went = moves[0] if moves else (0, 0)
        return (int(came), int(went)), [int(row[0]) for row in rows]

    def read(self, numbers: Sequence[int]) -> Iterator[Entry]:
        """The entries with these numbers, in order; entries that went meanwhile are left out."""
        for start in range(0, len(numbers), _PAGE):
            wanted = json.dumps(numbers[start : start + _PAGE])
            yield from self._select("seq IN (SELECT value FROM json_each(?)) ORDER BY seq", wanted)

    def first(self, state: State, *, limit: int = 1) -> Sequence[Entry]:
        """The first entries in a state, in order."""
        return self._select("state = ? ORDER BY seq LIMIT ?", state, limit)

    def _select(self, condition: str, *bindings: str | int) -> Sequence[Entry]:
        sql = f"SELECT {_COLUMNS} FROM journal WHERE {condition}"
        with self._database.reading() as connection:
            return [_entry(row) for row in select(connection, "journal", sql, *bindings)]

    def counts(self) -> Mapping[str, int]:
        """How many entries there are, by state."""
        with self._database.reading() as connection:
            rows = select(connection, "journal", "SELECT state, count(*) FROM journal GROUP BY state")
        return {str(state): int(count) for state, count in rows}

    def forget(self, user_id: str) -> int:
        """Remove a user's changes and events from all entries; returns how many changes went."""
        gone = 0
        with self._database.writing() as connection:
            rows: Any = connection.execute(f"SELECT {_COLUMNS} FROM journal").fetchall()
            for row in rows:
                entry = _entry(row)
                if not entry.is_legible and user_id in str(row[-1]):
                    connection.execute("DELETE FROM journal WHERE seq = ?", (entry.seq,))
                    continue
                kept = tuple(c for c in entry.commit.changes if c.record.user_id != user_id)
                events = tuple(event for event in entry.commit.audit if event.user_id != user_id)
                if len(kept) == len(entry.commit.changes) and len(events) == len(entry.commit.audit):
                    continue
                gone += len(entry.commit.changes) - len(kept)
                body = _encoded(replace(entry.commit, changes=kept, audit=events))
                connection.execute("DELETE FROM journal WHERE seq = ?", (entry.seq,))
                if kept:
                    put = f"INSERT INTO journal({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?)"
                    connection.execute(put, (*row[:-1], body))
        return gone

    def note_merged(self, merged: Mapping[str, str]) -> None:
        """Remember which records were merged into others when they were decided again."""
        if merged:
            with self._database.writing() as connection:
                connection.executemany("INSERT OR REPLACE INTO journal_merged VALUES(?, ?)", merged.items())

    def became(self, record_id: str) -> str:
        """The id of the record that this record was merged into; its own id when there was no merge."""
        became = "SELECT became FROM journal_merged WHERE id = ?"
        with self._database.reading() as connection:
            rows = select(connection, "journal_merged", became, record_id)
        return str(rows[0][0]) if rows else record_id

    def forget_merged(self) -> None:
        """Forget all merges, once no entry is left that could name the merged records."""
        self._write("DELETE FROM journal_merged")

    def begin_erasure(self, user_id: str, *, at: float) -> None:
        """Note that the store has still to erase a user."""
        put = "INSERT INTO journal_erasures VALUES(?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"
        self._write(put, user_id, at)

    def erasures(self) -> Mapping[str, float]:
        """The users that the store has still to erase, each with the time of the erasure."""
        with self._database.reading() as connection:
            rows = select(connection, "journal_erasures", "SELECT user_id, at FROM journal_erasures")
        return {str(user_id): float(at) for user_id, at in rows}

    def end_erasure(self, user_id: str) -> None:
        """Note that the store has erased a user."""
        self._write("DELETE FROM journal_erasures WHERE user_id = ?", user_id)

    def _write(self, sql: str, *bindings: Any) -> Sequence[tuple[Any, ...]]:
        with self._database.writing() as connection:
            return connection.execute(sql, bindings).fetchall()


def _entry(row: Sequence[Any]) -> Entry:
    seq, commit_id, state, at, attempts, reason, together, body = row
    try:
        return Entry(seq, _decoded(commit_id, body), state, at, attempts, reason, together)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Entry(seq, Commit(id=commit_id), state, at, attempts, reason, is_legible=False)


def _encoded(commit: Commit) -> str:
    body = {
        "changes": [_change_to_dict(change) for change in commit.changes],
        "audit": [{**asdict(event), "detail": dict(event.detail)} for event in commit.audit],
    }
    # What the log would write as its text: an operator may put anything into the detail of an event.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)


def _decoded(commit_id: str, body: str) -> Commit:
    values = json.loads(body)
    return Commit(
        tuple(_change_from_dict(each) for each in values["changes"]),
        tuple(AuditEvent(**each) for each in values["audit"]),
        commit_id,
    )


def _change_to_dict(change: Change) -> dict[str, object]:
    vector = None if change.record.vector is None else as_text(change.record.vector)
    source = {"changes_source": True} if change.changes_source else {}
    return {"expects": change.expects, "vector": vector, "record": change.record.to_dict(), **source}


def _change_from_dict(values: Mapping[str, Any]) -> Change:
    record = Record.from_dict(values["record"])
    if values["vector"] is not None:
        record = replace(record, vector=from_text(values["vector"]))
    return Change(record, values["expects"], changes_source=bool(values.get("changes_source")))
