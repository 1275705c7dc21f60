"""Memory as a middleware of `create_agent` and of deepagents."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest

from supervisor_memory.errors import GraphError, IdentityError, SettingsError
from supervisor_memory.graph.acting import acting
from supervisor_memory.graph.calls import ToolCalls
from supervisor_memory.graph.hooks import Hooks
from supervisor_memory.graph.identity import Resolver
from supervisor_memory.graph.observing import Result
from supervisor_memory.graph.state import FENCE_START, is_note, without_memory_calls
from supervisor_memory.records import Note, check_name

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
except ImportError as error:
    raise GraphError(
        "a middleware needs langchain's create_agent: pip install 'langchain>=1.2'; "
        "other graphs take memory.attach(graph)"
    ) from error

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["MemoryMiddleware", "middleware"]

Placement = Literal["system", "last_user"]
_AFTER = "\n\n"  # between what was there and the note


def middleware(
    memory: "SupervisorMemory",
    *,
    agent_id: str | None,
    agents: Sequence[str],
    placement: Placement,
    messages_key: str,
    tools: Sequence[str] | None,
    store_tools: Sequence[str],
    identity: Resolver | None,
) -> "MemoryMiddleware":
    """See `SupervisorMemory.middleware`."""
    if placement not in ("system", "last_user"):
        raise SettingsError(f"placement is {placement!r}; use 'system' or 'last_user'", placement=placement)
    if agent_id is not None:
        check_name(agent_id, what="agent id")
    if memory.settings.enabled:
        memory.fence()
    hooks = Hooks(memory, messages_key, identity)
    calls = ToolCalls(hooks, agent_id, frozenset(store_tools), frozenset(agents), is_brought=True)
    made = MemoryMiddleware(hooks, calls, placement)
    brought = memory.tools(only=tools)  # even if they are not offered: a wrong name is told
    made.tools = brought if agent_id is None and memory.settings.enabled else []
    return made


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Recalls before each model call and remembers after the agent; get it from `memory.middleware()`.

    Inside a node of an attached graph it leaves recalling and remembering to that.
    """

    def __init__(self, hooks: Hooks, calls: ToolCalls, placement: Placement) -> None:
        super().__init__()
        self._hooks = hooks
        self._calls = calls
        self._placement = placement
        self._is_on = hooks.memory.settings.enabled

    @property
    def name(self) -> str:
        agent = self._calls.agent_id
        return "SupervisorMemory" if agent is None else f"SupervisorMemory_{agent}"

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Keep what the user has just said."""
        if self._calls.agent_id is None and self._acts():
            self._hooks.hear(state, self._hooks.scope(state, get_config(), None))

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        await self._hooks.memory.bridge.run(self.before_agent, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Keep what was answered."""
        if self._acts():
            agent = self._calls.agent_id
            self._hooks.answered(state, self._hooks.scope(state, get_config(), agent))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._hooks.memory.bridge.run(self.after_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the note to one call of the model."""
        return handler(self._informed(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`."""
        return await handler(await self._hooks.memory.bridge.run(self._informed, request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """Open memory to the memory tools, and hand over to agents with their notes."""
        return self._calls.around(request, handler) if self._is_on else handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The async twin of `wrap_tool_call`."""
        return await (self._calls.aaround(request, handler) if self._is_on else handler(request))

    def _acts(self) -> bool:
        """Whether recalling and remembering are not done already, by the graph around.

        A supervisor that somebody's sub-agent runs is a sub-agent: what it hears was not said by the user.
        """
        led = acting()
        if led is None or not self._is_on:
            return self._is_on
        if isinstance(led.scope, IdentityError):
            return led.note is None
        is_same = led.scope.agent_id == self._calls.agent_id
        return led.note is None if is_same else self._calls.agent_id is not None

    def _informed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self._acts() or _has_note(request):
            return request
        agent = self._calls.agent_id
        if agent is not None:
            request = request.override(messages=without_memory_calls(request.messages))
        _, note = self._hooks.enter(request.state, get_config(), agent)
        if not note:
            return request
        return _in_system(request, note) if self._placement == "system" else _in_last(request, note)


def _has_note(request: ModelRequest[Any]) -> bool:
    system = request.system_message
    held = system is not None and FENCE_START in system.text
    return held or any(is_note(m) or _ends_with_note(m) for m in request.messages)


def _in_system(request: ModelRequest[Any], note: Note) -> ModelRequest[Any]:
    system = request.system_message
    if system is None:
        return request.override(system_message=SystemMessage(note.text))
    return request.override(system_message=_with_text(system, note))


def _in_last(request: ModelRequest[Any], note: Note) -> ModelRequest[Any]:
    messages = list(request.messages)
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], HumanMessage):
            messages[at] = _with_text(messages[at], note)
            return request.override(messages=messages)
    return _in_system(request, note)


def _with_text(message: Any, note: Note) -> Any:
    """A copy of a message with the note as its last block, so that what is before it stays cached."""
    held = message.content
    blocks = [{"type": "text", "text": held}] if isinstance(held, str) else list(held)
    return message.model_copy(update={"content": [*blocks, {"type": "text", "text": _AFTER + note.text}]})


def _ends_with_note(message: BaseMessage) -> bool:
    """Whether a note was put behind it; what a user writes of notes is not one."""
    last = message.content[-1] if isinstance(message.content, list) and message.content else None
    return isinstance(last, dict) and str(last.get("text")).startswith(_AFTER + FENCE_START)
