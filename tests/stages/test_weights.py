"""What a score weighs beside relevance: age, source, importance, reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.audit.rows import Access
from supervisor_memory.flow import Turn, recall
from supervisor_memory.model.records import Kind, Scope, Source
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import (
    importance,
    parts_at,
    reads,
    recency,
    weighted,
)
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

DAY = 86_400.0
WEIGHT = st.floats(0, 50)


@every_case(("kind", "half"), [("task-traces", 10.0), ("domain-facts", 100.0)])
def test_each_kind_has_its_own_half_life(kind: Kind, half: float) -> None:
    settings = Settings(decay_lambda=0.0693147, decay_lambdas={"domain-facts": 0.00693147})
    aged = record("a fact", kind=kind, now=MONDAY - half * DAY)
    assert recency(aged, MONDAY, settings) == pytest.approx(0.5, abs=1e-6)


def test_a_pinned_record_does_not_age() -> None:
    pinned = record("a fact", kind="task-traces", now=MONDAY - 3650 * DAY, metadata={"pinned": True})
    assert recency(pinned, MONDAY, Settings()) == 1.0


@every_case("told", [False, "true", 1, None])
def test_only_true_pins(told: object) -> None:
    aged = record("a fact", kind="task-traces", now=MONDAY - 3650 * DAY, metadata={"pinned": told})
    assert recency(aged, MONDAY, Settings()) == Settings().decay_floor


def test_a_source_without_a_boost_adds_nothing() -> None:
    settings = Settings(source_boosts={"user": 1.0})
    parts = parts_at(MONDAY, settings)
    assert parts(record("a fact", source=Source("user")), 0)["source"] == 1.0
    assert parts(record("a fact", source=Source("tool")), 0)["source"] == 0.0


@given(st.floats())
def test_importance_stays_in_the_unit_interval(value: float) -> None:
    assert 0.0 <= importance(record("a fact", importance=value)) <= 1.0


def test_reading_adds_less_each_time_and_never_all() -> None:
    assert [reads(times) for times in (0, 5, 20)] == [0.0, 0.5, 0.8]
    assert reads(10**9) < 1.0 or reads(10**9) == pytest.approx(1.0)


@given(st.tuples(WEIGHT, WEIGHT, WEIGHT, WEIGHT), st.floats(0.01, 50), st.integers(0, 100))
def test_whatever_the_weights_the_score_stays_in_the_unit_interval(
    weights: tuple[float, float, float, float], last: float, times: int
) -> None:
    names = ("weight_relevance", "weight_decay", "weight_source", "weight_importance")
    settings = Settings(**dict(zip(names, weights, strict=True)), weight_reads=last)
    beside = parts_at(MONDAY, settings)(record("a fact"), times)
    assert 0.0 <= weighted({"fused": 1.0, **beside}, settings) <= 1.0 + 1e-9


def test_what_has_no_weight_is_not_shown() -> None:
    parts = parts_at(MONDAY, Settings())(record("a fact"), 0)
    assert set(parts) == {"decay", "source"}


def test_of_two_alike_the_more_important_and_the_more_read_come_first() -> None:
    low, high = (record(f"GMV excludes refunds {n}", importance=n) for n in (0.2, 0.9))
    turn = Turn("GMV refunds", Scope("alice"), purpose="hits")
    first = recall(turn, ports((low, high), settings=Settings(weight_importance=0.5)), DEFAULT).hits[0]
    assert (first.record.id, first.parts["importance"]) == (high.id, 0.9)
    world = ports((low, high), settings=Settings(weight_reads=0.5))
    world.services.backend.audit.record_access([Access("search", MONDAY, "alice", record_id=low.id)] * 5)
    world.services.backend.audit.flush()
    first = recall(turn, world, DEFAULT).hits[0]
    assert (first.record.id, first.parts["reads"]) == (low.id, 0.5)


def test_an_access_log_that_fails_leaves_reads_out_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ports([record("GMV excludes refunds")], settings=Settings(weight_reads=0.5))
    monkeypatch.setattr(world.services.backend.audit, "reads", lambda ids: 1 / 0)
    hits = recall(Turn("GMV refunds", Scope("alice"), purpose="hits"), world, DEFAULT).hits
    assert len(hits) == 1
    assert hits.degraded
    assert hits.notes == ("without the access-log: ZeroDivisionError",)
