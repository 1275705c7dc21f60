"""What a text says about time."""

import math
from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.signals.measure import date_match as match
from supervisor_memory.understand.dates import (
    DAY,
    MAX_RANGES,
    DateRange,
    asks_when,
    mentions_time,
    named_dates,
)
from tests.cases import every_case


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


NOW = at("2026-11-22T12:00")  # a Sunday


def spoken(text: str, now: float = NOW) -> list[str]:
    """Each range as "first day..day after the last", with * when the year is open."""

    def day(seconds: float) -> str:
        return "" if math.isinf(seconds) else datetime.fromtimestamp(seconds, UTC).date().isoformat()

    return [f"{day(r.start)}..{day(r.end)}{'*' if r.year_open else ''}" for r in named_dates(text, now)]


@every_case(
    ("text", "expected"),
    [
        ("What happened on 7 May 2023?", "2023-05-07..2023-05-08"),
        ("the 7th of May, 2023", "2023-05-07..2023-05-08"),
        ("May 7th, 2023", "2023-05-07..2023-05-08"),
        ("Sunday, May 7, 2023", "2023-05-07..2023-05-08"),
        ("December 1,2023", "2023-12-01..2023-12-02"),
        ("7-May-2023", "2023-05-07..2023-05-08"),
        ("2023-05-07", "2023-05-07..2023-05-08"),
        ("2023/5/7", "2023-05-07..2023-05-08"),
        ("2023-05-07T10:30", "2023-05-07..2023-05-08"),
        ("2023年5月7日我做了什么", "2023-05-07..2023-05-08"),
        ("2023 年 5 月 7 号", "2023-05-07..2023-05-08"),
        ("２０２３年５月７日", "2023-05-07..2023-05-08"),
        ("二〇二三年五月七日", "2023-05-07..2023-05-08"),
        ("23年5月7日", "2023-05-07..2023-05-08"),
        ("May 2023", "2023-05-01..2023-06-01"),
        ("2023-05", "2023-05-01..2023-06-01"),
        ("2023年12月的数据", "2023-12-01..2024-01-01"),
        ("in 2022", "2022-01-01..2023-01-01"),
        ("the last month", "2026-10-22..2026-11-23"),
        ("the 2022 conference", "2022-01-01..2023-01-01"),
        ("music of the 90s", "1990-01-01..2000-01-01"),
        ("90年代", "1990-01-01..2000-01-01"),
        ("Q2 2023", "2023-04-01..2023-07-01"),
        ("2023年第二季度", "2023-04-01..2023-07-01"),
        ("the second quarter of 2023", "2023-04-01..2023-07-01"),
        ("H1 2023", "2023-01-01..2023-07-01"),
        ("2023年上半年", "2023-01-01..2023-07-01"),
        ("summer of 2021", "2021-06-01..2021-09-01"),
        ("21年夏天", "2021-06-01..2021-09-01"),
        ("Christmas 2022", "2022-12-24..2022-12-27"),
        ("2022年国庆", "2022-10-01..2022-10-08"),
    ],
)
def test_what_names_its_year_is_that_time(text: str, expected: str) -> None:
    assert spoken(text) == [expected]


@every_case(
    ("text", "expected"),
    [
        ("yesterday", "2026-11-21..2026-11-22"),
        ("the day before yesterday", "2026-11-20..2026-11-21"),
        ("last night", "2026-11-21..2026-11-22"),
        ("昨天", "2026-11-21..2026-11-22"),
        ("前天", "2026-11-20..2026-11-21"),
        ("大前天晚上", "2026-11-19..2026-11-20"),
        ("three days ago", "2026-11-19..2026-11-20"),
        ("三天前", "2026-11-19..2026-11-20"),
        ("two weeks ago", "2026-11-05..2026-11-12"),
        ("两周前", "2026-11-05..2026-11-12"),
        ("a couple of months ago", "2026-09-07..2026-10-08"),
        ("a few days ago", "2026-11-17..2026-11-21"),
        ("半年前", "2026-04-07..2026-07-07"),
        ("last week", "2026-11-09..2026-11-16"),
        ("上周", "2026-11-09..2026-11-16"),
        ("上周三", "2026-11-11..2026-11-12"),
        ("上周三个航班延误", "2026-11-09..2026-11-16"),
        ("上周一共几次", "2026-11-09..2026-11-16"),
        ("上上周五", "2026-11-06..2026-11-07"),
        ("这周五", "2026-11-20..2026-11-21"),
        ("下周一", "2026-11-23..2026-11-24"),
        ("last Tuesday", "2026-11-17..2026-11-18"),
        ("on Tuesday", "2026-11-17..2026-11-18"),
        ("next Friday", "2026-11-27..2026-11-28"),
        ("星期天", "2026-11-15..2026-11-16"),
        ("礼拜三", "2026-11-18..2026-11-19"),
        ("last weekend", "2026-11-14..2026-11-16"),
        ("上周末", "2026-11-14..2026-11-16"),
        ("last month", "2026-10-01..2026-11-01"),
        ("上个月", "2026-10-01..2026-11-01"),
        ("本月", "2026-11-01..2026-12-01"),
        ("上个月15号", "2026-10-15..2026-10-16"),
        ("on the 5th?", "2026-11-05..2026-11-06"),
        ("15号那天", "2026-11-15..2026-11-16"),
        ("last May", "2026-05-01..2026-06-01"),
        ("last December", "2025-12-01..2026-01-01"),
        ("去年五月", "2025-05-01..2025-06-01"),
        ("last summer", "2026-06-01..2026-09-01"),
        ("last winter", "2025-12-01..2026-03-01"),
        ("last year", "2025-01-01..2026-01-01"),
        ("in recent weeks", "2026-10-18..2026-11-23"),
        ("前年", "2024-01-01..2025-01-01"),
        ("in the last three weeks", "2026-11-01..2026-11-23"),
        ("最近三天", "2026-11-19..2026-11-23"),
        ("上季度", "2026-07-01..2026-10-01"),
        ("去年底", "2025-10-01..2026-01-01"),
        ("月初", "2026-11-01..2026-11-11"),
    ],
)
def test_what_is_told_from_the_present_is_counted_from_now(text: str, expected: str) -> None:
    assert spoken(text) == [expected]


