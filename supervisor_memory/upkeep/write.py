"""The write path of a memory: what `write`, `add`, `add_many` and `remember` do around the flow."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.errors import ConfirmationRequired, Conflict, InvalidContent
from supervisor_memory.flow import Gathering, Outcome, Recipe, Remembering, in_parts, redacted, remember
from supervisor_memory.language.prompts import check_prompts
from supervisor_memory.language.terms import terms
from supervisor_memory.model.arguments import (
    Item,
    MessagesLike,
    as_epoch,
    as_metadata,
    as_tags,
    check_kind,
    check_scope,
    check_source_class,
    items_of,
    read_conversation,
    read_items,
    readable,
    verbatim,
)
from supervisor_memory.model.records import (
    Candidate,
    Filter,
    Hits,
    Kind,
    Message,
    Note,
    Scope,
    Source,
    SourceClass,
    WriteResult,
    check_content,
    check_family,
    family_for,
)
from supervisor_memory.ports import ReadStore, Services, Waiting, guarded
from supervisor_memory.stages.insert.again import decide_again
from supervisor_memory.stages.insert.merge import strategy_for
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stores.protocol import Commit, MemoryBackend
from supervisor_memory.telemetry import of_many, of_one, of_write, spanned
from supervisor_memory.upkeep.automatic import Digests, MessageVectors, Rarely
from supervisor_memory.upkeep.edit import Curator, asked_for
from supervisor_memory.upkeep.experience import Experience
from supervisor_memory.upkeep.hints import Hints
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from supervisor_memory.upkeep.reflect import Reflected

_CHUNK: Final = 64
_LONGEST_ANSWER: Final = 8_000
_LEFT_OUT: Final = WriteResult("", "skipped", saved=False, reason="left-out-by-the-recipe")


@dataclass(frozen=True, slots=True)
class Writer:
    """The verbs that write: through the stages of a recipe, or on one record by its id.

    Args:
        keep_messages: Whether what is said in a scope is kept word for word; None: the settings decide.
    """

    services: Services
    recipe: Recipe
    trail: Trail
    curator: Curator
    queue: Queue
    hints: Hints
    rarely: Rarely
    vectors: MessageVectors
    digests: Digests
    keep_messages: Callable[[Scope], bool] | None
    experience: Experience

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
        rests_on: Sequence[tuple[str, str]] = (),
    ) -> WriteResult:
        """Remember one statement, merged with what is known.

        A sentence that takes something back ("Forget that …") sets the record aside that says it.

        Args:
            kind: None: told from the text by rules; what no rule knows is a domain fact.
            family: None: chosen by kind and agent, see `family_for`.
            metadata: JSON values. `strategy` (overwrite, append, summarise), `ttl` (seconds), `tags`,
                `importance` (in [0, 1]), `pinned` (True), `use_when` and `embedded_as` have a meaning; the
                rest is kept as it is.
            created_at: When it was said; None: now.
            rests_on: The (kind, name) of what it rests on, such as ("metric", "ARPU"), ("file", "a.csv") or
                ("table", "sales"); see docs/rests-on.md.

        Raises:
            InvalidContent, IdentityError: bad input; nothing was written.
            BackendError: the store failed; nothing was written.
            DeadlineExceeded: the store is late; it may still write it. Saying it again does no harm.
        """
        scope = self.services.scope(Scope(user_id, agent_id, session_id, run_id, task))
        check_kind(kind)
        check_source_class(source_class)
        source = Source(source_class, agent_id, session_id, run_id)
        extra = as_metadata({**(metadata or {}), "rests_on": rests_on} if rests_on else metadata)
        clean = self.services.redactor.text(check_content(content))
        told = extract.taken_back(clean, source=source)
        told = told or extract.describe(clean, kind=kind, source=source)
        said = Remembering(
            scope,
            candidates=(_with_metadata(told, extra),),
            family=check_family(family) if family is not None else None,
            created_at=as_epoch(created_at),
        )
        return next(iter(self.insert(said)), _LEFT_OUT)

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
        process: Gathering | None = None,
        prompt: str | Path | None = None,
    ) -> list[WriteResult]:
        """Remember the statements of a conversation that are worth keeping.

        With `infer`, statements are extracted by rules (and by the model, where there is one) and
        merged: one result for each. The words themselves are kept as session messages when
        `session_id` is given, a message over 64 KiB in parts. Without `infer`, see `add_many`: one result
        for each message, or for each part of a long message.

        Args:
            agent_id: Whose answers these are: an assistant's messages without a name are this agent's.
            process: An operator of your own, run last before the insert: it is given what was gathered and
                answers with what is to be kept.
            prompt: A folder like that of MEMORY_PROMPTS, or its remember.md, in place of it for this call.

        Raises:
            InvalidContent: something is no message, a message is over 1 MiB, or `process` is no function or
                answers with something else; nothing was written.
            SettingsError: the prompt cannot be read, or lacks a place.
        """
        scope = self.services.scope(Scope(user_id, agent_id, session_id, run_id, task))
        read = read_conversation(messages)
        if agent_id is not None:
            read = tuple(replace(m, name=m.name or agent_id) if m.role == "assistant" else m for m in read)
        if infer:
            return self._add(
                read,
                scope,
                metadata=metadata,
                created_at=created_at,
                process=() if process is None else (process,),
                prompts=None if prompt is None else _folder(Path(prompt)),
            )
        own = {"metadata": metadata or {}, "session_id": session_id}
        return self.add_many(
            [{**item, **own} for item in items_of(read)],
            user_id=user_id,
            agent_id=agent_id,
            created_at=created_at,
            task=task,
        )

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

        An item is a text or `{"content", "speaker", "role", "session_id", "created_at", "metadata"}`. It is
        the user's unless its role, or else its speaker, is "assistant", "tool" or "system". Without `infer`
        they are kept verbatim: nothing is merged, equal texts are allowed, all are searched. Every item is
        checked before the first is written; then 64 at a time are written together.

        Raises:
            InvalidContent: an item is no text; the error gives its index. Nothing was written.
        """
        scope = self.services.scope(Scope(user_id, agent_id, None, None, task))
        read, now = read_items(items), as_epoch(created_at)
        if infer:
            return [self._add_one(item, scope, now) for item in read]
        namespaces = self.services.settings.namespaces
        where = check_family(family or family_for("task-traces", agent_id, namespaces))
        when = self.services.clock() if now is None else now
        records = [verbatim(item, scope, family=where, when=when) for item in read]
        results: list[WriteResult] = []
        for start in range(0, len(records), _CHUNK):
            some = records[start : start + _CHUNK]
            known = {done.id: done for done in self.insert(Remembering(scope, verbatim=tuple(some)))}
            results += [known.get(record.id, _LEFT_OUT) for record in some]
        return results

    def _add(
        self,
        messages: tuple[Message, ...],
        scope: Scope,
        *,
        metadata: Mapping[str, Any] | None,
        created_at: float | datetime | None,
        process: Sequence[Gathering] = (),
        prompts: Path | None = None,
    ) -> list[WriteResult]:
        extra = as_metadata(metadata)
        strategy_for("domain-facts", extra.get("strategy"))
        conversation = Remembering(
            scope, messages=messages, created_at=as_epoch(created_at), keeps_messages=self._keeps(scope)
        )
        said = redacted(conversation, self.services.redactor)
        services = self.services
        if prompts is not None:
            services = replace(services, settings=services.settings.model_copy(update={"prompts": prompts}))
        ports = services.ports(services.settings.write_timeout_ms)
        for operator in (*self.recipe.pre_insert, *(self.recipe.sharpen or ())):
            said = operator(said, ports.read_store())
        for operator in process:
            said = _processed(operator, said, ports.read_store())
        said = replace(said, candidates=tuple(_with_metadata(each, extra) for each in said.candidates))
        return self.insert(said, begun=ports.now, is_given=False)[: len(said.candidates)]

    @spanned("upsert_memory", of_write)
    def reflect(
        self,
        messages: MessagesLike,
        *,
        user_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        task: str | None = None,
        specialists: Sequence[str] | None = None,
        thinking: bool = False,
        multi: bool = True,
        max_steps: int = 20,
        outcome: Outcome | None = None,
    ) -> "Reflected":
        """Have specialists look at a conversation now, in one call of the model, and keep what they find.

        Without a model the rules alone read it, as in `add`. Messages of tools are read, too. Nothing is kept
        word for word.

        Args:
            agent_id: Whose experience it is; None: the supervisor's.
            specialists: Names of ours or files of your own; None: those of MEMORY_SPECIALISTS.
            thinking: Whether the model is given a place to think before it answers, which is not kept.
            multi: True: all operations in one answer. False: one in each, until there is none left.
            max_steps: The most answers where each holds one.
            outcome: How it ended, by its `score` and `error`; a score also rates the run.

        Raises:
            InvalidContent: something is no message, or max_steps is no number from 1 to 100.
            SettingsError: there is no such specialist, or its file is wrong.
        """
        from supervisor_memory.upkeep.reflect import Reflection

        scope = self.services.scope(Scope(user_id, agent_id, session_id, run_id, task))
        read = read_conversation(messages)
        said = redacted(Remembering(scope, messages=read, keeps_messages=False), self.services.redactor)
        reflection = Reflection(self.services, self.recipe, said, thinking=thinking)
        found = reflection.run(specialists, multi=multi, max_steps=max_steps, outcome=outcome)
        results = self.insert(found.said, is_given=False) if found.said.candidates else []
        if outcome is not None and outcome.score is not None and run_id is not None:
            self.experience.rate(run_id, outcome.score, user_id=user_id, error=outcome.error)
        return found.with_results(tuple(results[: len(found.said.candidates)]))

    def _add_one(self, item: Item, scope: Scope, created_at: float | None) -> WriteResult:
        """Remember the statements worth keeping of one text, as a message of its own."""
        found = self._add(
            read_conversation(Message(item.role, item.content, item.speaker)),
            replace(scope, session_id=item.session_id),
            metadata=item.metadata,
            created_at=created_at if item.created_at is None else item.created_at,
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
        return self.curator.update(id, user_id, clean, extra, merge=merge, source=source)

    @spanned("delete_memory", of_one)
    def delete(self, id: str, *, user_id: str | None = None, keep_said: bool = False) -> int:
        """Delete one record. It is found no more; `history` keeps it, so the deletion can be undone.

        Args:
            keep_said: Whether notes may still tell the messages that the record was read from. By default
                they are left out, too, until the deletion is undone.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
        """
        return self.curator.delete(id, user_id, keep_said=keep_said)

    @spanned("delete_memory", of_many(lambda given, count: count))
    def delete_all(
        self, *, user_id: str, where: Mapping[str, Any] | None = None, confirm: bool = False
    ) -> int:
        """Delete every record of a user, session messages included. Returns how many.

        Args:
            where: Only those that match, as in `search`; session messages only where a session is named.

        Raises:
            ConfirmationRequired: without `confirm=True`; the error tells how many it would be.
            InvalidContent: `where` asks for nothing, or for what there is not.
        """
        scope = Scope(user_id)
        asked = None if where is None else asked_for(where, self.services.redactor)
        if asked == Filter():
            raise InvalidContent("where asks for nothing; leave it out to delete every record of the user")
        if confirm is not True:
            count = self.curator.count_all(scope.user_id, asked)
            raise ConfirmationRequired(
                f"delete_all would delete {count} records of user {scope.user_id!r}; pass confirm=True",
                count=count,
            )
        return self.curator.delete_all(scope.user_id, asked)

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
        waiting: Waiting | None = None,
    ) -> list[WriteResult]:
        """Keep the statements and results of a turn that are worth keeping. A failure of memory raises
        nothing.

        What cannot be kept, such as a message over 1 MiB, is a result with `saved=False` and a reason.

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
            waiting: Where the log of what was skipped may wait, for the next call or for `settle`.
        """
        check_scope(scope)
        if not self.services.settings.enabled:
            return []
        scope, services = self.services.scope(scope), self.services
        # The model is asked afterwards, of what waits in the queue: nobody waits for it here.
        ports = services.ports(services.settings.write_timeout_ms, with_model=False, waiting=waiting)
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
            said = redacted(said, services.redactor)
            spoke.update(message.role for message in said.messages)
            done = remember(said, ports, self.recipe)
            if ports.degraded:
                self.trail.degraded("remember", scope, ports.reasons, ports=ports)
            self._note_use(said)
            if said.turn_id is None or not done.is_repeated:
                self.queue.heard(said, done, at=ports.now)
            self._follow_up(done)
            if said.outcome.score is not None and scope.run_id is not None:
                brought = said.outcome
                self.experience.rate(
                    scope.run_id, said.outcome.score, user_id=scope.user_id, error=brought.error
                )
            return list(done.results)

        def without(error: BaseException) -> list[WriteResult]:
            self.trail.degraded("remember", scope, type(error).__name__, ports=ports)
            reason = f"{type(error).__name__}: {error}"
            return [WriteResult("", "skipped", saved=False, reason=reason)]

        results = guarded(lambda: services.bridge.within(ports.left(), keep), otherwise=without)
        if "user" in spoke:
            self.queue.next_message(scope.user_id)
            if not services.settings.queue_worker:
                self.vectors.flush(seconds=services.settings.write_timeout_ms / 1000, user_id=scope.user_id)
        return results

    def settle(self, waiting: Waiting) -> None:
        """Keep the events that wait when a run ends."""
        ports = self.services.ports(self.services.settings.write_timeout_ms, waiting=waiting)

        def keep() -> None:
            while waiting:
                with contextlib.suppress(Conflict):  # it was kept meanwhile, and waits no more
                    ports.deciding().commit(Commit())

        if waiting:
            self.services.bridge.within(ports.left(), keep)

    def insert(
        self, said: Remembering, *, begun: float | None = None, is_given: bool = True
    ) -> list[WriteResult]:
        """Run the insert stage on given candidates and records.

        Args:
            begun: When it was said, where a model has read it since; None: now. A user may have been
                erased in between.
            is_given: Whether no operator has seen it yet. False: the insert and post-insert stages alone.
        """
        recipe = self.recipe if is_given else replace(self.recipe, pre_insert=())
        results: list[WriteResult] = []
        for part in in_parts(replace(said, is_given=is_given)):
            ports = self.services.ports(self.services.settings.write_timeout_ms)
            ports.now = ports.now if begun is None else begun
            done = remember(part, ports, recipe)
            if ports.degraded:
                self.trail.degraded("write", said.scope, ports.reasons, ports=ports)
            self._follow_up(done)
            results += done.results
        return results

    def decide_again(
        self, store: MemoryBackend, commit: Commit, became: Callable[[str], str]
    ) -> Mapping[str, str]:
        """Decide again on a commit that waited for a store, as the insert stage would now."""
        milliseconds = self.services.settings.write_timeout_ms * len(commit.changes)  # nobody waits
        ports = self.services.ports(milliseconds)
        view = replace(ports, services=replace(ports.services, backend=store)).deciding()
        return decide_again(commit, became, insert=self.recipe.insert, view=view)

    def _follow_up(self, done: Remembering) -> None:
        self.hints.about(done.candidates)
        if any(result.id for result in done.results):
            self.rarely.after_a_write(done.scope.user_id, added=done.added)
            self.vectors.look_for(done.scope.user_id, done.verbatim)
            self.digests.look_for(done.scope.user_id, done.scope.session_id)

    def _note_use(self, said: Remembering) -> None:
        """Log how much of a note the answer took up: a number."""
        answers = [message.content for message in said.messages if message.role == "assistant"]
        answer = "\n".join([said.outcome.final_answer or "", *answers]).strip()
        if said.note and answer and (share := use_of(said.note.hits, answer)) is not None:
            self.trail.used(share, said.scope)

    def _keeps(self, scope: Scope, *, told: bool | None = None) -> bool | None:
        """Whether messages are kept in a scope, by the call or the host; None: the setting decides."""
        asked = self.keep_messages
        if asked is None or told is False:
            return told
        return guarded(lambda: bool(asked(scope)), otherwise=lambda error: False)


