"""Decide whether a text is about the same thing as similar records, and whether it replaces them.

Each pair is looked at twice. First by two logistic regressions over its evidence: is it about the same
thing, and if so, does it replace the other? Rules come before them for plainly different things
(`apart.apart`) and plainly new values (`replaces.takes_place`). The weights are in `weights.json`,
fitted by `benchmarks/tune_merging.py` to `benchmarks/merging`; each name begins with a kind of pair,
"template" or "free". Where vectors are known, `pairing` then weighs the pair again, and the first verdict
beside it: what it is not sure of stays two texts, and what it is sure of is one wording or a new value
whatever the first look found.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

from supervisor_memory.compare.apart import apart, is_settled, turns
from supervisor_memory.compare.changes import change
from supervisor_memory.compare.evidence import evidence, nearness, rarity
from supervisor_memory.compare.in_common import (
    is_told_otherwise,
    names_in_common,
    shares_a_figure_alone,
    shares_words,
    things_in_common,
)
from supervisor_memory.compare.other_things import of_other_things
from supervisor_memory.compare.pair import Pair, beside
from supervisor_memory.compare.pairing import Before, exchanges_roles, paired
from supervisor_memory.compare.reading import Reading, read
from supervisor_memory.compare.replaces import (
    has_another_figure,
    is_denied,
    is_renamed,
    states_the_same,
    takes_place,
)
from supervisor_memory.compare.slots import numbers_differ
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.language.wording import same_marks

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Calibration

INSTEAD_FROM = 0.5
"""The chance from which a text about the same thing replaces the other."""

Weights: TypeAlias = Mapping[str, float]
_WEIGHTS: Mapping[str, Mapping[str, Weights]] = json.loads(
    files(__package__).joinpath("weights.json").read_text("utf-8")
)
"""For pairs "with vectors" and "by words alone", the weights of "about" and of "instead"."""
_NAMES_COUNT = 0.5
_VERY_NEAR = 0.75
_NEAR, _NEAR_WHERE_ALL_IS = 0.5, 0.8  # of texts that share only a figure; short Chinese texts are always near
_LONGEST, _LONGEST_ZH = 15, 39
"""Tokens of the longest text among the pairs that the weights are fitted to. What is longer says more than
one thing, and of that the weights know nothing."""
_LEAST_SHARED, _LEAST_SHARED_BARE = 2, 3  # runs of words shared by a paraphrase: with vectors, and without
_SEVERAL = 2
_EVEN = 0.5
_ALMOST = 0.75  # the share of words in order from which two texts differ in a word or two
_FAR = 0.1  # the nearness under which nothing weighs
_ONE = 0.8
_NOT_FAR = 0.4
_INSTEAD, _INSTEAD_ANYWAY, _INSTEAD_UNTOLD = 0.05, 0.4, 0.6
_JOINED = 0.1
_CHANGES_IT, _CHANGES_IT_REWORDED = 0.29, 0.4
"""Chances of the second look: to leave one wording, to replace, to lay both side by side, that a told change
is one of the known text. "Anyway" and "untold" are where the first look found something else, "reworded" is
for texts that are not one sentence with words exchanged. Tried out on authors and worlds that the weights had
not seen."""
_TOLD = 0.25  # log odds of a change, from which a text replaces what it has little in common with
_NOT_SO = frozenset({"unreal", "denied"})
_OF_ANOTHER = frozenset({"person", "identifier", "label"})
_NOT_OF_IT = _OF_ANOTHER | {"no word in common", "two-values"}
_CERTAIN = frozenset({"roles", "long", *_NOT_SO})


@dataclass(frozen=True, slots=True)
class Compared:
    """A known text, or a part of it, that a new text is compared with.

    `cosine` is between the vectors of both whole texts, None if one is missing. `new` is the part of the new
    text to compare; None: all of it.
    """

    text: str
    cosine: float | None = None
    new: str | None = None

    @classmethod
    def of(cls, known: str, new: str, cosine: float | None) -> "Compared":
        """The part of a record to compare with a text: the sentence with most words in common.

        Sentences that both contain are left out, since they do not show whether the others agree; then the
        cosine is left out too, which is of the whole texts.
        """
        mine, yours = read(known).sentences, read(new).sentences
        both = {digest for digest, _ in mine} & {digest for digest, _ in yours}
        rests = [[each for digest, each in some if digest not in both] for some in (mine, yours)]
        if not both or not all(rests):
            return cls(closest_statement(known, new), cosine)
        known, new = map(" ".join, rests)
        return cls(closest_statement(known, new), None, new)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of a text with a known one.

    Attributes:
        about: The chance, in [0, 1], that both are about the same thing.
        instead: The chance, in [0, 1], that the text replaces the known one, given that they are.
        apart: The code of why they are about different things, whatever the chances; "" if nothing says so.
        names: The share of the text's first words, identifiers and numbers that the known one has, in [0, 1];
            it decides between several known texts.
        is_one: Whether they say the same so surely that one of the wordings is enough.
    """

    about: float
    instead: float
    apart: str = ""
    names: float = 0.0
    is_one: bool = False

    @property
    def rank(self) -> float:
        return self.about + _NAMES_COUNT * self.names


