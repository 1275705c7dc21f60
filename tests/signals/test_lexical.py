"""BM25 over terms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.signals.index import bm25, idf, idfs, norms_of


def scores(held: list[tuple[int, float]], lengths: list[float], *, worth: float = 2.0) -> list[float]:
    """The scores of rows, where some hold a term so many times."""
    rows, times = (list(each) for each in zip(*held, strict=True)) if held else ([], [])
    sizes = np.array(lengths, dtype=np.float32)
    average = float(sizes.mean()) if lengths else 0.0
    norms = norms_of(sizes, average)
    found = bm25(np.array(rows, dtype=np.intp), np.array(times), np.full(len(rows), worth), norms)
    return [float(each) for each in found]


@given(st.integers(1, 10_000), st.data())
def test_a_term_is_worth_more_than_nothing_and_the_rarer_the_more(records: int, data: st.DataObject) -> None:
    holders = data.draw(st.integers(1, records))
    assert idf(records, holders) > 0
    assert holders == 1 or idf(records, holders - 1) > idf(records, holders)
    assert idfs(records, np.array([holders])).tolist() == pytest.approx([idf(records, holders)])


def test_what_shares_no_term_has_no_score() -> None:
    assert scores([(1, 1.0)], [3.0, 3.0])[0] == 0.0
    assert scores([], [3.0, 3.0]) == [0.0, 0.0]
    assert scores([], []) == []


def test_a_short_record_is_not_buried_under_long_ones() -> None:
    short, long = scores([(0, 1.0), (1, 1.0)], [2.0, 200.0])
    assert short > long > 0


def test_a_row_that_holds_a_term_twice_has_more_but_not_twice_as_much() -> None:
    once, twice = scores([(0, 1.0), (1, 2.0)], [3.0, 3.0])
    assert once < twice < 2 * once


def test_a_row_with_two_terms_has_the_scores_of_both() -> None:
    one, both = scores([(0, 1.0), (1, 1.0), (1, 1.0)], [3.0, 3.0])
    assert both == pytest.approx(2 * one)


def test_rows_without_any_terms_are_no_division_by_zero() -> None:
    assert scores([(0, 1.0)], [0.0, 0.0], worth=1.0)[0] > 0
