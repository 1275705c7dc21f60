"""Reads the chain row by row: first from the archives with its beginning, then from the log.

A line of an archive is a row, as `audit export` and `audit archive` write it: the payload as it was hashed,
the hash of the row before, the row's own hash, and the id of the log.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import GENESIS, AuditRow, row_hash
from supervisor_memory.audit.segments import Segment
from supervisor_memory.errors import BackendError

COLUMNS: Final = ("seq", "event_id", "ts_us", "op", "outcome", "record_id", "subject")
"""The values of an event that its row has in columns of their own."""
_PAGE: Final = 1_000
Told: TypeAlias = tuple[str, AuditRow, Mapping[str, Any]]


@dataclass(slots=True)
class Piece:
    """A file with rows of a log.

    Args:
        log_id: The log of the first row; "" where the file is empty.
        first: The number of the first row; 0 where the file is empty.
        sha256: Of the file, in hex; "" until `rows` has read all of it.
    """

    path: Path
    log_id: str
    first: int
    sha256: str = ""

    def rows(self) -> Iterator[Told]:
        """The rows of the file, each as the id of its log, the row, and the row's event.

        Raises:
            BackendError: a line is no row.
            OSError: it cannot be read.
        """
        digest = hashlib.sha256()
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                digest.update(line)
                yield _row_of(line, self.path, number)
        self.sha256 = digest.hexdigest()


def pieces(files: Iterable[Path]) -> Sequence[Piece]:
    """Open files with rows, and put them in the order of their rows, log by log.

    Raises:
        BackendError: the first line of a file is no row.
        OSError: a file cannot be read.
    """
    found = []
    for file in dict.fromkeys(files):
        with file.open("rb") as lines:
            line = lines.readline()
        log_id, first = "", 0
        if line:
            log_id, row, _ = _row_of(line, file, 1)
            first = row.seq
        found.append(Piece(file, log_id, first))
    return sorted(found, key=lambda piece: (piece.log_id, piece.first))


def pieces_of(log: AuditLog, archives: Iterable[Path]) -> Sequence[Piece]:
    """Open the archives of a log, and put them in the order of their rows.

    Raises:
        BackendError: a file is of another log, or holds no rows, or rows that are not archived.
        OSError: a file cannot be read.
    """
    found, segments = pieces(archives), log.segments()
    for piece in found:
        if not piece.first:
            raise BackendError(f"{piece.path} is empty; an archive has at least one row")
        if piece.log_id != log.log_id:
            told = f"{piece.path} is of another audit log ({piece.log_id}); this one is {log.log_id}"
            raise BackendError(told)
        if not segments or piece.first > segments[-1].through:
            raise BackendError(
                f"{piece.path} begins with row {piece.first}, and the log has that itself: name what "
                "`supervisor-memory audit archive` wrote of it. Was the store restored from a backup since?"
            )
    return found


def beginning(segments: Sequence[Segment], named: Sequence[Piece]) -> tuple[int, bytes]:
    """The number and hash of the row before the earliest archive named, else before the first row left."""
    before = [each for each in segments if not named or each.through < named[0].first]
    if not before:
        return 0, GENESIS
    try:
        return before[-1].through, bytes.fromhex(before[-1].hash)
    except (ValueError, TypeError):  # somebody has put something else there, and no row follows b""
        return before[-1].through, b""


def live_rows(log: AuditLog, *, after: int = 0) -> Iterator[AuditRow]:
    """The rows in the log itself, behind the row with the number `after`."""
    while page := log.rows(after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


def line_of(log_id: str, row: AuditRow) -> str:
    """A row as a line of an archive."""
    hashes = {"prev": row.prev_hash.hex(), "hash": row.hash.hex()}
    return (
        json.dumps({"log_id": log_id, "payload": row.payload.decode(), **hashes}, ensure_ascii=False) + "\n"
    )


def event_of(payload: bytes) -> dict[str, Any]:
    """The event in a row's payload; {} where the payload is no event, since a forger can hash anything."""
    try:
        event = json.loads(payload)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def wrong_with(row: AuditRow, log_id: str, last: int, before: bytes) -> str:
    """The fault of a row that should follow row `last` with the hash `before`, as a sentence; "": none."""
    if row.seq > last + 1:
        return f"the rows {last + 1} to {row.seq - 1} of the audit log are missing"
    if row.seq <= last:
        return f"row {row.seq} of the audit log is there behind row {last}"
    if not isinstance(row.payload, bytes) or not isinstance(row.hash, bytes):
        return f"row {row.seq} of the audit log was changed"
    if row.prev_hash != before:
        return f"row {row.seq} of the audit log does not follow the row before it"
    if row_hash(log_id, before, row.payload) != row.hash:
        return f"row {row.seq} of the audit log was changed"
    return ""


def _row_of(line: bytes, file: Path, number: int) -> Told:
    try:
        told = json.loads(line)
        payload = told["payload"].encode()
        event = json.loads(payload)
        if not isinstance(event["seq"], int):
            raise TypeError("its number is none")
        hashes = [bytes.fromhex(told[name]) for name in ("prev", "hash")]
        values: list[Any] = [*(event.get(name) for name in COLUMNS), payload, *hashes]
        return str(told["log_id"]), AuditRow(*values), event
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackendError(f"line {number} of {file} is no row of an exported audit log ({error})") from error
