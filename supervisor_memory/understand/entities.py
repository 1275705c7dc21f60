"""Find the things that a text names: tables, files, people, organisations, titles. English and Chinese.

A name is found by its form: how it is written, or by the word that it ends or begins with. Whether it joins
two records is not decided here but by how few records of a namespace share it (`signals/walk.py`): so nothing
depends on a list of names, and a word taken for a name by mistake costs little.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Literal, TypeAlias

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.language.terms import CJK, HAN, STOP_WORDS, has_cjk, terms
from supervisor_memory.language.vocabulary import unusual, unusual_zh
from supervisor_memory.understand.dates import time_words
from supervisor_memory.understand.learned import is_ordinary
from supervisor_memory.understand.lineage import tables_by_words
from supervisor_memory.understand.mentions import signs_in
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.sql import query_of

EntityKind: TypeAlias = Literal[
    "table", "file", "identifier", "title", "person", "organization", "field", "name"
]

MOST_READ = 8_000
"""Characters of a text in which names are looked for."""
MOST = 64
"""Names of a text."""
LONGEST = 80
"""Characters of a name; what is longer is none."""

_LEXICON = lexicon("entities")
_ORGANIZATIONS = _LEXICON.words("organizations")
_FIELDS = _LEXICON.words("fields")
_TITLES = _LEXICON.words("titles")
_IN_A_NAME = "of|de|da|van|von|der|for|and"
_CAPITALS = "".join(each for each in map(chr, range(0x10000)) if each.isupper())  # of every script with case
_CAPITAL = rf"[{_CAPITALS}][^\W_{CJK}]*(?:[&'’.-][^\W_{CJK}]+){{0,4}}"
_NAME = re.compile(
    rf"(?<![\w{CJK}]){_CAPITAL}(?:[ \t]+(?:(?:{_IN_A_NAME})[ \t]+)?(?:{_CAPITAL}|\d{{1,4}})){{0,7}}(?!\w)"
)
_SURE = frozenset[EntityKind | None]({"table", "file", "identifier", "title"})
_LETTERS = re.compile(r"[^\W\d_]")
_BEGINS = re.compile(r"(?:\A|[.!?。！？:：;；\n])[\s\"'“‘(（]*\Z")
_FILE = re.compile(r"[\\/]|\.[a-z]{2,8}\Z")
_PARTICLES = "".join(_LEXICON.listed("particles_zh"))
_PARTICLE = re.compile(f"[{_PARTICLES}]")
_OWN = rf"(?:(?![{_PARTICLES}])[{HAN}])"
_DETERMINERS = "".join(_LEXICON.listed("determiners_zh"))
_COUNTED = f"(?<![{_DETERMINERS}])"  # 个部门 of 哪个部门 is no name
_WORD = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])", re.ASCII)
_OF_VERBS = ("ed", "ing")
_QUESTION_WORDS = lexicon("sentences")["question_words"]
_KINDS_ZH = alternatives([*_LEXICON.listed("things_zh"), *_LEXICON.listed("organizations_zh")])
_VERBS_FOLLOW = "".join(_LEXICON.listed("verbs_follow_zh"))
_THINGS = re.compile(rf"{_COUNTED}(?<![{_VERBS_FOLLOW}])({_OWN}{{2}})(?:{_KINDS_ZH})")
_ORGANIZATIONS_ZH = alternatives(_LEXICON.listed("organizations_zh"))
_WHOLE_ZH = alternatives(_LEXICON.listed("whole_organizations_zh"))
_TITLES_ZH = alternatives(_LEXICON.listed("titles_zh"))
_FIELDS_ZH = alternatives(_LEXICON.listed("fields_zh"))
_PREPOSITIONS = "".join(_LEXICON.listed("prepositions_zh"))
_SUBJECT = re.compile(
    rf"[{_PREPOSITIONS}]?(?!{_OWN}{{1,2}}(?:{_TITLES_ZH}))(?P<name>{_OWN}{{2,6}})(?=[{_PARTICLES}])"
)
_ENDINGS: tuple[tuple[EntityKind, re.Pattern[str]], ...] = (
    (
        "organization",
        re.compile(rf"{_COUNTED}{_OWN}{{1,8}}?(?:{_ORGANIZATIONS_ZH})(?!{_OWN}{{0,2}}(?:{_WHOLE_ZH}))"),
    ),
    (
        "person",
        re.compile(rf"(?<!{_OWN}){_OWN}{{1,2}}(?:{_TITLES_ZH})(?!{_OWN})"),
    ),
    ("field", re.compile(rf"{_OWN}{{1,4}}?(?:{_FIELDS_ZH})")),
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a question: whether it asks, and whether a sentence begins with it."""

    text: str
    asks: bool
    begins: bool


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that a text names, as it is spelled there; its kind is read off the form."""

    name: str
    kind: EntityKind

    @property
    def key(self) -> str:
        """The name as names are compared: without case, width and outer spaces."""
        return key_of(self.name)


def key_of(name: str) -> str:
    """The key of a name: without case, width and outer spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def entities(text: str) -> tuple[Entity, ...]:
    """The things that a text names, each once, at most 64; its first 8,000 characters are read."""
    return _known(text) if len(text) <= _LONGEST_KNOWN else _entities(text)


