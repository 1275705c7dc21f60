"""The formula of Mem0's present code: its figures, computed by hand."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.model.records import Filter, Hit, Hits, Query, Scope
from supervisor_memory.recipes.mem0_now import Constants, by_words, entity_boost, fuse, fused
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALL = ("meaning", "words", "entities")


def test_the_score_of_the_reference() -> None:
    assert by_words(8.0, 4) == pytest.approx(0.6457, abs=5e-5)
    assert entity_boost(1.0, 3) == pytest.approx(0.4980, abs=5e-5)
    parts = {"meaning": 0.6, "words": by_words(8.0, 4), "entities": entity_boost(1.0, 3)}
    assert fused(parts, active=ALL) == pytest.approx(0.6975, abs=5e-5)


@every_case(
    ("count", "middle"), [(1, 5.0), (3, 5.0), (4, 7.0), (6, 7.0), (7, 9.0), (9, 9.0), (15, 10.0), (16, 12.0)]
)
def test_the_curve_of_the_words_is_that_of_the_length_of_the_question(count: int, middle: float) -> None:
    assert by_words(middle, count) == 0.5
    assert by_words(0.0, count) < 0.05


def test_what_no_hit_has_does_not_count_against_any() -> None:
    assert fused({"meaning": 0.6, "words": 0.0, "entities": 0.0}, active=["meaning"]) == 0.6
    assert fused({"meaning": 0.0, "words": 0.0, "entities": 0.0}, active=[]) == 0.0


def test_hits_are_fused_and_what_is_unlike_the_question_is_dropped_before() -> None:
    asked = Query(
        "who owns flights.dep_delay today", Filter(user_id="alice"), terms=("own", "dep", "delay", "today")
    )
    near = Hit(record("flights.dep_delay is owned by Kim"), parts={"cosine": 0.6, "bm25": 8.0})
    far = Hit(record("flights.dep_delay is a column"), parts={"cosine": 0.05, "bm25": 9.0})
    plan = Recalling(Turn(asked.text, Scope("alice"), purpose="hits"), query=asked, hits=Hits((far, near)))
    done = fuse(Constants())(plan, ports().read_store())
    (hit,) = done.hits
    assert hit.record == near.record
    parts = {name: hit.parts[f"mem0-{name}"] for name in ALL}
    assert parts == pytest.approx({"meaning": 0.6, "words": 0.6457, "entities": 0.5}, abs=5e-5)
    assert hit.score == pytest.approx(sum(parts.values()) / 2.5)
    assert [(each.hit.record, each.reason) for each in done.dropped] == [(far.record, "below-threshold")]


def test_nothing_is_merged_or_replaced_but_the_same_words_are_skipped() -> None:
    settings = Settings(embedding_model="none", queue_worker=False)
    with SupervisorMemory(settings, recipe="mem0_now") as memory:
        said = ("Always answer in tables.", "From now on, always answer in lists.", "always answer in tables")
        results = [memory.write(text, user_id="ada", kind="user-profile") for text in said]
        assert [result.status for result in results] == ["added", "added", "skipped"]
        assert len(memory.get_all(user_id="ada")) == 2
