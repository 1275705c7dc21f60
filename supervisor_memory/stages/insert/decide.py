"""Decide what becomes of each candidate, and commit it: add, merge, append, supersede or skip.

In order: the same words → skip; the same subject and attribute, or about the same thing (`verdict`) →
merged by strategy when it says the same, in the record's place when it says something else; a further step
of a task that somebody has named (`tasks`) → appended; else added. A statement of the user is never changed
by what an agent or a tool said; their records give way to it.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from supervisor_memory.compare.evidence import apart, beside, exchanges_two, read
from supervisor_memory.compare.retraction import exchanges, fit
from supervisor_memory.compare.slots import holds, same_slots, slots
from supervisor_memory.compare.verdict import INSTEAD_FROM, Rival, verdicts
from supervisor_memory.errors import Conflict, WasErased
from supervisor_memory.flow import Inserting, Remembering
from supervisor_memory.model.arguments import as_importance
from supervisor_memory.model.records import (
    KINDS,
    SESSION_FAMILY,
    AuditEvent,
    Candidate,
    Filter,
    Kind,
    Note,
    Query,
    Record,
    Scope,
    WriteResult,
    WriteStatus,
    content_hash,
    family_for,
    new_id,
)
from supervisor_memory.ports import Deciding
from supervisor_memory.settings import Settings
from supervisor_memory.stages.insert.doubt import REVIEW, TRUST, doubts, known_to_reviewers, proposed
from supervisor_memory.stages.insert.events import normalised
from supervisor_memory.stages.insert.merge import (
    BY_KIND,
    KEEP_BOTH,
    STRATEGIES,
    Strategy,
    says_the_same,
    strategy_for,
)
from supervisor_memory.stages.insert.tasks import STEPS, of_their_tasks
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY
from supervisor_memory.stages.pre_insert.echo import (
    repeated_from_note,
    repeated_from_store,
    without_told_lines,
)
from supervisor_memory.stages.pre_insert.extract import ARTIFACT, describe
from supervisor_memory.stages.pre_insert.gather import event_ids
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.text.terms import terms
from supervisor_memory.text.wording import same_marks, tells
from supervisor_memory.understand.rejection import tally
from supervisor_memory.understand.sql import another_query, query_of
from supervisor_memory.understand.statements import sentences

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

__all__ = ["OLDER", "decide", "deciding", "expiry", "likeness"]

OLDER = "older-than-what-is-known"
"""Why a statement of the past that contradicts a later one is skipped."""
_UNSURE = "unsure-who-said-it"
"""Why what was said waits: the store could not tell whether an agent had said it before."""
_TRIES = 20
_RIVALS = 10
_EQUALS = 200  # verbatim imports may say the same any number of times
_ANOTHERS = frozenset(["person", "opposite", "restriction"])  # why one subject is not that of the other text
_KNOWN_WORDS = 3  # one word in so many may be new where nothing else is
_LEAST_TERMS = 3  # under so many, one text holding the other's terms means nothing
_OPS: dict[WriteStatus, str] = {
    "added": "add",
    "merged": "merge",
    "updated": "update",
    "appended": "append",
    "skipped": "skip",
    "pending": "propose",
}


def deciding(*, by_kind: Mapping[Kind, Strategy]) -> Inserting:
    """An operator for the insert stage: `decide` with strategies of your own.

    Args:
        by_kind: How two texts about the same thing become one. `metadata["strategy"]` still wins.
    """
    return functools.partial(decide, strategies=dict(by_kind))


def decide(
    said: Remembering, view: Deciding, *, strategies: Mapping[Kind, Strategy] = MappingProxyType({})
) -> Remembering:
    """Compare every candidate with what there is, and commit all decisions at once.

    Args:
        strategies: Those that take the place of the kind's own.

    Raises:
        Conflict: others kept changing the same records, twenty times in a row.
        WasErased: the user was erased after this was said.
    """
    said = of_their_tasks(_in_order(said, view), view)
    vectors = view.embed([candidate.content for candidate in said.candidates])
    ids = event_ids(said)
    repeated: set[str | None] = set()  # ids of events that an earlier run of this turn has written
    attempt = 0
    while True:
        draft = _drafted(
            said, vectors, view, ids, repeated, strategies=strategies, first_try=not attempt and not repeated
        )
        said = replace(said, is_repeated=said.is_repeated or draft.is_repeated)
        if not draft.events:
            return replace(said, results=tuple(draft.results))
        try:
            done = view.commit(Commit(changes=_with_vectors(draft.changes, view), audit=tuple(draft.events)))
        except Conflict as conflict:
            event_id = conflict.facts.get("event_id")
            if event_id is not None and event_id in ids and event_id not in repeated:
                repeated.add(event_id)
            elif (attempt := attempt + 1) == _TRIES:
                raise
            continue
        except WasErased as error:  # a turn that runs again: only what is new of it is remembered
            kept = tuple(r for r in said.verbatim if r.id not in error.facts["record_ids"])
            if len(kept) == len(said.verbatim):
                raise
            said = replace(said, verbatim=kept, is_repeated=True)
            continue
        results = (
            replace(result, saved=result.saved and done.saved, applied=done.applied)
            for result in draft.results
        )
        added = tuple(change.record.namespace for change in draft.changes if change.expects is None)
        return replace(said, results=tuple(results), added=added)


def _in_order(said: Remembering, view: Deciding) -> Remembering:
    """One request for each record that is named by its id, and none for records that are not there."""
    named = tuple(each.target for each in said.candidates if each.target is not None)
    if not named:
        return said
    there = view.list(Filter(user_id=said.scope.user_id, ids=named), limit=len(named))
    left = normalised(said.candidates, known={record.id for record in there})
    dropped = len(said.candidates) - len(left)
    return replace(said, candidates=left, unkept=(*said.unkept, *dropped * ["no-such-record-or-twice"]))


def _drafted(
    said: Remembering,
    vectors: "Sequence[Vector | None]",
    view: Deciding,
    ids: Sequence[str | None],
    repeated: Collection[str | None],
    *,
    strategies: Mapping[Kind, Strategy],
    first_try: bool,
) -> "_Draft":
    """All decisions, taken against the store as it is now.

    Args:
        ids: Those of the events, in this order: of the candidates, of the skipped, of what was left out.
    """
    draft = _Draft(said.scope, strategies)
    id_of_next = iter(ids)

    def is_new() -> bool:
        return draft.begin(next(id_of_next), repeated)

    for candidate, vector in zip(said.candidates, vectors, strict=True):
        if is_new():
            draft = _placed_or_held(candidate, vector, said, draft, view)
    # What was said is new unless a turn runs again, which the store says soon enough.
    is_likely_new = first_try and not any(map(_wants_vector, said.verbatim))
    unsaid = said.verbatim if is_likely_new else _not_there_yet(said.verbatim, view)
    draft.is_repeated |= len(unsaid) < len(said.verbatim)
    for record in unsaid:
        until = expiry(record.kind, record.metadata, record.updated_at, view.settings)
        draft.insert(replace(record, expires_at=until), reason="verbatim")
    for reason in said.skipped:
        if is_new():
            draft.refuse(reason)
    if said.unkept and (event_id := next(id_of_next)) not in repeated:
        draft.leave_out(said.unkept, event_id)
    return draft


@dataclass
class _Draft:
    """Decisions not yet committed. Later candidates of one batch see what earlier ones became."""

    scope: Scope
    strategies: Mapping[Kind, Strategy] = field(default_factory=dict)
    pending: dict[str, Change] = field(default_factory=dict)
    events: list[AuditEvent] = field(default_factory=list)
    results: list[WriteResult] = field(default_factory=list)
    is_repeated: bool = False
    _event_id: str | None = None

    def begin(self, event_id: str | None, repeated: Collection[str | None]) -> bool:
        """Whether the next thing is still to be decided; its event gets this id."""
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
        """What already waits for review in this batch, with the same words."""
        waiting = (c.record for c in self.pending.values() if c.record.status == "pending")
        key = (new.namespace, new.content_hash)
        return next((r for r in waiting if (r.namespace, r.content_hash) == key), None)

    @property
    def active(self) -> Sequence[Record]:
        return [c.record for c in self.pending.values() if c.record.status == "active"]

    def trial(self) -> "_Draft":
        """A copy to decide in; nothing happens here."""
        return replace(self, pending=dict(self.pending), events=list(self.events), results=list(self.results))

    def changed_since(self, before: "_Draft") -> list[Record]:
        """The records of the store that are changed here and were not, or otherwise, before."""
        return [
            change.record
            for record_id, change in self.pending.items()
            if change.expects is not None and change is not before.pending.get(record_id)
        ]

    def propose(self, record: Record, reason: str) -> None:
        """Keep it for a reviewer; it counts for nothing until somebody approves."""
        self.pending[record.id] = Change(record)
        self._note("pending", None, record, reason)

    def insert(self, record: Record, *, reason: str = "") -> None:
        self.pending[record.id] = Change(record)
        self._note("added", None, record, reason)

    def take_over(self, old: Record, new: Record, status: WriteStatus, reason: str) -> None:
        """The old record steps back, the new one takes its place, with its own source."""
        staged = self.pending.get(old.id)
        if staged and staged.expects is None:  # nobody has seen it yet
            new = replace(new, id=old.id)
        else:
            back = replace(old, status="stale", valid_to=new.updated_at, version=old.version + 1)
            self.pending[old.id] = Change(back, expects=staged.expects if staged else old.version)
            self._audit("supersede", old, back, reason)
        self.pending[new.id] = Change(new)
        self._note(status, None, new, reason, in_place_of=old.id)

    def refuse(self, reason: str) -> None:
        """Something that could not be kept at all."""
        self.results.append(WriteResult("", "skipped", saved=False, reason=reason))
        event = self._event("skip", self.scope.user_id, outcome="skipped", reason=reason, **self._own_id())
        self.events.append(event)

    def leave(self, reason: str) -> None:
        """Something that changes nothing, for there is nothing that it is about."""
        self.results.append(WriteResult("", "skipped", reason=reason))
        event = self._event("skip", self.scope.user_id, outcome="skipped", reason=reason, **self._own_id())
        self.events.append(event)

    def leave_out(self, reasons: Sequence[str], event_id: str | None) -> None:
        """What was not worth keeping: one row of codes with their counts, no content."""
        own_id = {} if event_id is None else {"id": event_id}
        reason = tally(reasons)
        self.events.append(
            self._event("skip", self.scope.user_id, outcome="skipped", reason=reason, **own_id)
        )

    def change(self, old: Record, new: Record, status: WriteStatus, reason: str) -> None:
        staged = self.pending.get(old.id)
        new = replace(new, version=old.version + 1)
        self.pending[old.id] = replace(staged, record=new) if staged else Change(new, expects=old.version)
        self._note(status, old, new, reason)

    def skip(self, old: Record, reason: str) -> None:
        self._note("skipped", old, old, reason)

    def _note(
        self,
        status: WriteStatus,
        old: Record | None,
        new: Record,
        reason: str,
        *,
        in_place_of: str | None = None,
    ) -> None:
        self.results.append(WriteResult(id=new.id, status=status, reason=reason, version=new.version))
        self._audit(_OPS[status], old, new, reason, in_place_of=in_place_of, **self._own_id())

    def _own_id(self) -> dict[str, str]:
        """The id that the event of a decision has to have, if any: once, for one decision has one event."""
        event_id, self._event_id = self._event_id, None
        return {} if event_id is None else {"id": event_id}

    def _audit(
        self,
        op: str,
        old: Record | None,
        new: Record,
        reason: str,
        *,
        in_place_of: str | None = None,
        **own_id: str,
    ) -> None:
        detail: dict[str, str] = {"kind": new.kind, "layer": new.layer}
        if in_place_of is not None:
            detail["in_place_of"] = in_place_of
        self.events.append(
            self._event(
                op,
                new.user_id,
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

    def _event(self, op: str, user_id: str, **facts: Any) -> AuditEvent:
        who = self.scope
        return AuditEvent(
            op,
            user_id=user_id,
            agent_id=who.agent_id,
            session_id=who.session_id,
            run_id=who.run_id,
            **facts,
        )


def _placed_or_held(
    candidate: Candidate, vector: "Vector | None", said: Remembering, draft: _Draft, view: Deciding
) -> _Draft:
    """The draft with the candidate in its place or, where a person should look first, held for review."""
    if candidate.event == "NONE":
        draft.leave("nothing-asked")
        return draft
    if said.is_unsure:  # the store cannot be read, so that nothing is compared either
        draft.propose(proposed(_record(candidate, None, said, view), candidate, (_UNSURE,)), _UNSURE)
        return draft
    trial = draft.trial()
    asked = replace(candidate, strategy=None) if candidate.strategy == REVIEW else candidate
    place = _take_back if candidate.event == "DELETE" else _place
    place(asked, vector, said, trial, view)
    if said.is_reviewed:
        return trial
    if said.note is not None and candidate.source.source_class != "user":
        candidate = without_told_lines(candidate, said.note)
    new = _record(candidate, None, said, view)
    changed, status = trial.changed_since(draft), trial.results[-1].status
    why = doubts(
        candidate,
        new.family,
        status,
        changed,
        view.settings,
        user_id=new.user_id,
        is_denied=lambda: _is_denied(candidate, vector, said, draft, view),
    )
    if not why and (status == "skipped" or new.source.source_class == "user"):
        return trial
    proposal = proposed(new, candidate, why)
    staged = draft.find_proposal(proposal)
    if told := (staged, "waits-for-review") if staged else known_to_reviewers(proposal, view):
        draft.skip(*told)
        is_kept = told[0].status == "pending"  # and not rejected, nor quarantined
        draft.results[-1] = replace(draft.results[-1], saved=is_kept)
    elif why:
        draft.propose(proposal, ";".join(why))
    else:
        return trial
    return draft


_AGREED: tuple[Kind, ...] = ("domain-facts", "user-profile", "identity")
_MOST_DENIED = 8  # sentences


def _is_denied(
    candidate: Candidate, vector: "Vector | None", said: Remembering, draft: _Draft, view: Deciding
) -> bool:
    """Whether the user has said otherwise of what an agent or a tool says, of whatever kind that is."""
    told = [candidate.content, *islice(sentences(candidate.content), _MOST_DENIED)]
    for text, kind in product(dict.fromkeys(told), dict.fromkeys((candidate.kind, *_AGREED))):
        is_whole = text == candidate.content
        asked = candidate
        if not is_whole or kind != candidate.kind:
            asked = describe(text, kind, metadata=candidate.metadata, source=candidate.source)
        known = _known(_record(asked, vector if is_whole else None, said, view), asked, draft, view)
        if known and known.how == "instead" and _trust(known.record) > TRUST[candidate.source.source_class]:
            return True
    return False


def _place(
    candidate: Candidate, vector: "Vector | None", said: Remembering, draft: _Draft, view: Deciding
) -> None:
    """Find the candidate's place among the records of its namespace."""
    new = _record(candidate, vector, said, view)
    same = _same_words(new, draft, view)
    if said.note is not None and candidate.source.source_class != "user":
        if told := _repeated(candidate, said.note, said, view, is_known=same is not None):
            return draft.skip(told, "recalled-text")
        own = without_told_lines(candidate, said.note)
        if own is not candidate:
            return _place(own, None, replace(said, note=None), draft, view)
    known = _Known(same, "same") if same else _known(new, candidate, draft, view)
    known = known or _changed_of_another_kind(candidate, vector, said, draft, view)
    if known is None:
        return draft.insert(new)
    old = known.record
    if not old.is_visible(view.now):
        return draft.take_over(old, new, "added", "expired-before")
    is_of_another = known.how == "step" and _trust(new) != _trust(old)
    if known.how == "beside" or is_of_another or candidate.strategy == KEEP_BOTH:
        return _insert_beside(new, known, draft)
    if _trust(new) > _trust(old):
        return draft.take_over(old, new, "updated", "more-trusted-source")
    if same:
        is_told = view.hides(new.content) and _trust(new) == _trust(old)
        return _renew(old, new, draft) if is_told else _say_again(old, new, draft)
    if _trust(new) < _trust(old):
        return draft.insert(replace(new, subject=None, attribute=None), reason="beside-what-the-user-said")
    if known.how != "instead":
        return _merge(known, new, candidate, draft, view)
    if said.created_at is not None and new.updated_at < old.updated_at:
        return draft.skip(old, OLDER)
    return draft.change(old, _changed(old, new, new.content), "updated", "contradicts")


