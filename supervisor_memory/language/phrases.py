"""The words that give a statement away, in English and Chinese: preferences, definitions, questions.

To teach the rules a new phrase, add it here and a case to tests/stages/test_route.py. All patterns meet
text that `statements.normal` has prepared: NFKC (so 「，：？」 are ",:?"), straight apostrophes, single
spaces, quoted passages and code replaced by `MASK`. All of them ignore case. Every repetition is bounded
or anchored, so that a sentence is judged in time proportional to its length.
"""

import re
from typing import Any, TypeAlias, cast

MASK = "\ufffc"
"""Stands for one character that was quoted or is code: it says nothing by itself."""

Rules: TypeAlias = tuple[tuple[str, "re.Pattern[str]"], ...]
"""(the name of the rule, what it looks for); the first that fires is the reason given."""


def rule(*alternatives: str) -> re.Pattern[str]:
    return lazily("|".join(f"(?:{each})" for each in alternatives))


def lazily(pattern: str) -> re.Pattern[str]:
    """The pattern, ignoring case, compiled when it is first used: `import supervisor_memory` stays light."""
    return cast("re.Pattern[str]", _Lazily(pattern))


class _Lazily:
    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._source, re.IGNORECASE)
        found = getattr(compiled, name)
        setattr(self, name, found)
        return found


# --- words that several rules share ---------------------------------------------------------------

# What one asks an assistant to do, as an imperative.
_DO = (
    r"(?:use|show|give|answer|reply|respond|write|include|add|put|format|return|present|round|convert|"
    r"translate|sort|group|order|plot|draw|chart|display|report|send|call|address|name|keep|start|begin|end|"
    r"make|provide|list|attach|state|mention|explain|ask|say|tell|speak|talk|quote|cite|exclude|omit|skip|"
    r"leave|remove|drop|filter|count|treat|assume|express|render|export|save|label|highlight|summari[sz]e|"
    r"default|stick|choose|pick|prefer|run|check|let|do|take|abbreviate|compare|calculate|compute|aggregate|"
    r"limit|break|split|set|be|describe|measure|spell|refer|remember|apply|go|schedule|book|recommend|"
    r"suggest|warn|"
    r"remind|notify|confirm|greet|review|test|commit|deploy|log|verify|mark|link|avoid|assign|plan|order|"
    r"pack|cook|"
    r"invite|bring|buy|charge|invoice|ship|deliver|propose|offer|quote|number|sign|cc|copy|double-check)\b"
)
_DO_ZH = (
    r"(?:改?用|使用|采用|给|以|按|保留|显示|展示|呈现|输出|返回|回答|回复|作答|称呼|叫|喊|说|讲|写|画|绘制|"
    r"列|附|带|包含|包括|标|加|只|先|把|将|精确|四舍五入|取整|提供|发|选|排|统一|换|改|做|分|不|别|勿|放|"
    r"省略|忽略|跳过|汇总|要|请|默认|生成|导出|保存|存|注明|说明|解释|总结|概括|翻译|当|算|看|剔除|排除|去掉|"
    r"简|详细|中文|英文|表格|记得|帮|向|从|在|对|让|需|设|单位|叫做)"
)
# What an assistant hands over.
_OUTPUT = (
    r"(?:reports?|answers?|repl(?:y|ies)|responses?|charts?|plots?|graphs?|figures|tables?|summar(?:y|ies)|"
    r"numbers|amounts?|dates?|times?|delays?|distances?|percentages?|results?|outputs?|files?|exports?|"
    r"emails?|currenc(?:y|ies)|decimals?|quer(?:y|ies)|sql|dashboards?|durations?|values)"
)
_OUTPUT_ZH = (
    r"(?:图表|图|表|报告|报表|周报|月报|金额|数字|数值|回答|回复|答案|结果|日期|时间|时长|数据|百分比|小数|"
    r"文件|单位|标题|汇总|结论|分析|查询)"
)
_START = r"(?:^|[,;:.] ?|\b(?:and|but|so|also|then|please|just|kindly) )"
_START_ZH = r"(?:^|[,;:。、 ]|请|也|就|都|但|而且|并且|务必|必须|麻烦|帮我)"

# --- preferences: what holds from now on ------------------------------------------------------------

_LANGUAGE = (
    r"(?:english|chinese|mandarin|cantonese|german|french|spanish|italian|portuguese|dutch|japanese|korean|"
    r"russian|polish|"
    r"swedish|norwegian|danish|finnish|turkish|arabic|hindi|ukrainian|czech|greek|hebrew|vietnamese|thai|"
    r"indonesian)"
)
_NOT_LASTING_THING = (
    r"(?:this|that|it|these|those|them|him|her|yet|now|here|anything|(?:the|that|this|my|your|last|first|"
    r"second|next) (?!word|letter|"
    r"term|phrase|abbreviation|passive|subjunctive|oxford|metric|imperial)\w+)\b"
)
_ONLY_NOW = (
    r"\b(?:yet|now|until|till|unless|before i|today|tonight|tomorrow|this|these|for now|in the (?:draft|"
    r"first|next|second)|again yet|first|so far|"
    r"at the moment|just now|when i'm)\b"
)
_ONLY_NOW_ZH = (
    r"(?:今天|今晚|明天|现在|这[次个张份封段篇版里]|那[个张份封段里]|先(?!生)|"
    r"刚才|等一?下|等我|还没|急|了[。.! ]*$)"
)

