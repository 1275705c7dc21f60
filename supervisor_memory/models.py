"""The models memory may use, an embedder and a chat model, from whatever the host has."""

import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

from supervisor_memory.bridge import Bridge
from supervisor_memory.ports import Complete, guarded
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from supervisor_memory.embedding.protocol import Embedder

__all__ = ["as_completion", "as_embedder"]

_LOADING_SECONDS = 20.0


def as_embedder(embedder: Any, settings: Settings) -> "Embedder | None":
    """An embedder of ours as it is, LangChain's wrapped, None as the settings say."""
    if embedder is None:
        return _local(settings.embedding_model, settings.embedding_dim, settings.embedding_threads)
    # Looked up without asking: a fingerprint may load the model, or hang.
    if inspect.getattr_static(embedder, "fingerprint", None) is not None:
        return cast("Embedder", embedder)
    from supervisor_memory.embedding.langchain import LangChainEmbedder

    return LangChainEmbedder(embedder)


@functools.lru_cache(maxsize=4)
def _local(model: str | None, dimension: int | None, threads: int) -> "Embedder | None":
    """The embedder of that name, shared in this process and loaded now: no turn has to wait for it."""
    from supervisor_memory.embedding.open import open_embedder

    embedder = open_embedder(model, dimension=dimension, threads=threads)
    if embedder is not None:
        guarded(
            lambda: Bridge().within(_LOADING_SECONDS, embedder.embed_query, "warm"),
            otherwise=lambda error: None,
        )
    return embedder


def as_completion(llm: "BaseChatModel | None", settings: Settings) -> Complete | None:
    """A function from prompt to text; None when there is no model."""
    if llm is None and settings.llm:
        from langchain.chat_models import init_chat_model

        llm = init_chat_model(settings.llm)
    if llm is None:
        return None
    model = llm

    def complete(prompt: str) -> str:
        # "nostream" keeps memory's own tokens out of the host's stream.
        return str(model.invoke(prompt, {"tags": ["nostream"], "callbacks": []}).text)

    return complete
