"""A LangGraph store whose memory namespaces only the supervisor's memory tools can use.

LangGraph hands the store of a graph to every node and every tool in it, sub-agents' tools included.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchOp

from supervisor_memory.core import Memory
from supervisor_memory.errors import MemoryAccessDenied
from supervisor_memory.host.run.identity import acting_scope, caller_name, granted_scope
from supervisor_memory.host.store.addresses import label_for
from supervisor_memory.model.records import DIGEST_FAMILY, FAMILIES, SESSION_FAMILY, AuditEvent, Scope
from supervisor_memory.wiring.trail import event_of

_Touched: TypeAlias = tuple[str, tuple[str, ...]]  # verb and namespace
_Refusal: TypeAlias = tuple[AuditEvent, MemoryAccessDenied]  # for the audit log, and for the caller
_VERBS: dict[type, str] = {
    GetOp: "get",
    SearchOp: "search",
    PutOp: "put",
    ListNamespacesOp: "list_namespaces",
}
_FAMILIES = frozenset({"memories", SESSION_FAMILY, DIGEST_FAMILY, *FAMILIES.values()})


class GuardedStore(BaseStore):
    """Passes operations on while a memory tool of the supervisor runs, and refuses them otherwise.

    Every operation of a batch is checked in the caller's context before the first is passed on. This stops
    models and well-meant tools. It is no sandbox: code that holds the inner store can use it directly.

    Args:
        inner: The store to guard.
        namespaces: Prefixes to guard; None: `memories`, the families, and `*_memories`; `[()]`: all.
            A string is a prefix of one segment.
        per_user: Whether the second segment of a guarded namespace is a user's label; it must then be the
            run's own user.
    """

    def __init__(
        self,
        inner: BaseStore,
        memory: Memory,
        *,
        namespaces: Iterable[Sequence[str] | str] | None = None,
        per_user: bool = False,
    ) -> None:
        self._per_user = per_user
        self._inner = inner
        self._memory = memory
        self._namespaces = None if namespaces is None else tuple(_segments(each) for each in namespaces)
        self.supports_ttl = inner.supports_ttl
        self.ttl_config = inner.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Pass all operations on, or none.

        Raises:
            MemoryAccessDenied: an operation touches memory while no memory tool of the supervisor runs, or it
                touches another user's memory.
        """
        asked = list(ops)
        if refused := self._refused(asked):
            event, error = refused
            self._memory.report(event)
            raise error
        results, slipped = self._sifted(asked, self._inner.batch(asked))
        if slipped:
            self._memory.report(_event(slipped, "left-out"))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The async twin of `batch`."""
        asked = list(ops)
        if refused := self._refused(asked):
            event, error = refused
            await self._memory.bridge.run(self._memory.report, event)
            raise error
        results, slipped = self._sifted(asked, await self._inner.abatch(asked))
        if slipped:
            await self._memory.bridge.run(self._memory.report, _event(slipped, "left-out"))
        return results

    def _refused(self, ops: Sequence[Op]) -> _Refusal | None:
        """The refusal of these operations; None if they are allowed."""
        scope = granted_scope()
        if scope is None:
            touched = self._touched(ops)
            return _without_right(touched) if touched else None
        if not self._per_user:
            return None
        others = [op for op in ops if _namespace_of(op)[1:2] != (label_for(scope.user_id),)]
        touched = self._touched(others)
        return _of_others(touched) if touched else None

    def _touched(self, ops: Sequence[Op]) -> _Touched | None:
        """The first operation on memory: its verb and namespace."""
        for op in ops:
            verb = _verb(op)
            match op:
                case GetOp() | PutOp():
                    if self._guards(op.namespace):
                        return verb, tuple(op.namespace)
                case SearchOp() | ListNamespacesOp():
                    if self._overlaps(_namespace_of(op)):
                        return verb, _namespace_of(op)
                case _:  # what a later LangGraph may bring
                    return verb, ()
        return None

    def _sifted(self, ops: Sequence[Op], results: Sequence[Result]) -> tuple[list[Result], _Touched | None]:
        """Remove guarded items from the results; also returns the first operation that found any.

        A store may find items outside of the prefix asked for: SQL stores compare namespaces as text.
        """
        if granted_scope() is not None:
            return list(results), None
        kept: list[Result] = []
        slipped: _Touched | None = None
        for op, result in zip(ops, results, strict=True):
            if isinstance(op, (SearchOp, ListNamespacesOp)):
                found: Any = result
                mine: Any = [
                    each
                    for each in found
                    if not self._guards(each.namespace if isinstance(each, Item) else each)
                ]
                kept.append(mine)
                if slipped is None and len(mine) < len(found):
                    slipped = _verb(op), _namespace_of(op)
            else:
                kept.append(result)
        return kept, slipped

    def _guards(self, namespace: Sequence[str]) -> bool:
        held = _segments(namespace)
        if self._namespaces is None:
            return bool(held) and (self._is_family(held[0]) or _fits(self._backends(), held))
        return any(_fits(prefix, held) for prefix in self._namespaces)

    def _overlaps(self, prefix: Sequence[str]) -> bool:
        """Whether a search below this prefix could find guarded items."""
        held = _segments(prefix)
        if self._namespaces is None:
            ours = self._backends()
            is_family = not held or held[0] == "*" or self._is_family(held[0])
            return is_family or _fits(ours, held) or _fits(held, ours)
        return any(_fits(each, held) or _fits(held, each) for each in self._namespaces)

    def _backends(self) -> tuple[str, ...]:
        """The namespace prefix of this memory's own records, if its backend is a LangGraph store."""
        return _segments(getattr(self._memory.backend, "prefix", ())) or ("supervisor_memory",)

    def _is_family(self, name: str) -> bool:
        renamed = (each.casefold() for each in self._memory.settings.namespaces.values())
        return name in _FAMILIES or name.endswith("_memories") or name in renamed


