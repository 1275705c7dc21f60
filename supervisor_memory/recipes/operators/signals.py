"""Search by some of the store's signals alone, as simpler systems do."""

from dataclasses import fields, replace
from typing import Final

from supervisor_memory.flow import Before, Recalling
from supervisor_memory.model.records import Weights
from supervisor_memory.ports import NoStore

_LEAST: Final = 1e-6
"""The weight of words beside meaning: they decide where there are no vectors, and nowhere else."""


def search_by(**weights: float) -> Before:
    """An operator that has the store weigh these signals and no others, such as `meaning=1.0`.

    Raises:
        ValueError: there is no such signal, or a weight is out of range; see `Weights`.
    """
    off = {each.name: 0.0 for each in fields(Weights)}
    alone = Weights.of({**off, "words": _LEAST, **weights})

    def searched_by(plan: Recalling, view: NoStore) -> Recalling:
        if plan.query is None:
            return plan
        parts = tuple(replace(each, weights=alone) for each in plan.query.parts)
        return replace(plan, query=replace(plan.query, weights=alone, parts=parts))

    return searched_by
