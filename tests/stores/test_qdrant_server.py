"""Qdrant over HTTP: the contract with a server, and what a server, a network or another instance does."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, BackendUnavailable, Conflict, SettingsError
from supervisor_memory.model.records import AuditEvent, Filter, Record, new_id
from supervisor_memory.reading.doctor import diagnose
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.stores.qdrant import calls as qdrant_calls
from supervisor_memory.stores.qdrant.calls import QdrantCalls
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.testing.backend_contract import Limit, PersistentBackendContract
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
from tests.breadth import size
from tests.stores.qdrant_double import Answer, Asked, QdrantDouble, broken, running

BATCH = "POST /collections/*/points/batch"
QUERY = "POST /collections/*/points/query/batch"
QUICK = Settings(embedding_model="none", search_timeout_ms=400, write_timeout_ms=400)
_instances = count()


def client_of(double: QdrantDouble) -> QdrantClient:
    """A client as another instance has it: with an address of its own, so that no lock is shared."""
    # No certificates are read, of which a client of `http:` has no use: 40 ms of each test.
    url = f"{double.url}/instance{next(_instances)}"
    return QdrantClient(url=url, check_compatibility=False, verify=False)


@pytest.fixture
def double() -> Iterator[QdrantDouble]:
    with running(QdrantDouble()) as server:
        yield server


@pytest.mark.one_in(16, shift=3)
class TestServer(PersistentBackendContract):
    """Each handle is an instance of its own, as in another process, over one audit log."""

    limits: ClassVar[Mapping[Limit, str]] = {
        "decides across handles": "Qdrant compares and sets one point, and knows nothing of wordings",
        "is whole after a kill": "Qdrant has no transactions; a killed commit can leave parts",
    }

    @pytest.fixture
    def backend(self, double: QdrantDouble, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = QdrantBackend(client_of(double), audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, double: QdrantDouble, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client_of(double), audit=tmp_path)


class Instances:
    """As many instances over the server as a test wants, each with a lock and an audit log of its own."""

    def __init__(self, double: QdrantDouble, **options: Any) -> None:
        self._double = double
        self._options = options
        self._made: list[QdrantBackend] = []

    def __call__(self) -> QdrantBackend:
        self._made.append(QdrantBackend(client_of(self._double), **self._options))
        return self._made[-1]


@pytest.fixture
def instance(double: QdrantDouble) -> Instances:
    return Instances(double)


def once(double: QdrantDouble, what: str, do: Callable[[Asked], Answer | None]) -> None:
    """Do something before the server answers the next request of a kind, or instead."""

    def before(asked: Asked) -> Answer | None:
        if asked.what != what or asked.collection.endswith("versions"):
            return None
        double.before = lambda _: None
        return do(asked)

    double.before = before


def doing(do: Callable[[], object]) -> Callable[[Asked], None]:
    """What another instance does at that moment."""

    def done(_: Asked) -> None:
        do()

    return done


def operations(backend: MemoryBackend) -> list[str]:
    return [row.op for row in backend.audit.tail(100)]


def last_answer(backend: MemoryBackend) -> object:
    return backend.audit.tail(1, op="commit.unknown")[0].event["detail"]["applied"]


# What is asked of the server


def test_changes_are_conditional_and_waited_for(double: QdrantDouble, instance: Instances) -> None:
    backend = instance()
    record = with_vector(tea(), direction(0))
    backend.write([record])
    backend.update([changed(record, content="changed tea", embedder=record.embedder)])
    backend.delete([record.id])
    writes = [asked for asked in double.asked if asked.what == BATCH]
    upserts = [each["upsert"] for asked in writes for each in asked.body["operations"]]
    assert all("wait=true" in asked.parameters and "ordering=strong" in asked.parameters for asked in writes)
    here = [
        upsert
        for upsert in upserts
        if "record" in upsert["points"][0]["payload"] and upsert["update_mode"] != "upsert"
    ]
    assert [upsert["update_mode"] for upsert in here] == ["insert_only", "update_only", "update_only"]
    for version, upsert in enumerate(here[1:], start=1):
        keys = {condition["key"] for condition in upsert["update_filter"]["must"]}
        assert keys == {"version", "commit"}
        assert upsert["update_filter"]["must"][0]["match"] == {"value": version}


def test_nothing_is_ever_deleted_by_a_filter(double: QdrantDouble, instance: Instances) -> None:
    backend = instance()
    backend.write([tea(f"tea {n}") for n in range(3)])
    backend.delete(Filter(user_id="alice"))
    assert not [asked for asked in double.asked if "delete" in asked.what]


def test_the_user_is_the_tenant_and_no_graph_spans_users(double: QdrantDouble, instance: Instances) -> None:
    instance().write([with_vector(tea(), direction(0)), tea("words tea")])
    made = {a.collection: a.body for a in double.asked if a.what == "PUT /collections/*"}
    (dense,) = [body["vectors"]["dense"] for name, body in made.items() if "compass" in name]
    assert (dense["size"], dense["distance"]) == (8, "Cosine")
    assert (dense["hnsw_config"]["m"], dense["hnsw_config"]["payload_m"]) == (0, 16)
    for name, body in made.items():
        assert double.indexes[name]["user"]["is_tenant"]
        if not name.endswith("versions"):
            assert body["sparse_vectors"]["words"]["modifier"] == "idf"
            assert [k for k, index in double.indexes[name].items() if index.get("is_tenant")] == ["user"]


def test_a_search_asks_each_collection_of_its_families_once(
    double: QdrantDouble, instance: Instances
) -> None:
    backend = instance()
    for family in ("user_profile", "domain_facts", "identity"):
        backend.write([with_vector(tea(family=family), direction(0)), tea("words tea", family=family)])
    double.asked.clear()
    found = backend.search(query(families=("user_profile", "identity"), vector=direction(0)), limit=5)
    assert len(found) == 4
    assert [asked.what for asked in double.asked] == ["GET /collections", *[QUERY] * 4]


def test_the_key_goes_to_the_server_and_nowhere_else(double: QdrantDouble) -> None:
    with pytest.warns(UserWarning, match="insecure"):
        client = QdrantClient(url=double.url, api_key="s3cret-key", check_compatibility=False)
    backend = QdrantBackend(client)
    backend.write([tea()])
    assert {asked.headers["api-key"] for asked in double.asked} == {"s3cret-key"}
    double.before = broken(403, "s3cret-key")
    with pytest.raises(BackendUnavailable, match="QDRANT_KEY") as raised:
        backend.search(query(), limit=5)
    assert "s3cret" not in str(raised.value) + str(raised.value.facts) + str(backend.health())


def test_a_collection_whose_maker_died_gets_its_indexes(double: QdrantDouble, instance: Instances) -> None:
    record = tea()
    instance().write([record])
    double.indexes.clear()
    assert contents(instance().list(Filter(user_id="alice"), limit=5)) == ["likes green tea"]
    double.indexes.clear()
    instance().update([changed(record, content="changed tea")])
    assert contents(instance().search(query(), limit=5)) == ["changed tea"]


def test_an_async_client_is_refused() -> None:
    with pytest.raises(SettingsError, match="QdrantClient"):
        QdrantBackend(AsyncQdrantClient(":memory:"))  # type: ignore[arg-type]  # that is what is tested


# What the server does


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (Answer("secret text", status=500), BackendUnavailable, "status 500"),
        (Answer("secret text", status=503), BackendUnavailable, "status 503"),
        (Answer("secret text", status=429), BackendUnavailable, "asked too much"),
        (Answer("x", status=429, headers={"Retry-After": "3"}), BackendUnavailable, "asked too much"),
        (Answer("x", status=429, headers={"Retry-After": "soon"}), BackendError, "failed in a"),
        (Answer("secret text", status=401), BackendUnavailable, "QDRANT_KEY"),
        (Answer("secret text", status=400), BackendError, "does not take the request"),
        (Answer("secret text", status=404), BackendError, "does not take the request"),
        (Answer(raw=b"<html>secret text</html>"), BackendError, "JSONDecodeError"),
        (Answer(raw=b'{"result": 7}'), BackendError, "address of a Qdrant server"),
        (Answer(raw=b'{"result": null}'), BackendError, "address of a Qdrant server|nothing"),
        (Answer(status=302, headers={"Location": "/elsewhere"}), BackendUnavailable, "redirects"),
    ],
    ids=range(12),
)
def test_whatever_a_server_answers_is_an_error_of_ours(
    double: QdrantDouble, instance: Instances, answer: Answer, error: type[BackendError], says: str
) -> None:
    backend = instance()
    record = with_vector(tea(), direction(0))
    backend.write([record])
    double.before = lambda _: answer
    calls: list[Callable[[], object]] = [
        lambda: backend.search(query(vector=direction(0)), limit=5),
        lambda: backend.get([record.id]),
        lambda: backend.list(Filter(user_id="alice"), limit=5),
        lambda: backend.count(Filter(user_id="alice")),
        lambda: backend.versions(record.id),
        lambda: backend.write([tea("more tea")]),
        lambda: backend.update([changed(record, content="changed")]),
        lambda: backend.delete([record.id]),
    ]
    for call in calls:
        with pytest.raises(error, match=says) as raised:
            call()
        assert "secret" not in str(raised.value)
        assert not isinstance(raised.value, Conflict)
    assert not backend.health().ok
    assert backend.health().message
    double.before = lambda _: None
    assert everything(backend) == [record] or everything(backend) == (record,)
    assert backend.health().ok


def test_searches_do_not_list_the_collections_each_time(
    double: QdrantDouble, instance: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_calls, "_LATELY", 1_000.0)
    backend = instance()
    backend.write([tea()])
    double.asked.clear()
    for _ in range(5):
        assert contents(backend.search(query(), limit=5)) == ["likes green tea"]
    asked = [each.what for each in double.asked]
    assert asked.count(QUERY) == 5
    assert asked.count("GET /collections") == 1


def test_a_collection_that_another_process_makes_is_searched_once_the_list_is_old(
    instance: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_calls, "_LATELY", 1_000.0)
    one, other = instance(), instance()
    assert not one.search(query(), limit=5)
    other.write([tea()])
    monkeypatch.setattr(QdrantCalls, "_made_one", 0.0)  # as it is where another process made it
    assert not one.search(query(), limit=5)
    monkeypatch.setattr(qdrant_calls, "_LATELY", 0.0)
    assert contents(one.search(query(), limit=5)) == ["likes green tea"]


def test_no_redirect_is_followed(double: QdrantDouble) -> None:
    with running(QdrantDouble()) as elsewhere:
        double.before = lambda _: Answer(status=307, headers={"Location": f"{elsewhere.url}/collections"})
        with closing(opened(double.url)) as backend, pytest.raises(BackendUnavailable, match="redirects"):
            backend.count(Filter())
        assert not elsewhere.asked


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        backend = opened(f"http://127.0.0.1:{taken.getsockname()[1]}")
        start = time.monotonic()
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            backend.count(Filter())
        assert backend.search(query(), limit=5).degraded
        assert time.monotonic() - start < 1
        backend.close()


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
def test_only_completed_counts_as_done(double: QdrantDouble, instance: Instances, status: str) -> None:
    def accepted(asked: Asked, answer: Answer) -> Answer:
        if asked.what != BATCH:
            return answer
        return Answer([{"operation_id": 1, "status": status} for _ in asked.body["operations"]])

    backend = instance()
    backend.write([tea()])
    double.after = accepted
    with pytest.raises(BackendUnavailable, match="without completing"):
        backend.write([tea("more tea")])


def test_a_server_that_trickles_holds_up_no_turn(double: QdrantDouble) -> None:
    backend = QdrantBackend(client_of(double))
    backend.write([tea("I like green tea.")])  # collections and indexes take longer than a turn may
    memory = SupervisorMemory(QUICK, backend=backend)
    double.after = lambda asked, answer: replace(answer, pause=0.05)
    start = time.monotonic()
    note = memory.recall("what tea do I like?", scope=Scope("alice"))
    assert time.monotonic() - start < 2
    assert note.degraded
    double.after = lambda asked, answer: answer
    memory.close()


def test_records_of_others_in_an_answer_are_dropped_and_audited(
    double: QdrantDouble, instance: Instances
) -> None:
    backend = instance()
    mine = with_vector(tea("my tea"), direction(0))
    theirs = with_vector(tea("their tea", user="mallory"), direction(0))
    backend.write([mine, theirs, tea("deleted tea", status="deleted"), tea("old tea", expires_at=1.0)])

    def unfiltered(asked: Asked) -> Answer | None:
        if asked.what != QUERY:
            return None
        searches = [dict(search, filter=None) for search in asked.body["searches"]]
        return double.apply(replace(asked, body={"searches": searches}))

    double.before = unfiltered
    found = backend.search(query(vector=direction(0)), limit=5)
    assert contents(found) == ["my tea"]
    (row,) = backend.audit.tail(5, op="search")
    assert (row.outcome, row.event["reason"]) == ("denied", "foreign-hit")
    assert backend.audit.tail(5, user_id="alice", op="search") == (row,)
    assert "mallory" not in str(row)


# Commits that are cut off


def applied_in_part(double: QdrantDouble, parts: int) -> Callable[[Asked], Answer]:
    """The server makes the first changes of a request and fails."""

    def do(asked: Asked) -> Answer:
        operations = [
            {"upsert": {**each["upsert"], "points": [point]}}
            for each in asked.body["operations"]
            for point in each["upsert"]["points"]
        ]
        double.apply(replace(asked, body={"operations": operations[:parts]}))
        return Answer("disk full", status=500)

    return do


def three_changes(backend: MemoryBackend) -> tuple[Record, Commit]:
    """A commit of two new records and a change of an old one, in one collection."""
    old = tea("old tea", subject="drink", attribute="favourite")
    backend.write([old])
    new = tea("new tea", subject="drink", attribute="favourite")
    changes = (Change(new), changed(old, status="stale"), Change(tea("other tea")))
    return old, Commit(changes, (AuditEvent("memory.update", user_id="alice"),))


@pytest.mark.parametrize("parts", [0, 1, 2, 3])
def test_what_a_failed_commit_wrote_is_undone(double: QdrantDouble, instance: Instances, parts: int) -> None:
    backend = instance()
    _, commit = three_changes(backend)
    before = everything(backend)
    once(double, BATCH, applied_in_part(double, parts))
    with pytest.raises(BackendUnavailable, match="500"):
        backend.batch(commit)
    assert everything(backend) == before
    assert operations(backend)[-2:] == ["commit.intent", "commit.unknown"]
    assert last_answer(backend) is False
    backend.batch(commit)
    assert contents(backend.list(Filter(user_id="alice"), limit=9)) == ["new tea", "other tea"]
    assert_chain(backend.audit.tail(100), backend.audit.log_id)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_same_commit_given_again_is_completed(
    double: QdrantDouble, instance: Instances, parts: int
) -> None:
    backend = instance()
    old, commit = three_changes(backend)

    def die(asked: Asked) -> Answer:
        answer = applied_in_part(double, parts)(asked)
        double.before = lambda _: answer
        return answer

    once(double, BATCH, die)
    with pytest.raises(BackendUnavailable):
        backend.batch(commit)
    double.before = lambda _: None
    committed = instance().batch(commit)
    assert [(r.status, r.version) for r in committed.records] == [("active", 1), ("stale", 2), ("active", 1)]
    assert contents(backend.list(Filter(user_id="alice"), limit=9)) == ["new tea", "other tea"]
    assert [each.status for each in backend.versions(old.id)] == ["active", "stale"]
    backend.write([tea("later tea")])
    assert last_answer(backend) is True
    assert_chain(backend.audit.tail(100), backend.audit.log_id)


def test_a_commit_that_was_done_is_not_done_twice(instance: Instances) -> None:
    backend = instance()
    _, commit = three_changes(backend)
    backend.batch(commit)
    before = everything(backend)
    with pytest.raises(Conflict, match="already in the log"):
        backend.batch(commit)
    assert everything(backend) == before


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fails_at", range(1, 5))
def test_a_record_on_its_way_to_another_collection_arrives(
    double: QdrantDouble, instance: Instances, fails_at: int
) -> None:
    """Whichever of its writes was the last that the server got."""
    backend = instance()
    record = with_vector(tea(), direction(0))
    backend.write([record])
    writes = count()

    def dying(asked: Asked) -> Answer | None:
        if asked.what == BATCH and next(writes) >= fails_at:
            double.before = broken(500)
            return Answer("gone", status=500)
        return None

    double.before = dying
    with pytest.raises(BackendUnavailable):
        backend.update([changed(record, namespace=("identity", "alice"), embedder=record.embedder)])
    double.before = lambda _: None
    other = instance()
    (present,) = other.get([record.id])
    families = {1: "user_profile"}.get(fails_at, "identity")
    assert present.family == families
    backend.write([tea("later tea")])
    for each in (backend, other):
        found = each.search(query(families=(families,), vector=direction(0)), limit=5)
        assert [{"cosine", "bm25"} < {*hit.parts} for hit in found if hit.record.id == record.id] == [True]
        assert each.count(Filter(ids=(record.id,))) == 1
    other.update([changed(present, content="and again", embedder=present.embedder)])
    assert [v.version for v in backend.versions(record.id)] == list(range(1, present.version + 2))


# Other instances


def test_of_instances_that_change_one_record_each_wins_once(instance: Instances) -> None:
    backends = [instance() for _ in range(3)]
    record = tea(metadata={"count": 0})
    backends[0].write([record])

    def count_up(number: int) -> None:
        backend = backends[number % 3]
        while True:
            current = backend.get([record.id])[0]
            metadata = {"count": current.metadata["count"] + 1}
            try:
                backend.update([Change(replace(current, metadata=metadata), expects=current.version)])
            except Conflict:
                continue
            return

    changes = size(18, less=9)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(count_up, range(changes)))
    assert backends[1].get([record.id])[0].metadata == {"count": changes}
    versions = backends[2].versions(record.id)
    assert [version.metadata["count"] for version in versions] == list(range(changes + 1))


def test_the_window_two_instances_can_keep_the_same_words(double: QdrantDouble, instance: Instances) -> None:
    """What Qdrant cannot promise, as the docstring says; it shows at the next change."""
    one, two = instance(), instance()
    once(double, BATCH, doing(lambda: two.write([tea("likes tea")])))
    one.write([tea("likes tea")])
    assert one.count(Filter(user_id="alice")) == 2
    with pytest.raises(Conflict):
        one.write([tea("likes tea")])


def test_of_two_instances_that_bring_one_id_the_first_wins(double: QdrantDouble, instance: Instances) -> None:
    one, two = instance(), instance()
    record = tea()
    once(double, BATCH, doing(lambda: two.write([replace(record, content="theirs", content_hash="")])))
    with pytest.raises(Conflict) as raised:
        one.write([record, tea("beside it")])
    assert (raised.value.facts["what"], raised.value.facts["record_id"]) == ("id", record.id)
    assert contents(everything(one)) == ["theirs"]


def test_a_commit_that_loses_a_race_leaves_nothing_behind(double: QdrantDouble, instance: Instances) -> None:
    one, two = instance(), instance()
    old, commit = three_changes(one)
    once(double, BATCH, doing(lambda: two.update([changed(old, content="changed first")])))
    with pytest.raises(Conflict) as raised:
        one.batch(commit)
    assert (raised.value.facts["what"], raised.value.facts["record_id"]) == ("version", old.id)
    assert contents(everything(one)) == ["changed first"]
    assert [version.content for version in one.versions(old.id)] == ["old tea", "changed first"]
    assert last_answer(one) is False
    assert_chain(one.audit.tail(100), one.audit.log_id)


def test_an_erased_record_does_not_come_back_through_an_update(
    double: QdrantDouble, instance: Instances
) -> None:
    backend = instance()
    for move in ({}, {"namespace": ("identity", "alice")}):
        record = tea(f"tea {len(move)}")
        backend.write([record])

        def erase(asked: Asked, record: Record = record) -> None:
            body = {"points": [record.id]}
            double.apply(Asked("POST /collections/*/points/delete", asked.collection, body))

        once(double, BATCH, erase)
        with pytest.raises(Conflict, match="erased"):
            backend.update([changed(record, content="changed", **move)])
        assert not backend.get([record.id])
        assert not everything(backend)


def test_writes_that_are_slow_are_waited_for(double: QdrantDouble, instance: Instances) -> None:
    """Within a process nobody decides on what another has not finished writing."""
    client = client_of(double)
    one, two = QdrantBackend(client), QdrantBackend(client)

    def slow(asked: Asked) -> None:
        time.sleep(0.3)

    once(double, BATCH, slow)
    results: list[str] = []

    def write(backend: QdrantBackend) -> None:
        try:
            backend.write([tea("likes tea")])
            results.append("written")
        except Conflict as conflict:
            results.append(conflict.facts["what"])

    threads = [threading.Thread(target=write, args=(backend,)) for backend in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["content_hash", "written"]


# By environment


def opened(url: str, **values: Any) -> MemoryBackend:
    return open_backend("qdrant", None, Settings(backend="qdrant", qdrant_url=url, **values))


def test_settings_from_the_environment_are_enough(
    double: QdrantDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MEMORY_BACKEND": "qdrant",
        "MEMORY_PATH": str(tmp_path),
        "QDRANT_URL": double.url,
        "QDRANT_PREFIX": "team",
        "MEMORY_QDRANT_COLLECTIONS": "namespace",
        "MEMORY_SEARCH_TIMEOUT_MS": "5000",
        "EMBEDDING_MODEL": "none",
    }.items():
        monkeypatch.setenv(name, value)
    with SupervisorMemory.from_env(None) as memory:
        memory.write("I prefer answers as tables.", user_id="alice", kind="user-profile")
    with SupervisorMemory.from_env(None) as memory:
        assert "tables" in memory.recall("how many flights?", scope=Scope("alice")).text
    assert all(a.collection.startswith("team~") for a in double.asked if a.collection)
    assert max(len(a.collection.split("~")) for a in double.asked) == 4
    assert (tmp_path / "journal.db").exists()


def test_doctor_shows_the_server(double: QdrantDouble, tmp_path: Path) -> None:
    settings = Settings(
        backend="qdrant", path=tmp_path / "none", qdrant_url=double.url, embedding_model="none"
    )
    instance = open_backend("qdrant", None, settings)
    instance.write([tea()])
    told = diagnose(settings)
    assert (told.backend.name, told.backend.ok, told.backend.persistent) == ("qdrant", True, True)
    assert double.url in told.backend.location
    assert told.backend.details["server"] == "1.20.0"
    assert told.capacity.active == 1
    assert not (tmp_path / "none").exists()
    double.before = broken(500)
    told = diagnose(settings)
    assert told.backend.ok is False
    assert "status 500" in told.problems[0]


# A real server


LIVE = os.environ.get("QDRANT_TEST_URL")


class TestRealServer(PersistentBackendContract):
    """Where QDRANT_TEST_URL names a Qdrant server to test with."""

    __test__ = LIVE is not None
    limits: ClassVar[Mapping[Limit, str]] = TestServer.limits

    @pytest.fixture
    def prefix(self) -> Iterator[str]:
        prefix = f"contract-{new_id()[-12:]}"
        yield prefix
        client = QdrantClient(url=LIVE, api_key=os.environ.get("QDRANT_TEST_KEY"))
        for each in client.get_collections().collections:
            if each.name.startswith(f"{prefix}~"):
                client.delete_collection(each.name)

    @pytest.fixture
    def reopen(self, prefix: str, tmp_path: Path) -> Callable[[], MemoryBackend]:
        def open_one() -> MemoryBackend:
            client = QdrantClient(url=LIVE, api_key=os.environ.get("QDRANT_TEST_KEY"))
            return QdrantBackend(client, prefix=prefix, audit=tmp_path)

        return open_one

    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> Iterator[MemoryBackend]:
        backend = reopen()
        yield backend
        backend.close()
