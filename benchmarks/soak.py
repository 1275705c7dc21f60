"""What ten thousand turns in one process do to a turn, to memory (RSS) and to the store.

Run: python benchmarks/soak.py [--turns 10000] [--users 50] [--capacity 100] [--no-messages]

Users take turns; each has conversations of ten turns with a supervisor and one agent, scripted models and no
embedder. Each turn asks something else, and the agent concludes something else; in one turn of ten the user
states a preference or a definition instead. A conversation's checkpoints are dropped at its end, and the
model after each turn, so that what grows is memory. The turns are told in ten parts: CPU of the
process with all its threads, RSS after a collection, records, bytes of the store's files.

Below the table: CPU of the last part beside the third; what each kept record adds to RSS, of all records and
of those that are no messages; RSS since the first namespace was full (MEMORY_CAPACITY; a part of it is freed
at once), which has to be flat.
"""

import argparse
import gc
import json
import logging
import os
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY, Filter
from supervisor_memory.testing.scripted import ScriptedModel

PARTS = 10
A_CONVERSATION = 10
FAMILY = "analyst_memories"
"""Where most of what is kept goes."""
METRICS = ("revenue", "churn", "refunds", "signups", "traffic", "latency", "margin", "returns")
PLACES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Lagos", "Lima", "Perth", "Turin", "Graz", "Cork")
DOUBTED = ("the loader", "the tariff", "a holiday", "the campaign", "a strike", "the outage", "the new form")
MB = 2**20
NEARLY_FULL = 0.9
"""Of MEMORY_CAPACITY: a namespace that was over it is kept between this share and all of it."""


@dataclass(frozen=True)
class Part:
    """What was measured of some turns: `cpu_ms` a turn, the others as they were at their end.

    `fullest` is how many active records the largest namespace of the agent's conclusions held.
    """

    turns: int
    cpu_ms: float
    rss: int
    records: int
    not_messages: int
    fullest: int
    stored: int


class Team:
    """A supervisor and an analyst that say what a turn's number makes them say."""

    def __init__(self, memory: SupervisorMemory) -> None:
        self._model = ScriptedModel()
        self._saver = InMemorySaver()
        builder = StateGraph(MessagesState)
        builder.add_node("supervisor", self._supervisor)
        builder.add_node("analyst", self._analyst)
        builder.add_edge(START, "supervisor")
        builder.add_conditional_edges("supervisor", self._after, ["analyst", END])
        builder.add_edge("analyst", "supervisor")
        self._graph = memory.attach(builder).compile(checkpointer=self._saver)

    def turn(self, number: int, user: int, *, nth: int) -> None:
        """One turn of a user, the nth of theirs."""
        chance = random.Random(number)
        metric, place = chance.choice(METRICS), chance.choice(PLACES)
        cause, change = chance.choice(DOUBTED), chance.randint(2, 90)
        said = f"How did {metric} in {place} develop in week {number}?"
        script = [
            "analyst",
            f"In {place} {metric} changed by {change}% in week {number}, after {cause}.",
            "Done.",
        ]
        if nth % A_CONVERSATION == 0:
            said = f"Metric {number} means {metric} in {place} without {cause}."
            script = ["Noted."]
        self._model = ScriptedModel(script=script, label=f"turn-{number}")  # it keeps what it was asked
        thread = f"{user}-{nth // A_CONVERSATION}"
        config: Any = {"configurable": {"user_id": f"user-{user}", "thread_id": thread}}
        self._graph.invoke({"messages": [("user", said)]}, config)
        if nth % A_CONVERSATION == A_CONVERSATION - 1:
            self._saver.delete_thread(thread)

    def _supervisor(self, state: MessagesState) -> dict[str, Any]:
        return {"messages": [self._model.invoke(state["messages"])]}

    def _analyst(self, state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(self._model.invoke(state["messages"]).text, name="analyst")]}

    def _after(self, state: MessagesState) -> str:
        return "analyst" if state["messages"][-1].text == "analyst" else END


