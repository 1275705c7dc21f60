"""How well times fit the dates that a question names. Pure functions of arrays."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from supervisor_memory.understand.dates import DAY, OTHER_YEAR, YEAR, DateRange

__all__ = ["match"]

_SHORTEST_TAIL, _LONGEST_TAIL = 7 * DAY, 30 * DAY
_AHEAD = 0.5


def match(ranges: Sequence[DateRange], times: npt.NDArray[np.float64], now: float) -> npt.NDArray[np.float32]:
    """How well each time fits the times that a question names, in [0, 1]; all 0 when it names none.

    1 inside a range. People speak of a day in the days after it, so behind its end the fit falls by
    exp(-t/tail), where the tail is as long as the range, but at least a week and at most a month. Ahead of
    the range the tail is half as long, for plans and for clocks ahead of UTC; it is whole for a range that
    is still to come at `now`, since people can only have spoken of it ahead. A range without a year fits
    every year: the latest fully, the others by 0.8. The best of several ranges counts.

    Args:
        times: Seconds since 1970. NaN fits nothing.
        now: Seconds since 1970.
    """
    fit = np.zeros(times.shape, dtype=np.float32)
    for each in ranges:
        np.maximum(fit, _fit(each, times, now), out=fit)
    return fit


def _fit(each: DateRange, times: npt.NDArray[np.float64], now: float) -> npt.NDArray[np.float32]:
    tail = min(max(each.end - each.start, _SHORTEST_TAIL), _LONGEST_TAIL)
    tail_ahead = tail if each.start > now else tail * _AHEAD
    with np.errstate(invalid="ignore"):  # infinite times against open ends
        late, early = times - each.end, each.start - times
        if each.year_open:
            # Around the year each time is both behind and ahead; the better of the two counts.
            behind, ahead = np.mod(late, YEAR), np.mod(early, YEAR)
            fit = np.maximum(np.exp(-behind / tail), np.exp(-ahead / tail_ahead))
            fit = np.where(np.mod(-early, YEAR) < each.end - each.start, 1.0, fit)
            fit = np.where(np.abs(early) > YEAR / 2, OTHER_YEAR * fit, fit)
        else:
            fit = np.exp(-np.maximum(late, 0.0) / tail - np.maximum(early, 0.0) / tail_ahead)
    return np.nan_to_num(fit, nan=0.0).astype(np.float32)
