"""The answer to a search without a question: pinned records, then the newest."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Filter, Hit, Hits, Record, Wanted
from supervisor_memory.ports import ReadStore

__all__ = ["newest"]

_PINNED: Final = Wanted.of("pinned", True)  # noqa: FBT003
_SPARE: Final = 10  # some of the newest may be past their time


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
    start, page = 0, most + _SPARE
    while len(found) < most:
        listed = view.list(where, limit=page, offset=start)
        found += [record for record in listed if record.is_visible(view.now)]
        start += page
        if len(listed) < page:
            break
    return found[:most]
