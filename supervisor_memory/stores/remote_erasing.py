"""Erases a user from a store that any number of instances share, each with an audit log of its own.

All instances have to know of the erasure, so it is noted in the store: by a tombstone, and a mark for each
verbatim record, named by keyed hashes. The key is random, made with the first erasure and kept in the store
too. While an erasure is under way its tombstone names the user, so that any instance can complete it; when
nothing is left of the user, the name goes.

Items said before the erasure are removed and refused: by their `created_at`, or because they were there when
the erasure began and bear a later time (by a wrong clock). So an erasure can be completed at any moment, by
any instance, any number of times, without harm to later words of the user.
"""

import hmac
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.tombstones import message_of, was_erased
from supervisor_memory.errors import BackendError, BackendUnavailable
from supervisor_memory.model.records import Record, new_id
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.stores.protocol import Erased

_TRIES: Final = 3
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The trace of an erased user, or the mark of an erased verbatim record.

    Args:
        at: In seconds since 1970; records said before are refused.
        erasure: A random id, new each time the user is erased.
        user_id: The user, as long as the erasure is under way; None: nothing is left of the user.
        also: The keys of items to remove although they bear a later time.
    """

    at: float
    erasure: str = ""
    user_id: str | None = None
    also: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """The values without the time and the erasure's id, which stores keep apart to compare them."""
        return {} if self.user_id is None else {"of": self.user_id, "also": sorted(self.also)}

    @classmethod
    def from_dict(cls, at: Any, erasure: Any, values: Mapping[str, Any]) -> "Tombstone":
        user_id = values.get("of")
        also = frozenset(str(each) for each in values.get("also") or ())
        return cls(float(at or 0.0), str(erasure), None if user_id is None else str(user_id), also)


@dataclass(frozen=True, slots=True)
class Held:
    """Everything a store holds of a user. `times`: key of an item or point → when its text was said."""

    records: Sequence[Record]
    versions: int
    vectors: int
    times: Mapping[str, float]

    def counted(self) -> dict[str, int]:
        return {"records": len(self.records), "versions": self.versions, "vectors": self.vectors}


Answers: TypeAlias = tuple[str | None, Mapping[str, Tombstone]]
"""The store's secret, if it has one, and the tombstones asked for, by their names."""
Asking: TypeAlias = Callable[[Sequence[str]], Answers]


def is_doomed(key: str, said_at: float, tombstone: Tombstone) -> bool:
    """Whether an item of an erased user has to be removed."""
    return said_at < tombstone.at or key in tombstone.also


