"""Turns records into points of Qdrant and back, and filters into Qdrant's. Without I/O.

A record is one point. Its payload holds the whole record as text, to the last digit, and beside it the
values that filters and conditional writes compare. `Filter.matches` defines what a filter means; a property
test compares the two.
"""

import hashlib
import json
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from qdrant_client import models

from supervisor_memory.errors import CorruptStore
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Namespace, Record, spelled
from supervisor_memory.signals.index import K1, B
from supervisor_memory.stores.changes import Place, as_text, from_text
from supervisor_memory.stores.memory.state import StoredVector
from supervisor_memory.understand.names import kin

FORMAT: Final = 1
DENSE: Final = "dense"
WORDS: Final = "words"
READ: Final = ["format", "commit", "version", "moves", "record", "moved_to", "vector"]
"""The parts of a payload that are read; the others serve filters."""
_MOVED: Final = "moved"
_NEVER_EXPIRES: Final = 1e18
_NAMES: Final = uuid.UUID("3f0d2a0e-6f0c-5c0a-9d7b-5d6c1c3b9a51")
_UUID_LENGTH: Final = 36
_USUAL_LENGTH: Final = 16.0  # terms of a record; what BM25 compares lengths with


def _keyword(*, is_tenant: bool = False) -> models.KeywordIndexParams:
    kind = models.KeywordIndexType.KEYWORD
    return models.KeywordIndexParams(type=kind, is_tenant=is_tenant, enable_hnsw=is_tenant)


_INTEGER: Final = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, enable_hnsw=False)
_NUMBER: Final = models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False)
_KEYWORDS: Final = (
    *("commit", "family", "task", "kind", "status", "layer"),
    *("session", "content_hash", "subject", "attribute", "embedder", "held", "messages", "agent"),
)
INDEXES: Final[Mapping[str, Any]] = {
    "user": _keyword(is_tenant=True),
    **{name: _keyword() for name in _KEYWORDS},
    **dict.fromkeys(("version", "moves"), _INTEGER),
    **dict.fromkeys(("created_at", "updated_at", "expires_at"), _NUMBER),
}
"""Payload key → its index, in every collection with records. Ordered scrolls need an index, too."""


INDEXES_OF_VERSIONS: Final[Mapping[str, Any]] = {
    "user": _keyword(is_tenant=True),
    **{name: _keyword() for name in ("commit", "tombstone")},
    "erased_at": _NUMBER,
}
"""Payload key → its index, in the collection of earlier versions and tombstones."""


@dataclass(frozen=True, slots=True)
class Found:
    """A point as it was read.

    `moved_to` is the collection that the record moves to. The point still has the `record` until it has
    arrived there, and None afterwards. `moves` counts the record's moves so far: of two points with the
    same record and version, more moves are later.
    """

    commit: str
    version: int
    record: Record | None
    vector: StoredVector | None = None
    moved_to: str | None = None
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """Takes the place of a record that moves to another collection."""

    moved_to: str
    has_arrived: bool = False


def point_id(record_id: str) -> str:
    """The point id of a record: the record id where it is a UUID in Qdrant's form, else a UUID from it."""
    if len(record_id) == _UUID_LENGTH:
        try:
            if str(uuid.UUID(record_id)) == record_id:
                return record_id
        except ValueError:
            pass
    return _uuid_of(record_id)


def version_id(record_id: str, version: int) -> str:
    """The point id of an earlier version, always the same, so that writing a version twice does no harm."""
    return _uuid_of(f"{record_id}\x00{version}")


def record_point(
    record: Record, vector: StoredVector | None, *, commit: str, moves: int = 0, marker: Marker | None = None
) -> models.PointStruct:
    """The point of a present record; with a marker, the point left behind by a record that moves."""
    payload = {**_written(record, commit), "moves": moves}
    if marker is None:
        vectors = {DENSE: vector[1].tolist()} if vector is not None else {}
        return models.PointStruct(
            id=point_id(record.id),
            payload={**payload, "record": record.to_json(), **_filtered_by(record)},
            vector={**vectors, **_words(record.searched_text)},
        )
    payload |= {"status": _MOVED, "moved_to": marker.moved_to}
    if not marker.has_arrived:
        payload |= {"record": record.to_json(), "vector": None if vector is None else as_text(vector[1])}
    return models.PointStruct(id=point_id(record.id), payload=payload, vector={})


