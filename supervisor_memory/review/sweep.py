"""Quarantine, release or roll back all records from a source class, run, session, agent or time.

Records that a run *added* are known by their source, records that it *changed* by this machine's audit log.
Records that others have changed since are left to a person, and named in the result.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypedDict

from supervisor_memory.errors import Conflict, InvalidContent
from supervisor_memory.model.arguments import Moment, as_moment, check_source_class
from supervisor_memory.model.records import (
    Filter,
    Record,
    SourceClass,
    Status,
    check_name,
    new_id,
)
from supervisor_memory.ports import Ports
from supervisor_memory.review.proposal import event
from supervisor_memory.review.undo import as_before, changing_no_message, set_back, version_before
from supervisor_memory.stages.insert.revise import SOURCE_WAS
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.compact import sources_of
from supervisor_memory.upkeep.edit import need_all

Action: TypeAlias = Literal["quarantined", "released", "withdrawn", "reverted"]
_PAGE: Final = 500
_TOGETHER: Final = 200
_TRIES: Final = 20
_ALL_ROWS: Final = 1_000_000
_CHANGES: Final = frozenset({"merge", "append", "update", "supersede"})
"""The operations that change an existing record."""
_SETTLED: Final = frozenset({"revert", "roll-back", "release", "restore"})
"""The operations after which a person has accepted the earlier changes of a record."""


class Which(TypedDict, total=False):
    """The selection of a user's records, as callers pass it."""

    source: SourceClass
    run_id: str
    session_id: str
    agent_id: str
    since: Moment
    until: Moment


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected records and changes. All set fields must hold; at least one beside the user is set.

    Args:
        source: The source class: user, agent, tool or system.
        since, until: In seconds since 1970, inclusive and exclusive: when it was said or, by the audit log,
            recorded.
    """

    user_id: str
    source: SourceClass | None = None
    run_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    since: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        check_name(self.user_id, what="user id")
        if self.source is not None:
            check_source_class(self.source)
        if not self._set_fields:
            raise InvalidContent(
                "nothing says what is meant; pass source, run_id, session_id, agent_id, since or until"
            )

    @classmethod
    def of(cls, user_id: str, which: Which) -> "Selected":
        """Read a caller's selection; InvalidContent: it is empty, has an unknown name, or a time is none."""
        if unknown := [name for name in which if name not in Which.__annotations__]:
            raise InvalidContent(
                f"{unknown[0]!r} says nothing of a record; use {', '.join(Which.__annotations__)}"
            )
        since = as_moment(which.get("since"), what="since", end=False)
        until = as_moment(which.get("until"), what="until", end=True)
        if since is not None and until is not None and since >= until:
            raise InvalidContent("since is not before until, so nothing can lie between; swap them")
        asked: dict[str, Any] = {**which, "since": since, "until": until}
        return cls(user_id, **asked)

    @property
    def _set_fields(self) -> list[str]:
        return [name for name in Selected.__slots__ if name != "user_id" and getattr(self, name) is not None]

    @property
    def rule(self) -> str:
        """The set fields as a code: by-run_id+since."""
        return f"by-{'+'.join(self._set_fields)}"

    def brought(self, record: Record) -> bool:
        """Whether a record comes from the selected source."""
        source = record.source
        return (
            self.source in (None, source.source_class)
            and self.run_id in (None, source.run_id)
            and self.session_id in (None, source.session_id)
            and self.agent_id in (None, source.agent_id)
            and self._was_in_time(record.created_at)
        )

    def did(self, row: Mapping[str, Any], *, session: str | None, runs: Collection[str | None]) -> bool:
        """Whether a row of the log is about the selected source, by the log's pseudonyms."""
        return (
            self.source in (None, row["source_class"])
            and (self.run_id is None or row["run_id"] in runs)
            and (self.session_id is None or session == row["session"])
            and self.agent_id in (None, row["agent_id"])
            and self._was_in_time(row["ts_us"] / 1_000_000)
        )

    def _was_in_time(self, moment: float) -> bool:
        return (self.since is None or self.since <= moment) and (self.until is None or moment < self.until)


