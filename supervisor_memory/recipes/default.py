"""The recipe that runs unless another is chosen: no model needed anywhere."""

from dataclasses import replace

from supervisor_memory.flow import Recipe
from supervisor_memory.stages.insert.place import place
from supervisor_memory.stages.post_retrieval.excerpts import add_said
from supervisor_memory.stages.post_retrieval.format import format_note
from supervisor_memory.stages.post_retrieval.neighbours import add_joined
from supervisor_memory.stages.post_retrieval.rank import drop_already_said, gate, rank
from supervisor_memory.stages.post_retrieval.unanswered import keep_few
from supervisor_memory.stages.pre_insert.gather import gather
from supervisor_memory.stages.pre_insert.session_messages import keep_messages
from supervisor_memory.stages.pre_insert.sharpen import sharpen
from supervisor_memory.stages.pre_retrieval.route import route_turn, write_query
from supervisor_memory.stages.retrieval.guidelines import add_guidelines
from supervisor_memory.stages.retrieval.search import add_standing, newest, search_store
from supervisor_memory.stages.retrieval.shared import add_shared

RECENT = Recipe(
    name="recent",
    pre_retrieval=(write_query,),
    retrieval=(newest,),
    post_retrieval=(),
    pre_insert=(),
    insert=(),
)
"""The recipe of a search without a question: pinned records, then the newest; no embedder, no ranking."""

DEFAULT = Recipe(
    name="default",
    pre_retrieval=(route_turn, write_query),
    retrieval=(search_store, add_shared, add_standing, add_guidelines),
    post_retrieval=(rank, drop_already_said, gate, add_joined, add_said, keep_few, format_note),
    pre_insert=(gather, keep_messages),
    insert=(place,),
    sharpen=(sharpen,),
    browse=RECENT,
)
PLAIN = replace(
    DEFAULT,
    name="plain",
    post_retrieval=tuple(step for step in DEFAULT.post_retrieval if step not in (add_joined, keep_few)),
)
"""The base of the published recipes: the default without its own ideas, `add_joined` and `keep_few`."""
