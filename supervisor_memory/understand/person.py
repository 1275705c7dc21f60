"""Whether a sentence of somebody else is about the user's person: who that is, how they live, what they like.

"The user is allergic to peanuts", "Ada's manager is Bo", "您住在上海". The user table is no person, nor are
the users of a product.
"""

import re

from supervisor_memory.language import phrases
from supervisor_memory.understand.statements import judge, masked, normal

__all__ = ["is_about_the_user"]

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
    """Whether it tells of the user: named as the user, as "you", or by the id where that is a name.

    Args:
        sentence: As it was written.
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
    """The sentence as the user would say it, where it begins with the user's name."""
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
