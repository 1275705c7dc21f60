"""Shortens a note to one or two records where none may answer the question, though some resemble it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from supervisor_memory.flow import Recalling
from supervisor_memory.language.resembling import Words, is_like_a_word
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.neighbours import FOUND_AS
from supervisor_memory.stages.post_retrieval.rank import together
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.entities import joining_terms, perhaps_named, rare_words, surely_named
from supervisor_memory.understand.questions import asks_for_several, clauses_of_questions
from supervisor_memory.understand.statements import without_address

KNOWN = 0.95
"""The evidence in the best records together from which they may answer; docs/relations.md has the curve."""
FEW = 2
_BEST = 3  # records over which the words of a question of several steps are spread
_STEPS = 2  # of a way between records, as many as a walk takes
_MOST = 32  # of the best records a way is looked for among, as many as a step of a walk compares


def keep_few(plan: Recalling, view: ReadStore) -> Recalling:
    """Keep a path through the note's records, else the best two, where none is surely an answer.

    What stands, and what an operator added for its own reasons, stays. Nothing goes where talk is
    told word for word, whose turns answer together, or where the question asks for several things, among
    which none leads.
    """
    turn = plan.turn
    if turn.purpose != "note" or not least_relevance(turn, view.settings):
        return plan
    several = asks_for_several(turn.text)
    answering = [hit for hit in plan.hits if "standing" not in hit.parts]
    counted = [hit for hit in answering if hit.found in (None, FOUND_AS)]
    if plan.query is None or len(counted) <= FEW or any(hit.record.is_said for hit in answering):
        return plan
    asked = frozenset(plan.query.terms)
    candidates = [*plan.hits, *(each.hit for each in plan.dropped)]
    if unknown := _unknown(turn.text, candidates, several=several):
        way = _path(counted, asked) if unknown == "perhaps" else ()
        kept = {hit.record.id for hit in (*_needed(counted), *way)}
    elif several or _is_known(candidates, asked):
        return plan
    else:
        kept = {hit.record.id for hit in _path(counted, asked) or _needed(counted)}
    others = {hit.record.id for hit in counted} - kept
    return plan.keeping((hit for hit in plan.hits if hit.record.id not in others), others="no-answer")


def _unknown(question: str, hits: Sequence[Hit], *, several: bool) -> Literal["surely", "perhaps"] | None:
    """Whether the question names a thing that no candidate knows; None: no, or it names nothing.

    Names are rare, so a record that held one would be among the candidates. One sure name that is held is
    enough, and beside sure names no other word counts. Of words that are perhaps names each has to be held;
    of several things only a sure name tells that they are unknown.
    """
    question = without_address(question)
    sure = surely_named(question)
    if _holds_one(hits, sure.values(), frozenset.issuperset):
        return None
    clauses = () if several or sure else clauses_of_questions(question)
    perhaps = perhaps_named(clauses) or rare_words(clauses)
    perhaps = {name: own for name, own in perhaps.items() if not _holds_one(hits, [own], _share)}
    if not (sure or perhaps):
        return None
    names = [name for name in (*sure, *perhaps) if not has_cjk(name)]
    if names and any(map(Words.of(hit.record.searched_text for hit in hits).may_name, names)):
        return None
    if any(map(is_like_a_word, filter(str.islower, perhaps))):
        return None
    return "surely" if sure else "perhaps"


def _share(some: frozenset[str], others: frozenset[str]) -> bool:
    return not some.isdisjoint(others)


def _holds_one(
    hits: Iterable[Hit],
    names: Collection[frozenset[str]],
    holds: Callable[[frozenset[str], frozenset[str]], bool],
) -> bool:
    """Whether the records together hold one of some names; `holds` compares their terms with a name's."""
    named, held = frozenset().union(*names), frozenset[str]()
    for hit in hits if named else ():
        more = named.intersection(terms(hit.record.searched_text)) - held
        held |= more
        if more and any(holds(held, name) for name in names):
            return True
    return False


def _is_known(hits: Iterable[Hit], asked: frozenset[str]) -> bool:
    """Whether the best records cover enough of the question; True without vectors, since nothing can tell."""
    found = [hit for hit in hits if "match" in hit.parts]
    alike = max((hit.parts["sim"] for hit in found if "sim" in hit.parts), default=None)
    if alike is None:
        return True
    best = sorted(found, key=lambda hit: -hit.score)[:_BEST]
    held = {term for hit in best for term in terms(hit.record.searched_text)}
    return together(alike, len(held & asked) / max(1, len(asked))) >= KNOWN


def _path(counted: Sequence[Hit], asked: frozenset[str]) -> Sequence[Hit]:
    """The path from one of the best records, over shared names, with most words of the question, the shortest
    of such paths; empty where no step gains a word.

    The words of a question of several steps are spread over its facts: a record that has few of them answers
    where the others on its way have the rest. What merely resembles the question leads nowhere.
    """
    places = [_PathRecord.of(hit, asked) for hit in sorted(counted, key=lambda hit: -hit.score)[:_MOST]]
    ways = [way for first in places[:_BEST] for way in _longer_paths([first], places)]
    return [place.hit for place in max(ways, key=lambda way: (_words_held(way), -len(way)), default=())]


@dataclass(frozen=True, slots=True, eq=False)
class _PathRecord:
    """A record on a path: its words of the question, its other words, and the words of its names."""

    hit: Hit
    asked: frozenset[str]
    others: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, hit: Hit, asked: frozenset[str]) -> "_PathRecord":
        held = frozenset(terms(hit.record.searched_text))
        return cls(hit, held & asked, held - asked, joining_terms(hit.record.content) - asked)

    def leads_to(self, other: "_PathRecord") -> bool:
        """Whether one of the two names something that the other holds."""
        return not (self.names.isdisjoint(other.others) and other.names.isdisjoint(self.others))


def _longer_paths(
    way: Sequence[_PathRecord], places: Sequence[_PathRecord]
) -> Iterator[Sequence[_PathRecord]]:
    """The extensions of a path that end with a record holding a further word of the question."""
    for place in places:
        if place in way or not way[-1].leads_to(place):
            continue
        further = [*way, place]
        if _words_held(further) > _words_held(way):
            yield further
        if len(further) <= _STEPS:
            yield from _longer_paths(further, places)


def _words_held(way: Sequence[_PathRecord]) -> int:
    """The number of different words of the question in the records of a path."""
    return len(frozenset().union(*(place.asked for place in way)))


def _needed(counted: Sequence[Hit]) -> Sequence[Hit]:
    """The best hit and one more: its most relevant neighbour, or the second hit if that is more relevant."""
    best, second, *_ = sorted(counted, key=lambda hit: -hit.score)
    led_to = [hit for hit in counted if hit.path and hit.path[0].record_id == best.record.id]
    nearest = max(led_to, key=_relevance, default=second)
    return best, max(second, nearest, key=_relevance)


def _relevance(hit: Hit) -> float:
    return hit.parts.get("relevance", 0.0)
