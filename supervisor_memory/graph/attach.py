"""Put memory around the nodes of a graph: recall before a node, remember after it.

The builder is cloned and only its nodes' runnables are replaced; a compiled graph is compiled again
with its own settings. Nothing of ours stays in the thread: a note is put in front of the messages
that a node sees, and taken out of everything that leaves it.
"""

import dataclasses
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

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
from supervisor_memory.graph.acting import NO_NOTE, acting, acting_as, acting_scope
from supervisor_memory.graph.identity import Resolver, is_anonymous, scope_of
from supervisor_memory.graph.inside import rewritten
from supervisor_memory.graph.rebuild import rebuilt
from supervisor_memory.graph.state import (
    TOOL_NAMES,
    is_note,
    messages_of,
    new_messages,
    strip,
    updates_of,
    value_of,
    values_of,
    with_note,
)
from supervisor_memory.graph.workers import denied_tools, memory_tools_of, undeniable
from supervisor_memory.messages import as_messages
from supervisor_memory.ports import guarded
from supervisor_memory.records import AuditEvent, Note, Scope

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["attach"]

G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")
_MODEL_NODES = ("model", "agent")  # of create_agent, of create_react_agent
_WRAPPED = "__supervisor_memory__"
Outcomes: TypeAlias = Literal["denied", "degraded"]


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
    _warn_without_messages(builder, messages_key)
    hooks = _Hooks(
        memory, messages_key, identity, frozenset(builder.nodes), _adds_messages(builder, messages_key)
    )

    def wrap(name: str, inner: Runnable[Any, Any]) -> Runnable[Any, Any]:
        if getattr(inner, _WRAPPED, False):
            return inner
        if name == supervisor:
            return _wrapped(inner, hooks, name, agent_id=None)
        callers = _callers(builder, name) & set(led) if isinstance(inner, ToolNode) else set()
        agent = name if name in led else min(callers, default=None)
        if agent is not None and worker_memory_tools == "deny":
            inner = denied_tools(inner, hooks.report_denied, memory.bridge)
        if name in led:
            return _wrapped(inner, hooks, name, agent_id=name)
        if isinstance(inner, ToolNode) and (agent or memory_tools_of(inner)):
            return _as_caller(inner, hooks, name, agent_id=agent)
        return inner

    return rebuilt(graph, wrap)


