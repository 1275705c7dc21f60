"""Others at the same store: locks, many at once, forks, and every way for a process to end."""

import asyncio
import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import apsw
import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, Conflict
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import direction, query, tea, with_vector
from tests import programs
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import (
    FORKS,
    addition,
    ended,
    everything_in,
    forked,
    killed_later,
    told,
    write_for_ever,
)
from tests.stores.test_group import in_threads

pytestmark = [*FORKS]


def test_while_another_holds_the_lock_every_write_is_refused_in_time_and_reads_go_on(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path, lock_seconds=0.5)) as backend:
        backend.write([with_vector(tea("first tea"), direction(0))])
        other = apsw.Connection(str(tmp_path / "memory.db"))
        other.execute("BEGIN IMMEDIATE")  # until all have their answer: none waits for it to end
        answers = in_threads([partial(backend.batch, addition(f"tea {n}")) for n in range(32)])
        assert {type(answer) for answer in answers} == {BackendUnavailable}
        assert "locked by another process" in str(answers[0])
        assert len(backend.search(query(vector=direction(0)), limit=5)) == 1
        other.execute("ROLLBACK")
        other.close()
        backend.batch(addition("later tea"))
        assert backend.count(Filter()) == 2


def _counted_up(backend: SqliteBackend, record_id: str, times: int) -> None:
    """Read, add one, write back what was read; again when somebody was faster."""
    while times:
        (record,) = backend.get([record_id])
        number = int(record.content.split()[1]) + 1
        try:
            backend.update([Change(replace(record, content=f"number {number}"), expects=record.version)])
        except Conflict:
            continue
        times -= 1


def test_of_many_that_read_change_and_write_one_record_no_change_is_lost(
    tmp_path: Path, figures: Callable[..., None]
) -> None:
    threads, processes, each, of_a_process = 64, 2, (20 if LONG else 2), (200 if LONG else 20)
    record = tea("number 0")
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([record])
        children = [
            forked(lambda: _counted_up(SqliteBackend(tmp_path), record.id, of_a_process))
            for _ in range(processes)
        ]
        assert in_threads([partial(_counted_up, backend, record.id, each)] * threads) == [None] * threads
        assert [ended(child) for child in children] == [0] * processes
        (counted,) = backend.get([record.id])
    changes = threads * each + processes * of_a_process
    figures(changes=changes, lost=changes - int(counted.content.split()[1]))
    assert counted.content == f"number {changes}"
    assert inspected(tmp_path).is_fine


def test_twenty_processes_that_open_a_new_store_at_once_all_write(tmp_path: Path) -> None:
    for attempt in range(10 if LONG else 1):
        place = tmp_path / str(attempt)
        go, say_go = os.pipe()
        children = [forked(partial(_wait_and_write, place, go, say_go)) for _ in range(20)]
        os.close(say_go)
        assert [ended(child) for child in children] == [0] * 20
        os.close(go)
        found = inspected(place)
        assert found.is_fine
        assert len(found.stored) == 100


def _wait_and_write(place: Path, ready: int, other_end: int) -> None:
    os.close(other_end)
    os.read(ready, 1)  # ends when the last one who could write into the pipe is gone
    backend = SqliteBackend(place)
    for number in range(5):
        backend.batch(addition(f"{os.getpid()} tea {number}"))


def test_two_processes_that_write_for_long_lose_nothing(tmp_path: Path, figures: Callable[..., None]) -> None:
    works = [lambda pipe, seed=seed: write_for_ever(tmp_path, pipe, seed) for seed in range(2)]
    acknowledged = b""
    give_up = time.monotonic() + (30 if LONG else 0.5)
    with killed_later(works) as (_, pipe):
        while time.monotonic() < give_up:
            acknowledged += os.read(pipe, 1 << 16)
    acknowledged += everything_in(pipe)
    os.close(pipe)
    found = inspected(tmp_path)
    figures(acknowledged=len(told(acknowledged)), lost=len(found.lost(told(acknowledged))))
    assert found.lost(told(acknowledged)) == []
    assert found.is_fine


