"""How well the times that a text names fit those that a question names. Pure functions of values."""

import math
from collections.abc import Sequence

from supervisor_memory.understand.dates import DAY, YEAR, DateRange

__all__ = ["FACT_DATED", "OTHER_YEAR", "told"]

OTHER_YEAR = 0.8
"""How well "in May" fits a May other than the latest."""
FACT_DATED = 0.5
"""What the time of a fact by itself counts, which says less about what it tells than that of an utterance."""


def told(asked: Sequence[DateRange], named: Sequence[DateRange]) -> float | None:
    """How well the times that a text names fit those that a question names, in [0, 1].

    1 where one lies within a time that is asked for, `OTHER_YEAR` in another year where none was named, 0
    where all are of other times. None: it names none, or longer ones, and they tell nothing.
    """
    fits = [_within(each, time) for each in asked for time in named]
    known = [fit for fit in fits if fit is not None]
    best = max(known, default=0.0)
    return best if best or (known and len(known) == len(fits)) else None


def _within(asked: DateRange, time: DateRange) -> float | None:
    years = round((asked.start - time.start) / YEAR) if asked.year_open and math.isfinite(time.start) else 0
    start, end = time.start + years * YEAR, time.end + years * YEAR
    if start >= asked.end - DAY / 2 or end <= asked.start + DAY / 2:
        return 0.0
    if start < asked.start - DAY or end > asked.end + DAY:
        return None
    return OTHER_YEAR if years else 1.0
