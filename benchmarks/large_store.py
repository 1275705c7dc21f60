"""What a large SQLite store costs those who look at it: a million audit rows, 100,000 records of a user.

Run: python benchmarks/large_store.py [--records 100000] [--rows 1000000] [--vectors] [--at DIR] [--json FILE]

A store is filled: so many facts of one user, in ten families and by five agents, written as an import writes
them; audit rows of further decisions over a year, a tenth of them of the last day; 20,000 notes and 100,000
accesses. With --vectors each record has a vector at random, of 384 numbers. With --at it is kept there and
used again. Then each call is made in a process of its own, as after
a deploy: `cold` is the first call, `warm` the median of five more. `export`, `verify` and `forget` run once.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from supervisor_memory import Filter, Scope, Settings, SupervisorMemory
from supervisor_memory.audit.rows import Access
from supervisor_memory.audit.turns import Given
from supervisor_memory.model.records import AuditEvent, Record, Source, new_id
from supervisor_memory.stores.sqlite.store import SqliteBackend

USER = "ada"
DAY = 86_400.0
YEAR = 365 * DAY
TOGETHER = 5_000
FAMILIES = ("user_profile", "domain_facts", *(f"agent{number}_memories" for number in range(8)))
CARRIERS = ["AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
ROUNDS = 5
FAR = json.dumps([time.time() - 0.9 * YEAR, ""])
"""Behind nine tenths of the records."""


VECTORS = Settings(embedding_model="hashing", embedding_dim=384)
NO_VECTORS = Settings(embedding_model="none")


def record(number: int, now: float, embedder: str | None = None) -> Record:
    chance = random.Random(number)
    at = now - DAY / 2 - chance.random() * YEAR
    text = (
        f"Carrier {chance.choice(CARRIERS)} flew {chance.randrange(9_999)} times in week {number % 52} of "
        f"plan {number}, {chance.choice(('late', 'on time', 'cancelled'))} at gate {chance.randrange(300)}."
    )
    family, agent = FAMILIES[number % len(FAMILIES)], f"agent{number % 5}"
    by = Source("user" if family == "user_profile" else "agent", agent, f"thread-{number % 5_000}")
    made = Record(new_id(), (family, USER), text, "domain-facts", at, at, source=by)
    if embedder is None:
        return made
    vector = np.random.default_rng(number).standard_normal(VECTORS.embedding_dim or 0).astype(np.float32)
    return replace(made, vector=vector, embedder=embedder)


def fill(place: Path, records: int, rows: int, settings: Settings) -> None:
    """Write the records, and what the logs know of a busy year."""
    now, chance = time.time(), random.Random(7)
    with SupervisorMemory(settings) as memory:
        embedder = None if memory.services.embedder is None else memory.services.embedder.fingerprint
    with closing(SqliteBackend(place)) as backend:
        ids: list[str] = []
        for start in range(0, records, TOGETHER):
            page = [record(number, now, embedder) for number in range(start, min(records, start + TOGETHER))]
            backend.write(page)
            ids += [each.id for each in page]
        log = backend.audit
        for start in range(log.count(), rows, TOGETHER):
            age = (rows - start) / rows
            at = now - (age * YEAR if age > 0.1 else age * 10 * DAY)
            ops = chance.choices(
                ("add", "skip", "merge", "update"), (5, 3, 1, 1), k=min(TOGETHER, rows - start)
            )
            log.append(
                [
                    AuditEvent(
                        *(op, f"user-{chance.randrange(2_000)}"),
                        record_id=chance.choice(ids),
                        agent_id=f"agent{chance.randrange(5)}",
                        detail={"layer": "abstract"},
                    )
                    for op in ops
                ],
                at=at,
            )
        for number in range(20_000):
            scope = Scope(USER, f"agent{number % 5}", f"thread-{number % 500}", f"run-{number // 4}")
            at = now - (20_000 - number) * 4.0
            shown = json.dumps([[each, 1, 0.5, "kept", {"relevance": 0.5}] for each in chance.sample(ids, 3)])
            told = Given(
                new_id(), "inject", at, scope, 120, degraded=False, shown=shown, dropped="[]", records=3
            )
            log.record_access([told])
            if log.has_much_to_write:
                log.flush()
        for number in range(100_000):
            at = now - (100_000 - number) * 0.8
            log.record_access(
                [Access("inject", at, USER, f"agent{number % 5}", record_id=chance.choice(ids), rank=1)]
            )
            if log.has_much_to_write:
                log.flush()
        log.flush()


def calls(place: Path, settings: Settings) -> Mapping[str, Callable[[], object]]:
    """The calls to measure, over one memory of this process."""
    settings = settings.model_copy(update={"backend": "sqlite", "path": place})

    def diagnosed() -> object:
        from supervisor_memory.reading.doctor import diagnose

        return diagnose(settings)

    if sys.argv[-1] == "doctor":
        return {"doctor": diagnosed}
    memory = SupervisorMemory(settings)

    def app() -> Any:
        from starlette.testclient import TestClient

        from supervisor_memory.interfaces.http.access import Tokens
        from supervisor_memory.interfaces.http.app import create_app

        token = "operator-of-the-benchmark"
        made = create_app(memory, tokens=Tokens.read(f"operator:{token}:*"))
        headers = {"authorization": f"Bearer {token}"}
        return TestClient(made, base_url="http://localhost", headers=headers)

    served = app()  # made as a server starts, before anybody asks
    served.get("/healthz")

    def get(path: str) -> Callable[[], object]:
        def call() -> object:
            answer = served.get(path)
            assert answer.status_code == 200, (path, answer.status_code, answer.text[:200])
            return answer

        return call

    def walked() -> object:
        before, pages = None, 0
        while page := memory.audit.notes(500, before=before):
            before, pages = page[-1].seq, pages + 1
        return pages

    return {
        "metrics": get("/metrics"),
        "health page": lambda: memory.audit.figures(since=time.time() - DAY),
        "search": lambda: memory.search("on time at gate 17 of plan 4711", user_id=USER),
        "recall": lambda: memory.recall([("user", "Which carrier was late in week 12?")], Scope(USER)),
        "list, first page": lambda: memory.get_all(user_id=USER, limit=50),
        "list, far page": lambda: memory.get_all(user_id=USER, limit=50, after=FAR),
        "count": lambda: memory.upkeep.count(Filter(USER)),
        "notes, all pages": walked,
        "forget, dry": lambda: memory.forget(user_id=USER),
        "verify": memory.audit.verify,
        "export": lambda: memory.export(place.parent / f"out-{time.time_ns()}.jsonl", user_id=USER),
    }


ONCE = ("forget, dry", "verify", "export", "notes, all pages")
NAMES = (
    *("metrics", "health page", "doctor", "search", "recall", "list, first page", "list, far page", "count"),
    *ONCE,
)


def measured(place: Path, name: str, settings: Settings) -> Iterator[float]:
    """Milliseconds of each call, the first in a process that has made none."""
    call = calls(place, settings)[name]
    for _ in range(1 if name in ONCE else 1 + ROUNDS):
        began = time.perf_counter()
        call()
        yield (time.perf_counter() - began) * 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--at", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", help="the calls to measure, by name, with commas between", default="")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    settings = VECTORS if asked.vectors else NO_VECTORS
    if asked.one:
        print(json.dumps([*measured(asked.at, asked.one, settings)]))
        return
    with tempfile.TemporaryDirectory() as passing:
        place: Path = (asked.at or Path(passing)) / "store"
        if not place.exists():
            began = time.perf_counter()
            fill(place, asked.records, asked.rows, settings)
            print(f"filled in {time.perf_counter() - began:.0f} s")
        told: dict[str, dict[str, float]] = {}
        for name in asked.only.split(",") if asked.only else NAMES:
            command = [
                sys.executable,
                __file__,
                *["--vectors"] * asked.vectors,
                "--at",
                str(place),
                "--one",
                name,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name:<18} failed: {done.stderr.strip().splitlines()[-1]}")
                continue
            cold, *warm = json.loads(done.stdout)
            told[name] = {"cold": cold} | ({"warm": statistics.median(warm)} if warm else {})
            print(f"{name:<18}" + "".join(f"  {which} {ms:9,.1f} ms" for which, ms in told[name].items()))
    if asked.json is not None:
        asked.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
