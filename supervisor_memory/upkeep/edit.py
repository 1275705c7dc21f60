"""Look up, change and delete records by id, or all records of a user: `update`, `delete`, `history`."""

import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from supervisor_memory.errors import BackendUnavailable, Conflict, InvalidContent, RecordNotFound
from supervisor_memory.model.arguments import as_filter
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    TEAM,
    Filter,
    Record,
    Scope,
    Source,
    Status,
    WriteResult,
)
from supervisor_memory.model.versions import Version, lifetimes, valid_at
from supervisor_memory.ports import Ports
from supervisor_memory.redact.redactor import Redactor
from supervisor_memory.stages.insert.revise import deletion, for_people, is_for_people, revision
from supervisor_memory.stores.protocol import Commit
from supervisor_memory.upkeep.unmerge import back_in_use, taken_out
from supervisor_memory.wiring.trail import Trail

T = TypeVar("T")
_PAGE = 500
_TRIES = 20
_MOST_ROWS = 10_000
_KNOWN = 1_000
_LONGEST_ID = 64
_UNTOUCHABLE: dict[Status, str] = {
    "deleted": "was deleted; write the text anew, or bring it back with `memory.review.restore`",
    "pending": "waits for a reviewer; use `memory.review.edit`",
    "quarantined": "is quarantined; release it first with `memory.review.release`",
}
_NOTHING = Commit()
_NOT_DELETED: tuple[Status, ...] = ("active", "pending", "stale", "compressed", "quarantined")


