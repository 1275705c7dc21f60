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


def test_locomo_is_read_as_it_is_published(tmp_path: Path) -> None:
    def turn(id_: str, text: str, **more: str) -> dict[str, Any]:
        return {"speaker": "Ada", "dia_id": id_, "text": text, **more}

    conversation = {
        "speaker_a": "Ada",
        "session_2_date_time": "12:05 am on 1 March, 2023",
        "session_2": [turn("D2:1", "Later.")],
        "session_1_date_time": "1:56 pm on 8 May, 2022",
        "session_1": [turn("D1:1", "Hello. "), turn("D1:2", "Look!", blip_caption="a dog")],
    }
    asked = [
        {"question": "Who?", "category": 2, "evidence": ["D1:2; D2:1", "D:9"]},
        {"question": "Why?", "category": 3, "evidence": []},
        {"question": "How?", "category": 3, "evidence": ["D9:9"]},
    ]
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": asked}]), "utf-8")
    (corpus,) = read_corpora(path)
    assert [item.id for item in corpus.items] == ["D1:1", "D1:2", "D2:1"]
    assert [item.text for item in corpus.items] == ["Hello.", "Look! [photo: a dog]", "Later."]
    first, second, later = (item.created_at or 0 for item in corpus.items)
    assert (second - first, first, later) == (30, 1_652_018_160, 1_677_629_100)
    assert [(each.text, each.category, each.evidence) for each in corpus.questions] == [
        ("Who?", "temporal", ("D1:2", "D2:1"))
    ]