# How an answer looks and sounds, said of all of them: plurals, and what cannot be counted.
_STYLE = (
    r"(?:emojis?|emoticons|bullets|bullet points|bullet lists?|tables|lists|headings|headers|footnotes|"
    r"citations|"
    r"markdown|plain text|prose|short sentences|full sentences|simple words|plain (?:language|english)|"
    r"jargon|"
    r"spelling|punctuation|capital letters|abbreviations|acronyms|units|euros?|dollars|pounds|yuan|"
    r"kilometers|"
    r"kilometres|miles|celsius|fahrenheit|percentages|decimals|bar charts|line charts|pie charts|charts|"
    r"diagrams|"
    r"first names|surnames|titles|pronouns|british english|american english|metric|the metric system|"
    r"(?:a |an )?(?:formal|informal|friendly|casual|neutral|polite|dry|warm) (?:tone|style|voice|register)|"
    r"(?:24|12)-hour (?:times?|clock|format)|iso dates|passive voice|active voice|examples|analogies|humou?r)"
)
_ANSWERS = (
    r"(?:answers|replies|responses|reports|summaries|charts|plots|graphs|tables|numbers|amounts|dates|times|"
    r"emails|e-mails|mails|letters|explanations|durations|distances|prices|invoices|notes|messages|quotes|"
    r"lists)"
)
_STYLE_ZH = (
    r"(?:表情(?:符号|包)?|颜文字|字体?|[简繁]体|正体|拼写|标点|格式|单位|[公英]制|货币|欧元|美元|人民币|"
    r"表格|列表|"
    r"要点|分点|图表|语气|口吻|口语|书面语|敬语|称呼|大写|小写|缩写|比喻|例子|小标题|脚注|百分比|摄氏度|"
    r"华氏度|"
    r"短句|白话|普通话|中文|英文|24小时制)"
)
_ANSWERS_ZH = (
    r"(?:回答|回复|答案|报告|报表|周报|图表|摘要|总结|数字|金额|日期|时间|邮件|信|清单|解释|结果|距离|价格)"
)

MANNER = rule(
    rf"^(?:please |and |also |just )*(?:use|include|add|write (?:in|with)|answer (?:in|with)|reply (?:in|"
    rf"with)|"
    rf"respond (?:in|with)|speak (?:in|with)|stick to|go with|format (?:it|them|answers) (?:in|as)) "
    rf"(?:more |only |lots of |plenty of |some |fewer )?(?!(?:the|this|that|these|those|my|your|its|his|her|"
    rf"their)\b)"
    rf"(?:[a-z-]+ ){{0,2}}{_STYLE}(?:,? (?:please|throughout|everywhere|only|instead|with me|too|"
    rf"whenever you can|"
    rf"when(?:ever)? possible|in (?:your|all|every) [\w ]{{2,30}}|for (?:all|every|"
    rf"any) [\w ]{{2,30}}))*[.! ]*$",
    rf"^(?:i|we)(?:'d| would)? (?:(?:really|only|always) )?(?:want|need|like|expect|prefer) (?:all |your |"
    rf"my |all "
    rf"your )?(?:[a-z-]+ )?{_ANSWERS}(?: to be)? (?:in|as|with|without|rounded|sorted|written|short|brief|"
    rf"long|"
    rf"detailed|formatted)\b(?! (?:column|row|cell|sheet|the |this|that|an hour|a minute|{_ONLY_NOW}))",
    rf"^(?:please )?(?:sign|end|start|begin|close|write|format|title|name|label|number|address|print|"
    rf"sort) (?:all )?"
    rf"(?:of )?(?:my|our) {_ANSWERS} (?:with|as|in|without|by|to)\b",
    rf"^(?:请|麻烦|你|都|也|多|记得|全文|通篇|全篇|全程|全部|统一|一律|尽量|务必|以后|,)*(?:用|使用|采用|"
    rf"加上?|带上?)"
    rf"(?!这|那|它|第|上|下|刚|我的)[^,;。?]{{0,6}}?{_STYLE_ZH}(?:吧|就好|就行|即可|来写|写|回答|"
    rf"说话)?[。! ]*$",
    rf"^我(?:还是|更)?(?:想要?|要|希望|想让|需要)(?:你的?|所有的?|全部的?)?{_ANSWERS_ZH}(?:都|全|一律|尽量|"
    rf"能)?"
    rf"(?:用|以|按|写成|做成|放在|放进|带|不带|要|简短|详细|短|长|精确|保留|翻译成|是)(?!这|"
    rf"那)(?!.*{_ONLY_NOW_ZH})",
    rf"^(?:凡是|只要|每次|每当)?我[^,;。了]{{1,16}}(?:的时候|时),? ?(?:就|都|请|你|一律|直接|先|要)+"
    rf"(?:当|按|用|给|默认|别|不要|把|只|以|说|发|算)(?!.*{_ONLY_NOW_ZH})",
    r"^我的[^,;。是]{1,10}(?:都|一律|统一|全都?)(?:写|用|署|按|标|填|寄|存|印|发到|抄送)(?!.*(?:了|"
    r"吗)[。! ]*$)",
    rf"^(?:every|each) (?:single |other |second )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|day|week|"
    rf"month|quarter|year|"
    rf"morning|evening|night|weekend|time)s?\b,? (?:please )?(?:at [\w: ]{{1,12}},? )?{_DO}",
    rf"^(?:please )?{_DO}.{{1,120}} (?:every|each) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|day|week|"
    rf"month|quarter|"
    rf"morning|evening|weekend)[.! ]*$",
    r"^(?!这|那)[^,;。?]{2,16}(?:里面?|中|内|上)(?:请|都|也|一律)?(?:不要|别|禁止|不准|不许)(?:再)?(?:出现|"
    r"用|使用|加|放|写|带|有|提)(?!这|那)"
    rf"(?!.*{_ONLY_NOW_ZH})\S",
    # What is never wanted, said as a plain rule: don't use emojis; 不要用表情符号.
    rf"^(?:please,? |and |also,? |just )*(?:do not|don't|never|avoid|no) (?:ever |to )?(?:use|using|add|"
    rf"adding|include|including|"
    rf"write|put|give me|send me|show me|offer|recommend|suggest|schedule|book|plan|mention|say|start|begin|"
    rf"end|address me|call me|"
    rf"quote|ask me|apologi[sz]e|explain|translate|round|abbreviate|shorten|repeat|text me|email me|"
    rf"phone me|message me|serve|cook|order|"
    rf"buy|contact me|ping me|notify me|wake me|assume|invent|make up|guess|sugar-?coat|flatter|lecture|"
    rf"emojis?|jargon|exclamation marks?)"
    rf"(?! {_NOT_LASTING_THING})(?!.*{_ONLY_NOW})\b",
    rf"^(?:please )?never (?!mind\b|seen\b|had\b|been\b|heard\b|thought\b|knew\b|was\b|got\b|again\b|"
    rf"\w+ed\b)(?:\w+)(?!.*{_ONLY_NOW}) ",
    # How to answer, whatever is asked.
    rf"^(?:please |can you |could you |just |and |also )*(?:only )?(?:answer|reply|respond|speak|talk|"
    rf"communicate|chat|write|text)(?: to me| with me| me| back)?"
    rf"(?: only| always)?(?: in)?(?: simple| plain| british| american| simplified| traditional|"
    rf" brazilian)? {_LANGUAGE}(?:,? please| only| to me| with me)*[.! ]*$",
    rf"^(?:please |and |also |try to )*(?:keep|make) (?:(?:your|all|all your) )?{_OUTPUT}\b",
    r"^(?:please |and |also |try to )*be (?:more |as |a bit more |very |less )?(?:concise|brief|short|"
    r"formal|informal|polite|direct|honest|critical|blunt|"
    r"detailed|precise|specific|casual|friendly|verbose|terse)\b(?! (?:about|with|in) (?:this|"
    r"that))(?: when| in| with| and|[.! ]*$)",
    rf"^(?:请|麻烦|拜托|务必|一定|记得|平时|也|还有|另外|回答(?:里|中|时|的时候)?|写[^,;。]{{0,6}}(?:时|"
    rf"的时候|里|中)|,){{0,3}}(?:不要|别|禁止|不准|"
    rf"不许|勿|请勿|尽量(?:不要|别|少|避免)|"
    rf"避免|少)(?:总是|老是?|随便)?(?:给我)?(?:用|使用|加|添加|带|放|出现|夹杂|说|讲|提|推荐|安排|写|叫我|"
    rf"喊我|发|打电话|称呼|省略|编造|猜|输出|包含|做|煮|点|买|订)"
    rf"(?!这|那|它|他|她|了|完|错|漏|我的)(?!.*{_ONLY_NOW_ZH})\S",
    rf"(?:以前|之前|以后|之后|前|后|的时候|时|期间|周末|晚上|早上|上午|中午|节假日|工作日|开会)[, ]?(?:都|"
    rf"请|也|就)?(?:不要|别|勿)(?:再)?给?我?"
    rf"(?:安排|发|打|推荐|推送|排|联系|打扰|找我|约|订|叫|提醒)(?!.*{_ONLY_NOW_ZH})",
    r"^(?:请|麻烦|拜托|你|都|全部|一律|,)*(?:你)?(?:都|全程|全部|统一|只)?(?:用|以|说|讲|使用)(?:简体|繁体|"
    r"标准|大白)?(?:[中英日法德韩俄]|西班牙|葡萄牙|"
    r"意大利|阿拉伯|普通|广东)"
    r"(?:文|语|话|国话)(?:来|跟我|和我|与我|对我|给我)?(?:回答|回复|答复|交流|沟通|说话|作答|聊天?|对话|"
    r"应答|回应|讲话)(?:我|问题|我的问题|所有问题)?(?:就(?:好|"
    r"行|可以)|吧|即可|,谢谢)?[.。! ]*$",
    r"^(?:请|麻烦|你|尽量|,)*(?:回答|回复|答案|说话|讲话|解释|写作|措辞|语气|行文)(?:时|的时候|得|要|请|"
    r"尽量|,)*(?:更|再|尽量|尽可能|要)?(?:简短|简洁|简明|"
    r"精简|详细|正式|随意|直接|"
    r"客气|礼貌|口语化?|专业|通俗|控制在|不超过)(?:一?些|一?点|扼要)?[^,;。]{0,12}[.。! ]*$",
    # Whenever something happens.
    r"^(?:每次|每回|每当|每逢|凡是|每个?[天周月季年]|每[周月][一二三四五六日末初底\d])[^;。?]{1,40}(?:都|"
    r"先|请|要|记得|务必|别|不要|一律|给我|提醒我|"
    r"发我)(?!.*(?:了|吗|呢)[.。! ]*$)",
    r"(?:一直|向来|从来|永远|每次)都?(?:这样|如此|照此|按这个来)[.。! ]*$",
)
"""A rule for the assistant's manner, which says by its form that it is not about one thing."""

