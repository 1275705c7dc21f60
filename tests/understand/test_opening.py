"""What the first words of a conversation want of earlier ones, as far as words tell."""

import pytest

from supervisor_memory.understand.questions import opening
from tests.cases import every_case


@every_case(
    "text",
    [
        "Where were we?",
        "So what's on the agenda?",
        "Let's resume.",
        "What should I do first?",
        "My train was late. Shall we carry on?",
        "继续吧",
        "上次聊到哪儿了？",
        "手头还有什么活？",
        "早，今天先忙什么？",
        "还剩哪几步没走完？",
        "手上压着哪些事？",
        "往后怎么安排？",
    ],
)
def test_words_that_name_no_topic_go_on_with_the_latest_work(text: str) -> None:
    found = opening(text)
    assert found is not None
    assert (found.wants, found.is_bare, found.asks) == ("go-on", True, ())


@every_case(
    "text", ["hi", "Hello, I'm back.", "Good afternoon, finally out of meetings.", "在吗", "我回来了"]
)
def test_a_greeting_asks_nothing(text: str) -> None:
    found = opening(text)
    assert found is not None
    assert found.wants == "greeting"


@every_case("text", ["thanks", "Great, thank you so much!", "bye", "谢谢", "好的，辛苦了", "再见"])
def test_who_thanks_agrees_or_takes_leave_begins_nothing(text: str) -> None:
    assert opening(text) is None


@every_case("text", ["Continue: the moon", "继续写：春眠不觉晓", "再来一首诗"])
def test_what_follows_a_colon_or_a_cue_is_what_is_gone_on_with(text: str) -> None:
    found = opening(text)
    assert found is not None
    assert found.topic or found.unsure
    assert not found.is_bare


@every_case(
    ("text", "wants", "topic"),
    [
        ("Let's go on with the churn model", "go-on", {"churn", "model"}),
        ("What did we decide about the attribution window?", "decided", {"attribut", "window"}),
        ("So, the invoice migration.", "named", {"invoic", "migrat"}),
        ("继续看退货率的问题", "go-on", {"退货", "货率"}),
        ("关于开放题当时怎么定的？", "decided", {"开放", "放题"}),
        ("About the garden grant: where are we?", "go-on", {"garden", "grant"}),
        ("Did we say Lisbon or Porto?", "decided", {"lisbon", "porto"}),
        ("厨房装修，咱们往下推", "go-on", {"厨房", "房装", "装修"}),
        ("说回预算表", "go-on", {"预算", "算表"}),
        ("费率咱们用的是多少来着", "decided", {"费率"}),
    ],
)
def test_what_they_are_about_is_told_apart_from_how_they_go_on(
    text: str, wants: str, topic: set[str]
) -> None:
    found = opening(text)
    assert found is not None
    assert (found.wants, set(found.topic)) == (wants, topic)


def test_a_word_is_not_cut_by_a_character_that_says_nothing_by_itself() -> None:
    found = opening("问卷今天得收尾")
    assert found is not None
    assert (found.wants, found.topic, found.unsure) == ("go-on", (), ("问卷",))


@every_case(
    "text",
    [
        "What is the capital of Peru?",
        "Where were the Beatles formed, and when?",
        "Next train to Hamburg?",
        "Hi, my printer is broken.",
        "Hello, translate 'cat' into French",
        "What time is it?",
        "Something else: write a haiku.",
        "继续教育学时每年要修满多少？",
        "你好，帮我翻译一句话",
        "换个话题，写一首诗",
        "",
        "?" * 400,
    ],
)
def test_a_question_of_its_own_goes_on_with_nothing_that_no_session_is_about(text: str) -> None:
    found = opening(text)
    assert found is None or found.topic


@pytest.mark.parametrize(
    ("text", "is_new"),
    [
        ("回到厨房翻新的事", False),
        ("继续更新任务", False),
        ("创新项目还剩什么", False),
        ("新项目还剩什么没做？", False),
        ("接着聊那个新项目", False),
        ("接下来有个新任务：写首诗", True),
        ("换新话题", True),
        ("新话题：圆周率是多少", True),
        ("Let's go on with the renewal of the lease", False),
        ("Back to the new project", False),
        ("New topic: how far is the moon?", True),
    ],
)
def test_a_new_topic_is_announced_and_new_as_a_part_of_a_word_announces_none(
    text: str, *, is_new: bool
) -> None:
    assert (opening(text) is None) is is_new
