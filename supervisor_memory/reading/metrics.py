"""How well memory serves: figures of a period, in all, for each agent and each day.

They are read off the logs, which hold no text, and so neither do they. docs/metrics.md has the formulas.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.audit.rows import USED
from supervisor_memory.audit.tallies import NOTE, Tally, of_note
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.telemetry import Durations

if TYPE_CHECKING:
    from supervisor_memory.audit.log import AuditLog
    from supervisor_memory.audit.rows import AccessRow
    from supervisor_memory.audit.turns import Injection

_PAGE: Final = 1_000
_MOST_USES: Final = 100_000
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts, and shares of them. A share is None where its total is 0.

    `turns` are runs in which a reader was given a note; `hits` are notes, `search_hits` searches that showed
    a record. `shown` are records in notes and in the hits of searches; `traced` are those of them of which it
    is known in what session they were said, by a reader who is in one; `reused` came from another session
    than the reader's. `used` is a sum of shares, one for each of `answers`.
    """

    turns: int = 0
    notes: int = 0
    searches: int = 0
    hits: int = 0
    search_hits: int = 0
    tokens: int = 0
    shown: int = 0
    traced: int = 0
    reused: int = 0
    degraded: int = 0
    failures: int = 0
    answers: int = 0
    used: float = 0.0
    writes: int = 0
    duplicates: int = 0
    proposed: int = 0
    approved: int = 0
    rejected: int = 0

    @property
    def shares(self) -> dict[str, float | None]:
        """Each in [0, 1]; `tokens_per_note` is no share, but is computed like one."""
        read = self.notes + self.searches
        return {
            "hit_rate": _share(self.hits, self.notes),
            "search_hit_rate": _share(self.search_hits, self.searches),
            "degraded_rate": _share(self.degraded, read),
            "duplicate_rate": _share(self.duplicates, self.writes),
            "reuse_rate": _share(self.reused, self.traced),
            "use_rate": _share(self.used, self.answers),
            "tokens_per_note": _share(self.tokens, self.notes),
        }

    def to_dict(self) -> dict[str, Any]:
        """The counts and the shares."""
        return {**asdict(self), "used": round(self.used, 3), **self.shares}


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures of a period.

    `agents` are by the reader's name, None for the supervisor and who called from Python; `days` by their
    date in UTC. `pending` is how many records wait for a person now, `queue` how many events wait and are
    dead.
    """

    since: float | None
    until: float | None
    total: Figures = field(default_factory=Figures)
    agents: Mapping[str | None, Figures] = field(default_factory=dict)
    days: Mapping[str, Figures] = field(default_factory=dict)
    pending: int = 0
    queue: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "since": self.since,
            "until": self.until,
            "total": self.total.to_dict(),
            "agents": [{"agent_id": name, **each.to_dict()} for name, each in self.agents.items()],
            "days": [{"day": name, **each.to_dict()} for name, each in self.days.items()],
            "pending": self.pending,
            "queue": dict(self.queue),
        }


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the calls of an operation took in this process, in seconds; `p50` and `p95` are bounds that so
    many of them were within, inf where that is beyond the largest bound."""

    operation: str
    calls: int
    mean: float
    p50: float
    p95: float


