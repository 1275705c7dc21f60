"""`write`, `update` and `delete` by means of `batch`, once for all backends."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from supervisor_memory.errors import BackendError, ConfirmationRequired, Conflict
from supervisor_memory.model.records import AuditEvent, Filter, Record, WriteResult
from supervisor_memory.stores.changes import is_no_new_version
from supervisor_memory.stores.protocol import Change, Commit, Committed, Health, Ids, MemoryBackend

EVERYTHING = 2**62
"""A limit larger than any store."""
_TRIES = 20


class Verbs(ABC):
    """The convenient half of a backend. Each call is a commit with an audit event for each record."""

    @abstractmethod
    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing, audit included."""

    @abstractmethod
    def get(self, ids: Ids) -> Sequence[Record]:
        """The records of these ids in any status, in the order asked, unknown ones left out."""

    @abstractmethod
    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        """Records that match, most recently updated first; equally recent ones by falling id."""

    def write(self, records: Sequence[Record]) -> Sequence[WriteResult]:
        """Insert records as they are. Raises Conflict when an id exists or a like record is active."""
        events = tuple(_event("memory.write", after=record, version=1) for record in records)
        committed = self.batch(Commit(tuple(Change(record) for record in records), events))
        return [
            WriteResult(r.id, "added", saved=committed.saved, version=r.version) for r in committed.records
        ]

    def update(self, changes: Sequence[Change]) -> Sequence[WriteResult]:
        """Replace records, each only if it still has the version it was read at.

        Raises:
            Conflict: a record has changed; nothing is written.
            RecordNotFound: a record does not exist.
        """
        committed = self.batch(Commit(tuple(changes), tuple(self._update_events(changes))))
        saved = committed.saved
        return [WriteResult(r.id, "updated", saved=saved, version=r.version) for r in committed.records]

    def delete(self, target: Ids | Filter) -> int:
        """Mark records as deleted; history keeps them. Returns how many were active before.

        Raises:
            ConfirmationRequired: a filter that names neither user, ids nor session.
        """
        if isinstance(target, Filter) and not target.names_something():
            raise ConfirmationRequired(
                "this filter would delete the memories of every user; set `user_id`, `ids` or `session_id`"
            )
        for attempt in range(_TRIES):
            doomed = [record for record in self._targets(target) if record.status != "deleted"]
            try:
                self._delete(doomed)
            except Conflict:  # somebody changed one in between: read again
                if attempt == _TRIES - 1:
                    raise
            else:
                break
        return sum(record.status == "active" for record in doomed)

    def _targets(self, target: Ids | Filter) -> Sequence[Record]:
        if isinstance(target, Filter):
            return self.list(target, limit=EVERYTHING)
        return self.get([target] if isinstance(target, str) else list(dict.fromkeys(target)))

    def _delete(self, records: Sequence[Record]) -> None:
        changes = [Change(replace(record, status="deleted"), expects=record.version) for record in records]
        events = [_event("memory.delete", before=r, after=None, version=r.version + 1) for r in records]
        self.batch(Commit(tuple(changes), tuple(events)))

    def _update_events(self, changes: Sequence[Change]) -> Iterable[AuditEvent]:
        before: Mapping[str, Record] = {r.id: r for r in self.get([change.record.id for change in changes])}
        for change in changes:
            current = before.get(change.record.id)
            is_same = current is not None and is_no_new_version(change, current)
            version = (change.expects or 0) + (not is_same)
            event = _event("memory.update", before=current, after=change.record, version=version)
            yield replace(event, version_before=change.expects)


def health_of_files(backend: MemoryBackend, location: str, *, read_only: bool, **details: str) -> Health:
    """The health of a store of files: well as long as its records can be counted."""
    message = "read-only: nothing new is remembered" if read_only else ""
    try:
        details["records"] = str(backend.count(Filter(statuses=None)))
    except BackendError as error:
        message = str(error)
    is_well = "records" in details
    return Health(backend.name, is_well, persistent=True, location=location, message=message, details=details)


def _event(op: str, *, after: Record | None, version: int, before: Record | None = None) -> AuditEvent:
    record = after or before
    assert record is not None
    return AuditEvent.of(
        op,
        record,
        source=(before or record).source,
        actor="backend",
        version_before=version - 1 or None,
        version_after=version,
        before=None if before is None else before.content,
        after=None if after is None else after.content,
    )
