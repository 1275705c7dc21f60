"""A chat model that gives scripted answers, and records its prompts."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

Reply = str | AIMessage | Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Replays `script` in order, then says "(done)".

    Attributes:
        script: Texts, messages, or functions from the messages to a message.
        calls: The messages of every call so far: what reached the model.
        bound: The names of the tools of every `bind_tools` so far.
        label: What the ids of its messages begin with. Where two models speak in one graph give each its own:
            `add_messages` takes two messages of one id for one.
    """

    script: list[Any] = Field(default_factory=list)
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[list[str]] = Field(default_factory=list)
    label: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def prompts(self) -> list[str]:
        """Every call as one text, for tests of what reached the model."""
        return ["\n".join(str(message.text) for message in call) for call in self.calls]

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        formats = [_tool_schema(tool) for tool in tools]
        self.bound.append([each["function"]["name"] for each in formats])
        return self.bind(tools=formats, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls.append(list(messages))
        reply: Reply = self.script.pop(0) if self.script else "(done)"
        said = reply(messages) if callable(reply) else reply
        message = AIMessage(said) if isinstance(said, str) else said
        numbered = message.model_copy(update={"id": f"{self.label}-{len(self.calls)}"})
        return ChatResult(generations=[ChatGeneration(message=numbered)])


def _tool_schema(tool: dict[str, Any] | type | Callable[..., Any] | BaseTool) -> dict[str, Any]:
    """A tool in the form of a provider, without its arguments, where working them out takes milliseconds."""
    if not isinstance(tool, BaseTool):
        return convert_to_openai_tool(tool)
    return {"type": "function", "function": {"name": tool.name, "description": tool.description}}


def call_of(name: str, **arguments: Any) -> AIMessage:
    """A reply that calls one tool."""
    return AIMessage("", tool_calls=[tool_call(name=name, args=arguments, id=f"call-{name}")])
