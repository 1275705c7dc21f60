"""One SQLite file: who may write now, who reads, and what SQLite's errors mean to us.

Always `apsw`, never the standard library's module: closing a file with one drops the locks the other holds.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, ReadOnlyStore

__all__ = ["Database", "has_table", "refuse_network_file_system", "translated"]

APPLICATION_ID: Final = 0x534D454D  # "SMEM", shown by file(1)
LOCK_SECONDS: Final = 5.0
IDLE_READERS: Final = 8
_HEADER: Final = b"SQLite format 3\x00"
_NETWORK: Final = ("nfs", "cifs", "smb", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "afs", "ceph")
_abandoned: list[apsw.Connection] = []  # of a parent process: to close them here could harm its locks


class Database:
    """A file (or memory) with one writer at a time and as many readers as are asked for.

    Args:
        path: The file; None keeps everything in memory.
        schema: Statements that make an empty file ours.
        version: What `PRAGMA user_version` says of a file of this schema.
        lock_seconds: How long to wait for another writer, of this process or another.
        read_only: Open it for reading even where writing would be possible.

    Raises:
        CorruptStore: it is no SQLite file, or another program's.
        BackendUnavailable: it cannot be opened, or a newer release wrote it.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        schema: Sequence[str] = (),
        version: int = 1,
        lock_seconds: float = LOCK_SECONDS,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._schema, self._version, self._lock_seconds = tuple(schema), version, lock_seconds
        self._immutable = self._closed = False
        self._reset()
        if path is not None:
            _prepare_place(path, read_only=read_only)
            _live.add(self)
        with self._translating():
            self._become_ours()

    @property
    def where(self) -> str:
        return "memory" if self.path is None else str(self.path)

    @contextlib.contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[apsw.Connection]:
        """The writer's connection inside a transaction that ends with the block.

        A block inside a block of the same thread joins its transaction.

        Args:
            durable: Wait for the disk. False may lose the last such transactions in a power cut.

        Raises:
            ReadOnlyStore: the file cannot be written.
            BackendUnavailable: another writer held it for too long.
        """
        if self.read_only:
            raise ReadOnlyStore(
                f"{self.where} can be read but not written; check its owner and mode, and those of its "
                "directory, or point MEMORY_PATH at another",
                path=self.where,
            )
        self._notice_fork()
        self._take_lock()
        try:
            with self._translating():
                yield from self._transaction(durable=durable)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A connection that sees one state of the file throughout the block.

        Inside `writing` it is the writer's, so that a transaction sees its own changes.
        """
        self._notice_fork()
        with self._translating():
            if self.path is None or self.is_writing:
                with self._lock:
                    yield self._writer_connection()
            else:
                yield from self._snapshot()

    def scrub(self, *, seconds: float | None = None) -> str:
        """Rewrite the file and empty its log, so that nothing is left in them but what is stored.

        SQLite overwrites what it deletes (`secure_delete`), but not the copies that stay in the unused
        middle of a page when its rows move to another one: only a file that is written anew has none.
        That takes as much memory, and room in the log, as the file is large; others cannot write meanwhile.

        Args:
            seconds: How long to wait for others that read or write; None: as long as for a lock.

        Returns:
            What was in the way, as a sentence; "" when it is done.
        """
        if self.path is None:
            return ""
        self._notice_fork()
        self._take_lock()
        try:
            connection = self._writer_connection()
            connection.set_busy_timeout(int((self._lock_seconds if seconds is None else seconds) * 1000))
            # The first emptying takes the zeros over what was deleted into the file, before it gets shorter.
            if not self._empty_log(connection):
                return self._in_the_way()
            connection.execute("VACUUM")
            return "" if self._empty_log(connection) else self._in_the_way()
        except apsw.BusyError:
            return self._in_the_way()
        except apsw.Error as error:
            return str(translated(error, where=self.where))
        finally:
            if self._writer is not None:
                self._writer.set_busy_timeout(int(self._lock_seconds * 1000))
            self._lock.release()

    def _empty_log(self, connection: apsw.Connection) -> bool:
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not busy

    def _in_the_way(self) -> str:
        return f"another connection reads or writes {self.where}, and may need what its log still holds"

    @property
    def is_writing(self) -> bool:
        """Whether this thread is inside a `writing` block, so that it reads what may still be undone."""
        return self._depth_of_this_thread() > 0

    def close(self) -> None:
        """Let go of the file. Closing twice is fine."""
        self._notice_fork()
        with self._lock:
            self._closed = True
            if self.path is not None and self._writer is not None and not self.read_only:
                with contextlib.suppress(
                    apsw.Error
                ):  # a reader elsewhere may be in the way; the next will do
                    self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._close_connections()
        _live.discard(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0
        self._writer: apsw.Connection | None = None
        self._waits_for_disk = True
        self._idle: list[apsw.Connection] = []

    def _notice_fork(self) -> None:
        if self._pid == os.getpid() or self.path is None:
            return
        _abandoned.extend(c for c in (self._writer, *self._idle) if c is not None)
        self._reset()

    def _take_lock(self) -> None:
        if not self._lock.acquire(timeout=self._lock_seconds * 2):
            raise BackendUnavailable(
                f"waited {self._lock_seconds * 2:g} s for other threads that write {self.where}; try again",
                path=self.where,
            )

    def _depth_of_this_thread(self) -> int:
        return self._depth if self._owner == threading.get_ident() else 0

    def _transaction(self, *, durable: bool) -> Iterator[apsw.Connection]:
        connection = self._writer_connection()
        if self._depth_of_this_thread():
            yield connection
            return
        if self._waits_for_disk != durable:
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._waits_for_disk = durable
        connection.execute("BEGIN IMMEDIATE")
        self._owner, self._depth = threading.get_ident(), 1
        try:
            yield connection
            connection.execute("COMMIT")
        finally:
            self._owner, self._depth = None, 0
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _snapshot(self) -> Iterator[apsw.Connection]:
        connection = self._take_reader()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give_back(connection)

    def _take_reader(self) -> apsw.Connection:
        with self._lock_for_readers():
            if self._idle:
                return self._idle.pop()
        connection = self._open()
        connection.execute("PRAGMA query_only=1")
        return connection

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock_for_readers():
            if not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()

    def _lock_for_readers(self) -> threading.Lock:
        # Never the writer's lock: a reader must not wait for a writer that waits for another process.
        return _readers

    def _writer_connection(self) -> apsw.Connection:
        if self._writer is None:
            self._writer, self._waits_for_disk = self._open(), True
        return self._writer

    def _close_connections(self) -> None:
        with self._lock_for_readers():
            idle, self._idle = self._idle, []
        for connection in (self._writer, *idle):
            if connection is not None:
                connection.close()
        self._writer = None

    def _open(self) -> apsw.Connection:
        if self._closed:
            raise BackendUnavailable(f"{self.where} was closed; open a new backend", path=self.where)
        if self.path is None:
            return apsw.Connection(":memory:")
        flags = apsw.SQLITE_OPEN_URI | (
            apsw.SQLITE_OPEN_READONLY
            if self.read_only
            else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        address = self.path.absolute().as_uri() + ("?immutable=1" if self._immutable else "")
        connection = apsw.Connection(address, flags=flags)
        connection.set_busy_timeout(int(self._lock_seconds * 1000))
        # The last connection to close would delete the log that a forked process may still be using.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        # One at a time: `execute` stops at the first row, and a pragma may answer with one.
        for name, value in (("synchronous", "FULL"), ("secure_delete", 1), ("temp_store", "MEMORY")):
            connection.pragma(name, value)
        return connection

    def _become_ours(self) -> None:
        found = self._first_look()
        if found > self._version:
            raise BackendUnavailable(
                f"{self.where} has format {found}, written by a newer release; this one reads up to "
                f"{self._version}: upgrade supervisor-memory",
                path=self.where,
                found=found,
            )
        if self.read_only or found == self._version:
            return
        if self.path is not None:
            self._use_write_ahead_log()
        with self.writing() as connection:
            if connection.pragma("user_version") == 0:
                for statement in self._schema:
                    connection.execute(statement)
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", self._version)

    def _first_look(self) -> int:
        """The format of the file; settles on the way whether it can be written."""
        try:
            connection = self._writer_connection()
            found, tables = _look_at(connection)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if self.path is None or not self.path.exists():
                raise
            # Without a writable directory SQLite cannot make the index of its log; nobody else can either.
            self._writer, self.read_only, self._immutable = None, True, True
            self._refuse_unread_log()
            connection = self._writer_connection()
            found, tables = _look_at(connection)
        if self.path is not None and connection.readonly("main"):
            self.read_only = True
        if found == 0 and tables:
            raise CorruptStore(
                f"{self.where} is a database of another program (it holds the table {tables[0]!r}); "
                "it is left as it is: point MEMORY_PATH at another directory",
                path=self.where,
            )
        return found

    def _refuse_unread_log(self) -> None:
        assert self.path is not None
        log = self.path.with_name(self.path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise BackendUnavailable(
                f"{log} holds changes that can only be read where its directory is writable; "
                "open the store there once, then again here",
                path=self.where,
            )

    def _use_write_ahead_log(self) -> None:
        # Changing the mode answers "locked" at once, whatever the busy timeout says.
        give_up = time.monotonic() + self._lock_seconds
        while True:
            try:
                if self._writer_connection().pragma("journal_mode") != "wal":
                    self._writer_connection().pragma("journal_mode", "wal")
                return
            except (apsw.BusyError, apsw.LockedError):
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise translated(error, where=self.where, waited=self._lock_seconds) from error

    def _before_fork(self) -> None:
        """Hand a child nothing open: SQLite would believe that the child holds its parent's locks."""
        if self._lock.acquire(timeout=self._lock_seconds) and not self._depth_of_this_thread():
            self._close_connections()

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._notice_fork()
        else:
            with contextlib.suppress(RuntimeError):  # it was not to be had before
                self._lock.release()


