"""The promises of every backend. Inherit, and add a fixture `backend`: an empty backend.

class TestMine(BackendContract):
    @pytest.fixture
    def backend(self):
        return MyBackend()

One whose records outlive it inherits `PersistentBackendContract` and adds a fixture `reopen`: a function
that opens another handle on the same place, as another process would.

A promise that a store cannot keep is named in `limits`, with the reason its test is skipped with:

    class TestMine(PersistentBackendContract):
        limits = {"decides across handles": "the database has no compare-and-set"}
"""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias, get_args

import pytest

from supervisor_memory.audit.rows import Access
from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.backend_promises.audit import Auditing
from supervisor_memory.testing.backend_promises.filters import Filtering
from supervisor_memory.testing.backend_promises.reading import Reading
from supervisor_memory.testing.backend_promises.searching import Searching
from supervisor_memory.testing.backend_promises.writing import Writing
from supervisor_memory.testing.records import (
    NOW,
    assert_chain,
    changed,
    contents,
    direction,
    embedded,
    everything,
    query,
    tea,
    written,
)

Limit: TypeAlias = Literal["decides across handles", "is whole after a kill"]
"""A promise that not every store can keep.

"decides across handles": versions, wordings and places are compared and set as one step, whichever handle
or process commits. "is whole after a kill": a commit that is cut off is there with all its changes, or none.
"""
Reopen: TypeAlias = Callable[[], MemoryBackend]


class BackendContract(Reading, Filtering, Writing, Searching, Auditing):
    """Promises of the protocol `MemoryBackend`, as tests.

    Attributes:
        limits: The promises that this store cannot keep, each with the reason.
    """

    limits: ClassVar[Mapping[Limit, str]] = MappingProxyType({})

    def skip_where_limited(self, promise: Limit) -> None:
        """Skip the test that calls it, with the reason, where the store cannot keep the promise."""
        if reason := self.limits.get(promise):
            pytest.skip(f"not promised: it {promise}; {reason}")

    def test_its_limits_are_known_and_have_reasons(self) -> None:
        assert set(self.limits) <= set(get_args(Limit))
        assert all(self.limits.values())

    # Many at once

    def test_threads_that_write_and_search_lose_nothing(self, backend: MemoryBackend) -> None:
        def work(thread: int) -> None:
            for number in range(8):
                content = f"tea of thread{thread} number{number}"
                backend.write([embedded(content, user=f"user {thread % 2}", axis=number)])
                found = backend.search(
                    query(f"thread{thread}", user=f"user {thread % 2}", vector=direction(number)), limit=99
                )
                assert content in contents(found)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert backend.count(Filter()) == 64
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)

    def test_of_threads_that_change_one_record_each_wins_once(self, backend: MemoryBackend) -> None:
        count_up_together([backend])

    # Itself

    def test_it_says_how_it_is(self, backend: MemoryBackend) -> None:
        health = backend.health()
        assert health.ok
        assert health.name == backend.name
        assert isinstance(backend, MemoryBackend)
        json.dumps(health.details)

    def test_it_can_be_closed_twice(self, backend: MemoryBackend) -> None:
        backend.write([tea()])
        backend.close()
        backend.close()


