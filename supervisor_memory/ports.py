"""The ports of a flow: embedding, search, commits, a model, the time left, and the present time.

Each stage gets a view that has only its powers, so that what a stage may do to the store is visible
in its type, and refused when tried. The deadline and the guard live here, once.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar

from supervisor_memory.bridge import Bridge
from supervisor_memory.embedding.languages import reads
from supervisor_memory.errors import (
    BackendError,
    BadVector,
    Conflict,
    DeadlineExceeded,
    StageDenied,
    SupervisorMemoryError,
    raised_at,
)
from supervisor_memory.model.records import AuditEvent, Filter, Hits, Query, Reads, Record, Scope, Seed
from supervisor_memory.redact.redactor import Redactor, counted, redacted_record, redacted_scope
from supervisor_memory.settings import Settings
from supervisor_memory.stores.protocol import (
    ByWords,
    Commit,
    Committed,
    Copied,
    Incomplete,
    MemoryBackend,
    is_here,
)
from supervisor_memory.telemetry import Durations, Telemetry

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder
    from supervisor_memory.model.records import Vector

P = ParamSpec("P")
T = TypeVar("T")
Complete = Callable[[str], str]
"""A model: a prompt in, its text out."""

_EMBED_SHARE = 0.5  # of the time left, so that a hanging embedder leaves time for a search by words
_MODEL_SHARE = 0.8  # of the time left, so that a hanging model leaves time for the commit
_STEP_SHARE = 0.8  # of the time left, so that a hanging step leaves time for the answer
_KNOWN_VECTORS = 96
_MOST_RESTING = 10_000
_LONGEST_SAID = 1_000
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True, slots=True)
class Fault:
    """A step that failed, while the flow went on without it."""

    step: str
    error: str

    def __str__(self) -> str:
        return f"{self.step}:{self.error}"


_OUT_OF_REACH = Fault("store", "out-of-reach")
_VECTORS_LATE = Fault("vectors", "not-read-in-time")
_AMONG_HITS = "relations were looked for among what the search found alone: this store cannot walk"
_READ_FROM_COPY = Fault("store", "read-from-copy")


@dataclass(frozen=True)
class Services:
    """The parts of a SupervisorMemory that live as long as it does."""

    settings: Settings
    backend: MemoryBackend
    embedder: "Embedder | None"
    complete: Complete | None
    bridge: Bridge
    clock: Callable[[], float]
    count_tokens: Callable[[str], int]
    vectors: "dict[tuple[str, str, str], Vector]" = field(default_factory=dict)
    """The latest, by embedder, "query" or "text", and words: one question is asked for the supervisor and for
    each sub-agent, and a sentence is weighed before it is kept."""
    embedder_is_known: threading.Event = field(default_factory=threading.Event)
    """Set once the embedder has said its fingerprint and the like, for which it may load a model."""
    redactor: Redactor = field(default_factory=Redactor)
    """What is embedded, sent to a model or committed through the ports goes through it."""
    telemetry: Telemetry | None = None
    """What makes spans of the verbs; None: none are made."""
    durations: Durations = field(default_factory=Durations)
    """How long the verbs took in this process."""

    def scope(self, scope: Scope) -> Scope:
        """The scope as it is kept: with its task's name redacted."""
        return redacted_scope(scope, self.redactor.text)

    def ports(
        self,
        milliseconds: int,
        *,
        with_model: bool = True,
        shared: MutableMapping[Hashable, Any] | None = None,
        waiting: "Waiting | None" = None,
    ) -> "Ports":
        """The ports of one flow. Where a model is asked, its time comes on top of the store's.

        Args:
            shared: What the readers of a run share; None: this flow has a run of its own.
            waiting: Where events of what was skipped wait for the run's next commit; None: they do not wait.
        """
        services = self
        if self.complete is not None and with_model:
            milliseconds += self.settings.llm_timeout_ms
        elif self.complete is not None:
            services = replace(self, complete=None)
        shared = {} if shared is None else shared
        if waiting is not None and waiting.backend is not self.backend:  # a run may have two memories
            waiting = None
        return Ports(services, milliseconds / 1000, self.clock(), shared=shared, waiting=waiting)


