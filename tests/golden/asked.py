"""The results of the package's inner modules for a text or a pair, as plain data with stable names.

All imports of inner modules stand here: whoever moves or renames something there changes this file alone, and
no golden file. A value that says nothing is left out.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.compare.apart import apart, turns
from supervisor_memory.compare.evidence import evidence, rarity
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.compare.slots import Slots
from supervisor_memory.compare.verdict import Compared, verdicts
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Vector
from supervisor_memory.model.records import Message, WriteResult
from supervisor_memory.stages.pre_insert.extract import describe, read_user
from supervisor_memory.stages.pre_retrieval.route import route
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.understand.rejection import informing, is_instruction, tally
from supervisor_memory.understand.statements import (
    Definition,
    find_definition,
    masked,
    normal,
    read_statements,
)
from supervisor_memory.understand.subject import (
    about_preference,
    is_about_the_user,
    people,
    properties_of,
    stated,
)

__all__ = [
    "agents_answer",
    "definition",
    "evidence_of",
    "explicit_write",
    "held",
    "hits",
    "note",
    "opened",
    "preference",
    "routes",
    "said",
    "slots_of",
    "spoken_of",
    "stated_in",
    "users_turn",
    "verdicts_on",
]

Told = dict[str, Any]
READER = "analyst"


def _told(**values: object) -> Told:
    """The values that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", (), [], {}, False)}


def _sorted(values: Any) -> list[Any]:
    return sorted(values)


def stated_in(text: str) -> Told:
    """The judgement of each sentence, in order."""
    found = read_statements(text)
    return _told(
        sentences=[
            _told(
                text=each.text if each.text != text else "",
                does=each.does,
                reason=each.reason,
                kind=each.kind,
                definition=_definition(each.definition),
                start=each.start,
                retracts=each.retracts,
            )
            for each in found.all
        ],
        refusal=found.refusal,
    )


def _definition(found: Definition | None) -> Told:
    return _told(term=found.term, relation=found.relation, value=found.value) if found else {}


def users_turn(text: str) -> Told:
    """The candidates of a user's text, and the reasons why its other sentences are not kept."""
    found = read_user(Message("user", text))
    candidates = [
        _told(
            content=each.content,
            kind=each.kind,
            subject=each.subject,
            attribute=each.attribute,
            value=each.value,
            tags=list(each.tags),
            event=each.event,
            confidence=each.confidence,
            strategy=each.strategy,
            extracted=dict(each.metadata.get("extracted", {})),
            evidence=each.evidence if each.evidence != each.content else "",
        )
        for each in found.candidates
    ]
    return _told(candidates=candidates, unkept=tally(found.unkept))


def explicit_write(text: str) -> Told:
    """The candidate of an explicit write of the text."""
    found = describe(text)
    return _told(
        kind=found.kind,
        subject=found.subject,
        attribute=found.attribute,
        value=found.value,
        tags=list(found.tags),
    )


def agents_answer(text: str) -> Told:
    """The part of an agent's text that is kept, or the reason why none is."""
    kept, reason = informing(text)
    return _told(
        kept=kept if kept != text else "",
        kept_whole=kept == text,
        reason=reason,
        is_instruction=is_instruction(text),
    )


def definition(text: str) -> Told:
    plain = normal(text)
    return _definition(find_definition(plain, masked(plain)))


def preference(text: str) -> Told:
    """Subject, attribute and value of a preference, and the properties it touches."""
    found = about_preference(text)
    return _told(
        subject=found.subject,
        attribute=found.attribute,
        value=found.value,
        properties=list(properties_of(text)),
    )


def spoken_of(text: str) -> Told:
    """The people that a text is about, and the value that it states."""
    found, value = people(text), stated(text)
    return _told(
        is_i=found.is_i,
        is_we=found.is_we,
        others=_sorted(found.others),
        known=_sorted(found.known),
        leads=found.leads,
        subject=found.subject,
        stated=_told(whose=value.whose, attribute=value.attribute, value=value.value) if value else {},
        is_about_the_user=is_about_the_user(text, "ada"),
    )


def routes(text: str) -> Told:
    """Whether the supervisor and a sub-agent read and write for a text, and why."""
    found, agents = route(text), route(text, agent_id=READER)
    return _told(
        reads=found.should_read,
        writes=found.should_write,
        families=list(found.families),
        families_of_an_agent=list(agents.families),
        kinds=list(found.kinds),
        reasons=list(found.reasons),
    )


def slots_of(text: str) -> Told:
    found = Slots(text)
    return _told(
        numbers=[" ".join(each).strip() for each in _sorted(found.numbers)],
        dates=_sorted(found.dates),
        is_negative=found.is_negative,
        directions=_sorted(found.directions),
        sides=_sorted(found.sides),
        identifiers=_sorted(found.identifiers),
        labels=_sorted(found.labels),
        rates=_sorted(found.rates),
        halves=_sorted(found.halves),
        limits=_sorted(found.limits),
    )


