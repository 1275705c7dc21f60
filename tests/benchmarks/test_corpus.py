"""Reading corpora: what is wrong is refused, and write attempts become questions."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.corpus import read_corpora, read_merges


def written(path: Path, *, turns: list[dict[str, Any]], evidence: list[str]) -> Path:
    questions = [{"q": "What?", "cat": 2, "evidence": evidence}]
    conversation = {"id": "c", "turns": turns, "questions": questions}
    path.write_text(json.dumps({"conversations": [conversation]}), encoding="utf-8")
    return path


def attempt(id_: str, relation: str, of: str | None = None, *, day: int = 0, lang: str = "en") -> str:
    label = {"relation": relation, "of": of}
    return json.dumps(
        {"stream": f"{lang}-1", "id": id_, "lang": lang, "content": f"said {id_}", "day": day, "label": label}
    )


def test_a_turn_without_speaker_and_time_is_a_fact(tmp_path: Path) -> None:
    (corpus,) = read_corpora(written(tmp_path / "f.json", turns=[{"id": "1", "text": "tea"}], evidence=["1"]))
    assert (corpus.items[0].speaker, corpus.items[0].created_at, corpus.asked) == (None, None, None)


def test_a_number_names_the_category_of_the_set_that_numbers_them(tmp_path: Path) -> None:
    (corpus,) = read_corpora(written(tmp_path / "f.json", turns=[{"id": "1", "text": "tea"}], evidence=["1"]))
    assert corpus.questions[0].category == "temporal"


@pytest.mark.parametrize("evidence", [[], ["2"], ["1", "2"]])
def test_evidence_that_is_no_item_is_refused(tmp_path: Path, evidence: list[str]) -> None:
    path = written(tmp_path / "f.json", turns=[{"id": "1", "text": "tea"}], evidence=evidence)
    with pytest.raises(ValueError, match="evidence that is no item"):
        read_corpora(path)


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    turns = [{"id": "1", "text": "tea"}, {"id": "1", "text": "coffee"}]
    with pytest.raises(ValueError, match="twice"):
        read_corpora(written(tmp_path / "f.json", turns=turns, evidence=["1"]))


def test_a_write_attempt_is_asked_of_what_right_decisions_would_have_kept(tmp_path: Path) -> None:
    lines = [
        attempt("a", "new"),
        attempt("b", "new", "a"),
        attempt("c", "duplicate", "a"),
        attempt("d", "conflict", "a", day=3),
        attempt("e", "duplicate", "d"),
        attempt("z", "new", lang="zh"),
        attempt("y", "duplicate", "z", lang="zh"),
    ]
    path = tmp_path / "merges.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    merges = read_merges(path)
    seen = [
        (corpus.id, [item.id for item in corpus.items], question.text, question.category, question.evidence)
        for corpora in merges.values()
        for corpus in corpora
        for question in corpus.questions
    ]
    assert list(merges) == ["en", "zh"]
    assert seen == [
        ("c", ["a", "b"], "said c", "duplicate", ("a",)),
        ("d", ["a", "b"], "said d", "conflict", ("a",)),
        ("e", ["b", "d"], "said e", "duplicate", ("d",)),
        ("y", ["z"], "said y", "duplicate", ("z",)),
    ]


def test_a_label_of_what_is_not_held_any_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "merges.jsonl"
    path.write_text(
        "\n".join([attempt("a", "new"), attempt("b", "conflict", "a"), attempt("c", "duplicate", "a")]),
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="not held any more"):
        read_merges(path)
