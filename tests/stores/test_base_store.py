"""A LangGraph store as a backend: the contract, and what only a shared store can go through."""

import asyncio
import gc
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.audit.log import AuditLog
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import (
    BackendError,
    BackendUnavailable,
    CorruptStore,
    MemoryAccessDenied,
    SettingsError,
)
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Query, Record
from supervisor_memory.stores.langgraph import calls as store_calls
from supervisor_memory.stores.langgraph.items import label
from supervisor_memory.stores.langgraph.store import BaseStoreBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Commit, MemoryBackend
from supervisor_memory.testing.backend_contract import BackendContract, Limit, PersistentBackendContract
from supervisor_memory.testing.records import (
    assert_chain,
    changed,
    contents,
    direction,
    everything,
    query,
    tea,
    with_vector,
)
from supervisor_memory.testing.scripted import ScriptedModel
from tests.breadth import examples
from tests.cases import every_case
from tests.stores.test_filters import STEPS, Step, filters, outcome, records, search, state

WORDS_ONLY = Settings(embedding_model="none")
QUICK = Settings(embedding_model="none", search_timeout_ms=300, write_timeout_ms=300)
LOOK_ALIKE = (
    "bob@example.com",
    "bob@example=2Ecom",
    "bob@example",
    "bob",
    "bob.",
    ".bob",
    "bob~",
    "BOB",
    "b%",
    "*",
    "langgraph",
    "用户.一",
    "=",
    "records",
)


def sqlite_store(file: Path | str) -> SqliteStore:
    store = SqliteStore(sqlite3.connect(file, check_same_thread=False, isolation_level=None))
    store.setup()
    return store


class TestInMemoryStore(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return BaseStoreBackend(InMemoryStore())


@pytest.mark.one_in(4)
class TestSqliteStore(PersistentBackendContract):
    """Each handle has a store of its own over one file, as two processes have."""

    limits: ClassVar[Mapping[Limit, str]] = {"decides across handles": "a BaseStore has no compare-and-set"}

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path)


def test_a_promise_that_a_store_cannot_keep_is_not_tested_and_why_is_said() -> None:
    with pytest.raises(pytest.skip.Exception, match="handles; a BaseStore has no compare-and-set"):
        TestSqliteStore().skip_where_limited("decides across handles")
    TestSqliteStore().skip_where_limited("is whole after a kill")


