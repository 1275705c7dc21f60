"""HippoRAG: a walk over names, beginning at the question's names, orders the records that hold them.

Paper: Gutiérrez et al., "HippoRAG: Neurobiologically Inspired Long-Term Memory for Large Language Models",
NeurIPS 2024.
Code: OSU-NLP-Group/HippoRAG@b144c46 (branch legacy), src/hipporag.py and create_graph.py.
Follows: the paper: names of one triple are joined. Each name of the question begins the walk at its nearest
name, with less weight if many records hold it. PageRank walks on half of the time. A record scores the sum of
its names, each as often as it is in a triple. If a name is only nearly found, half of the score is by meaning
(`doc_ensemble`).
Differs: the graph has the records nearest to the question, by meaning and words, and the records that share
names with these. Rules find the names of the question; the nearest name shares most words with it, where the
code compares vectors. There are no edges between names that are only alike (cosine from .8 on).
Without a model: rules find the names, and those of one record are joined. The names of a message are its
words without stop-words.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import first_by, likeness, normalised
from supervisor_memory.recipes.operators.phrases import (
    as_graph,
    asked_in,
    ends_of,
    phrases_of,
    search_around,
    triples_of,
    vouched,
    walked,
)
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants, and the sizes of the graph."""

    damping: float = constant(
        0.5, "paper; hipporag.py has .1, README and scripts pass .5", least=0, most=0.99
    )
    recognition_threshold: float = constant(0.9, "hipporag.py: recognition_threshold", least=0, most=1)
    top_k: int = constant(10, "hipporag.py: rank_docs, top_k", least=1, most=1000)
    nearest: int = constant(75, "ours: records by meaning and words in the graph", least=1, most=1000)
    joined: int = constant(50, "ours: records by a walk in the graph", least=0, most=1000)


def edges_of(records: Iterable[Record]) -> Counter[tuple[str, str]]:
    """How often each pair of names is in one triple."""
    return Counter(pair for record in records for pair in ends_of(record))


def told_by(record: Record) -> Sequence[str]:
    """The names of a record, each as often as it is in triples; without triples, each name once."""
    return [name for pair in ends_of(record) for name in pair] or phrases_of(record)


def linked(asked: Iterable[str], names: Collection[str]) -> dict[str, tuple[str, float]]:
    """Name in the question → the most similar name, and their share of words in common.

    A name that shares no word with any maps to ("", 0).
    """
    several = {name: frozenset(terms(name)) for name in names if " " in name}
    found: dict[str, tuple[str, float]] = {}
    for each in asked:
        mine = frozenset(terms(each))
        alike = ((_alike(mine, words), name) for name, words in several.items())
        value, name = (1.0, each) if each in names else max(alike, default=(0.0, ""))
        found[each] = (name, value) if value else ("", 0.0)
    return found


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def by_names(c: Constants) -> Reading:
    """An operator that orders hits by the walk; by meaning where the question has none of their names."""

    def by_walk(plan: Recalling, view: ReadStore) -> Recalling:
        hits = plan.hits.items
        if plan.query is None or not hits:
            return plan
        records = [hit.record for hit in hits]
        held = [told_by(record) for record in records]
        links = linked(asked_in(plan.turn.text, records), {name for each in held for name in each})
        begun = {name for name, _ in links.values() if name}
        dense = normalised([max(likeness(hit), 0.0) for hit in hits])
        scores = dense
        if begun:
            holders = Counter(name for each in held for name in {*each})
            at = {name: 1.0 / holders[name] for name in begun}
            loose = [phrases_of(record) for record in records if not triples_of(record)]
            scores = normalised(walked(held, edges_of(records), at, together=loose, damping=c.damping))
            if min(value for _, value in links.values()) <= c.recognition_threshold:
                scores = [(a + b) / 2 for a, b in zip(scores, dense, strict=True)]
        told = first_by(plan, scores, "hipporag", keep=c.top_k)
        return replace(told, hits=replace(told.hits, items=vouched(told.hits.items, c.top_k)))

    return by_walk


def hipporag(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, by_names(c)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0, words=1.0)),
        retrieval=(search_around(c.nearest, c.joined), *PLAIN.retrieval[1:]),
        pre_insert=(*PLAIN.pre_insert, beside(as_graph)),
        insert=(deciding(judge=only_add),),
    )


PUBLISHED: Final = Published(
    "hipporag", "a walk over names from those of the question", __doc__ or "", hipporag, Constants
)
