"""What a search by meaning costs beside other stores of memories, in CPU time of the process.

Run: make bench        (or: python benchmarks/peers.py [--full] [--rounds 7] [--only WORD …] [--json FILE])

All sides hold the same records, with the same numbers of 384 dimensions, and are asked for the ten nearest of
one namespace with the same queries, of which no two are alike. Nobody embeds: the numbers are made
beforehand. Each side returns the records whole. Who asks alternates, a block each, in one process with one
thread of BLAS; a comparison has a process of its own. What is printed is the median of the ratios of the
rounds, and how many of the true ten nearest each side found.

LangGraph's SqliteStore needs a Python whose sqlite3 loads extensions, which many builds do not. Name one with
--python or BENCHMARK_PYTHON; Debian's /usr/bin/python3 does, and is found by itself. One of the same version
as this one borrows the packages installed here. For another make an environment and name its interpreter:

    /usr/bin/python3 -m venv /tmp/peers
    /tmp/peers/bin/pip install -e '.[fast]' --group dev

Without --full what takes long is left out or made smaller, and the line says how large it was.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from supervisor_memory.model.records import Filter, Query, Record, new_id
from supervisor_memory.stores.matrix import Matrix
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend

DIMENSION: Final = 384
LIMIT: Final = 10
QUERIES: Final = 200  # more than any answers that are kept for those who ask again
FAMILY: Final = "domain_facts"
EMBEDDER: Final = "bench"
SECONDS_OF_A_BLOCK: Final = 0.15
PACKAGES: Final = (
    *("numpy", "numkong", "apsw", "langgraph", "langgraph-checkpoint-sqlite", "sqlite-vec"),
    *("qdrant-client", "qdrant-edge-py"),
)

Vectors = npt.NDArray[np.float32]


# What is stored and asked


@dataclass(frozen=True)
class Memories:
    """Records, numbered from 0 and dealt out to namespaces in turn."""

    vectors: Vectors
    namespaces: int

    @classmethod
    def made(cls, records: int, namespaces: int) -> "Memories":
        vectors = np.random.default_rng(5).standard_normal((records, DIMENSION), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return cls(vectors, namespaces)

    def text(self, number: int) -> str:
        return (
            f"Flights of carrier {number % 97} from gate {number % 53} count as delayed when they leave "
            f"after {number % 41} minutes, as agreed in review {number}"
        )

    def pages(self, size: int = 1_000) -> Iterator[range]:
        for start in range(0, len(self.vectors), size):
            yield range(start, min(start + size, len(self.vectors)))

    def in_namespace(self, namespace: int) -> npt.NDArray[np.intp]:
        return np.arange(namespace, len(self.vectors), self.namespaces)


@dataclass(frozen=True)
class Question:
    namespace: int
    vector: Vectors
    numbers: Sequence[float]  # the same, for those who want a list


def questions(memories: Memories) -> Sequence[Question]:
    """Each like one record of its namespace, and like no other question."""
    random = np.random.default_rng(6)
    asked = []
    for number in range(QUERIES):
        namespace = number % memories.namespaces
        likes = memories.vectors[random.choice(memories.in_namespace(namespace))]
        vector = likes + random.standard_normal(DIMENSION) / DIMENSION**0.5
        vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        asked.append(Question(namespace, vector, vector.tolist()))
    return asked


def share_of_the_nearest(memories: Memories, asked: Question, found: Sequence[int]) -> float:
    """How many of the true nearest were found, from 0 to 1."""
    members = memories.in_namespace(asked.namespace)
    cosines = memories.vectors[members] @ asked.vector
    nearest = members[np.argsort(-cosines, kind="stable")[:LIMIT]]
    return len(set(nearest.tolist()) & set(found)) / len(nearest)


def number_in(text: str) -> int:
    return int(text.rpartition(" ")[2])


# Who is compared


class Side(Protocol):
    """A store that holds the memories."""

    def search(self, asked: Question) -> object:
        """What is timed: the nearest records of a namespace, as this store gives them."""

    def numbers(self, found: Any) -> Sequence[int]:
        """Which records a search gave."""


class Ours:
    """A backend of ours."""

    def __init__(self, memories: Memories, backend: SqliteBackend | InMemoryBackend) -> None:
        self.backend = backend
        for page in memories.pages():
            backend.write([_record(memories, number) for number in page])

    def search(self, asked: Question) -> object:
        return self.backend.search(_query(asked), limit=LIMIT)

    def numbers(self, found: Any) -> Sequence[int]:
        return [number_in(hit.record.content) for hit in found]


def _record(memories: Memories, number: int) -> Record:
    return Record(
        new_id(),
        (FAMILY, f"user-{number % memories.namespaces}"),
        memories.text(number),
        "domain-facts",
        created_at=1.0,
        updated_at=1.0,
        metadata={"kind": "ab"[number % 2]},
        embedder=EMBEDDER,
        vector=memories.vectors[number],
    )


def _query(asked: Question) -> Query:
    where = Filter(user_id=f"user-{asked.namespace}", families=(FAMILY,))
    return Query(text="", where=where, now=2.0, vector=asked.vector, embedder=EMBEDDER)


def our_sqlite(memories: Memories, folder: Path) -> Side:
    return Ours(memories, SqliteBackend(folder / "ours"))


def our_memory(memories: Memories, folder: Path) -> Side:
    return Ours(memories, InMemoryBackend())


class LangGraphStore:
    """LangGraph's in-memory or SQLite store, with an index."""

    def __init__(self, memories: Memories, make: Callable[[dict[str, Any]], Any]) -> None:
        from langgraph.store.base import PutOp

        self._embedded: Iterator[Sequence[float]] = iter(())
        self._store = make({"dims": DIMENSION, "embed": self._embed, "fields": ["text"]})
        for page in memories.pages():
            self._embedded = iter(memories.vectors[page.start : page.stop].tolist())
            self._store.batch(
                [
                    PutOp(
                        (f"user-{number % memories.namespaces}", FAMILY),
                        str(number),
                        {"text": memories.text(number), "kind": "ab"[number % 2]},
                    )
                    for number in page
                ]
            )

    def search(self, asked: Question) -> object:
        self._embedded = iter((asked.numbers,))
        return self._store.search((f"user-{asked.namespace}", FAMILY), query="?", limit=LIMIT)

    def numbers(self, found: Any) -> Sequence[int]:
        return [int(item.key) for item in found]

    def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [next(self._embedded) for _ in texts]


