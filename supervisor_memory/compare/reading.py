"""What one text says, as far as comparing it with another needs: each trait is read at its first use."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import islice

from supervisor_memory.compare.slots import Slots, plain
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import STOP_WORDS, stem, terms
from supervisor_memory.model.records import cased_words, content_hash
from supervisor_memory.understand.statements import sentences
from supervisor_memory.understand.subject import People, Stated, people, stated

_MOST_READ, _MOST_SENTENCES = 8_000, 12
_MOST_TOKENS = 400
_MOST_IN_CLAUSES, _MOST_CLAUSES = 400, 6
_HEAD = 0.34
_LEAST_OPENING = 4  # characters
_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]")
_ONE_PERSON = {"she": "he", "her": "his", "him": "his", "她": "他"}
_FIRST = 4  # terms that open a text: mostly what it is about
_LEXICON = lexicon("pairs")
_EMPTY = _LEXICON.words("particles") | STOP_WORDS
_COMMON = lexicon("common")
_NUMERALS = _LEXICON.words("numerals").union(
    _COMMON.words("small_numbers"), _COMMON.words("tens"), *_COMMON.listed("digits_zh")
)
_FEELING = _LEXICON.words("feeling")
_NOBODY = _LEXICON.words("empty_zh")
_CORRECTION = lexicon("facts").pattern("correction")
_CONDITION = lexicon("sentences").pattern("condition")
_CLAUSE_END = lexicon("sessions").pattern("clause_ends")


class Reading:
    """A text with the traits for comparing it; each trait is found when it is first asked for.

    `sentences` are its first ones, each with its hash.
    `attitude` is 1 for a liking, -1 for a dislike, 0 for indifference, None without any of them; `liked` are
    the other words then: the liked thing, and who likes it.
    `subject` is the number of leading tokens that name the sentence's subject, `numbered` the numbers among
    them; `topic` are the tokens before the verb.
    `about` are the tokens of what a text of one clause tells something of, whatever its verb; empty where
    that is the user, or unknown. `where` are those of a place or purpose before it ("at home I …"); `owner`
    is whose the first thing is, "i" for the user. `is_unreal` says that the text tells what is not so:
    supposed, wished for, or denied of others; `is_supposed` that it tells what follows from a condition, and
    no change behind it, as "if you wonder, we now …" does.
    `said_to_be` are the tokens of what it says to be something: "my aide" of "my aide is a baker".
    `attributes` are the attributes that it tells of, by their words ("its owner is …"), `defined` those of
    the term whose meaning it states; `is_defining` says that it does so by a verb of defining.
    `relative` are words that say which year, month or week by today: this, last, 去.
    `adds` says that the text tells something further ("also", 也), `announces` that it announces a change,
    `corrects` that it puts something right, `ends` that
    something no longer holds; `dropped` are the words of what it says is over: "the Skoda" of "the Skoda is
    gone", "instead of the blue"; `former` are these and, in Chinese, the words of what it says was so before
    a change: 总部 of 从总部搬到…. `states` are the attributes that its first `clauses` state. `words` are all
    its words and Chinese characters, which are counted without telling her from him. `letters` counts three
    letters in a row, two in a text with other characters.
    """

    def __init__(self, text: str) -> None:
        self.said = text

    @cached_property
    def text(self) -> str:
        return plain(self.said)

    @cached_property
    def sentences(self) -> tuple[tuple[str, str], ...]:
        told = islice(sentences(self.said[:_MOST_READ]), _MOST_SENTENCES)
        return tuple((content_hash(each), each) for each in told)

    @cached_property
    def slots(self) -> Slots:
        return Slots(self.text)

    @cached_property
    def opening(self) -> Slots:
        return Slots(self.text[: _opening(self.text)])

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))

    @cached_property
    def first(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(terms(self.text)))[:_FIRST]

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(_LEXICON["changes"].sub(" ", self.text) or self.text)[:_MOST_TOKENS]

    @cached_property
    def subject(self) -> int:
        return _subject(self.text)

    @property
    def numbered(self) -> tuple[str, ...]:
        return tuple(filter(is_number, self.tokens[: self.subject]))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.tokens)

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_WORD.findall(self.text.casefold()))

    @cached_property
    def words_counted(self) -> Mapping[str, int]:
        return Counter(_ONE_PERSON.get(each, each) for each in self.words)

    @cached_property
    def letters(self) -> Mapping[str, int]:
        text = self.text.casefold()
        length = 3 if text.isascii() else 2
        return Counter(text[n : n + length] for n in range(len(text) - length + 1))

    @cached_property
    def topic(self) -> frozenset[str]:
        return _topic(self.text)

    @cached_property
    def said_to_be(self) -> tuple[str, ...]:
        found = _LEXICON["said_to_be"].match(_LEXICON["changes"].sub(" ", self.text))
        return tokens_of(found["en"] or found["zh"]) if found else ()

    @cached_property
    def about(self) -> frozenset[str]:
        found = _LEXICON["told_of"].match(self.text) if self.is_one_clause else None
        return frozenset(tokens_of(found["en"] or found["zh"])) - _NOBODY if found else frozenset()

    @cached_property
    def where(self) -> frozenset[str]:
        found = _LEXICON["where"].match(self.text)
        return frozenset(tokens_of(found["en"])) if found else frozenset()

    @cached_property
    def owner(self) -> str:
        found = _LEXICON["owner"].match(self.text)
        return "" if found is None else (found["en"] or found["zh"] or "i").casefold()

    @cached_property
    def is_one_clause(self) -> bool:
        return len(_CLAUSE_END.split(_LEXICON["led_in"].sub("", self.text).strip(" .!?。！？"))) == 1

    @cached_property
    def is_unreal(self) -> bool:
        return _LEXICON["unreal"].search(self.text) is not None

    @cached_property
    def is_supposed(self) -> bool:
        if _CONDITION.match(self.text) is None:
            return False
        clauses = _CLAUSE_END.split(self.text, maxsplit=1)
        return len(clauses) == 1 or _LEXICON["changes"].search(clauses[-1]) is None

    @cached_property
    def attributes(self) -> frozenset[tuple[str, ...]]:
        told = _LEXICON["attribute"].finditer(self.text)
        return frozenset(filter(None, (tokens_of(each[each.lastgroup or 0]) for each in told)))

    @cached_property
    def is_defining(self) -> bool:
        return _LEXICON["defines"].match(self.text) is not None

    @cached_property
    def defined(self) -> frozenset[str]:
        found = _LEXICON["defines"].match(self.text) or _LEXICON["means"].match(self.text)
        return frozenset(tokens_of(found["what"] or found["zh"])) if found else frozenset()

    @cached_property
    def announces(self) -> bool:
        return _LEXICON["changes"].search(self.text) is not None

    @cached_property
    def ends(self) -> bool:
        return _LEXICON["ends"].search(self.text) is not None

    @cached_property
    def adds(self) -> bool:
        return _LEXICON["adds"].search(self.text) is not None

    @cached_property
    def corrects(self) -> bool:
        return _CORRECTION.match(self.text) is not None

    @cached_property
    def dropped(self) -> frozenset[str]:
        named = (match[match.lastgroup or 0] for match in _LEXICON["dropped"].finditer(self.text))
        return frozenset(token for each in named for token in tokens_of(each))

    @cached_property
    def former(self) -> frozenset[str]:
        named = (match[match.lastgroup or 0] for match in _LEXICON["former"].finditer(self.text))
        return self.dropped.union(*map(tokens_of, named))

    @cached_property
    def states(self) -> tuple[Stated, ...]:
        if self.stated is not None:
            return (self.stated,)
        if not (self.announces or self.corrects or self.dropped):
            return ()
        return tuple(filter(None, map(stated, self.clauses)))

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        return tuple(filter(None, _CLAUSE_END.split(self.said[:_MOST_IN_CLAUSES])))[:_MOST_CLAUSES]

    @cached_property
    def states_one(self) -> bool:
        return _LEXICON["states_one"].search(self.text) is not None

    @cached_property
    def attitude(self) -> int | None:
        return _attitude(self.text)

    @cached_property
    def liked(self) -> frozenset[str]:
        lasting = _LEXICON["changes"].sub(" ", self.text)
        return frozenset(tokens_of(_LEXICON["attitudes"].sub(" ", lasting))) - _FEELING

    @cached_property
    def relative(self) -> frozenset[str]:
        return frozenset(match[0].casefold() for match in _LEXICON["relative"].finditer(self.text))

    @cached_property
    def people(self) -> People:
        return people(self.said)

    @cached_property
    def stated(self) -> Stated | None:
        return stated(self.said)


@lru_cache(maxsize=2_048)  # a user may have a thousand records, of which any may be a rival
def read(text: str) -> Reading:
    """Read a text for comparing it; equal texts may give the same object."""
    return Reading(text)


def tokens_of(text: str) -> tuple[str, ...]:
    """The words of a text but for the empty ones, stemmed; names and codes keep their case."""
    kept = cased_words(text)
    words = (
        match[0] if match[0] in kept else match[0].casefold() for match in _LEXICON["token"].finditer(text)
    )
    return tuple(stem(word) for word in words if word not in _EMPTY)


def _opening(text: str) -> int:
    """The length of a text's opening, up to its verb if that is known, else the first third."""
    found = _LEXICON["subject"].match(text)
    return found.end() if found else max(_LEAST_OPENING, int(_HEAD * len(text)))


def _subject(text: str) -> int:
    found = _LEXICON["subject"].match(text)
    return len(tokens_of(_LEXICON["changes"].sub(" ", found["told"] or found["zh"]))) if found else 0


def _topic(text: str) -> frozenset[str]:
    found = _LEXICON["topic"].match(text)
    return frozenset(tokens_of(found["en"] or found["zh"])) if found else frozenset()


def _attitude(text: str) -> int | None:
    if _LEXICON["cares_not"].search(text):
        return 0
    if _LEXICON["hates"].search(text):
        return -1
    return 1 if _LEXICON["likes"].search(text) else None


def is_number(word: str) -> bool:
    """Whether a word begins with a digit, or is a numeral."""
    return word.lstrip("-−")[:1].isdigit() or word in _NUMERALS
