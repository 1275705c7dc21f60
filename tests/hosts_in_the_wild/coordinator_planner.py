"""A coordinator, a planner, a supervisor and workers, each of whom hands over by Command.

What planner and workers bring comes back as human messages under their names.
"""

import json
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState
from langgraph.types import Command
from pydantic import BaseModel

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class State(MessagesState, total=False):
    next: str
    plan: str


class Next(BaseModel):
    """Who works next."""

    next: Literal["researcher", "reporter", "FINISH"]


@tool
def browse(query: str) -> str:
    """Search the web."""
    return f"Three pages about {query}"


def build(model: Model) -> Any:
    researching: Any = create_agent(model("researching"), [browse], system_prompt="You research.")

    def coordinator(state: State) -> Command[Literal["planner", "__end__"]]:
        said = model("coordinating").invoke([("system", "You welcome people."), *state["messages"]])
        if "hand over" in said.content:
            return Command(goto="planner")
        return Command(goto="__end__", update={"messages": [said]})

    def planner(state: State) -> Command[Literal["supervisor"]]:
        pieces = model("planning").stream([{"role": "system", "content": "You plan."}, *state["messages"]])
        plan = "".join(str(piece.content) for piece in pieces)
        said = HumanMessage(json.dumps({"steps": plan}), name="planner")
        return Command(goto="supervisor", update={"messages": [said], "plan": plan})

    def supervisor(state: State) -> Command[Literal["researcher", "reporter", "__end__"]]:
        routing = model("routing").with_structured_output(Next)
        chosen = routing.invoke([{"role": "system", "content": "You route."}, *state["messages"]]).next
        return Command(goto="__end__" if chosen == "FINISH" else chosen, update={"next": chosen})

    def researcher(state: State) -> Command[Literal["supervisor"]]:
        found = researching.invoke({"messages": state["messages"]})["messages"][-1].content
        said = HumanMessage(f"Answer of the researcher:\n\n{found}", name="researcher")
        return Command(goto="supervisor", update={"messages": [said]})

    def reporter(state: State) -> Command[Literal["supervisor"]]:
        found = model("reporting").invoke([("system", "You report."), *state["messages"]]).content
        return Command(goto="supervisor", update={"messages": [HumanMessage(found, name="reporter")]})

    builder = Graph(State)
    for node in (coordinator, planner, supervisor, researcher, reporter):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "coordinator")
    return builder


HOST = Host(
    build,
    scripts={
        "coordinating": ["hand over to the planner", "You are welcome."],
        "planning": ["1. search 2. report"],
        "routing": [
            call_of("Next", next="researcher"),
            call_of("Next", next="reporter"),
            call_of("Next", next="FINISH"),
        ],
        "researching": [call_of("browse", query="towers"), "The tower is 330 metres high."],
        "reporting": ["The report: 330 metres."],
    },
    turns=[f"Write a report on the tower. {WISH}", "Which of that is new?"],
)