@dataclass(frozen=True, slots=True)
class Look:
    """The first look at a pair: the verdict of `weights.json`, and what it was given.

    `near` is the nearness of the vectors, in [0, 1], None without any; `lead` how much nearer this known text
    is than the next, None where there is no other.
    """

    pair: Pair
    near: float | None
    lead: float | None
    verdict: Verdict


def verdicts(new: str, rivals: Sequence[Compared], scale: "Calibration | None") -> list[Verdict]:
    """One verdict for each rival, in order. A verdict depends on all rivals: on how many of them have a word,
    and how much nearer this one is than the others.

    Args:
        scale: The calibration of the cosines; None if there are none.
    """
    return [_unless_of_another(look, _again(look)) for look in looks(new, rivals, scale)]


def looks(new: str, rivals: Sequence[Compared], scale: "Calibration | None") -> list[Look]:
    """The first look at each rival, in order."""
    readings = [read(rival.text) for rival in rivals]
    weights = rarity([read(new), *readings])
    near = [_near(rival, scale) for rival in rivals]
    enough = _NEAR_WHERE_ALL_IS if has_cjk(new) else _NEAR
    pairs = [beside(old, read(rival.new or new)) for old, rival in zip(readings, rivals, strict=True)]
    leads = [_lead(nth, near) for nth in range(len(near))]
    return [
        Look(
            pair,
            near[nth],
            leads[nth] if len(near) > 1 else None,
            _verdict(pair, near[nth], leads[nth], weights, enough=enough),
        )
        for nth, pair in enumerate(pairs)
    ]


def is_weighed(look: Look) -> bool:
    """Whether a pair is near enough to be weighed a second time."""
    return look.near is not None and (look.near >= _FAR or look.verdict.about >= _EVEN)


def _again(look: Look) -> Verdict:
    first, near = look.verdict, look.near
    if states_the_same(look.pair):
        return replace(first, about=1.0, instead=0.0, apart="", is_one=True)
    if near is None or not is_weighed(look) or first.apart in _CERTAIN or is_settled(look.pair):
        return first
    is_told = _tells_a_change(look.pair.new)
    is_near = near >= (_NOT_FAR if is_told else _NEAR)
    if _is_of_another_kind(look.pair) or (first.about < _EVEN and not is_near):
        return first  # no pair so far from each other was ever found to be one, or a told change
    found = paired(
        look.pair, near=near, lead=look.lead, before=Before(first.about, first.instead, first.apart)
    )
    one = replace(first, about=max(first.about, found.same), instead=0.0, apart="", is_one=True)
    another = replace(first, about=max(first.about, found.instead, _EVEN), instead=1.0, apart="")
    is_of_it = found.of_it >= (_CHANGES_IT if look.pair.is_template else _CHANGES_IT_REWORDED)
    if found.same >= _ONE and found.same > 2 * found.instead and not _differs(look.pair):
        return one
    if first.about < _EVEN:  # nothing so far
        is_plainly_told = is_told and (near >= _NEAR or look.pair.is_template)
        is_apart = first.apart in (_OF_ANOTHER if is_plainly_told else _NOT_OF_IT)
        is_sure = found.instead >= (_INSTEAD_ANYWAY if is_told else _INSTEAD_UNTOLD)
        return another if is_sure and is_of_it and not is_apart else first
    if first.instead >= INSTEAD_FROM:
        is_plain = is_renamed(look.pair) or has_another_figure(look.pair) or is_denied(look.pair)
        is_sure = is_of_it if is_told else found.instead >= _INSTEAD
        return first if is_plain or is_sure else replace(first, about=0.0, apart="unsure")
    if is_told and is_of_it and found.instead >= _INSTEAD:
        return another
    return first if found.same >= _JOINED else replace(first, about=0.0, apart="unsure")


def _unless_of_another(look: Look, found: Verdict) -> Verdict:
    """The verdict, unless the later text is about another thing: then it replaces nothing, and with vectors
    at hand it joins only a text that surely says the same."""
    is_joined = found.instead < INSTEAD_FROM
    if not found.about or (is_joined and (found.is_one or look.near is None)):
        return found
    why = of_other_things(look.pair)
    return replace(found, about=0.0, instead=0.0, apart=why) if why else found


def _tells_a_change(new: Reading) -> bool:
    return new.announces or new.corrects or change(new.text) > _TOLD


