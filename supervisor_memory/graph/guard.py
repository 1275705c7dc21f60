"""A LangGraph store whose memory namespaces only the supervisor's memory tools can use.

LangGraph hands the store of a graph to every node and every tool in it, sub-agents' tools included.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
)

from supervisor_memory.errors import MemoryAccessDenied
from supervisor_memory.graph.acting import acting_scope, caller_name, granted_scope
from supervisor_memory.records import FAMILIES, SESSION_FAMILY, AuditEvent, Scope

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["GuardedStore"]

_VERBS = {GetOp: "get", SearchOp: "search", PutOp: "put", ListNamespacesOp: "list_namespaces"}
_FAMILIES = frozenset({"memories", SESSION_FAMILY, *FAMILIES.values()})


class GuardedStore(BaseStore):
    """Passes operations on when a memory tool of the supervisor is being called, and refuses others.

    The check is made in the caller's context, for each operation of a batch, before any is passed on.
    It stops what models and well-meant tools do; it is no sandbox for code in the same process that holds the
    store behind it.

    Args:
        inner: The store to guard.
        namespaces: Prefixes to guard; None: `memories`, the families, and `*_memories`; `[()]`: all.
    """

    def __init__(
        self,
        inner: BaseStore,
        memory: "SupervisorMemory",
        *,
        namespaces: Iterable[Sequence[str]] | None = None,
    ) -> None:
        self._inner = inner
        self._memory = memory
        self._namespaces = None if namespaces is None else tuple(tuple(each) for each in namespaces)
        self.supports_ttl = inner.supports_ttl
        self.ttl_config = inner.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Pass operations on, all or none.

        Raises:
            MemoryAccessDenied: one of them touches memory, and no memory tool of the supervisor is running.
        """
        asked = list(ops)
        if denied := self._denied(asked):
            self._memory.report(denied)
            raise _error(denied, self._touched(asked))
        return self._inner.batch(asked)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The async twin of `batch`."""
        asked = list(ops)
        if denied := self._denied(asked):
            await self._memory.bridge.run(self._memory.report, denied)
            raise _error(denied, self._touched(asked))
        return await self._inner.abatch(asked)

    def _denied(self, ops: Sequence[Op]) -> AuditEvent | None:
        touched = self._touched(ops)
        if touched is None or granted_scope() is not None:
            return None
        told = acting_scope()
        scope = told if isinstance(told, Scope) else None
        verb, namespace = touched
        return AuditEvent(
            "store",
            user_id=scope.user_id if scope else None,
            outcome="denied",
            reason=f"{verb}-without-the-right",
            family=namespace[0] if namespace and namespace[0] in _FAMILIES else None,
            agent_id=caller_name(),
            session_id=scope.session_id if scope else None,
            run_id=scope.run_id if scope else None,
        )

    def _touched(self, ops: Sequence[Op]) -> tuple[str, tuple[str, ...]] | None:
        """The first operation on memory: its verb and namespace."""
        for op in ops:
            verb = _VERBS.get(type(op), type(op).__name__)
            if isinstance(op, (GetOp, PutOp)) and self._guards(op.namespace):
                return verb, op.namespace
            if isinstance(op, SearchOp) and self._overlaps(op.namespace_prefix):
                return verb, op.namespace_prefix
            if isinstance(op, ListNamespacesOp) and self._overlaps(_prefix(op)):
                return verb, _prefix(op)
        return None

    def _guards(self, namespace: Sequence[str]) -> bool:
        if self._namespaces is None:
            first = namespace[0] if namespace else ""
            return first in _FAMILIES or first.endswith("_memories") or first in self._renamed()
        return any(_fits(prefix, namespace) for prefix in self._namespaces)

    def _overlaps(self, prefix: Sequence[str]) -> bool:
        """Whether a look below this prefix would see what is guarded."""
        if self._namespaces is None:
            return not prefix or prefix[0] == "*" or self._guards(prefix)
        return any(_fits(each, prefix) or _fits(prefix, each) for each in self._namespaces)

    def _renamed(self) -> Iterable[str]:
        return self._memory.settings.namespaces.values()


def _fits(prefix: Sequence[str], namespace: Sequence[str]) -> bool:
    """Whether a namespace begins with a prefix, "*" standing for any one segment on either side."""
    if len(namespace) < len(prefix):
        return False
    return all(a == b or "*" in (a, b) for a, b in zip(prefix, namespace, strict=False))


def _prefix(op: ListNamespacesOp) -> tuple[str, ...]:
    """The prefix that a listing is limited to; empty when it is not."""
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix":
            return tuple(condition.path)
    return ()


def _error(denied: AuditEvent, touched: tuple[str, tuple[str, ...]] | None) -> MemoryAccessDenied:
    verb, namespace = touched or ("use", ())
    caller = denied.agent_id or "code outside of a memory tool"
    return MemoryAccessDenied(
        f"{caller} may not {verb} {namespace!r}: long-term memory belongs to the supervisor's memory tools. "
        "A sub-agent works with the notes it is given; the host itself uses the store that it guarded",
        caller=caller,
        verb=verb,
        namespace=namespace,
    )
