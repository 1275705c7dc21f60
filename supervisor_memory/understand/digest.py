"""A session's digest by rules: whole sentences, each under a heading such as Decided or Open.

Nothing is reworded, so each line holds exactly while its message does. What is decided, done and learned is
told by what a sentence does in the conversation: a wish that the reply takes up is decided; what was
put off, promised at the end, or asked and not answered is open, until somebody says that it is over.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Final, Literal, TypeAlias, get_args

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.understand.finished import closes, is_finished, tells_an_end
from supervisor_memory.understand.questions import named_terms, opening
from supervisor_memory.understand.rejection import gives_orders
from supervisor_memory.understand.statements import (
    SMALL_TALK,
    judge,
    masked,
    normal,
    sentences,
    without_pasted,
)

Section: TypeAlias = Literal["decided", "next", "done", "learned", "asked", "preferences", "topics"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
"""Of most worth first."""

_CUES = lexicon("sessions")
_UNFINISHED = lexicon("finished").pattern("unfinished")
_LABELS = _CUES.table("labels")
_MOST: Final = {
    "decided": 16,
    "next": 10,
    "done": 10,
    "learned": 10,
    "asked": 8,
    "preferences": 8,
    "topics": 24,
}
_MOST_READ, _MOST_SENTENCES, _LONGEST = 12_000, 30, 300
_LEAST_TERMS = 2
_STILL_PROMISED = 4  # messages after which a promise counts as kept
_ALIKE = 0.5
_NEAR = 2  # messages back to what "it is done" tells of
_DECIDING = frozenset(("decision", "definition", "correction", "house-rule"))


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a session: its id, its text, and whether the user said it."""

    id: str
    text: str
    is_users: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a message, under its section."""

    section: Section
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    line: Line
    terms: frozenset[str]
    place: int
    """Number of its message."""
    is_promise: bool = False


def digest(said: Sequence[Said], before: Sequence[Line] = ()) -> tuple[Line, ...]:
    """The lines of a session, in the order in which they were said; none for a session of small talk.

    Args:
        before: The digest of what was said before these messages, which goes into it.
    """
    found = [_Sentence(line, frozenset(terms(line.text)), -1) for line in before]
    spoken: set[str] = set().union(*(each.terms for each in found))
    for place, message in enumerate(said):
        reply = next((each for each in said[place + 1 : place + 2] if not each.is_users), None)
        earlier = said[place - 1] if place else None
        for each in _read(message, reply, earlier, place, spoken):
            found = _without_what_is_over(found, each) if isinstance(each, _Ending) else [*found, each]
        spoken.update(terms(message.text[:_MOST_READ]))
    last = len(said) - 1
    kept = (each for each in found if not each.is_promise or each.place > last - _STILL_PROMISED)
    lines = _capped(_without_repeats(kept))
    return tuple(each.line for each in lines) if _tells_something(lines) else ()


def also(said: Iterable[Said], lines: Iterable[Line], before: Sequence[Line] = ()) -> list[Line]:
    """Further sentences for a search to find the session by; notes do not quote them.

    The next is always the one with most terms that no line has so far, as long as it has several.

    Args:
        before: Those of what was said before; the oldest make room.
    """
    known: set[str] = set().union(*(terms(line.text) for line in (*lines, *before)))
    left = [
        (frozenset(terms(text)), Line("topics", message.id, text))
        for message in said
        for text in _sentences(message)
        if len(text) <= _LONGEST
    ]
    found: list[Line] = []
    while left and len(found) < _MOST["topics"]:
        held, best = max(left, key=lambda each: len(each[0] - known))
        if len(held - known) < _LEAST_TERMS:
            break
        found.append(best)
        known |= held
    return [*before, *found][-_MOST["topics"] :]


def together(digests: Iterable[Sequence[Line]]) -> tuple[Line, ...]:
    """Join the digests of several sessions, the earliest first; a line that a later one reports as done is no
    longer open."""
    found: list[_Sentence] = []
    for place, lines in enumerate(digests):
        for line in lines:
            each = _Sentence(line, frozenset(terms(line.text)), place)
            found = [
                *(
                    _without_what_is_over(found, _Ending(line.text))
                    if line.section in ("done", "next")
                    else found
                ),
                each,
            ]
    return tuple(each.line for each in _capped(_without_repeats(found)))


def is_open(lines: Iterable[Line]) -> bool:
    """Whether a digest leaves something to be done."""
    return any(line.section == "next" for line in lines)


def phrased(lines: Sequence[Line], tongue: str, *, between: str = " ") -> str:
    """The lines as a text, section by section, as they were said."""
    told = {name: [line.text for line in lines if line.section == name] for name in _LABELS}
    return between.join(f"{_LABELS[name][tongue]} {' '.join(each)}" for name, each in told.items() if each)


@dataclass(frozen=True, slots=True)
class _Ending:
    """Closes all open lines, or the lines that a sentence reports as done.

    A sentence that names none of them closes the last one said since the place `since`.
    """

    text: str = ""
    since: float = inf


def _read(
    message: Said, reply: Said | None, earlier: Said | None, place: int, spoken: Set[str]
) -> Iterator[_Sentence | _Ending]:
    """A message's sentences for the digest, and the endings it reports.

    Args:
        spoken: The terms of all that was said before.
    """
    for text in _sentences(message):
        hidden, held = masked(normal(text)), frozenset(terms(text))
        if SMALL_TALK.fullmatch(hidden) or len(text) > _LONGEST:
            continue
        if message.is_users:
            answer = next(iter(_sentences(reply)), "") if reply else None
            section, is_promise = _of_user(text, hidden, answer, spoken)
        else:
            if _CUES["claims"].search(hidden) and not hidden.endswith(("?", "？")):
                continue  # the user's own words tell a decision
            section, is_promise = _of_reply(hidden)
            if section == "learned" and judge(text).kind == "user-profile":
                continue  # an agent's wishes are not the user's
            if section == "learned" and earlier is not None and _asks_what_is_next(earlier):
                section = "next"
        if section is None:
            yield _Ending()
            continue
        yield _Ending(text, place - _NEAR)
        if section == "next" and len(held) < _LEAST_TERMS and earlier is not None:
            yield from _put_off(earlier, place - 1)  # "Fine, tomorrow."
            continue
        if section == "decided" and len(held) < _LEAST_TERMS:
            yield from _taken_up(reply, place + 1)  # "The second one."
            continue
        named = held if message.is_users else _named_by_a_reply(hidden, is_promise=is_promise)
        if len(named) >= _LEAST_TERMS or any(map(str.isdigit, text)):
            yield _Sentence(Line(section, message.id, text), held, place, is_promise)


def _of_user(text: str, hidden: str, answer: str | None, spoken: Set[str]) -> tuple[Section | None, bool]:
    """The section of a user's sentence, and whether it is a mere promise; None: all is over.

    Args:
        answer: The first sentence of the reply; None: there is no reply.
        spoken: The terms of all that was said before.
    """
    judged = judge(text)
    if judged.does == "asks" or hidden.endswith("?"):
        return ("next" if answer is None else "asked"), False
    if _CUES["read_out"].search(hidden):
        return "asked", False
    names = named_terms(_CUES["closed"].sub(" ", hidden))
    if names and is_finished(text) and judged.reason not in _DECIDING and not _is_pending(hidden):
        return "done", False
    is_unsure = bool(names) and _UNFINISHED.search(hidden) is not None
    if _CUES["closed"].search(hidden) and not is_unsure and not _is_pending(hidden):
        return None, False
    if judged.kind == "user-profile" and judged.reason not in _DECIDING:
        return "preferences", False
    if judged.reason in _DECIDING:
        return "decided", False
    if _CUES["later"].search(hidden):
        return "next", False
    is_promised = bool(spoken) and _CUES["promised"].search(hidden) and not _CUES["chosen"].search(hidden)
    if spoken and not is_promised and (_CUES["chosen"].search(hidden) or _takes_up(answer, text, spoken)):
        return "decided", False
    if answer is None or ((spoken or _CUES["still"].search(hidden)) and _is_pending(hidden)):
        return "next", False
    if is_promised and _takes_up(answer, text, spoken):
        return "next", True
    return "asked", False


def _of_reply(hidden: str) -> tuple[Section | None, bool]:
    """The section of an assistant's sentence, and whether it is a mere promise; None: all is over."""
    if hidden.endswith(("?", "？")):
        return "next", True
    if _is_pending(hidden) or _CUES["later"].search(hidden):
        return "next", False
    if _CUES["settled"].search(hidden) and len(set(terms(hidden))) > _LEAST_TERMS:
        return "decided", False
    if _CUES["promised"].search(hidden):
        return "next", True
    if _CUES["closed"].search(hidden):
        return ("done" if len(terms(hidden)) > _LEAST_TERMS else None), False
    told = _CUES["acknowledges"].sub("", hidden)
    return ("done" if _CUES["did"].search(told) or is_finished(told) else "learned"), False


