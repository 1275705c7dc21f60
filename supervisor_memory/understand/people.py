"""Find the people a text is about: the user, or somebody the user names. English and Chinese.

"I am allergic" and "my son is allergic" share all their words but one, and are two facts.
"""

import re
import unicodedata
from dataclasses import dataclass

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.text.terms import has_cjk
from supervisor_memory.understand.statements import judge, masked, normal

__all__ = [
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


_PEOPLE = lexicon("people")
_NAMED = {word: name for name, words in _PEOPLE.table("people").items() for word in words}
_PEOPLE.give(
    english=alternatives(word for word in _NAMED if not has_cjk(word)),
    chinese=alternatives(filter(has_cjk, _NAMED)),
)
_OTHER = _PEOPLE.pattern("other")
_OTHER_ZH = _PEOPLE.pattern("other_zh")
_I = _PEOPLE.pattern("i")
_WE = _PEOPLE.pattern("we")
_HE = _PEOPLE.pattern("he")
_I_ZH = _PEOPLE.pattern("i_zh")
_WE_ZH = _PEOPLE.pattern("we_zh")
_I_AT_START = _PEOPLE.pattern("i_at_start")
_WE_AT_START = _PEOPLE.pattern("we_at_start")
_LEAD = _PEOPLE.pattern("lead")


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
    if _I_AT_START.match(text):
        return "i"
    return "we" if _WE_AT_START.match(text) else ""


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


_ABOUT_THE_USER = lexicon("wishes").pattern("about_the_user")
_PERSON = _PEOPLE.pattern("person")
_MANY = _PEOPLE.pattern("many")
_FIRST_PERSON = _PEOPLE.blocks("first_person")
_THIRD_PERSON = _PEOPLE.table("third_person")
_AFTER_NAME = _PEOPLE.text("after_name")
_LEAST_NAME = 2


def is_about_the_user(sentence: str, user_id: str) -> bool:
    """Whether a sentence is about the user: named as the user, as "you", or by a user id that is a name.

    Args:
        sentence: The sentence as it was written, not normalised.
    """
    said = normal(sentence)
    hidden = masked(said)
    if _ABOUT_THE_USER.search(hidden):
        return True
    if _PERSON.search(hidden) and not _MANY.search(hidden):
        return True
    own = _of_the_named(said, user_id)
    for block, pattern in _FIRST_PERSON:
        own = pattern.sub(block["put"], own)
    return own != said and judge(own).kind == "user-profile"


def _of_the_named(said: str, user_id: str) -> str:
    """Turn a sentence that begins with the user's name into the first person; others stay."""
    name = user_id.split("@", maxsplit=1)[0]
    if len(name) < _LEAST_NAME or name.isdigit():
        return said
    found = re.match(f"{re.escape(name)}{_AFTER_NAME}", said, re.IGNORECASE)
    if not found:
        return said
    rest = found["rest"]
    if not name.isascii() or not rest.startswith(" "):
        return f"我{'的' if found['own'] else ''}{rest.strip()}"
    verb, _, tail = rest.strip().partition(" ")
    if found["own"]:
        return f"my {verb} {tail}"
    return f"I {_THIRD_PERSON.get(verb, verb.removesuffix('s'))} {tail}"
