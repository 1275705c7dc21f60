"""Derive the ids of a turn's audit events from its texts, so that a repeated turn adds no event."""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, content_hash
from supervisor_memory.understand.rejection import tally

_EVENTS = uuid.UUID("0b6e4c1e-5c39-5a57-8d1a-6f0c5b1f9d42")
_Said: TypeAlias = tuple[str, str | None, str]
"""(speaker, id of the message if it has one, text)."""


def event_ids(said: Remembering) -> list[str | None]:
    """The id of the audit event for each candidate, for each code of `skipped`, and for what was left out.

    None: a new id will do, since the exchange is not of a turn.
    """
    told = [*map(_candidate, said.candidates), *(("skipped", None, code) for code in said.skipped)]
    told += [("left-out", None, tally(said.unkept))] if said.unkept else []
    if said.turn_id is None:
        return [None] * len(told)
    return [str(uuid.uuid5(_EVENTS, key)) for key in _numbered(_key(said, *what) for what in told)]


def _key(said: Remembering, who: str, place: str | None, what: str) -> str:
    """The user's words have one key, whichever agent heard them; words of others have one for each agent."""
    scope = said.scope
    agent = None if who == "user" else scope.agent_id
    where = (scope.user_id, scope.task, scope.session_id, agent, place or said.turn_id)
    return json.dumps([*where, who, what])


def _candidate(candidate: Candidate) -> _Said:
    source = candidate.source
    place = source.message_id if source.source_class == "user" else None
    target = f" {candidate.target}" if candidate.target else ""
    return source.source_class, place, f"{candidate.kind} {content_hash(candidate.content)}{target}"


def _numbered(keys: Iterable[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for key in keys:
        seen[key] += 1
        yield f"{key}{seen[key]}"