_STATED: tuple[Kind, ...] = ("domain-facts", "user-profile")


def _changed_of_another_kind(
    candidate: Candidate, vector: "Vector | None", said: Remembering, draft: _Draft, view: Deciding
) -> "_Known | None":
    """What a change that is told takes the place of, where that is kept as the other of facts and profile:
    "fish comes on Tuesdays" states a fact, "from now on, fish comes on Thursdays" reads like a wish."""
    if candidate.kind not in _STATED or candidate.target or not read(candidate.content).announces:
        return None
    kind = next(kind for kind in _STATED if kind != candidate.kind)
    known = _known(_record(replace(candidate, kind=kind), vector, said, view), candidate, draft, view)
    if known is None or known.how != "instead":
        return None
    return None if exchanges_two(beside(read(known.record.content), read(candidate.content))) else known


def _renew(old: Record, new: Record, draft: _Draft) -> None:
    """It reads alike, but what was taken out of it may be another value, which holds from now on."""
    if new.updated_at < old.updated_at:
        return draft.skip(old, OLDER)
    until = _longer(old.expires_at, new.expires_at)
    told = replace(old, updated_at=new.updated_at, valid_from=new.valid_from, expires_at=until)
    return draft.change(old, told, "updated", "hidden-value")


def _say_again(old: Record, new: Record, draft: _Draft) -> None:
    """The same words: nothing changes but how long they are known."""
    until = _longer(old.expires_at, new.expires_at)
    if until == old.expires_at:
        return draft.skip(old, "duplicate")
    return draft.change(old, replace(old, expires_at=until), "merged", "lives-longer")


