"""Empties the caches of this process that hold texts."""

import functools
import inspect
import sys
from typing import Final

_MODULES: Final = """
stores.sqlite.tables stores.sqlite.namespaces stores.qdrant.points host.store.addresses
stages.post_retrieval.format stages.post_retrieval.rank stages.post_retrieval.excerpts
stages.post_retrieval.quotable stages.insert.repeats stages.pre_retrieval.route
model.records.content model.records.names compare.changes compare.pair compare.reading
understand.dates understand.digest understand.questions understand.sql
reading.relations.in_record understand.entities understand.finished understand.lineage understand.statements
understand.learned understand.names understand.subject language.resembling language.terms
language.tokens language.vocabulary upkeep.write
"""
MODULES_THAT_KEEP_TEXTS: Final = tuple(f"supervisor_memory.{name}" for name in _MODULES.split())
"""Modules with functions that cache results for the latest texts and names."""


def forget_texts() -> None:
    """Empty the caches of all these modules, for texts of all users."""
    loaded = [sys.modules[name] for name in MODULES_THAT_KEEP_TEXTS if name in sys.modules]
    for module in loaded:
        for value in list(vars(module).values()):
            # What a module only uses of another is none of its own. What is asked for nothing holds no text:
            # words and weights of this package's files, which would be read again in a tenth of a second.
            if (
                isinstance(value, functools._lru_cache_wrapper)
                and value.__module__ == module.__name__
                and inspect.signature(value).parameters
            ):
                value.cache_clear()