@pytest.mark.one_in(4, shift=1)
class TestSeveralOverOneStore(PersistentBackendContract):
    """Handles over the same store object take turns."""

    limits: ClassVar[Mapping[Limit, str]] = {
        "is whole after a kill": "this store is in the memory of the process that is killed"
    }

    @pytest.fixture
    def store(self) -> BaseStore:
        return sqlite_store(":memory:")

    @pytest.fixture
    def backend(self, store: BaseStore, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = BaseStoreBackend(store, audit=str(tmp_path))
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, store: BaseStore, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: BaseStoreBackend(store, audit=tmp_path)


class Wrapped(BaseStore):
    """A store that can be looked at, and made to fail."""

    def __init__(self, inner: BaseStore | None = None) -> None:
        self.inner = inner or InMemoryStore()
        self.batches: list[list[Op]] = []
        self.before: Callable[[list[Op]], None] = lambda ops: None
        self.after: Callable[[list[Op]], None] = lambda ops: None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        self.batches.append(asked)
        self.before(asked)
        results = self.inner.batch(asked)
        self.after(asked)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return self.batch(ops)


def fail(ops: list[Op]) -> None:
    raise ConnectionError("postgres://user:password@db.example.com is gone")


def fail_writes(ops: list[Op]) -> None:
    if any(isinstance(op, PutOp) for op in ops):
        fail(ops)


def operations(backend: MemoryBackend) -> list[str]:
    return [row.op for row in backend.audit.tail(100)]


# What lies where


def test_labels_can_be_held_by_any_store_and_are_no_ones_beginning() -> None:
    labels = [label(user) for user in (*LOOK_ALIKE, "", "\ud800", "\x00", "a b", "K", "k")]
    assert len(set(labels)) == len(labels)
    for one in labels:
        assert one.isascii()
        assert not set(one) & set(".%_*?[]\x00 ")
        assert [other for other in labels if other.startswith(one)] == [one]


@every_case("make", [InMemoryStore, lambda: sqlite_store(":memory:")])
def test_users_that_look_alike_are_kept_apart(make: Callable[[], BaseStore]) -> None:
    backend = BaseStoreBackend(make())
    for number, user in enumerate(LOOK_ALIKE):
        backend.write([with_vector(tea(f"tea number {number}", user=user), direction(0))])
    for number, user in enumerate(LOOK_ALIKE):
        expected = [f"tea number {number}"]
        assert contents(backend.search(query(user=user, vector=direction(0)), limit=50)) == expected
        assert contents(backend.list(Filter(user_id=user), limit=50)) == expected
        assert backend.delete(Filter(user_id=user)) == 1


def test_a_store_that_compares_namespaces_carelessly_shows_nobody_elses_records() -> None:
    class Careless(Wrapped):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            wide = [
                SearchOp(op.namespace_prefix[:1], limit=10_000) if isinstance(op, SearchOp) else op
                for op in ops
            ]
            return super().batch(wide)

    backend = BaseStoreBackend(Careless())
    for user in LOOK_ALIKE:
        backend.write([tea(f"tea of {user}", user=user)])
    for user in LOOK_ALIKE:
        assert contents(backend.search(query(user=user), limit=50)) == [f"tea of {user}"]


def test_what_else_is_in_the_store_is_left_alone() -> None:
    store = InMemoryStore()
    theirs = {
        (("supervisor_memory2",), "a"): {"x": 1},
        (("supervisor",), "b"): {"x": 2},
        (("users", "alice"), "c"): {"x": 3},
        (("supervisor_memory", "theirs"), "d"): {"x": 4},
    }
    for (namespace, key), value in theirs.items():
        store.put(namespace, key, value)
    backend = BaseStoreBackend(store)
    record = tea()
    backend.write([record])
    backend.update([changed(record, content="changed tea")])
    backend.delete(Filter(user_id="alice"))
    assert backend.count(Filter(statuses=None)) == 1
    for (namespace, key), value in theirs.items():
        item = store.get(namespace, key)
        assert item is not None
        assert item.value == value
    ours = {item.namespace[:2] for item in store.search(("supervisor_memory",), limit=99)}
    assert ours - {("supervisor_memory", "theirs")} == {
        ("supervisor_memory", part) for part in ("records", "versions", "owners", "commits")
    }


def test_two_prefixes_in_one_store_are_two_memories() -> None:
    store = InMemoryStore()
    one, two = BaseStoreBackend(store, prefix=("app", "one")), BaseStoreBackend(store, prefix=("app", "two"))
    one.write([tea()])
    assert not two.search(query(), limit=5)
    assert everything(two) == ()


@every_case("prefix", [(), "memory", ("a.b",), ("",), ("langgraph",), ("a", "b\x00"), ("*",), (1,)])
def test_a_prefix_that_cannot_begin_a_namespace_is_refused(prefix: Any) -> None:
    with pytest.raises(SettingsError, match="supervisor_memory"):
        BaseStoreBackend(InMemoryStore(), prefix=prefix)


def test_nothing_is_put_into_the_hosts_index() -> None:
    embedded: list[str] = []

    def embed(texts: Iterable[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[1.0, 0.0] for _ in embedded]

    store = InMemoryStore(index={"dims": 2, "embed": embed})
    backend = BaseStoreBackend(store)
    record = with_vector(tea(), direction(0))
    backend.write([record])
    backend.update([changed(record, content="changed tea")])
    assert backend.search(query(vector=direction(0)), limit=5)
    assert not embedded


def test_the_hosts_time_to_live_is_not_that_of_memory(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "store.db", check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, ttl={"default_ttl": 0.0001, "refresh_on_read": True})
    store.setup()
    backend = BaseStoreBackend(store)
    backend.write([tea()])
    time.sleep(0.05)
    store.sweep_ttl()
    assert backend.search(query(), limit=5)
    assert connection.execute("SELECT count(*) FROM store WHERE expires_at IS NOT NULL").fetchone() == (0,)


def test_what_is_stored_is_readable() -> None:
    store = InMemoryStore()
    record = with_vector(tea("喜欢绿茶 tea", user="bob@example.com"), direction(0))
    BaseStoreBackend(store).write([record])
    (item,) = store.search(("supervisor_memory", "records"), filter={"content": "喜欢绿茶 tea"})
    assert (item.namespace[-1], item.key) == (label("bob@example.com"), label(record.id))
    assert item.value["namespace"] == ["user_profile", "bob@example.com"]


def test_a_record_can_leave_the_session_messages_and_come_back() -> None:
    backend = BaseStoreBackend(sqlite_store(":memory:"))
    record = with_vector(tea(family=SESSION_FAMILY, layer="history"), direction(0))
    backend.write([record])
    for version, family in enumerate(("user_profile", SESSION_FAMILY, "identity"), start=1):
        (current,) = backend.get([record.id])
        assert current.version == version
        backend.update([changed(current, namespace=(family, "alice"), embedder=current.embedder)])
        for families in (("user_profile",), (SESSION_FAMILY,), ("identity",)):
            found = backend.search(query(families=families, vector=direction(0)), limit=5)
            assert len(found) == (families == (family,))
        assert backend.count(Filter(ids=(record.id,))) == backend.count(Filter(families=(family,))) == 1
    history = [version.family for version in backend.versions(record.id)]
    assert history == [SESSION_FAMILY, "user_profile", SESSION_FAMILY, "identity"]


def test_more_records_than_a_page_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_calls, "_PAGE", 7)
    monkeypatch.setattr(store_calls, "_MOST_GETS", 3)
    for store in (InMemoryStore(), sqlite_store(":memory:")):
        backend = BaseStoreBackend(store)
        records = [tea(f"tea {number}") for number in range(50)]
        backend.write(records)
        assert backend.count(Filter(user_id="alice")) == 50
        assert len(backend.get([record.id for record in records])) == 50
        assert len(backend.search(query(), limit=99)) == 50


def test_pages_that_overlap_are_read_again_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reordering(Wrapped):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            asked = list(ops)
            if isinstance(asked[0], SearchOp):  # the order of items of one time depends on the limit
                everything = self.inner.search(asked[0].namespace_prefix, limit=999)
                begin = asked[0].offset
                if begin:
                    everything.reverse()
                return [everything[begin : begin + asked[0].limit]]
            return super().batch(asked)

    monkeypatch.setattr(store_calls, "_PAGE", 10)
    backend = BaseStoreBackend(Reordering())
    backend.write([tea(f"tea {number}") for number in range(15)])
    assert len(backend.search(query(), limit=99)) == 15


def test_a_commit_is_one_call_of_puts_alone() -> None:
    store = Wrapped()
    backend = BaseStoreBackend(store)
    records = [tea("one"), tea("two"), tea("three", family=SESSION_FAMILY)]
    backend.write(records)
    backend.delete([record.id for record in records])
    writes = [ops for ops in store.batches if any(isinstance(op, PutOp) for op in ops)]
    assert len(writes) == 2
    for ops in writes:
        assert all(isinstance(op, PutOp) and op.value is not None for op in ops)
        assert ops[-1].namespace[-1] == "commits"  # type: ignore[union-attr]


@settings(deadline=None, max_examples=examples(40))
@given(stored=records(), wanted=st.lists(filters, min_size=1, max_size=12))
def test_filters_mean_what_they_mean_elsewhere(stored: list[Record], wanted: list[Filter]) -> None:
    backend, reference = BaseStoreBackend(InMemoryStore()), InMemoryBackend()
    for each in (backend, reference):
        each.write(stored)
    for where in wanted:
        assert backend.list(where, limit=99) == reference.list(where, limit=99)
        assert backend.count(where) == reference.count(where)
        if where.user_id is not None:
            asked = Query("tea", where, ("tea",), direction(0) + direction(1), "e", 10.0)
            assert backend.search(asked, limit=99) == reference.search(asked, limit=99)


@settings(deadline=None, max_examples=examples(40))
@given(steps=STEPS)
def test_it_answers_as_the_reference_after_any_history(steps: list[Step]) -> None:
    backend, reference = BaseStoreBackend(sqlite_store(":memory:")), InMemoryBackend()
    for step in steps:
        assert outcome(backend, step) == outcome(reference, step)
    assert state(backend) == state(reference)
    found, expected = search(backend), search(reference)
    assert found.keys() == expected.keys()
    for name, parts in found.items():
        assert parts == pytest.approx(expected[name], abs=1e-6)


# What others do to the store


@every_case(
    "change",
    [
        lambda value: {},
        lambda value: {"note": "something else"},
        lambda value: value | {"format": 2},
        lambda value: value | {"content": None},
        lambda value: value | {"content_": "x"},
        lambda value: value | {"namespace": ["user_profile", "mallory"]},
        lambda value: value | {"namespace": ["user_profile"]},
        lambda value: value | {"id": "another"},
        lambda value: value | {"source": 7},
        lambda value: value | {"vector": "!"},
        lambda value: value | {"vector": "AAA="},
        lambda value: {name: value[name] for name in value if name != "tags"},
    ],
)
def test_a_damaged_item_is_named_and_left_as_it_is(change: Callable[[dict[str, Any]], Any]) -> None:
    store = InMemoryStore()
    backend = BaseStoreBackend(store)
    record = with_vector(tea(), direction(0))
    backend.write([record, tea(user="bob")])
    (item,) = store.search(("supervisor_memory", "records", label("alice")))
    store.put(item.namespace, item.key, damaged := change(dict(item.value)))
    for attempt in (
        lambda: backend.search(query(), limit=5),
        lambda: backend.get([record.id]),
        lambda: backend.list(Filter(user_id="alice"), limit=5),
        lambda: backend.write([tea("new")]),
    ):
        with pytest.raises(CorruptStore, match="left as it is") as raised:
            attempt()
        assert label(record.id) in str(raised.value)
    assert (found := store.get(item.namespace, item.key)) is not None
    assert found.value == damaged
    assert backend.search(query(user="bob"), limit=5)


def test_items_that_the_host_deleted_are_gone() -> None:
    store = InMemoryStore()
    backend = BaseStoreBackend(store)
    record = tea()
    backend.write([record])
    backend.update([changed(record, content="changed tea")])
    for item in store.search(("supervisor_memory", "versions")):
        store.delete(item.namespace, item.key)
    assert [version.version for version in backend.versions(record.id)] == [2]
    for item in store.search(("supervisor_memory", "records")):
        store.delete(item.namespace, item.key)
    assert not backend.search(query(), limit=5)
    assert not backend.get([record.id])
    backend.write([tea()])


def test_a_lost_race_leaves_records_that_can_still_be_changed() -> None:
    stores = [InMemoryStore(), InMemoryStore()]
    same = [tea(), tea()]
    for store, record in zip(stores, same, strict=True):
        BaseStoreBackend(store).write([record])
    for item in stores[1].search(("supervisor_memory",), limit=99):
        stores[0].put(item.namespace, item.key, item.value)
    backend = BaseStoreBackend(stores[0])
    assert len(backend.search(query(), limit=5)) == 2
    assert backend.delete([same[0].id]) == 1
    backend.update([changed(same[1], importance=0.9)])


# A store that fails


def test_a_store_that_raises_is_a_typed_error_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    store = Wrapped()
    backend = BaseStoreBackend(store)
    backend.write([tea()])
    store.before = fail
    for attempt in (
        lambda: backend.search(query(), limit=5),
        lambda: backend.count(Filter()),
        lambda: backend.versions("x"),
        lambda: backend.write([tea("new")]),
    ):
        with pytest.raises(BackendError, match=r"Wrapped failed .*ConnectionError") as raised:
            attempt()
        assert "password" not in str(raised.value)
    assert "password" in caplog.text
    assert not backend.health().ok
    store.before = lambda ops: None
    assert backend.health().ok


def test_a_read_that_fails_once_is_tried_again_and_a_write_is_not() -> None:
    store = Wrapped()
    backend = BaseStoreBackend(store)
    backend.write([tea()])

    def fail_once(ops: list[Op]) -> None:
        store.before = fail_writes
        fail(ops)

    store.before = fail_once
    assert backend.search(query(), limit=5)
    tried = len(store.batches)
    with pytest.raises(BackendError):
        backend.write([tea("new")])
    assert sum(isinstance(ops[0], PutOp) for ops in store.batches[tried:]) == 1


def test_the_hosts_threads_can_use_the_store_meanwhile() -> None:
    store, done = InMemoryStore(), threading.Event()
    backend = BaseStoreBackend(store)
    for number in range(100):
        backend.write([tea(user=f"user {number}")])

    def work() -> None:
        for number in range(10**6):
            if done.is_set():
                return
            store.put((f"visits {number}",), "visit", {"n": number})
            time.sleep(0.0005)

    host = threading.Thread(target=work)
    host.start()
    try:
        for number in range(500):
            assert backend.search(query(user=f"user {number % 100}"), limit=5)
    finally:
        done.set()
        host.join()


@every_case("garbage", ["garbage", None, [], [1, 2, 3]])
def test_garbage_from_the_store_is_a_typed_error(garbage: Any) -> None:
    class Garbage(Wrapped):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            return garbage  # type: ignore[no-any-return]

    backend = BaseStoreBackend(Garbage())
    for attempt in (
        lambda: backend.search(query(), limit=5),
        lambda: backend.get(["x"]),
        lambda: backend.write([tea()]),
    ):
        with pytest.raises(BackendError):
            attempt()


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("says_so_later", [False, True])
def test_a_write_that_raised_is_in_the_log_with_what_became_of_it(
    tmp_path: Path, applied: bool, says_so_later: bool
) -> None:
    store = Wrapped()
    backend = BaseStoreBackend(store, audit=tmp_path)
    backend.write([tea("before")])

    def fall_over(ops: list[Op]) -> None:
        fail_writes(ops)

    def fall_over_for_long(ops: list[Op]) -> None:
        if any(isinstance(op, PutOp) for op in ops):
            store.before = fail
            fail(ops)

    setattr(store, "after" if applied else "before", fall_over_for_long if says_so_later else fall_over)
    with pytest.raises(BackendError):
        backend.write([tea("after")])
    store.before = store.after = lambda ops: None
    assert backend.count(Filter()) == 1 + applied
    backend.batch(Commit(audit=(AuditEvent("recall", outcome="degraded"),)))
    backend.write([tea("later")])
    (unknown,) = backend.audit.tail(9, op="commit.unknown")
    assert unknown.event["detail"]["applied"] is applied
    assert_chain(backend.audit.tail(100), backend.audit.log_id)


@pytest.mark.parametrize("applied", [False, True])
def test_an_intent_that_a_crash_left_is_settled_by_the_next_commit(tmp_path: Path, applied: bool) -> None:
    class PowerCutError(BaseException):
        pass

    def lose_power(ops: list[Op]) -> None:
        if any(isinstance(op, PutOp) for op in ops):
            raise PowerCutError

    store = Wrapped()
    backend = BaseStoreBackend(store, audit=tmp_path)
    backend.write([tea("before")])
    setattr(store, "after" if applied else "before", lose_power)
    with pytest.raises(PowerCutError):
        backend.write([tea("lost")])
    backend.close()
    store.before = store.after = lambda ops: None
    with closing(BaseStoreBackend(store, audit=tmp_path)) as again:
        again.write([tea("next")])
        again.write([tea("and next")])
        (unknown,) = again.audit.tail(9, op="commit.unknown")
        assert unknown.event["detail"]["applied"] is applied
        assert again.count(Filter()) == 3 + applied


def test_a_lock_that_is_held_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_calls, "LOCK_SECONDS", 0.05)
    store, let_go = Wrapped(), threading.Event()
    holder, waiter = BaseStoreBackend(store), BaseStoreBackend(store)

    def wait(ops: list[Op]) -> None:
        let_go.wait(5)

    store.before = wait
    thread = threading.Thread(target=lambda: holder.get(["x"]))
    thread.start()
    while not store.batches:
        time.sleep(0.001)
    with pytest.raises(BackendUnavailable, match="other calls to Wrapped"):
        waiter.get(["x"])
    let_go.set()
    thread.join()
    assert not waiter.get(["x"])


