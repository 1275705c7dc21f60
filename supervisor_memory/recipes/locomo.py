"""LoCoMo's own retrieval: observations, each embedded with its date.

Paper: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
Code: snap-research/locomo@3eb6f2c, task_eval/get_facts.py (--use-date) and scripts/evaluate_rag_gpts.sh.
Follows: the code: an observation is embedded as "date. observation", and the k nearest are told. A dialog or
a summary may be the unit instead.
Differs: the embedder is the memory's, not dragon. An observation is a statement from a message, or a text
that is given as it is; a summary covers a day, not a session. A note has the day before each text, in its own
form, without the hour. Reflections, and what a speaker of a dialogue is shown of both, are left out: they
serve to write dialogues, not to answer questions.
Without a model: rules read the observations, and a day's summary has the first sentences.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.flow import Before, Reading, Recalling, Recipe
from supervisor_memory.model.records import CONTENT_PLACE, EMBEDDED_AS, SESSION_FAMILY, Filter
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.operators.digests import DIGEST, daily
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked

_NOON: Final = 12
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    top_k: int = constant(10, "evaluate_rag_gpts.sh: one of 5, 10, 25 and 50", least=1, most=1000)
    unit: str = constant(
        "observation",
        "evaluate_rag_gpts.sh: --rag-mode",
        choices=("observation", "dialog", "summary"),
    )


def dated(text: str, when: float, view: ReadStore) -> Mapping[str, Any]:
    """The metadata of an observation: its date in front of what is embedded, as the data set spells dates."""
    at = time.gmtime(when)
    half = "am" if at.tm_hour < _NOON else "pm"
    clock = f"{at.tm_hour % _NOON or _NOON}:{at.tm_min:02} {half}"
    day = f"{at.tm_mday} {_MONTHS[at.tm_mon - 1]}, {at.tm_year}"
    return {EMBEDDED_AS: f"{clock} on {day}. {CONTENT_PLACE}"}


def among(unit: str) -> Before:
    """An operator that has the store search dialogs or summaries alone; observations: as it does anyway."""
    only = {"dialog": {"families": (SESSION_FAMILY,)}, "summary": {"tags": (DIGEST,)}}.get(unit, {})

    def searched_among(plan: Recalling, view: NoStore) -> Recalling:
        if plan.query is None or not only:
            return plan
        where: Filter = replace(plan.query.where, **only)  # type: ignore[arg-type]  # fields of Filter, above
        return replace(plan, query=replace(plan.query, where=where))

    return searched_among


def no_digests(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop summaries."""
    return plan.keeping((h for h in plan.hits if DIGEST not in h.record.tags), others="below-threshold")


def locomo(c: Constants) -> Recipe:
    """The recipe of these constants."""
    units: tuple[Reading, ...] = (no_digests,) if c.unit == "observation" else ()
    return replace(
        reranked(PLAIN, *units, weigh("locomo", by_meaning), first(c.top_k)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0), among(c.unit)),
        pre_insert=(*PLAIN.pre_insert, beside(dated)),
        insert=(deciding(judge=only_add),),
        upkeep=(daily(),),
    )


PUBLISHED: Final = Published(
    "locomo", "observations, each embedded with its date", __doc__ or "", locomo, Constants
)
