"""An orchestrator that sends sections to writers, whose tasks hold no messages, and joins what they bring."""

import operator
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Sections(BaseModel):
    """The sections of a report."""

    names: list[str]


class State(MessagesState, total=False):
    sections: list[str]
    written: Annotated[list[str], operator.add]


class Section(TypedDict):
    section: str


def build(model: Model) -> Any:
    def orchestrate(state: State) -> dict[str, Any]:
        planning = model("planning").with_structured_output(Sections)
        return {"sections": planning.invoke([("system", "Plan."), *state["messages"]]).names}

    def write(state: Section) -> dict[str, Any]:
        said = model("writing").invoke([("system", "Write."), ("user", state["section"])])
        return {"written": [said.content]}

    def join(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage("\n".join(state["written"]), id="joined")]}

    def assign(state: State) -> list[Send]:
        return [Send("write", {"section": name}) for name in state["sections"]]

    builder = Graph(State)
    builder.add_node("orchestrate", orchestrate)
    builder.add_node("write", write)
    builder.add_node("join", join)
    builder.add_edge(START, "orchestrate")
    builder.add_conditional_edges("orchestrate", assign, ["write"])
    builder.add_edge("write", "join")
    builder.add_edge("join", END)
    return builder


HOST = Host(
    build,
    scripts={
        "planning": [call_of("Sections", names=["beginning", "end"])],
        "writing": ["It began.", "It ended."],
    },
    turns=[f"Write about the war of 1812. {WISH}"],
    options={"supervisor": "orchestrate"},
    open=frozenset({"writing"}),  # what it is sent holds no messages
)
