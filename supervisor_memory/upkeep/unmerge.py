"""Takes deleted and changed records out of their summaries and other derived records.

A summary is made anew, by rules, from its remaining records; if none remains, it is deleted too. What was
made from a record by other means (`Record.made_from`: a reflection, a digest) is deleted, for nobody can tell
which of its words are whose; the chore that made it makes another. Earlier versions stay in history, as for
any record.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from supervisor_memory.model.records import AuditEvent, Filter, Record, Source, content_hash
from supervisor_memory.ports import Deciding, Ports, ReadStore
from supervisor_memory.stages.insert.draft import embedded
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.compact import COMPRESSED_FROM, COMPRESSED_INTO, rebuilt, sources_of


def derived_from(ids: Iterable[str], user_id: str, view: ReadStore) -> Sequence[Record]:
    """All records of a user derived from these, directly or not, in any status."""
    found: dict[str, Record] = {}
    asked = frozenset(ids)
    while asked:
        wheres = Filter(user_id, ref_ids=tuple(asked), statuses=None).everywhere()
        there = (record for where in wheres for record in view.list(where, limit=_MOST))
        new = {r.id: r for r in there if r.id not in found and not asked.isdisjoint(r.made_from)}
        found |= new
        asked = frozenset(new)
    return [*found.values()]


_MOST = 10_000


def taken_out(records: Iterable[Record], ports: Ports, *, actor: str) -> Commit:
    """The changes to the records derived from these; empty if there are none."""
    records = tuple(records)
    leaving: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for record in records:
        if isinstance(summary_id := record.metadata.get(COMPRESSED_INTO), str):
            leaving[record.user_id, summary_id].add(record.id)
    changes: list[Change] = []
    events: list[AuditEvent] = []
    view = ports.deciding()
    for (user_id, summary_id), ids in leaving.items():
        found = _records_by_ids(user_id, [summary_id], view)
        if not found or found[0].status == "deleted" or not ids & set(sources_of(found[0])):
            continue
        left = _records_by_ids(user_id, [each for each in sources_of(found[0]) if each not in ids], view)
        new = _summary_without(found[0], left, ports, view)
        changes.append(Change(new, expects=found[0].version))
        events.append(_event(found[0], new, actor=actor))
    for user_id in {record.user_id for record in records}:
        leaving_ids = {record.id for record in records if record.user_id == user_id}
        for old in derived_from(leaving_ids, user_id, view):
            if old.status != "deleted" and old.id not in leaving_ids:
                gone = replace(old, status="deleted", updated_at=view.now, valid_to=view.now)
                changes.append(Change(gone, expects=old.version))
                events.append(_event(old, gone, actor=actor))
    return Commit(tuple(changes), tuple(events))


def back_in_use(record: Record, view: Deciding) -> Record:
    """A merged record made active again; without its subject if another record has it now."""
    metadata = {name: value for name, value in record.metadata.items() if name != COMPRESSED_INTO}
    active = replace(record, status="active", metadata=metadata, valid_from=view.now, valid_to=None)
    if active.subject is not None:
        where = replace(Filter.beside(active), subject=active.subject, attribute=active.attribute)
        if view.list(where, limit=1):
            active = replace(active, subject=None, attribute=None)
    return active if active.vector is not None else embedded(active, view)


def _records_by_ids(user_id: str, ids: Sequence[str], view: Deciding) -> Sequence[Record]:
    """The records with these ids, in this order, in any status."""
    found = view.list(Filter(user_id, ids=tuple(ids), statuses=None), limit=len(ids)) if ids else ()
    return sorted(found, key=lambda record: ids.index(record.id))


def _summary_without(summary: Record, left: Sequence[Record], ports: Ports, view: Deciding) -> Record:
    """The summary made anew from the remaining records; deleted if there are none."""
    now = view.now
    if not left:
        metadata = {**summary.metadata, COMPRESSED_FROM: []}
        summary = replace(summary, joined_ref_ids=())
        return replace(summary, status="deleted", updated_at=now, valid_to=now, metadata=metadata)
    most = 3 * view.settings.max_context_tokens // 4
    text = rebuilt(left, most_tokens=most, count_tokens=ports.services.count_tokens)
    new = replace(
        summary,
        content=text,
        content_hash=content_hash(text),
        metadata={**summary.metadata, COMPRESSED_FROM: [record.id for record in left]},
        updated_at=now,
        valid_from=now,
        joined_ref_ids=(),
    ).also_said_in(*(message for record in left for message in record.present_ref_ids))
    return embedded(new, view)


def _event(old: Record, new: Record, *, actor: str) -> AuditEvent:
    is_gone = new.status == "deleted"
    return AuditEvent.of(
        "delete" if is_gone else "update",
        old,
        source=Source(old.source.source_class, old.source.agent_id),
        actor=actor,
        version_before=old.version,
        version_after=old.version + 1,
        before=old.content,
        after=None if is_gone else new.content,
        reason="part-taken-out",
        detail={"kind": old.kind, "records": len(sources_of(new))},
    )
