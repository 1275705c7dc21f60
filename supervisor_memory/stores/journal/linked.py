"""The store behind a journal, as a backend: for callers who have to read and write it directly."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import BackendError, BackendUnavailable
from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.journal.link import Link
from supervisor_memory.stores.journal.place import Place
from supervisor_memory.stores.protocol import Commit, Committed, Health, Ids, MemoryBackend
from supervisor_memory.stores.verbs import Verbs

P = ParamSpec("P")
T = TypeVar("T")


class Linked(Verbs):
    """A store without its journal, but with the journal's deadlines (in seconds) and audit log.

    Every method raises OutOfReach where the store does not answer in time, or has not lately.
    """

    def __init__(
        self, store: MemoryBackend, link: Link, place: Place, *, read_seconds: float, write_seconds: float
    ) -> None:
        self._store, self._link, self._place = store, link, place
        self._read_seconds, self._write_seconds = read_seconds, write_seconds

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def audit(self) -> AuditLog:
        return self._place.audit

    def apply(self, commit: Commit, *, seconds: float = 0.0) -> Committed:
        """Apply the changes of a commit, in `seconds` if that is longer than usual; its caller audits it."""
        bare = Commit(commit.changes, (), commit.id)
        return self._ask(max(self._write_seconds, seconds), Committed, self._store.batch, bare)

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit, then audit it."""
        self._place.audit.check_new(commit.audit)
        done = self.apply(commit) if commit.changes else Committed(commit.id)
        with self._place.database.writing():
            self._place.note(commit, done)
            self._place.tell(*commit.audit)
        return done

    def search(self, query: Query, *, limit: int) -> Hits:
        return self._ask(self._read_seconds, Hits, self._store.search, query, limit=limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        return self._ask(self._read_seconds, Sequence, self._store.get, ids)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return self._ask(self._read_seconds, Sequence, self._store.list, where, limit=limit, offset=offset)

    def count(self, where: Filter) -> int:
        return self._ask(self._read_seconds, int, self._store.count, where)

    def versions(self, record_id: str) -> Sequence[Record]:
        return self._ask(self._read_seconds, Sequence, self._store.versions, record_id)

    def health(self) -> Health:
        """The store's health. A store that says it is not well counts as out of reach."""

        def asked() -> Health:
            health = self._store.health()
            if isinstance(health, Health) and not health.ok:
                raise BackendUnavailable(health.message or "it is not well", backend=self.name)
            return health

        return self._ask(self._write_seconds, Health, asked)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _ask(
        self, seconds: float, kind: type[Any], ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call the store, and refuse an answer of another type than `kind`."""

        def asked() -> T:
            answer = ask(*args, **kwargs)
            if not isinstance(answer, kind) or isinstance(answer, str):
                told = (
                    f"{self.name} answered {type(answer).__name__} where it has to be {kind.__name__}; run "
                )
                told += "supervisor_memory.testing.backend_contract on it"
                raise BackendError(told, backend=self.name)
            return answer

        return self._link.call(seconds, asked)
