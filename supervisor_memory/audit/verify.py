"""Verifies that the audit log is whole, and that the stored records are the ones it says were written.

The chain proves itself: each row's hash covers the row before. That finds rows that were changed, taken out
or put in between. A log that was cut off or written anew as a whole takes an anchor (`anchor.py`).
A record's text is compared with the keyed commitment of its last row. That also finds a byte flipped by the
disk, where SQLite sees a whole page.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from supervisor_memory.audit.anchor import Anchor
from supervisor_memory.audit.chain import (
    COLUMNS,
    Piece,
    beginning,
    event_of,
    live_rows,
    pieces,
    pieces_of,
    wrong_with,
)
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import GENESIS, AuditRow, commitment, row_hash
from supervisor_memory.audit.segments import ARCHIVE, Segment
from supervisor_memory.errors import BackendError, CorruptStore
from supervisor_memory.model.records import Record

FaultKind: TypeAlias = Literal["chain", "truncated", "state", "content"]
"""The kinds of fault.

"chain": a row was changed, taken out, put in or written anew. "truncated": the end is missing. "state": a
record does not have the version that was written last. "content": its text is not the one written last.
"""
_TOLD_EVERY = 10_000
LOST = "store.lost"
"""The operation of rows about a record that a repair could not save."""
_filed = attrgetter(*COLUMNS)
_said = itemgetter(*COLUMNS)

Get = Callable[[Sequence[str]], Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the log or a record. `row` is the number of its row, `told` describes it in a sentence."""

    kind: FaultKind
    row: int
    told: str


@dataclass(slots=True)
class Verified:
    """The result of verifying a log.

    Args:
        rows: How many rows were read.
        records: How many records were compared.
        faults: All that is wrong.
        archived: How many earlier rows are archived, and were not read.
        unseen: The rows of anchors among these, which were compared with nothing.
    """

    rows: int = 0
    records: int = 0
    faults: list[Fault] = field(default_factory=list)
    archived: int = 0
    unseen: list[int] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """The faults as sentences."""
        return [fault.told for fault in self.faults]


@dataclass(slots=True)
class _Last:
    """The last row about a record, with its version and the commitment of its text."""

    seq: int = 0
    version: int = 0
    commitment: str | None = None


class _Chain:
    """Checks a chain row after row, behind `start`: the number and the hash of the row before the first.

    `keeps_records`: whether to collect the last row about each record.
    """

    def __init__(
        self,
        log_id: str,
        *,
        start: tuple[int, bytes] = (0, GENESIS),
        anchors: Sequence[Anchor] = (),
        keeps_records: bool = False,
    ) -> None:
        self.found = Verified(archived=start[0])
        self.records: dict[str, _Last] | None = {} if keeps_records else None
        self.archivings: dict[int, Mapping[str, Any]] = {}
        """The events about archived rows, by the number of the last archived row."""
        self._log_id, self._anchors = log_id, anchors
        self._last, self._before = start
        self.hash_at_start = start[1].hex()
        self._hashes = {anchor.seq: "" for anchor in anchors} | {start[0]: self.hash_at_start}

    def take(self, row: AuditRow, event: Mapping[str, Any] | None = None) -> None:
        """Check the next row. `event` None: its columns are stored apart, and compared with the payload."""
        wrong = wrong_with(row, self._log_id, self._last, self._before)
        if event is None and not wrong and not _is_filed_by(row, event := event_of(row.payload)):
            wrong = f"row {row.seq} of the audit log is filed under something that it does not say"
        if wrong or event is None:
            self.fault(row.seq, wrong)
        elif row.op == ARCHIVE:
            detail = event.get("detail")
            if isinstance(detail, dict) and isinstance(through := detail.get("through"), int):
                self.archivings[through] = event
        elif self.records is not None and row.record_id is not None:
            _note(row, event, self.records)
        if row.seq in self._hashes and isinstance(row.hash, bytes):
            self._hashes[row.seq] = row.hash.hex()
        self._before, self._last = row.hash, row.seq
        self.found.rows += 1

    def read(self, piece: Piece) -> None:
        """Check the rows of a file, as far as they can be read."""
        try:
            for _, row, event in piece.rows():
                self.take(row, event)
        except BackendError as error:
            self.fault(self._last, str(error))

    def fault(self, row: int, told: str) -> None:
        self.found.faults.append(Fault("chain", row, told))

    @property
    def end_hash(self) -> str:
        """The hash of the last row that was taken, in hex."""
        return self._before.hex() if isinstance(self._before, bytes) else ""

    def end(self, key: str | None) -> None:
        """Compare the chain with the anchors, once all rows were taken."""
        start = self.found.archived
        own = [anchor for anchor in self._anchors if anchor.log_id == self._log_id]
        self.found.unseen = sorted(anchor.seq for anchor in own if anchor.seq < start)
        self.found.faults += _anchor_faults(self._anchors, self._log_id, self._hashes, start, self._last, key)


