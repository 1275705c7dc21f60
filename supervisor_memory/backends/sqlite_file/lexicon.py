"""The lexical index in SQLite: FTS5 tables that hold only the terms of active records.

There are 64 of them, a user always in the same one, so that whoever erases a user can drop one table
and index it anew (deleting alone leaves traces of the words in the file). They are contentless, fed with
the terms of `supervisor_memory.terms`, and hold neither positions nor counts: they answer which records
of a namespace hold which terms. Scores are ours (`supervisor_memory.signals`), with statistics of the
searched namespaces alone; FTS5's own would count the other users of a table.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import apsw

from supervisor_memory.database import has_table

__all__ = ["forget", "postings", "put", "start_anew", "table_of"]

TABLES: Final = 64
_TERM: Final = re.compile(r"[a-z0-9_\u0080-\ud7ff\ue000-\U0010ffff]+\Z")


def table_of(user_id: str) -> str:
    """The table that holds the terms of a user's records."""
    return f"fts_{int.from_bytes(hashlib.sha256(user_id.encode()).digest()[:4]) % TABLES:02d}"


def put(connection: apsw.Connection, user_id: str, key: int, *, namespace: str, terms: Iterable[str]) -> None:
    """Index a record that is not in the index."""
    table = table_of(user_id)
    prefix = _prefix(namespace)
    row = (key, " ".join(prefix + term for term in dict.fromkeys(terms) if _TERM.match(term)))
    insert = f"INSERT INTO {table}(rowid, body) VALUES(?, ?)"
    try:
        connection.execute(insert, row)
    except apsw.SQLError:
        if has_table(connection, table):
            raise
        _create(connection, table)
        connection.execute(insert, row)


def start_anew(connection: apsw.Connection, user_id: str) -> None:
    """Drop all that the user's table holds, of others too: whoever calls this has to `put` it again."""
    table = table_of(user_id)
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    _create(connection, table)


def _create(connection: apsw.Connection, table: str) -> None:
    # The ASCII tokenizer takes every other letter as it comes; the terms are folded already.
    connection.execute(
        f"CREATE VIRTUAL TABLE {table} USING fts5(body, content='', contentless_delete=1, detail=none, "
        "tokenize=\"ascii tokenchars '_'\")"
    )


def forget(connection: apsw.Connection, user_id: str, key: int) -> None:
    """Take a record out of the index."""
    connection.execute(f"DELETE FROM {table_of(user_id)} WHERE rowid = ?", (key,))


def postings(
    connection: apsw.Connection, user_id: str, *, namespace: str
) -> tuple[Sequence[str], Sequence[int], Sequence[int]]:
    """The terms of a namespace, how many records hold each, and the keys of these, one term after the other.

    The table must exist.
    """
    table = table_of(user_id)
    words = f"words_of_{table}"
    if not has_table(connection, words, schema="temp"):
        reads_only = connection.pragma("query_only")
        connection.pragma("query_only", 0)  # it also keeps a connection from making tables of its own
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.{words} USING fts5vocab(main, {table}, 'instance')"
            )
        finally:
            connection.pragma("query_only", reads_only)
    prefix = _prefix(namespace)
    bounds = prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)
    held = f"FROM temp.{words} WHERE term >= ? AND term < ?"
    # One value instead of a row for each takes a fraction of the time.
    terms, counts = connection.execute(
        "SELECT json_group_array(term), json_group_array(holders) FROM "
        f"(SELECT substr(term, {len(prefix) + 1}) AS term, count(*) AS holders {held} GROUP BY term)",
        bounds,
    ).fetchall()[0]
    [(keys,)] = connection.execute(
        f"SELECT json_group_array(doc) FROM (SELECT doc {held} ORDER BY term)", bounds
    )
    return json.loads(str(terms)), json.loads(str(counts)), json.loads(str(keys))


@lru_cache(maxsize=4_096)
def _prefix(namespace: str) -> str:
    """Each term stands behind a hash of its namespace, so that a look-up finds it nowhere else."""
    return hashlib.sha256(namespace.encode()).hexdigest()[:16]
