"""Rows of the chain that lie in a file, and in the log no more: up to where, and which file it is.

The end of each such segment is told twice, in one transaction: the table `segments` has it, so that a reader
knows where the rows that are left begin, and an event `audit.archive` in the chain. From then on a trigger
lets these rows be removed. That is done in steps, so that nobody who writes has to wait: a row that is there
although it was archived is no harm. The ids of their events stay: a turn that runs again is known by them,
also after its user was erased.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from supervisor_memory.disk.database import has_table
from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import AuditEvent

__all__ = ["ARCHIVE", "ID", "KEEP", "TABLES", "Segment", "listed", "put", "remove"]

ARCHIVE: Final = "audit.archive"
"""What the log says of rows that were archived."""
KEEP: Final = 100_000
"""How many of the newest rows stay when others are archived, if nothing else is said."""
ID: Final = "coalesce(unhex({0}, '-'), {0})"
"""What is kept of an event's id: a UUID in 16 bytes. SQL, around an expression."""
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
    """Rows that lie in a file.

    Args:
        through: The number of its last row.
        hash: The hash of that row, in hex.
        rows: How many there are.
        sha256: Of the file, in hex.
        at_us: When it was archived, in microseconds since 1970.
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
        """What the chain says of it."""
        told = ("through", "hash", "rows", "sha256")
        return AuditEvent(ARCHIVE, actor="operator", detail={name: getattr(self, name) for name in told})

    def is_told_by(self, event: Mapping[str, Any] | None) -> bool:
        """Whether an event of the chain says the same."""
        if event is None:
            return False
        return (dict(self.event().detail), self.at_us) == (event.get("detail"), event.get("ts_us"))


def listed(connection: apsw.Connection) -> Sequence[Segment]:
    """All of a log, oldest first."""
    if not has_table(connection, "segments"):
        return ()
    rows: Any = connection.execute(f"SELECT {_COLUMNS} FROM segments ORDER BY through")
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
    connection.execute(
        f"INSERT INTO segments({_COLUMNS}) VALUES(?,?,?,?,?)",
        (segment.through, segment.hash, segment.rows, segment.sha256, segment.at_us),
    )


def remove(connection: apsw.Connection, *, most: int) -> int:
    """Remove the oldest of the rows that are archived, inside a transaction; how many."""
    through = connection.execute(
        "SELECT max(seq) FROM (SELECT seq FROM audit WHERE seq <= (SELECT max(through) FROM segments) "
        "ORDER BY seq LIMIT ?)",
        (most,),
    ).get
    if through is None:
        return 0
    connection.execute(
        f"INSERT OR IGNORE INTO archived_events SELECT {ID.format('event_id')} FROM audit WHERE seq <= ?",
        (through,),
    )
    connection.execute("DELETE FROM audit WHERE seq <= ?", (through,))
    return int(connection.changes())
