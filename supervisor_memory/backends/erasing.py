"""What stays in the memory of a process of texts it has read, and how to let go of it."""

import functools
import sys
from typing import Final

__all__ = ["MODULES_THAT_KEEP_TEXTS", "forget_texts"]

MODULES_THAT_KEEP_TEXTS: Final = (
    "supervisor_memory.backends.sqlite_file.conditions",
    "supervisor_memory.backends.sqlite_file.readable",
    "supervisor_memory.backends.qdrant_server.points",
    "supervisor_memory.backends.sqlite_file.tables",
    "supervisor_memory.graph.addresses",
    "supervisor_memory.recall.rank",
    "supervisor_memory.records",
    "supervisor_memory.remember.echo",
    "supervisor_memory.remember.pair",
    "supervisor_memory.remember.queries",
    "supervisor_memory.statements",
    "supervisor_memory.terms",
    "supervisor_memory.tokens",
)
"""Their functions remember what was made of the latest texts and names."""


def forget_texts() -> None:
    """Empty what the functions of this process remember of texts, whoever's they are."""
    loaded = [sys.modules[name] for name in MODULES_THAT_KEEP_TEXTS if name in sys.modules]
    for module in loaded:
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
