"""The beginning of a run: who acts and what the user said, settled before the first node.

Nothing inside the run can add to it. The user's words are the human messages of the input that were not said
before, the values a host resumes an interrupt with, and human messages that a host put into the thread
between two runs. Every other human message is an agent's, whatever name it bears.
"""

import functools
import hashlib
import hmac
import logging
import threading
import unicodedata
import uuid
from collections import UserDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from supervisor_memory.bridge import holding
from supervisor_memory.core import Memory, Recalled
from supervisor_memory.errors import IdentityError, InvalidName
from supervisor_memory.flow import Remembering
from supervisor_memory.host.run.checkpoints import Held
from supervisor_memory.host.run.identity import Resolver, anonymous, checked, named, placed_by_host, scope_of
from supervisor_memory.host.run.state import messages_of, updates_of, value_of, values_of
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    AuditEvent,
    Filter,
    Record,
    Scope,
    Source,
    Status,
    content_hash,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Waiting, guarded

DIGEST: Status = "compressed"
_ROWS = uuid.UUID("4f3c6c2a-90c5-5b34-8d5e-9c1f0a8d7e11")
_MOST = 2000
Key: TypeAlias = Literal["id", "text", "owner"]


@dataclass(frozen=True, slots=True)
class Known:
    """The messages that were said before: their ids, their texts (`plain`), and in `others` the texts that
    agents said."""

    ids: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def __or__(self, other: "Known") -> "Known":
        return Known(self.ids | other.ids, self.texts | other.texts, self.others | other.others)


def plain(text: str) -> str:
    """A text with white space and accents unified, which clients change when they send a text back."""
    return " ".join(unicodedata.normalize("NFC", text).split())


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads and writes the digests of one memory. Every method raises the errors of the store."""

    memory: Memory

    def known(self, messages: Iterable[BaseMessage], scope: Scope, *, is_history: bool = False) -> Known:
        """Which of these messages were said before, in any thread of the user.

        Args:
            is_history: Whether to look among the session messages too: one request per text without a digest.
        """
        rows: dict[str, tuple[Key, str]] = {}
        for message in messages:
            if message.id:
                rows[_row_id(scope, "id", message.id)] = "id", message.id
            text = plain(message.text)
            rows[_row_id(scope, "text", text)] = "text", text
        found = [(*rows[row.id], row.source.agent_id) for row in self._digests_with(rows, scope)]
        texts = frozenset(value for key, value, _ in found if key == "text")
        left = {value for key, value in rows.values() if key == "text"} - texts
        return Known(
            frozenset(value for key, value, _ in found if key == "id"),
            texts.union(text for text in left if is_history and self._is_kept(text, scope)),
            frozenset(value for key, value, by in found if key == "text" and by is not None),
        )

    def owns(self, scope: Scope) -> bool:
        """Whether a host has named this user for this thread before."""
        return bool(list(self._digests_with([_row_id(scope, "owner", "")], scope)))

    def add(self, messages: Iterable[BaseMessage], scope: Scope, *, by: str | None) -> None:
        """Remember that these messages were said, `by` an agent or a node; None: the user."""
        keys: list[tuple[Key, str]] = []
        for message in messages:
            keys += [("id", message.id)] if message.id else []
            keys.append(("text", plain(message.text)))
        self._write(keys, scope, by)

    def name_owner(self, scope: Scope) -> None:
        """Remember that a host named this user for this thread."""
        self._write([("owner", "")], scope, None)

    def _is_kept(self, text: str, scope: Scope) -> bool:
        """Whether the session messages hold this text as the user's; then it needs no digest."""
        kept = content_hash(self.memory.services.redactor.text(text))
        where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), content_hash=kept)
        return any(row.source.source_class == "user" for row in self._listed(where, 1))

    def _listed(self, where: Filter, most: int) -> Sequence[Record]:
        seconds = self.memory.settings.search_timeout_ms / 1000
        return self.memory.bridge.within(
            seconds, functools.partial(self.memory.backend.list, where, limit=most)
        )

    def _digests_with(self, ids: Iterable[str], scope: Scope) -> Iterator[Record]:
        """The digests with these ids, as far as they exist."""
        wanted = list(ids)
        for start in range(0, len(wanted), _MOST):
            part = tuple(wanted[start : start + _MOST])
            where = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), statuses=(DIGEST,), ids=part)
            yield from self._listed(where, len(part))

    def _write(self, keys: Iterable[tuple[Key, str]], scope: Scope, by: str | None) -> None:
        now = self.memory.services.clock()
        rows = {id_: _row(id_, scope, by, now) for key, value in keys if (id_ := _row_id(scope, key, value))}
        for row in list(self._digests_with(rows, scope)):
            del rows[row.id]
        if rows:
            self.memory.keep_digests(Remembering(scope, verbatim=tuple(rows.values())))


