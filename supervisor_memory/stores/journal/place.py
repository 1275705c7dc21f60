"""The file of a journal: entries, audit log and perhaps a copy, so that one transaction covers all."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import WasErased
from supervisor_memory.model.records import AuditEvent, Record
from supervisor_memory.stores.journal.entries import Entries
from supervisor_memory.stores.journal.local_copy import LocalCopy
from supervisor_memory.stores.protocol import Commit, Committed

JOURNAL_FILE_NAME: Final = "journal.db"


@dataclass(frozen=True, slots=True)
class Place:
    """Everything kept on this machine for a store elsewhere."""

    database: Database
    entries: Entries
    audit: AuditLog
    copy: LocalCopy | None = None
    clock: Callable[[], float] = time.time

    def note(self, commit: Commit, done: Committed) -> None:
        """Put the records of an applied commit into the copy, inside the transaction that audits it."""
        vectors = {change.record.id: change.record.vector for change in commit.changes}
        self.keep((record, vectors.get(record.id)) for record in done.records)

    def keep(self, records: Iterable[tuple[Record, Any]]) -> None:
        """Put records of the store, with vectors, into the copy; not those of users erased meanwhile."""
        if self.copy is None:
            return
        with self.database.writing():
            stored = list(records)
            try:
                self.audit.refuse_erased([record for record, _ in stored])
            except WasErased as error:
                stored = [each for each in stored if each[0].id not in error.facts["record_ids"]]
            self.copy.put(stored)

    def tell(self, *events: AuditEvent) -> None:
        """Add events to the audit log."""
        self.audit.append(events, at=self.clock())


def told(op: str, commit: Commit, *, outcome: str = "ok", reason: str = "") -> AuditEvent:
    """The audit event on what became of a commit."""
    detail = {"commit": commit.id, "changes": len(commit.changes)}
    return AuditEvent(op, actor="backend", outcome=outcome, reason=reason, detail=detail)  # type: ignore[arg-type]
