"""Rank: each record's relevance, and its place by match, age, source, importance and reads.

Two numbers say how well a record answers. Its *relevance* is made of absolute parts, so that the best of
nonsense stays nonsense: the threshold reads it alone. Its *match* is made of all signals, scaled within one
search (`signals/measure.py`), and orders far better. What enters the score is the match on the scale of the
best relevance: `fused`.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit, Message, Query, Record
from supervisor_memory.model.records.found import hit_of
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.settings import Settings
from supervisor_memory.stages.retrieval.search import least_relevance
from supervisor_memory.understand.dates import (
    FACT_DATED,
    DateRange,
    asks_when,
    closeness,
    mentions_time,
    named_dates,
)
from supervisor_memory.understand.names import identifier_match, identifiers, kin
from supervisor_memory.understand.questions import dates_asked_for

SECONDS_A_DAY = 86_400.0
_MOST_LOST = 700.0  # of which `exp` is above 0
_OFTEN = 5.0
"""A record read this many times gets half of the most that reads can add."""


def decay(age_days: float, rate: float, floor: float = 0.0) -> float:
    """Weight of a record by age: 1 when new, `exp(-rate·age)` later, never under `floor`.

    Args:
        age_days: Days since the record last changed. Negative (a clock that jumped) and NaN count as 0.
        rate: λ per day, 0 or more. ln 2 / 30 halves in 30 days.

    Source: exponential forgetting, Ebbinghaus 1885.
    """
    lost = rate * age_days if age_days > 0 else 0.0
    kept = math.exp(-lost if lost < _MOST_LOST else -_MOST_LOST)
    return kept if kept > floor else floor


def recency(record: Record, now: float, settings: Settings) -> float:
    """How fresh a record is, by its kind's λ; 1 for one with `metadata["pinned"]` true, however old."""
    return parts_at(now, settings)(record, 0)["decay"]


def importance(record: Record) -> float:
    """The record's importance in [0, 1]; 0.5 unless somebody said otherwise. NaN counts as 0."""
    return min(max(0.0, record.importance), 1.0)


def reads(times: int) -> float:
    """The part of the score for earlier reads: 0 for none, 0.5 for five, always below 1.

    It saturates, so that what is read because it was read does not run away from the rest.
    """
    return times / (times + _OFTEN)


def parts_at(now: float, settings: Settings) -> Callable[[Record, int], dict[str, float]]:
    """A function from a record and its reads to the parts of its score besides relevance."""
    fill = _filling(now, settings)

    def parts_of(record: Record, times_read: int = 0) -> dict[str, float]:
        parts: dict[str, float] = {}
        fill(parts, record, times_read)
        return parts

    return parts_of


def _filling(now: float, settings: Settings) -> Callable[[dict[str, float], Record, int], None]:
    """A function of parts, a record and its reads that adds the parts of `parts_at`."""
    rates, usual, floor = settings.decay_lambdas, settings.decay_lambda, settings.decay_floor
    boosts = settings.source_boosts
    weighs_importance, weighs_reads = settings.weight_importance, settings.weight_reads

    def fill(parts: dict[str, float], record: Record, times_read: int) -> None:
        days, rate = (now - record.updated_at) / SECONDS_A_DAY, rates.get(record.kind, usual)
        is_pinned = record.metadata and record.metadata.get("pinned") is True
        parts["decay"] = 1.0 if is_pinned else decay(days, rate, floor)
        parts["source"] = boosts.get(record.source.source_class, 0.0)
        if weighs_importance:
            parts["importance"] = importance(record)
        if weighs_reads:
            parts["reads"] = reads(times_read)

    return fill


def weighted(parts: Mapping[str, float], settings: Settings) -> float:
    """S: the mean of the parts by their weights, in [0, 1]. A part that is missing counts as 0."""
    weights = settings.weights
    held = [weight * parts[part] for part, weight in weights.items() if part in parts]
    return sum(held) / sum(weights.values())


_AGREEMENT = 0.25  # what a second signal adds to what the best one left open
_NAMED = 0.8  # relevance of a definition whose term the question uses
_DATED = 0.3  # what a time that fits adds to what is left open
_SOME = 0.15  # relevance under which a time that fits adds less
_IN_CONTEXT = 0.7  # of the share of the terms that are in a record and what was said before it
_IDENTIFIED = 0.3  # what a record adds to its match that holds all identifiers of the question
_SAYS_WHEN = 0.25  # what it adds where the question is when, and the record names a time


