"""The results of a search and of a recall: hits, candidates with their fate, and the note."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from supervisor_memory.model.explain import Row, table
from supervisor_memory.model.records.names import Kind
from supervisor_memory.model.records.record import Record


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
        """The names that join it to another hit, step by step; empty where a search found it."""
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


# A search makes a hundred hits, and setting a field of what is frozen takes several times as long. So a hit
# can be made open; the layout of both classes is the same.
_Open = type("_Open", (), {"__slots__": Hit.__slots__})


def hit_of(
    record: Record,
    score: float,
    parts: Mapping[str, float],
    found: str | None = None,
    excerpt: str | None = None,
) -> Hit:
    """Make a `Hit` in less than two thirds of the time that its constructor takes."""
    made: Any = _Open()
    made.record, made.score, made.parts, made.found, made.excerpt = record, score, parts, found, excerpt
    made.path, made.made_of, made.__class__ = (), (), Hit
    hit: Hit = made
    return hit


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


_Opened = type("_Opened", (), {"__slots__": Considered.__slots__})


def left_out(hit: Hit, reason: str) -> Considered:
    """Make a `Considered` in less than half the time that its constructor takes."""
    made: Any = _Opened()
    made.hit, made.reason, made.__class__ = hit, reason, Considered
    considered: Considered = made
    return considered


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
