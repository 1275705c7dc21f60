"""Decides which records from another store are taken. The same for every backend."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, Protocol

from supervisor_memory.errors import BadVector, Conflict, InvalidContent, WasErased
from supervisor_memory.model.records import AuditEvent, Record
from supervisor_memory.stores.changes import clash, places, plain, unit
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.protocol import Change, Commit, Stored, Taken


class Shelf(Protocol):
    """A store as `take_all` sees it: records are looked up and put one by one."""

    def current(self, record_id: str) -> Record | None:
        """The record with this id, at its present version; None: there is none."""

    def earlier(self, record_id: str, version: int) -> Record | None:
        """The record at an earlier version; None: the store has no such version."""

    def put(self, stored: Stored, current: Record | None) -> None:
        """Put a record in the place of `current`, with the versions between the two.

        Raises Conflict where another active record has its place; nothing was put then.
        """


class Refuses(Protocol):
    """Knows which users were erased: an audit log, or the erasing half of a remote store."""

    def refuse_erased(self, records: Sequence[Record]) -> None:
        """Raise WasErased where a new record was said before its user was erased."""


@dataclass(slots=True)
class Decided:
    """The result for each record of a page, by its position, and the audit events to append."""

    taken: dict[int, Taken] = field(default_factory=dict)
    events: list[AuditEvent] = field(default_factory=list)

    def in_order(self) -> Sequence[Taken]:
        return [self.taken[position] for position in sorted(self.taken)]


def take_all(page: Sequence[Stored], shelf: Shelf, *, tombstones: Refuses) -> Decided:
    """Put all records of a page that can be put, and give a result for each record of the page."""
    decided = Decided()
    sound: dict[int, Stored] = {}
    for position, each in enumerate(page):
        try:
            sound[position] = _sound(each)
        except (InvalidContent, BadVector) as error:
            decided.taken[position] = _refused(each.record.id, "invalid", error)
    erased: Collection[str] = ()
    try:
        tombstones.refuse_erased(
            [each.record for each in sound.values() if shelf.current(each.record.id) is None]
        )
    except WasErased as error:
        erased = frozenset(error.facts["record_ids"])
    # Records that hold no place, or leave theirs, come first, so that others can have it.
    waiting = sorted(
        sound, key=lambda p: (any(places(sound[p].record)), shelf.current(sound[p].record.id) is None)
    )
    while waiting:
        for position in waiting:
            decided.taken[position] = _take(sound[position], shelf, erased, decided.events)
        again = [p for p in waiting if decided.taken[p].reason in ("content_hash", "attribute")]
        waiting = again if len(again) < len(waiting) else []
    refused = Counter(each.reason for each in decided.taken.values() if each.what == "refused")
    if refused:
        told = AuditEvent("memory.import", outcome="skipped", reason="refused", detail=refused)
        decided.events.append(replace(told, actor="operator"))
    return decided


def _take(stored: Stored, shelf: Shelf, erased: Collection[str], events: list[AuditEvent]) -> Taken:
    record = stored.record
    current = shelf.current(record.id)
    if current is None and record.id in erased:
        told = f"record {record.id} was said before its user was erased, so it does not come back"
        return Taken(record.id, "refused", "erased", told)
    taken = _verdict(stored, current, shelf.earlier)
    if taken.what in ("added", "replaced"):
        try:
            shelf.put(stored, current)
        except Conflict as error:
            return _refused(record.id, str(error.facts["what"]), error)
        events.append(_event(record, current))
    return taken


def _verdict(stored: Stored, current: Record | None, earlier: Callable[[str, int], Record | None]) -> Taken:
    record = stored.record
    if current is None:
        return Taken(record.id, "added")
    what: Literal["same", "older", "replaced"] = "same"
    here: Record | None = current
    brought: Record | None = record
    if current.version > record.version:
        what, here = "older", earlier(record.id, record.version)
    elif current.version < record.version:
        what, brought = "replaced", _version(stored.earlier, current.version)
    # Of the same version of one record the vectors may differ: these are remade. And so may the messages.
    both = [
        replace(each, embedder=None, content_hash="-", joined_ref_ids=(), former_ref_ids=())
        for each in (here, brought)
        if each is not None
    ]
    if len(both) > 1 and both[0] == both[1]:
        return Taken(record.id, what)
    told = f"record {record.id} is here with another history (at version {current.version}, and version "
    told += f"{record.version} was brought); delete one of the two, or keep both stores"
    return Taken(record.id, "refused", "other-record", told)


def _version(records: Iterable[Record], version: int) -> Record | None:
    return next((each for each in records if each.version == version), None)


def _sound(stored: Stored) -> Stored:
    """A checked copy that shares nothing with the original.

    Raises:
        InvalidContent, BadVector: the record cannot be stored.
    """
    record = plain(replace(stored.record, vector=None))
    what = f"record {record.id}"
    if (stored.vector is None) != (record.embedder is None):
        raise BadVector(f"{what} has a vector or the name of its embedder, and not the other", id=record.id)
    vector = None if stored.vector is None else unit(stored.vector, what=f"the vector of {what}")
    earlier = tuple(plain(replace(each, vector=None)) for each in stored.earlier)
    numbers = [each.version for each in (*earlier, record)]
    if numbers[0] < 1 or any(one >= two for one, two in pairwise(numbers)):
        raise InvalidContent(f"the versions of {what} are not in order: {str(numbers)[:80]}", id=record.id)
    if any((each.id, each.user_id) != (record.id, record.user_id) for each in earlier):
        raise InvalidContent(f"an earlier version of {what} is another record's", id=record.id)
    return Stored(record, earlier, vector)


def _refused(record_id: str, reason: str, error: Exception) -> Taken:
    return Taken(record_id, "refused", reason, str(error))


def _event(record: Record, current: Record | None) -> AuditEvent:
    return AuditEvent.of(
        "memory.import",
        record,
        actor="operator",
        version_before=None if current is None else current.version,
        version_after=record.version,
        before=None if current is None else current.content,
        after=record.content,
    )


def staged_in(state: State, page: Sequence[Stored], *, tombstones: Refuses) -> tuple[Staged, Decided]:
    """Compute the changes of a page to a state, without making them."""
    shelf = _StateShelf(state, Staged(results=[]))
    decided = take_all(page, shelf, tombstones=tombstones)
    return shelf.staged, decided


def as_commit(staged: Staged, decided: Decided) -> Commit:
    """A page as a commit, for backends that log how each commit ends."""
    changes = tuple(Change(record, expects=record.version) for record in staged.records.values())
    return Commit(changes, tuple(decided.events))


def pages(records: Sequence[Stored], *, most: int) -> Iterator[Sequence[Stored]]:
    """Divide a page into parts of at most `most` records and earlier versions; a record is never divided."""
    part: list[Stored] = []
    size = 0
    for each in records:
        if part and size + 1 + len(each.earlier) > most:
            yield part
            part, size = [], 0
        part.append(each)
        size += 1 + len(each.earlier)
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class _StateShelf:
    state: State
    staged: Staged

    def current(self, record_id: str) -> Record | None:
        return self.staged.records.get(record_id) or self.state.records.get(record_id)

    def earlier(self, record_id: str, version: int) -> Record | None:
        staged = (each for each in self.staged.previous if each.id == record_id)
        return _version((*self.state.history.get(record_id, ()), *staged), version)

    def put(self, stored: Stored, current: Record | None) -> None:
        record, staged = stored.record, self.staged
        for place in places(record):
            holder = self.state.holder(place, staged)
            if holder not in (None, record.id):
                raise clash(place[0], str(holder), record.id)
        for place in places(current) if current is not None else ():
            staged.taken[place] = None
        staged.taken |= dict.fromkeys(places(record), record.id)
        known = 0 if current is None else current.version
        staged.previous.extend(each for each in stored.earlier if each.version >= known)
        staged.records[record.id] = record
        embedder, vector = record.embedder, stored.vector
        staged.vectors[record.id] = None if vector is None or embedder is None else (embedder, vector)
