"""Train what the second reader asks of an embedder, and tell how well it does on authors it has not seen.

Run: python benchmarks/sense.py            leaves out a quarter of the authors at a time
     python benchmarks/sense.py --write    trains on all lines, too, and writes language/sense/*.npz

The lines are those of `sentences.py`. The chance by words that a line is trained with comes from weights
of other authors, and of none of those that are left out. `least` of a file is where, of authors left out,
the share STORED of what is not worth keeping is kept.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sentences
from numpy.typing import NDArray
from sentences import Unit

from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.understand import learned
from supervisor_memory.understand.sense import ASKED_FROM, Sense, logit, nearness

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

READERS = {MINILM: ("en",), E5: ("en", "zh")}
FILES = Path(learned.__file__).parent.parent / "language" / "sense"
STORED = 0.05
DOUBTED = 0.46
"""The chance under which a rule is not believed, tried out on the half of spent sets of other authors."""
GROUPS = 4
LANDMARKS = 512
ROUNDS = 8
KERNEL, WORDS, BIAS = 60.0, 3.0, 4.0
"""How much of each part the ridge lets through."""


def groups(lines: Sequence[Unit]) -> NDArray[np.int64]:
    """The group of each line; an author is in one."""
    authors = sorted({each.author for each in lines})
    return np.array([authors.index(each.author) % GROUPS for each in lines])


class Words:
    """Readers of words, each trained without some of the groups."""

    def __init__(self, lines: Sequence[Unit]) -> None:
        self.lines, self.groups = lines, groups(lines)
        self._without: dict[frozenset[int], learned.Weights] = {}

    def without(self, left_out: frozenset[int]) -> learned.Weights:
        if left_out not in self._without:
            kept = [each for each, g in zip(self.lines, self.groups, strict=True) if g not in left_out]
            self._without[left_out] = sentences.trained(kept)
        return self._without[left_out]

    def logits(self, left_out: frozenset[int] = frozenset()) -> Floats:
        """The logit of each line's chance, by weights of neither its own group nor those left out."""
        found = [
            logit(learned.weigh(each.text, self.without(left_out | {int(g)})).chance)
            for each, g in zip(self.lines, self.groups, strict=True)
        ]
        return np.array(found)


def landmarks_of(vectors: Vectors) -> NDArray[np.int8]:
    """Centres of the directions of vectors, by spherical k-means, as whole numbers."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = unit[np.random.default_rng(0).choice(len(unit), LANDMARKS, replace=False)].copy()
    for _ in range(ROUNDS):
        nearest = (unit @ found.T).argmax(axis=1)
        for n in range(LANDMARKS):
            if (own := unit[nearest == n]).size:
                found[n] = own.sum(axis=0) / np.linalg.norm(own.sum(axis=0))
    whole: NDArray[np.int8] = np.round(127 * found / np.abs(found).max()).astype(np.int8)
    return whole


def trained(
    vectors: Vectors, words: Floats, keep: NDArray[np.bool_], least: float
) -> tuple[Sense, NDArray[np.int8]]:
    """Weights for these lines, and their landmarks as they are written."""
    centre = vectors.mean(axis=0)
    whole = landmarks_of(vectors - centre)
    landmarks = whole.astype(np.float32)
    landmarks /= np.linalg.norm(landmarks, axis=1, keepdims=True)
    root = np.linalg.inv(
        np.linalg.cholesky(nearness(landmarks, landmarks).astype(float) + 1e-3 * np.eye(LANDMARKS))
    ).T
    near = nearness(vectors - centre, landmarks)
    rows = np.hstack([np.sqrt(KERNEL) * near @ root, WORDS * words[:, None], np.full((len(words), 1), BIAS)])
    fitted = np.zeros(rows.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows @ fitted))
        slope = rows.T * (chance * (1 - chance)) @ rows + np.eye(rows.shape[1])
        step = np.linalg.solve(slope, rows.T @ (keep - chance) - fitted)
        fitted += step
        if np.abs(step).max() < 1e-6:
            break
    weights = np.sqrt(KERNEL) * root @ fitted[:-2]
    return Sense(centre, landmarks, weights, WORDS * fitted[-2], BIAS * fitted[-1], least, DOUBTED), whole


def left_out(words: Words, chosen: Sequence[int], vectors: Vectors) -> Floats:
    """The chance of each chosen line by words and sense of authors of other groups."""
    group, keep = words.groups[chosen], np.array([words.lines[n].keep for n in chosen])
    found = np.zeros(len(chosen))
    for out in range(GROUPS):
        logits = words.logits(frozenset({out}))[chosen]  # of nobody who has seen a line of this group
        sense, _ = trained(vectors[group != out], logits[group != out], keep[group != out], 0)
        score = sense.bias + sense.words * logits
        score += nearness(vectors - sense.centre, sense.landmarks) @ sense.weights
        is_asked = (logits >= logit(ASKED_FROM)) | np.array([words.lines[n].by_rules for n in chosen])
        chance = np.where(is_asked, 1 / (1 + np.exp(-score)), 0)
        found[group == out] = chance[group == out]
    return found


def shares(lines: Sequence[Unit], chances: Floats, least: float) -> tuple[float, float]:
    """Of the lines worth keeping the share that is kept, and of the others the share that is stored."""
    told = [
        (u, u.is_kept(c, least)) for u, c in zip(lines, chances, strict=True) if u.author != sentences.USUAL
    ]
    kept, stored = ([is_kept for unit, is_kept in told if unit.keep == keep] for keep in (True, False))
    return float(np.mean(kept)), float(np.mean(stored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    every = sentences.units()
    words = Words(every)
    logits = words.logits()
    for model, languages in READERS.items():
        embedder = open_embedder(model, dimension=None)
        assert embedder is not None
        chosen = [n for n, each in enumerate(every) if each.lang in languages]
        lines = [every[n] for n in chosen]
        vectors = np.stack(list(embedder.embed_documents([each.text for each in lines])))
        chances = left_out(words, chosen, vectors)
        least = min(t for t in np.arange(0.4, 1, 0.01) if shares(lines, chances, t)[1] <= STORED)
        for lang in languages:
            own = [n for n, each in enumerate(lines) if each.lang == lang]
            for at in (0.6, 0.65, 0.7, 0.75, least, 0.8, 0.85):
                kept, stored = shares([lines[n] for n in own], chances[own], at)
                print(f"{model:24s} {lang} least {at:.2f}: kept {kept:.3f}, stored {stored:.3f}", flush=True)
        if options.write:
            keep = np.array([each.keep for each in lines])
            sense, whole = trained(vectors, logits[chosen], keep, least)
            FILES.mkdir(exist_ok=True)
            np.savez_compressed(
                FILES / f"{embedder.fingerprint.partition('@')[0]}.npz",
                centre=sense.centre,
                landmarks=whole,
                weights=sense.weights.astype(np.float32),
                numbers=np.array([sense.words, sense.bias, sense.least, sense.doubted]),
            )


if __name__ == "__main__":
    main()
