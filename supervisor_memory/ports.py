"""What a flow may use of the world: embed, search, commit, a model, the time left, and now.

Each stage gets a view that has only its powers, so that what a stage may do to the store is visible
in its type, and refused when tried. The deadline and the guard live here, once.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, ParamSpec, Protocol, TypeVar

from supervisor_memory.backends.protocol import Commit, Committed, MemoryBackend
from supervisor_memory.bridge import Bridge
from supervisor_memory.embedding.languages import reads
from supervisor_memory.errors import BackendError, DeadlineExceeded, StageDenied
from supervisor_memory.records import Filter, Hits, Query, Record
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder
    from supervisor_memory.records import Vector

__all__ = [
    "Complete",
    "Deciding",
    "Fault",
    "Maintaining",
    "NoStore",
    "Ports",
    "ReadStore",
    "Services",
    "guarded",
]

P = ParamSpec("P")
T = TypeVar("T")
Complete = Callable[[str], str]
"""A model: a prompt in, its text out."""

_EMBED_SHARE = 0.5  # of the time left, so that a hanging embedder leaves time for a search by words
_KNOWN_QUERIES = 64
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True, slots=True)
class Fault:
    """A step that did not work, and what was done without it."""

    step: str
    error: str

    def __str__(self) -> str:
        return f"{self.step}:{self.error}"


@dataclass(frozen=True)
class Services:
    """What lives as long as a SupervisorMemory does."""

    settings: Settings
    backend: MemoryBackend
    embedder: "Embedder | None"
    complete: Complete | None
    bridge: Bridge
    clock: Callable[[], float]
    count_tokens: Callable[[str], int]
    query_vectors: "dict[tuple[str, str], Vector]" = field(default_factory=dict)
    """The latest queries' vectors: one question is asked for the supervisor and for each sub-agent."""


class NoStore(Protocol):
    """Before retrieval: no store at all."""

    @property
    def now(self) -> float: ...
    @property
    def settings(self) -> Settings: ...
    def count_tokens(self, text: str) -> int: ...
    def complete(self, prompt: str) -> str | None:
        """The model's answer; None when there is no model or it failed (then it is noted)."""

    def embed_query(self, text: str) -> "Vector | None":
        """The query's vector; None without an embedder or when it failed (then it is noted)."""

    @property
    def embedder(self) -> "Embedder | None": ...


class ReadStore(NoStore, Protocol):
    """Retrieval, what follows it, and what comes before an insert: reading."""

    def search(self, query: Query, *, limit: int) -> Hits: ...
    def list(self, where: Filter, *, limit: int) -> Sequence[Record]: ...


class Deciding(ReadStore, Protocol):
    """Insert: reading, and the only mutation there is."""

    def embed(self, texts: Sequence[str]) -> "Sequence[Vector | None]":
        """One vector a text; None where no embedder reads its language, or it failed (then it is noted)."""

    def commit(self, commit: Commit) -> Committed: ...


class Maintaining(Deciding, Protocol):
    """After insert: as Deciding, but one search and one commit for each operator."""


@dataclass
class Ports:
    """The ports of one flow: its own deadline, its own moment, and the faults met on the way."""

    services: Services
    seconds: float
    now: float
    faults: list[Fault] = field(default_factory=list)

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
        return _View(self)

    def read_store(self) -> ReadStore:
        return _Reading(self)

    def deciding(self) -> Deciding:
        return _Deciding(self)

    def maintaining(self) -> Maintaining:
        return _Maintaining(self)

    def within(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the outer world in the time that is left."""
        return self.services.bridge.within(self.left(), function, *args, **kwargs)

    def left(self) -> float:
        return max(self._until - time.monotonic(), 0.0)

    def attempt(self, step: str, seconds: float, function: Callable[[], T]) -> T | None:
        """A step the flow can do without: its result, or None with the fault noted.

        The plug-ins behind it are strangers' code, and langmem's ConfigurationError is a
        BaseException; only what ends the process or the task passes.
        """
        try:
            return self.services.bridge.within(seconds, function)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001
            self.note_fault(step, error)
            return None

    def note_fault(self, step: str, error: BaseException) -> None:
        self.faults.append(Fault(step, type(error).__name__))
        _log.warning("memory goes on without the %s: %s: %s", step, type(error).__name__, error)


class _View:
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
        return self._services.embedder

    def count_tokens(self, text: str) -> int:
        return self._services.count_tokens(text)

    def complete(self, prompt: str) -> str | None:
        complete = self._services.complete
        if complete is None:
            return None
        seconds = self.settings.llm_timeout_ms / 1000
        return self._ports.attempt("model", seconds, lambda: complete(prompt))

    def embed_query(self, text: str) -> "Vector | None":
        embedder = self._services.embedder
        if embedder is None or not text or not reads(text, embedder=embedder):
            return None
        known = self._services.query_vectors
        key = (embedder.fingerprint, text)
        if key not in known:
            vectors = self._vectors(lambda: [embedder.embed_query(text)])
            if vectors is None:
                return None
            known[key] = vectors[0]
            while len(known) > _KNOWN_QUERIES:
                known.pop(next(iter(known)), None)
        return known.get(key)

    def _vectors(self, embed: "Callable[[], Sequence[Vector]]") -> "Sequence[Vector] | None":
        embedder = self._services.embedder
        assert embedder is not None
        return self._ports.attempt(
            "embedder", self._ports.left() * _EMBED_SHARE, lambda: _checked(embedder, embed())
        )


class _Reading(_View):
    def search(self, query: Query, *, limit: int) -> Hits:
        return self._ports.within(self._services.backend.search, query, limit=limit)

    def list(self, where: Filter, *, limit: int) -> Sequence[Record]:
        return self._ports.within(self._services.backend.list, where, limit=limit)


class _Deciding(_Reading):
    def embed(self, texts: Sequence[str]) -> "Sequence[Vector | None]":
        embedder = self._services.embedder
        legible = [] if embedder is None else [text for text in texts if reads(text, embedder=embedder)]
        if embedder is None or not legible:
            return [None] * len(texts)
        vectors = self._vectors(lambda: list(embedder.embed_documents(legible)))
        by_text = dict(zip(legible, vectors, strict=True)) if vectors is not None else {}
        return [by_text.get(text) for text in texts]

    def commit(self, commit: Commit) -> Committed:
        return self._ports.within(self._services.backend.batch, commit)


class _Maintaining(_Deciding):
    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._used: set[str] = set()

    def search(self, query: Query, *, limit: int) -> Hits:
        self._once("search")
        return super().search(query, limit=limit)

    def commit(self, commit: Commit) -> Committed:
        self._once("commit")
        return super().commit(commit)

    def _once(self, power: str) -> None:
        if power in self._used:
            raise StageDenied(f"an operator after insert may {power} once; batch what it needs", power=power)
        self._used.add(power)


def _checked(embedder: "Embedder", vectors: "Sequence[Vector]") -> "Sequence[Vector]":
    from supervisor_memory.embedding.protocol import check_vector

    return [
        check_vector(vector, dimension=embedder.dimension, what=f"a vector of {embedder.fingerprint}")
        for vector in vectors
    ]


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
        _log.warning("memory is degraded: %s", error)
        return otherwise(error)
    except BaseException as error:  # noqa: BLE001  # some libraries' errors are no Exception
        _log.exception("memory failed; the graph goes on without it")
        return otherwise(error)
