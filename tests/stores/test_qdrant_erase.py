"""Erasing from Qdrant: proven, completed after every interruption, known to every instance."""

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.rows import Access
from supervisor_memory.errors import BackendError, Conflict, RecordNotFound, WasErased
from supervisor_memory.model.records import Record
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.points import INDEXES, INDEXES_OF_VERSIONS
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.testing.erasing_contract import (
    LATER,
    ErasingContract,
    SharedErasingContract,
    erase,
    left_of,
    said,
)
from supervisor_memory.testing.records import NOW, assert_chain, changed, direction, tea, with_vector
from tests.canaries import traces
from tests.cases import every_case
from tests.stores.qdrant_double import Answer, Asked, QdrantDouble, running
from tests.stores.test_qdrant_server import client_of

STEP = 1 if "QDRANT_ENGINE_TESTS" in os.environ else 8
"""Whether the server is lost at every call, or at every eighth one."""


@pytest.fixture
def double() -> Iterator[QdrantDouble]:
    with running(QdrantDouble()) as server:
        yield server


class TestInMemory(ErasingContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return QdrantBackend(QdrantClient(":memory:"))


@pytest.mark.one_in(6, shift=1)
class TestLocalPath(SharedErasingContract):
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


@pytest.mark.one_in(6)
@pytest.mark.parametrize("division", ["family", "namespace"])
class TestServer(SharedErasingContract):
    """Each handle is an instance with an audit log of its own: only the server tells of tombstones."""

    @pytest.fixture
    def backend(self, reopen: Callable[[], MemoryBackend]) -> MemoryBackend:
        return reopen()

    @pytest.fixture
    def reopen(self, double: QdrantDouble, division: str) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client_of(double), collections=division)  # type: ignore[arg-type]  # is one


# What is on the server


class Direct:
    """A server that instances call without a network: each call can be preceded by something, and fail."""

    def __init__(self) -> None:
        self.engine = QdrantClient(":memory:")
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def __call__(self, name: str, *args: Any, **options: Any) -> Any:
        self.before()
        if name == "get_collection":  # a local store has no indexes, and says so at each attempt
            return SimpleNamespace(payload_schema={**INDEXES, **INDEXES_OF_VERSIONS})
        answer = getattr(self.engine, name)(*args, **options)
        self.after()
        return answer


class Client:
    """A client of it, as one instance has it."""

    def __init__(self, server: Direct) -> None:
        self._server = server
        self.init_options = {"url": f"http://instance{next(_clients)}"}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._server, name)


_clients = count()


def dump(double: QdrantDouble | Direct, word: str = "") -> list[str]:
    """Every point there is, with its payload and vectors; those that hold a word."""
    points = [
        f"{each.name} {point.model_dump_json()}"
        for each in double.engine.get_collections().collections
        for point in double.engine.scroll(each.name, limit=10_000, with_vectors=True)[0]
    ]
    return sorted(point for point in points if word in point)


def instance(server: QdrantDouble | Direct, **options: Any) -> QdrantBackend:
    client: Any = Client(server) if isinstance(server, Direct) else client_of(server)
    return QdrantBackend(client, **options)


def filled(double: QdrantDouble | Direct, **options: Any) -> QdrantBackend:
    """A backend with two users, of whom one has something of every kind."""
    backend = instance(double, **options)
    record, old = with_vector(tea("green tea"), direction(1)), tea("old tea", task="t")
    backend.write([record, old, said(), with_vector(tea("black tea", user="bo"), direction(2))])
    backend.update([changed(record, namespace=("identity", "alice"), embedder=record.embedder)])
    backend.update([changed(old, content="older tea")])
    return backend


def of_bo(backend: MemoryBackend) -> list[str]:
    return [record.to_json() for record in left_of(backend, "bo")]


def names_nobody(double: QdrantDouble | Direct) -> bool:
    collections = [each.name for each in double.engine.get_collections().collections]
    digest = hashlib.sha256(b'["alice"]').hexdigest()[:16]
    return not dump(double, "alice") and not [name for name in collections if digest in name]


def test_nothing_on_the_server_names_the_erased_and_the_tombstone_is_no_plain_hash(
    double: QdrantDouble,
) -> None:
    backend = filled(double)
    assert erase(backend).pending == ()
    assert names_nobody(double)
    text = "".join(dump(double))
    for name in ("sha256", "sha1", "md5", "blake2b"):
        assert hashlib.new(name, b"alice").hexdigest() not in text
    assert len(dump(double, '"tombstone":"done"')) == 1
    assert len(dump(double, '"tombstone":"said"')) == 1


