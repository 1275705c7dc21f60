"""Find definitions of terms: meanings, other names, what a count includes or excludes. English and Chinese.

`find_definition` meets text prepared by `statements`; see `phrases` for what that means. Each rule is one
way of saying it, with the groups `term` (the word defined) and `value` (what is said of it).
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from supervisor_memory.language.phrases import MASK

__all__ = ["Definition", "find_definition", "normal_term"]

Relation: TypeAlias = Literal["definition", "alias", "includes", "excludes"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of `term`, which is normalised: casefolded, without articles and quotes."""

    term: str
    relation: Relation
    value: str


_T = r"(?P<term>[^,;:?!。、=<>]{1,50}?)"
_T_ZH = r"(?P<term>[^,;:?!。、=<>]{1,24}?)"
_V = r"(?P<value>\S.*)"
_NOW = r"(?:已经?|现在|现|也|就|都|一律|统一|均|应|应该|要|须|必须|从\S{1,8}起|,| ){0,4}"
_ADVERB = r"(?:always|never|now|here|only|also|just|simply|really|usually|generally)"
_NOUN = r"(?:definition|meaning|formula|denominator|numerator|threshold|cut-?off|limit|target|scope)"
_NOUN_ZH = r"(?:分母|分子|阈值|门槛|标准|目标值?|上限|下限|判定标准|起算点|范围)"
_BE = r"(?:is|are|should be|must be|shall be|will be|has been|have been|gets?)"
_BEFORE = r"(?:^|[,;:] ?)"


def _rules(relation: Relation, *patterns: str) -> list[tuple[Relation, re.Pattern[str]]]:
    return [(relation, re.compile(pattern, re.IGNORECASE)) for pattern in patterns]


