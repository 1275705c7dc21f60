"""What relations cost: `memory.relations`, the walk of a search, and the search with it and without.

Run: python benchmarks/relations_cost.py [--records 10000] [--backend sqlite] [--embedder none] [--json FILE]
     python benchmarks/relations_cost.py --walks 10000 100000 1000000
     python benchmarks/relations_cost.py --inserts 1000 3000 10000 30000

Facts of a data team are made up, half as many tables as facts, some named often and most seldom (Zipf), so
that there are hubs; a seventh are queries. Of each line the median and the 95th percentile in milliseconds
of processor time: `relations` of a table, of the table that most records name, of a name that no record
holds, and with the way to a person; `related`, the walk alone, from three records; `search` at 5 and 10
places with neighbours and without, by turns and each question new; a `write` into the empty and into the full
store; opening the full one and the first search in it. First calls, which load the index and read texts that
nobody has asked for, are told apart.

--walks measures the index alone, at each number of records: eight names a record of half as many names as
records, named by Zipf's law (1.3). A walk is from three records, of which one in four names what most name;
putting one record with ten names; loading all; and what the index takes in memory.

--inserts measures a `write` into stores of each number of records.
"""

import argparse
import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from supervisor_memory import DEFAULT, Settings, SupervisorMemory
from supervisor_memory.model.records import Filter, Query, Seed
from supervisor_memory.signals.index import Entry, Floats, Index, Rows
from supervisor_memory.signals.walk import Start, walk
from supervisor_memory.stages.post_retrieval.neighbours import add_joined

WITHOUT = replace(DEFAULT, post_retrieval=tuple(o for o in DEFAULT.post_retrieval if o is not add_joined))
USER = "reader"
PATIENCE_MS = 60_000
OPENINGS = 15
FIRST_NAMES = ("Ada", "Boris", "Carla", "Nils", "Ilse", "Olga", "Ravi", "Mei", "Tomas", "Zoe")
FRAMES = (
    "{a} reads from {b}.",
    "The rows of {a} come from {b}.",
    "{a} is maintained by {p}.",
    "{p} wrote {a} and is on call for it on Fridays.",
    "{a} has about {n} million rows and is rebuilt at {h} o'clock.",
    "The {n} board, also called board_{n}, reads from {a}.",
    "SQL: SELECT region, SUM(amount) AS total_{n} FROM {a} JOIN {b} USING (id) GROUP BY region",
)


