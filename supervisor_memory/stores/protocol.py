"""What a store must be able to do. Records go in, hits come out; ranking is done elsewhere.

`supervisor_memory.testing.backend_contract` holds the promises as tests that any backend can run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from supervisor_memory.model.records import AuditEvent, Filter, Hits, Query, Record, WriteResult, new_id

if TYPE_CHECKING:
    from supervisor_memory.audit.log import AuditLog
    from supervisor_memory.model.records import Vector
    from supervisor_memory.stores.journal.reconcile import Reconciled

__all__ = [
    "Change",
    "Commit",
    "Committed",
    "Copied",
    "DecidesAgain",
    "Erased",
    "Erases",
    "Health",
    "Ids",
    "Incomplete",
    "Journals",
    "MemoryBackend",
    "Moves",
    "Stored",
    "Taken",
]

Ids: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True)
class Change:
    """A record as it shall be.

    `expects` is the version it was read at, compared and set; None says that the record is new.
    The stored version becomes `expects + 1` (1 for a new one) whatever `record.version` says, its
    `content_hash` is that of its content, its `source` stays the first one unless `changes_source` says
    that these are somebody else's words, and its `embedder` is None unless a vector is stored. Where a
    vector is brought and nothing else changes, the version stays `expects` and history gets none: a vector
    only says how the record is found. A record stays its user's: for another user it is not found.
    """

    record: Record
    expects: int | None = None
    changes_source: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes and their audit events: all of them or none.

    Deactivations (a status other than active) are applied first, so that one record can take
    another's place. Two active records of one namespace may not share a content hash, nor a
    (subject, attribute) pair; records of layer "history" are verbatim and exempt from both.
    """

    changes: tuple[Change, ...] = ()
    audit: tuple[AuditEvent, ...] = ()
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a commit: the records as stored, in the order of its changes.

    `saved` says that it is durable here, `applied` that every reader of the store sees it: what waits in
    the journal of a store that is out of reach is saved and not yet applied.
    """

    id: str
    records: tuple[Record, ...] = ()
    saved: bool = True
    applied: bool = True


class Incomplete(tuple[Record, ...]):
    """The records that could be read while the store was out of reach; there may be others."""

    __slots__ = ()


class Copied(Incomplete):
    """All records that this machine knows of; only what others changed lately may be missing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the store works, for `doctor`. `details` are shown as they are."""

    name: str
    ok: bool
    persistent: bool
    location: str = ""
    message: str = ""
    details: dict[str, str] = field(default_factory=dict)


@runtime_checkable
class MemoryBackend(Protocol):
    """Where records are kept. Every method may be called from any thread."""

    @property
    def name(self) -> Literal["in_memory", "json", "sqlite", "qdrant"] | str: ...

    @property
    def audit(self) -> "AuditLog":
        """The log that `batch` appends to."""
        ...

    def search(self, query: Query, *, limit: int) -> Hits:
        """Candidates by all signals together, without threshold or decay.

        At most `limit` of them, and besides up to `limit // 4` (one at least) of the very best by meaning
        alone and as many by words alone, in no promised order. Only records visible at `query.now` and
        matching `query.where`, which must name a user; the others are left out before the best are chosen.

        A hit's parts hold `cosine` (raw, in [-1, 1]) where both it and the query have a vector of the same
        embedder, `bm25` (> 0) where they share a term, and `match` (0 or more), which orders the hits of
        one search and says nothing about relevance. Other signals have a part where they are not 0:

        - `context`: the share of the question's terms in the record and in what was said just before it;
        - `neighbour`, `answer`, `episode`: how well what was said beside it in its conversation matches;
        - `speaker`, `date`, `information`: whether it is by whom and of when the question asks, and how much
          it can tell.

        A store that searches elsewhere may tell what is in the conversation, and how rare a word is, from
        the candidates that it found.

        Raises:
            MissingUser: `query.where` names no user.
            BackendError: the store failed.
        """
        ...

    def write(self, records: Sequence[Record]) -> Sequence[WriteResult]:
        """Insert records as they are. Raises Conflict when an id exists or a like record is active."""
        ...

    def update(self, changes: Sequence[Change]) -> Sequence[WriteResult]:
        """Replace records, each only if it still has the version it was read at.

        Raises:
            Conflict: one has changed; nothing is written.
            RecordNotFound: one does not exist.
        """
        ...

    def delete(self, target: Ids | Filter) -> int:
        """Mark records as deleted; history keeps them. Returns how many were active before.

        Raises:
            ConfirmationRequired: a filter that names neither user, ids nor session.
        """
        ...

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit: all or nothing, audit included.

        Raises:
            Conflict: an expectation does not hold; nothing was written. Its facts say `what` is in the way
                ("id", "version", "content_hash", "attribute" or "event") and by which `record_id`.
            InvalidContent, BadVector: a record cannot be stored as it is.
            RecordNotFound: a record to change does not exist.
            WasErased: a new record was said before its user was erased; only where the store `Erases`.
            ReadOnlyStore, BackendError: the store cannot write.
        """
        ...

    def get(self, ids: Ids) -> Sequence[Record]:
        """The records of these ids in any status, in the order asked, unknown ones left out."""
        ...

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        """Records that match, most recently updated first."""
        ...

    def count(self, where: Filter) -> int: ...

    def versions(self, record_id: str) -> Sequence[Record]:
        """Every version of a record, oldest first, the present one last; empty for an unknown id."""
        ...

    def health(self) -> Health: ...

    def close(self) -> None:
        """Write what is outstanding and let go of files. Closing twice is fine."""
        ...


