"""How well a ranking finds the evidence of a question. Relevance is binary: evidence or not."""

import math
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["mean", "names", "score"]

_CUTS = (1, 5, 10)
_DEPTH = 10
"""How far down nDCG and MRR look."""


def names(k: int) -> tuple[str, ...]:
    """What `score` calls its figures."""
    cuts = sorted({*_CUTS, k})
    return (*(f"R@{cut}" for cut in cuts), *(f"hit@{cut}" for cut in cuts), "nDCG@10", "MRR")


def score(found: Sequence[str], evidence: Iterable[str], *, k: int) -> dict[str, float]:
    """The figures of one question, each in [0, 1].

    R@n is the share of the evidence among the first n, hit@n whether any of it is. nDCG@10 (Järvelin and
    Kekäläinen 2002) weighs each piece by its place, 1 being the best order possible; MRR is one over the
    place of the first piece, 0 when it is not among the first ten.

    Args:
        found: Ids, best first, each once.
        evidence: The ids to find, at least one.
        k: A cut of the caller's, beside 1, 5 and 10.

    Raises:
        ValueError: there is no evidence, or an id was found twice.
    """
    wanted = frozenset(evidence)
    if not wanted:
        raise ValueError("a question without evidence cannot be scored")
    if len(set(found)) != len(found):
        raise ValueError(f"an id was found twice: {found}")
    right = [id_ in wanted for id_ in found]
    cuts = sorted({*_CUTS, k})
    figures = {f"R@{cut}": sum(right[:cut]) / len(wanted) for cut in cuts}
    figures |= {f"hit@{cut}": float(any(right[:cut])) for cut in cuts}
    places = [place for place, is_right in enumerate(right[:_DEPTH], start=1) if is_right]
    best = sum(_gain(place) for place in range(1, min(len(wanted), _DEPTH) + 1))
    figures["nDCG@10"] = sum(_gain(place) for place in places) / best
    figures["MRR"] = 1 / places[0] if places else 0.0
    return figures


def _gain(place: int) -> float:
    return 1 / math.log2(place + 1)


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over questions; every row has the same figures."""
    return {name: math.fsum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}
