"""The protocols of stores. Records go in, hits come out; ranking is done elsewhere.

`supervisor_memory.testing.backend_contract` holds the promises as tests that any backend can run.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Hits,
    Namespace,
    Query,
    Record,
    Seed,
    WriteResult,
    new_id,
)

if TYPE_CHECKING:
    from supervisor_memory.audit.log import AuditLog
    from supervisor_memory.model.records import Vector

Ids: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True)
class Change:
    """A record to store, new or changed.

    `expects` is the version at which the record was read, compared and set; None: the record is new.
    The stored version becomes `expects + 1` (1 for a new record) whatever `record.version` says. The
    `content_hash` is computed from the content. The `source` stays the first one unless `changes_source`
    says that the words are now somebody else's. The `embedder` is None unless a vector is stored. A change
    that brings a vector and nothing else keeps the version `expects` and adds nothing to history: a vector
    only says how the record is found. A change for another user raises RecordNotFound.
    """

    record: Record
    expects: int | None = None
    changes_source: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes and their audit events, applied all together or not at all.

    Deactivations (a status other than active) are applied first, so that one record can take
    another's place. Two active records of one namespace may not share a content hash, nor a
    (subject, attribute) pair; records of layer "history" are verbatim and exempt from both.
    """

    changes: tuple[Change, ...] = ()
    audit: tuple[AuditEvent, ...] = ()
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit: the records as stored, in the order of its changes.

    `saved` says that the commit is durable here, `applied` that every reader of the store sees it: a
    commit that waits in a journal is saved and not yet applied.
    """

    id: str
    records: tuple[Record, ...] = ()
    saved: bool = True
    applied: bool = True


class ByWords(Hits):
    """Hits found by words alone, because there was no time to read the vectors."""


class Incomplete(tuple[Record, ...]):
    """The records that could be read while the store was out of reach; others may be missing."""

    __slots__ = ()


class Copied(Incomplete):
    """All records of the copy on this machine; only the latest changes of other instances may be missing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a store works, for `doctor`. `details` are shown as they are."""

    name: str
    ok: bool
    persistent: bool
    location: str = ""
    message: str = ""
    details: dict[str, str] = field(default_factory=dict)


@runtime_checkable
class MemoryBackend(Protocol):
    """A store of records. Every method may be called from any thread."""

    @property
    def name(self) -> Literal["in_memory", "json", "sqlite", "qdrant"] | str: ...

    @property
    def audit(self) -> "AuditLog":
        """The log that `batch` appends to."""

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by all signals together, without threshold or decay.

        At most `limit` of them, and besides up to `limit // 4` (one at least) of the very best by meaning
        alone and as many by words alone, in no promised order. Only records visible at `query.now` and
        matching `query.where`, which must name a user; others are left out before the best are chosen.

        A hit's parts hold `cosine` (raw, in [-1, 1]) where record and query have vectors of the same
        embedder, `bm25` (> 0) where they share a term, and `match` (0 or more), which orders the hits of
        one search and says nothing about relevance. Other signals have a part where they are not 0:

        - `context`: the share of the question's terms in the record and in what was said just before it;
        - `neighbour`, `answer`, `episode`: how well the words beside it in its conversation match;
        - `speaker`, `date`: whether it comes from a person and a time that the question names;
        - `information`: how much it can tell whatever the question.

        A store that searches elsewhere may take conversations, and how rare a word is, from the
        candidates alone.

        Raises:
            MissingUser: `query.where` names no user.
            BackendError: the store failed.
        """

    def write(self, records: Sequence[Record]) -> Sequence[WriteResult]:
        """Insert records as they are. Raises Conflict when an id exists or a like record is active."""

    def update(self, changes: Sequence[Change]) -> Sequence[WriteResult]:
        """Replace records, each only if it still has the version it was read at.

        Raises:
            Conflict: a record has changed; nothing is written.
            RecordNotFound: a record does not exist.
        """

    def delete(self, target: Ids | Filter) -> int:
        """Mark records as deleted; history keeps them. Returns how many were active before.

        Raises:
            ConfirmationRequired: a filter that names neither user, ids nor session.
        """

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing, audit included.

        Raises:
            Conflict: an expectation does not hold; nothing was written. Its facts are `what` is in the way
                ("id", "version", "content_hash", "attribute" or "event") and the `record_id` that holds it.
            InvalidContent, BadVector: a record cannot be stored as it is.
            RecordNotFound: a record to change does not exist.
            WasErased: a new record was said before its user was erased; only where the store `Erases`.
            ReadOnlyStore, BackendError: the store cannot write.
        """

    def get(self, ids: Ids) -> Sequence[Record]:
        """The records of these ids in any status, in the order asked, unknown ones left out."""

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        """Records that match, most recently updated first."""

    def count(self, where: Filter) -> int: ...

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first, the present one last; empty for an unknown id."""

    def health(self) -> Health: ...

    def close(self) -> None:
        """Write what is outstanding and let go of files. Closing twice is fine."""


