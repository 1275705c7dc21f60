"""A pipeline over data: its first node copies the first message into the state and greets once."""

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from tests.host.graphs import Graph
from tests.hosts_in_the_wild.host import WISH, Host, Model


class Asked(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    original_question: str
    turn: int
    sql: str


def build(model: Model) -> Any:
    def understand(state: Asked) -> Asked:
        state["original_question"] = str(state["messages"][0].content)
        state["turn"] = len(state["messages"])
        if len(state["messages"]) == 1:
            state["messages"] = [*state["messages"], AIMessage("Welcome!")]
        return state

    def write_sql(state: Asked) -> Asked:
        said = model("writing").invoke("SQL for: " + state["original_question"])
        return {"sql": str(said.content)}

    def tell(state: Asked) -> dict[str, Any]:
        roles = ", ".join(message.type for message in state["messages"])
        said = model("telling").invoke([("system", f"Roles so far: {roles}"), ("user", state["sql"])])
        return {"messages": said}

    builder = Graph(Asked)
    for name, node in {"understand": understand, "write_sql": write_sql, "tell": tell}.items():
        builder.add_node(name, node)
    builder.add_edge(START, "understand")
    builder.add_edge("understand", "write_sql")
    builder.add_edge("write_sql", "tell")
    builder.add_edge("tell", END)
    return builder


HOST = Host(
    build,
    scripts={"writing": ["SELECT 1", "SELECT 2"], "telling": ["There were 17 races.", "There were 18."]},
    turns=[f"How many races were there in 2009? {WISH}", "And in 2010?"],
    options={"supervisor": "understand"},
)
