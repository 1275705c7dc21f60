"""What memory adds to a turn of a graph: the same turn bare and with memory, in turn, as a ratio of CPU time.

Run: make bench        (or: python benchmarks/turn_cost.py --turns 150)
The graph has three nodes: a supervisor and two agents made by `create_agent` that call one tool each, with
scripted models and a checkpointer. No SQL, no plots, no embedder. The memory holds 100 records that all
resemble the question, and recalls and records at each of the five node runs. Each turn asks another
question, so that no turn can live on the answers of the one before.
"""

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel, call_of

FACTS = [
    f"Metric number {n} counts flights of carrier {n} that arrive over {n} minutes late." for n in range(100)
]
QUESTION = "Which carrier has the most flights that arrive late in week {week}?"


def look_up(what: str) -> str:
    """Look something up; a stand-in for a tool that costs nothing."""
    return f"42 rows about {what}"


def agent(name: str, answer: str) -> Callable[[MessagesState], dict[str, Any]]:
    """A sub-agent that calls its tool once and answers, as a node."""
    model = ScriptedModel(label=name)
    graph = create_agent(model, tools=[look_up], name=name)

    def node(state: MessagesState) -> dict[str, Any]:
        model.script[:] = [call_of("look_up", what="carriers"), answer]
        last = graph.invoke({"messages": state["messages"]})["messages"][-1]
        return {"messages": [AIMessage(last.text, name=name)]}

    return node


def build() -> StateGraph[MessagesState]:
    """A supervisor that hears of each agent's result before it hands on: five node runs a turn."""
    model = ScriptedModel(label="supervisor")

    def supervisor(state: MessagesState) -> dict[str, Any]:
        model.script[:] = ["Carrier 7 is late most often." if after(state) == END else "Handing on."]
        return {"messages": [model.invoke(state["messages"])]}

    def after(state: MessagesState) -> str:
        names = [message.name for message in state["messages"]]
        return (
            "analysis"
            if "sql" in names and "analysis" not in names
            else END
            if "analysis" in names
            else "sql"
        )

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", supervisor)
    builder.add_node("sql", agent("sql", "The query gives 42 rows."))
    builder.add_node("analysis", agent("analysis", "Carrier 7 is late most often, with 42 flights."))
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", after, ["sql", "analysis", END])
    builder.add_edge("sql", "supervisor")
    builder.add_edge("analysis", "supervisor")
    return builder


def cpu_of_turn(graph: Any, number: int) -> float:
    config = {"configurable": {"thread_id": f"thread-{number}", "user_id": "ada"}}
    began = time.process_time()
    graph.invoke({"messages": [("user", QUESTION.format(week=number))]}, config)
    return time.process_time() - began


def report(name: str, values: Sequence[float]) -> float:
    median = statistics.median(values)
    spread = f"({min(values) * 1000:.2f} to {max(values) * 1000:.2f})"
    print(f"{name:14} {median * 1000:7.2f} ms CPU a turn   {spread}")
    return median


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--backend", default="sqlite", choices=["in_memory", "json", "sqlite"])
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(backend=options.backend, path=Path(folder) / "memory", embedding_model="none")
        with SupervisorMemory(settings) as memory:
            memory.add_many(FACTS, user_id="ada")
            builder = build()
            bare = builder.compile(checkpointer=InMemorySaver())
            remembering = memory.attach(builder).compile(checkpointer=InMemorySaver())
            times: dict[str, list[float]] = {"bare": [], "with memory": []}
            for number in range(options.turns + 10):
                pair = {"bare": cpu_of_turn(bare, number), "with memory": cpu_of_turn(remembering, number)}
                if number >= 10:  # the first ones fill caches
                    for name, seconds in pair.items():
                        times[name].append(seconds)
            without, with_memory = (report(name, values) for name, values in times.items())
            ratios = [b / a for a, b in zip(times["bare"], times["with memory"], strict=True)]
            print(f"\nbackend {options.backend}: ratio of medians {with_memory / without:.2f}, ", end="")
            print(f"median of paired ratios {statistics.median(ratios):.2f} (target: at most 1.30)")


if __name__ == "__main__":
    main()
