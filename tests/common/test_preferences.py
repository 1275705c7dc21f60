from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from agents.analysis import PROMPT as ANALYSIS_PROMPT
from agents.statistics import PROMPT as STATISTICS_PROMPT
from agents.supervisor import SUPERVISOR_PROMPT
from agents.text2sql import PROMPT as TEXT2SQL_PROMPT
from common.delays import Delay
from common.preferences import Preferences, apply, statements
from common.turn import read_turn
from tests.cases import every_case


def said(text: str) -> Preferences:
    return apply(Preferences(), statements(text))


@every_case(
    ("text", "expected"),
    [
        ("Use tables by default.", Preferences(format="table")),
        ("以后默认用表格", Preferences(format="table")),
        ("Alice prefers answers in a table", Preferences(format="table")),
        ("Reply with a bullet list", Preferences(format="list")),
        ("请用列表", Preferences(format="list")),
        ("一句话回答", Preferences(format="sentence")),
        ("Please use a plain sentence.", Preferences(format="sentence")),
        ("不要用表格", Preferences(format="sentence")),
        ("Always answer in Chinese", Preferences(language="zh")),
        ("请用中文回答", Preferences(language="zh")),
        ("用英文回答", Preferences(language="en")),
        ("one decimal place", Preferences(decimals=1)),
        ("round to whole numbers", Preferences(decimals=0)),
        ("保留两位小数", Preferences(decimals=2)),
        ("小数点后保留三位", Preferences(decimals=3)),
        ("不要小数", Preferences(decimals=0)),
        ("report delays in hours", Preferences(unit="hours")),
        ("延误用小时表示", Preferences(unit="hours")),
        ("I like line charts", Preferences(chart="line")),
        ("默认画柱状图", Preferences(chart="bar")),
        ("delayed means arrival more than 15 minutes late", Preferences(delay=Delay("arr_delay", 15))),
        (
            "a flight counts as delayed when departure is over 30 minutes late",
            Preferences(delay=Delay("dep_delay", 30)),
        ),
        ("延误指到达晚点超过 15 分钟", Preferences(delay=Delay("arr_delay", 15))),
        ("出发晚点 30 分钟以上算延误", Preferences(delay=Delay("dep_delay", 30))),
        ("出发晚点超过半小时才算延误", Preferences(delay=Delay("dep_delay", 30))),
        (
            "Delayed means arriving at least 20 minutes late",
            Preferences(delay=Delay("arr_delay", 20, or_equal=True)),
        ),
    ],
)
def test_a_wish_is_read_in_either_language(text: str, expected: Preferences) -> None:
    assert said(text) == expected


@every_case(
    "text",
    [
        "The cat sleeps on the table.",
        "Alice likes table tennis and Chinese food.",
        "The meeting was delayed by more than 20 minutes.",
        "用户的猫叫达美，每周一去打乒乓球，会议晚点 20 分钟",
        "Order 12 is 3 hours old; Bob's list of friends was ready in minutes and lost in hours",
        "结论：UA 的平均到达延误为 3.56 分钟，到达晚点超过 15 分钟的航班占 20%",
        "Answered with a table and a bar chart on 2026-11-20.",
        "SELECT COUNT(CASE WHEN f.arr_delay > 15 THEN 1 END) AS delayed_flights FROM flights",
        "The bar opens at nine; a line forms early.",
    ],
)
def test_a_note_about_something_else_wishes_nothing(text: str) -> None:
    messages: list[AnyMessage] = [SystemMessage(text), HumanMessage("How many flights per origin?")]

    assert read_turn(messages).preferences == Preferences(language="en")


@every_case("prompt", [SUPERVISOR_PROMPT, TEXT2SQL_PROMPT, STATISTICS_PROMPT, ANALYSIS_PROMPT])
def test_the_prompts_themselves_wish_nothing(prompt: str) -> None:
    messages: list[AnyMessage] = [SystemMessage(prompt), HumanMessage("How many flights per origin?")]

    assert read_turn(messages).preferences == Preferences(language="en")


def test_the_request_beats_the_note_and_the_note_beats_earlier_messages() -> None:
    earlier = HumanMessage("Use tables by default. Always answer in Chinese. One decimal place.")
    note = SystemMessage("- (user-profile) prefers bullet lists\n- (user-profile) round to whole numbers")
    request = HumanMessage("How many flights per origin? One sentence please.")

    found = read_turn([note, earlier, AIMessage("好的"), request]).preferences

    assert found == Preferences(format="sentence", language="zh", decimals=0)


def test_inside_one_text_the_later_statement_wins() -> None:
    assert said("Use tables. No: use a bullet list.").format == "list"


def test_a_form_asked_for_in_an_old_question_was_meant_for_it_alone() -> None:
    earlier = HumanMessage("How many flights per month, as a table?")

    assert read_turn([earlier, HumanMessage("And per origin?")]).preferences.format is None


def test_a_remembered_question_is_no_wish() -> None:
    note = SystemMessage("- (task-traces) Question: how many flights per month as a table? 336776")

    assert read_turn([note, HumanMessage("How many flights per origin?")]).preferences.format is None


def test_fenced_and_quoted_notes_are_read_too() -> None:
    note = SystemMessage('```\n{"content": "use tables by default", "scope": "user-profile"}\n```')

    assert read_turn([note, HumanMessage("How many flights?")]).preferences.format == "table"
