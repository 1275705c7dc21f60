"""Examples in front of the messages, sent through the message converters of three providers, offline."""

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, MessagesState
from pydantic import Field

from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model

EXAMPLES = ChatPromptTemplate(
    [
        ("system", "You name the subject of a question."),
        ("human", "2+2?"),
        ("ai", "math"),
        ("placeholder", "{messages}"),
    ]
)


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


def _offline(provider: str, **options: Any) -> Callable[[Sequence[Any], str], Any]:
    def chat(script: Sequence[Any], _role: str) -> Any:
        return offline(provider)(api_key="none", disable_streaming=True, script=list(script), **options)

    return chat


def build(model: Model) -> Any:
    def name_subject(state: MessagesState) -> dict[str, Any]:
        return {"messages": [(EXAMPLES | model("naming")).invoke({"messages": state["messages"]})]}

    def greet(state: MessagesState) -> dict[str, Any]:
        opening = [("user", "Answer in one line."), ("assistant", "I will.")]
        return {"messages": [model("greeting").invoke([*opening, *state["messages"]])]}

    builder = Graph(MessagesState)
    builder.add_node("supervisor", name_subject)
    builder.add_node("greet", greet)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "greet")
    builder.add_edge("greet", END)
    return builder


def _host(chat: Any) -> Host:
    return Host(
        build,
        scripts={"naming": ["history", "geography"], "greeting": ["In 1889.", "In Paris."]},
        turns=[f"When was the tower built? {WISH}", "And where?"],
        chat=chat,
    )


ANTHROPIC = _host(_offline("anthropic", model_name="claude"))
OPENAI = _host(_offline("openai", model="gpt"))
GOOGLE = _host(_offline("google", model="gemini"))
