"""Find the memory tools of a sub-agent, ours or langmem's, at any depth, and deny them."""

from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from langchain_core.tools import BaseTool, StructuredTool

from supervisor_memory.bridge import Bridge
from supervisor_memory.host.run.state import TOOL_NAMES, is_memory_name
from supervisor_memory.host.ways_in.inside import parts_of, rewritten

__all__ = ["DENIAL", "denied_tools", "is_allowed", "is_memory_tool", "memory_tools_of", "undeniable"]

_DEEPEST = 14
_DENIED = "supervisor_memory_denied"
DENIAL = "MemoryAccessDenied: memory tools belong to the supervisor; answer with the notes you were given."


def is_memory_tool(thing: object) -> TypeGuard[BaseTool]:
    """Whether an object is a tool for long-term memory: by its name, or because langmem made it."""
    return isinstance(thing, BaseTool) and (is_memory_name(thing.name) or _is_langmems(thing))


def is_allowed(tool: BaseTool | None) -> bool:
    """Whether a supervisor's tool may use a guarded store: ours and langmem's, whatever their names."""
    return tool is not None and (_is_from("supervisor_memory", tool) or _is_langmems(tool))


def _is_langmems(tool: BaseTool) -> bool:
    return _is_from("langmem", tool)


def _is_from(package: str, tool: BaseTool) -> bool:
    """Whether a tool's function comes from a package. Names and metadata may be forged by a remote server."""
    functions = (getattr(tool, name, None) for name in ("func", "coroutine"))
    return any((getattr(f, "__module__", None) or "").partition(".")[0] == package for f in functions)


def memory_tools_of(runnable: Any) -> set[str]:
    """Names of the memory tools that a node's runnable can reach, except denied ones."""
    return {tool.name for tool in _memory_tools(runnable)}


def denied_tools(runnable: Any, report: Callable[[], None], bridge: Bridge) -> Any:
    """A copy of an agent in which every memory tool answers a denial. The original keeps its tools.

    Args:
        report: Called at each call of a denied tool.
    """

    def deny(part: Any) -> Any:
        return _denied(part, report, bridge) if is_memory_tool(part) else part

    return rewritten(runnable, deny, owners=True)


def undeniable(runnable: Any) -> set[str]:
    """Names of the memory tools that `denied_tools` cannot reach; ours are left out, they deny themselves."""
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


def _memory_tools(runnable: Any) -> Iterator[BaseTool]:
    """Every memory tool inside a runnable that is not denied, level by level, the outermost first."""
    seen: dict[int, Any] = {id(runnable): runnable}  # kept alive, so that no other object gets its id
    level: list[Any] = [runnable]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for thing in level:
            if is_memory_tool(thing):
                if not (thing.metadata or {}).get(_DENIED):
                    yield thing
                continue
            new = [part for part in parts_of(thing) if id(part) not in seen]
            seen.update((id(part), part) for part in new)
            below += new
        level = below
