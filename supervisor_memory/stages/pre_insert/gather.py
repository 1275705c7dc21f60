"""Gather candidates by rules: what the user stated, and what an agent brought."""

from collections.abc import Callable, Sequence
from functools import partial

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, Record, Source
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.group_chat import GroupChat, about_no_user, is_group_chat
from supervisor_memory.stages.pre_insert.own_words import own_words, readable, storable
from supervisor_memory.stages.pre_insert.session_messages import session_messages, with_session_messages
from supervisor_memory.understand.sense import ASKED_FROM, sense_of
from supervisor_memory.understand.statements import Statement, decided

_MOST_BY_SENSE = 20
"""Sentences of a message that are embedded, in one call: more would use up the turn's time."""


def gather(said: Remembering, view: ReadStore) -> Remembering:
    """Add the candidates that rules find in the user's messages and in the agent's outcome."""
    if said.is_given:
        return said
    scope = said.scope
    source = Source("user", None, scope.session_id, scope.run_id)
    said = with_session_messages(said, view)
    kept = session_messages(said, view)
    found: list[Candidate] = []
    perhaps: list[Candidate] = []
    unkept: list[str] = []
    again: Callable[[Sequence[Statement]], Sequence[Statement]] = partial(_by_sense, view=view)
    if is_group_chat(said, kept, view):
        said, again = said.with_fact(GroupChat()), about_no_user
    for message, records in zip(said.messages, kept, strict=True):
        own = replace(message, content=readable(message.content))
        read = extract.read_user(own, source=source, again=again)
        found += [replace(each, ref_id=_part_with(each, records)) for each in read.candidates]
        perhaps += [replace(each, ref_id=_part_with(each, records)) for each in read.perhaps]
        unkept += read.unkept
    if scope.agent_id is not None:
        brought = _read_outcome(said, scope.agent_id)
        answers = (records for records in reversed(kept) if _is_of_an_agent(records))
        answer = next(answers, ())
        found += [replace(each, ref_id=_part_with(each, answer)) for each in brought.candidates]
        unkept += brought.unkept
    return replace(
        said,
        candidates=(*said.candidates, *storable(found)),
        perhaps=(*said.perhaps, *storable(perhaps)),
        unkept=(*said.unkept, *unkept),
    )


def _read_outcome(said: Remembering, agent_id: str) -> extract.Extracted:
    """What rules find in an agent's outcome: its answer, its conclusion, its files and SQL."""
    scope, outcome = said.scope, said.outcome
    failed = outcome.error is not None
    answer, conclusion = (None, None) if failed else (outcome.final_answer, outcome.conclusion)
    return extract.read_agent(
        agent_id=agent_id,
        final_answer=own_words(answer) if isinstance(answer, str) else None,
        conclusion=own_words(conclusion) if isinstance(conclusion, str) else conclusion,
        side_effects=outcome.side_effects,
        source=Source("agent", agent_id, scope.session_id, scope.run_id, said.turn_id),
    )


def _is_of_an_agent(parts: Sequence[Record]) -> bool:
    return bool(parts) and parts[0].source.source_class == "agent"


def _by_sense(read: Sequence[Statement], *, view: NoStore) -> Sequence[Statement]:
    """The sentences as the second reader judges them with their vectors, too, where an embedder answers."""
    asked = [
        each
        for each in read
        if each.learned is not None and (each.kind is not None or each.learned.chance >= ASKED_FROM)
    ]
    asked = asked[:_MOST_BY_SENSE]
    embedder = view.embedder if asked else None
    sense = sense_of(embedder.fingerprint) if embedder is not None else None
    if sense is None:
        return read
    vectors = view.embed([extract.content_of(each) for each in asked])
    again = {
        each: decided(each, sense.again(each.learned, vector))
        for each, vector in zip(asked, vectors, strict=True)
        if each.learned is not None and vector is not None
    }
    return [again.get(each, each) for each in read]


def _part_with(candidate: Candidate, parts: Sequence[Record]) -> str | None:
    """The id of the message part with a candidate's words, else the first part's; None without parts."""
    with_words = (part.id for part in parts if candidate.evidence in part.content)
    return next(with_words, parts[0].id if parts else None)
