"""Signals fused into one: what scales and weights do to a match, and who may set weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.model.records import Weights
from supervisor_memory.signals.index import Floats
from supervisor_memory.signals.measure import base, scaled
from tests.cases import every_case

ALONE = np.array([True, True])
ANY = st.lists(st.floats(width=32, allow_infinity=False), max_size=20)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def test_a_fact_is_not_found_for_its_words_twice() -> None:
    signals = {"meaning": floats(1, 0.3), "words": floats(0, 1), "words_before": floats(0, 1)}
    weights = Weights(meaning=1, words=0.5, words_before=0.5)
    assert base(signals, weights).tolist() == pytest.approx([1 / 1.3, 1])
    assert base(signals, weights, alone=ALONE).tolist() == pytest.approx([1, 0.8])


def test_a_fact_and_a_turn_that_match_alike_are_equal() -> None:
    signals = {"meaning": floats(1, 1), "words": floats(1, 1), "words_before": floats(1, 1)}
    assert base(signals, alone=np.array([True, False])).tolist() == pytest.approx([1, 1])


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2))
def test_without_meaning_a_fact_is_found_like_any_record(words: list[float]) -> None:
    signals = {"words": floats(*words), "words_before": floats(*words)}
    assert base(signals, alone=ALONE).tolist() == base(signals).tolist()


@every_case(
    ("weights", "fault"),
    [
        ({"colour": 1.0}, "colour is no signal; there are meaning, words"),
        ({"meaning": -1.0}, "a weight is from 0 to 1000"),
        ({"words": 0.0, "words_before": 0.0}, "without an embedder there is nothing else"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights: dict[str, float], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        Settings(signal_weights=weights)


def test_the_weights_in_settings_are_those_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SIGNAL_WEIGHTS", '{"information": 0}')
    parts = []
    for settings in (Settings(embedding_model="none"), Settings.from_env(None, embedding_model="none")):
        with SupervisorMemory(settings) as memory:
            memory.write("GMV excludes refunds.", user_id="ada")
            (hit,) = memory.search("Does GMV include refunds?", user_id="ada")
            parts.append(hit.parts["match"])
    assert parts[0] - parts[1] == pytest.approx(Weights().information)


@given(ANY)
def test_scaled_scores_are_from_nothing_to_one_and_never_no_number(values: list[float]) -> None:
    found = scaled(floats(*values))
    assert ((found >= 0) & (found <= 1)).all()
    assert not values or found.max() in (0, 1)


def test_one_embedder_s_cosines_weigh_as_much_as_anothers() -> None:
    assert scaled(floats(0.8, 0.4)).tolist() == scaled(floats(0.3, 0.15)).tolist() == [1.0, 0.5]


@given(ANY)
def test_the_base_is_a_share_whatever_the_signals(values: list[float]) -> None:
    scores = floats(*values)
    alone = np.arange(len(values)) % 2 == 0
    for signals in ({"words": scores}, {"meaning": scores, "words": scores[::-1], "words_before": scores}):
        for found in (base(signals), base(signals, alone=alone), base(signals, Weights(meaning=0.0))):
            assert ((found >= 0) & (found <= 1)).all()


def test_two_signals_that_agree_beat_the_best_of_one() -> None:
    found = base({"meaning": floats(1.0, 0.9, 0.0), "words": floats(0.0, 4.0, 5.0)})
    assert found.argmax() == 1


def test_a_weight_of_nothing_leaves_a_signal_out() -> None:
    found = base({"meaning": floats(1.0, 0.0), "words": floats(0.0, 1.0)}, Weights(words=0.0))
    assert found.tolist() == [1.0, 0.0]
