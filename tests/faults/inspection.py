"""Everything a SQLite store says twice, compared: rows and indexes, versions and audit, the chain."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from supervisor_memory.audit.rows import GENESIS, row_hash
from supervisor_memory.disk.database import Database, has
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Record
from supervisor_memory.stores.sqlite.tables import SCHEMA, STEPS, namespace_text, record_of

Rows = Iterable[tuple[Any, ...]]


@dataclass
class Found:
    """What is wrong with a store, as sentences; empty lists are what is promised."""

    damage: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)
    """The version of each record."""

    def lost(self, acknowledged: Iterable[tuple[str, int]]) -> list[str]:
        return [f"{id} {version}" for id, version in acknowledged if self.stored.get(id, 0) < version]

    @property
    def is_fine(self) -> bool:
        return not (self.damage or self.gaps or self.mismatches)


def inspected(directory: Path) -> Found:
    """Look at all of `memory.db` in a directory. A file that holds nothing yet is fine."""
    found = Found()
    # With its schema: a file whose maker was killed is empty, and becomes a store here.
    file = Database(directory / "memory.db", schema=SCHEMA, steps=STEPS)
    with closing(file) as database, database.reading() as connection:
        if (said := connection.pragma("integrity_check")) != "ok":
            found.damage.append(str(said))
        if not has(connection, "audit"):
            return found
        records = {
            key: record_of(str(data)) for key, data in connection.execute("SELECT key, data FROM records")
        }
        found.stored = {record.id: record.version for record in records.values()}
        found.gaps += _gaps(connection)
        found.mismatches += _columns(connection, records)
        found.mismatches += _versions(connection, records)
        found.mismatches += _vectors(connection, records)
        found.mismatches += _entries(connection, records)
        found.mismatches += _namespaces(connection, records)
    return found


def _gaps(connection: apsw.Connection) -> Iterator[str]:
    log_id = str(connection.execute("SELECT value FROM audit_meta WHERE name = 'log_id'").get)
    before, last = GENESIS, 0
    for seq, payload, prev_hash, digest in connection.execute(
        "SELECT seq, payload, prev_hash, hash FROM audit ORDER BY seq"
    ):
        if (seq, prev_hash) != (last + 1, before) or row_hash(log_id, prev_hash, payload) != digest:
            yield f"audit row {seq} after {last}"
        before, last = digest, seq


def _columns(connection: apsw.Connection, records: dict[int, Record]) -> Iterator[str]:
    rows: Rows = connection.execute(
        "SELECT key, id, namespace, user_id, status, content_hash, updated_at, version FROM records"
    )
    for key, *values in rows:
        r = records[key]
        said = [
            r.id,
            namespace_text(r.namespace),
            r.user_id,
            r.status,
            r.content_hash,
            r.updated_at,
            r.version,
        ]
        if values != said:
            yield f"columns of {r.id}"


def _versions(connection: apsw.Connection, records: dict[int, Record]) -> Iterator[str]:
    """Each version is kept once, and was said in the audit log once."""
    expected = Counter((r.id, version) for r in records.values() for version in range(1, r.version + 1))
    rows: Rows = connection.execute("SELECT record_id, version FROM versions")
    kept = Counter((str(id), int(version)) for id, version in rows)
    kept.update((record.id, record.version) for record in records.values())
    said: Counter[tuple[str, int]] = Counter(
        (str(id), int(version))
        for id, version in connection.execute(
            "SELECT record_id, json_extract(payload, '$.version_after') FROM audit WHERE outcome = 'ok'"
        )
        if id is not None and version is not None
    )
    if kept != expected:
        yield f"versions: {(kept - expected) + (expected - kept)}"
    if said != expected:
        yield f"audited: {(said - expected) + (expected - said)}"


def _vectors(connection: apsw.Connection, records: dict[int, Record]) -> Iterator[str]:
    rows: Rows = connection.execute("SELECT key, embedder, dim, length(vector) FROM vectors")
    stored = {key: embedder for key, embedder, dim, length in rows if length == 4 * dim}
    expected = {key: record.embedder for key, record in records.items() if record.embedder is not None}
    if stored != expected:
        yield f"vectors: {stored.items() ^ expected.items()}"


def _entries(connection: apsw.Connection, records: dict[int, Record]) -> Iterator[str]:
    expected = {
        (namespace_text(record.namespace), key): set(terms(record.searched_text))
        for key, record in records.items()
        if record.status == "active"
    }
    rows: Rows = connection.execute("SELECT namespace, key, terms FROM entries")
    stored = {(namespace, key): set(held.split()) for namespace, key, held in rows}
    for place in stored.keys() | expected.keys():
        if stored.get(place) != expected.get(place):
            yield f"entry of {place}: {stored.get(place)} instead of {expected.get(place)}"


def _namespaces(connection: apsw.Connection, records: dict[int, Record]) -> Iterator[str]:
    rows: Rows = connection.execute("SELECT namespace FROM namespaces")
    if missing := {namespace_text(record.namespace) for record in records.values()} - {n for (n,) in rows}:
        yield f"namespaces: {missing} are missing"