@dataclass(frozen=True, slots=True)
class Step:
    """An action on a record, done or planned. `text` is the record's text before it."""

    record_id: str
    action: Action
    text: str


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep.

    Args:
        id: The name of this sweep in the audit log; "" if nothing was changed.
        rule: The selection as a code.
        steps: The actions done or, in a dry run, planned.
        left: Record id → why it was left unchanged: "changed-since" (others have changed it later), or
            "place-taken" (another active record has its words or its subject).
    """

    id: str
    rule: str
    steps: tuple[Step, ...]
    left: Mapping[str, str]
    dry_run: bool

    def to_dict(self) -> dict[str, Any]:
        steps = [{"record_id": s.record_id, "action": s.action, "text": s.text} for s in self.steps]
        told = {"id": self.id, "rule": self.rule, "dry_run": self.dry_run}
        return {**told, "steps": steps, "left": dict(self.left)}


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned action on a record; `shall_be` None: the record is left, for the reason in `why`."""

    record: Record
    action: Action
    shall_be: Record | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Reads a user's records and log, plans with a given function, and commits the plan in parts.

    Args:
        op: The operation's name in the audit log.
        ports: Makes new ports, with time for many records.
        actor: The reviewer's login.
    """

    op: str
    selected: Selected
    ports: Callable[[], Ports]
    actor: str

    def run(self, plan: "Callable[[Known, Ports], Iterator[Planned]]", *, dry_run: bool) -> Swept:
        """Carry out a plan or, in a dry run, only return it.

        Raises:
            BackendError, DeadlineExceeded: the store failed; finished parts stay done.
            Conflict: others kept changing the same records.
        """
        sweep_id, left = new_id(), dict[str, str]()
        done: list[Step] = []
        for _ in range(_TRIES):
            ports = self.ports()
            planned = [each for each in plan(self._read_known(ports), ports) if each.record.id not in left]
            left |= {each.record.id: each.why for each in planned if each.shall_be is None}
            todo = [each for each in planned if each.shall_be is not None]
            if dry_run:
                done = [_step(each) for each in todo]
                break
            try:
                self._commit(todo, done, sweep_id, ports)
            except Conflict as conflict:
                if conflict.facts.get("what") in ("content_hash", "attribute"):
                    left[str(conflict.facts["change_id"])] = "place-taken"
                continue
            break
        else:
            raise Conflict("others kept changing the same records; try again later", what="version")
        changed = "" if dry_run or not done else sweep_id
        return Swept(changed, self.selected.rule, tuple(done), left, dry_run)

    def _commit(self, todo: Sequence[Planned], done: list[Step], sweep_id: str, ports: Ports) -> None:
        """Commit the plan in parts; records that become inactive come first, which frees their places."""
        in_order = sorted(
            todo, key=lambda each: each.shall_be is not None and each.shall_be.status == "active"
        )
        for start in range(0, len(in_order), _TOGETHER):
            some = in_order[start : start + _TOGETHER]
            changes, events = [], []
            for was, now, action in ((each.record, each.shall_be, each.action) for each in some):
                if now is not None:
                    is_anew = now.source != was.source
                    changes.append(Change(now, expects=was.version, changes_source=is_anew))
                    detail = {"sweep": sweep_id, "action": action}
                    told = {"actor": self.actor, "after": now.content, "reason": self.selected.rule}
                    events.append(event(self.op, was, detail=detail, **told))
            ports.deciding().commit(Commit(tuple(changes), tuple(events)))
            done += map(_step, some)

    def _read_known(self, ports: Ports) -> "Known":
        records = {record.id: record for record in _all_of(self.selected.user_id, ports)}
        need_all(ports)
        log = ports.services.backend.audit
        session = ports.store(log.session_name, self.selected.user_id, self.selected.session_id)
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in ports.store(log.tail, _ALL_ROWS, user_id=self.selected.user_id):
            if row.record_id in records and row.outcome == "ok":
                rows.setdefault(row.record_id, []).append(row.event)
        run = ports.store(log.run_pseudonym, self.selected.user_id, self.selected.run_id)
        # Rows of an earlier release have the id itself.
        runs = {run, log.run_name(self.selected.run_id)} - {None}
        return Known(self.selected, session, frozenset(runs), records, rows)


@dataclass(frozen=True, slots=True)
class Known:
    """All records of the user, with each record's rows of the audit log, oldest first."""

    selected: Selected
    session: str | None
    runs: Collection[str | None]
    records: Mapping[str, Record]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]

    def did(self, row: Mapping[str, Any]) -> bool:
        return self.selected.did(row, session=self.session, runs=self.runs)

    def since_settled(self, record: Record) -> Sequence[Mapping[str, Any]]:
        """The record's rows since a person last settled it."""
        rows = self.rows.get(record.id, ())
        last = max((n for n, row in enumerate(rows, start=1) if row["op"] in _SETTLED), default=0)
        return rows[last:]

    def was_brought(self, record: Record) -> bool:
        """Whether a record, or one merged into it, comes from the selected source."""
        sources = (self.records.get(each) for each in sources_of(record))
        return any(self._is_from_there(each) for each in (record, *sources) if each is not None)

    def _is_from_there(self, record: Record) -> bool:
        """Whether a record's own source, or the audit row of its first version, is the selected source."""
        rows = self.rows.get(record.id, ())
        first = next((row for row in rows if row["version_after"] == 1), None)
        is_rewritten = any(SOURCE_WAS in row["detail"] for row in rows)  # then its source is a later one
        brought = not is_rewritten and self.selected.brought(record)
        return brought or (first is not None and self.did(first))

    def was_changed(self, record: Record) -> bool:
        """Whether the selected source has changed an existing record."""
        return any(row["op"] in _CHANGES and self.did(row) for row in self.since_settled(record))


