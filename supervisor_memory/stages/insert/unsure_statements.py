"""Keeps sentences that may be no statement, if they are about a known record or an earlier message."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor_memory.compare.in_common import shares_words
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.verdict import closest_statement
from supervisor_memory.flow import Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, Candidate, Filter, Query
from supervisor_memory.ports import Deciding
from supervisor_memory.stages.insert.draft import Draft, RivalsThere
from supervisor_memory.stages.insert.judges.by_evidence import (
    UNLIKELY,
    is_of_what_is_known,
    replaces_one_of,
    tells_a_change,
)
from supervisor_memory.understand.learned import weigh, weights
from supervisor_memory.understand.sense import ASKED_FROM

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

_MESSAGES = 3  # of the user, earlier than this one, that may tell the value that a sentence changes


def with_news(
    said: Remembering, vectors: "Sequence[Vector | None]", view: Deciding
) -> "tuple[Remembering, list[Vector | None]]":
    """Add the candidates of `perhaps` that are about something known; returns all vectors, too."""
    found, draft = list(vectors), Draft(said.scope)
    told = {candidate.content for candidate in said.candidates}
    asked = [each for each in said.perhaps if each.content not in told]
    kept = []
    for candidate, vector in zip(asked, view.embed([each.content for each in asked]), strict=True):
        rivals = RivalsThere(candidate, vector, said=said, draft=draft, view=view)
        if is_of_what_is_known(candidate, rivals, view.reading) or _is_told_anew(
            candidate, vector, said, view
        ):
            kept.append(candidate)
            found.append(vector)
    unkept = (*said.unkept, *(len(asked) - len(kept)) * ["no-statement"])
    return replace(said, candidates=(*said.candidates, *kept), perhaps=(), unkept=unkept), found


def _is_told_anew(candidate: Candidate, vector: "Vector | None", said: Remembering, view: Deciding) -> bool:
    """Whether a sentence that may be no statement changes what the user said in an earlier message.

    Said once it may have been for that moment; whoever sets it right later means it to hold. What could be no
    statement then (an order, a question) is none by being set right.
    """
    is_likely = candidate.confidence >= (ASKED_FROM if tells_a_change(candidate.content) else UNLIKELY)
    if vector is None or said.scope.session_id is None or not is_likely:
        return False
    where = Filter(said.scope.user_id, families=(SESSION_FAMILY,), tasks=said.scope.tasks)
    query = Query(candidate.content, where, terms(candidate.content), now=view.now)
    hits = view.search(query, limit=_MESSAGES)
    told = [
        closest_statement(hit.record.content, candidate.content)
        for hit in hits
        if hit.record.source.source_class == "user"
    ]
    told = [each for each in told if _may_be_changed(each, candidate.content)]
    vectors = view.embed(told)
    earlier = [
        (text, float(vector @ other)) for text, other in zip(told, vectors, strict=True) if other is not None
    ]
    return replaces_one_of(earlier, candidate, view.reading)


def _may_be_changed(earlier: str, text: str) -> bool:
    """Whether an earlier sentence is worth a vector: it has a word of the text, and may be a statement."""
    return shares_words(beside(read(earlier), read(text))) and weigh(earlier, weights()).chance >= UNLIKELY
