"""Find the people a text is about: the user, or somebody the user names. English and Chinese.

"I am allergic" and "my son is allergic" share all their words but one, and are two facts.
"""

import re
import unicodedata
from dataclasses import dataclass

from supervisor_memory.language import phrases
from supervisor_memory.text.terms import has_cjk
from supervisor_memory.understand.statements import judge, masked, normal

__all__ = [
    "SURNAMES",
    "People",
    "is_about_the_user",
    "of_another",
    "people",
]


@dataclass(frozen=True, slots=True)
class People:
    """The people a text is about.

    Attributes:
        is_i: Whether it names the user alone: I, me, my. "My son" names the son.
        is_we: Whether it names the user's group: we, our, the team.
        others: Other people, each as a kinship or role ("mother" for mum and 妈妈), with a word before it if
            there is one ("sales manager").
        known: The `others` that are definite persons: "my son", "the sales manager".
        leads: Whether the text begins with one of the others.
        subject: The person the text begins with: "i", "we", "other"; "" if it begins with a thing.
    """

    is_i: bool
    is_we: bool
    others: frozenset[str]
    known: frozenset[str]
    leads: bool
    subject: str


_WORDS = """
wife: wife | 妻子 老婆 太太 媳妇
husband: husband | 丈夫 老公 先生
partner: partner spouse | 爱人 伴侣 对象 配偶
girlfriend: girlfriend | 女朋友 女友
boyfriend: boyfriend | 男朋友 男友
fiance: fiance fiancé fiancee fiancée | 未婚夫 未婚妻
child: child children kid kids | 孩子 小孩
baby: baby toddler | 宝宝 婴儿
son: son sons stepson | 儿子
daughter: daughter daughters stepdaughter | 女儿 闺女
twin: twin twins | 双胞胎
mother: mother mom mum stepmother | 妈妈 母亲 妈
father: father dad stepfather | 爸爸 父亲 爸
parents: parents | 父母 爸妈
brother: brother brothers | 哥哥 弟弟 兄弟 哥 弟
sister: sister sisters | 姐姐 妹妹 姐妹 姐 妹
grandmother: grandmother grandma granny | 奶奶 外婆 姥姥
grandfather: grandfather grandpa grandad | 爷爷 外公 姥爷
grandchild: grandson granddaughter grandchild grandchildren | 孙子 孙女
aunt: aunt | 阿姨 姑姑 姨妈
uncle: uncle | 叔叔 舅舅 伯伯
cousin: cousin cousins | 表哥 表弟 表姐 表妹 堂哥 堂弟 堂姐 堂妹
nephew: nephew | 侄子 外甥
niece: niece | 侄女 外甥女
mother-in-law: mother-in-law | 岳母 婆婆
father-in-law: father-in-law | 岳父 公公
friend: friend friends | 朋友 闺蜜
flatmate: flatmate roommate | 室友 舍友
neighbour: neighbour neighbor neighbours neighbors | 邻居
dog: dog dogs puppy | 狗
cat: cat cats kitten | 猫
colleague: colleague colleagues coworker co-worker teammate | 同事 队友
manager: manager managers | 经理
boss: boss | 老板 上司 领导
supervisor: supervisor | 主管 导师
director: director | 主任 总监 董事
lead: leader | 组长 队长 负责人
ceo: ceo | 首席执行官 总裁
cfo: cfo | 财务总监
owner: owner | 店主 业主
assistant: assistant secretary | 助理 秘书
intern: intern interns | 实习生
mentor: mentor coach trainer | 教练 师父 师傅
client: client clients customer customers | 客户 顾客
supplier: supplier suppliers vendor | 供应商
landlord: landlord | 房东
tenant: tenant | 租客 房客
doctor: doctor gp physician | 医生 大夫
dentist: dentist | 牙医
nurse: nurse nurses | 护士 护士长
patient: patient patients | 病人 患者
teacher: teacher teachers tutor instructor professor | 老师 教师 教授
principal: principal headmaster headteacher | 校长
student: student students pupil pupils | 学生
dispatcher: dispatcher | 调度
driver: driver drivers | 司机
engineer: engineer engineers developer developers | 工程师 开发
designer: designer designers | 设计师
analyst: analyst analysts | 分析师
accountant: accountant | 会计
auditor: auditor auditors | 审计
lawyer: lawyer solicitor attorney | 律师
editor: editor | 编辑
recruiter: recruiter | 招聘
committee: committee board | 委员会 董事会
"""
_ROWS = [line.partition(":") for line in _WORDS.split("\n") if line]
_NAMED = {word: name for name, _, words in _ROWS for word in words.replace("|", " ").split()}
_ENGLISH = "|".join(sorted((re.escape(w) for w in _NAMED if not has_cjk(w)), key=len, reverse=True))
_CHINESE = "|".join(sorted(filter(has_cjk, _NAMED), key=len, reverse=True))
_BY_TRADE = r"(?!play)[a-z]{4,}(?:(?<!l)|(?<=[ay]l))ist|[a-z]{4,}ician"
"""Who is named by a trade: the pharmacist, the electrician."""
_GROUP = "team|company|department|office|family|group|household|firm|crew|lab"
_OTHER = re.compile(
    rf"\b(?:(?P<own>my|our|his|her|their|your|[a-z]+'s)|the|an?|each|every) (?P<of>(?:[a-z][\w-]* ){{0,2}}?)"
    rf"(?P<who>{_ENGLISH}|{_BY_TRADE})\b(?! (?:\d|name\b|id\b|number\b|list\b|table\b|base\b|time\b))"
    rf"|^(?P<bare>(?:[a-z][\w-]* ){{0,1}}?)(?P<plural>{_ENGLISH})(?<=s)\b (?=[a-z])",
    re.IGNORECASE,
)
_STOPS = "的我你他她它们给把被让对向跟和与由请发是在为用叫找问说，。、；：,;: "
SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁"
    "任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