def _insert_beside(new: Record, known: "_Known", draft: _Draft) -> None:
    """A record of its own; without a subject, for there is one active record for each."""
    if known.record.content_hash == new.content_hash:
        return draft.skip(known.record, "duplicate")
    return draft.insert(replace(new, subject=None, attribute=None), reason="kept-beside")


def _take_back(
    candidate: Candidate, vector: "Vector | None", said: Remembering, draft: _Draft, view: Deciding
) -> None:
    """What the user does not want to be remembered any more steps back; history keeps it.

    Nothing tells of which kind it was: they are looked through, the one that is told first.
    """
    found = (
        _named(_record(replace(candidate, kind=kind), vector, said, view), candidate, draft, view)
        for kind in dict.fromkeys((candidate.kind, *KINDS))
    )
    named = [each for each in found if each is not None]
    if not named:
        return draft.leave("nothing-to-retract")
    old, new = max(named, key=lambda each: each[0])[1:]
    if _trust(new) < _trust(old):
        return draft.skip(old, "less-trusted-source")
    back = replace(old, status="stale", updated_at=new.updated_at, valid_to=new.updated_at)
    return draft.change(old, back, "updated", "retracted")


def _named(
    new: Record, candidate: Candidate, draft: _Draft, view: Deciding
) -> tuple[float, Record, Record] | None:
    """The record of one kind that is taken back, behind how well it fits; None: there is none."""
    if candidate.target is not None:
        told = _targeted(candidate.target, new, draft, view)
        return (2.0, told, new) if told is not None and told.is_visible(view.now) else None
    if same := _same_words(new, draft, view):
        return (2.0, same, new) if same.is_visible(view.now) else None
    stored = [r for r in view.list(_where(new), limit=_EQUALS) if r.kind == new.kind]
    rivals = {r.id: r for r in (*stored, *(r for r, _ in _rivals(new, draft, view)))}
    rated = [(fit(new.content, r.content), r) for r in rivals.values() if r.layer == "abstract"]
    known = _known(new, candidate, draft, view)
    if known is not None and known.how == "same" and known.record.layer == "abstract":
        is_value = candidate.value is not None and candidate.value == known.record.metadata.get("value")
        if is_value or not exchanges(new.content, known.record.content):
            rated.append((1.5 if is_value else 0.25, known.record))
    seen = [each for each in rated if each[0] and each[1].is_visible(view.now)]
    return (*max(seen, key=lambda each: each[0]), new) if seen else None


