"""Gate: which of the ranked hits are handed out. Pure functions of values.

The threshold reads relevance, which is absolute, so that "nothing relevant" is an answer. The knee reads the
match, which compares the hits among themselves, so that a clear answer comes without company. A hit that an
operator added (`Hit.found`) has no evidence of its own: both leave it alone, the limit does not.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Hit, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.retrieval.search import least_relevance

__all__ = ["drop_already_said", "gate", "knee"]

_NOTHING_THERE = "nothing found: this user has no memories where it was searched (user, task, families)"
_NOTHING_ALIKE = "nothing found: no memory that was searched shares a word with the question or is like it"
_NEARLY_EQUAL = 0.9  # of the match of the one before


def gate(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop what is not relevant enough, of a note what comes after its knee, and what is over the limit.

    Standing preferences come first, whatever their relevance. Of a note the limit drops the best hit and what
    defines a word of the question last.
    """
    turn, settings = plan.turn, view.settings
    least = least_relevance(turn, settings)
    passed = plan.keeping((hit for hit in plan.hits if _passes(hit, least)), others="below-threshold")
    if turn.purpose == "note" and least:
        edge = knee((_match(hit) for hit in passed.hits if hit.found is None), share=settings.knee)
        before = (hit for hit in passed.hits if _is_sure(hit) or _match(hit) >= edge)
        passed = passed.keeping(before, others="after-knee")
    most = (
        turn.limit
        if turn.limit is not None
        else settings.top_k
        if turn.purpose == "hits"
        else settings.max_notes
    )
    standing_first = sorted(passed.hits, key=lambda hit: "standing" not in hit.parts)
    chosen = standing_first if turn.purpose == "hits" else _needed_first(standing_first)
    ids = {hit.record.id for hit in chosen[:most]}
    done = passed.keeping((hit for hit in standing_first if hit.record.id in ids), others="over-limit")
    return done if passed.hits else _nothing(done, plan, least)


def _needed_first(hits: Sequence[Hit]) -> Sequence[Hit]:
    """What stands, the best answer, what defines a word of the question, and the others."""
    best = next((hit for hit in hits if "standing" not in hit.parts), None)
    return sorted(
        hits, key=lambda hit: ("standing" not in hit.parts, hit is not best, "named" not in hit.parts)
    )


def knee(matches: Iterable[float], *, share: float) -> float:
    """Where a note ends: the least match before its knee; 0 where there is none.

    The knee is the first match, going down, that is under a share of the best and stands apart from the one
    before it. So of two nearly equal hits never one alone is dropped, however far they are from the best.

    Args:
        share: Of the best match, in [0, 1]; 0: there is no knee.
    """
    falling = sorted(matches, reverse=True)
    least = share * falling[0] if falling else 0.0
    apart = (upper for upper, lower in pairwise(falling) if lower < least and lower < _NEARLY_EQUAL * upper)
    return next(apart, 0.0)


def _is_sure(hit: Hit) -> bool:
    """Whether it stands, defines a word of the question, or was added by an operator: the reader needs it
    beside any better answer."""
    return "standing" in hit.parts or "named" in hit.parts or hit.found is not None


def _passes(hit: Hit, least: float) -> bool:
    return "standing" in hit.parts or hit.found is not None or _relevance(hit) >= least


def _relevance(hit: Hit) -> float:
    return hit.parts.get("relevance", 0.0)


def _match(hit: Hit) -> float:
    return hit.parts.get("fused", _relevance(hit))


def _nothing(done: Recalling, plan: Recalling, least: float) -> Recalling:
    """Say that there was something, and none of it relevant; or, of a search, that there was nothing."""
    if plan.hits:
        best = max(map(_relevance, plan.hits))
        told = f"nothing relevant: the best of {len(plan.hits)} has {best:.2f}, the threshold is {least:.2f}"
    elif plan.turn.purpose == "hits" and plan.query is not None and plan.query.text:
        told = _NOTHING_THERE if plan.hits.namespaces == 0 else _NOTHING_ALIKE
    else:
        return done
    return replace(done, hits=replace(done.hits, notes=(*done.hits.notes, told)))


def drop_already_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Leave out what the reader has in front of it anyway: the text, or the file or SQL it stands for."""
    if not plan.turn.messages or not plan.hits:
        return plan
    said = _squeezed("\n".join(message.content for message in plan.turn.messages))
    kept = tuple(hit for hit in plan.hits if not any(_says(said, text) for text in _tellings(hit.record)))
    return plan.keeping(kept, others="already-said")


def _tellings(record: Record) -> list[str]:
    """The ways in which a message may already say what a record says."""
    named = (record.metadata.get(name) for name in ("path", "sql"))
    return [_squeezed(text) for text in (record.content, *named) if isinstance(text, str) and text]


def _says(said: str, text: str) -> bool:
    """Whether a text stands there, and not as a part of another word or path."""
    return text in said and re.search(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", said) is not None


def _squeezed(text: str) -> str:
    return " ".join(text.split())