@dataclass(frozen=True, slots=True)
class Curator:
    """Reads and changes records for a user, or any records for the operator (`user_id=None`).

    Args:
        reading, writing: Make new ports, with the deadline of a read and of a write.
    """

    reading: Callable[[], Ports]
    writing: Callable[[], Ports]
    trail: Trail

    def find(self, id: str, user_id: str | None, *, op: str) -> Record:
        """A record by its id; the access log notes it as `op`."""
        record = self.own(id, user_id, self.reading())
        self.trail.seen(op, (record,), by_operator=user_id is None)
        return record

    def text_of(self, id: str, user_id: str | None) -> str:
        """The text of a record, for a summary.

        Raises:
            RecordNotFound: there is no such record, or it was deleted, waits for review or is quarantined.
        """
        record = self.find(id, user_id, op="summarize")
        _check_in_use(record)
        return record.content

    def versions(self, id: str, user_id: str | None) -> list[Version]:
        """Every version of a record with its valid times and its deciding event, oldest first."""
        record = self.find(id, user_id, op="history")
        ports = self.reading()
        backend = ports.services.backend
        versions = lifetimes(ports.store(backend.versions, record.id))
        rows = ports.attempt(
            "audit", ports.left(), lambda: backend.audit.tail(_MOST_ROWS, record_id=record.id)
        )
        events = [row.event for row in rows or () if row.outcome == "ok"]
        decided = {event["version_after"]: event for event in events}
        sessions = self._sessions_of(versions, ports)
        return [Version.of(version, decided.get(version.version), sessions) for version in versions]

    def _sessions_of(self, versions: Sequence[Record], ports: Ports) -> dict[str, str]:
        """The log's pseudonym → the id, of the sessions that the versions come from."""
        backend = ports.services.backend
        messages = list({each.ref_id for each in versions if each.ref_id is not None})
        said = [*versions, *(ports.store(backend.get, messages) if messages else ())]
        ids = {each.source.session_id for each in said if each.user_id == versions[0].user_id}
        named = {backend.audit.session_name(versions[0].user_id, each): each for each in ids if each}
        return {name: id_ for name, id_ in named.items() if name is not None}

    def as_of(self, id: str, user_id: str | None, when: float) -> Record:
        """The version of a record that was valid at a moment.

        Raises:
            RecordNotFound: there is no such record, or it was not valid then.
        """
        record = self.find(id, user_id, op="get")
        ports = self.reading()
        found = valid_at(ports.store(ports.services.backend.versions, record.id), when)
        if found is None:
            raise RecordNotFound(
                f"record {id!r} did not hold at that time, or is not to be found at any; `history` has its "
                "versions",
                id=id,
                as_of=when,
            )
        return found

    def every(self, where: Filter) -> Iterator[Record]:
        """The visible records that match, most recently updated first."""
        while True:
            ports = self.reading()
            page = ports.read_store().list(where, limit=_PAGE)
            need_all(ports)
            yield from (record for record in page if record.is_visible(ports.now))
            if len(page) < _PAGE:
                return
            where = where.after(page[-1])

    def session_of(self, record: Record, *, within: float | None = None) -> list[Record]:
        """The messages of the session that a record was read from, in order; empty if none were kept.

        Args:
            within: Only messages at most so many seconds before or after the record's own. None: all.
        """
        where = Filter(user_id=record.user_id, tasks=(record.task,))
        ids = tuple(each for each in (record.id, record.ref_id) if each is not None)
        held = {each.id: each for each in self.every(replace(where, ids=ids))}
        origin = held.get(record.ref_id or "", record)
        if origin.source.session_id is None:
            return in_order(held.values())
        where = replace(where, session_id=origin.source.session_id)
        if within is not None:
            where = replace(where, since=origin.created_at - within, until=origin.created_at + within)
        return in_order(self.every(where))

    def update(
        self,
        id: str,
        user_id: str | None,
        content: str | None,
        metadata: Mapping[str, Any],
        *,
        merge: bool,
        actor: str | None = None,
        source: Source | None = None,
    ) -> WriteResult:
        """Change one record.

        Args:
            actor: Who is named in the audit log; None: the operator, or the supervisor for the user.
            source: The source of the new text, if the old text is the user's; None: the user.
        """
        by = actor or _actor(user_id)

        def once() -> WriteResult:
            ports = self.writing()
            view = ports.deciding()
            old = self.own(id, user_id, ports)
            _check_in_use(old)
            if old.user_id.startswith(TEAM):
                raise InvalidContent(
                    f"record {old.id} is read by a team and changed by promotion alone: change the record "
                    "that it was promoted from, and promote that one again",
                    id=old.id,
                )
            commit = revision(old, content, metadata, merge=merge, actor=by, view=view, source=source)
            if commit is None:
                return WriteResult(old.id, "skipped", reason="nothing-to-change", version=old.version)
            if old.status == "compressed":  # a change means that it shall be found again
                [change] = commit.changes
                commit = replace(commit, changes=(replace(change, record=back_in_use(change.record, view)),))
            if old.status == "compressed" or any(c.record.content != old.content for c in commit.changes):
                apart = taken_out([old], ports, actor=by)
                changes, told = (*commit.changes, *apart.changes), (*commit.audit, *apart.audit)
                commit = replace(commit, changes=changes, audit=told)
            done = view.commit(commit)
            if ports.degraded:
                self.trail.degraded("update", Scope(old.user_id), ports.reasons, ports=ports)
            version = old.version + 1
            return WriteResult(old.id, "updated", saved=done.saved, version=version, applied=done.applied)

        return again_when_late(once)

    def delete(
        self,
        id: str,
        user_id: str | None,
        *,
        actor: str | None = None,
        keep_said: bool = False,
        source: Source | None = None,
    ) -> int:
        """Delete one record.

        Args:
            actor: Who is named in the audit log; None: the operator, or the supervisor for the user.
            source: Who asks, where a model does; it deletes nothing that is for people.
        """
        by = actor or _actor(user_id)

        def once() -> int:
            ports = self.writing()
            record = self.own(id, user_id, ports)
            if source is not None and is_for_people(record):
                raise for_people(record)
            if keep_said and record.family == SESSION_FAMILY:
                raise InvalidContent(
                    f"{record.id!r} is what was said itself; delete it without keep_said, or leave it",
                    id=record.id,
                )
            apart = taken_out([record], ports, actor=by)
            return _deleted([record], by, ports, apart, keep_said=keep_said) or len(apart.changes)

        return again_when_late(once)

    def delete_all(self, user_id: str, asked: Filter | None = None) -> int:
        """Delete all records of a user, or those that match; returns how many."""

        def once(where: Filter) -> int:
            ports = self.writing()
            page = ports.read_store().list(where, limit=_PAGE)
            if ports.degraded:
                _refuse_part(ports)
            by = _actor(user_id)
            if asked is None:  # what was made from them goes as well
                return _deleted(page, by, ports)
            apart, ids = taken_out(page, ports, actor=by), {record.id for record in page}
            changes = tuple(change for change in apart.changes if change.record.id not in ids)
            told = tuple(row for row in apart.audit if row.record_id not in ids)
            return _deleted(page, by, ports, replace(apart, changes=changes, audit=told))

        deleted = 0
        for where in _filters_for_all(user_id, asked):
            while done := again_when_late(functools.partial(once, where)):
                deleted += done
        return deleted

    def count_all(self, user_id: str, asked: Filter | None = None) -> int:
        """The number of records that `delete_all` would delete."""
        ports = self.reading()
        return sum(
            ports.store(ports.services.backend.count, where) for where in _filters_for_all(user_id, asked)
        )

    def own(self, id: str, user_id: str | None, ports: Ports) -> Record:
        """Return a record in any status; it has to belong to this user.

        Raises:
            RecordNotFound: it does not; the error names the most similar ids of the user.
        """
        owner = None if user_id is None else Scope(user_id).user_id
        where = Filter(ids=(id,), statuses=None)
        found = ports.read_store().list(where, limit=1) if isinstance(id, str) else ()
        if found and owner in (None, found[0].user_id):
            return found[0]
        if found and owner is not None:
            self.trail.denied(id, owner)
        need_all(ports)
        of_user = f" of user {owner!r}" if owner else ""
        near = _nearest(str(id)[:_LONGEST_ID], owner, ports)
        hint = f"; the nearest known are {', '.join(near)}" if near else ""
        raise RecordNotFound(f"there is no record {str(id)[:64]!r}{of_user}{hint}", id=id, nearest=near)


