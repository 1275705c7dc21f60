"""Check a sub-agent and bind memory to it."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from langgraph.graph.state import CompiledStateGraph

from supervisor_memory.errors import GraphError, WorkerHasMemoryTools
from supervisor_memory.host.hooks import Hooks
from supervisor_memory.host.prompts import Placement, check_placement
from supervisor_memory.host.run.identity import Resolver
from supervisor_memory.host.run.state import as_keys, keys_of
from supervisor_memory.host.ways_in.bound import bound
from supervisor_memory.host.ways_in.workers import denied_tools, memory_tools_of, undeniable
from supervisor_memory.model.records import check_name

if TYPE_CHECKING:
    from supervisor_memory.core import Memory

__all__ = ["bind_agent"]

G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")


def bind_agent(
    memory: "Memory",
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
        _log.warning(
            "the state of agent %r has no %s, so nothing can be recalled or kept; its keys are %s. "
            "Pass messages_key= with the one that holds the messages",
            *(called, " or ".join(map(repr, keys)), keys_of(agent.builder)),
        )
    hooks = Hooks(memory, keys, identity, check_placement(placement), conclusions=concluded)
    inner = agent
    if worker_memory_tools == "deny":
        inner = denied_tools(agent, hooks.report_denied, memory.bridge)
        found = undeniable(agent)
    else:
        found = memory_tools_of(agent)
    if found:
        raise WorkerHasMemoryTools(
            f"agent {called!r} carries the memory tool{'s' if len(found) > 1 else ''} "
            f"{', '.join(sorted(found))}; only the supervisor may. Remove them where it is built"
            + (", or pass worker_memory_tools='deny'" if worker_memory_tools == "refuse" else ""),
            agent=called,
            tools=sorted(found),
        )
    memory.fence()
    return cast("G", bound(inner, called, hooks))
