"""The versions of a record in time: valid time, recorded time, and the deciding event of each.

*Valid* time is when a statement was true: `created_at` of a write may lie in the past. *Recorded* time is
when the store learned of it, by the audit log. `as_of` asks for valid time.

Source: R. T. Snodgrass, Developing Time-Oriented Database Applications in SQL (2000), on bitemporal tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from supervisor_memory.model.records import Record, Status

V = TypeVar("V", bound=Record)
_NEVER: Final[frozenset[Status]] = frozenset({"deleted", "pending", "quarantined"})


@dataclass(frozen=True, slots=True)
class Version(Record):
    """A record in one of its versions.

    Args:
        recorded_at: When the store learned of the version, in seconds since 1970; None: another instance
            wrote it, so this machine's log does not know.
        op, reason, actor: The deciding event of the audit log: the operation, the rule and the actor; "" if
            the log does not know.
        said_in: The session in which this version was said (`source` belongs to the first version): its id
            or, if the message was not kept, the log's pseudonym. None: no session, or changed by hand.
    """

    recorded_at: float | None = None
    op: str = ""
    reason: str = ""
    actor: str = ""
    said_in: str | None = None

    @classmethod
    def of(cls, record: Record, decided: Mapping[str, Any] | None, sessions: Mapping[str, str]) -> "Version":
        """Combine a stored version with the event of the audit log that decided it.

        Args:
            sessions: The log's pseudonym of a session → its id, as far as known.
        """
        values = {name: getattr(record, name) for name in Record.__slots__}
        if decided is None:
            return cls(**values)
        was_said = decided["op"] == "approve" or "layer" in decided["detail"]  # not changed by hand
        session = decided["session"] if was_said else None
        return cls(
            **values,
            recorded_at=decided["ts_us"] / 1_000_000,
            op=decided["op"],
            reason=decided["reason"],
            actor=decided["actor"],
            said_in=session and sessions.get(session, session),
        )

    def to_dict(self) -> dict[str, Any]:
        names = ("recorded_at", "op", "reason", "actor", "said_in")
        beside = {name: getattr(self, name) for name in names}
        return {**Record.to_dict(self), **beside}


def read_from_message(versions: Sequence[V]) -> V:
    """The first version with the same `ref_id` as the present one: it was read from that message.

    Args:
        versions: All versions of a record, oldest first.
    """
    return next(version for version in versions if version.ref_id == versions[-1].ref_id)


def begins_at(version: Record) -> float:
    """The time from which a version is valid, or from which it ended the record, in seconds since 1970."""
    since = version.valid_from if version.status == "active" else version.valid_to
    return version.updated_at if since is None else since


def lifetimes(versions: Sequence[Record]) -> list[Record]:
    """Fill in when each active version was valid: `valid_to` is the beginning of the next version.

    Args:
        versions: All versions of a record, oldest first.
    """
    after = [*map(begins_at, versions[1:]), None]
    return [
        replace(
            version,
            valid_from=begins_at(version),
            valid_to=end if version.valid_to is None else version.valid_to,
        )
        if version.status == "active"
        else version
        for version, end in zip(versions, after, strict=True)
    ]


def valid_at(versions: Sequence[Record], when: float) -> Record | None:
    """The version that was valid at a moment; None if there was none.

    A record that is deleted, rejected, quarantined or pending now was valid at no time: asking for the past
    does not bring it back.

    Args:
        versions: All versions of a record, oldest first.
    """
    if versions[-1].status in _NEVER:
        return None
    begun = [version for version in lifetimes(versions) if begins_at(version) <= when]
    if not begun or begun[-1].status != "active" or begun[-1].has_expired(when):
        return None
    return begun[-1]
