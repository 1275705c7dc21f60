"""The positions of things in the pictures of the pages. Pure: numbers in, numbers out; the templates draw."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from supervisor_memory.model.versions import Version
from supervisor_memory.reading.audit import Injection

_RAW: Final = frozenset(
    {"cosine", "bm25", "match", "standing", "pinned"}
)  # of a scale of their own, or flags
_FIRST: Final = ("relevance", "sim", "coverage", "fused", "decay", "source", "importance", "reads", "named")
_ROW: Final = 64
_A_DAY: Final = 86_400
_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC).toordinal()
_BEFORE: Final = 40
_EVER: Final = 4_102_444_800.0  # 2100: later than this is "from then on"


class Bar(NamedTuple):
    """`width` is in [0, 100]."""

    name: str
    value: float
    width: float


def parts(values: Mapping[str, float]) -> list[Bar]:
    """The parts of a score that are in [0, 1], the ones that people ask for first."""
    names = [*(name for name in _FIRST if name in values), *sorted(set(values) - set(_FIRST) - _RAW)]
    return [Bar(name, values[name], 100 * min(max(values[name], 0.0), 1.0)) for name in names]


def bars(counts: Mapping[str, int]) -> list[Bar]:
    """Counts beside each other."""
    most = max(counts.values(), default=0) or 1
    return [Bar(name, count, 100 * count / most) for name, count in counts.items()]


class Edge(NamedTuple):
    """A line from memory to the supervisor, or from the supervisor to an agent; `y` is the height of its
    label.

    Args:
        points: As a `polyline` takes them.
        x, y: Where its label goes.
    """

    at: int
    note: Injection
    points: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class HandOffs:
    """The notes of a turn as a picture: memory on the left, then the supervisor, the agents on the right.

    `memory`, `supervisor` and `agent` are where the middles of these are across.
    """

    height: int
    middle: int
    edges: tuple[Edge, ...] = ()
    width: int = 800
    memory: int = 60
    supervisor: int = 400
    agent: int = 720


def hand_offs(notes: Sequence[Injection]) -> HandOffs:
    """A row for each note, in order of time."""
    own = [note for note in notes if note.agent_id is None]
    others = [note for note in notes if note.agent_id is not None]
    height = _BEFORE + _ROW * max(len(own), len(others), 1)
    drawn = HandOffs(height, height // 2)
    edges = []
    for at, note in enumerate(notes):
        rows = own if note.agent_id is None else others
        y = drawn.middle + round((rows.index(note) - (len(rows) - 1) / 2) * _ROW)
        if note.agent_id is None:
            edges.append(_edge(at, note, y, drawn.memory + 50, drawn.supervisor - 60, drawn.middle))
        else:
            edges.append(_edge(at, note, y, drawn.supervisor + 60, drawn.agent - 70, None, drawn.middle))
    return replace(drawn, edges=tuple(edges))


def _edge(  # noqa: PLR0917
    at: int, note: Injection, y: int, left: int, right: int, end: int | None, begin: int | None = None
) -> Edge:
    """A line that leaves at the height `begin`, runs at `y`, and arrives at `end`; None: at `y`."""
    begin, end = (end if begin is None else begin), (y if end is None else end)
    points = ((left, begin), (left + 40, y), (right - 40, y), (right, end))
    return Edge(at, note, " ".join(f"{x},{height}" for x, height in points), (left + right) // 2, y)


class Span(NamedTuple):
    """A time in which a version was valid; `x` and `width` are in [0, 100]. `until` None: it still is."""

    version: int
    since: float
    until: float | None
    x: float
    width: float


def timeline(versions: Sequence[Version], now: float) -> list[Span]:
    """When each version was valid, on one line from the first to now."""
    valid = [
        (each.version, each.valid_from, each.valid_to)
        for each in versions
        if each.status == "active" and each.valid_from is not None
    ]
    if not valid:
        return []
    first = min(since for _, since, _ in valid)
    last = max([now, *(until for _, _, until in valid if until is not None and until < _EVER)])
    whole = max(last - first, 1.0)
    spans = []
    for version, since, until in valid:
        end = last if until is None else min(until, last)
        x = 100 * (since - first) / whole
        width = max(100 * (end - since) / whole, 0.4)
        spans.append(Span(version, since, until, min(x, 99.6), width))
    return spans


class Column(NamedTuple):
    """A day: how many notes, how many of them degraded; heights are in [0, 100]."""

    day: int
    total: int
    degraded: int
    height: float
    dark: float


def columns(notes: Sequence[Injection], now: float, *, days: int) -> list[Column]:
    """How many notes a day, the oldest first."""
    today = math.floor(now / 86_400)
    total, degraded = dict.fromkeys(range(today - days + 1, today + 1), 0), dict[int, int]()
    for note in notes:
        day = math.floor(note.at / 86_400)
        if day in total:
            total[day] += 1
            degraded[day] = degraded.get(day, 0) + note.degraded
    most = max(total.values()) or 1
    return [
        Column(day * 86_400, count, bad := degraded.get(day, 0), 100 * count / most, 100 * bad / most)
        for day, count in total.items()
    ]


class Block(NamedTuple):
    """A part of a column: its name and amount; `y` and `height` are in [0, 100]."""

    name: str
    amount: int
    y: float
    height: float


class Stack(NamedTuple):
    """A day with its parts, from below."""

    day: int
    total: int
    blocks: Sequence[Block]


def stacked(counts: Mapping[int, Mapping[str, int]], names: Sequence[str], days: range) -> list[Stack]:
    """Counts by day and name, as columns of blocks in the order of the names."""
    most = max((sum(counts.get(day, {}).values()) for day in days), default=0) or 1
    stacks: list[Stack] = []
    for day in days:
        of_day, below, blocks = counts.get(day, {}), 0, list[Block]()
        for name in names:
            amount = of_day.get(name, 0)
            below += amount
            if amount:
                blocks.append(Block(name, amount, 100 - 100 * below / most, 100 * amount / most))
        stacks.append(Stack(day * _A_DAY, below, blocks))
    return stacks


def shares(counts: Mapping[int, tuple[int, int]], days: range) -> list[Column]:
    """Parts of wholes by day: the whole is a column, the part its dark section."""
    most = max((counts.get(day, (0, 0))[1] for day in days), default=0) or 1
    told = ((day, *counts.get(day, (0, 0))) for day in days)
    return [
        Column(day * _A_DAY, whole, part, 100 * whole / most, 100 * part / most) for day, part, whole in told
    ]


def day_of(date: str) -> int:
    """The day of a date such as 2026-01-31, since 1970."""
    return datetime.fromisoformat(date).replace(tzinfo=UTC).toordinal() - _FIRST_DAY