def facts(records: int, dice: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """Texts of facts, and the names of the tables in them, those named most first."""
    tables = [f"fct_{number:05d}" for number in range(max(2, records // 2))]
    weights = [1 / (place + 1) for place in range(len(tables))]
    people = [f"{first} {last}berg" for first in FIRST_NAMES for last in ("Holm", "Stein", "Linden", "Rosen")]
    often = dice.choices(tables, weights, k=records)
    texts = [
        dice.choice(FRAMES).format(a=a, b=dice.choice(tables), p=dice.choice(people), n=place, h=place % 24)
        for place, a in enumerate(often)
    ]
    return texts, tables


def timed(calls: Sequence[Callable[[], object]]) -> Sequence[float]:
    """Milliseconds of processor time of each call, in all threads."""
    found = []
    for call in calls:
        begun = time.process_time()
        call()
        found.append(1e3 * (time.process_time() - begun))
    return found


def opened(path: Path, options: argparse.Namespace, *, joined: bool = True) -> SupervisorMemory:
    settings = Settings(
        backend=options.backend,
        path=path,
        embedding_model=options.embedder,
        search_timeout_ms=PATIENCE_MS,
        write_timeout_ms=PATIENCE_MS,
    )
    return SupervisorMemory(settings, recipe=DEFAULT if joined else WITHOUT)


def first_search(path: Path, options: argparse.Namespace, joined: bool) -> None:  # noqa: FBT001
    """Open a store and search in it once."""
    with opened(path, options, joined=joined) as memory:
        memory.search("Which table is new?", user_id=USER)


def inserts(records: int, options: argparse.Namespace) -> Mapping[str, Sequence[float]]:
    """Line → milliseconds of each write into a store of so many records."""
    texts, _ = facts(records, random.Random(records))
    with tempfile.TemporaryDirectory() as path, opened(Path(path), options) as memory:
        memory.add_many([{"content": text, "kind": "domain-facts"} for text in texts], user_id=USER)
        memory.write("The first sketch is new.", user_id=USER)
        writes = [partial(memory.write, f"sketch_{n} is new.", user_id=USER) for n in range(options.rounds)]
        return {"write": timed(writes)}


def measured(options: argparse.Namespace, path: Path) -> Mapping[str, Sequence[float]]:
    """Line → milliseconds of each call."""
    dice = random.Random(options.records)
    texts, tables = facts(options.records, dice)
    told: dict[str, Sequence[float]] = {}
    rounds = options.rounds
    openings: tuple[list[float], list[float]] = ([], [])

    def ask(name: str, to: str | None = None) -> Callable[[], object]:
        return lambda: memory.relations(name, user_id=USER, to=to)

    with opened(path, options) as memory:
        told["write, empty"] = timed(
            [lambda n=n: memory.write(f"draft_{n} is new.", user_id=USER) for n in range(50)]
        )
        memory.add_many([{"content": text, "kind": "domain-facts"} for text in texts], user_id=USER)
        told["write, full"] = timed(
            [lambda n=n: memory.write(f"sketch_{n} is new.", user_id=USER) for n in range(50)]
        )
        seldom = dice.sample(tables[len(tables) // 10 :], rounds)
        told["relations, first"] = timed([ask(seldom[0])])
        told["relations"] = timed([ask(name) for name in seldom])
        told["relations, again"] = timed([ask(name) for name in seldom])
        told["relations, hub, first"] = timed([ask(tables[0])])
        told["relations, hub"] = timed([ask(tables[0])] * 5)
        told["relations, nothing"] = timed([ask(f"absent_{n}") for n in range(rounds)])
        told["relations, with a way"] = timed([ask(name, "Nils Holmberg") for name in seldom])
        every = memory.get_all(user_id=USER, limit=3 * rounds)
        seeds = [[Seed(e.content, 0.9, e.id) for e in every[3 * n : 3 * n + 3]] for n in range(rounds)]
        asked = Query("", Filter(user_id=USER), now=time.time())
        walk = memory.backend.related  # type: ignore[attr-defined]
        told["related"] = timed([lambda s=s: walk(s, asked, limit=5, least=0.3) for s in seeds])
    for _ in range(OPENINGS):
        for joins, times in zip((True, False), openings, strict=True):
            times.extend(timed([partial(first_search, path, options, joins)]))
    told["open, with"], told["open, without"] = openings
    others = iter(dice.sample(tables[len(tables) // 10 :], 6 * rounds))  # no text is known from another line
    with opened(path, options) as joined, opened(path, options, joined=False) as plain:
        for memory in (joined, plain):
            memory.search("Which table is new?", user_id=USER)
        for places in (5, 10):
            ways: tuple[list[float], list[float]] = ([], [])
            for _ in range(rounds):
                for memory, times in zip((joined, plain), ways, strict=True):
                    asked_for = f"Who maintains what {next(others)} reads from?"
                    times.extend(timed([partial(memory.search, asked_for, user_id=USER, limit=places)]))
            told[f"search, {places}, with"], told[f"search, {places}, without"] = ways
    return told


def walks(records: int, rounds: int = 200) -> Mapping[str, Sequence[float]]:
    """Line → milliseconds of each call of an index alone, or bytes."""
    rng = np.random.default_rng(records)
    names = records // 2
    weights = 1.0 / np.arange(1, names + 1) ** 1.3
    drawn = rng.choice(names, size=(records, 8), p=weights / weights.sum())
    seldom = rng.integers(0, names, size=(records, 8))
    held = np.where(rng.random((records, 8)) < 0.25, drawn, seldom)
    held[::4, 0] = 0  # the hub

    def of(row: int) -> tuple[str, ...]:
        return tuple(f"name_{number}" for number in sorted(set(held[row].tolist())))

    def read(rows: Sequence[int]) -> Mapping[int, Start]:
        return {row: Start(of(row), partial(of, row)) for row in rows}

    def alike(rows: Rows) -> Floats:
        return np.full(len(rows), 0.5, dtype=np.float32)

    index, told = Index(), dict[str, Sequence[float]]()
    gc.collect()
    told["load"] = timed([lambda: index.load((row, Entry(of(row), 0.0)) for row in range(records))])
    told["load, made of texts alone"] = timed([lambda: [of(row) for row in range(records)]])
    begun = [[*read(rng.integers(0, records, size=3).tolist()).values()] for _ in range(rounds)]
    index.settle()
    walking = partial(walk, [index], without=(), fit=alike, read=read, least=0.3)
    told["walk"] = timed([partial(walking, some) for some in begun])
    ten = [tuple({f"name_{number}" for number in rng.integers(0, names, 10).tolist()}) for _ in range(rounds)]
    (whole,) = timed([lambda: [index.put(records + n, Entry(each, 0.0)) for n, each in enumerate(ten)]])
    told["put"] = [whole / rounds]
    told["bytes a record"] = [index.nbytes / records]
    return told


def show(told: Mapping[str, Sequence[float]]) -> None:
    for name, values in told.items():
        p95 = sorted(values)[max(0, round(0.95 * len(values)) - 1)]
        print(f"{name:26}  p50 {statistics.median(values):9.3f}  p95 {p95:9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--backend", default="sqlite", choices=("sqlite", "json"))
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--walks", type=int, nargs="+", default=())
    parser.add_argument("--inserts", type=int, nargs="+", default=())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for records in options.walks:
        print(f"{records:,} records")
        show(walks(records))
    for records in options.inserts:
        print(f"{records:,} records")
        show(inserts(records, options))
    if options.walks or options.inserts:
        return
    with tempfile.TemporaryDirectory() as path:
        told = measured(options, Path(path))
    show(told)
    for places in (5, 10):
        with_, without = (statistics.median(told[f"search, {places}, {way}"]) for way in ("with", "without"))
        print(f"search, {places}: with neighbours {with_ / without:.2f} × without")
    with_, without = (statistics.median(told[f"open, {way}"]) for way in ("with", "without"))
    print(f"opened and searched once: with neighbours {with_ / without:.2f} × without")
    if options.json:
        options.json.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
