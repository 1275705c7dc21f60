"""However a node calls its chat model, the call holds the note, and holds it once."""

import asyncio
import contextvars
import importlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import tool
from langchain_core.tracers.context import collect_runs
from pydantic import BaseModel

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import HOW
from tests.host.graphs import ASK, CANARY, asking, config, model
from tests.host.prompted import (
    FENCE,
    OWN,
    Listening,
    Refusing,
    Streaming,
    alone,
    fences,
    note_of,
    plain,
    row,
    streaming,
    talk,
)


class Answer(BaseModel):
    """An answer."""

    text: str


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def holds_once(call: list[BaseMessage]) -> bool:
    """Whether a call is the host's own prompt with one note at the end of its system message."""
    system, human = call
    return (
        (system.type, human.type, human.content) == ("system", "human", "Say it.")
        and system.text.startswith("base")
        and system.text.count(FENCE) == 1
        and CANARY in system.text
    )


def _v3(boss: Any) -> Any:
    said = boss.stream_events(OWN, version="v3")
    for _ in said:
        pass
    return said.output


async def _av3(boss: Any) -> Any:
    said = await boss.astream_events(OWN, version="v3")
    return await said.output


async def _av2(boss: Any) -> Any:
    return [event async for event in boss.astream_events(OWN, version="v2")][-1]["data"]["output"]


async def _astream(boss: Any) -> Any:
    return [piece async for piece in boss.astream(OWN)]


async def _as_completed(boss: Any) -> Any:
    return [each async for each in boss.abatch_as_completed([OWN, OWN])]


def _in_a_thread(boss: Any) -> Any:
    held = contextvars.copy_context()
    thread = threading.Thread(target=lambda: held.run(boss.invoke, OWN))
    thread.start()
    thread.join()


def _in_a_pool(boss: Any) -> Any:
    with ContextThreadPoolExecutor() as pool:
        return [*pool.map(boss.invoke, [OWN, OWN])]


def _template(boss: Any) -> Any:
    prompt = ChatPromptTemplate([("system", "base"), ("human", "{asked}")])
    return (prompt | boss | StrOutputParser()).invoke({"asked": "Say it."})


WAYS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "invoke": (lambda boss: boss.invoke(OWN), 1),
    "invoke_with_config": (lambda boss: boss.invoke(OWN, {"tags": ["t"], "metadata": {"m": 1}}), 1),
    "batch": (lambda boss: boss.batch([OWN, OWN]), 2),
    "batch_as_completed": (lambda boss: [*boss.batch_as_completed([OWN, OWN])], 2),
    "generate": (lambda boss: boss.generate([OWN, OWN]), 2),
    "stream": (lambda boss: [*boss.stream(OWN)], 1),
    "stream_twice": (lambda boss: [[*boss.stream(OWN)], [*boss.stream(OWN)]], 2),
    "bound_tools": (lambda boss: boss.bind_tools([add]).invoke(OWN), 1),
    "bound_tools_streamed": (lambda boss: [*boss.bind_tools([add]).stream(OWN)], 1),
    "with_config": (lambda boss: boss.with_config(tags=["t"], run_name="r").invoke(OWN), 1),
    "with_retry": (lambda boss: boss.with_retry().invoke(OWN), 1),
    "with_fallbacks": (lambda boss: boss.with_fallbacks([model()]).invoke(OWN), 1),
    "a_template": (_template, 1),
    "parallel": (lambda boss: RunnableParallel(a=boss, b=boss).invoke(OWN), 2),
    "a_lambda": (lambda boss: RunnableLambda(boss.invoke).invoke(OWN), 1),
    "a_thread": (_in_a_thread, 1),
    "a_pool": (_in_a_pool, 2),
}
AWAYS: dict[str, tuple[Callable[[Any], Awaitable[Any]], int]] = {
    "ainvoke": (lambda boss: boss.ainvoke(OWN), 1),
    "abatch": (lambda boss: boss.abatch([OWN, OWN]), 2),
    "abatch_as_completed": (_as_completed, 2),
    "agenerate": (lambda boss: boss.agenerate([OWN, OWN]), 2),
    "astream": (_astream, 1),
    "astream_events_v2": (_av2, 1),
    "bound_tools": (lambda boss: boss.bind_tools([add]).ainvoke(OWN), 1),
    "with_retry": (lambda boss: boss.with_retry().ainvoke(OWN), 1),
    "with_fallbacks": (lambda boss: boss.with_fallbacks([model()]).ainvoke(OWN), 1),
    "parallel": (lambda boss: RunnableParallel(a=boss, b=boss).ainvoke(OWN), 2),
    "gather": (lambda boss: asyncio.gather(boss.ainvoke(OWN), boss.ainvoke(OWN)), 2),
    "to_thread": (lambda boss: asyncio.to_thread(boss.invoke, OWN), 1),
    "a_task": (lambda boss: asyncio.create_task(boss.ainvoke(OWN)), 1),
}
KINDS = pytest.mark.parametrize("kind", [ScriptedModel, Streaming])


