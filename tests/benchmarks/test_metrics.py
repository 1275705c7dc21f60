"""The figures by which retrieval is judged."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.quality.metrics import mean, names, score


def test_evidence_first_scores_one_in_everything() -> None:
    assert set(score(["a", "b", "c"], ["a"], k=10).values()) == {1.0}


def test_nothing_found_scores_nothing() -> None:
    assert set(score([], ["a"], k=10).values()) == {0.0}


def test_recall_is_the_share_of_the_evidence_and_a_hit_is_any_of_it() -> None:
    figures = score(["a", "x", "y", "z", "w", "b"], ["a", "b", "c"], k=10)
    assert (figures["R@1"], figures["R@5"], figures["R@10"]) == (1 / 3, 1 / 3, 2 / 3)
    assert (figures["hit@1"], figures["hit@10"]) == (1.0, 1.0)


def test_the_place_of_the_evidence_counts() -> None:
    figures = score(["x", "a", "b"], ["a", "b"], k=10)
    best = 1 + 1 / math.log2(3)
    assert figures["MRR"] == 1 / 2
    assert figures["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / best)


def test_what_is_found_after_the_tenth_place_counts_for_a_deeper_cut_alone() -> None:
    figures = score([*"abcdefghij", "right"], ["right"], k=20)
    assert (figures["R@10"], figures["R@20"], figures["MRR"], figures["nDCG@10"]) == (0.0, 1.0, 0.0, 0.0)


@given(
    st.lists(st.sampled_from("abcdefghijkl"), unique=True), st.sets(st.sampled_from("abcdxyz"), min_size=1)
)
def test_figures_are_within_bounds_and_named(found: list[str], evidence: set[str]) -> None:
    figures = score(found, evidence, k=10)
    assert tuple(figures) == names(10)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in figures.values())
    assert figures["R@1"] <= figures["R@5"] <= figures["R@10"] <= figures["hit@10"]


def test_a_question_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        score(["a"], [], k=10)


def test_an_id_that_was_found_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        score(["a", "a"], ["a"], k=10)


def test_a_mean_is_over_questions() -> None:
    assert mean([{"R@5": 1.0}, {"R@5": 0.5}]) == {"R@5": 0.75}
    assert mean([]) == {}