STANDING = rule(
    r"\bfrom (?:now|here|today|tomorrow|this (?:point|day|moment)|next (?:week|month)) "
    r"(?:on(?:wards?)?|forwards?)\b",
    r"\bgoing forwards?\b",
    r"\bhence(?:forth|forward)\b",
    rf"^as a (?:general )?rule,? (?:please )?(?:always |never |do not |don't |{_DO})|^make it a (?:habit|"
    rf"rule) to\b",
    r"以后的?[^,;]{1,12}(?:都|一律|统一|默认|全部)(?!会|是|有)",
    rf"^in (?:the )?future,? (?:please )?(?:always |never |do not |don't |{_DO})",
    rf"^(?:please )?{_DO}.{{1,200}}\bin (?:the )?future[.! ]*$",
    rf"^next time,? (?:please )?(?:always |never |do not |don't |{_DO})",
    rf"^for (?:future|(?:all|every|any|each)(?: future)?) {_OUTPUT}",
    rf"^(?:whenever|every time|each time|any time|anytime) (?:i|we|you|someone|anyone|there) [^,]{{2,80}}, ?"
    rf"(?:please )?(?:always |never |just |only |also )?(?:{_DO}|do not|don't)",
    rf"^(?:please )?(?:always |never )?{_DO}[^,;]{{1,120}} (?:whenever|every time|each time) (?:i|we|you|"
    rf"there)\b",
    rf"^(?:whenever|every time|each time|when|if) (?:i|we|you|someone|anyone) "
    rf"(?:ask|say|mention|request|want|need|talk|show|report|plot|draw|present|compare|list)\b[^,]{{0,80}},"
    rf" ?(?:please )?(?:always |never |just |only )?(?:{_DO}|do not|don't)",
    rf"(?:{_START_ZH}|那么?|我们?|你|咱|记住|记得)"
    r"(?:以后|今后|往后|日后|将来|从今(?:天|以后|往后)?(?:开始|起)?|从现在(?:开始|起)|现在开始|"
    r"(?:从)?(?:这次|下次|本次|明天|今天|本月|下周|下个?月)(?:开始|起)|下次(?:请|都|记得))"
    r"(?!再说|再聊|再看|有机会|有空|有时间|会|能不能|的话)"
    rf".{{0,60}}?{_DO_ZH}",
    r"(?<![年月日天周号点时钟])(?:以后|今后|往后)"
    r"(?:都|就|请|一律|统一|默认|始终|总是|全部|全|别|不要|不再|只|均)",
)
"""A wish that says it outlives the conversation."""

