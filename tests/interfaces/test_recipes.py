"""The commands that look at recipes."""

from pathlib import Path

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
