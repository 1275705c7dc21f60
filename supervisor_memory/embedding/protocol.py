"""The `Embedder` protocol, the calibration of its cosines, and the checks of its texts and vectors."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from supervisor_memory.errors import BadVector

Vector = npt.NDArray[np.float32]  # shape (dimension,), unit length
Matrix = npt.NDArray[np.float32]  # shape (n, dimension), unit rows

SMALLEST_NORM = 1e-9
_SHORT, _LONG = 1e-3, 1e100
"""Lengths between which no square of an entry that counts is out of range."""
SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Calibration:
    """How to read the cosines of one embedder.

    A raw cosine means nothing across embedders: .80 is "the same" to all-MiniLM-L6-v2 and "nothing in
    common" to multilingual-e5-small. Relevance means the same for all of them.

    Attributes:
        unrelated: The cosine that most unrelated pairs stay under; relevance 0.
        same: The cosine of a question and its answer, or of two wordings of one fact; relevance 1.

    Raises:
        ValueError: `same` is not above `unrelated`.

    Source: measured by `python -m supervisor_memory.embedding.calibrate`.
    """

    unrelated: float
    same: float

    def __post_init__(self) -> None:
        if not self.same > self.unrelated:
            raise ValueError(f"same ({self.same}) must be above unrelated ({self.unrelated})")

    def relevance(self, cosine: float) -> float:
        """Map one cosine to [0, 1]. NaN counts as unrelated."""
        scaled = (cosine - self.unrelated) / (self.same - self.unrelated)
        if scaled > 1.0:
            return 1.0
        return scaled if scaled > 0.0 else 0.0

    def relevances(self, cosines: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Map an array of cosines of any shape to [0, 1]. NaN counts as unrelated."""
        scaled = (np.asarray(cosines, dtype=np.float64) - self.unrelated) / (self.same - self.unrelated)
        return np.clip(np.nan_to_num(scaled, nan=0.0), 0.0, 1.0).astype(np.float32)


class Embedder(Protocol):
    """Turns text into vectors of unit length. Safe to share between threads.

    Any string is taken: empty, huge (it is cut), or broken. The answer is a finite unit vector, or
    `EmbeddingError`; never NaN and never a crash of the process.
    """

    @property
    def fingerprint(self) -> str:
        """Model, revision and dimension, e.g. `all-MiniLM-L6-v2@int8-1.0.0/384`.

        Vectors of two fingerprints are never compared. May load the model.
        """

    @property
    def dimension(self) -> int:
        """Length of its vectors. May load the model."""

    @property
    def calibration(self) -> Calibration:
        """How to read its cosines. May load the model and embed a few built-in sentences."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Two-letter codes of the languages it is good at; `("*",)` means many, `()` unknown."""

    def embed_query(self, text: str) -> Vector:
        """Embed what somebody asks; shape `(dimension,)`."""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embed what is stored; shape `(len(texts), dimension)`, for no texts too."""


def prepare(text: str, *, characters: int) -> str:
    """Cut `text` to about `characters`, and replace what UTF-8 cannot carry.

    Tokenizers cut by tokens, but only after reading everything: ten megabytes would take seconds.
    Leading whitespace goes first, so that it does not use up the length.
    """
    return SURROGATES.sub("\ufffd", text[: 4 * characters].lstrip()[:characters])


def check_vector(vector: npt.ArrayLike, *, dimension: int, what: str) -> Vector:
    """Return `vector` as float32 of unit length, or refuse it.

    Args:
        vector: Numbers of any type; lists are fine.
        dimension: The length it must have.
        what: Where it came from, for the message, e.g. "the query vector of openai".

    Raises:
        BadVector: Not a row of numbers, of another dimension, NaN, infinite or zero.
    """
    numbers = _numbers(vector, shape=(dimension,), what=what)
    with np.errstate(over="ignore"):
        length = math.sqrt(numbers.dot(numbers))
    if not _SHORT < length < _LONG:
        unit: Vector = _unit_rows(numbers[np.newaxis, :], what=what)[0]
        return unit
    return (numbers / length).astype(np.float32)


def check_matrix(matrix: npt.ArrayLike, *, rows: int, dimension: int, what: str) -> Matrix:
    """Return `matrix` as float32 with unit rows, or refuse it. As `check_vector`, for many."""
    if rows == 0:
        return np.zeros((0, dimension), dtype=np.float32)
    return _unit_rows(_numbers(matrix, shape=(rows, dimension), what=what), what=what)


def _numbers(values: npt.ArrayLike, *, shape: tuple[int, ...], what: str) -> npt.NDArray[np.float64]:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadVector(
            f"{what} is not numbers, or its rows differ in length; an embedder returns one vector per text",
            what=what,
        ) from error
    if numbers.shape != shape:
        raise BadVector(
            f"{what} has shape {numbers.shape}, expected {shape}; "
            "use the embedder the store was filled with, or embed its records again",
            what=what,
            shape=numbers.shape,
            dimension=shape[-1],
        )
    return numbers


def _unit_rows(rows: npt.NDArray[np.float64], *, what: str) -> Matrix:
    # Scaled by the largest entry first, so that squares of huge or tiny numbers stay in range.
    largest = np.maximum.reduce(np.abs(rows), axis=1, keepdims=True)
    if (
        not np.minimum.reduce(largest, axis=None) >= SMALLEST_NORM
        or not np.maximum.reduce(largest, axis=None) < np.inf
    ):
        raise _no_direction(largest, what=what)
    scaled = rows / largest
    lengths = np.sqrt(np.add.reduce(scaled * scaled, axis=1, keepdims=True))
    return (scaled / lengths).astype(np.float32, order="C")


def _no_direction(largest: npt.NDArray[np.float64], *, what: str) -> BadVector:
    """The error for rows of which one is zero, infinite or NaN.

    Args:
        largest: The largest size of an entry in each row.
    """
    if not (finite := np.isfinite(largest)).all():
        return BadVector(
            f"{what} holds NaN or infinity in row {int(np.argmin(finite))}; "
            "the model or its precision is broken",
            what=what,
        )
    return BadVector(
        f"{what} is zero in row {int(np.argmin(largest))}; to this model the text may be empty", what=what
    )
