"""Decide why an agent's words are not kept: a code for each reason, None for words that may be.

An agent's words are no statement of the user and no rule for anybody. Only sentences with information count:
not announcements, offers, echoes of its prompt, or claims to recall. Orders to others ("from now on all
agents must …") are cut out, and never kept.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeAlias

from supervisor_memory.language import phrases
from supervisor_memory.language.phrases import rule
from supervisor_memory.text.terms import terms
from supervisor_memory.text.unseen import visible
from supervisor_memory.understand.statements import masked, normal, sentences

__all__ = [
    "Progress",
    "Reason",
    "informing",
    "is_instruction",
    "json_progress",
    "progress",
    "tally",
]

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
    """Whether a JSON answer is a plan or a status; None for other texts, and JSON with a finding."""
    data = _json(text)
    return None if data is None else _of_json(data)


def progress(text: str) -> Progress | None:
    """Whether an agent's sentence is a plan or a status; None if it may state a finding."""
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
    """Parse an answer that is nothing but JSON; None for other answers."""
    plain = _FENCE.sub("", text[:_MOST_READ]).strip()
    if plain[:1] not in ("{", "["):
        return None
    try:
        data: object = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return data


def _of_json(data: object) -> Progress | None:
    """Whether JSON data is a plan or a status; None: it has a finding.

    In a plan (it gives orders) and a routing decision (it has a key like "next") only a sentence with a
    figure is a finding; in other data any number, a text of three words, or a Chinese text is.
    """
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


Reason: TypeAlias = Literal[
    "small-talk",
    "question",
    "announcement",
    "apology",
    "prompt-echo",
    "recalled-text",
    "instruction-like",
    "too-vague",
    "plan",
    "status",
    "fragment",
]
"""Why an agent's words are not kept. `recalled-text`: the agent says that it remembers them. Repeated records
are found by `stages/pre_insert/echo.py`."""

