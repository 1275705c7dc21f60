"""Put memory around the nodes of a graph: recall before a node, remember after it.

The builder is cloned and only its nodes' runnables are replaced; a compiled graph is compiled again
with its own settings. Nothing of ours stays in the thread: a note is put in front of the messages
that a node sees, and taken out of everything that leaves it.
"""

import dataclasses
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

# The only internals we use: a node that keeps its subgraphs visible must be a RunnableCallable
# whose function is a closure over the inner runnable (langgraph 1.2).
from langgraph._internal._runnable import RunnableCallable
from langgraph.errors import ParentCommand
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode

from supervisor_memory.errors import GraphError, IdentityError, UnknownNode, WorkerHasMemoryTools
from supervisor_memory.flow import Outcome
from supervisor_memory.graph.identity import Resolver, scope_of
from supervisor_memory.graph.rebuild import rebuilt
from supervisor_memory.graph.state import (
    TOOL_NAMES,
    messages_of,
    new_messages,
    strip,
    updates_of,
    value_of,
    with_note,
)
from supervisor_memory.graph.workers import denied_tools, memory_tools_of
from supervisor_memory.messages import as_messages
from supervisor_memory.records import AuditEvent, Note, Scope

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["acting_scope", "attach"]

G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")
_MODEL_NODES = ("model", "agent")  # of create_agent, of create_react_agent
_WRAPPED = "__supervisor_memory__"
_NOTE: ContextVar[Note | None] = ContextVar("supervisor_memory_note", default=None)
_SCOPE: ContextVar[Scope | None] = ContextVar("supervisor_memory_scope", default=None)
"""Whose node runs: set while a wrapped node is at work; a sub-agent's has an `agent_id`."""


def acting_scope() -> Scope | None:
    """The scope of the wrapped node that is running, or None outside of one."""
    return _SCOPE.get()


def attach(
    memory: "SupervisorMemory",
    graph: G,
    *,
    supervisor: str,
    agents: Sequence[str] | None,
    messages_key: str,
    worker_memory_tools: Literal["refuse", "deny"],
    identity: Resolver | None = None,
) -> G:
    """See `SupervisorMemory.attach`.

    Args:
        identity: Tells the user id from a node's state and config, before all other ways.
    """
    if not isinstance(graph, (StateGraph, CompiledStateGraph)):
        raise GraphError(
            f"cannot attach to {type(graph).__name__}; pass a StateGraph or what its compile() returned"
        )
    builder = graph.builder if isinstance(graph, CompiledStateGraph) else graph
    led = _checked_agents(builder, supervisor, agents)
    if not memory.settings.enabled:
        return graph
    _check_tools(builder, supervisor, led, worker_memory_tools)
    hooks = _Hooks(
        memory, messages_key, identity, frozenset(builder.nodes), _adds_messages(builder, messages_key)
    )

    def wrap(name: str, inner: Runnable[Any, Any]) -> Runnable[Any, Any]:
        if name not in (supervisor, *led) or getattr(inner, _WRAPPED, False):
            return inner
        if name != supervisor and worker_memory_tools == "deny":
            inner = denied_tools(inner)
        return _wrapped(inner, hooks, name, agent_id=None if name == supervisor else name)

    return rebuilt(graph, wrap)