@pytest.mark.one_in(4)
@KINDS
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_holds_the_note_once(memory: SupervisorMemory, kind: Any, way: str) -> None:
    boss, (call, times) = kind(), WAYS[way]
    await talk(memory, lambda _: call(boss))
    assert [holds_once(each) for each in boss.calls] == [True] * times


@pytest.mark.one_in(4, shift=1)
@KINDS
@pytest.mark.parametrize("way", AWAYS)
async def test_an_async_call_holds_the_note_once(memory: SupervisorMemory, kind: Any, way: str) -> None:
    boss, (call, times) = kind(), AWAYS[way]

    async def body(_state: Any) -> Any:
        return await call(boss)

    await talk(memory, body)
    assert [holds_once(each) for each in boss.calls] == [True] * times


async def test_the_streams_of_version_three_hold_the_note_once(memory: SupervisorMemory) -> None:
    """Only models that stream have them."""
    boss = streaming("all done", "all done")
    said = []

    async def body(_state: Any) -> str:
        said.append(_v3(boss).text)
        said.append((await _av3(boss)).text)
        return "done"

    await talk(memory, body)
    assert [holds_once(each) for each in boss.calls] == [True, True]
    assert said == ["alldone", "alldone"]


@pytest.mark.parametrize("include_raw", [False, True])
async def test_structured_output_is_asked_for_with_the_note(
    memory: SupervisorMemory, include_raw: bool
) -> None:
    boss = model(call_of("Answer", text="yes"))
    got: list[Any] = []

    def body(_state: Any) -> str:
        got.append(boss.with_structured_output(Answer, include_raw=include_raw).invoke(OWN))
        return "done"

    await talk(memory, body)
    assert [holds_once(call) for call in boss.calls] == [True]
    assert (got[0]["parsed"] if include_raw else got[0]) == Answer(text="yes")


async def test_every_attempt_and_every_fallback_holds_the_note_once(memory: SupervisorMemory) -> None:
    dead, flaky, spare = Refusing(), Refusing(times=1), model()

    def body(_state: Any) -> str:
        flaky.with_retry(stop_after_attempt=3, wait_exponential_jitter=False).invoke(OWN)
        return str(dead.with_fallbacks([spare]).invoke(OWN).text)

    await talk(memory, body)
    assert [holds_once(call) for call in flaky.calls] == [True, True]
    assert [holds_once(call) for call in dead.calls] == [True]
    assert [holds_once(call) for call in spare.calls] == [True]


@pytest.mark.parametrize("asked", ["Say it.", [("user", "Say it.")], [HumanMessage("Say it.")]])
async def test_a_prompt_in_any_form_gets_the_note_in_front(memory: SupervisorMemory, asked: Any) -> None:
    boss = model()
    await talk(memory, lambda _: boss.invoke(asked))
    system, human = boss.calls[0]
    assert (system.type, human.type, human.content) == ("system", "human", "Say it.")
    assert system.text.startswith(FENCE)


class Wrapping(Streaming):
    """A provider that overrides `invoke` and `stream`, as some do to add to the prompt."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return super().invoke([*input, HumanMessage("Be brief.")], config, **kwargs)

    def stream(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return super().stream([*input, HumanMessage("Be brief.")], config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return await super().ainvoke([*input, HumanMessage("Be brief.")], config, **kwargs)


class Generating(ScriptedModel):
    """A provider whose `invoke` goes by `generate`, and whose `generate` adds to what it inherits."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return self.generate([input], **kwargs).generations[0][0].message

    def generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return super().generate([[*each, HumanMessage("Be brief.")] for each in messages], *args, **kwargs)