def _repeated(
    candidate: Candidate, note: Note, said: Remembering, view: Deciding, *, is_known: bool
) -> Record | None:
    """What an agent merely repeats. Its own words of an earlier turn are no echo but a duplicate."""
    found = repeated_from_note(candidate, note)
    return found if found or is_known else repeated_from_store(candidate, said, view)


def _record(candidate: Candidate, vector: "Vector | None", said: Remembering, view: Deciding) -> Record:
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
        subject=candidate.subject if candidate.attribute else None,
        attribute=candidate.attribute if candidate.subject else None,
        valid_from=when,
        expires_at=expiry(candidate.kind, candidate.metadata, when, view.settings),
        vector=vector,
        embedder=embedder.fingerprint if embedder else None,
    )


def expiry(kind: Kind, metadata: Mapping[str, Any], when: float, settings: Settings) -> float | None:
    """When a record is found no more; None: never.

    Args:
        metadata: Its `ttl`, in seconds, wins over MEMORY_TTL_DAYS.
        when: When it was said.
    """
    seconds, days = metadata.get("ttl"), settings.ttl_days.get(kind)
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        return when + seconds
    return None if days is None else when + days * SECONDS_A_DAY


def _longer(one: float | None, other: float | None) -> float | None:
    """The later of two ends; None never comes."""
    return None if one is None or other is None else max(one, other)


