"""The versions of a record in time: since when each was valid, when it was recorded, what decided it.

Two times are told apart. *Valid* time is when something was so, as it was said: `created_at` of a write may
lie in the past. *Recorded* time is when the store learned of it, by the audit log. `as_of` asks for the
former.

Source: R. T. Snodgrass, Developing Time-Oriented Database Applications in SQL (2000), on bitemporal tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from supervisor_memory.model.records import Record, Status

__all__ = ["Version", "begins_at", "lifetimes", "read_from_message", "valid_at"]

V = TypeVar("V", bound=Record)
_NEVER: Final[frozenset[Status]] = frozenset({"deleted", "pending", "quarantined"})


@dataclass(frozen=True, slots=True)
class Version(Record):
    """A record as it was in one of its versions.

    Args:
        recorded_at: When the store learned of it, in seconds since 1970; None: this machine's log does not
            know, for another instance wrote it.
        op, reason, actor: What decided it, by what rule, and on whose behalf, as the audit log has them;
            "" where it does not know.
        said_in: The session in which that was said, while `source` is that of the first version; as the log
            names it where the message was not kept. None: in none, or it was
            changed by hand.
    """

    recorded_at: float | None = None
    op: str = ""
    reason: str = ""
    actor: str = ""
    said_in: str | None = None

    @classmethod
    def of(cls, record: Record, decided: Mapping[str, Any] | None, sessions: Mapping[str, str]) -> "Version":
        """A version as stored, with the event of the audit log that decided it.

        Args:
            sessions: What the log calls a session → its id, as far as that is known.
        """
        values = {name: getattr(record, name) for name in Record.__slots__}
        if decided is None:
            return cls(**values)
        was_said = decided["op"] == "approve" or "layer" in decided["detail"]  # and was not put in by hand
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
    """The version that was read from the message which the present one points to.

    Args:
        versions: All of one record, oldest first.
    """
    return next(version for version in versions if version.ref_id == versions[-1].ref_id)


def begins_at(version: Record) -> float:
    """Since when a version holds, in seconds since 1970: what it says, or that it says nothing any more."""
    since = version.valid_from if version.status == "active" else version.valid_to
    return version.updated_at if since is None else since


def lifetimes(versions: Sequence[Record]) -> list[Record]:
    """The versions with the time each was valid: `valid_to` is when the next one began.

    Args:
        versions: All of one record, oldest first.
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
    """The version that was valid at a moment; None where there was none.

    What is deleted, rejected, quarantined or waits for review by now was valid at no time: asking for the
    past does not bring it back.

    Args:
        versions: All of one record, oldest first.
    """
    if versions[-1].status in _NEVER:
        return None
    begun = [version for version in lifetimes(versions) if begins_at(version) <= when]
    if not begun or begun[-1].status != "active" or begun[-1].has_expired(when):
        return None
    return begun[-1]
