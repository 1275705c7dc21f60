"""Decide what becomes of each candidate, and commit it: add, merge, append, supersede or skip.

In order: the same words → skip; the same subject and attribute → compatible texts are merged by
strategy, a contradiction supersedes; very like and no slot differs → merged by strategy; else added.
A statement of the user is never changed by what an agent or a tool said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from supervisor_memory.backends.protocol import Change, Commit
from supervisor_memory.errors import Conflict
from supervisor_memory.flow import Remembering
from supervisor_memory.ports import Deciding
from supervisor_memory.recall.rank import SECONDS_A_DAY
from supervisor_memory.records import (
    SESSION_FAMILY,
    AuditEvent,
    Candidate,
    Filter,
    Namespace,
    Query,
    Record,
    Scope,
    SourceClass,
    WriteResult,
    WriteStatus,
    content_hash,
    family_for,
    new_id,
)
from supervisor_memory.remember.compare import same_slots
from supervisor_memory.remember.merge import says_the_same, strategy_for
from supervisor_memory.settings import Settings
from supervisor_memory.terms import terms

__all__ = ["decide", "likeness"]

_TRIES = 5
_RIVALS = 5
_LEAST_TERMS = 3  # under so many, one text holding the other's terms means nothing
_TRUST: dict[SourceClass, int] = {"user": 2, "system": 2, "agent": 1, "tool": 0}
_OPS: dict[WriteStatus, str] = {
    "added": "add",
    "merged": "merge",
    "updated": "update",
    "appended": "append",
    "skipped": "skip",
}


def decide(said: Remembering, view: Deciding) -> Remembering:
    """Compare every candidate with what there is, and commit all decisions at once.

    Raises:
        Conflict: others kept changing the same records, five times in a row.
    """
    if not said.candidates and not said.verbatim:
        return said
    vectors = view.embed([candidate.content for candidate in said.candidates])
    for attempt in range(_TRIES):
        draft = _Draft(said.scope, said.created_at)
        for candidate, vector in zip(said.candidates, vectors, strict=True):
            _place(replace(candidate), vector, said, draft, view)
        for record in _not_there_yet(said.verbatim, view):
            draft.insert(record, reason="verbatim")
        try:
            view.commit(Commit(changes=_with_vectors(draft.changes, view), audit=tuple(draft.events)))
        except Conflict:
            if attempt == _TRIES - 1:
                raise
            continue
        return replace(said, results=tuple(draft.results))
    raise AssertionError("unreachable")


@dataclass
class _Draft:
    """Decisions not yet committed. Later candidates of one batch see what earlier ones became."""

    scope: Scope
    created_at: float | None
    pending: dict[str, Change] = field(default_factory=dict)
    events: list[AuditEvent] = field(default_factory=list)
    results: list[WriteResult] = field(default_factory=list)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self.pending.values())

    def find(self, matches: Callable[[Record], bool]) -> Record | None:
        return next((change.record for change in self.pending.values() if matches(change.record)), None)

    def insert(self, record: Record, *, reason: str = "") -> None:
        self.pending[record.id] = Change(record)
        self._note("added", None, record, reason)

    def change(self, old: Record, new: Record, status: WriteStatus, reason: str) -> None:
        staged = self.pending.get(old.id)
        new = replace(new, version=old.version + 1)
        self.pending[old.id] = replace(staged, record=new) if staged else Change(new, expects=old.version)
        self._note(status, old, new, reason)

    def skip(self, old: Record, reason: str) -> None:
        self._note("skipped", old, old, reason)

    def _note(self, status: WriteStatus, old: Record | None, new: Record, reason: str) -> None:
        self.results.append(WriteResult(id=new.id, status=status, reason=reason, version=new.version))
        self.events.append(
            AuditEvent(
                op=_OPS[status],
                user_id=new.user_id,
                family=new.family,
                record_id=new.id,
                version_before=old.version if old else None,
                version_after=new.version,
                before=old.content if old and old is not new else None,
                after=new.content,
                outcome="skipped" if status == "skipped" else "ok",
                reason=reason,
                source_class=new.source.source_class,
                agent_id=self.scope.agent_id,
                session_id=self.scope.session_id,
                run_id=self.scope.run_id,
                detail={"kind": new.kind, "layer": new.layer},
            )
        )


def _place(candidate: Candidate, vector: object, said: Remembering, draft: _Draft, view: Deciding) -> None:
    """Find the candidate's place among the records of its namespace."""
    settings, scope = view.settings, said.scope
    agent_id = candidate.source.agent_id or scope.agent_id
    family = said.family or family_for(candidate.kind, agent_id, settings.namespaces)
    namespace = scope.namespace(family)
    new = _record(
        candidate, namespace, said.created_at if said.created_at is not None else view.now, settings
    )
    new = replace(
        new,
        vector=vector,
        embedder=view.embedder.fingerprint if vector is not None and view.embedder else None,
    )

    if same := _same_words(new, draft, view):
        return draft.skip(same, "duplicate")
    if rival := _same_subject(new, draft, view):
        if not _may_change(new, rival):
            return draft.insert(
                replace(new, subject=None, attribute=None), reason="beside-what-the-user-said"
            )
        if _is_compatible(rival, new, candidate, view):
            return _merge(rival, new, candidate, draft, view)
        return draft.change(rival, _superseding(rival, new), "updated", "contradicts")
    if like := _very_like(new, draft, view):
        return _merge(like, new, candidate, draft, view)
    return draft.insert(new)


