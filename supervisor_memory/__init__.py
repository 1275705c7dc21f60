"""Long-term memory for a LangGraph supervisor and the agents it leads.

Every public name is importable from here. Those that are seldom needed, or need an extra, are imported when
they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from supervisor_memory import errors
from supervisor_memory.errors import *
from supervisor_memory.flow import Outcome, Recipe
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.decisions import (
    Add,
    Append,
    Decision,
    Hold,
    Merge,
    Replace,
    Retract,
    Rival,
    Rivals,
    Skip,
)
from supervisor_memory.model.explain import why
from supervisor_memory.model.records import (
    Filter,
    Hit,
    Hits,
    Message,
    Note,
    Record,
    Route,
    Scope,
    WriteResult,
)
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.settings import Settings
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.wiring.moved import find_moved_modules

if TYPE_CHECKING:
    from supervisor_memory.embedding.calibrate import calibrate
    from supervisor_memory.embedding.langchain import LangChainEmbedder
    from supervisor_memory.embedding.protocol import Calibration, check_vector
    from supervisor_memory.host.review import review_node
    from supervisor_memory.host.store.store import label_for
    from supervisor_memory.interfaces.services import open_service
    from supervisor_memory.reading.metrics import exposition, measure
    from supervisor_memory.recipes.generative_agents import GENERATIVE_AGENTS, generative_agents
    from supervisor_memory.recipes.mem0 import MEM0
    from supervisor_memory.stages.post_retrieval.rerank import cross_encoder, mmr, reranked
    from supervisor_memory.stages.pre_insert.extractors import extracting
    from supervisor_memory.stages.pre_insert.langmem import langmem_extractor
    from supervisor_memory.stages.pre_insert.specialists import specialist
    from supervisor_memory.stores.journal.store import JournalBackend
    from supervisor_memory.stores.langgraph.store import BaseStoreBackend
    from supervisor_memory.stores.memory.in_memory import InMemoryBackend
    from supervisor_memory.stores.memory.json_file import JsonBackend
    from supervisor_memory.stores.qdrant.collection_names import CollectionNames
    from supervisor_memory.stores.qdrant.store import QdrantBackend
    from supervisor_memory.stores.sqlite.store import SqliteBackend

__all__ = [
    "DEFAULT",
    "GENERATIVE_AGENTS",
    "MEM0",
    "Add",
    "Append",
    "BaseStoreBackend",
    "Calibration",
    "CollectionNames",
    "Decision",
    "Filter",
    "Hit",
    "Hits",
    "Hold",
    "InMemoryBackend",
    "JournalBackend",
    "JsonBackend",
    "LangChainEmbedder",
    "Merge",
    "Message",
    "Note",
    "Outcome",
    "QdrantBackend",
    "Recipe",
    "Record",
    "Replace",
    "Retract",
    "Rival",
    "Rivals",
    "Route",
    "Scope",
    "Settings",
    "Skip",
    "SqliteBackend",
    "SupervisorMemory",
    "WriteResult",
    "calibrate",
    "check_vector",
    "cross_encoder",
    "deciding",
    "exposition",
    "extracting",
    "generative_agents",
    "label_for",
    "langmem_extractor",
    "measure",
    "mmr",
    "open_service",
    "reranked",
    "review_node",
    "specialist",
    "why",
]
__all__ += errors.__all__

_LATER = {
    "calibrate": "embedding.calibrate",
    "LangChainEmbedder": "embedding.langchain",
    "Calibration": "embedding.protocol",
    "check_vector": "embedding.protocol",
    "review_node": "host.review",
    "label_for": "host.store.store",
    "open_service": "interfaces.services",
    "exposition": "reading.metrics",
    "measure": "reading.metrics",
    "GENERATIVE_AGENTS": "recipes.generative_agents",
    "generative_agents": "recipes.generative_agents",
    "MEM0": "recipes.mem0",
    "cross_encoder": "stages.post_retrieval.rerank",
    "mmr": "stages.post_retrieval.rerank",
    "reranked": "stages.post_retrieval.rerank",
    "extracting": "stages.pre_insert.extractors",
    "specialist": "stages.pre_insert.specialists",
    "langmem_extractor": "stages.pre_insert.langmem",
    "JournalBackend": "stores.journal.store",
    "BaseStoreBackend": "stores.langgraph.store",
    "InMemoryBackend": "stores.memory.in_memory",
    "JsonBackend": "stores.memory.json_file",
    "CollectionNames": "stores.qdrant.collection_names",
    "QdrantBackend": "stores.qdrant.store",
    "SqliteBackend": "stores.sqlite.store",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


find_moved_modules()
