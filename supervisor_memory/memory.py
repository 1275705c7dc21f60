"""SupervisorMemory: the object a user holds. Every verb is a few lines over `flow.py` and the backend."""

import functools
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import ConfirmationRequired, InvalidContent, RecordNotFound, SettingsError
from supervisor_memory.flow import (
    Outcome,
    Recipe,
    Remembering,
    Turn,
    in_parts,
    recall,
    redacted,
    remember,
)
from supervisor_memory.model.arguments import (
    Moment,
    as_epoch,
    as_families,
    as_filter,
    as_metadata,
    as_moment,
    check_amount,
    check_backend,
    check_kind,
    check_scope,
    check_source_class,
    check_threshold,
    read_conversation,
    read_items,
    verbatim,
)
from supervisor_memory.model.messages import LONGEST_READ, MessagesLike, last_user_text, readable
from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Hits,
    Kind,
    Message,
    Note,
    Record,
    Route,
    Scope,
    Source,
    SourceClass,
    WriteResult,
    check_content,
    check_family,
    check_name,
    family_for,
    is_id,
)
from supervisor_memory.model.versions import Version
from supervisor_memory.ports import Ports, Services, guarded
from supervisor_memory.reading.metrics import use_of
from supervisor_memory.reading.past import past
from supervisor_memory.reading.summary import summary
from supervisor_memory.reading.topics import Topic, table_of_contents
from supervisor_memory.reading.transcript import in_order, said_around
from supervisor_memory.recipes.open import open_recipe
from supervisor_memory.redact.redactor import Redact, open_redactor, redacted_scope
from supervisor_memory.review import undo
from supervisor_memory.review.desk import Desk, check_login
from supervisor_memory.settings import Settings
from supervisor_memory.stages.insert.again import decide_again
from supervisor_memory.stages.insert.merge import strategy_for
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.gather import with_metadata
from supervisor_memory.stages.pre_retrieval.route import route
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import Commit, Journals, MemoryBackend
from supervisor_memory.telemetry import (
    of_many,
    of_one,
    of_recall,
    of_search,
    of_write,
    open_telemetry,
    spanned,
)
from supervisor_memory.text.tokens import COUNTERS
from supervisor_memory.upkeep.automatic import Rarely
from supervisor_memory.upkeep.edit import Curator
from supervisor_memory.upkeep.erase import Eraser, Receipt
from supervisor_memory.upkeep.forget import Forgotten, forget
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.upkeep.reembed import Reembedded, reembed
from supervisor_memory.wiring.hints import Hints
from supervisor_memory.wiring.models import as_completion, as_embedder
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.store.base import BaseStore, IndexConfig, TTLConfig

    from supervisor_memory.embedding.protocol import Embedder
    from supervisor_memory.host.explain_prompt import Prompt
    from supervisor_memory.host.run.identity import Resolver
    from supervisor_memory.host.ways_in.middleware import MemoryMiddleware
    from supervisor_memory.host.ways_in.turn import HostTurn
    from supervisor_memory.moving.arrival import Moved
    from supervisor_memory.moving.files import File
    from supervisor_memory.moving.mover import Mover, Progress

__all__ = ["SupervisorMemory"]

P = ParamSpec("P")
T = TypeVar("T")
G = TypeVar("G")
_log = logging.getLogger("supervisor_memory")
_CHUNK = 64
_MOST_HITS = 1_000_000
_LEFT_OUT = WriteResult("", "skipped", saved=False, reason="left-out-by-the-recipe")


