"""Who and where: kinds, families, namespaces, scopes, and the names that they are made of."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import uuid_utils

from supervisor_memory.errors import InvalidName, MissingUser
from supervisor_memory.language.unseen import HIDDEN, UNSEEN

Kind: TypeAlias = Literal[
    "user-profile", "domain-facts", "task-traces", "tool-effects", "experience", "identity"
]
Layer: TypeAlias = Literal["abstract", "summary", "history"]
Status: TypeAlias = Literal["active", "pending", "stale", "compressed", "quarantined", "deleted"]
SourceClass: TypeAlias = Literal["user", "agent", "tool", "system"]
WriteStatus: TypeAlias = Literal["added", "merged", "updated", "appended", "skipped", "pending"]
Event: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "NONE"]
"""The change asked for by a statement, or by a model that read it."""
Namespace: TypeAlias = tuple[str, ...]
"""(family, user) or (family, user, task); compared by whole segments, never by prefix of the text."""
Place: TypeAlias = tuple[float, str]
"""Where a record stands in a list, which is by falling places: when it was last updated, and its id."""
KINDS: tuple[Kind, ...] = get_args(Kind)
FAMILIES: Mapping[Kind, str] = MappingProxyType({kind: kind.replace("-", "_") for kind in KINDS})
SESSION_FAMILY = "session_messages"
"""The family of verbatim messages, which notes quote. A search reads it if its name or layer is given."""
DIGEST_FAMILY = "session_digests"
"""The family of the states of sessions: name, end and digest. It is read if its name or layer is given."""
TEAM = "team:"
"""How the owner of records begins that a team shares. No user has such an id, so nobody acts as a team."""
AUTHOR = "author"
"""The metadata key of what a team shares for the user with whose data it is erased."""
PROMOTED = "promoted"
"""Metadata key of a shared record: the id of the record it is erased with."""
MAX_NAME_BYTES = 128
# Cc control, Co private use, Cn unassigned, Zl/Zp separators; what nobody sees is in `unseen.py`
_NOT_IN_NAMES = frozenset({"Cc", "Co", "Cn", "Zl", "Zp"})
_NOT_USERS = frozenset({"none", "null", "undefined", "nan"})
_FAMILY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,95}\Z")


def new_id() -> str:
    """A new record or event id: UUIDv7, so that ids sort by the time they were made."""
    return str(uuid_utils.uuid7())


def is_id(text: str) -> bool:
    """Whether a text has the form of a record's id."""
    return len(text) == 36 and text.count("-") == 4 and " " not in text  # noqa: PLR2004


def check_name(value: object, *, what: str) -> str:
    """Return `value` if it can name a user, agent, session or task without looking like another name.

    Args:
        what: The word for the error message, such as "user id".

    Raises:
        MissingUser: a user id is None or empty, or a word for nobody ("null").
        InvalidName: it has unseen characters, is not NFC, has outer spaces, or is over 128 bytes.
    """
    if not isinstance(value, str) or not value.strip():
        kind = MissingUser if what == "user id" else InvalidName
        told = f"{str(value)[:40]!r}" if isinstance(value, str) or value is None else type(value).__name__
        raise kind(f"{what} is {told}; pass a non-empty string", value=value)
    if len(value) > MAX_NAME_BYTES:
        raise InvalidName(
            f"{what} of {len(value):,} characters is over {MAX_NAME_BYTES} bytes; use a shorter one",
            size=len(value),
        )
    return _checked_name(value, what)


def _check_letters(value: str, what: str) -> None:
    """Raise InvalidName where a name has letters that nobody sees, or that could be written otherwise."""
    hidden = (UNSEEN if what == "user id" else HIDDEN).search(value)
    bad = hidden[0] if hidden else next((c for c in value if unicodedata.category(c) in _NOT_IN_NAMES), None)
    if bad is not None:
        raise InvalidName(
            f"{what} {value[:40]!r} holds {bad!r}; remove it before it reaches memory", value=value
        )
    if unicodedata.normalize("NFC", value) != value:
        raise InvalidName(
            f"{what} {value[:40]!r} is not in Unicode NFC, so it could pass for another; "
            "normalise it with unicodedata.normalize('NFC', …)",
            value=value,
        )


@lru_cache(maxsize=1_024)
def _checked_name(value: str, what: str) -> str:
    if what == "user id" and value.lower() in _NOT_USERS:
        raise MissingUser(
            f"{what} is the word {value!r}, which stands for nobody; pass a real id", value=value
        )
    if what == "user id" and value.startswith(TEAM):
        raise InvalidName(
            f"{what} {value[:40]!r} is a team's: nobody acts as a team, and `memory.review.promote` alone "
            "gives it something to read; use another id",
            value=value,
        )
    if not (value.isascii() and value.isprintable()):
        _check_letters(value, what)
    if value != value.strip():
        raise InvalidName(f"{what} {value[:40]!r} begins or ends with a space; strip it", value=value)
    if (size := len(value.encode())) > MAX_NAME_BYTES:
        raise InvalidName(f"{what} of {size} bytes is over {MAX_NAME_BYTES}; use a shorter one", size=size)
    return value


def check_family(value: str) -> str:
    """Return `value` if it can be a family: letters, digits, `_`, `-`, `.`; at most 96 characters.

    Raises:
        InvalidName: it cannot.
    """
    if not isinstance(value, str) or not _FAMILY.match(value):
        raise InvalidName(
            f"{str(value)[:40]!r} cannot be a family; use letters, digits, '_', '-' or '.', "
            f"for example one of {', '.join(FAMILIES.values())} or '<agent>_memories'",
            value=value,
        )
    return value


def family_for(
    kind: Kind, agent_id: str | None = None, prefixes: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The family of a record for which the caller names none.

    User profiles go to `user_profile`, whoever wrote them. Other records of an agent go to
    `{agent}_memories`; all others go by their kind.

    Args:
        prefixes: MEMORY_NAMESPACES: agent → family, for agents with a renamed family.
    """
    if agent_id is None or kind == "user-profile":
        return FAMILIES[kind]
    return check_family(prefixes.get(agent_id) or f"{agent_id}_memories")


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is acting. Bound from trusted run-time data, never from a model's arguments.

    `agent_id` is the sub-agent that reads a note or returned a result; None is the supervisor.
    `session_id` is LangGraph's `thread_id`. `task` adds a segment to the namespace: records of a task are
    not seen in other tasks.
    """

    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        check_name(self.user_id, what="user id")
        for name in ("agent_id", "session_id", "run_id", "task"):
            if (value := getattr(self, name)) is not None:
                check_name(value, what=name.replace("_", " "))

    @property
    def tasks(self) -> tuple[str | None, ...]:
        """The tasks with records that this scope may see: None (no task), and its own task."""
        return (None,) if self.task is None else (None, self.task)

    def namespace(self, family: str) -> Namespace:
        """The namespace of this scope in a family."""
        base = (check_family(family), self.user_id)
        return base if self.task is None else (*base, self.task)
