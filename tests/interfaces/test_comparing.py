"""Recipes are compared on the same questions; what may be chance is called no difference."""

import json
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.reading.compared import Asked, difference, quantile, read_questions, share
from tests.interfaces.conftest import Run

SET = {
    "conversations": [
        {
            "id": "one",
            "turns": [
                {"id": "a", "text": "The depot is in Kiel."},
                {"id": "b", "text": "Tea is at five."},
                *({"id": f"c{n}", "text": f"Shelf {n} is full of boxes."} for n in range(9)),
            ],
            "questions": [
                {"q": "Where is the depot?", "cat": "single", "evidence": ["a"]},
                {"q": "When is tea?", "cat": "single", "evidence": ["b"]},
            ],
        }
    ]
}


def test_the_interval_is_that_of_paired_differences() -> None:
    # differences 1, 0, 0, 1: mean .5, variance 1/3, half 1.96·√(1/3/4) = .5658
    found = difference([0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0])
    assert found.mean == 0.5
    assert found.half == pytest.approx(0.5658, abs=5e-5)
    assert found.is_none
    assert str(found) == "+0.500 ± 0.566 (no difference)"
    assert difference([0.0] * 3, [1.0] * 3).half == 0.0
    assert not difference([0.0] * 3, [1.0] * 3).is_none
    assert difference([0.0], [1.0]).is_none  # of one question nothing can be said


def test_a_budget_of_tokens_holds_whole_texts_in_order() -> None:
    assert Asked(("a", "b", "c"), (300, 400, 100), 1.0).within(600) == ("a",)
    assert Asked(("a", "b", "c"), (300, 300, 100), 1.0).within(600) == ("a", "b")
    assert share(["a"], ("a", "b")) == 0.5
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_recipes_are_asked_the_questions_of_a_set(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    file.write_text(json.dumps(SET))
    told = run("compare", "--recipes", "default,baseline", "--on", str(file), "--json")
    assert told.code == 0, told.stderr
    first, second = told.json["recipes"]
    assert (first["figures"]["R@5"], second["figures"]["R@5"]) == (1.0, 0.0)
    assert second["against_first"]["R@5"] == {"mean": -1.0, "half": 0.0, "no_difference": False}
    assert told.json["labelled"] == 2
    assert told.json["differing"][0]["question"] == "Where is the depot?"
    assert "baseline: R@5 0.000" in run("compare", "--recipes", "default,baseline", "--on", str(file)).stdout


def test_a_store_that_is_there_is_asked_without_labels_and_not_changed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("MEMORY_BACKEND=sqlite\nMEMORY_PATH=here\nEMBEDDING_MODEL=hashing\n")
    with SupervisorMemory(
        Settings(backend="sqlite", path=tmp_path / "here", embedding_model="hashing", queue_worker=False)
    ) as memory:
        memory.write("The depot is in Kiel.", user_id="ada")
        memory.write("Bob's depot is in Lund.", user_id="bob")
        rows, seen = memory.backend.audit.tail(99), memory.backend.audit.accesses(99)
    asked = tmp_path / "asked.txt"
    asked.write_text("Where is the depot?\n\nWho likes tea?\n")
    command = ("compare", "--recipes", "default,mem0,memorybank", "--on", str(asked), "--user", "ada")
    told = run(*command, "--json", "--show", "9")
    assert told.code == 0, told.stderr
    assert [row["recipe"] for row in told.json["recipes"]] == ["default", "mem0", "memorybank"]
    assert all(row["figures"] == {} and row["records"] == 1 for row in told.json["recipes"])
    with SupervisorMemory(Settings(backend="sqlite", path=tmp_path / "here", queue_worker=False)) as memory:
        assert memory.backend.audit.tail(99) == rows
        assert memory.backend.audit.accesses(99) == seen


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{}"),
        ("a.json", '{"conversations": [{"turns": [], "questions": [{"q": "x", "evidence": ["y"]}]}]}'),
        ("a.jsonl", '{"evidence": []}'),
        ("a.jsonl", '{"q": "x", "evidence": "y"}'),
        ("a.jsonl", "nonsense"),
    ],
)
def test_what_is_no_set_of_questions_is_refused(run: Run, name: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = run("compare", "--recipes", "default", "--on", str(file))
    assert done.code == 2
    assert "cannot be read as questions" in done.stderr


def test_questions_alone_need_a_user(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text("Where is the depot?\n")
    assert "--user" in run("compare", "--recipes", "default", "--on", str(file)).stderr
    assert [q.text for q in read_questions(file)[0].questions] == ["Where is the depot?"]
