"""Spans and metrics of OpenTelemetry, by its own SDK."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import RecordNotFound
from supervisor_memory.telemetry import Durations, Telemetry, Told, spanned

READER = InMemoryMetricReader()
EXPORTER = InMemorySpanExporter()
SECRET = "vermilion"
TEXT = f"The hangar of Oslo is painted {SECRET}."


@dataclass(frozen=True)
class Services:
    telemetry: Telemetry
    durations: Durations = field(default_factory=Durations)


@pytest.fixture(scope="module", autouse=True)
def _providers() -> None:
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([READER]))


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    EXPORTER.clear()
    yield EXPORTER
    EXPORTER.clear()


def opened(path: Path, **settings: Any) -> SupervisorMemory:
    chosen = {"backend": "sqlite", "path": path, "embedding_model": "hashing", "tracing": True, **settings}
    return SupervisorMemory(Settings(**chosen))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(tmp_path) as held:
        yield held


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_each_verb_makes_one_span_by_the_conventions(
    memory: SupervisorMemory, spans: InMemorySpanExporter
) -> None:
    done = memory.write(TEXT, user_id="ada")
    memory.add([("user", "I prefer tea.")], user_id="ada")
    memory.add("Kept as it is.", user_id="ada", infer=False)
    memory.update(done.id, content=f"{TEXT} Since May.", user_id="ada")
    memory.search("hangar of Oslo", user_id="ada")
    note = memory.recall([("user", "Which colour has the hangar of Oslo?")], Scope("ada", "sql"))
    memory.remember((), Scope("ada", "sql"), outcome=Outcome(final_answer="It is done."), note=note)
    memory.summarize([done.id], user_id="ada")
    memory.forget(user_id="ada", dry_run=True)
    memory.review.change(done.id, content=TEXT, reviewer="rita")
    memory.delete(done.id, user_id="ada")
    memory.delete_all(user_id="ada", confirm=True)
    made = spans.get_finished_spans()
    assert [span.name for span in made] == [
        *("upsert_memory", "upsert_memory", "upsert_memory", "update_memory", "search_memory"),
        *("search_memory", "upsert_memory", "summarize_memory", "forget_memory"),
        *("update_memory", "delete_memory", "delete_memory"),
    ]
    for span in made:
        told = facts(span)
        assert span.kind == SpanKind.INTERNAL
        assert span.status.status_code == StatusCode.UNSET
        assert told["gen_ai.operation.name"] == span.name
        assert told["gen_ai.memory.store.id"] == memory.backend.audit.log_id
        assert isinstance(told["gen_ai.memory.record.count"], int)
    write, _, _, update, search, recall, remember, *_ = map(facts, made)
    assert write["gen_ai.memory.record.id"] == update["gen_ai.memory.record.id"] == done.id
    assert write["supervisor_memory.statuses"] == ("added",)
    assert search["gen_ai.memory.record.count"] == 1
    assert search["supervisor_memory.degraded"] is False
    assert "gen_ai.agent.name" not in search
    assert recall["gen_ai.agent.name"] == remember["gen_ai.agent.name"] == "sql"
    assert recall["supervisor_memory.note.tokens"] == note.tokens > 0


def test_no_text_and_no_user_is_told(memory: SupervisorMemory, spans: InMemorySpanExporter) -> None:
    done = memory.write(TEXT, user_id="ada-lovelace")
    memory.search(f"what is {SECRET}", user_id="ada-lovelace")
    memory.recall([("user", f"what is {SECRET}")], Scope("ada-lovelace"), query=SECRET)
    memory.update(done.id, content=f"{SECRET}!", user_id="ada-lovelace")
    with pytest.raises(RecordNotFound):
        memory.update(f"{SECRET}-id", content="Nothing.", user_id="ada-lovelace")
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert len(spans.get_finished_spans()) == 5
    assert SECRET not in told
    assert "lovelace" not in told


def test_an_error_is_told_by_its_kind_alone(memory: SupervisorMemory, spans: InMemorySpanExporter) -> None:
    with pytest.raises(RecordNotFound):
        memory.delete("no-such-record", user_id="ada")
    [span] = spans.get_finished_spans()
    assert span.status.status_code == StatusCode.ERROR
    assert span.status.description is None
    assert facts(span)["error.type"] == "RecordNotFound"
    assert not span.events


def test_with_content_texts_are_told_without_personal_data(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    def masked(text: str) -> str:
        return text.replace("Oslo", "<city>")

    settings = Settings(
        backend="sqlite", path=tmp_path, embedding_model="hashing", tracing=True, trace_content=True
    )
    with SupervisorMemory(settings, redact=masked) as memory:
        memory.write(TEXT, user_id="ada")
        memory.search("the hangar of Oslo", user_id="ada")
    write, search = map(facts, spans.get_finished_spans())
    assert search["gen_ai.memory.query.text"] == "the hangar of <city>"
    [record] = json.loads(search["gen_ai.memory.records"])
    assert record["content"] == masked(TEXT)
    assert set(record) == {"content", "id", "score"}
    assert json.loads(write["gen_ai.memory.records"])[0]["content"] == masked(TEXT)


def test_what_cannot_be_told_does_not_take_the_result_away(
    spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(given: Mapping[str, Any], result: object) -> Told:
        raise RuntimeError(f"cannot tell of {result}")

    class Verbs:
        services = Services(Telemetry("a-store", None))

        @spanned("search_memory", fails)
        def search(self, query: str) -> str:
            return f"found {query}"

    assert Verbs().search(SECRET) == f"found {SECRET}"
    [span] = spans.get_finished_spans()
    assert span.status.status_code == StatusCode.UNSET
    assert "a span of search_memory tells less: RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_a_call_with_wrong_arguments_fails_as_ever(memory: SupervisorMemory) -> None:
    with pytest.raises(TypeError, match="user_id"):
        memory.search("tea")  # type: ignore[call-arg]


async def test_the_async_twin_makes_a_span_within_the_callers(
    memory: SupervisorMemory, spans: InMemorySpanExporter
) -> None:
    with trace.get_tracer("test").start_as_current_span("turn") as outer:
        await memory.asearch("anything", user_id="ada")
    inner, _ = spans.get_finished_spans()
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id


def points(name: str) -> list[Any]:
    data = READER.get_metrics_data()
    return [
        point
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


def test_how_long_calls_took_and_how_large_notes_were_are_metrics(memory: SupervisorMemory) -> None:
    memory.write(TEXT, user_id="ada")
    note = memory.recall([("user", "Which colour has the hangar of Oslo?")], Scope("ada", "metered"))
    with pytest.raises(RecordNotFound):
        memory.delete("no-such-record", user_id="ada")
    told = [dict(point.attributes) for point in points("supervisor_memory.operation.duration")]
    assert {"gen_ai.operation.name": "upsert_memory"} in told
    assert {"gen_ai.operation.name": "delete_memory", "error.type": "RecordNotFound"} in told
    [tokens] = [
        point
        for point in points("supervisor_memory.note.tokens")
        if point.attributes.get("gen_ai.agent.name") == "metered"
    ]
    assert (tokens.count, tokens.sum) == (1, note.tokens)


def test_without_tracing_there_are_no_spans(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    with opened(tmp_path, tracing=False) as memory:
        memory.write(TEXT, user_id="ada")
        memory.search("hangar", user_id="ada")
    assert not spans.get_finished_spans()


CODE = """
import sys
sys.modules["opentelemetry"] = None  # as if it were not installed
from supervisor_memory import Settings, SupervisorMemory
with SupervisorMemory(Settings(tracing=True, embedding_model="hashing")) as memory:
    memory.write("Tea.", user_id="ada")
    assert memory.search("Tea", user_id="ada")
    assert memory.services.telemetry is None
print(any(name.split(".")[0] == "opentelemetry" for name in sys.modules if sys.modules[name]))
"""


def test_nothing_is_imported_where_the_extra_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
    assert "supervisor-memory[otel]" in done.stderr