class RemoteErasing(ABC):
    """The erasing half of a backend over a shared store: removes users, and refuses erased records.

    Args:
        audit: The log of this instance; the user is erased there when this instance learns of the erasure.
        clock: Seconds since 1970, for the times of audit rows.
    """

    out_of_reach: tuple[str, ...] = ()
    """Places where removed data stays for a while, as sentences."""
    _drops = False
    """Whether collections of a user are dropped, so that others must not write to them meanwhile."""

    def __init__(self, audit: AuditLog, clock: Callable[[], float]) -> None:
        self._audit, self._clock = audit, clock
        self._secret: str | None = None
        self._is_caught_up = False
        self._finish_log_of_before()

    # What a store has to do

    @abstractmethod
    def _all_held(self, user_id: str) -> Held:
        """Everything the store holds of a user."""

    @abstractmethod
    def _make_secret(self, secret: str) -> None:
        """Put a secret into the store, unless it has one."""

    @abstractmethod
    def _read(self, names: Sequence[str]) -> Answers: ...

    @abstractmethod
    def _tombstones(self) -> Mapping[str, Tombstone]:
        """All tombstones by their names, without the marks of records."""

    @abstractmethod
    def _put(self, name: str, tombstone: Tombstone) -> None:
        """Write a tombstone, unless the store has a later one of this name."""

    @abstractmethod
    def _close(self, name: str, tombstone: Tombstone) -> None:
        """Replace the tombstone of this very erasure; do nothing where there is another."""

    @abstractmethod
    def _sweep(self, user_id: str, tombstone: Tombstone) -> Sequence[str]:
        """Write marks, remove a user's doomed items, read again; returns what is left, as sentences."""

    @abstractmethod
    def _keys(self, record: Record) -> Iterable[str]:
        """Keys of everything held of a record, earlier versions last."""

    # Erasing

    def holds(self, user_id: str) -> Mapping[str, int]:
        return {**self._all_held(user_id).counted(), **self._audit.holds(user_id)}

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user; see `Erases`. The tombstone comes first, so that others can complete the erasure."""
        held = self._all_held(user_id)
        tombstone = self._begin(user_id, held, at=at)
        told = self._audit.erase(user_id, held.records, at=tombstone.at, actor=actor)
        removed = held.counted() | told
        return Erased(removed, self._finish(), self.out_of_reach)

    def erase_records(
        self, records: Sequence[Record], *, user_id: str, at: float, actor: str, trimmed: Sequence[Record]
    ) -> Erased:
        """Remove records, and the earlier versions of others; see `ErasesRecords`. An erasure cut off is not
        completed by other instances: call it again.
        """
        self._make_secret(new_id() + new_id())
        self._secret, _ = self._read([])
        keys = {key for record in records for key in self._keys(record)}
        for record in trimmed:
            earlier = record.version - 1
            keys |= {*[*self._keys(record)][-earlier:]} if earlier else set()
        left = self._sweep(user_id, Tombstone(float("-inf"), also=frozenset(keys)))
        told = self._audit.erase_records(user_id, records, at=at, actor=actor)
        self._forget()
        versions = sum(record.version - 1 for record in (*records, *trimmed))
        vectors = sum(record.embedder is not None for record in records)
        removed = {"records": len(records), "versions": versions, "vectors": vectors, **told}
        return Erased(removed, (*left, *self._finish_log()), self.out_of_reach)

    def catch_up(self) -> None:
        """Complete the erasures under way, of any instance; does nothing once all are complete."""
        if self._is_caught_up:
            return
        try:
            tombstones = self._tombstones()
            self._tell_log(tombstones)
            self._is_caught_up = not self._remove_erased(tombstones)
            if self._is_caught_up:
                _warn(self._finish_log(seconds=0))
        except BackendError as error:
            _log.warning("an erasure could not be completed, the next commit tries again: %s", error)

    def tidy(self, user_ids: Iterable[str]) -> None:
        """Remove items of these users that were written too late, where the users were erased."""
        users = sorted(set(user_ids))
        found = self._ask(lambda: [self._name(each) for each in users], self._read)
        for user_id in users:
            if (tombstone := found.get(self._name(user_id))) is not None:
                self._follow_tombstone(user_id, tombstone)
                self._sweep(user_id, tombstone)

    # Refusing

    def refuse_erased(self, records: Sequence[Record], asking: Asking | None = None) -> None:
        """Refuse new records that were said before their user was erased.

        `asking` reads tombstones, and perhaps more in the same call.

        Raises:
            WasErased: there are such records; the error's facts have their `record_ids`.
            BackendError: the store failed.
        """
        self._audit.refuse_erased(records)
        refused, is_begun = self._refused(records, asking or self._read)
        if refused:
            raise was_erased(refused, records)
        if is_begun and self._drops:
            self.catch_up()  # so that it can be written the next time, whoever began it
            raise _is_erased_now()

    def refuse_late(self, records: Sequence[Record]) -> None:
        """Refuse records that were just written, and remove them: an erasure may have come in between.

        Raises:
            WasErased: as `refuse_erased`.
            BackendUnavailable: the place of the records may be dropped at this moment.
        """
        if not records:
            return
        refused, is_begun = self._refused(records, self._read)
        if refused:
            self.tidy(record.user_id for record in refused)
            raise was_erased(refused, records)
        if is_begun and self._drops:
            raise _is_erased_now()

    def _refused(self, records: Sequence[Record], asking: Asking) -> tuple[Sequence[Record], bool]:
        """The records to refuse, and whether the erasure of one of their users is under way."""
        said = [message for record in records if (message := message_of(record)) is not None]
        users = {record.erased_with for record in records}
        found = self._ask(lambda: [*map(self._name, sorted(users)), *map(self.mark, said)], asking)
        if not found:
            return (), False
        tombstones = {user_id: found.get(self._name(user_id)) for user_id in users}
        for user_id, tombstone in tombstones.items():
            if tombstone is not None:
                self._follow_tombstone(user_id, tombstone)
        refused = [
            record
            for record in records
            if (
                (tombstone := tombstones[record.erased_with]) is not None and record.created_at < tombstone.at
            )
            or ((message := message_of(record)) is not None and self.mark(message) in found)
        ]
        return refused, any(each is not None and each.user_id is not None for each in tombstones.values())

    def _ask(self, names: Callable[[], list[str]], asking: Asking) -> Mapping[str, Tombstone]:
        """The tombstones with these names; asks again where the secret, which names are made with, is new."""
        secret, found = asking(names() if self._secret else [])
        if secret != self._secret:
            self._secret = secret
            if secret is not None:
                _, found = asking(names())
        return found

    def _follow_tombstone(self, user_id: str, tombstone: Tombstone) -> None:
        """Erase a user from this instance's log and memory, if the tombstone is new to this instance."""
        if tombstone.user_id is not None:
            self._is_caught_up = False
        known = self._audit.tombstones.erased_at(user_id)
        if known is None or known < tombstone.at:
            self._audit.erase(user_id, [], at=tombstone.at)
            self._is_caught_up = False
            self._forget()

    def _forget(self) -> None:
        """Empty the caches of this process."""
        forget_texts()

    # Steps

    def _name(self, user_id: str) -> str:
        """The name of a user's tombstone; "" as long as there is no secret, and so no tombstone."""
        return self._keyed("tombstone", user_id)

    def mark(self, record_id: str) -> str:
        """The name of a verbatim record's mark."""
        return self._keyed("verbatim", record_id)

    def _keyed(self, what: str, text: str) -> str:
        if self._secret is None:
            return ""
        message = f"{what}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._secret.encode(), message, "sha256").hex()

    def _begin(self, user_id: str, held: Held, *, at: float) -> Tombstone:
        self._make_secret(new_id() + new_id())
        self._secret, _ = self._read([])
        for _ in range(_TRIES):
            name = self._name(user_id)
            known = self._read([name])[1].get(name)
            at = at if known is None else max(at, known.at)
            also = {key for key, said_at in held.times.items() if said_at >= at}
            if known is not None:
                also |= known.also
            self._put(name, Tombstone(at, new_id(), user_id, frozenset(also)))
            self._secret, found = self._read([name])
            now = found.get(self._name(user_id))
            if now is not None and now.user_id == user_id and now.at >= at and also <= now.also:
                return now
        raise BackendUnavailable(
            "another instance erases the same user at this moment, so nothing was removed here; try again"
        )

    def _finish(self) -> tuple[str, ...]:
        """Complete all erasures under way; returns what is in the way, as sentences."""
        self._is_caught_up = False
        try:
            pending = self._remove_erased(self._tombstones())
            self._is_caught_up = not pending
            return pending or self._finish_log()
        except BackendError as error:
            return (f"{error}; what was not removed may still be read until then",)
        finally:
            self._forget()

    def _remove_erased(self, tombstones: Mapping[str, Tombstone]) -> tuple[str, ...]:
        self._secret, _ = self._read([]) if tombstones else (self._secret, None)
        pending: list[str] = []
        for name, tombstone in tombstones.items():
            if tombstone.user_id is None:
                continue
            left = self._sweep(tombstone.user_id, tombstone)
            pending += left
            if not left:
                self._close(name, replace(tombstone, user_id=None, also=frozenset()))
                now = self._read([name])[1].get(name)
                if now is not None and now.erasure == tombstone.erasure and now.user_id is not None:
                    pending.append("a tombstone still names the user")
        return tuple(pending)

    def _tell_log(self, tombstones: Mapping[str, Tombstone]) -> None:
        """Erase users from the log of this instance that other instances have erased."""
        if not tombstones:
            return
        self._secret, _ = self._read([])
        begun = {each.user_id for each in tombstones.values() if each.user_id is not None}
        for user_id in sorted({*self._audit.users(), *begun}):
            if (tombstone := tombstones.get(self._name(user_id))) is not None:
                self._follow_tombstone(user_id, tombstone)

    def _finish_log(self, *, seconds: float | None = None) -> tuple[str, ...]:
        """Remove the last traces from the file of the log; returns what is in the way, as sentences."""
        if self._audit.tombstones.unfinished():
            self._audit.tombstones.note_removed()
        return self._audit.finish_erasures(at=self._clock(), seconds=seconds)

    def _finish_log_of_before(self) -> None:
        """As `_finish_log`, when a backend is opened and only the log is unfinished; without the store."""
        if not self._audit.is_read_only and not self._audit.tombstones.not_removed():
            _warn(self._audit.finish_erasures(at=self._clock(), seconds=0))


def _warn(obstacles: Iterable[str]) -> None:
    for each in obstacles:
        _log.warning("an erasure could not be completed, the next one tries again: %s", each)


def _is_erased_now() -> BackendUnavailable:
    return BackendUnavailable("a user of these records is being erased, so nothing was written; try again")
