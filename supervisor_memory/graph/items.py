"""An item of a LangGraph store as one of our records, and a record as an item. Pure functions of values.

An item has labels, a key and a JSON value; a record has a namespace, an id and a text. The labels
(family, user) and (family, user, task) are the namespace of the same names. Labels that cannot be names
go to a place that no name can reach, and every item that was put keeps its labels and its key in
`metadata["store"]`. They are believed only where they lead back to the very record that tells them.
"""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from langgraph.store.base import Item, SearchItem

from supervisor_memory.errors import ContentTooLarge, IdentityError, InvalidContent, InvalidName
from supervisor_memory.records import (
    MAX_CONTENT_BYTES,
    SESSION_FAMILY,
    Filter,
    Namespace,
    Record,
    check_content,
    check_family,
    check_name,
)

if TYPE_CHECKING:
    from supervisor_memory.records import Vector

__all__ = [
    "KEPT",
    "OURS",
    "Address",
    "Entry",
    "Labels",
    "kept",
    "label_for",
    "plain",
    "scopes",
    "text_of",
    "user_for",
]

Labels: TypeAlias = tuple[str, ...]
"""A namespace as LangGraph writes it."""

KEPT = "store"
"""Where a record's metadata keeps what makes it an item: namespace, key, value, ttl, vectors."""
OURS = "supervisor_memory"
"""Where the value of an item that memory wrote shows what else the record holds. Ignored in a put."""

# Neither can be said: a family does not begin with "_", a name not with a space.
_ELSEWHERE = "_store"
_NOBODY = " store:"
_USER, _TASK = 2, 3  # how many labels name a user, and a task
_ESCAPES = {"%": "%25", ".": "%2E"}
_NOT_ESCAPED = re.compile(r"%(?!25|2E)|\.")
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def label_for(user_id: str) -> str:
    """The label of a user, for a namespace such as `("memories", label_for("ada@x.com"))`.

    It is the id itself but for "." and "%", which become "%2E" and "%25": LangGraph allows no "." in a
    label. Two users never have the same label, and no other label means the same user.

    Raises:
        MissingUser, InvalidName: it cannot be a user's id.
    """
    return _label(check_name(user_id, what="user id"))


def user_for(label: str) -> str:
    """The user whose label it is: the reverse of `label_for`.

    Raises:
        InvalidName, MissingUser: it is no user's label.
    """
    return check_name(_name(label), what="user id")


def _label(name: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in name)


