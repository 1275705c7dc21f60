"""Chat models of three providers, offline."""

import functools
from importlib import import_module
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

PROVIDERS = {
    "anthropic": ("langchain_anthropic", "ChatAnthropic", "_get_request_payload"),
    "google": ("langchain_google_genai", "ChatGoogleGenerativeAI", "_prepare_request"),
    "openai": ("langchain_openai", "ChatOpenAI", "_get_request_payload"),
}


@functools.cache
def offline(provider: str) -> Any:
    """The class of a provider's model that makes its request and sends it to nobody.

    A provider's package is imported here and not above, since it takes half a second of all who collect.
    """
    module, name, request = PROVIDERS[provider]
    chat: Any = getattr(import_module(module), name)

    class Offline(chat):  # type: ignore[misc]  # a class that is known when it is made
        calls: list[list[BaseMessage]] = Field(default_factory=list)
        payloads: list[Any] = Field(default_factory=list)
        script: list[str] = Field(default_factory=list)

        def _generate(
            self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
        ) -> ChatResult:
            self.calls.append(list(messages))
            self.payloads.append(getattr(self, request)(messages, stop=stop, **options))
            said = AIMessage(self.script.pop(0), id=f"said-{len(self.calls)}")
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, *given: Any, **options: Any) -> ChatResult:
            return self._generate(*given, **options)

    return Offline
