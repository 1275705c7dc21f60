"""kill -9 between a message and its vector: none is lost or doubled, and a flush gives each one vector."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.model.records import SESSION_FAMILY, Filter
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.upkeep.reembed import waiting_for
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, everything_in, killed_later

pytestmark = [*FORKS]
CYCLES = 300 if LONG else 10
CYCLES_IN_ONE_STORE = 10
USERS = ("ada", "bo")
EMBEDDER = HashingEmbedder(64)
_NUMBER = 12


def memory_at(place: Path) -> SupervisorMemory:
    settings = Settings(backend="sqlite", path=place)
    return SupervisorMemory(settings, embedder=EMBEDDER)


def say_for_ever(place: Path, pipe: int, seed: int) -> None:
    """Message after message, each told once it has been acknowledged, while a worker embeds them."""
    memory, number = memory_at(place), 0
    while True:
        number += 1
        name = f"{seed:05}n{number:06}"
        scope = Scope(USERS[number % 2], session_id=f"s{seed}")
        memory.remember([("user", f"Is there tea in depot {name}?")], scope)
        os.write(pipe, name.encode())
        time.sleep(0.002)


def test_a_process_killed_between_messages_and_their_vectors_loses_and_doubles_nothing(
    tmp_path: Path, figures: Callable[..., None]
) -> None:
    chance = Random(11)
    counts: Counter[str] = Counter()
    for first in range(0, CYCLES, CYCLES_IN_ONE_STORE):
        place, told = tmp_path / str(first), list[str]()
        memory_at(place).close()
        for seed in range(first, min(CYCLES, first + CYCLES_IN_ONE_STORE)):
            works = [lambda pipe, at=seed: say_for_ever(place, pipe, at)]  # noqa: B023
            with killed_later(works) as (_, pipe):
                received = os.read(pipe, _NUMBER)
                time.sleep(chance.uniform(0.0, 0.12))
            received += everything_in(pipe)
            os.close(pipe)
            told += [received[at : at + _NUMBER].decode() for at in range(0, len(received), _NUMBER)]
            counts["without a vector after the kill"] += waiting(place)
            if seed % 2:  # else the next process begins with what this one left
                with memory_at(place) as memory:
                    assert memory.flush(seconds=300)
        with memory_at(place) as memory:
            assert memory.flush(seconds=300)
            kept = memory.backend.list(Filter(families=(SESSION_FAMILY,)), limit=10**6)
        names = Counter(record.content.split()[-1].rstrip("?") for record in kept)
        found = inspected(place)
        counts["acknowledged"] += len(told)
        counts["lost"] += sum(name not in names for name in told)
        counts["doubled"] += sum(count - 1 for count in names.values())
        counts["left without"] += sum(record.embedder != EMBEDDER.fingerprint for record in kept)
        counts["changed"] += sum(record.version - 1 for record in kept)
        counts["mismatches"] += len([*found.damage, *found.gaps, *found.mismatches])
        shutil.rmtree(place)
    figures(cycles=CYCLES, **counts)
    wrong = ("lost", "doubled", "left without", "changed", "mismatches")
    assert {what: counts[what] for what in wrong} == dict.fromkeys(wrong, 0)
    assert counts["acknowledged"] >= CYCLES
    assert counts["without a vector after the kill"] > 0


def waiting(place: Path) -> int:
    backend = SqliteBackend(place)
    try:
        return backend.count(waiting_for(EMBEDDER.fingerprint, None, SESSION_FAMILY))
    finally:
        backend.close()
