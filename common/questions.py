"""Turn the user's words into one question about the flights, or say why they are none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from common import preferences
from common.delays import (
    ARRIVAL,
    ASKING,
    DEPARTURE,
    LATE,
    LIMIT,
    Delay,
    DelayColumn,
    delay_column,
    limit_of,
)
from common.filters import ALL_FLIGHTS, Filters, take_filters
from common.vocabulary import MONTH_PATTERN, NUMBER, blank, parse_number

__all__ = [
    "REMARK",
    "Group",
    "Metric",
    "Question",
    "Unanswerable",
    "asks_for_figures",
    "read_question",
    "wants_chart",
]

Group = Literal["airline", "origin", "destination", "month", "hour"]
Metric = Literal[
    "flights",
    "delayed",
    "delayed_rate",
    "cancelled",
    "cancelled_rate",
    "average_delay",
    "maximum_delay",
    "average_distance",
    "total_distance",
    "average_air_time",
]
Order = Literal["descending", "ascending"]


@dataclass(frozen=True)
class Question:
    """One metric, at most one grouping, any number of filters.

    Args:
        metric: What is counted or averaged.
        delay: Limit and column as far as the question names them; None leaves both to a definition.
        group: One row per value of this; None asks for a single figure.
        kept: Which flights count at all.
        order: Ranking by the metric; None means the natural order of the group.
        limit: Rows of the ranking; None means all.
    """

    metric: Metric
    delay: Delay | None = None
    group: Group | None = None
    kept: Filters = ALL_FLIGHTS
    order: Order | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Unanswerable:
    """Why the words are no question for this data; `words` are those that were not understood."""

    words: str = ""


I = re.IGNORECASE  # noqa: E741

CHART = re.compile(
    r"\b(?:chart|plot|graph|draw|diagram|visuali[sz]e|histogram)(?:s|ted|ting|ed)?\b|画图"
    r"|画[个一张出]*|图表|绘制?图?|作图|[线柱状条形]+图|图(?:形|示|像)?(?:展示|显示|呈现)|可视化|出图",
    I,
)
NO_CHART = re.compile(
    r"\b(?:no|without(?: an?)?|don['’]?t (?:\w+ ){0,2}|not an? )\s*(?:chart|plot|graph|draw"
    r"|diagram)s?\b|(?:不要|不用|别|无需|不需要)(?:画|出|作|绘)?(?:个|张)?图表?",
    I,
)
REMARK = re.compile(
    r"\b(?:remember|note that|keep in mind|from now on|always|by default|in future|i prefer"
    r"|i like|my name is|i am|i['’]m"
    r"|means?|counts? as|is defined as|for your information|fyi|thanks?|thank you|ok(?:ay)?)\b"
    r"|记住|记得|以后|今后|默认|总是|一律|我(?:喜欢|偏好|习惯|叫|是)|是指|指的?是|算作?|视为|定义|谢谢|好的|请注意",
    I,
)

# What would change the figures but cannot be asked here. Better no answer than one that leaves it out.
OUT_OF_SCOPE = re.compile(
    r"\b(?:mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|week(?:s|end"
    r"|ends|day|days|ly)?|quarters?"
    r"|quarterly|seasons?|seasonal|summer|winter|spring|autumn|holidays?|christmas"
    r"|thanksgiving|daily|per day|each day|every day|by day"
    r"|(?:which|what|best|worst) days?|mornings?|afternoons?|evenings?|nights?|noon|midnight"
    r"|yesterday|today|tomorrow"
    r"|weather|temperature|wind\w*|rain\w*|snow\w*|storms?|visibility|humidity|precipitation"
    r"|passengers?|fares?|prices?|tickets?"
    r"|costs?|revenue|profits?|seats?|planes?|aircrafts?|tail ?num\w*|manufacturers?|boeing"
    r"|airbus|embraer|engines?|crews?|pilots?"
    r"|median|percentiles?|quantiles?|std|standard deviation|variance|correlat\w+|predict\w*"
    r"|forecast\w*|why|trend line"
    r"|on[- ]?time|punctual\w*|early|earlier than|earliest|speed|fastest|slowest"
    r"|shortest flight|longest flight|routes?|diverted|diversions?|taxi\w*"
    r"|total (?:\w+ )?delay|minimum|min\b|compared? (?:with|to) (?:last|the previous)"
    r"|increase\w*|growth|elevation|altitude"
    r"|how many (?:different |distinct |unique )?(?:airlines|carriers|destinations|airports"
    r"|months|cities|hours))\b"
    r"|星期|周[一二三四五六日末]|每周|季度|季节|夏季|冬季|春季|秋季|夏天|冬天|春天|秋天|节假日|每天|每日|按天|按日|哪天|哪一天|早上|上午|下午|晚上|中午|凌晨"
    r"|昨天|今天|明天|天气|气温|风速|降雨|下雨|下雪|能见度|湿度|乘客|旅客|票价|机票|价格|收入|利润|座位|飞机|机型|机龄|尾号|制造商|波音|空客|发动机|机组"
    r"|中位数|分位|标准差|方差|相关性|预测|为什么|准点|正点|准时|提前|最早|速度|最快|最慢|航线|备降|滑行|总延误|延误总|最小(?:到达|出发)?延误|同比|环比|增长"
    r"|多少(?:家|个)?(?:不同的)?(?:航空公司|机场|目的地|月份|城市)|几(?:家|个)(?:航空公司|机场|目的地)"
    r"|\d+\s*月\s*\d+\s*[日号]|(?<!20)\b\d{1,2}(?:st|nd|rd|th)\b",
    I,
)
OTHER_YEAR = re.compile(
    r"\b(?:19|20)(?!13)\d\d\b(?!\s*(?:minutes?|miles|flights|分钟))|去年|今年|明年|last year|this year", I
)
DAY_MONTH = re.compile(
    rf"\b(?:on|until|till|since|before|after)\s+(?:the\s+)?\d{{1,2}}\s+(?:of\s+)?{MONTH_PATTERN}"
)
MONTH_DAY = re.compile(rf"{MONTH_PATTERN}\s+\d{{1,2}}\b(?!\d|\s*(?:airlines|destinations|months))")

GROUPS: tuple[tuple[Group, str, str], ...] = (
    # name, its nouns in English, its nouns in Chinese
    (
        "destination",
        r"(?:destination|dest)(?: airport)?s?|arrival airports?|arriving airports?",
        r"目的地(?:机场)?|目的机场|到达机场|目的地城市",
    ),
    (
        "origin",
        r"(?:origin|departure|departing|starting|new york|nyc|home)(?: \w+)? airports?"
        r"|origins?|airports?(?: of (?:origin|departure))?",
        r"(?:出发|始发|起飞|离港)(?:的)?(?:机场|地)|(?<!到达)(?<!目的)(?<!目的地)机场",
    ),
    ("airline", r"airlines?|carriers?|air carriers?", r"航空公司|航司|承运人"),
    (
        "month",
        r"months?|monthly",
        r"月度|逐月|每月|各月|按月份?|每个月|各个月|哪一?个?月份?|分月|月份|个月|(?<!\d)(?<!\d )月(?!份?\d)",
    ),
    (
        "hour",
        r"hours?(?: of (?:the )?(?:day|departure))?|departure hours?|hourly",
        r"小时|时段|时刻|钟点|几点",
    ),
)
CUE_EN = (
    r"\b(?:by|per|each|every|which|what|across|among|between|for all|all|different|split by"
    r"|grouped by|broken down by|compare|comparing|one)\s+(?:(?:the|of|our|three|scheduled"
    r"|individual|new york|of the)\s+){0,2}"
)
CUE_ZH = (
    r"(?:按照?|各个?|每一?[个家座]?|哪一?[个家座]?|哪些|哪几[个家座]|几[家个]|分|不同|所有|对比|比较|依|根据)\s*(?:的|不同的?|各个?|出发的?"
    r"|起飞的?|离港的?)?\s*"
)

DESCENDING = re.compile(
    r"\b(?:most|highest|largest|greatest|biggest|worst|busiest|top|longest|maximum|max|more"
    r"|descending|desc|rank(?:ed|ing)?)\b|排名|最多|最高|最大|最长|最严重|最繁忙|最忙|最差|最远|排名前|前\s*(?:\d"
    r"|[一二三四五六七八九十两])|降序|从高到低|从大到小|从多到少",
    I,
)
ASCENDING = re.compile(
    r"\b(?:fewest|lowest|least|smallest|shortest|bottom|best|minimum|quietest|ascending|asc)\b"
    r"|最少|最低|最小|最短|最好|最近|倒数|后\s*(?:\d|[一二三四五六七八九十两])|升序|从低到高|从小到大|从少到多",
    I,
)
SINGULAR = re.compile(
    r"(?:\b(?:which|what|the|one|single)|^)\s*(?:one\s+)?(?:\w+\s+){0,2}?\b(?:airline|carrier"
    r"|airport|origin|destination|month|hour)\b(?!s)"
    r"|哪一?(?:个|家|座)|最(?:多|高|大|长|少|低|小|短|差|好|忙|繁忙|严重)的?(?:一[个家座])?(?:是|为)?(?:的)?(?:航空公司|出发机场"
    r"|始发机场|机场|目的地|月份?|小时)",
    I,
)
PLURAL_ZH = re.compile(r"哪些|哪几")
SORTED = re.compile(
    r"\b(?:sort|order|rank)\w*\b|\b(?:highest|largest|most|lowest|smallest"
    r"|fewest)(?: \w+)? first\b|降序|升序|排序|排列|从[高低大小多少]到",
    I,
)

# "Flights leaving JFK were delayed" names a place, already blanked, and not the departure delay; "flights
# that left JFK late" does mean the departure.
LEAVING_A_PLACE = (
    r"\b(?:departures?|departing|leav(?:e|es|ing)|left|departed?|departs)(?:\s+from\b|\s{3,}|\s*[?.]|\s*$)"
    r"|(?:出发|起飞|离港)的(?!延误|晚点|平均延误)|从\s*(?:出发|起飞|离港)|\s(?:出发|起飞|离港)(?!延误|晚点|平均)"
)

RATE = re.compile(
    r"\b(?:share|percent(?:age)?|rates?|proportion|fraction|ratio|likelihood|probability"
    r"|how often)\b|%|率|占比|比例|百分比|百分之",
    I,
)
AVERAGE = re.compile(r"\b(?:average|avg|mean|typical|on average)\b|平均|均值", I)
MAXIMUM = re.compile(
    r"\b(?:maximum|max|longest|largest|greatest|biggest|worst"
    r"|highest)\s+(?:single\s+)?(?:(?:arrival|departure)\s+)?delays?\b"
    r"|(?:最大|最长|最严重|最高)的?(?:(?:到达|出发|抵达|起飞|离港|到港)的?)?(?:延误|晚点|延迟)(?!航班|率|数)(?:时间|时长|分钟数?)?"
    r"|(?:延误|晚点)(?:时间|时长)?(?:最大|最长|最严重|最久)",
    I,
)
CANCELLED = re.compile(r"\bcancel\w*\b|取消", I)
DISTANCE = re.compile(r"\b(?:distances?|miles|mileage|how far)\b|距离|里程|英里|航程", I)
AIR_TIME = re.compile(
    r"\b(?:air ?-?time|flight time|flying time|time in the air|flight duration|in the air"
    r"|airborne)\b|空中时间|飞行时间|飞行时长|航时|空中飞行",
    I,
)
TOTAL = re.compile(r"\b(?:total|sum|overall|altogether|combined|how many)\b|总|合计|一共|共计|多少英里", I)
COUNTS = re.compile(
    r"\b(?:how many|number of|count(?: of)?|total|most|fewest|busiest|least|more|top|amount of"
    r"|no\. of)\b|多少|几个|几架|数|量|最多|最少|最忙|最繁忙|总共|一共|班次|架次",
    I,
)
FLIGHTS = re.compile(
    r"\bflights?\b|\bdepartures?\b|\btraffic\b|\bfl(?:y|ies|ew|own)\b|\bbusiest\b|\bquietest\b"
    r"|航班|班机|班次|架次|起降|最繁忙|最忙",
    I,
)
LATE_COUNT = re.compile(
    r"\bdelayed\b|\blate\b|\bdelays\b|延误的?航班|航班延误|晚点的?航班|延误数|延误次数|延误|晚点|误点", I
)
ONLY_LATE = re.compile(
    r"\b(?:of|for|among|when|if|only|where)\b[^.?]*\b(?:delayed|late)\b|(?:延误|晚点)(?:的)?航班的?平均", I
)


@lru_cache(maxsize=256)  # each model call of a turn reads the same messages again
def read_question(text: str) -> Question | Unanswerable:
    """Read the one question that the text asks, its wishes about form set aside."""
    text = blank(text, ((wish.start, wish.end) for wish in preferences.statements(text)))
    outside = (
        OUT_OF_SCOPE.search(text)
        or OTHER_YEAR.search(text)
        or MONTH_DAY.search(text)
        or DAY_MONTH.search(text)
    )
    if outside:
        return Unanswerable(outside.group())
    limit, text = _delay_limit(text)
    kept, text = take_filters(text)
    if kept.unknown:
        return Unanswerable(kept.unknown)
    maximum = MAXIMUM.search(text)
    metric = _metric(text, has_limit=limit is not None)
    if metric is None:
        return Unanswerable()
    if AVERAGE.search(text) and ONLY_LATE.search(text):
        return Unanswerable("average over delayed flights only")
    ranked_text = blank(text, [maximum.span()]) if metric == "maximum_delay" and maximum else text
    order = _order(ranked_text)
    groups = _groups(text, is_ranked=order is not None)
    if len(groups) > 1:
        return Unanswerable(" + ".join(groups))
    group = groups[0] if groups else _compared(text, kept)
    if group is None:
        order = None
    top = _limit(ranked_text) if order else None
    if group and order is None and metric == "maximum_delay" and maximum and _asks_for_one(text):
        order, top = "descending", 1
    return Question(
        metric=metric,
        delay=_delay(text, limit),
        group=group,
        kept=kept,
        order=order,
        limit=top,
    )


def asks_for_figures(sentence: str) -> bool:
    """Whether one sentence asks something, rather than stating a wish that merely names a figure."""
    if ASKING.search(sentence):
        return True
    asked = read_question(sentence)
    return isinstance(asked, Question) and bool(asked.group or asked.kept != ALL_FLIGHTS)


def wants_chart(text: str) -> bool:
    """Whether the words ask for a picture."""
    return bool(CHART.search(text)) and not NO_CHART.search(text)


def _delay_limit(text: str) -> tuple[Delay | None, str]:
    match = LIMIT.search(text)
    if match is None or not LATE.search(text):
        return None, text
    minutes, or_equal = limit_of(match)
    return Delay(None, minutes, or_equal), blank(text, [match.span()])


def _delay(text: str, limit: Delay | None) -> Delay | None:
    column = _named_column(text)
    if limit is not None:
        return Delay(column, limit.minutes, limit.or_equal)
    return Delay(column) if column else None


def _named_column(text: str) -> DelayColumn | None:
    # Words such as "departure airport" name a grouping, not the delay that is meant.
    for group, english, chinese in GROUPS:
        if group in ("origin", "destination"):
            text = re.sub(rf"\b(?:{english})\b|{chinese}", " ", text, flags=I)
    text = re.sub(
        r"\bdeparture hours?\b|\bhours? of departure\b|(?:出发|起飞|离港)的?(?:小时|时段|时刻)|到达机场",
        " ",
        text,
        flags=I,
    )
    if not re.search(r"\blate\b", text, I):
        text = re.sub(LEAVING_A_PLACE, " ", text, flags=I)
    if ARRIVAL.search(text) and DEPARTURE.search(text):
        late = LATE.search(text)
        near = text[max(0, late.start() - 12) : late.end() + 20] if late else ""
        return delay_column(near)
    return delay_column(text)


def _metric(text: str, *, has_limit: bool) -> Metric | None:
    if CANCELLED.search(text):
        return "cancelled_rate" if RATE.search(text) else "cancelled"
    if DISTANCE.search(text):
        if AVERAGE.search(text):
            return "average_distance"
        return "total_distance" if TOTAL.search(text) or not MAXIMUM.search(text) else None
    if AIR_TIME.search(text):
        return "average_air_time" if AVERAGE.search(text) else None
    if LATE.search(text) or has_limit:
        return _delay_metric(text, has_limit=has_limit)
    if FLIGHTS.search(text) and not RATE.search(text) and not AVERAGE.search(text) and COUNTS.search(text):
        return "flights"
    if (
        FLIGHTS.search(text)
        and not RATE.search(text)
        and not AVERAGE.search(text)
        and _groups(text, is_ranked=False)
    ):
        return "flights"
    return None


def _delay_metric(text: str, *, has_limit: bool) -> Metric | None:
    if AVERAGE.search(text):
        return None if has_limit or RATE.search(text) else "average_delay"
    if RATE.search(text):
        return "delayed_rate"
    if MAXIMUM.search(text) and not has_limit and not re.search(r"\bnumber of\b", text, I):
        return "maximum_delay"
    if LATE_COUNT.search(text) and (has_limit or COUNTS.search(text) or FLIGHTS.search(text)):
        return "delayed"
    return None


def _order(text: str) -> Order | None:
    if ASCENDING.search(text):
        return "ascending"
    return "descending" if DESCENDING.search(text) else None


def _groups(text: str, *, is_ranked: bool) -> list[Group]:
    found: list[Group] = []
    for group, english, chinese in GROUPS:
        nouns = rf"(?:{english})\b"
        cued = re.search(
            rf"{CUE_EN}(?:{NUMBER}\s+)?(?:(?:most|least|busiest|worst|best|top)\s+)?{nouns}", text, I
        )
        cued = cued or re.search(rf"{CUE_ZH}(?:{NUMBER}\s*[个家座]?)?(?:{chinese})", text)
        if group == "month":
            cued = cued or re.search(r"\bmonthly\b|\bmonth by month\b|月度|逐月|每月|各月|分月", text, I)
        if group == "hour":
            cued = cued or re.search(
                r"\bhourly\b|\bhours? of (?:the )?(?:day|departure)\b|\bdeparture hours?\b"
                r"|(?:出发|起飞|离港)的?(?:小时|时段|时刻)|几点",
                text,
                I,
            )
        elif is_ranked and not cued:
            cued = re.search(rf"\b{nouns}|{chinese}", text, I)
        elif not cued and group != "month":
            cued = re.search(rf"\b(?:{english})(?<=s)\b", text, I)
        if cued:
            found.append(group)
            text = re.sub(rf"\b{nouns}|{chinese}", " ", text, flags=I)
    return found


def _compared(text: str, kept: Filters) -> Group | None:
    """The grouping that a comparison of named things asks for without naming it."""
    if not re.search(
        r"\b(?:compare\w*|comparison|versus|vs\.?|each|respectively|which|who)\b|各有|各是|哪"
        r"|更[高低多少大小长短]|对比|比较|分别|相比|各自",
        text,
        I,
    ):
        return None
    named: Iterable[tuple[Group, int]] = (
        ("airline", len(kept.airlines)),
        ("origin", len(kept.origins)),
        ("destination", len(kept.destinations)),
        ("month", len(kept.months)),
    )
    return next((group for group, count in named if count > 1), None)


def _limit(text: str) -> int | None:
    for pattern in (
        rf"\b(?:top|bottom|best|worst|highest|lowest|most|fewest|least|busiest|first)\s+(?P<n>{NUMBER})\b",
        rf"(?:前|后|倒数|最[多高大长少低小短差好忙][^，,。]{{0,12}}?的?)\s*(?P<n>{NUMBER})\s*(?:个|家|名|座|位|大)?",
        rf"(?P<n>{NUMBER})\s*(?:个|家|座|大|名)",
        rf"(?P<n>{NUMBER})\s+(?!(?:of|minutes?|hours?)\b)[a-z]",
    ):
        match = re.search(pattern, text, I)
        number = parse_number(match["n"]) if match else None
        if number is not None and number >= 1:
            return int(number)
    return 1 if _asks_for_one(text) and not SORTED.search(text) else None


def _asks_for_one(text: str) -> bool:
    return SINGULAR.search(text) is not None and not PLURAL_ZH.search(text)
