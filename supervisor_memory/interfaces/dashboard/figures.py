"""Page 9: what grows, what notes cost and whether they are of use, by day and agent; how long calls take."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard import pictures
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import KINDS
from supervisor_memory.reading.metrics import Figures
from supervisor_memory.reading.timeline import Chapter

_DAYS: Final = 30
_A_DAY: Final = 86_400
_SESSIONS: Final = 20
_KEPT: Final = "kept:"
_SHOWN: Final = ("notes", "searches", "hits", "search_hits", "tokens", "degraded", "shown", "answers", "used")
_WRITTEN: Final = ("writes", "duplicates", "proposed", "approved", "rejected", "failures")
Amounts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Cost:
    """What notes cost, in tokens, and how many tokens of what was said they stood for."""

    notes: int = 0
    tokens: int = 0
    sources: int = 0

    @property
    def spared(self) -> int:
        return max(0, self.sources - self.tokens)


def figures(visit: Visit) -> Response:
    """Show everybody's figures from the kept counts, or a user's from the logs, which reach less far back."""
    user_id, clock = visit.user_id, visit.memory.upkeep.now()
    today = int(clock // _A_DAY)
    days = range(today - _DAYS + 1, today + 1)
    told = _of_all(visit, days) if user_id is None else _of_user(visit, user_id, days)
    return visit.page(
        "figures.html",
        days=_DAYS,
        growth=pictures.stacked(told.kept, KINDS, days),
        kinds=[kind for kind in KINDS if any(each.get(kind) for each in told.kept.values())],
        notes=pictures.shares({day: (each.hits, each.notes) for day, each in told.days.items()}, days),
        tokens=pictures.shares({day: (each.tokens, each.tokens) for day, each in told.days.items()}, days),
        agents=told.agents,
        kept=told.kept_by_agent,
        latencies=visit.memory.audit.latencies() if visit.asker.user_ids is None else [],
        cost=None if user_id is None else _cost(visit, user_id),
        user_id=user_id,
        users=visit.users(),
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """Figures by agent ("" is the supervisor) and day (since 1970); `kept`: new records by day and kind."""

    agents: Mapping[str, Figures]
    days: Mapping[int, Figures]
    kept: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    kept_by_agent: Mapping[str, int] = field(default_factory=dict)


def _of_all(visit: Visit, days: range) -> _Told:
    kept: defaultdict[int, Counter[str]] = defaultdict(Counter)
    kept_by_agent: Counter[str] = Counter()
    agents: defaultdict[str, Counter[str]] = defaultdict(Counter)
    each_day: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for (day, agent, name), amount in visit.memory.audit.by_day(since=days[0] * _A_DAY).items():
        if name.startswith(_KEPT):
            kept[day][name.removeprefix(_KEPT)] += int(amount)
            kept_by_agent[agent] += int(amount)
        else:
            agents[agent][name] += amount  # type: ignore[assignment]  # `used` is a sum of shares
            each_day[day][name] += amount  # type: ignore[assignment]
    by_agent = {agent: _figures(agents[agent]) for agent in sorted(agents.keys() | kept_by_agent)}
    by_day = {day: _figures(amounts) for day, amounts in each_day.items()}
    return _Told(by_agent, by_day, kept, kept_by_agent)


def _of_user(visit: Visit, user_id: str, days: range) -> _Told:
    found = visit.memory.audit.figures(user_id=user_id, since=days[0] * _A_DAY)
    told = {pictures.day_of(day): each for day, each in found.days.items()}
    return _Told({agent or "": each for agent, each in found.agents.items()}, told)


def _figures(amounts: Amounts) -> Figures:
    whole = {name: int(amounts.get(name, 0)) for name in (*_SHOWN, *_WRITTEN) if name != "used"}
    return Figures(**whole, used=amounts.get("used", 0.0))


def _cost(visit: Visit, user_id: str) -> Cost:
    chapters: Sequence[Chapter] = visit.memory.timeline(user_id=user_id, limit=_SESSIONS)
    costs = [cost for chapter in chapters for cost in chapter.costs.values()]
    return Cost(*(sum(getattr(cost, name) for cost in costs) for name in ("notes", "tokens", "sources")))