def _entities(text: str) -> tuple[Entity, ...]:
    found: dict[str, Entity] = {}
    for name, form in _names(text):
        entity = Entity(name, _kind_of(name, form))
        found.setdefault(entity.key, entity)
    return tuple(found.values())[:MOST]


def _names(text: str) -> Iterator[tuple[str, EntityKind | None]]:
    """The names in a text with the kinds that their forms tell, some twice; capitalised names have none yet,
    see `_kind_of`."""
    found = islice(_names_by_form(text[:MOST_READ]), 4 * MOST)
    return (each for each in found if 1 < len(each[0]) <= LONGEST)


def named_terms(text: str) -> frozenset[str]:
    """Collect the terms of all names in a text, and of words outside a large English vocabulary.

    Records that share them are about one thing, and not only alike in their words.
    """
    return _known_terms(text) if len(text) <= _LONGEST_KNOWN else _named_terms(text)


def joining_terms(text: str) -> frozenset[str]:
    """Collect the terms of names, and the pairs of Chinese characters that no common word has.

    A text is joined to another by what both name, and Chinese names have no form of their own. Nor does an
    ordinary pair count that the vocabulary lacks: 开会. Where two words meet there is such a pair, too, which
    hardly another text has.
    """
    return _known_joining(text) if len(text) <= _LONGEST_KNOWN else _joining_terms(text)


def surely_named(text: str) -> Mapping[str, frozenset[str]]:
    """The certain names in a text, each with its terms: identifiers, quotations, and several capitalised
    words after a sentence's first word."""
    found = [*_names(text)]
    sure = [name for name, kind in found if kind in _SURE]
    if any(" " in name for name, kind in found if kind is None):
        sure += [name for name, _ in _within_sentences(_plain(text)) if " " in name]
    return _with_terms(sure)


def perhaps_named(clauses: Iterable[Clause]) -> Mapping[str, frozenset[str]]:
    """The possible names in asking clauses, by their form, each with its terms.

    A capitalised word inside a clause; in Chinese what stands before the kind of a thing (鸿雁平台), and what
    a sentence begins with until its first particle. Of one that has several terms a record may hold any.
    Whoever is told ("let Ada know who owns it") is not asked about.

    Args:
        clauses: Those of the questions, as `questions.clauses_of_questions` tells them.
    """
    return _with_terms(chain.from_iterable(map(_perhaps, clauses)))


def rare_words(clauses: Iterable[Clause]) -> Mapping[str, frozenset[str]]:
    """The lower-case words in asking clauses that are not in the vocabulary, each with its term.

    None by its form a verb, or right behind a word that asks ("who rewrote", "which paediatrician").
    """
    found = list[str]()
    for clause in clauses:
        if clause.asks and (rare := frozenset(unusual(dict.fromkeys(terms(clause.text))))):
            words = pairwise(("", *_WORD.findall(clause.text.lower())))
            free = (word for before, word in words if not _QUESTION_WORDS.match(before))
            found += [word for word in free if not (rare.isdisjoint(terms(word)) or word.endswith(_OF_VERBS))]
    return _with_terms(found)


def _with_terms(names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(found) for name in names if (found := _whole(terms(name)))}


def _perhaps(clause: Clause) -> Iterator[str]:
    plain = _plain(clause.text)
    for name, end in _within_sentences(plain) if clause.asks and not plain[1:].islower() else ():
        word = name.removesuffix("'s")
        is_told = _QUESTION_WORDS.match(plain, end + 1)
        if " " not in word and len(word) > 1 and not (word.isupper() or is_told):
            yield word
    if has_cjk(plain):
        if thing := _THINGS.search(plain):
            yield thing[1]
        elif clause.begins and clause.asks and (subject := _SUBJECT.match(plain)):
            yield subject["name"]


def _capitalised(plain: str) -> Iterator[tuple[str, bool, int]]:
    """The capitalised names in a text, each with whether a sentence begins with it, and its end."""
    found = [*_NAME.finditer(plain)]
    signs = signs_in(plain) if found else ()
    for match in found:
        name = _without_stop_words(match[0])
        if not name or (signs and signs_in(name, signs) and _is_time(name, plain)):
            continue  # June and Friday join what has nothing else in common
        begins = name == match[0] and _BEGINS.search(plain, max(0, match.start() - 4), match.start())
        yield name, bool(begins), match.end()