@dataclass(frozen=True, slots=True)
class Erased:
    """What a store removed of a user: how much, by kind.

    `pending` says what it may still hold, and why; empty: nothing. The store completes it when `erase` is
    called again, for any user, and when it is opened or, where it is elsewhere, with the next commit.
    `out_of_reach` says where what was removed stays for a while, which the store cannot change.
    """

    removed: Mapping[str, int]
    pending: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = ()


@runtime_checkable
class Erases(Protocol):
    """A store that can remove a user for good, beside what every store can."""

    def holds(self, user_id: str) -> Mapping[str, int]:
        """How much of a user `erase` would remove, by kind."""
        ...

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove all records of a user with their versions, vectors, words, keys and accesses.

        From then on no reader is given them, in any process, and what was said before comes back in no
        way: a new record with a `created_at` before `at`, a verbatim record of the same id, and an event
        of the same id are refused. What the user says afterwards is remembered as ever.

        Args:
            at: Now, in seconds since 1970, by the clock that gives records their `created_at`.
            actor: Who erases, for the audit log.

        Raises:
            BackendError: nothing was removed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a store keeps it, with all that goes with it when it moves to another.

    Args:
        record: As it is, its version, status and times too; `record.vector` is None.
        earlier: Its earlier versions, oldest first.
        vector: float32 of unit length, of `record.embedder`; None where that is None.
    """

    record: Record
    earlier: tuple[Record, ...] = ()
    vector: "Vector | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a record that a store was to take.

    Args:
        what: "added"; "replaced" an earlier version of it; the "same" was here; the one here is of a later
            version, and what was brought is "older"; or it was "refused".
        reason: Why it was refused, as a code: "other-record" (another one has its id, or the two were
            changed apart), "content_hash" or "attribute" (another active one has its place), "erased" (it
            was said before its user was erased), "invalid" (it cannot be stored).
        told: The same for people.
    """

    record_id: str
    what: Literal["added", "replaced", "same", "older", "refused"]
    reason: str = ""
    told: str = ""


@runtime_checkable
class Moves(Protocol):
    """A store whose records can move to another as they are, beside what every store can."""

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records, in every status and family; an empty one: there are no more.

        Args:
            after: The id of the last record of the page before. Pages come in an order of the store's own,
                mostly that of the ids, which does not change: each record that is there throughout comes
                once.
            user_id: Only this user's records.

        Raises:
            CorruptStore, BackendError: a record cannot be read, or the store failed.
        """
        ...

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them: one answer each, in order.

        A record is taken whole or not at all; taking it again leaves it as it is. One that is here in an
        earlier version of its own history is brought up to date. Each that is taken is an event
        "memory.import" in the log.

        Raises:
            ReadOnlyStore, BackendError: the store failed. Some may have been taken; take them again.
        """
        ...


DecidesAgain: TypeAlias = Callable[[Commit, Callable[[str], str]], Mapping[str, str]]
"""Takes the decisions of a commit anew, against the store as it is now, and commits them there.

It is handed the commit and what tells into which record another was merged. It returns the same for the
records of this commit: record id → the record that it was merged into."""


@runtime_checkable
class Journals(Protocol):
    """A store that keeps commits until they can be applied where all readers see them."""

    @property
    def store(self) -> MemoryBackend:
        """What is behind the journal, for who must see it as it is and write to it now."""
        ...

    def decides_again(self, decide: DecidesAgain) -> None:
        """Say who decides again what the store refuses by then, and begin to apply what waits."""
        ...

    def backlog(self) -> Mapping[str, int]:
        """How much waits: commits by state ("begun", "waiting", "dead") and "erasures"."""
        ...

    def replay(self) -> bool:
        """Apply what waits, now and in this thread. Whether nothing waits any more."""
        ...

    def reconcile(self) -> "Reconciled":
        """Compare the copy on this machine with the store, and mend both.

        Raises:
            SettingsError: no copy is kept.
            BackendUnavailable: the store is out of reach, or something still waits for it.
        """
        ...
