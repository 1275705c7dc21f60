"""The queue's tables: waiting and dead events, and the workers' leases on them.

    waiting → leased, in a batch → (read: gone)
              leased → waiting      it failed, or its worker died; the batch keeps a model's answer
    waiting → dead                  it failed three times; a person looks at it

A file of its own, `queue.db`, written without waiting for the disk: an acknowledged event survives a killed
process, not a power cut. Leases and gates are in the file too, so that they hold between processes.
"""

import hashlib
import json
import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import apsw

from supervisor_memory.disk.database import Database
from supervisor_memory.model.records import new_id
from supervisor_memory.upkeep.queue.event import Event

QUEUE_FILE_NAME: Final = "queue.db"
BATCH: Final = 15
"""The most events that are read together."""
TRIES: Final = 3
LEASE_SECONDS: Final = 240.0
"""The time a worker has a batch for itself; longer than a worker may run."""
State: TypeAlias = Literal["waiting", "dead"]

_LOCK_SECONDS: Final = 1.0
_DONE_SECONDS: Final = 30 * 86_400.0
"""The time that ids of read events are kept: until then a repeated turn does not add them again."""
_SCHEMA: Final = (
    # AUTOINCREMENT: the number of an event that went is never another's.
    """CREATE TABLE events(
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL, task TEXT,
        created_at REAL NOT NULL, state TEXT NOT NULL DEFAULT 'waiting', attempts INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '', batch TEXT, hash TEXT NOT NULL, body TEXT NOT NULL)""",
    "CREATE INDEX events_by_user ON events(user_id, state, seq)",
    # `token` is another one for each worker that takes it. `reply` is what a model made of it.
    """CREATE TABLE batches(
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL, token TEXT NOT NULL, holder TEXT NOT NULL,
        leased_until REAL NOT NULL, reply TEXT) WITHOUT ROWID""",
    "CREATE INDEX batches_by_user ON batches(user_id)",
    "CREATE TABLE gates(user_id TEXT PRIMARY KEY, passed_at REAL NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE done(id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE unclean(at REAL NOT NULL)",  # a row: somebody was erased, and the file may hold traces
)
_FREE: Final = """state = 'waiting' AND (batch IS NULL OR NOT EXISTS (
    SELECT 1 FROM batches WHERE batches.id = events.batch AND leased_until > ?1 AND leased_until <= ?2))"""