@dataclasses.dataclass(frozen=True)
class _Hooks:
    """What happens before and after a node. Nothing in here raises into the graph."""

    memory: "SupervisorMemory"
    key: str
    identity: Resolver | None
    node_names: frozenset[str]
    may_redact: bool

    def scope(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Scope | IdentityError:
        """Who acts; the error (and an audit row) when that cannot be told, and memory is off for the call."""

        def tell() -> Scope | IdentityError:
            log_id = self.memory.backend.audit.log_id.encode()
            try:
                return scope_of(state, config, agent_id=agent_id, resolver=self.identity, key=log_id)
            except IdentityError as error:
                return error

        told = guarded(
            tell, otherwise=lambda error: IdentityError(f"who acts cannot be told: {type(error).__name__}")
        )
        if isinstance(told, IdentityError):
            _log.warning("memory is off for this run: %s", told)
            self.memory.report(
                AuditEvent("identity", outcome="denied", reason=type(told).__name__, agent_id=agent_id)
            )
        return told

    def enter(
        self, state: Any, config: RunnableConfig, agent_id: str | None
    ) -> tuple[Scope | IdentityError, Note]:
        """Who acts in a node, and the note for its model."""
        scope = self.scope(state, config, agent_id)
        if isinstance(scope, IdentityError):
            return scope, NO_NOTE
        return scope, guarded(
            lambda: self._recall(state, scope), otherwise=lambda error: self._missed("recall", scope, error)
        )

    def leave(self, state: Any, result: Any, scope: Scope | IdentityError) -> None:
        """Remember what a node heard and brought."""
        if isinstance(scope, IdentityError):
            return
        remember = self._remember_exchange if scope.agent_id is None else self._remember_outcome

        def keep() -> None:
            self._report_impostor(result, scope)
            remember(state, strip(result), scope)

        guarded(keep, otherwise=lambda error: self._missed("remember", scope, error))

    def report_denied(self) -> None:
        """Audit that a sub-agent called a memory tool."""
        told = acting_scope()
        scope = told if isinstance(told, Scope) else None
        self._report("tool", "denied", "memory-tool-called-by-a-sub-agent", scope)

    def _report_impostor(self, result: Any, scope: Scope) -> None:
        """Audit that a node named another user than the one who is acting; the state keeps that one."""
        user = _named_user(scope)
        said = [value_of(update, "user_id") for update in updates_of(result)]
        if user and any(each and each != user for each in said):
            self._report("identity", "denied", "user-id-ignored", scope)

    def _report(self, op: str, outcome: Outcomes, reason: str, scope: Scope | None) -> None:
        self.memory.report(
            AuditEvent(
                op,
                user_id=scope.user_id if scope else None,
                outcome=outcome,
                reason=reason,
                agent_id=scope.agent_id if scope else None,
                session_id=scope.session_id if scope else None,
                run_id=scope.run_id if scope else None,
            )
        )

    def _recall(self, state: Any, scope: Scope) -> Note:
        messages = messages_of(state, self.key)
        if not messages:
            return NO_NOTE
        return self.memory.recall(messages, scope, query=self._question(messages, scope))

    def _question(self, messages: Sequence[BaseMessage], scope: Scope) -> str:
        """What the reader is about: what the user asked and, for a sub-agent, the task it is handed."""
        asked = next((m.text for m in reversed(messages) if self._is_from_user(m)), "")
        if scope.agent_id is None:
            return asked
        handed = next((m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls), None)
        calls = handed.tool_calls if handed else []
        tasks = [v for call in calls for v in call["args"].values() if isinstance(v, str)]
        return "\n".join([asked, *tasks])

    def _is_from_user(self, message: BaseMessage) -> bool:
        """Some hosts let agents answer as human messages that bear the agent's name."""
        return isinstance(message, HumanMessage) and message.name not in self.node_names

    def _remember_exchange(self, state: Any, result: Any, scope: Scope) -> None:
        """What the user said to the supervisor, once, and what it finally answered."""
        before = messages_of(state, self.key)
        heard = list(takewhile(self._is_from_user, reversed(before)))[::-1]
        answered = [
            m
            for m in new_messages(state, result, self.key)
            if isinstance(m, AIMessage) and not m.tool_calls and m.text and not _is_handoff(m)
        ]
        if heard or answered:
            self.memory.remember(as_messages([*heard, *answered]), scope)

    def _remember_outcome(self, state: Any, result: Any, scope: Scope) -> None:
        outcome = _outcome(state, result, new_messages(state, result, self.key))
        if outcome != Outcome():
            self.memory.remember((), scope, outcome=outcome)

    def _missed(self, step: str, scope: Scope, error: BaseException) -> Note:
        self._report(step, "degraded", type(error).__name__, scope)
        return Note(degraded=True)


def _wrapped(
    inner: Runnable[Any, Any], hooks: _Hooks, name: str, *, agent_id: str | None
) -> Runnable[Any, Any]:
    """A node that recalls, runs the inner one, and remembers."""
    inner = _deepened(inner, hooks.key)
    redact = agent_id is not None and hooks.may_redact

    def run(state: Any, config: RunnableConfig) -> Any:
        scope, note = hooks.enter(state, config, agent_id)
        with acting_as(scope, note):
            try:
                result = inner.invoke(with_note(state, note, hooks.key, redact=redact), config)
            except ParentCommand as leaving:
                hooks.leave(state, leaving.args[0], scope)
                _strip_parent(leaving, scope)
                raise
        hooks.leave(state, result, scope)
        return strip(result, user=_named_user(scope))

    async def arun(state: Any, config: RunnableConfig) -> Any:
        off_loop = hooks.memory.bridge.run
        scope, note = await off_loop(hooks.enter, state, config, agent_id)
        with acting_as(scope, note):
            try:
                result = await inner.ainvoke(with_note(state, note, hooks.key, redact=redact), config)
            except ParentCommand as leaving:
                await off_loop(hooks.leave, state, leaving.args[0], scope)
                _strip_parent(leaving, scope)
                raise
        await off_loop(hooks.leave, state, result, scope)
        return strip(result, user=_named_user(scope))

    return _node(run, arun, name, like=inner, role="agent")


def _as_caller(
    tools: Runnable[Any, Any], hooks: _Hooks, name: str, *, agent_id: str | None
) -> Runnable[Any, Any]:
    """A tool node whose memory tools act as who calls it: the supervisor, or a sub-agent, who may not."""

    def run(state: Any, config: RunnableConfig) -> Any:
        with acting_as(hooks.scope(_sent_state(state), config, agent_id)):
            return tools.invoke(state, config)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        scope = await hooks.memory.bridge.run(hooks.scope, _sent_state(state), config, agent_id)
        with acting_as(scope):
            return await tools.ainvoke(state, config)

    return _node(run, arun, name, like=tools, role="tools")


def _sent_state(state: Any) -> Any:
    """The state beside a tool call that was sent to a tool node by itself."""
    is_sent = isinstance(state, dict) and state.get("__type") == "tool_call_with_context"
    return state["state"] if is_sent else state


def _node(
    run: Callable[..., Any],
    arun: Callable[..., Any],
    name: str,
    *,
    like: Runnable[Any, Any],
    role: str = "",
) -> Runnable[Any, Any]:
    """A node of these functions, of the kinds that the inner one has, and marked as ours by its role."""
    sync, native = _kinds(like)
    node = RunnableCallable(
        run if sync else None, arun if native else None, name=name, trace=False, recurse=False
    )
    setattr(node, _WRAPPED, role)
    return node


def _kinds(inner: Runnable[Any, Any]) -> tuple[bool, bool]:
    """Whether a node runs synchronously and natively asynchronously; the wrapper must promise no more.

    A sync-only node that got an async function would escape langgraph's check of `timeout=`.
    """
    if isinstance(inner, RunnableCallable):
        return inner.func is not None, inner.afunc is not None
    return True, True


def _strip_parent(leaving: ParentCommand, scope: Scope | IdentityError) -> None:
    leaving.args = (strip(leaving.args[0], user=_named_user(scope)), *leaving.args[1:])


def _named_user(scope: Scope | IdentityError) -> str | None:
    """The user that stays who is acting, whatever a node says; None while nobody has been named."""
    if isinstance(scope, IdentityError) or is_anonymous(scope.user_id):
        return None
    return scope.user_id


Compiled: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


class _Clean(Compiled):
    """An agent's graph that notes do not enter by its state, so they are in no stream and no checkpoint."""

    def stream(self, input: Any, *args: Any, **options: Any) -> Iterator[Any]:
        return super().stream(strip(input, is_note), *args, **options)

    def astream(self, input: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return super().astream(strip(input, is_note), *args, **options)


def _deepened(inner: Runnable[Any, Any], key: str) -> Runnable[Any, Any]:
    """The same runnable, injecting at the models of the graphs in it and not into their states."""

    def change(part: Any) -> Any:
        return _cleaned(part, key) if isinstance(part, CompiledStateGraph) else part

    return cast("Runnable[Any, Any]", rewritten(inner, change))


def _cleaned(graph: Compiled, key: str) -> Compiled:
    channels, nodes = graph.builder.channels, graph.builder.nodes
    own = key if key in channels else "messages"
    if own not in channels:
        return graph
    model = next((name for name in _MODEL_NODES if name in nodes), None)

    def wrap(name: str, bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
        if isinstance(bound, ToolNode) or model not in (None, name):
            return bound
        return _at_model(_deepened(bound, own), name, own)

    clean = rebuilt(graph, wrap)
    clean.__class__ = _Clean
    return clean


def _at_model(bound: Runnable[Any, Any], name: str, key: str) -> Runnable[Any, Any]:
    def seen(state: Any) -> Any:
        for each in (key, "llm_input_messages"):  # the other is what a pre_model_hook leaves
            state = with_note(state, _note(), each, redact=False)
        return state

    def run(state: Any, config: RunnableConfig) -> Any:
        return strip(bound.invoke(seen(state), config), is_note)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        return strip(await bound.ainvoke(seen(state), config), is_note)

    return _node(run, arun, name, like=bound)


def _note() -> Note:
    found = acting()
    return NO_NOTE if found is None else found.note


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
        if name != supervisor and not spec.is_error_handler and not _is_tool_node(spec.runnable)
    ]


def _is_tool_node(runnable: Any) -> bool:
    return isinstance(runnable, ToolNode) or getattr(runnable, _WRAPPED, "") == "tools"


def _callers(builder: Any, node: str) -> set[str]:
    """The nodes from which a node is reached, as far as the edges tell."""
    plain = {start for start, end in builder.edges if end == node}
    chosen = {
        start
        for start, branches in builder.branches.items()
        for branch in branches.values()
        if branch.ends and node in branch.ends.values()
    }
    return plain | chosen | {name for name, spec in builder.nodes.items() if node in (spec.ends or ())}


def _check_tools(builder: Any, supervisor: str, agents: Sequence[str], policy: str) -> None:
    tool_nodes = {name: spec.runnable for name, spec in builder.nodes.items() if _is_tool_node(spec.runnable)}
    callers = {name: _callers(builder, name) for name in tool_nodes}
    for agent in agents:
        used = [tools for name, tools in tool_nodes.items() if agent in callers[name]]
        shared = [tools for name, tools in tool_nodes.items() if {agent, supervisor} <= callers[name]]
        if policy == "refuse":
            found = set().union(*map(memory_tools_of, [builder.nodes[agent].runnable, *used]))
            way_out = ", or pass worker_memory_tools='deny' to let them stay and answer MemoryAccessDenied"
        else:
            found = set().union(*map(memory_tools_of, shared)) | undeniable(builder.nodes[agent].runnable)
            way_out = "; they cannot be denied in a global, or in a node shared with the supervisor"
        if found:
            raise WorkerHasMemoryTools(
                f"sub-agent {agent!r} carries the memory tool{'s' if len(found) > 1 else ''} "
                f"{', '.join(sorted(found))}; only the supervisor may. "
                f"Remove them where it is built{way_out}",
                agent=agent,
                tools=sorted(found),
            )
    elsewhere = [spec.runnable for name, spec in builder.nodes.items() if name not in agents]
    if not any(TOOL_NAMES & memory_tools_of(runnable) for runnable in elsewhere):
        _log.info(
            "supervisor %r has no memory tools; recall and write-back work without. "
            "Tools cannot be added to a supervisor that is built: pass tools=memory.tools() where it is made",
            supervisor,
        )


def _warn_without_messages(builder: Any, key: str) -> None:
    if key not in builder.channels:
        known = ", ".join(repr(name) for name in builder.channels if not name.startswith(("__", "branch:")))
        _log.warning(
            "the graph's state has no %r, so nothing can be recalled or kept; its keys are %s. "
            "Pass messages_key= with the one that holds the messages",
            key,
            known or "(none)",
        )


def _adds_messages(builder: Any, key: str) -> bool:
    """Whether a node's messages are added to the earlier ones: of a node that replaces them, hidden ones
    would be lost."""
    reducer = getattr(builder.channels.get(key), "operator", None)
    probe = [HumanMessage("a", id="a")], [HumanMessage("b", id="b")]
    return reducer is not None and guarded(lambda: len(reducer(*probe)) > 1, otherwise=lambda error: False)


def _is_handoff(message: BaseMessage) -> bool:
    """The bookkeeping of create_supervisor: "Transferring back to supervisor"."""
    return bool(message.response_metadata.get("__is_handoff_back"))


def _outcome(state: Any, result: Any, said: Sequence[BaseMessage]) -> Outcome:
    """What a sub-agent brought, read from its update: `final_answer`, `side_effects`, a conclusion.

    What stood in the state before it ran is another agent's.
    """
    before = values_of(state)
    answer: str | None = None
    conclusion: object | None = None
    effects: list[Any] = []
    for update in updates_of(result):
        changed = {n: v for n, v in values_of(update).items() if v is not before.get(n)}
        given = changed.get("final_answer")
        if isinstance(given, str) and given and given != before.get("final_answer"):
            answer = given
        found = changed.get("side_effects")
        earlier = before.get("side_effects") or ()
        effects += [e for e in found if e not in earlier] if isinstance(found, (list, tuple)) else []
        for name, value in changed.items():
            if isinstance(getattr(value, "conclusion", None), str) and value != before.get(name):
                conclusion = value
    if answer is None and conclusion is None and not effects:
        spoken = [
            m for m in said if isinstance(m, (AIMessage, HumanMessage)) and m.text and not _is_handoff(m)
        ]
        answer = next((m.text for m in reversed(spoken) if not getattr(m, "tool_calls", None)), None)
    return Outcome(final_answer=answer, conclusion=conclusion, side_effects=tuple(effects))
