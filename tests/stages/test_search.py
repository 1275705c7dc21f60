"""Fetching candidates: what resembles the question, and standing preferences."""

from typing import Any

from supervisor_memory.flow import Recalling, Turn, recall
from supervisor_memory.model.records import Note, Record, Scope
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.settings import Settings
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALICE = Scope("alice")


def note(text: str, records: list[Record], **settings: int | float) -> Note:
    turn = Turn(text=text, scope=ALICE)
    return recall(turn, ports(records, settings=Settings(**settings)), DEFAULT).note


def found(text: str, records: list[Record], *, limit: int, threshold: float) -> Recalling:
    turn = Turn(text=text, scope=ALICE, purpose="hits", limit=limit, threshold=threshold)
    return recall(turn, ports(records), DEFAULT)


def test_a_threshold_of_zero_gives_as_many_as_are_asked_for_even_unrelated() -> None:
    records = [record(f"fact number {n}") for n in range(20)]
    assert len(found("zebra", records, limit=7, threshold=0.0).hits) == 7
    assert len(found("fact 3", records, limit=7, threshold=0.0).hits) == 7
    assert len(found("zebra", records, limit=50, threshold=0.0).hits) == 20
    assert len(found("", records, limit=3, threshold=0.0).hits) == 3


def test_more_than_a_thousand_can_be_asked_for() -> None:
    records = [record(f"fact number {n}") for n in range(1_200)]
    assert len(found("fact", records, limit=1_100, threshold=0.0).hits) == 1_100


def test_a_threshold_of_zero_never_shows_what_has_expired() -> None:
    records = [record(f"fact {n}", expires_at=MONDAY - 1) for n in range(5)] + [record("tea")]
    assert [h.record.content for h in found("zebra", records, limit=5, threshold=0.0).hits] == ["tea"]


def test_the_best_come_before_what_merely_fills() -> None:
    records = [record("the answer is refunds", now=MONDAY - 1e6), *(record(f"f{n}") for n in range(9))]
    hits = found("refunds", records, limit=3, threshold=0.0).hits
    assert len(hits) == 3
    assert hits[0].record.content == "the answer is refunds"


@every_case(
    ("question", "short", "long"),
    [
        (
            "Who leads payments? Also, when is the offsite with sailing, archery and grilled fish?",
            "Ada leads payments",
            "the offsite has sailing, archery and grilled fish",
        ),
        (
            "谁负责支付组？另外，有帆船、射箭和烤鱼的那次团建是什么时候？",
            "支付组由小艾负责",
            "那次团建有帆船、射箭和烤鱼",
        ),
    ],
)
def test_a_question_of_two_parts_finds_what_answers_the_short_one(
    question: str, short: str, long: str
) -> None:
    talk = [record(f"{long} {n}") for n in range(6)]
    hits = found(question, [record(short), *talk], limit=3, threshold=0.0).hits
    assert short in [hit.record.content for hit in hits]


def test_standing_preferences_come_first_whatever_the_question() -> None:
    wish = record("answers as tables please", kind="user-profile", now=MONDAY - 9e6)
    fact = record("GMV excludes refunds")
    told = note("what does GMV mean with refunds?", [fact, wish])
    assert told.ids == (wish.id, fact.id)


def test_there_are_at_most_so_many_standing_preferences_and_they_are_the_newest() -> None:
    wishes = [record(f"wish {n}", kind="user-profile", now=MONDAY - n) for n in range(10)]
    told = note("what is the weather?", wishes, standing_notes=2, max_notes=5)
    assert set(told.ids) == {wishes[0].id, wishes[1].id}
    assert not note("what is the weather?", wishes, standing_notes=0)


@every_case(
    ("wanted", "others", "question"),
    [
        (
            "Always name the time zone when I ask about meetings",
            [f"Always round to {n} decimals" for n in range(5)],
            "when are the meetings with Bo?",
        ),
        ("问到会议时，总是注明时区", [f"一律保留{n}位小数" for n in range(5)], "和小波的会议是什么时候？"),
    ],
)
def test_of_more_wishes_than_have_a_place_the_nearest_to_the_question_stand(
    wanted: str, others: list[str], question: str
) -> None:
    newer = [profile(text, age) for age, text in enumerate(others)]
    wish = profile(wanted, 100)
    told = note(question, [*newer, wish], standing_notes=2)
    assert set(told.ids) == {wish.id, newer[0].id}
    assert set(note("what is the weather?", [*newer, wish], standing_notes=2).ids) == {
        n.id for n in newer[:2]
    }


def test_expired_preferences_do_not_hide_the_others() -> None:
    expired = [
        record(f"old {n}", kind="user-profile", now=MONDAY - n, expires_at=MONDAY - 1) for n in range(5)
    ]
    wish = record("answers as tables please", kind="user-profile", now=MONDAY - 100)
    assert note("what is the weather?", [*expired, wish]).ids == (wish.id,)


def profile(text: str, age: float, **facts: Any) -> Record:
    return record(text, kind="user-profile", now=MONDAY - age, **facts)


@every_case(
    ("wish", "facts"),
    [
        ("always cite the source", ["I work at Delta", "My manager is Bob", "went hiking in May"]),
        ("以后都注明来源", ["我住在上海", "我的部门是市场部", "五月去爬山了"]),
    ],
)
def test_facts_about_the_user_do_not_push_out_what_the_user_wants(wish: str, facts: list[str]) -> None:
    newer = [profile(fact, age) for age, fact in enumerate(facts)]
    wanted = profile(wish, 100)
    table = profile("tables", 200, subject="answer", attribute="format")
    told = note("what is the weather?", [*newer, wanted, table], standing_notes=3)
    assert set(told.ids) == {wanted.id, table.id, newer[0].id}


def test_to_be_called_by_a_name_is_a_wish_and_to_have_a_manager_is_none() -> None:
    manager = profile("My manager is Bob", 1, subject="user", attribute="manager")
    name = profile("Call me Jo", 2, subject="user", attribute="name")
    assert note("what is the weather?", [manager, name], standing_notes=1).ids == (name.id,)


def test_what_is_pinned_stands_before_all_other_however_old() -> None:
    newer = [profile(f"always use tables of {n} columns", n) for n in range(150)]
    pinned = profile("I am allergic to nuts", 9e6, metadata={"pinned": True})
    told = note("what is the weather?", [*newer, pinned], standing_notes=2)
    assert set(told.ids) == {pinned.id, newer[0].id}


def test_what_is_pinned_and_expired_or_deleted_stands_no_more() -> None:
    pinned: dict[str, Any] = {"metadata": {"pinned": True}}
    expired = profile("expired", 1, expires_at=MONDAY - 1, **pinned)
    deleted = profile("deleted", 2, status="deleted", **pinned)
    almost = profile("pinned in words", 3, metadata={"pinned": "true"})
    wish = profile("answers as tables please", 4, subject="answer", attribute="format")
    told = note("what is the weather?", [expired, deleted, almost, wish], standing_notes=1)
    assert told.ids == (wish.id,)


def test_a_greeting_needs_nothing_from_memory() -> None:
    assert not note("hello", [record("answers as tables please", kind="user-profile")])


def test_preferences_of_another_task_or_user_are_not_standing() -> None:
    other = record("wish", kind="user-profile", user_id="bob")
    in_task = record("wish", kind="user-profile", namespace=("user_profile", "alice", "audit"))
    assert not note("what is the weather?", [other, in_task])
