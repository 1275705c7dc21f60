"""kill -9 while tool results are taken up and read: none acknowledged is lost, none remembered twice."""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import Filter
from supervisor_memory.testing.scripted import ScriptedModel
from supervisor_memory.upkeep.queue.tables import QueueFile
from tests.faults.conftest import LONG
from tests.faults.processes import FORKS, ended, everything_in, forked, killed_later

pytestmark = [*FORKS]
USER = Scope("ada", "analyst", "s1")
CYCLES = 300 if LONG else 6
CYCLES_IN_ONE_STORE = 10
_NUMBER = 12


def spelled(number: int) -> str:
    """A number in letters: a model may not bring figures of its own."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def answered(prompt: Any) -> str:
    """A model that words what it finds otherwise each time: only an answer that is kept is the same again."""
    found = {line.split("depot ")[1].split(" ")[0] for line in str(prompt).split("\\n") if "depot " in line}
    time.sleep(0.002)
    said = f"{spelled(os.getpid())}x{spelled(time.monotonic_ns())}"
    items = [(f"depot {number} holds tea, says {said}", f"depot {number} holds tea") for number in found]
    return json.dumps([{"content": told, "quote": quote, "kind": "domain-facts"} for told, quote in items])


def memory_at(place: Path) -> SupervisorMemory:
    settings = Settings(
        backend="sqlite",
        path=place,
        embedding_model="none",
        queue_min_events=1,
        queue_cooldown_s=0,
        duplicate_threshold=1.0,  # so that what is read twice would be seen
        write_timeout_ms=60_000,
    )
    return SupervisorMemory(settings, llm=ScriptedModel(script=[answered] * 10**5))


def observe_for_ever(place: Path, pipe: int, seed: int) -> None:
    """Result after result, each told once it has been acknowledged, while a worker reads them."""
    memory, number = memory_at(place), 0
    while True:
        number += 1
        name = f"{seed:05}n{number:06}"
        if memory.queue.observe("run_sql", {"sql": f"SELECT {name} FROM t"}, f"depot {name} holds tea", USER):
            os.write(pipe, name.encode())
        time.sleep(0.001)


def test_a_killed_process_loses_no_event_and_none_is_remembered_twice(
    tmp_path: Path, figures: Callable[..., None]
) -> None:
    chance = Random(5)
    counts: Counter[str] = Counter()
    for first in range(0, CYCLES, CYCLES_IN_ONE_STORE):
        place = tmp_path / str(first)
        memory_at(place).close()
        told: list[str] = []
        for seed in range(first, min(CYCLES, first + CYCLES_IN_ONE_STORE)):
            works = [lambda pipe, at=seed: observe_for_ever(place, pipe, at)]  # noqa: B023
            with killed_later(works) as (_, pipe):
                received = os.read(pipe, _NUMBER)
                time.sleep(chance.uniform(0.01, 0.15))
            received += everything_in(pipe)
            os.close(pipe)
            told += [received[at : at + _NUMBER].decode() for at in range(0, len(received), _NUMBER)]
        with memory_at(place) as memory:
            counts["waited for the next process"] += memory.queue.counts()["waiting"]
            assert memory.flush(seconds=300)
            assert memory.queue.counts() == {"waiting": 0, "dead": 0}
            records = memory.backend.list(Filter(user_id="ada"), limit=10**6)
        by_rules = Counter(r.content for r in records if r.kind == "tool-effects")
        by_model = Counter(r.content.split(" ")[1] for r in records if r.kind == "domain-facts")
        counts["acknowledged"] += len(told)
        counts["lost"] += sum(
            f"SQL: SELECT {name} FROM t" not in by_rules or name not in by_model for name in told
        )
        counts["twice"] += sum(count - 1 for count in (*by_rules.values(), *by_model.values()))
        counts["twice"] += sum(
            r.version - 1 for r in records
        )  # what is worded anew takes the old one's place
        shutil.rmtree(place)
    figures(cycles=CYCLES, **counts)
    assert (counts["lost"], counts["twice"]) == (0, 0)
    assert counts["acknowledged"] >= CYCLES
    assert counts["waited for the next process"] > 0


@pytest.mark.parametrize("moment", ["finish", "keep_reply", "is_held"])
def test_a_process_killed_right_there_repeats_nothing(tmp_path: Path, moment: str) -> None:
    """After the records were committed and before the event went, and around the model's answer."""

    def work() -> None:
        memory = memory_at(tmp_path)
        real: Callable[..., Any] = getattr(QueueFile, moment)

        def killing(*args: Any, **options: Any) -> Any:
            if moment == "keep_reply":
                real(*args, **options)
            os.kill(os.getpid(), 9)

        setattr(QueueFile, moment, killing)
        memory.queue.observe("run_sql", {"sql": "SELECT a FROM t"}, "depot 00001 holds tea", USER)
        memory.flush(seconds=30)

    memory_at(tmp_path).close()
    assert ended(forked(work)) == -9
    with memory_at(tmp_path) as memory:
        assert memory.queue.counts()["waiting"] == 1
        assert memory.flush(seconds=30)
        assert memory.flush(seconds=30)
        records = memory.backend.list(Filter(user_id="ada"), limit=99)
        assert sorted(r.kind for r in records) == ["domain-facts", "tool-effects"]
        said = next(r.content for r in records if r.kind == "domain-facts")
        is_first = f"says {spelled(os.getpid())}x" not in said
        assert is_first == (moment != "is_held"), "the answer of the process that was killed is used again"