def langgraph_memory(memories: Memories, folder: Path) -> Side:
    from langgraph.store.memory import InMemoryStore

    return LangGraphStore(memories, lambda index: InMemoryStore(index=index))  # type: ignore[arg-type]


def langgraph_sqlite(memories: Memories, folder: Path) -> Side:
    import sqlite3

    from langgraph.store.sqlite import SqliteStore

    def make(index: dict[str, Any]) -> Any:
        connection = sqlite3.connect(folder / "theirs.db", isolation_level=None)
        store = SqliteStore(connection, index=index)  # type: ignore[arg-type]
        store.setup()
        return store

    return LangGraphStore(memories, make)


class QdrantLocal:
    """Qdrant's client without a server. In memory: on disk it searches as fast, and loads for minutes."""

    def __init__(self, memories: Memories, folder: Path) -> None:
        from qdrant_client import QdrantClient, models

        self._models, self._client = models, QdrantClient(":memory:")
        vectors = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
        self._client.create_collection("memories", vectors_config=vectors)
        for page in memories.pages():
            points = models.Batch(
                ids=list(page),
                vectors=memories.vectors[page.start : page.stop].tolist(),
                payloads=[_payload(memories, number) for number in page],
            )
            self._client.upsert("memories", points)

    def search(self, asked: Question) -> object:
        models = self._models
        user = models.FieldCondition(key="user", match=models.MatchValue(value=f"user-{asked.namespace}"))
        return self._client.query_points(
            "memories",
            query=asked.vector,
            limit=LIMIT,
            query_filter=models.Filter(must=[user]),
            with_payload=True,
        )

    def numbers(self, found: Any) -> Sequence[int]:
        return [point.id for point in found.points]


