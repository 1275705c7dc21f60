"""Records in one SQLite file, with their vectors, words, versions and audit in one transaction."""

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import apsw

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.bridge import seconds_left
from supervisor_memory.disk.database import LOCK_SECONDS, Database, File, Opened
from supervisor_memory.errors import (
    BackendUnavailable,
    CorruptStore,
    ReadOnlyStore,
    SupervisorMemoryError,
)
from supervisor_memory.model.records import Filter, Hits, Namespace, Query, Record, Seed
from supervisor_memory.stores.arrival import pages, take_all
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.stores.changes import in_order_of_application
from supervisor_memory.stores.namespace import search, searched_user
from supervisor_memory.stores.protocol import (
    ByWords,
    Commit,
    Committed,
    Erased,
    Health,
    Ids,
    Party,
    PartyRow,
    SessionRow,
    Stored,
    Taken,
    walks_here,
)
from supervisor_memory.stores.related import naming, related
from supervisor_memory.stores.sqlite.moving import TableShelf, stored_page
from supervisor_memory.stores.sqlite.namespaces import (
    Answers,
    Kept,
    Loaded,
    Namespaces,
    Question,
    Readable,
    Space,
    VectorsLate,
    first_expiry,
)
from supervisor_memory.stores.sqlite.tables import (
    SCHEMA,
    STEPS,
    Writing,
    counted,
    of_counts,
    of_namespaces,
    of_records,
    record_of,
    remove,
    remove_records,
)
from supervisor_memory.stores.verbs import Verbs, health_of_files

Apply = Callable[[apsw.Connection, Commit], Committed]
_MOST = 64
_LONGEST_WAIT = 0.5  # seconds; the thread that should call may have been interrupted


class Group:
    """Group commit: the first thread commits for all waiting threads; each gets its own result.

    An answer is given after the transaction has been committed, never before. A thread with its answer goes
    on at once, while a thread that came meanwhile commits the next group.

    Args:
        apply: Makes the changes of a commit on a connection inside a transaction, or raises.
    """

    def __init__(self, database: Database, apply: Apply) -> None:
        self._database = database
        self._apply = apply
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self._waiting: deque[_Request] = deque()

    def commit(self, commit: Commit) -> Committed:
        """Apply a commit, all of it or nothing; raises as `apply` or the database does."""
        if self._database.is_writing:  # it is part of a transaction of the caller's
            with self._database.writing() as connection:
                return self._apply(connection, commit)
        if self._pid != os.getpid():  # another thread of the parent may have held the lock
            self._reset()
        if not self._waiting and self._turn.acquire(blocking=False):
            try:
                with self._database.writing() as connection:
                    return self._apply(connection, commit)
            finally:
                self._end_turn()
        request = _Request(commit)
        self._waiting.append(request)
        while not request.is_answered:
            if self._turn.acquire(blocking=False):
                try:
                    self._lead([self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))])
                finally:
                    self._end_turn()
            else:
                request.wait()
        return request.answer()

    def _end_turn(self) -> None:
        self._turn.release()
        with contextlib.suppress(IndexError):  # nobody waits, or was just taken along
            self._waiting[0].call()

    def _lead(self, requests: "list[_Request]") -> None:
        if len(requests) > 1 and self._commit_together(requests):
            return
        for request in requests:
            self._commit_alone(request)

    def _commit_alone(self, request: "_Request") -> None:
        try:
            with self._database.writing() as connection:
                done = self._apply(connection, request.commit)
            request.done(done)
        except BaseException as error:  # even an error that ends this thread: nobody shall wait for ever
            request.failed(error)
            if not isinstance(error, Exception):
                raise

    def _commit_together(self, requests: "list[_Request]") -> bool:
        """Commit all requests in one transaction. True: each has its answer; False: nothing was stored."""
        answers: list[Committed | SupervisorMemoryError] = []
        try:
            with self._database.writing() as connection:
                answers += [self._in_savepoint(connection, request.commit) for request in requests]
        except (BackendUnavailable, ReadOnlyStore, CorruptStore) as error:  # the same for each of them
            for request in requests:
                request.failed(error)
            return True
        except Exception:  # noqa: BLE001  # each is tried alone next, and gets its own error
            return False
        except BaseException as error:
            for request in requests:
                request.failed(error)
            raise
        for request, answer in zip(requests, answers, strict=True):
            request.failed(answer) if isinstance(answer, SupervisorMemoryError) else request.done(answer)
        return True

    def _in_savepoint(self, connection: apsw.Connection, commit: Commit) -> Committed | SupervisorMemoryError:
        connection.execute("SAVEPOINT one")
        try:
            return self._apply(connection, commit)
        except SupervisorMemoryError as error:
            connection.execute("ROLLBACK TO one")
            return error
        finally:
            if connection.in_transaction:
                connection.execute("RELEASE one")


