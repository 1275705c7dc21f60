"""Who was erased, and when: what was said before then does not come back.

A tombstone names nobody. It holds a keyed hash of the user id, which only answers whether a user that one
can name was erased, the time, and the ids of verbatim records: those are made from what was said where, so
a turn that runs again would bring them back. All else that runs again is known by its audit events.
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
        secret: What keys the hashes; kept beside them.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def name(self, user_id: str) -> str:
        """What stands for a user on a tombstone."""
        return hmac.digest(self._secret, b"tombstone\0" + user_id.encode(), "sha256").hex()

    def put(
        self, connection: apsw.Connection, user_id: str, verbatim: Sequence[str], *, at: float, erasure: str
    ) -> None:
        """Begin an erasure: what was said before `at` is refused from now on.

        Args:
            verbatim: The ids of the user's verbatim records.
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
        """When a user was erased last; None: never."""
        row = connection.execute("SELECT at FROM tombstones WHERE user = ?", (self.name(user_id),)).fetchone()
        return None if row is None else float(row[0])

    def refused(self, connection: apsw.Connection, records: Iterable[Record]) -> Sequence[Record]:
        """Of these new records, those that were said before their user was erased."""
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
        """The erasures that were begun and not done."""
        rows: Iterable[Any] = connection.execute("SELECT id FROM erasures ORDER BY id")
        return [str(row[0]) for row in rows]

    def finish(self, connection: apsw.Connection, erasures: Iterable[str]) -> Sequence[str]:
        """End these erasures; those that nobody has ended before."""
        ended = "DELETE FROM erasures WHERE id = ? RETURNING id"
        return [each for each in erasures if connection.execute(ended, (each,)).fetchall()]

    def not_removed(self, connection: apsw.Connection) -> Collection[str]:
        """The names of those whose records are still there, where these are not in this database."""
        rows: Iterable[Any] = connection.execute("SELECT user FROM erasures WHERE NOT removed")
        return {str(row[0]) for row in rows}

    def note_removed(self, connection: apsw.Connection) -> None:
        """From now on the records of the erased are new ones."""
        connection.execute("UPDATE erasures SET removed = 1")

    def _is_said_again(self, connection: apsw.Connection, record: Record) -> bool:
        if record.layer != "history":
            return False
        found = connection.execute("SELECT 1 FROM erased_verbatim WHERE id = ?", (record.id,))
        return found.fetchone() is not None
