"""Recognises the rows of a damaged store by their shape, since their tables may be unknown."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from supervisor_memory.audit.chain import event_of
from supervisor_memory.audit.rows import GENESIS, AuditRow, commitment, row_hash
from supervisor_memory.model.records import Record
from supervisor_memory.stores.changes import Vector, from_bytes, from_text
from supervisor_memory.stores.protocol import Stored
from supervisor_memory.stores.sqlite.pages import Pages, Row, Value

_RECORD, _ACCESS = 18, 11  # columns of the tables `records` and `access`
_KEY_BYTES: Final = 32
_UUID_BYTES: Final = 16
_HEX: Final = re.compile(r"[0-9a-f]{64}\Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_SUBJECT: Final = re.compile(r"s-[0-9a-f]{16}\Z")
_EARLIEST_TIME: Final = 1e8
"""In seconds since 1970: larger than any row's number, so that the two are not mixed up."""


@dataclass(slots=True)
class Salvaged:
    """Everything readable of a damaged store. `unreadable` counts pages, rows and parts of a text."""

    records: dict[str, Record] = field(default_factory=dict)
    versions: dict[str, dict[int, Record]] = field(default_factory=dict)
    vectors: dict[str, tuple[str, Vector]] = field(default_factory=dict)
    """Record id → the embedder and the vector."""
    audit: dict[int, AuditRow] = field(default_factory=dict)
    """Rows of the log by their numbers; only unaltered rows."""
    tables: dict[str, list[tuple[Value, ...]]] = field(default_factory=dict)
    """Table name → rows as they are stored, for the tables beside the log."""
    meta: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0
    _events_elsewhere: set[str] = field(default_factory=set)

    def last_whole_row(self) -> int:
        """The last row up to which the chain of hashes is whole, beginning behind the archived rows."""
        last, before = self._archived()
        while (row := self.audit.get(last + 1)) is not None:
            if row.prev_hash != before:
                break
            before, last = row.hash, row.seq
        return last

    @property
    def has_whole_log(self) -> bool:
        """Whether no row of the log is missing or damaged; at its end as far as records and ids show."""
        archived, _ = self._archived()
        whole = set(self.meta) == {"log_id", "session_key"}
        said, unsaid = self.last_versions(), sys.maxsize if archived else 0
        return (
            whole
            and self.last_whole_row() == max(self.audit, default=archived) >= archived
            and all(said.get(id, (unsaid, None))[0] >= record.version for id, record in self.records.items())
            and not self._events_elsewhere
        )

    def _archived(self) -> tuple[int, bytes]:
        """The number and the hash of the last archived row."""
        segments = self.tables.get("segments")
        if not segments:
            return 0, GENESIS
        through, last_hash, *_ = max(segments)
        return int(through), bytes.fromhex(str(last_hash))  # type: ignore[arg-type]

    def last_versions(self) -> Mapping[str, tuple[int, str | None]]:
        """Record id → the last version in the log, and the commitment of its text."""
        last: dict[str, tuple[int, str | None]] = {}
        for _, row in sorted(self.audit.items()):
            event = row.event
            if row.record_id is not None and row.outcome == "ok" and event["version_after"] is not None:
                _, known = last.get(row.record_id, (0, None))
                last[row.record_id] = event["version_after"], event["commit_after"] or known
        return last

    def keys(self) -> Mapping[str, bytes]:
        """The keys of the records' commitments."""
        return {str(row[0]): bytes(row[2]) for row in self.tables.get("record_keys", ())}  # type: ignore[arg-type]

    def stored(self) -> Iterator[tuple[Stored, str]]:
        """Every record with versions and vector, and its fault as a sentence; "" when there is none.

        A record with a text other than the last one written gets the status "quarantined", so that it is
        not recalled.
        """
        said, keys = self.last_versions(), self.keys()
        for record_id in sorted({*self.records, *self.versions}):
            earlier = dict(self.versions.get(record_id, {}))
            record = self.records.get(record_id) or earlier[max(earlier)]
            version, committed = said.get(record_id, (record.version, None))
            key, wrong = keys.get(record_id), ""
            if record.version < version or record_id not in self.records:
                wrong = f"only its version {record.version} is left"
            elif key is not None and committed is not None and commitment(key, record.content) != committed:
                wrong = "its text is damaged"
            embedder, vector = self.vectors.get(record_id, (None, None))
            if embedder != record.embedder:
                vector = None
            record = replace(record, embedder=None if vector is None else embedder)
            before = tuple(earlier[v] for v in sorted(earlier) if v < record.version)
            yield Stored(replace(record, status="quarantined") if wrong else record, before, vector), wrong


