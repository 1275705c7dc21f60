"""A stand-in for a chat model, so that the template runs as it is: it tells what it read."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Offline(BaseChatModel):
    """Repeats its prompt, the note of memory included."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Takes tools and calls none."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        read = " / ".join(str(message.text) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"I read: {read}"))])
