"""Attributes with one value at a time: a home, an employer, a manager, a name, a currency.

A text that states such a value and nothing else replaces an earlier one, even if it announces no change. A
sentence that says more is left to `compare`. To teach an attribute, add a row to `_ATTRIBUTES`.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from supervisor_memory.understand.people import SURNAMES

__all__ = ["Stated", "same_attribute", "stated"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A stated attribute: its holder in `whose` ("i", "we", "son"), its name, and its value."""

    whose: str
    attribute: str
    value: str


_NAME = r"(?-i:[A-Z][\w'’&.-]*(?: (?:[A-Z][\w'’&-]*|of|de|la|am|and|&)){0,3})"
_PLACE = rf"(?P<value>{_NAME})(?:, {_NAME})?"
_WHO = r"(?P<whose>i|we|(?:my|our) (?:[a-z][\w-]* ){0,2}[a-z]+(?-i:(?: [A-Z]\w+)?)|he|she|(?-i:[A-Z]\w+))"
_NOW = r"(?: now| currently| these days| at the moment| nowadays)?"
_BE = r"(?: am|'m| is|'s| are|'re| was| were)"
_ADVERB = r"(?: now| currently| still| actually)?"
_HOLDS = r"(?:'s| is| has changed to| changed to| was changed to| is now| is currently|:)"
_ATTRIBUTES = """
name: name, full name | 名字, 姓名 | any
first name: first name | | any
last name: last name, surname | | any
nickname: nickname | 昵称, 网名 | any
username: username, user name, login, handle | 用户名 | any
manager: manager, line manager | 经理, 直属领导 | person
boss: boss | 老板, 上司, 领导 | person
supervisor: supervisor | 主管 | person
team lead: team lead, team leader | 组长 | person
wife: wife | 妻子, 老婆, 太太 | person
husband: husband | 丈夫, 老公 | person
partner: partner, spouse | 爱人 | person
girlfriend: girlfriend | 女朋友 | person
boyfriend: boyfriend | 男朋友 | person
mother: mother, mum, mom | 妈妈, 母亲 | person
father: father, dad | 爸爸, 父亲 | person
doctor: doctor, gp | 医生 | person
dentist: dentist | 牙医 | person
assistant: assistant | 助理 | person
mentor: mentor | 导师 | person
landlord: landlord | 房东 | person
lawyer: lawyer | 律师 | person
accountant: accountant | 会计 | person
email: email, e-mail, email address | 邮箱, 电子邮箱 | figure
work email: work email | 工作邮箱 | figure
phone: phone, phone number | 电话, 电话号码 | figure
mobile: mobile, mobile number | 手机, 手机号 | figure
address: address, home address | 地址, 住址, 家庭住址 | figure
time zone: time zone, timezone | 时区 | any
currency: currency, base currency, home currency, reporting currency | 货币, 本位币, 记账货币, 结算货币 | any
title: job title, title, position, occupation, profession | 职位, 岗位, 职务, 头衔, 职业 | text
employer: employer, company | 公司, 单位, 雇主 | any
department: department | 部门 | any
birthday: birthday, date of birth | 生日, 出生日期 | figure
home town: home town, hometown | 家乡, 老家 | any
nationality: nationality, citizenship | 国籍 | any
age: age | 年龄 | figure
height: height | 身高 | figure
weight: weight | 体重 | figure
shoe size: shoe size | 鞋码 | figure
blood type: blood type | 血型 | any
mother tongue: native language, mother tongue | 母语 | any
bank: bank | 开户行 | any
salary: salary | 工资, 薪水 | figure
rent: rent | 房租, 月租 | figure
airport: home airport | 常用机场 | any
head office: head office, headquarters | 总部 | any
deadline: deadline, due date | 截止日期, 截止时间 | figure
budget: budget | 预算 | figure
"""
"""Attribute: English names | Chinese names | the kind of its values, a key of `_LOOKS`."""
_ROWS = [re.split(r"[:|]", line) for line in _ATTRIBUTES.split("\n") if line]
_NAMES = {
    word.strip(): (name, looks.strip())
    for name, english, chinese, looks in _ROWS
    for word in f"{english},{chinese}".split(",")
    if word.strip()
}
_BY_LENGTH = sorted(_NAMES, key=len, reverse=True)
_ENGLISH = "|".join(word for word in _BY_LENGTH if word.isascii())
_CHINESE = "|".join(word for word in _BY_LENGTH if not word.isascii())
_VALUE = r"(?P<value>[^\s,;:.!?][^,;!?]{0,40}?)"
_VALUE_ZH = r"(?P<value>[^，。；！？,;!?不没的]{1,20}?)"
_WHO_ZH = r"(?P<whose>我们|我|他|她|我的?[\u4e00-\u9fff]{1,4})"
_NOW_ZH = r"(?:现在|目前|如今|已经?|仍然?|还|一直|最近)*"
_END = r"[.!]*$"
_END_ZH = r"(?:了|的|啦)?[。！!.]*$"
_PLACES_ZH = r"[一二三四五六七八九十\d]|楼|层|室"

