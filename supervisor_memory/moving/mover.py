"""Moves records, with their versions and vectors, between stores and files."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from supervisor_memory.errors import BackendError, InvalidContent, SettingsError
from supervisor_memory.model.records import TEAM, AuditEvent, Filter, Scope
from supervisor_memory.moving.arrival import Arrival, Moved, Reading, Tally
from supervisor_memory.moving.files import File, lines_of, opened, output
from supervisor_memory.ports import Ports, Services
from supervisor_memory.redact.redactor import Redactor, redacted_record
from supervisor_memory.stores.protocol import MemoryBackend, Moves, Stored, Taken
from supervisor_memory.wiring.trail import Trail

Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the amount done and the whole amount (0: unknown), in records or bytes."""

_SECONDS: Final = 300.0
_READ_TOGETHER: Final = 500


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves records out of a backend, and into it."""

    services: Services
    trail: Trail

    def export(self, file: File, *, user_id: str | None, resume: bool, progress: Progress | None) -> Moved:
        self._audit_leaving(user_id, "file")
        tally = Tally()
        with output(file, written_at=self.services.clock(), user_id=user_id, resume=resume) as out:
            done, whole = out.records, self._amount(user_id)
            for page in self._pages(user_id, after=out.after):
                for stored in page:
                    try:
                        out.write(stored)
                    except InvalidContent as error:
                        tally.refuse(None, stored.record.id, "invalid", str(error))
                done += len(page)
                _show(progress, done, whole)
            tally.counts["exported"] = out.records
        return tally.told()

    def import_from(
        self, file: File, *, user_id: str | None, progress: Progress | None, names_ok: Collection[str] = ()
    ) -> Moved:
        if isinstance(names_ok, str):
            raise InvalidContent("names_ok is one text; pass a list of names")

        def refuses(stored: Stored) -> str | None:
            if not stored.record.user_id.startswith(TEAM):
                return None
            from supervisor_memory.moving.shared import unfit  # few files hold what a team shares

            return unfit((stored.record, *stored.earlier), self.services, names_ok)

        _owner(user_id)
        with opened(file) as (open_file, size):
            counts: Counter[str] = Counter()
            take = partial(self._take, self.services.backend, self.services.redactor, counts)
            arrival = Arrival(take, Tally())
            reading = Reading(arrival, user_id, refuses)
            for line in lines_of(open_file):
                reading.add(line)
                if arrival.has_arrived:
                    _show(progress, reading.bytes, size)
            reading.end()
            arrival.settle()
            _show(progress, reading.bytes, size)
        if counts:
            detail = {f"redacted_{name.lower()}": amount for name, amount in sorted(counts.items())}
            self.trail.report(AuditEvent("memory.redact", user_id=user_id, actor="operator", detail=detail))
        return arrival.tally.told()

    def copy_to(
        self,
        target: MemoryBackend,
        *,
        user_id: str | None,
        progress: Progress | None,
        redactor: Redactor | None = None,
    ) -> Moved:
        """Copy all records; the redactor takes personal data out of those that arrive."""
        if target is self.services.backend:
            raise SettingsError("the target is the store itself; pass another one")
        _moving(target)
        self._audit_leaving(user_id, target.name)
        arrival = Arrival(partial(self._take, target, redactor or Redactor(), Counter()), Tally())
        done, whole = 0, self._amount(user_id)
        for page in self._pages(user_id, after=None):
            for stored in page:
                arrival.add(None, stored, _size(stored))
            done += len(page)
            _show(progress, done, whole)
        arrival.settle()
        return arrival.tally.told()

    def _take(
        self, target: MemoryBackend, redactor: Redactor, counts: Counter[str], records: Sequence[Stored]
    ) -> Sequence[Taken]:
        clean = [_redacted(stored, redactor) for stored in records]
        for before, after in zip(records, clean, strict=True):
            if after is not before:
                counts += redactor.counts(after.record.content) - redactor.counts(before.record.content)
        taken = self._ports().store(_moving(target).take, clean)
        if len(taken) != len(records):
            raise BackendError(
                f"the store {target.name!r} answered {len(records)} records with {len(taken)} results; run "
                "supervisor_memory.testing.moving_contract on it",
                backend=target.name,
            )
        return taken

    def _pages(self, user_id: str | None, *, after: str | None) -> Iterator[Sequence[Stored]]:
        backend = _moving(self.services.backend)
        while page := self._ports().store(backend.stored, after=after, limit=_READ_TOGETHER, user_id=user_id):
            yield page
            after = page[-1].record.id

    def _amount(self, user_id: str | None) -> int:
        wheres = Filter(user_id=user_id, statuses=None).everywhere()
        return sum(self._ports().store(self.services.backend.count, where) for where in wheres)

    def _audit_leaving(self, user_id: str | None, to: str) -> None:
        """Audit that records are about to leave the store."""
        owner = _owner(user_id)
        _moving(self.services.backend)
        self.trail.report(AuditEvent("memory.export", user_id=owner, actor="operator", detail={"to": to}))

    def _ports(self) -> Ports:
        """Ports for one page, with more time than other verbs have."""
        return Ports(self.services, seconds=_SECONDS, now=self.services.clock())


def _redacted(stored: Stored, redactor: Redactor) -> Stored:
    """The record and its versions, redacted; without the vector where its text changed, see `reembed`."""
    if redactor.is_off:
        return stored
    record = redacted_record(stored.record, redactor)
    earlier = tuple(redacted_record(each, redactor) for each in stored.earlier)
    if record.embedded_text == stored.record.embedded_text:
        return Stored(record, earlier, stored.vector)
    return Stored(replace(record, embedder=None), earlier, None)


def _owner(user_id: str | None) -> str | None:
    return None if user_id is None else Scope(user_id).user_id


def _size(stored: Stored) -> int:
    """About how many bytes a record takes with its versions and its vector."""
    texts = sum(len(each.content) + 1_000 for each in (stored.record, *stored.earlier))
    return texts + (0 if stored.vector is None else stored.vector.nbytes)


def _show(progress: Progress | None, done: int, whole: int) -> None:
    if progress is not None:
        progress(done, whole)


def _moving(backend: MemoryBackend) -> Moves:
    if isinstance(backend, Moves):
        return backend
    raise BackendError(
        f"the backend {backend.name!r} can neither give records away nor take them; give it the methods of "
        "`Moves` (supervisor_memory/stores/protocol.py)",
        backend=backend.name,
    )
