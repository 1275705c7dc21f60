"""The draft of a commit: decisions not yet committed, and a candidate's rivals in the draft and the store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from supervisor_memory.flow import Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.arguments import as_importance
from supervisor_memory.model.decisions import Rival, Rivals, looked_up
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    AuditEvent,
    Candidate,
    Filter,
    Kind,
    Query,
    Record,
    Scope,
    WriteResult,
    WriteStatus,
    content_hash,
    family_for,
    new_id,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Deciding
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY
from supervisor_memory.stores.protocol import Change
from supervisor_memory.understand.rejection import tally

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

_RIVALS = 10
_EQUALS = 200  # verbatim imports may say the same any number of times
_OPS: dict[WriteStatus, str] = {
    "added": "add",
    "merged": "merge",
    "updated": "update",
    "appended": "append",
    "skipped": "skip",
    "pending": "propose",
}


@dataclass(slots=True)
class Draft:
    """Decisions not yet committed. Later candidates of one batch see what earlier ones became.

    `linked` are records that change in nothing but their messages.
    """

    scope: Scope
    pending: dict[str, Change] = field(default_factory=dict)
    linked: dict[str, Record] = field(default_factory=dict)
    events: list[AuditEvent] = field(default_factory=list)
    results: list[WriteResult] = field(default_factory=list)
    is_repeated: bool = False
    _event_id: str | None = None

    def begin(self, event_id: str | None, repeated: Collection[str | None]) -> bool:
        """Begin the next decision, with the id of its event; False: an earlier run of the turn has written
        it."""
        if event_id is None or event_id not in repeated:
            self._event_id = event_id
            return True
        self.is_repeated = True
        self.results.append(WriteResult("", "skipped", reason="remembered-before"))
        return False

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self.pending.values())

    def find(self, matches: Callable[[Record], bool]) -> Record | None:
        return next((record for record in self.active if matches(record)), None)

    def find_proposal(self, new: Record) -> Record | None:
        """The proposal of this batch with the same words, if there is one."""
        waiting = (c.record for c in self.pending.values() if c.record.status == "pending")
        key = (new.namespace, new.content_hash)
        return next((r for r in waiting if (r.namespace, r.content_hash) == key), None)

    @property
    def active(self) -> Sequence[Record]:
        return [c.record for c in self.pending.values() if c.record.status == "active"]

    def trial(self) -> "Draft":
        """A copy to decide in; nothing happens here."""
        return replace(
            self,
            pending=dict(self.pending),
            linked=dict(self.linked),
            events=list(self.events),
            results=list(self.results),
        )

    def changed_since(self, before: "Draft") -> list[Record]:
        """The records of the store that this draft changes and the earlier one does not, or changes
        otherwise."""
        return [
            change.record
            for record_id, change in self.pending.items()
            if change.expects is not None and change is not before.pending.get(record_id)
        ]

    def propose(self, record: Record, reason: str) -> None:
        """Add a proposal for a reviewer; it has no effect until somebody approves."""
        self.pending[record.id] = Change(record)
        self._note("pending", None, record, reason)

    def insert(
        self, record: Record, *, reason: str = "", nearest: Record | None = None, apart: str = ""
    ) -> None:
        """Add a record; the log names the one that came nearest to being the same, and why it is not."""
        self.pending[record.id] = Change(record)
        evidence = {} if nearest is None else {"nearest_id": nearest.id, "apart": apart}
        self._note("added", None, record, reason, evidence)

    def retract(self, record: Record) -> None:
        """Add a record of what holds no more."""
        gone = replace(record, status="stale", valid_to=record.updated_at)
        self.pending[gone.id] = Change(gone)
        self._note("updated", None, gone, "retracted")

    def take_over(self, old: Record, new: Record, status: WriteStatus, reason: str) -> None:
        """Replace the old record by the new one, which keeps its own source."""
        staged = self.pending.get(old.id)
        if staged and staged.expects is None:  # nobody has seen it yet
            new = replace(new, id=old.id).no_longer_said_in(*old.ref_ids)
        else:
            back = replace(old, status="stale", valid_to=new.updated_at, version=old.version + 1)
            self.pending[old.id] = Change(back, expects=staged.expects if staged else old.version)
            self._audit("supersede", old, back, reason)
        self.pending[new.id] = Change(new)
        self._note(status, None, new, reason, {"in_place_of": old.id})

    def leave(self, reason: str, *, saved: bool = True) -> None:
        """Skip a statement that is about no known record. Not `saved`: it could not be kept at all."""
        self.results.append(WriteResult("", "skipped", saved=saved, reason=reason))
        self._pass_over(reason)

    def leave_out(self, reasons: Sequence[str], event_id: str | None) -> None:
        """Log the sentences that were not kept: one row of codes with their counts, without content."""
        self._event_id = event_id
        self._pass_over(tally(reasons))

    def _pass_over(self, reason: str) -> None:
        event = AuditEvent.by(self.scope, "skip", outcome="skipped", reason=reason, **self._own_id())
        self.events.append(event)

    def change(self, old: Record, new: Record, status: WriteStatus, reason: str) -> None:
        staged = self.pending.get(old.id)
        new = replace(new, version=old.version + 1)
        self.pending[old.id] = replace(staged, record=new) if staged else Change(new, expects=old.version)
        self._note(status, old, new, reason)

    def skip(self, old: Record, reason: str, *, linked: Record | None = None) -> None:
        """Leave a record unchanged; `linked` is the same record with a further message."""
        if linked is not None and linked != old and old.layer != "history":
            if staged := self.pending.get(old.id):
                self.pending[old.id] = replace(staged, record=linked)
            else:
                self.linked[old.id] = linked
        self._note("skipped", old, old, reason)

    @property
    def links(self) -> tuple[Change, ...]:
        linked = (record for id_, record in self.linked.items() if id_ not in self.pending)
        return tuple(Change(record, expects=record.version) for record in linked)

    def _note(
        self,
        status: WriteStatus,
        old: Record | None,
        new: Record,
        reason: str,
        evidence: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.results.append(WriteResult(id=new.id, status=status, reason=reason, version=new.version))
        self._audit(_OPS[status], old, new, reason, evidence, **self._own_id())

    def _own_id(self) -> dict[str, str]:
        """The decision's own event id, if any, for its first event; later events get a new id."""
        event_id, self._event_id = self._event_id, None
        return {} if event_id is None else {"id": event_id}

    def _audit(
        self,
        op: str,
        old: Record | None,
        new: Record,
        reason: str,
        evidence: Mapping[str, str] = MappingProxyType({}),
        **own_id: str,
    ) -> None:
        detail: dict[str, str] = {"kind": new.kind, "layer": new.layer, **evidence}
        self.events.append(
            AuditEvent.by(
                self.scope,
                op,
                user_id=new.user_id,
                family=new.family,
                record_id=new.id,
                version_before=old.version if old else None,
                version_after=new.version,
                before=old.content if old and old is not new else None,
                after=new.content,
                outcome="skipped" if op == "skip" else "ok",
                reason=reason,
                source_class=new.source.source_class,
                detail=detail,
                **own_id,
            )
        )


