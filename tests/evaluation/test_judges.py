"""Judges say right, wrong, or that there is nothing to judge by."""

from pathlib import Path

import apsw
import pytest

from supervisor_memory import SettingsError
from supervisor_memory.evaluation import Asked, ModelJudge, SqlJudge, by_rules
from supervisor_memory.evaluation.intervals import exact_gain, resampled, share
from supervisor_memory.evaluation.judges import JudgeFailed, exact, together
from supervisor_memory.testing.scripted import ScriptedModel


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "numbers.db"
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE n(x, carrier, month); INSERT INTO n VALUES(1234.567, 'US', 7)")
    connection.close()
    return file


def test_an_exact_answer_may_differ_in_case_width_and_full_stop() -> None:
    assert exact(Asked("q", expected=("Forty-Two", "４２")), " forty-two. ") is True
    assert exact(Asked("q", expected=("Forty-Two", "４２")), "42。") is True
    assert exact(Asked("q", expected=("42",)), "about 42") is False
    assert exact(Asked("q"), "42") is None


def test_rules_have_to_be_found_and_may_not_be() -> None:
    asked = Asked("q", must=(r"\btable\b",), must_not=("minutes?",))
    assert by_rules(asked, "A Table.") is True
    assert by_rules(asked, "A table of minutes.") is False
    assert by_rules(Asked("q"), "x") is None
    with pytest.raises(JudgeFailed, match="no regular expression"):
        by_rules(Asked("q", must=("(",)), "x")


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        ("It is 1,234.57 minutes.", True),
        ("It is 1235.", True),
        ("共1234.6分钟", True),
        ("It was 1,234.57 minutes early: -1234.57.", True),
        ("It is 1234.5.", False),
        ("It is 12345.67.", False),
        ("None.", False),
    ],
)
def test_numbers_are_compared_as_numbers_and_rounded_as_told(
    answer: str, is_right: bool, database: Path
) -> None:
    assert SqlJudge(database)(Asked("q", sql="SELECT x, NULL FROM n"), answer) is is_right


def test_codes_are_words_and_values_have_other_names(database: Path) -> None:
    judge = SqlJudge(database, names={"carrier": {"US": ["US Airways"]}, "month": {"7": ["July", "7月"]}})
    carrier, month = Asked("q", sql="SELECT carrier FROM n"), Asked("q", sql="SELECT month FROM n")
    assert judge(carrier, "us airways, Inc.") is True
    assert judge(carrier, "It is US.") is True
    assert judge(carrier, "It is up to us.") is False
    assert judge(carrier, "BUS lines") is False
    assert judge(month, "在7月") is True
    assert judge(month, "7 flights") is False


def test_a_query_without_a_value_judges_nothing(database: Path) -> None:
    judge = SqlJudge(database)
    with pytest.raises(JudgeFailed, match="no value"):
        judge(Asked("q", sql="SELECT NULL"), "x")
    with pytest.raises(JudgeFailed, match="readonly"):
        judge(Asked("q", sql="DELETE FROM n"), "x")
    assert judge(Asked("q"), "x") is None
    with pytest.raises(SettingsError, match="no database"):
        SqlJudge(database / "gone")


def test_a_model_says_right_or_wrong_or_fails() -> None:
    judge = ModelJudge(ScriptedModel(script=["Right.", "wrong", "Perhaps."]))
    asked = Asked("q", expected=("42",))
    assert judge(asked, "forty-two") is True
    assert judge(asked, "41") is False
    with pytest.raises(JudgeFailed, match="neither right nor wrong"):
        judge(asked, "41")
    assert judge(Asked("q"), "x") is None


def test_several_judges_have_to_agree() -> None:
    both = together(exact, by_rules)
    assert both(Asked("q", expected=("a b",), must=("a",)), "a b") is True
    assert both(Asked("q", expected=("a b",), must=("c",)), "a b") is False
    assert both(Asked("q"), "a b") is None


def test_exact_intervals_are_those_of_the_tables() -> None:
    none, half = share(0, 100), share(5, 10)
    assert none is not None
    assert half is not None
    assert (none.low, round(none.high, 4)) == (0.0, 0.0362)
    assert (round(half.low, 4), round(half.high, 4)) == (0.1871, 0.8129)
    assert share(0, 0) is None


def test_a_gain_is_told_apart_from_chance_once_enough_pairs_differ() -> None:
    few, many, none = exact_gain(3, 0, 10), exact_gain(9, 0, 10), exact_gain(0, 0, 10)
    assert few is not None
    assert many is not None
    assert none is not None
    assert few.holds_zero
    assert not many.holds_zero
    assert none == (0.0, 0.0, 0.0)


def test_resampling_draws_whole_threads_and_repeats_itself() -> None:
    groups = [[1.0, 1.0, 1.0], [0.0], [0.0]]
    first, second = resampled(groups, seed=7), resampled(groups, seed=7)
    assert first == second
    assert first is not None
    assert first.value == pytest.approx(0.6)
    assert first.low == 0.0
    assert resampled([], seed=7) is None
