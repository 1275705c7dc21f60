"""Whether the audit log is whole, and whether what is stored is what it says was written.

The chain proves itself: each row's hash holds the row before. That finds rows that were changed, taken out or
put in between, not a log that was cut off or written anew as a whole: that takes an anchor (`anchor.py`).

A record's text is compared with the keyed commitment of its last row. So a byte that a disk has flipped is
found, where SQLite itself sees a whole page.
"""

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from supervisor_memory.audit.anchor import Anchor
from supervisor_memory.audit.log import GENESIS, AuditLog, AuditRow, commitment, row_hash
from supervisor_memory.errors import BackendError, CorruptStore
from supervisor_memory.records import Record

__all__ = ["LOST", "Fault", "FaultKind", "Verified", "verified", "verified_exports"]

FaultKind: TypeAlias = Literal["chain", "truncated", "state", "content"]
"""A row was changed, taken out, put in or written anew; the end is missing; a record is not the one that was
written last; its text is not."""
LOST = "store.lost"
"""What the log says of a record that a repair could not save."""
_PAGE = 1_000
_COLUMNS = ("seq", "event_id", "ts_us", "op", "outcome", "record_id", "subject")

Get = Callable[[Sequence[str]], Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong. `row` is the number of the row it shows in, `told` says it in a sentence."""

    kind: FaultKind
    row: int
    told: str


@dataclass(slots=True)
class Verified:
    """How many rows were read, of how many records they tell, and each thing that is wrong."""

    rows: int = 0
    records: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What is wrong, as sentences."""
        return [fault.told for fault in self.faults]


@dataclass(slots=True)
class _Last:
    """What the log says of a record at last."""

    seq: int = 0
    version: int = 0
    commitment: str | None = None


def verified(
    log: AuditLog,
    get: Get | None = None,
    *,
    texts: bool = True,
    anchors: Sequence[Anchor] = (),
    key: str | None = None,
    after: int = 0,
) -> Verified:
    """Read the whole log.

    Args:
        after: Begin behind this row, and take it and those before it as they are; anchors of these are passed
            over.
        get: Also read every record that the log tells of with this, and compare its version.
        texts: With `get`: compare its text, too.
        anchors: Where the log stood at earlier moments.
        key: What the anchors were signed with; None: whether they were is not looked at.

    Raises:
        BackendError: it cannot be read.
    """
    found = Verified()
    before, last = GENESIS, after
    if after and (trusted := log.rows(after=after - 1, limit=1)):
        before = trusted[0].hash
    records: dict[str, _Last] = {}
    sought = {anchor.seq: "" for anchor in anchors if anchor.seq > after}
    for row in _rows(log, after):
        event = {} if (wrong := _wrong_with(row, log.log_id, last, before)) else _event_of(row.payload)
        if not wrong and any(event.get(name) != getattr(row, name) for name in _COLUMNS):
            wrong = f"row {row.seq} of the audit log is filed under something that it does not say"
        if wrong:
            found.faults.append(Fault("chain", row.seq, wrong))
        else:
            _note(row, event, records)
        if row.seq in sought and isinstance(row.hash, bytes):
            sought[row.seq] = row.hash.hex()
        before, last = row.hash, row.seq
        found.rows += 1
    found.faults += _since([each for each in anchors if each.seq > after], log.log_id, sought, last, key)
    if get is not None:
        found.records = len(records)
        found.faults += _differences(log, get, records, texts=texts)
    return found


def verified_exports(
    files: Iterable[Path], *, anchors: Sequence[Anchor] = (), key: str | None = None
) -> dict[str, Verified]:
    """Read what `audit export` wrote, of any number of instances: by the id of their logs what is wrong.

    Each chain is proved from its first row. The exports of one log may be given in pieces, in their order.

    Raises:
        BackendError: a line is none of an export.
        OSError: a file cannot be read.
    """
    found: dict[str, Verified] = {}
    ends: dict[str, tuple[int, bytes]] = {}
    hashes: dict[str, dict[int, str]] = {}
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                log_id, row = _exported(line, where=f"line {number} of {file}")
                last, before = ends.get(log_id, (0, GENESIS))
                of_log = found.setdefault(log_id, Verified())
                if (wrong := _wrong_with(row, log_id, last, before)) is not None:
                    of_log.faults.append(Fault("chain", row.seq, wrong))
                ends[log_id] = row.seq, row.hash
                hashes.setdefault(log_id, {})[row.seq] = row.hash.hex()
                of_log.rows += 1
    for log_id, of_log in found.items():
        own = [anchor for anchor in anchors if anchor.log_id == log_id]
        of_log.faults += _since(own, log_id, hashes[log_id], ends[log_id][0], key)
    return found


def _exported(line: str, *, where: str) -> tuple[str, AuditRow]:
    try:
        told = json.loads(line)
        payload = str(told["payload"]).encode()
        seq = _event_of(payload)["seq"]
        row = AuditRow(
            int(seq),
            "",
            0,
            "",
            "",
            None,
            None,
            payload,
            bytes.fromhex(told["prev"]),
            bytes.fromhex(told["hash"]),
        )
        return str(told["log_id"]), row
    except (ValueError, KeyError, TypeError) as error:
        raise BackendError(f"{where} is no row of an exported audit log ({error})") from error


def _event_of(payload: bytes) -> dict[str, Any]:
    """The event of a row; empty where it is none. Whoever can compute hashes can put anything there."""
    try:
        event = json.loads(payload)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _since(
    anchors: Sequence[Anchor], log_id: str, hashes: Mapping[int, str], last: int, key: str | None
) -> Iterator[Fault]:
    """What happened to the log since its anchors."""
    for anchor in anchors:
        where = f"the anchor of row {anchor.seq}"
        if key is not None and not anchor.mac:
            yield Fault("chain", anchor.seq, f"{where} is not signed, so it proves nothing to who has a key")
        elif key is not None and not anchor.is_signed_with(key):
            yield Fault("chain", anchor.seq, f"{where} was changed, or is signed with another key")
        elif anchor.log_id != log_id:
            yield Fault("chain", anchor.seq, f"{where} is of another log: this one was begun anew")
        elif anchor.seq > last:
            told = f"the rows {last + 1} to {anchor.seq} of the audit log were there, and are cut off"
            yield Fault("truncated", last, told)
        elif hashes[anchor.seq] != anchor.hash:
            told = f"{where} has another hash: that row, or one before it, was written anew"
            yield Fault("chain", anchor.seq, told)


def _rows(log: AuditLog, last: int) -> Iterator[AuditRow]:
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
    return None


def _note(row: AuditRow, event: Mapping[str, Any], records: dict[str, _Last]) -> None:
    if row.record_id is not None and row.op == LOST:
        records.pop(row.record_id, None)
    if row.record_id is None or row.outcome != "ok":
        return
    if not isinstance(event.get("version_after"), int):
        return
    last = records.setdefault(row.record_id, _Last())
    last.seq, last.version = row.seq, event["version_after"]
    last.commitment = event["commit_after"] or last.commitment


def _differences(log: AuditLog, get: Get, records: dict[str, _Last], *, texts: bool) -> Iterator[Fault]:
    for record_id, last in records.items():
        if (key := log.key(record_id)) is None:
            continue  # of an erased user
        where = f"record {record_id}, see row {last.seq} of the audit log"
        try:
            found = get([record_id])
        except CorruptStore as error:
            yield Fault("state", last.seq, f"{where}: it cannot be read ({error})")
            continue
        if not found:
            yield Fault("state", last.seq, f"{where}: it is not in the store")
        elif found[0].version != last.version:
            told = f"{where}: it has version {found[0].version}, and {last.version} was written last"
            yield Fault("state", last.seq, told)
        elif texts and not _is_text_of(found[0].content, key, last.commitment):
            yield Fault("content", last.seq, f"{where}: its text is not the one that was written")


def _is_text_of(content: str, key: bytes, committed: str | None) -> bool:
    return committed is None or hmac.compare_digest(commitment(key, content), committed)
