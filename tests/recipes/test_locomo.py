"""LoCoMo's retrieval: what is embedded, and its three units."""

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import Message, Scope
from supervisor_memory.recipes.locomo import PUBLISHED
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case
from tests.recipes.vectors import Given

SETTINGS = Settings(embedding_model="none", queue_worker=False)


@every_case(
    ("when", "date"),  # as conversations of the data set are dated
    [(1_683_554_160.0, "1:56 pm on 8 May, 2023"), (1_685_577_600.0, "12:00 am on 1 June, 2023")],
)
def test_an_observation_is_embedded_behind_its_date(when: float, date: str) -> None:
    # get_facts.py: '. '.join([date_time, observation])
    given = Given({})
    with SupervisorMemory(SETTINGS, recipe="locomo", embedder=given) as memory:
        memory.add_many([{"content": "Kim went to Kiel.", "created_at": when}], user_id="ada", infer=False)
        assert given.texts[-1] == f"{date}. Kim went to Kiel."


@every_case(
    ("unit", "found"),
    [
        ("observation", ["GMV means gross merchandise value."]),
        ("dialog", ["GMV means gross merchandise value."]),
        ("summary", ["2026-01-05: GMV means gross merchandise value. GMV means gross merchandise value."]),
    ],
)
def test_the_unit_is_what_is_searched(unit: str, found: list[str]) -> None:
    clock = FixedClock()
    with SupervisorMemory(
        SETTINGS, recipe=PUBLISHED.recipe(unit=unit), embedder=Given({}), clock=clock
    ) as memory:
        scope = Scope("ada", session_id="s")
        memory.remember([Message("user", "GMV means gross merchandise value.", id="m")], scope, turn_id="1")
        clock.now += 86_400
        memory.optimize(user_id="ada")
        hits = memory.search("What is GMV?", user_id="ada", threshold=0.0, limit=5)
        assert [hit.record.content for hit in hits] == found
        layers = {"observation": "abstract", "dialog": "history", "summary": "summary"}
        assert {hit.record.layer for hit in hits} == {layers[unit]}