PREFERENCES: Rules = (
    ("standing-instruction", STANDING),
    ("manner", MANNER),
    (
        "default",
        rule(
            rf"(?:{_START}|\b(?:should|must|always|to|it) ){_DO}.{{0,120}}\bby default\b",
            rf"^by default,? (?:please |just |always |never |don't |do not )*(?:{_DO}|i (?:want|use|prefer|"
            rf"like))",
            rf"(?:{_START}|\b(?:should|always|to) )default to\b",
            r"\b(?:make|set|use|keep|take)\b.{1,80}\b(?:the|my|your|a) default\b",
            r"\bmy (?:default|usual|preferred|standard) .{0,60}\b(?:is|are|should be)\b",
            rf"默认(?:情况下)?,? ?(?:都|就|请|给我|还|全部|一律){{0,2}}{_DO_ZH}",
            r"默认[^,;?]{0,12}(?:是|为|设|改|:|=)",
            r"(?:设为|设成|作为|当作|改为|改成)默认",
        ),
    ),
    (
        "always",
        rule(
            rf"(?:{_START}|\b(?:should|must|to|you) )(?:always|never|every time|each time) (?:please )?{_DO}",
            rf"^(?:i (?:want|need)|{_DO})\b.{{1,200}}\balways[.! ]*$",
            rf"{_START}(?:do not|don't) ever {_DO}",
            r"\bi (?:always|never|usually|normally|typically|generally|mostly|only|tend to) "
            r"(?:use|want|need|prefer|like|read|look at|work|round|report|view|export|plot|present|expect)\b",
            rf"\b(?:all|every|each|my|our|any) (?:of )?(?:my |the |your |our )?(?:[\w-]+ ){{0,2}}{_OUTPUT} "
            r"(?:should|must|needs? to|ha(?:ve|s) to|ought to|shall)\b",
            rf"^{_OUTPUT} (?:should|must) (?:always |never |not )?\w+",
            rf"\bi(?:'d| would)? (?:want|need|expect|like) (?:to see )?(?:all|every|each) (?:of )?"
            rf"(?:my |the |your )?(?:[\w-]+ ){{0,2}}{_OUTPUT}\b",
            rf"(?:{_START_ZH}|你|要)(?:始终|总是|永远|一律|统一|一直(?!以来)|每次)"
            rf"(?:都|要|请|给我|得){{0,2}}{_DO_ZH}",
            rf"一律{_DO_ZH}",
            rf"^(?:凡是|每当|只要|每次)[^,]{{1,60}}, ?(?:都|就|一律|请){{1,2}}{_DO_ZH}",
            rf"(?:所有|每个|每张|每份|全部)(?:的)?[^,;]{{0,10}}{_OUTPUT_ZH}[^,;]{{0,6}}"
            rf"(?:都|一律|统一|必须|均|应)(?:要|应|得|须)?{_DO_ZH}",
            r"我(?:一直|总是|通常|一般|平时|向来|从不|从来不)都?(?:是)?(?:只)?(?:用|看|使用|写|画|按|喝|吃)",
        ),
    ),
    (
        "remember",
        rule(
            rf"{_START}(?:remember|keep in mind|bear in mind|don't forget|do not forget|note that|"
            r"make (?:a )?note|take note|note down)(?! to (?:send|run|check|do|tell|ask|let|say)\b)"
            r"(?: that| to| this| of|:|,)? ?"
            r"(?!(?:when|how|what|the time|last|where|who|why|which|we|our|you|this|that|it)\b)[\w\ufffc]",
            rf"{_START}(?:remember|make a note of|take note of|note down) (?:this|that|it): ?\S",
            r"^(?:你|请|要|先|都|给我)*记着[:, ]+(?!了|吗|没|这|那|上次)\S{2}",
            rf"(?:{_START_ZH}|你要|一定要|好好|要)(?:记住|记下来?|记一下|牢记)[:, ]*(?!了|吗|没|这|那|"
            rf"上次)\S{{2}}",
            rf"(?:{_START_ZH}|你要|一定要|要)记得(?!吗|么|我(?!喜|更|偏|习|叫|的)|上|之前|你|他|她|当时|有|"
            rf"是|那)\S{{2}}",
            r"(?:麻烦|请|拜托)(?:你|您)记[住得](?!了|吗|没|这|那|上次)\S{2}",
            r"\b(?:like|want) you to remember (?:that|my|i|we)\b",
            r"^just so you know,? (?:i|my|we|our)\b",
            r"(?:别|不要)忘(?:记|了)\S{2}",
        ),
    ),
    (
        "preference",
        rule(
            r"\bi(?:'d| would| really| also| still| strongly| much| do| now| personally| generally| usually)*"
            r" (?:prefer|favou?r)\b",
            r"\bi(?:'d| would)(?: much)? rather (?:have|see|get|read|use|be|you|not)\b",
            r"\bi (?:really |do |just |also |absolutely |particularly |only )*"
            r"(?:like|love|enjoy|hate|dislike|can't stand|cannot stand)"
            r"(?! (?:this|that|it(?! when)|these|those|your|you|how|what|them|to know|to see|"
            r"the (?:way|idea|result|answer|chart|report|table|plot|summary|look))\b) \w",
            r"\bi (?:don't|do not) (?:really |usually |generally )?(?:like|use|enjoy|care for)"
            r"(?! (?:this|that|it(?! when)|these|those|your|you|how|what|them)\b) \w",
            r"\bi no longer (?:want|need|use|like|care)\b",
            r"\bmy (?:\w+ ){0,2}(?:preferences?|habit|convention)\b(?: [\w-]+){0,3} (?:is|are)\b",
            r"\bmy (?:\w+ ){0,2}preferences?:",
            r"\bi(?:'m| am) (?:used to|accustomed to|a (?:big )?fan of|not a (?:big )?fan of|partial to) \w",
            r"\bworks? best for me\b",
            r"^(?:please )?prefer \w",
            r"我们(?:团队|部门|组|公司)?(?:一般|平时|通常)?只(?:看|用|关心)\S",
            r"\b(?:my|our) (?:boss|manager|client|team|colleagues?|director|cfo|ceo) (?:now |always )?"
            r"(?:prefers?|wants|likes?|hates?|dislikes?|insists on)\b",
            r"我们?(?:个人|自己|本人|一般|通常|平时|比较|更|最|还是|也|都|很|真的|一直|总是|向来|特别|非常|"
            r"只|不太|不大|不怎么|不|其实|现在){0,4}(?:喜欢|偏好|习惯|偏爱|偏向|倾向于?|爱看|爱用|讨厌|反感|"
            r"受不了|宁愿|宁可)(?!这|那|你|上了|了|它|他|她|什么|的(?![^,;]{1,8}[是为]))[^\s,;:。.!]",
            r"我的(?:个人|阅读|工作|使用)?(?:偏好|习惯|喜好|惯例)(?:是|为|:)",
            r"(?<!用户)(?<!客户)(?<!乘客)(?<!旅客)(?:偏好|习惯)(?:用|使用|看|于|以|把|将|先|按|是|为|:)",
            r"(?:经理|总监|老板|总|主管|领导|组长|同事)(?:更|最|比较|一直|很)?(?:喜欢|希望|要求|偏好|习惯)",
            rf"我(?:更|还是)?希望(?:你|你们)?(?:以后|每次|总是|始终|都|所有|一律|默认|{_OUTPUT_ZH})",
            r"我(?:不想|不要|再也不想)再",
        ),
    ),
    (
        "stop",
        rule(
            rf"{_START}(?:do not|don't|never) (?:ever )?(?!do (?:this|that|it)\b)\w+ (?:.{{0,120}} )?"
            r"(?:again|any ?more|ever)\b",
            rf"{_START}(?:stop|quit|avoid) (?:using|showing|adding|sending|giving|writing|including|putting|"
            r"calling|asking|explaining|repeating|apologi[sz]ing|rounding|abbreviating|answering|replying)\b",
            rf"{_START}no more (?!(?:than|questions?|problems?|issues?|help|time|data|changes?|work)\b)\w",
            rf"(?:{_START_ZH}|你|以后|图|里|中)(?:千万|一定|绝对|永远)?"
            r"(?:别再|不要再|别老是?|别总是?|不许再|永远不要|永远别|再也不要|再也别|切勿再?|勿再)"
            r"(?!说了|问了|闹|烦|提了|见|来了)\S",
            rf"(?:{_START_ZH}|你)(?:不再|不用再|无需再)(?:需要|要|用|使用|给|显示|列|画|写|附|加)",
        ),
    ),
    (
        "identity",
        rule(
            r"\b(?:call|address) me (?!back|later|when|if|at|on|tomorrow|today|a (?:cab|taxi))\w",
            r"\brefer to me as\b",
            r"\bi go by (?-i:[A-Z])\w",
            r"\bmy (?:first |last |full |nick|sur|user |preferred )?(?:name|time ?zone|team|role|job|title|"
            r"job title|manager|boss|e-?mail(?: address)?|company|department|birthday|pronouns|"
            r"(?:native |first )?language|home airport|hometown|city)(?:'s| is| are|:) ?\S",
            r"\bmy favou?rite [\w ]{1,40} (?:is|are)\b",
            r"\bi (?:work|live) (?:in|for|at|as|on the|with the)\b",
            r"\bi(?:'m| am) (?:based|located) (?:in|at|out of)\b",
            r"\bi(?:'m| am) (?:an?|the) (?:[\w-]+ ){0,3}(?:analyst|engineer|manager|developer|scientist|"
            r"student|teacher|accountant|director|consultant|designer|researcher|controller|pilot|planner|"
            r"doctor|nurse|lawyer|founder|ceo|cfo|cto|administrator)\b",
            rf"(?:{_START_ZH}|你|可以|以后)(?:叫我|称呼我|喊我|管我叫)",
            r"(?:^|[,;:。])我叫(?!你|他|她|它|做?什么|车)\S",
            r"(?:^|[,;:。])我姓\S",
            r"我的(?:名字|姓名|昵称|英文名|时区|部门|团队|岗位|职位|职务|角色|邮箱|生日|公司|母语|老板|上司)"
            r"(?:是|叫|为|在|:)",
            r"我是(?:一名|一个|个|做|搞|[^,;]{1,10}的)?[^,;]{0,10}(?:分析师|工程师|经理|总监|运营|财务|会计|"
            r"产品经理|程序员|老师|学生|研究员|设计师|医生|律师|销售|顾问|负责人|主管)",
            r"我(?:在[^,;]{1,15}(?:工作|上班|任职)|住在|来自)\S",
        ),
    ),
)