"""The commonest Chinese surnames, one character each."""
_OTHER_ZH = re.compile(
    rf"(?P<own>(?:[我你他她]|咱们)(?:们|家)?的?)?(?P<of>[{SURNAMES}](?=(?:{_CHINESE}))|"
    rf"[^{_STOPS}]{{1,4}}?[科部组处室班队院厂店区])?"
    rf"(?P<who>{_CHINESE})(?!人|节|室|费|数|量|库|部|处|源|名单|编号|代码|卡|证|会议|表|群|车|信息|数据|满意)"
)
_I = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|myself|mine|my)\b", re.IGNORECASE)
_WE = re.compile(rf"\b(?:we|us|ourselves|ours|our)\b|\b(?:our|the) (?:{_GROUP})\b", re.IGNORECASE)
_HE = re.compile(r"^(?P<he>he|she)(?:'s)?\b|^(?P<zh>他|她)(?!们)", re.IGNORECASE)
_I_ZH, _WE_ZH = (
    re.compile("我(?!们|国|司|方|家|校|院)"),
    re.compile("我们|咱们|大家|(?:^|[我本])(?:团队|公司|部门)"),
)
_LEAD = re.compile(
    r"^(?:(?:please|also|and|but|note|remember|from now on|these days|at work|at home|now|so|ok|well|by the "
    r"way|"
    r"for the record|fyi)(?: that)?[,:]? )*|^(?:另外|还有|其实|顺便说一下|记住|请记住|以后|现在|注意|"
    r"对了)?[,，:：]?",
    re.IGNORECASE,
)
_FIRST_ZH = 8
"""Characters within which a Chinese text has begun."""


