"""`supervisor-memory evaluate` over a graph of the user's own."""

import json
from pathlib import Path

import pytest

from tests.interfaces.conftest import Run

GRAPHS = "tests.evaluation.graphs"
ASKED = "What is my project code?"


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    file = tmp_path / "threads.jsonl"
    entries = (
        {
            "id": f"t{n}",
            "turns": [f"My project code is X-{n}.", "What is my project code?"],
            "must": rf"X-{n}\b",
        }
        for n in range(1, 8)
    )
    file.write_text("".join(json.dumps(each) + "\n" for each in entries), "utf-8")
    return file


def test_it_tells_gain_cost_and_what_is_not_counted(run: Run, threads: Path) -> None:
    done = run("evaluate", f"{GRAPHS}:team", str(threads), "--apart", "--price-in", "1")
    assert done.code == 0
    assert "14 turns of 7 threads, each answered 2 ways" in done.stdout
    assert "memory: memory helps" in done.stdout
    assert "right: bare 0 of 7, with memory 7; gained 7, harmed 0" in done.stdout
    assert "not counted: 7 × nothing to judge it by" in done.stdout


def test_within_one_session_memory_makes_no_difference(run: Run, threads: Path) -> None:
    done = run("evaluate", f"{GRAPHS}:team", str(threads), "--json", "--interval", "bootstrap")
    assert done.json["arms"][0]["verdict"] == "no difference"
    assert done.json["arms"][0]["gain"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_axes_make_an_arm_of_each_combination(run: Run, threads: Path) -> None:
    axes = ("--recipe", "default", "--recipe", "mem0", "--embedder", "none")
    done = run("evaluate", f"{GRAPHS}:team", str(threads), "--apart", "--json", *axes)
    assert [each["arm"] for each in done.json["arms"]] == ["default none", "mem0 none"]


def test_all_turns_go_into_a_file_for_its_owner_alone(run: Run, threads: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    ask = ("evaluate", f"{GRAPHS}:team", str(threads), "--apart", "--out", str(out))
    assert run(*ask).code == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert len(json.loads(out.read_text("utf-8"))["cases"]) == 14
    again = run(*ask)
    assert (again.code, "is there already" in again.stderr) == (1, True)


def test_what_is_wrong_is_told_in_a_line(run: Run, threads: Path, tmp_path: Path) -> None:
    nothing = run("evaluate", f"{GRAPHS}:nobody", str(threads))
    assert (nothing.code, "cannot be loaded" in nothing.stderr) == (1, True)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n", "utf-8")
    assert run("evaluate", f"{GRAPHS}:team", str(broken)).code == 2
    assert run("evaluate", f"{GRAPHS}:team", str(threads), "--interval", "guess").code == 2
    names = run("evaluate", f"{GRAPHS}:team", str(threads), "--database", str(broken), "--names", str(broken))
    assert (names.code, "Traceback" in names.stderr) == (0, False)
    judge = run("evaluate", f"{GRAPHS}:team", str(threads), "--judge", "no-such-provider:x")
    assert (judge.code, "cannot be opened" in judge.stderr) == (1, True)
