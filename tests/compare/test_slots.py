"""Two alike texts: one fact said twice, or two facts."""

import time
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.compare.slots import Slots, difference, gives_another_figure, same_slots
from tests.cases import every_case


@every_case(
    ("text", "numbers"),
    [
        ("15 minutes", {("15", "min")}),
        ("１５ 分钟", {("15", "min")}),
        ("十五分钟", {("15", "min")}),
        ("fifteen minutes", {("15", "min")}),
        ("a quarter of an hour", {("15", "min")}),
        ("一刻钟", {("15", "min")}),
        ("half an hour", {("30", "min")}),
        ("半小时", {("30", "min")}),
        ("1.5 hours", {("90", "min")}),
        ("90 秒", {("3/2", "min")}),
        ("1,200 USD", {("1200", "usd")}),
        ("fifteen hundred dollars", {("1500", "usd")}),
        ("二十五万元", {("250000", "yuan")}),
        ("四万二", {("42000", "")}),
        ("三成半", {("35", "%")}),
        ("25 万元", {("250000", "yuan")}),
        ("三千零五十万", {("30500000", "")}),
        ("3.5 million", {("3500000", "")}),
        ("40%", {("40", "%")}),
        ("百分之四十", {("40", "%")}),
        ("40 percent", {("40", "%")}),
        ("两位小数", {("2", "decimals")}),
        ("two decimals", {("2", "decimals")}),
        ("thirty-five flights", {("35", "flight")}),
        ("一律用表格", set()),
        ("千万别用饼图", set()),
        ("one of them", set()),
    ],
)
def test_numbers_are_read_in_both_languages(text: str, numbers: set[tuple[str, str]]) -> None:
    assert Slots(text).numbers == numbers


@every_case(
    ("text", "dates"),
    [
        ("2013 年", {"2013"}),
        ("in 2013", {"2013"}),
        ("第三季度", {"q3"}),
        ("Q3", {"q3"}),
        ("the third quarter", {"q3"}),
        ("January 2013", {"month 1", "2013"}),
        ("2013年1月", {"month 1", "2013"}),
        ("十二月", {"month 12"}),
        ("周一", {"day 1"}),
        ("every Monday", {"day 1"}),
        ("2013-01-05", {"2013-01-05"}),
        ("at 9:30", {"09:30"}),
        ("乙班14:00上班", {"02:00"}),
        ("早上 9 点到岗", {"09:00"}),
        ("九点四十开始", {"09:40"}),
        ("第一点二十分钟讲完", set()),
        ("3 点 05 分开会", {"03:05"}),
        ("2021 年 10 月", {"2021", "month 10"}),
        ("2021-03-05上线", {"2021-03-05"}),
    ],
)
def test_dates_are_read_in_both_languages(text: str, dates: set[str]) -> None:
    assert Slots(text).dates == dates


@every_case(
    ("a", "b", "slot"),
    [
        ("Late means more than 15 minutes", "Late means more than 20 minutes", "number"),
        ("延误是指晚到十五分钟", "延误是指晚到 20 分钟", "number"),
        ("The limit is 30 minutes", "The limit is 30 hours", "number"),
        ("上限 30 元", "上限 30 万元", "number"),
        ("Share of late flights: 12%", "Share of late flights: 13%", "number"),
        ("Target for 2014", "Target for 2015", "date"),
        ("一季度延误", "二季度延误", "date"),
        ("Send it on Monday", "Send it on Friday", "date"),
        ("GMV includes refunds", "GMV excludes refunds", "negation"),
        ("GMV 含退款", "GMV 不含退款", "negation"),
        ("Use pie charts", "Never use pie charts", "negation"),
        ("用饼图", "别用饼图", "negation"),
        ("取消的航班算延误", "取消的航班不算延误", "negation"),
        ("Flights with more than 100 seats", "Flights with fewer than 100 seats", "direction"),
        ("超过 100 座的航班", "低于 100 座的航班", "direction"),
        ("at least 3 stops", "at most 3 stops", "direction"),
        ("visib > 5", "visib < 5", "direction"),
        ("Average arrival delay", "Average departure delay", "opposite"),
        ("到达延误的均值", "起飞延误的均值", "opposite"),
        ("average delay by carrier", "median delay by carrier", "opposite"),
        ("Sort by arr_delay", "Sort by dep_delay", "identifier"),
        ("UA is the worst", "AA is the worst", "identifier"),
        ("saved to out/june.csv", "saved to out/july.csv", "identifier"),
        ("the `origin` column", "the `dest` column", "identifier"),
        ("等级 V3 最高", "等级 V4 最高", "identifier"),
        ("Flights to Denver", "Flights to Boston", "identifier"),
        ("It runs on Redshift", "It runs on BigQuery", "identifier"),
    ],
)
def test_two_facts_are_told_apart(a: str, b: str, slot: str) -> None:
    assert difference(a, b) == difference(b, a) == slot
    assert same_slots(a, b) == (slot == "")


