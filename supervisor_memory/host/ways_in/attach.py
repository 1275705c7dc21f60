"""Put memory around the nodes of a graph: recall before a node, remember after it.

The builder is cloned, its nodes' runnables are replaced, and each run gets a beginning; a compiled graph is
compiled again with its own settings. A node sees the state that the host gave it: the note goes into the
prompts of the chat models that it calls.
"""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError, UnknownNode
from supervisor_memory.host.hooks import Hooks
from supervisor_memory.host.prompts import Placement, check_placement
from supervisor_memory.host.run.identity import Resolver
from supervisor_memory.host.run.state import TOOL_NAMES, WITHOUT_MESSAGES, as_keys, keys_of
from supervisor_memory.host.ways_in.attached import attached, compiling
from supervisor_memory.host.ways_in.calls import ToolCalls
from supervisor_memory.host.ways_in.nodes import around, as_caller, watched
from supervisor_memory.host.ways_in.observing import WRAPPED, is_tools, wrapped
from supervisor_memory.host.ways_in.rebuild import rebuilt
from supervisor_memory.host.ways_in.workers import carried, denied_tools, memory_tools_of, undeniable
from supervisor_memory.ports import guarded

G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")


def attach(
    memory: Memory,
    graph: G,
    *,
    supervisor: str | None,
    agents: Sequence[str] | None,
    messages_key: str | Sequence[str],
    conclusion_key: str | Sequence[str] | None,
    placement: Placement,
    nested: Literal["agent", "user"],
    worker_memory_tools: Literal["refuse", "deny"],
    store_tools: Sequence[str] = (),
    identity: Resolver | None = None,
) -> G:
    """See `SupervisorMemory.attach`."""
    if not isinstance(graph, (StateGraph, CompiledStateGraph)):
        raise GraphError(
            f"cannot attach to {type(graph).__name__}; pass a StateGraph or what its compile() returned. "
            "Where there is no such graph, as in an @entrypoint, call memory.recall and memory.remember"
        )
    builder = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    led = _checked_agents(builder, supervisor, agents)
    if not memory.settings.enabled:
        return graph
    _check_tools(memory, builder, supervisor, led, worker_memory_tools)
    keys = as_keys(messages_key)
    if not set(keys) & set(builder.channels):
        _log.warning(WITHOUT_MESSAGES, "the graph's state", " or ".join(map(repr, keys)), keys_of(builder))
    memory.fence()
    hooks = Hooks(
        memory,
        keys,
        identity,
        nested,
        _shape_of(builder.state_schema),
        placement=check_placement(placement),
        conclusions=as_keys(conclusion_key or ()),
        assigns_ids=frozenset(key for key in keys if _assigns_ids(builder, key)),
    )
    calls = ToolCalls(hooks, store_tools=frozenset(store_tools))

    def wrap(name: str, inner: Runnable[Any, Any]) -> Runnable[Any, Any]:
        if getattr(inner, WRAPPED, False):
            return inner
        if name == supervisor:
            return around(inner, hooks, name, agent_id=None, leads=True, calls=calls)
        callers = _callers(builder, name) & {*led, supervisor} if is_tools(inner) else set()
        is_agents = name in led or bool(callers - {supervisor})
        if is_agents and worker_memory_tools == "deny":
            inner = denied_tools(inner, hooks.report_denied, memory.bridge)
        if name in led:
            leads = supervisor is None
            return around(inner, hooks, name, agent_id=name, leads=leads, calls=None)
        if isinstance(inner, ToolNode) and not is_agents:
            return watched(wrapped(inner, calls), hooks, name)
        if is_agents or memory_tools_of(inner):
            return as_caller(inner, hooks, name, callers=callers if is_agents else ())
        return watched(inner, hooks, name)

    made: Any = rebuilt(graph, wrap)
    if not isinstance(made, CompiledStateGraph):
        return cast("G", compiling(made, hooks))
    made.builder = compiling(made.builder, hooks)
    return cast("G", attached(made, hooks))


def _checked_agents(builder: Any, supervisor: str | None, agents: Sequence[str] | None) -> list[str]:
    known = list(builder.nodes)
    asked = [*(agents or ()), *([] if supervisor is None else [supervisor])]
    if unknown := [name for name in asked if name not in builder.nodes]:
        is_agent = "model" in known and supervisor in unknown
        raise UnknownNode(
            f"the graph has no node {unknown[0]!r}; its nodes are {', '.join(map(repr, known)) or '(none)'}. "
            + (
                "It looks like one of create_agent: give that middleware=[memory.middleware()] instead"
                if is_agent
                else "Pass supervisor= and agents= by these names; supervisor=None when nobody leads"
            ),
            node=unknown[0],
            nodes=known,
        )
    if agents is not None:
        return [name for name in agents if name != supervisor]
    return [
        name
        for name, spec in builder.nodes.items()
        if name != supervisor and not spec.is_error_handler and not is_tools(spec.runnable)
    ]


def _callers(builder: Any, node: str) -> set[str]:
    """The nodes that lead to a node, as far as the edges show."""
    plain = {start for start, end in builder.edges if end == node}
    chosen = {
        start
        for start, branches in builder.branches.items()
        for branch in branches.values()
        if branch.ends and node in branch.ends.values()
    }
    return plain | chosen | {name for name, spec in builder.nodes.items() if node in (spec.ends or ())}


def _check_tools(
    memory: Memory, builder: Any, supervisor: str | None, agents: Sequence[str], policy: str
) -> None:
    tool_nodes = {name: spec.runnable for name, spec in builder.nodes.items() if is_tools(spec.runnable)}
    callers = {name: _callers(builder, name) for name in tool_nodes}
    for agent in agents:
        used = [tools for name, tools in tool_nodes.items() if agent in callers[name]]
        shared = [tools for name, tools in tool_nodes.items() if {agent, supervisor} <= callers[name]]
        if policy == "refuse":
            found = set().union(*map(memory_tools_of, [builder.nodes[agent].runnable, *used]))
            way_out = ", or pass worker_memory_tools='deny' to let them stay and answer MemoryAccessDenied"
        else:
            found = set().union(*map(memory_tools_of, shared)) | undeniable(builder.nodes[agent].runnable)
            way_out = "; they cannot be denied in a global, or in a node shared with the supervisor"
        if found:
            raise carried("sub-agent", agent, found, way_out)
    if supervisor is None:
        return
    elsewhere = [spec.runnable for name, spec in builder.nodes.items() if name not in agents]
    if not any(TOOL_NAMES & memory_tools_of(runnable) for runnable in elsewhere):
        memory.hints.once(
            "supervisor %r has no memory tools; recall and write-back work without. "
            "Tools cannot be added to a supervisor that is built: pass tools=memory.tools() where it is made",
            supervisor,
            level=logging.INFO,
        )


def _assigns_ids(builder: Any, key: str) -> bool:
    """Whether the reducer of a state key gives ids to messages, as `add_messages` does."""
    reducer = getattr(builder.channels.get(key), "operator", None)
    probe = HumanMessage("a")
    guarded(lambda: reducer([], [probe]) if reducer else None, otherwise=lambda error: None)
    return probe.id is not None


def _shape_of(schema: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from state values to a state like the graph's own, for the identity resolver to read."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return lambda values: schema.model_construct(**values)
    if dataclasses.is_dataclass(schema):
        return lambda values: SimpleNamespace(**values)
    return dict
