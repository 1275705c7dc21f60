"""What one durable write costs beside LangGraph's SqliteStore, and what 64 threads get written together.

Run: make bench        (or: python benchmarks/write_cost.py --rounds 15)
One commit of ours is a record with its words, its 384 numbers and an audit row, in one transaction that
waits for the disk. The peer puts the same text under the same user: with the settings it opens with
(a rollback journal, synchronous=FULL), and in a write-ahead log with synchronous=FULL as ours is; with the
same numbers in sqlite-vec, and with no index at all. Nobody embeds anything here: the numbers are made
beforehand. All write in turn, a block each, in one process. CPU is that of the process with all its threads.

sqlite-vec needs a Python whose sqlite3 loads extensions; where it does not, those rows are left out.
"""

import argparse
import contextlib
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings
from langgraph.store.sqlite import SqliteStore

from supervisor_memory.model.records import AuditEvent, Record, Source, new_id
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.sqlite.store import SqliteBackend

DIMENSION = 384
USERS = 20
PRODUCERS = 64
OURS = "sqlite backend"

Write = Callable[[int], None]


class Numbers(Embeddings):
    """The numbers of a text, made beforehand; in the lists that the peer wants."""

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        self._lists = vectors.tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._lists[int(text.rpartition(" ")[2]) % len(self._lists)]


def text_of(number: int) -> str:
    return (
        f"Flights of carrier {number % 97} from gate {number % 53} count as delayed when they leave after "
        f"{number % 41} minutes, as agreed in review {number}"
    )


def ours(folder: Path, vectors: npt.NDArray[np.float32]) -> tuple[Write, Callable[[], None]]:
    """How we write, and how to close."""
    backend = SqliteBackend(folder)

    def write(number: int) -> None:
        user, text, now = f"user-{number % USERS}", text_of(number), time.time()
        record = Record(
            new_id(),
            ("domain_facts", user),
            text,
            "domain-facts",
            created_at=now,
            updated_at=now,
            source=Source(session_id="thread-1", run_id="run-1"),
            embedder="bench",
            vector=vectors[number % len(vectors)],
        )
        event = AuditEvent(
            "add",
            user_id=user,
            family="domain_facts",
            record_id=record.id,
            version_after=1,
            after=text,
            reason="new",
            source_class="user",
            session_id="thread-1",
            run_id="run-1",
        )
        backend.batch(Commit((Change(record),), (event,)))

    return write, backend.close


def peer(
    folder: Path, vectors: npt.NDArray[np.float32] | None, *, like_ours: bool
) -> tuple[Write, Callable[[], None]]:
    """How SqliteStore writes, and how to close.

    Args:
        vectors: None leaves out its index.
        like_ours: In a write-ahead log.
    """
    open_store = contextlib.ExitStack()
    index: Any = vectors is not None and {
        "dims": DIMENSION,
        "embed": Numbers(vectors),
        "text_fields": ["content"],
    }
    store = open_store.enter_context(
        SqliteStore.from_conn_string(str(folder / "store.db"), index=index or None)
    )
    if like_ours:
        store.conn.execute("PRAGMA journal_mode=WAL")
    store.conn.execute("PRAGMA synchronous=FULL")
    store.setup()

    def write(number: int) -> None:
        store.put(("domain_facts", f"user-{number % USERS}"), new_id(), {"content": text_of(number)})

    return write, open_store.close


def loads_extensions() -> bool:
    return hasattr(sqlite3.Connection, "enable_load_extension")


