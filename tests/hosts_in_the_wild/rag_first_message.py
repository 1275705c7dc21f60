"""Retrieval: the model asks for documents, an edge grades them, later nodes read the first message."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Grade(BaseModel):
    """Whether a document answers the question."""

    relevant: bool


@tool
def look_up(query: str) -> str:
    """Search the documents."""
    return f"About {query}: a longer shelf holds more books."


def build(model: Model) -> Any:
    asking = model("asking").bind_tools([look_up])
    grading = model("grading").with_structured_output(Grade)

    def ask_or_answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asking.invoke(state["messages"])]}

    def graded(state: MessagesState) -> Literal["answer", "rephrase"]:
        question, found = state["messages"][0].content, state["messages"][-1].content
        verdict = grading.invoke([{"role": "user", "content": f"Does it fit?\n{question}\n{found}"}])
        return "answer" if verdict.relevant else "rephrase"

    def rephrase(state: MessagesState) -> dict[str, Any]:
        question = state["messages"][0].content
        better = model("rephrasing").invoke([{"role": "user", "content": f"Say it better: {question}"}])
        return {"messages": [HumanMessage(better.content)]}

    def answer(state: MessagesState) -> dict[str, Any]:
        question, found = state["messages"][0].content, state["messages"][-1].content
        said = model("answering").invoke(f"Question: {question}\nContext: {found}")
        return {"messages": [said]}

    builder = Graph(MessagesState)
    builder.add_node("ask_or_answer", ask_or_answer)
    builder.add_node("look_up", ToolNode([look_up]))
    builder.add_node("rephrase", rephrase)
    builder.add_node("answer", answer)
    builder.add_edge(START, "ask_or_answer")
    builder.add_conditional_edges("ask_or_answer", tools_condition, {"tools": "look_up", END: END})
    builder.add_conditional_edges("look_up", graded)
    builder.add_edge("rephrase", "ask_or_answer")
    builder.add_edge("answer", END)
    return builder


HOST = Host(
    build,
    scripts={
        "asking": [call_of("look_up", query="shelves"), call_of("look_up", query="long shelves"), "Hello!"],
        "grading": [call_of("Grade", relevant=False), call_of("Grade", relevant=True)],
        "rephrasing": ["How does the length of a shelf matter?"],
        "answering": [AIMessage("More books.")],
    },
    turns=[f"What do the documents say about shelves? {WISH}", "What is a shelf?"],
    options={"supervisor": "ask_or_answer"},
    untold=frozenset({"grading"}),  # an edge is no node
)