"""The SQL condition that no worker has an event. A lease that ends too late was given by a clock that was
set back since, and does not count."""
_THIS_PROCESS: Final = new_id()


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions for asking a model in the background.

    Args:
        least: The least number of waiting events of the user.
        cooldown: The least number of seconds since the last time.
    """

    least: int
    cooldown: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event in the queue. `reason` is the code of its last failure."""

    seq: int
    event: Event
    state: State
    attempts: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of the same user and task, leased to this worker.

    `reply` is a model's answer for them that an earlier worker saved before it died.
    """

    id: str
    token: str
    user_id: str
    waiting: tuple[Waiting, ...]
    reply: str | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(each.event for each in self.waiting)


class QueueFile:
    """The queue in a directory or, with None, in memory."""

    def __init__(self, directory: Path | None) -> None:
        path = None if directory is None else Path(directory) / QUEUE_FILE_NAME
        self.database = Database(path, schema=_SCHEMA, lock_seconds=_LOCK_SECONDS)

    def close(self) -> None:
        self.database.close()

    # --- coming

    def add(self, events: Iterable[Event]) -> int:
        """Add events; returns how many are new. Events that wait or were read are not added again."""
        rows = [
            (e.id, e.scope.user_id, e.scope.task, e.created_at, e.content_hash, e.to_json()) for e in events
        ]
        insert = """INSERT OR IGNORE INTO events(id, user_id, task, created_at, hash, body)
            SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS (SELECT 1 FROM done WHERE id = ?1)"""
        added = 0
        with self.database.writing(durable=False) as connection:
            for row in rows:
                connection.execute(insert, row)
                added += connection.changes()
        return added

    def may_pass(self, user_id: str, gate: Gate, *, now: float) -> bool:
        """Whether starting a worker may be worthwhile; it checks again inside its own transaction."""
        with self.database.reading() as connection:
            return _Leasing(connection, user_id, now).passes(gate)

    # --- being read

    def lease(
        self,
        user_id: str,
        *,
        now: float,
        gate: Gate | None = None,
        is_forced: bool = False,
        before: float | None = None,
        tried: Collection[int] = (),
    ) -> Batch | None:
        """Lease the oldest free events of a user; None if there are none, or the gate does not let them pass.

        Args:
            gate: The conditions for asking a model; the same events do not pass twice in a row. Passing is
                recorded before this returns, so before the model is asked. None: no model is asked.
            is_forced: Ignore the gate; passing is recorded all the same.
            before: Lease only if the oldest event was observed before this time; None: at any time.
            tried: The numbers of events to leave out.
        """
        with self.database.writing(durable=False) as connection:
            taking = _Leasing(connection, user_id, now, json.dumps(list(tried)))
            taking.bury_the_dead()
            first = taking.first()
            if first is None or (before is not None and first.event.created_at >= before):
                return None
            batch_id, reply = taking.batch_of(first)
            found = taking.like(first) if batch_id is None else taking.of_batch(batch_id)
            if gate is not None and reply is None:
                digest = "" if batch_id else _digest(found)
                if not is_forced and not taking.passes(gate, digest):
                    return None
                taking.note_passing(digest)
            return taking.taken(batch_id or new_id(), found, reply)

    def keep_reply(self, batch: Batch, reply: str) -> bool:
        """Save a model's answer for a batch before it is used. False: another worker has the batch."""
        change = "UPDATE batches SET reply = ? WHERE id = ? AND token = ? RETURNING id"
        with self.database.writing(durable=False) as connection:
            return bool(connection.execute(change, (reply, batch.id, batch.token)).fetchall())

    def is_held(self, batch: Batch) -> bool:
        """Whether a batch is still this worker's, and its user was not erased."""
        with self.database.reading() as connection:
            look = "SELECT 1 FROM batches WHERE id = ? AND token = ?"
            return connection.execute(look, (batch.id, batch.token)).fetchone() is not None

    def finish(self, batch: Batch, *, now: float) -> None:
        """Remove the events of a batch that was read, and remember their ids."""
        with self.database.writing(durable=False) as connection:
            if not _ended(connection, batch):
                return
            ids = json.dumps([each.event.id for each in batch.waiting])
            connection.execute("INSERT OR IGNORE INTO done SELECT value, ? FROM json_each(?)", (now, ids))
            connection.execute("DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))", (ids,))
            connection.execute("DELETE FROM done WHERE at < ?", (now - _DONE_SECONDS,))

    def give_back(self, batch: Batch, reason: str, *, is_its_own: bool) -> Sequence[Waiting]:
        """Let the events of a failed batch wait again; returns the ones that are dead now.

        Args:
            reason: A code.
            is_its_own: Whether the failure counts as a try. It does not if the store is down; then the
                batch stays together, with its model's answer.
        """
        with self.database.writing(durable=False) as connection:
            if not is_its_own:
                end = "UPDATE batches SET leased_until = 0 WHERE id = ? AND token = ?"
                connection.execute(end, (batch.id, batch.token))
                return ()
            if not _ended(connection, batch):
                return ()
            ids = json.dumps([each.event.id for each in batch.waiting])
            connection.execute(
                """UPDATE events SET batch = NULL, attempts = attempts + 1, reason = ?,
                    state = iif(attempts + 1 >= ?, 'dead', 'waiting')
                    WHERE id IN (SELECT value FROM json_each(?))""",
                (reason, TRIES, ids),
            )
            # So that the gate does not refuse the same events as "the same as last time".
            connection.execute("UPDATE gates SET hash = '' WHERE user_id = ?", (batch.user_id,))
            dead = "state = 'dead' AND id IN (SELECT value FROM json_each(?)) ORDER BY seq"
            return _selected(connection, dead, ids)

    # --- looking

    def users(self) -> Sequence[str]:
        """The users with waiting events, the longest waiting first."""
        order = "SELECT user_id FROM events WHERE state = 'waiting' GROUP BY user_id ORDER BY min(seq)"
        with self.database.reading() as connection:
            return [str(row[0]) for row in connection.execute(order)]

    def listed(self, state: State, *, user_id: str | None = None, limit: int = 100) -> Sequence[Waiting]:
        """Events in a state, oldest first."""
        whose = "" if user_id is None else "AND user_id = ?2 "
        with self.database.reading() as connection:
            bindings = (state,) if user_id is None else (state, user_id)
            return _selected(connection, f"state = ?1 {whose}ORDER BY seq LIMIT {int(limit)}", *bindings)

    def counts(self) -> Mapping[str, int]:
        """The numbers of events: "waiting", including leased ones, and "dead"."""
        with self.database.reading() as connection:
            rows: Any = connection.execute("SELECT state, count(*) FROM events GROUP BY state").fetchall()
        return {"waiting": 0, "dead": 0, **{str(state): int(count) for state, count in rows}}

    def oldest(self, user_id: str | None = None) -> float | None:
        """The time of the oldest waiting event, of a user or of all; None if none waits."""
        look = "SELECT min(created_at) FROM events WHERE state = 'waiting' AND (?1 IS NULL OR user_id = ?1)"
        with self.database.reading() as connection:
            found = connection.execute(look, (user_id,)).get
        return None if found is None else float(found)

    def retry(self, ids: Sequence[str] | None = None) -> int:
        """Let dead events wait again, these or all; returns how many."""
        chosen = "" if ids is None else "AND id IN (SELECT value FROM json_each(?1))"
        again = (
            f"UPDATE events SET state = 'waiting', attempts = 0 WHERE state = 'dead' {chosen} RETURNING seq"
        )
        bindings = () if ids is None else (json.dumps(list(ids)),)
        with self.database.writing() as connection:
            return len(connection.execute(again, bindings).fetchall())

    # --- going

    def count_of(self, user_id: str) -> int:
        """The number of a user's events, in any state."""
        with self.database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM events WHERE user_id = ?", (user_id,)).get)

    def forget(self, user_id: str, *, at: float, session_id: str | None = None) -> int:
        """Remove the events of a user, or of a session; returns how many. A repeated turn adds none again.

        The file may hold traces until `scrub`.
        """
        with self.database.writing() as connection:
            theirs = "user_id = ?1 AND ?2 IN (body ->> '$.scope.session_id', '')"
            done = f"INSERT OR IGNORE INTO done SELECT id, ?3 FROM events WHERE {theirs}"
            connection.execute(done, (user_id, session_id or "", at))
            remove = f"DELETE FROM events WHERE {theirs} RETURNING seq"
            gone = connection.execute(remove, (user_id, session_id or "")).fetchall()
            for table in ("batches", "gates"):
                connection.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))
            connection.execute("INSERT INTO unclean VALUES(?)", (at,))
        return len(gone)

    def scrub(self) -> str:
        """Remove all bytes of removed events from the file; returns why that failed, "" if it worked."""
        if in_the_way := self.database.scrub():
            return in_the_way
        with self.database.writing() as connection:
            connection.execute("DELETE FROM unclean")
        return ""

    def is_clean(self) -> bool:
        """Whether no erasure was cut off before `scrub`."""
        with self.database.reading() as connection:
            return connection.execute("SELECT 1 FROM unclean").fetchone() is None


