"""Standing preferences and definitions, read out of whatever was said.

`statements` finds them in one text, with their place; `standing` is for texts that are not the request
itself, where a wish inside an old question was meant for that question alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from common.delays import SENTENCES, Delay, definitions
from common.vocabulary import NUMBER, blank, parse_number

__all__ = [
    "STANDING",
    "ChartKind",
    "Preferences",
    "Statement",
    "apply",
    "standing",
    "statements",
]

Format = Literal["table", "list", "sentence"]
Language = Literal["en", "zh"]
Unit = Literal["minutes", "hours"]
ChartKind = Literal["bar", "line"]


@dataclass(frozen=True)
class Preferences:
    """How to answer. None means nothing was said."""

    format: Format | None = None
    language: Language | None = None
    decimals: int | None = None
    unit: Unit | None = None
    chart: ChartKind | None = None
    delay: Delay | None = None


@dataclass(frozen=True)
class Statement:
    """One wish found in a text, between `start` and `end`."""

    start: int
    end: int
    change: Preferences


Read = Callable[[re.Match[str]], Preferences | None]

I = re.IGNORECASE  # noqa: E741
MOST_DECIMALS = 6
# Between the verb and what it governs stand only words that ask for nothing themselves: in "show the delays
# by month in a table" the wish is "in a table".
NEAR = (
    r"(?:(?:me|us|the|all|my|our|your|any|an?|every|results?|answers?|output|figures?|data|numbers?|values"
    r"|everything|it|them|they|this|that|these|always|only|just|please|in|as|with|into|to|form|of|reply|replies"
    r"|responses?|using|use|see|get|have|receive|read|be|simple|plain|nice|short|markdown|from|now|on|by|default"
    r"|back|questions|both|also|written|shown|formatted|presented|displayed|given|provided"
    r"|laid|out|reported)[ ]+){0,7}?"
)
SAY = (
    r"(?:use|uses|using|prefers?|preferred|want|wants|like|likes|reply|replies|answer|answers"
    r"|respond|responds"
    r"|presents?|show|shows|give|gives|format|display|displays|return|returns|write|writes|put|puts|make"
    r"|report|reports|summari[sz]e|list|lists|send|need|needs|render|output|default to|get|see|have)"
)
NOT_A_FORMAT = (
    r"(?!\s+(?:tennis|football|salt|wine|manners|of\s+contents|by\s+the|near|at\b|cloth|for\s+(?:two|\d)))"
)
AFTER_ZH = (
    r"(?:默认|以后|今后|总是|一律|统一|请|希望|喜欢|偏好|习惯|改|都|要|想|回答|答案|结果|输出|展示|显示|呈现)"
)
NEGATED_EN = r"(?:don['’]?t|do not|doesn['’]?t|does not|never|without|no longer|not|stop|avoid|no)"
NEGATED_ZH = r"(?:不要再?|别再?|不用|不再用?|无需|不需要|不喜欢|不想要?|避免)"
# In "average arrival delay in hours" the delay is what is asked for, and no part of the wish.
BARE_DELAYS = r"\b(?<!average )(?<!mean )(?<!maximum )(?<!longest )(?<!arrival )(?<!departure )delays?\s+"
NOT_MINUTES = r"(?:\s*,?\s*(?:instead\s+of|not|rather\s+than|over)\s+(?:in\s+)?minutes)?"
NOT_HOURS = NOT_MINUTES.replace("minutes", "hours")
UNIT_ZH = (
    r"(?:(?<!平均)(?<!最大)(?<!最长)(?<!到达)(?<!出发)(?:延误|晚点)(?:时间|时长)?(?:请|一律|都|默认|统一|要|也)*)?(?:用|以|按|换算成"
    r"|换算为|换成|改成|改用)\s*"
)
# 按小时统计 groups by hour; 按小时表示 is about the unit.
UNIT_ZH_END = r"(?:为单位|数|来)?(?:表示|显示|计算|计|报告|展示|回答|呈现)?(?!段|统计|分组|划分|分|的|画|绘)"
DECIMAL_ZH = r"(?:小数点后(?:面)?|小数)"


def _constant(change: Preferences) -> Read:
    return lambda _match: change


def _decimals(match: re.Match[str]) -> Preferences | None:
    words = next(word for word in match.groups() if word)
    number = 0.0 if words.lower() == "no" else parse_number(words)
    return None if number is None or number > MOST_DECIMALS else Preferences(decimals=int(number))


TABLE, LIST, SENTENCE = (
    Preferences(format="table"),
    Preferences(format="list"),
    Preferences(format="sentence"),
)
HOURS, MINUTES = Preferences(unit="hours"), Preferences(unit="minutes")
EN_TABLE = r"(?:markdown\s+)?tables?\b" + NOT_A_FORMAT
EN_LIST = (
    r"(?:bullet(?:ed)?(?:[ -]point)?\s+lists?|bullet(?:[ -]?points?|s)|lists?\s+(?:format|form)|a\s+list)\b"
)
EN_SENTENCE = (
    r"(?:(?:one|a|single|plain|short|full|complete|1)\s+)+sentences?\b|(?:plain\s+sentences"
    r"|plain\s+text|plain\s+prose|prose)\b"
)

RULES: tuple[tuple[re.Pattern[str], Read], ...] = tuple(
    (re.compile(pattern, I), read)
    for pattern, read in (
        # --- what a wish is set against; it counts for nothing, but must not be read as one
        (
            r"(?:\b(?:rather\s+than|instead\s+of|better\s+than|(?:and|but)\s+not|over)|而不是|而非|不要用?|别用|不用)"
            r"\s*(?:in\s+|as\s+)?(?:an?\s+)?(?:bar|line|column)\s*(?:charts?|plots?|graphs?)\b"
            r"|(?:而不是|而非|不要用?|别用|不用)\s*(?:柱状图|条形图|折线图)"
            r"|\b(?:rather\s+than|instead\s+of|better\s+than|over)\s+(?:in\s+|as\s+)?(?:an?\s+)?"
            r"(?:(?:markdown\s+)?tables?|(?:bullet\s+)?lists?|sentences?|chinese|english)\b"
            r"|(?:而不是|而非)用?\s*(?:表格|列表|中文|英文)",
            _constant(Preferences()),
        ),
        # --- format; what is refused stands before what is asked for, and takes its words along
        (rf"\b{NEGATED_EN}\s+{NEAR}(?:{EN_TABLE}|{EN_LIST})", _constant(SENTENCE)),
        (rf"{NEGATED_ZH}[^，,。；;\s]{{0,4}}(?:表格|列表)", _constant(SENTENCE)),
        (rf"\b{SAY}\s+{NEAR}{EN_TABLE}", _constant(TABLE)),
        (
            rf"\b{EN_TABLE}\s*(?:,\s*)?(?:by\s+default|please|format|form|from\s+now\s+on|always|instead)\b",
            _constant(TABLE),
        ),
        (
            r"\b(?:default|preferred)\s+(?:\w+\s+){0,3}?(?:is|:|=)\s*(?:an?\s+)?(?:markdown\s+)?tables?\b",
            _constant(TABLE),
        ),
        (
            r"\bformat\s*[:=]\s*(?:markdown\s+)?tables?\b",
            _constant(TABLE),
        ),
        (
            rf"(?:用|以|成|按|做成|列成|整理成|使用|采用|要|给我?|{AFTER_ZH}[^，,。；;]{{0,8}}?)\s*(?:个|一个|一张"
            r"|张)?\s*(?:markdown\s*)?(?:表格|列表格)(?:的?(?:形式|格式|方式))?",
            _constant(TABLE),
        ),
        (r"(?:表格(?:形式|格式|展示|显示|输出|呈现|回答)|默认表格)", _constant(TABLE)),
        (rf"\b{SAY}\s+{NEAR}{EN_LIST}", _constant(LIST)),
        (
            rf"\b{EN_LIST}\s*(?:,\s*)?(?:by\s+default|please|format|form|from\s+now\s+on|always|instead)\b",
            _constant(LIST),
        ),
        (r"\bformat\s*[:=]\s*(?:bullet(?:ed)?\s+)?lists?\b", _constant(LIST)),
        (
            rf"(?:用|以|成|按|使用|采用|要|{AFTER_ZH}[^，,。；;]{{0,8}}?)\s*(?:个|一个)?(?:项目符号|无序|要点)?(?:列表"
            r"|清单|项目符号|要点)(?!格)(?:的?(?:形式|格式|方式))?",
            _constant(LIST),
        ),
        (r"(?:分点|逐条|逐项)(?:列出|回答|说明|展示|显示)?", _constant(LIST)),
        (rf"\b{SAY}\s+{NEAR}(?:{EN_SENTENCE})", _constant(SENTENCE)),
        (rf"\b(?:as|in|with)\s+(?:{EN_SENTENCE})", _constant(SENTENCE)),
        (
            rf"\b(?:{EN_SENTENCE})\s*(?:,\s*)?(?:by\s+default|please|only|answers?|from\s+now\s+on)\b",
            _constant(SENTENCE),
        ),
        (
            r"(?:用|以)?(?:一|1)\s*句话(?:来?(?:回答|说明|总结|概括|告诉我|说)(?:我|即可|就行)?)?",
            _constant(SENTENCE),
        ),
        (
            r"(?:用|以)(?:普通|完整|简短|简单)?的?(?:句子|文字|纯文本)(?:形式|来)?(?:回答|说明|叙述)?",
            _constant(SENTENCE),
        ),
        # --- language
        (rf"\b{NEGATED_EN}\s+{NEAR}in\s+(?:chinese|mandarin)\b", _constant(Preferences(language="en"))),
        (rf"\b{NEGATED_EN}\s+{NEAR}in\s+english\b", _constant(Preferences(language="zh"))),
        (
            rf"\b{SAY}\s+{NEAR}(?:chinese|mandarin)\b(?!\s+(?:food|tea|restaurants?|new\s+year"
            r"|lessons?|class\w*|airlines?))",
            _constant(Preferences(language="zh")),
        ),
        (
            r"(?:^|[,;.!?。？！，；]\s*|\b(?:please|always)\s+)in\s+chinese\b"
            r"|\bin\s+chinese\s*,?\s*(?:please|by\s+default|from\s+now\s+on|always|$)"
            r"|\bin\s+chinese(?=\s*[?.!,;]|\s*$)",
            _constant(Preferences(language="zh")),
        ),
        (
            rf"\b{SAY}\s+{NEAR}english\b(?!\s+(?:breakfast|tea|lessons?|class\w*|literature))",
            _constant(Preferences(language="en")),
        ),
        (
            r"(?:^|[,;.!?。？！，；]\s*|\b(?:please|always)\s+)in\s+english\b|\bin\s+english(?=\s*[?.!,;]|\s*$)",
            _constant(Preferences(language="en")),
        ),
        (r"\blanguage\s*[:=]\s*(?:chinese|zh\b|中文)", _constant(Preferences(language="zh"))),
        (r"\blanguage\s*[:=]\s*(?:english|en\b|英文)", _constant(Preferences(language="en"))),
        (
            r"(?:请|总是|一律|始终|都|默认)?(?:用|使用|以|改用|说|讲)\s*(?:简体)?(?:中文|汉语|普通话|chinese)(?:来?(?:回答|回复|答复|作答|输出))?",
            _constant(Preferences(language="zh")),
        ),
        (
            r"(?:回答|回复|答复|答案|输出|默认|语言)[^，,。；;]{0,4}?(?:中文|汉语)|中文(?:回答|回复|答复|作答|输出)",
            _constant(Preferences(language="zh")),
        ),
        (
            r"(?:请|总是|一律|始终|都|默认)?(?:用|使用|以|改用|说|讲)\s*(?:英文|英语|english)(?:来?(?:回答|回复|答复|作答|输出))?",
            _constant(Preferences(language="en")),
        ),
        (
            r"(?:回答|回复|答复|答案|输出|默认|语言)[^，,。；;]{0,4}?(?:英文|英语)|英[文语](?:回答|回复|答复|作答|输出)",
            _constant(Preferences(language="en")),
        ),
        # --- decimals
        (
            r"\b(?:(?:with|to|use|uses|keep|show|round(?:ed)?\s+to|exactly"
            rf"|at)\s+)*(?P<n>{NUMBER}|no)\s+(?:decimals?(?:\s+(?:places?|digits?|points?))?"
            r"|digits?\s+after\s+the\s+(?:decimal\s+)?point)\b",
            _decimals,
        ),
        (
            r"\b(?:with|to|use|using|show|give|display|keep|report|prefers?|wants?"
            r"|likes?)\s+an?\s+(?:single\s+)?decimal(?:\s+place)?\b",
            _constant(Preferences(decimals=1)),
        ),
        (
            r"\b(?:without|skip|drop|omit|don['’]?t\s+(?:use|show))\s+(?:any\s+"
            r"|the\s+)?(?:decimals?|decimal\s+places|fractions)\b",
            _constant(Preferences(decimals=0)),
        ),
        (
            r"\b(?:round(?:ed|s)?\s+(?:\w+\s+){0,4}?(?:to|as)\s+|(?:use|show|give|prefers?"
            r"|wants?|likes?|report|in|as|to"
            r"|display)\s+(?:only\s+)?)(?:the\s+)?(?:nearest\s+)?(?:whole\s+(?:numbers?"
            r"|minutes?|percent\w*)|integers?)\b",
            _constant(Preferences(decimals=0)),
        ),
        (
            r"(?:保留|精确到|取|显示|留|用"
            rf"|到)?\s*{DECIMAL_ZH}?\s*(?:后)?\s*(?P<n>{NUMBER})\s*位\s*(?:有效)?{DECIMAL_ZH}"
            rf"|(?:(?:保留|精确到?|取|留)\s*(?:到)?\s*{DECIMAL_ZH}|{DECIMAL_ZH}\s*(?:保留|取"
            rf"|留))\s*(?:后)?\s*(?P<m>{NUMBER})\s*位?",
            _decimals,
        ),
        (
            r"(?:不要|不用|不带|不保留|无需|不需要|去掉|没有|不显示)\s*小数(?:点|位)?|(?:取整数?|四舍五入(?:到|为|成|取)?整数?|(?:用"
            r"|保留|显示|精确到|只要|四舍五入到)\s*整数)",
            _constant(Preferences(decimals=0)),
        ),
        # --- unit
        (
            rf"\b(?:{SAY}|express|expresses|measure|convert|quote|state)\s+(?:all\s+|any\s+"
            rf"|the\s+|my\s+|me\s+)*(?:delays?|delay\s+times?|durations?)\s+(?:{NEAR})?(?:in"
            rf"|into|as|to)\s+hours\b{NOT_MINUTES}",
            _constant(HOURS),
        ),
        (
            rf"\bdelays?\s+(?:should\s+be|are|is|be)\s+(?:\w+\s+){{0,3}}?(?:in|as)\s+hours\b{NOT_MINUTES}",
            _constant(HOURS),
        ),
        (rf"{BARE_DELAYS}in\s+hours\b{NOT_MINUTES}|^\W*in\s+hours\b{NOT_MINUTES}", _constant(HOURS)),
        (
            rf"\b(?:use|uses|prefers?|wants?|likes?)\s+hours\b(?:{NOT_MINUTES}|\s+for\s+(?:all\s+)?delays)",
            _constant(HOURS),
        ),
        (
            r"\bhours\s*,?\s*(?:instead\s+of|rather\s+than|not|over)\s+minutes\b"
            r"|\bunits?\s*(?:of\s+delays?\s*)?(?:[:=]|is|are)\s*hours\b",
            _constant(HOURS),
        ),
        (
            rf"\b(?:(?:{SAY}|express)\s+(?:all\s+|the\s+)*)?{BARE_DELAYS}in\s+minutes\b{NOT_HOURS}"
            rf"|\b(?:use|prefers?)\s+minutes\b{NOT_HOURS}",
            _constant(MINUTES),
        ),
        (rf"{UNIT_ZH}小时{UNIT_ZH_END}", _constant(HOURS)),
        (
            r"(?:延误|晚点)[^，,。；;]{0,4}单位[^，,。；;]{0,4}小时|单位(?:用|为|是|:|：)\s*小时",
            _constant(HOURS),
        ),
        (rf"{UNIT_ZH}分钟{UNIT_ZH_END}|单位(?:用|为|是|:|：)\s*分钟", _constant(MINUTES)),
    )
)

LINE = r"\bline\s*(?:charts?|plots?|graphs?|diagrams?)\b|折线图|线图|曲线图"
BAR = r"\b(?:bar|column)\s*(?:charts?|plots?|graphs?|diagrams?)\b|\bhistograms?\b|柱状图|条形图|柱形图|直方图"
# Clear beside a word of wishing; a note may also tell in which form something was once answered.
BESIDE_A_WISH: tuple[tuple[re.Pattern[str], Read], ...] = tuple(
    (re.compile(pattern, I), read)
    for pattern, read in (
        (rf"\b(?:as|in|into|with)\s+(?:an?\s+|the\s+)?(?:form\s+of\s+an?\s+)?{EN_TABLE}", _constant(TABLE)),
        (rf"\b(?:as|in|into|with)\s+(?:an?\s+|the\s+)?{EN_LIST}", _constant(LIST)),
        (LINE, _constant(Preferences(chart="line"))),
        (BAR, _constant(Preferences(chart="bar"))),
    )
)
# Enough said in a request about flights, and too little in a note, which may be about anything.
IN_A_REQUEST: tuple[tuple[re.Pattern[str], Read], ...] = tuple(
    (re.compile(pattern, I), read)
    for pattern, read in (
        (rf"\b(?:expressed\s+|measured\s+|given\s+|shown\s+)?in\s+hours\b{NOT_MINUTES}", _constant(HOURS)),
        (rf"\bin\s+minutes\b{NOT_HOURS}", _constant(MINUTES)),
        (r"^\s*(?:a\s+)?table\s+of\b", _constant(TABLE)),
        (rf"(?:^|[,;(]\s*){EN_TABLE}\s*(?=$|[.,;)!?])", _constant(TABLE)),
        (rf"(?:^|[,;(]\s*){EN_LIST}\s*(?=$|[.,;)!?])", _constant(LIST)),
    )
)

WISHING = re.compile(
    rf"\b{SAY}\b|\bshould\b|\balways\b|\bdefault\b|默认|以后|今后|总是|一律|喜欢|偏好|习惯|请|希望|[想要用]",
    I,
)
STANDING = re.compile(
    r"\b(?:always|by default|from now on|in (?:the )?future|prefers?|preferred|every time|going forward|"
    r"whenever|generally|remember|default)\b|默认|以后|今后|总是|一律|始终|偏好|习惯|记住|每次|统一|从现在(?:起|开始)",
    I,
)


def statements(text: str) -> list[Statement]:
    """Every wish in a request, in the order of its place."""
    return list(_found(text, (*RULES, *BESIDE_A_WISH, *IN_A_REQUEST)))


@lru_cache(maxsize=256)  # each model call of a turn reads the same messages again
def _found(text: str, rules: tuple[tuple[re.Pattern[str], Read], ...]) -> tuple[Statement, ...]:
    found = [Statement(start, end, Preferences(delay=delay)) for start, end, delay in definitions(text)]
    rest = blank(text, ((item.start, item.end) for item in found))
    for pattern, read in rules:
        hits = []
        for match in pattern.finditer(rest):
            change = read(match)
            if change is not None:
                hits.append(Statement(*match.span(), change))
        found += hits
        rest = blank(rest, ((hit.start, hit.end) for hit in hits))
    return tuple(sorted(found, key=lambda item: item.start))


def standing(text: str, *, asks: Callable[[str], bool]) -> list[Statement]:
    """The wishes of a text that outlive it: not those made for one question asked in it.

    Args:
        text: An earlier message, or a note.
        asks: Whether a sentence asks for figures.
    """
    kept: list[Statement] = []
    for sentence in SENTENCES.finditer(text):
        words = sentence.group()
        if asks(words) and not STANDING.search(words):
            continue
        offset = sentence.start()
        rules = (*RULES, *BESIDE_A_WISH) if WISHING.search(words) else RULES
        kept += [
            replace(item, start=item.start + offset, end=item.end + offset) for item in _found(words, rules)
        ]
    return kept


def apply(base: Preferences, found: Iterable[Statement]) -> Preferences:
    """Let each statement, in order, replace what `base` says on the same thing."""
    for item in found:
        said = {name: value for name, value in vars(item.change).items() if value is not None}
        base = replace(base, **said)
    return base
