"""Around each tool call of a supervisor: whose call it is, what it may touch, and what a sub-agent reads.

A memory tool may use the store for the length of its call. A tool that runs an agent is a handoff: it recalls
before and remembers after. Every other tool is nobody's: it may touch no memory.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from supervisor_memory.errors import IdentityError
from supervisor_memory.graph.acting import NO_NOTE, acting, acting_as, caller_name, granting
from supervisor_memory.graph.bound import Bound
from supervisor_memory.graph.deep import WRAPPED, Compiled, cleaned
from supervisor_memory.graph.hooks import Hooks, outcome_of
from supervisor_memory.graph.identity import checked
from supervisor_memory.graph.inside import parts_of, rewritten
from supervisor_memory.graph.observing import Observing, Result, wrapped
from supervisor_memory.graph.state import new_messages
from supervisor_memory.graph.workers import is_allowed
from supervisor_memory.ports import guarded
from supervisor_memory.records import Note, Scope

__all__ = ["ToolCalls"]

_DEEPEST = 8
_MOST_KNOWN = 256
_DELEGATES = "subagent_type"  # the argument of deepagents' `task` that names the agent


@dataclass(frozen=True, slots=True)
class _Agent:
    """A tool that runs an agent: the tool to call instead, and the agent's name."""

    tool: BaseTool
    name: str
    recalls: Literal["here", "by itself", "no"]


