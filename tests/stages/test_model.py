"""What memory asks a model stays memory's own: no stream, tracer or counter of the host's run shows it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import (
    BaseCallbackHandler,
    CallbackManagerForLLMRun,
    get_usage_metadata_callback,
)
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START
from langgraph.types import StreamMode

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.testing.scripted import ScriptedModel
from tests.breadth import HOW
from tests.cases import every_case
from tests.host.graphs import Graph, Team, asking, config, open_memory

SECRET = "kiel-depot"
FOUND = f'[{{"content": "{SECRET} is in the north", "kind": "domain-facts"}}]'
SAID = f"by the way, the {SECRET} is in the north"
USAGE = UsageMetadata(input_tokens=1, output_tokens=1, total_tokens=2)


class Streaming(ScriptedModel):
    """Says its text word by word to whoever streams."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages).generations[0].message
        for word in said.text.split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=f"{word} ", id=said.id))
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


class Watching(BaseCallbackHandler):
    """A tracer of the host."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.seen.append(str(messages))

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.seen.append(str(token))

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.seen.append(str(response))


@pytest.fixture
def llm() -> Streaming:
    return Streaming(script=[FOUND] * 9, label="memory")


@pytest.fixture
def memory(llm: Streaming) -> Iterator[SupervisorMemory]:
    with open_memory(llm=llm) as memory:
        yield memory


def team(memory: SupervisorMemory) -> Any:
    """The supervisor, and then a node that waits for memory's background, so that its tokens would show."""
    host = Streaming(script=["all is well"] * 9, label="host")

    def speak(state: Any) -> Any:
        return {"messages": [host.invoke(state["messages"])]}

    def wait(state: Any) -> Any:
        assert memory.flush()
        return {}

    builder = Graph(Team)
    builder.add_node("supervisor", speak)
    builder.add_node("wait", wait)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "wait")
    builder.add_edge("wait", END)
    return memory.attach(builder, agents=[]).compile()


def assert_hidden(seen: list[Any], memory: SupervisorMemory, llm: Streaming) -> None:
    assert memory.flush()
    assert len(llm.calls) == 1
    assert [r.content for r in memory.get_all(user_id="ada")] == [f"{SECRET} is in the north"]
    assert seen
    told = [str(each) for each in seen]
    assert not [each for each in told if "memory-1" in each or "list what is worth remembering" in each]


MODES: list[StreamMode] = ["messages", "updates", "values", "custom", "debug", "tasks"]


@HOW
async def test_no_stream_shows_what_memory_asks(memory: SupervisorMemory, llm: Streaming, how: str) -> None:
    graph = team(memory)
    given = asking(SAID, user_id="ada"), config()
    if how == "async":
        seen = [each async for each in graph.astream(*given, stream_mode=MODES, subgraphs=True)]
    else:
        seen = list(graph.stream(*given, stream_mode=MODES, subgraphs=True))
    tokens = [data[0].text for _, mode, data in seen if mode == "messages"]
    assert "".join(tokens).split() == ["all", "is", "well"]
    assert_hidden(seen, memory, llm)


async def test_no_event_shows_what_memory_asks(memory: SupervisorMemory, llm: Streaming) -> None:
    graph = team(memory)
    seen = [e async for e in graph.astream_events(asking(SAID, user_id="ada"), config(), version="v2")]
    assert "on_chat_model_stream" in {event["event"] for event in seen}
    assert_hidden(seen, memory, llm)


@HOW
async def test_no_tracer_or_counter_of_the_host_sees_it(
    memory: SupervisorMemory, llm: Streaming, how: str
) -> None:
    llm.script = [AIMessage(FOUND, usage_metadata=USAGE, response_metadata={"model_name": "memory"})]
    tracer, graph = Watching(), team(memory)
    given = asking(SAID, user_id="ada"), {**config(), "callbacks": [tracer]}
    with get_usage_metadata_callback() as counter:
        await graph.ainvoke(*given) if how == "async" else graph.invoke(*given)
    assert counter.usage_metadata == {}
    assert_hidden(tracer.seen, memory, llm)


async def test_a_verb_that_a_host_calls_in_a_run_shows_nothing_either(llm: Streaming) -> None:
    llm.script = ["a digest of both"]
    with open_memory(llm=llm) as memory:
        digest: RunnableLambda[str, str] = RunnableLambda(
            lambda goal: memory.summarize(["one", "two"], goal=goal)
        )
        tracer = Watching()
        assert digest.invoke("a report", {"callbacks": [tracer]}) == "a digest of both"
        events = [e async for e in digest.astream_events("a report", version="v2")]
    assert len(llm.calls) == 2
    assert tracer.seen == []
    assert not [e for e in events if "chat_model" in e["event"]]


# --- what a model may be


@every_case("thing", ["openai:gpt", 5, object(), ScriptedModel, lambda prompt: "x", {}])
def test_what_is_no_model_is_refused_at_the_door(thing: Any) -> None:
    with pytest.raises(SettingsError, match=r"llm is .* no chat model; pass an object such as") as raised:
        SupervisorMemory(Settings(embedding_model="none"), llm=thing)
    assert raised.value.facts["llm"] == type(thing).__name__


@every_case("name", ["nonsense", "nobody:nothing"])
def test_a_name_that_opens_no_model_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(SettingsError, match=r"MEMORY_LLM=.* cannot be opened.*nothing needs it") as raised:
        SupervisorMemory(Settings(embedding_model="none", llm=name))
    assert raised.value.__cause__ is not None


def test_a_model_that_answers_plain_text_will_do() -> None:
    plain: Any = FakeListLLM(responses=["a digest"])
    with open_memory(llm=plain) as memory:
        assert memory.summarize(["one", "two"], goal="x") == "a digest"


# --- errors that are no Exception


class NotAnException(BaseException):
    """As langmem's ConfigurationError is."""


@every_case("error", [NotAnException("misconfigured"), asyncio.CancelledError()])
def test_a_model_that_raises_no_exception_breaks_nothing(error: BaseException) -> None:
    def fail(messages: Any) -> Any:
        raise error

    with open_memory(llm=ScriptedModel(script=[fail] * 9)) as memory:
        assert memory.summarize(["one", "two"], goal="x") == "- one\n- two"
        (kept,) = memory.remember("Always answer in tables.", Scope("ada"))
        assert kept.saved
        assert memory.flush(seconds=5)
        reasons = {row.event["reason"] for row in memory.backend.audit.tail(9, op="sharpen")}
        assert reasons == {f"model:{type(error).__name__}"}