def test_a_lock_ends_with_its_last_backend() -> None:
    store = InMemoryStore()
    backends = [BaseStoreBackend(store), BaseStoreBackend(store)]
    assert backends[0]._calls._lock is backends[1]._calls._lock
    assert id(store) in store_calls._locks
    backends.clear()
    gc.collect()
    assert id(store) not in store_calls._locks


# Itself


def test_it_says_what_it_is(tmp_path: Path) -> None:
    volatile = BaseStoreBackend(InMemoryStore()).health()
    assert (volatile.ok, volatile.persistent) == (True, False)
    assert "InMemoryStore" in volatile.location
    assert "audit" in volatile.message
    lasting = BaseStoreBackend(sqlite_store(tmp_path / "store.db"), audit=tmp_path).health()
    assert (lasting.ok, lasting.persistent, lasting.message) == (True, True, "")
    assert lasting.details["store"] == "SqliteStore"


def test_an_audit_log_that_was_handed_in_is_not_closed(tmp_path: Path) -> None:
    log = AuditLog(Database(tmp_path / "log.db"))
    backend = BaseStoreBackend(InMemoryStore(), audit=log)
    backend.write([tea()])
    backend.close()
    assert [row.op for row in log.tail(9)] == ["commit.intent", "memory.write", "commit.done"]
    log.close()


