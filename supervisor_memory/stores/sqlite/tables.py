"""The tables of a SQLite store, and the writing of changes, on a connection inside a transaction."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import apsw

from supervisor_memory.disk.database import Step
from supervisor_memory.errors import Conflict, CorruptStore
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Namespace, Record
from supervisor_memory.signals.index import Entry, entry_of
from supervisor_memory.stores.changes import Vector, as_bytes, as_stored, clash, vector_to_store
from supervisor_memory.stores.protocol import Change, Stored
from supervisor_memory.stores.sqlite.packed import LEAST, PACKED_TABLE, is_time, pack, unpack
from supervisor_memory.stores.sqlite.rounded import ROUNDED_TABLE

Condition: TypeAlias = tuple[str, tuple[str | float, ...]]
"""An SQL expression and its bindings."""

_NOT_OF: Final = "family <> '{}'"
NOT_SAID_IN_A_SESSION: Final = _NOT_OF.format(SESSION_FAMILY)
"""Written out, not bound, so that SQLite can use an index over the other families."""
_NEVER: Condition = ("0", ())
_SAID_AT: Final = "iif(json_valid(data), json_extract(data, '$.created_at'), NULL)"
"""As the index of sessions has it: a damaged row has no time, and can still be removed."""
_FEW = 8


@lru_cache(maxsize=256)
def of_records(where: Filter) -> Condition:
    """The condition on rows of `records` that match."""
    # The plus keeps SQLite from walking all records of a user to find those of some ids or messages.
    plus = "" if where.ids is None and where.ref_ids is None else "+"
    return joined([(f"{plus}{sql}", values) for sql, values in _of_namespace(where)] + [*_of_record(where)])


@lru_cache(maxsize=256)
def of_namespaces(where: Filter) -> Condition:
    """The condition on rows of `namespaces` that can have matching records."""
    return joined([*_of_namespace(where)])


def of_counts(where: Filter) -> Condition | None:
    """The condition on rows of `counts` beside those of `namespaces`; None where these cannot tell."""
    if where.ids is not None:
        return None
    kept = Filter(where.user_id, families=where.families, tasks=where.tasks, kinds=where.kinds)
    if where != replace(kept, statuses=where.statuses):
        return None
    of_one = (("kind", where.kinds), ("status", where.statuses))
    told = [_column_in(column, values) for column, values in of_one if values is not None]
    return joined([*_of_namespace(where), *told])


def visible(where: Filter, *, now: float) -> Condition:
    """The condition on rows of `records` that a search may return."""
    unexpired = ("(expires_at IS NULL OR expires_at > ?)", (now,))
    return joined([*_of_namespace(where), *_of_record(where), ("status = 'active'", ()), unexpired])


def joined(conditions: Sequence[Condition]) -> Condition:
    """All conditions, joined by AND."""
    values = tuple(value for _, values in conditions for value in values)
    return " AND ".join(sql for sql, _ in conditions) or "1", values


def _of_namespace(where: Filter) -> Iterator[Condition]:
    if where.user_id is not None:
        yield _column_is("user_id", where.user_id)
    if where.families is not None:
        yield _column_in("family", where.families)
    for family in where.left_out:
        yield _NOT_OF.format(family), ()
    if where.tasks is not None:
        yield _in_task(where.tasks)


def _of_record(where: Filter) -> Iterator[Condition]:
    of_one = (where.kinds, where.statuses, where.layers, where.ids)
    for column, values in zip(("kind", "status", "layer", "id"), of_one, strict=True):
        if values is not None:
            yield _column_in(column, values)
    if where.statuses is not None and "active" not in where.statuses:
        yield _SET_ASIDE, ()  # SQLite uses an index of some rows only where their condition is repeated
    for column in ("session_id", "content_hash", "subject", "attribute"):
        if (value := getattr(where, column)) is not None:
            yield _column_is(column, value)
    if where.ref_ids is not None:
        told, bindings = _column_in("message", where.ref_ids)
        yield f"id IN (SELECT id FROM told_of WHERE {told})", bindings
    if where.expired_by is not None:
        yield "expires_at <= ?", (where.expired_by,)
    if where.behind is not None:
        at, id_ = where.behind
        yield "updated_at <= ? AND (updated_at < ? OR id < ?)", (at, at, id_)
    if where.not_embedded_by is not None:
        yield _without_vector(where, where.not_embedded_by)
    yield from _of_data(where)


def _without_vector(where: Filter, embedder: str) -> Condition:
    """The condition on rows of `records` without a vector of an embedder.

    Active records have an entry: to look through these reads a tenth of what the records take.
    """
    of_embedder, bindings = _column_is("embedder", embedder)
    vector = f"SELECT 1 FROM vectors INDEXED BY vectors_by_embedder WHERE {of_embedder} AND vectors.key ="
    if where.statuses != ("active",):
        return f"NOT EXISTS ({vector} records.key)", bindings
    sql, values = of_namespaces(replace(where, not_embedded_by=None))
    entries = f"SELECT e.key FROM namespaces JOIN entries e USING (namespace) WHERE {sql}"
    return f"key IN ({entries} AND NOT EXISTS ({vector} e.key))", (*values, *bindings)


def _of_data(where: Filter) -> Iterator[Condition]:
    """The conditions on values that only the record's JSON has, as `Record.to_json` writes them."""
    if where.since is not None:
        yield f"{_SAID_AT} >= ?", (where.since,)
    if where.until is not None:
        yield f"{_SAID_AT} < ?", (where.until,)
    if where.agent_id is not None:
        yield _column_is("json_extract(records.data, '$.source.agent_id')", where.agent_id)
    for tag in where.tags or ():
        held, bindings = _column_is("tag.value", tag)
        yield f"EXISTS (SELECT 1 FROM json_each(records.data, '$.tags') AS tag WHERE {held})", bindings
    for wanted in where.metadata or ():
        value, texts = _column_in("records.data -> ?", sorted(wanted.texts))
        yield value, (f'$.metadata."{wanted.key}"', *texts)


