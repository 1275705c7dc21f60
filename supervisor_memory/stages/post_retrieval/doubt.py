"""Tell little where a note may be asked about something that no record knows, though some resemble it."""

from collections.abc import Sequence

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.joined import FOUND_AS
from supervisor_memory.stages.post_retrieval.rank import together
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.questions import asks_for_several

KNOWN = 0.95
"""The evidence in the best records together from which they may answer; docs/relations.md has the curve."""
FEW = 2
_BEST = 3  # records over which the words of a question of several steps are spread


def keep_few(plan: Recalling, view: ReadStore) -> Recalling:
    """Keep the best record of a note, and what it leads to or the next, where none is surely an answer.

    What stands, and what an operator added for its own reasons, stays. Nothing goes where a message is
    quoted, which answers, or where the question asks for several things, among which none leads.
    """
    turn = plan.turn
    if turn.purpose != "note" or not least_relevance(turn, view.settings) or asks_for_several(turn.text):
        return plan
    counted = [hit for hit in plan.hits if "standing" not in hit.parts and hit.found in (None, FOUND_AS)]
    if len(counted) <= FEW or any(hit.excerpt for hit in plan.hits) or _is_known(plan):
        return plan
    kept = {hit.record.id for hit in _needed(counted)}
    others = {hit.record.id for hit in counted} - kept
    return plan.keeping((hit for hit in plan.hits if hit.record.id not in others), others="no-answer")


def _is_known(plan: Recalling) -> bool:
    """Whether the best records have enough of the question; without vectors nobody can tell."""
    found = [hit for hit in (*plan.hits, *(each.hit for each in plan.dropped)) if "match" in hit.parts]
    alike = max((hit.parts["sim"] for hit in found if "sim" in hit.parts), default=1.0)
    if plan.query is None or alike >= KNOWN:
        return True
    best = sorted(found, key=lambda hit: -hit.score)[:_BEST]
    held = {term for hit in best for term in terms(hit.record.searched_text)}
    asked = frozenset(plan.query.terms)
    return together(alike, len(held & asked) / max(1, len(asked))) >= KNOWN


def _needed(counted: Sequence[Hit]) -> Sequence[Hit]:
    """The best hit, and the one that it leads to, if that is as relevant as the next."""
    best, second, *_ = sorted(counted, key=lambda hit: -hit.score)
    led_to = [hit for hit in counted if hit.path and hit.path[0].record_id == best.record.id]
    nearest = max(led_to, key=_relevance, default=second)
    return best, max(second, nearest, key=_relevance)


def _relevance(hit: Hit) -> float:
    return hit.parts.get("relevance", 0.0)
