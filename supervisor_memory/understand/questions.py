"""The parts of a text that asks several things, and whether a question is about several or about a reply."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, compress
from typing import Final, Literal, TypeAlias

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.understand.dates import DAY, DateRange, named_dates
from supervisor_memory.understand.entities import Clause
from supervisor_memory.understand.statements import SMALL_TALK, normal, read_statements, sentences

_SENTENCES = lexicon("sentences")
_OPENINGS = lexicon("openings")
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
    return filter(_is_marked, sentences(text))


def _is_marked(sentence: str) -> bool:
    """Whether a sentence has a question mark."""
    return sentence.rstrip("\"'”’」』)） ").endswith(("?", "？"))


def clauses_of_questions(text: str) -> Sequence[Clause]:
    """The clauses of the questions in a text; of a question without a word like "who" or 谁 all ask.

    In "I am with Ada: who owns it, for my note to Bo?" neither Ada nor Bo is asked about.
    """
    found = list[Clause]()
    for each in filter(_is_question, sentences(text[:_LONGEST])):
        cut = (clause.strip(_EDGES) for clause in _SENTENCES["opening_clauses"].split(each))
        clauses = [*filter(None, cut)]
        asking = [clause for clause in clauses if _has_question_word(clause)] or clauses
        found += [
            Clause(clause, asks=clause in asking, begins=not place) for place, clause in enumerate(clauses)
        ]
    return found


def _is_question(sentence: str) -> bool:
    """Whether a sentence has a question mark, or asks by a word: in English at its beginning, "who" elsewhere
    may go on with what was said."""
    is_asking = _SENTENCES["question_words"].match(sentence) or _SENTENCES["question_words_zh"].search(
        sentence
    )
    return _is_marked(sentence) or is_asking is not None


def _has_question_word(clause: str) -> bool:
    return any(_SENTENCES[key].search(clause) for key in ("question_words", "question_words_zh"))


@lru_cache(maxsize=16)  # the search asks, and the ranking after it
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


@lru_cache(maxsize=64)
def asks_for_several(text: str) -> bool:
    """Whether a question asks for more than one thing, such as "which foods must be avoided?"."""
    return _SENTENCES["asks_for_several"].search(text[:_LONGEST]) is not None


Wish: TypeAlias = Literal["greeting", "go-on", "decided", "named"]
_LONGEST_OPENING: Final = 300
_WISHES: Final = ("was_decided", "goes_on")
_EDGES: Final = " .,;:!?'\"()-“”‘’，。；：！？（）—…~～"
_COLONS: Final = (":", "：")
_FEW_TERMS: Final = 3  # of what somebody says of themselves beside a greeting


@dataclass(frozen=True, slots=True)
class Opening:
    """The request of a conversation's first words to an earlier one, by its words alone.

    "greeting": nothing is asked; "go-on": with earlier work; "decided": what was decided; "named": a topic
    and nothing else. `topic` are the terms of what it is about, empty where nothing is named; `unsure` are
    more of them, or none: pieces of Chinese that may be words, or cut across two. `asks` are the terms of
    what is asked besides. `is_bare`: some words go on with earlier work and name none.
    """

    wants: Wish
    topic: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    is_bare: bool = False
    unsure: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def opening(text: str) -> Opening | None:
    """Whether these first words may resume an earlier conversation, and how; None: they do not."""
    said = normal(text)
    if not said or len(said) > _LONGEST_OPENING or _SENTENCES["turns_away"].search(said):
        return None
    clauses = _clauses(said)
    greets = [_is_greeting(each) for each in clauses]
    rest = [each for each, is_greeting in zip(clauses, greets, strict=True) if not is_greeting]
    is_greeted = not all(map(_only_answers, compress(clauses, greets)))
    if not rest:
        return Opening("greeting") if is_greeted else None
    asking = [_asks_something(each) for each in rest[:-1]]
    is_asked = said.rstrip("\"'”’」』)） ").endswith(("?", "？"))
    asking.append((is_asked and not any(asking)) or _asks_something(rest[-1]))
    if any(asking) and _SENTENCES["was_decided"].search(said) and _SENTENCES["of_ours"].search(said):
        return _of_a_decision(said)
    bare = [asks and _asks_of_work(each) for each, asks in zip(rest, asking, strict=True)]
    cues = [*map(_goes_on, rest)]
    on = [cue or asks for cue, asks in zip(cues, bare, strict=True)]
    if any(on):
        going = [each for each, goes in zip(rest, on, strict=True) if goes]
        others = [(each, asks) for each, asks, goes in zip(rest, asking, on, strict=True) if not goes]
        besides = _distinct(_topic(each) for each, asks in others if asks)
        is_bare = any(cue and not _has_object(rest, place) for place, cue in enumerate(cues))
        if not any(_topic(each, "goes_on") for each in going):  # what "it" is in "The moon: how far is it?"
            going += [each for each, asks in others if not asks and not _SENTENCES["of_oneself"].match(each)]
        topic = _distinct(_topic(each, "goes_on") for each in going)
        is_bare = is_bare if any(cues) else not topic
        return Opening(
            "go-on", topic, besides, is_bare, _distinct(_unsure(each, "goes_on") for each in going)
        )
    if any(asking):
        decided = _of_a_decision(said) if _OPENINGS["of_us"].search(said) else None
        return decided if decided and (decided.topic or decided.unsure) else None
    topic = _distinct(map(_topic, rest))
    if is_greeted:
        is_of_oneself = len(topic) <= _FEW_TERMS and not _SENTENCES["tells"].match(rest[0])
        return Opening("greeting") if is_of_oneself else None
    named = sum(bool(_topic(each)) for each in rest)
    return Opening("named", topic, unsure=_distinct(map(_unsure, rest))) if named == 1 else None


def _of_a_decision(said: str) -> Opening:
    return Opening("decided", _topic(said, *_WISHES), unsure=_unsure(said, *_WISHES))


def restarts(text: str) -> bool:
    """Whether words only resume earlier work, or greet, and name nothing."""
    found = opening(text)
    return found is not None and not (found.topic or found.unsure or found.asks)


def named_terms(text: str) -> tuple[str, ...]:
    """The distinct terms of a text that name something, without the words of any request.

    Pieces of Chinese that may be no words are among them only where there is nothing else.
    """
    return _topic(text) or _unsure(text)


def _clauses(said: str) -> list[str]:
    """The clauses of a text; a colon that ends a clause stays with it."""
    found, begin = list[str](), 0
    for cut in chain(_SENTENCES["opening_clauses"].finditer(said), (None,)):
        clause = said[begin : cut.start() if cut else None].strip(_EDGES)
        if clause:
            found.append(f"{clause}:" if cut and cut[0] in _COLONS else clause)
        begin = cut.end() if cut else begin
    return found


def _has_object(rest: Sequence[str], place: int) -> bool:
    """Whether a resuming clause names its object: in itself or, before a colon, in the rest."""
    named = rest[place:] if rest[place].endswith(_COLONS) else rest[place : place + 1]
    return any(True for each in named for _ in _terms_left(each, "goes_on"))


def _only_answers(clause: str) -> bool:
    """Whether a clause only thanks, agrees or says goodbye."""
    words = _SENTENCES["a_small_word"].findall(clause.casefold())
    return SMALL_TALK.fullmatch(clause) is not None and _SENTENCES.words("reply_words").issuperset(words)


def _is_greeting(clause: str) -> bool:
    rest = _SENTENCES["arrives"].sub("", clause).strip(_EDGES)
    return not rest or any(SMALL_TALK.fullmatch(each) for each in {rest, clause})


def _goes_on(clause: str) -> bool:
    """Whether a clause resumes earlier work."""
    return bool(_SENTENCES["goes_on"].search(clause)) and not _SENTENCES["asks_for_a_value"].search(clause)


def _asks_of_work(clause: str) -> bool:
    """Whether a question names no topic, so that it must be about the work in general."""
    others = map(_SENTENCES.__getitem__, ("asks_for_a_value", "of_no_work"))
    return not any(True for _ in _terms_left(clause)) and not any(each.search(clause) for each in others)


def _asks_something(clause: str) -> bool:
    """Whether a clause asks, or wants something done."""
    return any(
        each.does == "asks" or each.reason in ("task", "one-off") for each in read_statements(clause).all
    )


def _topic(clause: str, *without: str) -> tuple[str, ...]:
    """The terms of a clause that name its topic.

    Args:
        without: Patterns of words that are left out before, such as those of going on.
    """
    return tuple(each for each in _terms_left(clause, *without) if not _is_unsure(each))


def _unsure(clause: str, *without: str) -> tuple[str, ...]:
    """Pieces of a clause that may be words of its topic."""
    return tuple(each for each in _terms_left(clause, *without) if _is_unsure(each))


def _terms_left(clause: str, *without: str) -> Iterator[str]:
    for key in without:
        clause = _SENTENCES[key].sub(" ", clause)
    if _OPENINGS["names_nothing"].fullmatch(clause):
        return iter(())
    clause = _SENTENCES["idle_words_zh"].sub(" ", clause)
    idle = _idle()
    return (each for each in dict.fromkeys(terms(clause)) if each not in idle and not idle.issuperset(each))


def _is_unsure(term: str) -> bool:
    """Whether a Chinese piece may be no word: it is one character, or has one that often stands alone."""
    return has_cjk(term) and (len(term) == 1 or not _idle().isdisjoint(term))


@cache
def _idle() -> frozenset[str]:
    """The terms that name no topic, single Chinese characters included."""
    characters = "".join(_SENTENCES.listed("idle_characters_zh"))
    return frozenset((*terms(" ".join(_SENTENCES.listed("idle_words"))), *characters))


def _distinct(topics: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(topics)))
