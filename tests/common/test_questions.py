from __future__ import annotations

from common.delays import Delay
from common.filters import Filters
from common.questions import Question, Unanswerable, read_question, wants_chart
from tests.cases import every_case


@every_case(
    ("words", "expected"),
    [
        ("How many flights left JFK in January?", Question("flights", kept=Filters((1,), ("JFK",)))),
        ("1月份从肯尼迪机场出发的航班有多少？", Question("flights", kept=Filters((1,), ("JFK",)))),
        (
            "How many flights from January to March were cancelled?",
            Question("cancelled", kept=Filters((1, 2, 3))),
        ),
        ("6月至8月的取消率", Question("cancelled_rate", kept=Filters((6, 7, 8)))),
        ("May I ask how many flights to LAX in May?", Question("flights", kept=Filters((5,), (), ("LAX",)))),
        (
            "What percentage of Delta flights were delayed?",
            Question("delayed_rate", kept=Filters(airlines=("DL",))),
        ),
        ("美联航的延误航班数", Question("delayed", kept=Filters(airlines=("UA",)))),
        (
            "What share of flights leaving JFK were delayed?",
            Question("delayed_rate", kept=Filters(origins=("JFK",))),
        ),
        ("Total distance flown by JetBlue", Question("total_distance", kept=Filters(airlines=("B6",)))),
        ("飞往 LAX 的平均空中时间", Question("average_air_time", kept=Filters(destinations=("LAX",)))),
        (
            "Which airline has the most flights?",
            Question("flights", group="airline", order="descending", limit=1),
        ),
        ("航班数最多的10个目的地", Question("flights", group="destination", order="descending", limit=10)),
        ("延误率最低的五个目的地", Question("delayed_rate", group="destination", order="ascending", limit=5)),
        ("delayed flights by airline", Question("delayed", group="airline")),
        (
            "worst 5 airlines by average arrival delay",
            Question("average_delay", Delay("arr_delay"), "airline", order="descending", limit=5),
        ),
        ("按小时统计平均出发延误", Question("average_delay", Delay("dep_delay"), "hour")),
        (
            "What was the longest arrival delay per month?",
            Question("maximum_delay", Delay("arr_delay"), "month"),
        ),
        (
            "出发延误最大的是哪个月？",
            Question("maximum_delay", Delay("dep_delay"), "month", order="descending", limit=1),
        ),
        ("How many flights were delayed by more than 60 minutes?", Question("delayed", Delay(None, 60))),
        ("到达延误超过一小时的航班数，按月份", Question("delayed", Delay("arr_delay", 60), "month")),
        (
            "Compare the delay rate of JFK and LGA",
            Question("delayed_rate", group="origin", kept=Filters(origins=("JFK", "LGA"))),
        ),
    ],
)
def test_a_question_is_read_in_either_language(words: str, expected: Question) -> None:
    found = read_question(words)

    assert isinstance(found, Question)
    # A count of flights has no use for a delay; "left" alone may still name one.
    if found.metric == "flights":
        found = Question(found.metric, None, found.group, found.kept, found.order, found.limit)
    assert found == expected


@every_case(
    "words",
    [
        "What's the weather like tomorrow?",
        "asdf qwer",
        "讲个笑话",
        "How many passengers flew in May?",
        "In 2014, how many flights were there?",
        "How many flights on Monday?",
        "average delay on 4 July",
        "第一季度的航班数",
        "How many flights per airline per month?",
        "How many flights to Boston?",
        "How many flights to QQQ?",
        "从波士顿出发的航班数",
        "average delay for Lufthansa",
        "汉莎航空的航班数",
        "What is the median delay?",
        "What is the average?",
        "DROP TABLE flights",
        "",
    ],
)
def test_what_the_data_cannot_answer_is_no_question(words: str) -> None:
    assert isinstance(read_question(words), Unanswerable)


def test_only_the_request_for_a_chart_asks_for_a_chart() -> None:
    assert wants_chart("Plot the flights per month")
    assert wants_chart("每个月的航班数，画一张折线图")
    assert not wants_chart("Flights by month, but don't draw a chart")
    assert not wants_chart("各航空公司的航班数，不要画图")
