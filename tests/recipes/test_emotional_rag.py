"""EmotionalRAG: its four strategies, computed by hand, and moods read by a model."""

import json

import pytest

from supervisor_memory import Settings, SettingsError, SupervisorMemory
from supervisor_memory.recipes.emotional_rag import MOOD, NAMES, PUBLISHED, apart, by_strategy
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

CONTEXTS, MOODS = (0.4, 0.7, 0.2), (0.5, 0.1, 0.9)
GLAD = json.dumps(dict(zip(NAMES, (9, 7, 1, 1, 1, 1, 1, 1), strict=True)))
ANGRY = json.dumps(dict(zip(NAMES, (1, 1, 1, 1, 1, 6, 9, 1), strict=True)))
SETTINGS = Settings(embedding_model="hashing", queue_worker=False)


@every_case(
    ("strategy", "pool", "order"),
    [
        ("C-A", 20, [1, 0, 2]),  # .9, .8, 1.1
        ("C-M", 20, [1, 2, 0]),  # .2, .07, .18
        ("S-C", 20, [1, 0, 2]),  # all three are in the pool: by mood
        ("S-C", 2, [0, 2, 1]),  # the two nearest by context are 3rd and 1st; of them by mood .5, .9
        ("S-S", 2, [0, 1, 2]),  # the two nearest by mood are 2nd and 1st; of them by context .4, .7
    ],
)
def test_the_order_of_each_strategy(strategy: str, pool: int, order: list[int]) -> None:
    assert by_strategy(strategy, CONTEXTS, MOODS, pool=pool) == order


def test_moods_are_apart_by_their_cosine() -> None:
    # (1,…) and (2,…): the same direction, 0. (9,1×7) and (1,9,1×6): (9+9+6)/(81+7) = 24/88: 1 - .2727 = .7273
    assert apart((1.0,) * 8, (2.0,) * 8) == pytest.approx(0.0, abs=1e-12)
    one, other = (9.0, *[1.0] * 7), (1.0, 9.0, *[1.0] * 6)
    assert apart(one, other) == pytest.approx(0.7273, abs=5e-5)


def test_of_two_that_say_the_same_the_one_in_the_mood_of_the_question_comes_first() -> None:
    model = ScriptedModel(script=[GLAD, ANGRY, ANGRY, GLAD])
    with SupervisorMemory(SETTINGS, recipe="emotional_rag", llm=model) as memory:
        texts = ["The depot in Kiel closed early.", "The depot in Kiel closed again."]
        glad, angry = (each.id for each in memory.add_many(texts, user_id="ada", infer=False))
        assert memory.get(glad).metadata[MOOD][0] == 9.0
        for first in (angry, glad):
            found = memory.search("The depot in Kiel closed", user_id="ada", threshold=0.0)
            assert found[0].record.id == first
    assert "The depot in Kiel closed early." in model.prompts[0]


@every_case("answer", ["glad", "{}", GLAD.replace("9", "99"), '{"joy": "x"}', "[1]"])
def test_what_is_no_mood_is_not_kept(answer: str) -> None:
    with SupervisorMemory(SETTINGS, recipe="emotional_rag", llm=ScriptedModel(script=[answer])) as memory:
        (one,) = memory.add_many(["The depot closed."], user_id="ada", infer=False)
        assert MOOD not in memory.get(one.id).metadata


def test_without_a_model_meaning_alone_decides_and_the_search_says_so() -> None:
    with SupervisorMemory(SETTINGS, recipe="emotional_rag") as memory:
        memory.add_many(["The depot is in Kiel.", "Tea is at five."], user_id="ada", infer=False)
        found = memory.search("depot Kiel", user_id="ada", threshold=0.0)
        assert found[0].record.content == "The depot is in Kiel."
        assert "there are no moods" in found.notes[-1]


def test_a_strategy_that_there_is_not_is_refused() -> None:
    with pytest.raises(SettingsError, match="'C-X'; choose one of C-A, C-M, S-C, S-S"):
        PUBLISHED.recipe(strategy="C-X")