OUTSIDERS = rule(
    r"(?:系统|数据库|服务器?|程序|软件|浏览器|pandas|sqlite|mysql|postgres\w*|python|excel|linux|windows|git|"
    r"框架|它)(?:会|的|都)?默认",
)
"""Somebody else's default: a description, not a wish."""

ABOUT_THE_USER = rule(
    r"^(?:the )?user(?:'s)? (?:now |also |usually |always |never |has |asked |no longer )*"
    r"(?:prefers?|wants?|likes?|dislikes?|hates?|needs?|requires?|asked|expects?|insists|name|time ?zone|"
    r"role|works?|lives?|is an?|switched|uses?|preference|favou?rite)\b",
    r"^(?:该)?用户(?:现在|更|最|也|一直|通常|不再|不)?(?:偏好|喜欢|希望|习惯|要求|想要|不想|叫|的(?:名字|"
    r"时区|偏好|习惯))",
)
"""How a model phrases what it writes about the user. In the user's own words "用户" are customers."""

# --- what keeps a statement from being one ------------------------------------------------------------

ONE_OFF = rule(
    r"(?<!not just )(?<!not only )\b(?:this time|this once|just once|only once|today only|only today|"
    r"just for today|right now|for now|for once|for the moment|for the time being|temporarily|"
    r"for this (?:one|report|question|chart|query|time|answer|task|analysis|table|plot|conversation|chat))\b",
    r"(?<!从)(?<!只是)(?<!仅是)(?<!不只)(?<!不仅)(?:这次|本次|这一次|这回|此次)(?!起|开始|以后)",
    r"仅此一次|就这一次|暂时|临时|目前先|今天(?:先|只|就)|(?:这个|这份|这张)(?:问题|报告|报表|图|表|回答|"
    r"任务)",
)
"""A wish for one time only."""

