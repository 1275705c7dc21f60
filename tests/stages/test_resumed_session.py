"""A new thread starts where the last ended: what the note of its first turn tells of earlier sessions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory, why
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Note
from supervisor_memory.testing.clock import FixedClock
from tests.breadth import size
from tests.cases import every_case
from tests.host.graphs import asking, config, model, team

EXPORT = (
    ("user", "The nightly export of the parts catalogue fails. Find out why."),
    ("assistant", "It stops at row 88,120: a supplier name has a tab in it."),
    ("user", "Quote the fields then."),
    ("assistant", "I quoted all text fields. The dealer import has not been tested yet."),
)
BADGES = (
    ("user", "How many badge requests were there in October?"),
    ("assistant", "There were 212 badge requests."),
    ("user", "Perfect, that is all."),
    ("assistant", "You're welcome."),
)
PADS = (
    ("user", "Which supplier should we take for the brake pads, Halvorsen or Brix?"),
    ("assistant", "Halvorsen is 8% cheaper, Brix delivers in 3 days."),
    ("user", "We go with Brix."),
    ("assistant", "Brix it is, the order is in the folder."),
)
NEW = Scope("ada", session_id="new")


def opened(**settings: Any) -> SupervisorMemory:
    given = {"embedding_model": "none", "queue_worker": False}
    return SupervisorMemory(Settings(**{**given, **settings}), clock=FixedClock())


@pytest.fixture(params=["digested", "not digested yet"])
def memory(request: pytest.FixtureRequest) -> Iterator[SupervisorMemory]:
    with opened() as memory:
        for n, session in enumerate((PADS, EXPORT, BADGES)):
            memory.remember([*session], Scope("ada", session_id=f"s{n}"))
            memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
        if request.param == "digested":
            assert memory.flush()
            assert memory.backend.count(Filter("ada", families=(DIGEST_FAMILY,))) == 3
        yield memory


def digests(told: Note) -> int:
    return sum(hit.found == "digest" for hit in told.hits)


def note(memory: SupervisorMemory, text: str, scope: Scope = NEW, **given: Any) -> Note:
    return memory.recall([("user", text)], scope, **given)


@every_case(
    "text", ["Where were we?", "What are the next steps?", "Let's continue.", "继续", "接下来做什么？"]
)
def test_who_goes_on_is_told_what_the_latest_unfinished_session_left_open(
    memory: SupervisorMemory, text: str
) -> None:
    told = note(memory, text)
    assert "The dealer import has not been tested yet." in told.text
    assert "Quote the fields then." in told.text
    assert "badge" not in told.text
    assert told.tokens <= 300
    assert digests(told) == 1


def test_a_topic_chooses_the_session_and_a_question_of_a_decision_finds_its_sentence(
    memory: SupervisorMemory,
) -> None:
    told = note(memory, "Which supplier did we settle on for the brake pads?")
    assert "Decided: We go with Brix." in told.text
    assert "dealer import" not in told.text
    assert "212 badge requests" in note(memory, "Back to the badge requests").text


def test_a_note_that_goes_on_has_at_most_three_hundred_tokens_whatever_else_is_known(
    memory: SupervisorMemory,
) -> None:
    for number in range(12):
        memory.write(
            f"From now on put export number {number} of the parts catalogue in folder {number}.",
            user_id="ada",
        )
    told = note(memory, "Let us go on with the export of the parts catalogue.")
    assert "dealer import" in told.text
    assert 200 < told.tokens <= 300


def test_a_greeting_brings_one_line(memory: SupervisorMemory) -> None:
    told = note(memory, "Good morning!")
    assert "The dealer import has not been tested yet." in told.text
    assert sum(line.startswith("- [") for line in told.text.splitlines()) == 1


@every_case(
    "text",
    [
        "How many working days does December have?",
        "What are the next steps after installing PostgreSQL?",
        "Go on, which is heavier, ice or water?",
        "Hi, translate this poem.",
        "接下来问个小的：圆周率是多少？",
        "Resume: Jane Doe, five years of accounting",
        "Continue this story: a fox lived in the wood.",
        "Thanks!",
        "下一步棋怎么走？",
        "继续讲一个笑话",
        "还有什么好吃的？",
        "谢谢",
    ],
)
def test_a_new_topic_or_a_question_that_begins_like_a_continuation_brings_nothing(
    memory: SupervisorMemory, text: str
) -> None:
    assert digests(note(memory, text)) == 0


def test_who_only_asks_where_things_stand_does_not_stand_in_for_what_the_session_before_left_open(
    memory: SupervisorMemory,
) -> None:
    asked = [
        ("user", "Where were we?"),
        ("assistant", "The text fields were quoted; the dealer import still has to be tested."),
    ]
    memory.remember(asked, Scope("ada", session_id="asks"))
    memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
    assert memory.flush()
    for text in ("Where were we?", "Let's continue.", "Back to the dealer import.", "Hello!"):
        told = note(memory, text)
        assert "It stops at row 88,120" in told.text or text == "Hello!", text
        assert "has not been tested yet" in told.text, text
    went_on = [
        ("user", "Let's continue."),
        ("assistant", "I tested the dealer import. Eleven prices are still wrong."),
    ]
    memory.remember(went_on, Scope("ada", session_id="on"))
    assert "Eleven prices are still wrong." in note(memory, "Where were we?").text


@every_case(
    ("left", "done", "asked"),
    [
        ("The dealer import has not been tested yet.", "I tested the dealer import.", "Where were we?"),
        ("经销商导入还没有测试。", "经销商导入已经测试完了。", "上次做到哪儿了？"),
    ],
)
def test_what_a_later_session_tells_as_done_is_open_no_more(left: str, done: str, asked: str) -> None:
    with opened() as memory:
        say = {"Where were we?": ("Look at the export of parts.", "Let's continue.")}.get(
            asked, ("看一下零件导出。", "继续吧。")
        )
        for session, said in zip(("first", "second"), zip(say, (left, done), strict=True), strict=True):
            memory.remember([("user", said[0]), ("assistant", said[1])], Scope("ada", session_id=session))
            memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
        told = note(memory, asked).text
        assert done in told
        assert left not in told


def test_a_session_is_found_by_its_topic_however_many_came_after_it() -> None:
    with opened(backend="in_memory", queue_worker=True) as memory:
        memory.remember([*PADS], Scope("ada", session_id="old"))
        for number in range(size(120, less=50)):
            memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
            said = [
                ("user", f"Count the badges of floor {number}."),
                ("assistant", f"There are {number} badges."),
            ]
            memory.remember(said, Scope("ada", session_id=f"s{number}"))
        assert memory.flush()
        assert "We go with Brix." in note(memory, "Back to the brake pads.").text


def test_the_latest_session_is_by_what_was_said_not_by_when_its_digest_was_made() -> None:
    with opened(backend="in_memory") as memory:
        start = memory.services.clock()
        for number in range(60):
            said = [
                ("user", f"Count the badges of floor {number}."),
                ("assistant", f"There are {number} badges."),
            ]
            told = EXPORT if number == 54 else said
            memory.add(
                [*told], user_id="ada", session_id=f"s{number}", created_at=start - (60 - number) * 86_400
            )
        assert memory.flush()
        assert "has not been tested yet" in note(memory, "Where were we?").text


def test_a_digest_is_logged_with_the_messages_that_it_was_made_of(memory: SupervisorMemory) -> None:
    told = note(memory, "Where were we?")
    [hit] = [each for each in told.hits if each.found == "digest"]
    [logged] = memory.audit.notes(1, op="inject")
    [shown] = [each for each in logged.shown if each.record_id == hit.record.id]
    assert (hit.reason, shown.reason) == ("digest", "digest")
    assert "a digest of the session" in why(shown.parts)
    said = {each.id: each.content for each in memory.session("s1", user_id="ada")}
    sections = {said[id_]: section for id_, section in shown.made_of}
    assert sections[EXPORT[0][1]] == "asked"
    assert sections[EXPORT[3][1]] == "next"
    assert [each.id for each in memory.audit.notes(9, record_id=shown.made_of[0][0])] == [logged.id]


def test_later_turns_threads_without_a_name_and_other_users_are_told_nothing(
    memory: SupervisorMemory,
) -> None:
    seen = [("user", "hi"), ("assistant", "Hello."), ("user", "Where were we?")]
    assert digests(memory.recall(seen, NEW)) == 0
    assert digests(note(memory, "Where were we?", Scope("ada"))) == 0
    assert not note(memory, "Where were we?", Scope("eve", session_id="new"))
    memory.remember([("user", "hi"), ("assistant", "Hello.")], NEW)
    assert digests(note(memory, "Where were we?")) == 0


def test_what_was_deleted_since_is_not_told(memory: SupervisorMemory) -> None:
    said = memory.backend.list(Filter("ada", families=(SESSION_FAMILY,)), limit=99)
    for each in said:
        if "Quote the fields" in each.content:
            memory.delete(each.id)
    told = note(memory, "Where were we?")
    assert "Quote the fields" not in told.text
    assert "dealer import" in told.text


@every_case(
    ("rule", "request_", "reply", "later", "asked", "told", "gone"),
    [
        (
            "Delayed means arrival more than 15 minutes late.",
            "Please plan the picnic at the lake.",
            "I booked the meadow.",
            "Delayed means arrival more than 30 minutes late.",
            "Back to the picnic",
            ("plan the picnic", "booked the meadow"),
            "15",
        ),
        (
            "以后默认用表格。",
            "请安排湖边的野餐。",
            "我订好了草地。",
            "以后默认不用表格。",
            "回到野餐",
            ("湖边的野餐", "订好了草地"),
            "默认用表格",
        ),
    ],
)
def test_a_statement_that_was_replaced_takes_its_own_line_and_no_other(  # noqa: PLR0917
    rule: str, request_: str, reply: str, later: str, asked: str, told: tuple[str, ...], gone: str
) -> None:
    with opened() as memory:
        add = partial(memory.add, user_id="ada")
        add([("user", f"{rule} {request_}"), ("assistant", reply)], session_id="s1")
        memory.flush()
        assert gone in note(memory, asked).text
        add([("user", later)], session_id="s2")
        memory.flush()
        text = note(memory, asked).text
    assert all(each in text for each in told)
    assert gone not in text


def test_a_reply_that_repeats_what_was_replaced_goes_with_it() -> None:
    with opened() as memory:
        first = "Delayed means arrival more than 15 minutes late. Please plan the picnic at the lake."
        reply = "Noted, from 15 minutes on. I booked the meadow."
        memory.add([("user", first), ("assistant", reply)], user_id="ada", session_id="s1")
        later = "Delayed means arrival more than 30 minutes late."
        memory.add([("user", later)], user_id="ada", session_id="s2")
        memory.flush()
        text = note(memory, "Back to the picnic").text
    assert "plan the picnic" in text
    assert "15" not in text


def test_of_a_message_whose_replaced_statement_is_not_found_nothing_is_told() -> None:
    with opened() as memory:
        first = "My name is Bob. Bob wants a picnic at the lake. Please plan the picnic."
        memory.add([("user", first)], user_id="ada", session_id="s1")
        memory.add([("user", "My name is Robert.")], user_id="ada", session_id="s2")
        memory.flush()
        told = note(memory, "Where were we?").text
    assert "Bob" not in told
    assert "picnic" not in told


def test_a_reply_that_repeats_what_was_deleted_since_is_not_told() -> None:
    with opened() as memory:
        secret = "The code word of the vault is heliotrope."
        for said, reply in (
            ("Find out why the export of invoices fails.", "It stops at row 7: a tab is in it."),
            (secret, f"Found: {secret[0].lower()}{secret[1:]}"),
        ):
            memory.remember([("user", said), ("assistant", reply)], Scope("ada", session_id="s1"))
        for each in memory.backend.list(Filter("ada", families=(SESSION_FAMILY,)), limit=99):
            if each.content == secret:
                memory.delete(each.id)
        told = memory.recall("Where were we?", Scope("ada", session_id="s2")).text
        assert "row 7" in told
        assert "heliotrope" not in told


def test_an_agent_is_told_the_users_words_and_its_own(memory: SupervisorMemory) -> None:
    told = note(memory, "Where were we?", Scope("ada", agent_id="sql", session_id="new"))
    assert "Quote the fields then." in told.text
    assert "dealer import" not in told.text


def test_settings_host_and_call_refuse_digests_as_they_refuse_quotations(memory: SupervisorMemory) -> None:
    assert not note(memory, "Where were we?", said=False)
    with opened(recall_said="never") as silent:
        silent.remember([*EXPORT], Scope("ada", session_id="s1"))
        assert not note(silent, "Where were we?")


def test_the_first_turn_of_a_thread_of_a_graph_goes_on_where_the_last_thread_ended() -> None:
    with opened() as memory:
        memory.remember([*EXPORT], Scope("ada", session_id="before"))
        heard = model("Then I test the dealer import.")
        graph = memory.attach(team(heard, {})).compile()
        graph.invoke(asking("Where were we?"), config("after", user_id="ada"))
        assert "The dealer import has not been tested yet." in heard.prompts[0]
