"""Judge a sentence by weights of its words: the second reader, asked where no rule has a verdict.

Logistic regression over the words and characters of a sentence, trained by `benchmarks/sentences.py` on the
lines of benchmarks/sentences. The weights are in learned.json.gz of `language`; no embedder is needed.
"""

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice

from supervisor_memory.language.terms import HAN


@dataclass(frozen=True, slots=True)
class Learned:
    """The judgement of a sentence by the weights.

    `chance` is the probability that the sentence states something lasting, `wish` that it wants something of
    the assistant rather than tells something, both in [0, 1]. `marks` are the pieces of the sentence that
    weighed most, the strongest first. `is_lasting` says that the chance is enough to keep it, `is_doubtful`
    that it is too small to believe a rule that would keep it. `by_sense`: an embedder was asked, too.
    `is_familiar`: the weights know half of its words, as they do of a language they were trained in.
    """

    chance: float
    wish: float
    marks: tuple[str, ...]
    is_lasting: bool = False
    by_sense: bool = False
    is_familiar: bool = True
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """A trained classifier: for each feature its two weights, `lasting` and `wish`; "" is the bias.

    `least` is the chance from which a sentence is kept; `common` are the words that stand for themselves in
    the skeleton of a sentence, `names` are those among the features that always had a capital.
    """

    least: float
    common: frozenset[str]
    features: Mapping[str, Sequence[float]]
    names: frozenset[str] = frozenset()


DOUBTED_UNDER = 0.18
"""The chance by words alone under which a verdict of the rules is not believed; `Sense` has its own."""
_SHOWN = 3
_CUT = re.compile(r"[,;，；、 ]+$")
_READABLE = re.compile(rf"[^~<>^$,.]*[a-z{HAN}][^~<>^$,.]*")
_WORD = re.compile(rf"[A-Za-z']+|\d+|[{HAN}]|[?!:,.;？！：，。；、]")
_LETTERS = re.compile(rf"[A-Za-z']+|[{HAN}]|[^\W\d_]+")
_ENDINGS = ("ing", "ed", "ly", "s")
_FIRST, _LAST = 5, 5


@lru_cache(maxsize=256)  # a sentence is weighed as a statement, and as a change
def features(text: str, common: frozenset[str]) -> frozenset[str]:
    """The features of a sentence: its words and Chinese characters, alone and in twos and threes.

    Each run is there as it is written and as a skeleton, in which a word that is not common is replaced by
    its shape: "ABC", "Abc", "-ing". The first and last pieces count by their place, too.
    """
    pieces = _WORD.findall(_CUT.sub(".", text))  # a clause before a question reads like a sentence
    said = ["^", *("#" if each.isdigit() else each.lower() for each in pieces), "$"]
    bones = ["^", *(_skeleton_element(each, common) for each in pieces), "$"]
    return frozenset(
        {
            *_runs(said, 1, 2),
            *(run for run in _runs(said, 3, 3) if run[0] > "~" or run[-1] > "~"),
            *(f"~{run}" for run in _runs(bones, 1, 3)),
            *(f"<{piece}" for piece in bones[1 : 1 + _FIRST]),
            *(f">{piece}" for piece in bones[-_LAST:-1]),
        }
    )


def _runs(pieces: Sequence[str], shortest: int, longest: int) -> Iterator[str]:
    for length in range(shortest, longest + 1):
        yield from (" ".join(pieces[n : n + length]) for n in range(len(pieces) - length + 1))


def _skeleton_element(piece: str, common: frozenset[str]) -> str:
    """An element of a sentence's skeleton: a common word, character or mark itself, else the word's shape."""
    if piece.lower() in common or not (piece[0].isascii() and piece[0].isalnum()):
        return piece.lower()
    if piece[0].isdigit():
        return "#"
    if piece[0].isupper():
        return "ABC" if piece.isupper() and len(piece) > 1 else "Abc"
    return next((f"-{ending}" for ending in _ENDINGS if piece.endswith(ending)), "abc")


def weigh(text: str, weights: Weights) -> Learned:
    """Judge a sentence by these weights."""
    read = sorted(features(text, weights.common))  # one order, so that sums agree to the last digit
    known = {each: found for each in read if (found := weights.features.get(each))}
    share = 1 / math.sqrt(len(known) or 1)
    bias = weights.features[""]
    lasting, wish = (bias[n] + share * sum([found[n] for found in known.values()]) for n in range(len(bias)))
    strongest = sorted((-found[0], each) for each, found in known.items() if found[0] > 0)
    shown = islice((each for _, each in strongest if _READABLE.fullmatch(each)), _SHOWN)
    chance = _chance(lasting)
    words = {each.lower() for each in _LETTERS.findall(text)}
    is_familiar = 2 * len(words & known.keys()) >= len(words)
    is_doubtful = is_familiar and chance < DOUBTED_UNDER
    return Learned(
        chance,
        _chance(wish),
        tuple(shown),
        chance >= weights.least,
        is_familiar=is_familiar,
        is_doubtful=is_doubtful,
    )


def is_ordinary(word: str) -> bool:
    """Whether a word, or its characters, is in several of the lines that the weights were trained on."""
    known = weights()
    is_known = word in known.common or " ".join(_WORD.findall(word)) in known.features
    return is_known and word not in known.names


def _chance(score: float) -> float:
    return 1 / (1 + math.exp(-score))


@cache
def weights() -> Weights:
    """The weights of learned.json.gz."""
    packed = files("supervisor_memory.language").joinpath("learned.json.gz").read_bytes()
    read = json.loads(gzip.decompress(packed))
    features = {each: (lasting / 100, wish / 100) for each, (lasting, wish) in read["features"].items()}
    return Weights(read["least"], frozenset(read["common"]), features, frozenset(read["names"]))