@dataclasses.dataclass(frozen=True)
class _Hooks:
    """What happens before and after a node."""

    memory: "SupervisorMemory"
    key: str
    identity: Resolver | None
    node_names: frozenset[str]
    may_redact: bool

    def scope(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Scope | None:
        """Who acts; None (and an audit row) when that cannot be told, and memory is off for the call."""
        log_id = self.memory.backend.audit.log_id.encode()
        try:
            return scope_of(state, config, agent_id=agent_id, resolver=self.identity, key=log_id)
        except IdentityError as error:
            _log.warning("memory is off for this run: %s", error)
            self.memory.report(
                AuditEvent("identity", outcome="denied", reason=type(error).__name__, agent_id=agent_id)
            )
            return None

    def recall(self, state: Any, scope: Scope | None) -> Note:
        messages = messages_of(state, self.key)
        if scope is None or not messages:
            return Note()
        return self.memory.recall(messages, scope, query=self.question(messages, scope))

    def question(self, messages: Sequence[BaseMessage], scope: Scope) -> str:
        """What the reader is about: what the user asked and, for a sub-agent, the task it is handed."""
        asked = next((m.text for m in reversed(messages) if self.is_from_user(m)), "")
        if scope.agent_id is None:
            return asked
        handed = next((m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls), None)
        calls = handed.tool_calls if handed else []
        tasks = [v for call in calls for v in call["args"].values() if isinstance(v, str)]
        return "\n".join([asked, *tasks])

    def is_from_user(self, message: BaseMessage) -> bool:
        """Some hosts let agents answer as human messages that bear the agent's name."""
        return isinstance(message, HumanMessage) and message.name not in self.node_names

    def remember(self, state: Any, result: Any, scope: Scope | None) -> None:
        if scope is None:
            return
        said = new_messages(state, result, self.key)
        if scope.agent_id is None:
            self._remember_exchange(state, said, scope)
        else:
            outcome = _outcome(state, result, said)
            if outcome != Outcome():
                self.memory.remember((), scope, outcome=outcome)

    def _remember_exchange(self, state: Any, said: Sequence[BaseMessage], scope: Scope) -> None:
        """What the user said to the supervisor, once, and what it finally answered."""
        before = messages_of(state, self.key)
        heard = [before[-1]] if before and self.is_from_user(before[-1]) else []
        answered = [
            m for m in said if isinstance(m, AIMessage) and not m.tool_calls and m.text and not _is_handoff(m)
        ]
        if heard or answered:
            self.memory.remember(as_messages([*heard, *answered]), scope)


def _wrapped(
    inner: Runnable[Any, Any], hooks: _Hooks, name: str, *, agent_id: str | None
) -> Runnable[Any, Any]:
    """A node that recalls, runs the inner one, and remembers."""
    inner, at_the_model = _deepened(inner, hooks.key)

    def seen(state: Any, note: Note) -> Any:
        redact = agent_id is not None and hooks.may_redact
        return with_note(state, Note() if at_the_model else note, hooks.key, redact=redact)

    def run(state: Any, config: RunnableConfig) -> Any:
        scope = hooks.scope(state, config, agent_id)
        note = hooks.recall(state, scope)
        tokens = _NOTE.set(note), _SCOPE.set(scope)
        try:
            result = strip(inner.invoke(seen(state, note), config), hooks.key)
        except ParentCommand as leaving:
            _strip_parent(leaving, hooks.key)
            hooks.remember(state, leaving.args[0], scope)
            raise
        finally:
            _NOTE.reset(tokens[0])
            _SCOPE.reset(tokens[1])
        hooks.remember(state, result, scope)
        return result

    async def arun(state: Any, config: RunnableConfig) -> Any:
        off_loop = hooks.memory.bridge.run
        scope = hooks.scope(state, config, agent_id)
        note = await off_loop(hooks.recall, state, scope)
        tokens = _NOTE.set(note), _SCOPE.set(scope)
        try:
            result = strip(await inner.ainvoke(seen(state, note), config), hooks.key)
        except ParentCommand as leaving:
            _strip_parent(leaving, hooks.key)
            await off_loop(hooks.remember, state, leaving.args[0], scope)
            raise
        finally:
            _NOTE.reset(tokens[0])
            _SCOPE.reset(tokens[1])
        await off_loop(hooks.remember, state, result, scope)
        return result

    sync, native = _kinds(inner)
    node = RunnableCallable(
        run if sync else None, arun if native else None, name=name, trace=False, recurse=False
    )
    setattr(node, _WRAPPED, True)
    return node


def _kinds(inner: Runnable[Any, Any]) -> tuple[bool, bool]:
    """Whether a node runs synchronously and natively asynchronously; the wrapper must promise no more.

    A sync-only node that got an async function would escape langgraph's check of `timeout=`.
    """
    if isinstance(inner, RunnableCallable):
        return inner.func is not None, inner.afunc is not None
    return True, True


def _strip_parent(leaving: ParentCommand, key: str) -> None:
    leaving.args = (strip(leaving.args[0], key), *leaving.args[1:])


def _deepened(inner: Runnable[Any, Any], key: str) -> tuple[Runnable[Any, Any], bool]:
    """For an agent that is a compiled graph of its own: inject at its model node, not into its state.

    So a note never enters the sub-agent's own thread or any stream. Returns whether that was possible.
    """
    if not isinstance(inner, CompiledStateGraph):
        return inner, False
    model_node = next((name for name in _MODEL_NODES if name in inner.builder.nodes), None)
    if model_node is None:
        return inner, False

    def wrap(name: str, bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
        return _at_model(bound, name, key) if name == model_node else bound

    return rebuilt(inner, wrap), True


def _at_model(bound: Runnable[Any, Any], name: str, key: str) -> Runnable[Any, Any]:
    def run(state: Any, config: RunnableConfig) -> Any:
        return strip(bound.invoke(with_note(state, _NOTE.get() or Note(), key, redact=False), config), key)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        return strip(
            await bound.ainvoke(with_note(state, _NOTE.get() or Note(), key, redact=False), config), key
        )

    sync, native = _kinds(bound)
    return RunnableCallable(
        run if sync else None, arun if native else None, name=name, trace=False, recurse=False
    )


def _checked_agents(builder: Any, supervisor: str, agents: Sequence[str] | None) -> list[str]:
    known = list(builder.nodes)
    if unknown := [name for name in (supervisor, *(agents or ())) if name not in builder.nodes]:
        raise UnknownNode(
            f"the graph has no node {unknown[0]!r}; its nodes are {', '.join(map(repr, known)) or '(none)'}. "
            "Pass supervisor= and agents= by these names",
            node=unknown[0],
            nodes=known,
        )
    if agents is not None:
        return [name for name in agents if name != supervisor]
    return [
        name
        for name, spec in builder.nodes.items()
        if name != supervisor and not spec.is_error_handler and not isinstance(spec.runnable, ToolNode)
    ]


def _check_tools(builder: Any, supervisor: str, agents: Sequence[str], policy: str) -> None:
    for name in agents:
        if policy == "refuse" and (found := memory_tools_of(builder.nodes[name].runnable)):
            raise WorkerHasMemoryTools(
                f"sub-agent {name!r} carries the memory tool{'s' if len(found) > 1 else ''} "
                f"{', '.join(sorted(found))}; only the supervisor may. Remove them where it is built, "
                "or pass worker_memory_tools='deny' to let them stay and answer MemoryAccessDenied",
                agent=name,
                tools=sorted(found),
            )
    elsewhere = [spec.runnable for name, spec in builder.nodes.items() if name not in agents]
    if not any(TOOL_NAMES & memory_tools_of(runnable) for runnable in elsewhere):
        _log.info(
            "supervisor %r has no memory tools; recall and write-back work without. "
            "Tools cannot be added to a supervisor that is built: pass tools=memory.tools() where it is made",
            supervisor,
        )


def _adds_messages(builder: Any, key: str) -> bool:
    """Whether the messages' reducer adds; hiding messages from a node that replaces them would lose them."""
    operator = getattr(builder.channels.get(key), "operator", None)
    return operator is not None


def _is_handoff(message: BaseMessage) -> bool:
    """The bookkeeping of create_supervisor: "Transferring back to supervisor"."""
    return bool(message.response_metadata.get("__is_handoff_back"))


def _outcome(state: Any, result: Any, said: Sequence[BaseMessage]) -> Outcome:
    """What a sub-agent brought, read from its update: `final_answer`, `side_effects`, a conclusion.

    What stood in the state before it ran is another agent's.
    """
    before = value_of(state, "side_effects") or ()
    answer: str | None = None
    conclusion: object | None = None
    effects: list[Any] = []
    for update in updates_of(result):
        given = value_of(update, "final_answer")
        answer = given if isinstance(given, str) and given else answer
        found = value_of(update, "side_effects")
        effects += [e for e in found if e not in before] if isinstance(found, (list, tuple)) else []
        values = update.values() if isinstance(update, dict) else vars(update).values()
        conclusion = next((v for v in values if isinstance(getattr(v, "conclusion", None), str)), conclusion)
    if answer is None and conclusion is None and not effects:
        spoken = [
            m for m in said if isinstance(m, (AIMessage, HumanMessage)) and m.text and not _is_handoff(m)
        ]
        answer = next((m.text for m in reversed(spoken) if not getattr(m, "tool_calls", None)), None)
    return Outcome(final_answer=answer, conclusion=conclusion, side_effects=tuple(effects))
