"""One node of a graph with memory around it."""

import logging
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph._internal._constants import CONFIG_KEY_SCRATCHPAD
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel.remote import RemoteGraph

from supervisor_memory.errors import IdentityError
from supervisor_memory.graph.acting import NO_NOTE, acting_as
from supervisor_memory.graph.calls import ToolCalls
from supervisor_memory.graph.deep import deepened, node, scrub_interrupt, scrubbing
from supervisor_memory.graph.hooks import Hooks, named_user
from supervisor_memory.graph.inside import parts_of
from supervisor_memory.graph.observing import Observing
from supervisor_memory.graph.state import as_agents, rewrite, scrubbed, strip, values_of, with_note
from supervisor_memory.records import Note, Scope

__all__ = ["around", "as_caller"]

_log = logging.getLogger("supervisor_memory")
_DEEPEST = 14


def around(
    inner: Runnable[Any, Any],
    hooks: Hooks,
    name: str,
    *,
    agent_id: str | None,
    leads: bool,
    redact: bool,
    calls: ToolCalls | None,
) -> Runnable[Any, Any]:
    """A node that recalls, runs the inner one, and remembers.

    Args:
        leads: Whether the user speaks to it.
        redact: Whether to hide the supervisor's memory calls from it.
        calls: What is put around the tool calls of a supervisor.
    """
    reach = _reach(inner)
    if isinstance(inner, RemoteGraph):  # its server would keep the note in its own state
        recall = False
        _log.warning("node %r is a RemoteGraph, which would store notes: it works without, see docs", name)
    else:
        recall = True
        observed = Observing(hooks).installed
        inner = deepened(inner, hooks.key, tools=calls.installed if calls else None, observed=observed)

    def enter(state: Any, config: RunnableConfig) -> tuple[Scope | IdentityError, Note]:
        return (
            hooks.enter(state, config, agent_id)
            if recall
            else (hooks.scope(state, config, agent_id), NO_NOTE)
        )

    def seen(state: Any, note: Note) -> Any:
        return with_note(state, note, hooks.key, redact=redact)

    def clean(result: Any, state: Any, scope: Scope | IdentityError, note: Note, *, heard: bool) -> Any:
        """What leaves the node."""
        result = strip(result, user=named_user(scope))
        if note:
            held = {id(value) for value in values_of(state).values()}
            result = rewrite(result, lambda _name, value: value if id(value) in held else scrubbed(value))
        return result if leads or heard else as_agents(result, state, hooks.key)

    def run(state: Any, config: RunnableConfig) -> Any:
        scope, note = enter(state, config)
        heard = _is_resumed(config)
        with acting_as(scope, note, reach=reach), scrubbing(config, note) as inside:
            try:
                result = inner.invoke(seen(state, note), inside)
            except ParentCommand as leaving:
                hooks.leave(state, leaving.args[0], scope, note, leads=leads)
                leaving.args = (clean(leaving.args[0], state, scope, note, heard=heard), *leaving.args[1:])
                raise
            except GraphInterrupt as asking:
                scrub_interrupt(asking)
                raise
        hooks.leave(state, result, scope, note, leads=leads)
        return clean(result, state, scope, note, heard=heard)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        off_loop = hooks.memory.bridge.run
        scope, note = await off_loop(enter, state, config)
        heard = _is_resumed(config)
        with acting_as(scope, note, reach=reach), scrubbing(config, note) as inside:
            try:
                result = await inner.ainvoke(seen(state, note), inside)
            except ParentCommand as leaving:
                await off_loop(hooks.leave, state, leaving.args[0], scope, note, leads=leads)
                leaving.args = (clean(leaving.args[0], state, scope, note, heard=heard), *leaving.args[1:])
                raise
            except GraphInterrupt as asking:
                scrub_interrupt(asking)
                raise
        await off_loop(hooks.leave, state, result, scope, note, leads=leads)
        return clean(result, state, scope, note, heard=heard)

    return node(run, arun, name, like=inner, role="agent")


def as_caller(
    tools: Runnable[Any, Any], hooks: Hooks, name: str, *, agent_id: str | None
) -> Runnable[Any, Any]:
    """A node that calls tools, whose memory tools act as who it works for: the supervisor, or a sub-agent."""
    if isinstance(tools, ToolNode):
        tools = Observing(hooks).installed(tools)

    def run(state: Any, config: RunnableConfig) -> Any:
        with acting_as(hooks.scope(_sent_state(state), config, agent_id)):
            return tools.invoke(state, config)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        scope = await hooks.memory.bridge.run(hooks.scope, _sent_state(state), config, agent_id)
        with acting_as(scope):
            return await tools.ainvoke(state, config)

    return node(run, arun, name, like=tools, role="tools")


def _sent_state(state: Any) -> Any:
    """The state beside a tool call that was sent to a tool node by itself."""
    is_sent = isinstance(state, dict) and state.get("__type") == "tool_call_with_context"
    return state["state"] if is_sent else state


def _is_resumed(config: RunnableConfig) -> bool:
    """Whether the node goes on with an answer of the user, which it may hand on as a human message."""
    held = (config.get("configurable") or {}).get(CONFIG_KEY_SCRATCHPAD)
    if held is None:
        return False
    return bool(held.resume) or held.get_null_resume(consume=False) is not None


def _reach(inner: Any) -> int:
    """How many graphs deep a node's own tools are called; agents in tools apart."""
    seen: dict[int, Any] = {}

    def below(part: Any, left: int) -> int:
        if left == 0 or id(part) in seen or isinstance(part, (BaseTool, ToolNode)):
            return 0
        seen[id(part)] = part
        return isinstance(part, CompiledStateGraph) + max(
            (below(p, left - 1) for p in parts_of(part)), default=0
        )

    return below(inner, _DEEPEST)
