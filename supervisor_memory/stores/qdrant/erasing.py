"""Erases a user from Qdrant by the ids of points, waits for it, and proves it by reading again.

Tombstones are points in the collection of versions, so that a commit reads them with the places of its
records, in one request.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from qdrant_client import models

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import CorruptStore
from supervisor_memory.model.records import Record
from supervisor_memory.stores.protocol import Ids
from supervisor_memory.stores.qdrant.calls import QdrantCalls
from supervisor_memory.stores.qdrant.collection_names import CollectionNames
from supervisor_memory.stores.qdrant.points import READ, found, point_id, upsert, version_id
from supervisor_memory.stores.remote_erasing import Answers, Held, RemoteErasing, Tombstone, is_doomed

_SERVER: Final = (
    "Qdrant's files on the server: it marks points as deleted and rewrites their segments when its optimizer "
    "finds enough of them; its write-ahead log and its snapshots hold them until they are replaced",
)
_LOCAL: Final = (
    "the files of Qdrant's local mode, which is for development: deleted points stay in the free pages of "
    "its SQLite files, unless Python's SQLite is built with SECURE_DELETE",
)
_SECRET: Final = point_id("\0the secret of erasures")
_STONE: Final = ["tombstone", "erased_at", "commit", "secret", "of", "also"]
_MAJORITY: Final = models.ReadConsistencyType.MAJORITY


class QdrantErasing(RemoteErasing):
    """Erases users from the collections below a prefix."""

    def __init__(
        self, calls: QdrantCalls, names: CollectionNames, audit: AuditLog, clock: Callable[[], float]
    ) -> None:
        super().__init__(audit, clock)
        self._calls, self._names = calls, names
        self._drops = names.division == "namespace"
        if not calls.is_volatile:
            self.out_of_reach = _LOCAL if calls.is_local else _SERVER

    def places(self, ids: Ids, new: Sequence[Record] = ()) -> Sequence[models.Record]:
        """The points with these ids that say in which collection a record is; see `place_point`.

        The tombstones needed to refuse `new` records are read in the same request. Raises WasErased where one
        was said before its user was erased.
        """
        read: dict[str, models.Record] = {}

        def asking(names: Sequence[str]) -> Answers:
            asked = [*ids, *([_SECRET, *map(point_id, names)] if new else ())]
            points = self._calls.retrieve(self._names.versions, asked, payload=["collection", *_STONE])
            read.update((str(point.id), point) for point in points)
            return _answers(names, read)

        if new:
            self.refuse_erased(new, asking)
        else:
            asking([])
        return [read[each] for each in ids if each in read]

    def _all_held(self, user_id: str) -> Held:
        records: dict[str, Record] = {}
        times: dict[str, float] = {}
        versions = 0
        for name in self._collections():
            for point in self._points(name, user_id, payload=[*READ, "created_at"]):
                times[str(point.id)] = _said_at(point)
                with suppress(CorruptStore):  # it goes all the same
                    if "format" in (point.payload or {}) and (record := found(point, name).record):
                        if name == self._names.versions:
                            versions += 1
                        elif record.id not in records or records[record.id].version < record.version:
                            records[record.id] = record
        vectors = sum(record.embedder is not None for record in records.values())
        return Held([*records.values()], versions, vectors, times)

    def _make_secret(self, secret: str) -> None:
        if self._calls.retrieve(self._names.versions, [_SECRET], payload=["secret"]):
            return
        self._calls.ensure(self._names.versions, dimension=None)
        self._write([(_SECRET, {"tombstone": "secret", "secret": secret})], models.UpdateMode.INSERT_ONLY)

    def _read(self, names: Sequence[str]) -> Answers:
        asked = [_SECRET, *map(point_id, names)]
        points = self._calls.retrieve(self._names.versions, asked, payload=_STONE)
        return _answers(names, {str(point.id): point for point in points})

    def _tombstones(self) -> Mapping[str, Tombstone]:
        of_users = models.Filter(must=[_key_is("tombstone", "begun", "done")])
        payload = [*_STONE, "name"]
        points = self._calls.all(self._names.versions, of_users, payload=payload, consistency=_MAJORITY)
        return {str((point.payload or {}).get("name")): _tombstone(point) for point in points}

    def _put(self, name: str, tombstone: Tombstone) -> None:
        self._calls.ensure(self._names.versions, dimension=None)
        not_newer = models.FieldCondition(key="erased_at", range=models.Range(lte=tombstone.at))
        payload = _payload(name, tombstone)
        self._write([(point_id(name), payload)], models.UpdateMode.UPSERT, models.Filter(must=[not_newer]))

    def _close(self, name: str, tombstone: Tombstone) -> None:
        same = models.Filter(must=[_key_is("commit", tombstone.erasure)])
        payload = _payload(name, tombstone)
        self._write([(point_id(name), payload)], models.UpdateMode.UPDATE_ONLY, same)

    def _sweep(self, user_id: str, tombstone: Tombstone) -> Sequence[str]:
        removed = {name: self._remove(name, user_id, tombstone) for name in self._collections()}
        names = self._collections()
        return [
            f"{count} points of the user are still in collection {name} at {self._calls.address}"
            for name in names
            if (count := self._count_left(name, user_id, tombstone, removed.get(name, ())))
        ]

    def _remove(self, name: str, user_id: str, tombstone: Tombstone) -> Sequence[str]:
        """Remove a user's points that are to be erased; drop a collection without others. Returns the points'
        ids."""
        points = self._points(name, user_id)
        doomed = [point for point in points if _is_doomed(point, tombstone)]
        ids = [str(point.id) for point in doomed]
        if doomed and name != self._names.versions:
            said = [point for point in doomed if (point.payload or {}).get("layer") == "history"]
            marks = [(point_id(self.mark(str(each.id))), {"tombstone": "said"}) for each in said]
            self._write(marks, models.UpdateMode.INSERT_ONLY)
        if self._names.are_of(name, user_id) and self._calls.count(name, None) == len(doomed):
            self._calls.drop(name)
            return ()
        if ids:
            self._calls.remove(name, ids)
        return ids

    def _keys(self, record: Record) -> Iterable[str]:
        earlier = (version_id(record.id, number) for number in range(1, record.version))
        return point_id(record.id), *earlier

    def _count_left(self, name: str, user_id: str, tombstone: Tombstone, removed: Sequence[str]) -> int:
        """The number of points to be erased that are still there."""
        left = {str(point.id) for point in self._calls.retrieve(name, removed, payload=["created_at"])}
        if self._calls.count(name, _of_user(user_id)):
            points = self._points(name, user_id)
            left |= {str(point.id) for point in points if _is_doomed(point, tombstone)}
        return len(left)

    def mark(self, record_id: str) -> str:
        return super().mark(point_id(record_id))

    def _forget(self) -> None:
        super()._forget()
        self._calls.look_again()

    def _collections(self) -> Sequence[str]:
        """Our collections, versions last: a version is written before the record that takes its place."""
        names = self._calls.collections()
        ours = [name for name in names if self._names.hold_records(name)]
        return [*ours, *(name for name in names if name == self._names.versions)]

    def _points(
        self, name: str, user_id: str, *, payload: Sequence[str] = ("created_at", "layer")
    ) -> Sequence[models.Record]:
        return self._calls.all(name, _of_user(user_id), payload=payload, consistency=_MAJORITY)

    def _write(
        self,
        points: Iterable[tuple[str, Mapping[str, object]]],
        mode: models.UpdateMode,
        where: models.Filter | None = None,
    ) -> None:
        made = [models.PointStruct(id=each, payload=dict(payload), vector={}) for each, payload in points]
        self._calls.write(self._names.versions, [upsert([point], mode, where) for point in made])


def _of_user(user_id: str) -> models.Filter:
    return models.Filter(must=[_key_is("user", user_id)])


def _key_is(key: str, *values: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))


def _said_at(point: models.Record) -> float:
    return float((point.payload or {}).get("created_at") or 0.0)


def _is_doomed(point: models.Record, tombstone: Tombstone) -> bool:
    return is_doomed(str(point.id), _said_at(point), tombstone)


def _payload(name: str, tombstone: Tombstone) -> dict[str, object]:
    return {
        "tombstone": "done" if tombstone.user_id is None else "begun",
        "name": name,
        "erased_at": tombstone.at,
        "commit": tombstone.erasure,
        **tombstone.to_dict(),
    }


def _tombstone(point: models.Record) -> Tombstone:
    payload = point.payload or {}
    return Tombstone.from_dict(payload.get("erased_at"), payload.get("commit"), payload)


def _answers(names: Sequence[str], points: Mapping[str, models.Record]) -> Answers:
    point = points.get(_SECRET)
    secret = None if point is None else str((point.payload or {}).get("secret"))
    ids = {name: point_id(name) for name in names}
    return secret, {name: _tombstone(points[id_]) for name, id_ in ids.items() if id_ in points}
