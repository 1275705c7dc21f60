"""A SQLite file shared by threads and processes: its writer, its readers, forks, and SQLite's errors as ours.

Always `apsw`, never the standard library's module: closing a file with one drops the locks the other holds.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

import apsw

from supervisor_memory.disk.files import log_of, prepare
from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, ReadOnlyStore

File: TypeAlias = tuple[int, int]
"""Device and inode: the same for a file through every write, until another file replaces it."""


def file_at(path: str) -> File | None:
    """The file that is there now; None: there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


_known: "weakref.WeakSet[Database]" = weakref.WeakSet()
_reading: Final = threading.RLock()
"""Held while a read begins or ends. Apart from the lock of writers, so that no reader waits for a writer."""
_readers: Final = threading.Condition(_reading)

_READERS_SECONDS: Final = 1.0
_forks: list[int] = []


def _before_fork() -> None:
    opened = list(_known)
    for each in opened:
        each.before_fork()
    _readers.acquire()
    _forks.append(threading.get_ident())
    _readers.wait_for(lambda: not any(each.is_read for each in opened), timeout=_READERS_SECONDS)
    for each in opened:
        each.let_go()


def _after_fork() -> None:
    _forks.clear()
    _readers.notify_all()
    _readers.release()
    for each in list(_known):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _translated(error: apsw.Error | UnicodeDecodeError, where: str, waited: float) -> BackendError:
    """The exception of ours for an error of SQLite; to be raised `from` the error."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return BackendUnavailable(
                f"{where} was locked by another process for more than {waited:g} s; try again, or look for "
                "a process that holds it",
                path=where,
            )
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return CorruptStore(
                f"{where} is damaged or no SQLite file ({error}); it is left as it is: run "
                "`supervisor-memory repair`, or restore a backup",
                path=where,
            )
        case apsw.SQLError() if "malformed JSON" in str(error):
            told = f"a record in {where} cannot be read ({error}); it is left as it is: restore a backup"
            return CorruptStore(told, path=where)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            told = f"{where} can be read but not written ({error}); check its owner and mode"
            return ReadOnlyStore(told, path=where)
        case apsw.CantOpenError():
            told = f"{where} cannot be opened ({error}); check that its directory exists and is writable"
            return BackendUnavailable(told, path=where)
        case apsw.FullError():
            return BackendError(f"no room left for {where}; nothing was saved: free some space", path=where)
        case apsw.IOError():
            told = (
                f"the disk refused {where} ({error}); nothing was saved: look at its space, quota and health"
            )
            return BackendError(told, path=where)
        case UnicodeDecodeError():
            return CorruptStore(
                f"a text in {where} is damaged ({error.reason}); it is left as it is: run "
                "`supervisor-memory audit verify --deep`, then `supervisor-memory repair`",
                path=where,
            )
        case _:
            return BackendError(f"{where}: {type(error).__name__}: {error}", path=where)


Step: TypeAlias = Callable[[apsw.Connection], object]
"""Takes a file from one format to the next, inside a transaction."""

APPLICATION_ID: Final = 0x534D454D  # "SMEM", shown by file(1)
LOCK_SECONDS: Final = 5.0
IDLE_READERS: Final = 8
_abandoned: list[apsw.Connection] = []  # of a parent process: to close them here could harm its locks


class Opened(apsw.Connection):
    """A connection with its open files: the database (None: in memory), and the log after the first write."""

    file: File | None = None
    log: File | None = None
    _kept_at: int | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Else each statement about a table with an index of some rows is planned anew for each other value,
        # which takes four times as long as what it does. What such an index needs stands in the statements.
        self.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    def kept(self) -> dict[Hashable, Any]:
        """A cache of what was read, emptied when another connection has committed.

        Only for connections that write nothing themselves. Outside a transaction it may be asked, not added
        to: what is read then may be newer.
        """
        version = int(self.execute("PRAGMA data_version").get)
        if version != self._kept_at:
            self._kept_at, self._kept = version, dict[Hashable, Any]()
        return self._kept


class Database:
    """A file, or a database in memory, with one writer at a time and any number of readers.

    Args:
        path: The file; None keeps everything in memory.
        schema: Statements that make an empty file ours.
        steps: The first takes a file of format 1 to format 2, and so on. A file of an earlier format is
            taken through those it lacks when it is opened, all of them in one transaction.
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
        steps: Sequence[Step] = (),
        lock_seconds: float = LOCK_SECONDS,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._schema, self._steps, self._lock_seconds = tuple(schema), tuple(steps), lock_seconds
        self._immutable = self._closed = False
        self._is_becoming_ours = self._log_is_lost = self._is_held = False
        self._file: File | None = None
        self._address = "" if path is None else str(path)
        self._log_address = "" if path is None else str(log_of(path))
        self._when_replaced: list[Callable[[apsw.Connection], None]] = []
        self._reset()
        if path is not None:
            prepare(path, read_only=read_only)
            _known.add(self)
        with self._translating():
            self._become_ours()

    @property
    def format(self) -> int:
        """The number in `PRAGMA user_version` of a file with this schema."""
        return len(self._steps) + 1

    def when_replaced(self, read_anew: Callable[[apsw.Connection], None]) -> None:
        """Call this when another file, such as a restored backup, has taken the place of ours."""
        self._when_replaced.append(read_anew)

    def make(self, tables: Sequence[str], *, unless: str) -> None:
        """Make another package's tables in this file, unless it has the latest of them already.

        Args:
            tables: Statements that give no rows: the first one that does would be the last one that is run.
        """
        with self.reading() as connection:
            is_made = has(connection, unless)
        if not is_made and not self.read_only:
            with self.writing() as connection:
                connection.execute(";".join(tables))

    @property
    def where(self) -> str:
        return "memory" if self.path is None else str(self.path)

    def writing(self, *, durable: bool = True) -> contextlib.AbstractContextManager[Opened]:
        """The writer's connection inside a transaction that ends with the block.

        A block inside a block of the same thread joins its transaction.

        Args:
            durable: Wait for the disk. False may lose the last such transactions in a power cut.

        Raises:
            ReadOnlyStore: the file cannot be written.
            BackendUnavailable: another writer held it for too long, or the file is not there any more, so
                that what was written would be lost.
        """
        if self._writer is not None and self.is_writing:
            return _JoinedTransaction(self, self._writer)
        return self._writing(durable=durable)

    @contextlib.contextmanager
    def _writing(self, *, durable: bool) -> Iterator[Opened]:
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

    def reading(self) -> contextlib.AbstractContextManager[Opened]:
        """A connection that sees one state of the file throughout the block.

        Inside `writing` it is the writer's, so that a transaction sees its own changes.

        Raises:
            BackendUnavailable: the file is not there any more.
        """
        return self._looking(begins=True)

    def asking(self) -> contextlib.AbstractContextManager[Opened]:
        """As `reading`, but without a transaction, for a single statement that is read to its end."""
        return self._looking(begins=False)

    def _looking(self, *, begins: bool) -> contextlib.AbstractContextManager[Opened]:
        if self._writer is not None and self.is_writing:
            return _JoinedTransaction(self, self._writer)
        self._notice_fork()
        return self._reading_as_writer() if self.path is None else _Snapshot(self, begins=begins)

    @contextlib.contextmanager
    def _reading_as_writer(self) -> Iterator[Opened]:
        with self._translating(), self._lock:
            yield self._writer_connection()

    def scrub(self, *, seconds: float | None = None) -> str:
        """Rewrite the file and empty its log, so that neither holds a trace of deleted rows.

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
            connection = self._current_writer()
            connection.set_busy_timeout(int((self._lock_seconds if seconds is None else seconds) * 1000))
            # The first emptying takes the zeros over what was deleted into the file, before it gets shorter.
            if not self._empty_log(connection):
                return self._in_the_way()
            connection.execute("VACUUM")
            return "" if self._empty_log(connection) else self._in_the_way()
        except apsw.BusyError:
            return self._in_the_way()
        except apsw.Error as error:
            return str(self.translated(error))
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
        return self._owner == threading.get_ident()

    def close(self) -> None:
        """Let go of the file. Closing twice is fine."""
        self._notice_fork()
        with self._lock:
            self._closed = True
            if self.path is not None and not self.read_only:
                # A reader's will do: what the log holds goes into the file, whoever wrote it.
                for connection in [each for each in (self._writer, *self._idle) if each is not None][:1]:
                    with contextlib.suppress(apsw.Error):  # one elsewhere may be in the way
                        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._close_connections()
        _known.discard(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._writer: Opened | None = None
        self._waits_for_disk = True
        self._idle: list[Opened] = []
        self._reading = 0

    def _notice_fork(self) -> None:
        if self._pid == os.getpid() or self.path is None:
            return
        _abandoned.extend(c for c in (self._writer, *self._idle) if c is not None)
        self._reset()

    def _take_lock(self) -> None:
        if not self._lock.acquire(timeout=self._lock_seconds * 2):
            waited = f"waited {self._lock_seconds * 2:g} s for other threads that write"
            raise BackendUnavailable(f"{waited} {self.where}; try again", path=self.where)

    def _transaction(self, *, durable: bool) -> Iterator[Opened]:
        connection = self._current_writer()
        if self._waits_for_disk != durable:
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._waits_for_disk = durable
        connection.execute("BEGIN IMMEDIATE")
        self._owner = threading.get_ident()
        try:
            self._check_before(connection)
            yield connection
            connection.execute("COMMIT")
            self._check_after(connection)
        finally:
            self._owner = None
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _current_writer(self) -> Opened:
        """The writer's connection, to the file that is at the place now."""
        if self._writer is not None and self.path is not None and self._writer.file != file_at(self._address):
            self._writer.close()
            self._writer = None
        return self._writer_connection()

    def _check_before(self, connection: Opened) -> None:
        if self.path is None or self._is_becoming_ours:
            return
        if connection.execute("PRAGMA user_version").get != self.format:
            raise self._other_format(int(connection.execute("PRAGMA user_version").get))
        log = file_at(self._log_address)
        if connection.log is None:
            connection.log = log
        elif connection.log != log:
            raise self._lost_log(connection)

    def _check_after(self, connection: Opened) -> None:
        """Raise when a commit went into a removed file or log, where no other connection finds it."""
        if self.path is None or self._is_becoming_ours:
            return
        if connection.file != file_at(self._address):
            raise BackendUnavailable(
                f"{self.where} was removed or replaced while it was written, so that nothing was saved; try "
                "again if a backup was restored, and stop all that use a store before its files are changed",
                path=self.where,
            )
        if connection.log != file_at(self._log_address):
            raise self._lost_log(connection)

    def _lost_log(self, connection: Opened) -> BackendUnavailable:
        """Copy the open log into the file, and refuse all use from now on; returns the error to raise.

        Whoever opens the file next makes a new log, unseen by connections to the old log.
        """
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with contextlib.suppress(apsw.Error):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        self._log_is_lost = True
        return self._without_log()

    def _without_log(self) -> BackendUnavailable:
        return BackendUnavailable(
            f"{self._log_address} was removed or replaced while it was in use, so nothing is saved any more; "
            f"what was committed before is in {self.where}: restart all processes that use it",
            path=self.where,
        )

    def take_reader(self) -> Opened:
        """A connection for one reader alone, until it is given back."""
        current = file_at(self._address)
        outdated: list[Opened] = []
        with _reading:
            if _forks:  # another thread forks
                _readers.wait_for(lambda: not _forks)
            self._reading += 1
            connection = self._idle.pop() if self._idle else None
            while connection is not None and connection.file != current:
                outdated.append(connection)
                connection = self._idle.pop() if self._idle else None
        try:
            for each in outdated:
                each.close()
            if connection is None:
                connection = self._open()
                connection.execute("PRAGMA query_only=1")
        except BaseException:
            self.give_back(None)
            raise
        return connection

    def give_back(self, connection: Opened | None) -> None:
        with _reading:
            self._reading -= 1
            if _forks:
                _readers.notify_all()
            if connection is not None and not self._closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                return
        if connection is not None:
            connection.close()

    def _writer_connection(self) -> Opened:
        if self._writer is None:
            self._writer, self._waits_for_disk = self._open(), True
        return self._writer

    def _close_connections(self) -> None:
        with _reading:
            idle, self._idle = self._idle, []
        for connection in (self._writer, *idle):
            if connection is not None:
                connection.close()
        self._writer = None

    def _open(self) -> Opened:
        if self._closed:
            raise BackendUnavailable(f"{self.where} was closed; open a new backend", path=self.where)
        if self._log_is_lost:
            raise self._without_log()
        if self.path is None:
            return Opened(":memory:")
        file = file_at(self._address)
        if file is None and self._file is not None:
            raise BackendUnavailable(
                f"{self.where} was removed while it was in use, so nothing is read or saved; put it back, or "
                "restart to begin with an empty store",
                path=self.where,
            )
        # Never with CREATE: `prepare` has made it, and a file that was removed shall not come back empty.
        access = apsw.SQLITE_OPEN_READONLY if self.read_only else apsw.SQLITE_OPEN_READWRITE
        address = self.path.absolute().as_uri() + ("?immutable=1" if self._immutable else "")
        connection = Opened(address, flags=apsw.SQLITE_OPEN_URI | access)
        connection.file = file
        connection.set_busy_timeout(int(self._lock_seconds * 1000))
        # The last connection to close would delete the log that a forked process may still be using.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        # One at a time: `execute` stops at the first row, and a pragma may answer with one.
        for name, value in (("synchronous", "FULL"), ("secure_delete", 1), ("temp_store", "MEMORY")):
            connection.pragma(name, value)
        if self._file not in {None, file}:
            self._take_replacement(connection)
        self._file = file
        return connection

    def _take_replacement(self, connection: Opened) -> None:
        try:
            if (found := int(connection.execute("PRAGMA user_version").get)) != self.format:
                raise self._other_format(found)
            for read_anew in self._when_replaced:
                read_anew(connection)
        except BaseException:
            connection.close()
            raise

    def _become_ours(self) -> None:
        found = self._first_look()
        if found > self.format or (self.read_only and 0 < found < self.format):
            raise self._other_format(found)
        if self.read_only or found == self.format:
            # The first connection is kept for readers: opening another would read the whole schema again,
            # which takes most of the time until a store has answered; a writer may never be asked for.
            if self.path is not None and self._writer is not None:
                self._writer.execute("PRAGMA query_only=1")
                self._idle.append(self._writer)
                self._writer = None
            return
        if self.path is not None:
            self._use_write_ahead_log()
        self._is_becoming_ours = True
        with self.writing() as connection:
            if (found := int(connection.pragma("user_version"))) == 0:
                connection.execute(";".join(self._schema))
                connection.pragma("application_id", APPLICATION_ID)
            else:  # another process may have been faster
                for step in self._steps[found - 1 :]:
                    step(connection)
            connection.pragma("user_version", self.format)
        self._is_becoming_ours = False

    def _other_format(self, found: int) -> BackendUnavailable:
        if found > self.format:
            whose = "a newer release wrote it: upgrade supervisor-memory, and restart this process"
        elif found:
            whose = "an earlier release wrote it: open it once where it can be written"
        else:
            whose = "it is no whole store: put the right file back"
        return BackendUnavailable(
            f"{self.where} has format {found}, and this release uses format {self.format}; {whose}",
            path=self.where,
            found=found,
        )

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
            if (log := log_of(self.path)).exists() and log.stat().st_size:
                raise BackendUnavailable(
                    f"{log} holds changes that can only be read where its directory is writable; "
                    "open the store there once, then again here",
                    path=self.where,
                ) from None
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
        except _SQLITES as error:
            raise self.translated(error) from error

    def translated(self, error: apsw.Error | UnicodeDecodeError) -> BackendError:
        return _translated(error, self.where, self._lock_seconds)

    @property
    def is_read(self) -> bool:
        return self._reading > 0

    def before_fork(self) -> None:
        """Let no other thread write while this one forks."""
        self._is_held = self._lock.acquire(timeout=self._lock_seconds) and not self.is_writing

    def let_go(self) -> None:
        """Close everything in a forked child, which SQLite would take for a holder of its parent's locks."""
        if self._is_held:
            self._close_connections()

    def after_fork(self) -> None:
        if self._pid != os.getpid():
            self._notice_fork()
        else:
            with contextlib.suppress(RuntimeError):  # it was not to be had before
                self._lock.release()