class QdrantEdge:
    """Qdrant's engine in process, with an index over the namespace and its segments optimised.

    Args:
        exact: Compare with all vectors; else it may go by a graph (HNSW), and miss some.
    """

    def __init__(self, memories: Memories, folder: Path, *, exact: bool) -> None:
        import qdrant_edge as edge

        self._edge, self._params = edge, edge.SearchParams(exact=exact)
        (folder / "edge").mkdir()
        vectors = edge.EdgeVectorParams(size=DIMENSION, distance=edge.Distance.Cosine)
        self._shard = edge.EdgeShard.create(str(folder / "edge"), edge.EdgeConfig(vectors=vectors))
        update = edge.UpdateOperation
        self._shard.update(update.create_field_index("user", edge.PayloadSchemaType.Keyword))
        for page in memories.pages():
            points = [
                edge.Point(number, memories.vectors[number].tolist(), _payload(memories, number))
                for number in page
            ]
            self._shard.update(update.upsert_points(points))
        self._shard.optimize()

    def search(self, asked: Question) -> object:
        edge = self._edge
        user = edge.FieldCondition(key="user", match=edge.MatchValue(value=f"user-{asked.namespace}"))
        request = edge.SearchRequest(
            query=edge.Query.Nearest(asked.numbers),
            limit=LIMIT,
            filter=edge.Filter(must=[user]),
            params=self._params,
            with_payload=True,
        )
        return self._shard.search(request)

    def numbers(self, found: Any) -> Sequence[int]:
        return [point.id for point in found]


def edge_exact(memories: Memories, folder: Path) -> Side:
    return QdrantEdge(memories, folder, exact=True)


def edge_graph(memories: Memories, folder: Path) -> Side:
    return QdrantEdge(memories, folder, exact=False)


def _payload(memories: Memories, number: int) -> dict[str, str]:
    return {
        "user": f"user-{number % memories.namespaces}",
        "text": memories.text(number),
        "kind": "ab"[number % 2],
    }


class OurMatrix:
    """The matrix that our backends search, by itself: which rows are nearest, no records."""

    def __init__(self, memories: Memories, folder: Path) -> None:
        self.matrix = Matrix.of(np.arange(len(memories.vectors)), memories.vectors)

    def search(self, asked: Question) -> object:
        return self.matrix.nearest(asked.vector, LIMIT)

    def numbers(self, found: Any) -> Sequence[int]:
        return [int(key) for key in found[0]]


class NumpyScan:
    """The product of all rows and the query, and the greatest of it."""

    def __init__(self, memories: Memories, folder: Path) -> None:
        self._vectors = memories.vectors

    def search(self, asked: Question) -> object:
        cosines = self._vectors @ asked.vector
        nearest = np.argpartition(cosines, len(cosines) - LIMIT)[-LIMIT:]
        return nearest[np.argsort(-cosines[nearest])]

    def numbers(self, found: Any) -> Sequence[int]:
        return [int(row) for row in found]


# How they are compared

Make = Callable[[Memories, Path], Side]


@dataclass(frozen=True)
class Comparison:
    """One line of the result.

    `target` is how many times as fast as the peer we mean to be.
    """

    ours: Make
    peer: Make
    peer_name: str
    records: int
    namespaces: int
    target: float
    is_long: bool = False
    loads_extensions: bool = False

    @property
    def name(self) -> str:
        each = f"{self.namespaces:,} namespaces of " if self.namespaces > 1 else ""
        return f"{self.peer_name}, {each}{self.records // self.namespaces:,} records"


