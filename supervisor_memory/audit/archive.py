"""Moves the oldest rows of the log into a file, which then is the beginning of the chain.

The file is whole and on the disk before one transaction says that its rows are archived (`segments.py`), and
only then are they removed. A crash before leaves a file that nobody needs; a crash after leaves rows that the
next `archive` removes.
"""

import hashlib
import os
import time
from itertools import takewhile
from pathlib import Path
from typing import Final

from supervisor_memory.audit.chain import line_of, live_rows, wrong_with
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import GENESIS
from supervisor_memory.audit.segments import ARCHIVE, KEEP, Segment
from supervisor_memory.audit.verify import verified
from supervisor_memory.disk.files import sync_directory
from supervisor_memory.errors import BackendError, Conflict, SettingsError

_AT_ONCE: Final = 2_000
_PAUSE_SECONDS: Final = 0.01
"""The pause between two removals, in which others write."""
_MICRO: Final = 1_000_000


def oldest(log: AuditLog, *, keep: int = KEEP) -> range:
    """The numbers of the rows that `archive` would move; empty where there are no more than `keep`."""
    segments, last = log.segments(), log.tail(1)
    if last and last[0].op == ARCHIVE:  # else each run would find one more row than it left
        keep += 1
    return range(segments[-1].through + 1 if segments else 1, log.count() - keep + 1)


def archive(log: AuditLog, file: Path, *, at: float, keep: int = KEEP) -> Segment | None:
    """Move the oldest rows into a new file, in the format of an export; None: there are no more than `keep`.

    Args:
        at: In seconds since 1970.
        keep: How many of the newest rows stay, beside the row about this archiving. Choose more than others
            may be writing just now.

    Raises:
        SettingsError: the file is there already.
        Conflict: another process has archived meanwhile.
        BackendError: the rows are not as they were written, or the log cannot be written. As with a conflict,
            nothing was moved, and there is no file.
        OSError: the file cannot be written.
    """
    refuse_existing(file, log)
    if wrong := verified(log).problems:  # rows that somebody only says are archived would be lost
        raise _refused(wrong[0])
    _remove_archived(log)
    rows = oldest(log, keep=keep)
    if not rows:
        return None
    part = file.with_name(f"{file.name}.part")
    last_hash, sha256 = _write(log, part, rows)
    try:
        refuse_existing(file, log)
    except SettingsError:
        part.unlink()
        raise
    part.rename(file)
    sync_directory(file.parent)
    segment = Segment(rows[-1], last_hash, len(rows), sha256, round(at * _MICRO))
    try:
        log.note_archived(segment)
    except BackendError:
        if segment not in log.segments():
            file.unlink()
        raise
    _remove_archived(log)
    return segment


def refuse_existing(file: Path, log: AuditLog) -> None:
    """Raise SettingsError where a file exists; the message says whether it is an archive of this log."""
    if not file.exists():
        return
    if not file.is_file():  # a device may have no end
        raise SettingsError(f"{file} is there already, and no file; name one that is not there")
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    known = next((each for each in log.segments() if each.sha256 == sha256), None)
    told = (
        f"it has the rows {known.first} to {known.through}, which are nowhere else: keep it"
        if known
        else "the log has archived no such file: if it is what an interrupted archiving left, its rows still "
        "are in the log, so remove it"
    )
    raise SettingsError(f"{file} is there already; {told}, or name another file")


def _refused(wrong: str) -> BackendError:
    return BackendError(f"{wrong}, so nothing was archived; see `supervisor-memory audit verify`")


def _remove_archived(log: AuditLog) -> None:
    while log.remove_archived(most=_AT_ONCE) == _AT_ONCE:
        time.sleep(_PAUSE_SECONDS)


def _write(log: AuditLog, part: Path, rows: range) -> tuple[str, str]:
    """Write rows into a new file; returns the hash of the last row and the SHA-256 of the file, in hex."""
    segments = log.segments()
    before = bytes.fromhex(segments[-1].hash) if segments else GENESIS
    digest, last = hashlib.sha256(), rows[0] - 1
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise SettingsError(
            f"{part} is there already: another archiving writes it just now, or was interrupted, so "
            "that the log still has its rows; remove it in that case"
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as lines:
            for row in takewhile(lambda row: row.seq <= rows[-1], live_rows(log, after=last)):
                if wrong := wrong_with(row, log.log_id, last, before):
                    raise _refused(wrong)
                line = line_of(log.log_id, row).encode()
                digest.update(line)
                lines.write(line)
                last, before = row.seq, row.hash
            lines.flush()
            os.fsync(descriptor)
        if last != rows[-1]:
            raise Conflict(
                "the rows were archived by another process meanwhile; nothing was moved", what="segment"
            )
    except BaseException:
        part.unlink()
        raise
    return before.hex(), digest.hexdigest()