def _is_of_another_kind(pair: Pair) -> bool:
    """Whether two texts can never be about one thing: they state two different attributes, or one is about
    this year and the other about last year."""
    old, new = pair.old, pair.new
    if old.stated is not None and new.stated is not None and old.stated.attribute != new.stated.attribute:
        return not {each.attribute for each in old.states} & {each.attribute for each in new.states}
    return pair.is_template and old.relative != new.relative


def _are_of_two_sides(pair: Pair) -> bool:
    """Whether two texts take different sides: one denies the sentence of the other, or VAT is in and out."""
    old, new = pair.old.slots, pair.new.slots
    is_denied = pair.is_template and old.is_negative != new.is_negative
    return is_denied or bool(new.sides and old.sides and old.sides != new.sides)


def _differs(pair: Pair) -> bool:
    """Whether two texts state different facts, however alike: they take different sides, differ in a figure
    of one sentence, or the later one adds a fact ("also needs a scan", 右眼也做了)."""
    if _are_of_two_sides(pair) or (pair.new.adds and not pair.old.adds):
        return True
    return pair.is_template and _have_other_figures(pair)


def _have_other_figures(pair: Pair) -> bool:
    """Whether two texts have other figures, or signs beside them: $5, €5."""
    if numbers_differ(pair.old.slots.numbers, pair.new.slots.numbers):
        return True
    return pair.ratio >= _ALMOST and not same_marks(pair.old.text, pair.new.text)


def closest_statement(known: str, new: str, *, or_all: bool = True) -> str:
    """Find the sentence of a record that shares most words with a text, or give the whole record.

    Args:
        or_all: Whether the whole of a record of several sentences counts among them.
    """
    found = [each for _, each in read(known).sentences]
    if len(found) < _SEVERAL:
        return known
    asked = frozenset(terms(new))
    return max((known, *found) if or_all else found, key=lambda each: _shared(asked, frozenset(terms(each))))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _near(rival: Compared, scale: "Calibration | None") -> float | None:
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
    if _shares_nothing(pair, near):
        return Verdict(0.0, 0.0, "little in common")
    if exchanges_roles(pair) and not pair.announces:
        return Verdict(0.0, 0.0, "roles")
    if (why := of_other_things(pair)) in _NOT_SO:
        return Verdict(0.0, 0.0, why)
    if turns(pair):
        return Verdict(about=1.0, instead=1.0, names=names_in_common(pair, weights))
    if _says_more(pair):
        return Verdict(0.0, 0.0, "long")
    if why := apart(pair):
        return Verdict(0.0, 0.0, why)
    if (near is None or pair.new.ends) and not shares_words(pair):
        return Verdict(0.0, 0.0, "no word in common")
    if shares_a_figure_alone(pair) and (near is None or near < enough):
        return Verdict(0.0, 0.0, "a figure in common alone")
    if _shares_little(pair, near):
        return Verdict(0.0, 0.0, "little in common")
    facts = evidence(pair, near=near, lead=lead, weights=weights)
    weighed = _WEIGHTS["by words alone" if near is None else "with vectors"]
    return Verdict(
        about=chance(facts, weighed["about"]),
        instead=1.0 if takes_place(pair) else chance(facts, weighed["instead"]),
        names=names_in_common(pair, weights),
    )


def _shares_nothing(pair: Pair, near: float | None) -> bool:
    """Whether two texts have no word in common and nothing else ties them, as is the case for most rivals."""
    if near is None or near >= _VERY_NEAR or pair.old.terms & pair.new.terms:
        return False
    return not (pair.new.states and pair.old.states) and not is_told_otherwise(pair)


def _says_more(pair: Pair) -> bool:
    """Whether two differently worded texts are longer than the texts the weights were fitted to; they are
    kept apart."""
    longest = _LONGEST_ZH if has_cjk(pair.new.text) else _LONGEST
    return not pair.is_template and max(len(pair.old.tokens), len(pair.new.tokens)) > longest


def _shares_little(pair: Pair, near: float | None) -> bool:
    """Whether two differently worded texts share little more than their topic: the choir sings in Latin, the
    choir travels by bus. Only very near vectors show that such texts are paraphrases."""
    if pair.is_template or is_told_otherwise(pair) or (near is not None and near >= _VERY_NEAR):
        return False
    if near is None and pair.old.slots.is_negative != pair.new.slots.is_negative:
        return True
    least = _LEAST_SHARED if near is not None else _LEAST_SHARED_BARE
    return things_in_common(pair, most=least) < least


def chance(facts: Mapping[str, float], weights: Weights) -> float:
    """The probability that a logistic regression gives the evidence, in (0, 1)."""
    score = weights.get("", 0.0) + sum(weights.get(name, 0.0) * value for name, value in facts.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
