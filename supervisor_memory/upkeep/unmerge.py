"""Take records out of the summaries that stand for them: what a user deletes or changes is told no more.

A summary is made anew, by rules, of the records that are left in it; where none is left it goes too. Earlier
versions of it stay in its history, as those of any record do.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from supervisor_memory.model.records import AuditEvent, Filter, Record, content_hash
from supervisor_memory.ports import Deciding, Ports
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.compact import COMPRESSED_FROM, COMPRESSED_INTO, rebuilt, sources_of

__all__ = ["back_in_use", "is_told_by_a_summary", "taken_out"]


def is_told_by_a_summary(record: Record) -> bool:
    """Whether a summary was made of it, whatever became of either since."""
    return isinstance(record.metadata.get(COMPRESSED_INTO), str)


def taken_out(records: Iterable[Record], ports: Ports, *, actor: str) -> Commit:
    """The changes to the summaries that these records are a part of; empty where they are part of none."""
    leaving: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for record in records:
        if is_told_by_a_summary(record):
            leaving[record.user_id, record.metadata[COMPRESSED_INTO]].add(record.id)
    changes: list[Change] = []
    events: list[AuditEvent] = []
    view = ports.deciding()
    for (user_id, summary_id), ids in leaving.items():
        found = _every(user_id, [summary_id], view)
        if not found or found[0].status == "deleted" or not ids & set(sources_of(found[0])):
            continue
        left = _every(user_id, [each for each in sources_of(found[0]) if each not in ids], view)
        new = _without(found[0], left, ports, view)
        changes.append(Change(new, expects=found[0].version))
        events.append(_event(found[0], new, actor=actor))
    return Commit(tuple(changes), tuple(events))


def back_in_use(record: Record, view: Deciding) -> Record:
    """A record that was merged, as one that is found again; without its subject where that is taken."""
    metadata = {name: value for name, value in record.metadata.items() if name != COMPRESSED_INTO}
    active = replace(record, status="active", metadata=metadata, valid_from=view.now, valid_to=None)
    if active.subject is not None:
        family, user_id, *task = active.namespace
        place = Filter(user_id, families=(family,), tasks=(task[0] if task else None,))
        if view.list(replace(place, subject=active.subject, attribute=active.attribute), limit=1):
            active = replace(active, subject=None, attribute=None)
    return active if active.vector is not None else _embedded(active, view)


def _every(user_id: str, ids: Sequence[str], view: Deciding) -> Sequence[Record]:
    """The records of these ids, in their order, whatever their status."""
    found = view.list(Filter(user_id, ids=tuple(ids), statuses=None), limit=len(ids)) if ids else ()
    return sorted(found, key=lambda record: ids.index(record.id))


def _without(summary: Record, left: Sequence[Record], ports: Ports, view: Deciding) -> Record:
    """The summary of those that are left."""
    now = view.now
    if not left:
        return replace(
            summary,
            status="deleted",
            updated_at=now,
            valid_to=now,
            metadata={**summary.metadata, COMPRESSED_FROM: []},
        )
    text = rebuilt(
        left,
        most_tokens=3 * view.settings.max_context_tokens // 4,
        count_tokens=ports.services.count_tokens,
    )
    new = replace(
        summary,
        content=text,
        content_hash=content_hash(text),
        metadata={**summary.metadata, COMPRESSED_FROM: [record.id for record in left]},
        updated_at=now,
        valid_from=now,
    )
    return _embedded(new, view)


def _embedded(record: Record, view: Deciding) -> Record:
    [vector] = view.embed([record.embedded_text])
    embedder = view.embedder if vector is not None else None
    return replace(record, vector=vector, embedder=embedder.fingerprint if embedder else None)


def _event(old: Record, new: Record, *, actor: str) -> AuditEvent:
    is_gone = new.status == "deleted"
    return AuditEvent(
        "delete" if is_gone else "update",
        user_id=old.user_id,
        actor=actor,
        family=old.family,
        record_id=old.id,
        version_before=old.version,
        version_after=old.version + 1,
        before=old.content,
        after=None if is_gone else new.content,
        reason="part-taken-out",
        source_class=old.source.source_class,
        agent_id=old.source.agent_id,
        detail={"kind": old.kind, "records": len(sources_of(new))},
    )