_RULES: list[tuple[Relation, re.Pattern[str]]] = [
    *_rules(
        "definition",
        # by delayed we mean …; when I say late, I mean …; we define X as …
        rf"\bby {_T},? (?:we|i|our team|people here) (?:always |usually |only )?mean {_V}",
        rf"^(?:when|if|whenever) (?:i|we) (?:say|write|talk about|use|mention|speak of) {_T},? (?:i|we|"
        rf"it) means? {_V}",
        rf"\b(?:we|i|let's|let us|please|team)? ?(?:re)?defines? {_T} (?:as|to be|to mean) {_V}",
        rf"{_BEFORE}{_T} {_BE} (?:{_ADVERB} )?(?:re)?defined (?:as|by|to be|to mean) {_V}",
        rf"{_BEFORE}(?:the |our )?{_NOUN} (?:of|for) {_T} (?:is|are|has changed to|changed to|"
        rf"becomes) (?:now )?{_V}",
        rf"{_BEFORE}{_T}(?:'s)? (?:{_NOUN}) (?:is|are|has changed:?|changed:?|becomes|"
        rf"updated:) (?:now )?{_V}",
        rf"{_BEFORE}{_T} (?:{_ADVERB} )*(?:means?|refers? to|stands? for|denotes?|signif(?:y|ies)|equals?|"
        rf"(?:is|are) (?:short|shorthand) for|(?:is|are) an? (?:abbreviation|acronym|code) (?:for|of)|"
        rf"(?:is|are) equal to|(?:is|are) the same (?:thing )?as|(?:is|are) understood as) {_V}",
        rf"{_BEFORE}{_T} {_BE} (?:{_ADVERB} )*(?:calculated|computed|measured|derived|counted) "
        rf"(?:as|by|from|in|using|with|over|on) {_V}",
        rf"^{_T} counts? (?!as\b|for\b|on\b)(?P<value>(?:distinct|unique|only|all|the|every|each)\b.*)",
        rf"^an? (?P<term>[^,;:]{{2,40}}?) is (?P<value>{MASK}+ (?:once|when|if|as soon as|only when|"
        rf"after) .+)",
        # … counts as delayed when …; flights over 15 minutes are considered late
        r"^(?P<value>.{3,120}?) (?:counts?|qualif(?:y|ies)|(?:is|are) (?:only )?(?:counted|treated|"
        r"considered|classed|regarded|called|labell?ed)) (?:only )?(?:as )?(?P<term>[^,;:]{2,"
        r"40}?) (?:only )?(?:when|if|once|"
        r"whenever) .+",
        r"^(?:we |i )?(?:always |only )?(?:call|treat|count|consider|regard|classify) "
        r"(?P<value>.{3,120}?) (?:to be|as) (?P<term>[^,;:]{2,40}?)[. ]*$",
        rf"^(?:we |i |let's |let us )?(?:always )?call (?P<value>.{{3,120}}?) (?P<term>{MASK}+)[. ]*$",
        rf"^(?:we|i) (?:only )?(?:call|consider|count|treat) (?P<value>.{{2,60}}?) (?:as )?(?P<term>[\w-]+|"
        rf"{MASK}+) "
        r"(?:only )?(?:when|if|once) .+",
        rf"^(?:an? |the |our )?(?P<term>{MASK}{{3,}}) ?(?:is|are|就?是) ?(?!not\b|a (?:strange|good|"
        rf"bad)\b){_V}",
        r"^(?P<value>.{3,120}?) (?:is|are) what (?:we|i) (?:call|mean by) (?P<term>[^,;:]{2,40}?)[. ]*$",
        r"^(?P<value>.{3,120}?) (?:counts?|qualif(?:y|ies)|(?:is|are) (?:counted|treated|considered|classed|"
        r"regarded|called|labell?ed)) (?:as )?(?P<term>[^,;:]{2,40}?)[. ]*$",
        r"^an? (?P<term>[^,;:]{2,40}?) is (?P<value>(?:one|anyone|someone|an? [\w-]+|any [\w-]+) "
        r"(?:with|that|who|which|where|whose|having) .+)",
        r"^our (?P<term>[^,;:]{2,30}?) (?P<value>(?:starts?|begins?|ends?|runs?) (?:in|on|at|from) .+)",
        # GMV = …
        r"^(?P<term>[^,;:=<>!?()\[\]{}]{1,40}?) ?:?= ?(?P<value>[^=>].*)",
        # the code of something: B6 is JetBlue
        r"^(?-i:(?P<term>[A-Z][A-Z0-9]{1,5}) is (?P<value>(?:the (?!worst|best|most|least|only|same|first|"
        r"last)|[A-Z])[\w&.' -]{1,50}?))[. ]*$",
    ),
    *_rules(
        "definition",
        # 把延误定义为…; 我们把…叫做延误
        rf"(?:把|将){_T_ZH}(?:统一|重新|都|就)?(?:定义为|定义成|定为|界定为){_V}",
        r"(?:把|将)(?P<value>[^,;。]{2,80}?)(?:统一|都|也|就|一律)?(?:叫做?|叫作|称为|称作|称之为|视为|视作|"
        r"当作|当做|算作|(?<![换计折结估])算成|记为|归为|归入)(?P<term>[^,;。]{1,20})",
        # GMV 的口径是…; 人均产出分母改为…
        rf"{_BEFORE}{_T_ZH} ?的?(?:统计|计算)?(?:口径|定义|含义|意思|计算方式|计算方法|算法|公式)(?:已|"
        rf"也){{0,1}}{_NOW}(?:是指|是|为|:|指|改为|改成|改用|变为|调整为|调整:|变更,|更新为|按照?|以|取|用|"
        rf"等于|=) ?{_V}",
        rf"{_BEFORE}(?P<term>[^,;:?!。、=<>]{{1,24}}?{_NOUN_ZH})(?:已|也){{0,1}}{_NOW}"
        rf"(?:是|为|:|改为|改成|调整为|上调[为到]|下调[为到]|提高[为到]|降[为到]|等于|=) ?{_V}",
        rf"{_BEFORE}{_T_ZH} ?{_NOW}(?:是指|指的就?是|就是指|指代|特指|均指|专指|意思是|意为|定义为|定义成|"
        rf"被定义为|等于|等同于|相当于|全称(?:是|为)|缩写(?:是|为)) ?{_V}",
        rf"{_BEFORE}{_T_ZH} ?(?:就)?(?<![手戒食拇])指(?![标定数导出向示望令挥责明南数着]){_V}",
        # 晚到 15 分钟以上的航班叫做延误; …才算延误
        r"^(?P<value>[^。]{3,120}?)[,]?(?:就|才|则|都|均|也|一律|统一){0,2}(?:算作|算是|"
        r"(?<![换计折结估])算成|视为|视作|计为|"
        r"记为|记作|归为|叫做|叫作|称为|称作)(?P<term>[^,;。]{1,20}?)[。.!]*$",
        r"^(?P<value>[^。]{3,120}?)[,]?(?:就|才|则|都|均|也)(?:算|叫)(?P<term>[^,;。一下]{1,15}?)[。.!]*$",
        r"^(?P<value>[^。]{0,60}?\d[^。]{0,60}?)算(?!一下|法|出|好|完|了|上)(?P<term>[^,;。]{1,15}?)[。.!]*$",
        # 代码 A 代表…; UA 是美联航
        rf"{_BEFORE}(?P<term>[^,;:。]{{0,16}}?[A-Za-z0-9_{MASK}][^,;:。\s]{{0,6}}?) ?(?:代表|表示|对应|"
        rf"指代)的?(?:是)? ?{_V}",
        r"^(?P<term>[A-Za-z0-9_]{2,15}) ?就?是 ?(?P<value>(?!不|否|哪|最|对|错|很|太|因为|由于|我|你|好|坏|"
        r"什么|谁|要|在|从|用|个)[^,;?]{2,30}?)(?<![的了吗呢])[。.!]*$",
        r"^(?P<value>[^。]{4,160}?),即(?P<term>[^,。]{1,16}?)[。.!]*$",
        rf"^{_T_ZH}(?<![立随当亦迅])即(?!将|使|便|可|刻|时|日|席|是){_V}",
        rf"{_BEFORE}{_T_ZH}{_NOW}以(?P<value>[^,;。]{{1,40}}?)为(?:准|口径)",
        rf"{_BEFORE}{_T_ZH}{_NOW}按照?(?P<value>[^,;。]{{1,40}}?)(?:来)?(?:算|判定|认定|界定)[。.!]*$",
    ),
    *_rules(
        "alias",
        rf"^{_T},? (?:is |are )?(?:also|otherwise|formerly|better) (?:known|called|referred to)(?: as)? {_V}",
        rf"^{_T},? (?:is |are )?(?:aka|a\.k\.a\.) {_V}",
        r"^(?P<value>[^,;:]{1,50}?) (?:is|are) (?:just |only )?(?:an(?:other)? (?:alias|name|synonym)|"
        r"a (?:nickname|synonym)|our (?:name|word|term)|shorthand) (?:for|of) (?P<term>.+)",
        rf"{_BEFORE}{_T_ZH} ?(?:又称|又叫做?|又名|也叫做?|也称为?|简称|俗称|别名(?:是|为|叫))(?:为|"
        rf"是)? ?{_V}",
        r"^(?P<value>[^,;。]{1,24}?)(?:就)?是(?P<term>[^,;。]{1,24}?)的(?:别名|简称|缩写|同义词|"
        r"另一个(?:名字|叫法|说法)|旧称)",
    ),
    *_rules(
        "excludes",
        rf"^(?:计算|统计|算|求)(?P<term>.{{1,20}}?)(?:的?时候?)[, ]?{_NOW}(?:请)?(?:剔除|排除|扣除|去掉|"
        rf"除去|忽略|(?:不|别|不要|不再|勿)(?:包含|包括|含|计入|算入|算)){_V}",
    ),
    *_rules(
        "includes",
        rf"^(?:计算|统计|算|求)(?P<term>.{{1,20}}?)(?:的?时候?)[, ]?{_NOW}(?:包含|包括|含|计入|算入|算上|"
        rf"加上){_V}",
    ),
    *_rules(
        "excludes",
        rf"^{_T} (?:now |always |should |must )*(?:excludes?|omits?|leaves? out|(?:do(?:es)? not|"
        rf"do(?:es)?n't|should not|must not|no longer|never) (?:include|count|contain|cover)s?) {_V}",
        r"^(?P<value>[^,;:]{2,80}?) (?:is|are|must be|should be|has to be|have to be) (?:always |now )?"
        r"(?:excluded|left out|omitted|removed) (?:from|of) (?P<term>[^,;:]{2,50}?)[. ]*$",
        r"^(?P<value>[^,;:]{2,80}?) (?:is|are|must|should|do|does) (?:not|never|no longer) (?:be )?"
        r"(?:included in|counted (?:in|as|towards?)|count(?: as| in| towards?)|considered|part of|"
        r"treated as) (?P<term>[^,;:]{2,50}?)[. ]*$",
        r"^(?P<value>[^,;:]{2,80}?) (?:isn't|aren't|doesn't|don't) (?:included in|counted (?:in|as|towards?)|"
        r"count(?: as| in| towards?)|considered|part of|treated as) (?P<term>[^,;:]{2,50}?)[. ]*$",
        rf"^{_T_ZH}(?:的)?(?:统计|计算)?(?:口径)?(?:已调整:|里面?|中|内|时)?{_NOW}(?:不再|不|不会|不得|未|"
        rf"均不|并不|无){_NOW}(?:包含|包括|含(?!义|量|糊)|计入|算入|纳入|涵盖|计算){_V}",
        rf"^{_T_ZH}(?:的)?(?:统计|计算)?(?:口径)?(?:里面?|中|内|时)?{_NOW}(?:剔除|排除|扣除|去掉|除去|"
        rf"不计(?![算入])){_V}",
        rf"^(?P<term>[A-Za-z][\w ]{{1,30}}?)(?:口径)?{_NOW}不算{_V}",
        rf"^(?:计算|统计|算|求)(?P<term>.{{1,20}}?)(?:的?时候?)[, ]?{_NOW}(?:请)?(?:剔除|排除|扣除|去掉|"
        rf"除去|忽略|(?:不|别|不要|不再|勿)(?:包含|包括|含|计入|算入|算)){_V}",
        r"^(?P<value>[^,;。]{2,40}?)(?:不|不再|均不|一律不|都不)(?:计入|算入|算进|纳入|算在|属于|算作?|视为|"
        r"视作)(?P<term>[^,;。]{1,20}?)(?:里面?|中|内)?[。.!]*$",
    ),
    *_rules(
        "includes",
        rf"^{_T} (?:now |always |also |should |must |does )*includes? {_V}",
        r"^(?P<value>[^,;:]{2,80}?) (?:is|are|must be|should be) (?:always |now |also )?"
        r"(?:included in|counted in|counted towards?|part of) (?P<term>[^,;:]{2,50}?)[. ]*$",
        rf"^{_T_ZH}(?:的)?(?:统计|计算)?(?:口径)?(?:已调整:|里面?|中|内|时)?{_NOW}(?:包含|包括|含(?!义|量|"
        rf"糊)|涵盖){_V}",
        rf"^(?:计算|统计|算|求)(?P<term>.{{1,20}}?)(?:的?时候?)[, ]?{_NOW}(?:包含|包括|含|计入|算入|算上|"
        rf"加上){_V}",
        r"^(?P<value>[^,;。]{2,40}?)(?:也|都|均|要|应|需)*(?:计入|算入|算进|纳入|算在|属于)"
        r"(?P<term>[^,;。]{1,20}?)(?:里面?|中|内)?[。.!]*$",
    ),
]

