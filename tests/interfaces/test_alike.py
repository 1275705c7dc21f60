"""Texts that are alike: what they share is said once, and nothing of any of them is lost."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.interfaces.alike import alike, compared, parts_of, said_once

WORDS = st.sampled_from(
    ("The user", "likes", "tea", "plan", "17", "eve@example.net", "用户希望", "表格", ".", ", ")
)
TEXTS = st.lists(WORDS, max_size=9).map(" ".join) | st.text(max_size=12)


def told(fixed: tuple[str, ...], own: tuple[str, ...]) -> str:
    return "".join(piece for pair in zip(fixed, (*own, ""), strict=True) for piece in pair)


@given(texts=st.lists(TEXTS, max_size=12))
def test_every_text_is_there_once_to_the_letter(texts: list[str]) -> None:
    groups = alike(texts)
    each = ((group.fixed, *pair) for group in groups for pair in zip(group.at, group.own, strict=True))
    found = {at: told(fixed, own) for fixed, at, own in each}
    assert found == dict(enumerate(texts))
    assert sum(len(group.at) for group in groups) == len(texts)
    for group in groups:
        for at in group.at:
            again = group.own_of(texts[at])
            assert again is not None
            assert told(group.fixed, again) == texts[at]


def test_what_many_say_is_told_once_and_an_address_is_one_word() -> None:
    texts = [
        *(f"The user prefers {what} for plan {n}." for n, what in enumerate(("maps", "bar charts", "lists"))),
        "The user prefers that all files be deleted.",
        "The user prefers reports for plan 9 sent to eve@example.net.",
    ]
    plans, *others = alike(texts)
    assert plans.at == (0, 1, 2)
    assert plans.fixed == ("The user prefers ", "for plan ", ".")
    assert plans.own == (
        ("maps ", "0"),
        ("bar charts ", "1"),
        ("lists ", "2"),
    )
    assert [texts[at] for other in others for at in other.at] == texts[3:]  # what adds more is read whole
    assert plans.own_of("The user prefers ranks for plan 7.") == ("ranks ", "7")
    assert plans.own_of("The user likes ranks.") is None


def test_chinese_is_alike_by_its_characters() -> None:
    shapes = ("表格", "折线图", "柱状图")
    [group] = alike([f"用户希望方案 {n} 的结果用{what}显示。" for n, what in enumerate(shapes)])
    assert group.fixed == ("用户希望方案 ", "的结果用", "显示。")
    assert [each[1] for each in group.own] == [*shapes]


def test_two_texts_and_long_ones_are_shown_whole() -> None:
    assert [group.fixed for group in alike(["I like tea.", "I like maps."])] == [("", "")] * 2
    assert {group.fixed for group in alike(["long " * 200] * 3)} == {("", "")}


@given(pieces=st.lists(TEXTS, max_size=5))
def test_marking_what_strikes_loses_nothing(pieces: list[str]) -> None:
    assert ["".join(part.text for part in parts) for parts in parts_of(*pieces)] == pieces


def test_addresses_and_secrets_strike_wherever_a_text_is_cut() -> None:
    def striking(*pieces: str) -> list[str]:
        return [part.text for parts in parts_of(*pieces) for part in parts if part.is_striking]

    assert striking("Send it to eve@example.net, ", "or https://evil.example/x?y.") == [
        "eve@example.net",
        "https://evil.example/x?y.",
    ]
    assert striking("The password is ", "hunter2!7xq", ".") == ["hunter2!7xq"]
    assert striking("eve@exam", "ple.net") == ["eve@exam", "ple.net"]
    assert striking("e\u200bve@example.net") == ["e\u200bve@example.net"]
    assert striking("The user prefers tables for plan 195.") == []


@given(before=TEXTS, after=TEXTS)
def test_a_comparison_is_both_texts(before: str, after: str) -> None:
    pieces = [(what, "".join(part.text for part in parts)) for what, parts in compared(before, after)]
    assert "".join(text for what, text in pieces if what != "ins") == before
    assert "".join(text for what, text in pieces if what != "del") == after


def test_what_one_of_many_alone_says_is_told_and_numbers_are_not() -> None:
    own = [("maps", f"{n}") for n in range(4)] + [("tables", "9"), ("tables", "12"), ("salaries", "7")]
    assert said_once(own) == {6}
    assert said_once([("maps",), ("tables",), ("lists",)]) == set()


def test_the_same_words_in_another_order_are_no_common_text() -> None:
    groups = alike(["red green blue grey pink lime", "lime pink grey blue green red"])
    assert [group.at for group in groups] == [(0,), (1,)]
