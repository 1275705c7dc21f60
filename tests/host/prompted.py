"""Graphs of one node, and models that stream, shared by the tests of prompts."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import END, START

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel
from tests.host.graphs import Graph, Team, asking, config

FENCE = "<memory id="
END_OF_NOTE = "</memory>"
OWN: list[BaseMessage] = [SystemMessage("base"), HumanMessage("Say it.")]
"""A prompt that a node builds by itself, without the state's messages."""
NOT_OWN = "a prompt that a node builds itself has no note: the note is put into the state's messages"
NO_PLACEMENT = "attach and bind_agent take no placement"


class Streaming(ScriptedModel):
    """A scripted model that streams word by word."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages, stop=stop, **kwargs).generations[0].message
        for word in str(said.content).split(" ") or [""]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=said.id))


class Refusing(ScriptedModel):
    """A model whose provider always fails; it keeps its prompts."""

    times: int = 1_000

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        if len(self.calls) < self.times:
            self.calls.append(list(messages))
            raise ConnectionError("no provider here")
        return super()._generate(messages, *args, **kwargs)


class Listening(BaseCallbackHandler):
    """A tracer that keeps every prompt it receives."""

    def __init__(self) -> None:
        self.prompts: list[list[BaseMessage]] = []

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **more: Any) -> None:
        self.prompts += messages


def streaming(*script: Any, label: str = "m") -> Streaming:
    return Streaming(script=list(script), label=label)


def alone(node: Any, *, name: str = "supervisor", state: Any = Team) -> Any:
    """A builder with one node."""
    builder = Graph(state)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder


def row(*nodes: tuple[str, Any], state: Any = Team) -> Any:
    """A builder whose nodes run one after the other."""
    builder, before = Graph(state), START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder


async def talk(
    memory: SupervisorMemory,
    body: Callable[[Any], Any],
    *,
    user: str = "ada",
    thread: str = "t1",
    given: Any = None,
    with_config: Any = None,
    **options: Any,
) -> Any:
    """Run a graph whose one node does `body` with its state, and answers what that returns as text."""

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(str(body(state)))]}

    async def anode(state: Any) -> Any:
        return {"messages": [AIMessage(str(await body(state)))]}

    is_async = inspect.iscoroutinefunction(body)
    graph = memory.attach(alone(anode if is_async else node), **options).compile()
    where = {**config(thread, user_id=user), **(with_config or {})}
    asked = asking() if given is None else given
    return await graph.ainvoke(asked, where) if is_async else graph.invoke(asked, where)


def plain(messages: Sequence[BaseMessage]) -> list[tuple[str, Any]]:
    """(type, content) of each message, as a provider would get it."""
    return [(message.type, message.content) for message in messages]


def fences(messages: Sequence[BaseMessage]) -> int:
    """How often a note stands in a prompt."""
    return sum(str(message.content).count(FENCE) for message in messages)


def note_of(messages: Sequence[BaseMessage]) -> str:
    """The one note of a prompt, its bytes."""
    whole = "\n".join(str(message.text) for message in messages)
    assert whole.count(FENCE) == whole.count(END_OF_NOTE) == 1
    return whole[whole.index(FENCE) : whole.index(END_OF_NOTE) + len(END_OF_NOTE)]
