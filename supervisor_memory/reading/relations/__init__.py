"""Relations in memory: the neighbours of a thing, the way between two, the lineage of a result.

Nothing is kept for it: the relations are read off the active records when somebody asks, so that they hold as
long as the records that say so. docs/relations.md has its page. `in_record.py` reads a record, `graph.py`
walks, `ask.py` answers.
"""

from supervisor_memory.reading.relations.answer import Link, Neighbour, Relations, Step, Thing
from supervisor_memory.reading.relations.ask import around, told_of

__all__ = ["Link", "Neighbour", "Relations", "Step", "Thing", "around", "told_of"]
