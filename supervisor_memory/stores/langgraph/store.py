"""Records in the LangGraph store that the host has already: PostgresStore, SqliteStore, InMemoryStore, …"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from langgraph.store.base import BaseStore, Item

from supervisor_memory.audit.log import AuditLog, open_log
from supervisor_memory.errors import BackendError, SettingsError
from supervisor_memory.model.records import AuditEvent, Filter, Hits, Namespace, Query, Record
from supervisor_memory.stores.arrival import as_commit, pages, staged_in
from supervisor_memory.stores.changes import latest_first, places, plain
from supervisor_memory.stores.intents import Intents
from supervisor_memory.stores.langgraph.calls import StoreCalls
from supervisor_memory.stores.langgraph.erasing import StoreErasing
from supervisor_memory.stores.langgraph.items import Found, Layout, Owner, part_of, parts
from supervisor_memory.stores.memory.state import Staged, State
from supervisor_memory.stores.namespace import searched_user
from supervisor_memory.stores.protocol import Change, Commit, Committed, Erased, Health, Ids, Stored, Taken
from supervisor_memory.stores.verbs import Verbs

_History: TypeAlias = list[Record]
_log = logging.getLogger("supervisor_memory")
_TAKEN_TOGETHER: Final = 1_000  # records and earlier versions: six values each, of 32,766 in a statement


class BaseStoreBackend(Verbs):
    """Any LangGraph `BaseStore` as a backend: `SupervisorMemory(backend=BaseStoreBackend(store))`.

    Records are items under `prefix`; everything else in the store is left alone, and nothing is put
    into the store's own index. LangGraph hands the store of a graph to every node and tool in it, so
    a graph gets a guarded one: `compile(store=memory.guard(store, namespaces=[backend.prefix]))`.

    What it costs: a search, and a write that could clash, reads all records of the user (session
    messages apart) and ranks them here: with SqliteStore about 130 ms for 1,000. Far beyond that,
    `sqlite` is the better backend. A commit is one SQL statement with five values for an item, of
    which a change needs two or three; most builds of SQLite take 32,766 values.

    What it promises: a `BaseStore` has neither transactions nor compare-and-set. Within one process all
    backends over the same store object take turns, so versions and wordings are compared and set as
    one step. Two processes, or two store objects over one database, that change the same record at
    the same moment can lose one of the changes, or keep two records with the same words. A commit is
    one call of `store.batch`: all or nothing with SqliteStore and PostgresStore; other stores may
    write parts of it. When the store raises, nothing was acknowledged, but it may have been written:
    the audit log says so with "commit.unknown".

    An async store (AsyncSqliteStore, AsyncPostgresStore) is used from the async verbs while its event
    loop runs; on that loop's own thread the synchronous ones raise BackendUnavailable.

    Args:
        store: Set up by the host (`store.setup()`) and closed by the host.
        prefix: The first labels of every namespace.
        audit: Where the audit log is kept: a log, or the directory of its `audit.db`. None: in memory.
        clock: Seconds since 1970, for the times of audit rows.

    Raises:
        SettingsError: the prefix cannot begin a namespace.
        BackendError: the audit log cannot be opened.
    """

    def __init__(
        self,
        store: BaseStore,
        *,
        prefix: Namespace = ("supervisor_memory",),
        audit: AuditLog | Path | str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._calls = StoreCalls(store)
        self._layout = Layout(_checked(prefix))
        self._keeps_audit = audit is not None
        self._audit = audit if isinstance(audit, AuditLog) else open_log(audit)
        self._closes_audit = self._keeps_audit and self._audit is not audit
        self._intents = Intents(self._audit, clock)
        self._told_altered: set[tuple[str, int]] = set()
        self._erasing = StoreErasing(self._calls, self._layout, self._audit, clock)

    @property
    def name(self) -> Literal["base_store"]:
        return "base_store"

    @property
    def host_store(self) -> BaseStore:
        """The host's store, with the records in it."""
        return self._calls.store

    @property
    def prefix(self) -> Namespace:
        """The first labels of the namespaces of all items."""
        return self._layout.prefix

    @property
    def audit(self) -> AuditLog:
        return self._audit

    def search(self, query: Query, *, limit: int) -> Hits:
        """See `MemoryBackend.search`. Raises CorruptStore, too: an item of that user cannot be read."""
        searched_user(query)
        # All of the user's records, even where ids are asked for: how rare a word is depends on the others.
        with self._calls.alone():
            state = _state(self._in_parts(query.where))
        return state.search(query, limit)

    def get(self, ids: Ids) -> Sequence[Record]:
        with self._calls.alone():
            found = {each.record.id: each.record for each in self._by_id(ids)}
        return tuple(found[record_id] for record_id in ids if record_id in found)

    def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
        return latest_first(self._matching(where), limit=limit, offset=offset)

    def count(self, where: Filter) -> int:
        return len(self._matching(where))

    def versions(self, record_id: str) -> Sequence[Record]:
        with self._calls.alone():
            present = self._by_id([record_id])
            earlier = self._histories(present).get(record_id, ())
        return (*earlier, *(each.record for each in present))

    def batch(self, commit: Commit) -> Committed:
        """Apply a commit in one call to the store; see `MemoryBackend.batch`.

        After another BackendError, read again to see whether it was written all the same.
        """
        with self._calls.alone():
            new = [plain(change.record) for change in commit.changes if change.expects is None]
            owners = self._owners([change.record.id for change in commit.changes], new)
            staged = self._state_before(commit.changes, owners).stage(commit.changes)
            self._audit.check_new(commit.audit)
            if commit.changes:
                self._save(commit, staged, owners)
            else:
                self._audit.append(commit.audit, at=self._clock())
            return Committed(commit.id, tuple(staged.results))

    def stored(self, *, after: str | None = None, limit: int, user_id: str | None = None) -> Sequence[Stored]:
        """A page of all records; every page reads all owners anew. See `Moves`."""
        with self._calls.alone():
            owners = self._calls.items(self._layout.owners)
            found = self._calls.gets(self._layout.page(owners, after, max(0, limit), user_id))
            present = self._records_in(found)
            history = self._histories(present)
        return [
            Stored(each.record, tuple(history.get(each.record.id, ())), each.vector and each.vector[1])
            for each in present
        ]

    def take(self, records: Sequence[Stored]) -> Sequence[Taken]:
        """Keep records as another store had them, some hundreds in one call to the store; see `Moves`."""
        with self._calls.alone():
            return [taken for page in pages(records, most=_TAKEN_TOGETHER) for taken in self._take(page)]

    def _take(self, page: Sequence[Stored]) -> Sequence[Taken]:
        owners = self._owners([each.record.id for each in page])
        state = self._state_before([Change(each.record) for each in page], owners)
        brought = {each.record.id: each.record.version for each in page}
        newer = [Found(r) for r in state.records.values() if r.version > brought.get(r.id, r.version)]
        state.history |= self._histories(newer)
        staged, decided = staged_in(state, page, tombstones=self._erasing)
        if staged.records:
            self._save(as_commit(staged, decided), staged, owners)
        else:
            self._audit.append(decided.events, at=self._clock())
        return decided.in_order()

    def _histories(self, present: Iterable[Found]) -> dict[str, _History]:
        """Record id → the versions before the present one, oldest first."""
        asked = [each.record for each in present if each.record.version > 1]
        items = self._calls.gets([get for record in asked for get in self._layout.earlier(record)])
        history: dict[str, _History] = {}
        for found in self._records_in(items):
            history.setdefault(found.record.id, []).append(found.record)
        return history

    def holds(self, user_id: str) -> Mapping[str, int]:
        return self._erasing.holds(user_id)

    def erase(self, user_id: str, *, at: float, actor: str = "operator") -> Erased:
        """Remove a user item by item, and prove it; see `Erases`."""
        self._intents.doubt()  # its rows come after what another process may have begun
        return self._erasing.erase(user_id, at=at, actor=actor)

    def erase_records(
        self, ids: Ids, *, user_id: str, at: float, actor: str = "operator", history_of: Ids = ()
    ) -> Erased:
        """Remove records; see `ErasesRecords`."""
        gone, kept = ([r for r in self.get(some) if r.user_id == user_id] for some in (ids, history_of))
        return self._erasing.erase_records(gone, user_id=user_id, at=at, actor=actor, trimmed=kept)

    def health(self) -> Health:
        message = "" if self._keeps_audit else "the audit log is in memory; pass `audit`, a directory"
        try:
            with self._calls.alone():
                self._last_commit()
            ok = True
        except BackendError as error:
            ok, message = False, str(error)
        return Health(
            self.name,
            ok=ok,
            persistent=not self._calls.is_volatile,
            location=f"{self._calls.name}: {'/'.join(self._layout.prefix)}",
            message=message,
            details={"store": self._calls.name},
        )

    def close(self) -> None:
        """Write what is outstanding in the audit log. The store is its owner's to close."""
        if self._closes_audit:
            self._audit.close()
        else:
            self._audit.flush_at_last()

    # Reading

    def _matching(self, where: Filter) -> Sequence[Record]:
        with self._calls.alone():
            found = self._in_parts(where) if where.ids is None else self._by_id(where.ids)
        return [each.record for each in found if where.matches(each.record)]

    def _in_parts(self, where: Filter) -> Sequence[Found]:
        return [found for part in parts(where) for found in self._in_namespace(part, where.user_id)]

    def _in_namespace(self, part: str, user_id: str | None) -> Iterable[Found]:
        return self._records_in(self._calls.items(self._layout.namespace(part, user_id)))

    def _by_id(self, ids: Ids) -> Sequence[Found]:
        return self._of_owners(self._owners(ids))

    def _owners(self, ids: Ids, new: Sequence[Record] = ()) -> dict[str, Owner]:
        unique = list(dict.fromkeys(ids))
        items = self._erasing.gets([self._layout.owner(record_id) for record_id in unique], new)
        return {
            record_id: self._layout.found_owner(item)
            for record_id, item in zip(unique, items, strict=True)
            if item is not None
        }

    def _of_owners(self, owners: dict[str, Owner]) -> Sequence[Found]:
        gets = [self._layout.record(owner, record_id) for record_id, owner in owners.items()]
        return self._records_in(self._calls.gets(gets))

    def _records_in(self, items: Iterable[Item | None]) -> Sequence[Found]:
        """The records in items. Records altered from outside are reported in the log and the audit log."""
        read = (self._layout.found(item) for item in items if item is not None)
        found = [each for each in read if each is not None]
        for each in found:
            if each.is_altered:
                self._tell_altered(each.record)
        return found

    def _tell_altered(self, record: Record) -> None:
        if (place := (record.id, record.version)) in self._told_altered:
            return
        self._told_altered.add(place)
        _log.warning(
            "version %d of record %s in %s was altered by something else than memory: it is quarantined. "
            "Look at it with `memory.get(id)` and `memory.history(id)`, then `memory.delete` or "
            "`memory.review.release` it; see docs/hosts/guarded_store.md",
            *(record.version, record.id, self._calls.name),
        )
        whose = ("store", record.user_id, "backend", record.family, record.id)
        event = AuditEvent(*whose, outcome="denied", reason="altered-from-outside")
        with contextlib.suppress(BackendError):  # a log that cannot be written stops no reader
            self._audit.append([event], at=self._clock())

    def _state_before(self, changes: Sequence[Change], owners: dict[str, Owner]) -> State:
        """The records to change, and those that may hold the places of the changes."""
        searched = {(part_of(c.record), c.record.user_id) for c in changes if any(places(c.record))}
        rivals = [found for part, user_id in sorted(searched) for found in self._in_namespace(part, user_id)]
        return _state([*rivals, *self._of_owners(owners)])

    # Writing

    def _save(self, commit: Commit, staged: Staged, owners: dict[str, Owner]) -> None:
        self._settle()
        self._erasing.catch_up()
        puts = self._layout.puts(staged, owners, commit_id=commit.id, log_id=self._audit.log_id)
        self._intents.begin(commit)
        try:
            self._calls.puts(puts)
            # Nothing compares what is put over: a change, too, could bring back what was just erased.
            self._erasing.refuse_late([*staged.records.values()])
        except BackendError:
            self._intents.doubt()
            with contextlib.suppress(BackendError):  # else the next commit settles it
                self._settle()
            raise
        self._intents.done(commit)

    def _settle(self) -> None:
        self._intents.settle(lambda commit_id: self._last_commit() == commit_id)

    def _last_commit(self) -> object:
        (item,) = self._calls.gets([self._layout.last_commit(self._audit.log_id)])
        return None if item is None else item.value.get("commit")


def _state(found: Iterable[Found]) -> State:
    # In the order of their ids, so that hits of equal score come in the same order each time.
    by_id = {each.record.id: each for each in sorted(found, key=lambda each: each.record.id)}
    return State(
        {record_id: each.record for record_id, each in by_id.items()},
        vectors={record_id: each.vector for record_id, each in by_id.items() if each.vector is not None},
    )


def _checked(prefix: Namespace) -> Namespace:
    are_labels = all(
        isinstance(each, str) and each and not set(each) & set(".\x00*") for each in prefix or ()
    )
    if isinstance(prefix, str) or not prefix or prefix[0] == "langgraph" or not are_labels:
        raise SettingsError(
            f"prefix {prefix!r} cannot begin a namespace; pass a tuple of texts that are not empty and hold "
            "no '.', such as ('supervisor_memory',)",
            prefix=prefix,
        )
    return tuple(prefix)
