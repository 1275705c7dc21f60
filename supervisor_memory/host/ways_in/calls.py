"""Wrap a supervisor's tool calls: rights for memory tools, recall and remember around handoffs.

A memory tool may use the store until its call ends. A tool that runs an agent is a handoff: memory recalls
for the agent before, and remembers its outcome after. No other tool may use memory.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest

from supervisor_memory.errors import IdentityError
from supervisor_memory.host.hooks import Hooks, Visit, outcome_of
from supervisor_memory.host.run.beginning import Beginning, hosting
from supervisor_memory.host.run.identity import acting, acting_as, caller_name, checked, granting
from supervisor_memory.host.run.state import new_messages
from supervisor_memory.host.ways_in.bound import Bound
from supervisor_memory.host.ways_in.inside import Known, graphs_in
from supervisor_memory.host.ways_in.observing import Result, observed
from supervisor_memory.host.ways_in.workers import is_allowed
from supervisor_memory.model.records import Scope
from supervisor_memory.ports import guarded

_DELEGATES = "subagent_type"  # the argument of deepagents' `task` that names the agent


@dataclass(frozen=True, slots=True)
class _Agent:
    """A tool that runs an agent: the tool to call instead, and the agent's name."""

    tool: BaseTool
    name: str
    recalls: Literal["here", "by itself", "no"]


@dataclass(frozen=True, slots=True)
class _Call:
    """One tool call.

    Attributes:
        request, told: The call as it was asked for, and as it is executed.
        scope: Who calls.
        before: The messages before the call, if a middleware brought this.
        visit, agent: The visit of the sub-agent that the tool runs.
        is_agent: Whether the tool runs an agent, also where memory has no part in that.
    """

    request: ToolCallRequest
    told: ToolCallRequest
    scope: Scope | IdentityError
    begun: Beginning | None
    before: Visit | None = None
    visit: Visit | None = None
    agent: _Agent | None = None
    is_agent: bool = False


