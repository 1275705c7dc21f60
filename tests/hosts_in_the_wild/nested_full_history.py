"""A team of langgraph-supervisor inside another one; both hand back the whole history."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph_supervisor import create_supervisor

from supervisor_memory.testing.scripted import call_of
from tests.hosts_in_the_wild.host import WISH, Host, Model


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def build(model: Model) -> Any:
    adder = create_agent(model("adding"), [add], name="adder", system_prompt="You add.")
    searcher = create_agent(model("searching"), name="searcher", system_prompt="You search.")
    inner = create_supervisor(
        [adder, searcher],
        model=model("leading_inside"),
        prompt="You lead a team of two.",
        output_mode="full_history",
        supervisor_name="lead",
    ).compile(name="workgroup")
    return create_supervisor(
        [inner],
        model=model("leading"),
        prompt="You lead a workgroup.",
        output_mode="full_history",
        add_handoff_back_messages=True,
    )


HOST = Host(
    build,
    scripts={
        "leading": [call_of("transfer_to_workgroup"), "17 people in all.", "You are welcome."],
        "leading_inside": [
            call_of("transfer_to_searcher"),
            call_of("transfer_to_adder"),
            "The two offices have 17 people.",
        ],
        "searching": ["8 people in the north, 9 in the south."],
        "adding": [call_of("add", a=8, b=9), "17"],
    },
    varies=True,  # two agents hand back at once
    turns=[f"How many people work in both offices? {WISH}", "Which of that is new?"],
)
