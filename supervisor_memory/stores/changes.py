"""Checks a change against the present record, and makes the record to store. The same for every backend."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.errors import BadVector, Conflict, InvalidContent, RecordNotFound
from supervisor_memory.model.records import Namespace, Record, content_hash
from supervisor_memory.stores.protocol import Change

Vector: TypeAlias = npt.NDArray[np.float32]
Place: TypeAlias = tuple[str, Namespace, str, str]
"""A wording, or a subject and attribute: at most one active record of a namespace may hold each.

"content_hash" or "attribute", the namespace, the hash or the subject, "" or the attribute.
"""

_SMALLEST_NORM = 1e-9
_UNIT_TOLERANCE = 1e-3


def in_order_of_application(changes: Sequence[Change]) -> Sequence[tuple[int, Change]]:
    """The changes with their positions, deactivations first, so that others can take the places."""
    return sorted(enumerate(changes), key=lambda item: item[1].record.status == "active")


def as_stored(
    change: Change, current: Record | None, *, read: Callable[[str], Record] | None = None
) -> tuple[Record, str]:
    """The record to store, and its JSON: with its version, wording hash and source, and with plain values.

    A change that brings a vector or links to messages, and nothing else, makes no new version.

    Args:
        read: Makes a record from its JSON; None: nobody keeps what was read before.

    Raises:
        Conflict: the record should be new and exists, or has changed since it was read.
        RecordNotFound: the record should exist and does not, or belongs to another user.
        InvalidContent: its values cannot be stored.
    """
    _check_expectation(change, current)
    if current is None:
        return _plain(change.record, read or _read, version=1)
    keeps_source = change.changes_source or change.record.source == current.source
    asked = change.record if keeps_source else replace(change.record, source=current.source)
    record, text = _plain(asked, read or _read)
    version = current.version + (not is_no_new_version(change, current))
    if version == record.version:
        return record, text
    record = replace(record, version=version)
    return record, record.to_json()


def is_no_new_version(change: Change, current: Record) -> bool:
    """Whether a change brings a vector or links to messages, and leaves the record unchanged otherwise."""
    record, brings_vector = change.record, change.record.vector is not None
    names = ["version", "source", "content_hash", "joined_ref_ids", "former_ref_ids"]
    names += ["embedder"] if brings_vector else []
    same = {name: getattr(current, name) for name in names}
    is_linked = record.ref_ids != current.ref_ids
    return (brings_vector or is_linked) and replace(record, **same) == current


def _check_expectation(change: Change, current: Record | None) -> None:
    record_id = change.record.id
    if change.expects is None:
        if current is not None:
            raise clash("id", record_id, record_id)
        return
    if current is None or current.user_id != change.record.user_id:
        told = f"there is no record {record_id} to change; it may have been erased"
        raise RecordNotFound(told, record_id=record_id)
    if current.version != change.expects:
        told = f"is at version {current.version}, not {change.expects}; read it again and decide again"
        ids = {"record_id": record_id, "change_id": record_id}
        versions = {"expected": change.expects, "found": current.version}
        raise Conflict(f"record {record_id} {told}", what="version", **ids, **versions)


def clash(what: str, record_id: str, change_id: str) -> Conflict:
    """The error for an id or a place that is taken. `what` is "id", "content_hash" or "attribute"."""
    reason = {
        "id": "already exists; update it instead",
        "content_hash": "is active with the same wording; merge with it",
        "attribute": "is active for the same subject and attribute; supersede it",
    }[what]
    return Conflict(f"record {record_id} {reason}", what=what, record_id=record_id, change_id=change_id)


def latest_first(records: Iterable[Record], *, limit: int, offset: int = 0) -> Sequence[Record]:
    """A page of records, most recently updated first; equally recent ones by falling id."""
    found = sorted(records, key=lambda record: (record.updated_at, record.id), reverse=True)
    return tuple(found[max(0, offset) :][: max(0, limit)])


def places(record: Record) -> Iterator[Place]:
    """The places a record takes in its namespace; none unless it is active and not verbatim."""
    if record.status != "active" or record.layer == "history":
        return
    yield "content_hash", record.namespace, record.content_hash, ""
    if record.subject is not None and record.attribute is not None:
        yield "attribute", record.namespace, record.subject, record.attribute


def plain(record: Record) -> Record:
    """A copy with values as JSON has them, shared with nobody, and with the hash of its wording.

    Raises:
        InvalidContent: it holds values that JSON cannot, lone surrogates, or a time that is no number.
    """
    return _plain(record, _read)[0]


def _plain(record: Record, read: Callable[[str], Record], **changed: object) -> tuple[Record, str]:
    """A copy with some values changed, and its JSON."""
    try:
        text = record.to_json(content_hash=content_hash(record.content), **changed)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidContent(
            f"record {record.id} cannot be stored as JSON ({error}); keep to text, numbers, lists and "
            "dictionaries in its metadata",
            record_id=record.id,
        ) from error
    times = (record.created_at, record.updated_at, record.valid_from, record.valid_to, record.expires_at)
    if not all(math.isfinite(time) for time in times if time is not None):
        told = f"record {record.id} holds a time that is no number; pass seconds since 1970"
        raise InvalidContent(told, record_id=record.id)
    known = read(text)
    return known, text if _has_texts_as_keys(record.metadata) else known.to_json()


def _has_texts_as_keys(value: object) -> bool:
    """Whether all keys in a value are texts; the keys 1 and "1" would become equal in JSON."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_texts_as_keys(each) for key, each in value.items())
    return not isinstance(value, (list, tuple)) or all(map(_has_texts_as_keys, value))


