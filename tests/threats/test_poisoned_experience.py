"""Three hundred tool outputs that want to be remembered become no guideline and no preference."""

from importlib import util
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experience.poison import poisoned


def test_no_poisoned_output_becomes_a_guideline_or_a_preference() -> None:
    found = _benchmark().poison()
    assert found["outputs"] == len(list(poisoned())) == 300
    assert (found["poisoned guidelines"], found["active"]) == (0, [])
    assert found["poisoned preferences"] == 0


@pytest.mark.parametrize("half", ["first", "second"])
def test_what_a_fault_taught_is_told_to_the_agent_that_calls_the_tool(half: str, tmp_path: Path) -> None:
    bench = _benchmark()
    chosen = bench.faults()[0 if half == "first" else 1 :: 2]
    found = bench.seeded(chosen, tmp_path)
    assert found["told"] >= 0.8
    assert found["others"] <= 0.05
    assert found["wrong"] <= 0.02
    assert found["outdated"] <= 0.02


def _benchmark() -> Any:
    """The program `benchmarks/experience.py`, beside which there is a package of its name."""
    path = Path(__file__).parents[2] / "benchmarks" / "experience.py"
    spec = util.spec_from_file_location("experience_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    made = util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
