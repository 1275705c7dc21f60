"""Whether words tell of the work instead of what came out of it: a plan, a status line, who is next.

By their shape: a list of orders, a past participle without anybody who did it, a label with a code behind it,
JSON of which no value is a statement or a figure.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal, TypeAlias

__all__ = ["Progress", "json_progress", "progress"]

Progress: TypeAlias = Literal["plan", "status"]

_MOST_READ = 20_000
_MOST_VALUES = 200
_DEEPEST = 20
_A_FEW = 3  # words
_NEXT = re.compile(
    r"(?:next|goto|go_to|route|routing|destination|hand_?off|delegate|transfer)", re.IGNORECASE
)
_FENCE = re.compile(r"^\s*```\w*\s*|\s*```\s*$")
_LISTED = re.compile(
    r"^\W*(?:(?:plan|approach|steps|next steps|to-?do|计划|步骤)\s*[:：]|"
    r"(?:step|phase|stage|task|第)? ?[\d一二三四五六七八九十]{1,3} ?[步]?[.):：、,，]|[a-z][.)])\s*",
    re.I,
)
_INQUIRES = (
    "search|find|look|collect|gather|fetch|get|retrieve|obtain|load|read|query|compute|calculate|analy[sz]e|"
    "compare|check|verify|validate|review|examine|inspect|investigate|explore|research|identify|determine|"
    "define|extract|parse|clean|filter|join|group|sort|rank|aggregate|estimate|evaluate|assess|summari[sz]e|"
    "synthesi[sz]e|interpret|describe|explain|discuss|write|draft|compile|prepare|create|build|generate|"
    "produce|plot|visuali[sz]e|present|deliver|report|run|execute|call|ask|invoke|route|delegate|assign|"
    "hand|pass|send|answer|respond|plan|decide|select|choose|understand"
)
_ORDER = re.compile(
    rf"(?:(?:first|then|next|finally|afterwards|lastly|and)[,:]? |to |please )*(?:{_INQUIRES})\b"
    r"(?= [a-z])(?! (?:is|are|was|were|has|have|results?|plans?)\b)",
    re.IGNORECASE,
)
_ORDER_ZH = re.compile(
    r"(?:首先|然后|接着|接下来|最后|再|并|先)?[,，]?(?:[与和跟对把将从用按][^,，。]{1,12}?)?(?:搜索|查找|查询|收集|获取|检索|读取|加载|计算|估算|分析|比较|对比|检查|"
    r"核对|验证|确定|识别|提取|解析|清洗|汇总|整理|归纳|总结|撰写|编写|起草|生成|绘制|制作|准备|调用|执行|调研|研究|评估)"
    r"(?!\s*[:：]|结果|显示|表明|发现|得出|出)"
)
_FIGURE = re.compile(r"\d")
_OF_THE_WORK = re.compile(
    r"\d[\d,.]*\s*(?:\w+ ){0,2}(?:rows?|records?|tables?|files?|documents?|docs?|chunks?|results?|columns?|"
    r"pages?|sources?|steps?|tasks?|subtasks?|queries|items?|messages?|tokens?|seconds?|secs?|s|ms|agents?|tools?)\b"
    r"|\d+\s*(?:行|条|张|个|份|页|步|秒|毫秒)",
    re.IGNORECASE,
)
_DID = re.compile(
    r"(?:(?:successfully|now|already|also|then)\s)*(?P<verb>[a-z]+ed|built|ran|read|wrote|sent|set|got|took|began|"
    r"made|drew|chose)\b(?= \w)(?! (?:by|in|on|at|to|from|with|than|as|when|while)\b)",
    re.IGNORECASE,
)
_FINDS = re.compile(
    r"(?:found|identified|confirmed|concluded|determined|measured|observed|showed|noticed|discovered|detected|"
    r"calculated|computed|fixed|corrected|removed|excluded|replaced|changed|increased|decreased|reduced)\b",
    re.IGNORECASE,
)
_HAS_A_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|will|would|can|could|(?-i:may)|might|must|should|that|because|"
    r"rose|fell|grew|made|took|led|came|went|lost|won|held|kept|became|shrank|drove|saw|paid|cost|costs)\b",
    re.IGNORECASE,
)
_NO_ARTICLE = r"(?!(?:the|an?|each|all|any|its|their|our|your|this|these|those)\b)[a-z]+"
_NO_OBJECT = r"(?!(?:and|or|of|in|at|for|from|to|with|on|by|per|over|into|via|between|against)\b)\w+"
_IS_OF_MANY = re.compile(
    rf"\w+ed (?:(?:[a-z]+ )?[a-z]+[^s\W]s {_NO_OBJECT}|{_NO_ARTICLE} [a-z]+ed\b)", re.IGNORECASE
)
_IS_OF_ONE = re.compile(rf"\w+ {_NO_ARTICLE}[^s\W] [a-z]+[^s\W]s {_NO_OBJECT}", re.IGNORECASE)
"""Cancelled flights peak, load factor exceeds 80: the first word says which, and what it does follows."""
_DID_ZH = re.compile(
    r"(?:任务|请求|查询|问题|流程|步骤|数据)?(?:已经?|成功|均已)(?!发现|确认|证实|查明|找到|算出|得出|超过|达到?|有|是|被|不|无)[\u4e00-\u9fff]{2}"
)
_SAYS_ZH = re.compile(r"[是为由因比]|导致|造成|高于|低于|主要|增[长加]|下降|上升|减少")
_CODE = re.compile(r"[`\"']?[a-z]\w*_\w+[`\"']?|[`\"']?[a-z][a-z-]*[`\"']?")
_GOES_ON = re.compile(r"(?:in progress|pending|done|[a-z]+ing)\b|正在|进行中|等待", re.IGNORECASE)
_LABELLED = re.compile(
    r"(?:[\w ]{0,30}\b)?(?:next|route|routing|routed to|goto|intent|plan|step|status|state|stage|phase|"
    r"action|agent|tool|worker|node|task|下一步|意图|状态|阶段|路由|计划)(?: \w+)?\s*(?::|：|=|->|→|=>)\s*"
    r"(?P<value>.{1,60}?)[.。!]*",
    re.IGNORECASE,
)


def json_progress(text: str) -> Progress | None:
    """What an answer that is JSON tells of the work; None where it is something else, or has a finding."""
    data = _json(text)
    return None if data is None else _of_json(data)


def progress(text: str) -> Progress | None:
    """What a sentence of an agent tells of the work; None where it may tell what came out of it."""
    text = text.strip(" *_#>`•-\n")
    words = _LISTED.sub("", text).strip(" *_")
    order, order_zh = _ORDER.match(words), _ORDER_ZH.match(words)
    if order and not _HAS_A_VERB.search(words, order.end()) and not _IS_OF_ONE.match(words):
        return "plan"
    if order_zh and not _SAYS_ZH.search(words, order_zh.end()):
        return "plan"
    label = _LABELLED.fullmatch(text)
    if label and (_CODE.fullmatch(label["value"]) or _GOES_ON.match(label["value"])):
        return "status"
    if _FIGURE.search(_OF_THE_WORK.sub("", text)):
        return None
    is_done = _DID.match(text) and not (
        _FINDS.match(text) or _HAS_A_VERB.search(text) or _IS_OF_MANY.match(text)
    )
    is_done_zh = _DID_ZH.match(text) and not _SAYS_ZH.search(text)
    return "status" if is_done or is_done_zh else None


def _json(text: str) -> object | None:
    """What an answer is that is JSON and nothing else; None for any other."""
    plain = _FENCE.sub("", text[:_MOST_READ]).strip()
    if plain[:1] not in ("{", "["):
        return None
    try:
        data: object = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return data


def _of_json(data: object) -> Progress | None:
    """A plan gives orders, a decision who is next names somebody: in these only a figure is a finding. In any
    other a number or a few words are."""
    texts, numbers = [], 0
    for value in islice(_leaves(data), _MOST_VALUES):
        if isinstance(value, str):
            texts.append(value)
        else:
            numbers += 1
    orders = [progress(each) for each in texts].count("plan")
    told = [
        each for each in texts if _HAS_A_VERB.search(each) and _FIGURE.search(each) and not progress(each)
    ]
    if orders or (isinstance(data, Mapping) and any(_NEXT.match(str(name)) for name in data)):
        return None if told else "plan" if orders else "status"
    return (
        None
        if numbers or any(len(each.split()) >= _A_FEW or not each.isascii() for each in texts)
        else "status"
    )


def _leaves(data: object, depth: int = 0) -> Iterator[str | int | float]:
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, list) and depth < _DEEPEST:
        for each in data:
            yield from _leaves(each, depth + 1)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield data