_Walk = TypeVar("_Walk", bound=Callable[..., Hits])


def walks_here(method: _Walk) -> _Walk:
    """Mark a `related` that needs no thread: it walks over what the store holds in this process.

    The mark is the method's, so one that takes its place in a subclass or a wrapper is not marked.
    """
    method.is_here = method  # type: ignore[attr-defined]
    return method


def is_here(walk: Callable[..., Hits]) -> bool:
    """Whether a method was marked with `walks_here` itself; `functools.wraps` copies the mark of another."""
    function: object = getattr(walk, "__func__", walk)
    return getattr(function, "is_here", None) is function


@runtime_checkable
class Relates(Protocol):
    """A store that can also walk from records to those that name the same things.

    One method, so that a graph database of another package can be one. It gets four fifths of the time left,
    on a thread of its own, so that one that hangs takes no hit away. A store that walks over what it holds in
    this process marks the method with `walks_here`, and is asked as it is searched.
    """

    def related(self, seeds: Sequence[Seed], query: Query, *, limit: int, least: float = 0.0) -> Hits:
        """The records that the seeds are joined to, in two steps at most, best first.

        Only records that a search with this query may find are found or walked over, and of these only facts
        by themselves. What the question names joins nothing: it is searched for anyway. Each hit has the part
        `walk`, in [0, 1], `cosine` where vectors can be compared, and its `path`, which begins at a seed.

        Args:
            seeds: Where to begin. A seed's own record is found from other seeds alone; that of a seed of
                weight 0 is not found, and nothing is looked for from it.
            least: Of the part `walk`; a way that has less left is not gone on.

        Raises:
            MissingUser: `query.where` names no user.
            BackendError: the store failed.
        """


class Names(Protocol):
    """A store that finds the records with some words in them, without reading the others."""

    def naming(
        self, names: Sequence[Sequence[str]], query: Query, *, limit: int
    ) -> Sequence[tuple[int, Sequence[Record]]]:
        """For each name, given by its terms: how many records have all of these, and the newest of them.

        Only records that a search with this query may find are given; they are counted before that is known.

        Args:
            limit: Of the records of a name.

        Raises:
            MissingUser: `query.where` names no user.
            BackendError: the store failed.
        """


@dataclass(frozen=True, slots=True)
class Erased:
    """How much of a user a store removed, by kind.

    `pending` says in sentences what may still be there, and why; empty: nothing. The store completes the
    erasure when `erase` is called again, for any user, and when it is opened; a remote store with the next
    commit. `out_of_reach` names places where removed data stays for a while, beyond the store's control.
    """

    removed: Mapping[str, int]
    pending: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = ()


@runtime_checkable
class Sizes(Protocol):
    """A store that knows how large its namespaces are, without reading their records."""

    def sizes(self) -> Mapping[Namespace, int]:
        """How many active records each namespace has; those without any may be missing."""


