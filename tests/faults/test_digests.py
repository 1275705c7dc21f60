"""kill -9 between a session and its digest: none is lost or doubled, and a flush gives each session one."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, everything_in, killed_later

pytestmark = [*FORKS]
CYCLES = 300 if LONG else 10
CYCLES_IN_ONE_STORE = 10
_NUMBER = 12


def memory_at(place: Path) -> SupervisorMemory:
    settings = Settings(backend="sqlite", path=place, embedding_model="none")
    return SupervisorMemory(settings)


def go_on_for_ever(place: Path, pipe: int, seed: int) -> None:
    """Session after session, each told once it has been acknowledged, while a worker digests those before."""
    memory, number = memory_at(place), 0
    while True:
        number += 1
        name = f"{seed:05}n{number:06}"
        said = [
            ("user", f"Count the tea of depot {name}."),
            ("assistant", f"Depot {name} is not counted yet."),
        ]
        memory.remember(said, Scope("ada", session_id=name))
        os.write(pipe, name.encode())
        time.sleep(0.004)


def test_a_process_killed_between_sessions_and_their_digests_loses_and_doubles_nothing(
    tmp_path: Path, figures: Callable[..., None]
) -> None:
    chance = Random(12)
    counts: Counter[str] = Counter()
    for first in range(0, CYCLES, CYCLES_IN_ONE_STORE):
        place, told = tmp_path / str(first), list[str]()
        memory_at(place).close()
        for seed in range(first, min(CYCLES, first + CYCLES_IN_ONE_STORE)):
            works = [lambda pipe, at=seed: go_on_for_ever(place, pipe, at)]  # noqa: B023
            with killed_later(works) as (_, pipe):
                received = os.read(pipe, _NUMBER)
                time.sleep(chance.uniform(0.0, 0.15))
            received += everything_in(pipe)
            os.close(pipe)
            told += [received[at : at + _NUMBER].decode() for at in range(0, len(received), _NUMBER)]
            if seed % 2:  # else the next process begins with what this one left
                with memory_at(place) as memory:
                    assert memory.flush(seconds=300)
        with memory_at(place) as memory:
            memory.remember([("user", "Where is the tea?")], Scope("ada", session_id="last"))
            assert memory.flush(seconds=300)
            kept = memory.backend.list(Filter(families=(SESSION_FAMILY,)), limit=10**6)
            made = memory.backend.list(Filter(families=(DIGEST_FAMILY,), statuses=None), limit=10**6)
        sessions = {record.source.session_id for record in kept} - {"last"}
        digests = Counter(record.attribute for record in made)
        found = inspected(place)
        counts["sessions"] += len(sessions)
        counts["lost"] += sum(name not in digests for name in sessions)
        counts["doubled"] += sum(count - 1 for count in digests.values())
        counts["of nothing"] += sum(name not in sessions for name in digests)
        counts["without what is open"] += sum(
            "not counted" not in record.content for record in made if record.attribute in told
        )
        counts["mismatches"] += len([*found.damage, *found.gaps, *found.mismatches])
        shutil.rmtree(place)
    figures(cycles=CYCLES, **counts)
    wrong = ("lost", "doubled", "of nothing", "without what is open", "mismatches")
    assert {what: counts[what] for what in wrong} == dict.fromkeys(wrong, 0)
    assert counts["sessions"] >= CYCLES
