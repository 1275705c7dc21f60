"""What a score weighs beside relevance: how recent, said by whom, how important, how often read.

    S = (α·relevance + β·decay + γ·source + δ·importance + ρ·reads) / (α + β + γ + δ + ρ)

Every part is in [0, 1] and so is S. A part whose weight is 0 costs nothing and is not shown.
Pure functions of values; docs/ranking.md says how to choose the weights.
"""

import math
from collections.abc import Mapping

from supervisor_memory.model.records import Record
from supervisor_memory.settings import Settings

__all__ = ["SECONDS_A_DAY", "decay", "importance", "parts_of", "reads", "recency", "source", "weighted"]

SECONDS_A_DAY = 86_400.0
_OFTEN = 5.0
"""A record that was read so many times has half of what reading can add."""


def decay(age_days: float, *, rate: float, floor: float = 0.0) -> float:
    """Weight of a record by age: 1 when new, `exp(-rate·age)` later, never under `floor`.

    Args:
        age_days: Days since the record last changed. Negative (a clock that jumped) and NaN count as 0.
        rate: λ per day, 0 or more. ln 2 / 30 halves in 30 days.

    Source: exponential forgetting, Ebbinghaus 1885.
    """
    age = age_days if age_days > 0 else 0.0
    return max(floor, math.exp(-min(rate * age, 700.0)))


def recency(record: Record, now: float, settings: Settings) -> float:
    """How fresh a record is, by its kind's λ; 1 for one with `metadata["pinned"]` true, however old."""
    if record.metadata.get("pinned") is True:
        return 1.0
    age_days = (now - record.updated_at) / SECONDS_A_DAY
    return decay(age_days, rate=settings.decay_of(record.kind), floor=settings.decay_floor)


def source(record: Record, settings: Settings) -> float:
    """What is added for who said it; 0 for a source that MEMORY_SOURCE_BOOSTS leaves out."""
    return settings.source_boosts.get(record.source.source_class, 0.0)


def importance(record: Record) -> float:
    """The record's importance in [0, 1]; 0.5 unless somebody said otherwise. NaN counts as 0."""
    return min(max(0.0, record.importance), 1.0)


def reads(times: int) -> float:
    """What is added for having been handed out before: 0 for never, 0.5 for five times, never quite 1.

    It saturates, so that what is read because it was read does not run away from the rest.
    """
    return times / (times + _OFTEN)


def parts_of(record: Record, *, now: float, settings: Settings, times_read: int = 0) -> dict[str, float]:
    """The parts of a record's score beside its relevance."""
    parts = {"decay": recency(record, now, settings), "source": source(record, settings)}
    if settings.weight_importance:
        parts["importance"] = importance(record)
    if settings.weight_reads:
        parts["reads"] = reads(times_read)
    return parts


def weighted(parts: Mapping[str, float], settings: Settings) -> float:
    """S: the mean of the parts by their weights, in [0, 1]. A part that is missing counts as 0."""
    weights = settings.weights
    return sum(weight * parts.get(part, 0.0) for part, weight in weights.items()) / sum(weights.values())