@runtime_checkable
class Erases(Protocol):
    """A store that can also remove a user for good."""

    def holds(self, user_id: str) -> Mapping[str, int]:
        """How much of a user `erase` would remove, by kind."""

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove all records of a user with their versions, vectors, words, keys and accesses.

        From then on no reader gets them, in any process, and nothing said before comes back: a new record
        with a `created_at` before `at`, a verbatim record with the same id, and an event with the same id
        are refused. What the user says afterwards is remembered as ever.

        Args:
            at: Now, in seconds since 1970, by the clock of the records' `created_at`.
            actor: Who erases, for the audit log.

        Raises:
            BackendError: nothing was removed.
        """


@runtime_checkable
class ErasesRecords(Protocol):
    """A store that can also remove some records of a user for good."""

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records with their versions, vectors, words, keys and accesses; unknown ids do no harm.

        Verbatim records with these ids are refused from now on, and so are new records read from them.

        Args:
            history_of: Records that stay and lose their earlier versions.

        Raises:
            BackendError: the store failed; a store on a server may have removed some. Call it again.
        """


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a store keeps it, with its history and its vector, to move to another store.

    Args:
        record: With version, status and times as stored; `record.vector` is None.
        earlier: The earlier versions, oldest first.
        vector: By `record.embedder`, float32 of unit length; None where `record.embedder` is None.
    """

    record: Record
    earlier: tuple[Record, ...] = ()
    vector: "Vector | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result for a record that a store was to take.

    Args:
        what: "added"; "replaced" an earlier version; the "same" version was here; "older" than the
            version here; or "refused".
        reason: Why it was refused, as a code: "other-record" (another record has its id, or the two were
            changed apart), "content_hash" or "attribute" (another active record has its place), "erased"
            (it was said before its user was erased), "invalid" (it cannot be stored).
        told: The reason as a sentence for people.
    """

    record_id: str
    what: Literal["added", "replaced", "same", "older", "refused"]
    reason: str = ""
    told: str = ""