class PersistentBackendContract(BackendContract):
    """More promises, for backends with records that outlive the process."""

    def test_everything_survives_reopening(self, backend: MemoryBackend, reopen: Reopen) -> None:
        record = embedded(metadata={"茶": [1, 2.5]})
        other = tea("other tea", subject="s", attribute="a")
        backend.write([record, other])
        backend.update([changed(other, content="changed tea")])
        backend.audit.record_access([Access("memory.search", NOW, "alice", record_id=record.id)])
        before = everything(backend), backend.versions(other.id), backend.audit.tail(100)
        found = backend.search(query(vector=direction(0)), limit=5)
        accesses, log_id = backend.audit.accesses(10), backend.audit.log_id
        backend.close()
        again = reopen()
        assert (everything(again), again.versions(other.id), again.audit.tail(100)) == before
        assert again.search(query(vector=direction(0)), limit=5) == found
        assert (again.audit.accesses(10), again.audit.log_id) == (accesses, log_id)
        again.write([tea("one more")])
        with pytest.raises(Conflict):
            again.write([tea("something", subject="s", attribute="a")])
        assert_chain(again.audit.tail(1000), log_id)
        assert again.health().persistent
        again.close()

    def test_two_handles_see_each_others_changes_at_once(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        other = reopen()
        search = query(vector=direction(0))
        for writer, reader in ((backend, other), (other, backend)) * 3:
            record = embedded()
            assert not reader.search(search, limit=5)
            writer.write([record])
            assert [{"cosine", "bm25"} <= set(hit.parts) for hit in reader.search(search, limit=5)] == [True]
            reader.update([changed(record, content="likes tea most", vector=direction(1))])
            assert writer.search(search, limit=5)[0].parts["cosine"] == pytest.approx(0)
            assert writer.get([record.id])[0].content == "likes tea most"
            with pytest.raises(Conflict):
                writer.update([changed(record, content="too late")])
            writer.delete([record.id])
            assert not reader.search(search, limit=5)
            assert reader.get([record.id])[0].status == "deleted"
        assert_chain(other.audit.tail(1000), backend.audit.log_id)
        other.close()

    def test_handles_that_write_at_the_same_time_lose_nothing(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        with three(backend, reopen) as handles:

            def work(number: int) -> None:
                handles[number % 3].write([tea(f"tea {number}", user=f"user {number % 5}")])

            with ThreadPoolExecutor(6) as pool:
                list(pool.map(work, range(60)))
            assert [handle.count(Filter()) for handle in handles] == [60, 60, 60]
            assert_chain(handles[1].audit.tail(1000), backend.audit.log_id)

    def test_of_handles_that_change_one_record_each_wins_once(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("decides across handles")
        with three(backend, reopen) as handles:
            count_up_together(handles)

    def test_of_handles_that_write_one_wording_only_one_succeeds(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("decides across handles")
        with three(backend, reopen) as handles, ThreadPoolExecutor(6) as pool:

            def write(number: int) -> bool:
                with contextlib.suppress(Conflict):
                    return bool(handles[number % 3].write([tea(f"tea {number // 6}")]))
                return False

            assert sum(pool.map(write, range(60))) == 10
            assert backend.count(Filter()) == 10

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
    def test_a_commit_cut_off_by_a_kill_is_there_whole_or_not_at_all(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("is whole after a kill")
        backend.close()
        acknowledged = b"".join(_killed_while_writing_threes(reopen, seconds) for seconds in (0, 0.02, 0.05))
        again = reopen()
        threes = {number: again.count(Filter(subject=number)) for number in acknowledged.decode().split()}
        assert threes
        assert set(threes.values()) == {3}
        assert again.count(Filter()) % 3 == 0
        again.close()


def count_up_together(handles: Sequence[MemoryBackend]) -> None:
    """Count up a number in a record 24 times, by threads with handles in turn; none is lost."""
    record = written(handles[0], tea(metadata={"count": 0}))

    def count_up(number: int) -> None:
        handle = handles[number % len(handles)]
        while True:
            current = handle.get([record.id])[0]
            with contextlib.suppress(Conflict):
                handle.update([changed(current, metadata={"count": current.metadata["count"] + 1})])
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count_up, range(24)))
    assert handles[0].get([record.id])[0].metadata == {"count": 24}
    assert len(handles[0].versions(record.id)) == 25


@contextlib.contextmanager
def three(backend: MemoryBackend, reopen: "Reopen") -> Iterator[Sequence[MemoryBackend]]:
    """A backend and two more handles on the same place, which are closed in the end."""
    others = [reopen(), reopen()]
    yield [backend, *others]
    for handle in others:
        handle.close()


def _killed_while_writing_threes(reopen: Reopen, seconds: float) -> bytes:
    """The names of the commits that a process was told are stored, before it was killed."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            _write_threes(reopen(), tell)
        finally:
            os._exit(1)
    os.close(tell)
    try:
        received = os.read(told, 1 << 16)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while chunk := os.read(told, 1 << 16):
            received += chunk
    finally:
        os.close(told)
    return received


def _write_threes(backend: MemoryBackend, tell: int) -> None:
    for number in count():
        name = f"{os.getpid()}-{number}"
        backend.write([tea(f"{name} tea {part}", subject=name) for part in range(3)])
        os.write(tell, f"{name} ".encode())
