"""One node of a graph with memory around it."""

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool

# The only internals we use here: a node that keeps its subgraphs visible must be a RunnableCallable
# whose function is a closure over the inner runnable (langgraph 1.2).
from langgraph._internal._runnable import RunnableCallable
from langgraph.errors import ParentCommand
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel.remote import RemoteGraph

from supervisor_memory.errors import IdentityError
from supervisor_memory.host.explain_prompt import AGENT
from supervisor_memory.host.hooks import Hooks, Visit
from supervisor_memory.host.run.identity import acting_as
from supervisor_memory.host.run.state import sent_state, with_first, without_first
from supervisor_memory.host.ways_in.calls import ToolCalls
from supervisor_memory.host.ways_in.inside import parts_of
from supervisor_memory.host.ways_in.observing import WRAPPED, Observing, is_tools, observed, wrapped
from supervisor_memory.model.records import Scope
from supervisor_memory.ports import guarded

_log = logging.getLogger("supervisor_memory")
_DEEPEST = 14


def around(
    inner: Runnable[Any, Any],
    hooks: Hooks,
    name: str,
    *,
    agent_id: str | None,
    leads: bool,
    calls: ToolCalls | None,
) -> Runnable[Any, Any]:
    """A node that recalls, runs the inner one, and remembers.

    Args:
        leads: Whether the user talks to this node.
        calls: The wrapper for a supervisor's tool calls; None for a sub-agent.
    """
    reach = _reach(inner)
    recalls = not isinstance(inner, RemoteGraph)  # its server would keep the note in its own state
    if recalls:
        inner = observed(inner, hooks, own=calls)
    else:
        _log.warning("node %r is a RemoteGraph, which would store notes: it works without, see docs", name)
    key = hooks.keys[0]
    is_in_state = hooks.placement == "state"

    def enter(state: Any, config: RunnableConfig) -> Visit:
        if recalls:
            return hooks.enter(state, config, agent_id)
        return hooks.look(state, config, agent_id)

    def shown(state: Any, visit: Visit) -> Any:
        return with_first(state, visit.note, key) if is_in_state else state

    def clean(result: Any) -> Any:
        return without_first(result, key) if is_in_state else result

    def run(state: Any, config: RunnableConfig) -> Any:
        visit = enter(state, config)
        with acting_as(visit.scope, visit.told, reach=reach):
            try:
                result = clean(inner.invoke(shown(state, visit), config))
            except ParentCommand as leaving:
                leaving.args = (clean(leaving.args[0]), *leaving.args[1:])
                hooks.leave(visit, state, leaving.args[0], config, node=name, leads=leads)
                raise
            except BaseException as error:
                hooks.broke_off(visit, error, node=name)
                raise
        hooks.leave(visit, state, result, config, node=name, leads=leads)
        return result

    async def arun(state: Any, config: RunnableConfig) -> Any:
        off_loop = hooks.memory.bridge.run

        def leave(result: Any) -> None:
            hooks.leave(visit, state, result, config, node=name, leads=leads)

        visit = await off_loop(enter, state, config)
        with acting_as(visit.scope, visit.told, reach=reach):
            try:
                result = clean(await inner.ainvoke(shown(state, visit), config))
            except ParentCommand as leaving:
                leaving.args = (clean(leaving.args[0]), *leaving.args[1:])
                await off_loop(leave, leaving.args[0])
                raise
            except BaseException as error:  # nobody may be waiting any more
                hooks.memory.bridge.background(partial(hooks.broke_off, visit, error, node=name))
                raise
        await off_loop(leave, result)
        return result

    made = _node(run, arun, name, like=inner, role="agent")
    setattr(made, AGENT, agent_id)
    return made


def as_caller(
    tools: Runnable[Any, Any], hooks: Hooks, name: str, *, callers: Collection[str]
) -> Runnable[Any, Any]:
    """A tool node: tools run as who made the calls.

    Args:
        callers: The nodes that may have made them; none: the supervisor.
    """
    if isinstance(tools, ToolNode):
        tools = wrapped(tools, Observing(hooks))

    def caller(state: Any, config: RunnableConfig) -> Scope | IdentityError:
        told = sent_state(state)
        agent = next(iter(callers), None)
        if len(callers) > 1:
            agent = guarded(
                lambda: hooks.caller_among(callers, state, config, name), otherwise=lambda error: name
            )
        return hooks.scope(told, config, agent)

    def run(state: Any, config: RunnableConfig) -> Any:
        with acting_as(caller(state, config)):
            return tools.invoke(state, config)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        scope = await hooks.memory.bridge.run(caller, state, config)
        with acting_as(scope):
            return await tools.ainvoke(state, config)

    return watched(_node(run, arun, name, like=tools, role="tools"), hooks, name)


def watched(inner: Runnable[Any, Any], hooks: Hooks, name: str) -> Runnable[Any, Any]:
    """A node without a note; human messages it adds are recorded as an agent's, not as the user's."""

    def enter(state: Any, config: RunnableConfig) -> Visit:
        return hooks.look(sent_state(state), config, name)

    def run(state: Any, config: RunnableConfig) -> Any:
        visit = enter(state, config)
        try:
            result = inner.invoke(state, config)
        except ParentCommand as leaving:
            hooks.watch(visit, leaving.args[0], config, node=name)
            raise
        hooks.watch(visit, result, config, node=name)
        return result

    async def arun(state: Any, config: RunnableConfig) -> Any:
        off_loop = hooks.memory.bridge.run

        def watch(result: Any) -> None:
            hooks.watch(visit, result, config, node=name)

        visit = await off_loop(enter, state, config)
        try:
            result = await inner.ainvoke(state, config)
        except ParentCommand as leaving:
            await off_loop(watch, leaving.args[0])
            raise
        await off_loop(watch, result)
        return result

    return _node(run, arun, name, like=inner, role="tools" if is_tools(inner) else "other")


def _node(
    run: Callable[..., Any], arun: Callable[..., Any], name: str, *, like: Runnable[Any, Any], role: str
) -> Runnable[Any, Any]:
    """A node of these functions, sync or async or both as the inner one is, and marked with its role."""
    sync, native = True, True  # the wrapper must not offer more than the inner node
    if isinstance(like, RunnableCallable):
        sync, native = like.func is not None, like.afunc is not None
    made = RunnableCallable(
        run if sync else None, arun if native else None, name=name, trace=False, recurse=False
    )
    setattr(made, WRAPPED, role)
    return made


def _reach(inner: Any) -> int:
    """How many graphs deep a node's own tools are called, not counting agents inside tools."""
    seen: dict[int, Any] = {}

    def below(part: Any, left: int) -> int:
        if left == 0 or id(part) in seen or isinstance(part, (BaseTool, ToolNode)):
            return 0
        seen[id(part)] = part
        return isinstance(part, CompiledStateGraph) + max(
            (below(p, left - 1) for p in parts_of(part)), default=0
        )

    return below(inner, _DEEPEST)
