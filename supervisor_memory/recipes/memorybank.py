"""MemoryBank: what is recalled is kept longer, what is not fades, and a day is told in a digest.

Paper: Zhong et al., "MemoryBank: Enhancing Large Language Models with Long-Term Memory", AAAI 2024.
Code: zhongwanjun/MemoryBank-SiliconFriend@cf61c41, memory_bank/memory_retrieval/forget_memory.py.
Follows: the paper: R = e^(−t/S), S begins with 1 and grows by 1 each time; the scale of 5 days is the
code's, and so is that days are whole.
Differs: the code has e^(−t·S/5), by which what was recalled more is forgotten sooner. It forgets by lot,
with the chance 1 − R; ours forgets what is retained less than a floor, so that a plan can be looked at
before. Forgetting and digests are chores of `memory.optimize`. Profiles, identities and what is pinned
stay. Turns are found whole, so that nothing is widened to its neighbours. No portrait of the user is made:
the profile's records are it.
Without a model: a day's digest is made of the first sentences of its records.
"""

from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.digests import daily
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.retention import by_curve, fade
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    days: float = constant(5.0, "forget_memory.py: forgetting_curve", least=0.001, most=36_500)
    floor: float = constant(0.1, "SAGE's forgetting threshold; the code draws lots", least=0, most=1)
    top_k: int = constant(6, "forget_memory.py: VECTOR_SEARCH_TOP_K", least=1, most=1000)


def memorybank(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, weigh("memorybank", by_meaning), first(c.top_k)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        upkeep=(fade(by_curve(c.days), below=c.floor), daily()),
    )


PUBLISHED: Final = Published(
    "memorybank",
    "found by meaning; what is recalled is kept longer; a digest a day",
    __doc__ or "",
    memorybank,
    Constants,
)
