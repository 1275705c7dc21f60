"""A copy of a remote store's records on this machine, read while the store is out of reach.

It lies in the file of the journal, so that a commit leaves the journal and enters the copy in one
transaction. Changes that other instances make arrive by `reconcile`.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import apsw

from supervisor_memory.disk.database import Database
from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.changes import as_bytes, from_bytes, latest_first
from supervisor_memory.stores.memory.state import State, StoredVector

_USERS_IN_MEMORY: Final = 8
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS copies(
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL,
        embedder TEXT, vector BLOB)""",
    "CREATE INDEX IF NOT EXISTS copies_by_user ON copies(user_id)",
    # Another number after every change of a user's records: states in memory are as old as theirs.
    """CREATE TABLE IF NOT EXISTS copied_users(
        user_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID""",
)
_PUT: Final = """INSERT INTO copies VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET
    user_id = excluded.user_id, version = excluded.version, data = excluded.data,
    vector = iif(excluded.vector IS NULL AND excluded.embedder IS embedder, vector, excluded.vector),
    embedder = excluded.embedder
    WHERE excluded.version >= version"""
_CHANGED: Final = """INSERT INTO copied_users VALUES(?, 1)
    ON CONFLICT DO UPDATE SET revision = revision + 1"""


class LocalCopy:
    """The copy in a database. Writes join the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.RLock()
        self._states: OrderedDict[str, tuple[int, State]] = OrderedDict()
        database.make(_TABLES, unless="copied_users")

    def put(self, records: Iterable[tuple[Record, Any]]) -> None:
        """Take up records and their vectors; without one, a record keeps a vector here of its embedder."""
        with self._database.writing() as connection:
            for record, vector in records:
                numbers = None if vector is None else as_bytes(vector)
                known = (record.id, record.user_id, record.version, record.to_json(), record.embedder)
                connection.execute(_PUT, (*known, numbers))
                connection.execute(_CHANGED, (record.user_id,))

    def remove(self, ids: Iterable[str]) -> None:
        """Forget records that the store has lost or erased."""
        gone = "DELETE FROM copies WHERE id = ? RETURNING user_id"
        with self._database.writing() as connection:
            for record_id in ids:
                users: Any = connection.execute(gone, (record_id,)).fetchall()
                connection.executemany(_CHANGED, users)

    def erase(self, user_id: str) -> None:
        """Forget a user."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM copies WHERE user_id = ?", (user_id,))
            connection.execute("DELETE FROM copied_users WHERE user_id = ?", (user_id,))
        with self._lock:
            self._states.clear()

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by all signals together; see `MemoryBackend.search`."""
        assert query.where.user_id is not None
        with self._lock:
            return self._of_user(query.where.user_id).search(query, limit)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return latest_first(self._matching(where), limit=limit, offset=offset)

    def count(self, where: Filter) -> int:
        return sum(1 for _ in self._matching(where))

    def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """The records with these ids, in no order; unknown ids are left out."""
        return [record for record, _ in self.whole(ids)]

    def versions(self) -> Mapping[str, int]:
        """The version of every record, by its id."""
        with self._database.reading() as connection:
            rows: Iterable[Any] = connection.execute("SELECT id, version FROM copies")
            return {str(row[0]): int(row[1]) for row in rows}

    def whole(self, ids: Sequence[str]) -> Sequence[tuple[Record, StoredVector | None]]:
        """Records with their vectors."""
        return [*self._rows("id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))]

    def _matching(self, where: Filter) -> Iterator[Record]:
        with self._lock:
            if where.user_id is not None:
                yield from self._of_user(where.user_id).find(where)
            else:
                yield from (record for record, _ in self._rows("TRUE") if where.matches(record))

    def _of_user(self, user_id: str) -> State:
        """The records of a user, as they are in the copy now."""
        with self._database.reading() as connection:
            of_user = "SELECT revision FROM copied_users WHERE user_id = ?"
            row: Any = connection.execute(of_user, (user_id,)).fetchone()
        revision = 0 if row is None else int(row[0])
        known = self._states.pop(user_id, None)
        if known is None or known[0] != revision:
            state = State()
            for record, vector in self._rows("user_id = ?", user_id):
                state.put(record, vector)
            known = revision, state
        self._states[user_id] = known
        while len(self._states) > _USERS_IN_MEMORY:
            self._states.popitem(last=False)
        return known[1]

    def _rows(self, condition: str, *bindings: str) -> Iterator[tuple[Record, StoredVector | None]]:
        select = f"SELECT data, embedder, vector FROM copies WHERE {condition}"
        with self._database.reading() as connection:
            rows: apsw.Cursor = connection.execute(select, bindings)
            for data, embedder, vector in rows:
                stored = None if vector is None else (str(embedder), from_bytes(bytes(vector)))
                yield Record.from_dict(json.loads(str(data))), stored
