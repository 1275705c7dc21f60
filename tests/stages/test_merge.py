"""Merge strategies: two texts become one and no number is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import MAX_CONTENT_BYTES
from supervisor_memory.stages.insert.merge import (
    BY_KIND,
    MOST_BYTES,
    ONE_WORDING,
    append,
    joined,
    overwrite,
    strategy_for,
    summarise,
)
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import record
from tests.cases import every_case

TUESDAY = MONDAY + 86_400


def no_model(prompt: str) -> None:
    return None


def test_overwrite_keeps_the_newest() -> None:
    assert overwrite(record("tables"), "lists", TUESDAY, no_model) == "lists"


def test_append_adds_a_dated_line() -> None:
    assert append(record("step 1"), "step 2", TUESDAY, no_model) == "step 1\n[2026-01-06] step 2"


@every_case("again", ["step 1", "step 2", "two\nlines"])
def test_append_adds_nothing_twice(again: str) -> None:
    text = "step 1\n[2026-01-06] step 2\n[2026-01-07] two\nlines"
    assert append(record(text), again, TUESDAY, no_model) == text


def test_append_of_a_part_of_a_line_is_no_repetition() -> None:
    assert append(record("GMV is 50"), "GMV is 5", TUESDAY, no_model).endswith("GMV is 5")


def test_append_keeps_the_newest_lines_and_a_note_can_hold_them() -> None:
    full = "\n".join(f"line {n}" for n in range(64))
    text = append(record(full), "the newest", TUESDAY, no_model)
    assert text.splitlines() == [*(f"line {n}" for n in range(49, 64)), "[2026-01-06] the newest"]


def test_append_keeps_fewer_lines_where_they_are_long() -> None:
    full = "\n".join(f"line {n} " + "x" * 600 for n in range(10))
    text = append(record(full), "the newest", TUESDAY, no_model)
    assert [line[:6] for line in text.splitlines()] == ["line 7", "line 8", "line 9", "[2026-"]
    assert len(text.encode()) <= MOST_BYTES


def test_append_keeps_a_line_that_is_long_by_itself_whole() -> None:
    text = append(record("old"), "x" * 10_000, TUESDAY, no_model)
    assert text == "[2026-01-06] " + "x" * 10_000


def test_append_of_the_largest_text_stays_within_the_limit() -> None:
    largest = "x" * MAX_CONTENT_BYTES
    assert append(record("old"), largest, TUESDAY, no_model) == largest


def test_summarise_keeps_the_one_that_says_more() -> None:
    more = "GMV excludes refunds and taxes"
    assert summarise(record(more), "GMV excludes refunds", TUESDAY, no_model) == more
    assert summarise(record("GMV excludes refunds"), more, TUESDAY, no_model) == more


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=6),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=6),
    st.sampled_from([None, "banana", "", "GMV was around five", "GMV 1 2 3"]),
)
def test_summarise_loses_no_number_whatever_the_model_says(
    old: list[int], new: list[int], answer: str | None
) -> None:
    a, b = f"GMV was {' and '.join(map(str, old))}", f"sales reached {' or '.join(map(str, new))}"
    text = summarise(record(a), b, TUESDAY, lambda prompt: answer)
    assert {str(n) for n in (*old, *new)} <= set(terms(text))


def test_summarise_takes_a_sound_answer_of_the_model() -> None:
    answer = "GMV excludes refunds of 5 days and taxes of 19 percent"
    merged = summarise(
        record("GMV excludes refunds of 5 days"),
        "GMV excludes taxes of 19 percent",
        TUESDAY,
        lambda prompt: answer,
    )
    assert merged == answer


@every_case("nonsense", ["banana", "I cannot do that.", "x" * 10_000, "GMV excludes \n" * 9_999])
def test_summarise_puts_both_side_by_side_when_the_model_talks_nonsense(nonsense: str) -> None:
    merged = summarise(
        record("GMV excludes refunds."), "GMV is counted in euro", TUESDAY, lambda prompt: nonsense
    )
    assert merged == "GMV excludes refunds. GMV is counted in euro"


def test_each_kind_has_a_strategy_and_metadata_wins() -> None:
    assert {kind: BY_KIND[kind] for kind in ("user-profile", "task-traces", "domain-facts")} == {
        "user-profile": "overwrite",
        "task-traces": "append",
        "domain-facts": "summarise",
    }
    assert strategy_for("domain-facts", "append")[0] == "append"
    assert strategy_for("tool-effects")[0] == "overwrite"


@every_case("unknown", ["newest", "", 5, ["append"]])
def test_an_unknown_strategy_is_refused_with_the_known_ones(unknown: object) -> None:
    with pytest.raises(InvalidContent, match=r"metadata\.strategy is .*overwrite, append, summarise"):
        strategy_for("domain-facts", unknown)


def both(one: str, other: str) -> tuple[str, str | None]:
    """The strategy and the text of two texts that were judged one wording."""
    old, new = (record(text, kind="domain-facts") for text in (one, other))
    return joined(old, new, None, is_step=False, by_kind={}, complete=lambda _: None, is_one=True)


@every_case(
    ("one", "other"),
    [
        ("fct_lanes has about nine million rows.", "The rows of fct_lanes come out of lane_loader."),
        ("Greta Holm lives in Malmö.", "Ove Lind reports to Greta Holm."),
        ("fct_lanes 大约有九百万行。", "fct_lanes 的行由 lane_loader 写入。"),
    ],
)
def test_no_wording_stands_for_one_that_names_another_thing(one: str, other: str) -> None:
    strategy, text = both(one, other)
    assert strategy != ONE_WORDING
    assert text is not None
    assert all(each.rstrip(".。") in text for each in (one, other))


def test_one_wording_is_left_of_two_that_name_the_same() -> None:
    assert both("lane_loader fills fct_lanes at night.", "At night fct_lanes is what lane_loader fills.") == (
        ONE_WORDING,
        "At night fct_lanes is what lane_loader fills.",
    )
