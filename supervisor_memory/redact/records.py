"""Records, candidates and messages without personal data. Pure but for the redactor they are given."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from supervisor_memory.model.records import (
    MAX_CONTENT_BYTES,
    MAX_NAME_BYTES,
    AuditEvent,
    Candidate,
    Message,
    Record,
    Scope,
    Source,
)
from supervisor_memory.redact.redactor import Redactor

__all__ = [
    "counted",
    "redacted_candidate",
    "redacted_message",
    "redacted_record",
    "redacted_scope",
    "redacted_text",
]

_MARK: Final = 3
_LONGEST: Final = 2 * MAX_CONTENT_BYTES
_ITEM: Final = "store"
"""Where a record keeps what makes it an item of a LangGraph store: its labels and key are its address, and
only its value was said. What callers pass as metadata is read before, as a whole."""


def redacted_text(text: str, redactor: Redactor) -> str:
    """What a caller brings, of any length. What is too large to be kept ends in dots: nobody reads it."""
    if len(text) <= _LONGEST:
        return redactor.text(text)
    return redactor.text(text[:MAX_CONTENT_BYTES]) + "." * MAX_CONTENT_BYTES


def redacted_message(message: Message, redactor: Redactor) -> Message:
    """The message; its name too where a user bears it, for an agent's says who it is."""
    if redactor.is_off:
        return message
    name = redactor.text(message.name) if message.name and message.role == "user" else message.name
    return replace(message, content=redacted_text(message.content, redactor), name=name)


def redacted_candidate(candidate: Candidate, redactor: Redactor) -> Candidate:
    """The candidate. One that is about what was taken out is about nothing: two people would be one."""
    if redactor.is_off:
        return candidate
    return replace(
        candidate,
        content=redactor.text(candidate.content),
        subject=_subject(candidate.subject, redactor),
        value=None if candidate.value is None else redactor.text(candidate.value),
        evidence=redactor.text(candidate.evidence),
        tags=_each(candidate.tags, redactor),
        metadata=redactor.value(candidate.metadata),
        source=_source(candidate.source, redactor),
    )


def redacted_scope(scope: Scope, redact: Callable[[str], str]) -> Scope:
    """The scope with its task named by placeholders and a mark of its own, so that two tasks stay two.

    The mark is three letters of a hash of the name: many numbers have the same.
    """
    if scope.task is None or (told := redact(scope.task)) == scope.task:
        return scope
    digest = hashlib.sha256(f"{scope.user_id}\n{scope.task}".encode()).digest()
    mark = "".join(chr(ord("a") + byte % 26) for byte in digest[:_MARK])
    return replace(scope, task=f"{_shortened(told)} ({mark})")


def _shortened(name: str) -> str:
    """At most as long as a name may be, with its mark."""
    return name.encode()[: MAX_NAME_BYTES - _MARK - 3].decode(errors="ignore").strip()


def redacted_record(record: Record, redactor: Redactor) -> Record:
    """The record, with the hash of the text it has now. Its ids, its namespace and its vector stay."""
    if redactor.is_off:
        return record
    content, subject = redactor.text(record.content), _subject(record.subject, redactor)
    return replace(
        record,
        content=content,
        content_hash=record.content_hash if content == record.content else "",
        metadata=_metadata(record.metadata, redactor),
        tags=_each(record.tags, redactor),
        subject=subject,
        attribute=None if subject is None else record.attribute,
        source=_source(record.source, redactor),
    )


def counted(event: AuditEvent, record: Record, redactor: Redactor, *, is_new: bool) -> AuditEvent:
    """The event of a record, with how much of each type was taken out of what it brings."""
    found = redactor.counts(event.after or "") - redactor.counts(event.before or "")
    if is_new:
        beside = (value for name, value in record.metadata.items() if name != _ITEM)
        found = sum((redactor.counts(text) for text in _texts(beside)), found)
    told = {f"redacted_{name.lower()}": amount for name, amount in sorted(found.items())}
    return replace(event, detail={**event.detail, **told}) if told else event


def _subject(subject: str | None, redactor: Redactor) -> str | None:
    if subject is None:
        return None
    told = redactor.text(subject)
    return None if redactor.counts(told.upper()) else told  # subjects are in small letters


def _source(source: Source, redactor: Redactor) -> Source:
    """Who said it, where that is a name: some hosts put a phone number there."""
    if source.speaker is None:
        return source
    told = redactor.text(source.speaker)
    return source if told == source.speaker else replace(source, speaker=told)


def _each(texts: Iterable[str], redactor: Redactor) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(redactor.text, texts)))


def _metadata(metadata: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    item = metadata.get(_ITEM)
    if not isinstance(item, Mapping) or "value" not in item:
        return dict(redactor.value(metadata))
    others = {name: value for name, value in metadata.items() if name != _ITEM}
    return {**redactor.value(others), _ITEM: {**item, "value": redactor.value(item["value"])}}


def _texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _texts(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _texts(value)
