"""Reads all records from Qdrant in pages, over all collections, with their versions and vectors."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from qdrant_client import models

from supervisor_memory.model.records import Filter, Record
from supervisor_memory.stores.protocol import Stored
from supervisor_memory.stores.qdrant.calls import QdrantCalls
from supervisor_memory.stores.qdrant.collection_names import CollectionNames
from supervisor_memory.stores.qdrant.points import Found, found, point_id, version_id


def stored_page(
    calls: QdrantCalls, names: CollectionNames, *, after: str | None, limit: int, user_id: str | None
) -> Sequence[Stored]:
    """The next records in order of their points; see `Moves`."""
    latest: dict[str, Found] = {}
    for name in calls.collections():
        if any(names.may_hold(name, where) for where in Filter(user_id=user_id).everywhere()):
            for point, each in islice(_records(calls, names, name, after, limit, user_id), max(0, limit)):
                before = latest.get(point)  # one that is on its way to another collection may be in both
                if before is None or (before.version, before.moves) < (each.version, each.moves):
                    latest[point] = each
    page = [latest[point] for point in sorted(latest)[: max(0, limit)]]
    earlier = histories(calls, names, [each.record for each in page if each.record is not None])
    return [
        Stored(record, tuple(earlier.get(record.id, ())), vector and vector[1])
        for record, vector in ((each.record, each.vector) for each in page)
        if record is not None
    ]


def histories(
    calls: QdrantCalls, names: CollectionNames, records: Iterable[Record]
) -> dict[str, list[Record]]:
    """Record id → the versions before the present one, oldest first."""
    asked = [version_id(each.id, number) for each in records for number in range(1, each.version)]
    history: dict[str, list[Record]] = {}
    for point in calls.retrieve(names.versions, asked):
        record = found(point, names.versions).record
        if record is not None:
            history.setdefault(record.id, []).append(record)
    return {record_id: sorted(some, key=lambda each: each.version) for record_id, some in history.items()}


def _records(  # noqa: PLR0917
    calls: QdrantCalls, names: CollectionNames, name: str, after: str | None, limit: int, user_id: str | None
) -> Iterator[tuple[str, Found]]:
    """The records of a collection by the ids of their points; also records on their way to another."""
    of_user = models.FieldCondition(key="user", match=models.MatchAny(any=[user_id or ""]))
    where = models.Filter(must=[] if user_id is None else [of_user])
    last = None if after is None else point_id(after)
    for point in calls.in_order(name, where, after=last, together=limit, vectors=names.have_vectors(name)):
        each = found(point, name)
        if each.record is not None and user_id in (None, each.record.user_id):
            yield str(point.id), each