def _record(candidate: Candidate, namespace: Namespace, when: float, settings: Settings) -> Record:
    metadata = dict(candidate.metadata)
    seconds = metadata.get("ttl")
    days = settings.ttl_days.get(candidate.kind)
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        expires_at = when + seconds
    else:
        expires_at = when + days * SECONDS_A_DAY if days is not None else None
    return Record(
        id=new_id(),
        namespace=namespace,
        content=candidate.content,
        kind=candidate.kind,
        created_at=when,
        updated_at=when,
        metadata=metadata,
        tags=candidate.tags,
        source=candidate.source,
        subject=candidate.subject if candidate.attribute else None,
        attribute=candidate.attribute if candidate.subject else None,
        valid_from=when,
        expires_at=expires_at,
    )


def _where(record: Record) -> Filter:
    return Filter(user_id=record.user_id, families=(record.family,), tasks=(record.task,))


def _same_words(new: Record, draft: _Draft, view: Deciding) -> Record | None:
    staged = draft.find(lambda r: r.namespace == new.namespace and r.content_hash == new.content_hash)
    if staged:
        return staged
    found = view.list(replace(_where(new), content_hash=new.content_hash), limit=2)
    return next((r for r in found if r.layer != "history" and r.id not in draft.pending), None)


def _same_subject(new: Record, draft: _Draft, view: Deciding) -> Record | None:
    if new.subject is None:
        return None
    key = (new.namespace, new.subject, new.attribute)
    if staged := draft.find(lambda r: (r.namespace, r.subject, r.attribute) == key):
        return staged
    found = view.list(replace(_where(new), subject=new.subject, attribute=new.attribute), limit=1)
    return found[0] if found and found[0].id not in draft.pending else None


def _very_like(new: Record, draft: _Draft, view: Deciding) -> Record | None:
    """The most similar record that says the same with no slot differing, and may be changed."""
    query = Query(
        text=new.content,
        where=_where(new),
        terms=terms(new.content),
        vector=new.vector,
        embedder=new.embedder,
        now=view.now,
    )
    calibration = view.embedder.calibration if view.embedder and new.vector is not None else None
    best: tuple[float, Record] | None = None
    for hit in view.search(query, limit=_RIVALS):
        record = hit.record
        if record.kind != new.kind or record.layer == "history" or record.id in draft.pending:
            continue
        cosine = hit.parts.get("cosine")
        dense = calibration.relevance(cosine) if calibration and cosine is not None else None
        alike = likeness(record.content, new.content, dense=dense)
        if alike >= view.settings.duplicate_threshold and same_slots(record.content, new.content):
            best = max(best, (alike, record), key=lambda pair: pair[0]) if best else (alike, record)
    return best[1] if best and _may_change(new, best[1]) else None


