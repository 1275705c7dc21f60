"""Decides what becomes of each candidate among the known records, and commits all decisions at once.

A judge decides what a candidate is to its rivals. Whatever the judge, here stand the rules that hold for all:
the same words are skipped; a statement of the user is never changed by what an agent or a tool said, and
their records give way to it; what a person should look at first is held for review; a commit that somebody
else was faster than is decided again; each decision has a row in the audit log.
"""

import functools
import random
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from types import MappingProxyType
from typing import TYPE_CHECKING

from supervisor_memory.errors import Conflict, StageDenied, WasErased
from supervisor_memory.flow import Inserting, Judge, Remembering
from supervisor_memory.model.decisions import (
    Add,
    Append,
    Decision,
    Hold,
    Merge,
    Replace,
    Retract,
    Rivals,
    Skip,
)
from supervisor_memory.model.records import (
    ARTIFACT,
    WRITTEN_ANEW,
    Candidate,
    Event,
    Filter,
    Kind,
    Record,
    WriteStatus,
    content_hash,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import (
    Draft,
    RivalsThere,
    changed,
    expiry,
    later,
    record_of,
    wants_vector,
    with_vectors,
)
from supervisor_memory.stages.insert.earlier_messages import taken_back, with_news
from supervisor_memory.stages.insert.event_ids import event_ids
from supervisor_memory.stages.insert.judges.by_evidence import by_evidence, by_model, in_one_kind
from supervisor_memory.stages.insert.judges.by_retraction import by_retraction
from supervisor_memory.stages.insert.merge import JOINING, KEEP_BOTH, Strategy, joined
from supervisor_memory.stages.insert.repeats import (
    repeated_from_note,
    repeated_from_store,
    without_repeated_lines,
)
from supervisor_memory.stages.insert.review_reasons import (
    REVIEW,
    TRUST,
    are_known,
    doubts,
    known_to_reviewers,
    proposed,
)
from supervisor_memory.stages.insert.tasks_and_metrics import with_metrics, with_tasks
from supervisor_memory.stages.pre_insert.extract import describe
from supervisor_memory.stages.pre_insert.sharpen import ModelAsked
from supervisor_memory.stores.protocol import Commit
from supervisor_memory.understand.statements import sentences

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

OLDER = "older-than-what-is-known"
"""Why a statement of the past that contradicts a later one is skipped."""
_UNSURE = "unsure-who-said-it"
"""Why a statement waits: the store could not tell whether an agent had said it before."""
_KNOWN_OF_DEEDS = frozenset({"digest", "rows", "writes"})  # what a text that only names a file has not
_TRIES = 20
_PAUSE, _LONGEST_PAUSE = 0.001, 0.1  # seconds
_STRENGTH: Mapping[Event | None, int] = {"DELETE": 3, "UPDATE": 2, "ADD": 1, "NONE": 0, None: 0}
_AGREED: tuple[Kind, ...] = ("domain-facts", "user-profile", "identity")
_MOST_DENIED = 8  # sentences


def deciding(
    *, by_kind: Mapping[Kind, Strategy] = MappingProxyType({}), judge: Judge = by_evidence
) -> Inserting:
    """An operator for the insert stage: `place` with strategies or a judge of your own.

    Args:
        by_kind: How two texts about the same thing become one. `metadata["strategy"]` still wins.
        judge: What decides on a candidate among its rivals.
    """
    return functools.partial(place, strategies=dict(by_kind), judge=judge)


def place(
    said: Remembering,
    view: Deciding,
    *,
    strategies: Mapping[Kind, Strategy] = MappingProxyType({}),
    judge: Judge = by_evidence,
) -> Remembering:
    """Compare every candidate with what there is, and commit all decisions at once.

    Args:
        strategies: Those that take the place of the kind's own.
        judge: What decides on a candidate among its rivals.

    Raises:
        Conflict: others kept changing the same records, twenty times in a row.
        WasErased: the user was erased after this was said.
    """
    said = with_metrics(with_tasks(_in_order(said, view), view), view)
    vectors = view.embed([candidate.content for candidate in said.candidates])
    if not said.is_unsure:
        said, vectors = with_news(said, vectors, view)
    ids = event_ids(said)
    repeated: set[str | None] = set()  # ids of events that an earlier run of this turn has written
    attempt = 0
    while True:
        rules = _Rules(said, view, strategies, judge)
        draft = _drafted(rules, vectors, ids, repeated, first_try=not attempt and not repeated)
        if draft.is_repeated and not said.is_repeated:
            said = replace(said, is_repeated=True)
        if not draft.events:
            return replace(said, results=tuple(draft.results))
        try:
            changes = (*with_vectors(draft.changes, view), *draft.links)
            done = view.commit(Commit(changes=changes, audit=tuple(draft.events)))
        except Conflict as conflict:
            event_id = conflict.facts.get("event_id")
            if event_id is not None and event_id in ids and event_id not in repeated:
                repeated.add(event_id)
            elif (attempt := attempt + 1) == _TRIES:
                raise
            elif attempt > 1 or conflict.facts.get("what") != "id":  # at first nobody looks for the ids
                # A random pause, so that the same writers do not collide again.
                time.sleep(random.uniform(0, min(_PAUSE * 2**attempt, _LONGEST_PAUSE)))
            continue
        except WasErased as error:  # a turn that runs again: only what is new of it is remembered
            refused = error.facts["record_ids"]
            kept = tuple(r for r in said.verbatim if r.id not in refused)
            if len(kept) == len(said.verbatim):
                raise
            left = [n for n, each in enumerate(said.candidates) if each.ref_id not in refused]
            ids = [*(ids[n] for n in left), *ids[len(said.candidates) :]]
            vectors, told = [vectors[n] for n in left], tuple(said.candidates[n] for n in left)
            said = replace(said, verbatim=kept, candidates=told, is_repeated=True)
            continue
        is_saved, is_applied = done.saved, done.applied
        results = (replace(r, saved=r.saved and is_saved, applied=is_applied) for r in draft.results)
        added = tuple(change.record.namespace for change in draft.changes if change.expects is None)
        return replace(said, results=tuple(results), added=added)


def _in_order(said: Remembering, view: Deciding) -> Remembering:
    """Keep one request for each record named by its id, and none for records that do not exist."""
    named = tuple(each.target for each in said.candidates if each.target is not None)
    if not named:
        return said
    there = view.list(Filter(user_id=said.scope.user_id, ids=named), limit=len(named))
    left = normalised(said.candidates, known={record.id for record in there})
    dropped = len(said.candidates) - len(left)
    return replace(said, candidates=left, unkept=(*said.unkept, *dropped * ["no-such-record-or-twice"]))


def normalised(asked: Iterable[Candidate], *, known: Collection[str]) -> tuple[Candidate, ...]:
    """The requests worth deciding, in order. A request without an id passes, unless it repeats a text.

    Args:
        known: The ids that there are; no other can be changed or deleted.

    Source: TinyMem0's `normalize_events`.
    """
    kept: dict[tuple[str, str], Candidate] = {}
    for nth, candidate in enumerate(asked):
        key = _request(candidate, nth, known)
        if key is not None and (key not in kept or _STRENGTH[candidate.event] > _STRENGTH[kept[key].event]):
            kept[key] = candidate
    return tuple(kept.values())


def _request(candidate: Candidate, nth: int, known: Collection[str]) -> tuple[str, str] | None:
    if candidate.event == "ADD":
        return "text", content_hash(candidate.content)
    if candidate.target is None:
        return "any", str(nth)
    return ("id", candidate.target) if candidate.target in known else None


@dataclass(frozen=True, slots=True)
class _Rules:
    """Everything a decision needs: the turn, the store, the strategies and the judge."""

    said: Remembering
    view: Deciding
    strategies: Mapping[Kind, Strategy]
    judge: Judge

    def record(self, candidate: Candidate, vector: "Vector | None" = None) -> Record:
        return record_of(candidate, vector, self.said, self.view)

    def rivals(self, candidate: Candidate, vector: "Vector | None", draft: Draft) -> RivalsThere:
        return RivalsThere(candidate, vector, said=self.said, draft=draft, view=self.view)


def _drafted(
    rules: _Rules,
    vectors: "Sequence[Vector | None]",
    ids: Sequence[str | None],
    repeated: Collection[str | None],
    *,
    first_try: bool,
) -> Draft:
    """Draft all decisions against the present store.

    Args:
        ids: Those of the events, in this order: of the candidates, of the skipped, of what was left out.
    """
    said, view = rules.said, rules.view
    draft = Draft(said.scope)
    id_of_next = iter(ids)

    def is_new() -> bool:
        return draft.begin(next(id_of_next), repeated)

    for candidate, vector in zip(said.candidates, vectors, strict=True):
        if is_new():
            draft = _placed_or_held(candidate, vector, draft, rules)
    # The first try takes messages for new: if the turn has run before, the commit conflicts. An answer
    # without the user's words is looked up at once: an earlier call of the turn may have stored it.
    has_users_words = any(message.role == "user" for message in said.messages)
    may_be_repeated = said.turn_id is not None and not has_users_words
    is_likely_new = first_try and not may_be_repeated and not any(map(wants_vector, said.verbatim))
    unsaid = said.verbatim if is_likely_new else _not_there_yet(said.verbatim, view)
    draft.is_repeated |= len(unsaid) < len(said.verbatim)
    for record in unsaid:
        until = expiry(record.kind, record.metadata, record.updated_at, view.settings)
        draft.insert(replace(record, expires_at=until), reason="verbatim")
    for reason in said.skipped:
        if is_new():
            draft.leave(reason, saved=False)
    if said.unkept and (event_id := next(id_of_next)) not in repeated:
        draft.leave_out(said.unkept, event_id)
    return draft


def _not_there_yet(records: Sequence[Record], view: Deciding) -> list[Record]:
    """The verbatim records that the store lacks; a turn that runs again brings the same ids."""
    if not records:
        return []
    where = Filter(records[0].user_id, ids=tuple(record.id for record in records), statuses=None)
    there = {record.id for record in view.list(where, limit=len(records))}
    return [record for record in records if record.id not in there]


def _placed_or_held(candidate: Candidate, vector: "Vector | None", draft: Draft, rules: _Rules) -> Draft:
    """The draft with the candidate in its place or, where a person should look first, held for review."""
    said, view = rules.said, rules.view
    if candidate.event == "NONE":
        draft.leave("nothing-asked")
        return draft
    if said.is_unsure:  # the store cannot be read, so that nothing is compared either
        draft.propose(proposed(rules.record(candidate), candidate, (_UNSURE,)), _UNSURE)
        return draft
    trial = draft.trial()
    asked = replace(candidate, strategy=None) if candidate.strategy == REVIEW else candidate
    held = _place(asked, vector, trial, rules)
    if said.is_reviewed:
        return trial
    if said.note is not None and candidate.source.source_class != "user":
        candidate = without_repeated_lines(candidate, said.note)
    new = rules.record(candidate)
    status = trial.results[-1].status
    doubted = doubts(
        candidate,
        new,
        status,
        trial.changed_since(draft),
        view.settings,
        is_denied=lambda: _is_denied(candidate, vector, draft, rules),
        are_known=lambda named: are_known(named, said, view),
    )
    why = tuple(dict.fromkeys((*held, *doubted)))
    if not why and (status == "skipped" or new.source.source_class == "user"):
        return trial
    proposal = proposed(new, candidate, why)
    staged = draft.find_proposal(proposal)
    if told := (staged, "waits-for-review") if staged else known_to_reviewers(proposal, view):
        draft.skip(*told, linked=draft.linked.get(told[0].id, told[0]).also_said_in(new.ref_id))
        is_kept = told[0].status == "pending"  # and not rejected, nor quarantined
        draft.results[-1] = replace(draft.results[-1], saved=is_kept)
    elif why:
        draft.propose(proposal, ";".join(why))
    else:
        return trial
    return draft


def _is_denied(candidate: Candidate, vector: "Vector | None", draft: Draft, rules: _Rules) -> bool:
    """Whether the words of an agent or a tool contradict a more trusted record of any kind.

    Evidence tells, whatever the recipe's judge: it is asked of each sentence.
    """
    told = [candidate.content, *islice(sentences(candidate.content), _MOST_DENIED)]
    for text, kind in product(dict.fromkeys(told), dict.fromkeys((candidate.kind, *_AGREED))):
        is_whole = text == candidate.content
        asked = candidate
        if not is_whole or kind != candidate.kind:
            asked = describe(text, kind, metadata=candidate.metadata, source=candidate.source)
        rivals = rules.rivals(asked, vector if is_whole else None, draft)
        judge = in_one_kind if asked.target is None else by_model
        found = judge(_with_whole_subject(asked), rivals, rules.view.reading)
        if isinstance(found, Replace) and _trust(found.record) > TRUST[candidate.source.source_class]:
            return True
    return False


def _place(candidate: Candidate, vector: "Vector | None", draft: Draft, rules: _Rules) -> tuple[str, ...]:
    """Decide on the candidate and draft what follows. Returns why a person should look first, as codes."""
    said, view = rules.said, rules.view
    rivals = rules.rivals(candidate, vector, draft)
    if candidate.event == "DELETE":
        retraction = by_retraction(_with_whole_subject(candidate), rivals, view.reading)
        if isinstance(retraction, Skip) and _retract_what_was_said(candidate, rivals.new, draft, rules):
            return ()
        return _follow(retraction, candidate, rivals.new, draft, rules)
    same = rivals.same_words
    was_done = candidate.attribute == ARTIFACT and not _KNOWN_OF_DEEDS.isdisjoint(candidate.metadata)
    if said.note is not None and candidate.source.source_class != "user" and not was_done:
        told = repeated_from_note(candidate, said.note)
        if told is None and same is None:  # its own words of an earlier turn are a duplicate, no echo
            told = repeated_from_store(candidate, said, view)
        if told is not None:
            return _follow(Skip(told, "recalled-text"), candidate, rivals.new, draft, rules)
        own = without_repeated_lines(candidate, said.note)
        if own is not candidate:
            return _place(own, None, draft, replace(rules, said=replace(said, note=None)))
    if same is not None:
        return _follow(Merge(same), candidate, rivals.new, draft, rules, is_same=True)
    judge = rules.judge if candidate.target is None else by_model
    decision = judge(_with_whole_subject(candidate), rivals, view.reading)
    if isinstance(decision, Replace) and candidate.target is None:
        decision = _unless_older(decision, candidate, rivals, rules)
    return _follow(decision, candidate, _with_a_free_subject(decision, rivals), draft, rules)


def _unless_older(decision: Replace, candidate: Candidate, rivals: RivalsThere, rules: _Rules) -> Decision:
    """Decide against a record said after the candidate, if the candidate would replace that one as well."""
    when, trust = rivals.new.updated_at, _trust(rivals.new)

    def is_later(record: Record | None) -> bool:
        return record is not None and record.updated_at > when and _trust(record) == trust

    if rules.said.created_at is None or is_later(decision.record):
        return decision
    near = [each for each in rivals.nearest if is_later(each.record)]
    later = Rivals(near, of_subject=rivals.of_subject if is_later(rivals.of_subject) else None)
    since = rules.judge(_with_whole_subject(candidate), later, rules.view.reading) if later else None
    return since if isinstance(since, Replace) else decision


def _with_whole_subject(candidate: Candidate) -> Candidate:
    """The candidate with both subject and attribute, or with neither."""
    if (candidate.subject and candidate.attribute) or candidate.subject is candidate.attribute is None:
        return candidate
    return replace(candidate, subject=None, attribute=None)


def _with_a_free_subject(decision: Decision, rivals: RivalsThere) -> Record:
    """The candidate as a record, without its subject if another record than the judge's already has it."""
    new, holder = rivals.new, rivals.of_subject
    about = None if isinstance(decision, Hold) else _record_of(decision)
    if holder is None or (about is not None and about.id == holder.id):
        return new
    return replace(new, subject=None, attribute=None)


def _record_of(decision: Add | Merge | Replace | Append | Skip | Retract) -> Record | None:
    return decision.beside if isinstance(decision, Add) else decision.record


def _follow(
    decision: Decision,
    candidate: Candidate,
    new: Record,
    draft: Draft,
    rules: _Rules,
    *,
    is_same: bool = False,
) -> tuple[str, ...]:
    """Draft what follows from a decision. Returns why a person should look first, as codes.

    Args:
        new: The candidate as a record.
        is_same: Whether the record has the candidate's very words.

    Raises:
        StageDenied: the decision is on a record of another user.
    """
    if isinstance(decision, Hold):
        draft.insert(new)  # which stays so where a person has approved it
        return decision.why
    old = _record_of(decision)
    old = old and draft.linked.get(old.id, old)
    if old is not None and old.user_id != new.user_id:
        raise StageDenied(
            f"the judge decided on record {old.id} of another user; decide on the rivals it is given",
            power="commit",
        )
    if isinstance(decision, Skip):
        if old is None:
            draft.leave(decision.reason)
        else:
            draft.skip(old, decision.reason, linked=old.also_said_in(new.ref_id))
    elif old is None:
        nearest, apart = (decision.nearest, decision.apart) if isinstance(decision, Add) else (None, "")
        draft.insert(new, nearest=nearest, apart=apart)
    elif isinstance(decision, Retract):
        _retract(old, new, decision, draft, rules)
    else:
        _change(old, new, draft, rules, decision=decision, candidate=candidate, is_same=is_same)
    return ()


def _change(
    old: Record,
    new: Record,
    draft: Draft,
    rules: _Rules,
    *,
    decision: Add | Merge | Replace | Append,
    candidate: Candidate,
    is_same: bool,
) -> None:
    """Draft the outcome for a record and a new one about the same thing."""
    view = rules.view
    is_of_another = isinstance(decision, Append) and _trust(new) != _trust(old)
    if not old.is_visible(view.now):
        draft.take_over(old, new, "added", "expired-before")
    elif isinstance(decision, Add) or is_of_another or candidate.strategy == KEEP_BOTH:
        if old.content_hash == new.content_hash:
            return draft.skip(old, "duplicate", linked=old.also_said_in(new.ref_id))
        # Without a subject, for there is one active record for each.
        apart = decision.apart if isinstance(decision, Add) else ""
        alone = replace(new, subject=None, attribute=None)
        draft.insert(alone, reason="kept-beside", nearest=old, apart=apart or "beside")
    elif _trust(new) > _trust(old):
        draft.take_over(old, new, "updated", "more-trusted-source")
    elif is_same and _is_written_anew(old, new):
        draft.change(old, changed(old, new, new.content), "updated", WRITTEN_ANEW)
    elif is_same:
        is_hidden = view.hides(new.content) and _trust(new) == _trust(old)
        _note_repeated(old, new, draft, is_hidden=is_hidden)
    elif _trust(new) < _trust(old):
        reason, alone = "beside-what-the-user-said", replace(new, subject=None, attribute=None)
        draft.insert(alone, reason=reason, nearest=old, apart="trust")
    elif not isinstance(decision, Replace):
        _merge(old, new, draft, rules, decision=decision, asked=candidate.strategy)
    elif rules.said.created_at is not None and new.updated_at < old.updated_at:
        draft.skip(old, OLDER, linked=old.no_longer_said_in(new.ref_id))
    else:
        draft.change(old, changed(old, new, new.content), "updated", decision.reason)


def _is_written_anew(old: Record, new: Record) -> bool:
    """Whether the same words are about another write: a file with other contents, or SQL that writes."""
    if old.attribute != ARTIFACT:
        return False
    return "writes" in new.metadata or any(
        new.metadata.get(n, old.metadata.get(n)) != old.metadata.get(n) for n in ("digest", "sql")
    )


def _retract(old: Record, new: Record, decision: Retract, draft: Draft, rules: _Rules) -> None:
    """Retract a record, or only the part that the user takes back; history keeps it. The message that asks
    for it is not quoted as a statement."""
    if _trust(new) < _trust(old):
        return draft.skip(old, "less-trusted-source")
    back = _rest_of(old, decision, draft, rules) if decision.rest else None
    if back is None:
        back = replace(old, status="stale", valid_to=new.updated_at)
    back = replace(back, updated_at=new.updated_at)
    return draft.change(old, back.no_longer_said_in(new.ref_id), "updated", decision.reason)


def _retract_what_was_said(candidate: Candidate, new: Record, draft: Draft, rules: _Rules) -> bool:
    """Retract a statement that is only in messages, by a stale record that hides them.

    Returns whether there are such messages.
    """
    if candidate.target is not None or candidate.source.source_class != "user":
        return False
    messages = taken_back(candidate.content, rules.said, rules.view)
    if messages:
        draft.retract(new.no_longer_said_in(*messages))
    return bool(messages)


def _rest_of(old: Record, decision: Retract, draft: Draft, rules: _Rules) -> Record | None:
    """The rest of a partly retracted record, described like a new record; None if another record says the
    same."""
    told = describe(decision.rest, old.kind, source=old.source)
    rivals = rules.rivals(told, None, draft)
    if rivals.same_words is not None:
        return None
    new = _with_a_free_subject(decision, rivals)
    return replace(
        old,
        content=new.content,
        content_hash=new.content_hash,
        subject=new.subject,
        attribute=new.attribute,
        metadata=new.metadata,
        tags=new.tags,
        vector=None,
        embedder=None,
    )


def _note_repeated(old: Record, new: Record, draft: Draft, *, is_hidden: bool) -> None:
    """Note that the same words were said again."""
    if is_hidden:
        return _renew(old, new, draft)
    until, linked = later(old.expires_at, new.expires_at), old.also_said_in(new.ref_id)
    if until == old.expires_at:
        return draft.skip(old, "duplicate", linked=linked)
    return draft.change(old, replace(linked, expires_at=until), "merged", "lives-longer")


def _renew(old: Record, new: Record, draft: Draft) -> None:
    """Renew a record with the same redacted text: the hidden value may be new, and holds from now on."""
    if new.updated_at < old.updated_at:
        return draft.skip(old, OLDER, linked=old.no_longer_said_in(new.ref_id))
    until = later(old.expires_at, new.expires_at)
    told = replace(old, updated_at=new.updated_at, valid_from=new.valid_from, expires_at=until)
    return draft.change(old, told.also_said_in(new.ref_id), "updated", "hidden-value")


def _merge(
    old: Record, new: Record, draft: Draft, rules: _Rules, *, decision: Decision, asked: str | None
) -> None:
    """Join both texts: into the judge's text, or by the strategy."""
    name, text = joined(
        old,
        new,
        asked,
        is_step=isinstance(decision, Append),
        by_kind=rules.strategies,
        complete=rules.view.complete if rules.said.fact(ModelAsked) is None else lambda prompt: None,
        judged=decision.text if isinstance(decision, Merge) else None,
        is_one=isinstance(decision, Merge) and decision.is_one,
    )
    if text is None:
        if rules.view.hides(new.content):
            return _renew(old, new, draft)
        return draft.skip(old, f"{name}:adds-nothing", linked=old.also_said_in(new.ref_id))
    status: WriteStatus = "appended" if name == "append" else "merged"
    return draft.change(old, changed(old, new, text, replaces=name not in JOINING), status, name)


def _trust(record: Record) -> int:
    return TRUST[record.source.source_class]