def coverage(asked: Collection[str], record: Record) -> float:
    """Share of the question's terms that the record holds, in its text, `use_when` or tags, in [0, 1]."""
    if not asked:
        return 0.0
    held = frozenset(terms(record.searched_text))
    return sum(term in held or not held.isdisjoint(kin(term)) for term in asked) / len(asked)


def relevance(
    dense: float | None,
    covered: float,
    named: bool,  # noqa: FBT001
    context: float = 0.0,
    dated: float = 0.0,
) -> float:
    """The fused evidence for a record, in [0, 1].

    Args:
        dense: Calibrated cosine in [0, 1]; None without vectors of one embedder.
        covered: Share of the question's terms found.
        named: Whether the question uses the very term that the record defines.
        context: Share of the terms found in it and in what was said just before.
        dated: How well its time fits one that the question names. The words of a date are in no record of
            that day, and take from all the rest; so a time that fits adds to what other evidence there is.
    """
    best, second = (dense, covered) if dense is not None and dense > covered else (covered, dense or 0.0)
    if (shared := _IN_CONTEXT * context) > best:
        best, second = shared, best
    elif shared > second:
        second = shared
    if named:
        best, second = max(best, _NAMED), max(second, min(best, _NAMED))
    found = best + _AGREEMENT * (1.0 - best) * second
    return found + _DATED * dated * (1.0 - found) * min(1.0, found / _SOME) if dated else found


def rank(plan: Recalling, view: ReadStore) -> Recalling:
    """Score every candidate and put the best first.

    Where nothing is relevant the match alone orders; of equals the newest comes first, by id.
    """
    if plan.query is None or not plan.hits:
        return plan
    embedder = view.embedder if plan.query.vector is not None else None
    calibration = embedder.calibration if embedder else None
    asked = [frozenset(each.terms) for each in (plan.query, *plan.query.parts)]
    hits = _dated_by_their_texts(plan.hits, plan.query)
    alike = calibration.relevance if calibration else None
    weighed = [_with_relevance(hit, asked, alike) for hit in hits]
    matches = _matches(hits, plan.query)
    best_match, best_relevance = max(matches), max([parts["relevance"] for parts in weighed])
    scale = best_relevance / best_match if best_match else 0.0
    now, settings = view.now, view.settings
    read = view.reads([hit.record.id for hit in hits]) if settings.weight_reads else {}
    weights = [(part, weight) for part, weight in settings.weights.items() if weight]
    together = sum([weight for _, weight in weights])
    fill = _filling(now, settings)
    scored: list[tuple[float, float, str, Hit]] = []
    for hit, parts, match in zip(hits, weighed, matches, strict=True):
        record = hit.record
        parts["match"], parts["fused"] = match, match * scale
        fill(parts, record, read[record.id].times if record.id in read else 0)
        score = 0.0
        for part, weight in weights:
            score += weight * parts[part]
        score /= together
        scored.append((score, match, record.id, hit_of(record, score, parts, hit.found, hit.excerpt)))
    scored.sort(key=_first_three, reverse=True)
    return plan.with_items([each[3] for each in scored])


_first_three = itemgetter(0, 1, 2)


def _dated_by_their_texts(hits: Sequence[Hit], query: Query) -> Sequence[Hit]:
    """Rate the age of facts by the time they name, not by when they were written.

    The results of the first quarter are reported in the second."""
    if not (asked := dates_asked_for(query.text, query.now)):
        return hits
    return [
        hit if "match" not in hit.parts or hit.record.layer == "history" else _redated(hit, asked, query)
        for hit in hits
    ]


def _redated(hit: Hit, asked: Sequence[DateRange], query: Query) -> Hit:
    fit = closeness(asked, named_dates(hit.record.content, hit.record.created_at))
    if fit is None:
        return hit
    parts = dict(hit.parts)
    gained = FACT_DATED * fit - parts.pop("date", 0.0)
    if fit:
        parts["date"] = FACT_DATED * fit
    return replace(hit, parts={**parts, "match": parts["match"] + query.weights.date * gained})


