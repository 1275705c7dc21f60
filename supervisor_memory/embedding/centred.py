"""An embedder without the directions that all its vectors share."""

from collections.abc import Sequence

import numpy as np

from supervisor_memory.embedding.pairs import PAIRS
from supervisor_memory.embedding.protocol import Calibration, Embedder, Matrix, Vector, check_matrix


class Centred:
    """Wraps an embedder whose vectors crowd into one region, a different one for each language.

    multilingual-e5-small gives two unrelated English sentences a cosine of about .75, two unrelated
    Chinese ones .84, which is more than an English question and its answer have: no one calibration
    fits both. With the mean of each language and side taken out of every vector, unrelated pairs lie
    around 0 in and across languages, and one calibration holds.

    Args:
        inner: The embedder to wrap.
        common: Directions to take out; orthonormal rows, from `common_directions`.
        revision: Names `common` in the fingerprint.
        calibration: Measured on the wrapped vectors.

    Source: Mu and Viswanath, "All-but-the-Top" (2018), with means in place of principal components.
    """

    def __init__(self, inner: Embedder, *, common: Matrix, revision: str, calibration: Calibration) -> None:
        self._inner = inner
        self._common = common
        self._revision = revision
        self._calibration = calibration

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._revision} {self._inner!r}>"

    @property
    def fingerprint(self) -> str:
        model, _, dimension = self._inner.fingerprint.rpartition("/")
        return f"{model}+{self._revision}/{dimension}"

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def calibration(self) -> Calibration:
        return self._calibration

    @property
    def languages(self) -> tuple[str, ...]:
        return self._inner.languages

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._centre(self._inner.embed_query(text)[np.newaxis, :])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._centre(self._inner.embed_documents(texts))

    def _centre(self, rows: Matrix) -> Matrix:
        centred = rows - (rows @ self._common.T) @ self._common
        what = f"a vector of {self.fingerprint}"
        return check_matrix(centred, rows=len(rows), dimension=rows.shape[1], what=what)


def common_directions(embedder: Embedder) -> Matrix:
    """The mean query and the mean document of each language, made orthonormal.

    Returns:
        Shape (2 per language, dimension).
    """
    means = [
        side.mean(axis=0)
        for sentences in PAIRS.values()
        for side in (
            np.stack([embedder.embed_query(query) for query, _ in sentences]),
            embedder.embed_documents([document for _, document in sentences]),
        )
    ]
    return np.ascontiguousarray(np.linalg.qr(np.stack(means).T)[0].T, dtype=np.float32)
