"""Graphs, stores and helpers to inspect them, shared by the tests of this folder."""

import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from supervisor_memory import SupervisorMemory
from supervisor_memory.settings import Settings
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel

CANARY = "zebra"
"""A word that stands in every record of `seed` and in nothing that a test says itself."""


Graph: Any = StateGraph
"""The builder, untyped: what a node is typed as says nothing to these tests."""


class Team(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    user_id: str
    final_answer: str
    side_effects: list[dict[str, Any]]


def open_memory(**options: Any) -> SupervisorMemory:
    """A memory without an embedder whose clock stands still."""
    given = {"embedding_model": "none", **options.pop("settings", {})}
    return SupervisorMemory(Settings(**given), clock=FixedClock(), **options)


def seed(memory: SupervisorMemory, user: str = "ada") -> None:
    """One record in each family that a team has; all match the question about revenue."""
    memory.write(f"Always show revenue as a {CANARY} table", user_id=user, kind="user-profile")
    memory.write(f"Revenue means {CANARY} net of tax", user_id=user, kind="domain-facts")
    for agent in ("worker", "other"):
        memory.write(
            f"Revenue of {CANARY} {agent} rose in May", user_id=user, kind="task-traces", agent_id=agent
        )


ASK = "What was the revenue?"


def config(thread: str = "t1", **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **configurable}}


def asking(text: str = ASK, **state: Any) -> Any:
    return {"messages": [("user", text)], **state}


def model(*script: Any, label: str = "m") -> ScriptedModel:
    return ScriptedModel(script=list(script), label=label)


def team(
    supervisor: ScriptedModel,
    workers: dict[str, ScriptedModel],
    *,
    order: Iterable[str] | None = None,
    state: Any = Team,
) -> Any:
    """A hand-written graph: the supervisor calls the workers in turn, then answers."""
    plan = list(workers if order is None else order)

    def supervise(state: Any) -> dict[str, Any]:
        return {"messages": [supervisor.invoke([SystemMessage("boss"), *state["messages"]])]}

    def following(state: Any) -> str:
        since = 0
        for message in reversed(state["messages"]):
            if message.type == "human":
                break
            since += message.name in workers
        return plan[since] if since < len(plan) else END

    def node(name: str) -> Callable[[Any], dict[str, Any]]:
        def work(state: Any) -> dict[str, Any]:
            said = workers[name].invoke([SystemMessage(name), *state["messages"]])
            return {"messages": [AIMessage(said.text, name=name, id=said.id)]}

        return work

    builder = Graph(state)
    builder.add_node("supervisor", supervise)
    builder.add_edge(START, "supervisor")
    for name in workers:
        builder.add_node(name, node(name))
        builder.add_edge(name, "supervisor")
    builder.add_conditional_edges("supervisor", following, [*workers, END])
    return builder


def notes_in(messages: Iterable[BaseMessage]) -> list[str]:
    return [m.text for m in messages if "<memory id=" in m.text]


def raw(saver: InMemorySaver) -> str:
    """Everything a checkpointer holds, as one text."""
    return f"{saver.storage!r}{saver.writes!r}{saver.blobs!r}"


def texts(state: Any) -> list[tuple[str, str, str | None]]:
    return [(m.type, m.text, m.name) for m in state["messages"]]


VOLATILE = frozenset(
    {
        "log_id",
        "event_id",
        "ts_us",
        "record_id",
        "subject",
        "session",
        "run_id",
        "commit_before",
        "commit_after",
    }
)


def audit_of(memory: SupervisorMemory) -> list[dict[str, Any]]:
    """The audit rows, without ids, times and hashes, also in their details."""
    rows = memory.backend.audit.tail(10_000)
    kept = [{k: v for k, v in row.event.items() if k not in VOLATILE} for row in rows]
    for row in kept:
        row["detail"] = {k: v for k, v in (row.get("detail") or {}).items() if k != "nearest_id"}
    return kept


def accesses_of(memory: SupervisorMemory) -> list[tuple[Any, ...]]:
    """The access rows, without ids and times."""
    rows = memory.backend.audit.accesses(10_000)
    return [(row.op, row.agent_id, row.rank, row.score_milli, row.reason) for row in rows]


def outcomes(memory: SupervisorMemory, op: str) -> list[tuple[str, str]]:
    """(outcome, reason) of every audit row of an operation."""
    return [(row["outcome"], row["reason"]) for row in audit_of(memory) if row["op"] == op]


class Broken:
    """A backend with some failing methods; the others are the inner backend's."""

    def __init__(self, inner: Any, **faults: Callable[..., Any]) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return self._faults.get(name) or getattr(self._inner, name)


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_args: Any, **_options: Any) -> Any:
        raise error

    return fail


def hanging(seconds: float = 3.0) -> Callable[..., Any]:
    def hang(*_args: Any, **_options: Any) -> Any:
        time.sleep(seconds)

    return hang