HYPOTHETICAL = rule(
    r"\b(?:if|suppose|supposing|imagine|assuming|what if|as if|pretend) (?:that )?"
    r"(?:i|you|he|she|someone|somebody|they|we|a user|the user)(?:'d| had| have)? "
    r"(?:said|told|asked|were|was|had|wanted|preferred|liked|would|wrote|said)\b",
    r"^(?:suppose|imagine|hypothetically|for example|for instance|e\.g\.)",
    r"(?:如果|假如|假设|要是|倘若|万一|比如|例如|譬如)(?:说)?(?:我|你|他|她|有人|用户|别人)(?:之前|曾经?|"
    r"当时)?(?:说|告诉|要求|跟你说)",
    r"^(?:假设|假如|比如|例如|打个比方)",
)

CONDITION = rule(
    r"^(?:and |but |so )*(?:if|suppose|supposing|imagine|let's (?:say|assume|pretend)|say,|maybe|perhaps|"
    r"what if|pretend|assuming|unless|"
    r"were i|had i|as if|i wish|hopefully|ideally|one day|some day)\b",
    r"\bif (?:i|we) (?:were|was|had|lived|could|would)\b|\b(?:some day|one day)\b",
    r"^(?:如果|假如|假设|要是|万一|也许|可能|或许|倘若|假装|一旦|说不定|哪天|但愿|希望有一天)|的话,?$|哪天我",
)
"""Something that is only thought of."""

REPORTED = rule(
    r"\b(?:he|she|they|someone|somebody|people|everyone|"
    r"the (?:article|docs?|documentation|book|manual|paper|guide|blog|readme|e-?mail)) "
    r"(?:said|says?|told|tells?|claims?|claimed|wrote|writes|suggests?|suggested|recommends?|recommended)\b",
    r"\b(?:the|a|an|my|our|this|that|one|some) (?:[\w'-]+ ){1,3}(?:said|says?|wrote|writes|told (?:me|us|"
    r"him|her|them)|reads|goes|shouted|claims?|states?|asks|"
    r"asked)(?: (?:that|to \w+))?(?:,|:| [\"\ufffc]| that\b)",
    r"^[^,;:。我]{1,12}(?:说|写道?|写着|表示|告诉我|跟我说|对我说|跟我讲|喊道|问|通知|要求大家|"
    r"规定大家)[:,\ufffc]",
    r"(?:他们?|她们?|有人|别人|大家|网上|文章|文档|书上|手册|博客|邮件|新闻|资料)(?:里|中|上)?(?:都|也|就)?"
    r"(?:说|讲|表示|写道|写着|提到|认为|觉得|建议|声称)",
)
"""Somebody else's words."""

PAST = rule(
    r"\b(?:i|we) used to (?:prefer|like|love|use|want|read|hate)\b(?!.{0,120}\b(?:now|but|from now)\b)",
    r"我们?(?:以前|之前|曾经|过去|原来|从前)(?:很|都|一直|总是|也|更)?(?:喜欢|习惯|偏好|用|看)(?!.{0,"
    r"80}(?:现在|以后|改))",
)

DO_NOT_REMEMBER = rule(
    r"\b(?:do not|don't|never|no need to|needn't|without|not to|stop|please not) "
    r"(?:ever |please )?(?:remember|memori[sz]|commit)\w*\b(?! to (?:use|add|round|show))",
    r"\b(?:do not|don't|never|no need to|without) (?:ever )?(?:sav|stor|record|log|keep|writ|not)\w* "
    r"(?:this|that|it|these|any of|anything|what i|my|down)\b",
    r"\boff the record\b",
    r"(?:别|不要|不用|不必|无需|不需要|请勿|甭)(?:再)?(?:给我|帮我|替我)?"
    r"(?:记(?!录|混|错|串|得|不)|记得这|记录(?:这|我|下|$)|记忆(?:这|我)|存(?!为|成|到)|保存(?:这|我|下|$)|"
    r"写进记忆|写入记忆)",
)
"""An explicit wish that nothing of this message be kept."""

FORGET = rule(
    r"(?:^|please |\bjust |\band )forget (?:this|that|it|what|everything|about|my|the|all)\b",
    r"\b(?:delete|erase|remove|wipe) (?:that|this|my|the|all|your) (?:\w+ ){0,3}memor(?:y|ies)\b",
    r"(?:^|请|把.{1,30})忘(?:了|掉|记)",
)
"""A wish to have something forgotten: no statement itself; the tools do it."""

INSTRUCTION = rule(
    r"\b(?:ignore|disregard|forget|override|bypass) (?:all |any |every |the |your |my |of |these |those )*"
    r"(?:previous|prior|above|earlier|preceding|system|safety|existing|other)\b.{0,30}"
    r"(?:instruction|prompt|rule|message|guideline|direction|context)",
    r"\b(?:ignore|disregard|forget|override|bypass) (?:all |any |the )*(?:your )(?:instructions|rules|"
    r"guidelines|prompt)\b",
    r"\byou are now (?:an?|the|in|my|free|no longer)\b",
    r"^(?:act|behave) as\b|\bpretend (?:to be|you are|that you)\b|\broleplay\b",
    r"\b(?:system|developer) (?:prompt|mode|message)\b|\bjailbreak|\bnew instructions:",
    r"(?:忽略|无视|忘记|忘掉|不要理会|不用理会|抛开|绕过)(?:掉)?(?:之前|以上|前面|上面|先前|所有|一切|你的|"
    r"任何|全部|系统).{0,12}(?:指令|提示|规则|设定|要求|约束|限制|命令)",
    r"你现在是|从现在起你是|从现在开始你是|请?扮演|假装(?:你|自己)|系统提示词?|开发者模式|越狱",
)
"""Text that means to change what the assistant is. Nothing of such a message is kept."""