class Waiting:
    """Holds a run's skip events until its next commit writes them along.

    `Memory.settle` writes the rest when the run ends; whoever begins the run has to call it.
    """

    def __init__(self, backend: MemoryBackend) -> None:
        self.backend = backend
        self._events: deque[AuditEvent] = deque()

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, events: Sequence[AuditEvent]) -> None:
        """Have events wait. Raises Conflict: one of them is known already."""
        self.backend.audit.check_new(events)
        known = {event.id for event in [*self._events]}
        for event in events:
            if event.id in known:
                raise Conflict(f"the audit event {event.id} waits already", what="event", event_id=event.id)
        self._events.extend(events)

    def along(self, commit: Commit, keep: Callable[[Commit], Committed]) -> Committed:
        """Write a commit together with the waiting events; after a failure they go on waiting."""
        taken: list[AuditEvent] = []
        try:
            while self._events:
                taken.append(self._events.popleft())
            return keep(replace(commit, audit=(*taken, *commit.audit)))
        except BaseException as error:
            known = error.facts.get("event_id") if isinstance(error, Conflict) else None
            self._events.extendleft(event for event in reversed(taken) if event.id != known)
            raise


class NoStore(Protocol):
    """Before retrieval: no store at all."""

    @property
    def now(self) -> float: ...
    @property
    def settings(self) -> Settings: ...
    def count_tokens(self, text: str) -> int: ...
    def attempt(self, step: str, function: Callable[[], T]) -> T | None:
        """Run an optional step in the time left; returns None, and notes the fault by the step's name, when
        it fails or takes too long."""

    @property
    def has_model(self) -> bool: ...
    def prompt(self, name: str, **values: str) -> str:
        """A prompt of the package, or the operator's own in its place (MEMORY_PROMPTS)."""

    def complete(
        self, prompt: str, *, shape: Mapping[str, Any] | None = None, seconds: float | None = None
    ) -> str | None:
        """The model's answer; None when there is no model or it failed (then it is noted).

        Args:
            shape: A JSON schema for the answer, which counts where the model has structured output.
            seconds: The most time it may take; None: MEMORY_LLM_TIMEOUT_MS.
        """

    def embed_query(self, text: str) -> "Vector | None":
        """The query's vector; None without an embedder or when it failed (then it is noted)."""

    def embed(self, texts: Sequence[str]) -> "Sequence[Vector | None]":
        """One vector per text; None where no embedder reads the language, or it failed (then it is noted)."""

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder's description; None without an embedder or when it failed (then it is noted)."""


class ReadStore(NoStore, Protocol):
    """Retrieval, what follows it, and what comes before an insert: reading."""

    def search(self, query: Query, *, limit: int) -> Hits: ...
    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]: ...
    def count(self, where: Filter) -> int: ...
    def shared(self, key: Hashable, function: Callable[[], T]) -> tuple[T, bool]:
        """Compute something once a run, and tell whether an earlier reader had it.

        Args:
            key: All that the result depends on, beside the store and the time. What the store has lost since
                must still be left out.
        """

    def related(
        self,
        seeds: Sequence[Seed],
        query: Query,
        *,
        limit: int,
        least: float = 0.0,
        among: Iterable[Record] = (),
    ) -> Hits:
        """The records that some texts are joined to by what they name; empty when it failed (then noted).

        Args:
            least: Of the part `walk` of each.
            among: The records that are looked at where the store cannot walk; then the hits' `notes` say so.
        """

    def hides(self, text: str) -> bool:
        """Whether redaction took something out of a text: two such texts may look alike, yet differ."""

    def reads(self, record_ids: Sequence[str]) -> Mapping[str, Reads]:
        """How often and when last each was read, by this machine's log; empty when it failed (then noted)."""


class Deciding(ReadStore, Protocol):
    """Insert: reading, and the only mutation there is."""

    @property
    def reading(self) -> ReadStore:
        """The same without the mutation: what a judge is given."""

    def commit(self, commit: Commit) -> Committed: ...


class Maintaining(Deciding, Protocol):
    """After insert: as Deciding, but one search and one commit for each operator."""

    def search_many(self, queries: Sequence[Query], *, limit: int) -> Sequence[Hits]:
        """The hits of each query, `limit` each, in order; all of them count as the one search."""