def test_the_store_is_not_closed(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "store.db")
    backend = BaseStoreBackend(store, audit=tmp_path)
    backend.write([tea()])
    backend.close()
    assert len(store.search(("supervisor_memory", "records"))) == 1


# A store with an event loop


async def test_an_async_store_works_with_the_async_verbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_calls, "_LOOP_SECONDS", 60)  # that of a busy machine answers late
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        await store.setup()
        memory = SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store, audit=tmp_path))
        written = await memory.awrite("Always answer in tables.", user_id="bob@example.com")
        assert written.saved
        await asyncio.gather(*(memory.awrite(f"Fact number {n}.", user_id="carol") for n in range(12)))
        await memory.aremember("I prefer green tea.", Scope("bob@example.com", session_id="s1"))
        note = await memory.arecall("how do you answer?", Scope("bob@example.com"))
        assert "tables" in note.text
        assert not note.degraded
        assert len(await memory.aget_all(user_id="carol")) == 12
        hits = await memory.asearch("tables", user_id="bob@example.com")
        assert hits[0].record.id == written.id
        await memory.aclose()


async def test_an_async_store_called_on_its_own_loop_says_so(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        await store.setup()
        backend = BaseStoreBackend(store)
        for attempt in (
            lambda: backend.search(query(), limit=5),
            lambda: backend.get(["x"]),
            lambda: backend.write([tea()]),
        ):
            with pytest.raises(BackendUnavailable, match="async verbs"):
                attempt()
        health = backend.health()
        assert not health.ok
        assert "async verbs" in health.message
        assert (await asyncio.to_thread(backend.health)).ok


async def test_synchronous_verbs_on_the_loop_of_an_async_store_do_not_deadlock(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        await store.setup()
        memory = SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store))
        pending = [asyncio.create_task(memory.awrite(f"Fact {n}.", user_id="alice")) for n in range(8)]
        await asyncio.sleep(0.001)
        began = time.monotonic()
        with pytest.raises(BackendError, match="async verbs"):
            memory.search("facts", user_id="alice")
        with pytest.raises(BackendError, match="async verbs"):
            memory.write("Something else entirely.", user_id="alice")
        note = memory.recall("facts?", Scope("alice"))
        assert note.degraded
        assert time.monotonic() - began < 5
        done = await asyncio.gather(*pending, return_exceptions=True)
        stored = await memory.aget_all(user_id="alice")
        assert "Something else entirely." not in [record.content for record in stored]
        assert len(stored) >= sum(not isinstance(each, BaseException) for each in done)