def _with_relevance(
    hit: Hit, asked: Sequence[frozenset[str]], alike: Callable[[float], float] | None
) -> dict[str, float]:
    """The parts of a hit with its relevance and the parts of its relevance.

    Args:
        asked: The terms of the question, then those of each of its parts; the best counts.
        alike: Takes a cosine; gives the likeness in meaning. None: nothing was compared by meaning.
    """
    record = hit.record
    parts = {**hit.parts}
    named = False
    if record.subject and record.kind == "domain-facts":
        subject = terms(record.subject)
        named = bool(subject) and asked[0].issuperset(subject)
    covered = parts.pop("coverage", None)  # as the store has counted it, for one question of few terms
    if covered is None or len(asked) > 1:
        covered = max([coverage(each, record) for each in asked])
    sim = alike(parts["cosine"]) if alike is not None and "cosine" in parts else None
    evidence = relevance(sim, covered, named, parts.get("context", 0.0), parts.get("date", 0.0))
    if hit.found is not None:
        evidence = max(evidence, parts.get("relevance", 0.0))  # what the operator says of it
    parts["relevance"], parts["coverage"] = evidence, covered
    if sim is not None:
        parts["sim"] = sim
    if named:
        parts["named"] = _NAMED
    return parts


def _matches(hits: Sequence[Hit], query: Query) -> Sequence[float]:
    """The match of each hit: the store's, or one made of meaning and words for stores without."""
    lacks_it = any("match" not in hit.parts and hit.parts.keys() & {"cosine", "bm25"} for hit in hits)
    matches = _by_parts(hits, query) if lacks_it else [hit.parts.get("match", 0.0) for hit in hits]
    if named := identifiers(query.text):
        found = (identifier_match(named, identifiers(hit.record.content)) for hit in hits)
        matches = [match + _IDENTIFIED * share for match, share in zip(matches, found, strict=True)]
    if asks_when(query.text):
        says = (mentions_time(hit.record.content) for hit in hits)
        matches = [match + _SAYS_WHEN * is_told for match, is_told in zip(matches, says, strict=True)]
    return matches


def _by_parts(hits: Sequence[Hit], query: Query) -> list[float]:
    import numpy as np

    from supervisor_memory.signals.measure import base

    meaning = [hit.parts.get("cosine", query.unrelated) - query.unrelated for hit in hits]
    words = [hit.parts.get("bm25", 0.0) for hit in hits]
    signals = {"meaning": np.array(meaning, np.float32), "words": np.array(words, np.float32)}
    return [float(match) for match in base(signals, query.weights)]


_NOTHING_THERE = "nothing found: this user has no memories where it was searched (user, task, families)"
_NOTHING_ALIKE = "nothing found: no memory that was searched shares a word with the question or is like it"
NEARLY_EQUAL = 0.9  # of the match of the one before


