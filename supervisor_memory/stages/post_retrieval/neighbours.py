"""Adds neighbours of the first hits: facts about the person that a hit names, or the job that fills its
table.

A question of two steps ("whom do I call when the cockpit is stale?") resembles the first fact of its chain
and little of the last. So where a hit names something that the question does not, records that name it too
(`signals/walk.py`) compete for the places behind the first hits; docs/relations.md shows what that finds, and
what it costs.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import ceil

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Hit, Hits, Seed
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.rank import is_shown_in, parts_at, weighted
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.lessons.lesson import GUIDELINE

PLACES = 0.5
"""The share of the places that neighbours may take."""
MOST = 5
"""At most so many neighbours come, and so many hits, the best, are looked at for neighbours."""
FIRST = 3
"""So many hits stay whatever is added."""
NEAREST = 0.13
"""What it counts to be the best neighbour of a hit; see `benchmarks/tune_relations.py`."""
_NEARLY = 0.9  # as relevant as the least relevant hit: a way to what may take its place
FOUND_AS = "joined"


def add_joined(plan: Recalling, view: ReadStore) -> Recalling:
    """Give places to neighbours of the first hits that are likelier steps to the answer than later hits.

    Facts by themselves lead to facts by themselves: what was said is understood by the words around it, and
    `rank` has read these. A neighbour's relevance is that of the hit it was reached from, less what the way
    leaves open; the threshold of a note reads it, and its score is never above that of the hits before it.
    """
    turn = plan.turn
    near = neighbours(plan, view)
    if turn.explain and near.notes:
        plan = replace(plan, hits=replace(plan.hits, notes=(*plan.hits.notes, *near.notes)))
    if not near:
        return plan
    says = is_shown_in(turn.messages)
    is_note = turn.purpose == "note"  # guidelines stand in it for whose tool they are about, and nobody else
    known = {hit.record.id for hit in plan.hits}
    may_come = [
        hit
        for hit in near
        if hit.record.id in known or not (says(hit.record) or (is_note and hit.record.attribute == GUIDELINE))
    ]
    places, most = _places(plan, view)
    own, added = filled(plan.hits.items, may_come, places=places, most=most)
    return _with(plan, own, added, view) if added else plan


def neighbours(plan: Recalling, view: ReadStore) -> Hits:
    """The records that the first hits lead to, best first, and hits among them that may lose their place."""
    places, most = _places(plan, view)
    if places < 1 or plan.query is None or not plan.query.text:
        return Hits()
    least = max(least_relevance(plan.turn, view.settings), view.settings.min_score)
    if most is not None and len(plan.hits) >= most:  # a place is taken from one of these
        least = max(least, _NEARLY * min(hit.parts.get("relevance", 0.0) for hit in plan.hits.items[FIRST:]))
    starts = sorted(plan.hits, key=lambda hit: -hit.score)
    seeds = [
        Seed(hit.record.content, relevance, hit.record.id)
        for hit in starts[:places]
        if (relevance := hit.parts.get("relevance", 0.0)) > least
        and not hit.record.is_said
        and hit.found is None
    ]
    if not seeds:
        return Hits()
    stay = plan.hits.items[: None if most is None else FIRST]
    begun = {seed.record_id for seed in seeds}
    seeds += [Seed("", 0.0, hit.record.id) for hit in stay if hit.record.id not in begun]
    among = (hit.record for hit in chain(plan.hits, (each.hit for each in plan.dropped)))
    limit = 2 * places + len(plan.hits) - len(stay)
    return view.related(seeds, plan.query, limit=limit, least=least, among=among)


def filled(
    own: Sequence[Hit], near: Sequence[Hit], *, places: int, most: int | None, nearest: float = NEAREST
) -> tuple[Sequence[Hit], Sequence[Hit]]:
    """The hits that stay, and the neighbours that come behind them.

    Args:
        near: Best first.
        places: For neighbours.
        most: Of both together; None: all hits stay.
        nearest: See `NEAREST`.
    """
    worths = worths_of(own, near, nearest)
    contested = {} if most is None else {hit.record.id: hit for hit in own[FIRST:] if _may_go(hit)}
    left = places if most is None else most - len(own) + len(contested)
    known = {hit.record.id for hit in own}
    reached = {hit.record.id: hit for hit in near if hit.record.id not in known}
    added: list[Hit] = []
    for id_ in sorted((*contested, *reached), key=lambda id_: -worths[id_]):
        if left and id_ in contested:
            del contested[id_]
        elif left and id_ in reached and len(added) < places:
            added.append(reached[id_])
        else:
            continue
        left -= 1
    return [hit for hit in own if hit.record.id not in contested], added


def worths_of(own: Iterable[Hit], near: Sequence[Hit], nearest: float) -> Mapping[str, float]:
    """Record id → how likely the record is a step to the answer, beside others.

    It is one by what it says, or by what it is joined to: 1 - (1 - relevance) · (1 - walk), as of two
    independent signs.
    """
    relevances = {hit.record.id: hit.parts.get("relevance", 0.0) for hit in own}
    walks = {hit.record.id: hit.parts["walk"] for hit in near}
    firsts = {_begun_at(hit): hit.record.id for hit in reversed(near)}
    worths = {
        id_: 1.0 - (1.0 - relevances.get(id_, 0.0)) * (1.0 - walks.get(id_, 0.0))
        for id_ in relevances | walks
    }
    return worths | {id_: worths[id_] + nearest for id_ in firsts.values()}


def _begun_at(hit: Hit) -> str | None:
    return hit.path[0].record_id if hit.path else None


def _may_go(hit: Hit) -> bool:
    return hit.found is None and "standing" not in hit.parts


def _places(plan: Recalling, view: ReadStore) -> tuple[int, int | None]:
    """How many places neighbours may take, and how many there are; None: as many as are needed."""
    turn, settings = plan.turn, view.settings
    usual = settings.top_k if turn.purpose == "hits" else settings.max_notes
    most = usual if turn.limit is None else turn.limit
    places = min(MOST, ceil(PLACES * (most or max(settings.top_k, len(plan.hits)))))
    return (places if most is None else min(places, most - FIRST)), most


def _with(plan: Recalling, own: Sequence[Hit], reached: Sequence[Hit], view: ReadStore) -> Recalling:
    """The plan with these hits, the neighbours last."""
    kept = plan.keeping(own, others="over-limit")
    ids = {hit.record.id for hit in reached}
    known = {hit.record.id: hit for hit in (*(each.hit for each in plan.dropped), *plan.hits)}
    lowest = min((hit.score for hit in kept.hits if "standing" not in hit.parts), default=1.0)
    scored = (_scored(hit, known.get(hit.record.id), lowest, view) for hit in reached)
    added = sorted(scored, key=lambda hit: -hit.score)
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
