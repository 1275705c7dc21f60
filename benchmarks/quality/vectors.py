"""An embedder that embeds each text once a run, so that every system is given the same vectors."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from supervisor_memory.embedding.protocol import Calibration, Embedder, Matrix, Vector

__all__ = ["Remembered"]

_BATCH = 64


@dataclass
class Remembered:
    """The embedder given, with the vectors it made kept in memory.

    Attributes:
        query_seconds: Processor time that embedding queries has taken.
    """

    embedder: Embedder
    query_seconds: float = 0.0
    _queries: dict[str, Vector] = field(default_factory=dict)
    _documents: dict[str, Vector] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    @property
    def calibration(self) -> Calibration:
        return self.embedder.calibration

    @property
    def languages(self) -> tuple[str, ...]:
        return self.embedder.languages

    def embed_query(self, text: str) -> Vector:
        if text not in self._queries:
            begun = time.process_time()
            self._queries[text] = self.embedder.embed_query(text)
            self.query_seconds += time.process_time() - begun
        return self._queries[text]

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        missing = list(dict.fromkeys(text for text in texts if text not in self._documents))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            self._documents |= zip(batch, self.embedder.embed_documents(batch), strict=True)
        rows = [self._documents[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)