def gate(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop hits below the threshold, hits over the limit and, in a note, hits after its knee.

    Standing preferences come first, whatever their relevance. Of a note the limit drops the best hit and what
    defines a word of the question last.
    """
    turn, settings = plan.turn, view.settings
    least = least_relevance(turn, settings)
    passed = plan
    if least > 0:
        near = [
            hit
            for hit in plan.hits
            if (parts := hit.parts).get("relevance", 0.0) >= least
            or "standing" in parts
            or hit.found is not None
        ]
        passed = plan.keeping(near, others="below-threshold")
    if turn.purpose == "note" and least:
        if not answers(plan.hits):
            passed = passed.keeping(filter(is_sure, passed.hits), others="no-answer")
        edge = knee((_match(hit) for hit in passed.hits if hit.found is None), share=settings.knee)
        before = (hit for hit in passed.hits if is_sure(hit) or _match(hit) >= edge)
        passed = passed.keeping(before, others="after-knee")
    usual = settings.top_k if turn.purpose == "hits" else settings.max_notes
    most = usual if turn.limit is None else turn.limit
    standing_first = sorted(passed.hits, key=lambda hit: "standing" not in hit.parts)
    told: Iterable[Hit] = standing_first[:most]
    if turn.purpose == "note":
        ids = {hit.record.id for hit in _needed_first(standing_first)[:most]}
        told = (hit for hit in standing_first if hit.record.id in ids)
    done = passed.keeping(told, others="over-limit")
    return done if passed.hits else _explain_nothing(done, plan, least)


ANSWERS = 0.6
"""The evidence of a hit that may answer; docs/ranking.md has the curve."""


def evidence(hit: Hit) -> float:
    """How well a hit covers a question: the larger of its similarity and its share of the rare words, plus
    half of the other."""
    return together(hit.parts.get("sim", 0.0), hit.parts.get("share", 0.0))


def together(alike: float, shared: float) -> float:
    """Combine a similarity and a share of words."""
    return max(alike, shared) + min(alike, shared) / 2


def answers(hits: Iterable[Hit]) -> bool:
    """Whether some hit may answer the question.

    Where nothing was compared by meaning it cannot be known, and is taken for granted.
    """
    found = [*hits]
    return not any("sim" in hit.parts for hit in found) or max(map(evidence, found)) >= ANSWERS


def _needed_first(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Standing preferences, the best answer, definitions of the question's words, then the others."""
    best = next((hit for hit in hits if "standing" not in hit.parts), None)
    return sorted(hits, key=lambda h: ("standing" not in h.parts, h is not best, "named" not in h.parts))


def knee(matches: Iterable[float], *, share: float) -> float:
    """Where a note ends: the least match before its knee; 0 where there is none.

    The knee is the first match, going down, that is under a share of the best and stands apart from the one
    before it. So of two nearly equal hits never one alone is dropped, however far they are from the best.

    Args:
        share: Of the best match, in [0, 1]; 0: there is no knee.
    """
    falling = sorted(matches, reverse=True)
    least = share * falling[0] if falling else 0.0
    apart = (upper for upper, lower in pairwise(falling) if lower < least and lower < NEARLY_EQUAL * upper)
    return next(apart, 0.0)


def is_sure(hit: Hit) -> bool:
    """Whether a hit is needed beside any better answer: a standing preference, a definition of a word of the
    question, or a hit added by an operator."""
    return "standing" in hit.parts or "named" in hit.parts or hit.found is not None


def _relevance(hit: Hit) -> float:
    return hit.parts.get("relevance", 0.0)


def _match(hit: Hit) -> float:
    return hit.parts.get("fused", _relevance(hit))


def _explain_nothing(done: Recalling, plan: Recalling, least: float) -> Recalling:
    """Explain an empty result: no hit was relevant or, in a search, nothing was found."""
    if plan.hits:
        best = max(map(_relevance, plan.hits))
        told = f"nothing relevant: the best of {len(plan.hits)} has {best:.2f}, the threshold is {least:.2f}"
    elif plan.turn.purpose == "hits" and plan.query is not None and plan.query.text:
        told = _NOTHING_THERE if plan.hits.namespaces == 0 else _NOTHING_ALIKE
    else:
        return done
    return replace(done, hits=replace(done.hits, notes=(*done.hits.notes, told)))


def drop_already_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop records that the reader's messages already show: by text, path or SQL."""
    if not plan.turn.messages or not plan.hits:
        return plan
    says = is_shown_in(plan.turn.messages)
    return plan.keeping((hit for hit in plan.hits if not says(hit.record)), others="already-said")


def is_shown_in(messages: Sequence[Message]) -> Callable[[Record], bool]:
    """A function that tells whether these messages already show a record: by text, path or SQL."""
    said = _squeezed("\n".join(message.content for message in messages))

    def shows(record: Record) -> bool:
        if not record.metadata:
            return _says(said, _known_squeezed(record.content))
        return any(_says(said, text) for text in _tellings(record))

    return shows if said else lambda record: False


def _tellings(record: Record) -> list[str]:
    """The texts that show a record if a message contains one of them: its content, path and SQL."""
    named = (record.metadata.get(name) for name in ("path", "sql"))
    return [_known_squeezed(text) for text in (record.content, *named) if isinstance(text, str) and text]


def _says(said: str, text: str) -> bool:
    """Whether a text contains another one, not as a part of a longer word or path."""
    return text in said and re.search(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", said) is not None


def _squeezed(text: str) -> str:
    return " ".join(text.split())


_known_squeezed = lru_cache(maxsize=2_048)(_squeezed)  # the same records are asked after in many notes