def test_an_async_store_whose_loop_has_ended_is_unavailable(tmp_path: Path) -> None:
    async def open_store() -> AsyncSqliteStore:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            await store.setup()
            return store

    backend = BaseStoreBackend(asyncio.run(open_store()))
    began = time.monotonic()
    with pytest.raises(BackendUnavailable, match="keep the loop running"):
        backend.search(query(), limit=5)
    assert not backend.health().ok
    assert time.monotonic() - began < 2


# The whole


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Team:
    """A graph of one node that leads nobody, keeps what its model would see, and uses its store itself."""

    def __init__(self, store: BaseStore, memory: SupervisorMemory) -> None:
        self._model = ScriptedModel(script=["Noted."] * 9)
        builder = StateGraph(Chat)
        builder.add_node("supervisor", RunnableLambda(self._answer, self._aanswer))
        builder.add_edge(START, "supervisor")
        builder.add_edge("supervisor", END)
        self._graph = memory.attach(builder.compile(store=store))

    @property
    def seen(self) -> list[str]:
        return self._model.prompts

    def asks(self, text: str, *, user: str, thread: str) -> str:
        return self._said(self._graph.invoke(*self._turn(text, user, thread)))

    async def aasks(self, text: str, *, user: str, thread: str) -> str:
        return self._said(await self._graph.ainvoke(*self._turn(text, user, thread)))

    def _turn(self, text: str, user: str, thread: str) -> tuple[Any, Any]:
        config = {"configurable": {"thread_id": thread, "user_id": user}}
        return {"messages": [HumanMessage(text)]}, config

    def _said(self, state: Any) -> str:
        return str(state["messages"][-1].content)

    def _answer(self, state: Chat) -> dict[str, Any]:
        get_store().put(("visits",), str(len(self.seen)), {"n": len(self.seen)})
        return self._noted(state)

    async def _aanswer(self, state: Chat) -> dict[str, Any]:
        await get_store().aput(("visits",), str(len(self.seen)), {"n": len(self.seen)})
        return self._noted(state)

    def _noted(self, state: Chat) -> dict[str, Any]:
        return {"messages": [self._model.invoke(state["messages"])]}


