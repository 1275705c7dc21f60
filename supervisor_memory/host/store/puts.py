"""Turn puts and deletions into records and one commit. Pure, except for reads through the given view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from langgraph.store.base import PutOp, get_text_at_path

from supervisor_memory.errors import InvalidContent
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.items import KEPT, Entry, kept, plain, text_of
from supervisor_memory.model.records import AuditEvent, Filter, Namespace, Record, Source
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import embedded
from supervisor_memory.stages.insert.revise import revision
from supervisor_memory.stores.protocol import Change, Commit

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

SECONDS_A_MINUTE: Final = 60.0
_MOST_MINUTES: Final = 1e10
_SOURCE: Final = Source("agent")


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A checked put at an address, with its vectors once they are made.

    Attributes:
        paths: The fields to index; None: the store's own; False: none.
        ttl: Minutes; None: for ever.
        vector, embedder: The vector of the record, for searches of the memory, and its embedder.
        rows, index: The vectors of the fields, for searches of the store, and the index's embedder.
    """

    address: Address
    value: dict[str, Any]
    text: str
    paths: Literal[False] | Sequence[str] | None = None
    ttl: float | None = None
    vector: "Vector | None" = None
    embedder: str | None = None
    rows: "tuple[Vector, ...]" = ()
    index: str | None = None

    def near_text(self, *, indexed: bool) -> str | None:
        """The text for the record's vector; `indexed`: the paths are for the store's own index."""
        if self.paths is None or (indexed and self.paths is not False):
            return self.text
        return "\n".join(self.texts(())) or None

    def texts(self, fields: Sequence[str]) -> list[str]:
        """The texts of the fields to index: the put's own paths, or else the given fields."""
        paths = fields if self.paths is None else self.paths or ()
        found = (text for path in paths for text in get_text_at_path(self.value, path))
        return [text for text in dict.fromkeys(found) if text.strip()]

    def record(self, old: Entry | None, view: Deciding) -> Record:
        """The record to commit. Fields that a put cannot set stay as they are in an existing record."""
        live = old if old is not None and old.record.is_visible(view.now) else None
        if live is None:
            record = self._new(None if old is None else old.record.id, view.now)
        elif live.by_memory:
            record = self._revised(live.record, view)
        else:
            record = replace(live.record, layer="abstract", metadata=self._metadata(live.record))
        kept_time = None if live is None or live.ttl is not None else live.record.expires_at
        record = replace(
            record,
            content=self.text,
            content_hash="",
            updated_at=view.now,
            expires_at=kept_time if self.ttl is None else view.now + self.ttl * SECONDS_A_MINUTE,
        )
        if record.use_when is not None:  # the vector is made of `use_when`, and stays
            return record
        if record.embedded_as is not None:
            return embedded(record, view)
        return replace(record, vector=self.vector, embedder=None if self.vector is None else self.embedder)

    def _new(self, record_id: str | None, now: float) -> Record:
        return Record(
            id=record_id or self.address.id,
            namespace=self.address.namespace,
            content=self.text,
            kind="domain-facts",
            created_at=now,
            updated_at=now,
            metadata=self._metadata(),
            source=_SOURCE,
        )

    def _revised(self, old: Record, view: Deciding) -> Record:
        """A record written by memory, changed as `memory.update` would change it."""
        metadata = {KEPT: self._metadata()[KEPT]}
        commit = revision(old, self.text, metadata, merge=True, actor="store", view=view)
        return old if commit is None else commit.changes[0].record

    def _metadata(self, old: Record | None = None) -> dict[str, Any]:
        told = kept(self.address, self.value, ttl=self.ttl, embedder=self.index, vectors=self.rows)
        return {**(old.metadata if old else {}), KEPT: told}


def draft_of(address: Address, op: PutOp) -> Draft:
    """Check a put with a value; raises InvalidContent, for a wrong ttl too, and ContentTooLarge."""
    value = plain(op.value, address)
    if op.ttl is not None and not 0 <= op.ttl <= _MOST_MINUTES:
        raise InvalidContent(f"ttl is {op.ttl!r}; pass minutes from now, or None for ever", ttl=str(op.ttl))
    return Draft(address, value, text_of(value), op.index, None if op.ttl is None else float(op.ttl))


def named(addresses: Iterable[Address]) -> Filter:
    """A filter for all records that can be at these addresses, in any status."""
    ids = tuple(dict.fromkeys(id_ for each in addresses for id_ in (each.key, each.id)))
    return Filter(ids=ids, statuses=None)


def at(address: Address, records: Mapping[str, Record]) -> Entry | None:
    """The item at an address, of these records by id: made by a put, or by memory, with the key as its id."""
    for record_id in (address.key, address.id):
        record = records.get(record_id)
        entry = None if record is None else Entry.of(record)
        if entry is not None and entry.address == address:
            return entry
    return None


def decided(
    drafts: Sequence[Draft], gone: Sequence[Address], verbatim: Iterable[str], view: Deciding
) -> Commit:
    """The puts and deletions as one commit, decided against the present records.

    Args:
        verbatim: The ids of records with the same text as another record: they go into layer "history".
    """
    where = named([*(draft.address for draft in drafts), *gone])
    held = {record.id: record for record in view.list(where, limit=len(where.ids or ()))}
    exempt, taken = frozenset(verbatim), set[tuple[Namespace, str]]()
    changes: list[Change] = []
    events: list[AuditEvent] = []
    for draft in drafts:
        old = at(draft.address, held) or _without_key(draft.address, held)
        record = draft.record(old, view)
        place = (record.namespace, record.content_hash)
        if record.id in exempt or place in taken:
            record = replace(record, layer="history")
        taken.add(place)
        before = None if old is None else old.record
        changes.append(Change(record, None if before is None else before.version))
        events.append(event("store.put", changes[-1], before=before))
    for change, before in _deletions(gone, held, view.now):
        changes.append(change)
        events.append(event("store.delete", change, before=before))
    return Commit(tuple(changes), tuple(events))


def _without_key(address: Address, records: Mapping[str, Record]) -> Entry | None:
    """The record made by a put here, if it has lost its metadata, and so its key; a put restores them."""
    record = records.get(address.id)
    return None if record is None or record.namespace != address.namespace else Entry(record, address, {})


def _deletions(
    gone: Sequence[Address], held: Mapping[str, Record], now: float
) -> Iterator[tuple[Change, Record]]:
    for address in gone:
        entry = at(address, held)
        if entry is not None and entry.record.is_visible(now):
            deleted = replace(entry.record, status="deleted", updated_at=now, valid_to=now)
            yield Change(deleted, entry.record.version), entry.record


def event(op: str, change: Change, *, before: Record | None, reason: str = "") -> AuditEvent:
    """The audit event of a change."""
    record = change.record
    return AuditEvent.of(
        op,
        record,
        source=Source((before or record).source.source_class),
        actor="store",
        version_before=change.expects,
        version_after=(change.expects or 0) + 1,
        before=None if before is None else before.content,
        after=record.content if record.status == "active" else None,
        reason=reason or ("verbatim" if record.layer == "history" else ""),
        detail={"kind": record.kind},
    )
