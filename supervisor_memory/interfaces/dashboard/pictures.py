"""Where things are in the pictures of the pages. Pure: numbers in, numbers out; the templates draw."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from supervisor_memory.audit.turns import Injection
from supervisor_memory.versions import Version

__all__ = ["Bar", "HandOffs", "bars", "columns", "hand_offs", "parts", "timeline"]

_RAW: Final = frozenset(
    {"cosine", "bm25", "match", "standing", "pinned"}
)  # of a scale of their own, or flags
_FIRST: Final = ("relevance", "sim", "coverage", "fused", "decay", "source", "importance", "reads", "named")
_ROW: Final = 64
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
    """A line from memory to the supervisor, or from the supervisor to an agent."""

    at: int
    note: Injection
    x1: int
    y1: int
    x2: int
    y2: int

    @property
    def middle(self) -> tuple[float, float]:
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2


@dataclass(frozen=True, slots=True)
class HandOffs:
    """Who was given something in a turn: memory on the left, the supervisor, the agents on the right."""

    height: int
    middle: int
    edges: tuple[Edge, ...] = ()

    width: int = 740
    memory: int = 70
    supervisor: int = 330
    agent: int = 620


def hand_offs(notes: Sequence[Injection]) -> HandOffs:
    """A row for each note, in order of time."""
    own = [at for at, note in enumerate(notes) if note.agent_id is None]
    others = [at for at, note in enumerate(notes) if note.agent_id is not None]
    height = _BEFORE + _ROW * max(len(own), len(others), 1)
    middle = height // 2
    drawn = HandOffs(height, middle)
    edges = []
    for at, note in enumerate(notes):
        rows = own if note.agent_id is None else others
        y = middle + round((rows.index(at) - (len(rows) - 1) / 2) * _ROW)
        if note.agent_id is None:
            edges.append(Edge(at, note, drawn.memory + 50, y, drawn.supervisor - 60, middle))
        else:
            edges.append(Edge(at, note, drawn.supervisor + 60, middle, drawn.agent - 70, y))
    return replace(drawn, edges=tuple(edges))


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
