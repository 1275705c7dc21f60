"""Makes the embedder and the chat model of a memory from the host's objects or from the settings."""

import contextvars
import functools
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import SettingsError
from supervisor_memory.language.prompts import check_prompts
from supervisor_memory.ports import Complete, guarded
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from supervisor_memory.embedding.protocol import Embedder

_LOADING_SECONDS = 20.0


def as_embedder(embedder: Any, settings: Settings) -> "Embedder | None":
    """The embedder to use: ours, LangChain's wrapped, or the settings' choice; SettingsError: it is none."""
    if embedder is None:
        return _local(settings.embedding_model, settings.embedding_dim, settings.embedding_threads)
    if isinstance(embedder, type) or not callable(getattr(embedder, "embed_query", None)):
        raise SettingsError(
            f"embedder is {embedder!r:.80}, which has no `embed_query`; pass LangChain `Embeddings` or an "
            "embedder of `supervisor_memory.embedding`, or set EMBEDDING_MODEL to the name of one",
            embedder=type(embedder).__name__,
        )
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
    """A function from prompt to text; None without a model; SettingsError: it is none, or not there."""
    from supervisor_memory.stages.pre_insert.specialists import open_specialists

    open_specialists(settings.specialists)
    if llm is None:
        if not settings.llm:
            return None
        llm = _opened(settings.llm)
    if isinstance(llm, type) or not callable(getattr(llm, "invoke", None)):
        raise SettingsError(
            f"llm is {llm!r:.80}, which is no chat model; pass an object such as "
            "init_chat_model('openai:gpt-5-mini'), or set MEMORY_LLM to such a name",
            llm=type(llm).__name__,
        )
    if settings.prompts is not None:
        check_prompts(settings.prompts)
    return _Asking(llm)


@dataclass
class _Asking:
    """A chat model, asked by prompt."""

    model: Any
    takes_shapes: bool = True

    def __call__(self, prompt: str) -> str:
        return _text(self._invoke(self.model, prompt))

    def in_shape(self, prompt: str, shape: Mapping[str, Any]) -> str:
        """The answer by LangChain's structured output, as JSON; a model without it answers in text."""
        try:
            shaped = self.model.with_structured_output(dict(shape), include_raw=True)
        except (AttributeError, NotImplementedError):
            self.takes_shapes = False
        if not self.takes_shapes:
            return self(prompt)
        try:
            reply = self._invoke(shaped, prompt)
        except Exception:
            self.takes_shapes = False  # some servers refuse schemas; the next try is plain
            raise
        parsed = reply["parsed"]
        return _text(reply["raw"]) if parsed is None else json.dumps(parsed, ensure_ascii=False)

    def _invoke(self, model: Any, prompt: str) -> Any:
        # In a context of its own, and tagged: what memory asks is nothing that the host's run says, so none
        # of the run's tracers, token counters and streams may take it for that.
        return contextvars.Context().run(model.invoke, prompt, {"tags": ["nostream"], "callbacks": []})


def _text(reply: Any) -> str:
    return str(getattr(reply, "text", reply))


def _opened(name: str) -> "BaseChatModel":
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(name)
    except Exception as error:
        what, _, _ = str(error).partition("\n")  # LangChain goes on with all providers there are
        raise SettingsError(
            f"MEMORY_LLM={name!r} cannot be opened: {type(error).__name__}: {what} Name a model as "
            "'provider:model', with its package and its key in place, or unset it: nothing needs it",
            llm=name,
        ) from error