def _where(record: Record) -> Filter:
    return Filter(user_id=record.user_id, families=(record.family,), tasks=(record.task,))


def _same_words(new: Record, draft: _Draft, view: Deciding) -> Record | None:
    staged = draft.find(lambda r: r.namespace == new.namespace and r.content_hash == new.content_hash)
    if staged:
        return staged
    found = view.list(replace(_where(new), content_hash=new.content_hash), limit=_EQUALS)
    return next((r for r in found if r.layer != "history" and r.id not in draft.pending), None)


def _same_subject(new: Record, draft: _Draft, view: Deciding) -> Record | None:
    if new.subject is None:
        return None
    key = (new.namespace, new.subject, new.attribute)
    if staged := draft.find(lambda r: (r.namespace, r.subject, r.attribute) == key):
        return staged
    found = view.list(replace(_where(new), subject=new.subject, attribute=new.attribute), limit=1)
    return found[0] if found and found[0].id not in draft.pending else None


@dataclass(frozen=True, slots=True)
class _Known:
    """A record that a new one is about as well, and how: it says the same, or something else in its stead,
    it is a further step of the same task, or both stand beside each other."""

    record: Record
    how: Literal["same", "instead", "step", "beside"]


def _known(new: Record, candidate: Candidate, draft: _Draft, view: Deciding) -> _Known | None:
    if candidate.target is not None:
        found = _targeted(candidate.target, new, draft, view)
        return _Known(found, "instead") if found else None
    rival = _same_subject(new, draft, view)
    if new.attribute == STEPS:
        return _Known(rival, "step") if rival else None
    if rival:
        return _Known(rival, _on_one_subject(rival, new, candidate, view))
    return _about_the_same(new, draft, view)