@pytest.mark.parametrize("kind", [Wrapping, Generating])
@pytest.mark.parametrize("way", ["invoke", "stream", "bound"])
async def test_a_provider_that_overrides_how_it_is_called_is_told_once(
    memory: SupervisorMemory, kind: Any, way: str
) -> None:
    boss = kind()
    ways: dict[str, Callable[[Any], Any]] = {
        "invoke": lambda _: boss.invoke(OWN),
        "stream": lambda _: [*boss.stream(OWN)],
        "bound": lambda _: boss.bind(stop=["x"]).invoke(OWN),
    }
    await talk(memory, ways[way])
    assert [message.text for message in boss.calls[0]][1:] == ["Say it.", "Be brief."]
    assert fences(boss.calls[0]) == 1


async def test_stream_that_falls_back_to_invoke_holds_the_note_once(memory: SupervisorMemory) -> None:
    whole, off = model(), Streaming(disable_streaming=True)

    async def body(_state: Any) -> str:
        for each in (whole, off):
            _ = [*each.stream(OWN)], [piece async for piece in each.astream(OWN)]
        return "done"

    await talk(memory, body)
    assert [holds_once(call) for call in whole.calls + off.calls] == [True] * 4


async def test_a_prompt_that_is_sent_again_with_its_note_holds_it_once(memory: SupervisorMemory) -> None:
    """A node that keeps what a callback showed it and asks again."""
    boss, listening = model(), Listening()

    def body(_state: Any) -> str:
        boss.invoke(OWN, {"callbacks": [listening]})
        return str(boss.invoke(listening.prompts[0]).text)

    await talk(memory, body)
    assert [fences(call) for call in boss.calls] == [1, 1]


# --- LangChain's cache


@pytest.fixture
def cached() -> Iterator[None]:
    before = get_llm_cache()
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(before)


def _parrot(messages: list[BaseMessage]) -> AIMessage:
    whole = " ".join(message.text for message in messages)
    return AIMessage(" ".join(word for word in ("zebra", "giraffe") if word in whole) or "nothing")


@HOW
@pytest.mark.usefixtures("cached")
async def test_two_users_share_no_cached_answer(memory: SupervisorMemory, how: str) -> None:
    memory.write("Always show revenue as a giraffe table", user_id="eve", kind="user-profile")
    boss = model(*[_parrot] * 9)

    async def body(_state: Any) -> str:
        return str((await boss.ainvoke(OWN) if how == "async" else boss.invoke(OWN)).text)

    said = [
        (await talk(memory, body, user=user, thread=f"of-{user}"))["messages"][-1].text
        for user in ("ada", "eve", "nobody")
    ]
    assert said == ["zebra", "giraffe", "nothing"]


@pytest.mark.usefixtures("cached")
async def test_an_equal_note_finds_the_cached_answer(memory: SupervisorMemory) -> None:
    boss = model(*[_parrot] * 9)
    said = [
        (await talk(memory, lambda _: boss.invoke(OWN).text, thread=thread))["messages"][-1].text
        for thread in ("one", "two")
    ]
    assert said == ["zebra", "zebra"]
    assert len(boss.calls) == 1


# --- callbacks


@KINDS
async def test_callbacks_are_shown_the_prompt_as_it_is_sent(memory: SupervisorMemory, kind: Any) -> None:
    boss, listening = kind(), Listening()

    async def body(_state: Any) -> str:
        boss.invoke(OWN)
        _ = [*boss.stream(OWN)], [piece async for piece in boss.astream(OWN)]
        await boss.ainvoke(OWN)
        _v3(Streaming()), await _av3(Streaming())
        return "done"

    await talk(memory, body, with_config={"callbacks": [listening]})
    assert [holds_once(prompt) for prompt in listening.prompts] == [True] * 6
    assert [plain(prompt) for prompt in listening.prompts[:4]] == [plain(call) for call in boss.calls]


