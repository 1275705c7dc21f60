"""Calibration and vector checks."""

import numpy as np
import pytest

from supervisor_memory.embedding.protocol import Calibration, check_matrix, check_vector
from supervisor_memory.errors import BadVector
from tests.cases import every_case

HALF_WAY = Calibration(unrelated=0.2, same=0.6)


@every_case(
    ("cosine", "relevance"),
    [(-1.0, 0.0), (0.2, 0.0), (0.4, 0.5), (0.6, 1.0), (1.0, 1.0), (float("nan"), 0.0)],
)
def test_relevance_grows_from_unrelated_to_same_and_stays_in_bounds(cosine: float, relevance: float) -> None:
    assert HALF_WAY.relevance(cosine) == pytest.approx(relevance)
    assert HALF_WAY.relevances(np.array([[cosine]])) == pytest.approx(relevance)


@every_case("same", [0.2, 0.1, float("nan")])
def test_a_calibration_that_separates_nothing_is_refused(same: float) -> None:
    with pytest.raises(ValueError, match="must be above"):
        Calibration(unrelated=0.2, same=same)


def test_a_good_vector_comes_back_as_a_unit_of_float32() -> None:
    vector = check_vector([3, 4], dimension=2, what="a vector")
    assert vector.dtype == np.float32
    assert vector == pytest.approx([0.6, 0.8])


@every_case("scale", [1e-8, 1e-3, 1e30, 1e300])
def test_the_length_of_a_vector_does_not_matter(scale: float) -> None:
    assert check_vector([3 * scale, 4 * scale], dimension=2, what="a vector") == pytest.approx([0.6, 0.8])


@every_case(
    ("vector", "complaint"),
    [
        ([1.0, 2.0], r"the query vector has shape \(2,\), expected \(3,\); use the embedder"),
        ([[1.0, 2.0, 3.0]], "shape"),
        (5.0, "shape"),
        ([1.0, float("nan"), 0.0], "NaN or infinity"),
        ([1.0, float("inf"), 0.0], "NaN or infinity"),
        ([0.0, 0.0, 0.0], "is zero"),
        ([1e-30, 0.0, 0.0], "is zero"),
        (["a", "b", "c"], "not numbers"),
        ([[1.0], [2.0, 3.0]], "not numbers"),
        (None, "shape|NaN"),
    ],
)
def test_a_bad_vector_is_refused_with_what_is_wrong(vector: object, complaint: str) -> None:
    with pytest.raises(BadVector, match=complaint):
        check_vector(vector, dimension=3, what="the query vector")  # type: ignore[arg-type]  # a stranger's


def test_one_bad_row_is_named() -> None:
    with pytest.raises(BadVector, match="row 1"):
        check_matrix([[1.0, 0.0], [float("nan"), 0.0]], rows=2, dimension=2, what="the vectors")


def test_a_missing_row_is_refused() -> None:
    with pytest.raises(BadVector, match=r"shape \(1, 2\), expected \(2, 2\)"):
        check_matrix([[1.0, 0.0]], rows=2, dimension=2, what="the vectors")


def test_no_rows_are_fine() -> None:
    assert check_matrix([], rows=0, dimension=2, what="the vectors").shape == (0, 2)
