"""Qdrant as a backend, in local mode: the contract, and that it answers as the others do."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from supervisor_memory import Settings
from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, SettingsError
from supervisor_memory.model.records import Filter, Query, Record, Wanted
from supervisor_memory.reading.doctor import diagnose
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.testing.backend_contract import BackendContract, Limit, PersistentBackendContract
from supervisor_memory.testing.records import (
    EMBEDDER,
    changed,
    contents,
    direction,
    everything,
    query,
    tea,
    with_vector,
)
from tests.breadth import examples
from tests.cases import every_case
from tests.stores.test_filters import (
    STEPS,
    Step,
    filters,
    of_what_it_holds,
    outcome,
    records,
    search,
    state,
    usual,
)


def in_memory(**options: Any) -> QdrantBackend:
    return QdrantBackend(QdrantClient(":memory:"), **options)


class TestInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"))


@pytest.mark.one_in(6)
class TestACollectionForEachNamespace(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"), collections="namespace")


@pytest.mark.one_in(6, shift=1)
class TestLocalPath(PersistentBackendContract):
    """Only one client at a time can open a path: the handles share it, and take turns."""

    limits: ClassVar[Mapping[Limit, str]] = {
        "is whole after a kill": "the process that is killed shares its client with the one that looks"
    }

    @pytest.fixture
    def client(self, tmp_path: Path) -> Iterator[QdrantClient]:
        client = QdrantClient(path=str(tmp_path / "qdrant"), force_disable_check_same_thread=True)
        yield client
        client.close()

    @pytest.fixture
    def backend(self, client: QdrantClient, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = QdrantBackend(client, audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, client: QdrantClient, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client, audit=tmp_path)


# As the others


@settings(deadline=None, max_examples=examples(40))
@given(
    stored=records(),
    wanted=st.lists(filters | usual, min_size=1, max_size=12),
    division=st.sampled_from(("family", "namespace")),
)
def test_filters_mean_what_they_mean_elsewhere(
    stored: list[Record], wanted: list[Filter], division: str
) -> None:
    backend, reference = in_memory(collections=division), InMemoryBackend()
    for each in (backend, reference):
        each.write(stored)
    for where in (*wanted, *map(of_what_it_holds, reference.list(Filter(statuses=None), limit=99))):
        assert backend.list(where, limit=99) == reference.list(where, limit=99)
        assert backend.list(where, limit=2, offset=1) == reference.list(where, limit=2, offset=1)
        assert backend.count(where) == reference.count(where)
        if where.user_id is not None:
            asked = Query("tea", where, ("tea",), direction(0) + direction(1), "e", 10.0)
            found, expected = backend.search(asked, limit=99), reference.search(asked, limit=99)
            assert {h.record.id: set(h.parts) for h in found} == {h.record.id: set(h.parts) for h in expected}


def test_what_was_written_before_points_said_what_they_hold_is_found_by_it() -> None:
    client = QdrantClient(":memory:")
    backend = QdrantBackend(client)
    held: dict[str, Any] = {"tags": ("drink",), "metadata": {"project": "apollo"}}
    last = tea("tea at the end", updated_at=0.0, **held)
    backend.write([with_vector(tea(f"tea {n}"), direction(0)) for n in range(200)])
    backend.write([with_vector(last, direction(1)), with_vector(tea("newer tea", **held), direction(1))])
    of_old = Filter(user_id="alice")
    for collection in client.get_collections().collections:
        client.delete_payload(collection.name, ["held"], models.Filter())
    backend.update([changed(backend.list(of_old, limit=1)[0], importance=0.25)])
    where = Filter("alice", tags=("drink",), metadata=(Wanted.of("project", "apollo", 1),))
    assert contents(backend.list(where, limit=1)) == ["newer tea"]
    assert backend.count(where) == 2
    found = backend.search(Query("tea", where, ("tea",), direction(0), EMBEDDER), limit=1)
    assert {"cosine", "bm25"} < set(found[0].parts)
    assert set(contents(found)) <= {"newer tea", "tea at the end"}
    assert not backend.audit.tail(9, op="search")


@settings(deadline=None, max_examples=examples(25))
@given(steps=STEPS)
def test_it_answers_as_the_others_after_any_history(steps: list[Step]) -> None:
    backends: list[MemoryBackend] = [InMemoryBackend(), in_memory(), in_memory(collections="namespace")]
    for step in steps:
        outcomes = [outcome(backend, step) for backend in backends]
        assert outcomes[0] == outcomes[1] == outcomes[2]
    states = [state(backend) for backend in backends]
    assert states[0] == states[1] == states[2]
    expected, *others = [search(backend) for backend in backends]
    for found in others:
        assert {name: set(parts) for name, parts in found.items()} == {
            name: set(parts) for name, parts in expected.items()
        }
        for name, parts in found.items():
            assert parts.get("cosine") == pytest.approx(expected[name].get("cosine"), abs=1e-4)


def test_the_nearest_are_those_of_an_exact_search_with_the_same_cosines() -> None:
    backend, reference = in_memory(), InMemoryBackend()
    numbers = np.random.default_rng(7)
    stored = [
        replace(
            tea(f"number {n}"), vector=numbers.standard_normal(48).astype(np.float32), embedder="random@1"
        )
        for n in range(150)
    ]
    for each in (backend, reference):
        each.write(stored)
    for _ in range(20):
        asked = query("", vector=numbers.standard_normal(48).astype(np.float32), embedder="random@1")
        found, expected = backend.search(asked, limit=20), reference.search(asked, limit=20)
        assert [hit.record.id for hit in found] == [hit.record.id for hit in expected]
        cosines = [hit.parts["cosine"] for hit in found]
        assert cosines == pytest.approx([hit.parts["cosine"] for hit in expected], abs=1e-4)


def test_the_division_can_change_and_what_was_stored_before_is_still_found() -> None:
    client = QdrantClient(":memory:")
    before, after = QdrantBackend(client), QdrantBackend(client, collections="namespace")
    records = [with_vector(tea(f"tea {n}", user=f"user {n % 3}"), direction(0)) for n in range(6)]
    before.write(records[:3])
    after.write(records[3:])
    for backend in (before, after):
        assert backend.count(Filter()) == 6
        assert len(backend.search(query(user="user 1", vector=direction(0)), limit=9)) == 2
    for record in records:
        after.update([changed(record, content=f"new {record.content}", embedder=record.embedder)])
    for backend in (before, after):
        assert contents(everything(backend)) == [f"new tea {n}" for n in range(6)]
        assert all(len(backend.versions(record.id)) == 2 for record in records)
        found = backend.search(query(user="user 1", vector=direction(0)), limit=9)
        assert [{"cosine", "bm25"} < set(hit.parts) for hit in found] == [True, True]


def test_a_record_can_change_its_embedder_and_its_family_and_come_back() -> None:
    backend = in_memory()
    record = tea()
    backend.write([record])
    for family in ("identity", "user_profile", "identity"):
        for vector, embedder in ((direction(0), "one@1"), (direction(1), "two@1"), (None, None)):
            (current,) = backend.get([record.id])
            backend.update([changed(current, namespace=(family, "alice"), vector=vector, embedder=embedder)])
            assert backend.count(Filter(families=(family,))) == backend.count(Filter(statuses=None)) == 1
            if vector is not None:
                (hit,) = backend.search(query("", vector=vector, embedder=embedder), limit=5)
                assert hit.parts == {"cosine": pytest.approx(1.0), "match": pytest.approx(1.0)}
    assert len(backend.versions(record.id)) == 7  # another vector alone is no new version


def test_a_record_that_changes_nothing_but_its_embedder_can_come_back_to_a_collection() -> None:
    backend = in_memory()
    record = tea()
    backend.write([record])
    for number in (1, 2, 1, 1, 2):
        (current,) = backend.get([record.id])
        vector, embedder = direction(number), f"{number}@1"
        backend.update([changed(current, vector=vector, embedder=embedder)])
        (hit,) = backend.search(query("", vector=vector, embedder=embedder), limit=5)
        assert hit.parts == {"cosine": pytest.approx(1.0), "match": pytest.approx(1.0)}
        assert backend.count(Filter(statuses=None)) == 1
    assert len(backend.versions(record.id)) == 1


def test_two_prefixes_in_one_store_are_two_memories_and_the_rest_is_left_alone() -> None:
    client = QdrantClient(":memory:")
    client.create_collection("memory~theirs~of~another~kind", vectors_config={})
    client.create_collection("documents", vectors_config={})
    one, two = QdrantBackend(client), QdrantBackend(client, prefix="memory-2")
    one.write([tea()])
    assert not two.search(query(), limit=5)
    assert everything(two) == ()
    assert contents(everything(one)) == ["likes green tea"]
    assert client.count("documents").count == client.count("memory~theirs~of~another~kind").count == 0


@every_case("prefix", ["", "a~b", "a/b", "x" * 49, "用户", None])
def test_a_prefix_that_cannot_begin_a_name_is_refused(prefix: Any) -> None:
    with pytest.raises(SettingsError, match="memory"):
        in_memory(prefix=prefix)


def test_more_records_than_a_page_are_all_read_whatever_the_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.stores.qdrant.calls._PAGE", 7)
    monkeypatch.setattr("supervisor_memory.stores.qdrant.calls._MOST_IN_ORDER", 12)
    monkeypatch.setattr("supervisor_memory.stores.qdrant.calls.WRITTEN_TOGETHER", 3)
    backend = in_memory()
    stored = [tea(f"tea {n}", updated_at=1e9 + n // 5) for n in range(40)]
    backend.write(stored)
    expected = [r.id for r in sorted(stored, key=lambda r: (r.updated_at, r.id), reverse=True)]
    for limit, offset in ((1, 0), (4, 3), (5, 5), (11, 0), (30, 2), (99, 0)):
        page = backend.list(Filter(user_id="alice"), limit=limit, offset=offset)
        assert [record.id for record in page] == expected[offset:][:limit]
    assert len(backend.get(expected)) == 40


def test_damaged_points_are_named_and_left_alone() -> None:
    client = QdrantClient(":memory:")
    backend = QdrantBackend(client)
    record = tea()
    backend.write([record])
    for payload in (
        {"format": 2},
        {"record": "{"},
        {"record": tea("another").to_json()},
        {"version": 7},
        {"record": None},
    ):
        client.set_payload("memory~user_profile~words", payload, points=[record.id])
        with pytest.raises(CorruptStore, match=record.id):
            backend.get([record.id])
        good = {"format": 1, "record": record.to_json(), "version": 1}
        client.set_payload("memory~user_profile~words", good, points=[record.id])
    client.overwrite_payload("memory~user_profile~words", {"user": "alice"}, points=[record.id])
    with pytest.raises(CorruptStore, match="not written by this library"):
        backend.get([record.id])


def test_terms_that_share_a_number_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.stores.qdrant.points._index", lambda term: 1)
    backend = in_memory()
    backend.write([tea("green tea"), tea("black coffee")])
    assert contents(backend.search(query("coffee"), limit=5)) == ["black coffee"]


def test_what_is_stored_is_whole_in_one_point() -> None:
    client = QdrantClient(":memory:")
    record = with_vector(tea("喜欢绿茶 tea", user="bob@example.com", metadata={"big": 2**80}), direction(0))
    QdrantBackend(client).write([record])
    (name,) = [c.name for c in client.get_collections().collections if "user_profile" in c.name]
    assert name.startswith("memory~user_profile~compass-1-8-")
    (point,) = client.scroll(name, with_vectors=True)[0]
    assert point.id == record.id
    payload: Any = point.payload
    assert (payload["user"], payload["family"], payload["status"]) == (
        "bob@example.com",
        "user_profile",
        "active",
    )
    assert str(2**80) in payload["record"]
    assert isinstance(point.vector, dict)
    assert set(point.vector) == {"dense", "words"}


def test_a_closed_client_is_an_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    client = QdrantClient(":memory:")
    backend = QdrantBackend(client)
    client.close()
    with caplog.at_level(logging.CRITICAL), pytest.raises(BackendUnavailable, match="failed in a"):
        backend.search(query(), limit=5)
    assert not backend.health().ok


# By settings


def test_a_directory_is_for_one_process(tmp_path: Path) -> None:
    settings = Settings(
        backend="qdrant", path=tmp_path, qdrant_url=f"{tmp_path}/qdrant", embedding_model="none"
    )
    told = diagnose(settings)
    assert (told.backend.exists, told.backend.ok) == (False, None)
    assert not (tmp_path / "qdrant").exists()
    with closing(open_backend("qdrant", tmp_path, settings)) as backend:
        record = with_vector(tea(), direction(0))
        backend.write([record])
        with pytest.raises(BackendUnavailable, match="one process at a time"):
            open_backend("qdrant", tmp_path, settings)
    with closing(open_backend("qdrant", tmp_path, settings)) as backend:
        assert list(backend.get([record.id])) == [record]
        assert backend.search(query("", vector=direction(0)), limit=5)[0].parts["cosine"] == pytest.approx(1)
        assert backend.health().persistent
    told = diagnose(settings)
    assert (told.backend.ok, told.capacity.active) == (True, 1)


def test_memory_alone_is_volatile_and_says_so(tmp_path: Path) -> None:
    settings = Settings(
        backend="qdrant", path=tmp_path / "none", qdrant_url=":memory:", embedding_model="none"
    )
    with closing(open_backend("qdrant", settings.path, settings)) as backend:
        backend.write([tea()])
        assert contents(backend.search(query(), limit=5)) == ["likes green tea"]
    told = diagnose(settings)
    assert told.ok
    assert "not persistent" in told.warnings[0]
    assert not settings.path.exists()


@every_case(
    ("url", "says"),
    [
        (None, "set QDRANT_URL"),
        ("localhost:6333", "http://localhost:6333"),
        ("localhost", "no scheme"),
        ("file:///etc/passwd", "neither http nor https"),
        ("ftp://host", "neither http nor https"),
        ("http://user:password@host", "QDRANT_KEY"),
        ("http://host:6333/?api-key=password", "QDRANT_KEY"),
        ("http://", "names no host"),
        ("http://host:99999", "is no address"),
        ("http://ho st", "names no host"),
        ("http://169.254.169.254", "link-local"),
        ("http://169.254.1.1:6333", "link-local"),
        ("http://[fe80::1]:6333", "link-local"),
        ("http://[::ffff:169.254.169.254]", "link-local"),
        ("http://2852039166", "link-local"),
        ("http://0xa9fea9fe", "link-local"),
        ("http://metadata.google.internal", "link-local"),
        ("http://100.100.100.200", "link-local"),
        ("http://[fd00:ec2::254]", "link-local"),
    ],
)
def test_an_address_that_memory_may_not_go_to_is_refused(url: str | None, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as raised:
        open_backend("qdrant", None, Settings(backend="qdrant", qdrant_url=url))
    assert "password" not in str(raised.value).replace("a password", "")


def test_a_link_local_address_can_be_allowed() -> None:
    settings = Settings(backend="qdrant", qdrant_url="http://169.254.1.1:6333", qdrant_link_local=True)
    open_backend("qdrant", None, settings).close()


def test_names_are_resolved_before_they_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 6333))])
    with pytest.raises(SettingsError, match=r"169\.254\.169\.254"):
        open_backend("qdrant", None, Settings(backend="qdrant", qdrant_url="https://qdrant.example.com"))


def test_certificates_that_cannot_be_read_are_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "none.pem"):
        settings = Settings(backend="qdrant", qdrant_url="https://localhost", qdrant_ca=tmp_path / name)
        with pytest.raises(SettingsError, match="QDRANT_CA"):
            open_backend("qdrant", None, settings)


def test_every_key_that_filters_use_has_an_index() -> None:
    from supervisor_memory.stores.qdrant import points

    record = with_vector(tea(subject="s", attribute="a", task="t"), direction(0))
    payload: Any = points.record_point(record, None, commit="c").payload
    assert set(points.INDEXES) <= set(payload) | {"session"}
    assert set(payload) - set(points.INDEXES) == {"format", "record"}


def test_a_collection_that_another_process_makes_at_the_same_moment_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = QdrantClient(":memory:")
    make = client.create_collection

    def too_late(*given: Any, **options: Any) -> Any:
        make(*given, **options)
        return make(*given, **options)  # which refuses what is there

    def refuse(*given: Any, **options: Any) -> Any:
        raise ValueError

    monkeypatch.setattr(client, "create_collection", refuse)
    with pytest.raises(BackendError, match="creation of a collection with ValueError"):
        QdrantBackend(client).write([tea()])
    monkeypatch.setattr(client, "create_collection", too_late)
    backend = QdrantBackend(client)
    backend.write([tea()])
    assert backend.count(Filter("alice")) == 1