_ROLE_TAG = re.compile(
    r"<\|[^|>\n]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant|user|human|developer|instructions?|"
    r"tool_call|function_call)\b[^>\n]*>"
    r"|^[^\w\n]*+(?:system|developer|admin(?:istrator)?|root|user|human|系统|开发者|管理员|"
    r"用户)(?: (?:prompt|message|"
    r"note|override|提示))?\s*[:：](?!\s*\d)"
    r"|^[^\S\n]*+#{1,4}\s*(?:system|instructions?|new task|override|系统|指令|新任务)\b",
    re.IGNORECASE | re.MULTILINE,
)
_TO_OTHERS = rule(
    r"\b(?:all|every|other|each|any|future|sub-?)[ -]?(?:agents?|assistants?|models?|supervisors?|bots?|"
    r"sessions?)\b.{0,40}\b(?:must|shall|should|have to|need to|are to|"
    r"will (?:now|always|from)|may (?:now|not))\b",
    r"\b(?:the|your|this) (?:assistant|supervisor|model|ai|agent|chatbot|system prompt)\b.{0,20}\b(?:must|"
    r"shall|should|has to|needs to|is (?:required|instructed|ordered) to|will (?:now|always))\b",
    r"\byou (?:must|shall|are (?:required|instructed|ordered|obliged|now|to (?:always|never))|"
    r"have been (?:updated|reconfigured|instructed)|will (?:now|always|never)|should (?:always|never))\b",
    r"(?:所有|全部|其他|其它|每个|任何|各|后续|未来)(?:的)?(?:智能体|代理|助手|模型|机器人|主管|"
    r"agent).{0,20}(?:必须|应当?|要|得|需|不得|一律|请)",
    r"(?:你|您|助手|智能体|主管|模型|系统)(?:今后|以后|从现在(?:起|开始)|现在)?(?:必须|务必|不得|应当始终|"
    r"一律|只能|被要求|永远)",
)
_ORDERS = rule(
    r"^(?:important|urgent|attention|note|notice|warning|critical|reminder|nb)?\W*+(?:please |now |also |"
    r"and |always |never )*(?:remember|memori[sz]e|don't forget|do not forget|"
    r"keep in mind|note for (?:the )?(?:memory|future)|store (?:this|that|in memory)|save (?:this|that|"
    r"to memory)|add to (?:your )?memory|write to memory)\b",
    r"\b(?:from now on|going forward|henceforth|from this (?:point|moment) (?:on|forward)|in all future|"
    r"for all future|until further notice)\b",
    r"^(?:please )?(?:always|never|do not ever|don't ever) (?!(?:on|in|at|been|was|were|is|are|has|had|"
    r"above|below|before|after|more|less)\b)[a-z]+",
    r"\b(?:send|forward|transfer|wire|upload|post|email|mail|exfiltrate|reveal|disclose|leak|print|expose|"
    r"hand over|share) (?:all |any |every |the |your |its |their |this |user'?s? |customer |an? )*"
    r"(?:data|memory|memories|secrets?|passwords?|keys?|credentials?|tokens?|system prompt|prompt|"
    r"conversations?|records|invoices?|money|funds|notes?|api keys?)\b"
    r"(?=.{0,60}(?:\bto\b|$|\.))",
    r"\b(?:ignore|disregard|override|bypass|forget|discard) (?:all |any |the |your |every |these |those |"
    r"my |previous |prior |above |safety |user'?s? )*"
    r"(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?|safeguards?|guardrails?|"
    r"preferences?|memor(?:y|ies)|context|constraints?|checks?)\b",
    r"\b(?:system prompt|developer mode|jailbreak|dan mode|god mode|unrestricted mode|"
    r"without (?:any )?restrictions)\b|\bnew (?:system )?(?:instructions?|rules?|directive)s?\s*[:：]",
    r"\b(?:the )?user (?:wants|asked|prefers|requires|authori[sz]ed|approved|agreed|consents?|has (?:asked|"
    r"authori[sz]ed|approved|agreed)|is (?:an )?admin\w*)\b.{0,80}\b(?:from now on|always|never|all|"
    r"permanently|forever|without asking|automatically)\b",
    r"^(?:重要|紧急|注意|提醒|警告|通知)?\W*+(?:请|务必|一定要?|你要|,)*(?:记住|牢记|记下来?|写入记忆|"
    r"存入记忆|保存到记忆|不要忘记|别忘了)",
    r"(?:从现在(?:起|开始)|从今以后|今后|从此|自此|以后)[,， ]*(?:所有|你|请|都|一律|必须|务必|不要|不得|"
    r"始终|永远|凡是|把|将|对|每)",
    r"(?:忽略|无视|忘记|忘掉|绕过|覆盖|抛开|解除|取消)(?:掉|之前|以上|前面|上面|先前|此前|所有|一切|你的|"
    r"任何|全部|系统|用户|安全|现有|的){0,5}(?:指令|提示词?|规则|"
    r"设定|要求|约束|限制|命令|记忆|偏好|策略|审查)",
    r"(?:系统提示词?|开发者模式|越狱|无限制模式|新(?:的)?指令|最高权限)",
    r"(?:必须|务必|一律|始终|请)(?:立即|马上|全部|都|始终|,)*(?:把|将).{1,30}(?:发送|转发|上传|发|转账|"
    r"汇款|泄露|透露|交给|同步|抄送)(?:给|到|至)",
    r"(?:不得|禁止|不要|切勿|严禁)(?:再|向|对|把|将|告诉|让)?.{0,8}(?:用户|透露|泄露|告知|提及|提醒)",
)
_ECHO = rule(
    r"^我的(?:指令|提示词?|设定|系统设定|规则|任务|职责)(?:要求|是|规定|让)",
    r"\b(?:my|the) (?:system )?(?:prompt|instructions|guidelines) (?:say|tell|require|state|ask|demand)",
    r"^(?:you are|you're) (?:an?|the|now)\b",
    r"^your (?:task|role|job|goal|objective|instructions?|responsibilit(?:y|ies)) (?:is|are)\b",
    r"\bas (?:instructed|requested|per (?:the |my |your )?(?:instructions?|prompt|guidelines))\b",
    r"\bi(?:'ve| have| was| am|'m)(?: been)? (?:instructed|told|asked|designed|trained|programmed|"
    r"configured|here) to\b",
    r"^(?:as|i am|i'm) (?:just |only )?(?:an? |the )?(?:ai|artificial|large language|language|virtual|"
    r"digital|helpful|chat|sql|data|research|your|memory|assistant)\b.{0,30}\b(?:assistant|model|agent|bot|"
    r"intelligence)\b",
    r"\bmy (?:system )?(?:prompt|instructions|guidelines)\b",
    r"^i(?:'ll| will| always| must| should|'m going to)(?: always| never)? (?:cite|keep my|"
    r"keep the answers?|answer|respond|reply|follow|stick to|adhere|comply|make sure|ensure|use (?:tables|"
    r"markdown|bullet))\b",
    r"^你是(?:一[名个位款])?[^,。]{0,16}(?:助手|助理|专家|智能体|机器人|模型|分析师|客服|顾问|工程师)",
    r"^(?:按照?|根据|遵照|依照)(?:您?的?)?(?:要求|指示|指令|提示词?|系统设定|设定)[,， ]*我",
    r"^(?:作为|我是)(?:一[名个位款])?(?:AI|人工智能|大?语言模型|虚拟|智能|[^,。]{0,8}(?:助手|助理|智能体|"
    r"机器人|语言模型))",
    r"^我(?:会|将|必须|应当?)(?:始终|一直|严格|总是|尽量|确保|遵守|遵循|保证)",
    r"^你的(?:任务|角色|职责|目标)是",
)
_RECALLED = rule(
    r"^(?:from|according to|as per|per|based on|in|going by) (?:my |the |our |your |long-term |"
    r"what )*(?:memor(?:y|ies)|notes?|i remember|history|"
    r"(?:earlier|previous) (?:conversations?|sessions?))\W+(?:(?:that )?the user|you) (?:prefer|like|want|"
    r"ask|said|told|mention|is|are|always|never)",
    r"^(?:i|we) (?:remember|recall) (?:that )?(?:the user|you)\b|^(?:as )?you (?:told|said to|asked|"
    r"mentioned to) (?:me|us)\b",
    r"^(?:根据|按照?|依据|从)(?:我的|您的|你的|长期|之前的|此前的|历史)*(?:记忆|会话记录|历史记录|对话记录|"
    r"笔记)[,:，： ]*(?:该|这位)?(?:用户|您|你)(?:更|最|"
    r"一直|曾|之前)?(?:喜欢|偏好|希望|要求|说过?|提到过?|想|不)",
    r"^(?:我|系统)?(?:还?记得)(?:该|这位)?(?:用户|您|你)|^(?:您|你)(?:之前|以前|上次|曾经?)(?:说过|提到过?|"
    r"告诉过?我)",
)
_ANNOUNCES = rule(
    r"^(?:(?:sure|ok|okay|alright|right|great|now|thanks[^.,!]*)[,.! ]*){0,3}(?:still |now |just |"
    r"currently )?[a-z]{2,}ing\b(?! (?:to|in|of)\b)"
    r"(?!.*\b(?:is|are|was|were|has|have|had|shows?|takes?|costs?|caused|causes|increased|reduced|does|"
    r"do)\b)",
    r"^(?:(?:sure|ok|okay)[,.! ]*)?(?:i(?:'m| am) (?:still |now |just )?[a-z]+ing|i (?:was|am) (?:not able|"
    r"unable)|(?:almost|nearly) (?:finished|done|there|ready|complete))\b",
    r"^(?:快(?:好|完|了)|就快|马上就|还[剩差有][^,。]{0,12}(?:要|没|未|待))",
    r"^(?:(?:sure|ok|okay|certainly|of course|absolutely|great|alright|all right|got it|understood|right|"
    r"now|next|first|then|yes|no problem|perfect|done)[,.! ]*){0,3}"
    r"(?:i(?:'ll| will| would (?:need|like|have to)|'d (?:need|like|have to)|'m (?:going to|about to|now|"
    r"currently|working|looking|checking|running|fetching|querying|analy[sz]ing|processing|preparing|"
    r"generating|"
    r"searching|still|ready|on it|happy|glad|afraid|waiting)| am (?:going to|about to|now|currently|working|"
    r"looking|checking|running|still|ready|happy|glad|waiting)| need| want| can(?:'t|not)?\b| could|"
    r" am unable| have to|"
    r" should| must)|let me|let's|let us|we(?:'ll| will| need| can| should)\b|working on|"
    r"processing|handing|passing|transferring|routing|delegating|forwarding|starting|loading|fetching|"
    r"calling|running|querying|searching|generating|preparing|analy[sz]ing|checking|looking|connecting|"
    r"waiting|thinking|"
    r"computing|reading|please wait|one moment|just a (?:moment|second)|hold on|stand by|in progress|on it|"
    r"almost (?:done|there)|coming (?:right )?up)\b",
    r"^(?:step|phase|stage|task|part) \d+(?: of| out of|/)? ?\d*\b.{0,40}\b(?:done|complete[d]?|finished|"
    r"running|started|in progress|ok)\b",
    r"^(?:好的?|好嘞|收到|明白了?|没问题|可以|当然|是的|了解|已收到|行|完成)*[,，。! ]*(?:请?稍[等候后]|"
    r"马上|立即|正在|现在(?:开始|去|就|为|来|我)|接下来|"
    r"下面(?:我|将|开始|为)|首先,?我|然后,?我|"
    r"我(?:先|现在|来|去|马上|将|会|正在|这就|需要|可以|能|无法|想|要|们(?:来|先|需要|可以))|转交|转接|"
    r"移交|已(?:收到|转交|转给|提交给|开始)|开始(?:处理|执行|查询|"
    r"分析)|处理中|"
    r"查询中|分析中|生成中|让我|准备|为您|帮您|等待)",
    r"^(?:现在|接着|随后)(?:转交|转接|移交)",
    r"^第 ?\d+ ?步[,，]?共",
)
_COURTESY = rule(
    r"^(?:here (?:is|are|you go|comes?)|below (?:is|are)|attached (?:is|are)|these are|this is|that's|"
    r"that is)\b[^\d:=]{0,80}[.:!]*$",
    r"\b(?:let me know|feel free|would you like|do you want|shall i|should i|hope (?:this|that|it)|"
    r"if you (?:need|want|have|would|prefer|'d)|you(?:'re| are) (?:very )?welcome|have a (?:nice|great|good|"
    r"wonderful)|"
    r"(?:great|good|interesting|excellent) question|anything else|glad (?:to|i|that)|happy to|"
    r"please (?:tell|let|provide|specify|confirm|clarify|share|check|try|note|see|find)|could you|can you|"
    r"thanks?|thank you|"
    r"nice to|pleased to|welcome|my pleasure|enjoy|good luck|congratulations)\b",
    r"不客气|祝您|祝你|如(?:果)?(?:您)?(?:还)?有|如需|若有|请告诉我|请告知|好问题|希望(?:对您|能|这)|"
    r"很高兴|乐意|感谢|谢谢|随时|^(?:这|以下|下面|"
    r"上面)(?:就)?是(?:您|你)[^,，。:：\d]*|请提供|请确认|请问|"
    r"请您|需要我|是否需要|要不要|您想|您希望|欢迎|请参考|请查[收看]|祝(?:好|顺利|生活)",
)
_APOLOGY = rule(
    r"\b(?:sorry|apologi[sz]e|unfortunately,? (?:i|we|there|no)|i (?:couldn't|could not|can't|cannot|"
    r"wasn't able|was unable|am unable|don't (?:know|have|see|find)|do not (?:know|have|see|find)|"
    r"didn't find|"
    r"found no(?:thing| ))|no (?:results?|data|matches|answer|records?|rows?) (?:were |was |is )?(?:found|"
    r"available|returned)|failed to|an error (?:occurred|has)|something went wrong|access denied|"
    r"not authori[sz]ed|"
    r"timed? ?out)\b",
    r"抱歉|对不起|很遗憾|未能|无法(?:找到|访问|获取|完成|回答|连接|确定)|没有(?:找到|查到|结果|权限|数据)|"
    r"出错了|查询失败|执行失败|请求失败|超时",
)
_VAGUE = rule(
    r"^(?:(?:there|here) (?:are|is)|we have|you have) (?:several|many|various|some|a few|different|multiple|"
    r"numerous|plenty of|a (?:couple|number|lot) of|lots of) (?:\w+ )?(?:ways|options|things|reasons|"
    r"approaches|"
    r"factors|possibilities|aspects|methods|solutions|choices|points|ideas|steps)\b[^\d]*$",
    r"^(?:it|that|this|the answer) (?:all )?depends\b|^(?:it|this|that) (?:is|looks|seems|sounds|"
    r"was) (?:very |quite |pretty |really |all |not )*(?:good|fine|great|ok|okay|done|interesting|complete|"
    r"correct|ready|"
    r"difficult|hard|easy|possible|important|complicated|clear)[.! ]*$",
    r"^(?:the )?(?:task|job|operation|query|request|work|analysis|process|everything|all(?: of it| steps|"
    r" tasks)?)(?: is| was| has been| have been| are|'s)?(?: now| all)? (?:done|complete[d]?|finished|"
    r"successful(?:ly)?"
    r"(?: \w+)?|ready|ok|good)[.! ]*$",
    r"^(?:这|那|该)(?:个|件事|问题)?(?:可以|能)?从(?:几|多|各|不同)(?:个|种)?(?:方面|角度)|视(?:具体)?情况|"
    r"有(?:很多|多种|几种|若干|"
    r"不少)(?:种)?(?:方式|方法|原因|可能|选择|角度|因素)[。.! ]*$|各有优缺点|"
    r"^(?:操作|任务|查询|分析|处理|请求|工作)?(?:已|全部|都)?(?:成功)?(?:完成|结束|搞定)了?[。.! ]*$",
)
_JUDGED: tuple[tuple[Reason, re.Pattern[str]], ...] = (
    ("prompt-echo", _ECHO),
    ("recalled-text", _RECALLED),
    ("announcement", _ANNOUNCES),
    ("apology", _APOLOGY),
    ("small-talk", _COURTESY),
    ("too-vague", _VAGUE),
)
_LEAST_TERMS = 2
_MOST_JUDGED = 60
_LONGEST_JUDGED = 600


