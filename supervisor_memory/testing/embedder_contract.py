"""What every embedder promises. Inherit, and give it a fixture named `embedder`.

class TestMine(EmbedderContract):
    @pytest.fixture
    def embedder(self):
        return MyEmbedder()
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from supervisor_memory.embedding.protocol import Embedder, Matrix
from supervisor_memory.errors import EmbeddingError

SENTENCES = ("The user drinks green tea", "用户每天早上喝绿茶", "Deployments happen on Thursdays")
THREADS = 8
HUGE = "tea and biscuits 茶 " * 500_000  # about 10 MB
AWKWARD = {
    "empty": "",
    "blank": " \t\r\n\u3000\u00a0",
    "nul": "tea\x00coffee",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x85\u200b\u202e\ufeff",
    "lone surrogates": "tea \ud800 coffee \udfff",
    "only a lone surrogate": "\udc80",
    "emoji": "👩‍👩‍👧‍👦" * 10,
    "stacked accents": "e" + "\u0301" * 500,
    "characters that expand": "\ufdfa" * 100,
    "one endless word": "x" * 100_000,
    "one endless blank": " " * 100_000 + "tea",
    "special tokens": "[CLS] [SEP] [PAD] [MASK] <s> </s> <unk>",
    "huge": HUGE,
}
CLOSE = 1e-5


class EmbedderContract:
    """Promises of the protocol `Embedder`, as tests."""

    def test_a_query_becomes_one_unit_vector_of_float32(self, embedder: Embedder) -> None:
        assert_unit_rows(embedder.embed_query(SENTENCES[0])[np.newaxis, :], rows=1, embedder=embedder)

    def test_documents_become_one_unit_row_each(self, embedder: Embedder) -> None:
        assert_unit_rows(embedder.embed_documents(SENTENCES), rows=len(SENTENCES), embedder=embedder)

    def test_no_documents_become_no_rows(self, embedder: Embedder) -> None:
        assert embedder.embed_documents([]).shape == (0, embedder.dimension)

    def test_the_same_text_gets_the_same_vector(self, embedder: Embedder) -> None:
        assert np.array_equal(embedder.embed_query(SENTENCES[0]), embedder.embed_query(SENTENCES[0]))

    def test_neighbours_in_a_batch_change_nothing(self, embedder: Embedder) -> None:
        together = embedder.embed_documents(SENTENCES)
        alone = [embedder.embed_documents([sentence])[0] for sentence in SENTENCES]
        assert np.allclose(together, np.stack(alone), atol=CLOSE)

    def test_queries_and_documents_share_one_space(self, embedder: Embedder) -> None:
        documents = embedder.embed_documents(SENTENCES)
        for at, sentence in enumerate(SENTENCES):
            assert int(np.argmax(documents @ embedder.embed_query(sentence))) == at

    def test_different_texts_get_different_vectors(self, embedder: Embedder) -> None:
        cosines = embedder.embed_documents(SENTENCES) @ embedder.embed_documents(SENTENCES).T
        assert (cosines[~np.eye(len(SENTENCES), dtype=bool)] < 1.0 - CLOSE).all()

    def test_any_string_gets_a_unit_vector_or_an_embedding_error(self, embedder: Embedder) -> None:
        for name, text in AWKWARD.items():
            with suppress(EmbeddingError):
                assert_unit_rows(
                    embedder.embed_query(text)[np.newaxis, :], rows=1, embedder=embedder, what=name
                )
            with suppress(EmbeddingError):
                assert_unit_rows(embedder.embed_documents([text]), rows=1, embedder=embedder, what=name)

    def test_the_fingerprint_names_the_dimension_and_stays(self, embedder: Embedder) -> None:
        before = embedder.fingerprint
        embedder.embed_query(SENTENCES[0])
        assert embedder.fingerprint == before
        assert before.endswith(f"/{embedder.dimension}")

    def test_the_calibration_maps_cosines_to_relevance(self, embedder: Embedder) -> None:
        calibration = embedder.calibration
        assert calibration.relevance(1.0) == 1.0
        assert calibration.relevance(-1.0) == 0.0
        assert calibration == embedder.calibration

    def test_languages_are_short_codes(self, embedder: Embedder) -> None:
        assert all(language == "*" or len(language) in {2, 3} for language in embedder.languages)

    def test_many_threads_get_the_vectors_that_one_gets(self, embedder: Embedder) -> None:
        texts = [f"{sentence} ({number})" for number in range(4) for sentence in SENTENCES]
        expected = [embedder.embed_query(text) for text in texts]
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(embedder.embed_query, texts * 2))
        assert np.allclose(np.stack(found), np.stack(expected * 2), atol=CLOSE)


def assert_unit_rows(vectors: Matrix, *, rows: int, embedder: Embedder, what: str = "") -> None:
    """Check shape, type and length of each row."""
    assert vectors.shape == (rows, embedder.dimension), what
    assert vectors.dtype == np.float32, what
    assert np.isfinite(vectors).all(), what
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=CLOSE), what
