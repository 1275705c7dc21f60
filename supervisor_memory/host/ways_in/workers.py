"""Find the memory tools of a sub-agent, ours or langmem's, at any depth, and deny them."""

from collections.abc import Callable
from typing import Any, TypeGuard

from langchain_core.tools import BaseTool, StructuredTool

from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import WorkerHasMemoryTools
from supervisor_memory.host.run.state import TOOL_NAMES, is_memory_name
from supervisor_memory.host.ways_in.inside import found_in, rewritten

_DEEPEST = 14
_DENIED = "supervisor_memory_denied"
DENIAL = "MemoryAccessDenied: memory tools belong to the supervisor; answer with the notes you were given."


def is_memory_tool(thing: object) -> TypeGuard[BaseTool]:
    """Whether an object is a tool for long-term memory: by its name, or because langmem made it."""
    return isinstance(thing, BaseTool) and (is_memory_name(thing.name) or _is_from("langmem", thing))


def is_allowed(tool: BaseTool | None) -> bool:
    """Whether a supervisor's tool may use a guarded store: ours and langmem's, whatever their names."""
    return tool is not None and (_is_from("supervisor_memory", tool) or _is_from("langmem", tool))


def _is_from(package: str, tool: BaseTool) -> bool:
    """Whether a tool's function comes from a package. Names and metadata may be forged by a remote server."""
    functions = (getattr(tool, name, None) for name in ("func", "coroutine"))
    return any((getattr(f, "__module__", None) or "").partition(".")[0] == package for f in functions)


def memory_tools_of(runnable: Any) -> set[str]:
    """Names of the memory tools that a node's runnable can reach, except denied ones."""
    found = found_in(runnable, is_memory_tool, deepest=_DEEPEST)
    return {tool.name for tool in found if not (tool.metadata or {}).get(_DENIED)}


def denied_tools(runnable: Any, report: Callable[[], None], bridge: Bridge) -> Any:
    """A copy of an agent whose memory tools answer a denial, and report each call."""

    def deny(part: Any) -> Any:
        return _denied(part, report, bridge) if is_memory_tool(part) else part

    return rewritten(runnable, deny, owners=True)


def undeniable(runnable: Any) -> set[str]:
    """Names of the memory tools that `denied_tools` cannot reach; ours are left out, they deny themselves."""
    bare = denied_tools(runnable, lambda: None, Bridge())
    return {name for name in memory_tools_of(bare) if name not in TOOL_NAMES}


def carried(what: str, agent: str, found: set[str], way_out: str) -> WorkerHasMemoryTools:
    """The error for an agent with memory tools; `what` is "agent" or "sub-agent"."""
    return WorkerHasMemoryTools(
        f"{what} {agent!r} carries the memory tool{'s' if len(found) > 1 else ''} "
        f"{', '.join(sorted(found))}; only the supervisor may. Remove them where it is built{way_out}",
        agent=agent,
        tools=sorted(found),
    )


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