def _within_sentences(plain: str) -> Iterator[tuple[str, int]]:
    """The capitalised names in a text without the word that begins a sentence, each with its end."""
    for name, begins, end in _capitalised(plain):
        if rest := _without_stop_words(name.partition(" ")[2]) if begins else name:
            yield rest, end


def _named_terms(text: str) -> frozenset[str]:
    names = [*dict.fromkeys(name for name, _ in _names(text))][:MOST]
    named = frozenset(term for name in names for term in _whole(terms(name)))
    words = dict.fromkeys(terms(text[:MOST_READ]))
    parts = chain.from_iterable(terms(word)[1:] for word in words if "_" in word)
    return named.union(unusual(words.keys() - named.union(parts)))


def _joining_terms(text: str) -> frozenset[str]:
    pairs = unusual_zh(dict.fromkeys(terms(text[:MOST_READ]))) if has_cjk(text) else ()
    return named_terms(text).union(
        pair for pair in pairs if not (_PARTICLE.search(pair) or is_ordinary(pair))
    )


def _whole(parts: Sequence[str]) -> Sequence[str]:
    """The terms of an identifier as a whole, not of its parts: `depot_9` and `depot_7` are two things."""
    return [term for term in parts if "_" in term] or parts


_LONGEST_KNOWN = 2_000
# The first hits of many questions are the same, and what joins two of them is asked for again.
_known, _known_terms = lru_cache(maxsize=2_048)(_entities), lru_cache(maxsize=1_024)(_named_terms)
_known_joining = lru_cache(maxsize=1_024)(_joining_terms)


def _names_by_form(text: str) -> Iterator[tuple[str, EntityKind | None]]:
    plain = _plain(text)
    if query_of(plain) is not None:
        tables = tables_by_words(plain)
        yield from ((name, "table") for name in sorted(tables.written | tables.read))
    for name in sorted(identifiers(text)):
        yield name, "identifier"
    yield from ((name, None) for name, begins, _ in _capitalised(plain) if " " in name or not begins)
    for kind, pattern in _ENDINGS if has_cjk(plain) else ():
        yield from ((match[0], kind) for match in pattern.finditer(plain))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("’", "'")


def _is_time(name: str, text: str) -> bool:
    return time_words(text).issuperset(name.casefold().removesuffix("'s").split())


def _kind_of(name: str, form: EntityKind | None) -> EntityKind:
    if form is None:
        return _kind_of_name(name)
    return _kind_of_identifier(name) if form == "identifier" else form


def _kind_of_identifier(name: str) -> EntityKind:
    if " " in name or re.search(f"[{CJK}]", name):
        return "file" if _FILE.search(name) else "title"
    return "file" if _FILE.search(name) and "." in name else "identifier"


def _without_stop_words(name: str) -> str:
    """A name without leading words such as "The", which only begin a sentence: "The Lantern squad"."""
    words = name.split()
    while words and words[0].casefold().partition("'")[0] in STOP_WORDS:  # It's, What's, I'd
        del words[0]
    while words and words[-1].casefold() in STOP_WORDS:
        del words[-1]
    return " ".join(words)


def _kind_of_name(name: str) -> EntityKind:
    first, *_, last = [word.casefold().strip(".") for word in (*name.split(), *name.split())]
    if first in _TITLES:
        return "person"
    if last in _ORGANIZATIONS or first == "university":
        return "organization"
    return "field" if last in _FIELDS else "name"


def shared(one: str, other: str, *, without: frozenset[str] = frozenset()) -> str:
    """The name that two texts share, as the first spells it: its longest name that the other holds, else the
    longest common run of words or characters; "" for none.

    Args:
        without: Terms that do not count, such as those of a question.
    """
    held = key_of(other[:MOST_READ])
    names = [e.name for e in entities(one) if e.key in held and not without.issuperset(terms(e.name))]
    return max(names, key=len, default="") or _run(one[:_COMPARED], other[:_COMPARED], without)


_COMPARED = 400
_PIECES = re.compile(rf"[{CJK}]|[^\W{CJK}]+")


def _run(one: str, other: str, without: frozenset[str]) -> str:
    """The longest common run; for each end in the first text, the longest run with that end is looked at."""
    mine, yours = list(_PIECES.finditer(one)), [each[0].casefold() for each in _PIECES.finditer(other)]
    best, before = "", [0] * (len(yours) + 1)
    for at, piece in enumerate(mine):
        row = [0] * (len(yours) + 1)
        for place, other_piece in enumerate(yours, start=1):
            if piece[0].casefold() == other_piece:
                row[place] = before[place - 1] + 1
        length = max(row)
        text = one[mine[at - length + 1].start() : piece.end()] if length else ""
        if len(text) > len(best) and not without.issuperset(terms(text)):
            best = text
        before = row
    return best.strip()