# --- questions and requests ---------------------------------------------------------------------------

QUESTION_WORDS_ZH = rule(
    r"什么|啥|多少|哪(?!怕|吒)|谁|怎么|怎样|如何|为何|几(?:个|点|号|天|条|次|家|月|年|班|位)|"
    r"是否|是不是|有没有|对不对"
)
ANYHOW = rule(r"无论|不管|不论|任何时候|不论如何|无论如何|怎么都|我(?:再)?问")
"""Before a question word it means "whatever": 无论问什么都用中文."""

QUESTION_ENDS_ZH = re.compile(r"(?:吗|呢|没有|是不是|对不对|(?<!什)么)[.。!~ ]*$")
QUESTION_STARTS = rule(
    r"^(?:and |so |but |or |then |ok |okay |hi |hey |hello |well |also |now )*(?:"
    r"(?:what|why|how|when|where|which|who|whose|whom)(?:'s|'re| is| are| was| were| do| does| did| should|"
    r" would| can| could| will| has| have| had| might)\b"
    r"|how (?:many|much|often|long|come|far|to|about|late|big)\b|what about\b|what if\b|why not\b"
    r"|(?:which|what) [\w-]+(?: [\w-]+){0,2} (?:is|are|was|were|has|had|have|do|does|did|should|would|can)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|would|should|will|has|have|had|may|shall|am|isn't|aren't|"
    r"don't|doesn't|didn't) (?:you|i|we|it|there|this|that|my|he|she|they|your|our|anyone|any|everything)\b"
    r"|(?:is|are|was|were|does|did|has) the\b)"
)
ASKS_TO_BE_TOLD = rule(
    r"^(?:please |can you |could you |just )*(?:tell me|explain|describe|show me|remind me|look up|clarify|"
    r"let me know|i wonder|i(?:'m| am) (?:wondering|not sure|unsure|curious)|i (?:don't|do not) (?:know|"
    r"remember|recall|understand)|i (?:want|need|would like) to know|i'd like to know|not sure|no idea|"
    r"do you know|any idea)\b",
    r"^(?:请|你|麻烦你?|帮我|能|可以|给我|再|先|我){0,3}(?:告诉我|解释(?!一下:)|说明(?!一下:)|说说|讲讲|"
    r"介绍|查(?!询口径)|看看|请问|想知道|不知道|不清楚|不确定|想问|问一下|好奇|回忆一下|提醒我)",
)
REQUEST = rule(
    r"^(?:please |now |then |and |also |ok |okay |just )*(?:show|list|find|give|calculate|compute|plot|"
    r"count|compare|analy[sz]e|select|get|filter|run|create|generate|draw|make|export|fetch|query|"
    r"summari[sz]e|tell|rank|sort|group|search|build|write|check|fix|add|change|update|delete|use)\b",
    r"^(?:请|你|麻烦你?|帮我|帮忙|给我|再|先|现在|来|然后){0,3}(?:查询|查|统计(?!口径|.{0,20}?时)|列出|列|"
    r"计算(?!口径|方式|公式|.{0,20}?时)|画|给我|筛选|找|显示|分析|比较|对比|生成|导出|做一|做个|汇总|求|看|"
    r"输出|按|把(?!.{1,40}(?:定义|叫|称|视|当作|当做|算作|算成))|用|写|跑|执行|排序|"
    r"算(?!法|.{0,20}?时))",
)
"""A task: what it says holds for the task."""

TAG = re.compile(
    r"[,，;； ] ?(?:thanks|thank you|thx|cheers|please|ok|okay|alright|all right|will you|can you|could you|"
    r"would you)(?: (?:very much|so much|a lot))?[.!?~！？。 ]*$"
    r"|[,， ]*(?:谢谢(?:你|您|了|啦)?|多谢|拜托(?:了|你了?)?|好吗|好么|好不好|行吗|行不行|可以吗|可以么|"
    r"可不可以|行不|(?<![A-Za-z])ok吗?|辛苦了?)[.。!?！？~ ]*$",
    re.IGNORECASE,
)
"""What is said at the end for politeness; a question mark there asks for consent, not for knowledge."""

POLITE = re.compile(
    r"^(?:(?:hi|hey|hello|so|please|ok|okay)[, ]+){0,2}(?:can|could|would|will) (?:you|we)"
    r"(?: please| kindly| maybe| also| just){0,3} (?P<rest>.*?)[?？.! ]*$"
    r"|^(?:请问|那)?(?:你|您|我们)?(?:能不能|可不可以|能否|可否|是否可以|可以|能)(?:请|麻烦|帮我)?"
    r"(?P<rest_zh>.*?)(?:吗|么)?[?？。.! ]*$",
    re.IGNORECASE,
)
POLITE_WISH = rule(
    r"^(?:always|never) (?!be\b)|\bby default\b|^remember (?:that|i|to)\b|^remember my [\w ]{1,30} (?:is|"
    r"are)\b|^(?:please )?call me\b|^stop \w+ing\b",
    r"^(?:以后|今后|从现在|默认|一律|始终|别再|不要再)|^记住[:,]?我(?!吗|说|的话|刚|之前|上次|叫什么|是谁)|"
    r"^叫我",
)
"""After "could you …?" it is a standing wish all the same."""

ADDRESS = re.compile(
    r"^(?:(?:hi|hey|hello|dear|ok|okay|well|so|oh|and|also|fyi|btw|by the way|one more thing|actually|thanks|"
    r"thank you)(?: (?:there|again|assistant|team|all))?[,.:!，。：！ ]+"
    r"|(?:please|kindly|pls)[, ]+"
    r"|(?:你好|您好|嗨|哈喽|好的|好|嗯+|哦|对了|另外|还有|顺便说一下|顺便|那么|那个|谢谢|补充一下|补充|"
    r"说明一下|更正|纠正)[呀啊]?[,。.!:、，：！ ]+"
    r"|(?:麻烦|拜托)(?:你|您)?[,， ]*|请(?:你|您)?(?!问|求|假|教|示)[,， ]*"
    r"|(?:[-*•]|\d{1,2}[.)、]) ?){1,6}+",
    re.IGNORECASE,
)
"""Greeting, politeness and list marks before a statement."""