def _name(label: str) -> str:
    if _NOT_ESCAPED.search(label):
        raise InvalidName(f"{label[:40]!r} is no label of a name; make one with label_for()", value=label)
    return label.replace("%2E", ".").replace("%25", "%")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an item is: its labels and its key."""

    labels: Labels
    key: str

    @property
    def namespace(self) -> Namespace:
        """The namespace of its record."""
        return _place(self.labels)

    @property
    def id(self) -> str:
        """The id of the record that a put makes here. A record that memory wrote has its id as its key."""
        return _id(self.labels, self.key)

    def is_under(self, prefix: Labels) -> bool:
        return self.labels[: len(prefix)] == prefix


@lru_cache(maxsize=4096)
def _id(labels: Labels, key: str) -> str:
    return str(uuid.UUID(bytes=_digest([*labels], key)[:16], version=5))


@lru_cache(maxsize=4096)
def _place(labels: Labels) -> Namespace:
    """The namespace of the records of these labels; no two labels share one."""
    owner = _owner(labels)
    if owner is not None and len(labels) == _USER:
        return owner
    if owner is not None and len(labels) == _TASK and (task := _task(labels[_USER])):
        return (*owner, task)
    return (*(owner or _root(labels)), _NOBODY + _digest([*labels]).hex()[:32])


def _owner(labels: Labels) -> tuple[str, str] | None:
    """The family and the user that the first two labels name."""
    if len(labels) < _USER or (family := _family(labels[0])) is None:
        return None
    try:
        return family, user_for(labels[1])
    except IdentityError:
        return None


def _family(label: str) -> str | None:
    try:
        return check_family(_name(label))
    except IdentityError:
        return None


def _task(label: str) -> str | None:
    try:
        return check_name(_name(label), what="task")
    except IdentityError:
        return None


def _root(labels: Labels) -> tuple[str, str]:
    """Where labels go that name no user: apart by the first one."""
    return _ELSEWHERE, _NOBODY + _digest([*labels[:1]]).hex()[:32]


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def scopes(prefix: Labels) -> tuple[Filter, ...]:
    """Filters that between them let through every record under a prefix, and few others."""
    if not prefix:
        return Filter(), Filter(families=(SESSION_FAMILY,))
    if (owner := _owner(prefix)) is not None:
        return (Filter(user_id=owner[1], families=(owner[0],)),)
    family, user = _root(prefix)
    elsewhere = Filter(user_id=user, families=(family,))
    if len(prefix) == 1 and (named := _family(prefix[0])) is not None:
        return elsewhere, Filter(families=(named,))
    return (elsewhere,)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as an item. `kept` is what a put left in its metadata; empty where none did."""

    record: Record
    address: Address
    kept: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record) -> "Entry | None":
        """None: it is no item, for it has no labels that lead to it."""
        told = record.metadata.get(KEPT)
        address = _told(told) if isinstance(told, dict) else None
        if address and address.namespace == record.namespace and record.id in (address.id, address.key):
            return cls(record, address, told)
        address = Address(tuple(map(_label, record.namespace)), record.id)
        return cls(record, address, {}) if address.namespace == record.namespace else None

    @property
    def by_memory(self) -> bool:
        """Whether memory wrote it first, and not a put."""
        return self.record.id != self.address.id

    @property
    def is_as_put(self) -> bool:
        """Whether the record's text is still that of the value that was put."""
        try:
            return bool(self.kept) and text_of(self.kept["value"]) == self.record.content
        except ContentTooLarge:  # no put left that
            return False

    @property
    def ttl(self) -> float | None:
        """Minutes it lives after it was last read."""
        told = self.kept.get("ttl")
        return told if isinstance(told, float) else None

    @property
    def value(self) -> dict[str, Any]:
        """What was put, with the text that the record has now."""
        if not self.kept:
            value: dict[str, Any] = {"kind": "Memory", "content": {"content": self.record.content}}
        elif self.is_as_put:
            value = dict(self.kept["value"])
        else:
            value = _with_text(self.kept["value"], self.record.content)
        return {**value, OURS: _beside(self.record)} if self.by_memory else value

    def vectors(self, embedder: str) -> "list[Vector]":
        """The vectors of its indexed fields by this embedder."""
        told = self.kept.get("vectors")
        if not isinstance(told, dict) or told.get("embedder") != embedder or not self.is_as_put:
            return []
        try:
            return [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in told["rows"]]
        except (KeyError, TypeError, ValueError):  # no put left that
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
            "created_at": datetime.fromtimestamp(self.record.created_at, UTC),
            "updated_at": datetime.fromtimestamp(self.record.updated_at, UTC),
        }


def _told(told: Mapping[str, Any]) -> Address | None:
    """The address that metadata tell of, which anybody may have written."""
    labels, key = told.get("namespace"), told.get("key")
    if not isinstance(labels, list) or not isinstance(key, str) or not isinstance(told.get("value"), dict):
        return None
    return Address(tuple(labels), key) if all(isinstance(label, str) for label in labels) else None


def _with_text(value: Mapping[str, Any], text: str) -> dict[str, Any]:
    inner = value.get("content")
    if isinstance(inner, dict) and isinstance(inner.get("content"), str):
        return {**value, "content": {**inner, "content": text}}
    return {**value, "content": text}


def _beside(record: Record) -> dict[str, Any]:
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
    """The text of a value: its `content`, or its `content.content`, or else all of it as JSON.

    Raises:
        ContentTooLarge: it is over the limit for one record.
    """
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
    """What the metadata of a record keeps of a put.

    Args:
        ttl: Minutes; None: for ever.
        embedder, vectors: The vectors of the indexed fields, and what made them.
    """
    found: dict[str, Any] = {"namespace": list(address.labels), "key": address.key, "value": dict(value)}
    if ttl is not None:
        found["ttl"] = ttl
    if vectors:
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        found["vectors"] = {"embedder": embedder, "rows": rows}
    return found


def plain(value: object, address: Address) -> dict[str, Any]:
    """A copy of a value as JSON gives it back.

    Raises:
        InvalidContent: the value, the key or a label is nothing that JSON can hold.
        ContentTooLarge: the value is over 64 KiB.
    """
    where = f"the value of {address.key[:40]!r} in {address.labels}"
    try:
        if not isinstance(value, Mapping):
            raise TypeError(f"it is {type(value).__name__}")
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
        "".join((*address.labels, address.key)).encode()
        _check_keys(value)
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
    """JSON would make texts of other keys, and one of two that become the same."""
    if isinstance(value, Mapping):
        if other := next((key for key in value if not isinstance(key, str)), None):
            raise TypeError(f"the key {other!r} is no text")
        for each in value.values():
            _check_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_keys(each)
