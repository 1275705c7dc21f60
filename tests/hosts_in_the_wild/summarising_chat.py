"""A chat that summarises what is old and removes it by position."""

from typing import Any

from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage
from langgraph.graph import END, START, MessagesState

from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model

MOST = 4


class State(MessagesState, total=False):
    summary: str


def build(model: Model) -> Any:
    def talk(state: State) -> dict[str, Any]:
        before = [SystemMessage(f"Earlier: {state['summary']}")] if state.get("summary") else []
        return {"messages": [model("talking").invoke(before + state["messages"])]}

    def summarise(state: State) -> dict[str, Any]:
        told = [*state["messages"], HumanMessage("Summarise the above.")]
        removed = [RemoveMessage(id=str(message.id)) for message in state["messages"][:-2]]
        return {"summary": model("summarising").invoke(told).content, "messages": removed}

    def full(state: State) -> str:
        return "summarise" if len(state["messages"]) > MOST else END

    builder = Graph(State)
    builder.add_node("talk", talk)
    builder.add_node("summarise", summarise)
    builder.add_edge(START, "talk")
    builder.add_conditional_edges("talk", full, ["summarise", END])
    builder.add_edge("summarise", END)
    return builder


HOST = Host(
    build,
    scripts={"talking": ["Hello.", "Blue.", "Green.", "Red."], "summarising": ["Of colours."]},
    turns=[f"Hello. {WISH}", "What is your first colour?", "And your second?", "And your third?"],
    options={"supervisor": "talk"},
)
