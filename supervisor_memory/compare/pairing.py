"""Weigh two texts once more: do they say the same, is the later one a new value of the earlier, or neither?

Three logistic regressions over what `facts` reads off a pair: `same`, that one wording is enough for both,
`instead`, that the later one replaces the earlier, and `of_it`, that a change which the later one tells is
one of what the earlier one tells, not of something else about the same thing. They are fitted by
`benchmarks/pairing.py` to pairs that people wrote (benchmarks/kept, benchmarks/merging, benchmarks/changes),
half of them made to look like the other half. They are asked where vectors are known; the weights are in
pairing.json.
"""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from supervisor_memory.compare.apart import apart, turns
from supervisor_memory.compare.changes import change
from supervisor_memory.compare.evidence import of_slots, share
from supervisor_memory.compare.in_common import things_in_common
from supervisor_memory.compare.pair import Pair, of_each_pair
from supervisor_memory.compare.replaces import dropped, gives_another_value, takes_place
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import has_cjk
from supervisor_memory.understand.subject import of_another

Facts = Mapping[str, float]

_LEXICON = lexicon("pairs")
_BENDS: Mapping[str, Sequence[float]] = {"near": (0.25, 0.5, 0.7), "words": (0.5, 0.75)}
"""The knots between which the weight of a likeness is linear."""
_LONGEST_THING = 4
_TURNED = 3  # pieces in common that stand the other way round: who, does what, to whom
_SAME_WORDS = 0.93
_ALIKE = 0.75
_MOST_THINGS = 4
_BEGINS = 2  # tokens of the thing that a text begins with
_EVEN = 0.5
_OF_LANGUAGE = (
    *("near", "near over 0.25", "near over 0.5", "near over 0.7"),
    *("words", "letters", "turned", "template", "change"),
)
"""Features with a further weight for Chinese."""
_ANNOUNCED = 1.0  # the change, in log odds, of a text with words as "from now on"


@dataclass(frozen=True, slots=True)
class Before:
    """What the first look at a pair found: see `Verdict`."""

    about: float
    instead: float
    apart: str


@dataclass(frozen=True, slots=True)
class Paired:
    """Three chances in [0, 1]: the texts say the same; the later one replaces the earlier; a change in the
    later one is about the earlier one's statement."""

    same: float
    instead: float
    of_it: float


def paired(pair: Pair, *, near: float, lead: float | None, before: Before) -> Paired:
    """Weigh a pair.

    Args:
        near: The nearness of their vectors, in [0, 1].
        lead: How much nearer this known text is than the next; None: there is no other.
        before: What the first look found.
    """
    found = facts(pair, near=near, lead=lead, before=before)
    return Paired(**{name: _chance(found, weights) for name, weights in _weights().items()})


@of_each_pair
def exchanges_roles(pair: Pair) -> bool:
    """Whether two texts have the same words, with two things swapped: A reports to B, B reports to A; from
    Oslo to Bergen, from Bergen to Oslo. Passives ("by", 被) and lists do not count."""
    mine, yours = pair.old.words_counted, pair.new.words_counted
    return (
        _likeness(mine, yours) >= _SAME_WORDS
        and (_reordered_pieces(pair) >= _TURNED or _change_places(pair))
        and _is_passive(pair.old.text) == _is_passive(pair.new.text)
    )


def _change_places(pair: Pair) -> bool:
    """Whether two things of one to three words changed places around something other than an "and"."""
    a, b = pair.old.words, pair.new.words
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return any(
        a[:n] == b[len(b) - n :] and b[:m] == a[len(a) - m :] and a[n : len(a) - m] == b[m : len(b) - n]
        for n in range(1, _LONGEST_THING)
        for m in range(1, _LONGEST_THING)
        if n + m < len(a) and not set(a[n : len(a) - m]) <= _LEXICON.words("listing")
    )


def facts(pair: Pair, *, near: float, lead: float | None, before: Before) -> Facts:
    """The weighed features by name; a missing name counts 0."""
    old, new = pair.old, pair.new
    found = _alike(pair, near) | _exchanged(pair) | _change_features(pair, near)
    found |= {f"slots: {name}": value for name, value in of_slots(old.slots, new.slots).items()}
    found |= {
        "alone": float(lead is None),
        "lead": max(0.0, lead or 0.0),
        "behind": max(0.0, -(lead or 0.0)),
        "about": _logit(before.about),
        "is about": float(before.about >= _EVEN),
        "is about, near": float(before.about >= _EVEN) * near,
        "merges": float(before.about >= _EVEN > before.instead),
        "replaces": float(before.about >= _EVEN <= before.instead),
        f"apart: {before.apart or apart(pair)}": 1.0,
        "turns": float(turns(pair)),
        "takes place": float(takes_place(pair)),
        "same attribute": float(gives_another_value(pair)),
        "drops": dropped(pair),
        "another person": float(of_another(old.people, new.people)),
        "another subject": float(old.people.subject != new.people.subject),
        "topic shared": float(bool(old.topic & new.topic)),
        "topic differs": float(_differ(old.topic, new.topic)),
        "another side": float(bool(old.slots.sides ^ new.slots.sides)),
        "rates differ": float(_differ(old.slots.rates, new.slots.rates)),
        "limits differ": float(old.slots.limits != new.slots.limits),
    }
    if before.about >= _EVEN:
        found["instead"] = _logit(before.instead)
    if has_cjk(new.text):
        found |= {f"chinese: {name}": found.get(name, 0.0) for name in _OF_LANGUAGE} | {"chinese": 1.0}
    return {name: value for name, value in found.items() if value}


