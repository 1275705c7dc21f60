"""The store behind a journal, as a backend: for who must see it as it is, and write to it now."""

from collections.abc import Sequence

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.backends.journal_place import Place
from supervisor_memory.backends.link import Link
from supervisor_memory.backends.protocol import Commit, Committed, Health, Ids, MemoryBackend
from supervisor_memory.backends.verbs import Verbs
from supervisor_memory.records import Filter, Hits, Query, Record

__all__ = ["Linked"]


class Linked(Verbs):
    """A store without its journal, but with the journal's deadlines and audit log.

    Every method raises OutOfReach where the store does not answer in time, or has not lately.

    Args:
        place: Where the events go of commits that the store took, and what is noted of these.
        read_seconds, write_seconds: How long the store may take to answer, in seconds.
    """

    def __init__(
        self,
        store: MemoryBackend,
        link: Link,
        place: Place,
        *,
        read_seconds: float,
        write_seconds: float,
    ) -> None:
        self._store, self._link, self._place = store, link, place
        self._read_seconds, self._write_seconds = read_seconds, write_seconds

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def audit(self) -> AuditLog:
        return self._place.audit

    def apply(self, commit: Commit) -> Committed:
        """Apply the changes of a commit; its events are the caller's to audit."""
        bare = Commit(commit.changes, (), commit.id)
        return self._link.call(self._write_seconds, self._store.batch, bare)

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit, then audit it."""
        self._place.audit.check_new(commit.audit)
        done = self.apply(commit) if commit.changes else Committed(commit.id)
        with self._place.database.writing():
            self._place.note(commit, done)
            self._place.tell(*commit.audit)
        return done

    def search(self, query: Query, *, limit: int) -> Hits:
        return self._link.call(self._read_seconds, self._store.search, query, limit=limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        return self._link.call(self._read_seconds, self._store.get, ids)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return self._link.call(self._read_seconds, self._store.list, where, limit=limit, offset=offset)

    def count(self, where: Filter) -> int:
        return self._link.call(self._read_seconds, self._store.count, where)

    def versions(self, record_id: str) -> Sequence[Record]:
        return self._link.call(self._read_seconds, self._store.versions, record_id)

    def health(self) -> Health:
        return self._link.call(self._write_seconds, self._store.health)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()
