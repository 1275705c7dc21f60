"""Ranking: the formula, the clock, the threshold, the order."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Calibration
from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit, Hits, Message, Query, Record, Scope, Source
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import (
    coverage,
    decay,
    drop_already_said,
    gate,
    rank,
    relevance,
)
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALICE = Scope("alice")
DAY = 86_400.0


def asked(text: str, *hits: Hit, limit: int | None = None, threshold: float | None = None) -> Recalling:
    turn = Turn(text=text, scope=ALICE, purpose="hits", limit=limit, threshold=threshold)
    query = Query(text=text, where=None, terms=terms(text), now=MONDAY)  # type: ignore[arg-type]  # not searched
    return Recalling(turn, query=query, hits=Hits(hits))


def scored(each: Record, text: str, **settings: float) -> Hit:
    """The record ranked as the only hit, found by its words."""
    view = ports(settings=Settings(**settings)).read_store()
    (hit,) = rank(asked(text, Hit(each, parts={"bm25": 1.0, "match": 1.5})), view).hits
    return hit


def test_the_score_is_the_weighted_mean_of_the_match_decay_and_source() -> None:
    old = record("refunds are excluded", kind="task-traces", now=MONDAY - 30 * DAY, source=Source("agent"))
    hit = scored(
        old, "refunds included", weight_relevance=0.6, weight_decay=0.3, weight_source=0.1, decay_lambda=0.02
    )
    assert hit.parts["relevance"] == pytest.approx(0.5)
    assert hit.parts["fused"] == pytest.approx(0.5)
    assert hit.parts["decay"] == pytest.approx(math.exp(-0.02 * 30))
    assert hit.parts["source"] == 0.6
    assert hit.score == pytest.approx(0.6 * 0.5 + 0.3 * math.exp(-0.6) + 0.1 * 0.6)


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.01, 50))
def test_whatever_the_weights_the_score_stays_in_the_unit_interval(a: float, b: float, c: float) -> None:
    hit = scored(
        record("refunds are excluded"), "refunds", weight_relevance=a, weight_decay=b, weight_source=c
    )
    assert 0.0 <= hit.score <= 1.0


def test_weights_ten_times_as_large_give_the_same_score() -> None:
    each = record("refunds are excluded", now=MONDAY - 100 * DAY)
    small = scored(each, "refunds", weight_relevance=0.5, weight_decay=0.4, weight_source=0.1)
    large = scored(each, "refunds", weight_relevance=5.0, weight_decay=4.0, weight_source=1.0)
    assert small.score == pytest.approx(large.score)


@every_case("age", [-1.0, -3650.0, math.nan, 0.0])
def test_a_clock_that_jumped_makes_a_record_new_not_broken(age: float) -> None:
    assert decay(age, rate=0.1) == 1.0


def test_ten_years_leave_the_floor() -> None:
    assert decay(3650, rate=0.0231, floor=0.05) == 0.05
    assert decay(1e9, rate=50.0) >= 0.0


@given(st.floats(0, 4000), st.floats(0, 1), st.floats(0, 1))
def test_decay_falls_with_age_and_stays_in_the_unit_interval(age: float, rate: float, floor: float) -> None:
    assert 0.0 <= decay(age + 1, rate=rate, floor=floor) <= decay(age, rate=rate, floor=floor) <= 1.0


def test_thirty_days_halve_and_a_preference_does_not_age() -> None:
    then = MONDAY - 30 * DAY
    trace, wish = record("a b", kind="task-traces", now=then), record("a b", kind="user-profile", now=then)
    assert scored(trace, "b").parts["decay"] == pytest.approx(0.5, abs=0.001)
    assert scored(wish, "b").parts["decay"] == 1.0


def test_two_signals_that_agree_beat_the_better_one_alone_but_never_one() -> None:
    assert relevance(0.6, 0.0, named=False) == pytest.approx(0.6)
    assert 0.6 < relevance(0.6, 0.5, named=False) < 1.0
    assert relevance(1.0, 1.0, named=True) == 1.0
    assert relevance(None, 0.0, named=False) == 0.0


def test_what_was_said_before_is_weaker_evidence_than_the_record_itself() -> None:
    assert relevance(None, 0.0, named=False, context=1.0) == pytest.approx(0.7)
    assert relevance(None, 0.2, named=False, context=1.0) > relevance(None, 0.2, named=False)
    assert relevance(None, 1.0, named=False, context=1.0) == 1.0


@given(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.floats(0, 1))
def test_relevance_stays_in_the_unit_interval_and_never_falls_with_more_evidence(
    dense: float, covered: float, named: bool, context: float
) -> None:
    whole = relevance(dense, covered, named=named, context=context)
    assert 0.0 <= relevance(None, covered, named=False) <= whole + 1e-9 <= 1.0 + 2e-9


def test_coverage_counts_terms_of_text_and_tags() -> None:
    tagged = record("exclude refunds", tags=("GMV",))
    assert coverage(terms("GMV refunds today"), tagged) == pytest.approx(2 / 3)
    assert coverage((), tagged) == 0.0


def test_a_definition_whose_term_is_asked_for_is_relevant() -> None:
    gmv = record("GMV excludes refunds", subject="gmv", attribute="definition")
    assert scored(gmv, "how did our GMV develop last quarter in the north").parts["relevance"] >= 0.8


def test_the_threshold_reads_relevance_alone() -> None:
    fresh_nonsense = Hit(record("tea", source=Source("user")), score=0.9, parts={"relevance": 0.1})
    old_answer = Hit(
        record("GMV excludes refunds", now=MONDAY - 3650 * DAY), score=0.3, parts={"relevance": 0.5}
    )
    kept = gate(asked("x", fresh_nonsense, old_answer), ports().read_store()).hits
    assert [hit.record.content for hit in kept] == ["GMV excludes refunds"]


def test_decay_never_gates() -> None:
    ancient = record("GMV excludes refunds", kind="task-traces", now=MONDAY - 3650 * DAY)
    view = ports().read_store()
    kept = gate(rank(asked("GMV refunds", Hit(ancient)), view), view).hits
    assert [hit.record.id for hit in kept] == [ancient.id]


def test_without_threshold_the_best_are_kept_whatever_they_are() -> None:
    view = ports().read_store()
    plan = rank(
        asked(
            "refunds", Hit(record("tea")), Hit(record("refunds"), parts={"bm25": 1.0}), limit=2, threshold=0.0
        ),
        view,
    )
    assert [hit.record.content for hit in gate(plan, view).hits] == ["refunds", "tea"]


def test_of_equal_scores_the_newest_comes_first() -> None:
    twins = [record("refunds", id=f"0000000{n}") for n in (3, 1, 2)]
    hits = rank(asked("refunds", *map(Hit, twins)), ports().read_store()).hits
    assert [hit.record.id for hit in hits] == ["00000003", "00000002", "00000001"]


def test_a_cosine_is_read_through_the_embedders_calibration() -> None:
    embedder = HashingEmbedder()
    plan = asked("anything", Hit(record("tea"), parts={"cosine": 0.4}))
    assert plan.query is not None
    with_vector = Recalling(
        plan.turn,
        query=Query(
            text="anything", where=plan.query.where, vector=np.ones(256, np.float32), embedder="e", now=MONDAY
        ),
        hits=plan.hits,
    )
    (hit,) = rank(with_vector, ports(embedder=embedder).read_store()).hits
    assert hit.parts["sim"] == pytest.approx(embedder.calibration.relevance(0.4))
    assert Calibration(unrelated=0.2, same=0.6).relevance(math.nan) == 0.0


def test_a_cosine_that_is_no_number_counts_as_unrelated() -> None:
    plan = asked("anything", Hit(record("tea"), parts={"cosine": math.nan}))
    (hit,) = rank(plan, ports(embedder=HashingEmbedder()).read_store()).hits
    assert 0.0 <= hit.score <= 1.0


@every_case(
    "said", ["As you know,  GMV excludes refunds.", "gmv: GMV excludes\nrefunds", "GMV excludes refunds"]
)
def test_what_the_reader_sees_anyway_is_left_out(said: str) -> None:
    hit = Hit(record("GMV excludes refunds"), parts={"relevance": 1.0})
    turn = Turn(text="GMV?", scope=ALICE, messages=(Message("user", said),))
    assert len(drop_already_said(Recalling(turn, hits=Hits((hit,))), ports().read_store()).hits) == 0


def test_a_word_inside_another_word_says_nothing() -> None:
    turn = Turn(text="?", scope=ALICE, messages=(Message("user", "my team likes 退款口径说明"),))
    tea, refunds = Hit(record("tea")), Hit(record("退款口径"))
    left = drop_already_said(Recalling(turn, hits=Hits((tea, refunds))), ports().read_store()).hits
    assert [hit.record.content for hit in left] == ["tea"]


def test_a_file_the_reader_sees_anyway_is_left_out() -> None:
    file = record("csv file: out/q1.csv (20 rows)", kind="tool-effects", metadata={"path": "out/q1.csv"})
    turn = Turn(text="?", scope=ALICE, messages=(Message("user", "plot out/q1.csv"),))
    assert not drop_already_said(Recalling(turn, hits=Hits((Hit(file),))), ports().read_store()).hits


def test_records_as_good_as_equal_are_ordered_by_closeness_and_not_by_seconds_of_age() -> None:
    question = "When does project Falcon ship?"
    names = ("Falcon", "Heron", "Osprey", "Kestrel")
    records = [record(f"Project {n} ships in week {i}.", now=MONDAY - 60 + i) for i, n in enumerate(names)]
    near = [Hit(each, parts={"cosine": 0.95 if "Falcon" in each.content else 0.9}) for each in records]
    embedder = HashingEmbedder()  # whose relevance ends long before .9
    vector = embedder.embed_query(question)
    plan = asked(question, *near)
    assert plan.query is not None
    plan = replace(plan, query=replace(plan.query, vector=vector, embedder=embedder.fingerprint))
    found = rank(plan, ports(embedder=embedder).read_store()).hits
    assert {hit.parts["relevance"] for hit in found} == {1.0}
    assert "Falcon" in found[0].record.content


def matched(content: str, match: float, **parts: float) -> Hit:
    return Hit(record(content, id=content), parts={**parts, "match": match})


def ranked(text: str, *hits: Hit) -> list[str]:
    return [hit.record.content for hit in rank(asked(text, *hits), ports().read_store()).hits]


def test_the_match_orders_and_not_the_number_of_shared_words() -> None:
    plan = asked("where did Anna stay", matched("Anna did stay", 1.0), matched("at an inn", 2.0))
    hits = rank(plan, ports().read_store()).hits
    assert [hit.record.content for hit in hits] == ["at an inn", "Anna did stay"]
    assert hits[0].parts["relevance"] < hits[1].parts["relevance"]


def test_the_best_match_counts_for_as_much_as_the_best_relevance() -> None:
    hits = rank(asked("GMV", matched("GMV", 3.0), matched("tea", 1.5)), ports().read_store()).hits
    assert [hit.parts["fused"] for hit in hits] == pytest.approx([1.0, 0.5])
    nonsense = rank(asked("GMV", matched("tea", 3.0), matched("juice", 1.5)), ports().read_store()).hits
    assert [hit.parts["fused"] for hit in nonsense] == [0.0, 0.0]


def test_of_equal_matches_the_newest_comes_first_in_whatever_order_they_were_found() -> None:
    hits = [matched(f"refunds {n}", 1.0) for n in range(4)]
    assert ranked("refunds", *hits) == ranked("refunds", *reversed(hits))
    assert ranked("refunds", *hits) == [f"refunds {n}" for n in (3, 2, 1, 0)]


def test_hits_of_a_store_that_tells_no_match_are_ordered_by_meaning_and_words() -> None:
    both = Hit(record("tea both", id="both"), parts={"cosine": 0.8, "bm25": 2.0})
    near = Hit(record("near", id="near"), parts={"cosine": 0.8})
    worded = Hit(record("tea", id="worded"), parts={"bm25": 2.0})
    nothing = Hit(record("filled up", id="nothing"))
    found = rank(asked("tea", nothing, worded, near, both), ports().read_store()).hits
    assert [hit.record.id for hit in found] == ["both", "near", "worded", "nothing"]


def test_a_record_with_the_identifier_of_the_question_comes_first() -> None:
    text = "what does flights.arr_delay hold?"
    hits = (matched("minutes of delay", 1.1), matched("flights.arr_delay is in minutes", 1.0))
    assert ranked(text, *hits)[0] == "flights.arr_delay is in minutes"
    assert ranked("how many minutes of delay?", *hits)[0] == "minutes of delay"


@every_case(
    ("text", "dated"),
    [("When did she leave?", "She left on 7 May 2023"), ("她什么时候离开公司的？", "她五月七日离开公司")],
)
def test_asked_when_what_tells_a_time_comes_before_what_does_not(text: str, dated: str) -> None:
    assert ranked(text, matched("a", 1.1), matched(dated, 1.0))[0] == dated


def test_nothing_found_is_nothing_ranked() -> None:
    assert not rank(asked("tea"), ports().read_store()).hits


def test_a_time_that_fits_the_question_adds_to_other_evidence_and_admits_nothing_alone() -> None:
    plain = relevance(0.25, 0.2, named=False)
    assert plain < 0.3 < relevance(0.25, 0.2, named=False, dated=1.0) < 1.0
    assert relevance(0.0, 0.0, named=False, dated=1.0) == 0.0
    assert relevance(0.03, 0.0, named=False, dated=1.0) < 0.3
    assert relevance(1.0, 1.0, named=True, dated=1.0) == 1.0