def _row_id(scope: Scope, key: Key, value: str) -> str:
    """The id of a row: the digest of its value, keyed with the user and, for an owner row, the thread.

    Other rows count in all threads of the user: a conversation may go on in another thread.
    """
    thread = scope.session_id or "" if key == "owner" else ""
    owner = f"{scope.user_id}\0{thread}".encode("utf-8", "backslashreplace")
    said = f"{key}\0{value}".encode("utf-8", "backslashreplace")
    return str(uuid.uuid5(_ROWS, hmac.new(owner, said, hashlib.sha256).hexdigest()))


def _row(id_: str, scope: Scope, by: str | None, now: float) -> Record:
    return Record(
        id=id_,
        namespace=scope.namespace(SESSION_FAMILY),
        content=f"digest {id_}",
        kind="task-traces",
        layer="history",
        status=DIGEST,
        created_at=now,
        updated_at=now,
        source=Source("system", by, scope.session_id, scope.run_id),
    )


KEY = "__pregel_supervisor_memory"
"""The key of the beginning in a run's `configurable`: nodes inherit it, no checkpoint holds it. LangGraph
treats keys with this prefix as internal to a run, and shows them in no stream."""

_BY_HOST = ("update", "fork")
_FARTHEST = 200  # checkpoints that are looked at
_DEEPEST = 8
_LEAVES = 1000
_NEWEST = 8
_MOST_TURNS = 1024
_log = logging.getLogger("supervisor_memory")


@dataclass(eq=False)
class Beginning:
    """Who acts in a run and what the user said, settled before its first node.

    Args:
        scope: Who acts; the error if that is unknown, and memory is off for the run.
        words: The user's messages that were not heard before.
        answers: The texts the run was resumed with; a human message with such a text is the user's.
        asked: The user's latest words, heard now or before; "" if there are none.
        is_unsure: Whether earlier messages could not be looked up; then new records wait for a person.
        forgets: Whether no checkpoint will recognise the user's words later, so that the ledger must.
        keeps_messages: Whether to keep messages word for word; None: as the settings say.
        recalls_said: Whether notes may quote what was said; None: as the settings say.
    """

    scope: Scope | IdentityError
    words: tuple[BaseMessage, ...] = ()
    answers: frozenset[str] = frozenset()
    asked: str = ""
    turn_id: str | None = None
    is_unsure: bool = False
    forgets: bool = False
    keeps_messages: bool | None = None
    recalls_said: bool | None = None
    is_over: bool = False
    """Whether a host's own turn has ended; a copied context may outlive it."""
    notes: "UserDict[tuple[Memory, str | None, str], Recalled]" = field(default_factory=UserDict)
    """The notes of this run by memory, reader and question: an agent that runs twice reads the same note."""
    shared: "UserDict[Hashable, Any]" = field(default_factory=UserDict)
    """Results computed for one reader of this run, which serve the others.
    As with the notes, no dict: pydantic, which dumps the configuration for some tools, walks into dicts."""
    waiting: Waiting | None = None
    """The skip events of this run that wait for a commit; None: nobody would write them at its end."""
    _unheard: list[BaseMessage] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._unheard.extend(self.words)

    def __repr__(self) -> str:
        return f"<the beginning of a run, {len(self.words)} words of the user>"

    def take(self) -> list[BaseMessage]:
        """Take the words that were not heard yet. Each word is given out once."""
        with self._lock:
            words, self._unheard = self._unheard, []
        return words

    def add(self, answers: Sequence[BaseMessage]) -> None:
        """Add answers of the user that the run was resumed with, to be heard."""
        with self._lock:
            self.words = (*self.words, *answers)
            self._unheard += answers

    def settle(self, state: Any, keys: Sequence[str]) -> None:
        """Copy the ids that the graph gave to the user's messages, which name the turn."""
        bare = [word for word in self.words if word.id is None]
        if not bare and self.turn_id is not None:
            return
        human = [m for m in messages_of(state, keys) if isinstance(m, HumanMessage)]
        ids = {str(m.text): m.id for m in human if m.id}
        for word in bare:
            word.id = ids.get(str(word.text))
        if not self.asked and human:  # the run began before the graph took up its input
            self.asked = human[-1].text
        self.turn_id = self.turn_id or ids.get(self.asked)
        if isinstance(self.scope, Scope) and self.scope.run_id is None and self.turn_id is not None:
            self.scope = replace(self.scope, run_id=checked(self.turn_id))


