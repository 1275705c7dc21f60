"""An agent that asks back by an interrupt and appends the answer to the list it was given."""

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Birth(BaseModel):
    """What was said of a date of birth."""

    date: str | None = None


class State(MessagesState, total=False):
    birth: str


def build(model: Model) -> Any:
    def background(state: State) -> dict[str, Any]:
        return {"messages": [model("greeting").invoke([SystemMessage("Say hello."), *state["messages"]])]}

    def find_date(state: State) -> dict[str, Any]:
        reading = model("reading").with_structured_output(Birth)
        found = reading.invoke([SystemMessage("Find the date of birth."), *state["messages"]])
        if found.date is None:
            state["messages"].append(HumanMessage(interrupt("When were you born?")))
            return find_date(state)
        return {"birth": found.date, "messages": []}

    def respond(state: State) -> dict[str, Any]:
        said = [message.content for message in state["messages"] if message.type == "human"]
        prompt = f"Born {state['birth']}. The user's latest message: {said[-1]!r}"
        return {"messages": [model("responding").invoke([SystemMessage(prompt), *state["messages"]])]}

    builder = Graph(State)
    for name, node in {"background": background, "find_date": find_date, "respond": respond}.items():
        builder.add_node(name, node)
    builder.add_edge(START, "background")
    builder.add_edge("background", "find_date")
    builder.add_edge("find_date", "respond")
    builder.add_edge("respond", END)
    return builder


HOST = Host(
    build,
    scripts={
        "greeting": ["Hello."],
        "reading": [call_of("Birth"), call_of("Birth"), call_of("Birth", date="1990-03-25")],
        "responding": ["You are an Aries."],
    },
    turns=[f"What is my sign? {WISH}", Command(resume="I was born on March 25, 1990.")],
    options={"supervisor": "background"},
)
