"""LangChain embeddings behind our protocol."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.langchain import LangChainEmbedder
from supervisor_memory.embedding.protocol import Calibration, Embedder
from supervisor_memory.errors import BadVector, EmbeddingError
from supervisor_memory.testing.embedder_contract import EmbedderContract
from tests.cases import every_case


class Counting(Embeddings):
    """A model of LangChain that counts words, and its calls; its vectors are not of unit length."""

    def __init__(self, *, model: str = "words 3") -> None:
        self.model = model
        self.queries = 0
        self._lock = threading.Lock()
        self._embedder = HashingEmbedder(dimension=64)

    def embed_query(self, text: str) -> list[float]:
        with self._lock:
            self.queries += 1
        return self._embed(text)

    def _embed(self, text: str) -> list[float]:
        return [7 * float(number) for number in self._embedder.embed_query(text)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]


class Broken(Embeddings):
    """A model whose answers are given."""

    def __init__(self, answer: list[float] | Exception) -> None:
        self._answer = answer

    def embed_query(self, text: str) -> list[float]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class TestLangChain(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return LangChainEmbedder(Counting())


def test_the_fingerprint_is_class_model_and_dimension() -> None:
    assert LangChainEmbedder(Counting()).fingerprint == "Counting:words-3/64"
    assert LangChainEmbedder(Counting(), name="mine@2").fingerprint == "mine@2/64"


def test_nothing_is_asked_before_it_is_needed() -> None:
    embeddings = Counting()
    repr(LangChainEmbedder(embeddings))
    assert embeddings.queries == 0


def test_the_dimension_is_asked_once_by_one_thread() -> None:
    embeddings = Counting()
    embedder = LangChainEmbedder(embeddings)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: embedder.dimension, range(32))) == {64}
    assert embeddings.queries == 1


def test_what_is_given_is_not_asked() -> None:
    embeddings = Counting()
    given = Calibration(unrelated=0.1, same=0.5)
    embedder = LangChainEmbedder(embeddings, dimension=64, calibration=given)
    assert embedder.calibration == given
    assert embedder.fingerprint == "Counting:words-3/64"
    assert embeddings.queries == 0


def test_the_calibration_is_estimated_once_from_a_few_sentences() -> None:
    embeddings = Counting()
    embedder = LangChainEmbedder(embeddings, dimension=64)
    assert embedder.calibration is embedder.calibration
    assert embeddings.queries == 12


def test_a_failing_server_is_an_embedding_error_without_the_text() -> None:
    embedder = LangChainEmbedder(Broken(ConnectionError("no route")), dimension=3)
    with pytest.raises(EmbeddingError, match=r"Broken failed .* no route") as query:
        embedder.embed_query("my secret")
    with pytest.raises(EmbeddingError, match=r"Broken failed .* no route") as documents:
        embedder.embed_documents(["my secret"])
    for caught in (query, documents):
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value.__cause__, ConnectionError)


@every_case("answer", [[1.0, 2.0], [float("nan")] * 3, [0.0] * 3])
def test_a_bad_answer_is_refused(answer: list[float]) -> None:
    embedder = LangChainEmbedder(Broken(answer), dimension=3)
    with pytest.raises(BadVector, match="vector of Broken"):
        embedder.embed_query("tea")


def test_vectors_of_any_length_become_units() -> None:
    assert np.linalg.norm(LangChainEmbedder(Counting()).embed_query("tea")) == pytest.approx(1.0)
