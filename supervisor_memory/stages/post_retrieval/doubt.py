"""Tell little where a note may be asked about something that no record knows, though some resemble it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from supervisor_memory.flow import Recalling
from supervisor_memory.language.resembling import Words
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.joined import FOUND_AS
from supervisor_memory.stages.post_retrieval.rank import together
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.entities import named_terms, surely_named
from supervisor_memory.understand.questions import asks_for_several
from supervisor_memory.understand.statements import without_address

KNOWN = 0.95
"""The evidence in the best records together from which they may answer; docs/relations.md has the curve."""
FEW = 2
_BEST = 3  # records over which the words of a question of several steps are spread
_STEPS = 2  # of a way between records, as many as a walk takes
_MOST = 32  # of the best records a way is looked for among, as many as a step of a walk compares


def keep_few(plan: Recalling, view: ReadStore) -> Recalling:
    """Keep of a note a way through its records, or the best and the next, where none is surely an answer.

    What stands, and what an operator added for its own reasons, stays. Nothing goes where talk is
    told word for word, whose turns answer together, or where the question asks for several things, among
    which none leads.
    """
    turn = plan.turn
    if turn.purpose != "note" or not least_relevance(turn, view.settings) or asks_for_several(turn.text):
        return plan
    answering = [hit for hit in plan.hits if "standing" not in hit.parts]
    counted = [hit for hit in answering if hit.found in (None, FOUND_AS)]
    if plan.query is None or len(counted) <= FEW or any(hit.record.is_said for hit in answering):
        return plan
    asked = frozenset(plan.query.terms)
    candidates = [*plan.hits, *(each.hit for each in plan.dropped)]
    if _names_what_none_holds(turn.text, candidates):
        kept = {hit.record.id for hit in _needed(counted)}
    elif _is_known(candidates, asked):
        return plan
    else:
        kept = {hit.record.id for hit in _way(counted, asked) or _needed(counted)}
    others = {hit.record.id for hit in counted} - kept
    return plan.keeping((hit for hit in plan.hits if hit.record.id not in others), others="no-answer")


def _names_what_none_holds(question: str, hits: Sequence[Hit]) -> bool:
    """Whether each thing that the question names has a word that no candidate holds, nor one like it; False
    if it names none.

    Such words are rare, so a record that held one would be among the candidates.
    """
    named = surely_named(without_address(question))
    missing = frozenset().union(*named.values())
    for hit in hits if named else ():
        missing = missing.difference(terms(hit.record.searched_text))
        if any(map(missing.isdisjoint, named.values())):
            return False
    if not named:
        return False
    spelled = [name for name in named if not has_cjk(name)]
    words = Words.of(hit.record.searched_text for hit in hits if spelled)
    return not any(map(words.may_name, spelled))


def _is_known(hits: Iterable[Hit], asked: frozenset[str]) -> bool:
    """Whether the best records have enough of the question; without vectors nobody can tell."""
    found = [hit for hit in hits if "match" in hit.parts]
    alike = max((hit.parts["sim"] for hit in found if "sim" in hit.parts), default=None)
    if alike is None:
        return True
    best = sorted(found, key=lambda hit: -hit.score)[:_BEST]
    held = {term for hit in best for term in terms(hit.record.searched_text)}
    return together(alike, len(held & asked) / max(1, len(asked))) >= KNOWN


def _way(counted: Sequence[Hit], asked: frozenset[str]) -> Sequence[Hit]:
    """The way from one of the best records over what they name that holds most words of the question, and of
    such ways the shortest; empty where none gains a word.

    The words of a question of several steps are spread over its facts: a record that has few of them answers
    where the others on its way have the rest. What merely resembles the question leads nowhere.
    """
    places = [_Place.of(hit, asked) for hit in sorted(counted, key=lambda hit: -hit.score)[:_MOST]]
    ways = [way for first in places[:_BEST] for way in _ways([first], places)]
    return [place.hit for place in max(ways, key=lambda way: (_held(way), -len(way)), default=())]


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A record on a way: the words of the question that it holds, its others, and those of what it names."""

    hit: Hit
    asked: frozenset[str]
    others: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, hit: Hit, asked: frozenset[str]) -> "_Place":
        held = frozenset(terms(hit.record.searched_text))
        return cls(hit, held & asked, held - asked, named_terms(hit.record.content) - asked)

    def leads_to(self, other: "_Place") -> bool:
        """Whether one of both names what the other holds."""
        return not (self.names.isdisjoint(other.others) and other.names.isdisjoint(self.others))


def _ways(way: Sequence[_Place], places: Sequence[_Place]) -> Iterator[Sequence[_Place]]:
    """The ways that go on from this one and end with a record that holds another word of the question."""
    for place in places:
        if place in way or not way[-1].leads_to(place):
            continue
        further = [*way, place]
        if _held(further) > _held(way):
            yield further
        if len(further) <= _STEPS:
            yield from _ways(further, places)


def _held(way: Sequence[_Place]) -> int:
    """How many different words of the question the records of a way hold."""
    return len(frozenset().union(*(place.asked for place in way)))


def _needed(counted: Sequence[Hit]) -> Sequence[Hit]:
    """The best hit, and the one that it leads to, if that is as relevant as the next."""
    best, second, *_ = sorted(counted, key=lambda hit: -hit.score)
    led_to = [hit for hit in counted if hit.path and hit.path[0].record_id == best.record.id]
    nearest = max(led_to, key=_relevance, default=second)
    return best, max(second, nearest, key=_relevance)


def _relevance(hit: Hit) -> float:
    return hit.parts.get("relevance", 0.0)