def _targeted(record_id: str, new: Record, draft: _Draft, view: Deciding) -> Record | None:
    staged = draft.find(lambda r: r.id == record_id and r.namespace == new.namespace)
    found = [staged] if staged else view.list(replace(_where(new), ids=(record_id,)), limit=1)
    return found[0] if found else None


def _on_one_subject(
    old: Record, new: Record, candidate: Candidate, view: Deciding
) -> Literal["same", "instead", "beside"]:
    if query_of(old.content) and query_of(new.content):
        return "same"
    one, other = slots(old.content), slots(new.content)
    for mine, yours in ((one.rates, other.rates), (one.years, other.years), (one.labels, other.labels)):
        if mine and yours and not mine & yours and candidate.value is None:
            return "beside"  # the price a month, and a year
    pair = beside(read(old.content), read(new.content))
    is_same_value = candidate.value is not None and candidate.value == old.metadata.get("value")
    why = apart(pair)
    if why in _ANOTHERS and (why == "person" or candidate.value is None):
        return "beside"  # "includes" and "excludes" are the two values of one thing
    if apart(pair) == "subject" and (is_same_value or len(pair.replaced) > 1):
        return "beside"  # the same wish, of somebody else
    if is_same_value and pair.announces and pair.is_template and pair.replaced:
        return "instead"
    return "same" if _is_compatible(old, new, candidate, view) else "instead"


