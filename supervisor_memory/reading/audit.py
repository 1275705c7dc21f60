"""The audit desk, `SupervisorMemory.audit`: reads, verifies and archives the log; see docs/auditing.md."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from supervisor_memory.audit import anchor, archive, chain, replay, turns, verify
from supervisor_memory.audit.anchor import Anchor
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import AuditRow
from supervisor_memory.audit.segments import KEEP, Segment
from supervisor_memory.audit.turns import Injection, Shown, Turn
from supervisor_memory.audit.verify import FaultKind, Verified, verified_exports
from supervisor_memory.bridge import passed_on
from supervisor_memory.errors import SettingsError
from supervisor_memory.model.records import Record
from supervisor_memory.ports import Services
from supervisor_memory.reading.metrics import Latency, Metrics, counters, histograms, latencies, measure
from supervisor_memory.reading.question import question_of
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.wiring.trail import Trail

__all__ = [
    "KEEP",
    "Anchor",
    "Audit",
    "AuditRow",
    "FaultKind",
    "Injection",
    "Shown",
    "Verified",
    "read_anchors",
    "verified_exports",
]

read_anchors = anchor.read_from
_PATIENCE_MS = 5_000


def _log(desk: "Audit") -> AuditLog:
    return desk.services.backend.audit


@dataclass(frozen=True, slots=True)
class Audit:
    """The log of a store: all changes of records and all notes, and the proof that no row was altered."""

    services: Services
    queue: Queue
    trail: Trail

    rows = passed_on(_log, AuditLog.rows)
    tail = passed_on(_log, AuditLog.tail)
    ids = passed_on(_log, AuditLog.ids)
    ids_by_end = passed_on(_log, AuditLog.ids_by_end)
    run_behind = passed_on(_log, AuditLog.run_behind)
    count = passed_on(_log, AuditLog.count)
    notes = passed_on(_log, AuditLog.notes)
    accesses = passed_on(_log, AuditLog.accesses)
    segments = passed_on(_log, AuditLog.segments)
    users = passed_on(_log, AuditLog.users)

    @property
    def log_id(self) -> str:
        """The id of the log, which its anchors and exports name."""
        return _log(self).log_id

    def turns(self, limit: int, *, user_id: str | None = None, before: int | None = None) -> list[Turn]:
        """The latest notes and searches, newest first, grouped by the run of the graph."""
        return turns.grouped(self.notes(limit, user_id=user_id, before=before))

    def question(self, note: Injection, *, user_id: str) -> Record | None:
        """The message of the user that a note was given for; None: it was not kept."""
        return question_of(note, user_id, self.services.ports(_PATIENCE_MS, with_model=False))

    def figures(self, *, user_id: str | None = None, since: float | None = None) -> Metrics:
        """The figures of docs/metrics.md by the log, from `since`, in seconds since 1970, to now."""
        return measure(self.services.backend, queue=self.queue.counts(), user_id=user_id, since=since)

    def counted(self) -> str:
        """What the log has counted and how long calls took: counters and histograms for Prometheus."""
        return counters(_log(self).kept()) + histograms(self.services.durations)

    def by_day(self, *, since: float) -> dict[tuple[int, str, str], float]:
        """What was counted each day (UTC, days since 1970), by agent and name; see docs/metrics.md."""
        return _log(self).kept_by_day(since=since)

    def latencies(self) -> list[Latency]:
        """How long the calls of this process took, by operation."""
        return latencies(self.services.durations)

    def seen(self, op: str, records: Iterable[Record]) -> None:
        """Note in the access log that an operator read these records."""
        self.trail.seen(op, records, by_operator=True)

    def verify(
        self,
        *,
        state: bool = False,
        deep: bool = False,
        anchors: Sequence[Anchor] = (),
        archives: Iterable[Path] = (),
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Verified:
        """Verify each row of the log, the anchors and archives named, and with `state` or `deep` the records.

        Args:
            state: Compare the version of each record with its last row.
            deep: Compare its text, too.
            progress: Called now and then with the row that was read last, and the last one.
        """
        get = self.services.backend.get if state or deep else None
        return verify.verified(
            _log(self),
            get,
            texts=deep,
            anchors=anchors,
            key=self._key(),
            archives=archives,
            progress=progress,
        )

    def verify_latest(self, most: int | None) -> tuple[int, bool]:
        """Verify up to `most` latest rows, or all; returns how many, and whether they are as written."""
        if most is None:
            found = self.verify()
            return found.rows, not found.problems
        return verify.verified_latest(_log(self), most)

    def anchor(self, file: Path) -> Anchor:
        """Add an anchor of the log to a file, signed where MEMORY_ANCHOR_KEY is set."""
        found = anchor.anchored(_log(self), at=self.services.clock(), key=self._key())
        anchor.append_to(file, found, _log(self))
        return found

    def export(self, file: Path) -> int:
        """Write the log to a new file, a row a line; returns how many rows.

        Raises:
            SettingsError: the file exists.
        """
        if file.exists():
            raise SettingsError(f"{file} is there already; name a file that is not")
        rows = 0
        with file.open("x", encoding="utf-8") as lines:
            for row in chain.live_rows(_log(self)):
                lines.write(chain.line_of(self.log_id, row))
                rows += 1
        return rows

    def archivable(self, *, keep: int = KEEP) -> range:
        """The numbers of the rows that `archive` would move."""
        return archive.oldest(_log(self), keep=keep)

    def archive(self, file: Path, *, keep: int = KEEP) -> Segment | None:
        """Move the oldest rows into a new file; None: the log has no more than `keep` rows."""
        return archive.archive(_log(self), file, at=self.services.clock(), keep=keep)

    def replay(
        self,
        *,
        until_row: int | None = None,
        until: float | None = None,
        user_id: str | None = None,
        archives: Iterable[Path] = (),
    ) -> replay.Replay:
        """The records as they were after a row of the log, or at a moment in seconds since 1970."""
        return replay.replayed(
            _log(self),
            self.services.backend.versions,
            until_row=until_row,
            until=until,
            user_id=user_id,
            archives=archives,
        )

    def _key(self) -> str | None:
        key = self.services.settings.anchor_key
        return None if key is None else key.get_secret_value()
