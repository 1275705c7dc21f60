"""The judge that runs unless another is chosen: rules and a regression over a pair of texts, no model.

The same subject and attribute, or about the same thing (`compare/verdict.py`): merged when the texts say the
same, replaced when the later one says something else.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from supervisor_memory.compare.apart import apart, is_settled, why_instead
from supervisor_memory.compare.changes import change
from supervisor_memory.compare.differences import exchanges_two
from supervisor_memory.compare.evidence import nearness
from supervisor_memory.compare.in_common import shares_words
from supervisor_memory.compare.other_things import of_other_things
from supervisor_memory.compare.pair import Pair, beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.slots import same_slots
from supervisor_memory.compare.verdict import INSTEAD_FROM, Compared, Verdict, verdicts
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.language.wording import same_marks, tells
from supervisor_memory.model.decisions import Add, Append, Decision, Merge, Replace, Rival, Rivals
from supervisor_memory.model.records import ARTIFACT, Candidate, Kind, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.pre_insert.extract import STEPS
from supervisor_memory.understand.entities import entities, key_of
from supervisor_memory.understand.sql import another_query, query_of

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Calibration

_ANOTHERS = frozenset(["person", "opposite", "restriction"])  # codes of two texts with different subjects
_NAMED_BETTER = frozenset(["topic", "supposed"])  # codes that the subject and attribute of a record overrule
_LEAST_TERMS = 3  # under so many, one text holding the other's terms means nothing
UNLIKELY = 0.25  # the chance under which a sentence only counts for what it changes or repeats
_NEAR, _NOT_FAR = 0.5, 0.3
"""The least nearness of a doubtful sentence to a record; and with a told change."""
BY_SUBJECT = "contradicts:subject"
"""Why a record of the same subject and attribute is replaced; see `why_instead` for the others."""
_OF_FILES = frozenset({"path", "sql"})  # metadata of a file or a query, not of a text about it
_STATED: tuple[Kind, ...] = ("domain-facts", "user-profile")


def by_evidence(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """Decide on a candidate by the evidence of its text and each rival's."""
    decision = in_one_kind(candidate, rivals, view)
    is_weighed = isinstance(decision, Replace) and not _is_certain(decision, candidate)
    if candidate.kind not in _STATED or not (is_weighed or decision == Add()):
        return decision
    other = _in_another_kind(candidate, rivals, view)
    if other is None or (is_weighed and not _is_certain(other, candidate)):
        return decision
    return other


def _is_certain(decision: Decision, candidate: Candidate) -> bool:
    """Whether a record gives way because its texts tell it, not because a regression weighed them."""
    if not isinstance(decision, Replace):
        return False
    return is_settled(beside(read(decision.record.content), read(candidate.content)))


