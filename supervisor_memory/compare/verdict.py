"""Decide what a text is to the records that are like it: the same, something new of it, or another thing.

Two questions, each a logistic regression over the evidence of a pair: is it about the same thing? and if so,
does it take the other's place? What plainly keeps two texts apart, and what plainly is a new value, is read
first (`pair.apart`, `pair.takes_place`). The weights are fitted by `benchmarks/tune_merging.py` to
`benchmarks/merging`; a name begins with the kind of pair that it is about.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from supervisor_memory.compare.evidence import (
    Pair,
    apart,
    beside,
    evidence,
    is_told_otherwise,
    names_in_common,
    nearness,
    rarity,
    read,
    shares_a_figure_alone,
    shares_words,
    takes_place,
    things_in_common,
    turns,
)
from supervisor_memory.model.records import content_hash
from supervisor_memory.text.terms import has_cjk, terms
from supervisor_memory.understand.statements import sentences

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Calibration

__all__ = ["INSTEAD_FROM", "Rival", "Verdict", "chance", "closest_statement", "verdicts"]

INSTEAD_FROM = 0.5
"""The chance from which a text about the same thing takes the other's place."""

Weights: TypeAlias = Mapping[str, float]
_NAMES_COUNT = 0.5
_VERY_NEAR = 0.75
_NEAR, _NEAR_WHERE_ALL_IS = 0.5, 0.8  # of texts with a figure in common; short Chinese ones are always near
_LONG = 60  # tokens of a text that says more than one thing
_LEAST_SHARED, _LEAST_SHARED_BARE = 2, 3  # runs of words that a paraphrase shares, and without vectors
_SEVERAL = 2
_MOST_SENTENCES = 12
_MOST_READ = 8_000


