"""Find the record that a user takes back: "forget that I want tables", "the note on invoices".

One sentence of the record has to contain everything the user names: "forget that my manager is Bob" does not
mean a record with the manager Dana, nor "靠窗座位" the record "靠过道的位子".
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice

from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import Reading, read
from supervisor_memory.compare.slots import holds
from supervisor_memory.compare.verdict import closest_statement
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import STOP_WORDS, has_cjk, stem
from supervisor_memory.understand.statements import MAX_SENTENCES, judge, placed_sentences
from supervisor_memory.understand.subject import properties_of

_LEXICON = lexicon("retractions")
_PRONOUNS = lexicon("relations").words("pronouns")
_WISH = _LEXICON.words("wish_stems")
_FACTS = frozenset({"personal-fact", "identity", "definition", "decision", "correction", "house-rule"})
_EMPTY = _LEXICON.words("particles") | STOP_WORDS
_LEAST_STEM = 5
_SHORT = 4  # words of a topic: "my record collection"
_ONE_MISSING_OF = 5
_HEAD_NOUN = 2  # characters
_TOPICS = dict(_LEXICON.patterns("topics"))
_BY_PROPERTY = 0.2
"""The fit of a record of which only the property was named."""


def fit(named: str, text: str) -> float:
    """How well a record fits a retraction, in [0, 1]; 0: it is about something else, or has another value.

    Of a record of several sentences the one counts that has most words in common with what is named.

    Args:
        named: The named statement, without "forget that" and the like.
        text: The record's text.
    """
    said = closest_statement(text, named, or_all=False)
    asked, known = read(named), read(said)
    if _LEXICON["is_statement"].match(named) and not _same_attitude(asked, known):
        return 0.0
    topic = _without_properties(asked.text, said)
    mine = _without_wishes(topic, said) or _words(topic)
    yours = _words(known.text)
    if not mine:
        return _BY_PROPERTY if topic != asked.text else 0.0
    if not _holds(mine, yours):
        return 0.0
    return (1 + len(set(mine)) / max(len(set(yours)), len(set(mine)))) / 2


def still_said(named: str, text: str) -> str:
    """Cut the sentences that are taken back out of a text; all else stays as it is written.

    "" where nothing can be left: all sentences are taken back, or none by its words, or behind one that goes
    stands one without a subject of its own.
    """
    told = list(islice(placed_sentences(text), MAX_SENTENCES))
    fitting = [nth for nth, (_, each) in enumerate(told) if fit(named, each)]
    in_these_words = [nth for nth in fitting if _words(told[nth][1]) == _words(named)]
    gone = set(in_these_words or fitting)
    behind = [told[nth + 1][1] for nth in gone if nth + 1 < len(told) and nth + 1 not in gone]
    if not gone or not all(map(_stands_alone, behind)):
        return ""
    for start, sentence in (told[nth] for nth in sorted(gone, reverse=True)):
        text = _without(text, start, start + len(sentence))
    return text.strip()


def _stands_alone(sentence: str) -> bool:
    """Whether a sentence names what it is about, unlike "They deliver on Mondays." and 但晚上不喝。"""
    said = read(sentence)
    first = _LEXICON["word"].search(sentence.casefold())
    leans = first is not None and first[0] in _PRONOUNS
    return not leans and bool(said.topic or said.people.is_i or said.people.is_we)


def _without(text: str, start: int, end: int) -> str:
    """Cut a sentence out of a text: with the blanks before, or with its whole line."""
    before, after = text[:start].rstrip(" \t"), text[end:]
    begins_a_line = not before or before.endswith("\n")
    if not begins_a_line:
        return before + after
    rest = after.lstrip(" \t")
    return before + rest.removeprefix("\n") if rest.startswith("\n") else text[:start] + rest


def is_topic(named: str) -> bool:
    """Whether a retraction names a topic ("the reading problem") and not a statement, which would have to
    match word for word."""
    return _LEXICON["is_statement"].match(named) is None or len(named.split()) <= _SHORT


def exchanges(named: str, text: str) -> bool:
    """Whether the named statement has words that a record with the same sentence lacks or replaces."""
    pair = beside(read(closest_statement(text, named, or_all=False)), read(named))
    return any(each.yours for each in pair.exchanges)


def names_another(named: str, text: str) -> bool:
    """Whether a retraction names something that the record does not say: another word in the same sentence,
    or a number, date or name."""
    return exchanges(named, text) or not holds(read(text).slots, read(named).slots)


def _same_attitude(asked: Reading, known: Reading) -> bool:
    """Whether neither text denies the other: a retraction means a statement, not its opposite."""
    if asked.slots.is_negative != known.slots.is_negative:
        return False
    return asked.attitude in (None, known.attitude) or known.attitude is None


def _without_wishes(named: str, known: str) -> Sequence[str]:
    """The named words without those of wishing ("I want"); for a fact, all words count."""
    if _LEXICON["is_statement"].match(named) and judge(known).reason in _FACTS:
        return _words(named)
    return tuple(word for word in _words(_LEXICON["wish_zh"].sub(" ", named)) if word not in _WISH)


def _without_properties(named: str, known: str) -> str:
    """The named words without those for a property that the record is about: "export format", for a record
    that says how exports are formatted."""
    for name in properties_of(known):
        if pattern := _TOPICS.get(name):
            named = pattern.sub(" ", named)
    return named


def _words(text: str) -> Sequence[str]:
    """The stems of words, and Chinese characters, without function words."""
    found = (
        match[0] for match in _LEXICON["word"].finditer(_LEXICON["calling"].sub("call", text).casefold())
    )
    return tuple(stem(word) for word in found if word not in _EMPTY)


def _holds(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether a record contains all named words. A Chinese phrase may end in another noun for the same thing
    (座位, 位子): a character of that noun may be missing, but not replaced."""
    missing = [word for word in mine if not any(_is_one(word, each) for each in yours)]
    if not has_cjk("".join(mine)):
        return not missing
    if len(missing) * _ONE_MISSING_OF > len(mine) or any(each not in mine[-_HEAD_NOUN:] for each in missing):
        return False
    codes = [tag for tag, *_ in SequenceMatcher(None, mine, yours, autojunk=False).get_opcodes()]
    return codes.count("equal") <= 1 + len(mine) // 2 and not (missing and "replace" in codes)


def _is_one(token: str, other: str) -> bool:
    """Whether two words are the same, or share their stem: allergy, allergic."""
    if token == other:
        return True
    short, long = sorted((token, other), key=len)
    stem = short[:-1] if short.endswith("i") else short
    return len(stem) >= _LEAST_STEM and stem.isalpha() and stem.isascii() and long.startswith(stem)
