"""Addresses of LangGraph store items, and the namespaces of the records that hold them. Pure.

The labels (family, user) and (family, user, task) stand for the namespace of the same names. Other labels go
to namespaces that no valid name can reach.
"""

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from supervisor_memory.errors import IdentityError, InvalidName
from supervisor_memory.model.records import Filter, Namespace, check_family, check_name

Labels: TypeAlias = tuple[str, ...]
"""A namespace as LangGraph writes it."""

# Neither is a valid name: no family begins with "_", and no name with a space.
_ELSEWHERE = "_store"
_NOBODY = " store:"
_USER, _TASK = 2, 3  # how many labels name a user, and a task
_ESCAPES = {"%": "%25", ".": "%2E"}
_NOT_ESCAPED = re.compile(r"%(?!25|2E)|\.")


def label_for(user_id: str) -> str:
    """The label of a user, for a namespace such as `("memories", label_for("ada@x.com"))`.

    It is the id with "." and "%" escaped as "%2E" and "%25": LangGraph allows no "." in a label. Two users
    never have the same label, and each user has only one.

    Raises:
        MissingUser, InvalidName: it cannot be a user's id.
    """
    return _label(check_name(user_id, what="user id"))


def user_for(label: str) -> str:
    """The user id of a label, the reverse of `label_for`; raises InvalidName, MissingUser for others."""
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
        return _namespace_under(self.labels)

    @property
    def id(self) -> str:
        """The id of a record made by a put at this address. For a record that memory wrote, it is the key."""
        return _id(self.labels, self.key)

    @classmethod
    def of(cls, namespace: Namespace, record_id: str) -> "Address | None":
        """The address of a record that memory wrote; None if no labels lead to its namespace."""
        address = cls(tuple(map(_label, namespace)), record_id)
        return address if address.namespace == namespace else None

    def is_under(self, prefix: Labels) -> bool:
        return self.labels[: len(prefix)] == prefix


@lru_cache(maxsize=4096)
def _id(labels: Labels, key: str) -> str:
    return str(uuid.UUID(bytes=_digest([*labels], key)[:16], version=5))


@lru_cache(maxsize=4096)
def _namespace_under(labels: Labels) -> Namespace:
    """The namespace for records under these labels; different labels have different namespaces."""
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
    """The family and user for labels without a user, one pair for each first label."""
    return _ELSEWHERE, _NOBODY + _digest([*labels[:1]]).hex()[:32]


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def scopes(prefix: Labels) -> tuple[Filter, ...]:
    """Filters that together find every record under a prefix, and few others."""
    if not prefix:
        return Filter().everywhere()
    if (owner := _owner(prefix)) is not None:
        return (Filter(user_id=owner[1], families=(owner[0],)),)
    family, user = _root(prefix)
    elsewhere = Filter(user_id=user, families=(family,))
    if len(prefix) == 1 and (named := _family(prefix[0])) is not None:
        return elsewhere, Filter(families=(named,))
    return (elsewhere,)