def _check_in_use(record: Record) -> None:
    if told := _UNTOUCHABLE.get(record.status):
        raise RecordNotFound(f"record {record.id!r} {told}", id=record.id, status=record.status)


def _nearest(id: str, user_id: str | None, ports: Ports) -> tuple[str, ...]:
    """The ids most like an unknown one, among the user's newest records; none if the store is late."""
    view = ports.read_store()
    known = ports.attempt("ids", ports.left(), lambda: view.list(Filter(user_id=user_id), limit=_KNOWN))
    return tuple(difflib.get_close_matches(id, [record.id for record in known or ()], n=3))


def need_all(ports: Ports) -> None:
    """Raise BackendUnavailable if only this machine's part of the records could be read."""
    if not ports.sees_all:
        _refuse_part(ports)


def _refuse_part(ports: Ports) -> NoReturn:
    raise BackendUnavailable(
        "the store is out of reach, and what this machine knows is not all there is; try again later",
        reasons=ports.reasons,
    )


def asked_for(where: Mapping[str, Any] | None, redactor: Redactor) -> Filter:
    """A caller's `where`, redacted as records are; the ids of sessions and agents stay."""
    asked, stay = redactor.value(where), ("session", "agent")
    if isinstance(where, Mapping) and any(key in where for key in stay):
        asked = {**asked, **{key: where[key] for key in stay if key in where}}
    return as_filter(asked)


def _filters_for_all(user_id: str, asked: Filter | None) -> tuple[Filter, ...]:
    if asked is not None:
        return (replace(asked, user_id=user_id, statuses=_NOT_DELETED),)
    return Filter(user_id=user_id, statuses=_NOT_DELETED).everywhere()


def _deleted(
    records: Sequence[Record], actor: str, ports: Ports, beside: Commit = _NOTHING, *, keep_said: bool = False
) -> int:
    """Delete records together with the changes in `beside`; returns how many were deleted."""
    doomed = [record for record in records if record.status != "deleted"]
    if doomed or beside.changes:
        done = deletion(doomed, now=ports.now, actor=actor, keep_said=keep_said)
        changes, events = (*done.changes, *beside.changes), (*done.audit, *beside.audit)
        ports.deciding().commit(replace(done, changes=changes, audit=events))
    return len(doomed)


def _actor(user_id: str | None) -> str:
    return "operator" if user_id is None else "supervisor"


def again_when_late(change: Callable[[], T], *, conflicts: Collection[str] = ("version",)) -> T:
    """Try a change again, from its read on, while others change the record in between.

    Args:
        conflicts: The kinds of `Conflict` that another attempt may settle, as its fact `what` names them.
    """
    for _ in range(_TRIES - 1):
        try:
            return change()
        except Conflict as error:
            if error.facts.get("what") not in conflicts:
                raise
    return change()


def in_order(records: Iterable[Record]) -> list[Record]:
    """The session messages among records, in the order in which they were said."""
    return sorted((r for r in records if r.layer == "history"), key=lambda r: (r.created_at, r.id))