@contextlib.contextmanager
def writers(folder: Path) -> Iterator[dict[str, Write]]:
    """Everybody who writes, by name; ours first."""
    vectors = np.random.default_rng(1).standard_normal((500, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kinds: dict[str, Callable[[Path], tuple[Write, Callable[[], None]]]] = {
        OURS: lambda place: ours(place, vectors)
    }
    for how, like_ours in (("its own settings", False), ("WAL, FULL", True)):
        if loads_extensions():
            kinds[f"SqliteStore, sqlite-vec, {how}"] = lambda place, w=like_ours: peer(  # type: ignore[misc]
                place, vectors, like_ours=w
            )
        kinds[f"SqliteStore, no index, {how}"] = lambda place, w=like_ours: peer(  # type: ignore[misc]
            place, None, like_ours=w
        )
    with contextlib.ExitStack() as closing:
        made: dict[str, Write] = {}
        for number, (name, make) in enumerate(kinds.items()):
            place = folder / str(number)
            place.mkdir(mode=0o700)
            made[name], close = make(place)
            closing.callback(close)
        yield made


def block(write: Write, numbers: Sequence[int]) -> tuple[float, float]:
    """CPU and wall time of one write, in seconds, over a block of them."""
    wall, cpu = time.perf_counter(), time.process_time()
    for number in numbers:
        write(number)
    return (time.process_time() - cpu) / len(numbers), (time.perf_counter() - wall) / len(numbers)


def together(write: Write, numbers: Sequence[int]) -> tuple[float, float, list[float]]:
    """Seconds of CPU and of wall time for all of these writes by 64 threads, and how long each took."""
    took: list[float] = []
    start = threading.Barrier(PRODUCERS + 1)

    def produce(mine: Sequence[int]) -> None:
        start.wait()
        for number in mine:
            began = time.perf_counter()
            write(number)
            took.append(time.perf_counter() - began)

    threads = [threading.Thread(target=produce, args=(numbers[n::PRODUCERS],)) for n in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    start.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    return time.process_time() - cpu, time.perf_counter() - wall, sorted(took)


def spread(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"({ordered[len(ordered) // 10] * 1000:.3f} to {ordered[-1 - len(ordered) // 10] * 1000:.3f})"


def single_writes(made: dict[str, Write], *, rounds: int, size: int) -> None:
    cpu: dict[str, list[float]] = {name: [] for name in made}
    wall: dict[str, list[float]] = {name: [] for name in made}
    for number in range(rounds + 2):
        for name, write in made.items():
            spent, waited = block(write, range(number * size, (number + 1) * size))
            if number >= 2:  # the first ones fill caches and make tables
                cpu[name].append(spent)
                wall[name].append(waited)
    print(f"one write at a time, {rounds} rounds of {size}; medians, and the middle 80% of the rounds")
    for name in made:
        ratios = [theirs / mine for theirs, mine in zip(cpu[name], cpu[OURS], strict=True)]
        print(
            f"{name:42} {statistics.median(cpu[name]) * 1000:6.3f} ms CPU {spread(cpu[name]):18} "
            f"{statistics.median(wall[name]) * 1000:7.2f} ms wall"
            + ("" if name == OURS else f"   {statistics.median(ratios):5.2f} x our CPU")
        )
    print("(target, not reached: at least 2 x our CPU for SqliteStore with an index)\n")


def concurrent_writes(made: dict[str, Write], *, rounds: int, each: int) -> None:
    print(f"{PRODUCERS} threads, {each} writes each, {rounds} rounds; medians over the rounds")
    total = PRODUCERS * each
    results: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in made}
    for number in range(rounds):
        for name, write in made.items():
            first = 1_000_000 + number * total
            cpu, wall, took = together(write, range(first, first + total))
            p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
            results[name].append((total / wall, p50, p99, cpu / total))
    for name, rows in results.items():
        rate, p50, p99, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"{name:42} {rate:6.0f} writes/s   p50 {p50 * 1000:6.1f} ms   p99 {p99 * 1000:7.1f} ms   "
            f"{cpu * 1000:.3f} ms CPU a write"
        )
    print("(target: at least 1,000 writes/s with a p99 of at most 150 ms, on two cores that do nothing else)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=int, default=60, help="writes in a round")
    parser.add_argument("--each", type=int, default=25, help="writes of each of the 64 threads in a round")
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary directory")
    options = parser.parse_args()
    if not loads_extensions():
        print("this Python's sqlite3 loads no extensions: SqliteStore's index is left out\n")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, writers(Path(folder)) as made:
        single_writes(made, rounds=options.rounds, size=options.block)
        concurrent_writes(made, rounds=max(1, options.rounds // 5), each=options.each)


if __name__ == "__main__":
    main()
