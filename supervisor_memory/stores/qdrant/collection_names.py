"""The names of a memory's collections in Qdrant, and what a name says about the records inside.

    memory~user_profile~all-minilm-l6-v2-9f86d081884c     a family, and an embedder with its dimension
    memory~user_profile~words                             its records without a vector
    memory~user_profile~2bd806c97f0e00af~words            the same, with a collection for each namespace
    memory~versions                                       earlier versions of records, the collection of
                                                          each record, and tombstones

A name only says where to look: user and family of a record stand in its payload, and are compared there.
Both ways of dividing are read, whichever is written.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from supervisor_memory.errors import SettingsError
from supervisor_memory.model.records import Filter, Record
from supervisor_memory.stores.memory.state import StoredVector

Division: TypeAlias = Literal["family", "namespace"]
"""A collection for each family and embedder, or for each namespace and embedder."""

_END: Final = "~"
_NO_VECTOR: Final = "words"
_PREFIX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,47}\Z")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.\-]{1,96}\Z")
_BY_FAMILY: Final = 3
_BY_NAMESPACE: Final = 4


@dataclass(frozen=True, slots=True)
class CollectionNames:
    """The names below a prefix.

    Raises:
        SettingsError: the prefix cannot begin a name, or there is no such division.
    """

    prefix: str = "memory"
    division: Division = "family"

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str) or not _PREFIX.match(self.prefix):
            raise SettingsError(
                f"prefix {self.prefix!r} cannot begin the name of a collection; use up to 48 letters, "
                "digits, '_', '-' or '.', such as 'memory'",
                prefix=self.prefix,
            )
        if self.division not in ("family", "namespace"):
            told = (
                f"collections={self.division!r} is no way to divide records; choose 'family' or 'namespace'"
            )
            raise SettingsError(told, collections=self.division)

    @property
    def versions(self) -> str:
        """The collection with earlier versions, tombstones, and the places of records."""
        return f"{self.prefix}{_END}versions"

    def of(self, record: Record, vector: StoredVector | None) -> str:
        """The collection of a record with this vector."""
        vectors = _NO_VECTOR if vector is None else self.vectors(vector[0], len(vector[1]))
        where = [_family(record.family)]
        if self.division == "namespace":
            where.append(_namespace(record.user_id, record.task))
        return _END.join([self.prefix, *where, vectors])

    def vectors(self, embedder: str, dimension: int) -> str:
        """The last part of the names of collections with such vectors."""
        readable = re.sub(r"[^a-z0-9]+", "-", embedder.lower()).strip("-")[:30]
        return f"{readable}-{_digest(embedder, str(dimension))[:12]}"

    def have_vectors(self, name: str) -> bool:
        return name.rpartition(_END)[2] not in (_NO_VECTOR, "versions")

    def hold_vectors(self, name: str, embedder: str, dimension: int) -> bool:
        return name.rpartition(_END)[2] == self.vectors(embedder, dimension)

    def hold_records(self, name: str) -> bool:
        """Whether a collection is one of ours, with records in it."""
        parts = name.split(_END)
        return parts[0] == self.prefix and len(parts) in (_BY_FAMILY, _BY_NAMESPACE)

    def are_of(self, name: str, user_id: str) -> bool:
        """Whether a collection is for a namespace of this user."""
        parts = name.split(_END)
        is_one = len(parts) == _BY_NAMESPACE and parts[0] == self.prefix
        return is_one and parts[2].partition(".")[0] == _namespace(user_id, None)

    def may_hold(self, name: str, where: Filter) -> bool:
        """Whether a collection can hold matching records."""
        if not self.hold_records(name):
            return False
        _, family, *namespace, _ = name.split(_END)
        if where.families is not None:
            in_family = any(family == _family(each) for each in where.families)
        else:
            in_family = family not in map(_family, where.left_out)
        return in_family and (not namespace or _is_of(namespace[0], where))


def _family(family: str) -> str:
    return family if _PLAIN.match(family) else f"={_digest(family)[:24]}"


def _namespace(user_id: str, task: str | None) -> str:
    user = _digest(user_id)[:16]
    return user if task is None else f"{user}.{_digest(task)[:8]}"


def _is_of(namespace: str, where: Filter) -> bool:
    if where.user_id is None:
        return True
    if where.tasks is None:
        return namespace.partition(".")[0] == _namespace(where.user_id, None)
    return any(namespace == _namespace(where.user_id, task) for task in where.tasks)


def _digest(*texts: str) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