def _named_by_a_reply(hidden: str, *, is_promise: bool) -> Set[str]:
    """The terms of an assistant's sentence, without words of agreement and promises."""
    told = _CUES["acknowledges"].sub("", hidden)
    return frozenset(terms(_CUES["promised"].sub(" ", told) if is_promise else told))


def _asks_what_is_next(message: Said) -> bool:
    """Whether a user asks what there is to do, without naming anything."""
    found = (
        opening(message.text) if message.is_users and message.text.rstrip().endswith(("?", "？")) else None
    )
    return found is not None and found.wants == "go-on" and found.is_bare


def _is_pending(hidden: str) -> bool:
    return _CUES["pending"].search(hidden) is not None


def _takes_up(answer: str | None, text: str, spoken: Set[str]) -> bool:
    """Whether a reply takes up a user's sentence: it repeats most of it, or agrees about the same things."""
    held = frozenset(terms(text))
    repeated = len(held & frozenset(terms(answer or "")))
    is_taken = _CUES["taken"].search(answer or "") is not None and bool(held & spoken)
    return is_taken or repeated >= max(_LEAST_TERMS, _ALIKE * len(held))


def _put_off(earlier: Said, place: int) -> Iterator[_Sentence]:
    """The line that a few words put off: the last one before them."""
    for text in [each for each in _sentences(earlier) if len(set(terms(each))) >= _LEAST_TERMS][-1:]:
        yield _Sentence(Line("next", earlier.id, text), frozenset(terms(text)), place)