def latencies(durations: Durations) -> list[Latency]:
    """The calls of each operation, whatever their outcome, by name."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    seconds: Counter[str] = Counter()
    for (operation, _), (calls, took) in durations.snapshot().items():
        counts[operation].update(dict(enumerate(calls)))
        seconds[operation] += took  # type: ignore[assignment]  # a sum of seconds
    bounds = (*Durations.BOUNDS, math.inf)

    def within(calls: Counter[int], share: float) -> float:
        wanted, places = share * calls.total(), accumulate(calls[place] for place in range(len(bounds)))
        return next(bound for bound, so_many in zip(bounds, places, strict=True) if so_many >= wanted)

    return [
        Latency(name, n := calls.total(), seconds[name] / n, within(calls, 0.5), within(calls, 0.95))
        for name, calls in counts.items()
        if calls.total()
    ]


def measure(
    backend: MemoryBackend,
    *,
    queue: Mapping[str, int],
    user_id: str | None = None,
    since: float | None = None,
) -> Metrics:
    """Compute the figures from the logs, as far back as these go.

    Args:
        queue: What `memory.queue.counts()` says.
        user_id: Only this user's; the queue is everybody's. None: everybody's.
        since: In seconds since 1970; None: from the beginning.

    Raises:
        BackendError: the store failed.
    """
    log, start = backend.audit, -math.inf if since is None else since
    notes = [note for note in _notes(log, user_id, since) if note.at >= start]
    uses = log.accesses(_MOST_USES, user_id=user_id, op=USED)
    found = tallied(
        notes,
        log.amounts(after=0 if since is None else _last_row_before(log, since), since=since, user_id=user_id),
        [use for use in uses if use.ts_us / _MICRO >= start],
        sessions=_sessions(backend, notes),
    )
    pending = backend.count(Filter(user_id=user_id, statuses=("pending",)))
    return Metrics(since, None, *found, pending, dict(queue))


def tallied(
    notes: "Iterable[Injection]",
    events: Iterable[tuple[str, str | None, Mapping[str, int]]],
    uses: "Iterable[AccessRow]" = (),
    *,
    sessions: Mapping[str, str | None],
) -> tuple[Figures, dict[str | None, Figures], dict[str, Figures]]:
    """The figures in all, for each agent and for each day.

    Args:
        events: What rows of the audit log add, by day and agent.
        uses: Rows of the access log that tell how much of a note was used.
        sessions: Of shown records, the session they were said in as the log names it; None: in none.
    """
    counts: defaultdict[tuple[str, str | None], Counter[str]] = defaultdict(Counter)
    runs: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)

    def groups(day: str, agent_id: str | None) -> tuple[tuple[str, str | None], ...]:
        return ("total", None), ("agent", agent_id), ("day", day)

    def add(day: str, agent_id: str | None, amounts: Mapping[str, float]) -> None:
        for group in groups(day, agent_id) if amounts else ():
            for name, amount in amounts.items():
                counts[group][name] += amount  # type: ignore[assignment]  # `used` is a sum of shares

    for note in notes:
        day = _day(note.at)
        add(day, note.agent_id, _of_note(note, sessions))
        for group in groups(day, note.agent_id) if note.op == NOTE else ():
            runs[group].add(note.run_id or note.id)
    for day, agent_id, amounts in events:
        add(day, agent_id, amounts)
    for use in uses:
        add(_day(use.ts_us / _MICRO), use.agent_id, {"answers": 1, "used": (use.score_milli or 0) / 1_000})

    made = {group: Figures(**amounts, turns=len(runs[group])) for group, amounts in counts.items()}
    agents = {name: each for (kind, name), each in made.items() if kind == "agent"}
    days = {str(name): each for (kind, name), each in made.items() if kind == "day"}
    return (
        made.get(("total", None), Figures()),
        dict(sorted(agents.items(), key=lambda each: each[0] or "")),
        dict(sorted(days.items())),
    )


def _of_note(note: "Injection", sessions: Mapping[str, str | None]) -> dict[str, int]:
    traced = [
        session
        for each in note.shown
        if note.session is not None and (session := sessions.get(each.record_id)) is not None
    ]
    shown = len(note.shown)
    return {
        **of_note(note.op, shown=shown, tokens=note.tokens, degraded=note.degraded),
        "traced": len(traced),
        "reused": sum(session != note.session for session in traced),
    }


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def _sessions(backend: MemoryBackend, notes: "Sequence[Injection]") -> dict[str, str | None]:
    """Record id → the log's name of the session in which the record was said."""
    ids = iter({each.record_id for note in notes for each in note.shown})
    named = cache(backend.audit.session_name)
    found: dict[str, str | None] = {}
    while page := list(islice(ids, _PAGE)):
        found |= {each.id: named(each.user_id, each.source.session_id) for each in backend.get(page)}
    return found


def _notes(log: "AuditLog", user_id: str | None, since: float | None) -> "Iterator[Injection]":
    """The notes and results given to a user's readers since about a time, newest first."""
    before = None
    while page := log.notes(_PAGE, user_id=user_id, before=before):
        yield from page
        before = page[-1].seq
        if since is not None and page[-1].at < since:
            return


def _last_row_before(log: "AuditLog", since: float) -> int:
    """The number of the last row before a time; assumes that no clock was set back."""
    low, high = 0, log.count()
    while low < high:
        middle = (low + high + 1) // 2
        [row] = log.rows(after=middle - 1, limit=1)
        low, high = (middle, high) if row.ts_us < since * _MICRO else (low, middle - 1)
    return low