@dataclass(frozen=True, slots=True)
class Rival:
    """A text that is known, or what of it is compared, and what of the new text it is compared with.

    `cosine` is that of its vector and the new text's, None where one is missing.
    """

    text: str
    cosine: float | None = None
    new: str | None = None

    @classmethod
    def of(cls, known: str, new: str, cosine: float | None) -> "Rival":
        """What of a record is compared with a text: the sentence that shares most with it.

        A sentence that both hold says nothing of whether the others say the same, nor then do the vectors.
        """
        mine, yours = (list(islice(sentences(text[:_MOST_READ]), _MOST_SENTENCES)) for text in (known, new))
        both = {content_hash(each) for each in mine} & {content_hash(each) for each in yours}
        rests = [[each for each in some if content_hash(each) not in both] for some in (mine, yours)]
        if not both or not all(rests):
            return cls(closest_statement(known, new), cosine)
        known, new = map(" ".join, rests)
        return cls(closest_statement(known, new), None, new)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a text is to a known one.

    Attributes:
        about: The chance, in [0, 1], that both are about the same thing.
        instead: The chance, in [0, 1], that it takes the known one's place, given that they are.
        apart: Why they are about two things whatever the chances, a code; "" when nothing says so.
        names: How much of what a text begins with, and of the names in it, the known one has; it tells
            between several that a text may be about.
    """

    about: float
    instead: float
    apart: str = ""
    names: float = 0.0

    @property
    def rank(self) -> float:
        return self.about + _NAMES_COUNT * self.names


def verdicts(new: str, rivals: Sequence[Rival], scale: "Calibration | None") -> list[Verdict]:
    """One verdict a rival, in order. All rivals count for what tells them apart: how rare a word is, and
    which is the nearest by far.

    Args:
        scale: How to read the cosines; None where there are none.
    """
    readings = [read(rival.text) for rival in rivals]
    weights = rarity([read(new), *readings])
    near = [_near(rival, scale) for rival in rivals]
    enough = _NEAR_WHERE_ALL_IS if has_cjk(new) else _NEAR
    return [
        _verdict(beside(old, read(rival.new or new)), near[nth], _lead(nth, near), weights, enough=enough)
        for nth, (old, rival) in enumerate(zip(readings, rivals, strict=True))
    ]


def closest_statement(known: str, new: str) -> str:
    """The sentence of a record that shares most with a text, or all of it: a record may state several."""
    found = list(islice(sentences(known[:_MOST_READ]), _MOST_SENTENCES))
    if len(found) < _SEVERAL:
        return known
    asked = frozenset(terms(new))
    return max((known, *found), key=lambda each: _shared(asked, frozenset(terms(each))))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _near(rival: Rival, scale: "Calibration | None") -> float | None:
    if rival.cosine is None or scale is None:
        return None
    return nearness(rival.cosine, unrelated=scale.unrelated, same=scale.same)


def _lead(nth: int, near: Sequence[float | None]) -> float:
    own = near[nth]
    if own is None:
        return 0.0
    return own - max((each for n, each in enumerate(near) if n != nth and each is not None), default=0.0)


def _verdict(
    pair: Pair, near: float | None, lead: float, weights: Mapping[str, float], *, enough: float
) -> Verdict:
    if turns(pair):
        return Verdict(about=1.0, instead=1.0, names=names_in_common(pair, weights))
    if why := apart(pair):
        return Verdict(0.0, 0.0, why)
    if (near is None or pair.new.ends) and not shares_words(pair):
        return Verdict(0.0, 0.0, "no word in common")
    if shares_a_figure_alone(pair) and (near is None or near < enough):
        return Verdict(0.0, 0.0, "a figure in common alone")
    if _shares_little(pair, near):
        return Verdict(0.0, 0.0, "little in common")
    facts = evidence(pair, near=near, lead=lead, weights=weights)
    about, instead = (ABOUT_BARE, INSTEAD_BARE) if near is None else (ABOUT, INSTEAD)
    return Verdict(
        about=chance(facts, about),
        instead=1.0 if takes_place(pair) else chance(facts, instead),
        names=names_in_common(pair, weights),
    )


def _shares_little(pair: Pair, near: float | None) -> bool:
    """Whether two texts of other wording share hardly more than what they speak of: the choir that sings in
    Latin, the choir that travels by bus. Vectors tell it from a paraphrase only where they are very near."""
    if pair.is_template or is_told_otherwise(pair) or (near is not None and near >= _VERY_NEAR):
        return False
    if max(len(pair.old.tokens), len(pair.new.tokens)) > _LONG:
        return False
    if near is None and pair.old.slots.is_negative != pair.new.slots.is_negative:
        return True
    least = _LEAST_SHARED if near is not None else _LEAST_SHARED_BARE
    return things_in_common(pair, most=least) < least


def chance(facts: Mapping[str, float], weights: Weights) -> float:
    """The probability that a logistic regression gives the evidence, in (0, 1)."""
    score = weights.get("", 0.0) + sum(weights.get(name, 0.0) * value for name, value in facts.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


# --- weights, written by benchmarks/tune_merging.py
ABOUT: Weights = MappingProxyType(
    {
        "": -3.34,
        "free: all identifiers differ": 0.03,
        "free: announces": 0.59,
        "free: announces and begins in old": 1.34,
        "free: any": -0.92,
        "free: attitude differs": 0.01,
        "free: attitude same": -0.08,
        "free: begins in new": 0.26,
        "free: begins in old": -0.11,
        "free: behind": -2.73,
        "free: both announce": -0.15,
        "free: contained": 1.28,
        "free: date differs": -0.18,
        "free: date of one": -0.95,
        "free: date shared": -0.50,
        "free: ends": 0.10,
        "free: identifier differs": -1.81,
        "free: identifier of one": -0.42,
        "free: identifier shared": 0.19,
        "free: identifiers shared": 0.21,
        "free: label shared": -0.84,
        "free: lead": 2.73,
        "free: near": 3.28,
        "free: near squared": 2.95,
        "free: number differs": -1.02,
        "free: number of one": -1.76,
        "free: number shared": 0.88,
        "free: numbers agree": 0.57,
        "free: numbers lack": 0.37,
        "free: numbers shared": 0.44,
        "free: only new announces": 0.73,
        "free: only old announces": -0.80,
        "free: slots agree": 1.21,
        "free: terms of new": 0.27,
        "free: terms of old": 1.06,
        "free: terms shared": 0.01,
        "free: unit differs": 0.02,
        "template: all identifiers differ": -0.77,
        "template: announces": 0.51,
        "template: announces and begins in old": 0.42,
        "template: any": 0.91,
        "template: attitude differs": 0.11,
        "template: begins in new": 0.44,
        "template: begins in old": 0.81,
        "template: behind": -1.46,
        "template: both announce": 0.34,
        "template: code exchanged, head": 0.56,
        "template: code exchanged, tail": -0.30,
        "template: date differs": -0.21,
        "template: date of one": 0.13,
        "template: date shared": 0.06,
        "template: ends": -0.02,
        "template: fewer words, head": 0.32,
        "template: fewer words, tail": 0.05,
        "template: identifier differs": -0.68,
        "template: identifier of one": 0.19,
        "template: identifier shared": 0.30,
        "template: identifiers shared": 0.13,
        "template: label shared": 0.66,
        "template: lead": 0.83,
        "template: many exchanged": -0.49,
        "template: more words, head": 0.39,
        "template: more words, tail": 0.41,
        "template: near": 1.57,
        "template: near squared": 1.71,
        "template: negation differs": 0.06,
        "template: number differs": -0.66,
        "template: number exchanged, head": -0.53,
        "template: number exchanged, tail": -0.63,
        "template: number of one": 0.10,
        "template: number shared": 0.05,
        "template: numbers agree": 0.09,
        "template: numbers lack": 0.40,
        "template: numbers shared": 0.03,
        "template: one code exchanged, head": 0.26,
        "template: one code exchanged, tail": -0.30,
        "template: one exchanged": 0.75,
        "template: one number exchanged, head": 0.26,
        "template: one number exchanged, tail": 0.10,
        "template: one value": -0.30,
        "template: one word exchanged, head": 0.06,
        "template: one word exchanged, tail": 0.37,
        "template: only new announces": 0.17,
        "template: only old announces": 0.19,
        "template: quiet fewer words, head": 0.14,
        "template: quiet fewer words, tail": 0.03,
        "template: quiet more words, head": 0.17,
        "template: quiet more words, tail": 0.31,
        "template: quiet number exchanged, head": -0.24,
        "template: quiet number exchanged, tail": -0.20,
        "template: quiet one exchanged": 0.66,
        "template: quiet one number exchanged, head": 0.21,
        "template: quiet one number exchanged, tail": 0.40,
        "template: quiet one word exchanged, head": 0.04,
        "template: quiet one word exchanged, tail": 0.02,
        "template: quiet same words": 0.36,
        "template: quiet two exchanged": -1.28,
        "template: quiet word exchanged, head": 0.04,
        "template: quiet word exchanged, tail": -0.21,
        "template: quiet words beside": 0.25,
        "template: ratio": 1.02,
        "template: same words": 0.41,
        "template: slots agree": 0.49,
        "template: still fewer words, head": 0.01,
        "template: still fewer words, tail": 0.01,
        "template: still more words, head": 0.23,
        "template: still more words, tail": 0.07,
        "template: still same words": 0.02,
        "template: two exchanged": -0.94,
        "template: word exchanged, head": -0.06,
        "template: word exchanged, tail": 0.29,
        "template: words beside": 0.71,
    }
)
INSTEAD: Weights = MappingProxyType(
    {
        "": -1.13,
        "free: all identifiers differ": 0.78,
        "free: announces": 1.14,
        "free: announces and begins in old": 1.06,
        "free: any": -0.27,
        "free: attitude differs": 0.15,
        "free: attitude same": -0.20,
        "free: begins in new": -0.83,
        "free: begins in old": 1.05,
        "free: behind": 1.13,
        "free: both announce": -0.31,
        "free: contained": -0.16,
        "free: date differs": 0.73,
        "free: date of one": -0.43,
        "free: date shared": -0.11,
        "free: ends": 0.89,
        "free: identifier differs": 0.78,
        "free: identifier of one": 0.29,
        "free: identifier shared": 0.26,
        "free: identifiers shared": 0.04,
        "free: label shared": -0.01,
        "free: lead": -1.26,
        "free: near": 0.04,
        "free: near squared": 0.19,
        "free: negation differs": 0.12,
        "free: number differs": 1.31,
        "free: number of one": -0.28,
        "free: number shared": -1.12,
        "free: numbers agree": -0.46,
        "free: numbers lack": -0.13,
        "free: numbers shared": -0.39,
        "free: only new announces": 1.45,
        "free: only old announces": 0.19,
        "free: slots agree": -1.15,
        "free: terms of new": 0.45,
        "free: terms of old": -0.52,
        "free: terms shared": -0.01,
        "free: unit differs": -0.54,
        "template: all identifiers differ": 0.17,
        "template: announces": 0.71,
        "template: announces and begins in old": 1.01,
        "template: any": 0.27,
        "template: attitude differs": 0.07,
        "template: begins in new": -0.18,
        "template: begins in old": -0.11,
        "template: behind": 0.02,
        "template: both announce": -1.04,
        "template: code exchanged, head": 0.20,
        "template: code exchanged, tail": 0.05,
        "template: date differs": 0.79,
        "template: date of one": 0.47,
        "template: date shared": -0.34,
        "template: ends": 0.77,
        "template: fewer words, head": -0.24,
        "template: fewer words, tail": -0.20,
        "template: identifier differs": 0.24,
        "template: identifier of one": -0.08,
        "template: identifier shared": 0.03,
        "template: identifiers shared": -0.07,
        "template: label shared": 0.17,
        "template: lead": -0.48,
        "template: more words, head": 0.03,
        "template: more words, tail": -0.27,
        "template: near squared": -0.16,
        "template: negation differs": 0.62,
        "template: number differs": 0.81,
        "template: number exchanged, head": 0.35,
        "template: number exchanged, tail": 0.53,
        "template: number of one": 0.02,
        "template: number shared": -0.72,
        "template: numbers agree": -0.67,
        "template: numbers lack": -0.02,
        "template: numbers shared": -0.25,
        "template: one code exchanged, head": 0.11,
        "template: one code exchanged, tail": 0.05,
        "template: one exchanged": 1.08,
        "template: one number exchanged, head": 0.30,
        "template: one number exchanged, tail": 0.51,
        "template: one value": 0.41,
        "template: one word exchanged, head": -0.10,
        "template: one word exchanged, tail": 0.21,
        "template: only new announces": 1.75,
        "template: only old announces": 0.32,
        "template: quiet fewer words, head": -0.35,
        "template: quiet fewer words, tail": -0.03,
        "template: quiet more words, head": 0.24,
        "template: quiet more words, tail": -0.07,
        "template: quiet number exchanged, head": 0.29,
        "template: quiet number exchanged, tail": 0.40,
        "template: quiet one exchanged": 0.42,
        "template: quiet one number exchanged, head": 0.29,
        "template: quiet one number exchanged, tail": 0.40,
        "template: quiet one word exchanged, head": -0.31,
        "template: quiet one word exchanged, tail": 0.03,
        "template: quiet same words": -0.60,
        "template: quiet two exchanged": -0.04,
        "template: quiet word exchanged, head": -0.31,
        "template: quiet word exchanged, tail": -0.01,
        "template: quiet words beside": -0.45,
        "template: ratio": 0.05,
        "template: same words": -0.52,
        "template: slots agree": -1.02,
        "template: still fewer words, head": -0.01,
        "template: still fewer words, tail": -0.17,
        "template: still more words, head": -0.48,
        "template: still more words, tail": -0.21,
        "template: still one exchanged": -0.13,
        "template: still one word exchanged, tail": -0.13,
        "template: still same words": -0.04,
        "template: still word exchanged, tail": -0.13,
        "template: two exchanged": 0.39,
        "template: word exchanged, head": 0.09,
        "template: word exchanged, tail": 0.24,
        "template: words beside": 0.09,
    }
)
ABOUT_BARE: Weights = MappingProxyType(
    {
        "": -1.67,
        "free: all identifiers differ": -0.05,
        "free: announces": 0.08,
        "free: announces and begins in old": 2.05,
        "free: any": -1.07,
        "free: attitude differs": 0.26,
        "free: attitude same": 0.03,
        "free: begins in new": 1.72,
        "free: begins in old": 0.60,
        "free: both announce": -0.52,
        "free: contained": 2.49,
        "free: date differs": -0.46,
        "free: date of one": -1.34,
        "free: date shared": -0.26,
        "free: ends": -0.02,
        "free: identifier differs": -2.22,
        "free: identifier of one": -0.99,
        "free: identifier shared": 0.40,
        "free: identifiers shared": 0.46,
        "free: label shared": -0.87,
        "free: negation differs": 0.09,
        "free: number differs": -1.70,
        "free: number of one": -2.39,
        "free: number shared": 0.94,
        "free: numbers agree": 0.69,
        "free: numbers lack": 0.27,
        "free: numbers shared": 0.46,
        "free: only new announces": 0.60,
        "free: only old announces": -1.30,
        "free: slots agree": 1.86,
        "free: terms of new": 0.72,
        "free: terms of old": 2.66,
        "free: terms shared": 0.46,
        "free: unit differs": 0.02,
        "template: all identifiers differ": -0.91,
        "template: announces": 0.45,
        "template: announces and begins in old": 0.30,
        "template: any": 1.07,
        "template: attitude differs": 0.18,
        "template: begins in new": 0.75,
        "template: begins in old": 1.03,
        "template: both announce": 0.48,
        "template: code exchanged, head": 0.74,
        "template: code exchanged, tail": -0.39,
        "template: date differs": -0.21,
        "template: date of one": 0.13,
        "template: date shared": 0.08,
        "template: ends": -0.13,
        "template: fewer words, head": 0.51,
        "template: fewer words, tail": 0.10,
        "template: identifier differs": -0.80,
        "template: identifier of one": 0.30,
        "template: identifier shared": 0.40,
        "template: identifiers shared": 0.17,
        "template: label shared": 0.69,
        "template: many exchanged": -0.59,
        "template: more words, head": 0.24,
        "template: more words, tail": 0.45,
        "template: negation differs": -0.24,
        "template: number differs": -0.70,
        "template: number exchanged, head": -0.60,
        "template: number exchanged, tail": -0.71,
        "template: number of one": 0.12,
        "template: number shared": 0.06,
        "template: numbers agree": 0.10,
        "template: numbers lack": 0.49,
        "template: numbers shared": 0.04,
        "template: one code exchanged, head": 0.31,
        "template: one code exchanged, tail": -0.39,
        "template: one exchanged": 0.78,
        "template: one number exchanged, head": 0.36,
        "template: one number exchanged, tail": 0.19,
        "template: one value": -0.26,
        "template: one word exchanged, head": -0.06,
        "template: one word exchanged, tail": 0.36,
        "template: only new announces": -0.03,
        "template: only old announces": 0.14,
        "template: quiet fewer words, head": 0.16,
        "template: quiet fewer words, tail": 0.05,
        "template: quiet more words, head": 0.20,
        "template: quiet more words, tail": 0.29,
        "template: quiet number exchanged, head": -0.19,
        "template: quiet number exchanged, tail": -0.13,
        "template: quiet one exchanged": 0.83,
        "template: quiet one number exchanged, head": 0.28,
        "template: quiet one number exchanged, tail": 0.49,
        "template: quiet one word exchanged, head": 0.03,
        "template: quiet one word exchanged, tail": 0.03,
        "template: quiet same words": 0.48,
        "template: quiet two exchanged": -1.39,
        "template: quiet word exchanged, head": 0.03,
        "template: quiet word exchanged, tail": -0.27,
        "template: quiet words beside": 0.23,
        "template: ratio": 1.35,
        "template: same words": 0.55,
        "template: slots agree": 0.66,
        "template: still fewer words, head": 0.02,
        "template: still fewer words, tail": 0.05,
        "template: still more words, head": 0.26,
        "template: still more words, tail": 0.13,
        "template: still same words": 0.02,
        "template: two exchanged": -0.96,
        "template: word exchanged, head": -0.07,
        "template: word exchanged, tail": 0.25,
        "template: words beside": 0.72,
    }
)
INSTEAD_BARE: Weights = MappingProxyType(
    {
        "": -1.27,
        "free: all identifiers differ": 0.70,
        "free: announces": 1.18,
        "free: announces and begins in old": 1.15,
        "free: any": -0.24,
        "free: attitude differs": 0.08,
        "free: attitude same": -0.26,
        "free: begins in new": -0.94,
        "free: begins in old": 1.07,
        "free: both announce": -0.36,
        "free: contained": -0.16,
        "free: date differs": 0.89,
        "free: date of one": -0.36,
        "free: date shared": -0.10,
        "free: ends": 0.95,
        "free: identifier differs": 0.70,
        "free: identifier of one": 0.30,
        "free: identifier shared": 0.35,
        "free: identifiers shared": 0.06,
        "free: label shared": -0.01,
        "free: negation differs": 0.06,
        "free: number differs": 1.57,
        "free: number of one": -0.31,
        "free: number shared": -1.16,
        "free: numbers agree": -0.43,
        "free: numbers lack": -0.16,
        "free: numbers shared": -0.39,
        "free: only new announces": 1.55,
        "free: only old announces": 0.23,
        "free: slots agree": -1.21,
        "free: terms of new": 0.49,
        "free: terms of old": -0.59,
        "free: terms shared": -0.03,
        "free: unit differs": -0.61,
        "template: all identifiers differ": 0.18,
        "template: announces": 0.70,
        "template: announces and begins in old": 1.04,
        "template: any": 0.23,
        "template: attitude differs": 0.07,
        "template: begins in new": -0.21,
        "template: begins in old": -0.14,
        "template: both announce": -1.08,
        "template: code exchanged, head": 0.22,
        "template: code exchanged, tail": 0.06,
        "template: date differs": 0.81,
        "template: date of one": 0.48,
        "template: date shared": -0.34,
        "template: ends": 0.75,
        "template: fewer words, head": -0.25,
        "template: fewer words, tail": -0.23,
        "template: identifier differs": 0.25,
        "template: identifier of one": -0.11,
        "template: identifier shared": 0.04,
        "template: identifiers shared": -0.07,
        "template: label shared": 0.20,
        "template: more words, head": 0.03,
        "template: more words, tail": -0.27,
        "template: negation differs": 0.65,
        "template: number differs": 0.81,
        "template: number exchanged, head": 0.35,
        "template: number exchanged, tail": 0.53,
        "template: number shared": -0.72,
        "template: numbers agree": -0.66,
        "template: numbers lack": -0.02,
        "template: numbers shared": -0.25,
        "template: one code exchanged, head": 0.12,
        "template: one code exchanged, tail": 0.06,
        "template: one exchanged": 1.07,
        "template: one number exchanged, head": 0.29,
        "template: one number exchanged, tail": 0.51,
        "template: one value": 0.41,
        "template: one word exchanged, head": -0.12,
        "template: one word exchanged, tail": 0.22,
        "template: only new announces": 1.78,
        "template: only old announces": 0.33,
        "template: quiet fewer words, head": -0.35,
        "template: quiet fewer words, tail": -0.03,
        "template: quiet more words, head": 0.22,
        "template: quiet more words, tail": -0.06,
        "template: quiet number exchanged, head": 0.28,
        "template: quiet number exchanged, tail": 0.39,
        "template: quiet one exchanged": 0.40,
        "template: quiet one number exchanged, head": 0.28,
        "template: quiet one number exchanged, tail": 0.39,
        "template: quiet one word exchanged, head": -0.32,
        "template: quiet one word exchanged, tail": 0.04,
        "template: quiet same words": -0.60,
        "template: quiet two exchanged": -0.04,
        "template: quiet word exchanged, head": -0.32,
        "template: quiet words beside": -0.45,
        "template: ratio": 0.04,
        "template: same words": -0.52,
        "template: slots agree": -1.02,
        "template: still fewer words, head": -0.01,
        "template: still fewer words, tail": -0.20,
        "template: still more words, head": -0.47,
        "template: still more words, tail": -0.22,
        "template: still one exchanged": -0.13,
        "template: still one word exchanged, tail": -0.13,
        "template: still same words": -0.04,
        "template: still word exchanged, tail": -0.13,
        "template: two exchanged": 0.40,
        "template: word exchanged, head": 0.07,
        "template: word exchanged, tail": 0.25,
        "template: words beside": 0.09,
    }
)
# --- end of weights
