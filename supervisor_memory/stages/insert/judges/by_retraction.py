"""The judge of retractions ("Forget that …"): finds the record to retract among all kinds."""

from supervisor_memory.compare.evidence import nearness
from supervisor_memory.compare.retraction import exchanges, fit, is_topic, names_another, still_said
from supervisor_memory.model.decisions import Decision, Merge, Retract, Rivals, Skip
from supervisor_memory.model.records import KINDS, Candidate, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.insert.judges.by_evidence import in_one_kind

_SURELY, _BY_ITS_VALUE, _PERHAPS, _BY_MEANING = 2.0, 1.5, 0.25, 0.1
_NEAR, _AHEAD = 0.45, 0.25
"""The least cosine between a topic and its record, and the least lead over the next record."""


def by_retraction(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """Retract the record that the candidate takes back.

    A retraction does not say of which kind the record is, so all kinds are looked through.
    """
    kinds = dict.fromkeys((candidate.kind, *KINDS))
    found = (_taken_back(candidate, rivals.of_kind(kind), view) for kind in kinds)
    named = [each for each in found if each is not None]
    if not named:
        return Skip(None, "nothing-to-retract")
    record = max(named, key=lambda each: each[0])[1]
    return Retract(record, rest=still_said(candidate.content, record.content))


def _taken_back(candidate: Candidate, rivals: Rivals, view: ReadStore) -> tuple[float, Record] | None:
    """(fit, record) of the rival to take back among one kind; None: no rival fits."""
    if candidate.target is not None or rivals.same_words is not None:
        record = rivals.named if candidate.target is not None else rivals.same_words
        return (_SURELY, record) if record is not None and record.is_visible(view.now) else None
    records = {record.id: record for record in (*rivals.listed, *(each.record for each in rivals.nearest))}
    rated = [(fit(candidate.content, r.content), r) for r in records.values() if r.layer == "abstract"]
    known = in_one_kind(candidate, rivals, view)
    if isinstance(known, Merge) and known.record.layer == "abstract":
        is_value = candidate.value is not None and candidate.value == known.record.metadata.get("value")
        if is_value or not exchanges(candidate.content, known.record.content):
            rated.append((_BY_ITS_VALUE if is_value else _PERHAPS, known.record))
    if not any(each[0] for each in rated) and is_topic(candidate.content):
        rated += _by_meaning(candidate.content, rivals, view)
    seen = [each for each in rated if each[0] and each[1].is_visible(view.now)]
    return max(seen, key=lambda each: each[0]) if seen else None


def _by_meaning(named: str, rivals: Rivals, view: ReadStore) -> list[tuple[float, Record]]:
    """The record nearest in meaning to a topic in other words, if no other is as near: "the reading problem"
    for "I'm dyslexic". A record with another value does not count: code 9020, where 4411 is named."""
    scale = view.embedder.calibration if view.embedder is not None else None
    if scale is None:
        return []
    near = [
        (nearness(each.cosine, unrelated=scale.unrelated, same=scale.same), each.record)
        for each in rivals.nearest
        if each.cosine is not None and each.record.layer == "abstract" and each.record.is_visible(view.now)
    ]
    (first, record), second = max(near, key=lambda each: each[0], default=(0.0, None)), 0.0
    second = max((some for some, other in near if other is not record), default=0.0)
    if record is None or first < max(_NEAR, second + _AHEAD) or names_another(named, record.content):
        return []
    return [(_BY_MEANING, record)]
