"""Fuse signals into a match, by which a search orders its records. Pure functions of arrays.

    match = base + Σ weight · signal        base = scaled(Σ weight · scaled(direct signal))

A direct signal compares the record with the question: by meaning, by words, by words together with what was
said before. Each is divided by its best, cosines after taking off the cosine of unrelated texts, so that
one embedder's .80 and another's .30 weigh the same. Sums of scaled scores order better than ranks do
(`reciprocal_ranks`): how far ahead the best is says something. A match orders one list; it says nothing
about relevance.

Source: CombSUM, Fox and Shaw, "Combination of multiple searches" (1994); reciprocal rank fusion, Cormack,
Clarke and Büttcher (2009). Weights: measured, see docs/ranking.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from supervisor_memory.model.signal_weights import DEFAULT, Weights
from supervisor_memory.signals.postings import Floats

__all__ = ["base", "reciprocal_ranks", "scaled"]


def scaled(scores: Floats) -> Floats:
    """Scores from 0 to 1, where the best of the list is 1; negative numbers and NaN count as 0."""
    positive = np.fmax(scores, np.float32(0))
    best = positive.max(initial=0.0)
    found: Floats = positive / best if best > 0 else positive
    return found


def base(
    signals: Mapping[str, Floats],
    weights: Weights = DEFAULT,
    *,
    alone: npt.NDArray[np.bool_] | None = None,
) -> Floats:
    """The direct signals as one, from 0 to 1.

    Args:
        signals: Any of "meaning", "words" and "words_before", all of one length, at least one.
        alone: True for rows with nothing said before them. Their two signals of words are equal, and count
            as one beside meaning. None: there are no such rows.
    """
    weighed = {name: np.float32(getattr(weights, name)) * scaled(each) for name, each in signals.items()}
    nothing = np.zeros(len(next(iter(signals.values()))), dtype=np.float32)
    by_words = sum((each for name, each in weighed.items() if name != "meaning"), start=nothing)
    by_meaning = weighed.get("meaning", nothing)
    total: Floats = by_meaning + by_words
    if alone is not None and "meaning" in signals:
        once, twice = weights.words or weights.words_before, weights.words + weights.words_before
        # By the same sum of weights as other rows, so that being alone is no advantage.
        stretch = np.float32((weights.meaning + twice) / (weights.meaning + once))
        total = np.where(alone, (by_meaning + by_words * np.float32(once / twice)) * stretch, total)
    return scaled(total)


def reciprocal_ranks(signals: Sequence[Floats], *, constant: float = 60.0) -> Floats:
    """Σ 1 / (constant + rank) over the signals; rows with score 0 in a signal have no rank there."""
    total = np.zeros(len(signals[0]), dtype=np.float32)
    for scores in signals:
        ranks = np.empty(len(scores), dtype=np.float32)
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        total += np.where(scores > 0, 1 / (constant + ranks), 0).astype(np.float32)
    return total
