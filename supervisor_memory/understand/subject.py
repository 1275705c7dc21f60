"""Find the subject, property and value of a preference. English and Chinese.

To teach a new property, add a table to subjects.toml. A preference that touches two properties keeps none
of them: it would be replaced as a whole when only one of them changes.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.language.terms import has_cjk
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.statements import MASK, MAX_SENTENCE, judge, masked, normal


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
_NAMED = _PEOPLE.meanings("kin") | _PEOPLE.meanings("people")
_PEOPLE.give(
    english=alternatives(word for word in _NAMED if not has_cjk(word)),
    chinese=alternatives(filter(has_cjk, _NAMED)),
)


def people(text: str) -> People:
    """Find the people a text is about; its first 2,000 characters are read."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:2_000]).replace("’", "'").split())
    plain = plain[match.end() :] if (match := _PEOPLE["lead"].match(plain)) else plain
    others: dict[str, bool] = {}
    starts: list[int] = []
    for match in _PEOPLE["other"].finditer(plain):
        who = (match["who"] or match["plural"]).casefold()
        of = match["of"] or match["bare"] or ""
        others[f"{of}{_NAMED.get(who, who)}".casefold()] = bool(of or match["own"])
        starts.append(match.start())
    is_chinese = not plain.isascii()
    for match in _PEOPLE["other_zh"].finditer(plain) if is_chinese else ():
        if len(match["who"]) == 1 and not match["own"]:
            continue  # 热狗 is no dog
        others[f"{match['of'] or ''}{_NAMED[match['who']]}"] = bool(match["of"] or match["own"])
        starts.append(match.start())
    rest = _PEOPLE["other"].sub(" ", plain) if starts else plain
    rest = _PEOPLE["other_zh"].sub(" ", rest) if is_chinese else rest
    if match := _PEOPLE["he"].match(plain):
        others["he" if (match["he"] or match["zh"]).casefold() in ("he", "他") else "she"] = False
        starts.append(0)
    own = _PEOPLE["we"].sub(" ", rest)
    leads = bool(starts) and min(starts) == 0
    return People(
        is_i=bool(_PEOPLE["i"].search(own) or _PEOPLE["i_zh"].search(rest)),
        is_we=bool(_PEOPLE["we"].search(rest) or _PEOPLE["we_zh"].search(rest)),
        others=frozenset(others),
        known=frozenset(name for name, is_known in others.items() if is_known),
        leads=leads,
        subject="other" if leads else _person_of(plain),
    )


def _person_of(text: str) -> str:
    if _PEOPLE["i_at_start"].match(text):
        return "i"
    return "we" if _PEOPLE["we_at_start"].match(text) else ""


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
    if _PEOPLE["person"].search(hidden) and not _PEOPLE["many"].search(hidden):
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


@dataclass(frozen=True, slots=True)
class About:
    """Subject, attribute and value of a statement; each None if it is unknown."""

    subject: str | None = None
    attribute: str | None = None
    value: str | None = None


_LEXICON = lexicon("subjects")
_PROPERTIES = tuple(
    (name, each["said_of"], _LEXICON.patterns(f"properties.{name}.values"))
    for name, each in _LEXICON.table("properties").items()
)
"""Each property: its name, its default subject, and its values."""
_DIGITS = {word: str(n) for n, words in enumerate(_LEXICON.listed("digits")) for word in words.split()}
_STANDING = lexicon("wishes").pattern("preferences.standing-instruction")
_SUBJECTS = _LEXICON.patterns("subjects")
_GENERIC_PURPOSES = _LEXICON.words("generic_purposes")


def about_preference(text: str) -> About:
    """Subject, attribute and value of a preference; all None unless it has exactly one known property."""
    wish = _after_the_turn(normal(text[:MAX_SENTENCE]))
    found = _find_properties(wish)
    if len(found) != 1:
        return About()
    [(name, said_of, value, avoided)] = found
    subject = said_of if said_of == "user" else _subject(wish, said_of)
    subject = (name == "verbosity" and _measured_thing(wish)) or subject
    who = people(text[:MAX_SENTENCE])
    if who.leads and said_of != "user":
        subject = f"{min(who.others)}'s {subject}"
    if avoided:
        return About(subject, f"avoids-{value.replace(' ', '-')}", "yes")
    return About(subject, name, value)


def properties_of(text: str) -> tuple[str, ...]:
    """The properties a preference touches, as tags."""
    return tuple(
        dict.fromkeys(name for name, *_ in _find_properties(_after_the_turn(normal(text[:MAX_SENTENCE]))))
    )


def _after_the_turn(text: str) -> str:
    """Cut the text before a clause like "from now on": 这次用列表，以后还是用表格."""
    clauses = re.split(r"[,;] ?", text)
    lasting = [clause for clause in clauses if _STANDING.search(clause)]
    return text[text.index(lasting[0]) :] if lasting and _STANDING.search(text) else text


@lru_cache(maxsize=256)
def _find_properties(text: str) -> Sequence[tuple[str, str, str, bool]]:
    """Find (property, default subject, value, whether it is to be avoided)."""
    hidden = _without_names(masked(text))
    wanted = _LEXICON["contrast"].sub(lambda match: match["kept"] or "", hidden)
    return [*_facts(text), *_of_properties(wanted, avoided=False)] or [*_of_properties(hidden, avoided=True)]


