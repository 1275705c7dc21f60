"""BM25 over terms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.signals.index import bm25, idf, idfs


def scores(held: dict[str, list[int]], worth: dict[str, float], lengths: list[float]) -> list[float]:
    rows = {term: np.array(each, dtype=np.intp) for term, each in held.items()}
    sizes = np.array(lengths, dtype=np.float32)
    average = float(sizes.mean()) if lengths else 0.0
    return [float(each) for each in bm25(rows, worth, lengths=sizes, average_length=average)]


@given(st.integers(1, 10_000), st.data())
def test_a_term_is_worth_more_than_nothing_and_the_rarer_the_more(records: int, data: st.DataObject) -> None:
    holders = data.draw(st.integers(1, records))
    assert idf(records, holders) > 0
    assert holders == 1 or idf(records, holders - 1) > idf(records, holders)
    assert idfs(records, np.array([holders])).tolist() == pytest.approx([idf(records, holders)])


def test_what_shares_no_term_has_no_score() -> None:
    assert scores({"tea": [1]}, {"tea": 2.0}, [3.0, 3.0])[0] == 0.0
    assert scores({}, {}, [3.0, 3.0]) == [0.0, 0.0]
    assert scores({}, {}, []) == []


def test_a_short_record_is_not_buried_under_long_ones() -> None:
    short, long = scores({"tea": [0, 1]}, {"tea": 2.0}, [2.0, 200.0])
    assert short > long > 0


def test_a_row_that_is_named_twice_holds_the_term_twice() -> None:
    once, twice = scores({"tea": [0, 1, 1]}, {"tea": 2.0}, [3.0, 3.0])
    assert once < twice < 2 * once


def test_rows_without_any_terms_are_no_division_by_zero() -> None:
    assert scores({"tea": [0]}, {"tea": 1.0}, [0.0, 0.0])[0] > 0