_HOSTED: ContextVar[Beginning | None] = ContextVar("supervisor_memory_hosted", default=None)


def beginning_of(config: RunnableConfig) -> Beginning | None:
    """The beginning of the run that a node or a graph is in."""
    found = (config.get("configurable") or {}).get(KEY)
    if isinstance(found, Beginning):
        return found
    hosted = _HOSTED.get()
    return None if hosted is None or hosted.is_over else hosted


def hosting(begun: Beginning | None) -> AbstractContextManager[None]:
    """Run the host's own code inside as a run with this beginning."""
    return holding(_HOSTED, begun)


Snapshot: TypeAlias = StateSnapshot | Held
"""A thread at one moment."""


class Thread(Protocol):
    """Reads the thread as its last run left it; None and empty for a graph without a checkpointer."""

    def state(self, config: RunnableConfig) -> Snapshot | None: ...

    def history(self, config: RunnableConfig, limit: int) -> Sequence[Snapshot]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """The thread before a run: messages left by earlier runs, and messages added by the host since."""

    left: tuple[BaseMessage, ...] = ()
    added: tuple[BaseMessage, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    is_kept: bool = False


@dataclass(frozen=True)
class Beginnings:
    """Settles the beginnings of runs.

    Args:
        keys: The state keys that hold messages.
        nested: Who speaks in the input's human messages when the graph runs inside a graph without memory.
        shape: Turns a dictionary of state values into a state as the graph's nodes see it.
    """

    memory: Memory
    keys: tuple[str, ...] = ("messages",)
    identity: Resolver | None = None
    nested: Literal["agent", "user"] = "agent"
    shape: Callable[[dict[str, Any]], Any] = dict
    answers: dict[tuple[Any, ...], frozenset[str]] = field(default_factory=dict)
    """The texts that the latest turns were resumed with; a later run of the same turn may repeat them."""

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.memory)

    def begin(
        self,
        input: Any,
        config: RunnableConfig,
        *,
        thread: Thread,
        context: Any = None,
        is_nested: bool = False,
    ) -> Beginning:
        """Settle who acts and what the user said. Never raises."""
        broken = IdentityError("memory is off for this run: its beginning could not be told")

        begun = guarded(
            lambda: self._begin(input, config, thread, context, is_nested=is_nested),
            otherwise=lambda error: Beginning(broken),
        )
        if isinstance(begun.scope, IdentityError):
            self.report_off(begun.scope, None)
        if begun.answers and begun.turn_id is not None:
            turn = (*placed_by_host(config), begun.turn_id)
            begun.answers |= self.answers.pop(turn, frozenset())
            self.answers[turn] = begun.answers
            for oldest in list(self.answers)[:-_MOST_TURNS]:
                self.answers.pop(oldest, None)
        return begun

    def report_off(self, error: IdentityError, agent_id: str | None) -> None:
        """Report that memory is off for a run: in the log without names, in the audit log with the reason."""
        told = type(error).__name__ if isinstance(error, InvalidName) else error  # its text quotes the name
        _log.warning("memory is off for this run: %s", told)
        self.memory.report(
            AuditEvent("identity", outcome="denied", reason=type(error).__name__, agent_id=agent_id)
        )

    def identified(
        self, state: Any, config: RunnableConfig, agent_id: str | None, *, context: Any = None
    ) -> Scope | IdentityError:
        """Who acts; the error where nobody can be identified, which is no fault."""
        key, resolver = self.memory.backend.audit.log_id.encode(), self.identity
        try:
            told = scope_of(state, config, agent_id=agent_id, resolver=resolver, key=key, context=context)
        except IdentityError as error:
            return error
        return self.memory.services.scope(told)

    def _begin(
        self, input: Any, config: RunnableConfig, thread: Thread, context: Any, *, is_nested: bool
    ) -> Beginning:
        snapshot = None if is_nested else guarded(lambda: thread.state(config), otherwise=lambda error: None)
        found = self._split_thread(snapshot, thread)
        given = input
        if isinstance(input, Command):
            given = {k: v for each in updates_of(input.update) for k, v in values_of(each).items()}
        resume = input.resume if isinstance(input, Command) else None
        who = self.identified(self._state(given, found, config, thread), config, None, context=context)
        if isinstance(who, IdentityError):
            return Beginning(who)
        scope = who
        sent = messages_of(given, self.keys)
        words: list[BaseMessage] = []
        is_unsure = False
        if not is_nested or self.nested == "user":
            known, is_unsure = self._known_before([*sent, *found.added], scope)
            added = (m for m in found.added if m.id not in known.ids)
            words += [m for m in added if plain(m.text) not in known.texts]
            words += new_words(sent, _with_thread(known, found.left, sent), trusts_digests=not is_unsure)
        asked = words[-1] if words else self._last_question(sent, found, scope)
        if not words and asked is not None and asked.id and _is_unfinished(snapshot, config):
            words = [asked]  # its id makes sure that it is written once, even if the process got that far
        if value_of(given, "user_id") and found.is_kept:
            guarded(lambda: self.ledger.name_owner(scope), otherwise=lambda error: None)
        turn = asked.id if asked is not None else None
        if scope.run_id is None and turn is not None:
            scope = replace(scope, run_id=checked(turn))
        return Beginning(
            scope,
            tuple(HumanMessage(m.text, id=m.id, name=m.name) for m in words),
            frozenset(texts_in(resume)),
            asked.text if asked is not None else "",
            turn,
            is_unsure,
            forgets=not found.is_kept,
            keeps_messages=(config.get("configurable") or {}).get("memory_keep_messages"),
            recalls_said=(config.get("configurable") or {}).get("memory_recall_said"),
        )

    def _split_thread(self, snapshot: Snapshot | None, thread: Thread) -> Found:
        """Part the thread: messages left by earlier runs, and newer ones, which the host added."""
        if snapshot is None:
            return Found()
        held = messages_of(snapshot.values, self.keys)
        before: Snapshot | None = snapshot
        for _ in range(_FARTHEST):
            if before is None or (before.metadata or {}).get("source") not in _BY_HOST:
                break
            parent = before.parent_config
            before = None if parent is None else thread.state(parent)
        if before is snapshot:
            return Found(tuple(held), values=values_of(snapshot.values), is_kept=True)
        left = messages_of(before.values, self.keys) if before is not None else []
        known = _with_thread(Known(), left)
        texts = {m.id: m.text for m in left if m.id}
        added = [
            m
            for m in held
            if isinstance(m, HumanMessage)
            and (texts.get(m.id) != m.text if m.id in known.ids else m.id or plain(m.text) not in known.texts)
        ]
        return Found(tuple(left), tuple(added), values_of(snapshot.values), is_kept=True)

    def _state(self, given: Any, found: Found, config: RunnableConfig, thread: Thread) -> Any:
        """The state to identify the user by: the input's values over those of the thread.

        A `user_id` that a node or a tool put into the thread is left out.
        """
        values = {**found.values, **values_of(given)}
        held = found.values.get("user_id")
        if held and not value_of(given, "user_id"):
            values["user_id"] = self._vouched(held, config, thread)
        return self.shape(values) if found.values else given if given is not None else {}

    def _vouched(self, held: Any, config: RunnableConfig, thread: Thread) -> Any:
        """The `user_id` that a host put into the thread's state; None if no host did."""
        session = (config.get("configurable") or {}).get("thread_id")
        if guarded(lambda: self.ledger.owns(named(held, session)), otherwise=lambda error: False):
            return held
        # Each checkpoint beside the one before it, from the newest to the oldest.
        past = thread.history(config, _FARTHEST)
        for newer, older in zip(past, [*past[1:], None], strict=True):
            user = values_of(newer.values).get("user_id")
            before = None if older is None else values_of(older.values).get("user_id")
            came_in = older is not None and (older.metadata or {}).get("source") == "input"
            if user and user != before and (came_in or (newer.metadata or {}).get("source") in _BY_HOST):
                return user
        return None

    def _known_before(self, messages: Sequence[BaseMessage], scope: Scope) -> tuple[Known, bool]:
        """Which of these messages were said before, and whether looking that up failed."""
        asked = [m for m in messages if isinstance(m, HumanMessage)]
        if not asked or (len(messages) == 1 and not asked[0].id):
            return Known(), False
        known = guarded(lambda: self._said_before(asked, scope), otherwise=lambda error: None)
        return (Known(), True) if known is None else (known, False)

    def _said_before(self, messages: Sequence[BaseMessage], scope: Scope) -> Known:
        """Which of these messages were said before, by the user or while the thread was still anonymous."""
        is_history = len(messages) > 1
        known = self.ledger.known(messages, scope, is_history=is_history)
        if scope.session_id is None or not is_history:
            return known
        key = self.memory.backend.audit.log_id.encode()
        nameless = replace(scope, user_id=anonymous(scope.session_id, key))
        return known | self.ledger.known(messages, nameless, is_history=True)

    def _last_question(self, sent: Sequence[BaseMessage], found: Found, scope: Scope) -> BaseMessage | None:
        """The user's latest message of an earlier run."""
        human = [m for m in (*found.left, *found.added, *sent) if isinstance(m, HumanMessage)][-_NEWEST:]
        known = Known()
        if human and found.is_kept:
            known = guarded(lambda: self.ledger.known(human, scope), otherwise=lambda error: Known())
        own = (m for m in reversed(human) if m.id not in known.ids and plain(m.text) not in known.others)
        return next(own, None)


