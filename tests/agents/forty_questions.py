"""Forty questions for the team with the rule-based model, each with the SQL that settles it.

The SQL was written from the promises of the team alone, without a look at the SQL it generates. A row is
(value,) or (group, value), in the order the team promises: ranked as asked, else months and hours
ascending and other groups by value descending, ties by label.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "DEFINITION_QUESTIONS",
    "FIGURE_QUESTIONS",
    "FORTY_QUESTIONS",
    "PREFERENCE_QUESTIONS",
    "Chart",
    "DelayUnit",
    "ExamQuestion",
    "Form",
    "Language",
]

Language = Literal["en", "zh"]
Form = Literal["default", "table", "list", "one sentence"]
Chart = Literal["bar", "line"]
DelayUnit = Literal["minutes", "hours"]


@dataclass(frozen=True, kw_only=True)
class ExamQuestion:
    """One question, what was said before it, and what a right answer looks like.

    Attributes:
        name: The test id.
        language: The language the question is asked in.
        question: The last user message.
        sql: Gives the expected rows, (value,) or (group, value); delays in minutes, rates in percent.
        earlier: Earlier user messages, oldest first.
        note: System text in front of the conversation; empty means there is none.
        answer_language: The language the answer is owed in; None means that of the question.
        form: How the answer is laid out; "default" is neither a table nor a list.
        decimals: Decimals of figures that are not integers.
        delay_unit: The unit of the delays in the answer.
        chart: The kind of chart asked for; None means that no chart was asked for.
        calendar_order: Whether the rows are months or hours one after the other, so that none of them
            leads and the answer may quote any; otherwise it must quote the first.
    """

    name: str
    language: Language
    question: str
    sql: str
    earlier: tuple[str, ...] = ()
    note: str = ""
    answer_language: Language | None = None
    form: Form = "default"
    decimals: int = 2
    delay_unit: DelayUnit = "minutes"
    chart: Chart | None = None
    calendar_order: bool = False


FIGURE_QUESTIONS = (
    ExamQuestion(
        name="flights out of JFK in March",
        language="en",
        question="How many flights were there out of JFK in March?",
        sql="SELECT COUNT(*) FROM flights WHERE origin = 'JFK' AND month = 3",
    ),
    ExamQuestion(
        name="five destinations with the most flights from Newark",
        language="en",
        question="list the 5 destinations with the most flights from newark please",
        sql="""
            SELECT dest, COUNT(*) AS flights_count FROM flights WHERE origin = 'EWR'
            GROUP BY dest ORDER BY flights_count DESC, dest LIMIT 5
        """,
    ),
    ExamQuestion(
        name="airline with the highest delay rate in November",
        language="en",
        question="In November, which airline had the highest rate of delayed flights?",
        sql="""
            SELECT a.name, 100.0 * SUM(f.arr_delay > 0) / COUNT(f.arr_delay) AS rate
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            WHERE f.month = 11 GROUP BY a.name ORDER BY rate DESC, a.name LIMIT 1
        """,
    ),
    ExamQuestion(
        name="departure delay from LaGuardia in each month",
        language="en",
        question="I'd like to see the average departure delay in each month for flights from LaGuardia.",
        sql="""
            SELECT month, AVG(dep_delay) FROM flights WHERE origin = 'LGA'
            GROUP BY month ORDER BY month
        """,
        calendar_order=True,
    ),
    ExamQuestion(
        name="share of Delta flights from LGA delayed in July",
        language="en",
        question="Could you tell me what percentage of Delta flights from LGA were delayed in Jul?",
        sql="""
            SELECT 100.0 * COUNT(CASE WHEN arr_delay > 0 THEN 1 END) / COUNT(arr_delay)
            FROM flights WHERE carrier = 'DL' AND origin = 'LGA' AND month = 7
        """,
    ),
    ExamQuestion(
        name="cancelled flights per origin in February, shouted",
        language="en",
        question="NUMBER OF CANCELLED FLIGHTS PER ORIGIN AIRPORT IN FEBRUARY",
        sql="""
            SELECT origin, COUNT(*) AS cancelled FROM flights WHERE dep_time IS NULL AND month = 2
            GROUP BY origin ORDER BY cancelled DESC, origin
        """,
    ),
    ExamQuestion(
        name="total distance of United flights in August",
        language="en",
        question="For August, what is the total distance in miles of all United flights?",
        sql="SELECT SUM(distance) FROM flights WHERE carrier = 'UA' AND month = 8",
    ),
    ExamQuestion(
        name="maximum arrival delay of JetBlue from Kennedy to LAX",
        language="en",
        question="what's the maximum arrival delay of JetBlue flights from Kennedy to LAX",
        sql="SELECT MAX(arr_delay) FROM flights WHERE carrier = 'B6' AND origin = 'JFK' AND dest = 'LAX'",
    ),
    ExamQuestion(
        name="air time per carrier to SFO",
        language="en",
        question="Average air time per carrier on flights to SFO?",
        sql="""
            SELECT a.name, AVG(f.air_time) AS minutes
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            WHERE f.dest = 'SFO' GROUP BY a.name ORDER BY minutes DESC, a.name
        """,
    ),
    ExamQuestion(
        name="three months with the fewest flights",
        language="en",
        question="Which three months had the fewest flights?",
        sql="""
            SELECT month, COUNT(*) AS flights_count FROM flights
            GROUP BY month ORDER BY flights_count, month LIMIT 3
        """,
    ),
    ExamQuestion(
        name="four destinations from EWR with the lowest arrival delay",
        language="en",
        question="Show me the 4 destinations with the lowest average arrival delay, from EWR only.",
        # One destination has a single flight that never arrived: it has no average to rank.
        sql="""
            SELECT dest, AVG(arr_delay) AS minutes FROM flights
            WHERE origin = 'EWR' AND arr_delay IS NOT NULL
            GROUP BY dest ORDER BY minutes, dest LIMIT 4
        """,
    ),
    ExamQuestion(
        name="plot of the cancellation rate by month",
        language="en",
        question="Please plot the percentage of cancelled flights by month.",
        sql="""
            SELECT month, 100.0 * SUM(dep_time IS NULL) / COUNT(*) FROM flights
            GROUP BY month ORDER BY month
        """,
        chart="bar",
        calendar_order=True,
    ),
    ExamQuestion(
        name="flights out of Newark in April",
        language="zh",
        question="四月份从纽瓦克出发的航班一共有多少？",
        sql="SELECT COUNT(*) FROM flights WHERE origin = 'EWR' AND month = 4",
    ),
    ExamQuestion(
        name="airline with the lowest delay rate in September",
        language="zh",
        question="哪家航空公司9月的延误率最低",
        sql="""
            SELECT a.name, 100.0 * SUM(f.arr_delay > 0) / COUNT(f.arr_delay) AS rate
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            WHERE f.month = 9 GROUP BY a.name ORDER BY rate, a.name LIMIT 1
        """,
    ),
    ExamQuestion(
        name="five destinations with the most flights from LaGuardia",
        language="zh",
        question="请列出从拉瓜迪亚出发、航班数最多的前５个目的地。",
        sql="""
            SELECT dest, COUNT(*) AS flights_count FROM flights WHERE origin = 'LGA'
            GROUP BY dest ORDER BY flights_count DESC, dest LIMIT 5
        """,
    ),
    ExamQuestion(
        name="arrival delay of every airline",
        language="zh",
        question="各航空公司的平均到达延误分别是多少分钟？",
        sql="""
            SELECT a.name, AVG(f.arr_delay) AS minutes
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            GROUP BY a.name ORDER BY minutes DESC, a.name
        """,
    ),
    ExamQuestion(
        name="cancelled flights per origin in December",
        language="zh",
        question="我想知道１２月每个始发机场有多少航班被取消了。",
        sql="""
            SELECT origin, COUNT(*) AS cancelled FROM flights WHERE month = 12 AND dep_time IS NULL
            GROUP BY origin ORDER BY cancelled DESC, origin
        """,
    ),
    ExamQuestion(
        name="drawing of the delayed JetBlue flights in each month",
        language="zh",
        question="帮我画图：JetBlue 每个月有多少延误航班",
        sql="""
            SELECT month, COUNT(*) FROM flights WHERE carrier = 'B6' AND arr_delay > 0
            GROUP BY month ORDER BY month
        """,
        chart="bar",
        calendar_order=True,
    ),
    ExamQuestion(
        name="air time of UA from EWR to ORD",
        language="zh",
        question="UA从EWR飞往ORD，平均飞行时间是多少分钟？",
        sql="SELECT AVG(air_time) FROM flights WHERE carrier = 'UA' AND origin = 'EWR' AND dest = 'ORD'",
    ),
    ExamQuestion(
        name="maximum departure delay to LAX in June",
        language="zh",
        question="麻烦查一下，六月飞往 LAX 的航班里，最大出发延误是多少？谢谢！",
        sql="SELECT MAX(dep_delay) FROM flights WHERE dest = 'LAX' AND month = 6",
    ),
    ExamQuestion(
        name="three airlines with the shortest distance",
        language="zh",
        question="航班平均距离最短的３家航空公司是哪几家？",
        sql="""
            SELECT a.name, AVG(f.distance) AS miles
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            GROUP BY a.name ORDER BY miles, a.name LIMIT 3
        """,
    ),
    ExamQuestion(
        name="flights from Kennedy in July per scheduled hour",
        language="zh",
        question="按计划起飞的小时统计一下，七月份肯尼迪机场的航班数",
        sql="""
            SELECT hour, COUNT(*) FROM flights WHERE origin = 'JFK' AND month = 7
            GROUP BY hour ORDER BY hour
        """,
        calendar_order=True,
    ),
    ExamQuestion(
        name="month with the highest cancellation rate from LGA",
        language="zh",
        question="从 LGA 出发的航班，哪个月取消率最高？",
        sql="""
            SELECT month, 100.0 * SUM(dep_time IS NULL) / COUNT(*) AS rate FROM flights
            WHERE origin = 'LGA' GROUP BY month ORDER BY rate DESC, month LIMIT 1
        """,
    ),
    ExamQuestion(
        name="Delta flights to ATL in two months together",
        language="zh",
        question="１月和２月，Delta 飞往 ATL 的航班总共有多少个？",
        sql="SELECT COUNT(*) FROM flights WHERE carrier = 'DL' AND dest = 'ATL' AND month IN (1, 2)",
    ),
)


DEFINITION_QUESTIONS = (
    ExamQuestion(
        name="definition in the same message, rate per origin",
        language="en",
        question=(
            "A flight counts as delayed only if it arrives more than 15 minutes late. "
            "With that in mind, what is the delay rate for each origin airport?"
        ),
        sql="""
            SELECT origin, 100.0 * SUM(arr_delay > 15) / COUNT(arr_delay) AS rate FROM flights
            GROUP BY origin ORDER BY rate DESC, origin
        """,
    ),
    ExamQuestion(
        name="departure definition in an earlier message, three carriers",
        language="en",
        earlier=("From now on, a flight is delayed when its departure is more than 30 minutes late.",),
        question="Top 3 carriers by number of delayed flights in December?",
        sql="""
            SELECT a.name, SUM(f.dep_delay > 30) AS delayed
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            WHERE f.month = 12 GROUP BY a.name ORDER BY delayed DESC, a.name LIMIT 3
        """,
    ),
    ExamQuestion(
        name="definition in the note, share for Southwest",
        language="en",
        note="For this user, delayed means that the arrival is over 20 minutes late.",
        question="What share of Southwest flights was delayed?",
        sql="SELECT 100.0 * SUM(arr_delay > 20) / COUNT(arr_delay) FROM flights WHERE carrier = 'WN'",
    ),
    ExamQuestion(
        name="threshold in the question beats the definition",
        language="en",
        note="Delayed means arrival more than 15 minutes late.",
        question="How many flights to BOS were delayed by more than 60 minutes?",
        sql="SELECT COUNT(*) FROM flights WHERE dest = 'BOS' AND arr_delay > 60",
    ),
    ExamQuestion(
        name="threshold in the question, May per origin",
        language="zh",
        question="五月份延误超过９０分钟的航班，各始发机场分别有多少？",
        sql="""
            SELECT origin, COUNT(*) AS delayed FROM flights WHERE month = 5 AND arr_delay > 90
            GROUP BY origin ORDER BY delayed DESC, origin
        """,
    ),
    ExamQuestion(
        name="definition in an earlier message, month with the highest rate",
        language="zh",
        earlier=("我们部门的口径是：到达晚点超过 15 分钟才算延误。",),
        question="那么，哪个月的延误率最高呢？",
        sql="""
            SELECT month, 100.0 * SUM(arr_delay > 15) / COUNT(arr_delay) AS rate FROM flights
            GROUP BY month ORDER BY rate DESC, month LIMIT 1
        """,
    ),
    ExamQuestion(
        name="departure definition in the note, rate of JetBlue",
        language="zh",
        note="该用户的口径：延误指出发晚点超过２０分钟。",
        question="JetBlue从肯尼迪出发的航班，延误率是多少?",
        sql="""
            SELECT 100.0 * SUM(dep_delay > 20) / COUNT(dep_delay) FROM flights
            WHERE carrier = 'B6' AND origin = 'JFK'
        """,
    ),
    ExamQuestion(
        name="definition in the note beats the earlier message",
        language="zh",
        earlier=("到达晚点超过10分钟就算延误。",),
        note="延误的定义：到达晚点超过 45 分钟。",
        question="七月从 EWR 出发的航班中，延误航班有多少？",
        sql="SELECT COUNT(*) FROM flights WHERE origin = 'EWR' AND month = 7 AND arr_delay > 45",
    ),
)


PREFERENCE_QUESTIONS = (
    ExamQuestion(
        name="table by standing preference",
        language="en",
        note="The user's preferences: use tables by default, and one decimal place.",
        question="How does the average arrival delay look for each origin airport?",
        sql="""
            SELECT origin, AVG(arr_delay) AS minutes FROM flights
            GROUP BY origin ORDER BY minutes DESC, origin
        """,
        form="table",
        decimals=1,
    ),
    ExamQuestion(
        name="English question, Chinese answer",
        language="en",
        earlier=("Please always answer in Chinese.",),
        question="How many flights were canceled in September?",
        sql="SELECT COUNT(*) FROM flights WHERE month = 9 AND dep_time IS NULL",
        answer_language="zh",
    ),
    ExamQuestion(
        name="hours, and the last message decides on the decimals",
        language="en",
        note="Report delays in hours. Round to whole numbers.",
        question="What was the maximum departure delay of American flights in May? One decimal place please.",
        sql="SELECT MAX(dep_delay) FROM flights WHERE carrier = 'AA' AND month = 5",
        decimals=1,
        delay_unit="hours",
    ),
    ExamQuestion(
        name="line chart by standing preference",
        language="en",
        earlier=("When you draw a chart for me, make it a line chart.",),
        question="Chart the number of flights per month from LGA.",
        sql="SELECT month, COUNT(*) FROM flights WHERE origin = 'LGA' GROUP BY month ORDER BY month",
        chart="line",
        calendar_order=True,
    ),
    ExamQuestion(
        name="list in the last message beats the earlier table",
        language="zh",
        earlier=("以后默认用表格。",),
        question="各出发机场的航班数是多少？这次请用列表。",
        sql="""
            SELECT origin, COUNT(*) AS flights_count FROM flights
            GROUP BY origin ORDER BY flights_count DESC, origin
        """,
        form="list",
    ),
    ExamQuestion(
        name="Chinese question, one English sentence",
        language="zh",
        note="用户偏好：请用英文回答。",
        question="哪家航空公司取消的航班最多？一句话回答就好。",
        sql="""
            SELECT a.name, COUNT(*) AS cancelled
            FROM flights AS f JOIN airlines AS a ON a.carrier = f.carrier
            WHERE f.dep_time IS NULL GROUP BY a.name ORDER BY cancelled DESC, a.name LIMIT 1
        """,
        answer_language="en",
        form="one sentence",
    ),
    ExamQuestion(
        name="two earlier messages, table without decimals",
        language="zh",
        earlier=("以后回答我的时候都用表格，谢谢。", "还有，数字不要小数。"),
        question="平均出发延误最高的３个月是哪几个？",
        sql="""
            SELECT month, AVG(dep_delay) AS minutes FROM flights
            GROUP BY month ORDER BY minutes DESC, month LIMIT 3
        """,
        form="table",
        decimals=0,
    ),
    ExamQuestion(
        name="line chart, hours with three decimals",
        language="zh",
        note="延误用小时表示，保留三位小数。",
        question="请用折线图展示每月的平均到达延误。",
        sql="SELECT month, AVG(arr_delay) FROM flights GROUP BY month ORDER BY month",
        decimals=3,
        delay_unit="hours",
        chart="line",
        calendar_order=True,
    ),
)


FORTY_QUESTIONS = FIGURE_QUESTIONS + DEFINITION_QUESTIONS + PREFERENCE_QUESTIONS