class _Request:
    """A commit that waits for its answer."""

    def __init__(self, commit: Commit) -> None:
        self.commit = commit
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._answer: Future[Committed] = Future()

    def wait(self) -> None:
        """Wait for a call, which brings a result or makes this thread the leader; may return without one."""
        with contextlib.suppress(Empty):
            self._calls.get(timeout=_LONGEST_WAIT)

    def call(self) -> None:
        """End its `wait`, or the next one."""
        self._calls.put(None)

    @property
    def is_answered(self) -> bool:
        return self._answer.done()

    def done(self, answer: Committed) -> None:
        self._answer.set_result(answer)
        self.call()

    def failed(self, error: BaseException) -> None:
        if not self.is_answered:  # else an interrupt came right behind the answer
            self._answer.set_exception(error)
        self.call()

    def answer(self) -> Committed:
        return self._answer.result()


FILE_NAME = "memory.db"
_A_DAY = 86_400.0
_FOR_THE_ANSWER = 0.4
"""The share of a search's time that reading vectors leaves to the answer, which then goes by words alone."""
_FILTERS = 256  # whose namespaces a connection keeps
_LONGEST_KEPT = 500  # records of a list
_TAKEN_TOGETHER = 500  # so that other writers need not wait long


class SqliteBackend(Verbs):
    """`memory.db` in a directory, shared by any number of threads and processes of a machine.

    Args:
        path: The directory; made with mode 0700 when it is not there.
        clock: Seconds since 1970, for the times of audit rows.
        lock_seconds: How long a commit waits for another process.
        read_only: Open for reading even where writing would be possible.

    Raises:
        CorruptStore: `memory.db` is no store of ours; it is left as it is.
        BackendUnavailable: it cannot be opened, is on a network file system, or of a newer release.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        lock_seconds: float = LOCK_SECONDS,
        read_only: bool = False,
    ) -> None:
        self._clock, file = clock, Path(path) / FILE_NAME
        self._database = Database(
            file, schema=SCHEMA, steps=STEPS, lock_seconds=lock_seconds, read_only=read_only
        )
        self._audit = AuditLog(self._database)
        self._group = Group(self._database, self._apply)
        self._known = _Known()
        if not self._database.read_only:
            self._audit.finish_erasures(at=clock(), seconds=0)

    @property
    def name(self) -> Literal["sqlite"]:
        return "sqlite"

    @property
    def audit(self) -> AuditLog:
        return self._audit

    @property
    def database(self) -> Database:
        """The database of the records, for tables that belong into the same file and transactions."""
        return self._database

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit in one transaction: all or nothing, audit included."""
        if not commit.changes and not commit.audit:
            return Committed(commit.id)
        return self._group.commit(commit)

    def _apply(self, connection: apsw.Connection, commit: Commit) -> Committed:
        records = [change.record for change in commit.changes]
        self._audit.refuse_erased([change.record for change in commit.changes if change.expects is None])
        writing = Writing(connection)
        for position, change in in_order_of_application(commit.changes):
            records[position] = writing.put(change)
        writing.finish()
        self._audit.append(commit.audit, at=self._clock())
        return Committed(commit.id, tuple(records))

    def search(self, query: Query, *, limit: int) -> Hits:
        searched_user(query)
        with self._database.reading() as connection:
            known, spaces = self._caches_and_spaces(connection, query.where)
            if not spaces:
                return Hits(namespaces=0)
            ask = partial(_search, connection, known, query, limit, spaces)
            if not query.text and not query.terms:  # a search by vector is as quick as a known answer
                return ask()
            return known.answers.of(_question(query, limit), spaces, now=query.now, find=ask)

    @walks_here
    def related(self, seeds: Sequence[Seed], query: Query, *, limit: int, least: float = 0.0) -> Hits:
        searched_user(query)
        with self._database.reading() as connection:
            known, spaces = self._caches_and_spaces(connection, query.where)
            readable = Readable(connection, known.records, query, spaces)

            def look(loaded: Loaded) -> Hits:
                return related(
                    loaded.indexes,
                    seeds,
                    query,
                    limit=limit,
                    least=least,
                    readable=readable.beside(loaded),
                    keys=readable.keys_of,
                    vectors=loaded.vectors,
                )

            return known.namespaces.look(connection, spaces, look) if spaces else Hits()

    def naming(
        self, names: Sequence[Sequence[str]], query: Query, *, limit: int
    ) -> Sequence[tuple[int, Sequence[Record]]]:
        searched_user(query)
        with self._database.reading() as connection:
            known, spaces = self._caches_and_spaces(connection, query.where)
            readable = Readable(connection, known.records, query, spaces)

            def look(loaded: Loaded) -> Sequence[tuple[int, Sequence[Record]]]:
                return naming(loaded.indexes, names, limit=limit, readable=readable.beside(loaded))

            return known.namespaces.look(connection, spaces, look) if spaces else [(0, ())] * len(names)

    def get(self, ids: Ids) -> Sequence[Record]:
        with self._database.asking() as connection:
            found = {record.id: record for record in _by_id(connection, ids)}
        return tuple(found[record_id] for record_id in ids if record_id in found)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        if not _changes_seldom(where):
            with self._database.asking() as connection:
                return _listed(connection, where, limit, offset)
        with self._database.asking() as connection:
            asked = where, limit, offset
            if (before := self._listed_before(connection, asked)) is not None:
                return before
            if not connection.in_transaction:  # what follows takes several statements
                connection.execute("BEGIN")
            known, spaces = self._caches_and_spaces(connection, where)
            look = partial(_listed, connection, *asked)
            return known.lists.of(asked, spaces, now=0.0, find=look)

    def _listed_before(self, connection: Opened, asked: tuple[Filter, int, int]) -> Sequence[Record] | None:
        """The earlier result of a list, if nothing has changed since; None: it has to be read."""
        if self._database.is_writing:
            return None
        seen = self._seen_before(connection, connection.kept(), asked[0])
        return seen and seen[0].lists.known(asked, seen[1], now=0.0)

    def count(self, where: Filter) -> int:
        with self._database.asking() as connection:
            return _count(connection, where)

    def sizes(self) -> Mapping[Namespace, int]:
        with self._database.reading() as connection:
            active = "SELECT namespace, sum(records) FROM counts WHERE status = 'active' GROUP BY namespace"
            return {tuple(json.loads(name)): size for name, size in connection.execute(active) if size}

    def sessions(
        self, where: Filter, *, limit: int, after: tuple[float, str, str] | None = None
    ) -> Sequence[SessionRow]:
        from supervisor_memory.stores.sqlite.sessions import session_rows  # rare: a turn lists none

        with self._database.reading() as connection:
            return session_rows(connection, where, limit=limit, after=after)

    def parties(
        self, party: Party, *, user_id: str | None = None, limit: int, after: tuple[float, str] | None = None
    ) -> Sequence[PartyRow]:
        from supervisor_memory.stores.sqlite.sessions import party_rows  # rare, too

        with self._database.reading() as connection:
            return party_rows(connection, party, user_id=user_id, limit=limit, after=after)

    def said_last(self, where: Filter, *, limit: int) -> Sequence[Record]:
        from supervisor_memory.stores.sqlite.sessions import messages_said_last  # rare, too

        with self._database.reading() as connection:
            return messages_said_last(connection, where, limit=limit)

    def count_said(self, where: Filter) -> int:
        from supervisor_memory.stores.sqlite.sessions import messages_counted  # rare, too

        with self._database.reading() as connection:
            return messages_counted(connection, where)

    def versions(self, record_id: str) -> Sequence[Record]:
        earlier = "SELECT data FROM versions WHERE record_id = ? ORDER BY version"
        with self._database.reading() as connection:
            present = [*_by_id(connection, [record_id])]
            return (*_records(connection, earlier, (record_id,)), *present) if present else ()

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        with self._database.reading() as connection:
            return stored_page(connection, after=after, limit=limit, user_id=user_id)

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them, some hundreds in a transaction; see `Moves`."""
        return [taken for page in pages(records, most=_TAKEN_TOGETHER) for taken in self._take(page)]

    def _take(self, page: Sequence[Stored]) -> Sequence[Taken]:
        with self._database.writing() as connection:
            writing = Writing(connection)
            decided = take_all(page, TableShelf(connection, writing), tombstones=self._audit)
            writing.finish()
            self._audit.append(decided.events, at=self._clock())
            return decided.in_order()

    def holds(self, user_id: str) -> Mapping[str, int]:
        beside = self._audit.holds(user_id)
        with self._database.reading() as connection:
            return {**counted(connection, user_id), **beside}

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user in one transaction, then write the file anew; see `Erases`."""
        with self._database.writing() as connection:
            every = "SELECT data FROM records WHERE user_id = ?"
            records = list(_records(connection, every, (user_id,)))
            removed = counted(connection, user_id)
            removed |= self._audit.erase(user_id, records, at=at, actor=actor)
            remove(connection, user_id)
        return self._without_traces(removed)

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records in one transaction, then write the file anew; see `ErasesRecords`."""
        with self._database.writing() as connection:
            records = [each for each in _by_id(connection, ids) if each.user_id == user_id]
            removed = remove_records(connection, records, history_of=history_of)
            removed |= self._audit.erase_records(user_id, records, at=at, actor=actor)
        return self._without_traces(removed)

    def _without_traces(self, removed: Mapping[str, int]) -> Erased:
        self._known = _Known()
        forget_texts()
        return Erased(removed, self._audit.finish_erasures(at=self._clock()))

    def health(self) -> Health:
        where, details = self._database.where, {"format": str(self._database.format)}
        read_only, sqlite = self._database.read_only, apsw.sqlite_lib_version()
        return health_of_files(self, where, read_only=read_only, sqlite=sqlite, **details)

    def close(self) -> None:
        """Let go of the file. Closing twice is fine."""
        self._audit.close()

    def _caches_and_spaces(self, connection: Opened, where: Filter) -> "tuple[_Known, Sequence[Space]]":
        """The caches for the file as the connection sees it, and the namespaces with possible matches.

        The namespaces are read from the file once after each commit of another connection.
        """
        if self._database.is_writing:  # what an open transaction shows may be undone
            return _Known(), _spaces(connection, where)
        kept = connection.kept()
        if (seen := self._seen_before(connection, kept, where)) is not None:
            return seen
        known, spaces = self._known_in(connection, kept), _spaces_of_user(connection, kept, where)
        if len(kept) >= _FILTERS:
            kept.clear()
        kept[where] = known.state, spaces
        return known, spaces

    def _seen_before(
        self, connection: Opened, kept: dict[Hashable, Any], where: Filter
    ) -> "tuple[_Known, Sequence[Space]] | None":
        """As `_caches_and_spaces`, but reads no file; None: another connection has committed since."""
        known = self._known
        if known.state is None or known.state != (connection.file, kept.get(_Known)):
            return None
        if (every := kept.get(where.user_id)) is not None and len(every) <= _MOST_SPACES:
            return known, _matching(every, where)
        state, spaces = kept.get(where, (None, ()))
        return (known, spaces) if state == known.state else None

    def _known_in(self, connection: Opened, kept: dict[Hashable, Any]) -> "_Known":
        """The caches for the file as the connection sees it; new ones after another erasure."""
        if (number := kept.get(_Known)) is None:
            number = kept[_Known] = int(connection.execute("PRAGMA schema_version").get)
        state = (connection.file, number)
        known = self._known
        if known.state != state:
            if known.state is not None:
                forget_texts()  # a user may have been erased by another process
            known = self._known = _Known(state)
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    """The caches of searches. `state` is the file and its schema number; None: nothing was read yet.

    Each erasure changes the schema number, so that no cache outlives it.
    """

    state: tuple[File | None, int] | None = None
    namespaces: Namespaces = field(default_factory=Namespaces)
    records: Kept = field(default_factory=Kept)
    answers: Answers[Hits] = field(default_factory=lambda: Answers(first_expiry))
    lists: Answers[Sequence[Record]] = field(default_factory=lambda: Answers(_keeps_short))


def _changes_seldom(where: Filter) -> bool:
    """Whether a filter is used in each turn and its result seldom changes, such as a user's preferences.

    So are the records that tell of messages. The namespaces of messages and digests change with each turn.
    """
    is_of_user = where.user_id is not None and (where.families is not None or where.ref_ids is not None)
    return is_of_user and where.ids is None and not where.reads_messages and not where.reads_digests


def _keeps_short(records: Sequence[Record]) -> float:
    """The expiry of a cached list: it never expires, but a long list is not kept."""
    return inf if len(records) <= _LONGEST_KEPT else -inf


def _listed(connection: apsw.Connection, where: Filter, limit: int, offset: int) -> Sequence[Record]:
    condition, bindings = of_records(where)
    # Few have one wording or attribute, few are of a session. The plus keeps SQLite from walking a family,
    # or all of a user's, in time.
    is_of_few = where.content_hash or where.session_id or where.attribute
    when = "+updated_at" if is_of_few else "updated_at"
    sql = f"SELECT data FROM records WHERE {condition} ORDER BY {when} DESC, id DESC LIMIT ? OFFSET ?"
    return tuple(_records(connection, sql, (*bindings, max(0, limit), max(0, offset))))


def _count(connection: apsw.Connection, where: Filter) -> int:
    if (kept := of_counts(where)) is not None:
        sql, bindings = kept
        every = "SELECT ifnull(sum(records), 0) FROM counts JOIN namespaces USING (namespace)"
        return int(connection.execute(f"{every} WHERE {sql}", bindings).get)
    sql, bindings = of_records(where)
    return int(connection.execute(f"SELECT count(*) FROM records WHERE {sql}", bindings).get)


_OF_A_SPACE = "namespace, user_id, revision, rebuilt"
_MOST_SPACES = 64


def _spaces(connection: apsw.Connection, where: Filter) -> Sequence[Space]:
    """The namespaces that can hold matching records, as they are now."""
    sql, bindings = of_namespaces(where)
    select = f"SELECT {_OF_A_SPACE} FROM namespaces WHERE {sql}"
    rows: Iterable[Any] = connection.execute(select, bindings)
    return [Space(*row) for row in rows]


def _spaces_of_user(connection: apsw.Connection, kept: dict[Hashable, Any], where: Filter) -> Sequence[Space]:
    """As `_spaces`; a user's namespaces are read once for all filters, unless they are many."""
    if (user_id := where.user_id) is None:
        return _spaces(connection, where)
    if (every := kept.get(user_id)) is None:
        sql, bindings = of_namespaces(Filter(user_id, families=None, layers=("history", "summary")))
        select = f"SELECT family, task, {_OF_A_SPACE} FROM namespaces WHERE {sql} LIMIT ?"
        rows: Iterable[Any] = connection.execute(select, (*bindings, _MOST_SPACES + 1))
        every = kept[user_id] = [(family, task, Space(*row)) for family, task, *row in rows]
    if len(every) > _MOST_SPACES:
        return _spaces(connection, where)
    return _matching(every, where)


