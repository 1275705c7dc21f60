"""What our search and our write over Qdrant cost beside the bare client's calls, in CPU time of this process.

Run: make bench        (or: python benchmarks/qdrant_cost.py --rounds 20)
The server is the tests' double, which speaks Qdrant's REST on the loopback, in a process of its own: what
it spends is not counted, only what the client and we do here. Both sides ask with the same vectors, the
same filter (user, status, expiry …) and the same limit, and get whole payloads back. Who asks alternates,
a block each.
"""

import argparse
import contextlib
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from qdrant_client import QdrantClient, models

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tests` is in the clone, in no package

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import AuditEvent, Filter, Query, Record, Source, new_id
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.qdrant.points import (
    DENSE,
    READ,
    WORDS,
    record_point,
    searched_words,
    visible,
)
from supervisor_memory.stores.qdrant.store import QdrantBackend
from tests.stores.qdrant_double import Answer, Asked, QdrantDouble, running

DIMENSION = 384
RECORDS = 100
LIMIT = 10
EMBEDDER = "bench"
FAMILY = "domain_facts"

Call = Callable[[int], object]


class Server(QdrantDouble):
    """The double, and the two calls that only the bare client makes."""

    def _apply(self, asked: Asked) -> Answer:
        match asked.what:
            case "POST /collections/*/points/query":
                request = models.QueryRequest.model_validate(asked.body)
                return Answer(self.engine.query_batch_points(asked.collection, [request])[0])
            case "PUT /collections/*/points":
                points = models.PointsList.model_validate(asked.body)
                return Answer(self.engine.upsert(asked.collection, points.points))
        return super()._apply(asked)


def serve(pipe: Connection) -> None:
    """In a process of its own, until it is told to end."""
    with running(Server(), keeps_connections=True) as double:
        pipe.send(double.url)
        pipe.recv()


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a double in another process."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(its,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def record_of(number: int, vector: Any) -> Record:
    text = (
        f"Flights of carrier {number % 97} count as delayed after {number % 41} minutes, says review {number}"
    )
    return Record(
        new_id(),
        (FAMILY, "ada"),
        text,
        "domain-facts",
        created_at=1.0,
        updated_at=1.0,
        tags=("delay",),
        metadata={"question": "What counts as a delay?", "evidence": text[:40]},
        source=Source(session_id="thread-1", run_id="run-1"),
        embedder=EMBEDDER,
        vector=vector,
    )


def commit_of(number: int, vector: Any) -> Commit:
    record = record_of(number, vector)
    event = AuditEvent("add", user_id="ada", family=FAMILY, record_id=record.id, after=record.content)
    return Commit((Change(record),), (event,))


def calls(client: QdrantClient, backend: QdrantBackend, vectors: Any) -> dict[str, tuple[Call, Call]]:
    """For each comparison what we do and what the bare client does."""
    for number in range(RECORDS):
        backend.batch(commit_of(number, vectors[number]))
    where = Filter(user_id="ada", families=(FAMILY,))
    asked = "When does a flight count as delayed?"
    collection = next(
        each.name
        for each in client.get_collections().collections
        if each.name.startswith(f"memory~{FAMILY}~")
    )

    def query(number: int, *, words: bool) -> Query:
        return Query(
            text=asked,
            where=where,
            now=2.0,
            vector=vectors[number % len(vectors)],
            embedder=EMBEDDER,
            terms=terms(asked) if words else (),
        )

    def condition() -> models.Filter:
        made = visible(where, now=2.0)
        assert made is not None
        return made

    def query_points(number: int) -> object:
        return client.query_points(
            collection,
            query=vectors[number % len(vectors)].tolist(),
            using=DENSE,
            query_filter=condition(),
            limit=LIMIT,
            with_payload=READ,
        )

    def query_batch(number: int) -> object:
        vector, words = vectors[number % len(vectors)].tolist(), searched_words(terms(asked))
        prefetch = models.Prefetch(query=words, using=WORDS, filter=condition(), limit=64)
        requests = [
            models.QueryRequest(
                query=vector, using=DENSE, filter=condition(), limit=LIMIT, with_payload=READ
            ),
            models.QueryRequest(query=words, using=WORDS, filter=condition(), limit=64, with_payload=READ),
            models.QueryRequest(prefetch=prefetch, query=vector, using=DENSE, limit=64, with_payload=False),
        ]
        return client.query_batch_points(collection, requests)

    def upsert(number: int) -> object:
        record, vector = record_of(number, None), vectors[number % len(vectors)]
        return client.upsert(collection, [record_point(record, (EMBEDDER, vector), commit=new_id())])

    return {
        "search by meaning | client.query_points": (
            lambda number: backend.search(query(number, words=False), limit=LIMIT),
            query_points,
        ),
        "search by meaning and words | client.query_batch_points, the same three queries": (
            lambda number: backend.search(query(number, words=True), limit=LIMIT),
            query_batch,
        ),
        "write of a record | client.upsert of its point": (
            lambda number: backend.batch(commit_of(1_000 + number, vectors[number % len(vectors)])),
            upsert,
        ),
    }


def block(call: Call, numbers: Sequence[int]) -> tuple[float, float]:
    """CPU and wall time of one call, in seconds, over a block of them."""
    wall, cpu = time.perf_counter(), time.process_time()
    for number in numbers:
        call(number)
    return (time.process_time() - cpu) / len(numbers), (time.perf_counter() - wall) / len(numbers)


def measure(name: str, mine: Call, theirs: Call, *, rounds: int, size: int) -> None:
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    for number in range(rounds + 2):
        numbers = range(number * size, (number + 1) * size)
        pair = block(mine, numbers), block(theirs, numbers)
        if number >= 2:  # the first ones open connections and fill caches
            ours.append(pair[0])
            bare.append(pair[1])
    ratios = sorted(a[0] / b[0] for a, b in zip(ours, bare, strict=True))
    (cpu, wall), (bare_cpu, bare_wall) = (
        [statistics.median(column) * 1000 for column in zip(*rows, strict=True)] for rows in (ours, bare)
    )
    print(
        f"{name}\n    {cpu:.2f} ms CPU beside {bare_cpu:.2f}: ratio {statistics.median(ratios):.2f} "
        f"(middle 80% of {rounds} rounds: {ratios[rounds // 10]:.2f} to {ratios[-1 - rounds // 10]:.2f});   "
        f"{wall:.1f} ms wall beside {bare_wall:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block", type=int, default=20, help="calls in a round")
    options = parser.parse_args()
    vectors = np.random.default_rng(1).standard_normal((200, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with server() as url, tempfile.TemporaryDirectory() as folder:
        client = QdrantClient(url=url, check_compatibility=False)
        backend = QdrantBackend(client, audit=folder)
        for name, (mine, theirs) in calls(client, backend, vectors).items():
            measure(name, mine, theirs, rounds=options.rounds, size=options.block)
        backend.close()
        client.close()
    print("(target: a search costs at most 1.30 x the bare client's; a write has none)")


if __name__ == "__main__":
    main()