def new_words(
    sent: Sequence[BaseMessage], known: Known, *, trusts_digests: bool = True
) -> Iterator[BaseMessage]:
    """The human messages of an input that are new words of the user.

    A message with a known id is old wherever it stands. A known text makes a message old only before the last
    reply: everything after that is new, even if it was said before.

    Args:
        trusts_digests: Whether the digests could be read; if not, no message before the last reply is new.
    """
    last_reply = max(
        (
            at
            for at, message in enumerate(sent)
            if not isinstance(message, HumanMessage)
            or (at < len(sent) - 1 and plain(message.text) in known.others)
        ),
        default=-1,
    )
    for at, message in enumerate(sent):
        if not isinstance(message, HumanMessage) or not message.text.strip() or message.id in known.ids:
            continue
        if at > last_reply or (trusts_digests and plain(message.text) not in known.texts):
            yield message


def _is_unfinished(snapshot: Snapshot | None, config: RunnableConfig) -> bool:
    """Whether this run continues the thread's last one, which was interrupted or lost its process."""
    is_addressed = bool((config.get("configurable") or {}).get("checkpoint_id"))  # a replay, or a fork
    return not is_addressed and bool(getattr(snapshot, "next", ()))


def _with_thread(known: Known, left: Iterable[BaseMessage], sent: Iterable[BaseMessage] = ()) -> Known:
    """Add the thread's messages to the known ones, except ids that are sent with another text now."""
    now = {m.id: m.text for m in sent if m.id}
    human = [m for m in left if isinstance(m, HumanMessage)]
    ids = known.ids.union(m.id for m in human if m.id and now.get(m.id, m.text) == m.text)
    return Known(ids, known.texts.union(plain(m.text) for m in human), known.others)


def texts_in(value: Any, left: int = _DEEPEST) -> Iterator[str]:
    """The texts in a resume value, made `plain`, however deep they are nested."""
    if isinstance(value, str):
        yield plain(value)
    elif isinstance(value, BaseMessage):
        yield plain(value.text)
    elif left and isinstance(value, (Mapping, list, tuple)):
        for item in islice(value.values() if isinstance(value, Mapping) else value, _LEAVES):
            yield from texts_in(item, left - 1)