COMPARISONS: Final = (
    Comparison(our_memory, langgraph_memory, "LangGraph InMemoryStore", 10_000, 1, 300),
    Comparison(our_sqlite, langgraph_sqlite, "LangGraph SqliteStore", 10_000, 1, 60, loads_extensions=True),
    Comparison(our_sqlite, langgraph_sqlite, "LangGraph SqliteStore", 10_000, 100, 10, loads_extensions=True),
    Comparison(our_sqlite, QdrantLocal, "qdrant-client local, filtered", 100_000, 1, 500),
    Comparison(our_sqlite, edge_exact, "qdrant-edge", 10_000, 100, 1),
    Comparison(our_sqlite, edge_exact, "qdrant-edge", 10_000, 1, 2),
    Comparison(our_sqlite, edge_graph, "qdrant-edge with its graph", 10_000, 1, 2),
    Comparison(OurMatrix, NumpyScan, "numpy float32", 100_000, 1, 1 / 0.6),
    Comparison(OurMatrix, NumpyScan, "numpy float32", 1_000_000, 1, 1 / 0.6, is_long=True),
)


@dataclass
class Line:
    """What is printed and, with --json, kept. `…_ms` are milliseconds of CPU for a search."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    told: str = ""
    target: str = ""
    is_met: bool | None = None


def compare(comparison: Comparison, *, rounds: int) -> Line:
    """Load both sides, check what they find, and let them search in turn."""
    memories = Memories.made(comparison.records, comparison.namespaces)
    asked = questions(memories)
    with tempfile.TemporaryDirectory() as folder:
        ours = comparison.ours(memories, Path(folder))
        peer = comparison.peer(memories, Path(folder))
        recalls = [recall(side, memories, asked) for side in (ours, peer)]
        sizes = [calls_of_a_block(side, asked) for side in (ours, peer)]
        pairs = [
            [block(side, asked, size, turn) for side, size in zip((ours, peer), sizes, strict=True)]
            for turn in range(rounds)
        ]
    ratios = sorted(theirs / mine for mine, theirs in pairs)
    mine, theirs = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    ratio = statistics.median(ratios)
    return Line(
        comparison.name,
        {
            **{"peer": comparison.peer_name, "records": comparison.records, "rounds": rounds},
            **{"namespaces": comparison.namespaces, "ours_ms": mine, "peer_ms": theirs, "ratio": ratio},
            **{"ratio_low": ratios[0], "ratio_high": ratios[-1], "target": comparison.target},
            **{"recall_ours": recalls[0], "recall_peer": recalls[1], "python": platform.python_version()},
        },
        f"{ratio:.1f} x as fast ({ratios[0]:.1f} to {ratios[-1]:.1f} in {rounds} rounds): {mine:.3f} ms "
        f"beside {theirs:.3f}; of the ten nearest found {recalls[0]:.1%} and {recalls[1]:.1%}",
        f"at least {comparison.target:.3g} x",
        ratio >= comparison.target and recalls[0] >= 0.99,
    )


def recall(side: Side, memories: Memories, asked: Sequence[Question], *, seconds: float = 10.0) -> float:
    """The share of the true nearest that is found; goes over the questions once, as long as there is time.

    So every namespace has been searched once when timing begins.
    """
    shares, end = [], time.monotonic() + seconds
    for each in asked:
        found = side.numbers(side.search(each))
        shares.append(share_of_the_nearest(memories, each, found))
        if time.monotonic() > end:
            break
    return statistics.fmean(shares)


def calls_of_a_block(side: Side, asked: Sequence[Question]) -> int:
    once = block(side, asked, 1, 0)
    return max(1, min(len(asked), int(SECONDS_OF_A_BLOCK / max(once, 1e-6))))


def block(side: Side, asked: Sequence[Question], calls: int, turn: int) -> float:
    """Seconds of CPU for a search, over a block of them; each turn goes on with the questions."""
    picked = [asked[(turn * calls + number) % len(asked)] for number in range(calls)]
    began = time.process_time()
    for each in picked:
        side.search(each)
    return (time.process_time() - began) / calls


# What has no peer


def by_namespaces(counts: Sequence[int], *, rounds: int) -> Iterator[Line]:
    """A search of 100 records in stores of more and more namespaces, and the first one after opening."""
    for count in counts:
        memories = Memories.made(100 * count, count)
        asked = questions(memories)
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(memories, SqliteBackend(Path(folder)))
            recall(ours, memories, asked)
            times = [block(ours, asked, QUERIES, turn) * 1000 for turn in range(rounds)]
            ours.backend.close()
            opened = [_opened(Path(folder), each) for each in asked[:20]]
        middle = statistics.median(times)
        cpu, wall = (statistics.median(column) for column in zip(*opened, strict=True))
        yield Line(
            f"sqlite, {count:,} namespaces of 100",
            {"namespaces": count, "ours_ms": middle},
            f"{middle:.3f} ms ({min(times):.3f} to {max(times):.3f})",
            "as much whatever their number",
        )
        yield Line(
            f"sqlite, open it and search 100 of {100 * count:,}",
            {"namespaces": count, "opened_ms": cpu, "opened_wall_ms": wall},
            f"{cpu:.2f} ms, {wall:.2f} ms of wall time; the file's pages in memory",
            "at most 5 ms",
            cpu <= 5.0,
        )


def _opened(folder: Path, asked: Question) -> tuple[float, float]:
    """Milliseconds of CPU and of wall time until a store that was closed has answered."""
    began, began_cpu = time.perf_counter(), time.process_time()
    backend = SqliteBackend(folder)
    hits = backend.search(_query(asked), limit=LIMIT)
    took = time.process_time() - began_cpu, time.perf_counter() - began
    backend.close()
    if len(hits) != LIMIT:
        raise RuntimeError(f"found {len(hits)} of {LIMIT} records")
    return took[0] * 1000, took[1] * 1000


def by_size(records: int) -> Line:
    """What a namespace takes in memory once it is searched, both copies and all that stands beside them."""
    memories = Memories.made(records, 1)
    asked = questions(memories)[0]
    with tempfile.TemporaryDirectory() as folder:
        Ours(memories, SqliteBackend(Path(folder))).backend.close()
        del memories
        program = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import peers; "
            f"peers.tell_growth(sys.argv[1], {asked.numbers!r})"
        )
        grown = json.loads(_run([sys.executable, "-c", program, folder], dict(os.environ)))
    each = grown / records
    return Line(
        f"sqlite, bytes of memory for each of {records:,} records",
        {"records": records, "bytes_a_record": each},
        f"{each:,.0f} bytes a record, {each - 4 * DIMENSION:,.0f} of them beside its numbers",
        "at most 2,200",
        each <= 2_200,
    )


def tell_growth(folder: str, numbers: Sequence[float]) -> None:
    """Print by how many bytes this process grows when it searches a store for the first time."""
    backend = SqliteBackend(Path(folder))
    before = _resident()
    asked = Question(0, np.array(numbers, dtype=np.float32), numbers)
    hits = backend.search(_query(asked), limit=LIMIT)
    print(_resident() - before if len(hits) == LIMIT else None)


def _resident() -> int:
    """Bytes of memory this process holds, pages of files left out."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


