"""A supervisor and one agent. Put your own graph here: the last line is all that memory asks of it."""

import os
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from offline import Offline
from remembering import memory

model = init_chat_model(os.environ["CHAT_MODEL"]) if os.environ.get("CHAT_MODEL") else Offline()


async def supervisor(state: MessagesState) -> dict[str, Any]:
    """Answers, and asks first where the user wants something published."""
    said = []
    if "publish" in str(state["messages"][-1].text).lower():
        said = [HumanMessage(str(interrupt("May this be published?")))]
    return {"messages": [*said, await model.ainvoke([*state["messages"], *said])]}


def analyst(state: MessagesState) -> dict[str, Any]:
    """Works on what the supervisor hands over."""
    return {"messages": [model.invoke(state["messages"])]}


def after_supervisor(state: MessagesState) -> str:
    """To the analyst, once, where figures are asked for."""
    asked = next(str(m.text) for m in reversed(state["messages"]) if m.type == "human")
    spoke = any(m.name == "analyst" for m in state["messages"])
    return "analyst" if "figures" in asked.lower() and not spoke else END


builder = StateGraph(MessagesState)
builder.add_node("supervisor", supervisor)
builder.add_node("analyst", analyst)
builder.add_edge(START, "supervisor")
builder.add_conditional_edges("supervisor", after_supervisor, ["analyst", END])
builder.add_edge("analyst", END)

graph = memory.attach(builder, supervisor="supervisor").compile()
