"""Examples in front of the messages, sent through the message converters of three providers, offline."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
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


class _Offline:
    """A provider's model that makes its request and sends it to nobody."""

    calls: list[list[BaseMessage]]
    payloads: list[Any]
    script: list[str]

    def _request(self, messages: list[BaseMessage]) -> Any:
        raise NotImplementedError

    def _generate(self, messages: list[BaseMessage], *_args: Any, **_options: Any) -> ChatResult:
        self.calls.append(list(messages))
        self.payloads.append(self._request(messages))
        said = AIMessage(self.script.pop(0), id=f"said-{len(self.calls)}")
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(self, messages: list[BaseMessage], *_args: Any, **_options: Any) -> ChatResult:
        return self._generate(messages)


class OfflineAnthropic(_Offline, ChatAnthropic):
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    payloads: list[Any] = Field(default_factory=list)
    script: list[str] = Field(default_factory=list)

    def _request(self, messages: list[BaseMessage]) -> Any:
        return self._get_request_payload(messages)


class OfflineOpenAI(_Offline, ChatOpenAI):
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    payloads: list[Any] = Field(default_factory=list)
    script: list[str] = Field(default_factory=list)

    def _request(self, messages: list[BaseMessage]) -> Any:
        return self._get_request_payload(messages)


class OfflineGoogle(_Offline, ChatGoogleGenerativeAI):
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    payloads: list[Any] = Field(default_factory=list)
    script: list[str] = Field(default_factory=list)

    def _request(self, messages: list[BaseMessage]) -> Any:
        return self._prepare_request(messages)


def _offline(provider: Any, **options: Any) -> Callable[[Sequence[Any], str], Any]:
    def chat(script: Sequence[Any], _role: str) -> Any:
        return provider(api_key="none", disable_streaming=True, script=list(script), **options)

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


ANTHROPIC = _host(_offline(OfflineAnthropic, model_name="claude"))
OPENAI = _host(_offline(OfflineOpenAI, model="gpt"))
GOOGLE = _host(_offline(OfflineGoogle, model="gemini"))