def _about_the_same(new: Record, draft: _Draft, view: Deciding) -> _Known | None:
    """The record that is most surely about the same thing, where one surely is."""
    rivals = [rival for rival in _rivals(new, draft, view) if not _is_of_its_own(rival[0], new)]
    scale = view.embedder.calibration if view.embedder is not None else None
    known = [Rival.of(record.content, new.content, cosine) for record, cosine in rivals]
    judged = zip(verdicts(new.content, known, scale), rivals, strict=True)
    rated = [(v, record) for v, (record, _) in judged if v.about >= view.settings.duplicate_threshold]
    if not rated:
        return None
    verdict, record = max(rated, key=lambda pair: pair[0].rank)
    if verdict.instead < INSTEAD_FROM:
        return _Known(record, "same")
    is_result = new.kind == "task-traces"
    return None if is_result else _Known(record, "instead")  # another result does not undo an earlier one


def _is_of_its_own(old: Record, new: Record) -> bool:
    """Whether no likeness makes a record that of another text: the steps of a task, another file or query."""
    if old.attribute == STEPS or another_query(old, new):
        return True
    are_files = old.attribute == new.attribute == ARTIFACT
    return are_files and old.subject != new.subject and not read(new.content).announces


def _rivals(new: Record, draft: _Draft, view: Deciding) -> list[tuple[Record, float | None]]:
    """What might be about the same, here or in the store, with its cosine where it has one."""
    query = Query(
        text=new.content,
        where=_where(new),
        terms=terms(new.content),
        vector=new.vector,
        embedder=new.embedder,
        now=view.now,
    )
    stored = [h for h in view.search(query, limit=_RIVALS) if h.record.id not in draft.pending]
    # A vector of `use_when` does not say what the record says: there words alone decide.
    found = [(h.record, h.parts.get("cosine") if h.record.use_when is None else None) for h in stored]
    found += [(record, _cosine(new.vector, record.vector)) for record in draft.active]
    return [
        (record, cosine if new.vector is not None else None)
        for record, cosine in found
        if (record.namespace, record.kind) == (new.namespace, new.kind) and record.layer != "history"
    ]


def _cosine(one: "Vector | None", other: "Vector | None") -> float | None:
    return None if one is None or other is None else float(one @ other)


def likeness(old: str, new: str, *, dense: float | None) -> float:
    """How alike two texts are, in [0, 1]: one saying the other, or shared terms and calibrated cosine.

    Similarity alone cannot tell a paraphrase from a rival; the caller compares slots as well.

    Args:
        dense: Calibrated cosine in [0, 1], None without vectors.
    """
    a, b = set(terms(old)), set(terms(new))
    if not a or not b:
        return 0.0
    (smaller, shorter), (larger, longer) = sorted(((a, old), (b, new)), key=lambda pair: len(pair[0]))
    if len(smaller) >= _LEAST_TERMS and 2 * len(smaller) >= len(larger) and tells(longer, shorter):
        return 1.0
    if not same_marks(old, new):
        return 0.0
    shared = len(a & b) / len(a | b)
    return shared if dense is None else (shared + dense) / 2


def _is_compatible(old: Record, new: Record, candidate: Candidate, view: Deciding) -> bool:
    """Whether a text on the same subject adds to the record rather than contradicts it."""
    before = old.metadata.get("value")
    if candidate.value is not None and before is not None:
        return bool(candidate.value == before)
    alike = likeness(old.content, new.content, dense=None)
    return alike >= view.settings.conflict_threshold and same_slots(old.content, new.content)


def _trust(record: Record) -> int:
    return TRUST[record.source.source_class]