class RivalsThere(Rivals):
    """The rivals of a candidate in a draft and in the store, each looked up when it is first read.

    Args:
        vector: The vector of the candidate's text, if any.
    """

    def __init__(
        self,
        candidate: Candidate,
        vector: "Vector | None",
        *,
        said: Remembering,
        draft: Draft,
        view: Deciding,
    ) -> None:
        self._candidate, self._vector = candidate, vector
        self._said, self._draft, self._view = said, draft, view
        self._of_kinds: dict[Kind, RivalsThere] = {}

    @looked_up
    def new(self) -> Record:
        """The candidate as a record."""
        return record_of(self._candidate, self._vector, self._said, self._view)

    def of_kind(self, kind: Kind) -> Rivals:
        if kind not in self._of_kinds:
            asked = replace(self._candidate, kind=kind)
            rivals = RivalsThere(asked, self._vector, said=self._said, draft=self._draft, view=self._view)
            self._of_kinds[kind] = rivals
        return self._of_kinds[kind]

    @looked_up
    def same_words(self) -> Record | None:
        new, key = self.new, (self.new.namespace, self.new.content_hash)
        if staged := self._draft.find(lambda r: (r.namespace, r.content_hash) == key):
            return staged
        found = self._view.list(replace(Filter.beside(new), content_hash=new.content_hash), limit=_EQUALS)
        return next((r for r in found if r.layer != "history" and r.id not in self._draft.pending), None)

    @looked_up
    def named(self) -> Record | None:
        new, target = self.new, self._candidate.target
        if target is None:
            return None
        if staged := self._draft.find(lambda r: r.id == target and r.namespace == new.namespace):
            return staged
        found = self._view.list(replace(Filter.beside(new), ids=(target,)), limit=1)
        return found[0] if found else None

    @looked_up
    def of_subject(self) -> Record | None:
        new = self.new
        if new.subject is None:
            return None
        key = (new.namespace, new.subject, new.attribute)
        if staged := self._draft.find(lambda r: (r.namespace, r.subject, r.attribute) == key):
            return staged
        where = replace(Filter.beside(new), subject=new.subject, attribute=new.attribute)
        found = self._view.list(where, limit=1)
        return found[0] if found and found[0].id not in self._draft.pending else None

    @looked_up
    def listed(self) -> Sequence[Record]:
        return [r for r in self._view.list(Filter.beside(self.new), limit=_EQUALS) if r.kind == self.new.kind]

    @looked_up
    def nearest(self) -> Sequence[Rival]:
        return self._search_rivals(self.new.content, terms(self.new.content))

    @looked_up
    def closest(self) -> float | None:
        if self.new.vector is None or "nearest" in self.__dict__:
            return super().closest
        found = self._search_rivals("", ())  # which costs a tenth
        return max((each.cosine for each in found if each.cosine is not None), default=None)

    def _search_rivals(self, text: str, asked: tuple[str, ...]) -> Sequence[Rival]:
        new = self.new
        query = Query(text, Filter.beside(new), asked, new.vector, new.embedder, now=self._view.now)
        hits = self._view.search(query, limit=_RIVALS)
        # A vector of another text does not say what the record says: there words alone decide.
        stored = [
            Rival(
                h.record,
                None if new.vector is None or h.record.is_embedded_otherwise else h.parts.get("cosine"),
                h.parts.get("match", h.score),
            )
            for h in hits
            if h.record.id not in self._draft.pending
        ]
        drafted = [
            Rival(r, None if new.vector is None or r.vector is None else float(new.vector @ r.vector))
            for r in self._draft.active
        ]
        return [
            rival
            for rival in (*stored, *drafted)
            if (rival.record.namespace, rival.record.kind) == (new.namespace, new.kind)
            and rival.record.layer != "history"
        ]


