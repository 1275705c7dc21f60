"""The rows of the audit log and of the access log, the hash of a row, and the check of its strings."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T", str, str | None)
GENESIS: Final = bytes(32)
"""The "hash before" of the first row."""
USED: Final = "used"
"""The operation in the access log with a score for how much of a note an answer took up."""
REDACTED: Final = "redacted"
_LARGEST_INTEGER: Final = 2**53
_CODE: Final = re.compile(r"[A-Za-z0-9_.:/@+=,;<>()#%\-]{0,160}\Z")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the chain. `event` is the event in `payload`."""

    seq: int
    event_id: str
    ts_us: int
    op: str
    outcome: str
    record_id: str | None
    subject: str | None
    payload: bytes
    prev_hash: bytes
    hash: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.payload))


class Access(NamedTuple):
    """A record that was read or injected, on its way into the access log.

    `at` is in seconds since 1970; `rank` is 1 for the best hit; `score` is the hit's, in [0, 1].
    """

    op: str
    at: float
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    record_id: str | None = None
    rank: int | None = None
    score: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AccessRow:
    """A row of the access log. `subject` and `session` are pseudonyms; `score_milli` is in thousandths."""

    id: int
    ts_us: int
    subject: str | None
    op: str
    agent_id: str | None
    session: str | None
    run_id: str | None
    record_id: str | None
    rank: int | None
    score_milli: int | None
    reason: str


def row_hash(log_id: str, prev_hash: bytes, payload: bytes) -> bytes:
    """The hash a row must have. Pure, so that anybody can recompute a chain."""
    return hashlib.sha256(b"sm-audit/v1\x00" + log_id.encode() + prev_hash + payload).digest()


def commitment(key: bytes, text: str) -> str:
    """A keyed hash of a text, in hex: checkable with the record's key, meaningless without."""
    return hmac.digest(key, text.encode(), "sha256").hex()


def is_code(text: str) -> bool:
    """Whether a text is a code: short, without a space and without a letter outside ASCII."""
    return _CODE.match(text) is not None


def code(text: T) -> T | str:
    """A text that is a code; "redacted" for another."""
    return text if text is None or is_code(text) else REDACTED


def plain(detail: Mapping[str, object]) -> Iterator[tuple[str, str | int | bool | None]]:
    """The facts of an event as canonical JSON can have them: floats and large integers as texts."""
    for name, value in detail.items():
        match value:
            case None | bool():
                yield code(name), value
            case int():
                yield code(name), value if abs(value) <= _LARGEST_INTEGER else str(value)
            case float():  # two spellings of one float would be two hashes
                yield code(name), f"{value:.6g}"
            case _:
                yield code(name), code(str(value))
