"""The rivals of a candidate, which a judge reads, and the decisions it can return."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, overload

from supervisor_memory.model.records import Kind, Record


@dataclass(frozen=True, slots=True)
class Rival:
    """A record that a candidate may be about.

    `cosine` is the likeness of both vectors, None if either is missing. `score` is the match by which the
    store found the record, 0 if no search did.
    """

    record: Record
    cosine: float | None = None
    score: float = 0.0


T = TypeVar("T")


class looked_up(cached_property[T]):  # noqa: N801  # a decorator
    """A property that is looked up once for each object.

    `cached_property` of Python 3.11 has one lock for all objects of a class: where one waited for its store,
    all would, of every memory of the process.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        self.lock = nullcontext()


class Rivals(Sequence[Rival]):
    """The records that a candidate may be about: of its user, family, task and kind.

    As a sequence: the record of the candidate's subject, then the nearest by a search, the best first. In the
    insert stage each is looked up when it is read, so that a judge pays for what it reads alone. This class
    holds what it is given, for tests of a judge.

    Args:
        nearest: What a search for the candidate's text finds.
        of_subject: The record of the same subject and attribute.
    """

    def __init__(self, nearest: Sequence[Rival] = (), *, of_subject: Record | None = None) -> None:
        self._nearest, self._of_subject = nearest, of_subject

    @property
    def nearest(self) -> Sequence[Rival]:
        return self._nearest

    @property
    def closest(self) -> float | None:
        """The greatest cosine of any rival, by a search by meaning alone; None: it is unknown."""
        return max((each.cosine for each in self.nearest if each.cosine is not None), default=None)

    @property
    def of_subject(self) -> Record | None:
        return self._of_subject

    @property
    def same_words(self) -> Record | None:
        """The record with the candidate's text."""
        return None

    @property
    def named(self) -> Record | None:
        """The record with the id that the candidate names as its target."""
        return None

    @property
    def listed(self) -> Sequence[Record]:
        """All records there are, the newest 200."""
        return [rival.record for rival in self]

    def of_kind(self, kind: Kind) -> "Rivals":
        """The rivals that the candidate would have if it were of another kind."""
        return Rivals()

    @looked_up
    def _every_rival(self) -> Sequence[Rival]:
        first = self.of_subject
        if first is None:
            return tuple(self.nearest)
        found = {rival.record.id: rival for rival in self.nearest}
        return (found.pop(first.id, Rival(first)), *found.values())

    @overload
    def __getitem__(self, index: int) -> Rival: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Rival]: ...
    def __getitem__(self, index: int | slice) -> Rival | Sequence[Rival]:
        return self._every_rival[index]

    def __len__(self) -> int:
        return len(self._every_rival)

    def __iter__(self) -> Iterator[Rival]:
        return iter(self._every_rival)


@dataclass(frozen=True, slots=True)
class Add:
    """A record of its own. `beside`: the record it is about too, without being its rival.

    For the audit alone: `nearest` is the record that came nearest to being the same, and `apart` the code of
    why it is not.
    """

    beside: Record | None = None
    nearest: Record | None = field(default=None, compare=False)
    apart: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Merge:
    """The record says the same. `text` is its new text; None: the merge strategy makes it from both.

    `is_one`: both are wordings of one thing, so that the clearer of the two is enough.
    """

    record: Record
    text: str | None = None
    is_one: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """The record says something else about the same thing: it states the candidate's text from now on."""

    record: Record
    reason: str = "contradicts"


@dataclass(frozen=True, slots=True)
class Append:
    """The candidate is a further line of the record, such as a step of a task."""

    record: Record


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing changes. `record` is why, such as one that says the same; None: no record is."""

    record: Record | None
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A person decides; until then the candidate waits as `pending`. `why` are codes for the reviewer."""

    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """The record no longer holds: it becomes `stale`, and the candidate becomes no record.

    `rest` is the part of its text that still holds: then it states that, described like a new record, and
    steps back only where another record says the same.
    """

    record: Record
    reason: str = "retracted"
    rest: str = ""


Decision: TypeAlias = Add | Merge | Replace | Append | Skip | Hold | Retract