@every_case(
    ("text", "expected"),
    [
        ("in May", "2026-05-01..2026-06-01*"),
        ("五月份", "2026-05-01..2026-06-01*"),
        ("in december", "2025-12-01..2026-01-01*"),
        ("十二月", "2025-12-01..2026-01-01*"),
        ("May 7th", "2026-05-07..2026-05-08*"),
        ("12月廿五日", "2025-12-25..2025-12-26*"),
        ("29 February", "2024-02-29..2024-03-01*"),
        ("during the summer", "2026-06-01..2026-09-01*"),
        ("Q2表现", "2026-04-01..2026-07-01*"),
        ("二季度", "2026-04-01..2026-07-01*"),
        ("on Halloween", "2026-10-31..2026-11-01*"),
        ("中秋节", "2026-09-07..2026-10-09*"),
        ("mid-June", "2026-06-11..2026-06-21*"),
        ("second week of November", "2026-11-08..2026-11-15*"),
        ("5月底", "2026-05-21..2026-06-01*"),
        ("from May to July", "2026-05-01..2026-08-01*"),
        ("5月到7月", "2026-05-01..2026-08-01*"),
        ("5-7月", "2026-05-01..2026-08-01*"),
        ("11月到1月", "2026-11-01..2027-02-01*"),
    ],
)
def test_a_month_without_a_year_is_the_latest_and_leaves_the_year_open(text: str, expected: str) -> None:
    assert spoken(text) == [expected]


@every_case(
    ("text", "expected"),
    [
        ("between May and July 2023", "2023-05-01..2023-08-01"),
        ("May–July 2023", "2023-05-01..2023-08-01"),
        ("between August 11 and August 15 2023", "2023-08-11..2023-08-16"),
        ("7-10 May 2023", "2023-05-07..2023-05-11"),
        ("from 2021 to 2023", "2021-01-01..2024-01-01"),
        ("2023年5月到7月", "2023-05-01..2023-08-01"),
        ("2022年11月到2023年1月", "2022-11-01..2023-02-01"),
        ("2023年5月7日到10日", "2023-05-07..2023-05-11"),
        ("2021年到2023年", "2021-01-01..2024-01-01"),
        ("early May 2023", "2023-05-01..2023-05-11"),
        ("late 2022", "2022-09-01..2023-01-01"),
        ("first half of September 2022", "2022-09-01..2022-09-16"),
        ("since May", "2026-05-01.."),
        ("since 2019", "2019-01-01.."),
        ("5月以后", "2026-06-01.."),
        ("自去年十月以来", "2025-10-01.."),
        ("before 2022", "..2022-01-01"),
        ("2022年之前", "..2022-01-01"),
        ("until June 2023", "..2023-07-01"),
    ],
)
def test_two_ends_parts_and_open_ends(text: str, expected: str) -> None:
    assert spoken(text) == [expected]