def _merge(known: _Known, new: Record, candidate: Candidate, draft: _Draft, view: Deciding) -> None:
    old, asked = known.record, candidate.strategy
    is_hidden = view.hides(new.content)
    name, strategy = _strategy(old, new, asked, how=known.how, by_kind=draft.strategies)
    is_own = old.kind in draft.strategies
    is_same = known.how == "same" and asked is None and not is_own
    if is_same and (query_of(new.content) or _adds_nothing(old.content, new.content)):
        return _renew(old, new, draft) if is_hidden else draft.skip(old, f"{name}:adds-nothing")
    text = strategy(old, new.content, new.updated_at, view.complete)
    if says_the_same(old, text):
        return _renew(old, new, draft) if is_hidden else draft.skip(old, f"{name}:adds-nothing")
    status: WriteStatus = "appended" if name == "append" else "merged"
    return draft.change(old, _changed(old, new, text), status, name)


def _adds_nothing(old: str, new: str) -> bool:
    """Whether all that a text says of one thing is known: its words, or its numbers, dates and names."""
    one, other = slots(old), slots(new)
    if tells(old, new):
        return True
    said, known = set(terms(new)), set(terms(old))
    return holds(one, other) and not holds(other, one) and _KNOWN_WORDS * len(said - known) <= len(said)


def _strategy(
    old: Record, new: Record, asked: str | None, *, how: str, by_kind: Mapping[Kind, Strategy]
) -> tuple[str, Strategy]:
    """What was asked for; the caller's own; a step is appended; else the kind's, unless a number is lost."""
    if asked not in (None, REVIEW):
        return strategy_for(old.kind, asked)
    if own := by_kind.get(old.kind):
        return getattr(own, "__name__", "own"), own
    if how == "step":
        return "append", STRATEGIES["append"]
    name = BY_KIND[old.kind]
    if name == "overwrite" and not (_says_most(old, new) and holds(slots(new.content), slots(old.content))):
        name = "summarise"
    return name, STRATEGIES[name]


def _says_most(old: Record, new: Record) -> bool:
    """Whether a text says most of what a record says, and the same attribute where that states one."""
    if old.attribute is not None and new.attribute != old.attribute:
        return False
    known = set(terms(old.content))
    return 2 * len(known & set(terms(new.content))) > len(known)


def _changed(old: Record, new: Record, text: str) -> Record:
    """The old record with another text: its id, birth and source stay; the old text stays in history."""
    is_new = text == new.content
    kept = {name: value for name, value in old.metadata.items() if name != "value" or not is_new}
    return replace(
        old,
        content=text,
        content_hash=content_hash(text),
        updated_at=max(new.updated_at, old.updated_at),
        valid_from=new.valid_from,
        expires_at=_longer(old.expires_at, new.expires_at),
        metadata={**kept, **new.metadata},
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        importance=as_importance(new.metadata, otherwise=old.importance),
        ref_id=new.ref_id or old.ref_id,
        subject=new.subject or old.subject,
        attribute=new.attribute or old.attribute,
        vector=new.vector if is_new else None,
        embedder=new.embedder if is_new else None,
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
    """Vectors for what has none yet: merged texts, verbatim imports, and `use_when`.

    Until here a record's vector is that of its content, which is what was compared.
    """
    bare = [c for c in changes if _wants_vector(c.record) and not _has_its_vector(c.record)]
    vectors = view.embed([c.record.embedded_text for c in bare])
    fresh = {c.record.id: vector for c, vector in zip(bare, vectors, strict=True)}
    embedder = view.embedder if any(vector is not None for vector in vectors) else None
    name = embedder.fingerprint if embedder else None
    return tuple(
        replace(c, record=_embedded(c.record, fresh[c.record.id], name)) if c.record.id in fresh else c
        for c in changes
    )


def _embedded(record: Record, vector: "Vector | None", embedder: str | None) -> Record:
    """The record with its vector; where there is none, a stored one stays, one of the content does not."""
    if vector is None and record.vector is None:
        return record
    return replace(record, vector=vector, embedder=None if vector is None else embedder)


def _wants_vector(record: Record) -> bool:
    return record.status == "active" and record.family != SESSION_FAMILY


def _has_its_vector(record: Record) -> bool:
    return record.vector is not None and record.use_when is None
