"""The commands that look at recipes."""

from pathlib import Path

import pytest

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run


def test_all_recipes_are_listed_and_one_is_shown_with_its_constants(run: Run) -> None:
    names = [row["name"] for row in run("recipe", "list", "--json").json["recipes"]]
    assert names == sorted(names)
    assert {"default", "mem0", "memorybank"} <= set(names)
    assert "mem0_now" in run("recipe", "list").stdout
    shown = run("recipe", "show", "memorybank").stdout
    assert "floor = 0.1 (SAGE's forgetting threshold; the code draws lots)" in shown
    assert "Follows: the paper" in shown
    told = run("recipe", "show", "memorybank", "--json").json
    assert told["upkeep"][0].startswith("fade")
    assert told["constants"][0]["name"] == "days"


def test_a_file_is_written_checked_and_compared(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = run("recipe", "show", "memorybank", "--toml").stdout
    file.write_text(text.replace("top_k = 6", "top_k = 9"))
    assert run("recipe", "check", str(file)).stdout == f"{file}: recipe memorybank works\n"
    (row,) = run("recipe", "diff", "memorybank", str(file), "--json").json["differences"]
    assert (row["key"], row["one"], row["other"]) == ("post_retrieval", "first(most=6)", "first(most=9)")
    assert "+ first(most=9)" in run("recipe", "diff", "memorybank", str(file)).stdout
    file.write_text(text.replace("top_k = 6", "top_j = 9"))
    done = run("recipe", "check", str(file))
    assert done.code == 1
    assert f"{file}:7: recipe 'memorybank' has no constant 'top_j'; did you mean 'top_k'?" in done.stderr


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_chores_are_told_run_and_undone(run: Run, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_RECIPE", "generative_agents")
    with SupervisorMemory.from_env() as memory:
        memory.add_many([f"Report {n}: it burns." for n in range(40)], user_id="ada", infer=False)
    told = run("recipe", "status", "--user", "ada", "--json").json
    assert (told["recipe"], told["due"], told["pending_action"]) == (
        "generative_agents",
        {"reflect": 1},
        "reflect",
    )
    assert "1 change due" in run("recipe", "status", "--user", "ada").stdout
    plan = run("recipe", "optimize", "--user", "ada")
    assert plan.stdout.startswith("reflect add ")
    assert "nothing was changed; --yes does it" in plan.stderr
    done = run("recipe", "optimize", "--user", "ada", "--chore", "reflect", "--yes", "--json").json
    assert run("recipe", "optimize", "--user", "ada").stdout == "nothing is due\n"
    assert run("recipe", "undo", done["run"], "--user", "ada").stdout == "1 record set back, 0 left\n"
    assert run("recipe", "optimize", "--user", "ada", "--json").json["steps"]
    assert run("recipe", "optimize", "--user", "ada", "--chore", "dream").code == 2
    lines = run("recipe", "switching", "memorybank", "--user", "ada").stdout.splitlines()
    assert lines[-1].startswith("the chore daily_digest would change ")