def _event(touched: _Touched, reason: str) -> AuditEvent:
    told = acting_scope()
    scope = told if isinstance(told, Scope) else None
    verb, namespace = touched
    family = next((each for each in _segments(namespace)[:1] if each in _FAMILIES), None)
    why = f"{verb}-{reason}"
    return event_of("store", scope, outcome="denied", reason=why, caller=caller_name(), family=family)


def _verb(op: Op) -> str:
    if isinstance(op, PutOp) and op.value is None:
        return "delete"
    return _VERBS.get(type(op), type(op).__name__)


def _segments(namespace: Sequence[str] | str) -> tuple[str, ...]:
    """The segments as a store may read them: SQL stores join by dots, and some compare without case."""
    parts = (namespace,) if isinstance(namespace, str) else namespace
    return tuple(".".join(map(str, parts)).casefold().split(".")) if parts else ()


def _fits(prefix: Sequence[str], namespace: Sequence[str]) -> bool:
    """Whether a namespace begins with a prefix, "*" standing for any one segment on either side."""
    if len(namespace) < len(prefix):
        return False
    return all(a == b or "*" in (a, b) for a, b in zip(prefix, namespace, strict=False))


def _namespace_of(op: Op) -> tuple[str, ...]:
    """The namespace that an operation works in, or the prefix that it looks below."""
    match op:
        case GetOp() | PutOp():
            return tuple(op.namespace)
        case SearchOp():
            return tuple(op.namespace_prefix)
        case ListNamespacesOp():
            limits = (each.path for each in op.match_conditions or () if each.match_type == "prefix")
            return tuple(next(limits, ()))
    return ()


def _denied(message: str, **facts: Any) -> MemoryAccessDenied:
    """The error for a caller; a web server that asked the store answers it with 403.

    Starlette, and so LangGraph's server, answers every error with 500 unless it is an HTTPException.
    """
    starlette = sys.modules.get("starlette.exceptions")
    if starlette is None:
        return MemoryAccessDenied(message, **facts)
    return _as_http(starlette.HTTPException)(message, **facts)


def _as_http(http_error: type[Exception]) -> type[MemoryAccessDenied]:
    """A MemoryAccessDenied class that is also starlette's HTTPException."""

    def init(self: Any, message: str, **facts: Any) -> None:
        MemoryAccessDenied.__init__(self, message, **facts)
        self.status_code, self.detail, self.headers = 403, message, None

    named = {"__module__": MemoryAccessDenied.__module__, "__str__": MemoryAccessDenied.__str__}
    return type("MemoryAccessDenied", (MemoryAccessDenied, http_error), {**named, "__init__": init})


def _without_right(touched: _Touched) -> _Refusal:
    event, (verb, namespace) = _event(touched, "without-the-right"), touched
    caller = event.agent_id or "code outside of a memory tool"
    told = (
        f"{caller} may not {verb} {namespace!r}: long-term memory belongs to the supervisor's memory "
        "tools. A sub-agent works with the notes it is given; the host itself uses the store it guarded"
    )
    return event, _denied(told, caller=caller, verb=verb, namespace=namespace)


def _of_others(touched: _Touched) -> _Refusal:
    verb, namespace = touched
    told = (
        f"a memory tool may not {verb} {namespace!r}: its second segment is not this run's user. "
        'Give the tool a namespace with the user in it, such as ("memories", "{langgraph_user_id}")'
    )
    return _event(touched, "for-another-user"), _denied(told, verb=verb, namespace=namespace)