@dataclass(frozen=True, slots=True)
class _Leasing:
    """The steps of leasing a user's events, inside a transaction. `tried`: numbers to leave out, as JSON."""

    connection: apsw.Connection
    user_id: str
    now: float
    tried: str = "[]"

    def bury_the_dead(self) -> None:
        """End the leases of processes of this machine that have ended."""
        rows: Any = self._rows("SELECT id, holder FROM batches WHERE user_id = ?", self.user_id)
        for batch_id, holder in rows:
            if _is_gone(str(holder)):
                self.connection.execute("UPDATE batches SET leased_until = 0 WHERE id = ?", (batch_id,))

    def first(self) -> Waiting | None:
        """The oldest free event."""
        found = self._free("TRUE", (), limit=1)
        return found[0] if found else None

    def batch_of(self, first: Waiting) -> tuple[str | None, str | None]:
        """The id and the saved answer of the batch that an ended worker left an event in; None without."""
        look = "SELECT b.id, b.reply FROM events e JOIN batches b ON b.id = e.batch WHERE e.seq = ?"
        rows = self._rows(look, first.seq)
        return (str(rows[0][0]), rows[0][1]) if rows else (None, None)

    def of_batch(self, batch_id: str) -> Sequence[Waiting]:
        return _selected(self.connection, "batch = ? AND state = 'waiting' ORDER BY seq", batch_id)

    def like(self, first: Waiting) -> Sequence[Waiting]:
        """The next free events with the same task and number of tries.

        Failed events are tried again in smaller batches, so that one bad event does not fail the others.
        """
        limit = max(BATCH >> (2 * first.attempts), 1)
        alike = (first.event.scope.task, first.attempts)
        return self._free("task IS ?5 AND attempts = ?6", alike, limit=limit)

    def passes(self, gate: Gate, digest: str = "") -> bool:
        """Whether all conditions of a gate hold.

        Args:
            digest: The digest of the events to read; "": they may be the same as last time.
        """
        rows = self._rows("SELECT passed_at, hash FROM gates WHERE user_id = ?", self.user_id)
        for passed_at, last in rows:
            if 0 <= self.now - float(passed_at) < gate.cooldown or (digest and digest == last):
                return False
        free = f"SELECT count(*) FROM events WHERE {_FREE} AND user_id = ?3"
        return int(self._rows(free, *self._times, self.user_id)[0][0]) >= gate.least

    def note_passing(self, digest: str) -> None:
        self._rows("INSERT OR REPLACE INTO gates VALUES(?, ?, ?)", self.user_id, self.now, digest)

    def taken(self, batch_id: str, found: Sequence[Waiting], reply: str | None) -> Batch:
        token = new_id()
        lease = (batch_id, self.user_id, token, _holder(), self.now + LEASE_SECONDS, reply)
        self._rows("INSERT OR REPLACE INTO batches VALUES(?, ?, ?, ?, ?, ?)", *lease)
        numbers = json.dumps([each.seq for each in found])
        take = "UPDATE events SET batch = ? WHERE seq IN (SELECT value FROM json_each(?))"
        self._rows(take, batch_id, numbers)
        return Batch(batch_id, token, self.user_id, tuple(found), reply)

    @property
    def _times(self) -> tuple[float, float]:
        return self.now, self.now + LEASE_SECONDS

    def _free(self, condition: str, bindings: tuple[Any, ...], *, limit: int) -> Sequence[Waiting]:
        where = f"""{_FREE} AND user_id = ?3 AND seq NOT IN (SELECT value FROM json_each(?4)) AND {condition}
            ORDER BY seq LIMIT {limit}"""
        return _selected(self.connection, where, *self._times, self.user_id, self.tried, *bindings)

    def _rows(self, sql: str, *bindings: Any) -> Any:
        return self.connection.execute(sql, bindings).fetchall()