@every_case(
    ("text", "told", "base"),
    [
        ("the week before August 3, 2023", "2023-07-27..2023-08-03", "2023-08-03..2023-08-04"),
        ("two weeks before August 11, 2023", "2023-07-25..2023-08-01", "2023-08-11..2023-08-12"),
        ("the Sunday before October 25, 2022", "2022-10-23..2022-10-24", "2022-10-25..2022-10-26"),
        ("last Friday on 23 January, 2022", "2022-01-21..2022-01-22", "2022-01-23..2022-01-24"),
        ("last week,as mentioned on 6 November 2023", "2023-10-30..2023-11-06", "2023-11-06..2023-11-07"),
        ("2023年8月11日前两周", "2023-07-28..2023-08-11", "2023-08-11..2023-08-12"),
    ],
)
def test_what_is_told_from_another_day_is_named_with_that_day(text: str, told: str, base: str) -> None:
    assert spoken(text) == [told, base]


@every_case(
    ("text", "expected"),
    [
        ("in May and July 2023", ["2023-05-01..2023-06-01", "2023-07-01..2023-08-01"]),
        ("Q1 or Q2 2023", ["2023-01-01..2023-04-01", "2023-04-01..2023-07-01"]),
        ("2023年5月和7月", ["2023-05-01..2023-06-01", "2023-07-01..2023-08-01"]),
        ("去年五月、七月", ["2025-05-01..2025-06-01", "2025-07-01..2025-08-01"]),
    ],
)
def test_a_year_that_is_named_once_holds_for_its_neighbour(text: str, expected: list[str]) -> None:
    assert spoken(text) == expected


def test_a_date_that_can_be_read_in_two_ways_is_both() -> None:
    assert spoken("7/5/2023") == ["2023-05-07..2023-05-08", "2023-07-05..2023-07-06"]
    assert spoken("13/5/2023") == ["2023-05-13..2023-05-14"]


ORDINARY = [
    "What may he do after his career?",
    "May I ask you something?",
    "they march on Rome",
    "wait a second, the first second counts",
    "fall asleep in spring boot",
    "April said hello to June",
    "Python 3.11 and version 2.1.2",
    "order 20230507123, id 5f3a9c2, port 2022, room 2012",
    "it cost $2023 for 2,023 rows of 2013 flights",
    "carrier_delay_2013.csv and reports/2023/q3.csv in ticket-2023-05-07",
    "1/2 of the people, 24/7 support, at 10:30, 10.0.0.1",
    "for two weeks, within 3 days, the next day, the last time, the last day",
    "every Monday, on Mondays, each summer, every January",
    "H1 heading and Q1: what is this",
    "31 February 2023",
    "一天到晚，三天的行程，三个月的计划，三个月内，十年磨一剑",
    "第一周，一周一次，两周一次，每周三，每年五月，一月一次",
    "周边地区的周转率，周到的服务，上一周期，晚上周杰伦",
    "月薪多少，一年级，2012号房，3号线，1号仓库，第二季，四季",
    "前后端，前三名，今后，万一，一五一十，百分之三十，2.0.3",
    "",
]


@every_case("text", ORDINARY)
def test_ordinary_words_numbers_and_habits_name_no_time(text: str) -> None:
    assert spoken(text) == []


@every_case("text", [each for each in ORDINARY if "February" not in each])
def test_they_do_not_say_when_either(text: str) -> None:
    assert not mentions_time(text)


@every_case(
    "text",
    [
        "I saw her yesterday",
        "We met last Friday",
        "I moved here in 2019",
        "昨天去了",
        "上个月买的",
        "周三开会",
    ],
)
def test_a_record_that_says_when_is_known(text: str) -> None:
    assert mentions_time(text)


@every_case(
    "text",
    [
        "When did she move?",
        "when's the meeting",
        "Do you know when they met?",
        "How long ago was that?",
        "Which year did I graduate?",
        "On what date was it signed?",
        "我什么时候开始学钢琴的？",
        "生日是哪天",
        "我们几号见面",
        "我哪一年毕业的",
        "多久以前",
    ],
)
def test_a_question_for_a_time_is_known(text: str) -> None:
    assert asks_when(text)


@every_case(
    "text",
    [
        "Who helps her when she is sad?",
        "What did he get when they met on Aug 15th?",
        "昨天吃了什么",
        "How long is it?",
    ],
)
def test_other_questions_do_not_ask_for_a_time(text: str) -> None:
    assert not asks_when(text)


# --- match -----------------------------------------------------------------------------------------------


def fit(text: str, *days: str, now: float = NOW) -> list[float]:
    times = np.array([at(day) for day in days])
    return [round(float(each), 2) for each in match(named_dates(text, now), times, now)]


def test_without_a_time_nothing_fits() -> None:
    assert fit("What does she like?", "2026-05-01", "2020-01-01") == [0.0, 0.0]


