"""BERT, as sentence models use it, in numpy: numbers of pieces in, one vector out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

HEADS: Final = 12
LAYERS: Final = 6
SMALLEST_VARIANCE: Final = np.float32(1e-12)
# OpenBLAS, numpy's engine, multiplies in one thread where rows x inner x columns stay under this. Its threads
# wait by spinning, and on a busy machine a text took ten times as long with them.
ONE_THREAD: Final = 262_144
COLUMNS: Final = 16  # of a matrix that are multiplied at once, with as many rows as one thread takes
CACHED_ROWS: Final = 16
# The error function by a polynomial, to 1.5e-7: Abramowitz and Stegun, Handbook, formula 7.1.26.
ERF_SLOPE: Final = np.float32(0.3275911)
ERF: Final = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))


@dataclass(frozen=True)
class Dense:
    """A matrix in slices of a few columns each, and what is added."""

    slices: Floats  # (slice, inner, COLUMNS)
    bias: Floats

    @classmethod
    def of(cls, weights: Floats, bias: Floats) -> "Dense":
        slices = weights.reshape(len(weights), -1, COLUMNS).transpose(1, 0, 2)
        return cls(np.ascontiguousarray(slices), bias)

    def __call__(self, rows: Floats) -> Floats:
        count, inner, columns = self.slices.shape
        out = np.empty((len(rows), count, columns), np.float32)
        together = ONE_THREAD // (inner * columns)
        for first in range(0, len(rows), together):
            part = slice(first, first + together)
            np.matmul(rows[part], self.slices, out=out[part].transpose(1, 0, 2))
        flat = out.reshape(len(rows), -1)
        flat += self.bias
        return flat


@dataclass(frozen=True)
class Norm:
    """Brings each row to mean 0 and variance 1, then to a learned scale."""

    scale: Floats
    bias: Floats

    def __call__(self, rows: Floats) -> Floats:
        even = rows - rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", even, even)[:, None] / np.float32(rows.shape[1])
        even *= self.scale / np.sqrt(variance + SMALLEST_VARIANCE)
        centred: Floats = even + self.bias
        return centred


@dataclass(frozen=True)
class Layer:
    """What one layer has learned: to look at other pieces, and to think about each."""

    look: Dense  # queries, keys and values side by side
    looked: Dense
    after_look: Norm
    widen: Dense
    narrow: Dense
    after_thought: Norm

    def __call__(self, rows: Floats) -> Floats:
        seen = self.after_look(self.looked(_attention(self.look(rows))) + rows)
        return self.after_thought(self.narrow(_gelu(self.widen(seen))) + seen)


@dataclass(frozen=True)
class Bert:
    """A loaded model. Safe to share between threads: nothing here changes after it is made.

    Weights of words stay as they are stored, one byte a number; only those of a text are made floats.
    """

    words: tuple[npt.NDArray[np.int8], Floats]
    places: Floats  # with what marks the first of two texts: there is only one
    start: Norm
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, stored: Mapping[str, npt.NDArray[Any]]) -> "Bert":
        """Read the weights of a file by their names; matrices have a byte a number and a scale a column."""

        def whole(name: str) -> Floats:
            weights: Floats = stored[f"{name}_q"] * stored[f"{name}_scale"]
            return weights

        def norm(name: str) -> Norm:
            return Norm(stored[f"{name}.LayerNorm.weight"], stored[f"{name}.LayerNorm.bias"])

        # The matrices of the layers have numbers for names, and stand in the order in which they are used.
        matrices = iter(
            [whole(each[:-2]) for each in stored if each.startswith("val_") and each.endswith("_q")]
        )
        layers = []
        for number in range(LAYERS):
            of = f"inner.encoder.layer.{number}"
            own = f"{of}.attention.self"
            looks = np.concatenate([next(matrices) for _ in range(3)], axis=1)
            biases = np.concatenate([stored[f"{own}.{each}.bias"] for each in ("query", "key", "value")])
            layers.append(
                Layer(
                    look=Dense.of(looks, biases),
                    looked=Dense.of(next(matrices), stored[f"{of}.attention.output.dense.bias"]),
                    after_look=norm(f"{of}.attention.output"),
                    widen=Dense.of(next(matrices), stored[f"{of}.intermediate.dense.bias"]),
                    narrow=Dense.of(next(matrices), stored[f"{of}.output.dense.bias"]),
                    after_thought=norm(f"{of}.output"),
                )
            )
        words = "inner.embeddings.word_embeddings.weight"
        first = stored["inner.embeddings.token_type_embeddings.weight"][0]
        return cls(
            words=(stored[f"{words}_q"], stored[f"{words}_scale"]),
            places=whole("inner.embeddings.position_embeddings.weight") + first,
            start=norm("inner.embeddings"),
            layers=tuple(layers),
        )

    def encode(self, pieces: Sequence[int]) -> Floats:
        """Average the last layer's rows. The length of the vector is not 1."""
        numbers, scales = self.words
        chosen = np.array(pieces)
        rows = self.start(numbers[chosen] * scales[chosen] + self.places[: len(pieces)])
        for layer in self.layers:
            rows = layer(rows)
        mean: Floats = rows.mean(axis=0)
        return mean


def _attention(looks: Floats) -> Floats:
    """What each piece takes over from the others, in each of the heads."""
    count = len(looks)
    queries, keys, values = looks.reshape(count, 3, HEADS, -1).transpose(1, 2, 0, 3)
    size = queries.shape[-1]
    queries = queries * np.float32(size**-0.5)
    taken = np.empty((count, HEADS, size), np.float32)
    rows = max(1, ONE_THREAD // (size * count))
    for first in range(0, count, rows):
        part = slice(first, first + rows)
        scores = queries[:, part] @ keys.transpose(0, 2, 1)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        np.matmul(scores, values, out=taken[part].transpose(1, 0, 2))
    return taken.reshape(count, -1)


def _gelu(rows: Floats) -> Floats:
    """x · Φ(x), the gate of BERT, written into the rows; a few at a time, which a processor's cache holds."""
    for first in range(0, len(rows), CACHED_ROWS):
        part = rows[first : first + CACHED_ROWS]
        size = np.abs(part)
        scaled: Floats = size * np.float32(0.5**0.5)
        inverse: Floats = np.reciprocal(ERF_SLOPE * scaled + np.float32(1))
        tail = np.zeros_like(inverse)
        for each in ERF:
            tail += each
            tail *= inverse
        tail *= np.exp(-scaled * scaled)
        part[:] = np.maximum(part, 0) - np.float32(0.5) * size * tail
    return rows