def test_the_receipt_says_what_a_server_keeps_for_a_while(double: QdrantDouble, tmp_path: Path) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=filled(double, audit=tmp_path))
    receipt = memory.erase(user_id="alice", confirm=True)
    assert receipt.is_complete
    assert any("optimizer" in line and "snapshots" in line for line in receipt.out_of_reach)
    memory.close()


def test_points_are_removed_by_their_ids_and_waited_for(double: QdrantDouble) -> None:
    backend = filled(double)
    double.asked.clear()
    erase(backend)
    removals = [asked for asked in double.asked if asked.what.endswith("points/delete")]
    assert removals
    for asked in removals:
        assert set(asked.body) == {"points"}
        assert "wait=true" in asked.parameters
        assert "ordering=strong" in asked.parameters


def test_the_collections_of_a_namespace_are_dropped_and_made_again_when_the_user_comes_back(
    double: QdrantDouble,
) -> None:
    backend, other = filled(double, collections="namespace"), instance(double, collections="namespace")
    other.write([tea("another tea")])
    erase(backend)
    dropped = [asked.collection for asked in double.asked if asked.what == "DELETE /collections/*"]
    assert len(dropped) >= 4
    assert names_nobody(double)
    for each in (other, backend):
        each.write([tea(f"new tea {each.audit.log_id}", created_at=LATER)])
    assert len(left_of(backend)) == 2
    assert len(of_bo(backend)) == 1


def test_a_commit_asks_for_tombstones_with_the_places_of_its_records(double: QdrantDouble) -> None:
    backend = instance(double)
    backend.write([tea("first tea")])

    def asked() -> list[str]:
        double.asked.clear()
        backend.write([tea(f"tea {next(numbers)}")])
        return [each.what for each in double.asked]

    numbers = count()
    before = asked()
    erase(backend, "bo")
    asked()
    assert asked() == before


# Interrupted


def failing(server: Direct, number: int, *, is_applied: bool) -> None:
    """The server is lost with this call; with `is_applied` it makes it and its answer is lost."""
    calls = count()

    def lost() -> None:
        raise ResponseHandlingException(ConnectionError("gone"))

    def before() -> None:
        position = next(calls)
        if position > number or (position == number and not is_applied):
            lost()
        if position == number:
            server.after = lost

    server.before = before


def works_again(server: Direct) -> None:
    server.before = server.after = lambda: None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("division", ["family", "namespace"])
@pytest.mark.parametrize("is_applied", [False, True])
def test_a_server_that_is_lost_at_any_call_leaves_it_pending_and_it_is_completed(
    division: str, is_applied: bool
) -> None:
    outcomes: list[str] = []
    while "done" not in outcomes:
        number = len(outcomes) * STEP
        completed_by = ("erase", "commit", "another instance")[len(outcomes) % 3]
        server = Direct()
        backend = filled(server, collections=division)
        bo = of_bo(backend)
        failing(server, number, is_applied=is_applied)
        try:
            outcomes.append("pending" if erase(backend).pending else "done")
        except BackendError:
            outcomes.append("failed")
        works_again(server)
        if outcomes[-1] == "failed":
            assert len(left_of(backend)) == 3
        is_begun = bool(dump(server, '"tombstone":"begun"'))
        last = instance(server, collections=division) if completed_by == "another instance" else backend
        if completed_by == "erase":
            assert erase(last, "carol").pending == ()
        else:
            last.write([tea("a later tea", user="carol")])
        if outcomes[-1] != "failed" or is_begun:
            assert left_of(last) == []
            assert names_nobody(server)
            with pytest.raises(WasErased):
                instance(server).write([tea()])
        assert erase(last).pending == ()
        assert names_nobody(server)
        assert of_bo(last) == bo
        assert_chain(backend.audit.tail(999), backend.audit.log_id)
    assert {*outcomes} == {"failed", "pending", "done"}
    assert outcomes == sorted(outcomes, key=["failed", "pending", "done"].index)