_LONGEST = 200
_LEAD = re.compile(
    r"^(?:(?:by the way|fyi|actually|so|ok|well|now|these days|update|correction)[,:]? |(?:另外|其实|现在|"
    r"更新)[,，:：]?)",
    re.IGNORECASE,
)
_PATTERNS = tuple(
    (attribute, re.compile(pattern, re.IGNORECASE))
    for attribute, pattern in (
        ("home", rf"^{_WHO}(?:{_BE} (?:based|living|residing) in|{_ADVERB} (?:live|reside)s? in) "
         rf"{_PLACE}{_NOW}{_END}"),
        ("birthplace", rf"^{_WHO}{_BE} born in {_PLACE}{_END}"),
        ("employer", rf"^{_WHO}(?:{_ADVERB} works?|{_BE} (?:working|employed)) (?:at|for|by) "
         rf"{_PLACE}{_NOW}{_END}"),
        ("title", rf"^{_WHO}(?:{_ADVERB} works?|{_BE} working) as (?:an? |the )?(?P<value>[\w "
         rf"-]{{2,40}}?){_NOW}{_END}"),
        ("name", rf"^(?P<whose>i|my \w+){_BE} (?:called|named) {_PLACE}{_END}"),
        ("name", rf"^(?P<whose>i) go by {_PLACE}{_END}"),
        ("birth year", rf"^{_WHO}{_BE} born in (?P<value>\d{{4}}){_END}"),
        ("age", rf"^{_WHO}{_BE} (?P<value>\d{{1,3}}(?: years old)?){_NOW}{_END}"),
        ("of", rf"^(?P<whose>my|our|(?:my|our) [a-z]+'s|(?-i:[A-Z]\w+)'s) (?:new |current "
         rf")?(?P<of>{_ENGLISH}){_HOLDS} (?:now )?(?:in |at )?{_VALUE}{_NOW}{_END}"),
        ("home", rf"^{_WHO_ZH}{_NOW_ZH}(?:居?住在|定居在?|家在|搬[到去]|"
         rf"搬家到)了?(?!.*(?:{_PLACES_ZH})){_VALUE_ZH}(?:住|生活|定居)?{_END_ZH}"),
        ("birthplace", rf"^{_WHO_ZH}(?:出生[在于]|生于)(?!\d|.*年){_VALUE_ZH}{_END_ZH}"),
        ("workplace", rf"^{_WHO_ZH}{_NOW_ZH}在{_VALUE_ZH}(?:上班|工作|任职|就职|打工){_END_ZH}"),
        ("name", rf"^(?P<whose>我)(?:现在)?(?:的名字)?(?:改?名?叫|姓){_VALUE_ZH}{_END_ZH}"),
        ("of", rf"^(?P<whose>我们|我|他|她|"
         rf"我的?[\u4e00-\u9fff]{{1,3}}的)的?(?P<of>{_CHINESE}){_NOW_ZH}(?:就?是|叫|为|改[为成]|换[为成]?|"
         rf"变[为成])了?{_VALUE_ZH}{_END_ZH}"),
    )
)  # fmt: skip
_OPEN = re.compile(
    r"\b(?:and|or|but|because|who|which|that|when|where|with|also|too|very|so|not|no|never|always|often|"
    r"from|both|either|never|unknown|secret|wrong|new|old|different)\b|和(?![田平县政])|或|也|但|以及|"
    r"[的人]$",
    re.IGNORECASE,
)
"""Words in a value that is no plain name or figure: "from Spain", "wrong"."""
_LOOKS = {
    "person": re.compile(rf"{_NAME}|(?:[小老阿]|[{SURNAMES}])[\u4e00-\u9fff]{{1,3}}"),
    "figure": re.compile(r".*[\d@].*|.*月.*[日号]"),
    "text": re.compile(r".+"),
    "any": re.compile(r"(?-i:[A-Z].*)|.*\d.*|[^\x00-\x7f].*"),
}
_PLACES = re.compile(
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|郑州|青岛|济南|大连|厦门|福州|合肥|"
    "昆明|"
    "贵阳|南宁|南昌|太原|沈阳|长春|哈尔滨|石家庄|兰州|银川|西宁|拉萨|乌鲁木齐|呼和浩特|海口|三亚|宁波|无锡|"
    "佛山|"
    "东莞|珠海|香港|澳门|台北|东京|伦敦|巴黎|纽约|柏林|新加坡|首尔|悉尼|.*[省市县区镇村国州岛]"
)


def stated(text: str) -> Stated | None:
    """The attribute that a text states; None if it states none, or says more than that."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:_LONGEST]).replace("’", "'").split())
    return next(_found(_LEAD.sub("", plain)), None) if len(text) < _LONGEST else None


def same_attribute(one: Stated | None, other: Stated | None) -> bool:
    """Whether two texts state different values for the same attribute and holder."""
    return (
        one is not None
        and other is not None
        and (one.whose, one.attribute) == (other.whose, other.attribute)
        and not _is_part(one.value, other.value)
    )


def _is_part(one: str, other: str) -> bool:
    """Whether one value is part of the other: Ada, and Ada Lovelace."""
    return (
        one in other or other in one
        if not one.isascii()
        else _words(one) <= _words(other) or _words(other) <= _words(one)
    )


def _words(value: str) -> frozenset[str]:
    return frozenset(value.split())


def _found(text: str) -> Iterator[Stated]:
    for attribute, pattern in _PATTERNS:
        if (match := pattern.match(text)) is None:
            continue
        value = match["value"].strip()
        name, looks = _NAMES[match["of"].casefold()] if attribute == "of" else (attribute, "")
        if _OPEN.search(value) or (looks and not _LOOKS[looks].fullmatch(value)):
            continue
        if name == "workplace":
            name = "workplace, a place" if _PLACES.match(value) else "employer"
        yield Stated(_holder(match["whose"]), name, value.casefold().strip(" .'\""))


def _holder(whose: str) -> str:
    word = whose.casefold().removesuffix("'s").removesuffix("的")
    if word in ("i", "my", "我"):
        return "i"
    return "we" if word in ("we", "our", "我们") else re.sub(r"^(?:my|our) |^我们?的?", "", word)