@every_case(
    ("a", "b"),
    [
        ("Late means more than 15 minutes", "late means over a quarter of an hour"),
        ("延误是指晚到 15 分钟以上", "晚到超过十五分钟就是延误"),
        ("Use tables.", "use tables"),
        ("GMV excludes refunds", "Leave out refunds when computing GMV"),
        ("GMV 不含退款", "统计 GMV 要剔除退款"),
        ("Show delays in minutes, not hours", "Show delays in minutes"),
        ("用柱状图，不用饼图", "用柱状图"),
        ("JFK had 100 departures", "JFK had 100 departures, most of them to LAX"),
        ("sum orders.amount", "the sum of amount"),
        ("Keep 2 decimals", "保留两位小数"),
        ("不超过 30 分钟", "at most 30 minutes"),
        ("不仅要表格", "要表格"),
        ("No later than 9:30", "by 9:30 at most"),
    ],
)
def test_one_fact_said_twice_differs_in_nothing(a: str, b: str) -> None:
    assert difference(a, b) == ""


def everything(text: str) -> list[object]:
    traits = (name for name, of in vars(Slots).items() if isinstance(of, cached_property | property))
    return [getattr(Slots(text), name) for name in traits if not name.startswith("_")]


@every_case(
    ("old", "new", "another"),
    [
        ("The handbook is a forty-page booklet.", "The handbook is reviewed every 3 years.", False),
        ("The ferry takes 80 cars.", "The ferry costs 12 dollars.", False),
        ("The ferry takes 80 cars.", "The ferry takes 60 vans since May.", True),
        ("The ferry takes 80 cars.", "The ferry was shortened and takes 60 now.", True),
        ("The backup runs once an hour.", "The backup runs every 10 minutes.", True),
        ("The lease runs until June 2027.", "The cleaners of the lease come on Fridays.", False),
        ("The library closes at 5 pm.", "The library closes at 7 pm.", True),
        ("图书馆1998年建成。", "图书馆晚上八点关门。", False),
        ("仓库的灯坏了半年。", "仓库的电费涨到了300元。", False),
        ("门票二十元一张。", "门票涨到三十五了。", True),
    ],
)
def test_a_figure_gives_one_of_another_kind_no_new_value(old: str, new: str, another: bool) -> None:
    assert gives_another_figure(Slots(old), Slots(new)) is another


@every_case(
    ("old", "new", "replaces"),
    [
        ("灯坏了3次，找老周。", "老周的分机由4471改成了4490。", False),
        ("老周的分机是4471。", "老周的分机改成了4490。", True),
        ("The pump holds 40 litres.", "The pump room now has the extension 4490 instead of 4471.", False),
        ("The extension of the pump room is 4471.", "The extension of the pump room is 4490.", True),
    ],
)
def test_what_was_another_figure_before_is_no_new_value_of_this_one(
    old: str, new: str, replaces: bool
) -> None:
    assert takes_place(beside(read(old), read(new))) is replaces


def test_an_empty_text_has_no_slots() -> None:
    assert not any(everything(""))


@given(st.text())
def test_a_text_never_differs_from_itself(text: str) -> None:
    assert same_slots(text, text)


@given(st.text(), st.text())
def test_difference_does_not_depend_on_the_order(a: str, b: str) -> None:
    assert same_slots(a, b) == same_slots(b, a)


@given(st.text(alphabet="0123456789一二三十百千万亿点.,%年月日周季度半刻钟Qq-: "))
def test_any_number_can_be_read(text: str) -> None:
    assert everything(text) == everything(text)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("unit", ["9", "a", "../", "一", "不", "1,", "one ", "“", "不超过", "A"])
def test_a_megabyte_takes_a_moment(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    everything(text)
    assert time.process_time() - started < 5
