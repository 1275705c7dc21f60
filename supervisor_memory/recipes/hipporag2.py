"""HippoRAG 2: records and names are one graph, and a walk from the question's facts orders the records.

Paper: Gutiérrez et al., "From RAG to Memory: Non-Parametric Continual Learning for Large Language Models",
ICML 2025.
Code: OSU-NLP-Group/HippoRAG@c617143, src/hipporag/HippoRAG.py and utils/config_utils.py.
Follows: the code: a name gets the mean score of its facts, divided by the number of records with that name.
The first five names begin the walk, and every record a little. PageRank orders the records. Without a helpful
fact meaning alone orders them. `damping` is the chance to walk on, as in igraph.
Differs: the graph has the records nearest to the question, by meaning and words, and the records that share
names with these, not the whole store. A fact has its record's score and no vector of its own. Equal names are
one node; there are no edges between names that are only alike (cosine from .8 on). Answers in several steps
are left out.
Without a model: rules find the names, a record is one fact of all its names, and no fact is filtered. The
names of a message are its words without stop-words. If there is nothing else, the words of the question begin
the walk, as in the paper's ablation "NER to node".
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.operators.answers import told_in
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import first_by, likeness, normalised
from supervisor_memory.recipes.operators.phrases import (
    as_graph,
    asked_in,
    ends_of,
    is_worded,
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
    """The published constants, all of config_utils.py but the sizes of the graph."""

    linking_top_k: int = constant(5, "config_utils.py: linking_top_k", least=1, most=100)
    damping: float = constant(0.5, "config_utils.py: damping", least=0, most=0.99)
    passage_node_weight: float = constant(0.05, "config_utils.py: passage_node_weight", least=0, most=1)
    retrieval_top_k: int = constant(200, "config_utils.py: retrieval_top_k", least=1, most=1000)
    qa_top_k: int = constant(5, "config_utils.py: qa_top_k, those that pass a threshold", least=1, most=1000)
    nearest: int = constant(75, "ours: records by meaning and words in the graph", least=1, most=1000)
    joined: int = constant(50, "ours: records by a walk in the graph", least=0, most=1000)


@dataclass(frozen=True, slots=True)
class Fact:
    """A link from the question to the graph: names, and the score of the fact that they are from."""

    text: str
    names: Sequence[str]
    score: float


def facts_of(hits: Sequence[Hit], scores: Sequence[float], most: int) -> list[Fact]:
    """The facts of the best hits: their triples or, where there are none, all that a record names.

    What has its words for names is no fact.
    """
    found: list[Fact] = []
    several = (pair for pair in zip(hits, scores, strict=True) if not is_worded(pair[0].record))
    for hit, score in sorted(several, key=lambda pair: -pair[1])[:most]:
        ends = ends_of(hit.record)
        told = [" ".join(triple) for triple in triples_of(hit.record)] if ends else [hit.record.content]
        names: Sequence[Sequence[str]] = ends or [phrases_of(hit.record)]
        found += [Fact(text, each, score) for text, each in zip(told, names, strict=True) if each]
    return found[:most]


def beginnings(facts: Sequence[Fact], holders: Mapping[str, int], most: int) -> dict[str, float]:
    """How likely the walk begins at the first names: the mean over a name's facts of score by holders."""
    told: defaultdict[str, list[float]] = defaultdict(list)
    for fact in facts:
        for name in dict.fromkeys(fact.names):
            told[name].append(fact.score / max(holders[name], 1))
    best = sorted(((sum(each) / len(each), name) for name, each in told.items()), key=lambda p: (-p[0], p[1]))
    return {name: value for value, name in best[:most]}


def by_pagerank(c: Constants) -> Reading:
    """An operator that orders hits by the walk; where no fact links them, by meaning."""

    def by_walk(plan: Recalling, view: ReadStore) -> Recalling:
        hits = plan.hits.items
        if plan.query is None or not hits:
            return plan
        scores = dense = normalised([max(likeness(hit), 0.0) for hit in hits])
        records = [hit.record for hit in hits]
        held = [phrases_of(record) for record in records]
        holders = Counter(name for each in held for name in each)
        facts = facts_of(hits, dense, c.linking_top_k)
        if not facts:
            facts = [Fact(n, (n,), 1.0) for n in asked_in(plan.turn.text, records) if n in holders]
        elif view.has_model:
            facts = _helpful(facts, plan.turn.text, view)
        begun = beginnings(facts, holders, c.linking_top_k)
        if any(begun.values()):
            edges = Counter(pair for record in records for pair in ends_of(record))
            light = [c.passage_node_weight * each for each in dense]
            scores = walked(held, edges, begun, records=light, damping=c.damping)
        told = first_by(plan, scores, "hipporag2", keep=c.retrieval_top_k, most=max(scores) or 1.0)
        return replace(told, hits=replace(told.hits, items=vouched(told.hits.items, c.qa_top_k)))

    return by_walk


def _helpful(facts: Sequence[Fact], question: str, view: ReadStore) -> list[Fact]:
    """The facts that the model keeps; all, where it does not answer."""
    listed = "\n".join(f"{n}. {fact.text[:400]}" for n, fact in enumerate(facts, start=1))
    told = told_in(view.complete(view.prompt("facts", question=question[:2_000], facts=listed))).get("facts")
    kept = {n for n in told if type(n) is int} if isinstance(told, list) else None
    return [fact for n, fact in enumerate(facts, start=1) if kept is None or n in kept]


def hipporag2(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, by_pagerank(c)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0, words=1.0)),
        retrieval=(search_around(c.nearest, c.joined), *PLAIN.retrieval[1:]),
        pre_insert=(*PLAIN.pre_insert, beside(as_graph)),
        insert=(deciding(judge=only_add),),
    )


PUBLISHED: Final = Published(
    "hipporag2", "a walk over records and names from the facts nearest", __doc__ or "", hipporag2, Constants
)
