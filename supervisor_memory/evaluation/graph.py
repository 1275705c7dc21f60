"""The graph under test: made anew for each arm by a factory of the user's, with a checkpointer of its own."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from supervisor_memory.errors import GraphError, SettingsError

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

Factory: TypeAlias = Callable[..., Any]
"""Build a graph. A function with a parameter `memory` gets it (None: bare) and attaches it."""


def load_factory(place: str) -> Factory:
    """The function that `package.module:factory` names; the working directory is looked into first.

    Raises:
        SettingsError: there is none.
    """
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        raise SettingsError(f"{place!r} names no factory; give it as package.module:factory")
    with _importing_from(Path.cwd()):
        try:
            found = getattr(importlib.import_module(module_name), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise SettingsError(f"{place} is {type(found).__name__}; name a function that returns a graph")
    return found  # type: ignore[no-any-return]


def made(
    factory: Factory,
    memory: "SupervisorMemory | None",
    *,
    supervisor: str | None,
    agents: Sequence[str] | None,
    messages_key: str,
) -> Any:
    """The graph of one arm, compiled, with a checkpointer in memory: no thread of the user's is touched.

    Raises:
        GraphError: the factory returned no graph of LangGraph's.
    """
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    takes_memory = "memory" in inspect.signature(factory).parameters
    graph = factory(memory=memory) if takes_memory else factory()
    if memory is not None and not takes_memory:
        try:
            graph = memory.attach(graph, supervisor=supervisor, agents=agents, messages_key=messages_key)
        except GraphError as error:
            raise GraphError(
                f"{error}. Or give the factory a parameter `memory`, which is None for the bare graph, and "
                "let it add memory by itself"
            ) from error
    saver = InMemorySaver()
    if isinstance(graph, StateGraph):
        return graph.compile(checkpointer=saver)
    if isinstance(graph, Pregel):
        return graph.copy(update={"checkpointer": saver})
    raise GraphError(f"the factory returned {type(graph).__name__}; return a graph of LangGraph's")


@contextmanager
def _importing_from(folder: Path) -> Any:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