def _in_task(tasks: Sequence[str | None]) -> Condition:
    if tasks == (None,):
        return "task IS NULL", ()
    named, bindings = _column_in("task", [task for task in tasks if task is not None])
    return f"({named}{' OR task IS NULL' if None in tasks else ''})", bindings


def _column_is(column: str, value: str) -> Condition:
    return (f"{column} = ?", (value,)) if _can_be_stored(value) else _NEVER


def _column_in(column: str, values: Sequence[str]) -> Condition:
    is_plain = all(map(str.isascii, values))
    texts = tuple(values if is_plain else filter(_can_be_stored, values))
    if len(texts) <= _FEW:
        return f"{column} IN ({', '.join('?' * len(texts))})", texts
    # One binding however many values, so that neither the number of variables nor the text of SQL grows.
    return f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(texts, ensure_ascii=False),)


def _can_be_stored(text: str) -> bool:
    """Whether UTF-8 can hold a text. It cannot hold lone surrogates, so no row has them."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


ENTRIES_TABLE: Final = """CREATE TABLE entries(
    namespace TEXT NOT NULL, key INTEGER NOT NULL, said_at REAL NOT NULL, stream TEXT, speaker TEXT,
    asks INTEGER NOT NULL, is_reply INTEGER NOT NULL, terms TEXT NOT NULL,
    PRIMARY KEY(namespace, key)) WITHOUT ROWID"""
_ENTRIES_INDEX: Final = "CREATE INDEX entries_in_time ON entries(stream, said_at) WHERE stream > ''"
"""The messages of each session in the order in which they were said."""


def put_entry(connection: apsw.Connection, key: int, entry: Entry, *, namespace: str) -> None:
    """Add the entry of a record that has none."""
    said = (entry.said_at, entry.stream, entry.speaker, entry.asks, entry.is_reply, " ".join(entry.terms))
    connection.execute("INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?, ?)", (namespace, key, *said))


_KEPT_RATHER_THAN_COUNTED: Final = (
    PACKED_TABLE,
    # How many records there are, kept as they change: counting 100,000 takes a while.
    """CREATE TABLE counts(
        namespace TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, records INTEGER NOT NULL,
        PRIMARY KEY(namespace, kind, status)) WITHOUT ROWID""",
    """CREATE TRIGGER a_record_more AFTER INSERT ON records BEGIN
        INSERT INTO counts VALUES(NEW.namespace, NEW.kind, NEW.status, 1)
        ON CONFLICT DO UPDATE SET records = records + 1; END""",
    """CREATE TRIGGER a_record_less AFTER DELETE ON records BEGIN
        UPDATE counts SET records = records - 1
        WHERE namespace = OLD.namespace AND kind = OLD.kind AND status = OLD.status; END""",
    """CREATE TRIGGER a_record_elsewhere AFTER UPDATE OF namespace, kind, status ON records
        WHEN (OLD.namespace, OLD.kind, OLD.status) <> (NEW.namespace, NEW.kind, NEW.status) BEGIN
        UPDATE counts SET records = records - 1
        WHERE namespace = OLD.namespace AND kind = OLD.kind AND status = OLD.status;
        INSERT INTO counts VALUES(NEW.namespace, NEW.kind, NEW.status, 1)
        ON CONFLICT DO UPDATE SET records = records + 1; END""",
    "CREATE INDEX vectors_by_embedder ON vectors(embedder)",
    "CREATE INDEX records_by_expiry ON records(expires_at) WHERE expires_at IS NOT NULL",
    f"CREATE INDEX records_by_time ON records(updated_at) WHERE {NOT_SAID_IN_A_SESSION}",
)
_TOLD_OF_TABLE: Final = """CREATE TABLE told_of(
    message TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY(message, id)) WITHOUT ROWID"""
"""The records that tell something about a message, see `Record.ref_ids`."""

_SET_ASIDE: Final = "status <> 'active'"
_SET_ASIDE_INDEX: Final = f"""CREATE INDEX records_set_aside ON records(user_id, family, status, updated_at)
    WHERE {_SET_ASIDE}"""
_BY_SESSION_INDEX: Final = f"""CREATE INDEX records_by_session ON records(session_id, layer, {_SAID_AT})
    WHERE session_id IS NOT NULL"""
_SESSIONS_TABLE: Final = """CREATE TABLE sessions(
    user_id TEXT NOT NULL, session_id TEXT NOT NULL, agent_id TEXT NOT NULL, first_at REAL NOT NULL,
    last_at REAL NOT NULL, messages INTEGER NOT NULL,
    PRIMARY KEY(user_id, session_id, agent_id)) WITHOUT ROWID"""
"""A row for each session, with "" for the agent, and the same row for each agent that spoke in it."""
_SESSION_INDEXES: Final = (
    "CREATE INDEX sessions_by_time ON sessions(agent_id, last_at, user_id, session_id, first_at)",
    "CREATE INDEX sessions_by_user ON sessions(agent_id, user_id, last_at, session_id, first_at, messages)",
)
_OF_SESSION: Final = "user_id = ?1 AND session_id = ?2"
_ONE_MORE: Final = f"""UPDATE sessions SET first_at = min(first_at, ?3), last_at = max(last_at, ?3),
    messages = messages + 1 WHERE {_OF_SESSION} RETURNING agent_id, first_at, last_at, messages"""
_NEW_ROW: Final = "INSERT INTO sessions VALUES(?, ?, ?, ?, ?, ?)"
_SAID: Final = "layer = 'history' AND status = 'active'"

SCHEMA: Final = (
    # `data` is the record, whole; the columns beside it are what is searched for.
    """CREATE TABLE records(
        key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, family TEXT NOT NULL,
        user_id TEXT NOT NULL, task TEXT, kind TEXT NOT NULL, layer TEXT NOT NULL, status TEXT NOT NULL,
        subject TEXT, attribute TEXT, content_hash TEXT NOT NULL, session_id TEXT, updated_at REAL NOT NULL,
        expires_at REAL, version INTEGER NOT NULL, revision INTEGER NOT NULL, data TEXT NOT NULL)""",
    """CREATE UNIQUE INDEX records_one_wording ON records(namespace, content_hash)
        WHERE status = 'active' AND layer <> 'history'""",
    """CREATE UNIQUE INDEX records_one_value ON records(namespace, subject, attribute)
        WHERE status = 'active' AND layer <> 'history' AND subject IS NOT NULL AND attribute IS NOT NULL""",
    f"CREATE INDEX records_by_user ON records(user_id, updated_at) WHERE {NOT_SAID_IN_A_SESSION}",
    "CREATE INDEX records_by_family ON records(user_id, family, updated_at)",
    f"""CREATE INDEX records_by_wording ON records(user_id, family, content_hash)
        WHERE {NOT_SAID_IN_A_SESSION}""",
    """CREATE INDEX records_by_value ON records(user_id, family, subject, attribute)
        WHERE subject IS NOT NULL""",
    "CREATE INDEX records_by_change ON records(namespace, revision)",
    _BY_SESSION_INDEX,
    _SET_ASIDE_INDEX,
    """CREATE TABLE versions(
        record_id TEXT NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY(record_id, version))""",
    # Not WITHOUT ROWID: blobs of this size make such a table more than twice as large.
    """CREATE TABLE vectors(
        key INTEGER PRIMARY KEY REFERENCES records(key), embedder TEXT NOT NULL, dim INTEGER NOT NULL,
        vector BLOB NOT NULL)""",
    # `revision` counts commits; matrices in memory of before `rebuilt` cannot follow row by row.
    """CREATE TABLE namespaces(
        namespace TEXT PRIMARY KEY, family TEXT NOT NULL, user_id TEXT NOT NULL, task TEXT,
        revision INTEGER NOT NULL, rebuilt INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
    "CREATE INDEX namespaces_by_user ON namespaces(user_id)",
    ENTRIES_TABLE,
    _ENTRIES_INDEX,
    _TOLD_OF_TABLE,
    _SESSIONS_TABLE,
    *_SESSION_INDEXES,
    *_KEPT_RATHER_THAN_COUNTED,
    ROUNDED_TABLE,
)
_COLUMNS: Final = (
    *("id", "namespace", "family", "user_id", "task", "kind", "layer", "status", "subject", "attribute"),
    *("content_hash", "session_id", "updated_at", "expires_at", "version", "revision", "data"),
)
_MARKS: Final = ", ".join("?" * len(_COLUMNS))
_INSERT: Final = f"INSERT INTO records({', '.join(_COLUMNS)}) VALUES({_MARKS}) RETURNING key"
_UPDATE: Final = f"UPDATE records SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE key = ?"