def rss() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stored(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measured(memory: SupervisorMemory, folder: Path, *, users: int, done: int, cpu_ms: float) -> Part:
    """What there is now that `done` turns are done, the latest of which took `cpu_ms` each."""

    def count(user: int | None, *families: str) -> int:
        named = None if user is None else f"user-{user}"
        return memory.backend.count(Filter(user_id=named, families=families or None))

    messages, others = count(None, SESSION_FAMILY), count(None)
    fullest = max(count(user, FAMILY) for user in range(users))
    return Part(done, cpu_ms, rss(), messages + others, others, fullest, stored(folder))


def soaked(*, turns: int, users: int, **chosen: Any) -> list[Part]:
    """All parts, the first with what there was before any turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(path=folder / "memory", embedding_model="none", **chosen)
        with SupervisorMemory(settings) as memory:
            team = Team(memory)
            team.turn(-1, users, nth=0)  # the first one imports; it is a user's who is not counted
            parts = [measured(memory, folder, users=users, done=0, cpu_ms=0)]
            of_a_part = turns // PARTS
            for done in range(0, turns, of_a_part):
                began = time.process_time()
                for number in range(done, done + of_a_part):
                    team.turn(number, number % users, nth=number // users)
                cpu_ms = (time.process_time() - began) / of_a_part * 1000
                now = measured(memory, folder, users=users, done=done + of_a_part, cpu_ms=cpu_ms)
                tell(now, parts[-1])
                parts.append(now)
    return parts


def tell(part: Part, before: Part) -> None:
    turns = part.turns - before.turns
    print(
        f"{part.turns:8,} {part.cpu_ms:8.1f} {part.rss / MB:9.1f} {part.records:9,} {part.not_messages:9,} "
        f"{part.fullest:9,} {part.stored / MB:9.1f} {(part.stored - before.stored) / turns / 1024:11.1f}",
        flush=True,
    )


def conclude(parts: list[Part], capacity: int) -> None:
    start, third, last = parts[0], parts[3], parts[-1]
    print(f"\nCPU of the last part beside the third: {last.cpu_ms / third.cpu_ms:.2f} (aim: 1.20 or less)")
    grown = last.rss - start.rss
    for name, count in (
        ("record", last.records - start.records),
        ("record that is no message", last.not_messages - start.not_messages),
    ):
        print(f"RSS a kept {name}: {grown / max(count, 1) / 1024:.1f} KB (aim: 8 KB or less)")
    full = [part for part in parts if part.fullest >= NEARLY_FULL * capacity]
    if len(full) > 1:
        grown, came = full[-1].rss - full[0].rss, full[-1].records - full[0].records
        print(
            f"RSS since a namespace held {NEARLY_FULL:.0%} of {capacity:,}: {grown / MB:+.1f} MB over "
            f"{full[-1].turns - full[0].turns:,} turns, with {came:,} records more; the fullest holds "
            f"{last.fullest:,}"
        )
    else:
        print(f"no namespace was full: the fullest holds {last.fullest:,} of {capacity:,}")
    print(f"the store: {(last.stored - start.stored) / last.turns / 1024:.1f} KB a turn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10_000, help="a multiple of ten")
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--capacity", type=int, default=100, help="MEMORY_CAPACITY, of a namespace")
    parser.add_argument("--backend", default="sqlite", choices=["in_memory", "json", "sqlite"])
    parser.add_argument("--no-messages", action="store_true", help="MEMORY_KEEP_MESSAGES=false")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    print(
        f"{'turns':>8} {'ms CPU':>8} {'RSS MB':>9} {'records':>9} {'no msgs':>9} {'fullest':>9} "
        f"{'store MB':>9} {'KB a turn':>11}"
    )
    parts = soaked(
        turns=options.turns,
        users=options.users,
        capacity=options.capacity,
        backend=options.backend,
        keep_messages=not options.no_messages,
    )
    conclude(parts, options.capacity)
    if options.json:
        options.json.write_text(json.dumps([asdict(part) for part in parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