def _twin(
    verb: "Callable[Concatenate[SupervisorMemory, P], T]",
) -> "Callable[Concatenate[SupervisorMemory, P], Coroutine[Any, Any, T]]":
    """The async twin of a verb: the same call, off the event loop."""

    async def twin(self: "SupervisorMemory", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.bridge.run(functools.partial(verb, self), *args, **kwargs)

    functools.update_wrapper(twin, verb)
    return twin


class SupervisorMemory:
    """Long-term memory for a supervisor and the agents it leads.

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
        seconds = self.settings.search_timeout_ms / 1000
        self._trail = Trail(self.backend, self.bridge, clock, seconds)
        self._curator = Curator(
            reading=lambda: self._ports(self.settings.search_timeout_ms),
            writing=lambda: self._ports(self.settings.write_timeout_ms),
            trail=self._trail,
        )
        self.queue = Queue(
            self.services,
            self._trail,
            directory=getattr(self.backend.audit, "directory", None),
            insert=self._insert,
            redact=redactor.text,
        )
        self._eraser = Eraser(self.services, self.queue)
        self.review = Desk(self.services, self.recipe.insert, self._curator, self._trail)
        self._rarely = Rarely(self.services)
        if isinstance(self.backend, Journals):
            self.backend.decides_again(functools.partial(self._decide_again, self.backend.store))
        self._keep_messages = keep_messages
        self.is_fenced = False
        """Whether a graph was given memory: then a caller that nobody wrapped is a stranger."""
        self.has_guarded = False
        """Whether a store was guarded, so that a graph which runs with another one is a mistake."""
        self.hints = Hints(self.services)
        self.hints.at_start()

    @classmethod
    def from_env(cls, env_file: str | Path | None = ".env", **options: Any) -> "SupervisorMemory":
        """A memory as the environment and `.env` say; `options` are those of the constructor."""
        return cls(Settings.from_env(env_file), **options)

    @classmethod
    async def afrom_env(cls, env_file: str | Path | None = ".env", **options: Any) -> "SupervisorMemory":
        """As `from_env`, off the event loop: for a graph factory of an async server."""
        return await Bridge().run(cls.from_env, env_file, **options)

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
        theirs._trail = replace(self._trail, reader=check_name(reader, what="reader"))
        theirs._curator = replace(self._curator, trail=theirs._trail)
        theirs.review = replace(self.review, curator=theirs._curator, trail=theirs._trail)
        return theirs

    # --- writing

    @spanned("upsert_memory", of_write)
    def write(
        self,
        content: str,
        *,
        user_id: str,
        kind: Kind | None = None,
        agent_id: str | None = None,
        family: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: float | datetime | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        task: str | None = None,
        source_class: SourceClass = "user",
    ) -> WriteResult:
        """Remember one statement, merged with what is known.

        A sentence that takes something back ("Forget that …") sets the record aside that says it.

        Args:
            kind: None: told from the text by rules; what no rule knows is a domain fact.
            family: None: chosen by kind and agent, see `family_for`.
            metadata: JSON values. `strategy` (overwrite, append, summarise), `ttl` (seconds), `tags`,
                `importance` (in [0, 1]), `pinned` (True) and `use_when` have a meaning; the rest is kept
                as it is.
            created_at: When it was said; None: now.

        Raises:
            InvalidContent, IdentityError: bad input; nothing was written.
            BackendError: the store failed; nothing was written.
            DeadlineExceeded: the store is late; it may still write it. Saying it again does no harm.
        """
        scope = self._in(Scope(user_id, agent_id, session_id, run_id, task))
        check_kind(kind)
        check_source_class(source_class)
        source = Source(source_class, agent_id, session_id, run_id)
        extra = as_metadata(metadata)
        clean = self.services.redactor.text(check_content(content))
        told = extract.taken_back(clean, source=source)
        told = told or extract.describe(clean, kind=kind, source=source)
        said = Remembering(
            scope,
            candidates=(with_metadata(told, extra),),
            family=check_family(family) if family is not None else None,
            created_at=as_epoch(created_at),
        )
        return next(iter(self._insert(said)), _LEFT_OUT)

    @spanned("upsert_memory", of_write)
    def add(
        self,
        messages: MessagesLike,
        *,
        user_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        created_at: float | datetime | None = None,
        task: str | None = None,
    ) -> list[WriteResult]:
        """Remember what is worth it of a conversation.

        With `infer`, statements are extracted by rules (and by the model, where there is one) and
        merged: one result for each. The words themselves are kept as session messages when
        `session_id` is given. Without `infer`, see `add_many`.

        Raises:
            InvalidContent: something is no message, or too large; nothing was written.
        """
        scope = self._in(Scope(user_id, agent_id, session_id, run_id, task))
        read = read_conversation(messages)
        if not infer:
            items = [{"content": m.content, "speaker": m.name or m.role} for m in read]
            return self.add_many(
                [{**item, "metadata": metadata or {}, "session_id": session_id} for item in items],
                user_id=user_id,
                agent_id=agent_id,
                created_at=created_at,
                task=task,
            )
        extra = as_metadata(metadata)
        strategy_for("domain-facts", extra.get("strategy"))
        conversation = Remembering(
            scope, messages=read, created_at=as_epoch(created_at), keeps_messages=self._keeps(scope)
        )
        said = redacted(conversation, self.services.redactor)
        ports = self._ports(self.settings.write_timeout_ms)
        for operator in (*self.recipe.pre_insert, *(self.recipe.sharpen or ())):
            said = operator(said, ports.read_store())
        said = replace(said, candidates=tuple(with_metadata(each, extra) for each in said.candidates))
        return self._insert(said, begun=ports.now, is_given=False)[: len(said.candidates)]

    @spanned("upsert_memory", of_write)
    def add_many(
        self,
        items: Iterable[str | Mapping[str, Any]],
        *,
        user_id: str,
        infer: bool = False,
        agent_id: str | None = None,
        family: str | None = None,
        created_at: float | datetime | None = None,
        task: str | None = None,
    ) -> list[WriteResult]:
        """Store many texts: one result an item, in order.

        An item is a text or `{"content", "speaker", "session_id", "created_at", "metadata"}`. Without
        `infer` they are kept verbatim: nothing is merged, equal texts are allowed, all are searched.
        Every item is checked before the first is written; then 64 at a time are written together.

        Raises:
            InvalidContent: an item is no text; the error gives its index. Nothing was written.
        """
        scope = self._in(Scope(user_id, agent_id, None, None, task))
        read, now = read_items(items), as_epoch(created_at)
        if infer:
            return [
                self._infer_one(
                    Message("user", item.content, item.speaker),
                    replace(scope, session_id=item.session_id),
                    metadata=item.metadata,
                    created_at=now if item.created_at is None else item.created_at,
                )
                for item in read
            ]
        where = check_family(family or family_for("task-traces", agent_id, self.settings.namespaces))
        when = self.services.clock() if now is None else now
        records = [verbatim(item, scope, family=where, when=when) for item in read]
        results: list[WriteResult] = []
        for start in range(0, len(records), _CHUNK):
            some = records[start : start + _CHUNK]
            known = {done.id: done for done in self._insert(Remembering(scope, verbatim=tuple(some)))}
            results += [known.get(record.id, _LEFT_OUT) for record in some]
        return results

    def _infer_one(
        self, message: Message, scope: Scope, *, metadata: Mapping[str, Any], created_at: float | None
    ) -> WriteResult:
        found = self.add(
            message,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            metadata=metadata,
            created_at=created_at,
            task=scope.task,
        )
        return found[0] if found else WriteResult("", "skipped", reason="no-statement")

    @spanned("update_memory", of_write)
    def update(
        self,
        id: str,
        *,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = True,
        user_id: str | None = None,
        source: Source | None = None,
    ) -> WriteResult:
        """Change a record; its old version stays in `history`.

        Args:
            merge: True: `metadata` is laid over the old one and `metadata["strategy"]` (overwrite when
                unset) joins the texts. False: both are replaced.
            user_id: Given: the record must be this user's. None: the operator acts, and the audit says so.
            source: Whose words a new text is, where a model wrote it over the user's, as
                `Source("agent", "web")`. None: you vouch for it, and it stays the user's. `revert` brings
                back the text and whose it was.

        Raises:
            RecordNotFound: there is no such record, it was deleted, or it is another user's.
            Conflict: another active record has that very text.
        """
        redactor = self.services.redactor
        extra = redactor.value(as_metadata(metadata))
        strategy_for("domain-facts", extra.get("strategy"))
        clean = redactor.text(content) if isinstance(content, str) else content
        return self._curator.update(id, user_id, clean, extra, merge=merge, source=source)

    @spanned("delete_memory", of_one)
    def delete(self, id: str, *, user_id: str | None = None) -> int:
        """Delete one record. It is found no more; `history` keeps it, so the deletion can be undone.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        return self._curator.delete(id, user_id)

    @spanned("delete_memory", of_many(lambda given, count: count))
    def delete_all(self, *, user_id: str, confirm: bool = False) -> int:
        """Delete every record of a user, session messages included. Returns how many.

        Raises:
            ConfirmationRequired: without `confirm=True`; the error tells how many it would be.
        """
        scope = Scope(user_id)
        if confirm is not True:
            count = self._curator.count_all(scope.user_id)
            raise ConfirmationRequired(
                f"delete_all would delete {count} records of user {scope.user_id!r}; pass confirm=True",
                count=count,
            )
        return self._curator.delete_all(scope.user_id)

    def erase(self, *, user_id: str, confirm: bool = False, reviewer: str = "operator") -> Receipt:
        """Remove a user for good: records, versions, vectors, words, keys, accesses. Cannot be undone.

        What was said before does not come back, however late it is written; what the user says from now
        on is remembered as ever. docs/erasure.md says what that covers.

        Args:
            reviewer: Who erases: a login, which the audit log keeps for ever.

        Raises:
            ConfirmationRequired: without `confirm=True`; its `held` tells how much it would be.
            InvalidName: `reviewer` is no login.
            BackendError: this backend cannot erase, or failed; nothing but what waited in the queue was
                removed.
            DeadlineExceeded: it takes over five minutes; it goes on. Call it again for a receipt.
        """
        scope, by = Scope(user_id), check_login(reviewer)
        if confirm is not True:
            held = self._eraser.holds(scope.user_id)
            raise ConfirmationRequired(
                f"erase would remove {held.get('records', 0)} records of user {scope.user_id!r} with all "
                "their versions, for good; pass confirm=True",
                held=held,
            )
        return self._eraser.erase(scope.user_id, actor=by)

    def reembed(
        self, *, user_id: str | None = None, progress: Callable[[int, int], None] | None = None
    ) -> Reembedded:
        """Embed the records that the present embedder has not read: after another model, after an outage.

        They keep their version and their times. It can be cut off anywhere and called again.

        Args:
            user_id: Only this user's. None: everybody's.
            progress: Told after each commit how many were looked at, and how many waited at the start.

        Raises:
            SettingsError: there is no embedder.
            EmbeddingError: it fails on every text; what was embedded before stays so.
            BackendError, DeadlineExceeded: the store failed; what was embedded before stays so.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        return reembed(self.services, whose, progress or (lambda done, total: None))

    @spanned("forget_memory", of_many(lambda given, done: len(done.taken)))
    def forget(self, *, user_id: str | None = None, dry_run: bool = False) -> Forgotten:
        """Set aside by rule what has expired, what is too much of a kind, and what is over MEMORY_CAPACITY.

        It is found no more; `get` still shows it with its status, and its versions are kept. It can be cut
        off anywhere and called again. docs/forgetting.md has the rules, and how to undo it.

        Args:
            user_id: Only this user's. None: everybody's.
            dry_run: Change nothing; tell each record that would be taken, with the rule and why.

        Raises:
            BackendError, DeadlineExceeded: the store failed, or is out of reach; what was done stays so.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        return forget(self.services, whose, dry_run=dry_run)

    # --- moving

    def export(
        self,
        file: "File",
        *,
        user_id: str | None = None,
        resume: bool = False,
        progress: "Progress | None" = None,
    ) -> "Moved":
        """Write all records into a file, one a line, with their versions and vectors; see docs/moving.md.

        Args:
            file: A path, which gets its name when it is whole; or a file that is open in binary mode.
            user_id: Only this user's. None: everybody's.
            resume: Go on where an export to this path was cut off.

        Raises:
            BackendError, OSError: it failed; what was written so far can be resumed.
        """
        return self._mover().export(file, user_id=user_id, resume=resume, progress=progress)

    def import_from(
        self, file: "File", *, user_id: str | None = None, progress: "Progress | None" = None
    ) -> "Moved":
        """Take the records of a file as they are. Doing it again, or after a crash, does no harm.

        What cannot be taken is left out and told of, line by line; the rest is taken.

        Raises:
            InvalidContent: it is no export at all; nothing was taken.
            BackendError: the store failed; some may have been taken. Import it again.
        """
        return self._mover().import_from(file, user_id=user_id, progress=progress)

    def copy_to(
        self,
        target: "SupervisorMemory | MemoryBackend",
        *,
        user_id: str | None = None,
        progress: "Progress | None" = None,
    ) -> "Moved":
        """Copy all records into another store as they are, as an export and an import would."""
        if not isinstance(target, SupervisorMemory):
            return self._mover().copy_to(target, user_id=user_id, progress=progress)
        redactor = target.services.redactor
        return self._mover().copy_to(target.backend, user_id=user_id, progress=progress, redactor=redactor)

    # --- reading

    @spanned("search_memory", of_search)
    def search(
        self,
        query: str,
        *,
        user_id: str,
        families: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        task: str | None = None,
        explain: bool = False,
        as_of: Moment | None = None,
    ) -> Hits:
        """The records that bear on a question, best first, each with the parts of its score.

        A question that is empty, or spaces, asks for what is pinned (`metadata["pinned"]` is True) and then
        for what is newest, each by its last update; no threshold applies. Of a longer question the first
        8,000 characters are read, and the hits' `notes` say so.

        Args:
            families: None: all of the user's but session messages.
            where: Which records may be found at all, however many others are more like the question:
                `{"kind": …, "tags": […], "since": …, "until": …, "metadata": {…}}`; see docs/searching.md.
            limit: None: MEMORY_TOP_K. At most 1,000,000.
            threshold: Least relevance in [0, 1]. None: MEMORY_MIN_SCORE; 0: the best `limit`,
                whatever they are.
            explain: Whether to tell what became of each candidate, in the hits' `considered`;
                `print(hits)` then shows a table.
            as_of: A moment to look back to, as seconds since 1970, a datetime, or text such as "2026-01-31"
                (the end of that day) or "2026-01-31T18:00+08:00": what was valid then, and nothing of what
                came later; see docs/reviewing.md. It reads all of the user's records.

        Raises:
            InvalidContent: an argument cannot be what it is for.
            BackendError, DeadlineExceeded: the store failed. A failing embedder does not raise: the hits
                are `degraded` and found by words alone.
        """
        if not isinstance(query, str):
            raise InvalidContent(f"query is {type(query).__name__}; pass text", type=type(query).__name__)
        turn = Turn(
            text=query,
            scope=self._in(Scope(user_id, agent_id, session_id, None, task)),
            purpose="hits",
            families=as_families(families),
            where=as_filter(self.services.redactor.value(where)),
            limit=None if limit is None else check_amount(limit, what="limit", most=_MOST_HITS),
            threshold=check_threshold(threshold),
            explain=explain,
        )
        ports = self._ports(self.settings.search_timeout_ms)
        if (when := as_moment(as_of, what="as_of", end=True)) is not None:
            ports = past(self.services, turn.scope.user_id, when)
        found = recall(turn, ports, self.recipe if query.strip() else self.recipe.browse or self.recipe)
        self._trail.told("search", found, turn.scope, ports=ports)
        if found.hits.degraded:
            self._trail.degraded("search", turn.scope, ports.reasons, ports=ports)
        return found.hits

    def get(self, id: str, *, user_id: str | None = None, as_of: Moment | None = None) -> Record:
        """One record, in any status.

        Args:
            user_id: Given: the record must be this user's. None: the operator reads, and the log says so.
            as_of: Given: the version that was valid at that moment, as in `search`.

        Raises:
            RecordNotFound: there is no such record, it is another user's, or it was not valid then. The
                error names the nearest ids.
        """
        when = as_moment(as_of, what="as_of", end=True)
        if when is None:
            return self._curator.find(id, user_id, op="get")
        return self._curator.as_of(id, user_id, when)

    def get_all(
        self,
        *,
        user_id: str,
        limit: int = 100,
        offset: int = 0,
        families: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        as_of: Moment | None = None,
    ) -> list[Record]:
        """A user's active records, most recently updated first; session messages only by family.

        Args:
            where: Only those records, as in `search`.
            as_of: Those that were valid at that moment, as in `search`.
        """
        scope = Scope(user_id)
        most = check_amount(limit, what="limit")
        start = check_amount(offset, what="offset", least=0)
        filtered = as_filter(self.services.redactor.value(where))
        asked = replace(filtered, user_id=scope.user_id, families=as_families(families))
        curator = self._curator
        if (when := as_moment(as_of, what="as_of", end=True)) is not None:
            then = past(self.services, scope.user_id, when)
            curator = replace(curator, reading=lambda: then)
        found = list(islice(curator.every(asked), start, start + most))
        self._trail.accessed("list", found, scope)
        return found

    def history(self, id: str, *, user_id: str | None = None) -> list[Version]:
        """Every version of a record, oldest first: its valid times, when it was recorded, what decided it.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        return self._curator.versions(id, user_id)

    def revert(self, id: str, *, version: int, user_id: str | None = None) -> WriteResult:
        """Give a record the text of an earlier version, as a new one; what came between stays in `history`.

        Where it says that already, it is skipped. A record that was deleted: `memory.review.restore`.

        Raises:
            RecordNotFound: there is no such record or version, and the error names those there are; it is
                another user's; or it is not active.
            Conflict: another active record has that text or that subject.
        """
        return undo.revert(
            id,
            version,
            user_id,
            actor="operator" if user_id is None else "supervisor",
            curator=self._curator,
            writing=lambda: self._ports(self.settings.write_timeout_ms),
        )

    # --- going deeper: what there is, then `search` and `get`, then what was said

    def topics(self, *, user_id: str, task: str | None = None, max_tokens: int | None = None) -> list[Topic]:
        """The table of contents: what is remembered, `str(topic)` a line; see docs/disclosure.md.

        Args:
            max_tokens: What all lines may take together; those of pinned, important and new records come
                first. None: MEMORY_MAX_CONTEXT_TOKENS.

        Raises:
            BackendError, DeadlineExceeded: the store failed.
        """
        scope = self._in(Scope(user_id, task=task))
        most = self.settings.max_context_tokens if max_tokens is None else max_tokens
        check_amount(most, what="max_tokens", least=0)
        where = Filter(user_id=scope.user_id, tasks=scope.tasks)
        records = {record.id: record for record in self._curator.every(where)}
        counter = self.services.count_tokens
        topics = table_of_contents(records.values(), most_tokens=most, count_tokens=counter)
        self._trail.accessed("topics", [records[id_] for each in topics for id_ in each.quoted], scope)
        return topics

    def messages(
        self, id: str, *, user_id: str | None = None, around: int = 2, within: float | None = None
    ) -> list[Record]:
        """The session message that a record was read from, with those before and after it, in order.

        Empty where what was said was not kept. For a message: itself, and those around it.

        Args:
            user_id: Given: the record must be this user's. None: the operator reads, and the log says so.
            around: How many messages before it, and how many after.
            within: Of these only what was said so many seconds before and after it, so that of a long session
                no more is read. None: however far they are apart.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        check_amount(around, what="around", least=0)
        record = self._curator.find(id, user_id, op="messages")
        session = self._curator.session_of(record, within=within)
        said = list(said_around(record, session, around=around))
        self._trail.seen("messages", said, by_operator=user_id is None)
        return said

    def session(self, session_id: str, *, user_id: str) -> list[Record]:
        """Everything that was said to this user in a session, and imported of it, in order.

        Raises:
            RecordNotFound: nothing is kept of such a session, or it is another user's.
        """
        scope = Scope(user_id, session_id=session_id)
        said = in_order(self._curator.every(Filter(user_id=scope.user_id, session_id=session_id)))
        if not said:
            raise RecordNotFound(
                f"nothing is kept of session {session_id[:64]!r} of user {scope.user_id!r}", id=session_id
            )
        self._trail.accessed("session", said, scope)
        return said

    # --- deciding and phrasing

    def route(self, text: str, scope: Scope, *, policy: Literal["default"] = "default") -> Route:
        """Whether a text asks for memory, or holds something to remember: by rules, with their names."""
        if policy != "default":
            raise InvalidContent(f"there is no routing policy {policy!r}; use 'default'", policy=policy)
        if not isinstance(text, str):
            raise InvalidContent(f"text is {type(text).__name__}; pass a string", type=type(text).__name__)
        read = text[:LONGEST_READ]
        return route(read, agent_id=scope.agent_id, prefixes=self.settings.namespaces)

    @spanned("summarize_memory", of_many(lambda given, text: len(given["items"])))
    def summarize(self, items: Sequence[str], *, goal: str = "", user_id: str | None = None) -> str:
        """One text of several records (by id) or texts: by the model, or as a list without repeats.

        Raises:
            RecordNotFound: an id is not this user's.
        """
        if isinstance(items, str):
            raise InvalidContent("items is one text; pass a list of ids or texts")
        texts = [check_content(item) for item in items]
        told = [self._curator.text_of(t, user_id) if is_id(t) else t for t in texts]
        return summary(told, goal, self._ports(self.settings.search_timeout_ms).no_store())

    # --- the two flows of a graph

    def recall(
        self,
        messages: MessagesLike,
        scope: Scope,
        *,
        query: str | None = None,
        explain: bool = False,
    ) -> Note:
        """The note for a model call: what the reader should know of the past. Never raises for memory's sake.

        Args:
            messages: What the reader sees. What stands there is not repeated in the note.
            scope: `agent_id` is the sub-agent that will read the note; None: the supervisor.
            query: What to look for; None: the latest thing the user said.
            explain: Whether the note's `hits` tell what became of each candidate, as in `search`.
        """
        recalled = self.recalled(messages, scope, query=query, explain=explain)
        recalled.tell(scope)
        return recalled.note

    @spanned("search_memory", lambda given, recalled: of_recall(given, recalled.note))
    def recalled(
        self,
        messages: MessagesLike,
        scope: Scope,
        *,
        query: str | None = None,
        explain: bool = False,
    ) -> "Recalled":
        """As `recall`, for who does not know yet whether a model will read the note."""
        check_scope(scope)
        if not self.settings.enabled:
            return Recalled(Note())
        scope = self._in(scope)
        ports = self._ports(self.settings.search_timeout_ms)

        def look() -> Recalled:
            seen = _clipped(messages)
            asked = last_user_text(seen) if query is None else query[:LONGEST_READ]
            turn = Turn(text=asked, scope=scope, messages=seen, explain=explain)
            found = recall(turn, ports, self.recipe)

            def log(scope: Scope) -> None:
                self._trail.told("inject", found, self._in(scope), ports=ports)

            if found.note.degraded:
                self._trail.degraded("recall", scope, ports.reasons, ports=ports)
            _tell(found.note, scope)
            return Recalled(found.note, log)

        def without(error: BaseException) -> Recalled:
            self._trail.degraded("recall", scope, type(error).__name__, ports=ports)
            return Recalled(Note(degraded=True, hits=Hits(degraded=True, notes=(_said(error),))))

        return guarded(lambda: self.bridge.within(ports.left(), look), otherwise=without)

    def preview(self, question: str, scope: Scope, *, settings: Mapping[str, Any] | None = None) -> Note:
        """The note that a reader would be given for a question now, with what became of each candidate.

        Nobody is given it: the log says that an operator looked.

        Args:
            scope: `agent_id` is the sub-agent that would read it; None: the supervisor.
            settings: Settings to try out, by name, as `{"max_context_tokens": 200}`; only those of ranking
                and of notes matter here.

        Raises:
            SettingsError: a setting is unknown or cannot have that value.
            BackendError, DeadlineExceeded: the store failed.
        """
        check_scope(scope)
        scope, ports = self._in(scope), self._ports(self.settings.search_timeout_ms)
        if settings:
            services = replace(ports.services, settings=self.settings.tried(settings))
            ports = Ports(services, seconds=ports.left(), now=ports.now)
        turn = Turn(text=question, scope=scope, messages=(Message("user", question),), explain=True)
        found = recall(turn, ports, self.recipe)
        self._trail.accessed("preview", found.hits, scope, by_operator=True, ports=ports)
        return found.note

    @spanned("upsert_memory", of_write)
    def remember(
        self,
        messages: MessagesLike,
        scope: Scope,
        *,
        outcome: Outcome | None = None,
        turn_id: str | None = None,
        note: Note | None = None,
        is_unsure: bool = False,
        keep_messages: bool | None = None,
    ) -> list[WriteResult]:
        """Keep what is worth keeping of a turn. Never raises for memory's sake.

        What cannot be kept, such as a message over 64 KiB, is a result with `saved=False` and a reason.

        Args:
            messages: What was said this time, not the whole thread.
            scope: `agent_id` is the sub-agent that came back; None: the supervisor's own exchange.
            outcome: What that agent brought: its answer, conclusion, side effects.
            turn_id: What the user said that this answers: its message id. With it, the same exchange or
                outcome that is written again is written once, whatever became of it in between.
            note: What that agent had been told; what it merely repeats is skipped.
            is_unsure: Whether it could not be checked who said it; then all of it waits for a person.
            keep_messages: Whether the messages are kept word for word. None: as the memory was made. One that
                says no wins.
        """
        check_scope(scope)
        if not self.settings.enabled:
            return []
        scope = self._in(scope)
        # The model is asked afterwards, of what waits in the queue: nobody waits for it here.
        ports = self._ports(self.settings.write_timeout_ms, with_model=False)
        spoke: set[str] = set()

        def keep() -> list[WriteResult]:
            said = Remembering(
                scope,
                messages=readable(messages),
                outcome=outcome or Outcome(),
                turn_id=str(turn_id) if turn_id else None,
                note=note or Note(),
                is_unsure=is_unsure,
                keeps_messages=self._keeps(scope, told=keep_messages),
            )
            said = redacted(said, self.services.redactor)
            spoke.update(message.role for message in said.messages)
            done = remember(said, ports, self.recipe)
            if ports.degraded:
                self._trail.degraded("remember", scope, ports.reasons, ports=ports)
            self._note_use(said)
            if said.turn_id is None or not done.is_repeated:
                self.queue.heard(said, done, at=ports.now)
            self.hints.about(done.candidates)
            self._keep_up(done)
            return list(done.results)

        def without(error: BaseException) -> list[WriteResult]:
            self._trail.degraded("remember", scope, type(error).__name__, ports=ports)
            return [WriteResult("", "skipped", saved=False, reason=_said(error))]

        results = guarded(lambda: self.bridge.within(ports.left(), keep), otherwise=without)
        if "user" in spoke:
            self.queue.next_message(scope.user_id)
        return results

    # --- the graph

    def attach(
        self,
        graph: G,
        *,
        supervisor: str | None = "supervisor",
        agents: Sequence[str] | None = None,
        messages_key: str | Sequence[str] = "messages",
        conclusion_key: str | Sequence[str] | None = None,
        placement: Literal["system", "last_user", "state"] = "system",
        nested: Literal["agent", "user"] = "agent",
        worker_memory_tools: Literal["refuse", "deny"] = "refuse",
        store_tools: Sequence[str] = (),
        identity: "Resolver | None" = None,
    ) -> G:
        """The same graph with memory: a new object of the same type; the original is untouched.

        Nodes see the state as without memory; the note goes into the prompts of the chat models they call.

        Args:
            graph: A `StateGraph`, a builder from `create_supervisor`, or either compiled.
            supervisor: Its node. A note is injected before it speaks; what the user states is kept.
                None: nobody leads, as in a swarm; every agent is spoken to, and none has memory tools.
            agents: The nodes it leads; None: every other node that is no tool node.
            messages_key: The state key that holds the messages, or several.
            conclusion_key: The state key, or keys, whose value is what an agent concluded, beside
                `final_answer` and `side_effects`.
            placement: Where the note goes: "system": the end of the prompt's system message; "last_user": the
                first block of the user's newest message, which keeps a provider's cache of all before it;
                "state": the first of the messages that a node sees, for nodes that call no chat model of
                LangChain's. See docs/hosts/placement.md.
            nested: Whose words the human messages of its input are where it runs inside another graph that
                has no memory around it.
            worker_memory_tools: What to do when a sub-agent carries a memory tool: refuse to wrap, or
                let the tool stay and answer MemoryAccessDenied.
            store_tools: Names of the supervisor's own tools that may use a guarded store, see `guard`.
            identity: (a node's state, the run's config) → the user id; asked before all other ways.

        Raises:
            UnknownNode: no such node; the error lists the nodes.
            WorkerHasMemoryTools: with "refuse".
        """
        from supervisor_memory.host.ways_in.attach import attach

        return attach(
            self,
            graph,
            supervisor=supervisor,
            agents=agents,
            messages_key=messages_key,
            conclusion_key=conclusion_key,
            placement=placement,
            nested=nested,
            worker_memory_tools=worker_memory_tools,
            store_tools=store_tools,
            identity=identity,
        )

    def middleware(
        self,
        *,
        agent_id: str | None = None,
        agents: Sequence[str] = (),
        placement: Literal["system", "last_user"] = "system",
        messages_key: str | Sequence[str] = "messages",
        nested: Literal["agent", "user"] = "agent",
        tools: Sequence[str] | None = None,
        store_tools: Sequence[str] = (),
        identity: "Resolver | None" = None,
    ) -> "MemoryMiddleware":
        """Memory for `create_agent` and deepagents: `create_agent(model, tools, middleware=[this])`.

        The note is added to each model call and to nothing else; the memory tools come with it; a tool
        that runs an agent is a handoff: that agent reads a note of its own, and what it brings is kept.

        Args:
            agent_id: None: for the supervisor. A name: for the sub-agent of that name; it gets no tools.
            agents: Names of tools that run an agent where nobody can see it, such as one behind HTTP.
            placement: Where the note goes, as in `attach`; there is no state to put it into.
            nested: As in `attach`.
            tools: The memory tools to bring, such as `["memory_search"]`; None: all six.
            store_tools: Names of the supervisor's own tools that may use a guarded store, see `guard`.

        Raises:
            GraphError: langchain is not installed.
        """
        from supervisor_memory.host.ways_in.middleware import middleware

        return middleware(
            self,
            agent_id=agent_id,
            agents=agents,
            placement=placement,
            messages_key=messages_key,
            nested=nested,
            tools=tools,
            store_tools=store_tools,
            identity=identity,
        )

    def bind_agent(
        self,
        agent: G,
        name: str | None = None,
        *,
        messages_key: str | Sequence[str] = "messages",
        conclusion_key: str | Sequence[str] | None = None,
        placement: Literal["system", "last_user"] = "system",
        worker_memory_tools: Literal["refuse", "deny"] = "refuse",
        identity: "Resolver | None" = None,
    ) -> G:
        """A sub-agent that brings its memory along: in tools, in deepagents, in `create_supervisor([…])`.

        It reads a note of its own whenever it is run, and what it answers is kept.

        Args:
            agent: A compiled graph; the original is untouched.
            name: Whose notes it reads; None: the graph's own name.
            messages_key, conclusion_key, placement: As in `attach`.

        Raises:
            GraphError: it is no compiled graph, or nobody named it.
            WorkerHasMemoryTools: with "refuse".
        """
        from supervisor_memory.host.ways_in.bind import bind_agent

        return bind_agent(
            self,
            agent,
            name,
            messages_key=messages_key,
            conclusion_key=conclusion_key,
            placement=placement,
            worker_memory_tools=worker_memory_tools,
            identity=identity,
        )

    def explain_prompt(
        self, graph: Any, input: Any, config: "RunnableConfig | None" = None
    ) -> "list[Prompt]":
        """What the models of a graph would read for an input, without calling any. Nothing is kept.

        Each node is run by itself on the input, up to its first model call: what it does before that is done.

        Args:
            graph: What `attach` returned, or an agent with the middleware; compiled or not.
        """
        from supervisor_memory.host.explain_prompt import explained

        return explained(graph, input, config)

    def silent(self) -> "AbstractContextManager[None]":
        """Tell no note to the chat models called inside; the tag "memory:off" does it for one call."""
        from supervisor_memory.host.prompts import silent

        return silent()

    def turn(self, scope: Scope, text: str) -> "HostTurn":
        """One turn of a conversation in code of the host's own: who acts and what the user said.

        The chat models that are called inside read the supervisor's note; what the user said is heard, and
        what `answered` is given is kept with it.
        """
        from supervisor_memory.host.ways_in.turn import HostTurn

        return HostTurn(self, scope, text)

    def store(
        self,
        *,
        guarded: bool = True,
        index: "IndexConfig | None" = None,
        ttl: "TTLConfig | None" = None,
    ) -> "BaseStore":
        """This memory as a LangGraph store.

        Args:
            guarded: True: for `compile(store=…)`; only memory tools of the supervisor can use it, in
                namespaces whose second segment is the run's user. False: for the host itself, such as a
                store manager of langmem; never pass that one to `compile`.
            index: An embedder and fields of its own; None: the memory's embedder, on the text.
            ttl: As LangGraph's other stores take it.
        """
        from supervisor_memory.host.store.store import MemoryStore

        held = MemoryStore(self, index=index, ttl=ttl)
        if not guarded:
            return held
        from supervisor_memory.host.store.guard import GuardedStore

        self.fence()
        self.has_guarded = True
        return GuardedStore(held, self, namespaces=[()], per_user=True)

    def guard(
        self, store: "BaseStore", *, namespaces: "Iterable[Sequence[str]] | None" = None
    ) -> "BaseStore":
        """The host's own store for `compile(store=…)`; only the supervisor's memory tools use memory in it.

        Args:
            namespaces: Prefixes to guard; None: `memories`, the families of records, `*_memories` and the
                items of a `BaseStoreBackend`; `[()]`: all of it. What is not guarded passes.
        """
        from supervisor_memory.host.store.guard import GuardedStore

        self.fence()
        self.has_guarded = True
        return GuardedStore(store, self, namespaces=namespaces)

    def fence(self) -> None:
        """From now on the memory tools answer to a wrapped supervisor and to nobody else."""
        self.is_fenced = True

    def tools(self, only: Sequence[str] | None = None) -> "list[BaseTool]":
        """The six memory tools, for the supervisor alone: pass them where it is built.

        Args:
            only: Names to keep, such as `["memory_search"]`; None: all six.
        """
        from supervisor_memory.host.tools import build_tools

        return build_tools(self, only=only)

    # --- end of life

    def flush(self, *, seconds: float = 60.0) -> bool:
        """Read what waits in the queue, and wait until all is written. False when the time ran out."""
        return self.queue.flush(seconds=seconds)

    def close(self) -> None:
        """Read what this process has put into the queue, and let go of files. Closing twice is fine.

        Rows of the access log that a full disk does not take are told of in the log; nothing else waits until
        here to be written.
        """
        try:
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

    awrite = _twin(write)
    aadd = _twin(add)
    aadd_many = _twin(add_many)
    aupdate = _twin(update)
    adelete = _twin(delete)
    adelete_all = _twin(delete_all)
    aerase = _twin(erase)
    aexport = _twin(export)
    aimport_from = _twin(import_from)
    acopy_to = _twin(copy_to)
    areembed = _twin(reembed)
    aforget = _twin(forget)
    asearch = _twin(search)
    aget = _twin(get)
    aget_all = _twin(get_all)
    ahistory = _twin(history)
    arevert = _twin(revert)
    atopics = _twin(topics)
    amessages = _twin(messages)
    asession = _twin(session)
    aroute = _twin(route)
    asummarize = _twin(summarize)
    arecall = _twin(recall)
    apreview = _twin(preview)
    aexplain_prompt = _twin(explain_prompt)
    aremember = _twin(remember)
    aflush = _twin(flush)
    aclose = _twin(close)

    # --- inside

    def _keep_up(self, said: Remembering) -> None:
        if any(result.id for result in said.results):
            self._rarely.after_a_write(said.scope.user_id, added=said.added)

    def _note_use(self, said: Remembering) -> None:
        """Log how much of a note the answer took up: a number."""
        answers = [message.content for message in said.messages if message.role == "assistant"]
        answer = "\n".join([said.outcome.final_answer or "", *answers]).strip()
        if said.note and answer and (share := use_of(said.note.hits, answer)) is not None:
            self._trail.used(share, said.scope)

    def _keeps(self, scope: Scope, *, told: bool | None = None) -> bool | None:
        """Whether words are kept in a scope, where the host or the call says; None: as the setting says."""
        if self._keep_messages is None or told is False:
            return told
        asked = self._keep_messages
        return guarded(lambda: bool(asked(scope)), otherwise=lambda error: False)

    def _in(self, scope: Scope) -> Scope:
        """The scope as it is kept: a task's name is a text too."""
        return redacted_scope(scope, self.services.redactor.text)

    def _ports(self, milliseconds: int, *, with_model: bool = True) -> Ports:
        """Ports for one flow. Where a model is asked, its time comes on top of the store's."""
        services = self.services
        if services.complete is None or not with_model:
            services = replace(services, complete=None)
        else:
            milliseconds += self.settings.llm_timeout_ms
        return Ports(services, seconds=milliseconds / 1000, now=services.clock())

    def _insert(
        self, said: Remembering, *, begun: float | None = None, is_given: bool = True
    ) -> list[WriteResult]:
        """Keep candidates and records that are there.

        Args:
            begun: When it was said, where a model has read it since; None: now. A user may have been
                erased in between.
            is_given: Whether no operator has seen it yet. False: the insert and post-insert stages alone.
        """
        recipe = self.recipe if is_given else replace(self.recipe, pre_insert=())
        said = replace(said, is_given=is_given)
        return [result for part in in_parts(said) for result in self._insert_part(part, begun, recipe)]

    def _insert_part(self, said: Remembering, begun: float | None, recipe: Recipe) -> list[WriteResult]:
        ports = self._ports(self.settings.write_timeout_ms)
        ports.now = ports.now if begun is None else begun
        done = remember(said, ports, recipe)
        if ports.degraded:
            self._trail.degraded("write", said.scope, ports.reasons, ports=ports)
        self.hints.about(done.candidates)
        self._keep_up(done)
        return list(done.results)

    def keep_digests(self, said: Remembering) -> None:
        """Keep who said what in a thread, as digests; see `host/run/ledger.py`."""
        self._insert(said, is_given=False)

    def _decide_again(
        self, store: MemoryBackend, commit: Commit, became: Callable[[str], str]
    ) -> Mapping[str, str]:
        """Decide on what waited for a store, as the insert stage would now."""
        ports = self._ports(self.settings.write_timeout_ms * len(commit.changes))  # nobody waits
        view = replace(ports, services=replace(ports.services, backend=store)).deciding()
        return decide_again(commit, became, insert=self.recipe.insert, view=view)

    def _mover(self) -> "Mover":
        from supervisor_memory.moving.mover import Mover

        return Mover(self.services, self._trail)

    def report(self, *events: AuditEvent) -> None:
        """Audit something that changed no record; a store that cannot take it does not raise here."""
        self._trail.report(*events)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A note, and how to tell the log who has read it."""

    note: Note
    log: Callable[[Scope], None] | None = None

    def tell(self, scope: Scope) -> None:
        """Note in the access log that a reader saw it."""
        if self.log is not None:
            self.log(scope)


def _tell(note: Note, scope: Scope) -> None:
    """Log how many records a note has, and their ids: loggers that write JSON print all they are given."""
    if note:
        reader = scope.agent_id or "the supervisor"
        _log.info("recalled %d records for %s", len(note.ids), reader, extra={"record_ids": note.ids})


def _clipped(messages: MessagesLike) -> tuple[Message, ...]:
    return tuple(replace(m, content=m.content[:LONGEST_READ]) for m in readable(messages))


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