# --- forks


def test_a_parent_that_forks_while_its_threads_write_and_read_and_its_children_all_go_on(
    tmp_path: Path,
) -> None:
    done = threading.Event()
    counts = [0] * 4
    with closing(SqliteBackend(tmp_path, lock_seconds=60)) as backend:  # so many are not served in turn
        backend.write([with_vector(tea("first tea"), direction(0))])

        def work(me: int) -> None:
            while not done.is_set():
                backend.batch(addition(f"of thread {me} number {counts[me]}"))
                counts[me] += 1
                assert len(backend.search(query("tea", vector=direction(0)), limit=5)) >= 1

        def work_in_child() -> None:
            for number in range(5):
                backend.batch(addition(f"of child {os.getpid()} number {number}"))
                assert len(backend.search(query("tea", vector=direction(0)), limit=5)) >= 1

        threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
        for thread in threads:
            thread.start()
        children = [forked(work_in_child) for _ in range(40 if LONG else 8)]
        codes = [ended(child) for child in children]
        done.set()
        for thread in threads:
            thread.join(30)
        assert codes == [0] * len(children)
        backend.batch(addition("of the parent, afterwards"))
        assert backend.count(Filter()) == 2 + sum(counts) + 5 * len(children)
    assert inspected(tmp_path).is_fine


def test_memory_goes_on_in_workers_that_were_forked_from_a_warm_parent(tmp_path: Path) -> None:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none")
    memory = SupervisorMemory(settings)
    asyncio.run(memory.awrite("I prefer green tea.", user_id="ada"))

    def work(number: int) -> None:
        memory.write(f"Depot {number} opens at {number} o'clock.", user_id="ada")
        assert memory.search("green tea", user_id="ada")
        assert asyncio.run(memory.asearch(f"Depot {number}", user_id="ada"))

    children = [forked(partial(work, number)) for number in range(4)]
    work(9)
    assert [ended(child) for child in children] == [0] * 4
    assert len(memory.get_all(user_id="ada")) == 6
    memory.close()
    assert inspected(tmp_path).is_fine


# --- cancelled, and ended


async def test_a_write_that_is_cancelled_happens_once_or_not_and_again_it_is_there_once(
    tmp_path: Path,
) -> None:
    memory = SupervisorMemory(Settings(backend="sqlite", path=tmp_path, embedding_model="none"))
    outcomes = set()
    for number in range(40 if LONG else 12):
        text = f"Depot {number} opens at {number} o'clock."
        writing = asyncio.create_task(memory.awrite(text, user_id="ada"))
        await asyncio.sleep(0.0005 * number)
        writing.cancel()
        outcomes.add((await asyncio.gather(writing, return_exceptions=True))[0].__class__)
        await memory.awrite(text, user_id="ada")
        texts = [record.content for record in await memory.aget_all(user_id="ada")]
        assert texts.count(text) == 1
    assert asyncio.CancelledError in outcomes
    memory.close()
    assert inspected(tmp_path).is_fine


ENDS = {
    "normal": ("pass", 0),
    "exception": ("raise ZeroDivisionError", 1),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "os._exit": ("os._exit(3)", 3),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
def test_however_a_process_ends_what_it_acknowledged_is_stored(tmp_path: Path, end: str) -> None:
    how, code = ENDS[end]
    program = f"""
        import os, signal, sys
        from pathlib import Path
        from supervisor_memory import Settings, SupervisorMemory
        memory = SupervisorMemory(
            Settings(backend="sqlite", path=Path(sys.argv[1]), embedding_model="none")
        )
        for number in range(20):
            result = memory.write(f"Depot {{number}} opens at {{number}} o'clock.", user_id="ada")
            os.write(1, f"{{result.id}}\\n".encode())
        {how}
    """
    ended = programs.run("-c", textwrap.dedent(program), tmp_path, timeout=120)
    assert ended.returncode == code, ended.stderr
    found = inspected(tmp_path)
    assert found.is_fine
    assert set(ended.stdout.split()) == set(found.stored)
    assert len(found.stored) == 20
