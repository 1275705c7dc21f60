"""The chain, row by row: first from the files that hold its beginning, then from the log.

A line of such a file is a row, as `audit export` and `audit archive` write it: the payload as it was hashed,
the hash of the row before and its own, and the id of the log.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from supervisor_memory.audit.log import GENESIS, AuditLog, AuditRow, row_hash
from supervisor_memory.audit.segments import Segment
from supervisor_memory.errors import BackendError

__all__ = [
    "Piece",
    "beginning",
    "event_of",
    "line_of",
    "live_rows",
    "pieces",
    "pieces_of",
    "wrong_with",
]

_PAGE: Final = 1_000
Told: TypeAlias = tuple[str, AuditRow, Mapping[str, Any]]


@dataclass(slots=True)
class Piece:
    """A file with rows of a log.

    Args:
        log_id: Of its first row, as is `first`, that row's number; "" and 0 where it is empty.
        sha256: Of the file in hex, once all its rows were read.
    """

    path: Path
    log_id: str
    first: int
    sha256: str = ""

    def rows(self) -> Iterator[Told]:
        """Its rows, each with the id of the log it is of before, and its event behind.

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
    """The files that hold rows, in the order of these.

    Raises:
        BackendError: the first line of one is no row.
        OSError: one cannot be read.
    """
    found = []
    for file in dict.fromkeys(files):
        with file.open("rb") as lines:
            line = lines.readline()
        if not line:
            found.append(Piece(file, "", 0))
            continue
        log_id, row, _ = _row_of(line, file, 1)
        found.append(Piece(file, log_id, row.seq))
    return sorted(found, key=lambda piece: (piece.log_id, piece.first))


def pieces_of(log: AuditLog, archives: Iterable[Path]) -> Sequence[Piece]:
    """The files that hold archived rows of a log, in the order of these.

    Raises:
        BackendError: one is of another log, or holds no rows, or rows that are not archived.
        OSError: one cannot be read.
    """
    found, segments = pieces(archives), log.segments()
    for piece in found:
        if not piece.first:
            raise BackendError(f"{piece.path} is empty; an archive has at least one row")
        if piece.log_id != log.log_id:
            raise BackendError(
                f"{piece.path} is of another audit log ({piece.log_id}); this one is {log.log_id}"
            )
        if not segments or piece.first > segments[-1].through:
            raise BackendError(
                f"{piece.path} begins with row {piece.first}, and the log has that itself: name what "
                "`supervisor-memory audit archive` wrote of it. Was the store restored from a backup since?"
            )
    return found


def beginning(segments: Sequence[Segment], named: Sequence[Piece]) -> tuple[int, bytes]:
    """The number and the hash of the row before the first that is read: of the files, else of the log."""
    before = [each for each in segments if not named or each.through < named[0].first]
    if not before:
        return 0, GENESIS
    try:
        return before[-1].through, bytes.fromhex(before[-1].hash)
    except (ValueError, TypeError):  # somebody has put something else there, which no row follows
        return before[-1].through, b""


def live_rows(log: AuditLog, *, after: int = 0) -> Iterator[AuditRow]:
    """The rows that are in the log itself, behind a row."""
    while page := log.rows(after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


def line_of(log_id: str, row: AuditRow) -> str:
    """A row as a line of a file."""
    told = {
        "log_id": log_id,
        "payload": row.payload.decode(),
        "prev": row.prev_hash.hex(),
        "hash": row.hash.hex(),
    }
    return json.dumps(told, ensure_ascii=False) + "\n"


def event_of(payload: bytes) -> dict[str, Any]:
    """The event of a row; empty where it is none. Whoever can compute hashes can put anything there."""
    try:
        event = json.loads(payload)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def wrong_with(row: AuditRow, log_id: str, last: int, before: bytes) -> str:
    """What is wrong with a row that should follow another, as a sentence; "" when nothing is.

    Args:
        last: The number of the row before; 0: there is none.
        before: Its hash.
    """
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
        known = event.get
        row = AuditRow(
            event["seq"],
            known("event_id"),
            known("ts_us"),
            known("op"),
            known("outcome"),
            known("record_id"),
            known("subject"),
            payload,
            bytes.fromhex(told["prev"]),
            bytes.fromhex(told["hash"]),
        )
        return str(told["log_id"]), row, event
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackendError(f"line {number} of {file} is no row of an exported audit log ({error})") from error
