"""Records in one readable JSON file, written whole at every commit. For small stores that people want to
read."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from supervisor_memory.audit.log import AUDIT_FILE_NAME, AuditLog
from supervisor_memory.disk.database import LOCK_SECONDS, Database
from supervisor_memory.disk.files import refuse_network_file_system, sync_directory
from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, ReadOnlyStore
from supervisor_memory.stores.arrival import as_commit, staged_in
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.stores.intents import Intents
from supervisor_memory.stores.memory.reading import StateBackend
from supervisor_memory.stores.memory.snapshot import Snapshot, UnknownFormat, decoded, encoded
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.protocol import Commit, Committed, Erased, Health, Ids, Stored, Taken
from supervisor_memory.stores.verbs import health_of_files

__all__ = ["AUDIT_FILE_NAME", "FILE_NAME", "JsonBackend"]

FILE_NAME: Final = "memory.json"
_LOCK_FILE_NAME: Final = "memory.lock"
_POLL_SECONDS: Final = 0.005
_CANNOT_WRITE: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_Stamp: TypeAlias = tuple[int, int, int] | None


class JsonBackend(StateBackend):
    """`memory.json` in a directory, with its audit log in `audit.db` beside it.

    The file and the log cannot change in one transaction. So the log gets an intent before the file is
    written, and the events with "commit.done" afterwards. An intent that a crash left without an outcome
    gets a "commit.unknown", which says whether the file has the commit.

    Args:
        path: The directory; made with mode 0700 when it is not there.
        clock: Seconds since 1970, for the times of audit rows.
        lock_seconds: How long a commit waits for another process.

    Raises:
        CorruptStore: `memory.json` cannot be understood; it is left as it is.
        BackendUnavailable: the directory cannot be used.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        super().__init__()
        self._clock, self._lock_seconds = clock, lock_seconds
        self._file = _File(Path(path))
        self._snapshot = self._file.load()
        self._audit = AuditLog(_open_audit(Path(path) / AUDIT_FILE_NAME, lock_seconds=lock_seconds))
        self._intents = Intents(self._audit, clock)
        if not self._file.read_only:
            with self._file.locked(self._lock_seconds):
                self._settle()
                self._finish_erasures(seconds=0)

    @property
    def name(self) -> Literal["json"]:
        return "json"

    @property
    def audit(self) -> AuditLog:
        return self._audit

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing; the file is replaced in one step."""
        with self._lock, self._file.locked(self._lock_seconds):
            self._remove_erased()
            self._audit.refuse_erased([change.record for change in commit.changes if change.expects is None])
            staged = self._current().stage(commit.changes)
            self._audit.check_new(commit.audit)
            if commit.changes:
                self._save(commit, staged)
            else:
                self._audit.append(commit.audit, at=self._clock())
            return Committed(commit.id, tuple(staged.results))

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them, in one commit; see `Moves`."""
        with self._lock, self._file.locked(self._lock_seconds):
            self._remove_erased()
            staged, decided = staged_in(self._current(), records, tombstones=self._audit)
            if staged.records:
                self._save(as_commit(staged, decided), staged)
            else:
                self._audit.append(decided.events, at=self._clock())
            return decided.in_order()

    def holds(self, user_id: str) -> Mapping[str, int]:
        with self._lock:
            return {**self._current().counted(user_id), **self._audit.holds(user_id)}

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user; see `Erases`. The log comes first: after a crash it says what remains to be done."""
        with self._lock, self._file.locked(self._lock_seconds):
            self._settle()
            state = self._current()
            removed = state.counted(user_id)
            removed |= self._audit.erase(user_id, state.of_user(user_id), at=at, actor=actor)
            del state
            return Erased(removed, self._finish_erasures())

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records, the file first; see `ErasesRecords`."""
        with self._lock, self._file.locked(self._lock_seconds):
            self._settle()
            state = self._current()
            records = state.owned(ids, user_id)
            removed = state.counted_of(records, history_of=history_of)
            self._write_anew(state.without_records({r.id for r in records}, history_of=history_of))
            removed |= self._audit.erase_records(user_id, records, at=at, actor=actor)
            del state
            return Erased(removed, self._finish_erasures())

    def _finish_erasures(self, *, seconds: float | None = None) -> tuple[str, ...]:
        """Remove the last traces of erased users from the files; returns what is in the way, as sentences."""
        try:
            self._remove_erased()
        except BackendError as error:
            return (str(error),)
        return self._audit.finish_erasures(at=self._clock(), seconds=seconds)

    def _remove_erased(self) -> None:
        """Write the file without users that are being erased, and overwrite the old file."""
        tombstones = self._audit.tombstones
        if not (erased := tombstones.not_removed()):
            return
        state = self._current()
        self._write_anew(state.without([u for u in state.users if tombstones.name(u) in erased]))
        tombstones.note_removed()

    def _write_anew(self, state: State) -> None:
        """Write the file with another state, and overwrite the old file."""
        commit_id = self._snapshot.commit_id
        self._file.replace(encoded(state, Staged(results=[]), commit_id=commit_id), overwrite=True)
        self._snapshot = Snapshot(state, commit_id)
        forget_texts()

    def health(self) -> Health:
        return health_of_files(self, str(self._file.path), read_only=self._file.read_only)

    def close(self) -> None:
        """Let go of the files. Closing twice is fine."""
        with self._lock:
            self._file.let_go()
            self._audit.close()

    def _current(self) -> State:
        if self._file.has_changed():
            self._snapshot = self._file.load()
        return self._snapshot.state

    def _save(self, commit: Commit, staged: Staged) -> None:
        self._settle()
        state = self._snapshot.state
        text = encoded(state, staged, commit_id=commit.id)
        self._intents.begin(commit)
        try:
            self._file.replace(text)
        except BackendError:
            self._intents.failed(commit)
            raise
        state.apply(staged)
        self._snapshot = Snapshot(state, commit.id)
        self._intents.done(commit)

    def _settle(self) -> None:
        self._intents.settle(self._is_applied)

    def _is_applied(self, commit_id: str) -> bool:
        self._current()
        return self._snapshot.commit_id == commit_id


