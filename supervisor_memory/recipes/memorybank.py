"""MemoryBank: recalled records are kept longer, others fade, and each day gets a digest.

Paper: Zhong et al., "MemoryBank: Enhancing Large Language Models with Long-Term Memory", AAAI 2024.
Code: zhongwanjun/MemoryBank-SiliconFriend@cf61c41, memory_bank/memory_retrieval/forget_memory.py.
Follows: the paper: R = e^(−t/S); S begins with 1 and grows by 1 with each recall. The scale of 5 days and
whole days are from the code.
Differs: the code has e^(−t·S/5), which forgets often recalled records sooner. It forgets at random with the
chance 1 − R; ours forgets records below a floor, so that a plan can be shown first. Forgetting and digests
are chores of `memory.optimize`. Profiles, identities and pinned records stay. Turns are found whole, so none
is widened to its neighbours. No portrait of the user is made; the profile's records stand for it.
Without a model: a day's digest has the first sentences of its records.
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
    "search by meaning; recalled records are kept longer; a digest a day",
    __doc__ or "",
    memorybank,
    Constants,
)