def from_pages(pages: Pages) -> Salvaged:
    """Everything of ours in the pages of a SQLite file."""
    found = Salvaged()
    rows: list[Row] = list(pages.rows())
    keys: dict[int, str] = {}
    for rowid, values in rows:
        if rowid is not None:
            _take_row(found, rowid, values, keys)
    for rowid, values in rows:
        match values:
            case [None, str() as embedder, int() as size, bytes() as numbers] if rowid in keys:
                if len(numbers) == 4 * size:
                    found.vectors[keys[rowid]] = embedder, from_bytes(numbers)
    _take_beside(found, [tuple(values) for rowid, values in rows if rowid is None])
    _keep_what_is_proven(found)
    found.unreadable += pages.damaged
    return found


def _keep_what_is_proven(found: Salvaged) -> None:
    """Leave out altered rows of the log. The log's id, part of every hash, is taken from the rows if lost."""
    named = Counter(str(row.event.get("log_id")) for row in found.audit.values())
    if named:
        found.meta.setdefault("log_id", named.most_common(1)[0][0])
    for seq, row in list(found.audit.items()):
        if row_hash(found.meta["log_id"], row.prev_hash, row.payload) != row.hash:
            del found.audit[seq]
            found.unreadable += 1


def _take_row(found: Salvaged, rowid: int, values: Any, keys: dict[int, str]) -> None:
    match values:
        case [None, str() as record_id, *_, str() as data] if len(values) == _RECORD:
            if (record := _record(data)) is not None and record.id == record_id:
                found.records[record_id] = record
                keys[rowid] = record_id
        case [str() as record_id, int() as version, str() as data]:
            if (record := _record(data)) is not None and (record.id, record.version) == (record_id, version):
                found.versions.setdefault(record_id, {})[version] = record
        case [None, str(), int(), str(), str(), _, _, bytes() as payload, bytes(), bytes()]:
            if event_of(payload).get("seq") == rowid:
                found.audit[rowid] = AuditRow(rowid, *values[1:])
        case [None, str() as hash_, int(), str() as sha, int()] if _matches(_HEX, hash_) and _matches(
            _HEX, sha
        ):
            found.tables.setdefault("segments", []).append((rowid, *values[1:]))
        case [None, int(), _, str(), *_, str()] if len(values) == _ACCESS:
            found.tables.setdefault("access", []).append((rowid, *values[1:]))


def _take_beside(found: Salvaged, entries: list[tuple[Value, ...]]) -> None:
    """Take rows of tables WITHOUT ROWID, and tell them from entries of indexes.

    An entry of an index that names an unknown event shows that a row of the log is missing.
    """
    users = {record.user_id for record in found.records.values()}
    users |= {str(e[1]) for e in entries if e[1:] and isinstance(e[1], str) and _matches(_SUBJECT, e[0])}
    known = {row.event_id for row in found.audit.values()}
    known |= {str(row.record_id) for row in found.audit.values()} | set(found.records)
    known |= {str(row[7]) for row in found.tables.get("access", ())}
    for entry in dict.fromkeys(entries):
        match entry:
            case ("log_id" | "session_key" as name, str() as value):
                found.meta[str(name)] = value
            case (str() as name, str() | None as subject, bytes() as key) if len(key) == _KEY_BYTES:
                if subject is None or _matches(_SUBJECT, subject):
                    table = "subjects" if name in users else "record_keys"
                    found.tables.setdefault(table, []).append(entry)
            case (str() as name, int() | float() as at) if _matches(_HEX, name) and at > _EARLIEST_TIME:
                found.tables.setdefault("tombstones", []).append(entry)
            case (str() as name, str() as user, 0 | 1) if _matches(_UUID, name) and _matches(_HEX, user):
                found.tables.setdefault("erasures", []).append(entry)
            case (bytes() as event,) if len(event) == _UUID_BYTES:
                found.tables.setdefault("archived_events", []).append(entry)
            case (str() as name,) if _matches(_UUID, name):
                found.tables.setdefault("erased_verbatim", []).append(entry)
            case (str() as name, int() as rowid) if _matches(_UUID, name) and name not in known:
                if rowid > len(found.audit):
                    found._events_elsewhere.add(name)


def from_json(text: str) -> Salvaged:
    """Everything in a damaged `memory.json` that is still JSON by itself."""
    found = Salvaged()
    decoder = json.JSONDecoder()
    sections = [(each.start(), each[1]) for each in re.finditer(r'^ "(records|versions)": \[', text, re.M)]
    for start in re.finditer(r'^  (?:"([^"\\]+)": )?(?=\{)', text, re.M):
        section = next((name for at, name in reversed(sections) if at < start.start()), "records")
        try:
            value, _ = decoder.raw_decode(text, start.end())
            if start[1] is not None:
                found.vectors[start[1]] = str(value["embedder"]), from_text(value["float32"])
                continue
            record = Record.from_dict(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            found.unreadable += 1
            continue
        if section == "versions":
            found.versions.setdefault(record.id, {})[record.version] = record
        else:
            found.records[record.id] = record
    return found


def _record(data: str) -> Record | None:
    try:
        return Record.from_dict(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _matches(pattern: "re.Pattern[str]", value: Value) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None
