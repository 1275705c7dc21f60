"""The second reader with an embedder: judges a sentence by its vector beside its words.

A logistic regression over the chance that `learned` gives the words and over how near the vector of the
sentence is to some hundred landmarks (Nyström's approximation of a Gaussian kernel: Williams and Seeger,
NIPS 2000). Trained by `benchmarks/sense.py`, one file of `language/sense` for each embedder it was trained
with; others have none, and words alone decide.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from supervisor_memory.understand.learned import Learned

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray

GAMMA = 1.5
"""Of the kernel exp(-GAMMA d²), d the distance of two unit vectors."""
ASKED_FROM = 0.1
"""The chance by words under which the sense is not asked: hardly ever does it turn the verdict."""
_SURE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Sense:
    """Trained weights for one embedder.

    Attributes:
        centre: The mean of the vectors that it was trained on, taken off each; shape `(dimension,)`.
        landmarks: Unit vectors, shape `(n, dimension)`.
        weights: The weight of the nearness to each landmark, shape `(n,)`.
        words: The weight of the logit of the chance by words.
        bias: The constant.
        least: The chance from which a sentence is kept.
        doubted: The chance under which a verdict of the rules is not believed.
    """

    centre: "NDArray[float32]"
    landmarks: "NDArray[float32]"
    weights: "NDArray[float64]"
    words: float
    bias: float
    least: float
    doubted: float

    def again(self, by_words: Learned, vector: "NDArray[float32]") -> Learned:
        """Judge a sentence again, by its words and its vector."""
        near = nearness(vector[None] - self.centre, self.landmarks)[0]
        score = self.bias + self.words * logit(by_words.chance) + float(near @ self.weights)
        chance = 1 / (1 + math.exp(-score))
        is_doubtful = by_words.is_familiar and chance < self.doubted
        return replace(
            by_words, chance=chance, is_lasting=chance >= self.least, by_sense=True, is_doubtful=is_doubtful
        )


def nearness(vectors: "NDArray[float32]", landmarks: "NDArray[float32]") -> "NDArray[Any]":
    """The kernel between centred vectors and landmarks, shape `(vectors, landmarks)`, each in (0, 1]."""
    import numpy as np

    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _SURE)
    near: NDArray[Any] = np.exp(-2 * GAMMA * (1 - (vectors / lengths) @ landmarks.T))
    return near


def logit(chance: float) -> float:
    """The logarithm of the odds of a chance, between -20 and 20 or so."""
    chance = min(max(chance, _SURE), 1 - _SURE)
    return math.log(chance / (1 - chance))


@cache
def sense_of(fingerprint: str) -> Sense | None:
    """The weights for the vectors of an embedder, or None where nothing was trained with it."""
    import numpy as np

    model, _, dimension = fingerprint.partition("@")
    file = files("supervisor_memory.language").joinpath("sense", f"{model}.npz")
    if not file.is_file():
        return None
    with file.open("rb") as opened, np.load(opened, allow_pickle=False) as read:
        if not dimension.endswith(f"/{read['landmarks'].shape[1]}"):
            return None
        landmarks = read["landmarks"].astype(np.float32)
        landmarks /= np.linalg.norm(landmarks, axis=1, keepdims=True)
        numbers = map(float, read["numbers"])
        return Sense(read["centre"], landmarks, read["weights"].astype(np.float64), *numbers)
