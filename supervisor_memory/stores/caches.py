"""Empties the caches of this process that hold texts."""

import functools
import sys
from typing import Final

MODULES_THAT_KEEP_TEXTS: Final = (
    "supervisor_memory.stores.sqlite.tables",
    "supervisor_memory.stores.sqlite.namespaces",
    "supervisor_memory.stores.qdrant.points",
    "supervisor_memory.host.store.addresses",
    "supervisor_memory.stages.post_retrieval.rank",
    "supervisor_memory.model.records",
    "supervisor_memory.stages.pre_insert.gather",
    "supervisor_memory.compare.reading",
    "supervisor_memory.understand.dates",
    "supervisor_memory.understand.sql",
    "supervisor_memory.understand.statements",
    "supervisor_memory.language.terms",
    "supervisor_memory.language.tokens",
)
"""Modules with functions that cache results for the latest texts and names."""


def forget_texts() -> None:
    """Empty the caches of all these modules, for texts of all users."""
    loaded = [sys.modules[name] for name in MODULES_THAT_KEEP_TEXTS if name in sys.modules]
    for module in loaded:
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