def evidence_of(old: str, new: str) -> Told:
    """The evidence of a pair without vectors, weighed by its own words alone."""
    one, other = read(old), read(new)
    pair = beside(one, other)
    weights = rarity([other, one])
    return _told(
        apart=apart(pair),
        turns=turns(pair),
        takes_place=takes_place(pair),
        is_template=pair.is_template,
        evidence=dict(evidence(pair, near=None, lead=0.0, weights=weights)),
    )


def verdicts_on(new: str, known: Sequence[str], *, with_vectors: bool) -> list[Told]:
    """The verdict on each known text, in order."""
    cosines = [float(_vector(new) @ _vector(text)) if with_vectors else None for text in known]
    rivals = [Compared.of(text, new, cosine) for text, cosine in zip(known, cosines, strict=True)]
    return [
        _told(about=each.about, instead=each.instead, apart=each.apart, names=each.names)
        for each in verdicts(new, rivals, _EMBEDDER.calibration if with_vectors else None)
    ]


_EMBEDDER = HashingEmbedder()


@lru_cache(maxsize=1_024)
def _vector(text: str) -> Vector:
    return _EMBEDDER.embed_query(text)


# --- whole stores, by public verbs but for the audit


def opened(*, with_vectors: bool, now: float | None = None) -> SupervisorMemory:
    """A memory in this process, at a standing clock, with time enough on a busy machine."""
    patience = {"search_timeout_ms": 60_000, "write_timeout_ms": 60_000}
    settings = Settings.model_validate({"backend": "in_memory", "embedding_model": "none", **patience})
    clock = FixedClock() if now is None else FixedClock(now)
    return SupervisorMemory(settings, embedder=_EMBEDDER if with_vectors else None, clock=clock)


def held(memory: SupervisorMemory, users: Iterable[str]) -> tuple[list[Told], list[Told]]:
    """All records by user and text, and all rows of the audit in order, without ids and times.

    A record has the texts of its earlier versions; a row has the text that its record had then.
    """
    audit = memory.backend.audit
    subjects = {audit.subject(user): user for user in users}
    rows = audit.rows(limit=100_000)  # before the export, which is a row as well
    exported = _exported(memory)
    texts = {
        (version["id"], version["version"]): version["content"]
        for each in exported
        for version in (*each["versions"], each["record"])
    }
    return (
        sorted(map(_record, exported), key=lambda told: json.dumps(told, sort_keys=True)),
        [
            _told(
                user=subjects[row.subject],
                op=row.op,
                outcome=row.outcome,
                reason=row.event["reason"],
                family=row.event["family"],
                source=row.event["source_class"],
                agent=row.event["agent_id"],
                version_before=row.event["version_before"],
                version_after=row.event["version_after"],
                detail=_without_ids(row.event["detail"]),
                content=texts.get((row.record_id, row.event["version_after"])),
            )
            for row in rows
        ],
    )


def _exported(memory: SupervisorMemory) -> list[Any]:
    file = io.BytesIO()
    memory.export(file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    return [line for line in lines if "record" in line]


def _record(exported: Mapping[str, Any]) -> Told:
    record = exported["record"]
    return _told(
        user=record["namespace"][1],
        family=record["namespace"][0],
        content=record["content"],
        kind=record["kind"],
        layer=record["layer"],
        status=record["status"],
        subject=record["subject"],
        attribute=record["attribute"],
        tags=record["tags"],
        metadata=_without_ids(record["metadata"]),
        source=record["source"]["source_class"],
        agent=record["source"]["agent_id"],
        version=record["version"],
        before=[f"{version['status']}: {version['content']}" for version in exported["versions"]],
    )


def _without_ids(values: Mapping[str, Any]) -> Told:
    return {name: value for name, value in values.items() if not name.endswith(("_id", "_ids"))}


def said(memory: SupervisorMemory, text: str, user: str) -> list[WriteResult]:
    """The result of a turn in which the user says the text."""
    return memory.remember([{"role": "user", "content": text}], Scope(user))


def note(memory: SupervisorMemory, question: str, user: str) -> tuple[Sequence[str], str]:
    """The ids and the text of the note that a supervisor reads before it answers the question."""
    found = memory.recall([{"role": "user", "content": question}], Scope(user))
    assert not found.degraded, found.reasons
    return found.ids, found.text


def hits(memory: SupervisorMemory, question: str, user: str) -> Sequence[str]:
    """The ids of the best ten hits, relevant or not."""
    found = memory.search(question, user_id=user, limit=10, threshold=0.0)
    assert not found.degraded, found.notes
    return [hit.record.id for hit in found]