@lru_cache(maxsize=4_096)
def namespace_text(namespace: Namespace) -> str:
    """A namespace as a text; different namespaces have different texts."""
    return json.dumps(namespace, ensure_ascii=False, separators=(",", ":"))


def record_of(data: str) -> Record:
    """A record from its row; equal rows may give the same object. Raises CorruptStore: the row is damaged."""
    return _known(data) if len(data) <= _LONGEST_KNOWN else _read(data)


def records_of(rows: Sequence[str]) -> Sequence[Record]:
    """Records from rows that are read for the first time, together, which is quicker."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        read = json.loads(f"[{','.join(rows)}]")
        if len(read) == len(rows):
            return [Record.from_dict(each) for each in read]
    return [_read(data) for data in rows]  # one of them is damaged


def _read(data: str) -> Record:
    try:
        return Record.from_dict(json.loads(data))
    except (ValueError, KeyError, TypeError) as error:
        told = (
            f"a row of the store cannot be read as a record ({error}); it is left as it is: restore a backup"
        )
        raise CorruptStore(told, begins=data[:40]) from error


_LONGEST_KNOWN: Final = 2_000
_known = lru_cache(maxsize=2_048)(_read)  # the same rows are found again and again


class Writing:
    """Writes the changes of a commit, on a connection inside a transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._revisions: dict[Namespace, int] = {}
        self._shrunk: set[tuple[str, str]] = set()
        self._entries: Counter[Namespace] = Counter()

    def put(self, change: Change) -> Record:
        """Apply a change and return the record as stored.

        Raises:
            Conflict, RecordNotFound, InvalidContent, BadVector: the change cannot be made.
        """
        key, current = self._current(change.record.id)
        record, text = as_stored(change, current, read=record_of)
        vector = vector_to_store(change.record)
        keeps = vector is None and current is not None and current.embedder == record.embedder
        if record.embedder is not None and vector is None and not keeps:
            record = replace(record, embedder=None)
            text = record.to_json()
        key = self._put_row(record, key, text)
        if current is not None and current.version != record.version:
            self._put_version(current)
        if vector is not None or (current is not None and not keeps):
            self._put_vector(key, record, vector)
        self._put_entry(key, record, current)
        self._put_messages(record, current)
        self._put_session(record, current)
        return record

    def put_stored(self, stored: Stored, current: Record | None) -> None:
        """Put a record, as another store had it, in the place of `current`; see `arrival.Shelf.put`."""
        record = stored.record
        known = None if current is None else self._current(record.id)[0]
        key = self._put_row(record, known, record.to_json())
        latest = 0 if current is None else current.version
        for each in stored.earlier:
            if each.version >= latest:
                self._put_version(each)
        self._put_vector(key, record, stored.vector)
        self._put_entry(key, record, current)
        self._put_messages(record, current)
        self._put_session(record, current)

    def finish(self) -> None:
        """Finish a commit: count the sessions that lost messages again, and pack the namespaces that have
        changed."""
        for user_id, session_id in self._shrunk:
            count_session(self._connection, user_id, session_id)
        self._shrunk.clear()
        for namespace, changes in self._entries.items():
            name = namespace_text(namespace)
            if is_time(self._connection, name, self._revisions[namespace], changes=changes):
                pack(self._connection, name)
        self._entries.clear()

    def _current(self, record_id: str) -> tuple[int | None, Record | None]:
        row = self._connection.execute("SELECT key, data FROM records WHERE id = ?", (record_id,)).fetchone()
        return (None, None) if row is None else (int(row[0]), record_of(row[1]))

    def _put_row(self, record: Record, key: int | None, text: str) -> int:
        values = _values(record, self._revision(record.namespace), text)
        try:
            if key is None:
                return int(self._connection.execute(_INSERT, values).get)
            self._connection.execute(_UPDATE, (*values, key))
            return key
        except apsw.ConstraintError as error:
            raise self._clash(record) from error

    def _clash(self, record: Record) -> Conflict:
        for what, same, values in (
            ("content_hash", "content_hash = ?", (record.content_hash,)),
            ("attribute", "subject = ? AND attribute = ?", (record.subject, record.attribute)),
        ):
            row = self._connection.execute(
                f"SELECT id FROM records WHERE namespace = ? AND {same} AND id <> ? "
                "AND status = 'active' AND layer <> 'history'",
                (namespace_text(record.namespace), *values, record.id),
            ).fetchone()
            if row is not None:
                return clash(what, str(row[0]), record.id)
        return clash("id", record.id, record.id)

    def _put_version(self, record: Record) -> None:
        values = (record.id, record.version, record.to_json())
        self._connection.execute("INSERT INTO versions VALUES(?, ?, ?)", values)

    def _put_vector(self, key: int, record: Record, vector: Vector | None) -> None:
        if vector is None:
            self._connection.execute("DELETE FROM vectors WHERE key = ?", (key,))
        else:
            values = (key, record.embedder, len(vector), as_bytes(vector))
            self._connection.execute("INSERT OR REPLACE INTO vectors VALUES(?, ?, ?, ?)", values)
            self._entries[record.namespace] += 1  # else what only embeds anew would never be packed

    def _put_entry(self, key: int, record: Record, current: Record | None) -> None:
        if current is not None and current.namespace != record.namespace:
            self._mark_rebuilt(current.namespace)
        if current is not None and _read_of(current) == _read_of(record):
            return
        self._entries[record.namespace] += 1
        if current is not None and current.status == "active":
            where = (namespace_text(current.namespace), key)
            self._connection.execute("DELETE FROM entries WHERE namespace = ? AND key = ?", where)
        if record.status == "active":
            put_entry(self._connection, key, entry_of(record), namespace=namespace_text(record.namespace))

    def _put_messages(self, record: Record, current: Record | None) -> None:
        before, after = set(current.linked_ids if current else ()), set(record.linked_ids)
        for message in before ^ after:
            gone = "DELETE FROM told_of WHERE message = ? AND id = ?"
            sql = gone if message in before else "INSERT INTO told_of VALUES(?, ?)"
            self._connection.execute(sql, (message, record.id))

    def _put_session(self, record: Record, current: Record | None) -> None:
        before, after = _said_in(current), _said_in(record)
        if before == after:
            return
        if before is not None:
            self._shrunk.add(before[:2])
        if after is None or after[:2] in self._shrunk:
            return
        user_id, session_id, agent_id, at = after
        rows: Sequence[Any] = self._connection.execute(_ONE_MORE, (user_id, session_id, at)).fetchall()
        told = rows[0][1:] if rows else (at, at, 1)
        there = {row[0] for row in rows}
        new = [each for each in dict.fromkeys(("", agent_id)) if each not in there]
        if new:
            self._connection.executemany(_NEW_ROW, [(user_id, session_id, each, *told) for each in new])

    def _revision(self, namespace: Namespace) -> int:
        """The number of this commit among those of the namespace."""
        if namespace not in self._revisions:
            family, user_id, *tasks = namespace
            self._revisions[namespace] = self._connection.execute(
                "INSERT INTO namespaces(namespace, family, user_id, task, revision) VALUES(?, ?, ?, ?, 1) "
                "ON CONFLICT(namespace) DO UPDATE SET revision = revision + 1 RETURNING revision",
                (namespace_text(namespace), family, user_id, tasks[0] if tasks else None),
            ).get
        return self._revisions[namespace]

    def _mark_rebuilt(self, namespace: Namespace) -> None:
        self._revision(namespace)
        leave = "UPDATE namespaces SET rebuilt = revision WHERE namespace = ?"
        self._connection.execute(leave, (namespace_text(namespace),))