class _JoinedTransaction:
    """The writer's connection inside its transaction, for a block inside a block of the same thread."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database, connection: Opened) -> None:
        self._database, self._connection = database, connection

    def __enter__(self) -> Opened:
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _SQLITES):
            raise self._database.translated(error) from error


class _Snapshot:
    """A reader's connection, inside a transaction if one begins. No generator, which would slow down short
    searches."""

    __slots__ = ("_begins", "_connection", "_database")

    def __init__(self, database: Database, *, begins: bool) -> None:
        self._database, self._begins = database, begins

    def __enter__(self) -> Opened:
        try:
            self._connection = self._database.take_reader()
            try:
                if self._begins:
                    self._connection.execute("BEGIN")
            except BaseException:
                self._database.give_back(self._connection)
                raise
            return self._connection
        except _SQLITES as error:
            raise self._database.translated(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            finally:
                self._database.give_back(self._connection)
        except _SQLITES as late:
            raise self._database.translated(late) from late
        if isinstance(error, _SQLITES):
            raise self._database.translated(error) from error


_SQLITES: Final = (apsw.Error, UnicodeDecodeError)


def has(connection: apsw.Connection, name: str) -> bool:
    """Whether the file has a table or an index of that name.

    (`Connection.table_exists` may answer from before another's commit.)
    """
    look = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    return connection.execute(look, (name,)).fetchone() is not None


def select(connection: apsw.Connection, table: str, sql: str, *bindings: Any) -> Sequence[tuple[Any, ...]]:
    """The answer to a query of a table; empty where the file lacks it, never opened for writing since."""
    try:
        return connection.execute(sql, bindings).fetchall()
    except apsw.SQLError:  # asked first, each row of the log would cost a look at the schema
        if has(connection, table):
            raise
        return ()


def _look_at(connection: apsw.Connection) -> tuple[int, list[str]]:
    # Tables first: another process that makes them between the two looks has set the format with them.
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema LIMIT 1")]
    return int(connection.pragma("user_version")), tables
