"""Standing preferences and definitions, read out of whatever was said.

`statements` finds them in one text, with their place; `standing` is for texts that are not the request
itself, where a wish inside an old question was meant for that question alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from common.vocabulary import NUMBER, parse_number

__all__ = [
    "ASKING",
    "SENTENCES",
    "STANDING",
    "ChartKind",
    "Delay",
    "DelayColumn",
    "Preferences",
    "Statement",
    "apply",
    "blank",
    "delay_column",
    "limit_of",
    "standing",
    "statements",
]

Format = Literal["table", "list", "sentence"]
Language = Literal["en", "zh"]
Unit = Literal["minutes", "hours"]
ChartKind = Literal["bar", "line"]
DelayColumn = Literal["arr_delay", "dep_delay"]


@dataclass(frozen=True)
class Delay:
    """When a flight counts as delayed: `column` in minutes, beyond `minutes` (or from it on).

    Args:
        column: None when the words leave open which delay is meant; arrival is then taken.
        minutes: The limit.
        or_equal: Whether the limit itself already counts.
    """

    column: DelayColumn | None = None
    minutes: float = 0
    or_equal: bool = False


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
# At most a few words between the verb and what it governs, all within one clause.
NEAR = r"(?:[\w'’-]+[ ]+){0,6}?"
SAY = (
    r"(?:use|uses|using|prefers?|preferred|want|wants|like|likes|reply|replies|answer|answers|respond|responds"
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
DECIMAL_ZH = r"(?:小数点后(?:面)?|小数)"


def _constant(change: Preferences) -> Read:
    return lambda _match: change


def _decimals(match: re.Match[str]) -> Preferences | None:
    number = 0.0 if match["n"].lower() == "no" else parse_number(match["n"])
    return None if number is None or number > 6 else Preferences(decimals=int(number))


TABLE, LIST, SENTENCE = (
    Preferences(format="table"),
    Preferences(format="list"),
    Preferences(format="sentence"),
)
EN_TABLE = r"(?:markdown\s+)?tables?\b" + NOT_A_FORMAT
EN_LIST = (
    r"(?:bullet(?:ed)?(?:[ -]point)?\s+lists?|bullet(?:[ -]?points?|s)|lists?\s+(?:format|form)|a\s+list)\b"
)
EN_SENTENCE = r"(?:(?:one|a|single|plain|short|full|complete|1)\s+)+sentences?\b|(?:plain\s+sentences|plain\s+text|plain\s+prose|prose)\b"

RULES: tuple[tuple[re.Pattern[str], Read], ...] = tuple(
    (re.compile(pattern, I), read)
    for pattern, read in (
        # --- format; what is refused stands before what is asked for, and takes its words along
        (rf"\b{NEGATED_EN}\s+{NEAR}(?:{EN_TABLE}|{EN_LIST})", _constant(SENTENCE)),
        (rf"{NEGATED_ZH}[^，,。；;\s]{{0,4}}(?:表格|列表)", _constant(SENTENCE)),
        (rf"\b{SAY}\s+{NEAR}{EN_TABLE}", _constant(TABLE)),
        (rf"\b(?:as|in|into|with)\s+(?:an?\s+|the\s+)?(?:form\s+of\s+an?\s+)?{EN_TABLE}", _constant(TABLE)),
        (
            rf"\b{EN_TABLE}\s*(?:,\s*)?(?:by\s+default|please|format|form|from\s+now\s+on|always|instead)\b",
            _constant(TABLE),
        ),
        (
            r"\b(?:default|preferred)\s+(?:\w+\s+){0,3}?(?:is|:|=)\s*(?:an?\s+)?(?:markdown\s+)?tables?\b",
            _constant(TABLE),
        ),
        (r"\bformat\s*[:=]\s*(?:markdown\s+)?tables?\b", _constant(TABLE)),
        (
            rf"(?:用|以|成|按|做成|列成|整理成|使用|采用|要|给我?|{AFTER_ZH}[^，,。；;]{{0,8}}?)\s*(?:个|一个|一张|张)?\s*(?:markdown\s*)?(?:表格|列表格)(?:的?(?:形式|格式|方式))?",
            _constant(TABLE),
        ),
        (r"(?:表格(?:形式|格式|展示|显示|输出|呈现|回答)|默认表格)", _constant(TABLE)),
        (rf"\b{SAY}\s+{NEAR}{EN_LIST}", _constant(LIST)),
        (rf"\b(?:as|in|into|with)\s+(?:an?\s+|the\s+)?{EN_LIST}", _constant(LIST)),
        (
            rf"\b{EN_LIST}\s*(?:,\s*)?(?:by\s+default|please|format|form|from\s+now\s+on|always|instead)\b",
            _constant(LIST),
        ),
        (r"\bformat\s*[:=]\s*(?:bullet(?:ed)?\s+)?lists?\b", _constant(LIST)),
        (
            rf"(?:用|以|成|按|使用|采用|要|{AFTER_ZH}[^，,。；;]{{0,8}}?)\s*(?:个|一个)?(?:项目符号|无序|要点)?(?:列表|清单|项目符号|要点)(?!格)(?:的?(?:形式|格式|方式))?",
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
            rf"\b{SAY}\s+{NEAR}(?:chinese|mandarin)\b(?!\s+(?:food|tea|restaurants?|new\s+year|lessons?|class\w*|airlines?))",
            _constant(Preferences(language="zh")),
        ),
        (
            r"(?:^|[,;.!?。？！，；]\s*|\b(?:please|always)\s+)in\s+chinese\b|\bin\s+chinese\s*,?\s*(?:please|by\s+default|from\s+now\s+on|always|$)|\bin\s+chinese(?=\s*[?.!,;]|\s*$)",
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
            rf"\b(?:(?:with|to|use|uses|keep|show|round(?:ed)?\s+to|exactly|at)\s+)*(?P<n>{NUMBER}|no)\s+(?:decimals?(?:\s+(?:places?|digits?|points?))?|digits?\s+after\s+the\s+(?:decimal\s+)?point)\b",
            _decimals,
        ),
        (
            r"\b(?:with|to|use|using|show|give|display|keep|report|prefers?|wants?|likes?)\s+an?\s+(?:single\s+)?decimal(?:\s+place)?\b",
            _constant(Preferences(decimals=1)),
        ),
        (
            r"\b(?:without|skip|drop|omit|don['’]?t\s+(?:use|show))\s+(?:any\s+|the\s+)?(?:decimals?|decimal\s+places|fractions)\b",
            _constant(Preferences(decimals=0)),
        ),
        (
            r"\b(?:round(?:ed|s)?\s+(?:\w+\s+){0,4}?(?:to|as)\s+|(?:use|show|give|prefers?|wants?|likes?|report|in|as|to|display)\s+(?:only\s+)?)(?:the\s+)?(?:nearest\s+)?(?:whole\s+(?:numbers?|minutes?|percent\w*)|integers?)\b",
            _constant(Preferences(decimals=0)),
        ),
        (
            rf"(?:保留|精确到|取|显示|留|用|到)?\s*{DECIMAL_ZH}?\s*(?:后)?\s*(?P<n>{NUMBER})\s*位\s*(?:有效)?{DECIMAL_ZH}|(?:保留|精确到?|取|留)\s*(?:到)?\s*{DECIMAL_ZH}\s*(?:后)?\s*(?P<m>{NUMBER})\s*位?",
            lambda m: _chinese_decimals(m),
        ),
        (
            r"(?:不要|不用|不带|不保留|无需|不需要|去掉|没有|不显示)\s*小数(?:点|位)?|(?:取整数?|四舍五入(?:到|为|成|取)?整数?|(?:用|保留|显示|精确到|只要|四舍五入到)\s*整数)",
            _constant(Preferences(decimals=0)),
        ),
        # --- unit
        (
            r"\b(?:(?:report|show|give|express|display|measure|state|use|prefers?|wants?|likes?|convert|answer|list|quote|put)\w*\s+(?:[\w'’-]+\s+){0,5}?)?(?:delays?|delay\s+times?|durations?)(?:\s+\w+){0,3}?\s+(?:in|into|as)\s+hours\b(?:\s*,?\s*(?:instead\s+of|not|rather\s+than)\s+minutes)?",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"\bin\s+hours\b(?:\s*,?\s*(?:instead\s+of|not|rather\s+than)\s+minutes)?",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"\b(?:use|prefers?|wants?|likes?)\s+hours\b(?:\s*,?\s*(?:instead\s+of|not|rather\s+than|over)\s+minutes|\s+for\s+(?:all\s+)?delays)?",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"\bhours\s*,?\s*(?:instead\s+of|rather\s+than|not)\s+minutes\b",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"\b(?:(?:report|show|give|express|display|measure|use|prefers?|wants?)\w*\s+(?:[\w'’-]+\s+){0,5}?)?(?:delays?|delay\s+times?)\s+(?:\w+\s+){0,3}?(?:in|into|as)\s+minutes\b(?:\s*,?\s*(?:instead\s+of|not|rather\s+than)\s+hours)?|\b(?:in|use)\s+minutes\b(?:\s*,?\s*(?:instead\s+of|not|rather\s+than)\s+hours)?",
            _constant(Preferences(unit="minutes")),
        ),
        (
            r"(?:延误|晚点)?(?:时间|时长)?(?:请|一律|都|默认|统一|要)?(?:用|以|按|换算成|换成|改成)\s*小时(?:为单位|数|来)?(?:表示|显示|计算|计|报告|展示|回答)?(?!段|统计|分组|划分|分|的|\s*(?:绘|画))",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"(?:延误|晚点)[^，,。；;]{0,4}单位[^，,。；;]{0,4}小时|单位(?:用|为|是|:|：)\s*小时",
            _constant(Preferences(unit="hours")),
        ),
        (
            r"(?:延误|晚点)?(?:时间|时长)?(?:请|一律|都|默认|统一|要)?(?:用|以|按|换算成|换成|改成)\s*分钟(?:为单位|数|来)?(?:表示|显示|计算|计|报告|展示|回答)?|单位(?:用|为|是|:|：)\s*分钟",
            _constant(Preferences(unit="minutes")),
        ),
        # --- kind of chart
        (
            r"\bline\s*(?:charts?|plots?|graphs?|diagrams?)\b|折线图|线图|曲线图",
            _constant(Preferences(chart="line")),
        ),
        (
            r"\b(?:bar|column)\s*(?:charts?|plots?|graphs?|diagrams?)\b|\bhistograms?\b|柱状图|条形图|柱形图|直方图",
            _constant(Preferences(chart="bar")),
        ),
    )
)

SENTENCES = re.compile(r"(?:[^。！？!?；;\n.]|\.(?=\d|\w))+[。！？!?；;.]*")
STANDING = re.compile(
    r"\b(?:always|by default|from now on|in (?:the )?future|prefers?|preferred|every time|going forward|"
    r"whenever|generally|remember|default)\b|默认|以后|今后|总是|一律|始终|偏好|习惯|记住|每次|统一|从现在(?:起|开始)",
    I,
)
ASKING = re.compile(
    r"[?？]|\bhow (?:many|much|often|long)\b|\bwh(?:at|ich)\b|多少|哪|几个|什么|^\s*(?:[-*]\s*)?(?:question|asked)\b",
    I,
)

# --- definitions of "delayed"

HOUR = r"(?:hours?|hrs?|小时|个小时|个钟头)"
MINUTE = r"(?:minutes?|mins?|分钟|分)"
UNIT = rf"(?:\s|-)*(?P<unit>{HOUR}|{MINUTE})"
AT_LEAST = r"(?:at least|no less than|not less than|a minimum of|>=|≥|至少|不少于|不低于|不小于|达到?|满)"
MORE_THAN = r"(?:more than|over|above|longer than|greater than|exceed(?:s|ing)?|beyond|later than|>|超过|大于|超出|多于|高于|逾)"
LIMIT = re.compile(
    rf"(?:(?P<least>{AT_LEAST})|(?P<more>{MORE_THAN}))?\s*(?:by\s+)?(?P<n>half an?|半个?|{NUMBER})(?P<plus>\s*\+)?{UNIT}"
    r"(?P<after>\s*(?:or (?:more|longer|later|over)|及以上|或以上|或更多|以上))?",
    I,
)
LATE = re.compile(r"\bdelay(?:s|ed)?\b|\blate(?:r|ness)?\b|延误|晚点|误点|迟到|延迟", I)
DEFINES = re.compile(
    r"\bmeans?\b|\bcount(?:s|ed|ing)?\b(?=.*\b(?:as|when|if|once|only)\b)|\bdefin\w+\b|\bconsider\w*\b|\btreat\w*\b|\bcall(?:s|ed)?\b|\bis when\b|\bregard\w*\b"
    r"|\brefers? to\b|\bonly if\b|\bcriteri\w+\b|\bthreshold\b|[:=]\s*(?:arr|dep)|延误(?:是|为|：|:|=)|晚点(?:是|为|：|:|=)"
    r"|是指|指的?是?|定义|算作?|视为|视作|认定|才叫|叫做?|即|口径|标准|阈值|计为|记为",
    I,
)
ARRIVAL = re.compile(
    r"\barriv\w*|\barr_delay\b|\barr\b|\blanding\b|\blanded\b|到达|抵达|到港|进港|落地|降落", I
)
DEPARTURE = re.compile(
    r"\bdepart\w*|\bdep_delay\b|\bdep\b|\btake-?offs?\b|\bleav(?:e|es|ing)\b|\bleft\b|出发|起飞|离港|出港|始发",
    I,
)


def statements(text: str) -> list[Statement]:
    """Every wish in the text, in the order of its place."""
    found = list(_definitions(text))
    rest = blank(text, ((item.start, item.end) for item in found))
    for pattern, read in RULES:
        hits = []
        for match in pattern.finditer(rest):
            change = read(match)
            if change is not None:
                hits.append(Statement(*match.span(), change))
        found += hits
        rest = blank(rest, ((hit.start, hit.end) for hit in hits))
    return sorted(found, key=lambda item: item.start)


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
        kept += [
            replace(item, start=item.start + offset, end=item.end + offset) for item in statements(words)
        ]
    return kept


def apply(base: Preferences, found: Iterable[Statement]) -> Preferences:
    """Let each statement, in order, replace what `base` says on the same thing."""
    for item in found:
        said = {name: value for name, value in vars(item.change).items() if value is not None}
        base = replace(base, **said)
    return base


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the spans by spaces, so that places in the text stay what they were."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def delay_column(text: str) -> DelayColumn | None:
    """Which delay the words name: departure, arrival, or neither or both (None)."""
    arrival, departure = ARRIVAL.search(text), DEPARTURE.search(text)
    if bool(arrival) == bool(departure):
        return None
    return "arr_delay" if arrival else "dep_delay"


def limit_of(match: re.Match[str]) -> tuple[float, bool]:
    """Minutes named by a match of `LIMIT`, and whether the limit itself counts.

    以上 is read as "more than", as people say it, not as the law counts it.
    """
    words = match["n"].lower()
    number = 0.5 if words.startswith(("half", "半")) else parse_number(words)
    assert number is not None
    minutes = number * 60 if re.fullmatch(HOUR, match["unit"], I) else number
    after = (match["after"] or "").strip()
    return minutes, bool(match["least"] or match["plus"] or (after and after != "以上"))


def _chinese_decimals(match: re.Match[str]) -> Preferences | None:
    number = parse_number(match["n"] or match["m"])
    return None if number is None or number > 6 else Preferences(decimals=int(number))


def _definitions(text: str) -> Iterator[Statement]:
    for sentence in SENTENCES.finditer(text):
        words = sentence.group()
        if not (LATE.search(words) and DEFINES.search(words)):
            continue
        start, end = _definition_span(words)
        limit = LIMIT.search(words)
        if limit is None and (ASKING.search(words) or delay_column(words[start:end]) is None):
            continue
        minutes, or_equal = limit_of(limit) if limit else (0.0, False)
        delay = Delay(delay_column(words[start:end]), minutes, or_equal)
        yield Statement(sentence.start() + start, sentence.start() + end, Preferences(delay=delay))


def _definition_span(sentence: str) -> tuple[int, int]:
    """The clauses of a sentence that hold the definition, so that a question beside it stays."""
    clauses = [match.span() for match in re.finditer(r"[^，,]+", sentence)]
    marks = [
        index
        for index, (start, end) in enumerate(clauses)
        if LIMIT.search(sentence[start:end]) or DEFINES.search(sentence[start:end])
    ]
    return clauses[marks[0]][0], clauses[marks[-1]][1]
