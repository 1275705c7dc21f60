"""Measure the calibration constants that stand beside each embedder.

    python -m supervisor_memory.embedding.calibrate            # all that are installed
    python -m supervisor_memory.embedding.calibrate MODEL ...  # EMBEDDING_MODEL names or folders
    python -m supervisor_memory.embedding.calibrate --common   # first, the common directions of e5

`unrelated` is the 75th percentile of the cosines of pairs with nothing in common, `same` the median of
those that say the same; in between, relevance grows linearly. Three unrelated memories in four then have
relevance 0, and the default threshold of 0.3 sits where few unrelated ones reach and most answers pass.
Pooled over the languages an embedder says it is good at. The rates printed are those of the pairs the
constants come from; tests/embedding/test_calibration.py checks the constants on other sentences.
"""

import sys
from pathlib import Path

import numpy as np

from supervisor_memory.embedding.centred import common_directions
from supervisor_memory.embedding.e5 import COMMON, open_engine
from supervisor_memory.embedding.estimate import Measured, join, measure
from supervisor_memory.embedding.open import open_embedder
from supervisor_memory.embedding.pairs import PAIRS
from supervisor_memory.embedding.protocol import Calibration, Embedder
from supervisor_memory.errors import EmbedderNotInstalled

SHOWN = 0.3  # the default of MEMORY_MIN_SCORE
OURS = ("all-MiniLM-L6-v2", "multilingual-e5-small")


def calibrate(embedder: Embedder) -> tuple[Calibration, dict[str, Measured]]:
    """Measure on all pairs; returns the calibration and the cosines it came from, by language."""
    measured = {language: measure(embedder, pairs) for language, pairs in PAIRS.items()}
    spoken = [
        cosines
        for language, cosines in measured.items()
        if language in embedder.languages or "*" in embedder.languages
    ]
    return join(spoken or list(measured.values())).calibration(), measured


def main(names: list[str]) -> None:
    if names == ["--common"]:
        write_common()
        return
    for name in names or OURS:
        try:
            embedder = open_embedder(name, dimension=None)
        except EmbedderNotInstalled as missing:
            sys.stdout.write(f"{name}: {missing}\n")
            continue
        if embedder is not None:
            sys.stdout.write(report(embedder))


def write_common() -> None:
    """Write the directions that `open_e5` takes out, beside this module."""
    file = Path(__file__).with_name("data") / Path(COMMON).name
    np.save(file, common_directions(open_engine()), allow_pickle=False)
    sys.stdout.write(f"wrote {file.name}\n")


def report(embedder: Embedder) -> str:
    """The constants to write down, and how well they separate each language."""
    calibration, measured = calibrate(embedder)
    lines = [f"{embedder.fingerprint}: unrelated={calibration.unrelated}, same={calibration.same}"]
    for language, cosines in measured.items():
        shown = (calibration.relevances(cosines.same) >= SHOWN).mean()
        noise = (calibration.relevances(cosines.unrelated) >= SHOWN).mean()
        lines.append(
            f"  {language}: at relevance {SHOWN}, {shown:.0%} of same and {noise:.1%} of unrelated pairs"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
