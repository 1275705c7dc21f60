"""Baseline: the newest records for any question; every other recipe has to be better.

Paper: none; it is the short-term memory that published comparisons measure against.
Code: intellistream/SAGE@18ab7a0, short_term_memory: a queue of 5 without vectors.
Follows: the code.
Differs: a turn that wants fewer records gets fewer. Records that left the queue stay in the store. A repeated
text keeps its place in the queue. The newest is told first; the code has no order.
Without a model: the same.
"""

from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.model.records import Filter, Hit, Hits
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.format import format_note

_SPARE: Final = 10  # some of the newest may be past their time


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    most: int = constant(5, "short_term_memory: max_dialog", least=1, most=1000)


def newest(most: int) -> Reading:
    """An operator that finds the records that were written last."""

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None:
            return plan
        wanted = most if plan.turn.limit is None else min(most, plan.turn.limit)
        where: Filter = plan.query.where
        visible = (each for each in view.list(where, limit=wanted + _SPARE) if each.is_visible(view.now))
        hits = [Hit(each, 1.0 / rank, found="newest") for rank, each in enumerate(visible, start=1)]
        return replace(plan, hits=Hits(tuple(hits[:wanted]), notes=plan.hits.notes))

    return found


def baseline(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        PLAIN,
        retrieval=(newest(c.most),),
        post_retrieval=(format_note,),
        insert=(deciding(judge=only_add),),
    )


PUBLISHED: Final = Published(
    "baseline", "the five newest records, for any question", __doc__ or "", baseline, Constants
)
