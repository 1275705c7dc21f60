"""Which memory tools a sub-agent carries, ours or langmem's, however deep; and how to deny them."""

import copy
from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.tools import BaseTool, StructuredTool
from langgraph._internal._runnable import RunnableCallable
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from supervisor_memory.graph.rebuild import rebuilt
from supervisor_memory.graph.state import TOOL_NAMES

__all__ = ["DENIAL", "denied_tools", "memory_tools_of"]

_LANGMEM_TOOLS = frozenset({"manage_memory", "search_memory"})
_DEEPEST = 8
DENIAL = "MemoryAccessDenied: memory tools belong to the supervisor; answer with the notes you were given."


def is_memory_tool(name: str) -> bool:
    """Whether a tool of that name reads or writes long-term memory."""
    return name in TOOL_NAMES or name in _LANGMEM_TOOLS or name.startswith(("memory_", "memory."))


def memory_tools_of(runnable: Any) -> set[str]:
    """Names of the memory tools that a node's runnable can reach."""
    found = (name for node in _tool_nodes(runnable, set(), _DEEPEST) for name in node.tools_by_name)
    return {name for name in found if is_memory_tool(name)}


def denied_tools(runnable: Any) -> Any:
    """The same agent with its memory tools answering a denial. The original keeps its own.

    Only what is a compiled graph or a ToolNode can be copied; tools behind a plain function are
    denied when they are called, by whose node is running.
    """
    if isinstance(runnable, ToolNode):
        node = copy.copy(runnable)
        node._tools_by_name = {  # no public way to copy a ToolNode with other tools
            name: _denied(tool) if is_memory_tool(name) else tool
            for name, tool in runnable.tools_by_name.items()
        }
        return node
    if isinstance(runnable, CompiledStateGraph) and memory_tools_of(runnable):
        return rebuilt(runnable, lambda _name, inner: denied_tools(inner))
    return runnable


def _denied(tool: BaseTool) -> BaseTool:
    def refuse(**_arguments: Any) -> str:
        return DENIAL

    async def arefuse(**_arguments: Any) -> str:
        return DENIAL

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        func=refuse,
        coroutine=arefuse,
    )


def _tool_nodes(thing: Any, seen: set[int], depth: int) -> Iterator[ToolNode]:
    """Every ToolNode inside a runnable: in graphs, sequences, closures, and attributes of bound objects."""
    if depth == 0 or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, ToolNode):
        yield thing
        return
    for inner in _inside(thing):
        yield from _tool_nodes(inner, seen, depth - 1)


def _inside(thing: Any) -> Iterator[Any]:
    if isinstance(thing, CompiledStateGraph):
        yield from (spec.runnable for spec in thing.builder.nodes.values())
    elif isinstance(thing, RunnableSequence):
        yield from thing.steps
    elif isinstance(thing, RunnableCallable):
        yield from (f for f in (thing.func, thing.afunc) if f is not None)
    elif callable(thing) and not isinstance(thing, (type, Runnable)):
        yield from _held_by(thing)


def _held_by(function: Any) -> Iterator[Any]:
    """What a function holds on to: its closure, the object it is bound to, and that object's parts."""
    for cell in getattr(function, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # a cell not filled yet
            continue
        if isinstance(value, (Runnable, Pregel)) or callable(value):
            yield value
    owner = getattr(function, "__self__", None) or (function if hasattr(function, "__dict__") else None)
    if owner is not None and not isinstance(owner, type):
        yield from (v for v in vars(owner).values() if isinstance(v, (Runnable, Pregel)))
