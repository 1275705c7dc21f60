"""TiM without its post-thinking: groups alone, and no memory is merged or forgotten.

Paper: Liu et al., "Think-in-Memory: Recalling and Post-thinking Enable LLMs with Long-Term Memory", 2023.
Code: none was published; intellistream/SAGE@be8d28cf, locomo_tim_pipeline.yaml, is another's.
Follows: the paper for the groups; SAGE for the rest, which has a `tim_basic` without the distillation.
Differs: as `tim`, but a record is only added.
Without a model: rules read the thoughts.
"""

from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.published import Published
from supervisor_memory.recipes.tim import Constants, tim
from supervisor_memory.stages.insert.place import deciding


def tim_basic(c: Constants) -> Recipe:
    """The recipe of these constants; raises as `tim` does."""
    return replace(tim(c), insert=(deciding(judge=only_add),))


PUBLISHED: Final = Published(
    "tim_basic",
    "search in the question's group alone; records are only added",
    __doc__ or "",
    tim_basic,
    Constants,
)
