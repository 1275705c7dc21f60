"""Words that name one of two opposite sides: gross and net, inbound and outbound, 税前 and 税后.

Texts about opposite sides are about different things, however alike they are. A few pairs are ways to do the
same thing (ascending, descending): there the other side is a new value. To teach a pair, add a row.
"""

import re
from collections.abc import Iterable, Mapping

__all__ = ["OPPOSITE", "WAYS", "sides"]

_WAYS = (
    ("ascending", r"\bascending\b|升序", "descending", r"\bdescending\b|降序"),
    ("active", r"主动", "passive", r"被动"),
    ("worst", r"\bworst\b|最差", "best", r"\bbest\b|最好"),
    ("daily", r"\bdaily\b|每[天日]|日报", "weekly", r"\bweekly\b|每周|周报"),
    ("mean", r"\bmeans?\b(?= delay)|\baverage\b|平均|均值", "median", r"\bmedian\b|中位"),
    ("on", r"\b(?:turned|switched|is|are) on\b|\benabled\b|开着|已?启用", "off",
     r"\b(?:turned|switched|is|are) off\b|\bdisabled\b|关着|已?停用"),
)  # fmt: skip
_PARTS = (
    ("old", r"\b(?:old|previous|former|outgoing)\b(?! (?:age|town|school))|旧(?=[版款合系仓])|"
     r"原(?=[版合])", "new",
     r"\bnew\b(?! (?:york|zealand|delhi|orleans|year))|新(?=[版款合系仓])"),
    ("before", r"\bbefore\b|之前", "after", r"\bafter\b|之后"),
    ("arrival", r"\barriv\w+|\barr_delay\b|到达|抵达", "departure",
     r"\bdepart(?!ment)\w+|\bdep_delay\b|起飞|出发|离港"),
    ("gross", r"\bgross\b|(?<!不)含税|毛(?=[利重收额])", "net", r"\bnet\b|不含税|净(?=[利重收额值])"),
    ("before tax", r"\b(?:before|pre)[- ]tax\b|税前", "after tax", r"\b(?:after|post)[- ]tax\b|税后"),
    ("minimum", r"\bmin(?:imum)?\b(?! ?\d)|\blowest\b|\bshortest\b|最[小低短]|下限", "maximum",
     r"\bmax(?:imum)?\b|\bhighest\b|\blongest\b|最[大高长]|上限"),
    ("first", r"\bfirst\b|首次|首[班发](?=车)", "last", r"\blast\b|末次|末班"),
    ("opening", r"\bopen(?:s|ing|ed)?\b(?! (?:source|question))|开[门盘馆店]|期初", "closing",
     r"\bclos(?:es?|ing|ed)\b(?! to)|[关闭][门盘馆店]|收盘|期末"),
    ("start", r"\b(?:starts?|begins?|started|began)\b(?! (?:with|from))|开始|开工", "end",
     r"\b(?:ends?|finish(?:es)?|ended)\b|结束|收工"),
    ("inbound", r"\binbound\b|\bincoming\b|入[库站境]|进[库站]|来[电件]|收货", "outbound",
     r"\boutbound\b|\boutgoing\b|出[库站境]|去[电件]|发货"),
    ("import", r"\bimport(?:s|ed|ing)?\b|进口", "export", r"\bexport(?:s|ed|ing)?\b|出口"),
    ("upload", r"\bupload\w*|上传", "download", r"\bdownload\w*|下载"),
    ("buying", r"\b(?:buy(?:s|ing)?|purchas\w+)\b|买入|买方|采购", "selling",
     r"\b(?:sell(?:s|ing)?|sales)\b|卖出|卖方|销售"),
    ("income", r"\b(?:income|revenue)\b|收入", "expense", r"\b(?:expenses?|expenditures?)\b|支出|费用"),
    ("debit", r"\bdebit\w*|借方", "credit", r"\bcredit(?:s|ed)?\b(?! cards?)|贷方"),
    ("assets", r"\bassets?\b|资产", "liabilities", r"\bliabilit(?:y|ies)\b|负债"),
    ("receivable", r"\breceivables?\b|应收", "payable", r"\bpayables?\b|应付"),
    ("internal", r"\binternal(?:ly)?\b|内部|对内", "external", r"\bexternal(?:ly)?\b|外部|对外"),
    ("domestic", r"\bdomestic\b|国内", "foreign", r"\b(?:international|foreign|overseas)\b|国际|国外|海外"),
    ("online", r"\bonline\b|线上", "offline", r"\boffline\b|线下"),
    ("indoor", r"\bindoors?\b|室内", "outdoor", r"\boutdoors?\b|室外|户外"),
    ("weekday", r"\bweekdays?\b|\bworking days?\b|工作日|平日", "weekend", r"\bweekends?\b|周末|双休日"),
    ("day shift", r"\bday shifts?\b|白班|日班", "night shift", r"\bnight shifts?\b|夜班|晚班"),
    ("summer", r"\bsummer\b|夏[季天]", "winter", r"\bwinter\b|冬[季天]"),
    ("planned", r"\b(?:planned|budgeted)\b|计划(?=[量数值成产])|预算(?=[额数])", "actual", r"\bactual\b|"
     r"实际"),
    ("fixed", r"\bfixed\b|固定", "variable", r"\bvariable\b|可变|变动"),
    ("production", r"\bprod(?:uction)? (?:environment|server|database|cluster|system)|生产(?:环境|"
     r"库)", "test",
     r"\b(?:test|staging|dev(?:elopment)?) (?:environment|server|database|cluster|system)|(?:测试|"
     r"开发)(?:环境|库)"),
    ("read", r"\breads?\b(?= (?:access|requests?|timeouts?|replicas?|limits?))|读取", "write",
     r"\bwrites?\b(?= (?:access|requests?|timeouts?|replicas?|limits?))|写入"),
    ("left", r"\bleft(?:-hand)?\b(?! (?:out|over|for|to))|左[边侧手]", "right", r"\bright(?:-hand)\b|"
     r"\bright (?:side|arm|leg|eye|ear|door|lane)|右[边侧手]"),
    ("upper", r"\bupper\b|上[层部游](?!分)", "lower", r"\blower (?!than)|下[层部游]"),
    ("front", r"\bfront\b|前[门排轮]", "rear", r"\b(?:rear|back (?:door|row|wheel|gate))|后[门排轮]"),
    ("hot", r"\bhot\b|热(?=[水库饮])", "cold", r"\bcold\b|冷(?=[水库饮])"),
    ("full-time", r"\bfull[- ]time\b|全职", "part-time", r"\bpart[- ]time\b|兼职"),
    ("new customer", r"\bnew (?:customer|client|patient|student|hire|member)s?\b|新(?:客户|会员|员工|"
     r"生)", "old customer",
     r"\b(?:existing|returning|regular|old) (?:customer|client|patient|student|hire|member)s?\b|老(?:客户|"
     r"会员|员工|生)"),
    ("adult", r"\badults?\b|成人", "child", r"\bchild(?:ren)?(?:'s)?\b|\bkids?\b|儿童"),
    ("male", r"\b(?:men|male)(?:'s)?\b|男(?=[性生士款装])", "female", r"\b(?:women|female)(?:'s)?\b|"
     r"女(?=[性生士款装])"),
)  # fmt: skip
_PAIRS = (*_WAYS, *_PARTS)
_SIDES = [(name, re.compile(p, re.IGNORECASE)) for a, pa, b, pb in _PAIRS for name, p in ((a, pa), (b, pb))]
_ANY = re.compile("|".join(pattern.pattern for _, pattern in _SIDES), re.IGNORECASE)
OPPOSITE: Mapping[str, str] = {a: b for a, _, b, _ in _PAIRS} | {b: a for a, _, b, _ in _PAIRS}
WAYS = frozenset(name for a, _, b, _ in _WAYS for name in (a, b))
"""Sides that are ways to do the same thing: there the opposite is a new value."""


def sides(text: str) -> Iterable[str]:
    """The sides that a text names."""
    return (name for name, pattern in _SIDES if pattern.search(text)) if _ANY.search(text) else ()
