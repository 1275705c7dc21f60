"""Deep research: the messages of user, supervisor and researchers live under three keys of three graphs."""

import operator
from dataclasses import replace
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import get_buffer_string
from langgraph.graph import END, START, MessagesState
from langgraph.graph.message import add_messages
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class State(MessagesState, total=False):
    supervisor_messages: Annotated[list[AnyMessage], add_messages]
    research_brief: str
    notes: Annotated[list[str], operator.add]
    final_report: str


class Leading(TypedDict, total=False):
    supervisor_messages: Annotated[list[AnyMessage], add_messages]
    research_brief: str
    notes: Annotated[list[str], operator.add]


class Researching(TypedDict, total=False):
    researcher_messages: Annotated[list[AnyMessage], add_messages]
    research_topic: str
    compressed_research: str


class Clear(BaseModel):
    """Whether the task is clear."""

    clear: bool


class Brief(BaseModel):
    """The task in one sentence."""

    brief: str


class Conduct(BaseModel):
    """Let somebody research a topic."""

    topic: str


def _researchers(model: Model) -> Any:
    async def researcher(state: Researching) -> dict[str, Any]:
        told = [SystemMessage("You research."), *state["researcher_messages"]]
        return {"researcher_messages": [await model("researching").ainvoke(told)]}

    async def compress(state: Researching) -> dict[str, Any]:
        told = [SystemMessage("Compress."), *state["researcher_messages"], HumanMessage("Now compress it.")]
        return {"compressed_research": str((await model("compressing").ainvoke(told)).content)}

    builder = Graph(Researching)
    builder.add_node("researcher", researcher)
    builder.add_node("compress", compress)
    builder.add_edge(START, "researcher")
    builder.add_edge("researcher", "compress")
    builder.add_edge("compress", END)
    return builder.compile(name="researchers")


def _leaders(model: Model) -> Any:
    researchers = _researchers(model)

    async def supervisor(state: Leading) -> Command[Literal["supervisor_tools"]]:
        said = await model("leading").bind_tools([Conduct]).ainvoke(state["supervisor_messages"])
        return Command(goto="supervisor_tools", update={"supervisor_messages": [said]})

    async def supervisor_tools(state: Leading) -> Command[Literal["supervisor", "__end__"]]:
        last = state["supervisor_messages"][-1]
        if not isinstance(last, AIMessage) or not last.tool_calls:
            found = [str(m.content) for m in state["supervisor_messages"] if m.type == "tool"]
            return Command(goto="__end__", update={"notes": found})
        answers = []
        for call in last.tool_calls:
            topic = call["args"]["topic"]
            done = await researchers.ainvoke(
                {"researcher_messages": [HumanMessage(topic)], "research_topic": topic}
            )
            answers.append(ToolMessage(done["compressed_research"], tool_call_id=call["id"], name="Conduct"))
        return Command(goto="supervisor", update={"supervisor_messages": answers})

    builder = Graph(Leading)
    builder.add_node("supervisor", supervisor)
    builder.add_node("supervisor_tools", supervisor_tools)
    builder.add_edge(START, "supervisor")
    return builder.compile()


def build(model: Model) -> Any:
    async def clarify_with_user(state: State) -> Command[Literal["write_brief", "__end__"]]:
        said = get_buffer_string(state["messages"])
        answer = await model("clarifying").with_structured_output(Clear).ainvoke([HumanMessage(said)])
        if answer.clear:
            return Command(goto="write_brief", update={"messages": [AIMessage("I will begin.", id="begin")]})
        return Command(goto="__end__", update={"messages": [AIMessage("What do you mean?", id="unclear")]})

    async def write_brief(state: State) -> Command[Literal["research_supervisor"]]:
        said = get_buffer_string(state["messages"])
        answer = await model("briefing").with_structured_output(Brief).ainvoke([HumanMessage(said)])
        told = [SystemMessage("You lead research."), HumanMessage(answer.brief)]
        update = {"research_brief": answer.brief, "supervisor_messages": told}
        return Command(goto="research_supervisor", update=update)

    async def final_report(state: State) -> dict[str, Any]:
        prompt = f"Report on {state['research_brief']} from {state['notes']}"
        said = await model("reporting").ainvoke([HumanMessage(prompt)])
        return {"final_report": said.content, "messages": [said]}

    builder = Graph(State)
    builder.add_node("clarify_with_user", clarify_with_user)
    builder.add_node("write_brief", write_brief)
    builder.add_node("research_supervisor", _leaders(model))
    builder.add_node("final_report_generation", final_report)
    builder.add_edge(START, "clarify_with_user")
    builder.add_edge("research_supervisor", "final_report_generation")
    builder.add_edge("final_report_generation", END)
    return builder


PLAIN = Host(
    build,
    scripts={
        "clarifying": [call_of("Clear", clear=True)],
        "briefing": [call_of("Brief", brief="The history of lighthouses")],
        "leading": [call_of("Conduct", topic="lighthouses before 1800"), "That is enough."],
        "researching": ["The oldest stood in Alexandria."],
        "compressing": ["Alexandria, about 280 BC."],
        "reporting": ["The report: Alexandria was first."],
    },
    turns=[f"Research the history of lighthouses. {WISH}"],
    options={"supervisor": "research_supervisor"},
)
"""Attached by the name of the one node that is called a supervisor."""

HOST = replace(
    PLAIN,
    options={
        "supervisor": "clarify_with_user",
        "messages_key": ("messages", "supervisor_messages", "researcher_messages"),
        "conclusion_key": "compressed_research",
    },
)
"""Attached with all its keys named."""