def test_what_was_said_inside_fits_wholly_and_in_the_days_after_less_and_less() -> None:
    days = ("2023-05-07T00:00", "2023-05-07T23:59", "2023-05-10", "2023-05-15", "2023-07-01")
    assert fit("on 7 May 2023", *days) == [1.0, 1.0, 0.75, 0.37, 0.0]


def test_after_a_month_the_fit_falls_within_a_month() -> None:
    assert fit("in May 2023", "2023-05-20", "2023-06-15", "2023-07-01") == [1.0, 0.63, 0.37]


def test_ahead_of_a_time_it_falls_twice_as_fast() -> None:
    assert fit("on 7 May 2023", "2023-05-06T12:00", "2023-05-05", "2023-04-20") == [0.87, 0.56, 0.01]


def test_of_what_is_still_to_come_people_spoke_ahead() -> None:
    assert fit("next week", "2026-11-22T00:00", "2026-11-16") == [0.87, 0.37]


def test_an_open_year_fits_every_year_and_the_latest_best() -> None:
    days = ("2026-05-10", "2023-05-10", "2026-01-10", "2023-06-30")
    assert fit("in May", *days) == [1.0, 0.8, 0.0, 0.31]


def test_open_ends_fit_everything_on_their_side() -> None:
    assert fit("since 2022", "2021-06-01", "2022-01-01", "2026-01-01") == [0.0, 1.0, 1.0]
    assert fit("before 2022", "1990-01-01", "2021-12-31", "2024-01-01") == [1.0, 1.0, 0.0]


def test_times_that_are_no_numbers_fit_nothing() -> None:
    times = np.array([math.nan, math.inf, -math.inf])
    found = match([*named_dates("in May and since 2019", NOW)], times, NOW)
    assert np.isfinite(found).all()
    assert found[0] == 0


def test_the_length_of_a_range_says_how_exact_it_is() -> None:
    assert [each.days for each in named_dates("yesterday, last week, in May 2023", NOW)] == [1, 7, 31]


# --- whatever comes --------------------------------------------------------------------------------------

WORDS = """
last next this in on since before between and to ago of the week month year day May march 7 2023 31
99 Q2 - / . ,
的 上 下 周 三 月 日 号 年 前 后 天 个 到 半 初 底 十 二 〇 第 季 度 国 庆 春 节 每 最 近
"""
PIECES = st.sampled_from(WORDS.split())
TIMES = st.one_of(st.floats(), st.floats(-1e10, 1e10))


@given(text=st.text() | st.lists(PIECES).map("".join) | st.lists(PIECES).map(" ".join), now=TIMES)
def test_nothing_raises_and_ranges_are_ordered(text: str, now: float) -> None:
    ranges = named_dates(text, now)
    assert len(ranges) <= MAX_RANGES
    assert len(set(ranges)) == len(ranges)
    assert all(each.start < each.end for each in ranges)
    assert isinstance(mentions_time(text), bool)
    assert isinstance(asks_when(text), bool)


RANGES = st.tuples(st.floats(-1e10, 1e10), st.floats(1.0, 1e9), st.booleans()).map(
    lambda each: DateRange(each[0], each[0] + each[1], each[2])
)


@given(
    ranges=st.lists(RANGES, max_size=4),
    times=st.lists(st.floats() | st.floats(-1e10, 1e10), max_size=8),
    now=st.floats(-1e10, 1e10),
)
def test_a_fit_is_between_0_and_1_and_1_inside(
    ranges: list[DateRange], times: list[float], now: float
) -> None:
    found = match(ranges, np.array(times, dtype=np.float64), now)
    assert found.dtype == np.float32
    assert found.shape == (len(times),)
    assert ((found >= 0) & (found <= 1)).all()
    inside = [any(r.start <= t < r.end and not r.year_open for r in ranges) for t in times]
    assert (found[np.array(inside, dtype=bool)] == 1).all()


@every_case(
    "piece",
    [
        "1",
        "年月日",
        " ",
        "三",
        "5月",
        "May ",
        "last week and ",
        "周一到",
        "12 ",
        "2023-",
        "/",
        "the ",
        "第",
        "2023年",
        "前",
    ],
)
def test_a_hundred_kilobytes_of_anything_come_to_an_end(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert len(named_dates(text, NOW)) <= MAX_RANGES
    assert mentions_time(text) in (True, False)
    assert not asks_when(text)


def test_a_year_is_a_year() -> None:
    (year,) = named_dates("in 2024", NOW)
    assert (year.end - year.start) / DAY == 366


@every_case("text", [" to ".join(["May"] * 32), "到".join(["5月"] * 32), "-".join(["Christmas"] * 32)])
def test_a_chain_of_dates_is_read_as_pairs(text: str) -> None:
    # Every link once took twice the time of the one before it; this would not end.
    assert len(named_dates(text, at("2026-11-22"))) >= 1
