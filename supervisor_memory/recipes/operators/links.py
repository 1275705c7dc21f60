"""Links between records: kept with one of them, followed when it is found."""

from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling
from supervisor_memory.model.records import Hit, Record
from supervisor_memory.ports import ReadStore

LINKS: Final = "links"
"""The metadata key for the ids of the records that a record is linked to."""
_MOST: Final = 200


def links_of(record: Record) -> tuple[str, ...]:
    """The ids that a record is linked to; what is no list of texts counts as none."""
    told = record.metadata.get(LINKS)
    return tuple(e for e in told if isinstance(e, str)) if isinstance(told, (list, tuple)) else ()


def expand(most: int) -> Reading:
    """An operator that puts what the hits link to behind all of them, `most` records; 0: none.

    A record that is found anyway stays where it is. One that is gone, waits, or is another's, is not read.
    """

    def expanded(plan: Recalling, view: ReadStore) -> Recalling:
        found = {hit.record.id for hit in plan.hits}
        by = {id: hit for hit in reversed(plan.hits.items) for id in links_of(hit.record) if id not in found}
        if plan.query is None or not by or not most:
            return plan
        order = [id for hit in plan.hits for id in links_of(hit.record) if by.get(id) is hit]
        where = replace(plan.query.where, ids=tuple(order[:_MOST]))
        there = {r.id: r for r in view.list(where, limit=_MOST) if r.is_visible(view.now)}
        linked = [Hit(there[id], by[id].score, found="linked") for id in order if id in there]
        return replace(plan, hits=replace(plan.hits, items=(*plan.hits, *linked[:most])))

    return expanded