@dataclass(frozen=True)
class ToolCalls:
    """Wraps tool calls, as `ToolNode(wrap_tool_call=…)` and a middleware do.

    Args:
        agent_id: Who calls; None: the supervisor, the only one that may use memory tools.
        store_tools: Names of the host's own tools that may use a guarded store.
        agents: Names of tools that run an agent where nobody can see it, such as one behind HTTP.
        is_brought: Whether a middleware brings it, which may sit in an agent that another's tool runs.
    """

    hooks: Hooks
    agent_id: str | None = None
    store_tools: Collection[str] = ()
    agents: Collection[str] = ()
    is_brought: bool = False
    _known: dict[int, tuple[BaseTool, _Agent | None]] = field(default_factory=dict)

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        scope = self._caller(request)
        agent = self._agent(request.tool)
        if agent is None or isinstance(scope, IdentityError) or scope.agent_id != self.agent_id:
            with self._as(scope, request):
                result = execute(request)
            if agent is None and self._is_observed(scope, request):
                self._observe(scope, request, result)
            return result
        theirs, note, told = self._handoff(request, scope, agent)
        with acting_as(theirs, note):
            result = execute(told)
        self._brought(request, result, theirs, note, agent)
        return result

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        off_loop = self.hooks.memory.bridge.run
        scope = await off_loop(self._caller, request)
        agent = self._agent(request.tool)
        if agent is None or isinstance(scope, IdentityError) or scope.agent_id != self.agent_id:
            with self._as(scope, request):
                result = await execute(request)
            if agent is None and self._is_observed(scope, request):
                await off_loop(self._observe, scope, request, result)
            return result
        theirs, note, told = await off_loop(self._handoff, request, scope, agent)
        with acting_as(theirs, note):
            result = await execute(told)
        await off_loop(self._brought, request, result, theirs, note, agent)
        return result

    def installed(self, node: ToolNode) -> ToolNode:
        """A copy of a tool node whose calls are wrapped."""
        return node if getattr(node, WRAPPED, False) else wrapped(node, self)

    def _caller(self, request: ToolCallRequest) -> Scope | IdentityError:
        """Whose call it is: of who acts here, or of who the run says.

        A supervisor that somebody's sub-agent runs is a sub-agent.
        """
        led = acting()
        if led is not None:
            leads = isinstance(led.scope, Scope) and led.scope.agent_id is None
            if leads and self.is_brought and not led.is_here():
                assert isinstance(led.scope, Scope)
                return replace(led.scope, agent_id=checked(caller_name() or "unknown"))
            is_known = isinstance(led.scope, IdentityError) or led.scope.agent_id == self.agent_id
            if is_known or self.agent_id is None:
                return led.scope
        agent = self.agent_id or self.hooks.agents_calls.get(str(request.tool_call["id"]))
        return self.hooks.scope(request.state, request.runtime.config, agent)

    @contextmanager
    def _as(self, scope: Scope | IdentityError, request: ToolCallRequest) -> Iterator[None]:
        """One call of a tool that runs no agent."""
        name = str(request.tool_call["name"])
        if isinstance(scope, IdentityError) or scope.agent_id is not None:
            with acting_as(scope):
                yield
        elif is_allowed(request.tool) or name in self.store_tools:
            with acting_as(scope), granting(scope):
                yield
        else:
            with acting_as(replace(scope, agent_id=checked(name))):
                yield

    def _is_observed(self, scope: Scope | IdentityError, request: ToolCallRequest) -> bool:
        return isinstance(scope, Scope) and self.hooks.takes(request.tool_call)

    def _observe(self, scope: Scope | IdentityError, request: ToolCallRequest, result: Result) -> None:
        if isinstance(scope, Scope):
            self.hooks.observe(request.tool_call, result, scope, request.state)

    def _agent(self, tool: BaseTool | None) -> _Agent | None:
        if tool is None:
            return None
        held, found = self._known.get(id(tool), (None, None))
        if held is not tool:
            found = self._look_into(tool)
            self._known[id(tool)] = tool, found
            for oldest in list(self._known)[:-_MOST_KNOWN]:
                self._known.pop(oldest, None)
        return found

    def _look_into(self, tool: BaseTool) -> _Agent | None:
        graphs = list(_graphs(tool))
        if not graphs or is_allowed(tool):
            return _Agent(tool, tool.name, "no") if tool.name in self.agents else None
        name = tool.name if graphs[0].name in ("", "LangGraph") else str(graphs[0].name)
        if all(isinstance(graph, Bound) for graph in graphs):
            return _Agent(tool, name, "by itself")
        deep = rewritten(tool, self._cleaned)
        if deep is tool:
            self.hooks.memory.hints.once(
                "the agent that tool %r runs is a global of its module, so it works without notes; "
                "run memory.bind_agent(agent) there instead",
                tool.name,
            )
            return _Agent(tool, name, "no")
        return _Agent(deep, name, "here")

    def _cleaned(self, part: Any) -> Any:
        if not isinstance(part, CompiledStateGraph):
            return part
        return cleaned(part, self.hooks.key, observed=Observing(self.hooks).installed)

    def _handoff(
        self, request: ToolCallRequest, scope: Scope, agent: _Agent
    ) -> tuple[Scope, Note | None, ToolCallRequest]:
        """Who will act, the note for it, and the call with an agent that reads it."""
        args = request.tool_call["args"]
        chosen = args.get(_DELEGATES)
        theirs = replace(
            scope, agent_id=checked(chosen if isinstance(chosen, str) and chosen else agent.name)
        )
        if agent.recalls != "here":
            return theirs, None, request
        task = "\n".join(v for k, v in args.items() if isinstance(v, str) and k != _DELEGATES)
        note = self.hooks.recall(request.state, theirs, task=task)
        return theirs, note, request.override(tool=agent.tool)

    def _brought(
        self, request: ToolCallRequest, result: Any, scope: Scope, note: Note | None, agent: _Agent
    ) -> None:
        if agent.recalls == "by itself":
            return

        def keep() -> None:
            told = [result] if isinstance(result, ToolMessage) else new_messages({}, result, self.hooks.key)
            answers = [AIMessage(m.text, id=m.id) for m in told if _is_answer(m)]
            outcome = outcome_of({}, result, answers)
            self.hooks.brought(request.state, outcome, scope, note or NO_NOTE)

        guarded(keep, otherwise=lambda error: self.hooks.missed("remember", scope, error))


def _graphs(tool: BaseTool) -> Iterator[Compiled]:
    """The agents that a tool can run, the outermost only, the nearest first."""
    seen: dict[int, Any] = {id(tool): tool}
    level: list[Any] = [tool]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for thing in level:
            if isinstance(thing, CompiledStateGraph):
                yield thing
                continue
            new = [part for part in parts_of(thing) if id(part) not in seen]
            seen.update((id(part), part) for part in new)
            below += new
        level = below


def _is_answer(message: BaseMessage) -> bool:
    if not message.text:
        return False
    return message.status != "error" if isinstance(message, ToolMessage) else isinstance(message, AIMessage)
