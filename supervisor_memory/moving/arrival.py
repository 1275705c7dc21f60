"""Brings records into a store in large pages, and reports the result for each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from supervisor_memory.errors import InvalidContent, SupervisorMemoryError
from supervisor_memory.moving.files import Line
from supervisor_memory.moving.lines import End, Header
from supervisor_memory.stores.protocol import Stored, Taken

_TAKEN_TOGETHER: Final = 5_000  # large: `json` writes its whole file each time
_TAKEN_BYTES: Final = 32 * 1024 * 1024
_NAMED: Final = 1_000
_WORDS: Final = ("exported", "added", "replaced", "same", "older", "left_out", "refused")
_PLACES: Final = ("content_hash", "attribute")
_Waiting: TypeAlias = tuple[int | None, Stored, int]
"""The number of a line, what it brings, and its size in bytes."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record or a line that was not taken, and why.

    Args:
        line: Its number in the file, from 1; None: the record came from a store, or the line is missing.
        record_id: "" where it is unknown.
        reason: A code of `Taken`, or "damaged" (a line that cannot be read), "cut" (the end of the file is
            missing, or tells of more records), or "not-to-share" (a team would read what no promotion lets
            through).
        told: The reason as a sentence for people.
    """

    line: int | None
    record_id: str
    reason: str
    told: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of an export, import or copy.

    Args:
        counts: How many were "exported", or "added", "replaced", the "same", "older", "left_out" (of
            another user than was asked for), "refused".
        refused: The first thousand records and lines that were not taken.
    """

    counts: Mapping[str, int]
    refused: tuple[Refused, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every record has arrived."""
        return not self.counts.get("refused")


@dataclass(slots=True)
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)

    def refuse(self, line: int | None, record_id: str, reason: str, told: str) -> None:
        self.counts["refused"] += 1
        if len(self.refused) < _NAMED:
            self.refused.append(Refused(line, record_id, reason, told))

    def told(self) -> Moved:
        counts = {what: self.counts[what] for what in _WORDS if self.counts[what]}
        return Moved(counts, tuple(self.refused))


@dataclass(slots=True)
class Arrival:
    """Brings records into a store in large pages; records whose place was taken are tried again later."""

    take: Callable[[Sequence[Stored]], Sequence[Taken]]
    tally: Tally
    has_arrived: bool = False
    _waiting: list[_Waiting] = field(default_factory=list)
    _bytes: int = 0
    _late: list[_Waiting] = field(default_factory=list)
    _late_bytes: int = 0

    def add(self, line: int | None, stored: Stored, size: int) -> None:
        self._waiting.append((line, stored, size))
        self._bytes += size
        self.has_arrived = len(self._waiting) >= _TAKEN_TOGETHER or self._bytes >= _TAKEN_BYTES
        if self.has_arrived:
            self._take()

    def settle(self) -> None:
        """Take the records that are left, then try once more those whose place was taken."""
        self._take()
        self._waiting, self._late = self._late, []
        self._late_bytes = _TAKEN_BYTES
        self._take()

    def _take(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        answers = self.take([stored for _, stored, _ in waiting]) if waiting else ()
        for each, taken in zip(waiting, answers, strict=True):
            if taken.what != "refused":
                self.tally.counts[taken.what] += 1
            elif taken.reason in _PLACES and self._late_bytes + each[2] < _TAKEN_BYTES:
                self._late.append(each)
                self._late_bytes += each[2]
            else:
                self.tally.refuse(each[0], taken.record_id, taken.reason, taken.told)


@dataclass(slots=True)
class Reading:
    """The lines of a file, one after the other, and whether they make a whole export.

    `refuses` says why a record may not come in, whatever the store would do; None: it may.
    """

    arrival: Arrival
    user_id: str | None
    refuses: Callable[[Stored], str | None]
    bytes: int = 0
    _records: int = 0
    _begun: bool = False
    _ended: bool = False

    def add(self, line: Line) -> None:
        self.bytes += line.size
        told = line.told
        if not self._begun:
            self._begin(line)
        elif self._ended:
            self._refuse(line.number, "damaged", "it comes after the end of the export")
        elif isinstance(told, End):
            self._ended = True
            self._check_count(line.number, told.records)
        elif isinstance(told, Header):
            self._refuse(line.number, "damaged", "another export begins in the middle of this one")
        elif isinstance(told, Stored):
            self._records += 1
            self._add(line, told)
        else:
            self._records += 1
            self._refuse(line.number, "damaged", str(told))

    def end(self) -> None:
        """Note an end that is missing; raises InvalidContent where the file was empty."""
        if not self._begun:
            raise InvalidContent("the file is empty; it is no export of supervisor-memory")
        if not self._ended:
            self._refuse(None, "cut", "the file has no last line: it was cut off, or is still being written")

    def _begin(self, line: Line) -> None:
        if not isinstance(line.told, Header):
            why = line.told if isinstance(line.told, SupervisorMemoryError) else "it has no first line"
            raise InvalidContent(f"this is no export of supervisor-memory; nothing was taken: {why}")
        self._begun = True

    def _add(self, line: Line, stored: Stored) -> None:
        if self.user_id is not None and stored.record.user_id != self.user_id:
            self.arrival.tally.counts["left_out"] += 1
        elif (why := self.refuses(stored)) is not None:
            self.arrival.tally.refuse(line.number, stored.record.id, "not-to-share", why)
        else:
            self.arrival.add(line.number, stored, line.size)

    def _check_count(self, number: int, records: int) -> None:
        if records != self._records:
            self._refuse(
                number, "cut", f"it should hold {records} records and holds {self._records}: some were lost"
            )

    def _refuse(self, number: int | None, reason: str, told: str) -> None:
        self.arrival.tally.refuse(number, "", reason, told)