def version_point(record: Record, commit: str) -> models.PointStruct:
    """The point of a record's earlier version."""
    payload = {**_written(record, commit), "record": record.to_json()}
    return models.PointStruct(id=version_id(record.id, record.version), payload=payload, vector={})


def place_point(record: Record, collection: str) -> models.PointStruct:
    """The point that names the collection of a record, to find the record by its id."""
    payload = {"collection": collection, **_said_by(record)}
    return models.PointStruct(id=point_id(record.id), payload=payload, vector={})


def found(point: models.Record | models.ScoredPoint, collection: str) -> Found:
    """Read a point. Raises CorruptStore: the point is damaged, or was not written by this library."""
    payload: Any = point.payload
    if not isinstance(payload, Mapping) or "format" not in payload:
        raise _damaged(point.id, collection, "it was not written by this library")
    if payload["format"] != FORMAT:
        why = f"it has format {payload['format']!r} and this release reads format {FORMAT}"
        raise _damaged(point.id, collection, why)
    try:
        text, moved_to = payload.get("record"), payload.get("moved_to")
        version = int(payload["version"])
        record = None if text is None else _record(text, str(point.id), version)
        if record is None and moved_to is None:
            raise ValueError("its parts are not of one record")
        vector = _vector(record, point.vector, payload.get("vector"))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise _damaged(point.id, collection, f"{type(error).__name__}: {error}") from error
    return Found(str(payload["commit"]), version, record, vector, moved_to, int(payload.get("moves", 0)))


def seen(point: models.ScoredPoint, collection: str) -> Record | None:
    """The record in a point; None: the record has moved to another collection.

    Raises:
        CorruptStore: the point is damaged, or was not written by this library.
    """
    payload: Any = point.payload
    try:
        if payload["format"] == FORMAT:
            return _record(payload["record"], str(point.id), int(payload["version"]))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        pass  # `found` says what is wrong with it
    return found(point, collection).record


def upsert(
    points: Sequence[models.PointStruct], mode: models.UpdateMode, where: models.Filter | None = None
) -> models.UpsertOperation:
    upserted = models.PointsList(points=list(points), update_mode=mode, update_filter=where)
    return models.UpsertOperation(upsert=upserted)


# Filters


def is_told_by_server(where: Filter) -> bool:
    """Whether the server alone can tell which records match.

    It cannot for tags, metadata, messages and agents: points of earlier releases lack `held`, `messages` or
    `agent`, so the server answers with all of them, and the records have to be compared here.
    """
    is_told = where.ref_ids is None and where.agent_id is None
    return is_told and not where.tags and not where.metadata


def of_records(where: Filter) -> models.Filter | None:
    """The condition on points for records that match; None: none can."""
    one = ("user_id", "session_id", "content_hash", "subject", "attribute")
    wanted: dict[str, Sequence[str] | None] = {
        name.removesuffix("_id"): None if (value := getattr(where, name)) is None else [value] for name in one
    }
    wanted |= {
        "family": where.families,
        "task": None if where.tasks is None else [_task(task) for task in where.tasks],
        "kind": where.kinds,
        "status": where.statuses,
        "layer": where.layers,
    }
    must: list[models.Condition] = [_key_in(key, each) for key, each in wanted.items() if each is not None]
    if where.since is not None or where.until is not None:
        must.append(_key_within("created_at", gte=where.since, lt=where.until))
    if where.expired_by is not None:
        must.append(_key_within("expires_at", lte=where.expired_by))
    if where.tags or where.metadata:
        must.append(_unless_untold("held", models.Filter(must=_holding(where))))
    if where.ref_ids is not None:
        must.append(_unless_untold("messages", _key_in("messages", where.ref_ids)))
    if where.agent_id is not None:
        must.append(_unless_untold("agent", _key_in("agent", [where.agent_id])))
    must_not: list[models.Condition] = [_key_in("status", [_MOVED])]
    if where.not_embedded_by is not None:
        must_not.append(_key_in("embedder", [where.not_embedded_by]))
    if where.families is None and where.left_out:
        must_not.append(_key_in("family", where.left_out))
    if any(isinstance(c, models.FieldCondition) and c.match == models.MatchAny(any=[]) for c in must):
        return None
    if where.ids is not None:
        if not where.ids:
            return None
        must.append(models.HasIdCondition(has_id=[point_id(i) for i in dict.fromkeys(where.ids)]))
    return models.Filter(must=must, must_not=must_not)


