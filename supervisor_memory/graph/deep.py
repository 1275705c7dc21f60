"""The same agents, reading their note at their models instead of in their states.

A note that entered a graph by its state would show in that graph's streams and checkpoints.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph._internal._constants import CONFIG_KEY_RUNTIME

# The only internals we use: a node that keeps its subgraphs visible must be a RunnableCallable
# whose function is a closure over the inner runnable (langgraph 1.2).
from langgraph._internal._runnable import RunnableCallable
from langgraph.errors import GraphInterrupt
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Interrupt

from supervisor_memory.graph.acting import NO_NOTE, acting
from supervisor_memory.graph.inside import rewritten
from supervisor_memory.graph.rebuild import rebuilt
from supervisor_memory.graph.state import is_note, scrubbed, strip, with_note
from supervisor_memory.records import Note

__all__ = ["WRAPPED", "Clean", "Compiled", "cleaned", "deepened", "node", "scrub_interrupt", "scrubbing"]

Compiled: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]
Change: TypeAlias = Callable[[ToolNode], Runnable[Any, Any]]
_MODEL_NODES = ("model", "agent")  # of create_agent, of create_react_agent
WRAPPED = "__supervisor_memory__"


class Clean(Compiled):
    """An agent's graph that notes do not enter by its state, so they are in no stream and no checkpoint."""

    def stream(self, input: Any, *args: Any, **options: Any) -> Iterator[Any]:
        return super().stream(strip(input, is_note), *args, **options)

    def astream(self, input: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return super().astream(strip(input, is_note), *args, **options)


def deepened(
    inner: Runnable[Any, Any], key: str, *, tools: Change | None = None, observed: Change | None = None
) -> Runnable[Any, Any]:
    """The same runnable with the graphs in it cleaned.

    Args:
        tools: A tool node of the actor's own → the one to put there. None: the actor is a sub-agent.
        observed: The same for tool nodes of sub-agents.
    """

    def change(part: Any) -> Any:
        if isinstance(part, CompiledStateGraph):
            return cleaned(part, key, tools=tools, observed=observed)
        if isinstance(part, ToolNode) and tools is not None:
            return tools(part)
        if isinstance(part, BaseTool) and tools is not None:  # an agent there is a sub-agent
            return deepened(cast("Runnable[Any, Any]", part), key, observed=observed)
        return part

    return cast("Runnable[Any, Any]", rewritten(inner, change))


def cleaned(
    graph: Compiled, key: str, *, tools: Change | None = None, observed: Change | None = None
) -> Compiled:
    """A copy of an agent's graph whose models read the note of who acts."""
    if isinstance(graph, Clean):
        return graph
    channels, nodes = graph.builder.channels, graph.builder.nodes
    own = key if key in channels else "messages"
    if own not in channels:
        return graph
    model = next((name for name in _MODEL_NODES if name in nodes), None)

    def wrap(name: str, bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
        if isinstance(bound, ToolNode):
            if tools is not None:
                return tools(bound)
            # Agents that a sub-agent's tools run read no state of their own either.
            return _observed(deepened(bound, own, observed=observed), observed)
        if model not in (None, name):
            return bound
        return _at_model(deepened(bound, own, tools=tools, observed=observed), name, own)

    clean = rebuilt(graph, wrap)
    clean.__class__ = Clean
    return clean


def _observed(node: Runnable[Any, Any], change: Change | None) -> Runnable[Any, Any]:
    return change(node) if change is not None and isinstance(node, ToolNode) else node


def _at_model(bound: Runnable[Any, Any], name: str, key: str) -> Runnable[Any, Any]:
    def seen(state: Any, note: Note) -> Any:
        for each in (key, "llm_input_messages"):  # the other is what a pre_model_hook leaves
            state = with_note(state, note, each, redact=False)
        return state

    def run(state: Any, config: RunnableConfig) -> Any:
        note = _note()
        try:
            with scrubbing(config, note) as inside:
                return strip(bound.invoke(seen(state, note), inside), is_note)
        except GraphInterrupt as asking:
            scrub_interrupt(asking)
            raise

    async def arun(state: Any, config: RunnableConfig) -> Any:
        note = _note()
        try:
            with scrubbing(config, note) as inside:
                return strip(await bound.ainvoke(seen(state, note), inside), is_note)
        except GraphInterrupt as asking:
            scrub_interrupt(asking)
            raise

    return node(run, arun, name, like=bound)


def node(
    run: Callable[..., Any],
    arun: Callable[..., Any],
    name: str,
    *,
    like: Runnable[Any, Any],
    role: str = "",
) -> Runnable[Any, Any]:
    """A node of these functions, of the kinds that the inner one has, and marked as ours by its role."""
    sync, native = _kinds(like)
    made = RunnableCallable(
        run if sync else None, arun if native else None, name=name, trace=False, recurse=False
    )
    setattr(made, WRAPPED, role)
    return made


def scrub_interrupt(asking: GraphInterrupt) -> None:
    """Take our notes out of what a node asks the user."""
    asked = asking.args[0] if asking.args else ()
    asking.args = (tuple(_scrubbed_interrupt(each) for each in asked), *asking.args[1:])


@contextmanager
def scrubbing(config: RunnableConfig, note: Note) -> Iterator[RunnableConfig]:
    """The config of a node whose custom stream our notes are taken out of, when it is given one."""
    held = config.get("configurable") or {}
    runtime = held.get(CONFIG_KEY_RUNTIME)
    if runtime is None or not note:
        yield config
        return
    write = runtime.stream_writer
    clean = runtime.override(stream_writer=lambda chunk: write(scrubbed(chunk)))
    inside: RunnableConfig = {**config, "configurable": {**held, CONFIG_KEY_RUNTIME: clean}}
    token = var_child_runnable_config.set(inside)  # where get_stream_writer() looks
    try:
        yield inside
    finally:
        var_child_runnable_config.reset(token)


def _scrubbed_interrupt(asked: Interrupt) -> Interrupt:
    clean = scrubbed(asked.value)
    return asked if clean is asked.value else Interrupt(value=clean, id=asked.id)


def _kinds(inner: Runnable[Any, Any]) -> tuple[bool, bool]:
    """Whether a node runs synchronously and asynchronously; the wrapper must promise no more."""
    if isinstance(inner, RunnableCallable):
        return inner.func is not None, inner.afunc is not None
    return True, True


def _note() -> Note:
    found = acting()
    return (found.note if found else None) or NO_NOTE