def verified(
    log: AuditLog,
    get: Get | None = None,
    *,
    texts: bool = True,
    anchors: Sequence[Anchor] = (),
    key: str | None = None,
    archives: Iterable[Path] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verified:
    """Verify a log and the archives named, and, with `get`, the records.

    Args:
        get: Reads records by their ids; the version of each record in the log is compared.
        texts: With `get`: compare the texts of the records, too.
        anchors: Of this log, from earlier moments.
        key: The key of the anchors; None: their signatures are not checked.
        archives: The files of archived rows to read first, in any order: all, or the latest.
        progress: Called now and then with the number of the row read last, and that of the last one.

    Raises:
        BackendError: the log cannot be read, or a file is no archive of this log.
        OSError: a file cannot be read.
    """
    segments, named = log.segments(), pieces_of(log, archives)
    start = beginning(segments, named)
    chain = _Chain(log.log_id, start=start, anchors=anchors, keeps_records=get is not None)
    for piece in named:
        chain.read(piece)
        segment = next(each for each in segments if piece.first <= each.through)
        if piece.sha256 != segment.sha256:
            chain.fault(segment.through, f"{piece.path} is not the file that was archived: it was changed")
    last = log.count()
    for row in live_rows(log, after=segments[-1].through if segments else 0):
        chain.take(row)
        if not row.seq % _TOLD_EVERY:
            progress(row.seq, last)
    _compare_boundaries(chain, segments)
    _compare_left_over(chain, log, segments)
    chain.end(key)
    if get is not None and chain.records is not None:
        chain.found.records = len(chain.records)
        chain.found.faults += _differences(log, get, chain.records, texts=texts)
    return chain.found


def verified_exports(
    files: Iterable[Path], *, anchors: Sequence[Anchor] = (), key: str | None = None
) -> dict[str, Verified]:
    """Verify files of `audit export` and `audit archive`, of any number of instances, in any order.

    Each chain is verified from its first row, or from behind the rows that it says were archived.

    Returns:
        The result for each log, by its id.

    Raises:
        BackendError: a line is no row of an export.
        OSError: a file cannot be read.
    """
    chains: dict[str, _Chain] = {}
    for piece in pieces(files):
        for log_id, row, event in piece.rows():
            if (chain := chains.get(log_id)) is None:
                own = [anchor for anchor in anchors if anchor.log_id == log_id]
                start = (row.seq - 1, row.prev_hash) if row.seq > 1 else (0, GENESIS)
                chain = chains[log_id] = _Chain(log_id, start=start, anchors=own)
            chain.take(row, event)
    for chain in chains.values():
        _compare_beginning(chain)
        chain.end(key)
    return {log_id: chain.found for log_id, chain in chains.items()}


def verified_latest(log: AuditLog, most: int) -> tuple[int, bool]:
    """Verify up to `most` of the latest rows; returns how many there are, and whether they are as written."""
    rows = log.tail(most)
    follow = all(a.seq + 1 == b.seq and a.hash == b.prev_hash for a, b in pairwise(rows))
    return len(rows), follow and all(_is_as_written(log, row) for row in rows)


def _is_as_written(log: AuditLog, row: AuditRow) -> bool:
    # Whoever changed it may have made it a text.
    is_held = all(isinstance(each, bytes) for each in (row.prev_hash, row.payload, row.hash))
    return is_held and row_hash(log.log_id, row.prev_hash, row.payload) == row.hash


def _compare_boundaries(chain: _Chain, segments: Sequence[Segment]) -> None:
    """Note a fault where the table `segments` and the events of the chain differ on archived rows."""
    known = {each.through: each for each in segments}
    to_be_told = {through for through in known if through >= chain.found.archived}
    for through in sorted(to_be_told | set(chain.archivings)):
        told = ""
        if through not in known:
            told = f"the log says that its rows up to {through} were archived, the store does not"
        elif not known[through].is_told_by(chain.archivings.get(through)):
            told = f"the store says that the rows up to {through} were archived, and its log does not say so"
        if told:
            chain.fault(through, told)


def _compare_left_over(chain: _Chain, log: AuditLog, segments: Sequence[Segment]) -> None:
    """Note a fault where archived rows that are still in the log differ from their archive."""
    through = segments[-1].through if segments else 0
    left: _Chain | None = None
    for row in takewhile(lambda row: row.seq <= through, live_rows(log)):
        left = left or _Chain(log.log_id, start=(row.seq - 1, row.prev_hash))
        left.take(row)
    if left is not None and (left.found.faults or left.end_hash != segments[-1].hash):
        chain.fault(through, f"rows up to {through} are archived, and those still there are not the same")


def _compare_beginning(chain: _Chain) -> None:
    """Note a fault where rows are missing before the first, and the chain does not say they were archived."""
    if not (start := chain.found.archived):
        return
    said = chain.archivings.get(start, {}).get("detail", {})
    if said.get("hash") != chain.hash_at_start:
        chain.fault(start + 1, f"the rows 1 to {start} of the audit log are missing")


def _is_filed_by(row: AuditRow, event: Mapping[str, Any]) -> bool:
    try:
        return bool(_said(event) == _filed(row))
    except KeyError:
        return False


def _anchor_faults(  # noqa: PLR0917
    anchors: Sequence[Anchor], log_id: str, hashes: Mapping[int, str], start: int, last: int, key: str | None
) -> Iterator[Fault]:
    """The faults that the anchors show. It is a fault, too, if all anchors are of rows before `start`."""
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
        elif anchor.seq >= start and hashes[anchor.seq] != anchor.hash:
            told = f"{where} has another hash: that row, or one before it, was written anew"
            yield Fault("chain", anchor.seq, told)
    own = [anchor.seq for anchor in anchors if anchor.log_id == log_id]
    if own and max(own) < start:
        told = f"all anchors are of rows before {start}, which are archived, so nothing shows that these "
        told += "were not written anew: name the archive, and anchor the log again"
        yield Fault("truncated", start, told)


def _note(row: AuditRow, event: Mapping[str, Any], records: dict[str, _Last]) -> None:
    if row.op == LOST:
        records.pop(str(row.record_id), None)
    if row.outcome != "ok" or not isinstance(version := event.get("version_after"), int):
        return
    last = records.setdefault(str(row.record_id), _Last())
    last.seq, last.version = row.seq, version
    last.commitment = event.get("commit_after") or last.commitment


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
        elif texts and not hmac.compare_digest(
            text := commitment(key, found[0].content), last.commitment or text
        ):
            yield Fault("content", last.seq, f"{where}: its text is not the one that was written")