def _read(text: str) -> Record:
    return Record.from_dict(json.loads(text))


def vector_to_store(record: Record) -> Vector | None:
    """The vector of an incoming record as float32 of unit length; None when the record brings none.

    Raises:
        BadVector: the vector is no row of finite numbers, zero, or without the name of its embedder.
    """
    if record.vector is None:
        return None
    what = f"the vector of record {record.id}"
    if record.embedder is None:
        raise BadVector(
            f"{what} comes without the name of its embedder, so it could be compared with nothing; "
            "set `embedder`",
            record_id=record.id,
        )
    return unit(record.vector, what=what)


def as_bytes(vector: npt.ArrayLike) -> bytes:
    """A vector as stores keep it: float32, little-endian."""
    return np.asarray(vector, dtype="<f4").tobytes()


def from_bytes(numbers: bytes) -> Vector:
    return np.frombuffer(numbers, dtype="<f4").astype(np.float32)


def as_text(vector: npt.ArrayLike) -> str:
    """A vector in base64, for JSON."""
    return base64.b64encode(as_bytes(vector)).decode()


def from_text(text: str) -> Vector:
    """The vector in a text; raises ValueError where it holds none."""
    return from_bytes(base64.b64decode(text, validate=True))


def unit(vector: npt.ArrayLike, *, what: str) -> Vector:
    """The vector as float32 of unit length. `what` names it in the error.

    Raises:
        BadVector: the vector is no row of finite numbers, or zero.
    """
    numbers = np.ascontiguousarray(vector, dtype=np.float32)
    norm = math.nan
    if numbers.ndim == 1:
        if abs(math.sqrt(numbers.dot(numbers)) - 1.0) < _UNIT_TOLERANCE:
            return numbers
        exact = numbers.astype(np.float64)
        norm = math.sqrt(float(np.dot(exact, exact)))
    if not math.isfinite(norm) or norm < _SMALLEST_NORM:
        raise BadVector(
            f"{what} is not a row of finite numbers, or is zero (shape {numbers.shape}); "
            "look at the embedder it came from",
            shape=numbers.shape,
        )
    return numbers / np.float32(norm)
