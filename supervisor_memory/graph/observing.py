"""Around each tool call of a sub-agent: what the tool answered is an event, see `upkeep/queue.py`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from supervisor_memory.graph.acting import acting_scope
from supervisor_memory.graph.deep import WRAPPED
from supervisor_memory.graph.hooks import Hooks
from supervisor_memory.graph.inside import with_tools
from supervisor_memory.records import Scope

__all__ = ["Observing", "Result", "Wrapping", "wrapped"]

Result: TypeAlias = ToolMessage | Command[Any]


class Wrapping(Protocol):
    """What is put around tool calls."""

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result: ...

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class Observing:
    """Wraps the tool calls of whoever acts, and changes nothing about them."""

    hooks: Hooks

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        result = execute(request)
        scope = acting_scope()
        if isinstance(scope, Scope) and self.hooks.takes(request.tool_call):
            self.hooks.observe(request.tool_call, result, scope, request.state)
        return result

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        result = await execute(request)
        scope = acting_scope()
        if isinstance(scope, Scope) and self.hooks.takes(request.tool_call):
            off_loop = self.hooks.memory.bridge.run
            await off_loop(self.hooks.observe, request.tool_call, result, scope, request.state)
        return result

    def installed(self, node: ToolNode) -> ToolNode:
        """A copy of a tool node whose calls are wrapped."""
        return node if getattr(node, WRAPPED, False) else wrapped(node, self)


def wrapped(node: ToolNode, calls: Wrapping) -> ToolNode:
    """A copy of a tool node with this around its calls, inside what the host has put around them."""
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
