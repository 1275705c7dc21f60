"""The second reader: asked only where no rule has a verdict, and it says what it went by."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.minilm import MiniLM
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Vector
from supervisor_memory.errors import EmbeddingError
from supervisor_memory.understand import learned
from supervisor_memory.understand.sense import sense_of
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


class _Hangs:
    """MiniLM until it is asked for the vector of a query."""

    def __init__(self) -> None:
        self._own = MiniLM()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def embed_query(self, text: str) -> Vector:
        raise EmbeddingError(f"no memory left for {text}")


LASTING, PASSING = (
    "Our Kiel branch answers the phone in Danish too.",
    "The printer on the third floor beeps again.",
)


@pytest.mark.parametrize("model", [MINILM, E5])
def test_an_embedder_it_was_trained_with_has_a_say_and_others_have_none(model: str) -> None:
    embedder = open_embedder(model, dimension=None)
    assert embedder is not None
    sense = sense_of(embedder.fingerprint)
    assert sense is not None
    lasting, passing = (
        sense.again(learned.weigh(text, learned.weights()), embedder.embed_query(text))
        for text in (LASTING, PASSING)
    )
    assert lasting.chance > passing.chance
    assert lasting.is_lasting == (lasting.chance >= sense.least)
    assert sense_of("another-model@1/384") is None
    assert sense_of(f"{embedder.fingerprint.partition('@')[0]}@1/64") is None


def test_words_alone_decide_where_the_embedder_fails() -> None:
    settings = Settings(backend="in_memory")
    with SupervisorMemory(settings, embedder=_Hangs()) as memory:
        memory.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (record,) = memory.get_all(user_id="ada")
    with SupervisorMemory(Settings(backend="in_memory", embedding_model="none")) as bare:
        bare.add([{"role": "user", "content": STATED_WITHOUT_A_RULE[0]}], user_id="ada")
        (same,) = bare.get_all(user_id="ada")
    assert record.metadata["extracted"] == same.metadata["extracted"]