_live: "weakref.WeakSet[Database]" = weakref.WeakSet()
_readers = threading.Lock()


def _before_fork() -> None:
    for database in list(_live):
        database._before_fork()
    _readers.acquire()


def _after_fork() -> None:
    _readers.release()
    for database in list(_live):
        database._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def translated(error: apsw.Error, *, where: str, waited: float = LOCK_SECONDS) -> BackendError:
    """What an error of SQLite means to a caller; to be raised `from` it."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return BackendUnavailable(
                f"{where} was locked by another process for more than {waited:g} s; try again, or look for "
                "a process that holds it",
                path=where,
            )
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return CorruptStore(
                f"{where} is damaged or no SQLite file ({error}); it is left as it is: restore a backup, or "
                "move it away to start anew",
                path=where,
            )
        case apsw.SQLError() if "malformed JSON" in str(error):
            return CorruptStore(
                f"a record in {where} cannot be read ({error}); it is left as it is: restore a backup",
                path=where,
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return ReadOnlyStore(
                f"{where} can be read but not written ({error}); check its owner and mode", path=where
            )
        case apsw.CantOpenError():
            return BackendUnavailable(
                f"{where} cannot be opened ({error}); check that its directory exists and is writable",
                path=where,
            )
        case apsw.FullError():
            return BackendError(f"no room left for {where}; nothing was written: free some space", path=where)
        case _:
            return BackendError(f"{where}: {type(error).__name__}: {error}", path=where)


def refuse_network_file_system(directory: Path, *, mounts: str | None = None) -> None:
    """Raise where `directory` is on a file system whose locks cannot be trusted.

    Args:
        mounts: The text of /proc/mounts; None reads it. Where there is none, everything passes.

    Raises:
        BackendUnavailable: it is on NFS, SMB or the like.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
    place = directory.absolute().resolve()
    best, kind = Path("/"), ""
    for line in mounts.splitlines():
        _, point, found, *_ = [*line.split(), "", "", ""]
        mounted = Path(point.replace("\\040", " ")) if point else best
        if place.is_relative_to(mounted) and len(mounted.parts) >= len(best.parts):
            best, kind = mounted, found
    if kind.startswith(_NETWORK):
        raise BackendUnavailable(
            f"{directory} is on a network file system ({kind}), where locks fail and files get damaged; "
            "point MEMORY_PATH at a local directory, or use a server such as Qdrant",
            path=str(directory),
            kind=kind,
        )


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Whether the file has a table. (`Connection.table_exists` may answer from before another's commit.)"""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def _prepare_place(path: Path, *, read_only: bool) -> None:
    refuse_network_file_system(path.parent)
    try:
        if not read_only:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("rb") as file:
            start = file.read(len(_HEADER))
    except FileNotFoundError:
        if not read_only:  # SQLite gives the files beside it the same mode
            with contextlib.suppress(OSError):
                path.touch(mode=0o600)
        return
    except OSError as error:
        raise BackendUnavailable(f"{path} cannot be opened: {error}", path=str(path)) from error
    if start not in (b"", _HEADER):
        raise CorruptStore(
            f"{path} is no SQLite file (it begins with {start[:8]!r}); it is left as it is: move it away, or "
            "point MEMORY_PATH at another directory",
            path=str(path),
        )


def _look_at(connection: apsw.Connection) -> tuple[int, list[str]]:
    version = connection.pragma("user_version")
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema LIMIT 1")]
    return int(version), tables
