"""What memory adds to one node call over an empty store, beside the bare node, in CPU time.

Run: make bench        (or: python benchmarks/node_cost.py --turns 300)
Each turn runs two graphs once bare and once with memory, for a user of whom nothing is known: a
supervisor alone, which keeps the exchange, and one with seven agents. A seventh of the difference is the
price of a node call. "silent" agents change a counter in the state, so that the price is the wrapper's:
identity, recall, and a look at what comes back. "speaking" agents bring a conclusion each, so that a
decision and a commit are in the price.
"""

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from supervisor_memory import Settings, SupervisorMemory

STATES = ("silent", "speaking")
AGENTS = [f"agent_{number}" for number in range(7)]


class State(MessagesState):
    steps: int


def build(kind: str, agents: list[str]) -> StateGraph[State]:
    """supervisor → agents in a row."""
    builder = StateGraph(State)

    def work(name: str) -> Any:
        if kind == "silent" or name == "supervisor":
            return lambda state: {"steps": state.get("steps", 0) + 1}
        found = f"{name} finds that region {name} sells most."
        return lambda state: {"messages": [AIMessage(found, name=name)]}

    names = ["supervisor", *agents]
    for name in names:
        builder.add_node(name, work(name))
    for one, following in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, following)
    return builder


def cpu_of_turn(graph: Any, number: int, user: str) -> float:
    config = {"configurable": {"thread_id": f"thread-{number}", "user_id": user}}
    began = time.process_time()
    graph.invoke({"messages": [("user", f"How is the weather in week {number}?")]}, config)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--backends", nargs="*", default=["in_memory", "sqlite"])
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    for backend in options.backends:
        for kind in STATES:
            measure(backend, kind, options.turns)


def measure(backend: str, kind: str, turns: int) -> None:
    """Print what a supervisor's call adds, which keeps the exchange, and each further node."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(backend=backend, path=Path(folder) / "memory", embedding_model="none")
        with SupervisorMemory(settings) as memory:
            added: dict[int, list[float]] = {0: [], len(AGENTS): []}
            graphs = {n: build(kind, AGENTS[:n]) for n in added}
            pairs = {n: (graph.compile(), memory.attach(graph).compile()) for n, graph in graphs.items()}
            for number in range(turns + 20):
                for agents, (bare, remembering) in pairs.items():
                    user = f"user-{agents}-{number}"  # whose store is empty
                    without = cpu_of_turn(bare, number, user)
                    with_memory = cpu_of_turn(remembering, number, user)
                    if number >= 20:  # the first ones fill caches
                        added[agents].append(with_memory - without)
    alone, together = (statistics.median(each) * 1000 for each in added.values())
    print(
        f"{backend:10}{kind:9} the supervisor's call and its commit add {alone:.2f} ms CPU a turn, each "
        f"further node call {(together - alone) / len(AGENTS):.2f} ms (target for silent: at most 1.00)"
    )


if __name__ == "__main__":
    main()
