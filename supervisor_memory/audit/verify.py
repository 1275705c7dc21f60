"""Whether the audit log is whole, and whether what is stored is what it says was written.

The chain proves itself: each row's hash holds the row before. That finds rows that were changed, taken out or
put in between, not a log that was cut off or written anew as a whole.

A record's text is compared with the keyed commitment of its last row. So a byte that a disk has flipped is
found, where SQLite itself sees a whole page.
"""

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from supervisor_memory.audit.log import GENESIS, AuditLog, AuditRow, commitment, row_hash
from supervisor_memory.errors import CorruptStore
from supervisor_memory.records import Record

__all__ = ["LOST", "Verified", "verified"]

LOST = "store.lost"
"""What the log says of a record that a repair could not save."""
_PAGE = 1_000
_COLUMNS = ("seq", "event_id", "ts_us", "op", "outcome", "record_id", "subject")

Get = Callable[[Sequence[str]], Sequence[Record]]


@dataclass(slots=True)
class Verified:
    """How many rows were read, of how many records they tell, and each thing that is wrong, as a sentence."""

    rows: int = 0
    records: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Last:
    """What the log says of a record at last."""

    seq: int = 0
    version: int = 0
    commitment: str | None = None


def verified(log: AuditLog, get: Get | None = None) -> Verified:
    """Read the whole log.

    Args:
        get: Also read every record that the log tells of with this, and compare.

    Raises:
        BackendError: it cannot be read.
    """
    found = Verified()
    before, last = GENESIS, 0
    records: dict[str, _Last] = {}
    for row in _rows(log):
        if (wrong := _wrong_with(row, log.log_id, last, before)) is not None:
            found.problems.append(wrong)
        else:
            _note(row, records)
        before, last = row.hash, row.seq
        found.rows += 1
    if get is not None:
        found.records = len(records)
        found.problems += _differences(log, get, records)
    return found


def _rows(log: AuditLog) -> Iterator[AuditRow]:
    last = 0
    while page := log.rows(after=last, limit=_PAGE):
        yield from page
        last = page[-1].seq


def _wrong_with(row: AuditRow, log_id: str, last: int, before: bytes) -> str | None:
    if row.seq != last + 1:
        return f"the rows {last + 1} to {row.seq - 1} of the audit log are missing"
    if not isinstance(row.payload, bytes) or not isinstance(row.hash, bytes):
        return f"row {row.seq} of the audit log was changed"
    if row.prev_hash != before:
        return f"row {row.seq} of the audit log does not follow the row before it"
    if row_hash(log_id, row.prev_hash, row.payload) != row.hash:
        return f"row {row.seq} of the audit log was changed"
    event = row.event
    if any(event[name] != getattr(row, name) for name in _COLUMNS):
        return f"row {row.seq} of the audit log is filed under something that it does not say"
    return None


def _note(row: AuditRow, records: dict[str, _Last]) -> None:
    if row.record_id is not None and row.op == LOST:
        records.pop(row.record_id, None)
    if row.record_id is None or row.outcome != "ok":
        return
    event = row.event
    if event["version_after"] is None:
        return
    last = records.setdefault(row.record_id, _Last())
    last.seq, last.version = row.seq, event["version_after"]
    last.commitment = event["commit_after"] or last.commitment


def _differences(log: AuditLog, get: Get, records: dict[str, _Last]) -> Iterator[str]:
    for record_id, last in records.items():
        if (key := log.key(record_id)) is None:
            continue  # of an erased user
        where = f"record {record_id}, see row {last.seq} of the audit log"
        try:
            found = get([record_id])
        except CorruptStore as error:
            yield f"{where}: it cannot be read ({error})"
            continue
        if not found:
            yield f"{where}: it is not in the store"
        elif found[0].version != last.version:
            yield f"{where}: it has version {found[0].version}, and {last.version} was written last"
        elif last.commitment is not None and not hmac.compare_digest(
            commitment(key, found[0].content), last.commitment
        ):
            yield f"{where}: its text is not the one that was written"
