"""Copy a graph with other runnables in its nodes. The original is never changed."""

import copy
import dataclasses
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import Runnable
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._utils import validate_timeout_supported

G = TypeVar("G")
Wrap: TypeAlias = Callable[[str, Runnable[Any, Any]], Runnable[Any, Any]]
_log = logging.getLogger("supervisor_memory")


def rebuilt(graph: G, wrap: Wrap) -> G:
    """A copy of a graph, compiled as the original was; `wrap` gives the runnable of each node."""
    builder: Any = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    clone = copy.copy(builder)
    # Own containers, so that nothing added to the copy appears in the original.
    for name in ("edges", "channels", "managed", "schemas", "waiting_edges"):
        setattr(clone, name, copy.copy(getattr(builder, name)))
    clone.branches = defaultdict(dict, {name: dict(held) for name, held in builder.branches.items()})
    clone.nodes = {name: _respec(name, spec, wrap) for name, spec in builder.nodes.items()}
    if not isinstance(graph, CompiledStateGraph):
        return clone  # type: ignore[no-any-return]
    compiled = clone.compile(
        checkpointer=graph.checkpointer,
        cache=graph.cache,
        store=graph.store,
        interrupt_before=graph.interrupt_before_nodes,
        interrupt_after=graph.interrupt_after_nodes,
        debug=graph.debug,
        name=graph.name,
        transformers=graph.stream_transformers,
    )
    # Not by with_config(), which copies and loses how the output is shaped.
    compiled.config = graph.config
    compiled.step_timeout = graph.step_timeout
    compiled.retry_policy = graph.retry_policy
    if isinstance(graph, type(compiled)):
        compiled.__class__ = type(graph)  # such as `Bound`, for an agent with memory
    return compiled  # type: ignore[no-any-return]


def _respec(name: str, spec: Any, wrap: Wrap) -> Any:
    runnable = wrap(name, spec.runnable)
    if runnable is spec.runnable:
        return spec
    if spec.cache_policy is not None:
        # The cache key is the node's input, which may be the same for two users; a note would leak.
        _log.warning("node %r is wrapped with memory, so its cache_policy is off", name)
    if spec.timeout is not None and not _is_async(name, spec.runnable) and hasattr(runnable, "afunc"):
        runnable.afunc = None  # or langgraph would not refuse to time a node that is sync inside
    return dataclasses.replace(spec, runnable=runnable, cache_policy=None)


def _is_async(name: str, runnable: Any) -> bool:
    try:
        validate_timeout_supported(runnable, name=name)
    except ValueError:
        return False
    return True
