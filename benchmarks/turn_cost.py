"""What memory adds to a turn of a graph: the same turn bare and with memory, in turn, as a ratio of CPU time.

Run: make bench        (or: python benchmarks/turn_cost.py --turns 150 [--before FOLDER])
The graph has three nodes: a supervisor and two agents made by `create_agent` that call one tool each, with
scripted models and a checkpointer. No SQL, no plots, no embedder. The memory holds 100 records that all
resemble the question, and recalls and records at each of the five node runs. Each turn asks another
question, so that no turn can live on the answers of the one before.

With --before, a checkout of another commit, both run such turns, a block each in alternation, in processes of
their own; what they do in the background counts.
"""

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

import supervisor_memory
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


TURNS_A_BLOCK = 10
SETTLES_IN = 1.5
"""Seconds in which what a block has left to the background is done: it counts."""


@contextmanager
def filled(backend: str) -> Iterator[SupervisorMemory]:
    """A memory that holds the facts."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(backend=backend, path=Path(folder) / "memory", embedding_model="none")
        with SupervisorMemory(settings) as memory:
            memory.add_many(FACTS, user_id="ada")
            yield memory


@contextmanager
def turns_of(checkout: Path, backend: str) -> Iterator[Callable[[], float]]:
    """Blocks of turns with the package in a folder, in a process of its own; seconds of CPU a turn."""
    path = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--blocks", "--backend", backend]
    own = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own
    ) as process:
        asks, answers = process.stdin, process.stdout
        assert asks is not None
        assert answers is not None
        if not Path(answers.readline().strip()).is_relative_to(checkout.resolve()):
            raise SystemExit(f"{checkout} has no package supervisor_memory that can be imported")

        def block() -> float:
            print(file=asks, flush=True)
            return float(answers.readline())

        yield block
        asks.close()


def turns_when_asked(backend: str) -> None:
    """Run a block of turns for each line that comes in, and tell what a turn of it cost."""
    with filled(backend) as memory:
        remembering = memory.attach(build()).compile(checkpointer=InMemorySaver())
        print(Path(supervisor_memory.__file__).resolve(), flush=True)
        for nth, _ in enumerate(sys.stdin):
            began = time.process_time()
            for number in range(nth * TURNS_A_BLOCK, (nth + 1) * TURNS_A_BLOCK):
                cpu_of_turn(remembering, number)
            time.sleep(SETTLES_IN)
            print((time.process_time() - began) / TURNS_A_BLOCK, flush=True)


def beside(before: Path, *, turns: int, backend: str) -> None:
    """Tell what a turn costs now and with another checkout, by blocks in alternation."""
    now = Path(supervisor_memory.__file__).parents[1]
    with ExitStack() as stack:
        blocks = [stack.enter_context(turns_of(each, backend)) for each in (now, before)]
        for block in (*blocks, *blocks):  # the first ones fill caches and the note
            block()
        times = [[block() for block in blocks] for _ in range(max(1, turns // TURNS_A_BLOCK))]
    for name, column in zip(("now", "before"), zip(*times, strict=True), strict=True):
        report(name, column)
    ratios = sorted(mine / theirs for mine, theirs in times)
    spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} blocks)"
    print(f"\n{statistics.median(ratios):.2f} times as before {spread}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--backend", default="sqlite", choices=["in_memory", "json", "sqlite"])
    parser.add_argument("--before", type=Path, help="a checkout of another commit; see above")
    parser.add_argument("--blocks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    if options.blocks:
        turns_when_asked(options.backend)
        return
    if options.before is not None:
        beside(options.before, turns=options.turns, backend=options.backend)
        return
    with filled(options.backend) as memory:
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
