"""Spans and metrics of OpenTelemetry (extra `otel`), where MEMORY_TRACING asks for them: docs/metrics.md.

Names that begin with `gen_ai.` are those of the semantic conventions for GenAI memory, others are ours. No
user and no message of an error is told, and no text but with MEMORY_TRACE_CONTENT.
"""

import bisect
import functools
import inspect
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from supervisor_memory.model.records import Hit, Hits, Note, WriteResult

P = ParamSpec("P")
T = TypeVar("T")
Value: TypeAlias = str | int | float | bool | Sequence[str]
_NAME: Final = "supervisor_memory"
_COUNT: Final = "gen_ai.memory.record.count"
_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
_log = logging.getLogger("supervisor_memory")
_is_inside: ContextVar[bool] = ContextVar("supervisor_memory.is_inside", default=False)


@dataclass(frozen=True, slots=True)
class Told:
    """The attributes of a span; `query` and `records` (content, id, score) only where content is allowed."""

    facts: Mapping[str, Value]
    query: str | None = None
    records: Sequence[Mapping[str, Any]] = ()


class _Served(Protocol):
    @property
    def services(self) -> "_HasTelemetry": ...


class _HasTelemetry(Protocol):
    @property
    def telemetry(self) -> "Telemetry | None": ...
    @property
    def durations(self) -> "Durations": ...


S = TypeVar("S", bound=_Served)
Describe: TypeAlias = Callable[[Mapping[str, Any], Any], Told]


