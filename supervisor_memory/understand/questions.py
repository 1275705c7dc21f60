"""The parts of a text that asks several things, and whether a question is about what an assistant said."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.understand.dates import DAY, DateRange, named_dates
from supervisor_memory.understand.statements import SMALL_TALK, normal, read_statements, sentences

_SENTENCES = lexicon("sentences")
_LONGEST: Final = 2_000  # characters, beyond which a text is no question but what it is about
_LEAST_TERMS: Final = 2  # of a part that can be searched for by itself
_MOST_PARTS: Final = 4
_PRESENT: Final = 2 * DAY


def parts_of_question(text: str) -> tuple[str, ...]:
    """The questions of a text that asks two or more, each without "also"; empty for one question."""
    if len(text) > _LONGEST:
        return ()
    parts = (part.strip() for each in _asking(text) for part in _SENTENCES["adds_a_question"].split(each))
    found = tuple(part for part in parts if len(set(terms(part))) >= _LEAST_TERMS)
    return found[:_MOST_PARTS] if len(found) > 1 else ()


def _asking(text: str) -> Iterator[str]:
    """The sentences of a text with a question mark."""
    return (each for each in sentences(text) if each.rstrip("\"'”’」』)） ").endswith(("?", "？")))


def dates_asked_for(text: str, now: float) -> tuple[DateRange, ...]:
    """The times that a question names, as `named_dates`, but for the present in what is said before it asks.

    In "I am tired today. When is her birthday?" nothing of today is asked for.
    """
    dates = named_dates(text, now)
    if not dates or not (asking := "\n".join(_asking(text[:_LONGEST]))):
        return dates
    asked = named_dates(asking, now)
    return tuple(each for each in dates if each in asked or each.end < now - _PRESENT)


@lru_cache(maxsize=64)
def asks_for_a_reply(text: str) -> bool:
    """Whether a question is about what the assistant has said, such as "what did you recommend?"."""
    return _SENTENCES["asks_for_a_reply"].search(text[:_LONGEST]) is not None


Resuming: TypeAlias = Literal["greeting", "go-on", "decided"]
_LONGEST_OPENING: Final = 300
_EDGES: Final = " .,;:!?'\"()“”‘’，。；：！？（）"


@lru_cache(maxsize=64)
def resumes(text: str) -> Resuming | None:
    """What the first words of a conversation want of earlier ones, as far as the words alone tell; None: nothing.

    Whether they go on depends on what they are about, see `topic_of`.
    """
    said = normal(text)
    if not said or len(said) > _LONGEST_OPENING:
        return None
    rest = _SENTENCES["arrives"].sub("", said).strip(_EDGES)
    if SMALL_TALK.fullmatch(said) or not rest or SMALL_TALK.fullmatch(rest):
        return "greeting"
    if _SENTENCES["was_decided"].search(said) and _SENTENCES["of_ours"].search(said) and _is_asked(said):
        return "decided"
    return "go-on" if _SENTENCES["goes_on"].search(said) else None


def topic_of(text: str, wanted: Resuming) -> tuple[str, ...]:
    """The terms of a text that name what it is about, without the words by which it goes on."""
    said = normal(text)
    for key in ("was_decided", "goes_on") if wanted == "decided" else ("goes_on",):
        said = _SENTENCES[key].sub(" ", said)
    idle = _SENTENCES.words("idle_words")
    words = (word for word in said.split() if word.strip(_EDGES).casefold() not in idle)
    left = _SENTENCES["idle_words_zh"].sub(" ", " ".join(words))
    return tuple(each for each in dict.fromkeys(terms(left)) if len(each) > 1 and each not in idle)


def _is_asked(said: str) -> bool:
    return any(each.does == "asks" for each in read_statements(said).all)
