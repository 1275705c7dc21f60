"""The parts of a question, and whether it is about what the assistant said."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.understand.dates import named_dates
from supervisor_memory.understand.questions import asks_for_a_reply, dates_asked_for, parts_of_question
from tests.cases import every_case


@every_case(
    ("text", "parts"),
    [
        (
            "Who leads the team? Also, when did it start again?",
            ["Who leads the team?", "when did it start again?"],
        ),
        ("王芳在哪里工作？另外，年会的规模是多少？", ["王芳在哪里工作？", "年会的规模是多少？"]),
        ("It rained all day. Where is the blue umbrella?", []),
        ("Why? How?", []),
        ("Was the budget 3.5 million?", []),
        ("", []),
    ],
)
def test_a_text_of_several_questions_is_taken_apart(text: str, parts: list[str]) -> None:
    assert list(parts_of_question(text)) == parts


@every_case(
    "text",
    [
        "Which tea did you recommend?",
        "What was your advice on tea?",
        "你上次推荐的茶是哪种？",
        "你说过的那家店叫什么",
    ],
)
def test_a_question_may_be_about_what_the_assistant_said(text: str) -> None:
    assert asks_for_a_reply(text)


@every_case(
    "text", ["Which tea did I say I like?", "Did Ada recommend it?", "我说过喜欢哪种茶", "她推荐了什么"]
)
def test_a_question_about_others_words_is_not(text: str) -> None:
    assert not asks_for_a_reply(text)


@given(st.text(alphabet='a b?？。also另外,，\n"'))
def test_every_part_stands_in_the_text(text: str) -> None:
    assert all(part in text for part in parts_of_question(text))


NOW = datetime(2026, 5, 20, 12, tzinfo=UTC).timestamp()


@every_case(
    "text",
    [
        "I am tired today. When is my mother's birthday?",
        "今天天气真好。最近我在整理通讯录。我父亲的生日是哪天？",
    ],
)
def test_the_present_in_a_preamble_is_not_asked_for(text: str) -> None:
    assert named_dates(text, NOW)
    assert dates_asked_for(text, NOW) == ()


@every_case(
    "text",
    [
        "What did I eat today?",
        "I was in Rome in March 2024. Where did I stay?",
        "It is late. 昨天我吃了什么？",
        "Show what I said yesterday.",
        "When is it?",
    ],
)
def test_all_other_times_of_a_question_are_asked_for(text: str) -> None:
    assert dates_asked_for(text, NOW) == named_dates(text, NOW)
