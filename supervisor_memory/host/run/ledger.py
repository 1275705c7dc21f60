"""Who said what is in a conversation: a keyed digest of each human message that only an agent can have said.

A client that sends the whole conversation back sends it without saying who said what. So what nodes and tools
add as human messages is remembered here, and, where the host keeps no checkpoints, what the user said too.
The rows are records beside the session's messages: journalled, moved and erased with them, and found by no
search, since their status is `compressed`: of a text its digest is kept.
"""

import functools
import hashlib
import hmac
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_core.messages import BaseMessage

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    Filter,
    Record,
    Scope,
    Source,
    Status,
    content_hash,
)

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["DIGEST", "Known", "Ledger", "plain"]

DIGEST: Status = "compressed"
_ROWS = uuid.UUID("4f3c6c2a-90c5-5b34-8d5e-9c1f0a8d7e11")
_MOST = 2000
Key: TypeAlias = Literal["id", "text", "owner"]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of some messages: the ids and the texts (`plain`) that were said before, by whomever, and
    the texts that agents said."""

    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def __or__(self, other: "Known") -> "Known":
        return Known(self.ids | other.ids, self.texts | other.texts, self.others | other.others)


def plain(text: str) -> str:
    """A text without what clients change as they send it back: white space, and how accents are written."""
    return " ".join(unicodedata.normalize("NFC", text).split())


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads and writes these rows for one memory. Every method raises what the store raises."""

    memory: "SupervisorMemory"

    def known(self, messages: Iterable[BaseMessage], scope: Scope, *, is_history: bool = False) -> Known:
        """Which of these messages were said before, in any thread of the user.

        Args:
            is_history: Whether the session messages are asked too, one request for each text without a row.
        """
        rows: dict[str, tuple[Key, str]] = {}
        for message in messages:
            if message.id:
                rows[_row_id(scope, "id", message.id)] = "id", message.id
            text = plain(message.text)
            rows[_row_id(scope, "text", text)] = "text", text
        found = [(*rows[row.id], row.source.agent_id) for row in self._held(rows, scope)]
        texts = frozenset(value for key, value, _ in found if key == "text")
        left = {value for key, value in rows.values() if key == "text"} - texts
        return Known(
            frozenset(value for key, value, _ in found if key == "id"),
            texts.union(text for text in left if is_history and self._is_kept(text, scope)),
            frozenset(value for key, value, by in found if key == "text" and by is not None),
        )

    def owns(self, scope: Scope) -> bool:
        """Whether a host has named this user for this thread before."""
        return bool(list(self._held([_row_id(scope, "owner", "")], scope)))

    def add(self, messages: Iterable[BaseMessage], scope: Scope, *, by: str | None) -> None:
        """Remember that these were said.

        Args:
            by: The agent, or the node, that did; None: the user.
        """
        keys: list[tuple[Key, str]] = []
        for message in messages:
            keys += [("id", message.id)] if message.id else []
            keys.append(("text", plain(message.text)))
        self._write(keys, scope, by)

    def name_owner(self, scope: Scope) -> None:
        """Remember that a host named this user for this thread."""
        self._write([("owner", "")], scope, None)

    def _is_kept(self, text: str, scope: Scope) -> bool:
        """Whether the user's words are among the session messages, where they need no digest."""
        kept = content_hash(self.memory.services.redactor.text(text))
        where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), content_hash=kept)
        return any(row.source.source_class == "user" for row in self._listed(where, 1))

    def _listed(self, where: Filter, most: int) -> Sequence[Record]:
        seconds = self.memory.settings.search_timeout_ms / 1000
        return self.memory.bridge.within(
            seconds, functools.partial(self.memory.backend.list, where, limit=most)
        )

    def _held(self, ids: Iterable[str], scope: Scope) -> Iterator[Record]:
        """Those of the rows that there are."""
        wanted = list(ids)
        for start in range(0, len(wanted), _MOST):
            part = tuple(wanted[start : start + _MOST])
            where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), statuses=(DIGEST,), ids=part)
            rows = self._listed(where, len(part))
            yield from rows

    def _write(self, keys: Iterable[tuple[Key, str]], scope: Scope, by: str | None) -> None:
        now = self.memory.services.clock()
        rows = {id_: _row(id_, scope, by, now) for key, value in keys if (id_ := _row_id(scope, key, value))}
        for row in list(self._held(rows, scope)):
            del rows[row.id]
        if rows:
            self.memory.keep_digests(Remembering(scope, verbatim=tuple(rows.values())))


def _row_id(scope: Scope, key: Key, value: str) -> str:
    """The id of a row is the digest, keyed with the user and, of who owns a thread, the thread.

    What was said is known in all threads of a user: a conversation may go on in another one.
    """
    thread = scope.session_id or "" if key == "owner" else ""
    owner = f"{scope.user_id}\0{thread}".encode("utf-8", "backslashreplace")
    said = f"{key}\0{value}".encode("utf-8", "backslashreplace")
    return str(uuid.uuid5(_ROWS, hmac.new(owner, said, hashlib.sha256).hexdigest()))


def _row(id_: str, scope: Scope, by: str | None, now: float) -> Record:
    return Record(
        id=id_,
        namespace=scope.namespace(SESSION_FAMILY),
        content=f"digest {id_}",
        kind="task-traces",
        layer="history",
        status=DIGEST,
        created_at=now,
        updated_at=now,
        source=Source("system", by, scope.session_id, scope.run_id),
    )
