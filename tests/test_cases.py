"""What makes one test of many cases tells of each that fails."""

from pathlib import Path

import pytest

from tests.cases import every_case


def test_each_case_that_fails_is_told_and_the_others_are_looked_at() -> None:
    seen = []

    @every_case("a, b", [(1, 2), (3, 3), (4, 0)])
    def test_divide(a: int, b: int) -> None:
        seen.append(a)
        assert a != b, "the same"
        with pytest.raises(ZeroDivisionError):
            assert a // b == 0

    with pytest.raises(pytest.fail.Exception) as failed:
        test_divide()
    told = str(failed.value).splitlines()
    assert [line.split(": ")[:2] for line in told[1:] if line.startswith("(")] == [
        ["(1, 2)", "Failed"],
        ["(3, 3)", "AssertionError"],
    ]
    assert told[0] == "2 cases fail:"
    assert seen == [1, 3, 4]


@every_case("one, other", [("a", "b"), ("b", "c")])
def test_cases_share_what_else_the_test_takes(one: str, other: str, tmp_path: Path) -> None:
    (tmp_path / other).touch()
    assert (tmp_path / one).exists() == (one == "b")


def test_no_case_is_refused() -> None:
    with pytest.raises(AssertionError, match="no case"):
        every_case("a", [])