def spanned(
    operation: str, describe: Describe
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Give a verb a span where telemetry is on, unless another verb called; `describe` fills it."""

    def wrap(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        signature = inspect.signature(verb)

        @functools.wraps(verb)
        def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if _is_inside.get():
                return verb(self, *args, **kwargs)
            telemetry = self.services.telemetry
            if telemetry is None:
                return self.services.durations.timed(operation, lambda: verb(self, *args, **kwargs))
            call = functools.partial(verb, self, *args, **kwargs)
            try:
                given = signature.bind(self, *args, **kwargs).arguments
            except TypeError:  # which the call itself tells better
                return call()
            return self.services.durations.timed(
                operation, lambda: telemetry.span(operation, given, call, describe)
            )

        return wrapped

    return wrap


_lock = threading.Lock()


def _renew_lock() -> None:
    """A forked child may have inherited the lock, held by a thread of its parent."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Durations:
    """How long the calls of this process took, as Prometheus' histograms count: by operation and outcome."""

    BOUNDS: Final = _SECONDS

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._sums: dict[tuple[str, str], float] = {}

    def timed(self, operation: str, call: Callable[[], T]) -> T:
        """Count a call and return its result; calls inside are not counted."""
        inside, began, outcome = _is_inside.set(True), time.perf_counter(), "error"
        try:
            result = call()
            outcome = "ok"
            return result
        finally:
            _is_inside.reset(inside)
            self._record((operation, outcome), time.perf_counter() - began)

    def _record(self, key: tuple[str, str], seconds: float) -> None:
        place = bisect.bisect_left(_SECONDS, seconds)
        with _lock:
            self._counts.setdefault(key, [0] * (len(_SECONDS) + 1))[place] += 1
            self._sums[key] = self._sums.get(key, 0.0) + seconds

    def snapshot(self) -> dict[tuple[str, str], tuple[Sequence[int], float]]:
        """(operation, outcome) → calls in each bucket, the last without a bound; seconds in all."""
        with _lock:
            return {key: (tuple(counts), self._sums[key]) for key, counts in sorted(self._counts.items())}


class Telemetry:
    """Makes the spans of one memory, by the providers that the process has set up.

    Args:
        store_id: The name of the store's audit log.
        redact: Takes personal data out of a text; None: no content is told.
    """

    def __init__(self, store_id: str, redact: Callable[[str], str] | None) -> None:
        from opentelemetry import metrics, trace

        self._store_id = store_id
        self._redact = redact
        self._trace = trace
        self._tracer = trace.get_tracer(_NAME, version("supervisor-memory"))
        meter = metrics.get_meter(_NAME, version("supervisor-memory"))
        self._duration = meter.create_histogram(
            f"{_NAME}.operation.duration",
            unit="s",
            description="How long calls of memory took.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            f"{_NAME}.note.tokens", unit="{token}", description="Tokens of the notes that were injected."
        )

    def span(self, operation: str, given: Mapping[str, Any], call: Callable[[], T], describe: Describe) -> T:
        """Make a call inside a span, and return its result."""
        facts: dict[str, Value] = {"gen_ai.operation.name": operation, **_reader(given)}
        ended: dict[str, str] = {}
        began = time.perf_counter()
        with self._tracer.start_as_current_span(
            operation,
            kind=self._trace.SpanKind.INTERNAL,
            attributes={**facts, **_run(given), "gen_ai.memory.store.id": self._store_id},
            record_exception=False,  # what an error says may name a user, or quote a text
            set_status_on_exception=False,
        ) as span:
            try:
                result = call()
            except BaseException as error:
                ended["error.type"] = type(error).__qualname__
                span.set_attributes(ended)
                span.set_status(self._trace.StatusCode.ERROR)
                raise
            finally:
                self._duration.record(time.perf_counter() - began, {**facts, **ended})
            try:
                span.set_attributes(self._attributes_of(describe(given, result), facts))
            except Exception as error:  # noqa: BLE001  # it must not take the result away
                _log.warning("a span of %s tells less: %s", operation, type(error).__name__)
            return result

    def _attributes_of(self, told: Told, facts: Mapping[str, Value]) -> dict[str, Value]:
        """The attributes of a call that is done; the size of a note is a metric too."""
        if isinstance(tokens := told.facts.get(f"{_NAME}.note.tokens"), int):
            self._tokens.record(tokens, facts)
        return {**told.facts, **self._content(told)}

    def _content(self, told: Told) -> dict[str, str]:
        if self._redact is None:
            return {}
        found = {}
        if told.query is not None:
            found["gen_ai.memory.query.text"] = self._redact(told.query)
        if told.records:
            records = [{**each, "content": self._redact(each["content"])} for each in told.records]
            found["gen_ai.memory.records"] = json.dumps(records, ensure_ascii=False)
        return found


def open_telemetry(*, store_id: str, redact: Callable[[str], str], with_content: bool) -> Telemetry | None:
    """The `Telemetry` of a memory; None where the extra is not installed."""
    try:
        return Telemetry(store_id, redact if with_content else None)
    except ModuleNotFoundError as error:
        _log.warning("MEMORY_TRACING: %s is not installed; pip install 'supervisor-memory[otel]'", error.name)
        return None


# --- what is told of each verb ---------------------------------------------------------------------------


def of_search(given: Mapping[str, Any], hits: "Hits") -> Told:
    """The attributes for a search."""
    facts = {_COUNT: len(hits), f"{_NAME}.degraded": hits.degraded}
    query = given.get("query")
    return Told(facts, query if isinstance(query, str) else None, [_hit(hit) for hit in hits])


def of_recall(given: Mapping[str, Any], note: "Note") -> Told:
    """The attributes for a recall."""
    facts = {_COUNT: len(note.hits), f"{_NAME}.degraded": note.degraded, f"{_NAME}.note.tokens": note.tokens}
    return Told(facts, given.get("query"), [_hit(hit) for hit in note.hits])


def of_write(given: Mapping[str, Any], results: "WriteResult | Sequence[WriteResult]") -> Told:
    """The attributes for a write: each text's status; for a single text also the text and its record's id."""
    every = results if isinstance(results, Sequence) else [results]
    facts: dict[str, Value] = {_COUNT: len(every), f"{_NAME}.statuses": [each.status for each in every]}
    if isinstance(results, Sequence):
        return Told(facts)
    if results.id:
        facts["gen_ai.memory.record.id"] = results.id
    content = given.get("content")
    return Told(facts, None, [{"content": content, "id": results.id}] if isinstance(content, str) else [])


def of_one(given: Mapping[str, Any], _result: object) -> Told:
    """The attributes for a call about one record."""
    return Told({_COUNT: 1, "gen_ai.memory.record.id": str(given["id"])})


def of_many(count: Callable[[Mapping[str, Any], Any], int]) -> Describe:
    """The attributes for a call about several records."""
    return lambda given, result: Told({_COUNT: count(given, result)})


def _hit(hit: "Hit") -> dict[str, Any]:
    return {"content": hit.record.content, "id": hit.record.id, "score": round(hit.score, 4)}


def _run(given: Mapping[str, Any]) -> dict[str, str]:
    """The session and the run of a call, on spans alone: metrics would get a series for each."""
    scope = given.get("scope")
    told = {"gen_ai.conversation.id": "session_id", f"{_NAME}.run.id": "run_id"}
    found = {
        name: given.get(key) if scope is None else getattr(scope, key, None) for name, key in told.items()
    }
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _reader(given: Mapping[str, Any]) -> dict[str, str]:
    """The name of the sub-agent in question, if any: a graph has few."""
    scope = given.get("scope")
    agent_id = given.get("agent_id") if scope is None else getattr(scope, "agent_id", None)
    return {"gen_ai.agent.name": agent_id} if isinstance(agent_id, str) else {}
