"""The parts of a text that asks several things, and whether a question is about what an assistant said."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
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


Wish: TypeAlias = Literal["greeting", "go-on", "decided", "named"]
_LONGEST_OPENING: Final = 300
_EDGES: Final = " .,;:!?'\"()-“”‘’，。；：！？（）—…~～"
_FEW_TERMS: Final = 3  # of what somebody says of themselves beside a greeting


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first words of a conversation want of earlier ones, as far as words tell.

    "greeting": nothing is asked; "go-on": with earlier work; "decided": what was decided; "named": a topic
    and nothing else. `topic` are the terms of what it is about, empty where nothing is named; `asks` are
    those of what is asked besides. `is_bare`: some words go on with earlier work and name none.
    """

    wants: Wish
    topic: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    is_bare: bool = False


@lru_cache(maxsize=64)
def opening(text: str) -> Opening | None:
    """What a conversation that begins so may want of earlier ones; None: nothing."""
    said = normal(text)
    if not said or len(said) > _LONGEST_OPENING or _SENTENCES["turns_away"].search(said):
        return None
    clauses = [each.strip(_EDGES) for each in _SENTENCES["opening_clauses"].split(said)]
    clauses = [each for each in clauses if each]
    rest = [each for each in clauses if not _is_greeting(each)]
    if not rest:
        return Opening("greeting")
    asking = [_asks_something(each) for each in rest]
    if said.rstrip("\"'”’」』)） ").endswith(("?", "？")) and not any(asking):
        asking[-1] = True
    if _SENTENCES["was_decided"].search(said) and _SENTENCES["of_ours"].search(said) and any(asking):
        return Opening("decided", _topic(said, "was_decided", "goes_on"))
    bare = [asks and _asks_of_work(each) for each, asks in zip(rest, asking, strict=True)]
    cues = [*map(_goes_on, rest)]
    on = [cue or asks for cue, asks in zip(cues, bare, strict=True)]
    if any(cues) or any(bare):
        topics = [_topic(each, "goes_on") for each, goes in zip(rest, on, strict=True) if goes]
        others = [(each, asks) for each, asks, goes in zip(rest, asking, on, strict=True) if not goes]
        besides = _joined(_topic(each) for each, asks in others if asks)
        is_bare = any(cue and not _topic(each, "goes_on") for each, cue in zip(rest, cues, strict=True))
        if not any(cues):  # what "it" is in "The moon: how far is it?"
            topics = [
                _topic(each) for each, asks in others if not asks and not _SENTENCES["of_oneself"].match(each)
            ]
            is_bare = not any(topics)
        return Opening("go-on", _joined(topics), besides, is_bare)
    if any(asking):
        return None
    topic = _joined(map(_topic, rest))
    if len(rest) < len(clauses):
        return (
            Opening("greeting")
            if len(topic) <= _FEW_TERMS and not _SENTENCES["tells"].match(rest[0])
            else None
        )
    return Opening("named", topic) if sum(bool(_topic(each)) for each in rest) == 1 else None


def _is_greeting(clause: str) -> bool:
    rest = _SENTENCES["arrives"].sub("", clause).strip(_EDGES)
    return not rest or SMALL_TALK.fullmatch(rest) is not None or SMALL_TALK.fullmatch(clause) is not None


def _goes_on(clause: str) -> bool:
    """Whether a clause goes on with earlier work."""
    return bool(_SENTENCES["goes_on"].search(clause)) and not _SENTENCES["asks_for_a_value"].search(clause)


def _asks_of_work(clause: str) -> bool:
    """Whether a question names no topic, so that it can only be about what there is to do."""
    others = map(_SENTENCES.__getitem__, ("asks_for_a_value", "of_no_work"))
    return not _topic(clause) and not any(each.search(clause) for each in others)


def _asks_something(clause: str) -> bool:
    """Whether a clause asks, or wants something done."""
    return any(
        each.does == "asks" or each.reason in ("task", "one-off") for each in read_statements(clause).all
    )


def _topic(clause: str, *without: str) -> tuple[str, ...]:
    """The terms of a clause that name what it is about, without the words by which it goes on."""
    for key in without:
        clause = _SENTENCES[key].sub(" ", clause)
    left = _SENTENCES["idle_words_zh"].sub(" ", clause)
    return tuple(each for each in dict.fromkeys(terms(left)) if each not in _idle())


@cache
def _idle() -> frozenset[str]:
    return frozenset(terms(" ".join(_SENTENCES.listed("idle_words"))))


def _joined(topics: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(topics)))
