"""Read relations in a text: one person advises another, a job fills a table, a thing has two names.

A frame (language/relations.toml) reads one clause. It need not know the things: what stands in its places is
taken as it is, so that "the revenue cockpit" is one, which has the form of no name.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.language.terms import CJK, HAN, STOP_WORDS
from supervisor_memory.understand.entities import LONGEST, MOST_READ, key_of
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.sql import query_of

SAME: Final = "same_as"
"""The relationship of two names of one thing."""
MOST: Final = 32
"""Relations of a text."""
_MOST_WORDS, _MOST_CHARACTERS = 7, 16
_SHORTEST_CLAUSE, _LONGEST_CLAUSE = 3, 240
_RELATIVE = re.compile(r"(?:who|which|that)\s", re.IGNORECASE)
_BRACKETS = re.compile(r"\s?[(（][^()（）]*[)）]")
_SENTENCES = re.compile(r"(?<=[^\s.])[.!?](?=\s|$)|[。！？；;\n]")
_IN_BRACKETS = re.compile(
    r"(?P<s>[^\s()（）,，。;；:：][^()（）,，。;；:：\n]{0,59}?)\s?[(（](?P<d>[^()（）\n]{2,60})[)）]"
)
_NAME_IN_BRACKETS = re.compile(
    rf"[\w./@-]*[_@/\d]\w*|[A-Z][\w-]*(?: [A-Z][\w-]*){{0,4}}|[\"“「`'].+|[{CJK}]{{2,8}}"
)
_HAN = re.compile(f"[{HAN}]")
_WORDS_ZH = re.compile(f"[{HAN}]+[?]?")
_LATIN = re.compile(r"[A-Za-z]{2}")
_PIECES = re.compile(rf"[{CJK}]|[^\W{CJK}]+")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of two things, with their names as the text spells them.

    Args:
        relationship: Such as "advised_by"; "same_as" says that both are names of one thing.
    """

    source: str
    relationship: str
    destination: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The key by which relations are compared."""
        return key_of(self.source), self.relationship, key_of(self.destination)


def relations(text: str) -> tuple[Relation, ...]:
    """The relations that a text tells, each once, at most 32; its first 8,000 characters are read."""
    if query_of(text) is not None:
        return ()
    plain = unicodedata.normalize("NFC", text[:MOST_READ]).replace("’", "'")
    found: dict[tuple[str, str, str], Relation] = {}
    for each in islice(_read_relations(plain), 2 * MOST):
        found.setdefault(each.key, each)
    return tuple(found.values())[:MOST]


def pieces(text: str) -> tuple[str, ...]:
    """Split a text for looking up names: into words, and each Chinese character by itself."""
    return tuple(
        each[0].casefold() for each in _PIECES.finditer(unicodedata.normalize("NFKC", text[:MOST_READ]))
    )


def _read_relations(text: str) -> Iterator[Relation]:
    clauses = lexicon("relations")["clauses"]
    subject: str | None = None
    last: str | None = None  # what "which" stands for; the subject is "it"
    for sentence in _SENTENCES.split(text):
        for place, clause in enumerate(map(str.strip, clauses.split(sentence))):
            if not _SHORTEST_CLAUSE <= len(clause) <= _LONGEST_CLAUSE:
                continue
            who = last if _RELATIVE.match(clause) else subject
            found = list(_in_clause(_RELATIVE.sub("it ", clause), who))
            if not found and place and subject:  # "…, filled by night_job": of what the clause before tells
                found = list(_in_clause(f"{subject} {clause}", subject))
            yield from found
            subject, last = (found[0].source, found[-1].destination) if found else (subject, last)


def _in_clause(clause: str, subject: str | None) -> Iterator[Relation]:
    yield from _aliases_in(clause)
    bare = _BRACKETS.sub("", clause)
    is_han, is_latin = bool(_HAN.search(bare)), bool(_LATIN.search(bare))
    for block, pattern, of_han in _frames():
        match = pattern.search(bare) if (is_han if of_han else is_latin) else None
        told = match and _relation(block, match, subject)
        if told:
            yield told


def _aliases_in(clause: str) -> Iterator[Relation]:
    """The names that stand in brackets behind another: "the revenue cockpit (dash_17)"."""
    for match in _IN_BRACKETS.finditer(clause):
        told = _label().sub("", match["d"].strip())
        if _NAME_IN_BRACKETS.fullmatch(told):
            source = _name_in_slot(_last_name(match["s"]))
            other = _name_in_slot(told)
            if source and other and key_of(source) != key_of(other):
                yield Relation(source, SAME, other)


@cache
def _label() -> re.Pattern[str]:
    """The word before a name in brackets that marks it as a name: "id", 编号."""
    nouns = "|".join(pattern.pattern for name, pattern in _tables("nouns") if name == SAME)
    return re.compile(rf"^(?:{nouns})(?![^\W{CJK}])[:：]?\s*", re.IGNORECASE)


_BEFORE_A_NAME = re.compile(
    r"\b(?:the|an?|our|my|of|from|by|in|on|to|at|and|is|are|was|reads|uses|with|for)\s", re.IGNORECASE
)


def _last_name(text: str) -> str:
    """The name at the end of a text: what follows its last small word."""
    return _BEFORE_A_NAME.split(text)[-1]


def _relation(block: Mapping[str, Any], match: re.Match[str], subject: str | None) -> Relation | None:
    groups = match.groupdict()
    source = _source(groups.get("s"), subject)
    destination = _name_in_slot(groups.get("d") or "")
    if source is None or not destination or key_of(source) == key_of(destination):
        return None
    relationship = block.get("relationship") or next(
        (
            _called(table, word)
            for table in ("nouns", "verbs", "active")
            if (word := groups.get(_GROUP[table]))
        ),
        "",
    )
    return Relation(source, relationship, destination) if relationship else None


_GROUP: Final = {"nouns": "noun", "verbs": "verb", "active": "active"}


def _source(told: str | None, subject: str | None) -> str | None:
    if told is None or _edged(told).casefold() in _words("pronouns"):
        return subject
    return _name_in_slot(told)


def _called(table: str, word: str) -> str:
    """The relationship that a word names: its entry in the table, else the word itself."""
    word = word.strip()
    for name, pattern in _tables(table):
        if re.search(rf"(?<![a-z])(?:{pattern.pattern})\Z", word, re.IGNORECASE):
            return name
    word = word.casefold().replace(" ", "_").replace("-", "_")
    return f"{word}_by" if table == "verbs" and word.isascii() else word


def _name_in_slot(text: str) -> str | None:
    """The name in a slot of a frame; None: the slot holds no possible name."""
    words = lexicon("relations")
    name = _edged(words["marks"].sub("", text))
    name = words["ends_zh"].sub("", name).strip() if len(name) > 3 else name  # noqa: PLR2004
    if words["no_name"].search(name):
        return None
    codes = {each for each in identifiers(text) if each in name.casefold()}
    if len(codes) == 1:  # "the job night_job" is night_job, 模型「雨燕」 is 雨燕
        [code] = codes
        at = name.casefold().find(code)
        name = name[at : at + len(code)]
    is_short = len(_HAN.findall(name)) <= _MOST_CHARACTERS and len(name.split()) <= _MOST_WORDS
    if not 1 < len(name) <= LONGEST or not is_short:
        return None
    parts = name.casefold().split()
    unnamed = _words("no_names")
    if name.casefold() in unnamed or parts[0] in unnamed or STOP_WORDS.issuperset(parts):
        return None
    return name


def _edged(text: str) -> str:
    """A text without articles and marks at its ends."""
    edges = lexicon("relations")["edges"]
    before = ""
    while text != before:
        before, text = text, edges.sub("", text).strip()
    return text


@cache
def _words(key: str) -> frozenset[str]:
    return lexicon("relations").words(key)


@cache
def _tables(name: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(lexicon("relations").patterns(name))


@cache
def _frames() -> tuple[tuple[Mapping[str, Any], re.Pattern[str], bool], ...]:
    """The frames, each with its pattern and whether it is for Chinese."""
    words = lexicon("relations")
    for table in ("nouns", "verbs"):
        told = (each for text in words.table(table).values() for each in _WORDS_ZH.findall(text))
        words.give(**{f"{table}_zh": f"(?:{'|'.join(sorted(told, key=len, reverse=True))})"})
    words.give(organizations_zh=f"(?:{alternatives(lexicon('entities').listed('organizations_zh'))})")
    frames = words.blocks("frames")
    return tuple((block, pattern, bool(_HAN.search(pattern.pattern))) for block, pattern in frames)
