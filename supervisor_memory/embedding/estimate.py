"""Find the calibration of an embedder from built-in pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from supervisor_memory.embedding.pairs import PAIRS, Pair
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import Calibration, Embedder

UNRELATED_PERCENTILE = 75
PAIRS_FOR_AN_ESTIMATE = 6  # in each language; every query may be one paid call to a server
NARROWEST = 0.01


@dataclass(frozen=True)
class Measured:
    """Cosines between the queries and the documents of pairs, in one language or several.

    Attributes:
        same: Of the query and the document of each pair.
        unrelated: Of each query with the documents of all other pairs.
    """

    same: npt.NDArray[np.float64]
    unrelated: npt.NDArray[np.float64]

    @property
    def gap(self) -> float:
        """How far pairs that say the same stand out; small for a language the embedder does not know."""
        calibration = self.calibration()
        return calibration.same - calibration.unrelated

    def calibration(self) -> Calibration:
        """The constants for these cosines; never narrower than `NARROWEST`."""
        unrelated = float(np.percentile(self.unrelated, UNRELATED_PERCENTILE))
        same = max(float(np.median(self.same)), unrelated + NARROWEST)
        return Calibration(unrelated=round(unrelated, 3), same=round(same, 3))


def measure(embedder: Embedder, pairs: Sequence[Pair]) -> Measured:
    """Compare every query with every document. No two pairs may share a subject; see `PAIRS`."""
    queries = np.stack([embedder.embed_query(query) for query, _ in pairs])
    documents = embedder.embed_documents([document for _, document in pairs])
    cosines = (queries @ documents.T).astype(np.float64)
    diagonal = np.eye(len(pairs), dtype=bool)
    return Measured(same=cosines[diagonal], unrelated=cosines[~diagonal])


def estimate(embedder: Embedder) -> Calibration:
    """Estimate a calibration from a few pairs: 12 queries and 12 documents.

    The cosines of a language that the embedder does not know are all high and close together, so a
    language with less than half the gap of the best is left out.
    """
    each = [measure(embedder, few[:PAIRS_FOR_AN_ESTIMATE]) for few in PAIRS.values()]
    widest = max(measured.gap for measured in each)
    return join([measured for measured in each if measured.gap >= widest / 2]).calibration()


def join(parts: Sequence[Measured]) -> Measured:
    """Pool the cosines of several languages."""
    return Measured(
        same=np.concatenate([part.same for part in parts]),
        unrelated=np.concatenate([part.unrelated for part in parts]),
    )


class Estimating(Embedder):
    """A base for embedders: its name and languages are given; its calibration is given or estimated.

    Args:
        name: Model and revision, for the fingerprint.
        calibration: How to read its cosines; None: estimated once, on first need, from 24 built-in sentences.
        languages: What it is good at; `()`: unknown.
    """

    def __init__(self, name: str, *, calibration: Calibration | None, languages: tuple[str, ...]) -> None:
        self._name, self._languages, self._given_calibration = name, languages, calibration
        self._estimate = PerProcess(self._estimate_calibration)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    @property
    def fingerprint(self) -> str:
        return f"{self._name}/{self.dimension}"

    @property
    def calibration(self) -> Calibration:
        return self._given_calibration or self._estimate.get()

    @property
    def languages(self) -> tuple[str, ...]:
        return self._languages

    def _estimate_calibration(self) -> Calibration:
        return estimate(self)