@runtime_checkable
class Moves(Protocol):
    """A store that can also give its records to another store and take others' records, unchanged."""

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records, in every status and family; an empty page is the end.

        Args:
            after: The id of the last record of the page before. Pages come in a fixed order of the store's
                own, mostly by id: each record that is there throughout comes once.
            user_id: Only this user's records.

        Raises:
            CorruptStore, BackendError: a record cannot be read, or the store failed.
        """

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them; gives a result for each, in order.

        A record is taken whole or not at all; taking it again changes nothing. A record that is here at an
        earlier version of the same history is brought up to date. The log gets an event "memory.import"
        for each record taken.

        Raises:
            ReadOnlyStore, BackendError: the store failed. Some may have been taken; take them again.
        """


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in a list: whose it is, who spoke in it, when, and how often.

    Args:
        agents: The agents that spoke in it, in order of their names.
        first_at, last_at: When its first and its newest message were said, in seconds since 1970.
        messages: How many of its messages are kept; a message over 64 KiB counts for each of its parts.
        name: As somebody named it; None: nobody did.
        closed_at: When it was closed; None: it never was.
        is_digested: Whether there is a digest of it.
        closed_messages: How many messages it had when it was closed.
    """

    session_id: str
    user_id: str
    agents: tuple[str, ...]
    first_at: float
    last_at: float
    messages: int
    name: str | None = None
    closed_at: float | None = None
    is_digested: bool = False
    closed_messages: int | None = None

    @property
    def status(self) -> Literal["open", "closed"]:
        """Whether it is closed; a message after its end opens it again, whatever the clocks say."""
        has_more = self.closed_messages is not None and self.messages > self.closed_messages
        is_open = self.closed_at is None or self.closed_at < self.last_at or has_more
        return "open" if is_open else "closed"

    @property
    def place(self) -> tuple[float, str, str]:
        """Its place in a list, to go on after it."""
        return self.last_at, self.user_id, self.session_id

    @property
    def cursor(self) -> str:
        """The place as a text."""
        return json.dumps(self.place, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class PartyRow:
    """A user or an agent with the sessions it spoke in: how many, and the first and last time of them all.

    Args:
        messages: How many messages of anybody these sessions have.
    """

    id: str
    sessions: int
    messages: int
    first_at: float
    last_at: float

    @property
    def place(self) -> tuple[float, str]:
        """Its place in a list, to go on after it."""
        return self.last_at, self.id

    @property
    def cursor(self) -> str:
        """The place as a text."""
        return json.dumps(self.place, ensure_ascii=False)


Party: TypeAlias = Literal["user", "agent"]


@runtime_checkable
class ListsSessions(Protocol):
    """A store that can also list sessions, who spoke in them and what was said last, without reading all."""

    def sessions(
        self, where: Filter, *, limit: int, after: tuple[float, str, str] | None = None
    ) -> Sequence[SessionRow]:
        """The sessions with active messages, the one with the newest message first.

        At one time they come in falling order of their users and ids.

        Args:
            where: `user_id`, `session_id`, `agent_id` (an agent that spoke in it), `since` and `until`
                (it began before `until`, and its newest message is not before `since`); other fields
                do not count.
            after: The place of the last row of the page before. A session with a message since then has
                moved to the front, and does not come again.
        """

    def parties(
        self, party: Party, *, user_id: str | None = None, limit: int, after: tuple[float, str] | None = None
    ) -> Sequence[PartyRow]:
        """Those with active messages in a session, in falling order of their newest session and their ids.

        Args:
            user_id: Only sessions of this user.
            after: The place of the last row of the page before.
        """

    def said_last(self, where: Filter, *, limit: int) -> Sequence[Record]:
        """The active messages of a session that were said last, the last one first.

        Args:
            where: `user_id` and `session_id`, which it must name, `since` and `until`; other fields do not
                count.
        """

    def count_said(self, where: Filter) -> int:
        """How many active messages of a session there are; `where` as in `said_last`."""


DecidesAgain: TypeAlias = Callable[[Commit, Callable[[str], str]], Mapping[str, str]]
"""Takes the decisions of a commit anew, against the store as it is now, and commits them there.

Called with the commit, and a function from a record id to the id of the record it was merged into. Returns
the merges of this commit: record id → the id of the record it was merged into.
"""


@dataclass(slots=True)
class Reconciled:
    """How many records were different, and were mended.

    Args:
        compared: All records of the store.
        brought: Records that the copy lacked, or had otherwise, and has now.
        restored: Records that the store had lost, and has again.
        forgotten: Records that the copy has dropped, for their user was erased elsewhere.
        refused: Record id → why the store does not take the record back; it stays in the copy.
    """

    compared: int = 0
    brought: int = 0
    restored: int = 0
    forgotten: int = 0
    refused: dict[str, str] = field(default_factory=dict)


@runtime_checkable
class Journals(Protocol):
    """A store that keeps commits until they can be applied where all readers see them."""

    @property
    def store(self) -> MemoryBackend:
        """The store behind the journal, for callers who have to read and write it directly."""

    def decides_again(self, decide: DecidesAgain) -> None:
        """Set the function that decides refused commits again, and begin to apply the commits that wait."""

    def backlog(self) -> Mapping[str, int]:
        """How many commits are in each state ("begun", "waiting", "dead"), and how many "erasures" wait."""

    def replay(self) -> bool:
        """Apply the commits that wait, now and in this thread. True when none is left."""

    def reconcile(self) -> Reconciled:
        """Compare the copy on this machine with the store, and mend both.

        Raises:
            SettingsError: no copy is kept.
            BackendUnavailable: the store is out of reach, or something still waits for it.
        """
