"""The table of candidates, and the words in it."""

from supervisor_memory.model.explain import REASONS, Row, table, why
from supervisor_memory.model.records import Considered, Hit, Hits
from supervisor_memory.testing.ports import record

PARTS = {"fused": 0.8, "decay": 1.0, "source": 0.6, "relevance": 0.9, "sim": 0.9, "coverage": 0.5, "match": 2}


def test_each_candidate_has_a_line_and_each_reason_its_words() -> None:
    told = table(
        [
            Row(1, 0.91, PARTS, "kept", "GMV excludes refunds."),
            Row(None, 0.3, {"relevance": 0.1}, "below-threshold", "以后默认用表格。"),
        ]
    )
    head, first, second, blank, formula, *legend = told.splitlines()
    assert head.split() == [
        *("#", "score", "match", "recency", "source", "relevance", "meaning", "words", "reason", "record")
    ]
    numbers, _, text = first.partition("kept")
    assert numbers.split() == ["1", "0.91", "0.80", "1.00", "0.60", "0.90", "0.90", "0.50"]
    assert text.strip() == "GMV excludes refunds."
    assert second.split() == ["–", "0.30", *"···", "0.10", *"··", "below-threshold", "以后默认用表格。"]
    assert not blank
    assert "threshold reads relevance alone" in formula
    assert legend == [f"{reason}: {REASONS[reason]}." for reason in ("kept", "below-threshold")]


def test_signals_without_a_column_are_told_the_strongest_first() -> None:
    parts = {"relevance": 0.9, "date": 0.2, "speaker": 1.0, "episode": 0.0, "novelty": 0.7, "when": 0.1}
    head, first, *_ = table([Row(1, 0.9, parts, "kept", "tea")]).splitlines()
    assert head.split()[-3:] == ["also", "reason", "record"]
    assert "speaker 1.00, novelty 0.70, date 0.20  kept" in first


def test_a_text_is_cut_short_and_cannot_break_the_table() -> None:
    told = table([Row(1, 0.5, {}, "kept", "tea\n9 \x1b[31m\u202e" + "x" * 200)])
    assert len(told.splitlines()) == 5
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "…" in told


def test_a_reason_of_ones_own_is_told_as_such() -> None:
    told = table([Row(None, 0.5, {}, "too-long", "tea")])
    assert told.endswith("too-long: as an operator of the recipe says.")


def test_hits_show_the_table_only_when_they_are_explained() -> None:
    hit = Hit(record("tea"), 0.5, PARTS)
    assert "reason" not in str(Hits((hit,)))
    explained = Hits((hit,), considered=(Considered(hit, "kept"),), notes=("a note",))
    assert str(explained).splitlines()[1].endswith("kept    tea")
    assert str(explained).splitlines()[-1] == "a note"
    assert explained == Hits((hit,), notes=("a note",))


def test_the_parts_of_a_score_in_words() -> None:
    assert why(PARTS) == "match 0.80, relevance 0.90 (meaning 0.90, words 0.50), recency 1.00, source 0.60"
    assert why({**PARTS, "standing": 1.0}).startswith("always recalled, match")
