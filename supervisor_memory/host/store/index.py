"""A store's own index beside the memory's vectors: LangGraph's `IndexConfig`."""

import threading
from dataclasses import dataclass, replace

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings

from supervisor_memory.bridge import finished
from supervisor_memory.embedding.langchain import LangChainEmbedder
from supervisor_memory.embedding.protocol import Calibration
from supervisor_memory.ports import Services

__all__ = ["Index"]

_AS_THEY_ARE = Calibration(unrelated=0.0, same=1.0)  # so that scores are raw cosines


@dataclass(frozen=True, slots=True)
class Index:
    """The paths of the texts to embed, and services with the index's own embedder."""

    services: Services
    fields: tuple[str, ...]

    @classmethod
    def of(cls, config: IndexConfig, services: Services) -> "Index":
        """Read an index from its config; raises ValueError if `embed` cannot embed."""
        embeddings = ensure_embeddings(config.get("embed"))
        if hasattr(embeddings, "afunc"):
            embeddings = _OffTheLoop(embeddings)
        embedder = LangChainEmbedder(embeddings, dimension=config.get("dims"), calibration=_AS_THEY_ARE)
        alone = replace(services, embedder=embedder, query_vectors={}, embedder_is_known=threading.Event())
        return cls(alone, tuple(config.get("fields") or ("$",)))


class _OffTheLoop(Embeddings):
    """An async-only embedding function, called on memory's own threads, which have no event loop."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return finished(self._inner.aembed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return finished(self._inner.aembed_query(text))
