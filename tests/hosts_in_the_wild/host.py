"""What a host is: a graph that was not written for memory, its models' lines, and what its user says."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Interrupt
from pydantic import BaseModel

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel
from tests.host.graphs import open_memory

__all__ = ["EARLIER", "FENCE", "WISH", "Host", "How", "Models", "Played", "play", "seeded"]

How = Literal["sync", "async"]
FENCE = "<memory id="
EARLIER = "Use tables by default."
"""What the user said in an earlier session, and nobody says in these."""
WISH = "Always answer in French."
"""What each user says in the first turn, beside the question."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")

Model = Callable[[str], Any]


def scripted(script: Sequence[Any], role: str) -> Any:
    return ScriptedModel(script=list(script), label=role)


@dataclass(frozen=True)
class Host:
    """A public graph's shape.

    Attributes:
        build: The builder; it asks for the chat model of each role by name.
        scripts: What the model of each role says, call by call.
        turns: The inputs of one thread: what the user says, or a `Command` that resumes.
        options: What its owner passes to `attach`.
        untold: Roles whose models no person would expect to read a note.
        open: Roles of whom the documentation says nothing either way.
        varies: Whether its synchronous streams differ from run to run, with memory or without.
        chat: (script, role) → the chat model.
    """

    build: Callable[[Model], Any]
    scripts: Mapping[str, Sequence[Any]]
    turns: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    varies: bool = False
    chat: Callable[[Sequence[Any], str], Any] = scripted


class Models(dict[str, Any]):
    """The chat models of a host by role, each made when it is first asked for."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, role: str) -> Any:
        if role not in self:
            self[role] = self._host.chat(self._host.scripts[role], role)
        return self[role]


@dataclass(frozen=True)
class Played:
    """A conversation as everybody outside the graph saw it, and what its models read."""

    streams: list[str]
    states: list[str]
    calls: Mapping[str, list[list[BaseMessage]]]
    models: Mapping[str, Any]


def seeded() -> SupervisorMemory:
    """A memory to which the user spoke in an earlier session."""
    memory = open_memory()
    memory.remember([("user", EARLIER), ("assistant", "Noted.")], Scope("ada", session_id="earlier"))
    assert [r.content for r in memory.get_all(user_id="ada") if r.family == "user_profile"] == [EARLIER]
    return memory


async def play(host: Host, how: How, memory: SupervisorMemory | None = None) -> Played:
    """All turns of a host in one thread, with memory or without."""
    models = Models(host)
    bare = host.build(models)
    builder = bare if memory is None else memory.attach(bare, **host.options)
    graph = builder.compile(checkpointer=InMemorySaver())
    # One task after the other, for one order of events; a synchronous stream takes a thread for itself.
    side_by_side = 1 if how == "async" else 2
    where: Any = {
        "configurable": {"thread_id": "now", "user_id": "ada"},
        "max_concurrency": side_by_side,
    }
    modes: Any = {"stream_mode": ["values", "updates", "messages", "custom", "tasks"], "subgraphs": True}
    streams: list[str] = []
    states: list[str] = []
    for turn in host.turns:
        given = {"messages": [("user", turn)]} if isinstance(turn, str) else turn
        if how == "async":
            streams += [_plain(chunk) async for chunk in graph.astream(given, where, **modes)]
        else:
            streams += [_plain(chunk) for chunk in graph.stream(given, where, **modes)]
        now = graph.get_state(where)
        states.append(_plain((now.values, now.next, now.interrupts)))
    states += [_plain((each.values, each.next)) for each in graph.get_state_history(where)]
    return Played(streams, states, {role: model.calls for role, model in models.items()}, models)


def _plain(value: Any) -> str:
    """Whatever a graph gives as text. Ids of random origin are alike: LangGraph makes some in threads."""
    return _ID.sub("#", repr(_data(value)))


def _data(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return type(value).__name__, _data(value.model_dump())
    if isinstance(value, Interrupt):
        return "interrupt", value.id, _data(value.value)
    if isinstance(value, dict):
        return {key: _data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_data(each) for each in value]
    return value