# --- Prometheus ------------------------------------------------------------------------------------------

_TOLD: Final = {
    "turns": "Runs of the graph in which a reader was given a note.",
    "notes": "Notes that were put before a model.",
    "searches": "Searches.",
    "hits": "Notes that showed a record.",
    "search_hits": "Searches that showed a record.",
    "tokens": "Tokens of notes.",
    "shown": "Records in notes and hits.",
    "reused": "Records shown that were said in another session than the reader's.",
    "degraded": "Notes and searches made without a part of memory.",
    "failures": "Rows of the audit log of what went on without a part of memory, or without memory.",
    "answers": "Answers to whom something had been told.",
    "writes": "Decisions on what was to be kept.",
    "duplicates": "Writes that were skipped or merged, as memory had it already.",
    "proposed": "Writes that a person has to look at.",
    "approved": "Proposals that a person approved or edited.",
    "rejected": "Proposals that a person rejected.",
    "hit_rate": "Share of notes that showed a record.",
    "search_hit_rate": "Share of searches that showed a record.",
    "degraded_rate": "Share of notes and searches made without a part of memory.",
    "duplicate_rate": "Share of writes that were skipped or merged.",
    "reuse_rate": "Share of traced records that were said in another session than the reader's.",
    "use_rate": "Share of a note's terms that the answer used, on average.",
    "tokens_per_note": "Tokens of a note, on average.",
}


def exposition(metrics: Metrics, *, with_present: bool = True) -> str:
    """The figures as Prometheus reads them: gauges, one a reader, of the period that was measured.

    They are no counters: the log of what readers were told is capped. What there is no share of is left out.

    Args:
        with_present: Whether what waits now is told, too.
    """
    lines: list[str] = []

    def gauge(name: str, told: str, values: Iterable[tuple[str, float]]) -> None:
        lines.extend(family(name, "gauge", told, values))

    for name, told in _TOLD.items():
        by_agent = ((agent, each.to_dict()[name]) for agent, each in metrics.agents.items())
        gauge(
            f"period_{name}",
            told,
            [(_label("agent", agent or ""), value) for agent, value in by_agent if value is not None],
        )
    if not with_present:
        return "".join(f"{line}\n" for line in lines)
    gauge("pending", "Records that wait for a person now.", [("", metrics.pending)])
    depths = [(_label("state", state), float(count)) for state, count in metrics.queue.items()]
    gauge("queue_depth", "Events of the queue now, by state.", depths)
    return "".join(f"{line}\n" for line in lines)


def counters(kept: Mapping[Tally, float]) -> str:
    """The counts that the log keeps, as Prometheus reads them: counters, by agent ("" is the supervisor)."""
    lines: list[str] = []
    for name, told in {**_TOLD, "used": "Sum of the shares of a note's terms that answers used."}.items():
        values = [(_label("agent", agent), amount) for (agent, each), amount in kept.items() if each == name]
        if values:
            lines.extend(family(f"{name}_total", "counter", told, sorted(values)))
    return "".join(f"{line}\n" for line in lines)


def histograms(durations: Durations) -> str:
    """How long calls took in this process, as Prometheus reads histograms."""
    lines: list[str] = []
    name = "supervisor_memory_operation_duration_seconds"
    for (operation, outcome), (counts, seconds) in durations.snapshot().items():
        labels = f'operation="{operation}",outcome="{outcome}"'
        sums = [*accumulate(counts)]
        bounds = [*(f"{bound:g}" for bound in durations.BOUNDS), "+Inf"]
        lines += [f'{name}_bucket{{{labels},le="{le}"}} {n}' for le, n in zip(bounds, sums, strict=True)]
        lines += [f"{name}_sum{{{labels}}} {seconds:g}", f"{name}_count{{{labels}}} {sums[-1]}"]
    if lines:
        told = "How long calls of memory took in this process, a recall among search_memory."
        lines[:0] = [f"# HELP {name} {told}", f"# TYPE {name} histogram"]
    return "".join(f"{line}\n" for line in lines)


def family(name: str, kind: str, told: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    """The lines of a metric."""
    yield f"# HELP supervisor_memory_{name} {told}"
    yield f"# TYPE supervisor_memory_{name} {kind}"
    yield from (f"supervisor_memory_{name}{labels} {_number(value)}" for labels, value in values)


def _number(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value:g}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{{{name}="{escaped}"}}'