# Where it is run


def machine() -> str:
    model = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    found = []
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    load = f"load {os.getloadavg()[0]:.1f}"
    return (
        f"{model}, {os.cpu_count()} cores, {load}; {platform.system()}, "
        f"Python {platform.python_version()}; {', '.join(found)}"
    )


def interpreter_that_loads_extensions(named: str | None) -> tuple[str, dict[str, str]] | str:
    """An interpreter with a sqlite3 that loads extensions, and its environment; or why there is none."""
    paths = [named] if named else [sys.executable, shutil.which("python3") or "", "/usr/bin/python3"]
    reasons = []
    for path in dict.fromkeys(each for each in paths if each):
        borrowed = dict(os.environ, PYTHONPATH=os.pathsep.join(_PACKAGES_HERE))
        for environment in (dict(os.environ), borrowed):
            try:
                told = _run([path, "-c", _LOADS_EXTENSIONS, *map(str, sys.version_info[:2])], environment)
            except (OSError, RuntimeError) as error:
                told = str(error).splitlines()[-1]
            if told == "yes":
                return path, environment
        reasons.append(f"{path}: {told}")
    return "; ".join(reasons)


_PACKAGES_HERE: Final = (sysconfig.get_path("purelib"), str(Path(__file__).resolve().parents[1]))
_LOADS_EXTENSIONS: Final = """
import os, sqlite3, sys
same = sys.version_info[:2] == tuple(map(int, sys.argv[1:]))
if "PYTHONPATH" in os.environ and not same:
    sys.exit(f"Python {sys.version_info[0]}.{sys.version_info[1]} cannot use the packages installed here")
if not hasattr(sqlite3.Connection, "enable_load_extension"):
    sys.exit("its sqlite3 does not load extensions")
import langgraph.store.sqlite, numpy, supervisor_memory
print("yes")
"""


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    """What a program prints.

    Raises:
        RuntimeError: it ended with an error, which is what is said.
    """
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done.stdout.strip()


