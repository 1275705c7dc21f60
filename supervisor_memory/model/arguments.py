"""Check the arguments of callers before anything happens; errors say what is wrong and what to do."""

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from supervisor_memory.errors import (
    ContentTooLarge,
    InvalidContent,
    InvalidMetadata,
    InvalidName,
    MissingUser,
    SettingsError,
    SupervisorMemoryError,
)
from supervisor_memory.model.records import (
    CONTENT_PLACE,
    EMBEDDED_AS,
    KINDS,
    MAX_CONTENT_BYTES,
    MAX_MESSAGE_BYTES,
    Filter,
    Kind,
    Layer,
    Message,
    Record,
    Scope,
    Source,
    SourceClass,
    Wanted,
    check_content,
    check_family,
    check_name,
    new_id,
    parts_of_message,
)

LONGEST_READ = 65_536
"""Characters of a message that are read at most; the rest is ignored."""

Role = Literal["user", "assistant", "system", "tool"]
MessagesLike: TypeAlias = "str | Message | Mapping[str, Any] | Sequence[Any]"
"""A text (the user's), a message, or a list of these."""

_LONGEST_NAME = 128
_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


def as_messages(value: MessagesLike) -> tuple[Message, ...]:
    """Read messages of any shape.

    Raises:
        InvalidContent: an item is no message; the error names its place.
    """
    if isinstance(value, (list, tuple)) and not _is_pair(value):
        return tuple(_as_message(item, f"messages[{index}]") for index, item in enumerate(value))
    return (_as_message(value, "messages"),)


def readable(value: MessagesLike) -> tuple[Message, ...]:
    """Read the messages among values of a graph's state; other values are left out."""
    several = value if isinstance(value, (list, tuple)) and not _is_pair(value) else (value,)
    found: list[Message] = []
    for item in several:
        with contextlib.suppress(InvalidContent):
            found.append(_as_message(item, "messages"))
    return tuple(found)


def last_user_text(messages: Sequence[Message]) -> str:
    """The user's latest text; "" if there is none."""
    return next((m.content for m in reversed(messages) if m.role == "user"), "")


def _is_pair(value: Sequence[Any]) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES  # noqa: PLR2004


def _as_message(value: Any, where: str) -> Message:
    if isinstance(value, Message) and isinstance(value.content, str):
        return value
    if isinstance(value, str):
        return Message("user", value)
    if _is_pair(value):
        return Message(_ROLES[value[0]], _text(value[1], where))
    if isinstance(value, Mapping):
        role, content, name, id_ = (value.get(k) for k in ("role", "content", "name", "id"))
        role = role or value.get("type")
    else:
        role = getattr(value, "type", None)
        role = role if isinstance(role, str) and _plain(role) in _ROLES else getattr(value, "role", role)
        content, name, id_ = (getattr(value, k, None) for k in ("content", "name", "id"))
    if not isinstance(role, str) or _plain(role) not in _ROLES:
        raise InvalidContent(
            f"{where} is {type(value).__name__} with role {role!r}; pass text, "
            "{'role': 'user' | 'assistant' | 'system' | 'tool', 'content': …} or a LangChain message",
            where=where,
        )
    return Message(_ROLES[_plain(role)], _text(content, where), _name(name), _name(id_))


def _plain(role: str) -> str:
    return role.lower().removesuffix("messagechunk")


def _name(value: object) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) and value else None