def informing(text: str) -> tuple[str, Reason | None]:
    """The part of an agent's text that may be kept, word for word; if it is empty, also the reason.

    A text with one informative sentence is kept whole, for its context; only instructions are cut out.
    """
    if (why := json_progress(text)) is not None:
        return "", why
    found = list(islice(sentences(text), _MOST_JUDGED))
    judged = [(each, _reason(each)) for each in found]
    reasons = [reason for _, reason in judged]
    if "prompt-echo" in reasons:
        return "", "prompt-echo"
    if all(reason is not None for reason in reasons):
        return "", _main(reasons)
    if "instruction-like" not in reasons:
        return text, None
    for each, reason in judged:
        if reason == "instruction-like":
            text = text.replace(each, "", 1)
    return re.sub(r"\n{3,}", "\n\n", text).strip(), None


def is_instruction(text: str) -> bool:
    """Whether a text gives orders to an assistant or an agent instead of informing."""
    text = _visible(text)
    if _ROLE_TAG.search(text):
        return True
    hidden = masked(normal(_MARKUP.sub(" ", text))).strip()
    return any(pattern.search(hidden) for pattern in (phrases.INSTRUCTION, _TO_OTHERS, _ORDERS))


def _reason(sentence: str) -> Reason | None:
    """Why an agent's sentence is not informative; None if it is."""
    head = _visible(sentence[:_LONGEST_JUDGED])
    hidden = masked(normal(_MARKUP.sub(" ", head))).lstrip("-*•#>\ufffc ")
    for reason, pattern in _JUDGED[:1]:
        if pattern.search(hidden):
            return reason
    if is_instruction(head):
        return "instruction-like"
    if sentence.endswith(("?", "？")):
        return "question"
    if phrases.SMALL_TALK.fullmatch(hidden):
        return "small-talk"
    for reason, pattern in _JUDGED[1:]:
        if pattern.search(hidden) and not (reason == "announcement" and _HAPPENED.match(hidden)):
            return reason
    if (of_the_work := progress(head)) is not None:
        return of_the_work
    if _OF_ITSELF.search(hidden) and not _HAS_DONE.search(hidden) and not _SPECIFIC.search(hidden):
        return "announcement"
    return None if len(terms(_MARKUP.sub(" ", head))) >= _LEAST_TERMS else "fragment"


