"""The evidence that two texts are about one thing, and that the later text replaces the earlier.

`evidence` is a row of named numbers, most of them in [0, 1], which `verdict` weighs. Each can be read off the
two texts: common words, differing slots (`slots`), places of words that only one text has, and whether the
later text announces a change. Nothing here knows a domain.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from supervisor_memory.compare.pair import Exchange, Pair
from supervisor_memory.compare.reading import Reading
from supervisor_memory.compare.slots import Slots, dates_differ, differ, numbers_differ, one_thing

Evidence = Mapping[str, float]


def rarity(readings: Collection[Reading]) -> Mapping[str, float]:
    """The weight of each term: higher for a term that few of the compared texts have."""
    seen = Counter(term for reading in readings for term in reading.terms)
    return {term: math.log(1 + len(readings) / count) for term, count in seen.items()}


def evidence(pair: Pair, *, near: float | None, lead: float, weights: Mapping[str, float]) -> Evidence:
    """The evidence of a pair as named numbers; a missing name counts 0.

    Args:
        near: The nearness of their vectors, in [0, 1] (`nearness`); None without vectors.
        lead: The nearness minus the best of the other compared texts; positive for the nearest text alone.
        weights: The weight of each term (`rarity`); missing terms weigh 1.
    """
    old, new = pair.old, pair.new
    facts = {"any": 1.0, **of_slots(old.slots, new.slots)}
    if near is not None:
        facts |= {
            "near": near,
            "near squared": near * near,
            "lead": max(0.0, lead),
            "behind": max(0.0, -lead),
        }
    quiet = "" if pair.announces else "still " if new.announces else "quiet "
    facts |= _told_changes(old, new)
    if not pair.is_template:
        facts |= _likeness(old, new, weights)
        return {f"free: {name}": value for name, value in facts.items() if value}
    for name in _exchanged(pair):
        facts |= {name: 1.0, f"{quiet}{name}": 1.0}
    facts["one value"] = float("one exchanged" in facts and old.states_one and new.states_one)
    facts |= {"ratio": pair.ratio, "begins in new": share(old.first, new.terms)}
    facts |= {"begins in old": share(new.first, old.terms)}
    return {f"template: {name}": value for name, value in facts.items() if value}


def _told_changes(old: Reading, new: Reading) -> dict[str, float]:
    """Evidence from announcements, endings and attitudes that the later text replaces the earlier one."""
    announced = float(new.announces and not old.announces)
    begins = share(new.first, old.terms)
    found = {
        "announces": float(new.announces),
        "both announce": float(new.announces and old.announces),
        "only new announces": announced,
        "only old announces": float(old.announces and not new.announces),
        "announces and begins in old": announced * begins,
        "ends": float(new.ends and not old.ends),
    }
    if old.attitude is not None and new.attitude is not None:
        found["attitude differs"] = float(old.attitude != new.attitude)
        found["attitude same"] = float(old.attitude == new.attitude)
    return found


def _likeness(old: Reading, new: Reading, weights: Mapping[str, float]) -> dict[str, float]:
    def mass(found: Collection[str]) -> float:
        return sum(weights.get(term, 1.0) for term in found) or 1e-9

    both = mass(old.terms & new.terms)
    of_new, of_old = both / mass(new.terms), both / mass(old.terms)
    return {
        "terms shared": both / mass(old.terms | new.terms),
        "terms of new": of_new,
        "terms of old": of_old,
        "contained": max(of_new, of_old),
        "begins in old": share(new.first, old.terms),
        "begins in new": share(old.first, new.terms),
    }


def share(some: Sequence[str], of: Collection[str]) -> float:
    return sum(each in of for each in some) / len(some) if some else 0.0


def of_slots(old: Slots, new: Slots) -> dict[str, float]:
    found: dict[str, float] = {}
    shared_numbers = _common(old.numbers, new.numbers)
    found["numbers shared"] = min(shared_numbers, 3) / 3
    found["number shared"] = float(shared_numbers > 0)
    found["number differs"] = float(numbers_differ(old.numbers, new.numbers))
    found["unit differs"] = float(found["number differs"] and _units_differ(old, new))
    found["number of one"] = float(bool(old.numbers) != bool(new.numbers))
    found["numbers lack"] = float(_lacks(old.numbers, new.numbers))
    found["date shared"] = float(bool(old.dates & new.dates))
    found["date differs"] = float(dates_differ(old, new))
    found["date of one"] = float(old.dates != new.dates and not found["date differs"])
    shared = {a for a in old.identifiers for b in new.identifiers if one_thing(a, b)}
    mine = any(not any(one_thing(a, b) for b in new.identifiers) for a in old.identifiers)
    yours = any(not any(one_thing(a, b) for a in old.identifiers) for b in new.identifiers)
    found["identifier shared"] = float(bool(shared))
    found["identifiers shared"] = min(len(shared), 3) / 3
    found["identifier differs"] = float(mine and yours)
    found["all identifiers differ"] = float(mine and yours and not shared)
    found["identifier of one"] = float(mine != yours)
    found["label differs"] = float(bool(old.labels) and bool(new.labels) and not old.labels & new.labels)
    found["label shared"] = float(bool(old.labels & new.labels))
    found["negation differs"] = float(old.is_negative != new.is_negative)
    found["direction differs"] = float(
        bool(old.directions and new.directions and not old.directions & new.directions)
    )
    found["opposite"] = float(old.is_opposite(new))
    differs = found["number differs"] or found["date differs"] or found["identifier differs"]
    found["slots agree"] = float(not differs and bool(shared_numbers or shared or found["date shared"]))
    found["numbers agree"] = float(
        bool(old.numbers) and shared_numbers == max(len(old.numbers), len(new.numbers))
    )
    return found


def _common(old: frozenset[tuple[str, str]], new: frozenset[tuple[str, str]]) -> int:
    return sum(any(a[0] == b[0] and (a[1] == b[1] or not a[1] or not b[1]) for b in new) for a in old)


def _lacks(old: frozenset[tuple[str, str]], new: frozenset[tuple[str, str]]) -> bool:
    return bool(old and new) and len(old) != len(new)


def _units_differ(old: Slots, new: Slots) -> bool:
    ours, theirs = ({unit for _, unit in each.numbers if unit} for each in (old, new))
    return differ(ours, theirs)


def _exchanged(pair: Pair) -> Iterator[str]:
    """Name the kinds of exchanges of a pair, and whether they are at the head or the tail."""
    if not pair.exchanges:
        yield "same words"
        return
    replaced = pair.replaced
    if not replaced:
        where = "head" if any(each.is_at_head for each in pair.exchanges) else "tail"
        yield f"{'more' if any(each.yours for each in pair.exchanges) else 'fewer'} words, {where}"
        return
    where = "head" if any(each.is_at_head for each in replaced) else "tail"
    what = _what(replaced)
    yield f"{what} exchanged, {where}"
    yield {1: "one exchanged", 2: "two exchanged"}.get(len(replaced), "many exchanged")
    if len(replaced) == 1:
        yield f"one {what} exchanged, {where}"
    if len(pair.exchanges) > len(replaced):
        yield "words beside"


def _what(replaced: Sequence[Exchange]) -> str:
    if any(each.is_of_codes for each in replaced):
        return "code"
    return "number" if any(each.is_of_numbers for each in replaced) else "word"


def nearness(cosine: float, *, unrelated: float, same: float) -> float:
    """Scale a cosine to [0, 1]: 0 up to `unrelated`, 0.5 at `same`, 1 for equal texts."""
    if cosine <= same:
        return max(0.0, 0.5 * (cosine - unrelated) / (same - unrelated))
    return 0.5 + 0.5 * min(1.0, (cosine - same) / (1 - same))