def _without_names(text: str) -> str:
    """The text with the names of files, tables and columns masked: `depots.xlsx` asks for no spreadsheet."""
    for name in identifiers(text):
        text = re.sub(re.escape(name), MASK * len(name), text, flags=re.IGNORECASE)
    return text


def _facts(text: str) -> Iterator[tuple[str, str, str, bool]]:
    if match := _LEXICON["name"].search(text):
        name = next(g for g in match.groups() if g)
        avoided = bool(_LEXICON["avoids"].search(text[: match.start()][-12:]))
        yield "name", "user", name.strip(" .'").casefold(), avoided
    if match := _LEXICON["fact"].search(text):
        told = (match["what"] or match["what_zh"]).casefold()
        what = _LEXICON.table("facts_zh").get(told, told)
        value = (match["is"] or match["is_zh"]).strip(" .。").casefold()
        yield what.replace("timezone", "time zone"), "user", value, False


def _of_properties(text: str, *, avoided: bool) -> Iterator[tuple[str, str, str, bool]]:
    negative = avoided or bool(_LEXICON["avoids"].search(text))
    for name, said_of, patterns in _PROPERTIES:
        if name == "language" and _LEXICON["own_acts"].search(text):
            continue
        for value, pattern in patterns:
            if match := pattern.search(text):  # which may name the value itself
                yield name, said_of, match.groupdict().get("value", value).casefold(), negative
    for match in _LEXICON["decimals"].finditer(text):
        digit = (match["zh"] or match["en"] or "0").casefold()
        yield "decimals", "number", _DIGITS.get(digit, digit), negative


def _measured_thing(text: str) -> str | None:
    """The subject that is to be short or detailed, if it is not the answers: "short meetings"."""
    match = _LEXICON["brief"].search(text)
    named = (match[name] for name in ("after", "before", "zh", "zhafter")) if match else ()
    found = (word.casefold() for word in named if word and not _LEXICON["answers"].fullmatch(word))
    return next((word.removesuffix("s") for word in found), None)


def _subject(text: str, said_of: str) -> str:
    match = _LEXICON["purpose"].search(text)
    purpose = (match["en"] or match["zh"]).casefold().strip() if match else ""
    if purpose and purpose not in _GENERIC_PURPOSES:
        return purpose
    return next((name for name, pattern in _SUBJECTS if name != said_of and pattern.search(text)), said_of)


@dataclass(frozen=True, slots=True)
class Stated:
    """A stated attribute: its holder in `whose` ("i", "we", "son"), its name, and its value.

    `has_several`: there may be more than one value at a time, and a new one takes the place of the known one
    only where a change is told.
    """

    whose: str
    attribute: str
    value: str
    has_several: bool = False


_ATTRIBUTES = lexicon("attributes")
_NAMES = {
    word: (name, looks)
    for looks in _ATTRIBUTES.table("attributes")
    for word, name in _ATTRIBUTES.meanings(f"attributes.{looks}").items()
}
_BY_LENGTH = sorted(_NAMES, key=len, reverse=True)
_ATTRIBUTES.give(
    english="|".join(word for word in _BY_LENGTH if word.isascii()),
    chinese="|".join(word for word in _BY_LENGTH if not word.isascii()),
)

_LONGEST = 200
_PATTERNS = _ATTRIBUTES.blocks("patterns")
_LOOKS = dict(_ATTRIBUTES.patterns("looks"))


def stated(text: str) -> Stated | None:
    """The attribute that a text states; None if it states none, or says more than that."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:_LONGEST]).replace("’", "'").split())
    return next(_attribute_in(_ATTRIBUTES["lead"].sub("", plain)), None) if len(text) < _LONGEST else None


def same_attribute(some: Iterable[Stated], others: Iterable[Stated], *, is_told: bool) -> bool:
    """Whether two texts state different values for the same attribute and holder.

    Args:
        is_told: Whether the later one tells a change.
    """
    return any(
        (one.whose, one.attribute) == (other.whose, other.attribute)
        and not _is_part(one.value, other.value)
        and (is_told or not (one.has_several or other.has_several))
        for one in some
        for other in others
    )


def _is_part(one: str, other: str) -> bool:
    """Whether one value is part of the other: Ada, and Ada Lovelace."""
    if not one.isascii():
        return one in other or other in one
    some, others = set(one.split()), set(other.split())
    return some <= others or others <= some


def _attribute_in(text: str) -> Iterator[Stated]:
    for block, pattern in _PATTERNS:
        if (match := pattern.match(text)) is None:
            continue
        attribute, value = block["name"], match["value"].strip()
        name, looks = _NAMES[match["of"].casefold()] if attribute == "of" else (attribute, "")
        if _ATTRIBUTES["open"].search(value) or (looks and not _LOOKS[looks].fullmatch(value)):
            continue
        if name == "workplace":
            name = "workplace, a place" if _ATTRIBUTES["places"].match(value) else "employer"
        whose = _holder(match["whose"])
        if name == "home" and whose == "we":  # with whom the user lives
            whose = "i"
        yield Stated(whose, name, value.casefold().strip(" .'\""), "several" in block)


def _holder(whose: str) -> str:
    word = whose.casefold().removesuffix("'s").removesuffix("的")
    if word in ("i", "my", "我"):
        return "i"
    return "we" if word in ("we", "our", "我们") else _ATTRIBUTES["own"].sub("", word)
