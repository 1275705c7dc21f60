"""Threads, processes and coroutines that use a store at once."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import Conflict
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.store import MemoryStore
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit, Committed
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests import programs
from tests.host.store.conftest import ADA, SETTINGS, value_at


class Hurried(InMemoryBackend):
    """Somebody else is faster: each of the first commits finds its records changed."""

    def __init__(self, faster: int) -> None:
        super().__init__()
        self.faster = faster

    def batch(self, commit: Commit) -> Committed:
        if self.faster and commit.changes and commit.changes[0].expects is not None:
            self.faster -= 1
            (held,) = self.get([commit.changes[0].record.id])
            super().batch(Commit((Change(held, held.version),)))
        return super().batch(commit)


def test_a_lost_race_is_decided_again() -> None:
    backend = Hurried(faster=3)
    store = MemoryStore(SupervisorMemory(SETTINGS, backend=backend))
    store.put(ADA, "k", {"n": 1})
    store.put(ADA, "k", {"n": 2})
    assert value_at(store, ADA, "k") == {"n": 2}
    assert backend.get([Address(ADA, "k").id])[0].version == 5


def test_a_race_that_is_always_lost_is_told() -> None:
    store = MemoryStore(SupervisorMemory(SETTINGS, backend=Hurried(faster=10_000)))
    store.put(ADA, "k", {"n": 1})
    with pytest.raises(Conflict):
        store.put(ADA, "k", {"n": 2})


def test_threads_that_put_the_same_key_all_succeed(store: MemoryStore) -> None:
    def put(number: int) -> None:
        store.put(ADA, "k", {"n": number})
        store.put(ADA, f"k{number}", {"content": "the same text"})

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value_at(store, ADA, "k")["n"] in range(4)
    assert len(store.search(ADA)) == 5


def test_two_handles_on_one_directory_see_each_others_items(tmp_path: Path) -> None:
    handles = [SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path)) for _ in range(2)]
    one, other = map(MemoryStore, handles)
    for namespace in (ADA, ("docs",), (*ADA, "t", "deep")):
        one.put(namespace, "k", {"content": "likes tea"})
        assert value_at(other, namespace, "k") == {"content": "likes tea"}
        other.put(namespace, "k", {"content": "likes coffee"})
        assert value_at(one, namespace, "k") == {"content": "likes coffee"}
    for handle in handles:
        handle.close()


PUTTING = """
import sys
from pathlib import Path
from supervisor_memory import SupervisorMemory
from supervisor_memory.host.store.store import MemoryStore
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.host.store.conftest import ADA, SETTINGS

name, path = sys.argv[1:]
with SupervisorMemory(SETTINGS, backend=SqliteBackend(Path(path))) as memory:
    store = MemoryStore(memory)
    for number in range(10):
        store.put(ADA, f"{name}{number}", {"content": "the same text"})
        store.put(("docs",), "shared", {"by": name, "n": number})
"""


def test_two_processes_put_into_one_directory(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    both = [programs.start("-c", PUTTING, name, str(tmp_path), cwd=root) for name in "ab"]
    assert [process.wait(120) for process in both] == [0, 0]
    with SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path)) as memory:
        store = MemoryStore(memory)
        assert len(store.search(ADA, limit=100)) == 20
        assert value_at(store, ("docs",), "shared")["n"] == 9


async def test_the_async_twin_answers_alike_and_leaves_the_loop_free() -> None:
    class Slow(InMemoryBackend):
        def batch(self, commit: Commit) -> Committed:
            time.sleep(0.3)
            return super().batch(commit)

    store = MemoryStore(SupervisorMemory(SETTINGS, backend=Slow()))
    late: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late.append(time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(store.aput(ADA, f"k{number}", {"n": number}) for number in range(3)))
    ticking.cancel()
    assert len(late) > 5
    assert max(late) < 0.25
    assert (await store.aget(ADA, "k1")) == store.get(ADA, "k1")
    assert (await store.asearch(ADA)) == store.search(ADA)
    assert (await store.alist_namespaces()) == [ADA]
    await store.adelete(ADA, "k1")
    assert store.get(ADA, "k1") is None
