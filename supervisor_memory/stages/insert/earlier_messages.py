"""The user's earlier messages: which sentences are kept because of them, and which of them hold no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor_memory.compare.in_common import shares_words
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.retraction import fit
from supervisor_memory.compare.verdict import closest_statement
from supervisor_memory.flow import Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, Candidate, Filter, Query
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import Draft, RivalsThere
from supervisor_memory.stages.insert.judges.by_evidence import (
    UNLIKELY,
    is_of_what_is_known,
    replaced_by,
    tells_a_change,
)
from supervisor_memory.stages.post_retrieval.quotable import is_users
from supervisor_memory.understand.learned import weigh, weights
from supervisor_memory.understand.sense import ASKED_FROM

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

_MOST_TAKEN_BACK = 10  # messages by one retraction
_MOST_RECORDS = 100  # of three messages
_MESSAGES = 3  # of the user, earlier than this one, that may tell the value that a sentence changes


def with_news(
    said: Remembering, vectors: "Sequence[Vector | None]", view: Deciding
) -> "tuple[Remembering, list[Vector | None]]":
    """Add the candidates of `perhaps` that are about something known, and tell which messages each changes.

    Returns all vectors, too.
    """
    draft = Draft(said.scope)
    told = {candidate.content for candidate in said.candidates}
    asked = [each for each in said.perhaps if each.content not in told]
    known = [
        (_instead_of(_replaced(candidate, vector, said, view), candidate, said, view), vector)
        for candidate, vector in zip(said.candidates, vectors, strict=True)
    ]
    for candidate, vector in zip(asked, view.embed([each.content for each in asked]), strict=True):
        messages = _replaced(candidate, vector, said, view)
        rivals = RivalsThere(candidate, vector, said=said, draft=draft, view=view)
        if messages or is_of_what_is_known(candidate, rivals, view.reading):
            known.append((_instead_of(messages, candidate, said, view), vector))
    unkept = (*said.unkept, *(len(said.candidates) + len(asked) - len(known)) * ["no-statement"])
    kept = replace(said, candidates=tuple(each for each, _ in known), perhaps=(), unkept=unkept)
    return kept, [vector for _, vector in known]


def taken_back(named: str, said: Remembering, view: Deciding) -> tuple[str, ...]:
    """The ids of the user's earlier messages that say what a retraction names."""
    where = Filter(said.scope.user_id, families=(SESSION_FAMILY,), tasks=said.scope.tasks)
    query = Query(named, where, terms(named), now=view.now)
    own = {message.id for message in said.verbatim}
    found = [hit.record for hit in view.search(query, limit=_MOST_TAKEN_BACK)]
    return tuple(
        each.id for each in found if is_users(each) and each.id not in own and fit(named, each.content)
    )


def _replaced(
    candidate: Candidate, vector: "Vector | None", said: Remembering, view: Deciding
) -> tuple[str, ...]:
    """The ids of the user's earlier messages that the user's words change."""
    if candidate.source.source_class != "user" or candidate.event is not None:
        return ()
    return replaced_by(candidate, _earlier(candidate, vector, said, view), view.reading)


def _instead_of(
    messages: tuple[str, ...], candidate: Candidate, said: Remembering, view: Deciding
) -> Candidate:
    """Give the candidate the ids of those messages of which no record was made.

    Where one was made, the comparison with the record tells.
    """
    if not messages:
        return candidate
    records = view.list(Filter(said.scope.user_id, ref_ids=messages), limit=_MOST_RECORDS)
    known = {message for record in records for message in record.present_ref_ids}
    return replace(candidate, former_ref_ids=tuple(id_ for id_ in messages if id_ not in known))


def _earlier(
    candidate: Candidate, vector: "Vector | None", said: Remembering, view: Deciding
) -> Mapping[str, tuple[str, float]]:
    """Message id → its sentence that a candidate may change, and the cosine of both, of the user's messages.

    What was said once may have been for that moment, so no record was made of it; whoever sets it right later
    means it to hold. What could be no statement then (an order, a question) is none by being set right.
    """
    is_likely = candidate.confidence >= (ASKED_FROM if tells_a_change(candidate.content) else UNLIKELY)
    if vector is None or view.embedder is None or said.scope.session_id is None or not is_likely:
        return {}
    text = candidate.content
    when = view.now if said.created_at is None else said.created_at
    where = Filter(said.scope.user_id, families=(SESSION_FAMILY,), tasks=said.scope.tasks, until=when)
    query = Query(text, where, terms(text), vector, view.embedder.fingerprint, now=view.now)
    told: dict[str, tuple[str, float | None]] = {}
    for hit in view.search(query, limit=_MESSAGES):
        sentence = closest_statement(hit.record.content, text)
        if is_users(hit.record) and hit.record.id != candidate.ref_id and _may_be_changed(sentence, text):
            is_whole = sentence == hit.record.content
            told[hit.record.id] = sentence, hit.parts.get("cosine") if is_whole else None
    unknown = [id_ for id_, (_, cosine) in told.items() if cosine is None]
    for id_, other in zip(unknown, view.embed([told[id_][0] for id_ in unknown]), strict=True):
        told[id_] = told[id_][0], None if other is None else float(vector @ other)
    return {id_: (sentence, cosine) for id_, (sentence, cosine) in told.items() if cosine is not None}


def _may_be_changed(earlier: str, text: str) -> bool:
    """Whether an earlier sentence is worth a vector: it has a word of the text, and may be a statement."""
    return shares_words(beside(read(earlier), read(text))) and weigh(earlier, weights()).chance >= UNLIKELY
