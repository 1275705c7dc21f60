"""Find known people and identifiers in a text. English and Chinese, by rules."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import CJK, HAN, STOP_WORDS, terms

MAX_LENGTH = 64_000
"""Characters that are read: a record at its largest."""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:MAX_LENGTH]).replace("’", "'")


# --- people ----------------------------------------------------------------------------------------------

_LEXICON = lexicon("names")
_NO_PEOPLE = _LEXICON.words("roles")
_WORDS_TOO = _LEXICON.words("words_too")
_MONTHS = _LEXICON.words("months")
_TITLES = _LEXICON.words("titles")
_LETTER = rf"[^\W{CJK}]"
_CAPITALISED = re.compile(rf"(?<!{_LETTER})(?=[A-Z])[^\W\d_{CJK}]{{3,20}}(?!{_LETTER})")
_BEGINS = re.compile(r"(?:^|[.!?。！？:：\n])[\s\"'“‘(]*\Z")
_ALL_HAN = re.compile(f"[{HAN}]+")
_HAN_NAME = 3


@cache
def _kin() -> Mapping[str, frozenset[str]]:
    rows = (frozenset(chain(*map(_of_kin, row.split()))) for row in _LEXICON.listed("kin"))
    return {term: row for row in rows for term in row}


def _of_kin(word: str) -> Iterator[str]:
    yield from terms(word)[:1]
    if _ALL_HAN.fullmatch(word) and len(word) == 1:
        yield from (f"{pronoun}{word}" for pronoun in _LEXICON.words("pronouns"))


def kin(term: str) -> frozenset[str]:
    """The terms for the relation that a term of a question names, as "mother" and "mum"; empty for others."""
    return _kin().get(term, frozenset())


def named_people(query: str, speakers: Collection[str]) -> frozenset[str]:
    """The known people that a question names, spelled as in `speakers`.

    A name counts as a whole word, in any case and with a possessive ("eleanor's"); so does a first or last
    name that only one of them has, and the beginning of a first name ("Nat" for Natalie). A Chinese name, or
    the given name of one of three characters, counts anywhere. A name that is also a word ("Will", "May")
    needs a capital and a place inside the sentence. Roles ("user", 助手) are not people.
    """
    text = _plain(query)
    lowered = text.casefold()
    people, short = _people(frozenset(speakers))
    named = {each for each, name in people.items() if name.casefold() in lowered and _is_named(name, text)}
    for form, owner in short.items():
        if form in lowered and _is_named(form, text):
            named |= {each for each, name in people.items() if name == owner}
    for word in _nicknames(text):
        owners = {name for name in people.values() if name.casefold().startswith(word)}
        if len(owners) == 1:
            named |= {each for each, name in people.items() if name in owners}
    return frozenset(named)


@lru_cache(maxsize=64)  # those of a namespace seldom change
def _people(speakers: frozenset[str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The people among speakers, each as a text spells them, and short forms that one of them alone has."""
    people = {each: _plain(each).strip() for each in speakers}
    people = {each: name for each, name in people.items() if name and name.casefold() not in _NO_PEOPLE}
    short = _short_forms(people.values())
    return people, {form: next(iter(owners)) for form, owners in short.items() if len(owners) == 1}