def _unless_untold(key: str, condition: models.Condition) -> models.Filter:
    """The condition, which points of earlier releases without the key fulfil, too."""
    untold = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    return models.Filter(should=[untold, condition])


def visible(where: Filter, *, now: float) -> models.Filter | None:
    """The condition on points that a search may return; None: none can."""
    condition = of_records(where)
    if condition is None or not isinstance(condition.must, list):
        return None
    must = [*condition.must, _key_in("status", ["active"]), _key_within("expires_at", gt=now)]
    return models.Filter(must=must, must_not=condition.must_not)


def holders(namespace: Namespace, wanted: Iterable[Place]) -> models.Filter:
    """The condition on points for the active records that hold any of the places `wanted`."""
    hashes: list[str] = []
    should: list[models.Condition] = []
    for what, _, value, attribute in wanted:
        if what == "content_hash":
            hashes.append(value)
        else:
            should.append(
                models.Filter(must=[_key_in("subject", [value]), _key_in("attribute", [attribute])])
            )
    if hashes:
        should.append(_key_in("content_hash", hashes))
    family, user_id, *task = namespace
    must: list[models.Condition] = [
        _key_in("user", [user_id]),
        _key_in("family", [family]),
        _key_in("task", [_task(task[0] if task else None)]),
        _key_in("status", ["active"]),
    ]
    return models.Filter(must=must, must_not=[_key_in("layer", ["history"])], should=should)


def current(version: int, commit: str) -> models.Filter:
    """The condition that a point has not changed since it was read."""
    return models.Filter(must=[_is_version(version), *of_commit(commit)])


def older(version: int, moves: int) -> models.Filter:
    """The condition that a point has an earlier version, or the same with fewer moves."""
    moved_as_often = models.Filter(must=[_is_version(version), _key_within("moves", gte=moves)])
    return models.Filter(must_not=[_key_within("version", gt=version), moved_as_often])


def of_commit(commit: str) -> list[models.Condition]:
    """The conditions that a commit was the last to write a point."""
    return [_key_in("commit", [commit])]


def updated_at(time: float) -> models.FieldCondition:
    """The condition that a record was last updated at this very moment."""
    return _key_within("updated_at", gte=time, lte=time)


def updated_before(time: float) -> models.FieldCondition:
    """The condition that a record was last updated before this moment."""
    return _key_within("updated_at", lt=time)


def also(where: models.Filter, condition: models.Condition) -> models.Filter:
    """The condition with one more that must hold."""
    must = where.must if isinstance(where.must, list) else []
    return where.model_copy(update={"must": [*must, condition]})


def _key_within(key: str, **bounds: float | None) -> models.FieldCondition:
    return models.FieldCondition(key=key, range=models.Range(**bounds))


def _is_version(version: int) -> models.FieldCondition:
    return models.FieldCondition(key="version", match=models.MatchValue(value=version))


# Words


def searched_words(asked: Sequence[str]) -> models.SparseVector:
    """The terms of a question as a sparse vector; the server weighs in how rare each term is."""
    indices = sorted({_index(each) for term in asked for each in (term, *kin(term))})
    return models.SparseVector(indices=indices, values=[1.0] * len(indices))


def _words(text: str) -> dict[str, models.SparseVector]:
    """The terms of a text as BM25 weighs them, without their rarity; {} for a text without terms."""
    held = terms(text)
    norm = K1 * (1 - B + B * len(held) / _USUAL_LENGTH)
    weights: dict[int, float] = {}
    for term, count in Counter(held).items():
        weights[_index(term)] = weights.get(_index(term), 0.0) + count * (K1 + 1) / (count + norm)
    if not weights:
        return {}
    indices = sorted(weights)
    return {WORDS: models.SparseVector(indices=indices, values=[weights[index] for index in indices])}


