"""The nouns of the library, as frozen values. Nothing here does I/O or reads a clock.

One word per thing: docs/architecture.md lists them all.
"""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, TypeAlias, get_args, overload

import uuid_utils

from supervisor_memory.errors import ContentTooLarge, InvalidContent, InvalidName, MissingUser
from supervisor_memory.language.unseen import HIDDEN, UNSEEN
from supervisor_memory.model.explain import Row, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__bases__[0].__name__
    raise TypeError(
        f"this {kind} belongs to a record and cannot be changed: copy it, or use `memory.update` to change "
        "what is remembered"
    )


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed; `dict(frozen)` makes a copy that can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed; `list(frozen)` makes a copy that can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenList, (list(self),)


def frozen(value: Any) -> Any:
    """A copy of a JSON value that cannot be changed, at any depth."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    """A JSON value that can be changed: a copy of a frozen one, else the value itself."""
    if isinstance(value, FrozenDict):
        return {key: thawed(each) for key, each in value.items()}
    return [thawed(each) for each in value] if isinstance(value, FrozenList) else value


_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
_MOST_VALUES = 50
_SCALARS = (str, int, float, type(None))  # bool is an int
_COMPACT_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition on metadata: a key, and the values it may have.

    `texts` are these values as JSON spells them, so that every store compares alike: True is not 1, 1 and
    1.0 are equal, None is a null and not a missing key. A list or a mapping in a record matches no value.
    `a.b` is a key with a dot in it, no path.
    """

    key: str
    texts: frozenset[str]

    @classmethod
    def of(cls, key: str, *values: object) -> "Wanted":
        """The condition that a key has one of these values.

        Raises:
            InvalidContent: the key is no plain name, there is no value or over 50, or a value is no text,
                finite number, boolean or None.
        """
        if not isinstance(key, str) or not _KEY.match(key):
            told = key[:40] if isinstance(key, str) else type(key).__name__
            raise InvalidContent(
                f"metadata has no key {told!r}; a key is 1 to 64 letters, digits, '_', '.' or '-'", key=told
            )
        if not 0 < len(values) <= _MOST_VALUES:
            raise InvalidContent(
                f"metadata.{key} has {len(values)} values to choose from; give 1 to {_MOST_VALUES}, or leave "
                "the key out",
                key=key,
            )
        return cls(key, frozenset(text for value in values for text in _spellings(key, value)))

    def is_in(self, metadata: Mapping[str, Any]) -> bool:
        """Whether this metadata fulfils the condition."""
        return self.key in metadata and spelled(metadata[self.key]) in self.texts


def spelled(value: object) -> str | None:
    """A record's value as JSON spells it; None if it cannot be compared."""
    return _COMPACT_JSON.encode(value) if isinstance(value, _SCALARS) else None


