"""Nodes that build prompts of their own from the last message; some call no model at all."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langgraph.graph import START, MessagesState
from langgraph.types import Command
from pydantic import BaseModel

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Choice(BaseModel):
    """Who answers."""

    desk: Literal["questions", "orders", "opening_hours"]


def build(model: Model) -> Any:
    routing = ChatPromptTemplate([("system", "Choose a desk."), ("user", "{text}")]) | model(
        "routing"
    ).with_structured_output(Choice)
    ordering = (
        PromptTemplate.from_template("Look up the order in: {text}") | model("ordering") | StrOutputParser()
    )

    def supervisor(state: MessagesState) -> Command[Literal["questions", "orders", "opening_hours"]]:
        return Command(goto=routing.invoke({"text": state["messages"][-1].content}).desk)

    def questions(state: MessagesState) -> Command[Literal["__end__"]]:
        asked = state["messages"][-1].content
        said = model("answering").invoke([SystemMessage("You answer questions."), HumanMessage(asked)])
        return Command(goto="__end__", update={"messages": [AIMessage(said.content, name="questions")]})

    def orders(state: MessagesState) -> dict[str, Any]:
        found = ordering.invoke({"text": state["messages"][-1].content})
        return {"messages": [AIMessage(found, name="orders")]}

    def opening_hours(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("From nine to five.", name="opening_hours")]}

    builder = Graph(MessagesState)
    for node in (supervisor, questions, orders, opening_hours):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "supervisor")
    return builder


HOST = Host(
    build,
    scripts={
        "routing": [
            call_of("Choice", desk="questions"),
            call_of("Choice", desk="orders"),
            call_of("Choice", desk="opening_hours"),
        ],
        "answering": ["You can return it within 30 days."],
        "ordering": ["Order 17 is on its way."],
    },
    turns=[f"Can I return a lamp? {WISH}", "Where is my order 17?", "When are you open?"],
)
