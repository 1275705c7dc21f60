"""Check a sub-agent and bind memory to it."""

import logging
from collections.abc import Sequence
from typing import Literal, TypeVar, cast

from langgraph.graph.state import CompiledStateGraph

from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError
from supervisor_memory.host.hooks import Hooks
from supervisor_memory.host.prompts import Placement, check_placement
from supervisor_memory.host.run.identity import Resolver
from supervisor_memory.host.run.state import WITHOUT_MESSAGES, as_keys, keys_of
from supervisor_memory.host.ways_in.bound import bound
from supervisor_memory.host.ways_in.workers import carried, denied_tools, memory_tools_of, undeniable
from supervisor_memory.model.records import check_name

__all__ = ["bind_agent"]

G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")


def bind_agent(
    memory: Memory,
    agent: G,
    name: str | None,
    *,
    messages_key: str | Sequence[str],
    conclusion_key: str | Sequence[str] | None,
    placement: Placement,
    worker_memory_tools: Literal["refuse", "deny"],
    identity: Resolver | None,
) -> G:
    """See `SupervisorMemory.bind_agent`."""
    if not isinstance(agent, CompiledStateGraph):
        raise GraphError(
            f"cannot bind {type(agent).__name__}; pass the compiled graph of an agent, such as what "
            "create_agent returned. For a function, call memory.recall and memory.remember in it"
        )
    called = name or (agent.name if agent.name != "LangGraph" else "")
    if not called:
        raise GraphError("the agent has no name, so nobody knows whose notes to read; pass name=")
    check_name(called, what="agent id")
    if not memory.settings.enabled:
        return cast("G", agent)
    keys = as_keys(messages_key)
    concluded = as_keys(conclusion_key or ())
    if not {*keys, *concluded} & set(agent.builder.channels):
        missing = " or ".join(map(repr, keys))
        _log.warning(WITHOUT_MESSAGES, f"the state of agent {called!r}", missing, keys_of(agent.builder))
    hooks = Hooks(memory, keys, identity, check_placement(placement), conclusions=concluded)
    inner = agent
    if worker_memory_tools == "deny":
        inner = denied_tools(agent, hooks.report_denied, memory.bridge)
        found = undeniable(agent)
    else:
        found = memory_tools_of(agent)
    if found:
        way_out = ", or pass worker_memory_tools='deny'" if worker_memory_tools == "refuse" else ""
        raise carried("agent", called, found, way_out)
    memory.fence()
    return cast("G", bound(inner, called, hooks))
