"""What memory adds to a turn of a graph: the same turn bare and with memory, in turn, as a ratio of CPU time.

Run: make bench        (or: python benchmarks/turn_cost.py --turns 150)
The graph has three nodes: a supervisor and two agents made by `create_agent`, with scripted models and a
checkpointer. No SQL, no plots, no embedder; the memory holds records and its backend is SQLite.
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
from supervisor_memory.testing.scripted import ScriptedModel

FACTS = [f"Metric number {n} counts flights of carrier {n} that arrive over {n} minutes late." for n in range(100)]
QUESTION = "Which carrier has the most flights that arrive late?"


def build() -> StateGraph[MessagesState]:
    supervisor, sql, analysis = (ScriptedModel(label=name) for name in ("supervisor", "sql", "analysis"))

    def decide(state: MessagesState) -> dict[str, Any]:
        supervisor.script[:] = ["Routed."]
        return {"messages": [supervisor.invoke(state["messages"])]}

    def agent(model: ScriptedModel, name: str, answer: str) -> Callable[[MessagesState], dict[str, Any]]:
        graph = create_agent(model, tools=[], name=name)

        def node(state: MessagesState) -> dict[str, Any]:
            model.script[:] = [answer]
            last = graph.invoke({"messages": state["messages"]})["messages"][-1]
            return {"messages": [AIMessage(last.text, name=name)]}

        return node

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", decide)
    builder.add_node("sql", agent(sql, "sql", "The query gives 42 rows."))
    builder.add_node("analysis", agent(analysis, "analysis", "Carrier 7 is late most often."))
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "sql")
    builder.add_edge("sql", "analysis")
    builder.add_edge("analysis", END)
    return builder


def cpu_of_turn(graph: Any, number: int) -> float:
    config = {"configurable": {"thread_id": f"thread-{number}", "user_id": "ada"}}
    began = time.process_time()
    graph.invoke({"messages": [("user", QUESTION)]}, config)
    return time.process_time() - began


def report(name: str, values: Sequence[float]) -> float:
    median = statistics.median(values)
    print(f"{name:14} {median * 1000:7.2f} ms CPU a turn   ({min(values) * 1000:.2f} to {max(values) * 1000:.2f})")
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
            print(f"\nratio of medians {with_memory / without:.2f}, median of paired ratios "
                  f"{statistics.median(ratios):.2f} (target: at most 1.30), backend {options.backend}")  # fmt: skip


if __name__ == "__main__":
    main()
