"""What a search reads of the active records, in SQLite: their terms, and their places in a conversation.

Those of a namespace lie side by side, so that it is loaded from few pages. Who looks for terms, and what a
find counts, is `supervisor_memory.signals`; SQLite only keeps them.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import apsw

from supervisor_memory.signals.index import Entry

__all__ = ["TABLE", "forget", "load", "put"]

TABLE: Final = """CREATE TABLE entries(
    namespace TEXT NOT NULL, key INTEGER NOT NULL, said_at REAL NOT NULL, stream TEXT, speaker TEXT,
    asks INTEGER NOT NULL, terms TEXT NOT NULL, PRIMARY KEY(namespace, key)) WITHOUT ROWID"""


def put(connection: apsw.Connection, key: int, entry: Entry, *, namespace: str) -> None:
    """Keep the entry of a record that has none."""
    connection.execute(
        "INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?)",
        (namespace, key, entry.said_at, entry.stream, entry.speaker, entry.asks, " ".join(entry.terms)),
    )


def forget(connection: apsw.Connection, key: int, *, namespace: str) -> None:
    """Let go of the entry of a record."""
    connection.execute("DELETE FROM entries WHERE namespace = ? AND key = ?", (namespace, key))


def load(connection: apsw.Connection, namespace: str) -> Iterator[tuple[int, Entry]]:
    """The keys of a namespace's active records in rising order, and the entry of each."""
    rows: Iterable[Any] = connection.execute(
        "SELECT key, terms, said_at, stream, speaker, asks FROM entries WHERE namespace = ? ORDER BY key",
        (namespace,),
    )
    for key, terms, said_at, stream, speaker, asks in rows:
        yield key, Entry(terms.split(), said_at, stream, speaker, bool(asks))