def _in_another_kind(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision | None:
    """Find the record of the other kind (fact or profile) that a candidate repeats or changes: "fish comes on
    Tuesdays" states a fact, "from now on, fish comes on Thursdays" reads like a wish."""
    kind = next(kind for kind in _STATED if kind != candidate.kind)
    told = read(candidate.content)
    if candidate.subject is None and not (told.states or told.dropped or tells_a_change(candidate.content)):
        scale = view.embedder.calibration if view.embedder is not None else None
        if not _is_close(rivals.of_kind(kind), _NEAR, scale):
            return None  # what is not near says neither the same nor anything new
    decision = in_one_kind(candidate, rivals.of_kind(kind), view, kind=kind)
    if isinstance(decision, Merge):
        return decision if decision.is_one else None
    if not isinstance(decision, Replace):
        return None
    pair = beside(read(decision.record.content), read(candidate.content))
    if is_settled(pair):
        return decision
    is_crossed = pair.is_template and exchanges_two(pair)
    return decision if tells_a_change(candidate.content) and not is_crossed else None


def tells_a_change(text: str) -> bool:
    """Whether a text says that something has changed."""
    told = read(text)
    return told.announces or told.corrects or change(text) > 0


def is_of_what_is_known(candidate: Candidate, rivals: Rivals, view: ReadStore) -> bool:
    """Whether a sentence that may be no statement is about a known record of either kind.

    It changes or repeats a record, is near to one and has a word in common with it, or tells a change and is
    not far from one.
    """
    return _is_near_known(candidate, rivals, view) or isinstance(
        by_evidence(candidate, rivals, view), Merge | Replace
    )


def _is_near_known(candidate: Candidate, rivals: Rivals, view: ReadStore) -> bool:
    if candidate.confidence < UNLIKELY:
        return False
    scale = view.embedder.calibration if view.embedder is not None else None
    if scale is None:
        return False
    said = read(candidate.content)
    told = (rivals if kind == candidate.kind else rivals.of_kind(kind) for kind in _STATED)
    every = (rival for some in told if _is_close(some, _NOT_FAR, scale) for rival in some.nearest)
    near = [
        (nearness(rival.cosine, unrelated=scale.unrelated, same=scale.same), rival.record)
        for rival in every
        if rival.cosine is not None
    ]
    if tells_a_change(candidate.content) and any(each >= _NOT_FAR for each, _ in near):
        return True
    return any(each >= _NEAR and shares_words(beside(read(record.content), said)) for each, record in near)


def _is_close(rivals: Rivals, least: float, scale: "Calibration | None") -> bool:
    """Whether the vector of any rival is that near."""
    closest = rivals.closest
    if scale is None or closest is None:
        return False
    return nearness(closest, unrelated=scale.unrelated, same=scale.same) >= least


def replaced_by(
    candidate: Candidate, earlier: Mapping[str, tuple[str, float]], view: ReadStore
) -> tuple[str, ...]:
    """The ids of the messages to whose statement a text gives a new value.

    Args:
        earlier: Message id → its statement, and the cosine of its vector and the candidate's.
    """
    scale = view.embedder.calibration if view.embedder is not None else None
    known = [Compared.of(text, candidate.content, cosine) for text, cosine in earlier.values()]
    return tuple(
        id_
        for id_, each in zip(earlier, verdicts(candidate.content, known, scale), strict=True)
        if each.about >= view.settings.duplicate_threshold and each.instead >= INSTEAD_FROM
    )


def by_model(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """Follow the operation that a model, or a person, asks for by a record's id; else decide by evidence.

    Without an event the candidate only says the record in other words.
    """
    if candidate.target is None:
        return by_evidence(candidate, rivals, view)
    if rivals.named is None:
        return Add()
    is_rewording = candidate.event is None
    return Merge(rivals.named, candidate.content) if is_rewording else Replace(rivals.named)


def in_one_kind(
    candidate: Candidate, rivals: Rivals, view: ReadStore, *, kind: Kind | None = None
) -> Decision:
    """Decide among rivals of one kind: Add, Append, Merge or Replace.

    Args:
        kind: The kind of the rivals; None: the candidate's own.
    """
    old = rivals.of_subject
    if candidate.attribute == STEPS:
        return Append(old) if old else Add()
    if old:
        found = _on_one_subject(old, candidate, view)
        if not (isinstance(found, Replace) and _only_name_a_file(old, candidate)):
            return found
    return _about_the_same(candidate, rivals, view, is_result=(kind or candidate.kind) == "task-traces")


def _only_name_a_file(old: Record, new: Candidate) -> bool:
    """Whether two statements only mention one file.

    Neither is the file that an agent wrote, so what each tells of it may be anything: where it lies, what is
    loaded from it.
    """
    return old.attribute == ARTIFACT and all(_OF_FILES.isdisjoint(each.metadata) for each in (old, new))


def _on_one_subject(old: Record, new: Candidate, view: ReadStore) -> Decision:
    if query_of(old.content) and query_of(new.content):
        return Merge(old)
    if old.attribute == ARTIFACT and _share_a_name_alone(old.content, new.content):
        return Add(old, apart="name-alone")
    one, other = read(old.content).slots, read(new.content).slots
    for slot in ("rates", "years", "labels"):
        mine, yours = getattr(one, slot), getattr(other, slot)
        if mine and yours and not mine & yours and new.value is None:
            return Add(old, apart=slot)  # the price a month, and a year
    pair = beside(read(old.content), read(new.content))
    is_same_value = new.value is not None and new.value == old.metadata.get("value")
    if (why := of_other_things(pair)) and why not in _NAMED_BETTER:
        return Add(old, apart=why)
    why = apart(pair)
    if why in _ANOTHERS and (why == "person" or new.value is None):
        return Add(old, apart=why)  # "includes" and "excludes" are the two values of one thing
    if why == "subject" and (is_same_value or len(pair.replaced) > 1):
        return Add(old, apart=why)  # the same wish, of somebody else
    if is_same_value and pair.announces and pair.is_template and pair.replaced:
        return Replace(old, BY_SUBJECT)
    return Merge(old) if _is_compatible(old, new, view) else Replace(old, BY_SUBJECT)


def _about_the_same(new: Candidate, rivals: Rivals, view: ReadStore, *, is_result: bool) -> Decision:
    """The decision on the record that is most surely about the same thing; None: none is sure enough."""
    left = [
        rival
        for rival in rivals.nearest
        if not (_is_of_its_own(rival.record, new) or _share_a_name_alone(rival.record.content, new.content))
    ]
    scale = view.embedder.calibration if view.embedder is not None else None
    known = [Compared.of(rival.record.content, new.content, rival.cosine) for rival in left]
    judged = [*zip(verdicts(new.content, known, scale), left, known, strict=True)]
    rated = [each for each in judged if each[0].about >= view.settings.duplicate_threshold]
    if not rated:
        return _add_apart(judged, rivals)
    verdict, rival, compared = max(rated, key=lambda each: (_is_told(each[2], new), each[0].rank))
    record = rival.record
    if verdict.instead < INSTEAD_FROM:
        return Merge(record, is_one=verdict.is_one)
    if is_result:
        return Add(nearest=record, apart="result")  # which does not undo an earlier one
    return Replace(record, f"contradicts:{why_instead(_pair_of(compared, new))}")


def _is_told(compared: Compared, new: Candidate) -> bool:
    return is_settled(_pair_of(compared, new))


def _pair_of(compared: Compared, new: Candidate) -> Pair:
    return beside(read(compared.text), read(compared.new or new.content))


def _add_apart(judged: Sequence[tuple[Verdict, Rival, Compared]], rivals: Rivals) -> Add:
    """The decision to add a separate record, beside the rival that came nearest to being the same."""
    if judged:
        verdict, nearest, _ = max(judged, key=lambda each: each[0].about)
        return Add(nearest=nearest.record, apart=(verdict.apart or "unlike").replace(" ", "-"))
    return next((Add(nearest=each.record, apart="of-its-own") for each in rivals.nearest), Add())


def _is_of_its_own(old: Record, new: Candidate) -> bool:
    """Whether a record stays apart from a text however alike they are: a step of a task, another file or
    query."""
    if old.attribute == STEPS or another_query(old, new):
        return True
    are_files = old.attribute == new.attribute == ARTIFACT
    return are_files and old.subject != new.subject and not read(new.content).announces


def _share_a_name_alone(old: str, new: str) -> bool:
    """Whether two texts name one thing and have no other word in common: they are two facts of it.

    What tells a change of the thing that the known text is about is not: it may say so in words of its own.
    Nor are texts of two languages.
    """
    shared = set(terms(new)).intersection(terms(old))
    if not shared or has_cjk(old) != has_cjk(new):
        return False
    named = {each.key for each in entities(new)}
    if not named:
        return False
    said = entities(old)
    both = {each.key for each in said} & named
    if not shared <= {term for key in both for term in terms(key)}:
        return False
    is_about_another = min(said, key=lambda each: key_of(old).find(each.key)).key not in both
    return is_about_another or not tells_a_change(new)


def _is_compatible(old: Record, new: Candidate, view: ReadStore) -> bool:
    """Whether a text on the same subject adds to the record rather than contradicts it."""
    before = old.metadata.get("value")
    if new.value is not None and before is not None:
        return bool(new.value == before)
    alike = likeness(old.content, new.content, dense=None)
    return alike >= view.settings.conflict_threshold and same_slots(old.content, new.content)


def likeness(old: str, new: str, *, dense: float | None) -> float:
    """How alike two texts are, in [0, 1]: one saying the other, or shared terms and calibrated cosine.

    Similarity alone cannot tell a paraphrase from a rival; the caller compares slots as well.

    Args:
        dense: Calibrated cosine in [0, 1], None without vectors.
    """
    a, b = set(terms(old)), set(terms(new))
    if not a or not b:
        return 0.0
    (smaller, shorter), (larger, longer) = sorted(((a, old), (b, new)), key=lambda pair: len(pair[0]))
    if len(smaller) >= _LEAST_TERMS and 2 * len(smaller) >= len(larger) and tells(longer, shorter):
        return 1.0
    if not same_marks(old, new):
        return 0.0
    shared = len(a & b) / len(a | b)
    return shared if dense is None else (shared + dense) / 2
