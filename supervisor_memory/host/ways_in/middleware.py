"""Memory as a middleware of `create_agent` and of deepagents."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Literal

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest

from supervisor_memory.bridge import holding
from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError, IdentityError
from supervisor_memory.host.hooks import Hooks, Visit
from supervisor_memory.host.prompts import Placement, check_placement, install, is_left_alone, placed
from supervisor_memory.host.run.beginning import beginning_of
from supervisor_memory.host.run.checkpoints import Checkpoints
from supervisor_memory.host.run.identity import Resolver, acting
from supervisor_memory.host.run.state import as_keys, without_calls
from supervisor_memory.host.tools import build_tools
from supervisor_memory.host.ways_in.calls import ToolCalls
from supervisor_memory.host.ways_in.described import with_guidelines
from supervisor_memory.host.ways_in.observing import Result
from supervisor_memory.model.records import check_name
from supervisor_memory.ports import guarded

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
except ImportError as error:
    raise GraphError(
        "a middleware needs langchain's create_agent: pip install 'langchain>=1.2'; "
        "other graphs take memory.attach(graph)"
    ) from error

_TOLD: ContextVar[bool] = ContextVar("supervisor_memory_told", default=False)
"""Whether another memory's middleware has put its note into the current model call."""


def middleware(
    memory: Memory,
    *,
    agent_id: str | None,
    agents: Sequence[str],
    placement: Placement,
    messages_key: str | Sequence[str],
    nested: Literal["agent", "user"],
    tools: Sequence[str] | None,
    store_tools: Sequence[str],
    identity: Resolver | None,
) -> "MemoryMiddleware":
    """See `SupervisorMemory.middleware`."""
    check_placement(placement, allowed=("system", "last_user"))
    if agent_id is not None:
        check_name(agent_id, what="agent id")
    if memory.settings.enabled:
        memory.fence()
    install()
    hooks = Hooks(memory, as_keys(messages_key), identity, nested, placement=placement)
    calls = ToolCalls(hooks, agent_id, frozenset(store_tools), frozenset(agents), is_brought=True)
    made = MemoryMiddleware(hooks, calls)
    brought = build_tools(memory, only=tools)  # made even if not offered, so that a wrong name raises
    made.tools = brought if agent_id is None and memory.settings.enabled else []
    return made


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Recalls before each model call and remembers after the agent; get it from `memory.middleware()`.

    Inside a node of an attached graph, the graph recalls and remembers instead.
    """

    def __init__(self, hooks: Hooks, calls: ToolCalls) -> None:
        super().__init__()
        self._hooks = hooks
        self._calls = calls
        self._is_on = hooks.memory.settings.enabled

    @property
    def name(self) -> str:
        agent = self._calls.agent_id
        return "SupervisorMemory" if agent is None else f"SupervisorMemory_{agent}"

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Settle who acts and what the user said, and hear the user's words."""
        self._begin(state, Checkpoints(get_config()))

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        there = Checkpoints(get_config(), asyncio.get_running_loop())
        await self._hooks.memory.bridge.run(self._begin, state, there)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Remember the agent's answer."""
        if self._acts():
            self._hooks.answered(state, get_config(), self._calls.agent_id)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._hooks.memory.bridge.run(self.after_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the note to one call of the model."""
        informed, visit = self._informed(request)
        with _marked_as_told(visit):
            response = handler(informed)
        self._deliver(visit)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`."""
        off_loop = self._hooks.memory.bridge.run
        informed, visit = await off_loop(self._informed, request)
        with _marked_as_told(visit):
            response = await handler(informed)
        await off_loop(self._deliver, visit)
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """Give memory tools the right to use memory, and agents behind tools their notes."""
        return self._calls.around(request, handler) if self._is_on else handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The async twin of `wrap_tool_call`."""
        return await (self._calls.aaround(request, handler) if self._is_on else handler(request))

    def _acts(self) -> bool:
        """Whether this middleware has to recall and remember: no surrounding graph does.

        A supervisor that runs inside a sub-agent counts as a sub-agent: its input is not the user's.
        """
        led = acting()
        if led is None or not self._is_on:
            return self._is_on
        if isinstance(led.scope, IdentityError):
            return led.told is None
        is_same = led.scope.agent_id == self._calls.agent_id
        return led.told is None if is_same else self._calls.agent_id is not None

    def _begin(self, state: Any, there: Checkpoints) -> None:
        if self._calls.agent_id is None and self._acts() and beginning_of(there.config) is None:
            self._hooks.begin_agent(state, there)

    def _informed(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Visit | None]:
        if not self._acts() or is_left_alone(request.model, get_config()):
            return request, None
        agent = self._calls.agent_id
        visit = self._hooks.enter(request.state, get_config(), agent)
        told = visit.told
        if told.hidden:
            request = request.override(messages=_untyped(without_calls(request.messages, told.hidden)))
        if not told.note or _TOLD.get():
            return request, visit
        system = request.system_message
        prompt = [*([] if system is None else [system]), *request.messages]
        new = placed(prompt, told.note, placement=told.placement, anchors=told.anchors)
        told.is_delivered = True
        request = self._guided(request, visit)
        if isinstance(new[0], SystemMessage):
            return request.override(system_message=new[0], messages=_untyped(new[1:])), visit
        return request.override(messages=_untyped(new)), visit

    def _guided(self, request: ModelRequest[Any], visit: Visit) -> ModelRequest[Any]:
        """The call with the guidelines of the note in the descriptions of their tools, in copies of these."""
        tools = guarded(
            lambda: with_guidelines(
                request.tools, visit.note.hits, count=self._hooks.memory.services.count_tokens
            ),
            otherwise=lambda error: None,
        )
        return request if tools is None else request.override(tools=tools)

    def _deliver(self, visit: Visit | None) -> None:
        if visit is not None:
            self._hooks.deliver(visit, self.name)


def _marked_as_told(visit: Visit | None) -> AbstractContextManager[None]:
    """Mark the model call inside as holding a note, so that it gets no second one."""
    return holding(_TOLD, _TOLD.get() or (visit is not None and visit.told.is_delivered))


def _untyped(messages: list[BaseMessage]) -> list[Any]:
    """The messages as a list of the type that LangChain's request wants."""
    return [*messages]
