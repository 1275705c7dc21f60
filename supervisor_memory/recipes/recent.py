"""The recipe of a search that asks nothing: no embedder, no ranking, what is pinned and what is new."""

from supervisor_memory.flow import Recipe
from supervisor_memory.stages.pre_retrieval.route import write_query
from supervisor_memory.stages.retrieval.recent import newest

__all__ = ["RECENT"]

RECENT = Recipe(
    name="recent",
    pre_retrieval=(write_query,),
    retrieval=(newest,),
    post_retrieval=(),
    pre_insert=(),
    insert=(),
)
