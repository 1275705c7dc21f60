"""TiM: a search reads one group of similar memories; a new memory is inserted, merged or replaces another.

Paper: Liu et al., "Think-in-Memory: Recalling and Post-thinking Enable LLMs with Long-Term Memory", 2023.
Code: none was published; intellistream/SAGE@be8d28cf, locomo_tim_pipeline.yaml, is another's.
Follows: the paper: a vector's group is argmax([xR; −xR]). The most similar memories of the question's group
are told, and a new thought is inserted, forgets another or is merged.
Differs: a thought is a statement from a message, in its own words, not a triple that a model words. The
thoughts that a new one changes are sought in the whole store, not in its group alone. To the rules two texts
are one thought if their vectors lie as close as those of two wordings. The paper gives neither the number of
groups nor of told thoughts. SAGE takes MinHash of letters, ten tables.
Without a model: the rules of the default recipe read, merge and take back thoughts.
"""

from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.lsh import keep_groups, search_groups
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rerank import reranked


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants, of which the paper names none."""

    groups: int = constant(4, "paper, section 3: b, of which no value is told; even", least=2, most=1024)
    tables: int = constant(1, "paper, section 3: one; SAGE has 10", least=1, most=20)
    top_k: int = constant(10, "SAGE: top_k; the paper names none", least=1, most=1000)


def tim(c: Constants) -> Recipe:
    """The recipe of these constants.

    Raises:
        SettingsError: the number of groups is odd.
    """
    if c.groups % 2:
        raise SettingsError(f"tim has {c.groups} groups; use an even number", constant="groups")
    return replace(
        reranked(PLAIN, weigh("tim", by_meaning), first(c.top_k)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        retrieval=(search_groups(c.tables, c.groups, c.top_k), *PLAIN.retrieval[1:]),
        pre_insert=(*PLAIN.pre_insert, keep_groups(c.tables, c.groups)),
    )


PUBLISHED: Final = Published(
    "tim", "search in the question's group alone; new records are merged", __doc__ or "", tim, Constants
)
