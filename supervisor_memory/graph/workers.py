"""Which memory tools a sub-agent carries, ours or langmem's, however deep; and how to deny them."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolNode

from supervisor_memory.bridge import Bridge
from supervisor_memory.graph.inside import parts_of, rewritten
from supervisor_memory.graph.state import TOOL_NAMES, is_memory_tool

__all__ = ["DENIAL", "denied_tools", "memory_tools_of", "undeniable"]

_DEEPEST = 14
_DENIED = "supervisor_memory_denied"
DENIAL = "MemoryAccessDenied: memory tools belong to the supervisor; answer with the notes you were given."


def memory_tools_of(runnable: Any) -> set[str]:
    """Names of the memory tools that a node's runnable can reach, without those that are denied."""
    return {name for name in _tools(runnable, {}, _DEEPEST) if is_memory_tool(name)}


def denied_tools(runnable: Any, report: Callable[[], None], bridge: Bridge) -> Any:
    """The same agent with its memory tools answering a denial. The original keeps its own.

    Args:
        report: Called whenever a denied tool is.
    """

    def deny(part: Any) -> Any:
        if isinstance(part, ToolNode) and any(is_memory_tool(name) for name in part.tools_by_name):
            # There is no public way to copy a ToolNode with other tools; its functions are bound to it.
            node = copy.copy(part)
            node._tools_by_name = {name: deny(tool) for name, tool in part.tools_by_name.items()}
            node.func, node.afunc = node._func, node._afunc
            return node
        if isinstance(part, BaseTool) and is_memory_tool(part.name):
            return _denied(part, report, bridge)
        return part

    return rewritten(runnable, deny, owners=True)


def undeniable(runnable: Any) -> set[str]:
    """The names of memory tools that `denied_tools` cannot reach, nor deny themselves as ours do."""
    bare = denied_tools(runnable, lambda: None, Bridge())
    return {name for name in memory_tools_of(bare) if name not in TOOL_NAMES}


def _denied(tool: BaseTool, report: Callable[[], None], bridge: Bridge) -> BaseTool:
    def refuse(**_arguments: Any) -> str:
        report()
        return DENIAL

    async def arefuse(**_arguments: Any) -> str:
        await bridge.run(report)
        return DENIAL

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema or {},
        func=refuse,
        coroutine=arefuse,
        metadata={**(tool.metadata or {}), _DENIED: True},
    )


def _tools(thing: Any, seen: dict[int, Any], depth: int) -> Iterator[str]:
    """The name of every tool inside a runnable."""
    if depth == 0 or id(thing) in seen:
        return
    seen[id(thing)] = thing  # held, so that no other thing gets its id
    if isinstance(thing, BaseTool):
        if not (thing.metadata or {}).get(_DENIED):
            yield thing.name
        if is_memory_tool(thing.name):
            return
    for part in parts_of(thing):
        yield from _tools(part, seen, depth - 1)