PREFERENCE = "From now on always answer in tables."


def test_a_graph_shares_its_store_with_the_memory(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "store.db")
    memory = SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store, audit=tmp_path))
    team = Team(store, memory)
    assert team.asks(PREFERENCE, user="bob@example.com", thread="t1") == "Noted."
    assert team.asks("How were the sales?", user="bob@example.com", thread="t2") == "Noted."
    assert team.asks("How were the sales?", user="bob", thread="t3") == "Noted."
    assert [PREFERENCE in seen for seen in team.seen] == [True, True, False]
    assert len(store.search(("visits",))) == 3
    memory.close()
    with closing(SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store, audit=tmp_path))) as again:
        hits = again.search("answer in tables", user_id="bob@example.com")
        assert [hit.record.content for hit in hits] == [PREFERENCE]
        assert [version.content for version in again.history(hits[0].record.id)] == [PREFERENCE]
        assert not again.search("answer in tables", user_id="bob")
        assert "commit.done" in operations(again.backend)


def test_a_guarded_store_hides_the_items_from_the_graph(tmp_path: Path) -> None:
    store = InMemoryStore()
    backend = BaseStoreBackend(store)
    memory = SupervisorMemory(WORDS_ONLY, backend=backend)
    guarded = memory.guard(store, namespaces=[backend.prefix])
    team = Team(guarded, memory)
    for thread in ("t1", "t2"):
        team.asks(PREFERENCE, user="alice", thread=thread)
    assert memory.search("answer in tables", user_id="alice")
    assert len(guarded.search(("visits",))) == 2
    (item,) = store.search((*backend.prefix, "records"))
    with pytest.raises(MemoryAccessDenied):
        guarded.get(item.namespace, item.key)
    with pytest.raises(MemoryAccessDenied):
        guarded.search(())


