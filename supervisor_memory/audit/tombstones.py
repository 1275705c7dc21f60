"""Tombstones: who was erased and when, so that words said before do not come back.

A tombstone names nobody. It holds a keyed hash of the user id, by which only a known user id can be looked
up, and the time. Beside it lie the ids of verbatim records: these are made from the words and their place,
so a turn that runs again would bring the records back. Other repeats are known by their audit events.
"""

import hmac
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import apsw

from supervisor_memory.model.records import Record

__all__ = ["TABLES", "Tombstones"]

TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS tombstones(user TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS erased_verbatim(id TEXT PRIMARY KEY) WITHOUT ROWID",
    # Begun and not done: the files may still hold traces. `id` is that of the event "erase.begin";
    # `removed` says that the records are gone, so that what the user has by now is new.
    """CREATE TABLE IF NOT EXISTS erasures(
        id TEXT PRIMARY KEY, user TEXT NOT NULL, removed INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
)


class Tombstones:
    """The tombstones of a log, on connections inside a transaction.

    Args:
        secret: The key of the hashes; kept beside them.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def name(self, user_id: str) -> str:
        """The name of a user on a tombstone: a keyed hash, in hex."""
        return hmac.digest(self._secret, b"tombstone\0" + user_id.encode(), "sha256").hex()

    def put(
        self, connection: apsw.Connection, user_id: str, verbatim: Sequence[str], *, at: float, erasure: str
    ) -> None:
        """Begin an erasure: records said before `at` are refused from now on.

        Args:
            verbatim: The ids of the user's verbatim records.
            at: In seconds since 1970.
            erasure: The id of the event "erase.begin".
        """
        name = self.name(user_id)
        connection.execute(
            "INSERT INTO tombstones VALUES(?, ?) ON CONFLICT(user) DO UPDATE SET at = max(at, excluded.at)",
            (name, at),
        )
        connection.execute(
            "INSERT OR IGNORE INTO erased_verbatim SELECT value FROM json_each(?)", (json.dumps(verbatim),)
        )
        connection.execute("INSERT INTO erasures(id, user) VALUES(?, ?)", (erasure, name))

    def erased_at(self, connection: apsw.Connection, user_id: str) -> float | None:
        """When a user was erased last, in seconds since 1970; None: never."""
        row = connection.execute("SELECT at FROM tombstones WHERE user = ?", (self.name(user_id),)).fetchone()
        return None if row is None else float(row[0])

    def refused(self, connection: apsw.Connection, records: Iterable[Record]) -> Sequence[Record]:
        """The new records that were said before their user was erased."""
        times: dict[str, float | None] = {}
        found = []
        for record in records:
            if record.user_id not in times:
                times[record.user_id] = self.erased_at(connection, record.user_id)
            at = times[record.user_id]
            if at is not None and (record.created_at < at or self._is_said_again(connection, record)):
                found.append(record)
        return found

    def unfinished(self, connection: apsw.Connection) -> Sequence[str]:
        """Ids of the erasures that were begun and not done."""
        rows: Iterable[Any] = connection.execute("SELECT id FROM erasures ORDER BY id")
        return [str(row[0]) for row in rows]

    def finish(self, connection: apsw.Connection, erasures: Iterable[str]) -> Sequence[str]:
        """End erasures; returns the ids of those that were not ended before."""
        ended = "DELETE FROM erasures WHERE id = ? RETURNING id"
        return [each for each in erasures if connection.execute(ended, (each,)).fetchall()]

    def not_removed(self, connection: apsw.Connection) -> Collection[str]:
        """Names of users with an erasure begun, and records still in a store apart from the log."""
        rows: Iterable[Any] = connection.execute("SELECT user FROM erasures WHERE NOT removed")
        return {str(row[0]) for row in rows}

    def note_removed(self, connection: apsw.Connection) -> None:
        """Note that the records of all erased users are gone; their records from now on are new."""
        connection.execute("UPDATE erasures SET removed = 1")

    def _is_said_again(self, connection: apsw.Connection, record: Record) -> bool:
        if record.layer != "history":
            return False
        found = connection.execute("SELECT 1 FROM erased_verbatim WHERE id = ?", (record.id,))
        return found.fetchone() is not None
