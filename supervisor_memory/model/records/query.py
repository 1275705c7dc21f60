"""The input of a search: the query, the filter, and the weights of the signals."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records.frozen import COMPACT_JSON
from supervisor_memory.model.records.names import DIGEST_FAMILY, SESSION_FAMILY, Kind, Layer, Place, Status
from supervisor_memory.model.records.record import Record
from supervisor_memory.model.replacing import replace

if TYPE_CHECKING:
    from supervisor_memory.model.records.record import Vector


_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
_MOST_VALUES = 50
_SCALARS = (str, int, float, type(None))  # bool is an int


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
    return COMPACT_JSON.encode(value) if isinstance(value, _SCALARS) else None


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
        yield COMPACT_JSON.encode(value)
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
        if not changed:
            return DEFAULT
        names = [each.name for each in fields(cls)]
        if unknown := sorted(set(changed) - set(names)):
            raise ValueError(f"{unknown[0]} is no signal; there are {', '.join(names)}")
        return cls(**changed)


_MOST = 1_000
DEFAULT = Weights()


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
        """The filter for the page of a list that comes after this record."""
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
        """The families that are read only when named, and that this filter does not name."""
        messages = () if self.reads_messages else (SESSION_FAMILY,)
        return messages if self.reads_digests else (*messages, DIGEST_FAMILY)

    def everywhere(self) -> tuple["Filter", "Filter"]:
        """The filter, and a second one for the families that a filter without families leaves out."""
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


class Seed(NamedTuple):
    """The start of a walk over names: the text of a record, or a name.

    `weight` is how much what is found from it counts, in [0, 1]; nothing is looked for from one of 0.
    `record_id` is the record it is the text of; a walk from it does not lead there.
    """

    text: str
    weight: float = 1.0
    record_id: str | None = None
