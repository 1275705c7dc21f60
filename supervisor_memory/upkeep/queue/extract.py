"""Read statements from events: by rules, one by one, or from a model's answer for a batch. Pure.

The source of a statement that a model found is decided by its words, never by a claim of the model.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from supervisor_memory.flow import Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Candidate, Note, Source, SourceClass
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.gather import storable
from supervisor_memory.upkeep.queue.event import Event

_OWN_WORDS = 2 / 3
"""The share of a statement's terms that the user must have said for it to count as the user's."""
_LEFT_BEHIND = re.compile(
    r"\b(?:wrote|written|saved?|saving|created?|exported|generated|stored|output)\b|保存|写入|导出|生成|写到|存到",
    re.IGNORECASE,
)
"""Words for making a file; a path without them may be a file that was only read."""
_LEAST_TRUSTED: tuple[SourceClass, ...] = ("tool", "agent", "user")


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


def prompt(events: Sequence[Event]) -> str:
    """The prompt for a model to read a batch of events."""
    told = "\n".join(f"{_who(event)}: {_quoted(event.text)}" for event in events)
    return extract.EXTRACT_PROMPT.format(conversation=told)


def by_model(events: Sequence[Event], items: list[object]) -> Iterator[Remembering]:
    """A model's statements, by the event they come from. The first also has the codes of refused items."""
    sifted = extract.sift(items)
    found: dict[str, list[Candidate]] = {event.id: [] for event in events}
    for candidate in sifted.candidates:
        event = _origin(candidate, events)
        found[event.id] += _as_of(event, extract.noted(candidate, by="model"))
    left_out = tuple(f"model:{code}" for code in sifted.unkept)
    for event in events:
        if (said := _remembering(event, found[event.id], left_out)) is not None:
            yield said
        left_out = ()


def _origin(candidate: Candidate, events: Sequence[Event]) -> Event:
    """The event with most of a statement's words; on a tie, the one with the less trusted source."""
    words = terms(candidate.content)

    def trust(event: Event) -> tuple[float, int]:
        share = _share(words, event)
        if event.source_class == "user" and share < _OWN_WORDS:
            share = 0.0
        return share, -_LEAST_TRUSTED.index(event.source_class)

    return max(events, key=trust)


def _share(words: Sequence[str], event: Event) -> float:
    """The share of a statement's words that an event contains, in [0, 1]."""
    said = set(terms(event.text))
    return sum(word in said for word in words) / len(words) if words else 0.0


def _as_of(event: Event, candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with the event as its source, if that source may say it.

    An agent may not speak about the user. A tool's statement about the user goes to review, whatever kind the
    model named, see `stages/insert/doubt.py`.
    """
    if event.source_class == "user" and _share(terms(candidate.content), event) < _OWN_WORDS:
        event = replace(event, source_class="agent")
    if event.source_class == "agent" and candidate.kind in ("user-profile", "identity"):
        return
    if event.source_class == "tool" and extract.describe(candidate.content).kind == "user-profile":
        candidate = replace(candidate, kind="user-profile")
    told = replace(candidate, source=_source(event), ref_id=event.ref_id, evidence=event.text)
    yield from storable([told])


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
    )


def _who(event: Event) -> str:
    if event.source_class == "user":
        return "user"
    return f"tool {event.tool}" if event.source_class == "tool" else event.scope.agent_id or "assistant"


def _quoted(text: str) -> str:
    """Escape a text, so that it ends neither its line nor the conversation in the prompt."""
    return strip_notes(text).replace("</conversation", "< /conversation").replace("\n", "\n  ")
