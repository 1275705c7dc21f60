"""Who said what is in a thread: a keyed digest of each human message that nobody but an agent can have said.

A client that sends the whole conversation back sends it without saying who said what. So what nodes and tools
add as human messages is remembered here, and, where the host keeps no checkpoints, what the user said too.
The rows are records beside the session's messages: journalled, moved and erased with them, and found by no
search, since their status is `compressed`: of a text its digest is kept.
"""

import functools
import hashlib
import hmac
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_core.messages import BaseMessage

from supervisor_memory.flow import Remembering
from supervisor_memory.records import SESSION_FAMILY, Filter, Record, Scope, Source, Status

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["DIGEST", "Known", "Ledger"]

DIGEST: Status = "compressed"
_ROWS = uuid.UUID("4f3c6c2a-90c5-5b34-8d5e-9c1f0a8d7e11")
_MOST = 2000
Key: TypeAlias = Literal["id", "text", "owner"]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of some messages: the ids and the texts that were said before, by whomever."""

    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads and writes these rows for one memory. Every method raises what the store raises."""

    memory: "SupervisorMemory"

    def known(self, messages: Iterable[BaseMessage], scope: Scope) -> Known:
        """Which of these messages were said in this thread before."""
        rows: dict[str, tuple[Key, str]] = {}
        for message in messages:
            if message.id:
                rows[_row_id(scope, "id", message.id)] = "id", message.id
            rows[_row_id(scope, "text", message.text)] = "text", message.text
        found = [rows[id_] for id_ in self._held(rows, scope)]
        return Known(
            frozenset(value for key, value in found if key == "id"),
            frozenset(value for key, value in found if key == "text"),
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
            keys.append(("text", message.text))
        self._write(keys, scope, by)

    def name_owner(self, scope: Scope) -> None:
        """Remember that a host named this user for this thread."""
        self._write([("owner", "")], scope, None)

    def _held(self, ids: Iterable[str], scope: Scope) -> Iterator[str]:
        """Those of the rows that there are."""
        wanted = list(ids)
        memory = self.memory
        for start in range(0, len(wanted), _MOST):
            part = tuple(wanted[start : start + _MOST])
            where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), statuses=(DIGEST,), ids=part)
            seconds = memory.settings.search_timeout_ms / 1000
            rows = memory.bridge.within(
                seconds,
                functools.partial(memory.backend.list, where, limit=len(part)),
            )
            yield from (row.id for row in rows)

    def _write(self, keys: Iterable[tuple[Key, str]], scope: Scope, by: str | None) -> None:
        now = self.memory.services.clock()
        rows = {id_: _row(id_, scope, by, now) for key, value in keys if (id_ := _row_id(scope, key, value))}
        for id_ in list(self._held(rows, scope)):
            del rows[id_]
        if rows:
            self.memory.keep_digests(Remembering(scope, verbatim=tuple(rows.values())))


def _row_id(scope: Scope, key: Key, value: str) -> str:
    """The id of a row is the digest, keyed with the user and the thread."""
    thread = f"{scope.user_id}\0{scope.session_id or ''}".encode("utf-8", "backslashreplace")
    said = f"{key}\0{value}".encode("utf-8", "backslashreplace")
    return str(uuid.uuid5(_ROWS, hmac.new(thread, said, hashlib.sha256).hexdigest()))


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
