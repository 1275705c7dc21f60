"""The second reader: asked only where no rule has a verdict, and it says what it went by."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.understand import learned
from supervisor_memory.understand.statements import judge, normal, read_statements

STATED_WITHOUT_A_RULE = [
    "The Kiel branch closes at five on Fridays.",
    "季度报告里的金额都写到万元。",
]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(settings=Settings(backend="in_memory")) as memory:
        yield memory


@pytest.mark.parametrize("text", STATED_WITHOUT_A_RULE)
def test_a_statement_no_rule_knows_is_kept_and_says_what_weighed(memory: SupervisorMemory, text: str) -> None:
    assert judge(text).reason == "none"
    memory.add([{"role": "user", "content": text}], user_id="ada")
    (record,) = memory.get_all(user_id="ada")
    told = record.metadata["extracted"]
    assert record.content == text
    assert told["by"] == "learned"
    assert told["rule"] in ("learned-wish", "learned-fact")
    assert told["confidence"] >= learned.weights().least
    assert told["marks"]
    assert all(piece in normal(text).lower() for mark in told["marks"] for piece in mark.split())


def test_a_statement_before_a_request_is_kept_without_the_request(memory: SupervisorMemory) -> None:
    said = "The Kiel branch closes at five on Fridays, can you fix the list?"
    memory.add([{"role": "user", "content": said}], user_id="ada")
    (record,) = memory.get_all(user_id="ada")
    assert "Kiel" in record.content
    assert "list" not in record.content


@given(st.text(max_size=300))
def test_a_verdict_of_the_rules_stands(text: str) -> None:
    for each in read_statements(text).all:
        if each.learned is not None:
            assert judge(each.text).reason == "none"


@given(st.text(max_size=300))
def test_any_text_has_chances(text: str) -> None:
    found = learned.weigh(text, learned.weights())
    assert 0 <= found.chance <= 1
    assert 0 <= found.wish <= 1


def test_weights_add_up_to_a_chance_by_the_logistic_function() -> None:
    weights = learned.Weights(0.5, frozenset({"bring"}), {"": (-1.0, 0.0), "bring": (2.0, 3.0)})
    found = learned.weigh("Bring it", weights)
    assert found.chance == pytest.approx(0.7311, abs=1e-4)
    assert found.wish == pytest.approx(0.9526, abs=1e-4)
    assert found.marks == ("bring",)
    assert learned.weigh("Take it", weights).marks == ()
