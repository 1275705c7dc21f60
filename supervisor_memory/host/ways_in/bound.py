"""A sub-agent with memory of its own, wherever it runs: in a tool, in a node, by itself."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

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

from supervisor_memory.errors import IdentityError
from supervisor_memory.host.hooks import Hooks, Visit
from supervisor_memory.host.prompts import install
from supervisor_memory.host.run.identity import acting, acting_as
from supervisor_memory.host.run.state import is_state
from supervisor_memory.host.ways_in.attached import Compiled
from supervisor_memory.host.ways_in.observing import observed
from supervisor_memory.ports import guarded

__all__ = ["Bound", "bound"]


def bound(agent: Compiled, name: str, hooks: Hooks) -> Compiled:
    """A copy of an agent's graph that recalls before each run and remembers its outcome."""
    install()
    clone = observed(agent, hooks)
    if clone is agent:
        clone = agent.copy()
    # The class holds the binding: a copy of a graph keeps its class, but no attribute that was set on it.
    clone.__class__ = type("Bound", (Bound,), {"hooks": hooks, "agent": name})
    return clone


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
        state = input if _is_asked(input) else self._held(config)
        led = acting()
        if led is not None and isinstance(led.scope, IdentityError):
            return Visit(led.scope)
        return self.hooks.enter(state, config, self.agent)

    def _held(self, config: RunnableConfig) -> Any:
        """The kept state of a run that continues after an interrupt."""
        empty: dict[str, Any] = {}
        return guarded(lambda: self.get_state(config).values, otherwise=lambda error: empty)

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
