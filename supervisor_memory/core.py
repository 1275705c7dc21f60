"""Memory without a graph: every verb that needs no LangGraph. `SupervisorMemory` adds the others."""

import functools
import logging
import time
from collections.abc import Callable, Hashable, MutableMapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from supervisor_memory.bridge import Bridge, passed_on, twin
from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recipe, Remembering, Turn, recall
from supervisor_memory.language.tokens import COUNTERS
from supervisor_memory.model.arguments import (
    LONGEST_READ,
    MessagesLike,
    check_backend,
    check_scope,
    last_user_text,
    readable,
)
from supervisor_memory.model.records import AuditEvent, Hits, Message, Note, Scope, WriteResult, check_name
from supervisor_memory.ports import Services, guarded
from supervisor_memory.reading.audit import Audit
from supervisor_memory.reading.lookup import Reader
from supervisor_memory.recipes.open import open_recipe
from supervisor_memory.redact.redactor import Redact, open_redactor
from supervisor_memory.review import undo
from supervisor_memory.review.desk import Desk
from supervisor_memory.settings import Settings
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import Journals, MemoryBackend, PartyRow, SessionRow
from supervisor_memory.telemetry import of_recall, open_telemetry, spanned
from supervisor_memory.upkeep.automatic import Digests, MessageVectors, Rarely
from supervisor_memory.upkeep.desk import Upkeep
from supervisor_memory.upkeep.edit import Curator
from supervisor_memory.upkeep.erase import Receipt
from supervisor_memory.upkeep.experience import Experience
from supervisor_memory.upkeep.forget import Forgotten
from supervisor_memory.upkeep.hints import Hints
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.upkeep.write import Writer
from supervisor_memory.wiring.models import as_completion, as_embedder
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from supervisor_memory.embedding.protocol import Embedder
    from supervisor_memory.upkeep.sessions import Sessions

__all__ = ["Forgotten", "Memory", "PartyRow", "Recalled", "Receipt", "SessionRow"]

_log = logging.getLogger("supervisor_memory")


def _writer(memory: "Memory") -> Writer:
    return memory._writer


def _reader(memory: "Memory") -> Reader:
    return memory._reader


def _upkeep(memory: "Memory") -> Upkeep:
    return memory.upkeep


def _experience(memory: "Memory") -> Experience:
    return memory.experience


