"""Convert items of a LangGraph store to records, and records to items. Pure.

A record made by a put holds the item's labels and key in `metadata["store"]`. They are believed only if they
lead back to the same record, since anybody may write metadata.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from langgraph.store.base import Item, SearchItem

from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.model.arguments import DEEPEST, FIRST_MOMENT, LAST_MOMENT, check_shape
from supervisor_memory.model.records import MAX_CONTENT_BYTES, Record, check_content

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

KEPT = "store"
"""The metadata key for the parts of an item: namespace, key, value, ttl, vectors."""
OURS = "supervisor_memory"
"""The key in the value of an item written by memory for the record's other fields. Ignored in a put."""

_AROUND_VALUE: Final = 2  # levels of metadata that a value is kept in
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as an item. `kept` is the metadata left by a put; empty for a record that memory wrote."""

    record: Record
    address: Address
    kept: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record) -> "Entry | None":
        """Read a record as an item; None if no labels lead to it."""
        told = record.metadata.get(KEPT)
        if isinstance(told, dict) and (claimed := _claimed(told, record)) is not None:
            return cls(record, claimed, told)
        address = Address.of(record.namespace, record.id)
        return None if address is None else cls(record, address, {})

    @property
    def by_memory(self) -> bool:
        """Whether memory made the record, and not a put."""
        return self.record.id != self.address.id

    @property
    def is_as_put(self) -> bool:
        """Whether the record still has the text of the value that was put."""
        try:
            return bool(self.kept) and text_of(self.kept["value"]) == self.record.content
        except ContentTooLarge:  # not left by a put
            return False

    @property
    def ttl(self) -> float | None:
        """Minutes the item lives after it was last read; None: for ever."""
        told = self.kept.get("ttl")
        return told if isinstance(told, float) else None

    @property
    def value(self) -> dict[str, Any]:
        """The value that was put, with the record's present text."""
        if not self.kept:
            value: dict[str, Any] = {"kind": "Memory", "content": {"content": self.record.content}}
        elif self.is_as_put:
            value = dict(self.kept["value"])
        else:
            value = _with_text(self.kept["value"], self.record.content)
        return {**value, OURS: _facts_of(self.record)} if self.by_memory else value

    def vectors(self, embedder: str) -> "list[Vector]":
        """The vectors of the indexed fields, if this embedder made them."""
        told = self.kept.get("vectors")
        if not isinstance(told, dict) or told.get("embedder") != embedder or not self.is_as_put:
            return []
        try:
            return [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in told["rows"]]
        except (KeyError, TypeError, ValueError):  # not left by a put
            return []

    def item(self) -> Item:
        return Item(**self._fields())

    def hit(self, score: float | None) -> SearchItem:
        return SearchItem(**self._fields(), score=score)

    def _fields(self) -> dict[str, Any]:
        return {
            "namespace": self.address.labels,
            "key": self.address.key,
            "value": self.value,
            "created_at": _moment(self.record.created_at),
            "updated_at": _moment(self.record.updated_at),
        }


def _moment(seconds: float) -> datetime:
    """A record's time as a datetime, cut to the range that datetimes can hold."""
    return datetime.fromtimestamp(min(max(seconds, FIRST_MOMENT), LAST_MOMENT), UTC)


def _claimed(told: Mapping[str, Any], record: Record) -> Address | None:
    """The address claimed by metadata, which anybody may have written; None if it leads to another record."""
    labels, key = told.get("namespace"), told.get("key")
    if not isinstance(labels, list) or not isinstance(key, str) or not isinstance(told.get("value"), dict):
        return None
    if not all(isinstance(label, str) for label in labels):
        return None
    address = Address(tuple(labels), key)
    leads_back = address.namespace == record.namespace and record.id in (address.id, address.key)
    return address if leads_back else None


def _with_text(value: Mapping[str, Any], text: str) -> dict[str, Any]:
    inner = value.get("content")
    if isinstance(inner, dict) and isinstance(inner.get("content"), str):
        return {**value, "content": {**inner, "content": text}}
    return {**value, "content": text}


def _facts_of(record: Record) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "layer": record.layer,
        "tags": list(record.tags),
        "importance": record.importance,
        "source_class": record.source.source_class,
        "created_at": record.created_at,
        "version": record.version,
        "metadata": {name: value for name, value in record.metadata.items() if name != KEPT},
    }


def text_of(value: Mapping[str, Any]) -> str:
    """The text of a value: `content`, or `content.content`, or all as JSON; else ContentTooLarge."""
    inner = value.get("content")
    if isinstance(inner, dict):
        inner = inner.get("content")
    if isinstance(inner, str):
        try:
            return check_content(inner)
        except ContentTooLarge:
            raise
        except InvalidContent:  # nothing visible, or control characters: a value for all that
            pass
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return check_content(_UNSPEAKABLE.sub(" ", text))


def kept(
    address: Address,
    value: Mapping[str, Any],
    *,
    ttl: float | None = None,
    embedder: str | None = None,
    vectors: "Sequence[Vector]" = (),
) -> dict[str, Any]:
    """The metadata that a put leaves in its record.

    Args:
        ttl: Minutes; None: for ever.
        embedder, vectors: The vectors of the indexed fields, and the fingerprint of their embedder.
    """
    found: dict[str, Any] = {"namespace": list(address.labels), "key": address.key, "value": dict(value)}
    if ttl is not None:
        found["ttl"] = ttl
    if vectors:
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        found["vectors"] = {"embedder": embedder, "rows": rows}
    return found


def plain(value: object, address: Address) -> dict[str, Any]:
    """Copy a value through JSON; raises InvalidContent where JSON cannot hold it, ContentTooLarge."""
    where = f"the value of {address.key[:40]!r} in {address.labels}"
    try:
        if not isinstance(value, Mapping):
            raise TypeError(f"it is {type(value).__name__}")
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
        "".join((*address.labels, address.key)).encode()
        _check_keys(value)
        check_shape(json.loads(text), deepest=DEEPEST - _AROUND_VALUE)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidContent(
            f"{where} cannot be kept as JSON: {error}; put a dictionary of text, numbers, lists and "
            "dictionaries, with texts as keys",
            key=address.key,
        ) from error
    if size > MAX_CONTENT_BYTES:
        raise ContentTooLarge(
            f"{where} has {size:,} bytes, over the limit of {MAX_CONTENT_BYTES:,} for one item; split it, "
            "or store a file and remember its path",
            size=size,
        )
    return cast("dict[str, Any]", json.loads(text))


def _check_keys(value: object) -> None:
    """Refuse keys that are no texts: JSON would turn them into texts, and 1 and "1" into the same key."""
    if isinstance(value, Mapping):
        if other := next((key for key in value if not isinstance(key, str)), None):
            raise TypeError(f"the key {other!r} is no text")
        for each in value.values():
            _check_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_keys(each)