@dataclass
class Ports:
    """The ports of one flow: its own deadline, its own moment, and the faults met on the way."""

    services: Services
    seconds: float
    now: float
    faults: list[Fault] = field(default_factory=list)
    shared: MutableMapping[Hashable, Any] = field(default_factory=dict)
    """Results computed for one reader of a run, which serve the others."""
    waiting: Waiting | None = None
    """Events that wait for the next commit of a run."""

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def degraded(self) -> bool:
        return bool(self.faults)

    @property
    def reasons(self) -> str:
        """The faults as one code for the audit log."""
        return ";".join(dict.fromkeys(map(str, self.faults)))

    def no_store(self) -> NoStore:
        return _NoStore(self)

    def read_store(self) -> ReadStore:
        return _ReadStore(self)

    def deciding(self) -> Deciding:
        return _Deciding(self)

    def maintaining(self) -> Maintaining:
        return _Maintaining(self)

    def store(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the backend in the time that is left.

        Raises:
            BackendError: whatever a stranger's backend raised, other than our own errors.
            DeadlineExceeded: the time ran out.
        """
        name = getattr(function, "__name__", "call")
        left = self.left()
        if not left:
            raise DeadlineExceeded(f"no time was left for the store's {name!r}, so it was not begun")
        try:
            return self.services.bridge.within(left, function, *args, **kwargs)
        except (SupervisorMemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # some libraries' errors are no Exception
            # Its text goes to the log alone: it may name hosts and keys, and this one may reach a model.
            _log.warning("the store failed in %r", name, exc_info=error)
            raise BackendError(
                f"the store failed in {name!r} with {type(error).__name__}; see the log, and check it with "
                "`supervisor-memory doctor`",
                verb=name,
            ) from error

    def left(self) -> float:
        return max(self._until - time.monotonic(), 0.0)

    def attempt(self, step: str, seconds: float, function: Callable[[], T]) -> T | None:
        """A step the flow can do without: its result, or None with the fault noted.

        The plug-ins behind it are strangers' code, and langmem's ConfigurationError is a
        BaseException; only what ends the process or the task passes. What failed once is not tried
        again in the same flow, for it may hang again.
        """
        if any(fault.step == step for fault in self.faults):
            return None
        try:
            return self.services.bridge.within(seconds, function)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # logged and audited as a fault of the step
            self.note_fault(step, error)
            return None

    @property
    def sees_all(self) -> bool:
        """Whether nothing that this machine could know was missing in what was listed so far."""
        return _OUT_OF_REACH not in self.faults

    def note_absence(self, absence: Fault) -> None:
        """Note that the store answered without a part that is out of reach."""
        if absence not in self.faults:
            self.faults.append(absence)

    def note_fault(self, step: str, error: BaseException) -> None:
        self.faults.append(Fault(step, type(error).__name__))
        told = f"{type(error).__name__}: {_one_line(error)}"
        if not isinstance(error, SupervisorMemoryError):  # a plug-in's failure, or a defect of ours
            told += f" ({raised_at(error)})"
        _log.warning("memory goes on without the %s: %s", step, told)


class _NoStore:
    """NoStore. The other views add to it."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._services = ports.services

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise StageDenied(
            f"this stage may not {name!r}; its view is {type(self).__name__.lstrip('_')}. "
            "Move the operator to a stage that may (docs/architecture.md, the table of stages)",
            power=name,
        )

    @property
    def now(self) -> float:
        return self._ports.now

    @property
    def settings(self) -> Settings:
        return self._services.settings

    @property
    def embedder(self) -> "Embedder | None":
        embedder, is_known = self._services.embedder, self._services.embedder_is_known
        if embedder is None or is_known.is_set():
            return embedder
        # All that may make it load its model.
        first = attrgetter("fingerprint", "dimension", "calibration", "languages")
        if self._embedding(lambda: first(embedder)) is None:
            return None
        is_known.set()
        return embedder

    def count_tokens(self, text: str) -> int:
        return self._services.count_tokens(text)

    def attempt(self, step: str, function: Callable[[], T]) -> T | None:
        return self._ports.attempt(step, self._ports.left() * _STEP_SHARE, function)

    @property
    def has_model(self) -> bool:
        return self._services.complete is not None

    def prompt(self, name: str, **values: str) -> str:
        from supervisor_memory.language.prompts import prompt  # most turns ask no model

        return prompt(name, self.settings.prompts, **values)

    def complete(
        self, prompt: str, *, shape: Mapping[str, Any] | None = None, seconds: float | None = None
    ) -> str | None:
        complete = self._services.complete
        if complete is None:
            return None
        told = self._services.redactor.text(prompt)
        most = self.settings.llm_timeout_ms / 1000 if seconds is None else seconds
        ask = getattr(complete, "in_shape", None) if shape is not None else None
        return self._ports.attempt(
            "model",
            min(most, self._ports.left() * _MODEL_SHARE),
            lambda: complete(told) if ask is None else ask(told, shape),
        )

    def embed_query(self, text: str) -> "Vector | None":
        embedder = self.embedder
        if embedder is None or not text or not reads(text, embedder=embedder):
            return None
        text = self._services.redactor.text(text)
        known = self._services.vectors
        key = (embedder.fingerprint, "query", text)
        if (vector := known.get(key)) is not None:
            return vector
        vectors = self._embedding(lambda: _checked(embedder, [embedder.embed_query(text)], count=1))
        if vectors is None:
            return None
        _keep_latest(known, {key: vectors[0]})
        return vectors[0]

    def embed(self, texts: Sequence[str]) -> "Sequence[Vector | None]":
        texts = [self._services.redactor.text(text) for text in texts]
        embedder = self.embedder if texts else None
        if embedder is None:
            return [None] * len(texts)
        known, name = self._services.vectors, embedder.fingerprint
        found = {text: known.get((name, "text", text)) for text in texts}
        new = [text for text, v in found.items() if v is None and reads(text, embedder=embedder)]
        if new:
            vectors = self._embedding(
                lambda: _checked(embedder, list(embedder.embed_documents(new)), count=len(new))
            )
            if vectors is not None:
                found.update(zip(new, vectors, strict=True))
                _keep_latest(known, {(name, "text", text): v for text, v in zip(new, vectors, strict=True)})
        return [found[text] for text in texts]

    def _embedding(self, step: Callable[[], T]) -> T | None:
        return self._ports.attempt("embedder", self._ports.left() * _EMBED_SHARE, step)


def _keep_latest(
    known: "dict[tuple[str, str, str], Vector]", new: "Mapping[tuple[str, str, str], Vector]"
) -> None:
    known.update(new)
    for oldest in list(known)[:-_KNOWN_VECTORS]:
        known.pop(oldest, None)


class _ReadStore(_NoStore):
    def search(self, query: Query, *, limit: int) -> Hits:
        found = self._ports.store(self._services.backend.search, query, limit=limit)
        hits = _expected(found, Hits, "search")
        if hits.degraded:
            self._ports.note_absence(_VECTORS_LATE if isinstance(hits, ByWords) else _OUT_OF_REACH)
        return hits

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        found = self._ports.store(self._services.backend.list, where, limit=limit, offset=offset)
        listed: Sequence[object] = _expected(found, (list, tuple), "list")
        if isinstance(found, Incomplete):
            self._ports.note_absence(_READ_FROM_COPY if isinstance(found, Copied) else _OUT_OF_REACH)
        return [_expected(record, Record, "list") for record in listed]

    def count(self, where: Filter) -> int:
        return _expected(self._ports.store(self._services.backend.count, where), int, "count")

    def shared(self, key: Hashable, function: Callable[[], T]) -> tuple[T, bool]:
        known, key = self._ports.shared, (id(self._services), key)  # a run may have two memories
        if key in known:
            found: T = known[key]
            return found, True
        found = function()
        if not self._ports.degraded:
            known[key] = found
        return found, False

    def related(
        self,
        seeds: Sequence[Seed],
        query: Query,
        *,
        limit: int,
        least: float = 0.0,
        among: Iterable[Record] = (),
    ) -> Hits:
        walk = getattr(self._services.backend, "related", None)  # as `Relates` has it
        if walk is not None:
            # Over what the search has just read, in all the time that is left, it needs no thread of its own.
            share = 1.0 if is_here(walk) else _STEP_SHARE

            def look() -> Hits:
                return _walked(walk(seeds, query, limit=limit, least=least))

            found = self._ports.attempt("relations", share * self._ports.left(), look)
            return Hits() if found is None else found
        from supervisor_memory.stores.related import related_among  # with it comes numpy

        return replace(related_among(among, seeds, query, limit=limit, least=least), notes=(_AMONG_HITS,))

    def hides(self, text: str) -> bool:
        return bool(self._services.redactor.counts(text))

    def reads(self, record_ids: Sequence[str]) -> Mapping[str, Reads]:
        log = self._services.backend.audit
        return self.attempt("access-log", lambda: log.reads(record_ids)) or {}


class _Deciding(_ReadStore):
    @property
    def reading(self) -> ReadStore:
        return _ReadStore(self._ports)

    def commit(self, commit: Commit) -> Committed:
        told = _redacted(commit, self._services.redactor)
        if any(change.record.is_borne_on for change in told.changes):
            from supervisor_memory.stores.rests_on import settled  # few turns change such a thing

            told = settled(told, lambda where: self.list(where, limit=_MOST_RESTING), self.now)
        waiting = self._ports.waiting
        if waiting is None:
            return self._keep(told)
        if told.audit and not told.changes and all(event.op == "skip" for event in told.audit):
            self._ports.store(waiting.add, told.audit)
            return Committed(told.id)
        return waiting.along(told, self._keep)

    def _keep(self, commit: Commit) -> Committed:
        return _expected(self._ports.store(self._services.backend.batch, commit), Committed, "batch")


def _redacted(commit: Commit, redactor: Redactor) -> Commit:
    """The last check before anything is kept, whoever made the commit.

    Of records that are there only those are read for which an event tells of a text: what was kept before
    redaction was on is deleted, embedded anew or given more time as it is.
    """
    if redactor.is_off:
        return commit
    told = {event.record_id for event in commit.audit if event.after is not None}
    changes = [
        replace(change, record=redacted_record(change.record, redactor))
        if change.expects is None or change.record.id in told
        else change
        for change in commit.changes
    ]
    by_id = {change.record.id: change for change in changes}
    events = []
    for event in commit.audit:
        change = by_id.get(event.record_id or "")
        if change is not None and event.after is not None:
            told_after = replace(event, after=redactor.text(event.after))
            event = counted(told_after, change.record, redactor, is_new=change.expects is None)  # noqa: PLW2901
        events.append(event)
    return replace(commit, changes=tuple(changes), audit=tuple(events))


class _Maintaining(_Deciding):
    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._used: set[str] = set()

    def search(self, query: Query, *, limit: int) -> Hits:
        self._allow_once("search")
        return super().search(query, limit=limit)

    def search_many(self, queries: Sequence[Query], *, limit: int) -> Sequence[Hits]:
        self._allow_once("search")
        return [super(_Maintaining, self).search(query, limit=limit) for query in queries]

    def commit(self, commit: Commit) -> Committed:
        self._allow_once("commit")
        return super().commit(commit)

    def _allow_once(self, power: str) -> None:
        if power in self._used:
            raise StageDenied(f"an operator after insert may {power} once; batch what it needs", power=power)
        self._used.add(power)


def _checked(embedder: "Embedder", vectors: "Sequence[Vector]", *, count: int) -> "Sequence[Vector]":
    from supervisor_memory.embedding.protocol import check_vector

    if len(vectors) != count:
        raise BadVector(
            f"{embedder.fingerprint} gave {len(vectors)} vectors for {count} texts; one each is needed"
        )
    return [
        check_vector(vector, dimension=embedder.dimension, what=f"a vector of {embedder.fingerprint}")
        for vector in vectors
    ]


def _expected(value: object, kind: type[T] | tuple[type[T], ...], verb: str) -> T:
    """Return a backend's answer if it has the promised type."""
    if isinstance(value, kind):
        return value
    raise BackendError(
        f"the store's {verb!r} answered {type(value).__name__}, which it may not; "
        "run supervisor_memory.testing.backend_contract on it",
        verb=verb,
    )


def _walked(value: object) -> Hits:
    """Return what a store's walk answered if it is as `Relates` promises."""
    hits = _expected(value, Hits, "related")
    if without := [hit.record.id for hit in hits if not _is_share(hit.parts.get("walk"))]:
        raise BackendError(
            f"the store's 'related' answered {len(without)} hits without a part 'walk' in [0, 1], such as "
            f"record {without[0]!r}; give each hit parts={{'walk': how near it is}}",
            verb="related",
            id=without[0],
        )
    return hits


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and 0.0 <= float(value) <= 1.0


def _one_line(error: BaseException) -> str:
    """An error's message as one printable line, so that quoted text cannot forge a line of the log."""
    said = str(error)[:_LONGEST_SAID]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in said)


def guarded(function: Callable[[], T], *, otherwise: Callable[[BaseException], T]) -> T:
    """Run a memory step that must never break the graph around it.

    What ends the process or the task passes; everything else is answered by `otherwise`, which says
    so in the log and the audit. A BackendError is expected; anything else is logged with its trace.
    """
    try:
        return function()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except (BackendError, DeadlineExceeded) as error:
        _log.warning("memory is degraded: %s", _one_line(error))
        return otherwise(error)
    except BaseException as error:  # noqa: BLE001  # logged with its trace; not all errors are an Exception
        _log.exception("memory failed; the graph goes on without it")
        return otherwise(error)
