"""kill -9 at any moment: what was acknowledged is there, and all that is there agrees."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, Acknowledged, acknowledged_before_a_kill

pytestmark = [*FORKS]
CYCLES_IN_ONE_STORE = 25


@pytest.mark.parametrize(("writers", "cycles"), [(1, 1000 if LONG else 10), (2, 300 if LONG else 6)])
def test_writers_that_are_killed_at_random_lose_nothing_acknowledged(
    tmp_path: Path, writers: int, cycles: int, figures: Callable[..., None]
) -> None:
    chance = Random(writers)
    counts: Counter[str] = Counter()
    for first in range(0, cycles, CYCLES_IN_ONE_STORE):
        place = tmp_path / str(first)
        told: list[Acknowledged] = []
        for number in range(first, min(cycles, first + CYCLES_IN_ONE_STORE)):
            told += acknowledged_before_a_kill(
                place,
                writers=writers,
                seed=number,
                seconds=chance.uniform(0.01, 0.08),
                from_the_start=chance.random() < 0.1,
            )
            found = inspected(place)
            assert found.damage == []
            counts["lost"] += len(found.lost(told))
            counts["gaps"] += len(found.gaps)
            counts["mismatches"] += len(found.mismatches)
        counts["acknowledged"] += len(told)
        counts["stored unacknowledged"] += sum(found.stored.values()) - len(told)
        shutil.rmtree(place)
    figures(cycles=cycles, **counts)
    assert (counts["lost"], counts["gaps"], counts["mismatches"]) == (0, 0, 0)
    assert counts["acknowledged"] >= cycles / 2
