"""BERT for sentence embeddings, in numpy: token ids in, one vector per text out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

HEADS: Final = 12
LAYERS: Final = 6
SMALLEST_VARIANCE: Final = np.float32(1e-12)
# OpenBLAS, numpy's engine, multiplies in one thread where rows x inner x columns stay under 262,144. Its
# threads wait by spinning, and on a busy machine a text took ten times as long with them. Of the sizes under
# it these take least time for texts of 8, 44 and 352 pieces alike, with AVX-512 and with AVX2.
ROWS: Final = 30
INNER: Final = 128
COLUMNS: Final = 64
SCORES: Final = 262_144 // 32  # of one head
PIECES: Final = 384  # of texts that are read at once; a longer text is read alone
CACHED_ROWS: Final = 16
# Half the complement of the error function by a polynomial in 1 / (1 + slope x), to 1.5e-7: Abramowitz and
# Stegun, Handbook, formula 7.1.26. Their slope is divided by the root of 2, as x is in the gate.
SLOPE: Final = np.float32(0.3275911 * 0.5**0.5)
TAIL: Final = tuple(
    np.float32(each / 2) for each in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
)


@dataclass(frozen=True)
class Dense:
    """A dense layer: a weight matrix in slices, and a bias."""

    slices: Floats  # (depth, slice, INNER, COLUMNS)
    bias: Floats

    @classmethod
    def of(cls, weights: Floats, bias: Floats) -> "Dense":
        slices = weights.reshape(-1, INNER, weights.shape[1] // COLUMNS, COLUMNS).transpose(0, 2, 1, 3)
        return cls(_aligned(slices), bias)

    def __call__(self, rows: Floats) -> Floats:
        count = self.slices.shape[1]
        out = np.empty((len(rows), count, COLUMNS), np.float32)
        out[:] = self.bias.reshape(count, COLUMNS)
        each = -(-len(rows) // -(-len(rows) // ROWS))  # about as many in each part
        product = np.empty((each, count, COLUMNS), np.float32)
        for depth, slices in enumerate(self.slices):
            inner = rows[:, depth * INNER : (depth + 1) * INNER]
            for first in range(0, len(rows), each):
                some = inner[first : first + each]
                times = product[: len(some)]
                np.matmul(some, slices, out=times.transpose(1, 0, 2))
                out[first : first + each] += times
        return out.reshape(len(rows), -1)


def _aligned(numbers: Floats) -> Floats:
    """A copy at an address that is a multiple of 64 bytes, which AVX-512 reads fastest."""
    room = np.empty(numbers.size + 16, np.float32)
    start = -room.ctypes.data % 64 // room.itemsize
    copy = room[start : start + numbers.size].reshape(numbers.shape)
    copy[...] = numbers
    return copy


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
    """A transformer layer: attention between pieces, then a feed-forward network on each piece."""

    look: Dense  # queries, keys and values side by side
    looked: Dense
    after_look: Norm
    widen: Dense
    narrow: Dense
    after_thought: Norm

    def __call__(self, rows: Floats, texts: Sequence[slice]) -> Floats:
        looks = self.look(rows)
        taken = np.concatenate([_attention(looks[text]) for text in texts])
        seen = self.after_look(self.looked(taken) + rows)
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

    def encode(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Average the last layer's rows of each text. The lengths of the vectors are not 1."""
        return np.concatenate([self._encode(some) for some in _groups(texts)])

    def _encode(self, texts: Sequence[Sequence[int]]) -> Floats:
        ends = accumulate(map(len, texts))
        parts = [slice(end - len(text), end) for text, end in zip(texts, ends, strict=True)]
        numbers, scales = self.words
        chosen = np.concatenate(texts)
        places = np.concatenate([self.places[: len(text)] for text in texts])
        rows = self.start(numbers[chosen] * scales[chosen] + places)
        for layer in self.layers:
            rows = layer(rows, parts)
        return np.stack([rows[part].mean(axis=0) for part in parts])


def _groups(texts: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    """Batches of texts, so that short texts share the reading of the matrices."""
    some: list[Sequence[int]] = []
    for text in texts:
        if some and sum(map(len, some)) + len(text) > PIECES:
            yield some
            some = []
        some.append(text)
    yield some


def _attention(looks: Floats) -> Floats:
    """Multi-head attention: for each piece, the weighted mean of the values of all pieces."""
    count = len(looks)
    queries, keys, values = looks.reshape(count, 3, HEADS, -1).transpose(1, 2, 0, 3)
    size = queries.shape[-1]
    queries = queries * np.float32(size**-0.5)
    taken = np.empty((count, HEADS, size), np.float32)
    rows = max(1, SCORES // count)
    for first in range(0, count, rows):
        part = slice(first, first + rows)
        scores = queries[:, part] @ keys.transpose(0, 2, 1)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        heads = taken[part].transpose(1, 0, 2)
        np.matmul(scores, values, out=heads)
        heads /= scores.sum(axis=-1, keepdims=True)
    return taken.reshape(count, -1)


def _gelu(rows: Floats) -> Floats:
    """x · Φ(x), the gate of BERT, written into the rows; a few at a time, which a processor's cache holds."""
    for first in range(0, len(rows), CACHED_ROWS):
        part = rows[first : first + CACHED_ROWS]
        size = np.abs(part)
        inverse = size * SLOPE
        inverse += np.float32(1)
        np.reciprocal(inverse, out=inverse)
        tail = inverse * TAIL[0]
        for each in TAIL[1:]:
            tail += each
            tail *= inverse
        tail *= size
        size *= size
        size *= np.float32(-0.5)
        tail *= np.exp(size, out=size)
        np.maximum(part, 0, out=part)
        part -= tail
    return rows