def count_session(connection: apsw.Connection, user_id: str, session_id: str) -> None:
    """Make the rows of a session from its messages."""
    connection.execute(f"DELETE FROM sessions WHERE {_OF_SESSION}", (user_id, session_id))
    connection.execute(
        f"""WITH said AS MATERIALIZED (
            SELECT ifnull(data ->> '$.source.agent_id', '') AS agent, data ->> '$.created_at' AS at
            FROM records WHERE {_OF_SESSION} AND {_SAID})
        INSERT INTO sessions SELECT ?1, ?2, agent, first_at, last_at, messages
        FROM (SELECT '' AS agent UNION SELECT agent FROM said), (
            SELECT min(at) AS first_at, max(at) AS last_at, count(*) AS messages FROM said) WHERE messages""",
        (user_id, session_id),
    )


def counted(connection: apsw.Connection, user_id: str) -> dict[str, int]:
    """How many rows of a user there are, by kind."""
    return {
        what: int(connection.execute(f"SELECT count(*) FROM {table} WHERE {whose}", (user_id,)).get)
        for what, (table, whose) in _OF_USER.items()
    }


def remove(connection: apsw.Connection, user_id: str) -> None:
    """Remove a user from all tables."""
    whose = "id IN (SELECT id FROM records WHERE user_id = ?)"
    connection.execute(f"DELETE FROM told_of WHERE {whose}", (user_id,))
    for table, whose in reversed(_OF_USER.values()):
        connection.execute(f"DELETE FROM {table} WHERE {whose}", (user_id,))
    namespaces = "(SELECT namespace FROM namespaces WHERE user_id = ?)"
    connection.execute(f"DELETE FROM entries WHERE namespace IN {namespaces}", (user_id,))
    connection.execute(f"DELETE FROM counts WHERE namespace IN {namespaces}", (user_id,))
    unpack(connection, namespaces, (user_id,))
    for table in ("namespaces", "sessions"):
        connection.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))
    _outdate_caches(connection)


