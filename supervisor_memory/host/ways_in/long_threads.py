"""Short prompts of long threads as a middleware of `create_agent` and of deepagents."""

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.config import get_config

from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError
from supervisor_memory.host.prompts import is_left_alone
from supervisor_memory.host.thread import Shortener

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
except ImportError as error:
    raise GraphError(
        "a middleware needs langchain's create_agent: pip install 'langchain>=1.2'; "
        "in other graphs call the model with memory.thread()'s prompt"
    ) from error


class LongThreads(AgentMiddleware[Any, Any, Any]):
    """Shortens the prompt of each model call, not the thread; get it from `memory.long_threads()`."""

    def __init__(self, memory: Memory, shortener: Shortener) -> None:
        super().__init__()
        self._memory, self._shortener = memory, shortener

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the short form of the thread."""
        return handler(self._short(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The async twin of `wrap_model_call`."""
        return await handler(await self._memory.bridge.run(self._short, request))

    def _short(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self._memory.settings.enabled or is_left_alone(request.model, get_config()):
            return request
        short: list[Any] = [*self._shortener.prompt(request.messages)]
        return request.override(messages=short)