@dataclass(frozen=True)
class ToolCalls:
    """Wraps tool calls, for `ToolNode(wrap_tool_call=…)` or a middleware.

    Args:
        agent_id: Who calls; None: the supervisor, which alone may use memory tools.
        store_tools: Names of the host's own tools that may use a guarded store.
        agents: Names of tools that run an agent out of sight, such as one behind HTTP.
        is_brought: Whether a middleware uses this; its agent may be run by another agent's tool.
    """

    hooks: Hooks
    agent_id: str | None = None
    store_tools: Collection[str] = ()
    agents: Collection[str] = ()
    is_brought: bool = False
    _known: Known[_Agent | None] = field(default_factory=Known)

    def around(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        call = self._enter(request)
        try:
            with self._in_context(call):
                result = execute(call.told)
        except Exception as error:
            self._tried(call, error)
            raise
        self._leave(call, result)
        return result

    async def aaround(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        off_loop = self.hooks.memory.bridge.run
        call = await off_loop(self._enter, request)
        try:
            with self._in_context(call):
                result = await execute(call.told)
        except Exception as error:
            await off_loop(self._tried, call, error)
            raise
        await off_loop(self._leave, call, result)
        return result

    def _enter(self, request: ToolCallRequest) -> _Call:
        scope = self._caller(request)
        config = request.runtime.config
        begun = self.hooks.begun(request.state, config)
        # An attached graph watches its nodes; an agent with the middleware has tool calls alone.
        before = self.hooks.look(request.state, config, self.agent_id) if self.is_brought else None
        call = _Call(request, request, scope, begun, before and replace(before, scope=scope))
        tool = request.tool
        agent = None if tool is None else self._known.of(tool, lambda: self._look_into(tool))
        if agent is None:
            return call
        if isinstance(scope, IdentityError) or scope.agent_id != self.agent_id:
            return replace(call, is_agent=True)
        visit, told = self._handoff(call, scope, agent)
        return replace(call, told=told, visit=visit, agent=agent, is_agent=True)

    @contextmanager
    def _in_context(self, call: _Call) -> Iterator[None]:
        with hosting(call.begun):
            if call.visit is None or call.agent is None:
                with self._acting_for(call.scope, call.request):
                    yield
            else:
                with acting_as(call.visit.scope, call.visit.told if call.agent.recalls == "here" else None):
                    yield

    def _leave(self, call: _Call, result: Result) -> None:
        request = call.request
        if call.before is not None:
            name = str(request.tool_call["name"])
            self.hooks.watch(call.before, result, request.runtime.config, node=name)
        self._tried(call, result)
        if call.visit is not None and call.agent is not None:
            self._brought(call, result, call.visit, call.agent)
        elif not call.is_agent and isinstance(call.scope, Scope) and self.hooks.takes(request.tool_call):
            self.hooks.observe(request.tool_call, result, call.scope, call.begun)

    def _tried(self, call: _Call, result: Result | Exception) -> None:
        """Hear how the call of a tool went that runs no agent."""
        if not call.is_agent:
            self.hooks.tried(call.request.tool_call, result, call.scope, call.begun)

    def _caller(self, request: ToolCallRequest) -> Scope | IdentityError:
        """Who makes a call: the current actor or, without one, the run's own.

        A supervisor that is run by a tool of another graph counts as a sub-agent.
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
        agent = self.agent_id or self.hooks.caller(request.tool_call, request.runtime.config)
        return self.hooks.scope(request.state, request.runtime.config, agent)

    @contextmanager
    def _acting_for(self, scope: Scope | IdentityError, request: ToolCallRequest) -> Iterator[None]:
        """Run a tool that is no agent; only the supervisor's memory tools and `store_tools` get the right."""
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

    def _look_into(self, tool: BaseTool) -> _Agent | None:
        graphs = list(graphs_in(tool))
        if not graphs or is_allowed(tool):
            return _Agent(tool, tool.name, "no") if tool.name in self.agents else None
        name = tool.name if graphs[0].name in ("", "LangGraph") else str(graphs[0].name)
        if all(isinstance(graph, Bound) for graph in graphs):
            return _Agent(tool, name, "by itself")
        return _Agent(observed(tool, self.hooks), name, "here")

    def _handoff(self, call: _Call, scope: Scope, agent: _Agent) -> tuple[Visit, ToolCallRequest]:
        """Begin a sub-agent's visit; also returns the call to execute, in which tool calls are observed."""
        request = call.request
        args = request.tool_call["args"]
        chosen = args.get(_DELEGATES)
        theirs = replace(
            scope, agent_id=checked(chosen if isinstance(chosen, str) and chosen else agent.name)
        )
        if agent.recalls != "here":
            return Visit(theirs), request
        task = "\n".join(v for k, v in args.items() if isinstance(v, str) and k != _DELEGATES)
        visit = self.hooks.visit(request.state, theirs, call.begun, task=task)
        return visit, request.override(tool=agent.tool)

    def _brought(self, call: _Call, result: Any, visit: Visit, agent: _Agent) -> None:
        if agent.recalls == "by itself":
            return
        scope = visit.scope
        assert isinstance(scope, Scope)
        self.hooks.deliver(visit, scope.agent_id or agent.name)

        def keep() -> None:
            told = [result] if isinstance(result, ToolMessage) else new_messages({}, result, self.hooks.keys)
            answers = [AIMessage(m.text, id=m.id) for m in told if _is_answer(m)]
            outcome = outcome_of({}, result, answers)
            self.hooks.brought(outcome, scope, visit.note, call.begun)

        guarded(keep, otherwise=lambda error: self.hooks.missed("remember", scope, error))


def _is_answer(message: BaseMessage) -> bool:
    if not message.text:
        return False
    return message.status != "error" if isinstance(message, ToolMessage) else isinstance(message, AIMessage)