_PRONOUNS = """
i you he she it we they this that these those what which who there here everything something nothing and or
but because all means no
"""
_NOT_TERMS = frozenset(_PRONOUNS.split())
_NOT_TERMS_ZH = re.compile(
    r"^(?:这|那|它|他|她|你|我(?!们)|哪|如果|为什么|因为|所以|但是|不过|上面|下面|以下|以上|就|才|"
    r"报告都|图都|结果都)|什么|多少"
)
_NEGATED = re.compile(r"(?:\b(?:not|never)|n't|[不没别])$", re.IGNORECASE)
_OUTPUTS = re.compile(
    r"\b(?:reports?|answers?|repl(?:y|ies)|charts?|results?|outputs?|messages?|files?|quer(?:y|ies)|tables?|"
    r"emails?|summar(?:y|ies)|lists?)$|(?:报告|报表|图表|图|表格|回答|答案|结果|回复|输出|文件|列表|邮件|"
    r"消息|内容)(?:里|中|都|也|要)*$",
    re.IGNORECASE,
)
_QUANTIFIED = re.compile(
    r"\d|\b(?:over|above|more|less|longer|later|under|below|least|most|exceed\w*|within|minutes?|hours?|"
    r"any\w*)\b|[<>≥≤]|超过|大于|小于|低于|高于|以上|以内|至少|不足|晚于|早于|分钟|小时|"
    r"[一二两三四五六七八九十百千]+(?:天|次|个|元)",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\w\(\)|\bself\.|=>|->|[{}]|\b(?:import|def|return|const|let|var)\b|\bWHERE\b.*=|\bSET\b.*="
)
_EDGES = re.compile(
    r"^(?:(?:the|an?|our|my|a)(?: |$)|我们的?|所有的?|凡是|[\s\"'“”「」『』《》`*_-]+)+|"
    r"[\s\"'“”「」『』《》`*.。!]+$",
    re.I,
)
_LONGEST_TERM = 60


