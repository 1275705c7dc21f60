"""Any LangChain embedding model."""

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from supervisor_memory.embedding.estimate import Estimating
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import (
    Calibration,
    Matrix,
    Vector,
    check_matrix,
    check_vector,
    prepare,
)
from supervisor_memory.errors import EmbeddingError

CHARACTERS = 16_000  # the common limit of 8,192 tokens, at two characters each
NAMES = ("model", "model_name", "model_id", "deployment", "deployment_name")


class LangChainEmbedder(Estimating):
    """Wraps an `Embeddings` object of LangChain, by its synchronous calls.

    Threads: calls are passed on as they come; LangChain's clients are made for that. What is learned
    once (dimension, calibration) is learned by one thread while the others wait.

    Args:
        embeddings: The object to wrap.
        name: Model and revision for the fingerprint; None: the class and its model attribute. Give one
            when a server may change the model behind the same name.
        dimension: Length of its vectors; None: asked once, with one short text.
        calibration: How to read its cosines; None: estimated once from 24 built-in sentences.
        languages: What it is good at; `()`: unknown.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str | None = None,
        dimension: int | None = None,
        calibration: Calibration | None = None,
        languages: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name or model_name(embeddings), calibration=calibration, languages=languages)
        self._embeddings, self._given_dimension = embeddings, dimension
        self._probe = PerProcess(self._ask_dimension)

    @property
    def dimension(self) -> int:
        return self._given_dimension or self._probe.get()

    def embed_query(self, text: str) -> Vector:
        dimension = self.dimension
        return check_vector(self._ask(text), dimension=dimension, what=f"the query vector of {self._name}")

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        dimension = self.dimension
        if not texts:
            return np.zeros((0, dimension), dtype=np.float32)
        ready = [prepare(text, characters=CHARACTERS) for text in texts]
        try:
            vectors = self._embeddings.embed_documents(ready)
        except Exception as error:  # every provider raises its own
            raise EmbeddingError(
                f"{self._name} failed on {len(ready)} texts: {error}", texts=len(ready)
            ) from error
        what = f"the vectors of {self._name}"
        return check_matrix(vectors, rows=len(ready), dimension=dimension, what=what)

    def _ask(self, text: str) -> list[float]:
        try:
            return self._embeddings.embed_query(prepare(text, characters=CHARACTERS))
        except Exception as error:  # every provider raises its own
            raise EmbeddingError(f"{self._name} failed on a query: {error}", texts=1) from error

    def _ask_dimension(self) -> int:
        return len(self._ask("How long is a vector?"))


def model_name(embeddings: Embeddings) -> str:
    """Class and model of a LangChain object, e.g. `OpenAIEmbeddings:text-embedding-3-small`."""
    kind = type(embeddings).__name__
    named = next((value for name in NAMES if isinstance(value := getattr(embeddings, name, None), str)), None)
    return "-".join(f"{kind}:{named}".split()) if named else kind
