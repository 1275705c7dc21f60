"""Writes and reads an export file line by line, never as a whole."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from supervisor_memory.disk.files import sync_directory
from supervisor_memory.errors import BackendUnavailable, InvalidContent, SupervisorMemoryError
from supervisor_memory.moving.lines import MOST_BYTES, End, Header, end_line, header_line, read, record_line
from supervisor_memory.stores.protocol import Stored

File: TypeAlias = str | Path | BinaryIO
"""A path, or a file that is open in binary mode."""
PART: Final = ".part"
"""The suffix of a file's name until the file is whole."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Output:
    """An export file that is being written.

    Attributes:
        after: The id of the last record in the file; None: it has none.
        records: How many records are in the file.
    """

    file: BinaryIO
    after: str | None = None
    records: int = 0

    def write(self, stored: Stored) -> None:
        """Add a record; raises InvalidContent where it cannot be written as a line."""
        self.file.write(record_line(stored))
        self.after = stored.record.id
        self.records += 1


@contextlib.contextmanager
def output(file: File, *, written_at: float, user_id: str | None, resume: bool) -> Iterator[Output]:
    """Open an export file for writing. A path appears under its name when the file is whole, not before.

    Args:
        resume: Go on where an export was cut off; where there is none, begin.

    Raises:
        BackendUnavailable: another export writes this file.
        InvalidContent: the path is a directory or a device, or what is to be resumed is damaged or was begun
            for another user.
    """
    header = header_line(written_at=written_at, user_id=user_id)
    if not isinstance(file, str | Path):
        lines = Output(file)
        file.write(header)
        yield lines
        file.write(end_line(lines.records))
        file.flush()
        return
    path = Path(file)
    with _part_of(path) as part:
        lines = _left_of(part, user_id) if resume else Output(part)
        part.truncate()
        if part.tell() == 0:
            part.write(header)
        yield lines
        part.write(end_line(lines.records))
        part.flush()
        os.fsync(part.fileno())
        _part_name(path).replace(path)
        sync_directory(path.parent)


@contextlib.contextmanager
def _part_of(path: Path) -> Iterator[BufferedRandom]:
    """The unfinished file beside `path`, locked, for its owner alone to read."""
    if path.is_dir():
        raise InvalidContent(f"{path} is a directory; name a file in it", path=str(path))
    if path.exists() and not path.is_file():  # it would be replaced, such as /dev/null for everybody
        raise InvalidContent(f"{path} is no file but a device or a pipe; name a file", path=str(path))
    descriptor = os.open(_part_name(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "r+b") as part:
        if not _is_alone(descriptor, path):
            raise BackendUnavailable(
                f"{path} is being written by another export; wait for it, or name another file",
                path=str(path),
            )
        yield part


def _is_alone(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another export may have ended since it was opened: then it is that one's whole file.
        return os.path.samestat(os.fstat(descriptor), _part_name(path).stat())
    return False


def _part_name(path: Path) -> Path:
    return path.with_name(path.name + PART)


def _left_of(part: BinaryIO, user_id: str | None) -> Output:
    """Find where an export was cut off; raises InvalidContent for a damaged one or another user."""
    lines = Output(part)
    last, end = b"", 0
    for line in _whole_lines(part):
        if end == 0:
            if not isinstance(header := _read(line), Header):
                break
            if header.user_id != user_id:
                whose = "all users" if header.user_id is None else f"user {header.user_id!r}"
                raise InvalidContent(f"what is to be resumed was begun for {whose}; leave out `resume`")
        elif line.startswith(b'{"record":'):
            last = line
            lines.records += 1
        else:
            break
        end += len(line)
    if last:
        lines.after = _id_in(last)
    part.seek(end)
    return lines


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    while (line := file.readline(MOST_BYTES + 1)).endswith(b"}\n"):
        yield line


def _id_in(line: bytes) -> str:
    try:
        return str(json.loads(line)["record"]["id"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidContent("what is to be resumed is damaged; leave out `resume` to begin anew") from error


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an export file, read and checked.

    Args:
        number: Of the line, from 1.
        size: In bytes.
        told: What the line says; an error says why it cannot be taken.
    """

    number: int
    size: int
    told: Header | Stored | End | SupervisorMemoryError


@contextlib.contextmanager
def opened(file: File) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file for reading; gives the file and its size in bytes, 0 where it is unknown."""
    if isinstance(file, str | Path):
        with Path(file).open("rb") as mine:
            yield mine, os.fstat(mine.fileno()).st_size
    else:
        yield file, 0


def lines_of(file: BinaryIO) -> Iterator[Line]:
    """The lines of an export file, each checked, without empty ones; InvalidContent: it is open as text."""
    number = 0
    while line := file.readline(MOST_BYTES + 1):
        if not isinstance(line, bytes):
            raise InvalidContent("the file is open as text; open it with mode 'rb'")
        number += 1
        size = len(line)
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if size > MOST_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(MOST_BYTES)
                size += len(line)
            told = InvalidContent(f"the line of {size:,} bytes is over the limit of {MOST_BYTES:,}")
            yield Line(number, size, told)
        elif line.strip():
            yield Line(number, size, _read(line))


def _read(line: bytes) -> Header | Stored | End | SupervisorMemoryError:
    try:
        return read(line)
    except SupervisorMemoryError as error:
        return error