def _alike(pair: Pair, near: float) -> dict[str, float]:
    old, new = pair.old, pair.new
    words = _likeness(old.counts, new.counts)
    both = _in_common(old.counts, new.counts)
    own, others = len(old.tokens) - both, len(new.tokens) - both
    free = float(not pair.is_template)
    found = {
        "near": near,
        "words": words,
        "letters": _likeness(old.letters, new.letters),
        "near, words": near * words,
        "own words of old": math.log1p(own),
        "own words of new": math.log1p(others),
        "own words of either": math.log1p(min(own, others)),
        "nothing of old": float(not own),
        "nothing of new": float(not others),
        "lengths": abs(math.log((len(old.tokens) + 1) / (len(new.tokens) + 1))),
        "short": 1 / (1 + min(len(old.tokens), len(new.tokens))),
        "in order": pair.ratio,
        "template": 1 - free,
        "free, near": near * free,
        "free, words": words * free,
        "things": things_in_common(pair, most=_MOST_THINGS) / _MOST_THINGS,
        "begins in old": share(new.first, old.terms),
        "begins in new": share(old.first, new.terms),
    }
    for name, bends in _BENDS.items():
        found |= {f"{name} over {bend}": max(0.0, found[name] - bend) for bend in bends}
    return found


def _exchanged(pair: Pair) -> dict[str, float]:
    replaced, turned = pair.replaced, _reordered_pieces(pair)
    is_passive = _is_passive(pair.old.text) != _is_passive(pair.new.text)
    at_head = float(any(each.is_at_head or each.is_in_subject for each in replaced))
    at_tail = float(any(each.is_last for each in replaced))
    return {
        "turned": float(turned >= _TURNED),
        "turned, same words": float(exchanges_roles(pair)),
        "moved": float(turned == _TURNED - 1),
        "turned, by": float(turned > 1 and is_passive),
        "exchanged": float(pair.is_template and bool(replaced)),
        "one exchanged": float(pair.is_template and len(pair.exchanges) == len(replaced) == 1),
        "many exchanged": float(len(replaced) > 1),
        "exchanged at head": at_head,
        "exchanged at tail": at_tail,
        "exchanged at both": at_head * at_tail,
    }


def _change_features(pair: Pair, near: float) -> dict[str, float]:
    """Features of a change: the later text's words, and their overlap with the earlier text."""
    old, new = pair.old, pair.new
    told = max(_ANNOUNCED if new.announces else 0.0, change(new.text))
    ends = float(new.ends and not old.ends)
    former = new.former - old.former if new.former else new.former
    found = {
        "change": told,
        "change of old": change(old.text),
        "change, near": told * near,
        "change, near over 0.5": told * max(0.0, near - 0.5),
        "change, template": told * pair.is_template,
        "change, begins in old": told * share(new.first, old.terms),
        "announces": float(new.announces),
        "only new announces": float(pair.announces),
        "only old announces": float(old.announces and not new.announces),
        "announces, template": float(new.announces and pair.is_template),
        "announces, near": float(new.announces) * near,
        "several clauses": float(not new.is_one_clause),
        "ends": ends,
        "ends, near": ends * near,
        "former": float(bool(former)),
        "former in old": share([*former], old.tokens),
        "begins with former": share(old.tokens[:_BEGINS], former) == 1.0,
    }
    if old.attitude is not None and new.attitude is not None:
        found["attitude differs"] = float(old.attitude != new.attitude)
        found["attitude same"] = float(old.attitude == new.attitude)
    return found


def _reordered_pieces(pair: Pair) -> int:
    """How many pieces of the earlier text stand in reverse order in the later one, at most.

    A piece is a run of words, each of which both texts have exactly once.
    """
    a, b = pair.old.tokens, pair.new.tokens
    mine, yours = pair.old.counts, pair.new.counts
    blocks: list[tuple[int, int]] = []  # (last place in the earlier text, first place in the later one)
    last = -2
    for place, word in enumerate(a):
        if mine[word] != 1 or yours.get(word) != 1:
            continue
        other = b.index(word)
        if blocks and place == blocks[-1][0] + 1 and other == last + 1:
            blocks[-1] = (place, blocks[-1][1])
        else:
            blocks.append((place, other))
        last = other
    longest = [1] * len(blocks)
    for n, (_, other) in enumerate(blocks):
        longest[n] += max((longest[k] for k in range(n) if blocks[k][1] > other), default=0)
    return max(longest, default=0)


def _is_passive(text: str) -> bool:
    return _LEXICON["turned_round"].search(text) is not None


def _likeness(some: Mapping[str, int], others: Mapping[str, int]) -> float:
    total = sum(some.values()) + sum(others.values())
    return 2 * _in_common(some, others) / total if total else 0.0


def _in_common(some: Mapping[str, int], others: Mapping[str, int]) -> int:
    return sum(min(some[each], others[each]) for each in some.keys() & others.keys())


def _differ(some: Set[str], others: Set[str]) -> bool:
    return bool(some and others and not some & others)


def _logit(chance: float) -> float:
    chance = min(max(chance, 1e-4), 1 - 1e-4)
    return math.log(chance / (1 - chance)) / 3


def _chance(found: Facts, weights: Mapping[str, float]) -> float:
    score = weights.get("", 0.0) + sum(weights.get(name, 0.0) * value for name, value in found.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    read: Mapping[str, Mapping[str, float]] = json.loads(
        files(__package__).joinpath("pairing.json").read_text("utf-8")
    )
    return read
