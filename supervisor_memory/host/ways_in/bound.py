"""A sub-agent with memory of its own, wherever it runs: in a tool, in a node, by itself."""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
)

# LangChain's own lets a caller's `configurable` replace that of the run; LangGraph's joins them.
from langgraph._internal._config import ensure_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError, IdentityError
from supervisor_memory.host.hooks import Hooks, Visit
from supervisor_memory.host.prompts import Placement, check_placement, install
from supervisor_memory.host.run.identity import Resolver, acting, acting_as
from supervisor_memory.host.run.state import WITHOUT_MESSAGES, as_keys, is_state, keys_of
from supervisor_memory.host.ways_in.observing import observed
from supervisor_memory.host.ways_in.workers import carried, denied_tools, memory_tools_of, undeniable
from supervisor_memory.model.records import check_name
from supervisor_memory.ports import guarded

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
    where = check_placement(placement)
    hooks = Hooks(memory, keys, identity, placement=where, conclusions=concluded)
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
    install()
    clone = observed(inner, hooks)
    if clone is inner:
        clone = inner.copy()
    # The class holds the binding: a copy of a graph keeps its class, but no attribute that was set on it.
    clone.__class__ = type("Bound", (Bound,), {"hooks": hooks, "agent": called})
    return cast("G", clone)


class Bound(CompiledStateGraph[Any, Any, Any, Any]):
    """An agent's graph that recalls and remembers by itself."""

    hooks: ClassVar[Hooks]
    agent: ClassVar[str]

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        if self._is_led():
            yield from super().stream(input, config, **options)
            return
        config = ensure_config(self.config, config)
        output = _Output()
        visit = self._enter(input, config)
        manager = get_callback_manager_for_config(config)
        manager.add_handler(output, inherit=False)
        steps = super().stream(input, {**config, "callbacks": manager}, **options)
        try:
            while True:
                with acting_as(visit.scope, visit.told):  # not while the consumer handles a chunk
                    chunk = next(steps, _END)
                if chunk is _END:
                    break
                yield chunk
        finally:
            close = getattr(steps, "close", None)
            if close is not None:
                close()
        self._leave(input, output, visit, config)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        if self._is_led():
            async for chunk in super().astream(input, config, **options):
                yield chunk
            return
        off_loop = self.hooks.memory.bridge.run
        config = ensure_config(self.config, config)
        output = _Output()
        visit = await off_loop(self._enter, input, config)
        manager = get_async_callback_manager_for_config(config)
        manager.add_handler(output, inherit=False)
        steps = super().astream(input, {**config, "callbacks": manager}, **options)
        try:
            while True:
                with acting_as(visit.scope, visit.told):
                    chunk = await anext(steps, _END)
                if chunk is _END:
                    break
                yield chunk
        finally:
            close = getattr(steps, "aclose", None)
            if close is not None:
                await close()
        await off_loop(self._leave, input, output, visit, config)

    def _is_led(self) -> bool:
        """Whether the surrounding node or tool call already recalls and remembers for this agent."""
        led = acting()
        if led is None or led.told is None or isinstance(led.scope, IdentityError):
            return False
        return led.scope.agent_id == self.agent

    def _enter(self, input: Any, config: RunnableConfig) -> Visit:
        led = acting()
        if led is not None and isinstance(led.scope, IdentityError):
            return Visit(led.scope)
        state = input
        if not _is_asked(input):  # it continues after an interrupt, from the kept state
            state = guarded(lambda: self.get_state(config).values, otherwise=lambda error: {})
        return self.hooks.enter(state, config, self.agent)

    def _leave(self, input: Any, output: "_Output", visit: Visit, config: RunnableConfig) -> None:
        if output.value is not None:
            before = input if _is_asked(input) else {}
            self.hooks.leave(visit, before, output.value, config, node=self.agent, leads=False)
        else:
            self.hooks.deliver(visit, self.agent)


def _is_asked(input: Any) -> bool:
    """Whether an input begins a run; a Command, or no input, continues from the kept state."""
    return is_state(input) and not isinstance(input, Command)


_END = object()


@dataclass(eq=False)  # handlers are kept in sets
class _Output(BaseCallbackHandler):
    """Records the output of the run, whatever its stream mode."""

    value: Any = None
    run_inline = True

    def on_chain_end(self, outputs: Any, **_facts: Any) -> None:
        self.value = outputs
