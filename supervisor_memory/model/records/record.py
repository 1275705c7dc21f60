"""A record, its messages and sources, and a candidate for one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from supervisor_memory.model.records.content import content_hash
from supervisor_memory.model.records.frozen import COMPACT_JSON, frozen, thawed
from supervisor_memory.model.records.names import (
    AUTHOR,
    TEAM,
    Event,
    Kind,
    Layer,
    Namespace,
    Place,
    SourceClass,
    Status,
)
from supervisor_memory.model.replacing import replace

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]


_TASK_SEGMENTS = 3
_ASSISTANTS = frozenset({"assistant", "ai", "agent"})
_ROLES = frozenset({"user", "human", *_ASSISTANTS, "system", "tool"})


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
        """The user whose erasure removes it: its own user, or the author of a record that a team shares."""
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
        """Name of a thing whose state has changed since → its earlier state, and the record of the change."""
        told = self.metadata.get(UNSETTLED)
        return {n: v for n, v in told.items() if isinstance(v, list)} if isinstance(told, dict) else {}

    @property
    def is_borne_on(self) -> bool:
        """Whether other records can rest on this one: it tells of a metric, a file or a table."""
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
        """The record with the messages of another text, which has replaced or includes the present text."""
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
        """A template for the embedded text, from `metadata["embedded_as"]`: it holds `{content}`, with a date
        in front of it, say; None: the content alone."""
        told = self.metadata.get(EMBEDDED_AS)
        return told if isinstance(told, str) and CONTENT_PLACE in told else None

    @property
    def is_embedded_otherwise(self) -> bool:
        """Whether its vector is of another text than its content, and so cannot be compared with texts."""
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
        source = self.source
        if self.layer != "history" or not source.speaker:
            return self.layer == "history" and source.source_class == "agent"
        role = source.speaker.lower()
        return role in _ASSISTANTS or (source.source_class == "agent" and role in _ROLES)

    @property
    def embedded_text(self) -> str:
        """The text to embed: `use_when` if there is one, else the content with its speaker, and what a recipe
        puts around it."""
        if self.use_when or self.embedded_as is None:
            return self.use_when or self._with_speaker
        return self.embedded_as.replace(CONTENT_PLACE, self._with_speaker, 1)

    @property
    def searched_text(self) -> str:
        """The text for searches by words: the content with its speaker, `use_when`, the tags, and the names
        in relations that a model has read in it."""
        names = " ".join(name for one, _, two in self.relations for name in (one, two))
        return "\n".join(filter(None, (self._with_speaker, self.use_when, " ".join(self.tags), names)))

    @property
    def relations(self) -> Sequence[tuple[str, str, str]]:
        """The relations that a model has read in it: source, relationship, destination."""
        told = self.metadata.get(RELATIONS)
        rows = [each for each in told if isinstance(each, list)] if isinstance(told, list) else []
        return [(each[0], each[1], each[2]) for each in rows if [*map(type, each)] == [str, str, str]]

    @property
    def _with_speaker(self) -> str:
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

    def to_json(self, **changed: object) -> str:
        """The record as JSON, with some values of `to_dict` changed."""
        return COMPACT_JSON.encode({**self.to_dict(), **changed} if changed else self.to_dict())

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
        """Its place as a text; the next page of a list begins behind it."""
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
    """Read a list of (kind, name) pairs; other items are left out."""
    given = told if isinstance(told, (list, tuple)) else ()
    pairs = (each for each in given if isinstance(each, (list, tuple)) and [*map(type, each)] == [str, str])
    return tuple((kind, name if kind == "file" else name.casefold()) for kind, name in pairs)


def _newest(messages: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, messages)))[-_MOST_REF_IDS:]


@dataclass(frozen=True)
class Candidate:
    """A statement on its way to become a record, or to change one.

    `content` is the speaker's own words. `subject` and `attribute` name the thing and its property, `value`
    is the property's normalised value ("table"), if any. `evidence` is the text it was read from, `ref_id`
    the session message with that text, if one was kept. `former_ref_ids` are earlier messages that it
    contradicts, though no record was made of them. `strategy` is the merge strategy asked for; None: the one
    of the kind.

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
    former_ref_ids: tuple[str, ...] = ()
    event: Event | None = None
    target: str | None = None
