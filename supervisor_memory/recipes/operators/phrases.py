"""The names and the triples of a text, kept with its record: the nodes and edges of a graph."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from supervisor_memory.flow import Reading, Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit, Record, Seed
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.operators.answers import told_in
from supervisor_memory.signals.pagerank import pagerank
from supervisor_memory.understand.entities import entities, key_of

PHRASES, TRIPLES = "phrases", "triples"
"""The metadata keys for the names in a text, and for what a model says of them."""
Triple: TypeAlias = tuple[str, str, str]
"""A subject, a relation and an object."""
WALK: Final = "walk"
"""`Hit.found` of a record reached only by its links."""
_LONGEST: Final = 2_000  # characters of a text that a model is shown
_MOST: Final = 20  # triples of a text
_SEEDS: Final = 5
_PARTS: Final = 3


def as_graph(text: str, when: float, view: ReadStore) -> Mapping[str, Any]:
    """Metadata of a text: the model's triples, and names from rules and triples."""
    asked = view.complete(view.prompt("triples", text=text[:_LONGEST])) if view.has_model else None
    triples = triples_in(told_in(asked).get("triples"))[:_MOST]
    named = [each.key for each in entities(text)]
    ends = (key_of(end) for one, _, other in triples for end in (one, other))
    told: dict[str, Any] = {PHRASES: [*dict.fromkeys((*named, *ends))]}
    return told | {TRIPLES: [*map(list, triples)]} if triples else told


def triples_in(told: object) -> list[Triple]:
    """Read the triples of a list; other items are left out."""
    given = told if isinstance(told, (list, tuple)) else ()
    return [
        (one.strip(), relation.strip(), other.strip())
        for each in given
        if isinstance(each, (list, tuple)) and len(each) == _PARTS and all(isinstance(p, str) for p in each)
        for one, relation, other in [each]
        if one.strip() and other.strip()
    ]


def triples_of(record: Record) -> list[Triple]:
    """The triples that are kept with a record."""
    return triples_in(record.metadata.get(TRIPLES))


def phrases_of(record: Record) -> tuple[str, ...]:
    """The names that are kept with a record, else the names in its text; its words where `is_worded`."""
    if is_worded(record):
        return tuple(dict.fromkeys(terms(record.searched_text)))
    told = record.metadata.get(PHRASES)
    if not isinstance(told, (list, tuple)):
        return tuple(dict.fromkeys(_keys(record.content)))
    return tuple(dict.fromkeys(each for each in told if isinstance(each, str)))


def is_worded(record: Record) -> bool:
    """Whether a record's words serve as its names: a message without triples by a model, since people who
    talk to each other name few things."""
    return record.is_said and not triples_of(record)


def asked_in(text: str, records: Iterable[Record]) -> tuple[str, ...]:
    """The names in a question and, where `is_worded` holds for a record, its words."""
    words = terms(text) if any(map(is_worded, records)) else ()
    return tuple(dict.fromkeys((*_keys(text), *words)))


def _keys(text: str) -> Iterator[str]:
    return (each.key for each in entities(text))


def ends_of(record: Record) -> list[tuple[str, str]]:
    """Subject and object of each triple, as names are compared."""
    return [(key_of(one), key_of(other)) for one, _, other in triples_of(record)]


def search_around(nearest: int, joined: int) -> Reading:
    """An operator: finds the nearest records, and those their names lead to."""

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        if plan.query is None:
            return plan
        hits = view.search(plan.query, limit=nearest)
        seeds = [Seed(hit.record.content, record_id=hit.record.id) for hit in hits[:_SEEDS]]
        records = [hit.record for hit in hits]
        walked = view.related(seeds, plan.query, limit=joined, among=records) if seeds and joined else ()
        known = {record.id for record in records}
        beside = [replace(hit, found=WALK) for hit in walked if hit.record.id not in known]
        notes = (*plan.hits.notes, *hits.notes, *getattr(walked, "notes", ()))
        return replace(plan, hits=replace(hits, items=(*hits, *beside), notes=notes))

    return found


def vouched(hits: Sequence[Hit], most: int) -> tuple[Hit, ...]:
    """The hits; records that only the walk found pass the threshold if they are among the first `most`."""
    return (*hits[:most], *(replace(hit, found=None) if hit.found == WALK else hit for hit in hits[most:]))


def walked(
    held: Sequence[Sequence[str]],
    edges: Mapping[tuple[str, str], float],
    begun: Mapping[str, float],
    *,
    together: Sequence[Sequence[str]] = (),
    records: Sequence[float] | None = None,
    damping: float,
) -> list[float]:
    """The score of each record by PageRank.

    Args:
        held: The names of each record.
        edges: How often two names belong together; those that no record holds do not count.
        begun: How likely the walk begins at each name.
        together: Names that all belong together, group by group, each once; held by a record.
        records: How likely at each record; then records are nodes, joined to what they name, and worth their
            own rank. None: a record is worth what its names are together.
    """
    first = 0 if records is None else len(held)
    node = {name: first + n for n, name in enumerate(dict.fromkeys(name for each in held for name in each))}
    joined = [
        (node[one], node[other], value)
        for (one, other), value in edges.items()
        if {one, other} <= node.keys()
    ]
    joined += [(at, node[name], 1.0) for at, each in enumerate(held) for name in each if records is not None]
    reset = np.zeros(first + len(node))
    reset[:first] = 0.0 if records is None else records
    for name in begun.keys() & node.keys():
        reset[node[name]] = begun[name]
    if not reset.any():
        return [0.0] * len(held)
    ends = [np.array([each[n] for each in joined], dtype=np.intp) for n in (0, 1)]
    weights = np.array([each[2] for each in joined], dtype=np.float64)
    group = np.repeat(np.arange(len(together), dtype=np.intp), [len(each) for each in together])
    member = np.array([node[name] for each in together for name in each], dtype=np.intp)
    at = pagerank((ends[0], ends[1]), weights, reset, damping=damping, groups=(group, member))
    if records is not None:
        return [float(each) for each in at[:first]]
    return [float(sum(at[node[name]] for name in each)) for each in held]
