"""What one turn brought is remembered once, however often it runs: resumed, retried, in a fork.

The ids of a graph's tasks differ between such runs, so what was said is known again by what it is: who
said it where, in answer to which message, and its words. The id of the audit event that tells what became
of it is made of these. A store refuses an event it has, together with the whole commit, so that nothing is
written twice: after a crash, by two processes, or when a record was changed or deleted in between.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, Message, content_hash
from supervisor_memory.understand.rejection import tally

__all__ = ["event_ids", "session_message_id"]

_EVENTS = uuid.UUID("0b6e4c1e-5c39-5a57-8d1a-6f0c5b1f9d42")
_RECORDS = uuid.UUID("6f1d5a52-6d0e-5d43-9a34-0f2b1c1f7a10")
_Told: TypeAlias = tuple[str, str | None, str]
"""Who said it, the message it was in where that has an id, and what."""


def event_ids(said: Remembering) -> list[str | None]:
    """The ids of the events for each candidate, for each skipped thing, and for what was left out, if any.

    None: any, it is no turn's.
    """
    left_out = [("left-out", None, tally(said.unkept))] if said.unkept else []
    told = [*map(_of_candidate, said.candidates), *map(_of_skipped, said.skipped), *left_out]
    if said.turn_id is None:
        return [None] * len(told)
    return [str(uuid.uuid5(_EVENTS, key)) for key in _numbered(_key(said, *what) for what in told)]


def session_message_id(said: Remembering, message: Message, text: str, nth: int) -> str:
    """The id of what was said, as a record: the same whenever it is said again in the same place.

    Args:
        nth: How often these words were said in this call so far, this time included.
    """
    scope = said.scope
    words = f"{message.role}|{message.name}|{text}|{nth}"
    if said.turn_id is None:
        place = message.id or words
    else:  # a model that is asked again gives its answer another id
        place = f"{(message.role == 'user' and message.id) or said.turn_id}|{words}"
    key = f"{scope.user_id}\0{scope.session_id}\0{place}".encode(errors="backslashreplace")
    return str(uuid.uuid5(_RECORDS, key.decode()))


def _key(said: Remembering, who: str, place: str | None, what: str) -> str:
    """What the user says is the same whoever hears it; what others bring is theirs."""
    scope = said.scope
    agent = None if who == "user" else scope.agent_id
    where = (scope.user_id, scope.task, scope.session_id, agent, place or said.turn_id)
    return json.dumps([*where, who, what])


def _of_candidate(candidate: Candidate) -> _Told:
    source = candidate.source
    place = source.message_id if source.source_class == "user" else None
    return source.source_class, place, f"{candidate.kind} {content_hash(candidate.content)}"


def _of_skipped(code: str) -> _Told:
    return "skipped", None, code


def _numbered(keys: Iterable[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for key in keys:
        seen[key] += 1
        yield f"{key}{seen[key]}"
