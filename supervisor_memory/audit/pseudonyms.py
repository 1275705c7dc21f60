"""The ties of rows to people and texts, which lie beside the chain and can be erased."""

import hmac
import re
import secrets
from collections.abc import Callable
from typing import Any, Final

import apsw

from supervisor_memory.audit.rows import commitment, is_code
from supervisor_memory.audit.tombstones import Tombstones
from supervisor_memory.disk.database import select
from supervisor_memory.model.records import AuditEvent

_KNOWN: Final = """SELECT subject, key, (SELECT at FROM tombstones WHERE user = ?) FROM subjects
    WHERE user_id = ?"""
_RUN: Final = re.compile("r-[0-9a-f]{16}")
SKIP: Final = "skip"
"""The operation of events that changed nothing. Such a row may come after an erasure, so it makes no new
pseudonym and no new key."""


class Pseudonyms:
    """The names of users, sessions and runs in the log, looked up once in a transaction.

    A user's name is random and kept beside the log. Names of sessions and runs are hashes with the user's
    key, so that they say nothing once the key is erased. An erased user gets a new name with the next
    record, not before: rows about refused records must not bring the name back.
    """

    def __init__(self, connection: apsw.Connection, session_key: str, tombstones: Tombstones) -> None:
        self._connection = connection
        self._tombstones = tombstones
        self._nobody = (None, session_key.encode())
        self._users: dict[str, tuple[str, bytes]] = {}
        self._erased: dict[str, float | None] = {}
        self._hashed: dict[tuple[Callable[[bytes, str], str], bytes, str], str] = {}

    def of(
        self, user_id: str | None, session_id: str | None, *, names_anew: bool = False
    ) -> tuple[str | None, str | None]:
        """The names to write. `names_anew`: whether an erased user gets a name again."""
        subject, key = self._nobody if user_id is None else self._user(user_id, names_anew=names_anew)
        return subject, None if session_id is None else self._cached(session_name, key, session_id)

    def run_of(self, user_id: str | None, run_id: str | None) -> str | None:
        """The name of a run to write, once `of` has given its user's."""
        _, key = self._nobody if user_id is None else self._users.get(user_id, self._nobody)
        return None if run_id is None else self._cached(run_pseudonym, key, run_id)

    def run_name(self, run_id: str | None) -> str | None:
        """The name of a run in `access` and `notes`; see `run_name`."""
        _, session_key = self._nobody
        return run_name(session_key, run_id)

    def _cached(self, hashing: Callable[[bytes, str], str], key: bytes, name: str) -> str:
        """The hash of a name, which most rows of a transaction share."""
        asked = hashing, key, name
        if asked not in self._hashed:
            self._hashed[asked] = hashing(key, name)
        return self._hashed[asked]

    def erased_since(self, user_id: str | None, at: float) -> bool:
        """Whether a user was erased after the moment `at`."""
        erased_at = None if user_id is None else self._erased_at(user_id)
        return erased_at is not None and at < erased_at

    def _user(self, user_id: str, *, names_anew: bool) -> tuple[str | None, bytes]:
        if user_id in self._users:
            return self._users[user_id]
        asked = self._tombstones.name(user_id), user_id
        row = self._connection.execute(_KNOWN, asked).fetchone()
        if row is not None:  # most rows of the log ask for both
            subject, key, self._erased[user_id] = row
            return self._users.setdefault(user_id, (subject, key))
        if not names_anew and self._erased_at(user_id) is not None:
            return self._nobody
        new = f"s-{secrets.token_hex(8)}", secrets.token_bytes(32)
        self._connection.execute("INSERT INTO subjects VALUES(?, ?, ?)", (user_id, *new))
        return self._users.setdefault(user_id, new)

    def _erased_at(self, user_id: str) -> float | None:
        if user_id not in self._erased:
            self._erased[user_id] = self._tombstones.erased_at(user_id)
        return self._erased[user_id]


def session_name(key: bytes, session_id: str) -> str:
    """The name of a session in the rows."""
    return hashed("t-", key, session_id.encode())


def run_pseudonym(key: bytes, run_id: str) -> str:
    """The name of a run in the chain."""
    return hashed("r-", key, b"run\x00" + run_id.encode())


def is_run_pseudonym(text: str) -> bool:
    """Whether a text has the form of a run's name in the chain."""
    return _RUN.fullmatch(text) is not None


def run_name(session_key: bytes, run_id: str | None) -> str | None:
    """The name of a run in `access` and `notes`: its id where that is a code, else a keyed hash."""
    return run_id if run_id is None or is_code(run_id) else hashed("r-", session_key, run_id.encode())


def hashed(prefix: str, key: bytes, text: bytes) -> str:
    """A short keyed hash behind a prefix that says what was hashed."""
    return prefix + hmac.digest(key, text, "sha256").hex()[:16]


def commitments(connection: apsw.Connection, event: AuditEvent, subject: str | None) -> dict[str, str | None]:
    """The keyed hashes of the texts before and after an event; a record gets its key with the first."""
    texts = {"commit_before": event.before, "commit_after": event.after}
    if event.record_id is None or not any(text is not None for text in texts.values()):
        return dict.fromkeys(texts)
    if (key := key_of(connection, event.record_id)) is None:
        if event.op == SKIP:  # its record was erased since
            return dict.fromkeys(texts)
        key = secrets.token_bytes(32)
        connection.execute("INSERT INTO record_keys VALUES(?, ?, ?)", (event.record_id, subject, key))
    return {name: None if text is None else commitment(key, text) for name, text in texts.items()}


def of_user(connection: apsw.Connection, column: str, user_id: str) -> Any:
    """The subject or the key of a user; None where the log does not know the user."""
    rows = select(connection, "subjects", f"SELECT {column} FROM subjects WHERE user_id = ?", user_id)
    return rows[0][0] if rows else None


def key_of(connection: apsw.Connection, record_id: str) -> bytes | None:
    """The key of a record's commitments; None when it has none, or the key was erased."""
    rows = select(connection, "record_keys", "SELECT key FROM record_keys WHERE record_id = ?", record_id)
    return bytes(rows[0][0]) if rows else None