def record_of(candidate: Candidate, vector: "Vector | None", said: Remembering, view: Deciding) -> Record:
    agent_id = candidate.source.agent_id or said.scope.agent_id
    family = said.family or family_for(candidate.kind, agent_id, view.settings.namespaces)
    when = view.now if said.created_at is None else said.created_at
    embedder = view.embedder if vector is not None else None
    return Record(
        id=new_id(),
        namespace=said.scope.namespace(family),
        content=candidate.content,
        kind=candidate.kind,
        created_at=when,
        updated_at=when,
        metadata=dict(candidate.metadata),
        tags=candidate.tags,
        importance=as_importance(candidate.metadata),
        source=candidate.source,
        ref_id=candidate.ref_id,
        former_ref_ids=candidate.former_ref_ids,
        subject=candidate.subject if candidate.attribute else None,
        attribute=candidate.attribute if candidate.subject else None,
        valid_from=when,
        expires_at=expiry(candidate.kind, candidate.metadata, when, view.settings),
        vector=vector,
        embedder=embedder.fingerprint if embedder else None,
    )


def expiry(kind: Kind, metadata: Mapping[str, Any], when: float, settings: Settings) -> float | None:
    """The time at which a record expires; None: never.

    Args:
        metadata: Its `ttl`, in seconds, wins over MEMORY_TTL_DAYS.
        when: When it was said.
    """
    seconds, days = metadata.get("ttl"), settings.ttl_days.get(kind)
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        return when + seconds
    return None if days is None else when + days * SECONDS_A_DAY


def changed(old: Record, new: Record, text: str, *, replaces: bool = True) -> Record:
    """The old record with another text: its id, birth and source stay; the old text stays in history.

    `replaces`: the old text no longer holds; else the new text says it, too.
    """
    is_new = text == new.content
    kept = {name: value for name, value in old.metadata.items() if name != "value" or not is_new}
    both = {"rests_on": [*map(list, dict.fromkeys((*old.rests_on, *new.rests_on)))]}
    return replace(
        old.read_anew(new.ref_id, replaces=replaces).no_longer_said_in(*new.former_ref_ids),
        content=text,
        content_hash=content_hash(text),
        updated_at=max(new.updated_at, old.updated_at),
        valid_from=new.valid_from,
        expires_at=later(old.expires_at, new.expires_at),
        metadata={**kept, **new.metadata, **({} if replaces or not old.rests_on else both)},
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        importance=as_importance(new.metadata, otherwise=old.importance),
        subject=new.subject or old.subject,
        attribute=new.attribute or old.attribute,
        vector=new.vector if is_new else None,
        embedder=new.embedder if is_new else None,
    )


def later(one: float | None, other: float | None) -> float | None:
    """The later of two ends; None never comes."""
    return None if one is None or other is None else max(one, other)


def with_vectors(changes: Sequence[Change], view: Deciding) -> tuple[Change, ...]:
    """Embed the records without a vector: merged texts, verbatim imports, and records with a text of their
    own to embed.

    Until here a record's vector is that of its content, which is what was compared.
    """
    bare = [c for c in changes if wants_vector(c.record) and _lacks_vector(c.record)]
    vectors = view.embed([c.record.embedded_text for c in bare])
    fresh = {c.record.id: vector for c, vector in zip(bare, vectors, strict=True)}
    embedder = view.embedder if any(vector is not None for vector in vectors) else None
    name = embedder.fingerprint if embedder else None
    return tuple(
        replace(c, record=_with_vector(c.record, fresh[c.record.id], name)) if c.record.id in fresh else c
        for c in changes
    )


def _with_vector(record: Record, vector: "Vector | None", embedder: str | None) -> Record:
    """The record with its vector; without a new one, a stored vector stays unless it is of the content."""
    if vector is None and record.vector is None:
        return record
    return replace(record, vector=vector, embedder=None if vector is None else embedder)


def _lacks_vector(record: Record) -> bool:
    return record.vector is None or record.is_embedded_otherwise


def wants_vector(record: Record) -> bool:
    return record.status == "active" and record.family != SESSION_FAMILY


def embedded(record: Record, view: Deciding) -> Record:
    """The record with the vector of its present text, or without a vector where nothing embeds the text."""
    [vector] = view.embed([record.embedded_text])
    embedder = view.embedder if vector is not None else None
    return replace(record, vector=vector, embedder=embedder.fingerprint if embedder else None)
