"""Show what the chat models of a graph would read for an input, without calling any."""

import asyncio
import copy
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.remote import RemoteGraph

from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import GraphError
from supervisor_memory.host.prompts import Explained, capturing
from supervisor_memory.host.run.state import with_input
from supervisor_memory.host.ways_in.observing import is_tools

AGENT = "__supervisor_memory_agent__"
_LONGEST: Final = 86_400.0  # seconds that an async node may take


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the first model call of a node would read.

    `agent` is the sub-agent's name, None for the supervisor. `messages` is empty if the node called no chat
    model. `error` says why the node could not run by itself; "" if it could.
    """

    node: str
    agent: str | None
    messages: tuple[BaseMessage, ...] = ()
    error: str = ""


def explained(graph: Any, input: Any, config: RunnableConfig | None) -> list[Prompt]:
    """See `SupervisorMemory.explain_prompt`."""
    builder = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    if not hasattr(builder, "nodes") or not hasattr(builder, "compile"):
        raise GraphError(f"cannot explain {type(graph).__name__}; pass a graph, compiled or not")
    given = _with_thread(graph, input, config)
    return [
        _explained(builder, name, given, config)
        for name, spec in builder.nodes.items()
        if not isinstance(spec.runnable, RemoteGraph) and not is_tools(spec.runnable)
    ]


def _explained(builder: Any, name: str, given: Any, config: RunnableConfig | None) -> Prompt:
    alone = copy.copy(builder)
    alone.nodes = {name: replace(builder.nodes[name], ends=())}  # the copy has no other nodes
    alone.edges, alone.waiting_edges, alone.branches = {(START, name)}, set(), defaultdict(dict)
    agent = getattr(builder.nodes[name].runnable, AGENT, None)
    error = ""
    with capturing() as found:
        try:
            _run(alone.compile(), given, config)
        except Explained:
            pass
        except Exception as problem:  # noqa: BLE001  # reported for this node; the others go on
            error = f"{type(problem).__name__}: {problem}"
    if not found:
        return Prompt(name, agent, error=error)
    return Prompt(name, found[0].agent or agent, tuple(found[0].messages))


def _run(graph: Any, given: Any, config: RunnableConfig | None) -> None:
    try:
        next(graph.stream(given, config), None)
    except TypeError as error:
        if "synchronous" not in str(error):
            raise
        _run_async(graph, given, config)


def _run_async(graph: Any, given: Any, config: RunnableConfig | None) -> None:
    """Run an async-only node on an event loop of its own, since this thread may already have one."""

    async def first() -> None:
        async for _ in graph.astream(given, config):
            break

    Bridge().within(_LONGEST, asyncio.run, first())


def _with_thread(graph: Any, input: Any, config: RunnableConfig | None) -> Any:
    """The values of the thread, if it has any, joined with the input."""
    if not isinstance(graph, CompiledStateGraph) or graph.checkpointer in (None, False, True):
        return input
    if not (config or {}).get("configurable", {}).get("thread_id"):
        return input
    held = graph.get_state(config or {}).values
    return with_input(held, input) if held else input
