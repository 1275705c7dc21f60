"""Who said the human messages of a conversation: keyed digests of the ones added by agents and tools.

A client that sends the whole conversation back does not say who said what. So the human messages that nodes
and tools add are remembered here and, if the host keeps no checkpoints, the user's too: only digests, no
text. The rows are records beside the session's messages: journalled, moved and erased with them. Their
status is `compressed`, so no search finds them.
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
    from supervisor_memory.core import Memory

__all__ = ["DIGEST", "Known", "Ledger", "plain"]

DIGEST: Status = "compressed"
_ROWS = uuid.UUID("4f3c6c2a-90c5-5b34-8d5e-9c1f0a8d7e11")
_MOST = 2000
Key: TypeAlias = Literal["id", "text", "owner"]


@dataclass(frozen=True, slots=True)
class Known:
    """The messages that were said before: their ids, their texts (`plain`), and in `others` the texts that
    agents said."""

    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def __or__(self, other: "Known") -> "Known":
        return Known(self.ids | other.ids, self.texts | other.texts, self.others | other.others)


def plain(text: str) -> str:
    """A text with white space and accents unified, which clients change when they send a text back."""
    return " ".join(unicodedata.normalize("NFC", text).split())


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads and writes the digests of one memory. Every method raises the errors of the store."""

    memory: "Memory"

    def known(self, messages: Iterable[BaseMessage], scope: Scope, *, is_history: bool = False) -> Known:
        """Which of these messages were said before, in any thread of the user.

        Args:
            is_history: Whether to look among the session messages too: one request per text without a digest.
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
        """Remember that these messages were said.

        Args:
            by: The agent or node that said them; None: the user.
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
        """Whether the session messages hold this text as the user's; then it needs no digest."""
        kept = content_hash(self.memory.services.redactor.text(text))
        where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), content_hash=kept)
        return any(row.source.source_class == "user" for row in self._listed(where, 1))

    def _listed(self, where: Filter, most: int) -> Sequence[Record]:
        seconds = self.memory.settings.search_timeout_ms / 1000
        return self.memory.bridge.within(
            seconds, functools.partial(self.memory.backend.list, where, limit=most)
        )

    def _held(self, ids: Iterable[str], scope: Scope) -> Iterator[Record]:
        """The digests with these ids, as far as they exist."""
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
    """The id of a row: the digest of its value, keyed with the user and, for an owner row, the thread.

    Other rows count in all threads of the user: a conversation may go on in another thread.
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
