"""Tombstones: the erased users of a log, by keyed hashes of their names, and the erasures under way."""

import hmac
import json
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any, Final

from supervisor_memory.disk.database import Database, select
from supervisor_memory.errors import WasErased
from supervisor_memory.model.records import Record

TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS tombstones(user TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS erased_verbatim(id TEXT PRIMARY KEY) WITHOUT ROWID",
    # Begun and not done: the files may still hold traces. `id` is that of the event "erase.begin";
    # `removed` says that the records are gone, so that what the user has by now is new.
    """CREATE TABLE IF NOT EXISTS erasures(
        id TEXT PRIMARY KEY, user TEXT NOT NULL, removed INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
)

_REFUSED: Final = """SELECT user, at FROM tombstones WHERE user IN ({})
    UNION ALL SELECT id, NULL FROM erased_verbatim WHERE id IN ({})"""
_FEW: Final = 8
_MARK: Final = "INSERT OR IGNORE INTO erased_verbatim SELECT value FROM json_each(?)"


class Tombstones:
    """The tombstones of a log. Inside an open transaction of the database each call joins it.

    Args:
        secret: The key of the hashes; kept beside them.
    """

    def __init__(self, database: Database, secret: str) -> None:
        self._database, self._secret = database, secret.encode()

    def name(self, user_id: str) -> str:
        """The name under which a user stands on a tombstone and in `not_removed`: a keyed hash, in hex."""
        return hmac.digest(self._secret, b"tombstone\0" + user_id.encode(), "sha256").hex()

    def put(self, user_id: str, verbatim: Sequence[str], *, at: float, erasure: str) -> None:
        """Begin an erasure: records said before `at`, and those with `verbatim` ids, are refused from now on.

        `erasure` is the id of the event "erase.begin".
        """
        name = self.name(user_id)
        put = "INSERT INTO tombstones VALUES(?, ?) ON CONFLICT(user) DO UPDATE SET at = max(at, excluded.at)"
        with self._database.writing() as connection:
            connection.execute(put, (name, at))
            connection.execute(_MARK, (json.dumps(verbatim),))
            connection.execute("INSERT INTO erasures(id, user) VALUES(?, ?)", (erasure, name))

    def put_marks(self, verbatim: Sequence[str], *, erasure: str) -> None:
        """Begin an erasure of some records; `erasure` is the id of the event "erase.records"."""
        with self._database.writing() as connection:
            connection.execute(_MARK, (json.dumps(verbatim),))
            connection.execute("INSERT INTO erasures VALUES(?, '', 1)", (erasure,))

    def erased_at(self, user_id: str) -> float | None:
        """When a user was erased last, in seconds since 1970; None: never."""
        found = self._select("tombstones", "SELECT at FROM tombstones WHERE user = ?", self.name(user_id))
        return float(found[0][0]) if found else None

    def refuse_erased(self, records: Sequence[Record]) -> None:
        """Refuse new records that were said before their user was erased, or are read from erased messages.

        Raises:
            WasErased: there are such records; the error has their `record_ids`.
        """
        if not records:
            return
        names = {user_id: self.name(user_id) for user_id in {each.erased_with for each in records}}
        messages = [message for each in records if (message := message_of(each))]
        (users, of_users), (ids, of_ids) = _listed([*names.values()]), _listed(messages)
        found = self._select("tombstones", _REFUSED.format(users, ids), *of_users, *of_ids)
        times = {name: at for name, at in found if at is not None}
        marked = {message for message, at in found if at is None}
        refused = [
            record
            for record in records
            if record.created_at < times.get(names[record.erased_with], -inf) or message_of(record) in marked
        ]
        if refused:
            raise was_erased(refused, records)

    def unfinished(self) -> Sequence[str]:
        """Ids of the erasures with traces that may still be in the files."""
        return [str(row[0]) for row in self._select("erasures", "SELECT id FROM erasures ORDER BY id")]

    def finish(self, erasures: Iterable[str]) -> Sequence[str]:
        """End erasures; returns the ids of those that were not ended before."""
        ended = "DELETE FROM erasures WHERE id = ? RETURNING id"
        with self._database.writing() as connection:
            return [each for each in erasures if connection.execute(ended, (each,)).fetchall()]

    def not_removed(self) -> Collection[str]:
        """Names of users with an erasure begun, and records still in a store apart from the log."""
        names = self._select("erasures", "SELECT user FROM erasures WHERE NOT removed")
        return {str(row[0]) for row in names}

    def note_removed(self) -> None:
        """Note that the records of all erased users are gone; their records from now on are new."""
        with self._database.writing() as connection:
            connection.execute("UPDATE erasures SET removed = 1")

    def _select(self, table: str, sql: str, *bindings: str) -> Sequence[tuple[Any, ...]]:
        with self._database.reading() as connection:
            return select(connection, table, sql, *bindings)


def _listed(values: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The SQL for a list of values, and its bindings: a long list is one binding, a JSON array."""
    if len(values) <= _FEW:
        return ", ".join("?" * len(values)), values
    return "SELECT value FROM json_each(?)", (json.dumps(values),)


def message_of(record: Record) -> str | None:
    """The id of the message that a record is or was read from; None: it comes from no message."""
    return record.id if record.layer == "history" else record.ref_id


def was_erased(refused: Collection[Record], records: Collection[Record]) -> WasErased:
    """The error for new records of which some were said before their user was erased."""
    return WasErased(
        f"{len(refused)} of {len(records)} new records were said before their user was erased, or in an "
        "erased session, so nothing was written; what is said anew is remembered again",
        record_ids=tuple(record.id for record in refused),
    )