def without_people(text: str, people: Collection[str]) -> str:
    """The text without the names of some people, whole or in part, possessives included."""
    forms = {form for name in people for form in (_plain(name).strip(), *_parts(_plain(name).strip()))}
    text = _plain(text)
    for form in sorted(filter(None, forms), key=len, reverse=True):
        name = re.escape(form)
        whole = name if _ALL_HAN.fullmatch(form) else rf"(?<!{_LETTER}){name}(?:'s)?(?!{_LETTER})"
        text = re.sub(whole, " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _is_named(name: str, text: str) -> bool:
    if _ALL_HAN.fullmatch(name):
        return len(name) > 1 and name in text
    pattern = rf"(?<!{_LETTER}){re.escape(name)}(?!{_LETTER})"
    if name.casefold() not in _WORDS_TOO:
        return re.search(pattern, text, re.IGNORECASE) is not None
    return any(
        match[0][0].isupper()
        and (
            text.startswith("'s", match.end())
            or not _BEGINS.search(text, max(0, match.start() - 8), match.start())
        )
        for match in re.finditer(pattern, text, re.IGNORECASE)
    )


def _short_forms(names: Collection[str]) -> dict[str, set[str]]:
    """First, last and given names → the full names that contain them."""
    forms: dict[str, set[str]] = {}
    for name in names:
        for form in _parts(name):
            forms.setdefault(form.casefold(), set()).add(name)
    whole = {name.casefold() for name in names}
    return {form: owners for form, owners in forms.items() if form not in whole}


def _parts(name: str) -> Iterator[str]:
    if _ALL_HAN.fullmatch(name):
        if len(name) == _HAN_NAME:
            yield name[1:]
        return
    words = name.split()
    if len(words) > 1:
        yield from (word for word in words if len(word) > 1 and word.casefold().strip(".") not in _TITLES)


def _nicknames(text: str) -> Iterator[str]:
    """Capitalised words that may be the beginning of a name."""
    for match in _CAPITALISED.finditer(text):
        word = match[0].casefold()
        if word not in STOP_WORDS and word not in _MONTHS and word not in _WORDS_TOO:
            yield word


# --- identifiers -----------------------------------------------------------------------------------------

_QUOTED = re.compile(
    r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^“”\n]{2,80})”|「([^「」\n]{2,80})」|『([^『』\n]{2,80})』"
    r"|《([^《》\n]{2,80})》|‘([^‘’\n]{2,80})’|'(?<![A-Za-z0-9]')([^'\n]{2,80})'(?![A-Za-z0-9])"
)
_CODE = re.compile(
    r"(?P<url>https?://[^\s\"'<>，。；）]{1,300})"
    r"|(?<!\w)(?!(?:[A-Za-z][a-z]*|[A-Z]+)(?![\w@/\\:+~-]|\.[\w@/\\.~+-]))(?:"  # at no plain word
    r"(?<![\w.+-])(?P<mail>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})"
    r"|(?<![\w./~-])(?P<path>(?:[A-Za-z]:)?[\w.~-]{0,60}(?:[/\\][\w.~-]{1,60}){1,16})"
    r"|(?<![\w.-])(?P<id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40})(?![\w-])"
    r"|(?<![\w.-])(?P<version>v\d{1,4}(?:\.\d{1,6}){0,3}|\d{1,4}(?:\.\d{1,6}){2,3})(?![\w.-]*\w)"
    r"|(?<![\w-])(?P<ticket>[A-Z][A-Z0-9]{1,9}-\d{1,7}|[A-Z]{1,4}\d{1,6}[A-Z]?|\#\d{1,7})(?![\w-])"
    r"|(?<![\w.])(?P<dotted>[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{0,60}){1,6})"
    r"|(?<!\w)(?P<snake>(?=_*[A-Za-z])[A-Za-z0-9]{0,60}(?:_{1,3}[A-Za-z0-9]{1,60}){1,12}_{0,3})(?!\w)"
    r"|(?<!\w)(?P<camel>[a-z]{1,40}(?:[A-Z][A-Za-z0-9]{0,40})|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{1,40}){1,8})(?!\w))",
    re.ASCII,
)
_TIME = re.compile(
    r"[QH][1-4]|FY\d{2,4}|(?:19|20)\d\d(?:[./-]\d{1,2}){1,2}|\d{1,2}(?:[/-]\d{1,4}){1,2}|\d{1,2}\.\d{1,2}\.(?:19|20)\d\d",
    re.I,
)
_FILE = re.compile(r"^[/\\~.]|^[A-Za-z]:|[/\\].*[/\\]|_|\w\.[A-Za-z]", re.ASCII)
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]", re.ASCII)
_TWO_SENTENCES = re.compile(r"[a-z]+\.[A-Z][a-z]*", re.ASCII)
SAME_SEGMENT = 0.8
"""The match of identifiers with the same last segment: flights.dep_delay and dep_delay."""


def identifiers(text: str) -> frozenset[str]:
    """The exact names in a text, in lower case: they tell records apart better than words do.

    Tables, columns and code (`arr_delay`, flights.dep_delay, camelCase), paths, addresses, tickets
    (AIR-12), versions (v2.1), hashes, and quotations and titles: "on-time rate", 「准点率」, 《…》. Dates,
    plain numbers and quarters do not count. The first 64,000 characters are read.
    """
    return _known(text) if len(text) <= _LONGEST_KNOWN else _identifiers(text)


def _identifiers(text: str) -> frozenset[str]:
    text = _plain(text)
    quoted = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    found = {" ".join(each.split()).casefold().strip(" .,;:!?，。；：！？") for each in quoted}
    found.update(match[0].rstrip(".,").casefold() for match in _CODE.finditer(text) if _is_identifier(match))
    return frozenset(each for each in found if len(each) > 1 and each not in STOP_WORDS)


_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=2_048)(_identifiers)  # the same records are found for many questions


def _is_identifier(match: re.Match[str]) -> bool:
    """Whether a match is an identifier: no date, no abbreviation, no words around a mark ("and/or")."""
    text = match[0]
    if _TIME.fullmatch(text):
        return False
    if match["path"]:
        return _FILE.search(text) is not None and any(c.isalpha() for c in text)
    if match["dotted"]:
        return not (_ABBREVIATION.fullmatch(text) or _TWO_SENTENCES.fullmatch(text))
    return True


def identifier_match(query_ids: Collection[str], record_ids: Collection[str]) -> float:
    """The share of a question's identifiers that a record holds, in [0, 1]; 0 for a question without any.

    An identifier with only the same last segment, such as a column without its table, counts 0.8. Both
    arguments come from `identifiers`.
    """
    if not query_ids:
        return 0.0
    tails = {_tail(each) for each in record_ids}
    return sum(_degree(each, record_ids, tails) for each in query_ids) / len(query_ids)


def _degree(identifier: str, record_ids: Collection[str], tails: Collection[str]) -> float:
    if identifier in record_ids:
        return 1.0
    return SAME_SEGMENT if identifier in tails or _tail(identifier) in record_ids else 0.0


def _tail(identifier: str) -> str:
    """The last segment: the column of a table, the file of a path with its ending."""
    separator = "/" if "/" in identifier else "\\" if "\\" in identifier else "."
    return identifier.rsplit(separator, 1)[-1]
