"""Gather what a turn offers to remember: the user's statements, an agent's results, the words themselves."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from supervisor_memory.errors import InvalidContent
from supervisor_memory.flow import Remembering
from supervisor_memory.ports import ReadStore
from supervisor_memory.recall.format import strip_notes
from supervisor_memory.records import SESSION_FAMILY, Candidate, Message, Record, Source, SourceClass, check_content
from supervisor_memory.remember import extract

__all__ = ["gather", "keep_messages"]

_IDS = uuid.UUID("6f1d5a52-6d0e-5d43-9a34-0f2b1c1f7a10")
_CLASSES: dict[str, SourceClass] = {"user": "user", "assistant": "agent", "tool": "tool", "system": "system"}


def gather(said: Remembering, view: ReadStore) -> Remembering:
    """Candidates by rules, and by the model when the caller asks for it."""
    scope = said.scope
    source = Source("user", None, scope.session_id, scope.run_id)
    found = [
        candidate
        for message in said.messages
        if message.role == "user"
        for candidate in extract.from_user(message, source=source)
    ]
    if scope.agent_id is not None:
        found += extract.from_agent(
            agent_id=scope.agent_id,
            final_answer=said.outcome.final_answer,
            conclusion=said.outcome.conclusion,
            side_effects=said.outcome.side_effects,
            source=replace(source, source_class="agent", agent_id=scope.agent_id),
        )
    clean = tuple(candidate for each in found if (candidate := _cleaned(each)))
    return replace(said, candidates=(*said.candidates, *clean))


def sharpen(said: Remembering, view: ReadStore) -> Remembering:
    """Candidates that the model finds beyond the rules. Its nonsense is dropped, never an error."""
    text = "\n".join(
        f"{m.role}: {strip_notes(m.content)}" for m in said.messages if m.role in ("user", "assistant")
    )
    reply = view.complete(extract.EXTRACT_PROMPT.format(conversation=text)) if text else None
    if reply is None:
        return said
    try:
        data: object = json.loads(reply[reply.index("[") : reply.rindex("]") + 1])
    except ValueError:
        return replace(said, skipped=(*said.skipped, "the model's answer is no JSON list"))
    source = Source("user", said.scope.agent_id, said.scope.session_id, said.scope.run_id)
    found = extract.from_llm(data, source=source)
    clean = tuple(candidate for each in found if (candidate := _cleaned(each)))
    return replace(said, candidates=(*said.candidates, *clean))


def keep_messages(said: Remembering, view: ReadStore) -> Remembering:
    """What was said, word for word, as session messages. Their ids come from what was said where."""
    scope = said.scope
    if not view.settings.keep_messages or scope.session_id is None:
        return said
    return replace(said, verbatim=(*said.verbatim, *_session_records(said, view.now)))


def _session_records(said: Remembering, now: float) -> Iterator[Record]:
    scope = said.scope
    seen: Counter[tuple[str, str]] = Counter()
    for message in said.messages:
        if message.role not in ("user", "assistant") or (text := _storable(message)) is None:
            continue
        seen[message.role, text] += 1
        key = message.id or f"{message.role}|{message.name}|{text}|{seen[message.role, text]}"
        yield Record(
            id=str(uuid.uuid5(_IDS, f"{scope.user_id}\0{scope.session_id}\0{key}")),
            namespace=scope.namespace(SESSION_FAMILY),
            content=text,
            kind="task-traces",
            layer="history",
            created_at=now,
            updated_at=now,
            source=Source(
                _CLASSES[message.role], message.name, scope.session_id, scope.run_id, message.id, message.name
            ),
        )


def _storable(message: Message) -> str | None:
    try:
        return check_content(strip_notes(message.content))
    except InvalidContent:
        return None


def _cleaned(candidate: Candidate) -> Candidate | None:
    try:
        return replace(candidate, content=check_content(strip_notes(candidate.content)))
    except InvalidContent:
        return None