def _text(content: Any, where: str) -> str:
    """The text of a content, a string or a list of blocks; images and tool calls have none."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, (list, tuple)):
        parts = (block.get("text") if isinstance(block, Mapping) else block for block in content)
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    raise InvalidContent(f"{where} has content of type {type(content).__name__}; pass text", where=where)


T = TypeVar("T")
FIRST_MOMENT: Final = datetime.min.replace(tzinfo=UTC).timestamp()
LAST_MOMENT: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()
"""The ends of the calendar, years 1 and 9999; a later time is milliseconds by mistake."""
DEEPEST: Final = 64
"""The most levels of nesting in metadata, for writes and imports alike."""
WHOLE_NUMBERS: Final = range(-(2**63), 2**64)
_LONGEST_LIFE: Final = 1e12  # seconds
Moment: TypeAlias = float | date | str
"""A time: seconds since 1970, a datetime, a date, or text: "2026-01-31", "2026-01-31T18:00+08:00"."""
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Item:
    """An imported text, with its speaker, session and time, and the role and id of its message."""

    content: str
    speaker: str | None = None
    role: Role = "user"
    message_id: str | None = None
    session_id: str | None = None
    created_at: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def check_backend(backend: T) -> T:
    """Return `backend` if it can be one.

    Raises:
        SettingsError: it is something else, such as a LangGraph store.
    """
    missing = [verb for verb in ("search", "batch", "health", "audit") if not hasattr(backend, verb)]
    if not missing:
        return backend
    kind = type(backend).__name__
    way_out = (
        f"wrap it: BaseStoreBackend({kind}(…)) of supervisor_memory.stores.langgraph.store"
        if hasattr(backend, "list_namespaces")
        else "pass a MemoryBackend of supervisor_memory.stores, or None for what MEMORY_BACKEND says"
    )
    raise SettingsError(f"backend={kind} is no MemoryBackend (no {', '.join(missing)}); {way_out}", kind=kind)


def check_scope(scope: object) -> None:
    """Raise MissingUser unless `scope` is a Scope; a user id by itself is none."""
    if not isinstance(scope, Scope):
        raise MissingUser(
            f"scope is {type(scope).__name__}; pass Scope(user_id) of supervisor_memory",
            type=type(scope).__name__,
        )


def as_epoch(when: float | datetime | None, *, what: str = "created_at") -> float | None:
    """Convert a time to seconds since 1970; a datetime without a zone is local time.

    Args:
        what: The word for the error message.

    Raises:
        InvalidContent: not a time, NaN, or outside of the years 1 to 9999, as milliseconds are.
    """
    if when is None:
        return None
    try:
        seconds = when.timestamp() if isinstance(when, datetime) else _number(when)
    except (TypeError, ValueError, OverflowError, OSError):
        seconds = math.nan
    if not FIRST_MOMENT <= seconds <= LAST_MOMENT:  # NaN too
        raise InvalidContent(
            f"{what} is {_quoted(when)}; pass seconds since 1970, not milliseconds, or a datetime: a moment "
            "in the years 1 to 9999",
            **{what: _quoted(when)},
        )
    return seconds


def as_moment(when: "Moment | None", *, what: str, end: bool) -> float | None:
    """Convert a number, a datetime, a date or ISO 8601 text to seconds since 1970.

    Args:
        what: The word for the error message.
        end: Whether a date without a time of day means the end of the day instead of its beginning.

    Raises:
        InvalidContent: it is no time.
    """
    if when is None:
        return None
    told = _read_time(when) if isinstance(when, str) else when
    if isinstance(told, date) and not isinstance(told, datetime):
        days = min(int(end), (date.max - told).days)
        told = datetime(told.year, told.month, told.day) + timedelta(days=days)
    if isinstance(told, str):
        raise InvalidContent(
            f"{what} is {_quoted(when)}; pass '2026-01-31', '2026-01-31T18:00+08:00', a datetime, or seconds "
            "since 1970",
            key=what,
        )
    return as_epoch(told, what=what)


def as_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Copy metadata through JSON.

    Raises:
        InvalidMetadata: JSON cannot hold it, or it is nested deeper than 64 levels or holds a whole number of
            more than 64 bits, which an export could not bring to another store.
        InvalidContent: `ttl` is no positive number of seconds, `use_when` no text, or `embedded_as` no text
            with `{content}` in it.
        ContentTooLarge: over 64 KiB.
    """
    if metadata is None:
        return {}
    try:
        copy = cast("dict[str, Any]", json.loads(_json_in_bounds(dict(metadata))))
        _check_ttl(copy.get("ttl"))
        check_shape(copy)
    except SupervisorMemoryError:
        raise
    except RecursionError:
        raise InvalidMetadata(
            f"metadata are nested deeper than {DEEPEST} levels; store a file and remember its path"
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidMetadata(
            f"metadata cannot be kept: {error}; use text, numbers, lists and dictionaries"
        ) from error
    if not isinstance(rests_on := copy.get("rests_on", []), list) or not all(map(_names_a_thing, rests_on)):
        raise InvalidMetadata(
            f"rests_on is {_quoted(rests_on)}; pass (kind, name) pairs, such as [('table', 'sales')]"
        )
    if (told := copy.get("use_when")) is not None:
        copy["use_when"] = _checked_use_when(told)
    frame = copy.get(EMBEDDED_AS)
    if frame is not None and not (isinstance(frame, str) and CONTENT_PLACE in frame):
        raise InvalidContent(
            f"metadata.embedded_as is {_quoted(frame)}; write {CONTENT_PLACE} where the text goes"
        )
    return copy


def _names_a_thing(value: object) -> bool:
    return isinstance(value, list) and [*map(type, value)] == [str, str]


def check_shape(value: object, *, deepest: int = DEEPEST) -> None:
    """Raise ValueError if a JSON value is nested too deep, or has a number too large, for a store or file."""
    level = [value]
    for _ in range(deepest):
        for each in level:
            if isinstance(each, int) and not isinstance(each, bool) and each not in WHOLE_NUMBERS:
                raise ValueError("a whole number has more than 64 bits")
            if isinstance(each, float) and not math.isfinite(each):
                raise ValueError("a number is infinite")
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {deepest} levels")


def _json_in_bounds(values: dict[str, Any]) -> str:
    """The values as JSON; stops as soon as they are too large."""
    parts: list[str] = []
    size = 0
    for part in _ENCODER.iterencode(values):
        parts.append(part)
        size += len(part.encode())
        if size > MAX_CONTENT_BYTES:
            raise ContentTooLarge(
                f"metadata is over the limit of {MAX_CONTENT_BYTES:,} bytes for one record; store a file and "
                "remember its path",
                size=size,
            )
    return "".join(parts)


def _check_ttl(ttl: object) -> None:
    if ttl is None:
        return
    try:
        sound = 0 < _number(ttl) <= _LONGEST_LIFE
    except (TypeError, OverflowError):
        sound = False
    if not sound:
        raise InvalidContent(f"metadata.ttl is {str(ttl)[:40]!r}; pass a positive number of seconds")


def _checked_use_when(told: object) -> str:
    try:
        return check_content(cast("str", told))
    except ContentTooLarge:
        raise
    except InvalidContent as error:
        raise InvalidContent(
            f"metadata.use_when cannot be kept: {error}. Say in words when the record is of use, or leave it "
            "out"
        ) from error


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(type(value).__name__)
    return float(value)


def as_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The `tags` of metadata, if they are a list or a text; else none."""
    tags = metadata.get("tags", ())
    if isinstance(tags, str):
        return (tags,)
    return tuple(str(tag) for tag in tags) if isinstance(tags, (list, tuple)) else ()


def as_importance(metadata: Mapping[str, Any], *, otherwise: float = 0.5) -> float:
    """The `importance` of metadata, if it is a number in [0, 1]; else `otherwise`."""
    try:
        told = _number(metadata.get("importance"))
    except (TypeError, OverflowError):
        return otherwise
    return told if 0 <= told <= 1 else otherwise


def as_families(families: Sequence[str] | None) -> tuple[str, ...] | None:
    """The families to read, None for all.

    Raises:
        InvalidContent: a text instead of a list, or an empty list, which could mean none or all.
        InvalidName: one of them cannot be a family.
    """
    if families is None:
        return None
    if isinstance(families, str) or not families or not isinstance(families, Iterable):
        raise InvalidContent(
            f"families is {families!r}; pass a list such as ['user_profile'], or None for all",
            families=families,
        )
    return tuple(check_family(family) for family in families)


def as_layers(layers: Sequence[str] | None) -> tuple[Layer, ...] | None:
    """The layers to read, None for all; InvalidContent: it is no list of layers, or an empty one."""
    if layers is None:
        return None
    known = get_args(Layer)
    if isinstance(layers, str) or not layers or not set(layers) <= set(known):
        raise InvalidContent(f"layers is {_quoted(str(layers))}; pass a list of {', '.join(known)}")
    return cast("tuple[Layer, ...]", tuple(layers))


_ANYTHING: Final = Filter()


def as_filter(where: Mapping[str, Any] | None) -> Filter:
    """Read a caller's `where` as a filter, for any user; docs/searching.md describes the keys.

    Args:
        where: `kind` and `tags`, one or a list; `session` and `agent`, an id; `since` and `until`, a time as
            seconds since 1970, a datetime, a date or ISO text; `metadata`, a mapping of its keys to one value
            or a list of values. A key with None does not restrict, except in `metadata`.

    Raises:
        InvalidContent: a key is not one of these, or its value cannot be compared; the message names it.
    """
    if where is None:
        return _ANYTHING
    if not isinstance(where, Mapping):
        raise InvalidContent(f"where is {_quoted(where)}; pass a mapping such as {{'tags': ['work']}}")
    for key in where:
        if key not in _WHERE:
            near = get_close_matches(key[:64], _WHERE, n=1) if isinstance(key, str) else []
            raise InvalidContent(
                f"where has no key {_quoted(key)}; {f'did you mean {near[0]!r}? ' if near else ''}its keys "
                f"are {', '.join(_WHERE)}. What is in a record's metadata is asked for by where['metadata']",
                key=_quoted(key),
            )
    read = {_WHERE[key][0]: _WHERE[key][1](value) for key, value in where.items() if value is not None}
    asked = Filter(**read)
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise InvalidContent("where.since is not before where.until, so nothing can lie between; swap them")
    return asked


def _kinds(value: object) -> tuple[Kind, ...]:
    kinds = _one_or_many(value, what="where.kind")
    for kind in kinds:
        check_kind("" if kind is None else kind, what="where.kind")
    return kinds


def _tags(value: object) -> tuple[str, ...]:
    tags = _one_or_many(value, what="where.tags")
    for tag in tags:
        if not isinstance(tag, str):
            raise InvalidContent(f"where.tags holds {_quoted(tag)}; a tag is text", key="tags")
    return tags


def _metadata(value: object) -> tuple[Wanted, ...]:
    if not isinstance(value, Mapping):
        raise InvalidContent(
            f"where.metadata is {_quoted(value)}; pass a mapping such as {{'project': 'apollo'}}",
            key="metadata",
        )
    if len(value) > _MOST_WANTED:
        raise InvalidContent(
            f"where.metadata has {len(value)} keys; ask for at most {_MOST_WANTED} at once", key="metadata"
        )
    return tuple(Wanted.of(key, *_values(some)) for key, some in value.items())


_MOST_WANTED: Final = 50


def _one_or_many(value: object, *, what: str) -> tuple[Any, ...]:
    values = _values(value)
    if not 0 < len(values) <= _MOST_WANTED:
        raise InvalidContent(
            f"{what} is a list of {len(values)}; give 1 to {_MOST_WANTED}, or leave it out", key=what
        )
    return values


def _values(value: object) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)


def _read_time(text: str) -> float | date | str:
    """Read a number of seconds or an ISO 8601 time; any other text is returned unchanged."""
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return text


_SECONDS: Final = re.compile(r"-?[0-9]{9,13}(\.[0-9]{1,9})?")  # shorter ones are dates: 20260131
_WHERE: Final[Mapping[str, tuple[str, Callable[[object], Any]]]] = {
    "kind": ("kinds", _kinds),
    "tags": ("tags", _tags),
    "session": ("session_id", partial(check_name, what="where.session")),
    "agent": ("agent_id", partial(check_name, what="where.agent")),
    "since": ("since", partial(as_moment, what="where.since", end=False)),
    "until": ("until", partial(as_moment, what="where.until", end=True)),
    "metadata": ("metadata", _metadata),
}
"""Each key of `where` → the filter's field, and the function that reads the value."""


def _quoted(value: object) -> str:
    """A caller's value for an error message: cut short, and never all digits of a huge number."""
    if isinstance(value, int) and abs(value) > _MOST:
        return "a huge number"
    if value is None or isinstance(value, (str, int, float, date)):
        return f"{str(value)[:40]!r}"
    return f"a {type(value).__name__}"


_LOGIN: Final = re.compile(r"[A-Za-z0-9_.:/@+\-]{1,128}\Z")
_MOST: Final = 10**15


def check_amount(number: int, *, what: str, least: int = 1, most: int = _MOST) -> int:
    """Return a limit or an offset, at most `most`.

    Raises:
        InvalidContent: no whole number, or too small.
    """
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise InvalidContent(
            f"{what} is {_quoted(number)}; use a whole number from {least}",
            what=what,
            value=_quoted(number),
        )
    return min(int(number), most)


def check_threshold(threshold: float | None) -> float | None:
    """Return the threshold, a least relevance, if it is one.

    Raises:
        InvalidContent: not in [0, 1].
    """
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise InvalidContent(
            f"threshold is {str(threshold)[:40]!r}; use a relevance in [0, 1], or None for MEMORY_MIN_SCORE",
            threshold=str(threshold),
        )
    return float(threshold)


def check_kind(kind: object, *, what: str = "kind") -> None:
    """Raise InvalidContent unless `kind` is a kind or None."""
    if kind is not None and kind not in KINDS:
        raise InvalidContent(f"{what} is {_quoted(kind)}; use one of {', '.join(KINDS)}", kind=_quoted(kind))


def check_source_class(source_class: object) -> None:
    """Raise InvalidContent unless `source_class` is a source class."""
    if source_class not in get_args(SourceClass):
        raise InvalidContent(
            f"source_class is {str(source_class)[:40]!r}; use one of {', '.join(get_args(SourceClass))}"
        )


def read_conversation(messages: MessagesLike) -> tuple[Message, ...]:
    """Read messages of any shape, and check that their texts can be kept; empty texts are not checked.

    Raises:
        InvalidContent, ContentTooLarge: a message cannot be kept; the error names its place.
    """
    read = as_messages(messages)
    for index, message in enumerate(read):
        if message.role in ("user", "assistant") and message.content.strip():
            with _placing_errors(f"messages[{index}]", index):
                check_content(message.content, most=MAX_MESSAGE_BYTES)
    return read


def items_of(messages: Sequence[Message]) -> Iterator[Mapping[str, Any]]:
    """The items of messages that are kept verbatim: one for each, several for a long message.

    Raises:
        InvalidContent, ContentTooLarge: a message cannot be kept; the error names its place.
    """
    for index, each in enumerate(messages):
        with _placing_errors(f"item {index}", index):
            parts = parts_of_message(each.content)
        told = {"speaker": each.name or each.role, "role": each.role, "message_id": each.id}
        yield from ({"content": part, **told} for part in parts)


def read_items(items: Iterable[str | Mapping[str, Any]]) -> list[Item]:
    """Read and check the items of an import.

    Raises:
        SupervisorMemoryError: an item is wrong; a fitting subclass, with the item's index.
    """
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise InvalidContent(f"items is {type(items).__name__}; pass a list of texts or of dictionaries")
    read: list[Item] = []
    for index, item in enumerate(items):
        with _placing_errors(f"item {index}", index):
            read.append(_item(item))
    return read


def _item(value: object) -> Item:
    entry = {"content": value} if isinstance(value, str) else value
    if not isinstance(entry, Mapping):
        raise InvalidContent(f"it is {type(value).__name__}; pass text or a dictionary with 'content'")
    speaker, session_id = entry.get("speaker"), entry.get("session_id")
    return Item(
        content=check_content(cast("str", entry.get("content"))),
        speaker=None if speaker is None else check_name(speaker, what="speaker"),
        role=_ROLES.get(_plain(str(entry.get("role") or speaker)), "user"),
        message_id=_name(entry.get("message_id")),
        session_id=None if session_id is None else check_name(session_id, what="session id"),
        created_at=as_epoch(entry.get("created_at")),
        metadata=as_metadata(entry.get("metadata")),
    )


@contextlib.contextmanager
def _placing_errors(place: str, index: int) -> Iterator[None]:
    """Put the place in front of errors raised inside, and its index into `facts["index"]`."""
    try:
        yield
    except SupervisorMemoryError as error:
        raise type(error)(f"{place}: {error}", **{**error.facts, "index": index}) from error


def verbatim(item: Item, scope: Scope, *, family: str, when: float) -> Record:
    """The record of an imported text, which is kept word for word and never merged.

    Args:
        when: The time of an item without `created_at`, in seconds since 1970.
    """
    at = when if item.created_at is None else item.created_at
    by: SourceClass = "agent" if item.role == "assistant" else item.role
    return Record(
        id=new_id(),
        namespace=scope.namespace(family),
        content=item.content,
        kind="task-traces",
        layer="history",
        created_at=at,
        updated_at=at,
        metadata=item.metadata,
        tags=as_tags(item.metadata),
        importance=as_importance(item.metadata),
        source=Source(by, scope.agent_id, item.session_id, scope.run_id, item.message_id, item.speaker),
    )


def check_score(score: object) -> float:
    """The score; raises InvalidContent where it is no number from 0 to 1."""
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    if not is_number or not 0 <= score <= 1:  # type: ignore[operator]  # NaN is not in there either
        raise InvalidContent(
            f"score is {repr(score)[:40]}; pass a number from 0 (it failed) to 1 (it was right)"
        )
    return float(score)  # type: ignore[arg-type]


def check_login(reviewer: str) -> str:
    """Return the reviewer's login if the audit log can keep it.

    Raises:
        InvalidName: it cannot.
    """
    if isinstance(reviewer, str) and _LOGIN.match(reviewer):
        return reviewer
    raise InvalidName(
        f"reviewer is {str(reviewer)[:40]!r}; pass a login such as 'ada@example.com': the audit log keeps "
        "letters, digits and _.:/@+- alone",
        value=str(reviewer)[:40],
    )
