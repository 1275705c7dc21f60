"""Find the subject, property and value of a preference. English and Chinese.

To teach a new property, add a row to `_PROPERTIES`: its name, what it is said of when nothing is named,
and a pattern for each value. A preference that touches two properties keeps none of them: it would be
replaced as a whole when only one of them changes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from supervisor_memory.language.phrases import STANDING
from supervisor_memory.understand.people import people
from supervisor_memory.understand.statements import MAX_SENTENCE, masked, normal

__all__ = ["About", "about_preference", "properties_of"]

Value: TypeAlias = tuple[str, "re.Pattern[str]"]


@dataclass(frozen=True, slots=True)
class About:
    """Subject, attribute and value of a statement; each None if it is unknown."""

    subject: str | None = None
    attribute: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    said_of: str
    values: tuple[Value, ...]


def _values(**patterns: str) -> tuple[Value, ...]:
    return tuple((name.replace("_", " "), re.compile(p, re.IGNORECASE)) for name, p in patterns.items())


_PROPERTIES = (
    _Property(
        "format",
        "answer",
        _values(
            table=r"表格|(?<!the )\b(?<![a-z]_)tables?\b(?! (?:joins?|has|contains|named|called|"
            r"of contents)\b)|\btabular\b",
            list=r"列表|清单|要点|项目符号|\b(?:bullet(?:ed)?(?: points?| lists?)?|bullets|lists?)\b",
            sentence=r"一句话|句子|整句|文字|段落|\b(?:sentences?|prose|paragraphs?|plain text|narrative)\b",
            json=r"\bjson\b",
            csv=r"\bcsv\b",
            markdown=r"\bmarkdown\b",
            pdf=r"\bpdfs?\b",
            excel=r"\b(?:excel|xlsx)\b",
        ),
    ),
    _Property(
        "language",
        "answer",
        _values(
            zh=r"(?:用|以|说|讲|看|使用|默认|喜欢|偏好|是|为|成)(?:简体|繁体)?(?:中文|汉语|普通话)|"
            r"中文(?:回答|回复|交流|输出|作答|写)|\b(?:in|use|speak|write|to|prefer|into|is) (?:simplified |"
            r"traditional )?(?:chinese|mandarin)\b",
            en=r"(?:用|以|说|讲|看|使用|默认|喜欢|偏好|是|为|成)(?:英文|英语)|(?:英文|英语)(?:回答|回复|"
            r"交流|输出|作答|写)|\b(?:in|use|speak|write|to|prefer|into|is) (?:british |american |"
            r"plain )?english\b",
            ja=r"(?:用|以|说)日[语文]|\b(?:in|use|speak|prefer|is) japanese\b",
            de=r"(?:用|以|说)德[语文]|\b(?:in|use|speak|prefer|is) german\b",
            fr=r"(?:用|以|说)法[语文]|\b(?:in|use|speak|prefer|is) french\b",
            es=r"(?:用|以|说)西班牙[语文]|\b(?:in|use|speak|prefer|is) spanish\b",
        ),
    ),
    _Property(
        "chart",
        "chart",
        _values(
            stacked_bar=r"堆[叠积](?:柱|条)[状形]?图|\bstacked bars?\b",
            bar=r"(?<![叠积])(?:柱状|柱形|条形)图|(?<!stacked )\bbar (?:charts?|plots?|graphs?)\b|"
            r"(?<!stacked )\bbars\b",
            line=r"折线图?|线图|\bline (?:charts?|plots?|graphs?)\b",
            pie=r"饼图|饼状图|圆饼图|\bpie(?: charts?)?\b|\bpies\b",
            scatter=r"散点图|\bscatter ?plots?\b|\bscatter\b",
            heatmap=r"热力图|热图|\bheat ?maps?\b",
            histogram=r"直方图|\bhistograms?\b",
            box=r"箱[线形]图|\bbox ?plots?\b",
            area=r"面积图|\barea charts?\b",
        ),
    ),
    _Property(
        "unit",
        "number",
        _values(
            minutes=r"(?:用|以|按|为|是|成)分钟|\bin minutes\b|\bminutes (?:as|for)\b|\b(?:use|prefer|"
            r"want) minutes\b",
            hours=r"(?:用|以|按|为|是|成)小时|\bin hours\b|\b(?:use|prefer|want) hours\b",
            seconds=r"(?:用|以|按|为|是|成)秒|\bin seconds\b",
            km=r"(?:用|以|按|为|是|成)(?:公里|千米)|\bin (?:kilomet(?:er|re)s|km)\b|\buse (?:kilomet(?:er|"
            r"re)s|km)\b",
            miles=r"(?:用|以|按|为|是|成)英里|\b(?:in|use) miles\b",
            wan_yuan=r"万元",
            yuan=r"(?:用|以|按|为|是|成)[“\"]?(?:元|人民币)|\b(?:in|use) (?:rmb|cny|yuan)\b",
            usd=r"(?:用|以|按|为|是|成)美元|\b(?:in|use) (?:usd|us dollars?|dollars)\b",
            eur=r"(?:用|以|按|为|是|成)欧元|\b(?:in|use) (?:eur|euros?)\b",
            metric=r"公制|\bmetric units?\b",
            imperial=r"英制|\bimperial units?\b",
            percent=r"(?:用|以|按)百分比|\bas percentages?\b|\bin percent\b",
        ),
    ),
    _Property(
        "verbosity",
        "answer",
        _values(
            short=r"简[洁短明要]|精简|长话短说|言简意赅|\b(?:short|concise|brief|briefly|terse|succinct)\b",
            long=r"详细|详尽|\b(?:detailed|in depth|in-depth|verbose|thorough|long (?:answers?|"
            r"explanations?))\b",
        ),
    ),
)

_DECIMALS = re.compile(
    r"(?P<zh>[0-9一二两三四五六零])位小数|\b(?P<en>[0-9]|one|two|three|four|five|six|no|zero) decimals?\b"
    r"|(?P<none>取整|整数|不要小数|\bwhole numbers?\b|\bnearest integer\b|\bintegers\b)",
    re.IGNORECASE,
)
_DIGITS = {
    **dict(zip("零一二三四五六", "0123456", strict=True)),
    **{
        "两": "2",
        "no": "0",
        "zero": "0",
        "one": "1",
        "two": "2",
        "three": "3",
        "four": "4",
        "five": "5",
        "six": "6",
    },
}
_NAME = re.compile(
    r"\b(?:(?:call|address|refer to) me(?: as)?|i go by) (?P<call>[\w.'-]+(?-i:(?: [A-Z][\w.'-]+){0,2}))"
    r"|\bmy (?:first |full |nick|preferred )?name(?:'s| is|:) (?P<name>[\w.'-]+(?-i:(?: [A-Z][\w.'-]+){0,2}))"
    r"|(?:叫我|称呼我为?|喊我|管我叫|我的(?:名字|昵称|英文名)(?:是|叫|:)|(?:^|[,;:。])我叫)[“\"]?"
    r"(?P<zh>[^,;。!\s“”\"]{1,20}?)(?=就|吧|好了|即可|[,;。!\s“”\"]|$)",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\bmy (?P<what>(?:favou?rite [\w ]{1,30}?)|time ?zone|team|role|job title|job|title|manager|boss|"
    r"e-?mail(?: address)?|company|department|birthday|pronouns|(?:native |first )?language|home airport|"
    r"hometown|city)(?:'s| is| are|:) ?(?P<is>[^,;]+)"
    r"|我的(?P<what_zh>时区|部门|团队|岗位|职位|职务|角色|邮箱|生日|公司|母语|老板|上司)(?:是|叫|为|在|"
    r":)(?P<is_zh>[^,;。]+)",
    re.IGNORECASE,
)
_FACTS_ZH = {
    "时区": "time zone",
    "部门": "department",
    "团队": "team",
    "岗位": "job",
    "职位": "job title",
    "职务": "job title",
    "角色": "role",
    "邮箱": "email",
    "生日": "birthday",
    "公司": "company",
    "母语": "native language",
    "老板": "boss",
    "上司": "boss",
}
# The part that says what is *not* wanted; without it the rest would read as its opposite.
_CONTRAST = re.compile(
    r"(?<=prefer )(?P<kept>[^,;.]{1,60}?) (?:to|over) [^,;.]*|"
    r"(?:,? ?\b(?:rather than|instead of|not(?! only)|no longer|and never|never)\b|,?(?:而不是|而非|不是|"
    r"代替|取代|不用|不要|不再用?|别再?用?))[^,;。.]*",
    re.IGNORECASE,
)
_AVOIDS = re.compile(
    r"\b(?:don't|do not|never|stop|avoid|no more|no longer|hate|dislike|can't stand)\b|别|"
    r"不(?:要|再|用|喜欢|想|看|太|大|爱)|讨厌|反感|少用|勿",
    re.IGNORECASE,
)
_SUBJECTS = (
    ("report", re.compile(r"报告|报表|\breports?\b", re.IGNORECASE)),
    ("summary", re.compile(r"摘要|总结|\bsummar(?:y|ies)\b", re.IGNORECASE)),
    (
        "answer",
        re.compile(r"回答|回复|答案|作答|\b(?:answers?|repl(?:y|ies)|responses?|respond)\b", re.IGNORECASE),
    ),
    ("delay", re.compile(r"延误|晚点|\bdelays?\b", re.IGNORECASE)),
    ("distance", re.compile(r"距离|里程|\bdistances?\b", re.IGNORECASE)),
    ("amount", re.compile(r"金额|\b(?:amounts?|revenues?|prices?)\b", re.IGNORECASE)),
    ("comparison", re.compile(r"对比|比较|\bcompar(?:isons?|e|ing)\b", re.IGNORECASE)),
    ("trend", re.compile(r"趋势|走势|\btrends?\b", re.IGNORECASE)),
)
_BRIEF = re.compile(
    r"(?:(?P<before>[a-z]+)(?: (?:to be|be|kept|very|as|nice and|are|should be|must be))*+ )?"
    r"\b(?:short|concise|brief|terse|succinct|detailed|verbose|thorough)\b(?: (?P<after>[a-z]+))?"
    r"|(?:喜欢|希望|要求?|让|把|觉得|认为|^)(?P<zh>[\u4e00-\u9fff]{2,4}?)(?:要|得|最好|应该?|尽量|保持|都|"
    r"越)*"
    r"(?:简[洁短明要]|精简|详细|详尽)|(?:简[洁短]|详细|详尽)的(?P<zhafter>[\u4e00-\u9fff]{2,4})",
    re.IGNORECASE,
)
_OWN_ACTS = re.compile(
    r"\b(?:i|we|he|she) (?:also |often |usually |can |still )*(?:read|watch|listen|learn|study|teach|"
    r"understand|know|"
    r"speak|sing|dream|think|work)s?\b(?! (?:best|better|faster))|[我他她]们?(?:平时|经常|每天|也|还|在|"
    r"正在|只)*(?:会|能|"
    r"懂|学|教|听|读|看)(?!中文就|英文就|得懂)",
    re.IGNORECASE,
)
"""What somebody does in a language: no wish for how to be answered."""
_ANSWERS = re.compile(
    r"(?:answers?|repl(?:y|ies)|responses?|explanations?|texts?|outputs?|sentences?|messages?|prose|wording|"
    r"tone|"
    r"style|versions?|forms?|bullets?|lists?|tables?|points?|overviews?|paragraphs?|language|things?|"
    r"everything|"
    r"it|them|this|that|you|me|i|we|us|and|but|or|please|to|when|in|for|with|is|are|be|as|by|the|an?|if|"
    r"unless|at|"
    r"on|over|not|of|so|too|very|more|less|keep|like|want|prefer|make|need|love|have|use|give|write|stay|"
    r"remain|"
    r"always|really|just|only|only|one|ones|my|your|all|most|no|rather|instead|than|from|now|again|possible|"
    r"enough|"
    r"technical|quick|simple|clear|direct|polite|precise|plain|good|nice|"
    r".*(?:回答|回复|答案|说明|解释|内容|语言|文字|表达|结果|输出|作答|一点|一些|尽量|你|我|用|以后|请|就|"
    r"都|更|比较).*)",
    re.IGNORECASE,
)
"""What is short or detailed when nothing else is named."""
_PURPOSE = re.compile(
    r"\bfor (?:my |the |all |any |every )?(?P<en>[a-z][\w -]{2,30}?)(?=[,.;]|$| (?:use|show|give|i|please|"
    r"from|by|as|in)\b)"
    r"|(?:看|做|画|分析|对于|关于|展示|统计)(?P<zh>[\u4e00-\u9fff]{2,8}?)(?:时|的时候|用|以后|,|一律|都|"
    r"默认|请)",
    re.IGNORECASE,
)
_GENERIC_PURPOSES = frozenset(
    [
        "me",
        "now",
        "everything",
        "all",
        "example",
        "future",
        "us",
        "answers",
        "answer",
        "reports",
        "charts",
        "图表",
        "数据",
        "图",
    ]
)


def about_preference(text: str) -> About:
    """Subject, attribute and value of a preference; all None unless it has exactly one known property."""
    wish = _after_the_turn(normal(text[:MAX_SENTENCE]))
    found = _found(wish)
    if len(found) != 1:
        return About()
    [(name, said_of, value, avoided)] = found
    subject = said_of if said_of == "user" else _subject(wish, said_of)
    subject = (name == "verbosity" and _thing(wish)) or subject
    who = people(text[:MAX_SENTENCE])
    if who.leads and said_of != "user":
        subject = f"{min(who.others)}'s {subject}"
    if avoided:
        return About(subject, f"avoids-{value.replace(' ', '-')}", "yes")
    return About(subject, name, value)


def properties_of(text: str) -> tuple[str, ...]:
    """The properties a preference touches, as tags."""
    return tuple(dict.fromkeys(name for name, *_ in _found(_after_the_turn(normal(text[:MAX_SENTENCE])))))


def _after_the_turn(text: str) -> str:
    """Cut what precedes a clause like "from now on": 这次用列表，以后还是用表格."""
    clauses = re.split(r"[,;] ?", text)
    lasting = [clause for clause in clauses if STANDING.search(clause)]
    return text[text.index(lasting[0]) :] if lasting and STANDING.search(text) else text


def _found(text: str) -> list[tuple[str, str, str, bool]]:
    """Find (property, default subject, value, whether it is to be avoided)."""
    hidden = masked(text)
    wanted = _CONTRAST.sub(lambda match: match["kept"] or "", hidden)
    return [*_facts(text), *_of_properties(wanted, avoided=False)] or [*_of_properties(hidden, avoided=True)]


def _facts(text: str) -> Iterator[tuple[str, str, str, bool]]:
    if match := _NAME.search(text):
        name = next(g for g in match.groups() if g)
        avoided = bool(_AVOIDS.search(text[: match.start()][-12:]))
        yield "name", "user", name.strip(" .'").casefold(), avoided
    if match := _FACT.search(text):
        what = (match["what"] or match["what_zh"]).casefold()
        what = _FACTS_ZH.get(what, what)
        yield (
            what.replace("timezone", "time zone"),
            "user",
            (match["is"] or match["is_zh"]).strip(" .。").casefold(),
            False,
        )


def _of_properties(text: str, *, avoided: bool) -> Iterator[tuple[str, str, str, bool]]:
    negative = avoided or bool(_AVOIDS.search(text))
    for prop in _PROPERTIES:
        if prop.name == "language" and _OWN_ACTS.search(text):
            continue
        values = [value for value, pattern in prop.values if pattern.search(text)]
        yield from ((prop.name, prop.said_of, value, negative) for value in values)
    for match in _DECIMALS.finditer(text):
        digit = (match["zh"] or match["en"] or "0").casefold()
        yield "decimals", "number", _DIGITS.get(digit, digit), negative


def _thing(text: str) -> str | None:
    """The subject that is to be short or detailed, if it is not the answers: "short meetings"."""
    match = _BRIEF.search(text)
    named = (match[name] for name in ("after", "before", "zh", "zhafter")) if match else ()
    found = (word.casefold() for word in named if word and not _ANSWERS.fullmatch(word))
    return next((word.removesuffix("s") for word in found), None)


def _subject(text: str, said_of: str) -> str:
    match = _PURPOSE.search(text)
    purpose = (match["en"] or match["zh"]).casefold().strip() if match else ""
    if purpose and purpose not in _GENERIC_PURPOSES:
        return purpose
    return next((name for name, pattern in _SUBJECTS if name != said_of and pattern.search(text)), said_of)