def in_a_process_of_its_own(what: Sequence[str], python: str, environment: dict[str, str]) -> Iterator[Line]:
    command = [python, __file__, "--here", *what]
    for line in _run(command, environment | {"OPENBLAS_NUM_THREADS": "1"}).splitlines():
        yield Line(**json.loads(line))


def here(options: argparse.Namespace) -> Iterator[Line]:
    match options.here:
        case ["compare", number]:
            yield compare(COMPARISONS[int(number)], rounds=options.rounds)
        case ["namespaces", *counts]:
            yield from by_namespaces([int(each) for each in counts], rounds=options.rounds)
        case ["memory", records]:
            yield by_size(int(records))


def lines(options: argparse.Namespace) -> Iterator[Line]:
    """All lines, each as soon as it is there."""
    environment, rounds = dict(os.environ), [f"--rounds={options.rounds}"]
    for number, comparison in enumerate(COMPARISONS):
        if (comparison.is_long and not options.full) or not _wanted(comparison.name, options.only):
            continue
        python, its_environment = sys.executable, environment
        if comparison.loads_extensions:
            found = interpreter_that_loads_extensions(options.python)
            if isinstance(found, str):
                yield Line(comparison.name, {"skipped": found}, f"left out: {found}; see --help")
                continue
            python, its_environment = found
        yield from in_a_process_of_its_own(["compare", str(number), *rounds], python, its_environment)
    if _wanted("namespaces", options.only):
        counts = options.namespaces or ([10, 1_000, 10_000] if options.full else [10, 100, 1_000])
        what = ["namespaces", *map(str, counts), *rounds]
        yield from in_a_process_of_its_own(what, sys.executable, environment)
    if _wanted("bytes", options.only):
        what = ["memory", str(options.records or (1_000_000 if options.full else 100_000))]
        yield from in_a_process_of_its_own(what, sys.executable, environment)


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(word.lower() in name.lower() for word in only)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="a million records too: about an hour")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=[], help="words of the names of the lines wanted")
    parser.add_argument("--namespaces", type=int, nargs="+", help="how many namespaces of 100 records")
    parser.add_argument("--records", type=int, help="how many records, to see what they take in memory")
    parser.add_argument("--python", default=os.environ.get("BENCHMARK_PYTHON"), help="see above")
    parser.add_argument("--json", type=Path, help="append each line to this file, as JSON")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        for line in here(options):
            print(json.dumps(asdict(line)), flush=True)
        return
    print(f"{machine()}\n")
    if options.json:
        _append(options.json, {"machine": machine(), "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())})
    for line in lines(options):
        judged = {None: "", True: ", reached", False: ", NOT reached"}[line.is_met]
        print(
            f"{line.name}\n    {line.told}" + (f"   (target: {line.target}{judged})" if line.target else "")
        )
        if options.json:
            _append(options.json, asdict(line))


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
