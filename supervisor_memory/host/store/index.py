"""What a store embeds of its own accord, beside the memory: LangGraph's `IndexConfig`."""

import threading
from dataclasses import dataclass, replace

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings

from supervisor_memory.bridge import finished
from supervisor_memory.embedding.langchain import LangChainEmbedder
from supervisor_memory.embedding.protocol import Calibration
from supervisor_memory.ports import Services

__all__ = ["Index"]

_AS_THEY_ARE = Calibration(unrelated=0.0, same=1.0)  # given, so that none is measured: scores are raw cosines


@dataclass(frozen=True, slots=True)
class Index:
    """The paths whose texts are embedded, and services with the embedder for them."""

    services: Services
    fields: tuple[str, ...]

    @classmethod
    def of(cls, config: IndexConfig, services: Services) -> "Index":
        """Raises ValueError when `embed` is nothing that embeds."""
        embeddings = ensure_embeddings(config.get("embed"))
        if hasattr(embeddings, "afunc"):
            embeddings = _OffTheLoop(embeddings)
        embedder = LangChainEmbedder(embeddings, dimension=config.get("dims"), calibration=_AS_THEY_ARE)
        alone = replace(services, embedder=embedder, query_vectors={}, embedder_is_known=threading.Event())
        return cls(alone, tuple(config.get("fields") or ("$",)))


class _OffTheLoop(Embeddings):
    """An embedding function that is async alone. Called on memory's own threads, which have no event loop."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return finished(self._inner.aembed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return finished(self._inner.aembed_query(text))