def _ended(connection: apsw.Connection, batch: Batch) -> bool:
    """Remove a batch. False: another worker has it by now, or it is gone."""
    end = "DELETE FROM batches WHERE id = ? AND token = ? RETURNING id"
    return bool(connection.execute(end, (batch.id, batch.token)).fetchall())


def _selected(connection: apsw.Connection, condition: str, *bindings: Any) -> Sequence[Waiting]:
    select = f"SELECT seq, body, state, attempts, reason FROM events WHERE {condition}"
    rows: Any = connection.execute(select, bindings).fetchall()
    return [
        Waiting(int(seq), Event.from_json(body), state, int(attempts), str(reason))
        for seq, body, state, attempts, reason in rows
    ]


def _digest(found: Sequence[Waiting]) -> str:
    return hashlib.sha256("\n".join(each.event.content_hash for each in found).encode()).hexdigest()


def _holder() -> str:
    return json.dumps([socket.gethostname(), os.getpid(), _THIS_PROCESS])


def _is_gone(holder: str) -> bool:
    """Whether a lease's process has surely ended; unknown, so False, for other machines."""
    host, pid, process = json.loads(holder)
    if host != socket.gethostname() or os.name != "posix":
        return False
    if pid == os.getpid():
        return bool(process != _THIS_PROCESS)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