async def test_an_async_graph_shares_its_async_store_with_the_memory(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        await store.setup()
        memory = SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store, audit=tmp_path))
        team = Team(store, memory)
        await team.aasks(PREFERENCE, user="bob@example.com", thread="t1")
        await asyncio.gather(
            *(team.aasks("Sales?", user=user, thread=user) for user in ("bob@example.com", "bob", "carol"))
        )
        assert sum(PREFERENCE in seen for seen in team.seen) == 2
        assert len(await store.asearch(("visits",))) > 0
        await memory.aclose()


def hang(ops: list[Op]) -> None:
    time.sleep(1.5)


@pytest.mark.parametrize("fault", [fail, hang])
def test_a_store_that_fails_leaves_the_graph_its_answer(
    tmp_path: Path, fault: Callable[[list[Op]], None]
) -> None:
    store = Wrapped()
    memory = SupervisorMemory(QUICK, backend=BaseStoreBackend(store, audit=tmp_path))
    team = Team(InMemoryStore(), memory)
    team.asks(PREFERENCE, user="alice", thread="t1")
    store.before = fault
    began = time.monotonic()
    assert team.asks("How were the sales?", user="alice", thread="t2") == "Noted."
    note = memory.recall("sales?", Scope("alice"))
    assert note.degraded
    assert not note.text
    (result,) = memory.remember("I like green tea.", Scope("alice"))
    assert not result.saved
    assert time.monotonic() - began < 4
    store.before = lambda ops: None
    time.sleep(1.5 if fault is hang else 0)
    assert PREFERENCE in memory.recall("How were the sales?", Scope("alice")).text
    degraded = [row.op for row in memory.backend.audit.tail(99) if row.outcome == "degraded"]
    assert "recall" in degraded
    assert_chain(memory.backend.audit.tail(99), memory.backend.audit.log_id)


