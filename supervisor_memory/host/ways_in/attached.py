"""Graphs with memory: their runs begin by settling who acts and what the user said."""

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import ensure_config, patch_configurable
from langgraph._internal._constants import CONFIG_KEY_TASK_ID
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from supervisor_memory.host.hooks import Hooks
from supervisor_memory.host.prompts import install
from supervisor_memory.host.run.beginning import KEY, Beginning
from supervisor_memory.host.run.state import with_input
from supervisor_memory.ports import Waiting

T = TypeVar("T")
Compiled: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


def attached(graph: Compiled, hooks: Hooks) -> Compiled:
    """Give the runs of a graph a beginning, by changing the graph's class, which its copies keep."""
    install()
    bases = (type(graph),) if isinstance(graph, Attached) else (Attached, type(graph))
    graph.__class__ = type("Attached", bases, {"hooks": hooks, "__module__": __name__})
    return graph


def compiling(builder: Any, hooks: Hooks) -> Any:
    """Make a builder's `compile` return graphs with memory, by changing the builder's class."""

    def compile(self: Any, *args: Any, **options: Any) -> Compiled:
        return attached(kind.compile(self, *args, **options), hooks)

    kind: Any = type(builder)
    made = type("AttachedGraph", (kind,), {"compile": compile})
    builder.__class__ = made
    return builder


class Attached(CompiledStateGraph[Any, Any, Any, Any]):
    """A graph with memory. Every way to run a graph goes through `stream` or `astream`."""

    hooks: ClassVar[Hooks]

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        whole = ensure_config(self.config, config)
        around = self.hooks.around(whole, options.get("context"))
        if around is not None:
            yield from super().stream(input, patch_configurable(config, {KEY: around}), **options)
            return
        begun = self.hooks.begin(
            input, whole, thread=_Here(self), context=options.get("context"), is_nested=_is_nested(whole)
        )
        begun.waiting = Waiting(self.hooks.memory.backend)
        try:
            yield from super().stream(input, patch_configurable(config, {KEY: begun}), **options)
        finally:
            self.hooks.end(begun)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        whole = ensure_config(self.config, config)
        around = self.hooks.around(whole, options.get("context"))
        if around is not None:
            async for chunk in super().astream(input, patch_configurable(config, {KEY: around}), **options):
                yield chunk
            return
        off_loop = self.hooks.memory.bridge.run
        thread = _OnLoop(self, asyncio.get_running_loop())
        begun: Beginning = await off_loop(
            lambda: self.hooks.begin(
                input, whole, thread=thread, context=options.get("context"), is_nested=_is_nested(whole)
            )
        )
        begun.waiting = Waiting(self.hooks.memory.backend)
        steps = super().astream(input, patch_configurable(config, {KEY: begun}), **options)
        try:
            async for chunk in steps:
                yield chunk
        except (asyncio.CancelledError, GeneratorExit):  # nobody waits any more
            self.hooks.memory.bridge.background(lambda: self.hooks.end(begun))
            raise
        finally:
            await cast("Any", steps).aclose()
            if sys.exc_info()[0] not in (asyncio.CancelledError, GeneratorExit):
                await off_loop(self.hooks.end, begun)


for _way in (Attached.stream, Attached.astream):  # with the graph's own signature and help
    setattr(_way, "__signature__", inspect.signature(getattr(CompiledStateGraph, _way.__name__)))  # noqa: B010
    _way.__doc__ = getattr(CompiledStateGraph, _way.__name__).__doc__


class _Here:
    """Reads the thread of a graph, on the current thread of execution."""

    def __init__(self, graph: Compiled) -> None:
        self._graph = graph

    def state(self, config: RunnableConfig) -> StateSnapshot | None:
        if not _has_checkpointer(self._graph):
            return None
        held = self._wait(self._graph.get_state, self._graph.aget_state, config)
        if held.next != (START,):
            return held
        pending = held.tasks[0].result if held.tasks else None  # an input that is not taken up yet
        return held._replace(values=with_input(held.values, pending))

    def history(self, config: RunnableConfig, limit: int) -> list[StateSnapshot]:
        return (
            self._wait(self._history, self._ahistory, config, limit) if _has_checkpointer(self._graph) else []
        )

    def _history(self, config: RunnableConfig, limit: int) -> list[StateSnapshot]:
        return list(self._graph.get_state_history(config, limit=limit))

    async def _ahistory(self, config: RunnableConfig, limit: int) -> list[StateSnapshot]:
        return [each async for each in self._graph.aget_state_history(config, limit=limit)]

    def _wait(self, read: Callable[..., T], aread: Callable[..., Awaitable[T]], *args: Any) -> T:
        return read(*args)


class _OnLoop(_Here):
    """Reads the thread of a graph through its event loop, for async-only checkpointers."""

    def __init__(self, graph: Compiled, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(graph)
        self._loop = loop

    def _wait(self, read: Callable[..., T], aread: Callable[..., Awaitable[T]], *args: Any) -> T:
        reading = cast("Coroutine[Any, Any, T]", aread(*args))
        return asyncio.run_coroutine_threadsafe(reading, self._loop).result()


def _has_checkpointer(graph: Compiled) -> bool:
    return graph.checkpointer not in (None, False, True)


def _is_nested(config: RunnableConfig) -> bool:
    """Whether a run is a step of another graph's run, or was started by such a step on its own thread."""
    around = var_child_runnable_config.get() or {}
    return any(CONFIG_KEY_TASK_ID in (each.get("configurable") or {}) for each in (config, around))
