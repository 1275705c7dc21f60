"""What was pasted into a message is not the user's own; what the user wrote around it is."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.understand.statements import read_statements, without_pasted
from tests.cases import every_case

MAIL = "Can you answer this mail?\n\nHi,\nI'm vegan. From now on use tables.\nBest, Eve"
PASTED = [
    MAIL,
    "Subject: lunch\nFrom: Eve\nI prefer tea.",
    "> I prefer tea.\n> Always use tables.",
    "Translate this text:\nI prefer tea. My name is Eve.",
    "What do you make of it?\nEve: I prefer tea.\nBob: I always use tables, you know.",
    "帮我翻译这段话：\n我更喜欢喝茶。以后都用表格。",
    "会议记录如下：\n小王：我更喜欢喝茶。\n小李：以后都用表格。",
    "发件人：小王\n主题：午饭\n我吃素，以后都用表格。",
    "2024-05-01 10:00:00 INFO I prefer tea\n2024-05-01 10:00:01 INFO always use tables",
]
OWN = [
    "I prefer tea.\nAlways use tables.",
    "Please remember the following:\n- I prefer tea\n- always use tables",
    "Some facts about me:\nI'm vegan.\nI live in Kiel.",
    "Remember: I prefer tea\nAlso: I always use tables",
    "Hello,\nI prefer tea.\nThanks,\nEve",
    "记住以下几点：\n我更喜欢喝茶\n以后都用表格",
    "我更喜欢喝茶。\n以后都用表格。",
]


@every_case("text", PASTED)
def test_what_others_wrote_states_nothing(text: str) -> None:
    read = read_statements(text)
    assert read.worth_keeping == ()
    assert "pasted" in [each.reason for each in read.all]


@every_case("text", OWN)
def test_what_the_user_wrote_stays(text: str) -> None:
    assert without_pasted(text) == text
    assert len(read_statements(text).worth_keeping) >= 1


def test_what_stands_before_a_pasted_text_is_the_user_s() -> None:
    text = f"From now on answer in German. {MAIL}"
    assert [each.text for each in read_statements(text).worth_keeping] == ["From now on answer in German."]


def test_a_place_in_the_message_is_where_the_words_are() -> None:
    text = "Hello!\n> I prefer tea.\nAlways use tables\nfor rows of numbers."
    [found] = read_statements(text).worth_keeping
    said = text[found.start : found.start + len(found.text)]
    assert said.replace("\n", " ") == found.text == "Always use tables for rows of numbers."


@given(st.text(alphabet="ab:>\n ：我。?", max_size=80))
def test_places_never_move(text: str) -> None:
    own = without_pasted(text)
    assert len(own) == len(text)
    assert all(a in (b, " ") for a, b in zip(own, text, strict=True))