def use_of(hits: Hits, answer: str) -> float | None:
    """The share of the different terms of a note's records that an answer has too. None: there were none."""
    told = _terms_of(tuple([hit.record.content for hit in hits]))
    return round(len(told & set(terms(answer[:_LONGEST_ANSWER]))) / len(told), 4) if told else None


@lru_cache(maxsize=64)
def _terms_of(texts: tuple[str, ...]) -> frozenset[str]:
    """The different terms of some texts, cached: several answers of a turn are compared with one note."""
    return frozenset(chain.from_iterable(map(terms, texts)))


def _with_metadata(candidate: Candidate, metadata: Mapping[str, Any]) -> Candidate:
    """Add a caller's metadata to a candidate; `strategy` and `tags` have a meaning.

    Raises:
        InvalidContent: there is no strategy of that name.
    """
    strategy = metadata.get("strategy")
    if strategy is not None:
        strategy, _ = strategy_for(candidate.kind, strategy)
    return replace(
        candidate,
        metadata={**candidate.metadata, **metadata},
        tags=tuple(dict.fromkeys((*candidate.tags, *as_tags(metadata)))),
        strategy=strategy or candidate.strategy,
    )


def _processed(operator: Gathering, said: Remembering, view: ReadStore) -> Remembering:
    """Run a caller's operator over the gathered candidates; the caller sees its errors."""
    if not callable(operator):
        raise InvalidContent(f"process is {type(operator).__name__}; pass a function of what was gathered")
    made: object = operator(said, view)
    if isinstance(made, Remembering):
        return made
    raise InvalidContent(
        f"process answered with {type(made).__name__}; it has to answer with what was gathered, changed by "
        "`dataclasses.replace`"
    )


def _folder(path: Path) -> Path:
    """The checked folder of prompts a caller names; for a prompt file, its folder."""
    folder = path.parent if path.suffix == ".md" else path
    check_prompts(folder)
    return folder
