"""An agent that sends its model the last few messages only, chosen by how many there are."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, trim_messages
from langchain_core.tools import tool
from langgraph.graph import START
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


@dataclass
class State:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    sent: int = 0


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def build(model: Model) -> Any:
    window = trim_messages(
        max_tokens=3, strategy="last", token_counter=len, start_on="human", include_system=True
    )

    def call_model(state: State) -> dict[str, Any]:
        chosen = window.invoke(state.messages)
        chain = window | model("talking").bind_tools([weather])
        return {"messages": [chain.invoke(state.messages)], "sent": len(chosen)}

    builder = Graph(State)
    builder.add_node("call_model", call_model)
    builder.add_node("tools", ToolNode([weather]))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", tools_condition)
    builder.add_edge("tools", "call_model")
    return builder


HOST = Host(
    build,
    scripts={"talking": [call_of("weather", city="Lima"), "Sunny.", "You are welcome.", "Good bye."]},
    turns=[f"How is the weather in Lima? {WISH}", "Which of that is new?", "And tomorrow?"],
    options={"supervisor": "call_model"},
)