def _index(term: str) -> int:
    # Two terms can share a number: what is found is looked at again by its terms.
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


# Values


def _said_by(record: Record) -> dict[str, Any]:
    """The part of the payload by which the points of a user are found, for erasing."""
    return {"user": record.user_id, "created_at": float(record.created_at), "layer": record.layer}


def _written(record: Record, commit: str) -> dict[str, Any]:
    return {"format": FORMAT, "commit": commit, "version": record.version, **_said_by(record)}


def _filtered_by(record: Record) -> dict[str, Any]:
    plain = ("family", "kind", "status", "layer", "content_hash", "subject", "attribute", "embedder")
    values = {
        **{name: getattr(record, name) for name in plain},
        "task": _task(record.task),
        "session": record.source.session_id,
        "held": _filter_digests(record),
        "messages": ["", *record.linked_ids],  # never empty, to tell it from a missing one
        "agent": record.source.agent_id or "",
        "updated_at": float(record.updated_at),
        "expires_at": _NEVER_EXPIRES if record.expires_at is None else float(record.expires_at),
    }
    return {key: value for key, value in values.items() if value is not None}


def _filter_digests(record: Record) -> list[str]:
    """Digests of the record's tags and metadata, for filters; never empty, to tell it from a missing one."""
    said = ((key, spelled(value)) for key, value in record.metadata.items())
    values = (f"{key}={text}" for key, text in said if text is not None)
    return [_digest(each) for each in dict.fromkeys(["", *map(_tagged, record.tags), *values])]


def _holding(where: Filter) -> list[models.Condition]:
    """The conditions on points for records with these tags and this metadata."""
    tags: list[models.Condition] = [_key_in("held", [_digest(_tagged(tag))]) for tag in where.tags or ()]
    return tags + [
        _key_in("held", [_digest(f"{wanted.key}={text}") for text in sorted(wanted.texts)])
        for wanted in where.metadata or ()
    ]


def _tagged(tag: str) -> str:
    return f" {tag}"  # no key of metadata that can be asked for begins with a space


def _digest(text: str) -> str:
    # Short however long the value is. Should two be the same one day: the record is looked at again.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _task(task: str | None) -> str:
    return "none" if task is None else f"task {task}"


def _key_in(key: str, values: Iterable[str]) -> models.FieldCondition:
    # Lone surrogates have no UTF-8, so that no point can hold them and no request ask for them.
    texts = [value for value in values if not any("\ud800" <= c <= "\udfff" for c in value)]
    return models.FieldCondition(key=key, match=models.MatchAny(any=texts))


def _uuid_of(text: str) -> str:
    return str(uuid.uuid5(_NAMES, text.encode("utf-8", "surrogatepass").hex()))


def _record(text: str, point: str, version: int) -> Record:
    """The record in a point; equal points may give the same object."""
    read = _known if len(text) <= _LONGEST_KNOWN else _read
    return read(text, point, version)


def _read(text: str, point: str, version: int) -> Record:
    record = Record.from_dict(json.loads(text))
    if not isinstance(record.content, str) or not record.namespace:
        raise ValueError("it holds no record")
    if record.version != version:
        raise ValueError("its parts are not of one record")
    if point_id(record.id) != point != version_id(record.id, version):
        raise ValueError("it is another record's")
    return record


_LONGEST_KNOWN: Final = 2_000
_known = lru_cache(maxsize=4_096)(_read)  # the same records are found again and again


def _vector(record: Record | None, dense: Any, packed: str | None) -> StoredVector | None:
    if record is None or record.embedder is None:
        return None
    if packed is not None:
        return record.embedder, from_text(packed)
    if isinstance(dense, Mapping) and dense.get(DENSE) is not None:
        return record.embedder, np.asarray(dense[DENSE], dtype=np.float32)
    return None


def _damaged(point: object, collection: str, why: str) -> CorruptStore:
    return CorruptStore(
        f"the point {point} in collection {collection} cannot be read ({why}); it is left as it is: restore "
        "it from a snapshot, or delete it",
        collection=collection,
        point=str(point),
    )
