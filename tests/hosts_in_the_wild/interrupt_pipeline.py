"""A pipeline that asks people at two places: structured output, a plan to approve, a statement to approve."""

from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Intent(BaseModel):
    """What the user wants to know."""

    metric: str
    ambiguous: bool


class State(MessagesState, total=False):
    intent: Intent
    choice: str
    sql: str
    rows: list[int]


def build(model: Model) -> Any:
    def parse(state: State) -> dict[str, Any]:
        reading = model("reading").with_structured_output(Intent)
        return {"intent": reading.invoke([("system", "Find the metric."), *state["messages"]])}

    def clarify(state: State) -> dict[str, Any]:
        if not state["intent"].ambiguous:
            return {}
        question = model("clarifying").invoke(f"Ask which {state['intent'].metric} is meant.")
        return {"choice": interrupt({"question": question.content, "options": ["net", "gross"]})}

    def write(state: State) -> dict[str, Any]:
        get_stream_writer()({"step": "writing"})
        prompt = [("system", f"Write SQL for {state.get('choice')} {state['intent'].metric}.")]
        return {"sql": model("writing").with_retry().invoke([*prompt, *state["messages"]]).content}

    def approve(state: State) -> Command[Literal["run", "write"]]:
        verdict = interrupt({"sql": state["sql"]})
        if verdict["approved"]:
            return Command(goto="run")
        return Command(goto="write", update={"messages": [AIMessage("Not approved.", id="refused")]})

    def run(state: State) -> dict[str, Any]:
        return {"rows": [1, 2, 3]}

    async def tell(state: State) -> dict[str, Any]:
        said = await model("telling").ainvoke([("system", f"Rows: {state['rows']}"), *state["messages"]])
        return {"messages": [said]}

    builder = Graph(State)
    for name, node in {"parse": parse, "clarify": clarify, "write": write, "approve": approve}.items():
        builder.add_node(name, node)
    builder.add_node("run", run)
    builder.add_node("tell", tell)
    builder.add_edge(START, "parse")
    builder.add_edge("parse", "clarify")
    builder.add_edge("clarify", "write")
    builder.add_edge("write", "approve")
    builder.add_edge("run", "tell")
    builder.add_edge("tell", END)
    return builder


HOST = Host(
    build,
    scripts={
        "reading": [
            call_of("Intent", metric="sales", ambiguous=True),
            call_of("Intent", metric="costs", ambiguous=False),
        ],
        "clarifying": ["Net or gross?", "Net or gross?"],
        "writing": ["SELECT sales", "SELECT net FROM sales", "SELECT costs"],
        "telling": ["Sales were 6.", "Costs were 4."],
    },
    turns=[
        f"How were sales? {WISH}",
        Command(resume="net"),
        Command(resume={"approved": False}),
        Command(resume={"approved": True}),
        "And costs?",
        Command(resume={"approved": True}),
    ],
    options={"supervisor": "parse"},
)
