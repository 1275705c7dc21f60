"""kill -9 at any moment of a recipe's writing: what was acknowledged is there, and the store is whole."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.stores.sqlite.store import SqliteBackend
from tests.faults.conftest import LONG
from tests.faults.inspection import inspected
from tests.faults.processes import FORKS, everything_in, killed_later, tell, told
from tests.recipes.names import NAMES

pytestmark = [*FORKS]
SETTINGS = Settings(embedding_model="hashing", queue_worker=False)
KILLS = 7 if LONG else 1
"""Of each recipe; over a hundred of all in `make faults`."""
SOME = NAMES if LONG else ("a_mem", "secom")  # which write once more after an insert


def write_for_ever(recipe: str, place: Path, pipe: int, seed: int) -> None:
    """Text after text by a recipe, each told once it has been acknowledged; chores in between."""
    backend = SqliteBackend(place)
    with SupervisorMemory(SETTINGS, backend=backend, recipe=recipe) as memory:
        for n in range(1_000_000):
            text = f"Kim said {seed}-{n}: crate {n % 7} of depot Kiel holds pears."
            entry = {"content": text, "speaker": "Kim", "created_at": float(n)}
            (done,) = memory.add_many([entry], user_id="ada", infer=False)
            tell(pipe, memory.get(done.id))
            if n % 20 == 19:
                memory.optimize(user_id="ada")


@pytest.mark.parametrize("recipe", SOME)
def test_a_recipe_that_is_killed_at_random_loses_nothing_acknowledged(
    recipe: str, tmp_path: Path, figures: Callable[..., None]
) -> None:
    chance = Random(recipe)
    known = []
    for number in range(KILLS):
        work = [lambda pipe, seed=number: write_for_ever(recipe, tmp_path, pipe, seed)]
        with killed_later(work) as (_, pipe):
            received = os.read(pipe, 1)
            time.sleep(chance.uniform(0.01, 0.3))
        known += told(received + everything_in(pipe))
        os.close(pipe)
        found = inspected(tmp_path)
        assert found.damage == []
        assert (found.lost(known), found.gaps, found.mismatches) == ([], [], [])
    figures(recipe=recipe, kills=KILLS, acknowledged=len(known))
    assert len(known) >= KILLS
    with SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path), recipe=recipe) as memory:
        assert not memory.search("Where are the pears?", user_id="ada", threshold=0.0).degraded
