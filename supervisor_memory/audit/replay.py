"""Replays the log: which records were remembered at a moment, by the rows up to there.

The log says which version a record had, and who decided so; the store has the text of the version, until
the user is erased. A replay shows what the store *knew* at the moment; `as_of` on `search` shows what was
*true* then, by what is known today (`model/versions.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from supervisor_memory.audit.chain import Piece, beginning, live_rows, pieces_of
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import AuditRow
from supervisor_memory.audit.segments import Segment
from supervisor_memory.audit.verify import LOST
from supervisor_memory.errors import BackendError, RecordNotFound
from supervisor_memory.model.records import Record

ERASED: Final = "erased"
_DELETED: Final = "deleted"
_DELETIONS: Final = frozenset({"delete", "reject", "memory.delete", "store.delete"})
"""Operations that delete a record; they decide where the record's version is no longer in the store."""
_ERASURE: Final = "erase.begin"
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Remembered:
    """A record as it was at the moment.

    Args:
        row: The number of the last row about the record.
        op, outcome, actor: From that row: what was done, how it ended, and on whose behalf.
        at: The time of that row, in seconds since 1970.
        status: Of the version; "erased": the version is not in the store any more.
        content: Of the version; None: erased.
    """

    record_id: str
    version: int
    row: int
    op: str
    outcome: str
    actor: str
    at: float
    status: str = ERASED
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The records remembered at a moment.

    Args:
        row: The number of the last row that was read; 0: the log had none by then.
        records: In the order they were last changed.
        deleted: How many more records had been deleted or erased by then.
        archived: How many rows were not read, because their archives were not named: records in these rows
            alone are missing.
    """

    row: int
    records: tuple[Remembered, ...]
    deleted: int
    archived: int


def replayed(
    log: AuditLog,
    versions: Callable[[str], Sequence[Record]],
    *,
    until_row: int | None = None,
    until: float | None = None,
    user_id: str | None = None,
    archives: Iterable[Path] = (),
) -> Replay:
    """Replay the log up to a moment.

    The log is taken as it is; `verified` proves it. Where other instances change the store too, the replay
    shows only what this instance did.

    Args:
        versions: All versions of a record, as `MemoryBackend.versions` has them.
        until_row: The last row to fold; None: all.
        until: The moment, in seconds since 1970; None: now.
        user_id: Only this user's records; an erased user has none.
        archives: The files of archived rows to read first, in any order.

    Raises:
        RecordNotFound: the log has no row `until_row` yet.
        BackendError: it cannot be read, or a file is no archive of this log.
        OSError: a file cannot be read.
    """
    if until_row is not None and until_row > (last_row := log.count()):
        raise RecordNotFound(
            f"the audit log has no row {until_row}; its last is {last_row}. A day is written 2026-01-31",
            id=str(until_row),
        )
    segments, named = log.segments(), pieces_of(log, archives)
    archived, _ = beginning(segments, named)
    subject = None if user_id is None else log.subject(user_id) or ""
    latest: dict[str, Remembered] = {}
    owners: dict[str, str | None] = {}
    last = erased = 0
    for row in _rows(log, segments, named, after=archived):
        if until_row is not None and row.seq > until_row:
            break
        if until is not None and row.ts_us > until * _MICRO:
            continue
        last = row.seq
        if row.op == _ERASURE and row.subject is not None:
            left = {id_: told for id_, told in latest.items() if owners[id_] != row.subject}
            erased += len(latest) - len(left)
            latest = left
        if row.record_id is None or (subject is not None and row.subject != subject):
            continue
        if row.op == LOST:
            latest.pop(row.record_id, None)
        elif row.outcome == "ok" and (version := row.event["version_after"]) is not None:
            latest.pop(row.record_id, None)  # what was changed last is told last
            actor, at = str(row.event["actor"]), row.ts_us / _MICRO
            latest[row.record_id] = Remembered(
                row.record_id, version, row.seq, row.op, row.outcome, actor, at
            )
            owners[row.record_id] = row.subject
    told = [_with_text(each, versions(each.record_id)) for each in latest.values()]
    there = tuple(each for each in told if not _is_deleted(each))
    return Replay(last, there, len(told) - len(there) + erased, archived)


def _rows(
    log: AuditLog, segments: Sequence[Segment], named: Sequence[Piece], *, after: int
) -> Iterator[AuditRow]:
    """The rows of the archives, then the rows of the log.

    Raises:
        BackendError: a row is missing, or there twice.
    """
    of_files = (row for piece in named for _, row, _ in piece.rows())
    for row in chain(of_files, live_rows(log, after=segments[-1].through if segments else 0)):
        if row.seq != after + 1:
            raise BackendError(
                f"row {row.seq} of the audit log comes behind row {after}: name every archive in between, "
                "and each once"
            )
        yield row
        after = row.seq


def _with_text(told: Remembered, versions: Sequence[Record]) -> Remembered:
    for record in versions:
        if record.version == told.version:
            return replace(told, status=record.status, content=record.content)
    return told


def _is_deleted(told: Remembered) -> bool:
    return told.status == _DELETED or (told.status == ERASED and told.op in _DELETIONS)