def find_definition(text: str, hidden: str) -> Definition | None:
    """The definition a sentence gives, or None.

    Args:
        text: The sentence without greeting and announcement.
        hidden: The same with quotations masked, character by character.
    """
    for relation, rule in _RULES:
        match = rule.search(hidden)
        if match is None or _is_average(match):
            continue
        term = normal_term(text[slice(*match.span("term"))])
        value = text[slice(*match.span("value"))].strip(" .。!")
        if _is_sound(term, value, relation, hidden):
            return _sorted_out(Definition(term, relation, value), match)
    return None


_OF_MANY = re.compile(r"(?:s|people|children|men|women|data|\band .+)$", re.IGNORECASE)
_HAS_A_VERB = re.compile(
    r"(?:(?!that\b|which\b|who|those\b)[\w'-]+ ){0,6}?"
    r"(?:is|are|was|were|has|had|will|equals|rose|fell|grew|came|went)\b",
    re.IGNORECASE,
)


def _is_average(match: re.Match[str]) -> bool:
    """Whether "mean" is the average here, not a verb: "the mean fare is"."""
    words = match.string[match.end("term") : match.start("value")].casefold().split()
    if not words or words[-1] != "mean" or not all(map(re.compile(_ADVERB).fullmatch, words[:-1])):
        return False
    return not _OF_MANY.search(match["term"]) or _HAS_A_VERB.match(match["value"]) is not None


def normal_term(term: str) -> str:
    """The form in which terms are compared: casefolded, without articles, quotes and a trailing 的."""
    return " ".join(_EDGES.sub("", term.casefold()).removesuffix("的").split())


def _is_sound(term: str, value: str, relation: Relation, hidden: str) -> bool:
    if _NEGATED.search(term) or _NEGATED.search(value):
        return False
    if not value or not 0 < len(term) <= _LONGEST_TERM or not any(c.isalpha() for c in term):
        return False
    if _NOT_TERMS & set(term.split()) or _NOT_TERMS_ZH.search(term) or _CODE.search(hidden):
        return False
    return relation not in ("includes", "excludes") or not _OUTPUTS.search(term)


def _sorted_out(found: Definition, match: re.Match[str]) -> Definition:
    """Turn "a cancelled flight counts as delayed" into a part that the term includes, not its meaning."""
    names_the_term_last = match.start("value") < match.start("term")
    conditional = match.end("term") < match.end() - 3
    is_member = found.relation == "definition" and names_the_term_last and not conditional
    if is_member and not _QUANTIFIED.search(found.value) and not found.value.startswith(("we ", "我们")):
        return Definition(found.term, "includes", found.value)
    return found
