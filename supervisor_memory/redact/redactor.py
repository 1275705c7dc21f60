"""Puts placeholders in the place of personal data and secrets. A memory has one redactor for all its texts.

Texts without digits, "@" and words such as "password" are handed back at once.
"""

import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from supervisor_memory.errors import RedactionError, SettingsError
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
from supervisor_memory.redact.spans import Read, Span, merged, without_unseen
from supervisor_memory.redact.types import TYPES, placeholder, read_regions, read_types

Redact: TypeAlias = Callable[[str], str]
"""A host's own redaction: takes a text, and answers with the text without what must not be kept."""
Finder: TypeAlias = Callable[[Read], Iterator[Span]]

_MOST_ROUNDS: Final = 8
_OF_WORDS: Final = frozenset({"EMAIL", "SECRET"})
"""Types found in texts without digits; all others have four digits or more, near each other."""
_SEVERAL_DIGITS: Final = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){3}|[0-9A-Fa-f]{1,4}::?[0-9A-Fa-f]")
_NAMES: Final = re.compile(r"\[([A-Z][A-Z0-9_]{1,40})\]|<([A-Z][A-Z0-9_]{1,40})>")
_LONGEST_KEY: Final = 64


class Redactor:
    """Takes personal data and secrets out of texts.

    Placeholders in a text stay as they are.

    Args:
        finders: For each type, the function that finds it. None: only `own` changes a text.
        own: Called with the text after the finders.
    """

    def __init__(self, finders: Mapping[str, Finder] | None = None, own: Redact | None = None) -> None:
        self._finders = dict(finders or {})
        self._of_words = {name: find for name, find in self._finders.items() if name in _OF_WORDS}
        self._own = own
        self._names = set(self._finders)  # of placeholders; those of `own` are learned as it puts them

    @property
    def is_off(self) -> bool:
        """Whether no type of data is to be redacted."""
        return not self._finders and self._own is None

    def text(self, text: str) -> str:
        """The text with placeholders; where nothing is found, the very same object.

        Raises:
            RedactionError: the host's function failed, or answered no text.
        """
        if not self._finders:
            return text if self._own is None else self._by_own(self._own, text)
        told = text
        for _ in range(_MOST_ROUNDS):  # what goes may have hidden another's beginning
            found = self._spans(told)
            if not found:
                break
            told = _replaced(told, found)
        return told if self._own is None else self._by_own(self._own, told)

    def value(self, value: Any) -> Any:
        """A JSON value with placeholders in its texts and whole numbers, however deep. Keys stay.

        A key counts as a word before its value: `{"password": "…"}`, `{"phone": 13800138000}`.
        """
        if self.is_off:
            return value
        if isinstance(value, Mapping):
            return {key: self._value_under_key(key, each) for key, each in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(each) for each in value]
        return self._scalar(value, "")

    def counts(self, text: str) -> Counter[str]:
        """How many placeholders of each type a text holds."""
        return Counter(name for name in _placeholder_names(text) if name in self._names)

    def _value_under_key(self, key: object, value: Any) -> Any:
        if isinstance(value, (Mapping, list, tuple)):
            return self.value(value)
        return self._scalar(value, f"{key}: " if isinstance(key, str) and len(key) <= _LONGEST_KEY else "")

    def _scalar(self, value: Any, before: str) -> Any:
        """A text with placeholders; a number with personal data becomes its placeholder."""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return value
        quote = '"' if before and isinstance(value, str) and '"' not in value else ""
        whole = f"{before}{quote}{value}{quote}"
        told = self.text(whole)
        if told == whole:
            return value
        if told.startswith(before + quote) and told.endswith(quote):
            return told[len(before + quote) : len(told) - len(quote)]
        return self.text(str(value))

    def _spans(self, text: str) -> Sequence[Span]:
        """Findings in the text and, where it has invisible characters, in the text without them."""
        found = list(self._find_spans(text))
        if seen := without_unseen(text):
            plain, places = seen
            read = self._find_spans(plain)
            found += (Span(places[each.start], places[each.end - 1] + 1, each.type) for each in read)
        return merged(found)

    def _find_spans(self, text: str) -> Iterator[Span]:
        read = Read(text)
        finders = self._finders if _SEVERAL_DIGITS.search(read.text) else self._of_words
        return (span for find in finders.values() for span in find(read))

    def _by_own(self, own: Redact, text: str) -> str:
        failure = ""
        try:
            told: object = own(text)
        except Exception as error:  # noqa: BLE001
            # Its text and its traceback may quote what was to be taken out, so they go no further.
            told, failure = None, f"failed with {type(error).__name__}"
        if not isinstance(told, str):
            raise RedactionError(
                f"the redact function {failure or 'answered ' + type(told).__name__}; nothing was kept. "
                "It has to answer every text with a text"
            )
        self._names |= set(_placeholder_names(told)) - set(_placeholder_names(text))
        return told


def _placeholder_names(text: str) -> Iterator[str]:
    return (match[1] or match[2] for match in _NAMES.finditer(text))


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    place = 0
    for span in spans:
        parts += (text[place : span.start], placeholder(span.type))
        place = span.end
    return "".join((*parts, text[place:]))


