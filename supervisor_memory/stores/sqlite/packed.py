"""A large namespace's index as one value, so that a new process reads it at once.

A namespace's index is made from the table `entries`, a row a record, which takes half a second for 100,000
records. So what is made of it is kept too, as of some revision, and a reader brings that up to date by the
entries that have changed since. It is written anew once so many have changed, and with it the rounded vectors
of the namespace (`rounded.py`).
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import apsw

from supervisor_memory.signals.index import Entry, Index
from supervisor_memory.stores.sqlite import rounded

PACKED_TABLE: Final = """CREATE TABLE packed(
    namespace TEXT PRIMARY KEY, revision INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL)"""
LEAST: Final = 1_024
"""Changed records after which an index is packed at the earliest; of larger ones an eighth has to change."""
_PART: Final = 8
_LOOKED_AT_EVERY: Final = 256
"""Commits of a namespace, or changes in a commit, between two looks whether to pack it."""
_ENTRY: Final = "e.terms, e.said_at, e.stream, e.speaker, e.asks, e.is_reply"
_ALL: Final = f"SELECT e.key, {_ENTRY} FROM entries e WHERE e.namespace = ? ORDER BY e.key"
_CHANGED: Final = f"""SELECT r.key, v.embedder, v.vector, {_ENTRY} FROM records r
    LEFT JOIN entries e ON e.namespace = r.namespace AND e.key = r.key
    LEFT JOIN vectors v ON v.key = r.key WHERE r.namespace = ? AND r.revision > ? ORDER BY r.key"""
_PACKED: Final = """SELECT p.revision, p.data FROM packed p
    JOIN namespaces n ON n.namespace = p.namespace AND p.revision >= n.rebuilt WHERE p.namespace = ?"""
_KNOWN: Final = _PACKED.replace("p.data", "p.size")
_log = logging.getLogger("supervisor_memory")
Changed: TypeAlias = tuple[int, Entry | None, str | None, bytes | None]
"""The key of a record, its entry or None where it is not active, its embedder and its vector."""


def load(connection: apsw.Connection, namespace: str) -> Index:
    """The index of a namespace as the connection sees it."""
    row: Any = connection.execute(_PACKED, (namespace,)).fetchone()
    index = None if row is None else _unpacked(row[1])
    if index is None:
        index, rows = Index(), connection.execute(_ALL, (namespace,))
        index.load((int(key), _entry(told)) for key, *told in rows)
        return index
    later = [(key, entry) for key, entry, _, _ in changed(connection, namespace, since=row[0])]
    for key, _ in later:
        index.drop(key)
    if index.size != len(index):  # else the rows of those dropped would count as holders of their terms
        index.compact()
    if later:
        index.load((key, entry) for key, entry in later if entry is not None)
    return index


def _unpacked(value: bytes) -> Index | None:
    """Unpack an index; None where the value is damaged: then it is read from the entries, which have all of
    it."""
    try:
        return Index.unpacked(value)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        _log.warning("a packed index is damaged (%s); its entries are read instead", error)
        return None


def changed(connection: apsw.Connection, namespace: str, *, since: int) -> Iterator[Changed]:
    """The records that have changed in a namespace since a revision, in the order of their keys."""
    rows: Iterable[Any] = connection.execute(_CHANGED, (namespace, since))
    for key, embedder, vector, *told in rows:
        yield int(key), None if told[0] is None else _entry(told), embedder, vector


def _entry(told: Sequence[Any]) -> Entry:
    terms, said_at, stream, speaker, asks, is_reply = told
    return Entry(terms.split(), said_at, stream, speaker, bool(asks), bool(is_reply))


def is_time(connection: apsw.Connection, namespace: str, revision: int, *, changes: int) -> bool:
    """Whether to pack a namespace after a commit that made `revision` of it, with so many changes."""
    if changes < _LOOKED_AT_EVERY and revision % _LOOKED_AT_EVERY:
        return False
    row: Any = connection.execute(_KNOWN, (namespace,)).fetchone()
    since, size = row or (0, 0)
    enough = max(LEAST, size // _PART)
    changed = "SELECT count(*) FROM (SELECT 1 FROM records WHERE namespace = ? AND revision > ? LIMIT ?)"
    return int(connection.execute(changed, (namespace, since, enough)).get) >= enough


def pack(connection: apsw.Connection, namespace: str) -> None:
    """Pack the present index of a namespace and its rounded vectors, inside a transaction."""
    index = load(connection, namespace)
    rounded.pack(connection, namespace, since=packed_at(connection, namespace), least=LEAST)
    connection.execute(
        "INSERT OR REPLACE INTO packed SELECT namespace, revision, ?, ? FROM namespaces WHERE namespace = ?",
        (len(index), index.packed(), namespace),
    )


def packed_at(connection: apsw.Connection, namespace: str) -> int | None:
    """The revision at which a namespace was packed; None: there is nothing valid."""
    row: Any = connection.execute(_KNOWN, (namespace,)).fetchone()
    return None if row is None else int(row[0])


def unpack(connection: apsw.Connection, namespaces: str, bindings: tuple[str, ...]) -> list[str]:
    """Drop packed indexes, inside a transaction: they may hold words of erased records.

    Args:
        namespaces: An SQL expression behind IN, with its bindings.

    Returns:
        The namespaces that had been packed.
    """
    rounded.unpack(connection, namespaces, bindings)
    gone = f"DELETE FROM packed WHERE namespace IN {namespaces} RETURNING namespace"
    return [str(name) for (name,) in connection.execute(gone, bindings).fetchall()]