REMEMBER_THAT = re.compile(
    r"^(?:(?:please|and|so|but|just|also|you (?:must|should|can|may)|let's|let us) )*"
    r"(?:remember|keep in mind|bear in mind|note|make a note|just so you know|"
    r"(?:i (?:do )?(?:hope|trust) )?(?:you )?(?:don't|dont|do not|never|not|mustn't|shouldn't|can't|won't|"
    r"will not),? "
    r"(?:you )?(?:ever |just )?forget)"
    r"(?: (?:this|that))?(?:[:：]| that\b|[,，]| (?=(?:i|my|we|our)\b)) *"
    r"|^(?:帮我|你要|要|务必)?(?:记住|记下来|记下|记一下|牢记|请注意|注意|记着(?=[:,：， ]))[:,：， ]*"
    r"|^(?:请|你|可|千万|一定|务必|永远|绝对|以后|都|也)*(?:别|不要|不能|不可以?|不许|勿|莫)(?:再)?"
    r"(?:忘(?:记|了|掉)?|记不得)[:,：， ]*(?=(?:我|咱|本人|公司|团队)(?!(?:们)?(?:说|让|叫|交代))|"
    r"[^,;。]{1,20}?(?:是|等于|指的|叫做?))",
    re.IGNORECASE,
)
"""What announces a statement without being part of it."""

HERE = re.compile(
    r"^(?:(?:in|for|within|at|on|across|under) [^,]{1,40}, *"
    r"|(?:from now on|going forward|from today on|as of (?:now|today)|starting (?:now|today)|henceforth|"
    r"always),? *"
    r"|(?:in our|at our) (?:company|team|data|reports?),? *"
    r"|(?:以后|今后|从现在(?:开始|起)|从今天(?:开始|起)|从本月起|默认)[, ]*"
    r"|(?:在|对于|按照|根据|关于)[^,]{1,30}(?:里|中|下|上|内|,)[, ]*"
    r"|(?:我|大家)(?:说|讲|所说|口中)的"
    r"|(?:我们|咱们)(?:公司|团队|这里|这边|部门)?(?:的|里|说的|讲的|所说的|口中的)?(?!把|将|定义|称|"
    r"管) *){1,4}+",
    re.IGNORECASE,
)
"""Where or since when a definition holds."""

# --- reading -------------------------------------------------------------------------------------------

_SMALL_TALK = """
hi, hiya, hello, hey, yo, howdy, greetings, good morning, good afternoon, good evening, good night,
good day, morning, thanks, thank you, thank u, thx, ty, cheers, much appreciated, appreciate it,
many thanks, ok, okay, k, okey, alright, all right, right, sure, yes, yeah, yep, yup, no, nope, nah,
fine, cool, great, nice, perfect, awesome, excellent, wonderful, good, good job, well done, nice work,
got it, understood, makes sense, i see, sounds good, no problem, no worries, never mind, nevermind,
that's all, that is all, that's it, bye, goodbye, bye bye, see you, see ya, later, take care,
have a nice day, have a good day, have a great day, have a nice evening, have a good weekend,
how are you, how's it going, what's up, you're welcome, sorry, my bad, haha, hahaha, lol, hm, hmm, wow,
oh, ah, there, again, so much, very much, a lot, for now, everyone, all, team,
你好, 您好, 大家好, 嗨, 哈喽, 喂, 在吗, 在么, 早上好, 早安, 早, 上午好, 中午好, 下午好, 晚上好, 晚安,
谢谢, 谢了, 多谢, 感谢, 非常感谢, 十分感谢, 辛苦了, 麻烦了, 麻烦你了, 你, 您, 啦, 啊, 呀, 了, 哦, 噢, 喔,
嗯, 唔, 哈, 呵, 嘿, 好, 好的, 好滴, 好吧, 好嘞, 行, 可以, 没问题, 没事, 没关系, 不客气, 收到, 明白, 知道,
了解, 懂, 是, 是的, 对, 对的, 不用, 不必, 不, 不是, 再见, 拜拜, 回头见, 回见, 下次见, 明天见, 不错, 很好,
太好, 太棒, 棒, 厉害, 真棒, 赞, 完美, 抱歉, 对不起, 不好意思
"""
_PHRASES = sorted(
    (p.strip() for p in _SMALL_TALK.replace("\n", ",").split(",") if p.strip()), key=len, reverse=True
)
SMALL_TALK = re.compile(
    rf"(?:(?>{'|'.join(re.escape(p) + (r'(?![a-z])' if p.isascii() else '') for p in _PHRASES)})"
    r"[\s,.!?~…。、;:)(^_-]*+)++",
    re.IGNORECASE,
)
"""A whole message of this is an acknowledgement: there is nothing to look up."""

CROSS_SESSION = rule(
    r"\blast (?:time|session|week|month|conversation|chat)\b|\b(?:as|like|same as) (?:before|usual|always|"
    r"last time)\b|\bwe (?:agreed|discussed|decided|talked|said|settled|used|did)\b|\bmy (?:usual|preferred|"
    r"preferences?|defaults?|settings|favou?rite|name)\b|\b(?:do|did|can) you (?:still )?(?:remember|recall|"
    r"know my)\b|\bearlier you\b|\byou (?:told|said|showed|gave) (?:me|us|earlier|before)\b|\bi (?:told|"
    r"mentioned|said|asked|gave) (?:you|earlier|before|"
    r"last)\b|\bpreviously\b|\bremind me\b|\bremember when\b|\bthe usual\b|\bas (?:i|we) (?:said|"
    r"mentioned)\b|\bwho am i\b",
    r"上次|上回|上一次|之前|以前|先前|前几天|前天|昨天|上周|上个月|早些时候|还记得|记不记得|记得我|说过|"
    r"提过|讲过|约定|商定|老规矩|老样子|照旧|一如既往|我的(?:偏好|习惯|默认|设置|名字|口径)|按我的|像往常|"
    r"往常|照常|我们定的|我是谁|我叫什么",
)
"""It speaks of something from before."""