def test_a_log_of_another_instance_lets_go_when_it_learns_of_the_erasure(
    double: QdrantDouble, tmp_path: Path
) -> None:
    here, there = filled(double), instance(double, audit=tmp_path)
    record = tea("more tea")
    there.write([record])
    there.audit.record_access([Access("search", NOW, "alice", record_id=record.id)])
    there.audit.flush()
    erase(here)
    there.close()
    again = instance(double, audit=tmp_path)
    again.write([tea("a tea", user="bo")])
    assert again.audit.users() == ["bo"]
    assert again.audit.key(record.id) is None
    assert again.audit.accesses(9, record_id=record.id) == ()
    assert [row.op for row in again.audit.tail(9) if row.op.startswith("erase")] == [
        "erase.begin",
        "erase.done",
    ]
    assert traces(tmp_path, ["alice-alice", "alice"], []) == []
    again.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_kill_at_any_request_is_made_good_by_the_next_commit(tmp_path: Path) -> None:
    is_done = False
    for number in count(step=3 * STEP):
        place = tmp_path / str(number)
        with running(QdrantDouble()) as double:
            backend = filled(double, audit=place)
            bo = of_bo(backend)
            backend.close()
            is_done = not _killed_at(double, number, place)
            is_begun = bool(dump(double, '"tombstone"'))
            with closing(instance(double, audit=place)) as after:
                after.write([tea("a later tea", user="carol")])
                if is_begun:
                    assert names_nobody(double) or '"tombstone":"secret"' in "".join(dump(double))
                assert len(left_of(after)) in (0, 3)
                assert bool(left_of(after)) == (not dump(double, '"tombstone":"done"'))
                assert erase(after).pending == ()
                assert names_nobody(double)
                assert of_bo(after) == bo
                assert_chain(after.audit.tail(999), after.audit.log_id)
                assert after.audit.tombstones.unfinished() == []
        if is_done:
            break


def _killed_at(double: QdrantDouble, number: int, place: Path) -> bool:
    """Whether another process that erases came so far; there it was killed."""
    requests, killed = count(), []
    if not (child := os.fork()):
        with suppress(BaseException):
            erase(instance(double, audit=place))
        os._exit(0)

    def before(_: Asked) -> Answer | None:
        if next(requests) >= number:
            os.kill(child, signal.SIGKILL)
            killed.append(True)
            return Answer("gone", status=503)
        return None

    double.before = before
    os.waitpid(child, 0)
    double.before = lambda _: None
    return bool(killed)


# Beside others


def at_call(server: Direct, number: int, do: Callable[[], object]) -> Callable[[], bool]:
    """Do something before the server gets this call; a function that says whether it was done."""
    calls = count()
    done: list[bool] = []

    def before() -> None:
        if not done and next(calls) == number:
            done.append(True)
            do()

    server.before = before
    return lambda: bool(done)


Writing = Callable[[QdrantBackend, Record], object]
WRITINGS: dict[str, Writing] = {
    "new": lambda backend, _: backend.write([tea("late tea"), tea("tea of bo", user="bo")]),
    "said": lambda backend, _: backend.write([said("late words")]),
    "changed": lambda backend, old: backend.update([changed(old, content="late tea")]),
    "moved": lambda backend, old: backend.update([changed(old, namespace=("identity", "alice"))]),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("division", ["family", "namespace"])
@pytest.mark.parametrize("how", WRITINGS)
def test_what_another_instance_writes_while_a_user_is_erased_leaves_nothing(division: str, how: str) -> None:
    """Whichever call of the commit the erasure comes before."""
    for number in count():
        server = Direct()
        one, two = (instance(server, collections=division) for _ in range(2))
        old = tea("old tea")
        one.write([old])
        two.write([tea("tea of two", user="carol")])
        was_done = at_call(server, number, partial(erase, one))
        with suppress(Conflict, RecordNotFound, BackendError):
            WRITINGS[how](two, old)
        works_again(server)
        if not was_done():
            break
        assert left_of(two) == []
        assert names_nobody(server)
        assert len(left_of(two, "carol")) == 1
        assert_chain(two.audit.tail(99), two.audit.log_id)
    assert number > 5


def write_if_taken(backend: QdrantBackend, records: Sequence[Record], written: list[str]) -> None:
    for record in records:
        with suppress(BackendError):
            backend.write([record])
            written.append(record.content)


@every_case("division", ["family", "namespace"])
def test_what_a_user_says_while_the_erasure_goes_on_is_kept(division: str) -> None:
    """Whichever call of the erasure it comes before; what is refused was not acknowledged."""
    kept = 0
    for number in count(step=STEP):
        server = Direct()
        one, two = (instance(server, collections=division) for _ in range(2))
        one.write([tea("old tea"), said()])
        two.write([tea("tea of two", user="carol")])
        new, late = tea("new tea", created_at=LATER), tea("late tea")
        written: list[str] = []
        was_done = at_call(server, number, partial(write_if_taken, two, [new, late], written))
        assert erase(one).pending == ()
        works_again(server)
        if not was_done():
            break
        left = [record.content for record in left_of(two)]
        if "late tea" in written:  # before the tombstone: what was there goes, whatever its time
            assert left in ([], ["new tea"])
        else:
            assert left == written
        kept += bool(left)
        assert not left or two.get([new.id])
    assert kept


def test_tombstones_of_two_prefixes_are_apart(double: QdrantDouble) -> None:
    one, two = instance(double), instance(double, prefix="team")
    for each in (one, two):
        each.write([tea()])
    erase(one)
    assert len(left_of(two)) == 1
    two.write([tea("more tea")])
