"""Intervals of paired differences, 95 %: exact for right and wrong, by resampling for amounts."""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

_LEVEL: Final = 0.95
_DRAWS: Final = 10_000
_STEPS: Final = 60


class Interval(NamedTuple):
    """A figure with its 95 % interval; None: there are no data."""

    value: float
    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        return self.low <= 0 <= self.high


def share(hits: int, of: int) -> Interval | None:
    """A share and its exact interval after Clopper and Pearson; None: there were no trials."""
    if not of:
        return None
    rest = (1 - _LEVEL) / 2
    low = 0.0 if hits == 0 else _root(lambda p: _at_least(hits, of, p) - rest)
    high = 1.0 if hits == of else _root(lambda p: rest - _at_most(hits, of, p))
    return Interval(hits / of, low, high)


def exact_gain(gains: int, harms: int, of: int) -> Interval | None:
    """The difference of two shares over the same questions, with an exact interval from the questions
    answered differently.

    Of the pairs in which the two differ, gains follow a binomial law.
    """
    if not of:
        return None
    differ = gains + harms
    if not differ:
        return Interval(0.0, 0.0, 0.0)
    found = share(gains, differ)
    assert found is not None
    return Interval(*((2 * each - 1) * differ / of for each in found))


def resampled(groups: Sequence[Sequence[float]], *, seed: int) -> Interval | None:
    """The mean of differences, with an interval by resampling whole threads, since the turns of a thread
    depend on each other."""
    held = [np.asarray(group, dtype=float) for group in groups if len(group)]
    if not held:
        return None
    sums, sizes = np.array([each.sum() for each in held]), np.array([len(each) for each in held])
    drawn = np.random.default_rng(seed).integers(0, len(held), size=(_DRAWS, len(held)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Interval(float(sums.sum() / sizes.sum()), float(low), float(high))


def _at_least(hits: int, of: int, p: float) -> float:
    return 1 - _at_most(hits - 1, of, p) if hits else 1.0


def _at_most(hits: int, of: int, p: float) -> float:
    if p in (0.0, 1.0):
        return 1.0 if p == 0.0 or hits >= of else 0.0
    logs = (
        math.lgamma(of + 1)
        - math.lgamma(k + 1)
        - math.lgamma(of - k + 1)
        + k * math.log(p)
        + (of - k) * math.log1p(-p)
        for k in range(hits + 1)
    )
    return min(1.0, math.fsum(math.exp(each) for each in logs))


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