def _taken_up(reply: Said | None, place: int) -> Iterator[_Sentence]:
    """The decision behind a user's few words, as the reply tells it."""
    if reply is None:
        return
    for text in _sentences(reply)[:1]:
        if len(held := frozenset(terms(text))) >= _LEAST_TERMS and not text.endswith(("?", "？")):
            yield _Sentence(Line("decided", reply.id, text), held, place)


def _sentences(message: Said) -> tuple[str, ...]:
    """The sentences to read in a message: if it is long, the first and the last."""
    return _sentences_of(message.text[:_MOST_READ], is_users=message.is_users)


@lru_cache(maxsize=256)  # a message is read by itself, as a reply, as what was said before, and once more
def _sentences_of(text: str, *, is_users: bool) -> tuple[str, ...]:
    every = [*sentences(without_pasted(text) if is_users else text)]
    half = _MOST_SENTENCES // 2
    every = every if len(every) <= _MOST_SENTENCES else [*every[:half], *every[-half:]]
    return tuple(each for each in every if not gives_orders([each], by_others=not is_users))


def _without_what_is_over(found: list[_Sentence], over: _Ending) -> list[_Sentence]:
    """The lines without those that are no longer open.

    A sentence that names nothing tells of what was left open last, shortly before.
    """
    left = [each for each in found if each.line.section == "next"]
    if not left or (over.text and not tells_an_end(over.text)):
        return found
    ended = [each for each in left if not over.text or closes(over.text, each.line.text)]
    near = [each for each in left if over.since <= each.place and not each.line.text.endswith(("?", "？"))]
    if not ended and near and closes(over.text, near[-1].line.text) is None:
        ended = near[-1:]
    return [each for each in found if each not in ended]


def _without_repeats(found: Iterable[_Sentence]) -> Iterator[_Sentence]:
    """Keep each sentence once, where it was said last."""
    last = {each.terms: each for each in found}
    yield from sorted(last.values(), key=lambda each: each.place)


def _capped(found: Iterable[_Sentence]) -> list[_Sentence]:
    """The newest of each section; of what was asked for, also the first."""
    every = [*found]
    of_section = {name: [each for each in every if each.line.section == name] for name in SECTIONS}
    newest = {name: each[-_MOST[name] :] for name, each in of_section.items()}
    newest["asked"] = [*of_section["asked"][:1], *of_section["asked"][1:][1 - _MOST["asked"] :]]
    kept = {id(each) for each in chain.from_iterable(newest.values())}
    return [each for each in every if id(each) in kept]


def _tells_something(lines: Sequence[_Sentence]) -> bool:
    return len(frozenset[str]().union(*(each.terms for each in lines))) > _LEAST_TERMS
