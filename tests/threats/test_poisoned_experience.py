"""Three hundred tool outputs that want to be remembered become no guideline and no preference."""

import re
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from benchmarks.experience.poison import poisoned
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import size


def test_no_poisoned_output_becomes_a_guideline_or_a_preference() -> None:
    found = _benchmark().poison(together=30)
    assert found["outputs"] == len(list(poisoned())) == 300
    assert (found["poisoned guidelines"], found["active"]) == (0, [])
    assert found["poisoned preferences"] == 0


@pytest.mark.parametrize("together", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_a_fault_taught_is_told_to_the_agent_that_calls_the_tool(together: bool, tmp_path: Path) -> None:
    bench = _benchmark()
    chosen = bench.faults()[:: size(2 if together else 3, less=5)]
    found = bench.seeded(chosen, tmp_path, together=together, approved=together)
    assert {name for name, _, is_held in bench.against_bars(found) if is_held} == {
        *("told", "others", "wrong or outdated"),
    }
    assert found["notes with true corrections, but not the needed one"] <= (0.05 if together else 0.0)


def test_a_correction_is_wrong_that_no_fault_of_its_tool_bears_out() -> None:
    bench = _benchmark()
    needed = next(each for each in bench.faults() if each["id"] == "column-1")
    said = ("`arr_delay`, not `delay`", "`dest`, not `destination`. Held 1 of 1.", "`late`, not `delay`")
    assert [bench.borne_out(each, needed) for each in said] == ["needed", "another", "wrong"]


def test_with_a_model_the_table_tells_what_it_met_learned_and_repeated(tmp_path: Path) -> None:
    bench = _benchmark()
    chosen = [each for each in bench.faults() if each["id"] in ("column-1", "limit-2")]
    of_ask = {each[turn]["ask"]: each for each in chosen for turn in ("first", "second")}

    def work(messages: list[Any]) -> AIMessage:
        """A model that makes each mistake until a tool or its note says otherwise."""
        whole = "\n".join(str(each.text) for each in messages)
        fault = next(fault for ask, fault in of_ask.items() if ask in whole)
        heard = [each for each in messages if isinstance(each, ToolMessage) and each.name == fault["tool"]]
        if heard and heard[-1].status != "error":
            return AIMessage("Found.")
        is_told = bool(heard) or re.search(fault["holds"], whole)
        return call_of(fault["tool"], **fault["second"]["good" if is_told else "bad"])

    found = bench.with_model(ScriptedModel(script=[work] * 40), chosen, tmp_path)
    assert found["met in the first session"] == found["learned of these"] == 1.0
    assert found["told in the second, of what was learned"] == 1.0
    assert found["told with the seeded correction"] == 1.0
    assert found["failed calls in the second"] == 0
    assert found["failed calls in the second without memory"] == 2


def _benchmark() -> Any:
    """The program `benchmarks/experience.py`, beside which there is a package of its name."""
    path = Path(__file__).parents[2] / "benchmarks" / "experience.py"
    spec = util.spec_from_file_location("experience_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    made = util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
