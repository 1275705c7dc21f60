"""The files of a database: made where there are none, refused where locks are not to be trusted, synced."""

import contextlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Final

import apsw

from supervisor_memory.errors import BackendUnavailable, CorruptStore

_HEADER: Final = b"SQLite format 3\x00"
_SPACE: Final = "\\040"  # as /proc/mounts writes one
_NETWORK: Final = ("nfs", "cifs", "smb", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "afs", "ceph")


def sync_directory(directory: Path) -> None:
    """Bring the names of a directory's files to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def log_of(path: Path) -> Path:
    """The log that SQLite keeps beside a database."""
    return path.with_name(path.name + "-wal")


def prepare(path: Path, *, read_only: bool) -> None:
    """Make the directory and an empty file, for their owner alone, where there is none.

    Raises:
        BackendUnavailable: it is on a network file system, or cannot be opened.
        CorruptStore: there is a file that is no SQLite file.
    """
    refuse_network_file_system(path.parent)
    try:
        if not read_only:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(OSError):  # SQLite gives the files beside it the same mode
                path.touch(mode=0o600, exist_ok=False)
        start = _start_of(path)
    except (OSError, apsw.Error) as error:
        if not path.exists() and isinstance(error, apsw.CantOpenError):
            return  # opening it will say so
        raise BackendUnavailable(f"{path} cannot be opened: {error}", path=str(path)) from error
    if start not in (b"", _HEADER):
        raise CorruptStore(
            f"{path} is no SQLite file (it begins with {start[:8]!r}); it is left as it is: run "
            "`supervisor-memory repair` if it was a store, or point MEMORY_PATH at another directory",
            path=str(path),
        )


def _start_of(path: Path) -> bytes:
    # Through SQLite: whoever closes a file by other means drops all locks that this process has on it.
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        return file.xRead(min(len(_HEADER), file.xFileSize()), 0)
    finally:
        file.xClose()


def refuse_network_file_system(directory: Path, *, mounts: str | None = None) -> None:
    """Raise BackendUnavailable where a directory is on NFS, SMB or the like, with locks not to be trusted.

    `mounts` is the text of /proc/mounts; None reads it. Where there is none, everything passes.
    """
    kind = _kind_now(directory) if mounts is None else _kind_of(directory, mounts)
    if kind.startswith(_NETWORK):
        raise BackendUnavailable(
            f"{directory} is on a network file system ({kind}), where locks fail and files get damaged; "
            "point MEMORY_PATH at a local directory, or use a server such as Qdrant",
            path=str(directory),
            kind=kind,
        )


def _kind_now(directory: Path) -> str:
    try:
        return _kind_on(str(directory.absolute()), os.stat(directory).st_dev)
    except OSError:  # it is not there yet
        return _kind_on.__wrapped__(str(directory.absolute()), 0)


@lru_cache(maxsize=64)
def _kind_on(directory: str, device: int) -> str:
    """The kind of a directory's file system. `device` is only a key of the cache: a new mount changes it."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return _kind_of(Path(directory), mounts)


def _kind_of(directory: Path, mounts: str) -> str:
    """The kind of the innermost mount that holds a directory; "" where none is known."""
    place = f"{directory.absolute().resolve()}/"
    best, kind = "/", ""
    for line in mounts.splitlines():
        _, point, found, *_ = [*line.split(), "", "", ""]
        mounted = f"{point.replace(_SPACE, ' ').rstrip('/')}/" if point else best
        if place.startswith(mounted) and len(mounted) >= len(best):
            best, kind = mounted, found
    return kind