async def test_a_tracers_run_holds_the_prompt_as_it_is_sent(memory: SupervisorMemory) -> None:
    boss = model("done")
    with collect_runs() as runs:
        await talk(memory, lambda _: boss.invoke(OWN))

    def of_models(run: Any) -> Iterator[Any]:
        if run.run_type in ("llm", "chat_model"):
            yield run
        for child in run.child_runs:
            yield from of_models(child)

    traced = [run for top in runs.traced_runs for run in of_models(top)]
    assert len(traced) == 1
    assert str(traced[0].inputs).count(FENCE) == 1


async def test_the_graphs_own_events_show_the_prompt_as_it_is_sent(memory: SupervisorMemory) -> None:
    boss = streaming("all done")

    async def node(_state: Any) -> dict[str, Any]:
        return {"messages": [await boss.ainvoke(OWN)]}

    graph = memory.attach(alone(node)).compile()
    started = [
        event["data"]["input"]["messages"][0]
        async for event in graph.astream_events(asking(), config(user_id="ada"), version="v2")
        if event["event"] == "on_chat_model_start"
    ]
    assert [holds_once(prompt) for prompt in started] == [True]


@pytest.mark.parametrize("first", ["theirs", "ours"])
async def test_others_may_wrap_the_same_methods(
    memory: SupervisorMemory, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instrumentation that wraps `generate` and the callback manager, put on before us or after us."""
    boss, listening, seen = model(), Listening(), []

    def instrument() -> None:
        inner, made = BaseChatModel.generate, BaseCallbackManager.__init__

        def generate(self: Any, messages: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(len(messages))
            return inner(self, messages, *args, **kwargs)

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            made(self, *args, **kwargs)
            if not any(isinstance(handler, Listening) for handler in self.inheritable_handlers):
                self.add_handler(listening, inherit=True)

        monkeypatch.setattr(BaseChatModel, "generate", generate)
        monkeypatch.setattr(BaseCallbackManager, "__init__", init)

    def node(_state: Any) -> dict[str, Any]:
        return {"final_answer": boss.invoke(OWN).text}

    if first == "theirs":
        instrument()
    graph = memory.attach(alone(node)).compile()
    graph.invoke(asking(), config(user_id="ada"))
    if first == "ours":
        instrument()
    graph.invoke(asking(), config("t2", user_id="ada"))
    monkeypatch.undo()
    graph.invoke(asking(), config("t3", user_id="ada"))
    assert [holds_once(call) for call in boss.calls] == [True] * 3
    assert all(holds_once(prompt) for prompt in listening.prompts)
    assert len(listening.prompts) == len(seen) == (2 if first == "theirs" else 1)


INSTRUMENTORS = {
    "openinference.instrumentation.langchain": "LangChainInstrumentor",
    "opentelemetry.instrumentation.langchain": "LangchainInstrumentor",
}


@pytest.mark.parametrize("package", INSTRUMENTORS)
async def test_an_instrumentation_beside_it_shows_the_prompt_as_it_is_sent(
    memory: SupervisorMemory, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider, boss = InMemorySpanExporter(), TracerProvider(), model()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrumentor = getattr(importlib.import_module(package), INSTRUMENTORS[package])()
    # `uninstrument` leaves wrappers around LangGraph, which would trace all graphs of later tests.
    monkeypatch.setattr("wrapt.patches.apply_patch", monkeypatch.setattr)
    instrumentor.instrument(tracer_provider=provider)
    try:
        await talk(memory, lambda _: boss.invoke(OWN))
    finally:
        instrumentor.uninstrument()
    assert [holds_once(call) for call in boss.calls] == [True]
    shown = [str(dict(span.attributes or {})) for span in spans.get_finished_spans()]
    assert any(FENCE in each for each in shown)


async def test_opentelemetry_spans_of_memory_stand_beside_the_call(memory: SupervisorMemory) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    tracer, boss = TracerProvider().get_tracer("host"), model()

    def body(state: Any) -> str:
        with tracer.start_as_current_span("host"):
            return str(boss.invoke(state["messages"]).text)

    await talk(memory, body)
    assert [fences(call) for call in boss.calls] == [1]


# --- graphs in graphs


def _of(agent: str) -> str:
    return f"{CANARY} {agent}"


def test_a_bound_agent_inside_a_node_reads_its_own_note_and_the_node_reads_the_nodes(
    memory: SupervisorMemory,
) -> None:
    outer, inner = model(label="o"), model("found it", label="i")
    agent: Any = memory.bind_agent(create_agent(inner, [], name="other", system_prompt="base"))

    def worker(state: Any) -> dict[str, Any]:
        outer.invoke(OWN)
        found = agent.invoke({"messages": [("user", ASK)]})["messages"][-1]
        outer.invoke(OWN)
        return {"messages": [AIMessage(found.text, name="worker")]}

    graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", worker))).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert [fences(call) for call in outer.calls + inner.calls] == [1, 1, 1]
    assert [(_of("worker") in p, _of("other") in p) for p in outer.prompts] == [(True, False)] * 2
    assert [(_of("worker") in p, _of("other") in p) for p in inner.prompts] == [(False, True)]


@pytest.mark.parametrize("as_node", [True, False])
def test_in_an_attached_graph_inside_an_attached_graph_the_innermost_agents_note_counts(
    memory: SupervisorMemory, as_node: bool
) -> None:
    inner = model(label="i")

    def other(_state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(inner.invoke(OWN).text, name="other")]}

    lead = row(("lead", lambda _: {}), ("other", other))
    crew: Any = memory.attach(lead.compile(name="worker"), supervisor="lead")

    def call(state: Any) -> Any:
        return {"messages": crew.invoke({"messages": state["messages"]})["messages"][-1:]}

    graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", crew if as_node else call))).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert [fences(each) for each in inner.calls] == [1]
    assert [(_of("worker") in p, _of("other") in p) for p in inner.prompts] == [(False, True)]


def test_a_graph_that_nobody_attached_reads_the_note_of_the_node_that_runs_it(
    memory: SupervisorMemory,
) -> None:
    inner = model(label="i")
    crew = alone(lambda _: {"messages": [AIMessage(inner.invoke(OWN).text)]}, name="deep").compile()
    graph = memory.attach(row(("supervisor", lambda _: {}), ("worker", crew))).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert [fences(each) for each in inner.calls] == [1]
    assert _of("worker") in inner.prompts[0]


async def test_users_who_run_side_by_side_read_their_own_notes(memory: SupervisorMemory) -> None:
    memory.write("Always show revenue as a giraffe table", user_id="eve", kind="user-profile")
    boss, both = model(*[_parrot] * 9), asyncio.Barrier(2)

    async def node(_state: Any) -> dict[str, Any]:
        await both.wait()
        first = await boss.ainvoke(OWN)
        await both.wait()
        second = await boss.bind(stop=["x"]).ainvoke(OWN)
        return {"final_answer": f"{first.text} {second.text}"}

    graph = memory.attach(alone(node)).compile()
    ada, eve = await asyncio.gather(
        *(graph.ainvoke(asking(), config(user, user_id=user)) for user in ("ada", "eve"))
    )
    assert (ada["final_answer"], eve["final_answer"]) == ("zebra zebra", "giraffe giraffe")


def test_users_who_run_in_threads_side_by_side_read_their_own_notes(memory: SupervisorMemory) -> None:
    memory.write("Always show revenue as a giraffe table", user_id="eve", kind="user-profile")
    boss, both = model(*[_parrot] * 9), threading.Barrier(2, timeout=60)

    def node(_state: Any) -> dict[str, Any]:
        both.wait()
        return {"final_answer": boss.invoke(OWN).text}

    graph = memory.attach(alone(node)).compile()
    with ThreadPoolExecutor() as pool:
        told = [
            pool.submit(graph.invoke, asking(), config(user, user_id=user)).result for user in ("ada", "eve")
        ]
        assert [each()["final_answer"] for each in told] == ["zebra", "giraffe"]


async def test_all_calls_of_one_node_hold_the_same_bytes(memory: SupervisorMemory) -> None:
    boss = model()

    async def body(_state: Any) -> str:
        boss.invoke(OWN)
        await boss.ainvoke([*OWN, AIMessage("So far."), HumanMessage("Go on.")])
        _ = [*boss.stream("Anything else?")]
        return "done"

    await talk(memory, body)
    assert len({note_of(call) for call in boss.calls}) == 1
