"""The gate: the threshold, the knee, the limit, what was said; each drop has its reason."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.flow import Recalling, Turn, recall
from supervisor_memory.model.explain import REASONS
from supervisor_memory.model.records import Filter, Hit, Hits, Message, Query, Scope
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.format import format_note
from supervisor_memory.stages.post_retrieval.rank import answers, drop_already_said, gate, knee, rank
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALICE = Scope("alice")
UNIT = st.lists(st.floats(0, 1), max_size=12)


def plan_of(*relevances: float, **turn: object) -> Recalling:
    """Ranked hits of these relevances, called by them."""
    hits = tuple(Hit(record(f"fact {each}"), each, {"relevance": each}) for each in relevances)
    return Recalling(Turn("?", ALICE, explain=True, **turn), hits=Hits(hits))  # type: ignore[arg-type]


def lines_of(note: str) -> int:
    return note.count("- [")


def kept(plan: Recalling, **settings: float) -> Sequence[float]:
    return [hit.score for hit in gate(plan, ports(settings=Settings(**settings)).read_store()).hits]


def test_a_note_ends_where_the_match_falls_off_sharply() -> None:
    assert kept(plan_of(0.95, 0.9, 0.4, 0.38), knee=0.5) == [0.95, 0.9]


def test_what_is_not_far_from_the_best_is_before_the_knee() -> None:
    assert kept(plan_of(0.95, 0.8, 0.65, 0.5), knee=0.5) == [0.95, 0.8, 0.65, 0.5]


def test_a_slow_fall_has_no_knee() -> None:
    slow = [0.9 * 0.95**n for n in range(20)]
    assert kept(plan_of(*slow), knee=0.5, max_notes=20) == slow


def test_a_knee_of_zero_drops_nothing() -> None:
    assert kept(plan_of(1.0, 0.31), knee=0.0) == [1.0, 0.31]


def test_a_search_has_no_knee_so_that_the_limit_alone_says_how_much() -> None:
    assert kept(plan_of(1.0, 0.31, purpose="hits")) == [1.0, 0.31]
    assert kept(plan_of(1.0, 0.31, purpose="hits", limit=5)) == [1.0, 0.31]


def test_without_threshold_nothing_is_cut_but_by_the_limit() -> None:
    assert kept(plan_of(1.0, 0.2, 0.0, threshold=0.0)) == [1.0, 0.2, 0.0]


@given(UNIT, st.floats(0, 1))
def test_the_best_hit_and_whatever_nearly_equals_a_kept_one_stay(found: list[float], share: float) -> None:
    edge = knee(found, share=share)
    left = [each for each in found if each >= edge]
    gone = [each for each in found if each < edge]
    assert not found or max(found) in left
    assert not gone or (max(gone) < 0.9 * min(left) and max(gone) < share * max(found))


@given(st.floats(0.01, 1), st.floats(0, 1))
def test_of_two_nearly_equal_hits_the_second_is_never_dropped(best: float, share: float) -> None:
    assert knee([best, best * 0.91], share=share) == 0.0


def test_the_knee_is_the_same_whatever_the_order_of_the_hits() -> None:
    assert kept(plan_of(0.4, 0.95, 0.9), knee=0.5) == [0.95, 0.9]


def test_the_threshold_reads_relevance_and_the_knee_the_match() -> None:
    parts = (
        {"fused": 0.9, "relevance": 0.4},
        {"fused": 0.3, "relevance": 0.8},
        {"fused": 0.8, "relevance": 0.2},
    )
    hits = Hits(tuple(Hit(record(f"fact {n}"), n, each) for n, each in enumerate(parts)))
    done = gate(Recalling(Turn("?", ALICE, explain=True), hits=hits), ports().read_store())
    assert [hit.score for hit in done.hits] == [0]
    assert {each.hit.score: each.reason for each in done.dropped} == {1: "after-knee", 2: "below-threshold"}


def test_a_standing_preference_is_kept_behind_a_knee_and_comes_first() -> None:
    plan = plan_of(0.9, 0.35)
    wish = Hit(record("use tables", kind="user-profile"), 0.2, {"relevance": 0.0, "standing": 1.0})
    hits = gate(
        Recalling(plan.turn, hits=Hits((*plan.hits, wish))), ports(settings=Settings(knee=0.5)).read_store()
    ).hits
    assert [hit.score for hit in hits] == [0.2, 0.9]


def test_what_an_operator_added_passes_threshold_and_knee_and_not_the_limit() -> None:
    plan = plan_of(0.9, 0.85)
    bridged = Hit(record("Kim is on call for the job"), 0.1, found="spread")
    with_it = replace(plan, hits=Hits((*plan.hits, bridged)))
    assert kept(with_it, knee=0.9) == [0.9, 0.85, 0.1]
    assert kept(with_it, knee=0.9, max_notes=2) == [0.9, 0.85]
    searched = replace(plan, hits=Hits((*plan.hits, replace(bridged, found=None))))
    assert kept(searched, knee=0.9) == [0.9, 0.85]


def test_an_operator_adds_hits_behind_a_search_or_before_the_ranking() -> None:
    on_call = record("Kim is on call")

    def spread(plan: Recalling, view: ReadStore) -> Recalling:
        return replace(plan, hits=replace(plan.hits, items=(*plan.hits, Hit(on_call, found="spread"))))

    asked = Turn("which job fills the sales table?", ALICE, purpose="hits", explain=True)
    behind = replace(DEFAULT, post_retrieval=(rank, spread, gate))
    before = replace(DEFAULT, retrieval=(*DEFAULT.retrieval, spread))
    for recipe in (behind, before):
        world = ports([record("the nightly job fills the sales table")])
        hits = recall(asked, world, recipe).hits
        assert [hit.found for hit in hits] == [None, "spread"]
        assert [each.reason for each in hits.considered] == ["kept", "added"]


def test_nothing_relevant_is_an_answer_that_says_how_near_it_was() -> None:
    told = gate(plan_of(0.21, 0.1), ports().read_store()).hits
    assert not told
    assert told.notes == ("nothing relevant: the best of 2 has 0.21, the threshold is 0.30",)


@every_case(("namespaces", "told"), [(0, "no memories where"), (2, "shares a word")])
def test_a_search_that_finds_nothing_says_whether_there_was_anything(namespaces: int, told: str) -> None:
    asked = Query("tea?", Filter(user_id="alice"))
    plan = Recalling(Turn("tea?", ALICE, purpose="hits"), hits=Hits(namespaces=namespaces), query=asked)
    (note,) = gate(plan, ports().read_store()).hits.notes
    assert note.startswith("nothing found: ")
    assert told in note
    assert not gate(replace(plan, turn=Turn("tea?", ALICE)), ports().read_store()).hits.notes


def test_what_defines_a_word_of_the_question_is_not_what_the_limit_of_a_note_drops() -> None:
    plan = plan_of(0.9, 0.8, 0.7, 0.6)
    defined = Hit(record("delayed means late"), 0.5, {"relevance": 0.5, "named": 1.0})
    wish = Hit(record("use tables", kind="user-profile"), 0.2, {"relevance": 0.0, "standing": 1.0})
    plan = replace(plan, hits=Hits((*plan.hits, defined, wish)))
    assert kept(plan, max_notes=4, knee=0.0) == [0.2, 0.9, 0.8, 0.5]
    assert kept(plan, max_notes=2, knee=0.0) == [0.2, 0.9]
    as_asked = replace(plan, turn=replace(plan.turn, purpose="hits", limit=4))
    assert kept(as_asked) == [0.2, 0.9, 0.8, 0.7]


def test_the_reason_of_each_drop_is_a_code_with_words() -> None:
    said = Message("user", "as I said, fact 0.7")
    plan = plan_of(1.0, 0.9, 0.8, 0.7, 0.35, 0.1, messages=(said,))
    settings = Settings(max_notes=2, max_context_tokens=1, knee=0.5)
    view = ports(settings=settings, count_tokens=lines_of).read_store()
    done = format_note(gate(drop_already_said(plan, view), view), view)
    reasons = {each.hit.score: each.reason for each in done.dropped}
    assert reasons == {
        0.7: "already-said",
        0.1: "below-threshold",
        0.35: "after-knee",
        0.8: "over-limit",
        0.9: "over-budget",
    }
    assert [hit.score for hit in done.hits] == [1.0]
    assert set(reasons.values()) < set(REASONS)


def test_a_note_says_what_did_not_fit() -> None:
    view = ports(settings=Settings(max_context_tokens=1), count_tokens=lines_of).read_store()
    (told,) = format_note(plan_of(1.0, 0.9), view).hits.notes
    assert told == "1 of 2 records did not fit into the note: MEMORY_MAX_CONTEXT_TOKENS=1"


@pytest.mark.parametrize("explain", [True, False])
def test_a_recall_accounts_for_every_candidate(*, explain: bool) -> None:
    facts = [record(f"GMV excludes refunds in region {n}") for n in range(8)] + [record("GMV 不含退款")]
    turn = Turn("GMV refunds?", ALICE, purpose="hits", limit=3, explain=explain)
    hits = recall(turn, ports(facts), DEFAULT).hits
    assert len(hits) == 3
    considered = {each.hit.record.id: each.reason for each in hits.considered}
    assert len(considered) == (len(facts) if explain else 0)
    assert [each.hit for each in hits.considered if each.reason == "kept"] == ([*hits] if explain else [])


def test_what_an_operator_of_ones_own_leaves_out_is_told_too() -> None:
    def first_alone(plan: Recalling, view: object) -> Recalling:
        return Recalling(plan.turn, query=plan.query, hits=plan.hits[:1])

    recipe = replace(DEFAULT, post_retrieval=(*DEFAULT.post_retrieval, first_alone))
    facts = [record(f"GMV excludes refunds in region {n}") for n in range(3)]
    turn = Turn("GMV refunds?", ALICE, purpose="hits", explain=True)
    reasons = [each.reason for each in recall(turn, ports(facts), recipe).hits.considered]
    assert reasons == ["kept", "left-out", "left-out"]


def test_words_that_no_embedder_has_read_yet_may_answer_beside_others_that_one_has() -> None:
    unlike = Hit(record("Lunch is at noon."), parts={"sim": 0.1, "share": 0.1})
    waiting = Hit(record("The report slipped."), parts={"share": 1.0})
    assert not answers([unlike])
    assert answers([unlike, waiting])
