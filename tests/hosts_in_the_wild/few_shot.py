"""Examples in front of the messages, sent through the message converters of three providers, offline."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, MessagesState

from tests.host.graphs import Graph
from tests.host.providers import offline
from tests.hosts_in_the_wild.host import WISH, Host, Model

__all__ = ["ANTHROPIC", "GOOGLE", "OPENAI", "offline"]

EXAMPLES = ChatPromptTemplate(
    [
        ("system", "You name the subject of a question."),
        ("human", "2+2?"),
        ("ai", "math"),
        ("placeholder", "{messages}"),
    ]
)


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
