"""Adds neighbours of the first hits: facts about the person that a hit names, or the job that fills its
table.

A question of two steps ("whom do I call when the cockpit is stale?") resembles the first fact of its chain
and little of the last. So where a hit names something that the question does not, the last places go to the
records that name it too (`signals/walk.py`); docs/relations.md shows what it finds, and what it costs.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import ceil

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Hit, Seed
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.rank import is_shown_in, parts_at, weighted
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.lessons.lesson import GUIDELINE

PLACES = 0.3
"""The share of the places that neighbours may take, the last ones."""
FIRST = 3
"""Hits whose neighbours are looked for; as many stay whatever is added."""
_FURTHER = 0.9
"""What each further neighbour of the same hit counts beside the one before: so several hits are followed."""
FOUND_AS = "joined"


def add_joined(plan: Recalling, view: ReadStore) -> Recalling:
    """Give the last places to neighbours of the first hits, if the path to them is relevant enough.

    Facts by themselves lead to facts by themselves: what was said is understood by the words around it, and
    `rank` has read these. A neighbour's relevance is that of the hit it was reached from, less what the way
    leaves open; the threshold of a note reads it, and its score is never above that of the hits before it.
    """
    turn, settings = plan.turn, view.settings
    if plan.query is None or not plan.query.text:
        return plan
    usual = settings.top_k if turn.purpose == "hits" else settings.max_notes
    most = usual if turn.limit is None else turn.limit
    places = ceil(PLACES * (most or max(settings.top_k, len(plan.hits))))
    places = places if most is None else min(places, most - FIRST)
    if places < 1:
        return plan
    least = max(least_relevance(turn, settings), settings.min_score)
    relevant = [hit for hit in plan.hits if hit.parts.get("relevance", 0.0) >= least]
    best = sorted(relevant, key=lambda hit: -hit.score)[:FIRST]
    if most is not None and len(plan.hits) >= most:  # a place is taken from a hit that is less relevant
        least = max(least, min(hit.parts.get("relevance", 0.0) for hit in plan.hits.items[most - places :]))
    seeds = [
        Seed(hit.record.content, hit.parts["relevance"], hit.record.id)
        for hit in best
        if not hit.record.is_said and hit.found is None and hit.parts["relevance"] > least
    ]
    if not seeds:
        return plan
    stay = plan.hits.items[: None if most is None else most - places]  # whatever is added
    begun = {seed.record_id for seed in seeds}
    seeds += [Seed("", 0.0, hit.record.id) for hit in stay if hit.record.id not in begun]
    among = (hit.record for hit in chain(plan.hits, (each.hit for each in plan.dropped)))
    limit = places + len(plan.hits) - len(stay)
    near = view.related(seeds, plan.query, limit=limit, least=least, among=among)
    if turn.explain:
        plan = replace(plan, hits=replace(plan.hits, notes=(*plan.hits.notes, *near.notes)))
    says = is_shown_in(turn.messages)
    is_note = turn.purpose == "note"  # guidelines stand in it for whose tool they are about, and nobody else
    reached = (
        hit
        for hit in _in_turn(near)
        if not says(hit.record) and not (is_note and hit.record.attribute == GUIDELINE)
    )
    own, added = _chosen(plan.hits.items, reached, places, most)
    return _with(plan, own, added, view) if added else plan


def _in_turn(near: Iterable[Hit]) -> Sequence[Hit]:
    """Neighbours in the order in which they get places.

    Args:
        near: Best first.
    """
    of_hit = Counter[str | None]()
    counts = dict[str, float]()
    for hit in near:
        first = hit.path[0].record_id if hit.path else None
        counts[hit.record.id] = hit.parts["walk"] * _FURTHER ** of_hit[first]
        of_hit[first] += 1
    return sorted(near, key=lambda hit: -counts[hit.record.id])


def _chosen(
    own: Sequence[Hit], reached: Iterable[Hit], places: int, most: int | None
) -> tuple[Sequence[Hit], Sequence[Hit]]:
    """The hits that stay, and the neighbours that come behind them.

    Where all places are taken a neighbour gets that of the last hit that is no better neighbour itself, if
    its way is more relevant than that.
    """
    kept, known = list(own), {hit.record.id for hit in own}
    added: list[Hit] = []
    leads_to: set[str] = set()
    for hit in reached:
        if hit.record.id in known:
            leads_to.add(hit.record.id)
            continue
        if most is not None and len(kept) + len(added) >= most:
            last = next((h for h in reversed(kept[most - places :]) if h.record.id not in leads_to), None)
            if last is None or last.parts.get("relevance", 0.0) >= hit.parts["walk"]:
                continue
            kept.remove(last)
        added.append(hit)
        if len(added) == places:
            break
    return kept, added


def _with(plan: Recalling, own: Sequence[Hit], reached: Sequence[Hit], view: ReadStore) -> Recalling:
    """The plan with these hits, the neighbours last."""
    kept = plan.keeping(own, others="over-limit")
    ids = {hit.record.id for hit in reached}
    known = {hit.record.id: hit for hit in (*(each.hit for each in plan.dropped), *plan.hits)}
    lowest = min((hit.score for hit in kept.hits if "standing" not in hit.parts), default=1.0)
    added = [_scored(hit, known.get(hit.record.id), lowest, view) for hit in reached]
    dropped = tuple(each for each in kept.dropped if each.hit.record.id not in ids)
    return replace(kept.with_items((*kept.hits, *added)), dropped=dropped)


def _scored(hit: Hit, known: Hit | None, most: float, view: ReadStore) -> Hit:
    """Give a neighbour its score, and the parts that the search had measured."""
    worth = hit.parts["walk"]
    parts = {**(known or hit).parts, "walk": worth, "relevance": worth, "fused": worth}
    embedder = view.embedder
    if "sim" not in parts and "cosine" in parts and embedder is not None:
        parts["sim"] = embedder.calibration.relevance(parts["cosine"])
    parts |= parts_at(view.now, view.settings)(hit.record, 0)
    return replace(hit, score=min(weighted(parts, view.settings), most), parts=parts, found=FOUND_AS)
