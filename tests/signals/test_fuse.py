"""What the weights of signals do to a match, and who may set them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.signal_weights import Weights
from supervisor_memory.signals.fuse import base
from supervisor_memory.signals.lexical import Floats

ALONE = np.array([True, True])


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


@pytest.mark.parametrize(
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
