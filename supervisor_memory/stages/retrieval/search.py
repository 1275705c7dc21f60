"""Fetch candidates: records that resemble the question, the user's standing wishes, and the newest
records."""

from collections.abc import Mapping, Sequence
from itertools import chain

from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.model.records import FAMILIES, Filter, Hit, Hits, Query, Record, Wanted
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.settings import Settings
from supervisor_memory.understand.statements import LEARNED_FACT, read_statements

_CANDIDATES = 20  # of each signal, at least; ranking chooses among them
_MOST = 1_000
_PROFILE = 100  # of the newest records about the user, among which the wishes are
_PINNED = Wanted.of("pinned", True)  # noqa: FBT003
_WISHED_OF_THE_USER = frozenset(("name", "format", "language", "chart", "unit", "verbosity", "decimals"))


def search_store(plan: Recalling, view: ReadStore) -> Recalling:
    """Candidates by all signals; without a threshold, also records that share nothing with the question."""
    if plan.query is None:
        return plan
    wanted = plan.turn.limit or view.settings.top_k
    limit = max(_CANDIDATES, min(4 * wanted, _MOST), wanted)
    hits = found_by(plan.query, limit=limit, view=view)
    if plan.turn.purpose == "hits" and not least_relevance(plan.turn, view.settings) and len(hits) < wanted:
        hits = _with_newest(hits, plan.query, wanted, view)
    if plan.hits.notes:
        hits = replace(hits, notes=(*plan.hits.notes, *hits.notes))
    return replace(plan, hits=hits)


def least_relevance(turn: Turn, settings: Settings) -> float:
    """The threshold of a turn, in [0, 1]."""
    return settings.min_score if turn.threshold is None else turn.threshold


def found_by(query: Query, *, limit: int, view: ReadStore) -> Hits:
    """The hits of a question and of its parts, each record once, with its best match.

    Signals are scaled within a search, so that a long part of a question would hide what answers a short one.

    Args:
        limit: Of each search.
    """
    whole, *parts = (view.search(each, limit=limit) for each in (query, *query.parts))
    if not parts:
        return whole
    found: dict[str, Hit] = {}
    for hit in chain(whole, *parts):
        known = found.get(hit.record.id)
        if known is None or known.parts.get("match", 0.0) < hit.parts.get("match", 0.0):
            found[hit.record.id] = hit
    return replace(whole, items=tuple(found.values()))


def _with_newest(hits: Hits, query: Query, wanted: int, view: ReadStore) -> Hits:
    """The hits and, up to as many as are wanted, the newest records that were not found."""
    found = {hit.record.id for hit in hits}
    others = view.list(query.where, limit=wanted + _MOST)
    missing = [Hit(r) for r in others if r.id not in found and r.is_visible(view.now)]
    return replace(hits, items=(*hits, *missing[: wanted - len(hits)]))


def add_standing(plan: Recalling, view: ReadStore) -> Recalling:
    """Add the user's standing wishes, marked `standing`: "use tables" resembles no question.

    What is pinned first, then wishes, those first that the search found nearest ("give exact times when I
    ask about meetings"), then what else is known of the user; else the newest first. They count against the
    note's limits like any other record.
    """
    most = view.settings.standing_notes
    if plan.query is None or plan.turn.purpose == "hits" or not most:
        return plan
    family = FAMILIES["user-profile"]
    if plan.hits.namespaces == 0 and family in (plan.query.where.families or (family,)):
        return plan  # the search has just looked there
    scope = plan.turn.scope
    where = Filter(scope.user_id, families=(family,), tasks=scope.tasks, kinds=("user-profile",))
    near = {hit.record.id: hit.parts.get("match", 0.0) for hit in plan.hits}
    standing = {record.id: record for record in _standing(where, most, near, view)}
    found = [
        replace(hit, parts={**hit.parts, "standing": 1.0}) if hit.record.id in standing else hit
        for hit in plan.hits
    ]
    seen = {hit.record.id for hit in found}
    added = [Hit(record, parts={"standing": 1.0}) for id_, record in standing.items() if id_ not in seen]
    return replace(plan, hits=replace(plan.hits, items=(*found, *added)))


def _standing(where: Filter, most: int, near: Mapping[str, float], view: ReadStore) -> Sequence[Record]:
    newest = view.list(where, limit=_PROFILE)
    if len(newest) == _PROFILE:  # there may be older ones, which count when they are pinned
        newest = [*view.list(replace(where, metadata=(_PINNED,)), limit=_PROFILE), *newest]
    known = {record.id: record for record in newest if record.is_visible(view.now)}
    pinned = [record for record in known.values() if record.metadata.get("pinned") is True]
    wishes = filter(_is_wish, sorted(known.values(), key=lambda record: -near.get(record.id, 0.0)))
    in_order = {record.id: record for record in chain(pinned, wishes, known.values())}
    return list(in_order.values())[:most]


_NO_WISHES = ("identity", "personal-fact", LEARNED_FACT)


def _is_wish(record: Record) -> bool:
    """Whether the user wants something ("use tables"), rather than tells something ("I live in Rome")."""
    if record.attribute is not None:
        return record.subject != "user" or record.attribute in _WISHED_OF_THE_USER
    said = read_statements(record.content).all
    return any(each.kind == "user-profile" and each.reason not in _NO_WISHES for each in said)


_SPARE = 10  # some of the newest may be past their time


def newest(plan: Recalling, view: ReadStore) -> Recalling:
    """The pinned records, marked `pinned`, then the others; both the last updated first."""
    if plan.query is None:
        return plan
    wanted, where = plan.turn.limit or view.settings.top_k, plan.query.where
    pinned = _visible(replace(where, metadata=(*(where.metadata or ()), _PINNED)), wanted, view)
    known = {record.id for record in pinned}
    others = [record for record in _visible(where, wanted + len(known), view) if record.id not in known]
    found = [Hit(record, parts={"pinned": 1.0}) for record in pinned] + [Hit(record) for record in others]
    return replace(plan, hits=Hits(tuple(found[:wanted])))


def _visible(where: Filter, most: int, view: ReadStore) -> Sequence[Record]:
    """The newest records that have not expired."""
    found: list[Record] = []
    page = most + _SPARE
    while len(found) < most:
        listed = view.list(where, limit=page)
        found += [record for record in listed if record.is_visible(view.now)]
        if len(listed) < page:
            break
        where = where.after(listed[-1])
    return found[:most]
