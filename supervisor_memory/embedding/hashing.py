"""A stand-in for a model, for tests: it counts words and understands nothing."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np

from supervisor_memory.embedding.protocol import Calibration, Matrix, Vector, check_vector, prepare
from supervisor_memory.errors import SettingsError

CHARACTERS = 20_000
SMALLEST_DIMENSION = 16
PIECE = 3  # characters
CALIBRATION = Calibration(unrelated=0.2, same=0.6)  # set by hand: it is words that agree, not meaning

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
TOKENS = re.compile(rf"[{CJK}]+|[^\W{CJK}]+")
IS_CJK = re.compile(rf"[{CJK}]")


class HashingEmbedder:
    """FOR TESTS: signed hashing of words, pieces of words, and Chinese bigrams.

    Texts that share words get similar vectors; "tea" and "a hot drink" do not. Deterministic in every
    process and on every machine, instant, needs no model. Not an embedder for production.

    Args:
        dimension: Length of the vectors; short ones collide more.
    """

    def __init__(self, dimension: int = 256) -> None:
        if dimension < SMALLEST_DIMENSION:
            raise SettingsError(
                f"a hashing embedder of {dimension} dimensions mixes everything up; "
                f"use at least {SMALLEST_DIMENSION}",
                dimension=dimension,
            )
        self._dimension = dimension

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.fingerprint}: for tests, understands nothing>"

    @property
    def fingerprint(self) -> str:
        return f"hashing-test@1/{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def calibration(self) -> Calibration:
        return CALIBRATION

    @property
    def languages(self) -> tuple[str, ...]:
        return ("*",)

    def embed_query(self, text: str) -> Vector:
        vector = np.zeros(self._dimension, dtype=np.float64)
        for feature, weight in features(prepare(text, characters=CHARACTERS)):
            self._add(vector, feature, weight)
        if not vector.any():  # no words at all, or all of them cancelled out
            self._add(vector, "", 1.0)
        return check_vector(vector, dimension=self._dimension, what="a hashing-test vector")

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        vectors = [self.embed_query(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, self._dimension), dtype=np.float32)

    def _add(self, vector: np.ndarray[tuple[int], np.dtype[np.float64]], feature: str, weight: float) -> None:
        number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        sign = 1.0 if number & 1 else -1.0
        vector[(number >> 1) % self._dimension] += sign * weight


def features(text: str) -> Iterator[tuple[str, float]]:
    """The features of a text with their weights: Chinese bigrams, else words and pieces of words."""
    for token in TOKENS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if IS_CJK.match(token):
            yield from ((token[at : at + 2], 1.0) for at in range(max(1, len(token) - 1)))
        else:
            yield token, 1.0
            framed = f"<{token}>"
            pieces = [framed[at : at + PIECE] for at in range(len(framed) - PIECE + 1)]
            yield from ((piece, 1.0 / len(pieces)) for piece in pieces)
