"""Which modules of the package a turn of a graph goes through, in what order, and how often it changes them.

Run: python benchmarks/walk.py
The graph is supervisor → worker → supervisor, with scripted models, SQLite, no embedder and a checkpointer.
The user states something and asks something. The first turn of a conversation is walked, which imports, and
the second, which finds what the first one left. `attach` and the verbs are walked at their second call, the
verbs with another text than at their first.

module    A file of the package with a function that was entered. Neither imports count, nor what runs because
          of them, nor methods that dataclasses write.
room      A folder directly under the package. The top floor is a room too.
calls     Functions entered, on any thread. Each resumption of a generator is a call, a comprehension is none.
crossing  Calls whose caller, the nearest function of the package below on the stack, is in another module.

Nothing runs in the background: MEMORY_FORGET is "manual" and MEMORY_SESSION_QUIET is 0, which leaves the work
of upkeep out, and without a model no queue is read. Messages and statements are written before a turn ends.
Deadlines are long, so that a slow machine walks the same way. Calls may differ by one or two: the bridge
starts a thread when its last one is not idle yet.
"""

import inspect
import logging
import sys
import tempfile
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

import supervisor_memory
from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel

PACKAGE = Path(supervisor_memory.__file__).parent
TOP = "(top floor)"
CONFIG: Any = {"configurable": {"thread_id": "monday", "user_id": "ada"}}
TURNS = {
    "the first turn": (
        "I prefer tables over charts. How did sales develop in Lisbon?",
        "Sales in Lisbon rose by 4% in April.",
    ),
    "the second turn": (
        "From now on, show amounts in euros. How did sales develop in Oslo?",
        "Sales in Oslo fell by 12% in May.",
    ),
}
RECALLED = ("Where did sales rise?", "What do we know of sales in Oslo?")
SEARCHED = ("Which city sells less?", "How were sales in May?")
WRITTEN = ("I work in Turin.", "My manager is Eve.")


class Walk:
    """The calls between the functions of the package while it is walked, as (caller's module, module)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}
        self._is_on = False

    def through(self, step: Callable[[], object]) -> None:
        """Record what a call enters, and nothing else."""
        self.calls, self._is_on = [], True
        try:
            step()
        finally:
            self._is_on = False

    @property
    def modules(self) -> list[str]:
        """In the order of first entry."""
        return list(dict.fromkeys(module for _, module in self.calls))

    @property
    def rooms(self) -> Counter[str]:
        """How many of the modules each room has."""
        return Counter(room_of(module) for module in self.modules)

    @property
    def crossing(self) -> int:
        return sum(bool(caller) and caller != module for caller, module in self.calls)

    def watch(self, frame: FrameType, event: str, _: object) -> None:
        """A profile function, for `sys.setprofile`."""
        module = self._module_of(frame) if self._is_on and event == "call" else ""
        name = frame.f_code.co_name
        if not module or (name.startswith("<") and name != "<lambda>"):
            return
        below, caller = frame, ""
        while True:
            if self._module_of(below) and not below.f_code.co_flags & inspect.CO_OPTIMIZED:
                return  # a module or a class that is being imported
            if below.f_back is None:
                break
            below = below.f_back
            caller = caller or self._module_of(below)
        self.calls.append((caller, module))

    def _module_of(self, frame: FrameType) -> str:
        """The module's path in the package; empty for what is not of the package."""
        file = frame.f_code.co_filename
        if file not in self._names:
            path = Path(file)
            is_ours = path.is_relative_to(PACKAGE)
            self._names[file] = str(path.relative_to(PACKAGE).with_suffix("")) if is_ours else ""
        return self._names[file]


def room_of(module: str) -> str:
    room, slash, _ = module.partition("/")
    return room if slash else TOP


def build(model: ScriptedModel) -> StateGraph[MessagesState]:
    """supervisor → worker → supervisor."""

    def supervisor(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def worker(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(model.invoke(state["messages"]).text, name="worker")]}

    def after(state: MessagesState) -> str:
        return "worker" if state["messages"][-1].text == "worker" else END

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", supervisor)
    builder.add_node("worker", worker)
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", after, ["worker", END])
    builder.add_edge("worker", "supervisor")
    return builder


def show(name: str, walk: Walk) -> None:
    rooms, modules = walk.rooms, walk.modules
    print(f"{name}: {len(modules)} modules, {len(rooms)} rooms, {len(walk.calls):,} calls, ", end="")
    print(f"{walk.crossing:,} crossing")
    counted = [f"{room} {count}" for room, count in rooms.items()]
    for what, names in (("rooms", counted), ("modules", modules)):
        print(
            textwrap.fill(f"{what}: {', '.join(names)}", 110, initial_indent="  ", subsequent_indent="    ")
        )
    print()


def walked(memory: SupervisorMemory, walk: Walk) -> None:
    """Print every walk."""
    model = ScriptedModel()
    builder = build(model)
    for _ in range(2):
        walk.through(lambda: memory.attach(builder))
    show("memory.attach", walk)
    graph: Any = memory.attach(builder).compile(checkpointer=InMemorySaver())
    for name, (said, found) in TURNS.items():
        model.script[:] = ["worker", found, f"{found} That is all."]
        walk.through(partial(graph.invoke, {"messages": [("user", said)]}, CONFIG))
        assert not model.script, "a model was not asked"
        show(name, walk)
    for text in RECALLED:
        walk.through(partial(memory.recall, [("user", text)], Scope("ada")))
    show("memory.recall", walk)
    for text in SEARCHED:
        walk.through(partial(memory.search, text, user_id="ada"))
    show("memory.search", walk)
    for text in WRITTEN:
        walk.through(partial(memory.write, text, user_id="ada"))
    show("memory.write", walk)


def main() -> None:
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    walk = Walk()
    threading.setprofile(walk.watch)  # before memory starts a thread
    sys.setprofile(walk.watch)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            backend="sqlite",
            path=Path(folder) / "memory",
            embedding_model="none",
            forget="manual",
            session_quiet=0,
            search_timeout_ms=60_000,
            write_timeout_ms=60_000,
        )
        with SupervisorMemory(settings) as memory:
            walked(memory, walk)


if __name__ == "__main__":
    main()
