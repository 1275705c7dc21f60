"""Anchors: the last row of a log at a moment, kept where writers of the log cannot change it.

The chain proves that no row was changed, taken out or put in between. It cannot show that its end was cut
off, or that the whole log was written anew. An anchor shows both, as long as it lies elsewhere.

    mac = HMAC-SHA256(key, "sm-anchor/v1" NUL, RFC 8785 JSON of {at_us, hash, log_id, seq})

Source: Crosby and Wallach, "Efficient Data Structures for Tamper-Evident Logging" (2009), for what only a
commitment that others hold can show.
"""

import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import BackendError, SettingsError


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last row of a log at a moment: its number, its hash in hex, the time in microseconds since 1970.

    `mac` is "" where there was no key to sign it with.
    """

    log_id: str
    seq: int
    hash: str
    at_us: int
    mac: str = ""

    def is_signed_with(self, key: str) -> bool:
        """Whether the anchor was signed with this key, and is unchanged since."""
        return hmac.compare_digest(self.mac, _mac(self, key))


def anchored(log: AuditLog, *, at: float, key: str | None) -> Anchor:
    """Make an anchor of the log at the moment `at`, in seconds since 1970; `key` None: it is not signed.

    Raises:
        BackendError: the log is empty or cannot be read.
    """
    rows = log.tail(1)
    if not rows:
        raise BackendError("the audit log has no rows yet, so there is nothing to anchor")
    anchor = Anchor(log.log_id, rows[0].seq, rows[0].hash.hex(), int(at * 1_000_000))
    return anchor if key is None else replace(anchor, mac=_mac(anchor, key))


def append_to(file: Path, anchor: Anchor, log: AuditLog) -> None:
    """Add an anchor to a file, as a line of JSON.

    Raises:
        SettingsError: the file would lie beside the log, where it proves nothing.
        OSError: it cannot be written.
    """
    beside = log.directory
    if beside is not None and file.absolute().resolve().is_relative_to(beside.absolute().resolve()):
        raise SettingsError(
            f"{file} lies in {beside}, beside the log: whoever can change one can change both. Name a file "
            "on another machine or volume, or one that only another account can write"
        )
    with file.open("a", encoding="utf-8") as lines:
        lines.write(_canonical(asdict(anchor)) + "\n")


def read_from(file: Path) -> Sequence[Anchor]:
    """The anchors in a file, in its order.

    Raises:
        BackendError: it holds something else, or nothing.
        OSError: it cannot be read.
    """
    anchors: list[Anchor] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            anchor = Anchor(**json.loads(line))
            bytes.fromhex(anchor.hash), int(anchor.seq), anchor.mac.encode()
        except (ValueError, TypeError, AttributeError) as error:
            raise BackendError(f"line {number} of {file} is no anchor ({error})") from error
        anchors.append(anchor)
    if not anchors:
        raise BackendError(f"{file} holds no anchor; `supervisor-memory audit anchor` writes one")
    return anchors


def _mac(anchor: Anchor, key: str) -> str:
    signed = {name: value for name, value in asdict(anchor).items() if name != "mac"}
    return hmac.digest(key.encode(), b"sm-anchor/v1\x00" + _canonical(signed).encode(), "sha256").hex()


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