class _File:
    """The file on disk: read when it has changed, replaced in one step, locked against other writers."""

    def __init__(self, directory: Path) -> None:
        refuse_network_file_system(directory)
        self._directory = directory
        self.path = directory / FILE_NAME
        self._held: int | None = None  # keeps the inode from being used again, so that a stamp stays unique
        self._stamp: _Stamp = None
        self.read_only = not self._prepare()

    def has_changed(self) -> bool:
        return self._stamp_on_disk() != self._stamp

    def load(self) -> Snapshot:
        """Read the file; an absent one is an empty store.

        Raises:
            CorruptStore: it cannot be understood.
            BackendUnavailable: it cannot be read.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self.let_go()
            return Snapshot(State())
        except OSError as error:
            raise BackendUnavailable(f"{self.path} cannot be read: {error}", path=str(self.path)) from error
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                snapshot = self._decoded(file.read())
        except BaseException:
            was_replaced = _stamp(os.fstat(descriptor)) != self._stamp_on_disk()
            os.close(descriptor)  # not held: whoever asks next reads it again and fails again
            if was_replaced:  # and overwritten, while it was read
                return self.load()
            raise
        self._hold(descriptor)
        return snapshot

    def replace(self, text: str, *, overwrite: bool = False) -> None:
        """Replace the file with the text completely, or raise ReadOnlyStore or BackendError and leave it.

        With `overwrite` nothing of the old file stays on the disk, nor with processes that have it open.
        """
        old = self._open_to_write(self.path) if overwrite and self.path.exists() else None
        try:
            self._replace(text)
            if old is not None:
                _overwrite(old)
        finally:
            if old is not None:
                os.close(old)

    def _replace(self, text: str) -> None:
        temporary = self.path.with_name(f".{FILE_NAME}.tmp")
        descriptor = self._open_to_write(temporary, os.O_TRUNC)
        try:
            _write_all(descriptor, text.encode())
            os.fsync(descriptor)
            temporary.replace(self.path)
            sync_directory(self._directory)
        except OSError as error:
            os.close(descriptor)
            raise self._not_written(error) from error
        self._hold(descriptor)

    @contextlib.contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Keep other processes and handles from writing within the block.

        Raises ReadOnlyStore where nothing can be written, BackendUnavailable where another writes too long.
        """
        if self.read_only:
            raise self._cannot_write()
        # Opened anew each time: a forked process would share the lock of an inherited descriptor.
        descriptor = self._open_to_write(self._directory / _LOCK_FILE_NAME)
        try:
            self._take(descriptor, seconds)
            yield
        finally:
            os.close(descriptor)

    def let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
        self._held = self._stamp = None

    def _prepare(self) -> bool:
        """Make the directory; returns whether it and the file can be written."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._directory / _LOCK_FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            if error.errno in _CANNOT_WRITE and self._directory.is_dir():
                return False
            told = f"{self._directory} cannot be used: {error}"
            raise BackendUnavailable(told, path=str(self.path)) from error
        return not self.path.exists() or os.access(self.path, os.W_OK, effective_ids=_EFFECTIVE)

    def _decoded(self, content: bytes) -> Snapshot:
        try:
            return decoded(content.decode())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told = f"is damaged ({type(error).__name__}: {error}); it is left as it is: run "
            told += "`supervisor-memory repair`, or restore a backup"
            if isinstance(error, UnknownFormat):
                told = f"cannot be read: {error}; it is left as it is: upgrade supervisor-memory, or "
                told += "restore a file it wrote"
            raise CorruptStore(f"{self.path} {told}", path=str(self.path)) from error

    def _open_to_write(self, path: Path, flags: int = 0) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
        except OSError as error:
            raise self._not_written(error) from error

    def _take(self, descriptor: int, seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > give_up:
                    told = f"was locked by another process for more than {seconds:g} s; try again"
                    raise BackendUnavailable(f"{self.path} {told}", path=str(self.path)) from error
                time.sleep(_POLL_SECONDS)

    def _hold(self, descriptor: int) -> None:
        self.let_go()
        self._held = descriptor
        self._stamp = _stamp(os.fstat(descriptor))

    def _stamp_on_disk(self) -> _Stamp:
        try:
            return _stamp(self.path.stat())
        except FileNotFoundError:
            return None

    def _not_written(self, error: OSError) -> BackendError:
        if error.errno in _CANNOT_WRITE:
            return self._cannot_write()
        told = f"{self.path} could not be written ({error}); it is as it was before"
        return BackendError(told, path=str(self.path))

    def _cannot_write(self) -> ReadOnlyStore:
        return ReadOnlyStore(
            f"{self.path} can be read but not written; check its owner and mode, and those of its directory, "
            "or point MEMORY_PATH at another",
            path=str(self.path),
        )


_EFFECTIVE: Final = os.access in os.supports_effective_ids


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _overwrite(descriptor: int) -> None:
    """Fill an open file with zeros. Errors of the disk are ignored: the replacement itself was made."""
    with contextlib.suppress(OSError):
        _write_all(descriptor, bytes(os.fstat(descriptor).st_size))
        os.fsync(descriptor)


def _open_audit(path: Path, *, lock_seconds: float) -> Database:
    try:
        return Database(path, lock_seconds=lock_seconds)
    except BackendUnavailable:
        if path.exists() or os.access(path.parent, os.W_OK, effective_ids=_EFFECTIVE):
            raise
        return Database(None, read_only=True)  # a directory that cannot be written, without a log
