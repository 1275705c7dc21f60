"""Read statements from events: by rules, one by one, or from a model's answer for a batch. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, Note, Source
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.own_words import storable
from supervisor_memory.stages.pre_insert.sharpen import ModelAsked
from supervisor_memory.upkeep.queue.event import Event

if TYPE_CHECKING:
    from supervisor_memory.stages.pre_insert.operations import Answered, Heard

_LEFT_BEHIND = re.compile(
    r"\b(?:wrote|written|saved?|saving|created?|exported|generated|stored|output)\b|保存|写入|导出|生成|写到|存到",
    re.IGNORECASE,
)
"""Words for making a file; a path without them may be a file that was only read."""


def by_rules(event: Event) -> Remembering | None:
    """The files and SQL of a tool's result; None without any, and for messages, which were read before."""
    if event.source_class != "tool":
        return None
    found = extract.read_agent(
        agent_id=event.scope.agent_id or "",
        final_answer="\n".join(line for line in event.text.splitlines() if _LEFT_BEHIND.search(line)),
        side_effects=event.effects,
        source=_source(event),
    )
    return _remembering(event, [each for each in found.candidates if each.kind == "tool-effects"])


def heard(events: Sequence[Event]) -> "tuple[Heard, ...]":
    """The events in the form in which a model is shown them."""
    from supervisor_memory.stages.pre_insert.operations import Heard  # without a model nobody needs it

    return tuple(
        Heard(each.text, _source(each), _speaker_of(each), each.created_at, each.ref_id, each.id)
        for each in events
    )


def by_model(events: Sequence[Event], told: "Answered", *, by: str = "model") -> Iterator[Remembering]:
    """A model's statements, by the event they come from. The first also has the codes of refused items.

    Args:
        by: "function", where functions among the specialists found them.
    """
    left_out = tuple(f"{by}:{code}" for code in told.refused)
    for event in events:
        theirs = (each for place, each in told.candidates if place.id == event.id)
        if (said := _remembering(event, list(storable(theirs)), left_out)) is not None:
            yield said
        left_out = ()


def _source(event: Event) -> Source:
    scope = event.scope
    message = event.message_id if event.source_class == "user" else event.turn_id
    return Source(event.source_class, scope.agent_id, scope.session_id, scope.run_id, message)


def _remembering(
    event: Event, candidates: Sequence[Candidate], left_out: tuple[str, ...] = ()
) -> Remembering | None:
    """The event's statements as a turn of their own, with the same id however often the event is read."""
    if not candidates and not left_out:
        return None
    agent = event.scope.agent_id
    return Remembering(
        event.scope,
        candidates=tuple(replace(each, source=replace(each.source, agent_id=agent)) for each in candidates),
        created_at=event.created_at,
        turn_id=f"event:{event.id}",
        note=Note(),
        unkept=left_out,
        facts=(ModelAsked(),),
    )


def _speaker_of(event: Event) -> str:
    if event.source_class == "user":
        return "user"
    return f"tool {event.tool}" if event.source_class == "tool" else event.scope.agent_id or "assistant"