_HAPPENED = re.compile(
    r"[a-z]+ing (?!(?:the|an?|all|each|your|my|our)\b)(?:[a-z]+ ){1,3}?"
    r"(?:rose|fell|grew|shrank|came|went|[a-z]+ed) (?:by|to|from|in|since|after)\b",
    re.IGNORECASE,
)
"""Running costs fell by 7 percent: no "-ing" that somebody announces."""
_OF_ITSELF = re.compile(r"\b(?:i|i'm|i've|i'll|me|my|let's|let us)\b|我(?!国)", re.IGNORECASE)
_HAS_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: also| now| then)? (?:found|saw|see|noticed|measured|calculated|computed|"
    r"identified|determined|"
    r"saved|created|stored|wrote|exported|conclude|observed|confirmed|verified|fixed|changed|added|removed|"
    r"updated|"
    r"used|excluded|assumed|compared)\b"
    r"|我们?(?:已经?|还|也)?(?:发现|确认了|计算出|算出|测得|保存|创建|导出|写入|修复|更新了|删除了|剔除了|"
    r"认为|判断|得出)",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(rf"\d|\w[_/]\w|[A-Za-z]\.[a-z]|{phrases.MASK}|(?<=[a-z,] )(?!I\b)[A-Z]")
"""A number, a name, a path, a quotation: what an agent says of itself may be a finding when it has one."""


_MARKUP = re.compile(r"<!--|-->|</?[a-zA-Z][^<>\n]{0,200}>")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _visible(text: str) -> str:
    """The text as a reader sees it, without characters that hide or reorder others."""
    if text.isascii() and text.isprintable():
        return text
    return visible(_ANSI.sub("", text))


_TELLING: tuple[Reason, ...] = (
    "instruction-like",
    "recalled-text",
    "announcement",
    "apology",
    "too-vague",
    "plan",
    "status",
)


def _main(reasons: Sequence[Reason | None]) -> Reason:
    """The most telling of several reasons."""
    found = [each for each in reasons if each is not None]
    return next((each for each in _TELLING if each in found), found[0] if found else "fragment")


def tally(reasons: Iterable[str]) -> str:
    """Reasons as one code for the audit: "question:2;small-talk"."""
    return ";".join(
        f"{reason}:{count}" if count > 1 else reason for reason, count in sorted(Counter(reasons).items())
    )
