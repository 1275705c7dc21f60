"""Segments: rows of the chain moved from the log into a file.

A segment is noted twice, in one transaction: in the table `segments`, so that readers know where the rows
that are left begin, and as an event `audit.archive` in the chain. From then on a trigger lets its rows be
removed. They are removed in steps, so that no writer has to wait; an archived row still in the log does no
harm. The ids of its events stay: they show that a turn runs again, even after its user was erased.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

import apsw

from supervisor_memory.disk.database import select
from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import AuditEvent

ARCHIVE: Final = "audit.archive"
"""The operation of events that note a segment."""
KEEP: Final = 100_000
"""How many of the newest rows an archiving leaves by default."""
ID: Final = "coalesce(unhex({0}, '-'), {0})"
"""SQL for an event's id as it is kept: a UUID in 16 bytes, other ids as they are. `{0}` is the id."""
TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS segments(
        through INTEGER PRIMARY KEY, hash TEXT NOT NULL, rows INTEGER NOT NULL, sha256 TEXT NOT NULL,
        at_us INTEGER NOT NULL)""",
    """CREATE TRIGGER IF NOT EXISTS segments_are_never_changed BEFORE UPDATE ON segments
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS segments_are_never_removed BEFORE DELETE ON segments
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    "CREATE TABLE IF NOT EXISTS archived_events(id BLOB PRIMARY KEY) WITHOUT ROWID",
    f"""CREATE TRIGGER IF NOT EXISTS audit_has_an_event_once BEFORE INSERT ON audit
        WHEN EXISTS(SELECT 1 FROM archived_events WHERE id = {ID.format("NEW.event_id")})
        BEGIN SELECT RAISE(ABORT, 'the event is in the audit log already'); END""",
    "DROP TRIGGER IF EXISTS audit_is_never_removed",  # earlier stores have one that knows no segments
    """CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
        WHEN OLD.seq > coalesce((SELECT max(through) FROM segments), 0)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
_COLUMNS: Final = "through, hash, rows, sha256, at_us"


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of the chain in a file.

    Args:
        through: The number of the last row.
        hash: The hash of the last row, in hex.
        rows: How many rows there are.
        sha256: Of the file, in hex.
        at_us: The time of archiving, in microseconds since 1970.
    """

    through: int
    hash: str
    rows: int
    sha256: str
    at_us: int

    @property
    def first(self) -> int:
        return self.through - self.rows + 1

    def event(self) -> AuditEvent:
        """The event that notes the segment in the chain."""
        told = ("through", "hash", "rows", "sha256")
        return AuditEvent(ARCHIVE, actor="operator", detail={name: getattr(self, name) for name in told})

    def is_told_by(self, event: Mapping[str, Any] | None) -> bool:
        """Whether an event of the chain notes this segment, with the same time."""
        told = event or {}
        return (dict(self.event().detail), self.at_us) == (told.get("detail"), told.get("ts_us"))


def listed(connection: apsw.Connection) -> Sequence[Segment]:
    """All segments of a log, oldest first."""
    rows = select(connection, "segments", f"SELECT {_COLUMNS} FROM segments ORDER BY through")
    return tuple(Segment(*row) for row in rows)


def put(connection: apsw.Connection, segment: Segment) -> None:
    """Note a segment, inside a transaction.

    Raises:
        Conflict: its rows are not the oldest of the log any more; another process has archived them.
    """
    before = listed(connection)
    last = connection.execute("SELECT hash FROM audit WHERE seq = ?", (segment.through,)).get
    follows = segment.first == (before[-1].through + 1 if before else 1)
    if not follows or not isinstance(last, bytes) or last.hex() != segment.hash:
        raise Conflict(
            f"the rows {segment.first} to {segment.through} of the audit log were archived by another "
            "process meanwhile, so nothing was removed; run it again if there are still too many",
            what="segment",
        )
    connection.execute(f"INSERT INTO segments({_COLUMNS}) VALUES(?,?,?,?,?)", astuple(segment))


def remove(connection: apsw.Connection, *, most: int) -> int:
    """Remove up to `most` archived rows, oldest first, inside a transaction; returns how many."""
    archived = "SELECT seq FROM audit WHERE seq <= (SELECT max(through) FROM segments) ORDER BY seq LIMIT ?"
    through = connection.execute(f"SELECT max(seq) FROM ({archived})", (most,)).get
    if through is None:
        return 0
    ids = f"SELECT {ID.format('event_id')} FROM audit WHERE seq <= ?"
    connection.execute(f"INSERT OR IGNORE INTO archived_events {ids}", (through,))
    connection.execute("DELETE FROM audit WHERE seq <= ?", (through,))
    return int(connection.changes())
