"""Who acts here and now, and what they may do. Set around a node or around one tool call, never for good.

Two rights, and unknown means neither:

- to use our tools: whoever acts is the supervisor (a scope without `agent_id`), in its own node and not in
  an agent that one of its tools runs;
- to use a guarded store: a *grant*, set around one call of a memory tool of the supervisor and nothing else.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_config

from supervisor_memory.errors import IdentityError
from supervisor_memory.host.prompts import Telling, tells
from supervisor_memory.model.records import Scope

__all__ = [
    "Acting",
    "acting",
    "acting_as",
    "acting_scope",
    "caller_name",
    "granted_scope",
    "granting",
]


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, what the models they run are told, and how far that reaches.

    `told` is None where nobody has recalled for them.
    `path` is the task of the run in which it was set; `reach` how many further levels of subgraphs are
    still the same actor. Deeper, or in a run of its own thread, is an agent that somebody runs in a tool.
    """

    scope: Scope | IdentityError
    told: Telling | None = None
    path: Sequence[str] = ()
    reach: int = 0

    def is_here(self) -> bool:
        """Whether the task that runs now is still the one that acts."""
        return _is_within(self.path, reach=self.reach)


@dataclass(slots=True)
class _Grant:
    """The right to a guarded store, for one task and until the call is over, whoever keeps its context."""

    scope: Scope
    path: Sequence[str]
    is_over: bool = False


_ACTING: ContextVar[Acting | None] = ContextVar("supervisor_memory_acting", default=None)
_GRANT: ContextVar[_Grant | None] = ContextVar("supervisor_memory_grant", default=None)


def acting() -> Acting | None:
    """Who acts; None outside of everything that we wrapped."""
    found = _ACTING.get()
    return None if found is None or (found.told is not None and found.told.is_over) else found


def acting_scope() -> Scope | IdentityError | None:
    """Whose wrapped node or tool call is running; a sub-agent's scope has an `agent_id`.

    None outside of one; the error when memory is off for the run.
    """
    found = acting()
    return None if found is None else found.scope


@contextmanager
def acting_as(scope: Scope | IdentityError, told: Telling | None = None, *, reach: int = 0) -> Iterator[None]:
    """Say who acts to the tools, and the note to the models, in what runs inside."""
    token = _ACTING.set(Acting(scope, told, _path(_config()), reach))
    try:
        with tells(told):
            yield
    finally:
        _ACTING.reset(token)


@contextmanager
def granting(scope: Scope) -> Iterator[None]:
    """Open the guarded store for one call of a memory tool."""
    grant = _Grant(scope, _path(_config()))
    token = _GRANT.set(grant)
    try:
        yield
    finally:
        grant.is_over = True
        _GRANT.reset(token)


def granted_scope() -> Scope | None:
    """In whose name a memory tool is being called right now; None means that the store stays shut."""
    grant = _GRANT.get()
    is_open = grant is not None and not grant.is_over and _is_within(grant.path)
    return grant.scope if grant is not None and is_open else None


def caller_name() -> str | None:
    """The agent, or the node, that runs here, as LangGraph tells; for the audit."""
    found = acting_scope()
    if isinstance(found, Scope) and found.agent_id is not None:
        return found.agent_id
    config = _config()
    name = (config.get("metadata") or {}).get("lc_agent_name")
    path = _path(config)
    return str(name) if name else (path[0].partition(":")[0] or None if path else None)


def _config() -> Any:
    try:
        return get_config()
    except RuntimeError:  # outside of a run
        return {}


def _path(config: Any) -> list[str]:
    """One segment a task, from the outermost graph to the innermost."""
    found = (config.get("configurable") or {}).get("checkpoint_ns")
    return str(found).split("|") if found else []


def _is_within(path: Sequence[str], *, reach: int = 0) -> bool:
    """Whether what runs now is in that task, or a subgraph of it, so many levels deep at most."""
    here = _path(_config())
    # Called by hand with a config of its own, a tool knows no task.
    return not here or (here[: len(path)] == path and len(here) - len(path) <= reach)