def people(text: str) -> People:
    """Find the people a text is about; its first 2,000 characters are read."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:2_000]).replace("’", "'").split())
    plain = plain[match.end() :] if (match := _LEAD.match(plain)) else plain
    others: dict[str, bool] = {}
    starts: list[int] = []
    for match in _OTHER.finditer(plain):
        who = (match["who"] or match["plural"]).casefold()
        of = match["of"] or match["bare"] or ""
        others[f"{of}{_NAMED.get(who, who)}".casefold()] = bool(of or match["own"])
        starts.append(match.start())
    for match in _OTHER_ZH.finditer(plain):
        if len(match["who"]) == 1 and not match["own"]:
            continue  # 热狗 is no dog
        others[f"{match['of'] or ''}{_NAMED[match['who']]}"] = bool(match["of"] or match["own"])
        starts.append(match.start())
    rest = _OTHER_ZH.sub(" ", _OTHER.sub(" ", plain))
    if match := _HE.match(plain):
        others["he" if (match["he"] or match["zh"]).casefold() in ("he", "他") else "she"] = False
        starts.append(0)
    own = _WE.sub(" ", rest)
    leads = bool(starts) and min(starts) == 0
    return People(
        is_i=bool(_I.search(own) or _I_ZH.search(rest)),
        is_we=bool(_WE.search(rest) or _WE_ZH.search(rest)),
        others=frozenset(others),
        known=frozenset(name for name, is_known in others.items() if is_known),
        leads=leads,
        subject="other" if leads else _subject(plain),
    )


def _subject(text: str) -> str:
    if re.match(r"(?:i|i'm|i've|i'd|i'll)\b|我(?!们|国|司|方|家|校|院)", text, re.IGNORECASE):
        return "i"
    return (
        "we"
        if re.match(rf"we\b|(?:our|the) (?:{_GROUP})\b|我们|咱们|大家|团队|公司|部门", text, re.I)
        else ""
    )


def of_another(one: People, other: People) -> bool:
    """Whether two texts are about different people: the user and the son, the user and the team, …"""
    if {one.subject, other.subject} == {"i", "we"}:
        return not (one.others or other.others)
    if one.others and other.others:
        is_sure = (one.leads and other.leads) or (one.others == one.known and other.others == other.known)
        return is_sure and not _share(one.others, other.others)
    named, unnamed = (one, other) if one.others else (other, one)
    if not named.others:
        return False
    return unnamed.is_i and (named.leads or not (named.is_i or named.is_we))


def _share(some: frozenset[str], others: frozenset[str]) -> bool:
    return any(a.endswith(b) or b.endswith(a) for a in some for b in others)


_DOES = (
    r"(?:(?:also|now|still|always|never|often|usually|really|currently) )*(?:is|was|has|had|will|would|can|"
    r"cannot|can't|does|doesn't|did|didn't|isn't|wasn't|hasn't|may|might|must|should|[a-z]{2,}(?:s|ed))\b"
)
_NO_PERSON = (
    r"(?:tables?|interfaces?|stor(?:y|ies)|ids?|accounts?|groups?|sessions?|bases?|guides?|manuals?|agents?|"
    r"counts?|numbers?|names? column|columns?|fields?|roles? table|records?|rows?|data|schemas?|models?|"
    r"requests?|quer(?:y|ies)|input|inputs|messages?|prompts?|experience|growth|events?|flows?|class|service|"
    r"services|permissions|settings page|stats|statistics|metrics?|logs?)\b"
)
_PERSON = re.compile(
    rf"\b(?:the|this|our|current|said) user(?:'s (?!{_NO_PERSON})| (?!{_NO_PERSON}){_DOES})|"
    rf"^user(?:'s (?!{_NO_PERSON})|:? (?!{_NO_PERSON}){_DOES})|"
    r"(?:该|此|本|这[位个名]|当前)?用户(?:本人)?(?:现在|目前|一直|从小|平时|通常|已经|也|很|最|更|都|不|还|曾|"
    r"今年|以后|今后|将来)*(?:是|有|对|在|住|叫|姓|患|会|想|要|说|让|同意|允许|授权|喜|爱|吃|喝|怕|过敏|戒|来自|从事|任职|就读|毕业|结婚|已婚|"
    r"未婚|怀孕|出生|家|偏好|希望|习惯|讨厌|\d{1,3} ?岁|的[^,;:。]{1,8}?(?:是|为|叫|在|有))",
    re.IGNORECASE,
)
_MANY = re.compile(
    r"用户(?:数|量|群|表|们|画像|增长|体验|界面|组|协议|行为|留存|满意|流失|规模|占比)|\d ?[%万亿]|增长|下降|"
    r"占比|平均|人均|总数|\b(?:average|per) user\b|%",
    re.IGNORECASE,
)
_YOU = (
    (r"\byou(?:'re| are)\b", "I am"),
    (r"\byou(?:'ve| have)\b", "I have"),
    (r"\byour\b", "my"),
    (r"\byou\b", "I"),
    (r"[您你]", "我"),
)
_FIRST_PERSON = tuple((re.compile(pattern, re.IGNORECASE), said) for pattern, said in _YOU)
_THIRD_PERSON = {"is": "am", "has": "have", "does": "do", "was": "was", "doesn't": "don't", "isn't": "am not"}
_LEAST_NAME = 2


def is_about_the_user(sentence: str, user_id: str) -> bool:
    """Whether a sentence is about the user: named as the user, as "you", or by a user id that is a name.

    Args:
        sentence: The sentence as it was written, not normalised.
    """
    said = normal(sentence)
    hidden = masked(said)
    if phrases.ABOUT_THE_USER.search(hidden):
        return True
    if _PERSON.search(hidden) and not _MANY.search(hidden):
        return True
    own = _of_the_named(said, user_id)
    for pattern, word in _FIRST_PERSON:
        own = pattern.sub(word, own)
    return own != said and judge(own).kind == "user-profile"


def _of_the_named(said: str, user_id: str) -> str:
    """Turn a sentence that begins with the user's name into the first person; others stay."""
    name = user_id.split("@", maxsplit=1)[0]
    if len(name) < _LEAST_NAME or name.isdigit():
        return said
    found = re.match(rf"{re.escape(name)}(?P<own>'s|的)?(?P<rest> ?[^\s].*)", said, re.IGNORECASE)
    if not found:
        return said
    rest = found["rest"]
    if not name.isascii() or not rest.startswith(" "):
        return f"我{'的' if found['own'] else ''}{rest.strip()}"
    verb, _, tail = rest.strip().partition(" ")
    if found["own"]:
        return f"my {verb} {tail}"
    return f"I {_THIRD_PERSON.get(verb, verb.removesuffix('s'))} {tail}"
