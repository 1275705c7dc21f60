"""An embedder whose vectors are given: to compute by hand what a recipe finds."""

from collections.abc import Mapping, Sequence

import numpy as np

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Matrix, Vector


class Given(HashingEmbedder):
    """Each text has the vector of the longest key that it holds; a text with none is at a right angle to all.

    Args:
        vectors: By a part of a text, the first numbers of its vector, which is brought to length 1.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        super().__init__(16)
        self.vectors = vectors
        self.texts: list[str] = []

    def embed_query(self, text: str) -> Vector:
        known = max((key for key in self.vectors if key in text), key=len, default=None)
        values = [0.0] * 15 + [1.0] if known is None else self.vectors[known]
        vector: Vector = np.zeros(16, dtype=np.float32)
        vector[: len(values)] = values
        return vector / np.linalg.norm(vector)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        return (
            np.stack([self.embed_query(text) for text in texts]) if texts else np.zeros((0, 16), np.float32)
        )