def remove_records(
    connection: apsw.Connection, records: Sequence[Record], *, history_of: Sequence[str]
) -> dict[str, int]:
    """Remove records from all tables; returns how many rows, by kind."""
    ids = json.dumps([record.id for record in records])
    with_history = json.dumps([*(record.id for record in records), *history_of])
    of_record = "id IN (SELECT value FROM json_each(?))"
    keys = f"IN (SELECT key FROM records WHERE {of_record})"
    namespaces = f"(SELECT namespace FROM records WHERE {of_record})"
    connection.execute(f"DELETE FROM entries WHERE namespace IN {namespaces} AND key {keys}", (ids, ids))
    unpacked = unpack(connection, namespaces, (with_history,))
    connection.execute(f"DELETE FROM told_of WHERE {of_record}", (ids,))
    removed: dict[str, int] = {}
    for table, where, bindings in (
        ("vectors", f"key {keys}", ids),
        ("versions", f"record_{of_record}", with_history),
        ("records", of_record, ids),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {where}", (bindings,))
        removed[table] = connection.changes()
    for user_id, session_id in {said[:2] for each in records if (said := _said_in(each)) is not None}:
        count_session(connection, user_id, session_id)
    for namespace in unpacked:
        pack(connection, namespace)
    _outdate_caches(connection)
    return removed


def _outdate_caches(connection: apsw.Connection) -> None:
    """Change the schema's number, by which every process knows that its caches may hold erased texts."""
    connection.execute("CREATE TABLE erased(user)")
    connection.execute("DROP TABLE erased")


_OF_USER: Final = {
    "records": ("records", "user_id = ?"),
    "versions": ("versions", "record_id IN (SELECT id FROM records WHERE user_id = ?)"),
    "vectors": ("vectors", "key IN (SELECT key FROM records WHERE user_id = ?)"),
}


def _read_of(record: Record) -> tuple[object, ...] | None:
    """The values that a record's entry is made from; None: the record has no entry."""
    if record.status != "active":
        return None
    said = (record.created_at, record.source.session_id, record.source.speaker, record.is_reply)
    return (record.namespace, record.searched_text, record.layer, *said)


def _said_in(record: Record | None) -> tuple[str, str, str, float] | None:
    """The user, the session, the agent and the time of a message; None: the record is no message in use."""
    if record is None or record.layer != "history" or record.status != "active":
        return None
    session, agent = record.source.session_id, record.source.agent_id
    return None if session is None else (record.user_id, session, agent or "", record.created_at)


def _values(record: Record, revision: int, text: str) -> tuple[str | int | float | None, ...]:
    return (
        *(record.id, namespace_text(record.namespace), record.family, record.user_id, record.task),
        *(record.kind, record.layer, record.status, record.subject, record.attribute),
        *(record.content_hash, record.source.session_id, record.updated_at, record.expires_at),
        *(record.version, revision, text),
    )


def _without_words(connection: apsw.Connection) -> None:
    """Step to format 2: format 1 had the terms in tables of FTS5, which are slow to read."""
    words = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE fts\\___ %' ESCAPE '\\'"
    for (table,) in connection.execute(words).fetchall():
        connection.execute(f"DROP TABLE {table}")
    for column in ("indexed", "terms"):
        connection.execute(f"ALTER TABLE namespaces DROP COLUMN {column}")


def _entries_anew(connection: apsw.Connection) -> None:
    """Step to format 3: format 2 had entries that did not say whether an assistant spoke."""
    connection.execute("DROP TABLE IF EXISTS entries")
    connection.execute(ENTRIES_TABLE)
    active = connection.execute("SELECT key, namespace, data FROM records WHERE status = 'active'")
    for key, namespace, data in active:
        put_entry(connection, int(key), entry_of(record_of(str(data))), namespace=str(namespace))


def _told_of(connection: apsw.Connection) -> None:
    """Step to format 4: format 3 had the message of the present text alone, and no table to find it by."""
    connection.execute("DROP TABLE IF EXISTS told_of")
    connection.execute(_TOLD_OF_TABLE)
    for (data,) in connection.execute("SELECT data FROM records").fetchall():
        told = record = record_of(str(data))
        earlier = "SELECT data FROM versions WHERE record_id = ? ORDER BY version"
        for (text,) in connection.execute(earlier, (record.id,)).fetchall():
            before = record_of(str(text))
            is_told = before.content in record.content
            told = (told.also_said_in if is_told else told.no_longer_said_in)(before.ref_id)
        if told != record:
            connection.execute("UPDATE records SET data = ? WHERE id = ?", (told.to_json(), record.id))
        Writing(connection)._put_messages(told, None)


def _set_aside(connection: apsw.Connection) -> None:
    """Step to format 5: format 4 had no index of the records that are not active."""
    connection.execute("DROP INDEX IF EXISTS records_set_aside")
    connection.execute(_SET_ASIDE_INDEX)


def _sessions(connection: apsw.Connection) -> None:
    """Step to format 6: format 5 had the messages of sessions, and no table of the sessions."""
    connection.execute("DROP TABLE IF EXISTS sessions")
    for statement in (_SESSIONS_TABLE, *_SESSION_INDEXES):
        connection.execute(statement)
    sessions = f"SELECT DISTINCT user_id, session_id FROM records WHERE session_id IS NOT NULL AND {_SAID}"
    for user_id, session_id in connection.execute(sessions).fetchall():
        count_session(connection, str(user_id), str(session_id))


def _sessions_counted(connection: apsw.Connection) -> None:
    """Step to format 7: the index by user of format 6 lacked how many messages a session has."""
    connection.execute("DROP INDEX IF EXISTS sessions_by_user")
    connection.execute(_SESSION_INDEXES[1])


def _entries_in_time(connection: apsw.Connection) -> None:
    """Step to format 8: format 7 could not tell what was said last without reading the whole session."""
    for name, index in (("entries_in_time", _ENTRIES_INDEX), ("records_by_session", _BY_SESSION_INDEX)):
        connection.execute(f"DROP INDEX IF EXISTS {name}")
        connection.execute(index)


def _counted_and_packed(connection: apsw.Connection) -> None:
    """Step to format 9: format 8 counted its records, and read each index from its entries."""
    for statement in _KEPT_RATHER_THAN_COUNTED:
        what, name = statement.replace("(", " ").split()[1:3]
        connection.execute(f"DROP {what} IF EXISTS {name}")
        connection.execute(statement)
    connection.execute(
        "INSERT INTO counts SELECT namespace, kind, status, count(*) FROM records GROUP BY 1, 2, 3"
    )


def _vectors_packed(connection: apsw.Connection) -> None:
    """Step to format 10: format 9 read each vector of a large namespace from its own place."""
    connection.execute("DROP TABLE IF EXISTS rounded")
    connection.execute(ROUNDED_TABLE)
    connection.execute("DELETE FROM packed")
    large = "SELECT namespace FROM entries GROUP BY namespace HAVING count(*) >= ?"
    for (namespace,) in connection.execute(large, (LEAST,)).fetchall():
        pack(connection, str(namespace))


STEPS: Final[tuple[Step, ...]] = (
    _without_words,
    _entries_anew,
    _told_of,
    _set_aside,
    _sessions,
    _sessions_counted,
    _entries_in_time,
    _counted_and_packed,
    _vectors_packed,
)
"""The steps from each format to the next. A change of SCHEMA needs a step here."""