def quarantine(known: Known, ports: Ports) -> Iterator[Planned]:
    """Plan to quarantine all records added or changed by the selected source."""
    for record in known.records.values():
        if record.status in ("active", "pending") and (
            known.was_brought(record) or known.was_changed(record)
        ):
            yield Planned(record, "quarantined", replace(record, status="quarantined", updated_at=ports.now))


def release(known: Known, ports: Ports) -> Iterator[Planned]:
    """Plan to give quarantined records of the selected source their earlier status back."""
    for record in known.records.values():
        if record.status == "quarantined" and (known.was_brought(record) or known.was_changed(record)):
            versions = ports.store(ports.services.backend.versions, record.id)
            was = version_before(versions)
            back = replace(set_back(record, was, ports.now), valid_from=record.valid_from)
            yield Planned(record, "released", back)


def roll_back(known: Known, ports: Ports) -> Iterator[Planned]:
    """Plan to withdraw records added by the selected source, and to revert records it changed.

    The earlier messages that these records contradicted may be quoted again.
    """
    for record in known.records.values():
        if record.status == "deleted":
            continue
        rows = [row for row in known.since_settled(record) if row["op"] in _CHANGES]
        mine = [known.did(row) for row in rows]
        if known.was_brought(record):
            took_back = record.status == "stale" and record.version == 1  # what messages had told
            if record.status not in ("active", "pending", "quarantined") and not took_back:
                continue  # others have taken its place
            versions = ports.store(ports.services.backend.versions, record.id)
            gone = changing_no_message(record, versions)
            gone = replace(gone, status="deleted", valid_to=ports.now, updated_at=ports.now)
            is_as_left = all(mine)
            yield Planned(
                record, "withdrawn", gone if is_as_left else None, "" if is_as_left else "changed-since"
            )
        elif any(mine):
            first = mine.index(True)
            if all(mine[first:]):
                yield from _reverted(record, rows[first]["version_before"], ports)
            else:
                yield Planned(record, "reverted", None, "changed-since")


def _reverted(record: Record, version: int, ports: Ports) -> Iterator[Planned]:
    versions = ports.store(ports.services.backend.versions, record.id)
    then = next((each for each in versions if each.version == version), None)
    if then is not None:
        back = as_before(record, then, versions, ports.deciding())
        yield Planned(record, "reverted", replace(back, status=then.status))


def _all_of(user_id: str, ports: Ports) -> Iterator[Record]:
    view = ports.read_store()
    every: tuple[Status, ...] = ("active", "pending", "stale", "compressed", "quarantined")
    for where in Filter(user_id=user_id, statuses=every).everywhere():
        rest = where
        while page := view.list(rest, limit=_PAGE):
            yield from page
            rest = rest.after(page[-1])


def _step(planned: Planned) -> Step:
    return Step(planned.record.id, planned.action, planned.record.content)
