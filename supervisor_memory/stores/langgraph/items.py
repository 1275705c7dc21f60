"""Turns records into items of a LangGraph store, and items into records. Without I/O.

Below the prefix that the backend was given:

    records  <user>  <id>           a record as it is now, with its vector
    said     <user>  <id>           the same for session messages, which most searches leave alone
    versions <user>  <id><version>  a record as it was at an earlier version
    owners           <id>           the user and the part of a record, to find it by its id alone
    commits          <log>          the last commit of each audit log, written after everything else
    tombstones       <keyed hash>   who was erased and when, and the key of these hashes
    unsaid           <keyed hash>   the session messages erased with them
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.store.base import GetOp, Item, PutOp

from supervisor_memory.errors import CorruptStore
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Namespace, Record, Status, is_hash_of
from supervisor_memory.stores.changes import as_text, from_text
from supervisor_memory.stores.memory.state import Staged, StoredVector

FORMAT: Final = 1
_UNSAFE: Final = re.compile(rb"[^A-Za-z0-9-]")
_END: Final = "~"
_RECORDS: Final = "records"
_SAID: Final = "said"


@dataclass(frozen=True, slots=True)
class Found:
    """A record as it was read, and its vector.

    `is_altered`: the text does not fit its hash, so something else has written to the store. The record is
    then quarantined for every reader; the item is left unchanged.
    """

    record: Record
    vector: StoredVector | None = None
    is_altered: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """The user a record belongs to, and the part the record is kept in."""

    user_id: str
    part: str


def label(text: str) -> str:
    """Escape a text as a label or key for any store: letters, digits, `-`, `=XX` for other bytes, then `~`.

    No two texts share a label. A label is never empty, has no "." and no characters of patterns, and, since
    it ends with `~`, is never the beginning of another label.
    """
    escaped = _UNSAFE.sub(lambda byte: b"=%02X" % byte[0][0], text.encode("utf-8", "surrogatepass"))
    return escaped.decode() + _END


def part_of(record: Record) -> str:
    """The part a record is kept in."""
    return _SAID if record.family == SESSION_FAMILY else _RECORDS


def parts(where: Filter) -> Sequence[str]:
    """The parts that can hold matching records."""
    if where.families is not None:
        return [_SAID] * (SESSION_FAMILY in where.families) + [_RECORDS] * any(
            family != SESSION_FAMILY for family in where.families
        )
    return [_RECORDS, _SAID] if where.reads_messages else [_RECORDS]


@dataclass(frozen=True, slots=True)
class Layout:
    """The names and values of all items below a prefix."""

    prefix: Namespace

    def namespace(self, part: str, user_id: str | None) -> Namespace:
        """The namespace of a user's records of a part; None: of all users."""
        return (*self.prefix, part) if user_id is None else (*self.prefix, part, label(user_id))

    def owner(self, record_id: str) -> GetOp:
        return _get(self.owners, label(record_id))

    @property
    def owners(self) -> Namespace:
        """The namespace of the owners, by record id."""
        return (*self.prefix, "owners")

    def page(
        self, owners: Iterable[Item], after: str | None, limit: int, user_id: str | None
    ) -> Sequence[GetOp]:
        """Reads the next records in order of their ids' labels; None: of all users."""
        last = "" if after is None else label(after)
        keys = {item.key: owner for item in owners if item.key > last and (owner := self.found_owner(item))}
        wanted = sorted(key for key, owner in keys.items() if user_id in (None, owner.user_id))
        return [_get(self.namespace(keys[key].part, keys[key].user_id), key) for key in wanted[:limit]]

    def record(self, owner: Owner, record_id: str) -> GetOp:
        return _get(self.namespace(owner.part, owner.user_id), label(record_id))

    def earlier(self, record: Record) -> Sequence[GetOp]:
        """Reads the versions before the present one, oldest first."""
        namespace = self.namespace("versions", record.user_id)
        return [_get(namespace, f"{label(record.id)}{number}") for number in range(1, record.version)]

    def of_user(self, user_id: str) -> Sequence[Namespace]:
        """All namespaces with items of a user, except for the owners."""
        return [self.namespace(part, user_id) for part in (_RECORDS, _SAID, "versions")]

    @property
    def tombstones(self) -> Namespace:
        """The namespace of the tombstones."""
        return (*self.prefix, "tombstones")

    @property
    def secret(self) -> GetOp:
        """The item with the key of the tombstones' names."""
        return self.tombstone("secret")

    def tombstone(self, name: str) -> GetOp:
        return _get(self.tombstones, name)

    def mark(self, name: str) -> GetOp:
        """The item that marks a verbatim record as erased."""
        return _get((*self.prefix, "unsaid"), name)

    def last_commit(self, log_id: str) -> GetOp:
        return _get((*self.prefix, "commits"), label(log_id))

    def puts(
        self, staged: Staged, owners: Mapping[str, Owner], *, commit_id: str, log_id: str
    ) -> Sequence[PutOp]:
        """The puts that apply a commit, in an order in which a store that stops halfway loses nothing.

        Earlier versions come before the records as they are now, and the commit's mark comes last. `owners`
        has the owner so far of each record that exists.
        """
        return [
            *(self._version(record) for record in staged.previous),
            *self._places(staged, owners),
            *(self._present(record, staged.vectors.get(record.id)) for record in staged.records.values()),
            *self._moved(staged, owners),
            put(self.last_commit(log_id), {"commit": commit_id}),
        ]

    def found(self, item: Item) -> Found | None:
        """The record in an item; None where it has moved to another part.

        Raises:
            CorruptStore: the item is damaged, not ours, or in another user's place.
        """
        value = _checked_value(item)
        if "moved" in value:
            return None
        try:
            values = {name: value[name] for name in value if name not in ("format", "vector")}
            record = Record.from_dict(values)
            vector = None if value["vector"] is None else (str(record.embedder), from_text(value["vector"]))
            if not isinstance(record.content, str) or (label(record.user_id), label(record.id)) != (
                item.namespace[-1],
                item.key[: item.key.index(_END) + 1],
            ):
                raise ValueError("it is another record's")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _damaged(item, f"{type(error).__name__}: {error}") from error
        if is_hash_of(record.content, value.get("content_hash")):
            return Found(record, vector)
        status: Status = record.status if record.status == "deleted" else "quarantined"
        return Found(replace(record, status=status, content_hash="", embedder=None), is_altered=True)

    def found_owner(self, item: Item) -> Owner:
        """The owner in an item of `owners`. Raises CorruptStore: the item is damaged or not ours."""
        value = _checked_value(item)
        user_id, part = value.get("user"), value.get("part")
        if not isinstance(user_id, str) or part not in (_RECORDS, _SAID):
            raise _damaged(item, "it names no owner")
        return Owner(user_id, part)

    def _version(self, record: Record) -> PutOp:
        where = _get(self.namespace("versions", record.user_id), f"{label(record.id)}{record.version}")
        return put(where, {**record.to_dict(), "vector": None})

    def _places(self, staged: Staged, owners: Mapping[str, Owner]) -> Iterator[PutOp]:
        for record in staged.records.values():
            owner = Owner(record.user_id, part_of(record))
            if owners.get(record.id) != owner:
                said_at = {"created_at": record.created_at}
                yield put(self.owner(record.id), {"user": owner.user_id, "part": owner.part, **said_at})

    def _present(self, record: Record, stored: StoredVector | None) -> PutOp:
        vector = None if stored is None else as_text(stored[1])
        where = self.record(Owner(record.user_id, part_of(record)), record.id)
        return put(where, {**record.to_dict(), "vector": vector})

    def _moved(self, staged: Staged, owners: Mapping[str, Owner]) -> Iterator[PutOp]:
        # Written over, not deleted: some stores commit the deletions of a batch whose puts then fail.
        for record in staged.records.values():
            before = owners.get(record.id)
            if before is not None and before.part != part_of(record):
                moved = {"moved": part_of(record), "created_at": record.created_at}
                yield put(self.record(before, record.id), moved)


def _get(namespace: Namespace, key: str) -> GetOp:
    return GetOp(namespace, key, refresh_ttl=False)


def put(where: GetOp, value: dict[str, Any]) -> PutOp:
    """Writes an item."""
    # Not in the host's own index: searching is done here. And no time to live but the record's own.
    return PutOp(where.namespace, where.key, {"format": FORMAT, **value}, index=False, ttl=None)


def _checked_value(item: Item) -> Mapping[str, Any]:
    value: Any = item.value
    if not isinstance(value, Mapping) or "format" not in value:
        raise _damaged(item, "it was not written by this library")
    if value["format"] != FORMAT:
        raise _damaged(item, f"it has format {value['format']!r} and this release reads format {FORMAT}")
    return value


def _damaged(item: Item, why: str) -> CorruptStore:
    return CorruptStore(
        f"the item {item.key!r} in {'/'.join(item.namespace)} cannot be read ({why}); it is left as it is: "
        "restore it from a backup, or delete it with `store.delete`",
        namespace=item.namespace,
        key=item.key,
    )
