"""Wrap a sub-agent's tool calls: each answer becomes an event, see `upkeep/queue/queue.py`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from supervisor_memory.host.hooks import Hooks
from supervisor_memory.host.run.identity import acting_scope
from supervisor_memory.host.ways_in.inside import Known, rewritten, with_tools
from supervisor_memory.model.records import Scope

Result: TypeAlias = ToolMessage | Command[Any]
R = TypeVar("R", bound=Runnable[Any, Any])
WRAPPED = "__supervisor_memory__"
"""The attribute that marks a wrapped node and names its role."""


def is_tools(runnable: Any) -> bool:
    """Whether a runnable is a tool node, wrapped or not."""
    return isinstance(runnable, ToolNode) or getattr(runnable, WRAPPED, "") == "tools"


class Wrapping(Protocol):
    """A wrapper of tool calls."""

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result: ...

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result: ...


def observed(inner: R, hooks: Hooks, *, own: "Wrapping | None" = None) -> R:
    """A copy whose tool calls become events; `own` wraps a supervisor's own tool nodes."""

    def change(part: Any) -> Any:
        if isinstance(part, ToolNode):
            return wrapped(part, own if own is not None else Observing(hooks))
        if isinstance(part, BaseTool) and own is not None:  # an agent there is a sub-agent
            return observed(part, hooks)
        return part

    return cast("R", rewritten(inner, change))


@dataclass(frozen=True)
class Observing:
    """Puts the answers of the current actor's tool calls into the queue, and changes nothing about them."""

    hooks: Hooks
    _known: Known[BaseTool] = field(default_factory=Known)

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        try:
            result = execute(self._deep(request))
        except Exception as error:
            self._tried(request, error)
            raise
        self._tried(request, result)
        scope = acting_scope()
        if isinstance(scope, Scope) and self.hooks.takes(request.tool_call):
            self._observe(request, result, scope)
        return result

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        off_loop = self.hooks.memory.bridge.run
        try:
            result = await execute(self._deep(request))
        except Exception as error:
            await off_loop(self._tried, request, error)
            raise
        scope = acting_scope()
        if isinstance(scope, Scope) and self.hooks.may_teach(request.tool_call, result, scope):
            await off_loop(self._tried, request, result)
        if isinstance(scope, Scope) and self.hooks.takes(request.tool_call):
            await off_loop(self._observe, request, result, scope)
        return result

    def _tried(self, request: ToolCallRequest, result: Result | Exception) -> None:
        scope = acting_scope()
        if isinstance(scope, Scope) and self.hooks.may_teach(request.tool_call, result, scope):
            begun = self.hooks.begun(request.state, request.runtime.config)
            self.hooks.tried(request.tool_call, result, scope, begun)

    def _observe(self, request: ToolCallRequest, result: Result, scope: Scope) -> None:
        begun = self.hooks.begun(request.state, request.runtime.config)
        self.hooks.observe(request.tool_call, result, scope, begun)

    def _deep(self, request: ToolCallRequest) -> ToolCallRequest:
        """The call with a copy of its tool in which the tool calls of agents become events too."""
        tool = request.tool
        if tool is None:
            return request
        deep = self._known.of(tool, lambda: observed(tool, self.hooks))
        return request if deep is tool else request.override(tool=deep)


def wrapped(node: ToolNode, calls: Wrapping) -> ToolNode:
    """A copy of a tool node with a wrapper around its calls, inside the host's own; once is enough."""
    if getattr(node, WRAPPED, False):
        return node
    clone = with_tools(node, dict(node.tools_by_name))
    inner, ainner = node._wrap_tool_call, node._awrap_tool_call
    clone._wrap_tool_call = calls.around
    clone._awrap_tool_call = calls.aaround
    if inner is not None:
        clone._wrap_tool_call = lambda request, execute: inner(request, lambda r: calls.around(r, execute))
    if ainner is not None:
        clone._awrap_tool_call = lambda request, execute: ainner(request, lambda r: calls.aaround(r, execute))
    elif inner is not None:
        clone._awrap_tool_call = None  # the host's wrapper is sync, and so the sync one runs
    setattr(clone, WRAPPED, "tools")
    return clone