def _spellings(key: str, value: object) -> Iterator[str]:
    """All spellings of a value in JSON: a number can be written in several ways."""
    if not isinstance(value, _SCALARS) or (isinstance(value, float) and not math.isfinite(value)):
        told = str(value) if isinstance(value, float) else f"a {type(value).__name__}"
        raise InvalidContent(
            f"metadata.{key} is {told}; give text, a finite number, a boolean, None or a list of these. "
            "There are no operators; 'since' and 'until' compare times",
            key=key,
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        yield _COMPACT_JSON.encode(value)
    except ValueError as error:  # Python writes 4,300 digits and no more
        raise InvalidContent(
            f"metadata.{key} is a number of too many digits; give it as text", key=key
        ) from error
    if isinstance(value, int) and not isinstance(value, bool):
        yield from () if value else ("-0.0",)
        with suppress(OverflowError):
            yield from (repr(float(value)),) if float(value) == value else ()


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal; 0: the signal is not computed. Measured, see docs/ranking.md.

    The first three are direct: only their proportions count, and they make a value from 0 to 1. The others
    are added to it, but `reply`, which is taken from an assistant's words.

    Raises:
        ValueError: a weight is outside [0, 1000], or no direct signal has one.
    """

    meaning: float = 1.5
    words: float = 0.25
    words_before: float = 0.75
    neighbour: float = 0.4
    answer: float = 0.3
    episode: float = 0.2
    speaker: float = 0.15
    date: float = 0.7
    information: float = 1.25
    reply: float = 0.25

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0 <= getattr(self, each.name) <= _MOST:
                raise ValueError(f"{each.name} is {getattr(self, each.name)}; a weight is from 0 to {_MOST}")
        if not (self.words or self.words_before):
            raise ValueError("words and words_before are 0, and without an embedder there is nothing else")

    @classmethod
    def of(cls, changed: Mapping[str, float]) -> "Weights":
        """The default weights with some of them changed.

        Raises:
            ValueError: there is no such signal, or see above.
        """
        names = [each.name for each in fields(cls)]
        if unknown := sorted(set(changed) - set(names)):
            raise ValueError(f"{unknown[0]} is no signal; there are {', '.join(names)}")
        return cls(**changed)


_MOST = 1_000
DEFAULT = Weights()


Kind: TypeAlias = Literal[
    "user-profile", "domain-facts", "task-traces", "tool-effects", "experience", "identity"
]
Layer: TypeAlias = Literal["abstract", "summary", "history"]
Status: TypeAlias = Literal["active", "pending", "stale", "compressed", "quarantined", "deleted"]
SourceClass: TypeAlias = Literal["user", "agent", "tool", "system"]
WriteStatus: TypeAlias = Literal["added", "merged", "updated", "appended", "skipped", "pending"]
Event: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "NONE"]
"""The change asked for by a statement, or by a model that read it."""
Namespace: TypeAlias = tuple[str, ...]
"""(family, user) or (family, user, task); compared by whole segments, never by prefix of the text."""
Place: TypeAlias = tuple[float, str]
"""Where a record stands in a list, which is by falling places: when it was last updated, and its id."""

KINDS: tuple[Kind, ...] = get_args(Kind)
FAMILIES: Mapping[Kind, str] = MappingProxyType({kind: kind.replace("-", "_") for kind in KINDS})
SESSION_FAMILY = "session_messages"
"""The family of verbatim messages, which notes quote. A search reads it if its name or layer is given."""
DIGEST_FAMILY = "session_digests"
"""The family of the states of sessions: name, end and digest. It is read if its name or layer is given."""
TEAM = "team:"
"""How the owner of records begins that a team shares. No user has such an id, so nobody acts as a team."""
AUTHOR = "author"
"""The metadata key of what a team shares for the user with whose data it is erased."""
PROMOTED = "promoted"
"""Metadata key of a shared record: the id of the record it is erased with."""
MAX_CONTENT_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 1024 * 1024
"""A message over this is refused; a message over `MAX_CONTENT_BYTES` is kept in parts."""
MAX_NAME_BYTES = 128
_TASK_SEGMENTS = 3
_ASSISTANTS = frozenset({"assistant", "ai", "agent"})
_ROLES = frozenset({"user", "human", *_ASSISTANTS, "system", "tool"})

# Cc control, Co private use, Cn unassigned, Zl/Zp separators; what nobody sees is in `unseen.py`
_NOT_IN_NAMES = frozenset({"Cc", "Co", "Cn", "Zl", "Zp"})
_NOT_USERS = frozenset({"none", "null", "undefined", "nan"})
_CUTS = (("\n\n",), ("\n", "。", "！", "？", ". ", "! ", "? "))
_NOT_IN_CONTENT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_FAMILY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,95}\Z")


def new_id() -> str:
    """A new record or event id: UUIDv7, so that ids sort by the time they were made."""
    return str(uuid_utils.uuid7())


def is_id(text: str) -> bool:
    """Whether a text has the form of a record's id."""
    return len(text) == 36 and text.count("-") == 4 and " " not in text  # noqa: PLR2004


def check_name(value: object, *, what: str) -> str:
    """Return `value` if it can name a user, agent, session or task without looking like another name.

    Args:
        what: The word for the error message, such as "user id".

    Raises:
        MissingUser: a user id is None or empty, or a word for nobody ("null").
        InvalidName: it has unseen characters, is not NFC, has outer spaces, or is over 128 bytes.
    """
    if not isinstance(value, str) or not value.strip():
        kind = MissingUser if what == "user id" else InvalidName
        told = f"{str(value)[:40]!r}" if isinstance(value, str) or value is None else type(value).__name__
        raise kind(f"{what} is {told}; pass a non-empty string", value=value)
    if len(value) > MAX_NAME_BYTES:
        raise InvalidName(
            f"{what} of {len(value):,} characters is over {MAX_NAME_BYTES} bytes; use a shorter one",
            size=len(value),
        )
    return _checked_name(value, what)


@lru_cache(maxsize=1_024)
def _checked_name(value: str, what: str) -> str:
    if what == "user id" and value.lower() in _NOT_USERS:
        raise MissingUser(
            f"{what} is the word {value!r}, which stands for nobody; pass a real id", value=value
        )
    if what == "user id" and value.startswith(TEAM):
        raise InvalidName(
            f"{what} {value[:40]!r} is a team's: nobody acts as a team, and `memory.review.promote` alone "
            "gives it something to read; use another id",
            value=value,
        )
    hidden = (UNSEEN if what == "user id" else HIDDEN).search(value)
    bad = hidden[0] if hidden else next((c for c in value if unicodedata.category(c) in _NOT_IN_NAMES), None)
    if bad is not None:
        raise InvalidName(
            f"{what} {value[:40]!r} holds {bad!r}; remove it before it reaches memory", value=value
        )
    if unicodedata.normalize("NFC", value) != value:
        raise InvalidName(
            f"{what} {value[:40]!r} is not in Unicode NFC, so it could pass for another; "
            "normalise it with unicodedata.normalize('NFC', …)",
            value=value,
        )
    if value != value.strip():
        raise InvalidName(f"{what} {value[:40]!r} begins or ends with a space; strip it", value=value)
    if (size := len(value.encode())) > MAX_NAME_BYTES:
        raise InvalidName(f"{what} of {size} bytes is over {MAX_NAME_BYTES}; use a shorter one", size=size)
    return value


def check_family(value: str) -> str:
    """Return `value` if it can be a family: letters, digits, `_`, `-`, `.`; at most 96 characters.

    Raises:
        InvalidName: it cannot.
    """
    if not isinstance(value, str) or not _FAMILY.match(value):
        raise InvalidName(
            f"{str(value)[:40]!r} cannot be a family; use letters, digits, '_', '-' or '.', "
            f"for example one of {', '.join(FAMILIES.values())} or '<agent>_memories'",
            value=value,
        )
    return value


def check_content(text: str, *, most: int = MAX_CONTENT_BYTES) -> str:
    """Return the text as it will be stored: NFC, outer whitespace removed.

    Args:
        most: Bytes of UTF-8; a message may have more than a record.

    Raises:
        InvalidContent: not a string, nothing visible in it, control characters or lone surrogates.
        ContentTooLarge: over `most`. Texts are refused, never cut.
    """
    if not isinstance(text, str):
        raise InvalidContent(
            f"content is {type(text).__name__}, not text; pass a string", type=type(text).__name__
        )
    if len(text) > most:
        raise ContentTooLarge(
            f"content of {len(text):,} characters is over the limit of {most:,} bytes; split it, or store a "
            "file and remember its path",
            size=len(text),
        )
    if bad := _NOT_IN_CONTENT.search(text):
        raise InvalidContent(
            f"content {text[:40]!r} holds the control character {bad[0]!r}; remove it and write again",
            character=bad[0],
        )
    clean = unicodedata.normalize("NFC", text).strip()
    if (size := len(clean.encode())) > most:
        raise ContentTooLarge(
            f"content of {size:,} bytes is over the limit of {most:,}; split it, or store a file and "
            "remember its path",
            size=size,
        )
    if not _is_seen(clean):
        raise InvalidContent(
            f"content {text[:40]!r} holds nothing visible; pass some text", content=text[:40]
        )
    return clean


def _is_seen(text: str) -> bool:
    """Whether a text holds anything visible."""
    return any(unicodedata.category(c)[0] not in "CZ" for c in UNSEEN.sub("", text))


def parts_of_message(text: str) -> tuple[str, ...]:
    """The parts of at most 64 KiB in which a message is kept, in order; a short message is one.

    A part ends after a paragraph, else after a line or sentence, else after a character.

    Raises:
        InvalidContent, ContentTooLarge: as `check_content`, for a message over 1 MiB.
    """
    left = check_content(text, most=MAX_MESSAGE_BYTES).encode()
    parts: list[str] = []
    while len(left) > MAX_CONTENT_BYTES:
        part = left[:MAX_CONTENT_BYTES].decode(errors="ignore")
        ends = (max(part.rfind(mark) + len(mark) for mark in marks) for marks in _CUTS)
        part = part[: next((end for end in ends if end > len(part) // 2), len(part))]
        parts.append(part)
        left = left[len(part.encode()) :]
    return tuple(part.strip() for part in (*parts, left.decode()) if _is_seen(part))


_WORDS = re.compile(r"`([^`\n]{1,80})`|(?<!\w)([A-Za-z]\w{1,79})(?!\w)", re.ASCII)
_CASED = re.compile(r"[a-z]\w*[A-Z]|(?=\w*\d)\w*[a-z]\w*[A-Z]", re.ASCII)


def cased_words(text: str) -> frozenset[str]:
    """The words for which case counts, if they have capitals: in backticks, camelCase, keys like K7aB."""
    found: set[str] = set()
    for code, word in set(_WORDS.findall(text)):
        if code:
            found.update(each for each in code.split() if not each.islower())
        elif not word.islower() and _CASED.match(word):
            found.add(word)
    return frozenset(found)


def content_hash(text: str) -> str:
    """SHA-256 of the text as a reader sees it: NFKC, case, spaces and closing punctuation do not count.

    The case of `cased_words` does.
    """
    return _known_hash(text) if len(text) <= _LONGEST_KNOWN else _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(" ".join((_seen(text), *sorted(cased_words(text)))).encode()).hexdigest()


_LONGEST_KNOWN = 2_000
_known_hash = lru_cache(maxsize=2_048)(_hash)  # a turn asks for those of the same messages again and again


def is_hash_of(text: str, given: object) -> bool:
    """Whether a hash belongs to a text; also accepts the older form, for which case never counted."""
    return given in (content_hash(text), hashlib.sha256(_seen(text).encode()).hexdigest())


def _seen(text: str) -> str:
    seen = unicodedata.normalize("NFKC", text).casefold()
    if not seen.isascii():
        seen = "".join(c for c in seen if unicodedata.category(c) != "Cf")
    return " ".join(seen.split()).rstrip(".。!！ ")


def family_for(
    kind: Kind, agent_id: str | None = None, prefixes: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The family of a record for which the caller names none.

    User profiles go to `user_profile`, whoever wrote them. Other records of an agent go to
    `{agent}_memories`; all others go by their kind.

    Args:
        prefixes: MEMORY_NAMESPACES: agent → family, for agents with a renamed family.
    """
    if agent_id is None or kind == "user-profile":
        return FAMILIES[kind]
    return check_family(prefixes.get(agent_id) or f"{agent_id}_memories")


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is acting. Bound from trusted run-time data, never from a model's arguments.

    `agent_id` is the sub-agent that reads a note or returned a result; None is the supervisor.
    `session_id` is LangGraph's `thread_id`. `task` adds a segment to the namespace: records of a task are
    not seen in other tasks.
    """

    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        check_name(self.user_id, what="user id")
        for name in ("agent_id", "session_id", "run_id", "task"):
            if (value := getattr(self, name)) is not None:
                check_name(value, what=name.replace("_", " "))

    @property
    def tasks(self) -> tuple[str | None, ...]:
        """The tasks with records that this scope may see: None (no task), and its own task."""
        return (None,) if self.task is None else (None, self.task)

    def namespace(self, family: str) -> Namespace:
        """The namespace of this scope in a family."""
        base = (check_family(family), self.user_id)
        return base if self.task is None else (*base, self.task)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record comes from. Set once; changed only if a model overwrites the user's words.

    `message_id` is the message that said it; for an agent's outcome, the user's message that it answers.
    """

    source_class: SourceClass = "user"
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    message_id: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message, kept verbatim. `name` is the agent's name if an agent said it."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One memory.

    Times are seconds since 1970 by this machine's clock. `subject` and `attribute` are the topic of a
    statement ("delayed", "definition"): a namespace has one active record for each pair. `ref_id` is the
    session message it was read from, None if no message was kept. `joined_ref_ids` are other messages that
    say the text or a part of it; `former_ref_ids` are messages that it contradicts, such as those of texts
    that were replaced. Both hold the newest 50. `vector` travels only towards a backend: records that come
    back have None; an update with `vector=None` and an `embedder` keeps the stored one.
    """

    id: str
    namespace: Namespace
    content: str
    kind: Kind
    created_at: float
    updated_at: float
    layer: Layer = "abstract"
    status: Status = "active"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    source: Source = field(default_factory=Source)
    ref_id: str | None = None
    subject: str | None = None
    attribute: str | None = None
    content_hash: str = ""
    version: int = 1
    valid_from: float | None = None
    valid_to: float | None = None
    expires_at: float | None = None
    embedder: str | None = None
    vector: "Vector | None" = field(default=None, compare=False, repr=False)
    joined_ref_ids: tuple[str, ...] = ()
    former_ref_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.content_hash:
            object.__setattr__(self, "content_hash", content_hash(self.content))

    @property
    def family(self) -> str:
        return self.namespace[0]

    @property
    def user_id(self) -> str:
        return self.namespace[1]

    @property
    def erased_with(self) -> str:
        """The user with whose data the record goes: its own, or the author of what a team shares."""
        author = self.metadata.get(AUTHOR) if self.user_id.startswith(TEAM) else None
        return author if isinstance(author, str) else self.user_id

    @property
    def task(self) -> str | None:
        return self.namespace[2] if len(self.namespace) == _TASK_SEGMENTS else None

    @property
    def present_ref_ids(self) -> tuple[str, ...]:
        """The messages that say the record's text or a part of it."""
        return self.joined_ref_ids if self.ref_id is None else (*self.joined_ref_ids, self.ref_id)

    @property
    def ref_ids(self) -> tuple[str, ...]:
        """All messages that the record tells something about, each once."""
        return tuple(dict.fromkeys((*self.former_ref_ids, *self.present_ref_ids)))

    @property
    def rests_on(self) -> "tuple[Thing, ...]":
        """The kind and name of each thing that the record rests on."""
        return things(self.metadata.get("rests_on"))

    @property
    def unsettled(self) -> Mapping[str, list[str]]:
        """Names whose state changed since → the earlier state, and the record of the change."""
        told = self.metadata.get(UNSETTLED)
        return {n: v for n, v in told.items() if isinstance(v, list)} if isinstance(told, dict) else {}

    @property
    def is_borne_on(self) -> bool:
        """Whether other records can rest on what it tells: of a metric, a file or a table."""
        about = self.attribute or ""
        return about in (ARTIFACT, "definition") or about.startswith("includes-")

    @property
    def made_from(self) -> tuple[str, ...]:
        """Ids of the records it was made from, such as the evidence of a reflection.

        It goes where one of them is deleted or erased, for its text tells of it.
        """
        told = self.metadata.get(MADE_FROM)
        return tuple(e for e in told if isinstance(e, str)) if isinstance(told, (list, tuple)) else ()

    @property
    def linked_ids(self) -> tuple[str, ...]:
        """Ids of messages and sources, and names of things, by which a store finds a record."""
        if self.metadata.keys().isdisjoint(("rests_on", MADE_FROM)):
            return self.ref_ids
        return (*self.ref_ids, *map(":".join, self.rests_on), *self.made_from)

    def also_said_in(self, *messages: str | None) -> "Record":
        """The record with further messages that say its text or a part of it."""
        joined = _newest(each for each in (*self.joined_ref_ids, *messages) if each != self.ref_id)
        return replace(self, joined_ref_ids=joined)

    def no_longer_said_in(self, *messages: str | None) -> "Record":
        """The record with further messages that it contradicts."""
        return replace(self, former_ref_ids=_newest((*self.former_ref_ids, *messages)))

    def read_anew(self, ref_id: str | None, *, replaces: bool) -> "Record":
        """The record with the messages of another text, which replaces or includes the present one."""
        new = replace(self, ref_id=ref_id or self.ref_id)
        if not replaces:
            return new.also_said_in(self.ref_id)
        former = (each for each in (*self.former_ref_ids, *self.present_ref_ids) if each != ref_id)
        return replace(new, joined_ref_ids=(), former_ref_ids=_newest(former))

    @property
    def use_when(self) -> str | None:
        """The situation in which the record is of use, from `metadata["use_when"]`; None: any."""
        told = self.metadata.get("use_when")
        return told if isinstance(told, str) and told.strip() else None

    @property
    def embedded_as(self) -> str | None:
        """What is embedded around the content, from `metadata["embedded_as"]`: a text with `{content}` in it,
        such as the date in front of it; None: nothing."""
        told = self.metadata.get(EMBEDDED_AS)
        return told if isinstance(told, str) and CONTENT_PLACE in told else None

    @property
    def is_embedded_otherwise(self) -> bool:
        """Whether its vector is of more than its content, so that no text is compared with it."""
        return self.use_when is not None or self.embedded_as is not None

    @property
    def spoken_by(self) -> str | None:
        """The named speaker of a verbatim record; None for other records, and for roles such as "user"."""
        speaker = self.source.speaker if self.layer == "history" else None
        return speaker if speaker and speaker.lower() not in _ROLES else None

    @property
    def is_said(self) -> bool:
        """Whether it was said in a conversation, word for word; else it is a fact by itself."""
        source = self.source
        return self.layer == "history" and (source.session_id is not None or source.speaker is not None)

    @property
    def is_reply(self) -> bool:
        """Whether an assistant said it, word for word, in a conversation."""
        if self.layer != "history":
            return False
        role = (self.source.speaker or "").lower()
        return role in _ASSISTANTS or (self.source.source_class == "agent" and (not role or role in _ROLES))

    @property
    def embedded_text(self) -> str:
        """The text to embed: `use_when` if there is one, else the content with its speaker, and what a recipe
        puts around it."""
        if self.use_when or self.embedded_as is None:
            return self.use_when or self._told
        return self.embedded_as.replace(CONTENT_PLACE, self._told, 1)

    @property
    def searched_text(self) -> str:
        """The text for searches by words: the content with its speaker, `use_when`, the tags, and the names
        in relations that a model has read in it."""
        names = " ".join(name for one, _, two in self.relations for name in (one, two))
        return "\n".join(filter(None, (self._told, self.use_when, " ".join(self.tags), names)))

    @property
    def relations(self) -> Sequence[tuple[str, str, str]]:
        """The relations that a model has read in it: source, relationship, destination."""
        told = self.metadata.get(RELATIONS)
        rows = [each for each in told if isinstance(each, list)] if isinstance(told, list) else []
        return [(each[0], each[1], each[2]) for each in rows if [*map(type, each)] == [str, str, str]]

    @property
    def _told(self) -> str:
        return self.content if self.spoken_by is None else f"{self.spoken_by}: {self.content}"

    def to_dict(self) -> dict[str, Any]:
        """The record as a plain dictionary for JSON, without its vector."""
        values = {name: getattr(self, name) for name in Record.__slots__ if name not in _NOT_PLAIN}
        return {
            **values,
            **{name: list(ids) for name in _REF_IDS if (ids := getattr(self, name))},
            "namespace": list(self.namespace),
            "tags": list(self.tags),
            "metadata": dict(thawed(self.metadata)),
            "source": {name: getattr(self.source, name) for name in Source.__slots__},
        }

    def to_json(self) -> str:
        return _COMPACT_JSON.encode(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Record":
        """The reverse of `to_dict`; the metadata cannot be changed."""
        return cls(
            **{
                **data,
                "namespace": tuple(data["namespace"]),
                "tags": tuple(data["tags"]),
                "source": Source(**data["source"]),
                "metadata": frozen(data["metadata"]),
                **{name: tuple(data[name]) for name in _REF_IDS if name in data},
            }
        )

    def is_visible(self, now: float) -> bool:
        """Whether a search may return the record: it is active and has not expired."""
        return self.status == "active" and (self.expires_at is None or self.expires_at > now)

    @property
    def place(self) -> Place:
        """Its place in lists."""
        return self.updated_at, self.id

    @property
    def cursor(self) -> str:
        """Its place as a text: what a list goes on behind, where it is the last record of a page."""
        return json.dumps(self.place, ensure_ascii=False)

    def has_expired(self, now: float) -> bool:
        """Whether the record's time to live has passed."""
        return self.expires_at is not None and self.expires_at <= now


MADE_FROM = "made_from"
"""The metadata key for the ids of what a record was made from."""
TIER = "tier"
"""The metadata key for the name of the part of a store that a record is in."""
EMBEDDED_AS = "embedded_as"
"""The metadata key for what is embedded around a record's content."""
CONTENT_PLACE = "{content}"
"""Where in it the content stands."""
RELATIONS = "relations"
"""The metadata key for relations that a model has read in a record: source, relationship, destination."""
ARTIFACT = "artifact"
"""The attribute of a file or a query; its subject says which."""
UNSETTLED = "unsettled"
"""The metadata key for what of `rests_on` has changed."""
WRITTEN_ANEW = "written-anew"
"""The reason for a change of a file or a query whose words are the same."""
_REF_IDS = ("joined_ref_ids", "former_ref_ids")
_NOT_PLAIN = frozenset({"vector", *_REF_IDS})
_MOST_REF_IDS = 50


Thing: TypeAlias = tuple[str, str]
"""The kind and the name of what a record can rest on, such as ("table", "sales")."""


def things(told: object) -> tuple[Thing, ...]:
    """The things that a list names; what is no pair of texts is left out."""
    given = told if isinstance(told, (list, tuple)) else ()
    pairs = (each for each in given if isinstance(each, (list, tuple)) and [*map(type, each)] == [str, str])
    return tuple((kind, name if kind == "file" else name.casefold()) for kind, name in pairs)


def _newest(messages: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, messages)))[-_MOST_REF_IDS:]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement on its way to become a record, or to change one.

    `content` is the speaker's own words. `subject` and `attribute` name the thing and its property, `value`
    is the property's normalised value ("table"), if any. `evidence` is the text it was read from, `ref_id`
    the session message with that text, if one was kept. `strategy` is the merge strategy asked for; None:
    the one of the kind.

    `event` is the change asked for; None: comparison decides. "DELETE" takes back the statement in `content`:
    "I want tables" for "forget that I want tables". `target` is the id of the record to change; None: the
    record that says the same.
    """

    content: str
    kind: Kind
    source: Source = field(default_factory=Source)
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    strategy: str | None = None
    evidence: str = ""
    confidence: float = 1.0
    ref_id: str | None = None
    event: Event | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on records. A field that is None does not restrict; all others must hold.

    `tasks=(None,)` means records without a task, `(None, "t")` also the records of task t. `families=None`
    means every family, session messages and digests only where ids, a session or their layer are named too.
    `agent_id` is the agent that brought the record. `not_embedded_by` means records without a vector by the
    embedder with this fingerprint. A record must have all of `tags`, and fulfil all of `metadata`.

    `since` (inclusive) and `until` (exclusive) are about `created_at`, in seconds since 1970, which a later
    correction does not change. `expired_by` means records that had expired at that time. `ref_ids` means
    records that tell something about any of these messages, were made from any of these records, or rest on
    any of these things ("table:sales"), see `Record.linked_ids`. `behind` means records that lists
    have behind that place.
    """

    user_id: str | None = None
    families: tuple[str, ...] | None = None
    tasks: tuple[str | None, ...] | None = None
    kinds: tuple[Kind, ...] | None = None
    statuses: tuple[Status, ...] | None = ("active",)
    ids: tuple[str, ...] | None = None
    session_id: str | None = None
    agent_id: str | None = None
    content_hash: str | None = None
    subject: str | None = None
    attribute: str | None = None
    not_embedded_by: str | None = None
    tags: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None
    metadata: tuple[Wanted, ...] | None = None
    layers: tuple[Layer, ...] | None = None
    expired_by: float | None = None
    ref_ids: tuple[str, ...] | None = None
    behind: Place | None = None

    @classmethod
    def beside(cls, record: Record) -> "Filter":
        """The filter of the active records in a record's namespace."""
        return cls(record.user_id, families=(record.family,), tasks=(record.task,))

    def after(self, last: Record) -> "Filter":
        """The same for the next page of a list, of which this was the last record."""
        return replace(self, behind=last.place)

    def names_something(self) -> bool:
        """Whether the filter names a user, ids or a session."""
        return any(value is not None for value in (self.user_id, self.ids, self.session_id))

    @property
    def reads_messages(self) -> bool:
        """Whether session messages may match."""
        if self.families is not None:
            return SESSION_FAMILY in self.families
        return self.ids is not None or self.session_id is not None or "history" in (self.layers or ())

    @property
    def reads_digests(self) -> bool:
        """Whether the states of sessions may match."""
        if self.families is not None:
            return DIGEST_FAMILY in self.families
        return self.ids is not None or self.session_id is not None or "summary" in (self.layers or ())

    @property
    def left_out(self) -> tuple[str, ...]:
        """The families that are read only when asked for, and are not."""
        messages = () if self.reads_messages else (SESSION_FAMILY,)
        return messages if self.reads_digests else (*messages, DIGEST_FAMILY)

    def everywhere(self) -> tuple["Filter", "Filter"]:
        """The filter, and the same for the families that a filter without families leaves out."""
        return self, replace(self, families=(SESSION_FAMILY, DIGEST_FAMILY))

    def matches(self, record: Record) -> bool:
        """Whether a record fulfils the filter. Every backend agrees with this method."""
        return (
            self.content_hash in (None, record.content_hash)  # first, for few pass it
            and self.subject in (None, record.subject)
            and (self.families is None or record.family in self.families)
            and record.family not in self.left_out
            and self.user_id in (None, record.user_id)
            and (self.tasks is None or record.task in self.tasks)
            and (self.kinds is None or record.kind in self.kinds)
            and (self.statuses is None or record.status in self.statuses)
            and (self.ids is None or record.id in self.ids)
            and self.session_id in (None, record.source.session_id)
            and self.agent_id in (None, record.source.agent_id)
            and self.attribute in (None, record.attribute)
            and (self.not_embedded_by is None or self.not_embedded_by != record.embedder)
            and (self.tags is None or set(self.tags) <= set(record.tags))
            and (self.since is None or self.since <= record.created_at)
            and (self.until is None or record.created_at < self.until)
            and (self.layers is None or record.layer in self.layers)
            and (self.expired_by is None or record.has_expired(self.expired_by))
            and (self.metadata is None or all(each.is_in(record.metadata) for each in self.metadata))
            and (self.ref_ids is None or not set(self.ref_ids).isdisjoint(record.linked_ids))
            and (self.behind is None or record.place < self.behind)
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A search. `terms` come from `supervisor_memory.language.terms`; `vector` may be missing.

    `unrelated` is the cosine up to which texts have nothing in common, by the embedder's calibration, and
    `same` that of a question and its answer.
    `weights` are the weights of the signals. `parts` are the questions of a text that asks several. Of the
    terms in `names` each hit tells whether any is in it or in what was said before it, as its part `names`.
    """

    text: str
    where: Filter
    terms: tuple[str, ...] = ()
    vector: "Vector | None" = field(default=None, compare=False, repr=False)
    embedder: str | None = None
    now: float = 0.0
    unrelated: float = 0.0
    same: float = 1.0
    weights: Weights = DEFAULT
    parts: tuple["Query", ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seed:
    """A text from whose names a walk over a store begins: a record's, or a name.

    `weight` is how much what is found from it counts, in [0, 1]; nothing is looked for from one of 0.
    `record_id` is the record it is the text of, which the walk does not find.
    """

    text: str
    weight: float = 1.0
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """A record on a path, and the name joining it to the next one.

    `record_id` is None for a name that a walk began at.
    """

    record_id: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A found record, with its score in [0, 1] and the parts of the score.

    `found` names the operator's way to a record that no search found, such as "spread"; None: a search found
    it. The operator vouches for the record: neither threshold nor knee drops it, limit and budget do.
    `excerpt` are the sentences of a session message that a note quotes; None: the record is told whole.
    `path` is the way from another hit to this one, where it was found as a neighbour of that hit. `made_of`
    are the messages of a digest's sentences by their ids, each with the section; `record` is then the digest,
    or the newest message of a session that has none yet.
    """

    record: Record
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    found: str | None = None
    excerpt: str | None = None
    path: tuple[Joint, ...] = ()
    made_of: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What joins it to another hit, step by step; empty where a search found it."""
        return tuple(joint.name for joint in self.path)

    @property
    def reason(self) -> str:
        """Why the record was handed out, as a code of `supervisor_memory.model.explain`."""
        if "standing" in self.parts:
            return "standing"
        if self.made_of:
            return "digest"
        if self.excerpt is not None:
            return "said"
        if self.path:
            return "joined"
        if self.found is None:
            return "kept"
        return "guideline" if self.found == "guideline" else "added"

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {value:.2f}" for name, value in self.parts.items())
        return f"{self.score:.2f} {self.record.content!r} ({parts})"


@dataclass(frozen=True, slots=True)
class Reads:
    """How often a record was handed out, counted up to 100, and when last, in seconds since 1970.

    `last_at` is None where it never was.
    """

    times: int = 0
    last_at: float | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """A candidate of a search with its outcome, a code of `supervisor_memory.model.explain`."""

    hit: Hit
    reason: str = "kept"


@dataclass(frozen=True, slots=True, repr=False)
class Hits(Sequence[Hit]):
    """Hits, best first. `degraded` says that a part of the search did not work; `notes` say which part.

    `notes` also say how much of a long question was read. `namespaces` is the number that the store looked
    into; None: unknown. `print(hits)` shows a hit per line or, with `considered` (filled by `explain=True`),
    a table of all candidates.
    """

    items: tuple[Hit, ...] = ()
    degraded: bool = False
    notes: tuple[str, ...] = ()
    namespaces: int | None = None
    considered: tuple[Considered, ...] = field(default=(), compare=False)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> "Hits": ...
    def __getitem__(self, index: int | slice) -> "Hit | Hits":
        if isinstance(index, slice):
            return replace(self, items=self.items[index], considered=())
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.items)

    def __repr__(self) -> str:
        told = [f"{hit.score:.2f} {_shortened(hit.record.content)!r}" for hit in self.items[:_SHOWN]]
        told += [f"{len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        found = f"{len(self)} found{', degraded' if self.degraded else ''}"
        return f"<Hits {': '.join([found, *filter(None, ['; '.join([*told, *self.notes])])])}>"

    def __str__(self) -> str:
        found = [self._table()] if self.considered else [*map(str, self.items)]
        return "\n".join([*found, *self.notes]) or "nothing found"

    def _table(self) -> str:
        ranks = {hit.record.id: rank for rank, hit in enumerate(self.items, start=1)}
        told = ((each.hit, each.hit.record, each.reason) for each in self.considered)
        rows = [Row(ranks.get(r.id), h.score, h.parts, why, h.excerpt or r.content) for h, r, why in told]
        return table(rows)


_SHOWN = 3
_SHOWN_OF_A_TEXT = 40


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_OF_A_TEXT else text[: _SHOWN_OF_A_TEXT - 1] + "…"


@dataclass(frozen=True, slots=True)
class Route:
    """The router's decision about a text.

    `families` are to be read; `kinds` to be written; `reasons` are the names of the rules that fired.
    """

    should_read: bool
    should_write: bool
    families: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """The text put into one model call, with the ids of its records. Empty text: there is nothing to say."""

    text: str = ""
    ids: tuple[str, ...] = ()
    hits: Hits = field(default_factory=Hits)
    tokens: int = 0
    degraded: bool = False
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of writing one text.

    `id` is the record with the text now (the older one after a merge); "" if there is none. "pending": it has
    no effect until a person approves it, see `memory.review`; `reason` says why it waits. `saved` says that
    it is durable; False comes with a `reason`. `applied` says that every reader sees it; a change that waits
    in a journal for an unreachable store is seen on this machine alone.
    """

    id: str
    status: WriteStatus
    saved: bool = True
    reason: str = ""
    version: int = 1
    applied: bool = True


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What happened, to what, by whom, why. The stored row holds no content.

    `before` and `after` are texts only on their way in: the log keeps keyed commitments of them.
    `detail` values are str, int, bool or None, never content.
    """

    op: str
    user_id: str | None = None
    actor: str = "supervisor"
    family: str | None = None
    record_id: str | None = None
    version_before: int | None = None
    version_after: int | None = None
    before: str | None = field(default=None, repr=False)
    after: str | None = field(default=None, repr=False)
    outcome: Literal["ok", "skipped", "denied", "degraded", "failed"] = "ok"
    reason: str = ""
    source_class: SourceClass | None = None
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    detail: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    id: str = field(default_factory=new_id)

    @classmethod
    def of(cls, op: str, record: Record, *, source: Source | None = None, **facts: Any) -> "AuditEvent":
        """The event of a record: its user, family, id and source, unless the facts say otherwise."""
        source = source or record.source
        whole: dict[str, Any] = {
            "user_id": record.user_id,
            "family": record.family,
            "record_id": record.id,
            "source_class": source.source_class,
            "agent_id": source.agent_id,
            "session_id": source.session_id,
            "run_id": source.run_id,
        }
        return cls(op, **{**whole, **facts})

    @classmethod
    def changed(cls, record: Record, reason: str) -> "AuditEvent":
        """The event of a record that is about to get another version with the same text."""
        after = record.version + 1
        return cls.of("update", record, version_before=record.version, version_after=after, reason=reason)

    @classmethod
    def by(cls, scope: Scope, op: str, **facts: Any) -> "AuditEvent":
        """The event of a scope: its user, agent, session and run, unless the facts say otherwise."""
        who = {name: getattr(scope, name) for name in ("user_id", "agent_id", "session_id", "run_id")}
        return cls(op, **{**who, **facts})