def _matching(every: Iterable[tuple[str, str | None, Space]], where: Filter) -> Sequence[Space]:
    """Of a user's namespaces, each with its family and task, those that can hold matching records."""
    left_out, families, tasks = where.left_out, where.families, where.tasks
    return [
        space
        for family, task, space in every
        if family not in left_out
        and (families is None or family in families)
        and (tasks is None or task in tasks)
    ]


def _question(query: Query, limit: int) -> Question:
    """The key of a query's answer, the same for the same query on the same day."""
    vector = None if query.vector is None else query.vector.tobytes()
    today = query.now // _A_DAY  # "yesterday" is another day tomorrow
    return Question(_asked_of(query), vector, today, limit)


_asked_of = attrgetter(*(name for name in Query.__slots__ if name not in {"now", "vector"}))


def _search(
    connection: apsw.Connection, known: _Known, query: Query, limit: int, spaces: Sequence[Space]
) -> Hits:
    readable = Readable(connection, known.records, query, spaces)
    has_words = bool(query.text and query.terms)
    least = _FOR_THE_ANSWER * seconds_left()

    def look(loaded: Loaded) -> Hits:
        readable.beside(loaded)
        try:
            return search(loaded.indexes, query, limit=limit, readable=readable, vectors=loaded.vectors)
        except VectorsLate:
            words = replace(query, vector=None, embedder=None)
            found = search(loaded.indexes, words, limit=limit, readable=readable, vectors=loaded.vectors)
            return ByWords(found.items, degraded=True)

    def is_in_time() -> bool:
        return not has_words or seconds_left() >= least

    return known.namespaces.look(connection, spaces, look, is_in_time=is_in_time)


def _by_id(connection: apsw.Connection, ids: Ids) -> Iterator[Record]:
    sql, bindings = of_records(Filter(ids=tuple(ids), statuses=None))
    return _records(connection, f"SELECT data FROM records WHERE {sql}", bindings)


def _records(connection: apsw.Connection, sql: str, bindings: Sequence[str | float]) -> Iterator[Record]:
    rows: Sequence[Any] = connection.execute(sql, bindings).fetchall()
    return (record_of(data) for (data,) in rows)