def open_redactor(wanted: str, regions: str, own: Redact | None = None) -> Redactor:
    """The redactor that the settings ask for.

    Args:
        wanted: As MEMORY_REDACT.
        regions: As MEMORY_PHONE_REGIONS.
        own: The host's own function, called after the finders.

    Raises:
        SettingsError: a library is not installed, or a region is unknown to it.
    """
    if own is not None and not callable(own):
        raise SettingsError(f"redact is {type(own).__name__}; pass a function from a text to a text")
    return Redactor({name: _finder(name, regions) for name in read_types(wanted)}, own)


def _finder(name: str, regions: str) -> Finder:
    """The function that finds a type. Its module is imported here: patterns take a while to compile."""
    from supervisor_memory.redact import contacts, ip_addresses, keys, numbers

    match name:
        case "EMAIL":
            return contacts.emails
        case "PHONE":
            return contacts.Phones(_module("phonenumbers", name), read_regions(regions))
        case "CN_ID":
            return numbers.cn_ids
        case "US_SSN":
            return numbers.us_ssns(_module("stdnum.us.ssn", name).is_valid)
        case "NATIONAL_ID":
            wanted = numbers.NationalIds.MODULES
            return numbers.NationalIds({each: _module(f"stdnum.{each}", name) for each in wanted})
        case "CARD":
            return numbers.cards
        case "IBAN":
            return numbers.ibans(_module("stdnum.iban", name).is_valid)
        case "IP":
            return ip_addresses.ips
        case "SECRET":
            return keys.secrets
    raise SettingsError(f"there is no {name!r}; use {', '.join(TYPES)}", name=name)


def _module(name: str, type_: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"MEMORY_REDACT asks for {type_.lower()}, which needs the package {name.partition('.')[0]!r}: "
            "pip install 'supervisor-memory[redact]'; or leave it out, as MEMORY_REDACT=secrets does",
            package=name,
        ) from error


_MARK: Final = 3
_LONGEST: Final = 2 * MAX_CONTENT_BYTES
_ITEM: Final = "store"
"""The key of a record's metadata with its item of a LangGraph store. The item's labels and key are an address
and stay; its value is redacted. Metadata from callers is redacted before, as a whole."""


def redacted_text(text: str, redactor: Redactor, *, most: int = _LONGEST) -> str:
    """A caller's text, redacted. A text over `most` characters is cut, with as many dots for the rest."""
    if len(text) <= most:
        return redactor.text(text)
    return redactor.text(text[:MAX_CONTENT_BYTES]) + "." * most


def redacted_message(message: Message, redactor: Redactor, *, most: int = _LONGEST) -> Message:
    """The message, redacted; a user's name too, but not an agent's, which says who speaks."""
    if redactor.is_off:
        return message
    name = redactor.text(message.name) if message.name and message.role == "user" else message.name
    return replace(message, content=redacted_text(message.content, redactor, most=most), name=name)


def redacted_candidate(candidate: Candidate, redactor: Redactor) -> Candidate:
    """The candidate, redacted. A subject with a placeholder is dropped, or two people would become one."""
    if redactor.is_off:
        return candidate
    return replace(
        candidate,
        content=redactor.text(candidate.content),
        subject=_subject(candidate.subject, redactor),
        value=None if candidate.value is None else redactor.text(candidate.value),
        evidence=redactor.text(candidate.evidence),
        tags=_redacted_texts(candidate.tags, redactor),
        metadata=redactor.value(candidate.metadata),
        source=_source(candidate.source, redactor),
    )


def redacted_scope(scope: Scope, redact: Callable[[str], str]) -> Scope:
    """The scope with its task named by placeholders and a mark of its own, so that two tasks stay two.

    The mark is three letters of a hash, too few to find out the name: many names share them.
    """
    if scope.task is None or (told := redact(scope.task)) == scope.task:
        return scope
    digest = hashlib.sha256(f"{scope.user_id}\n{scope.task}".encode()).digest()
    mark = "".join(chr(ord("a") + byte % 26) for byte in digest[:_MARK])
    short = told.encode()[: MAX_NAME_BYTES - _MARK - 3].decode(errors="ignore").strip()
    return replace(scope, task=f"{short} ({mark})")


def redacted_record(record: Record, redactor: Redactor) -> Record:
    """The record, redacted, with the hash of its new text. Ids, namespace and embedder stay."""
    if redactor.is_off:
        return record
    content, subject = redactor.text(record.content), _subject(record.subject, redactor)
    return replace(
        record,
        content=content,
        content_hash=record.content_hash if content == record.content else "",
        metadata=_metadata(record.metadata, redactor),
        tags=_redacted_texts(record.tags, redactor),
        subject=subject,
        attribute=None if subject is None else record.attribute,
        source=_source(record.source, redactor),
    )


def counted(event: AuditEvent, record: Record, redactor: Redactor, *, is_new: bool) -> AuditEvent:
    """The event of a record, with the number of new placeholders of each type."""
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
    """The source with its speaker redacted: some hosts put a phone number there."""
    if source.speaker is None:
        return source
    told = redactor.text(source.speaker)
    return source if told == source.speaker else replace(source, speaker=told)


def _redacted_texts(texts: Iterable[str], redactor: Redactor) -> tuple[str, ...]:
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