def likeness(old: str, new: str, *, dense: float | None) -> float:
    """How alike two texts are, in [0, 1]: shared terms, calibrated cosine, one holding the other.

    Similarity alone cannot tell a paraphrase from a rival; the caller compares slots as well.

    Args:
        dense: Calibrated cosine in [0, 1], None without vectors.
    """
    a, b = set(terms(old)), set(terms(new))
    if not a or not b:
        return 0.0
    shared = len(a & b) / len(a | b)
    smaller, larger = sorted((a, b), key=len)
    if smaller <= larger and len(smaller) >= _LEAST_TERMS and 2 * len(smaller) >= len(larger):
        return 1.0
    return shared if dense is None else (shared + dense) / 2


def _is_compatible(old: Record, new: Record, candidate: Candidate, view: Deciding) -> bool:
    """Whether a text on the same subject adds to the record rather than contradicts it."""
    before = old.metadata.get("value")
    if candidate.value is not None and before is not None:
        return bool(candidate.value == before)
    alike = likeness(old.content, new.content, dense=None)
    return alike >= view.settings.conflict_threshold and same_slots(old.content, new.content)


def _may_change(new: Record, old: Record) -> bool:
    return _TRUST[new.source.source_class] >= _TRUST[old.source.source_class]


def _merge(old: Record, new: Record, candidate: Candidate, draft: _Draft, view: Deciding) -> None:
    name, strategy = strategy_for(old.kind, candidate.strategy)
    text = strategy(old, new.content, new.updated_at, view.complete)
    if says_the_same(old, text):
        return draft.skip(old, f"{name}:adds-nothing")
    status: WriteStatus = "appended" if name == "append" else "merged"
    return draft.change(old, _changed(old, new, text), status, name)


def _superseding(old: Record, new: Record) -> Record:
    return _changed(old, new, new.content)


def _changed(old: Record, new: Record, text: str) -> Record:
    """The old record with another text: its id, birth and source stay; the old text stays in history."""
    same = text == new.content
    return replace(
        old,
        content=text,
        content_hash=content_hash(text),
        updated_at=max(new.updated_at, old.updated_at),
        valid_from=new.valid_from,
        expires_at=new.expires_at,
        metadata={**old.metadata, **new.metadata},
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        subject=new.subject or old.subject,
        attribute=new.attribute or old.attribute,
        vector=new.vector if same else None,
        embedder=new.embedder if same else None,
    )


def _not_there_yet(records: Sequence[Record], view: Deciding) -> list[Record]:
    """Verbatim records that are new; a turn that runs again brings the same ids."""
    if not records:
        return []
    ids = tuple(record.id for record in records)
    there = {
        r.id for r in view.list(Filter(user_id=records[0].user_id, ids=ids, statuses=None), limit=len(ids))
    }
    return [record for record in records if record.id not in there]


def _with_vectors(changes: Sequence[Change], view: Deciding) -> tuple[Change, ...]:
    """Vectors for texts that have none yet: merged ones and verbatim imports, not session messages."""
    if view.embedder is None:
        return tuple(changes)
    bare = [c for c in changes if c.record.vector is None and c.record.family != SESSION_FAMILY]
    fresh = dict(zip((c.record.id for c in bare), view.embed([c.record.content for c in bare]), strict=True))
    print_ = view.embedder.fingerprint if bare else ""
    return tuple(
        replace(c, record=replace(c.record, vector=v, embedder=print_))
        if (v := fresh.get(c.record.id)) is not None
        else c
        for c in changes
    )