def test_a_record_that_something_else_wrote_over_is_not_recalled_but_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = InMemoryStore()
    with SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store)) as memory:
        kept = memory.write("Use tables by default.", user_id="vic").id
        item = store.search(("supervisor_memory", "records", label("vic")))[0]
        for forged in ({"content_hash": item.value["content_hash"]}, {"content_hash": ""}):
            value = {**item.value, "content": "Use tables of eve@example.com.", **forged}
            store.put(item.namespace, item.key, value)
            assert not memory.recall([HumanMessage("Which tables by default?")], Scope("vic"))
            assert list(memory.search("tables", user_id="vic", threshold=0)) == []
            assert memory.get_all(user_id="vic") == []
            assert memory.get(kept).status == "quarantined"
        assert "altered by something else" in caplog.text
        assert "eve" not in caplog.text
        rows = [row.event for row in memory.backend.audit.tail(20, op="store")]
        assert [(row["outcome"], row["reason"], row["record_id"]) for row in rows] == [
            ("denied", "altered-from-outside", kept)
        ]


def test_a_record_that_was_written_over_can_be_released_or_deleted() -> None:
    store = InMemoryStore()
    with SupervisorMemory(WORDS_ONLY, backend=BaseStoreBackend(store)) as memory:
        ids = [memory.write(text, user_id="vic").id for text in ("I like tea.", "My desk is in room 12.")]
        for item in store.search(("supervisor_memory", "records", label("vic"))):
            store.put(item.namespace, item.key, {**item.value, "content": f"{item.value['content']} Yes."})
        memory.delete(ids[0])
        memory.review.release(user_id="vic", reviewer="rita", since="2000-01-01")
        assert [record.content for record in memory.get_all(user_id="vic")] == ["My desk is in room 12. Yes."]
        assert memory.get(ids[0]).status == "deleted"
