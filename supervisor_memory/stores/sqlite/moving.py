"""Reads whole records from a SQLite store, and puts them into one, inside a transaction."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from supervisor_memory.model.records import Record
from supervisor_memory.stores.changes import from_bytes
from supervisor_memory.stores.protocol import Stored
from supervisor_memory.stores.sqlite.tables import Writing, record_of


def stored_page(
    connection: apsw.Connection, *, after: str | None, limit: int, user_id: str | None
) -> Sequence[Stored]:
    """The next records in order of their ids, with all that belongs to them; see `Moves`."""
    of_user = "" if user_id is None else f"AND {_by_user(connection, user_id, limit)} = ?"
    rows: Sequence[Any] = connection.execute(
        "SELECT r.id, r.data, v.vector FROM records r LEFT JOIN vectors v ON v.key = r.key "
        f"WHERE r.id > ? {of_user} ORDER BY r.id LIMIT ?",
        ("" if after is None else after, *(() if user_id is None else (user_id,)), max(0, limit)),
    ).fetchall()
    earlier: dict[str, list[Record]] = {}
    versions: Iterable[Any] = connection.execute(
        "SELECT record_id, data FROM versions WHERE record_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY record_id, version",
        (json.dumps([row[0] for row in rows], ensure_ascii=False),),
    )
    for record_id, data in versions:
        earlier.setdefault(record_id, []).append(record_of(data))
    return [
        Stored(record_of(data), tuple(earlier.get(id_, ())), None if vector is None else from_bytes(vector))
        for id_, data, vector in rows
    ]


def _by_user(connection: apsw.Connection, user_id: str, limit: int) -> str:
    """The column of the user, with a plus where SQLite should walk the ids of all users.

    By the user's index each page sorts all of the user's records anew; by the ids all pages together read
    each record of the store once.
    """
    [(own, everybody)] = connection.execute(
        """SELECT total(records) FILTER (WHERE n.user_id = ?), total(records)
        FROM counts JOIN namespaces AS n USING(namespace)""",
        (user_id,),
    )
    return "+r.user_id" if own * own > limit * everybody else "r.user_id"


@dataclass(frozen=True, slots=True)
class TableShelf:
    """The tables of a store as a shelf; see `arrival.Shelf`."""

    connection: apsw.Connection
    writing: Writing

    def current(self, record_id: str) -> Record | None:
        return self._read_record("SELECT data FROM records WHERE id = ?", record_id)

    def earlier(self, record_id: str, version: int) -> Record | None:
        return self._read_record(
            "SELECT data FROM versions WHERE record_id = ? AND version = ?", record_id, version
        )

    def put(self, stored: Stored, current: Record | None) -> None:
        self.writing.put_stored(stored, current)

    def _read_record(self, sql: str, *bindings: str | int) -> Record | None:
        row = self.connection.execute(sql, bindings).fetchone()
        return None if row is None else record_of(str(row[0]))