class Memory:
    """Long-term memory without a graph; `SupervisorMemory` adds memory to a graph.

    Args:
        settings: None: the defaults. `SupervisorMemory.from_env()` reads the environment.
        backend: Wins over `settings.backend`.
        embedder: An embedder of `supervisor_memory.embedding`, or any LangChain `Embeddings`. None: as
            `settings.embedding_model` says.
        llm: A chat model that sharpens extraction and merging; nothing needs it. None: `settings.llm`.
        recipe: The operators of the six stages, or the name of a recipe. None: `settings.recipe`.
        clock: Seconds since 1970; tests pass one of their own.
        count_tokens: The counter for the budget of a note. None: `settings.tokenizer`.
        redact: A function of your own that takes personal data out of a text, after what `settings.redact`
            names: before anything is kept, embedded, queued or sent to a model; see docs/redaction.md.
        keep_messages: Whether what is said in a scope, a user's session, is kept word for word. None:
            `settings.keep_messages` says so for everybody. Where it fails, nothing is.
        recall_said: Whether notes in a scope may quote what was said. None: `settings.recall_said` says so
            for everybody. Where it fails, nothing is quoted.

    Safe to share between threads, event loops and users: who is acting comes with each call.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        backend: MemoryBackend | None = None,
        embedder: "Embedder | Any | None" = None,
        llm: "BaseChatModel | None" = None,
        recipe: Recipe | str | None = None,
        clock: Callable[[], float] = time.time,
        count_tokens: Callable[[str], int] | None = None,
        redact: Redact | None = None,
        keep_messages: Callable[[Scope], bool] | None = None,
        recall_said: Callable[[Scope], bool] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        redactor = open_redactor(self.settings.redact, self.settings.phone_regions, redact)
        self.bridge = Bridge()
        self.backend = (
            check_backend(backend)
            if backend is not None
            else open_backend(self.settings.backend, self.settings.path, self.settings)
        )
        try:
            self.recipe = open_recipe(self.settings.recipe if recipe is None else recipe, self.backend)
            self.settings = self.settings.filled(self.recipe.settings)
        except SettingsError:
            if backend is None:
                self.backend.close()
            raise
        self.services = Services(
            settings=self.settings,
            backend=self.backend,
            embedder=as_embedder(embedder, self.settings),
            complete=as_completion(llm, self.settings),
            bridge=self.bridge,
            clock=clock,
            count_tokens=count_tokens or COUNTERS[self.settings.tokenizer],
            redactor=redactor,
            telemetry=open_telemetry(
                store_id=self.backend.audit.log_id,
                redact=redactor.text,
                with_content=self.settings.trace_content,
            )
            if self.settings.tracing
            else None,
        )
        self.hints = Hints(self.services)
        self._rarely = Rarely(self.services)
        self._vectors, self._digests = MessageVectors(self.services), Digests(self.services)
        self._keep_messages, self._recall_said = keep_messages, recall_said
        trail = Trail(self.backend, self.bridge, clock, self.settings.search_timeout_ms / 1000)
        self.queue = Queue(
            self.services,
            trail,
            directory=getattr(self.backend.audit, "directory", None),
            insert=self._insert,
            redact=redactor.text,
        )
        self.experience = Experience(self.services, trail)
        self._open_desks(trail)
        if isinstance(self.backend, Journals):
            self.backend.decides_again(functools.partial(self._writer.decide_again, self.backend.store))
        self.is_fenced = False
        """Whether a graph was given memory: then a caller that nobody wrapped is a stranger."""
        self.has_guarded = False
        """Whether a store was guarded; then a graph with any other store is a mistake."""
        self.hints.at_start()

    def _open_desks(self, trail: Trail) -> None:
        """The desks behind the verbs; a trail records their reads and decisions."""
        services, settings = self.services, self.settings
        self._trail = trail
        curator = Curator(
            reading=lambda: services.ports(settings.search_timeout_ms),
            writing=lambda: services.ports(settings.write_timeout_ms),
            trail=trail,
        )
        self.experience = self.experience.of_reader(trail, curator)
        by_itself = self._rarely, self._vectors, self._digests
        self._writer = Writer(
            services,
            self.recipe,
            trail,
            curator,
            self.queue,
            self.hints,
            *by_itself,
            self._keep_messages,
            self.experience,
        )
        self._reader = Reader(services, self.recipe, curator, trail, self._quotes)
        self.review = Desk(services, self.recipe.insert, curator, trail)
        self.upkeep = Upkeep(services, self.queue, trail, self.recipe, self.experience)
        self.audit = Audit(services, self.queue, trail)

    @classmethod
    def from_env(cls, env_file: str | Path | None = ".env", **options: Any) -> Self:
        """A memory with the settings of the environment and `.env`; `options` are the constructor's."""
        return cls(Settings.from_env(env_file), **options)

    @classmethod
    async def afrom_env(cls, env_file: str | Path | None = ".env", **options: Any) -> Self:
        """As `from_env`, off the event loop: for a graph factory of an async server."""
        return await Bridge().run(cls.from_env, env_file, **options)

    @classmethod
    def existing(cls, settings: Settings, *, embedder: bool = True) -> Self:
        """A memory over a store that exists; unlike the constructor it never makes a store.

        It leaves to other processes what waits in a journal.

        Args:
            embedder: Whether questions will be asked; without, no model is loaded.

        Raises:
            BackendUnavailable: there is no such store, or no other process could see it.
            SettingsError, BackendError: it cannot be opened.
        """
        from supervisor_memory.reading.existing import existing_backend

        backend = existing_backend(settings)
        known = settings if embedder else settings.model_copy(update={"embedding_model": "none"})
        return cls(known, backend=backend)

    @property
    def sessions(self) -> "Sessions":
        """The desk that lists, shows, names, closes and erases sessions."""
        from supervisor_memory.upkeep.sessions import Sessions  # a turn needs none of it

        return Sessions(self.services, self.queue, self.review.curator, self._trail, self._digests.closed)

    @property
    def embedder(self) -> "Embedder | None":
        return self.services.embedder

    def read_by(self, reader: str) -> Self:
        """This memory, with what is read through it noted in the access log as read by somebody.

        Args:
            reader: A login, or a way in, such as "ada@example.com" or "mcp". An agent that a call names with
                `agent_id` is noted as itself.
        """
        theirs = copy(self)
        theirs._open_desks(replace(self._trail, reader=check_name(reader, what="reader")))
        return theirs

    def with_recipe(self, recipe: Recipe | str) -> Self:
        """This memory with another recipe, over the same store and with the same settings.

        Raises:
            SettingsError: no recipe has that name, or the store lacks what it needs.
        """
        theirs = copy(self)
        theirs.recipe = open_recipe(recipe, self.backend)
        theirs._open_desks(self._trail)
        return theirs

    # --- the verbs: each is documented where it lives

    write = passed_on(_writer, Writer.write)
    add = passed_on(_writer, Writer.add)
    add_many = passed_on(_writer, Writer.add_many)
    update = passed_on(_writer, Writer.update)
    delete = passed_on(_writer, Writer.delete)
    delete_all = passed_on(_writer, Writer.delete_all)
    remember = passed_on(_writer, Writer.remember)
    settle = passed_on(_writer, Writer.settle)
    reflect = passed_on(_writer, Writer.reflect)

    search = passed_on(_reader, Reader.search)
    get = passed_on(_reader, Reader.get)
    get_all = passed_on(_reader, Reader.get_all)
    history = passed_on(_reader, Reader.history)
    topics = passed_on(_reader, Reader.topics)
    messages = passed_on(_reader, Reader.messages)
    session = passed_on(_reader, Reader.session)
    timeline = passed_on(_reader, Reader.timeline)
    relations = passed_on(_reader, Reader.relations)
    route = passed_on(_reader, Reader.route)
    summarize = passed_on(_reader, Reader.summarize)
    preview = passed_on(_reader, Reader.preview)

    rate = passed_on(_experience, Experience.rate)

    erase = passed_on(_upkeep, Upkeep.erase)
    reembed = passed_on(_upkeep, Upkeep.reembed)
    forget = passed_on(_upkeep, Upkeep.forget)
    optimize = passed_on(_upkeep, Upkeep.optimize)
    status = passed_on(_upkeep, Upkeep.status)
    export = passed_on(_upkeep, Upkeep.export)
    import_from = passed_on(_upkeep, Upkeep.import_from)
    copy_to = passed_on(_upkeep, Upkeep.copy_to)

    def revert(self, id: str, *, version: int, user_id: str | None = None) -> WriteResult:
        """Give a record the text of an earlier version, as a new one; what came between stays in `history`.

        Where it says that already, it is skipped. A record that was deleted: `memory.review.restore`.

        Raises:
            RecordNotFound: there is no such record or version, and the error names those there are; it is
                another user's; or it is not active.
            Conflict: another active record has that text or that subject.
        """
        curator = self.review.curator
        return undo.revert(
            id,
            version,
            user_id,
            actor="operator" if user_id is None else "supervisor",
            curator=curator,
            writing=curator.writing,
        )

    # --- the two flows of a graph

    def recall(
        self,
        messages: MessagesLike,
        scope: Scope,
        *,
        query: str | None = None,
        said: bool | None = None,
        explain: bool = False,
    ) -> Note:
        """The note for a model call: what the reader should know of the past. A failure of memory raises
        nothing.

        Args:
            messages: What the reader sees. What stands there is not repeated in the note.
            scope: `agent_id` is the sub-agent that will read the note; None: the supervisor.
            query: What to look for; None: the latest thing the user said.
            said: Whether the note may quote what was said in earlier conversations. None: as the memory was
                made; whoever says no wins.
            explain: Whether the note's `hits` tell what became of each candidate, as in `search`.
        """
        recalled = self.recalled(messages, scope, query=query, said=said, explain=explain)
        recalled.tell(scope)
        return recalled.note

    @spanned("search_memory", lambda given, recalled: of_recall(given, recalled.note))
    def recalled(
        self,
        messages: MessagesLike,
        scope: Scope,
        *,
        query: str | None = None,
        said: bool | None = None,
        explain: bool = False,
        shared: MutableMapping[Hashable, Any] | None = None,
    ) -> "Recalled":
        """As `recall`, for a caller that does not know yet whether a model will read the note.

        Args:
            shared: What the readers of a run share, so that it is computed once; None: there are no others.
        """
        check_scope(scope)
        if not self.settings.enabled:
            return Recalled(Note())
        scope = self.services.scope(scope)
        ports = self.services.ports(self.settings.search_timeout_ms, shared=shared)

        def look() -> Recalled:
            seen = tuple(map(_as_read, readable(messages)))
            asked = last_user_text(seen) if query is None else query[:LONGEST_READ]
            quotes = said is not False and self._quotes(scope)
            turn = Turn(text=asked, scope=scope, messages=seen, said=quotes, explain=explain)
            self.experience.settle(scope)
            found = recall(turn, ports, self.recipe)

            tell = self._trail.telling("inject", found, ports=ports)

            def log(scope: Scope) -> None:
                tell(self.services.scope(scope))

            self.experience.told(scope, found.note.hits)
            if found.note.degraded:
                self._trail.degraded("recall", scope, ports.reasons, ports=ports)
            if note := found.note:  # the ids apart: loggers that write JSON print all they are given
                who, extra = scope.agent_id or "the supervisor", {"record_ids": note.ids}
                _log.info("recalled %d records for %s", len(note.ids), who, extra=extra)
            return Recalled(found.note, log)

        def without(error: BaseException) -> Recalled:
            self._trail.degraded("recall", scope, type(error).__name__, ports=ports)
            said = f"{type(error).__name__}: {error}"
            return Recalled(Note(degraded=True, hits=Hits(degraded=True, notes=(said,))))

        recalled = guarded(lambda: self.bridge.within(ports.left(), look), otherwise=without)
        guarded(lambda: self._vectors.look_for(scope.user_id), otherwise=lambda error: None)
        self._digests.look_for(scope.user_id, scope.session_id)
        return recalled

    def _quotes(self, scope: Scope) -> bool:
        asked = self._recall_said
        return asked is None or guarded(lambda: bool(asked(scope)), otherwise=lambda error: False)

    def _insert(
        self, said: Remembering, *, begun: float | None = None, is_given: bool = True
    ) -> list[WriteResult]:
        return self._writer.insert(said, begun=begun, is_given=is_given)

    def keep_digests(self, said: Remembering) -> None:
        """Keep who said what in a thread, as digests; see `host/run/beginning.py`."""
        self._insert(said, is_given=False)

    def report(self, *events: AuditEvent) -> None:
        """Audit an event that changed no record. A failing store raises nothing here."""
        self._trail.report(*events)

    def fence(self) -> None:
        """From now on the memory tools answer to a wrapped supervisor and to nobody else."""
        self.is_fenced = True

    # --- end of life

    def flush(self, *, seconds: float = 600.0) -> bool:
        """Read what waits in the queue, embed session messages, and digest the sessions that have ended.

        False: the time ran out, or one of these failed.
        """
        until = time.monotonic() + seconds
        self.experience.flush()
        is_read = self.queue.flush(seconds=seconds)
        is_embedded = is_read and self._vectors.flush(seconds=until - time.monotonic())
        return self._digests.flush(seconds=until - time.monotonic()) and is_embedded

    def close(self) -> None:
        """Read what this process has put into the queue, and close the files. Closing twice is fine.

        Session messages that wait for a vector are left to the next process.
        Rows of the access log that a full disk does not take are told of in the log; nothing else waits until
        here to be written.
        """
        try:
            self.experience.flush()
            self._vectors.close()
            self._digests.close()
            self.queue.close()
        finally:
            self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    awrite = twin(write)
    aadd = twin(add)
    aadd_many = twin(add_many)
    aupdate = twin(update)
    adelete = twin(delete)
    adelete_all = twin(delete_all)
    aerase = twin(erase)
    aexport = twin(export)
    aimport_from = twin(import_from)
    acopy_to = twin(copy_to)
    areembed = twin(reembed)
    aforget = twin(forget)
    aoptimize = twin(optimize)
    astatus = twin(status)
    asearch = twin(search)
    aget = twin(get)
    aget_all = twin(get_all)
    ahistory = twin(history)
    arevert = twin(revert)
    atopics = twin(topics)
    amessages = twin(messages)
    asession = twin(session)
    atimeline = twin(timeline)
    arelations = twin(relations)
    aroute = twin(route)
    asummarize = twin(summarize)
    arecall = twin(recall)
    apreview = twin(preview)
    aremember = twin(remember)
    arate = twin(rate)
    areflect = twin(reflect)
    aflush = twin(flush)
    aclose = twin(close)


def _as_read(message: Message) -> Message:
    """A message as far as it is read."""
    content = message.content
    return message if len(content) <= LONGEST_READ else replace(message, content=content[:LONGEST_READ])


@dataclass(frozen=True, slots=True)
class Recalled:
    """A note, and how to tell the log who has read it."""

    note: Note
    log: Callable[[Scope], None] | None = None

    def tell(self, scope: Scope) -> None:
        """Note in the access log that a reader saw it."""
        if self.log is not None:
            self.log(scope)
