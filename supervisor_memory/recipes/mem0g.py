"""Mem0 with a graph: the nearest facts, and the relations of the names in the question.

Paper: Chhikara et al., "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory", 2025.
Code: mem0ai/mem0@a488e1904, mem0/memory/graph_memory.py; the graph has been removed since.
Follows: the code: a model reads the triples of a text. Of the triples at the question's nodes, at most a
hundred, BM25 chooses five. The facts are those of `mem0`.
Differs: a triple is kept with its record and removed with it, so no model is asked which relations no longer
hold. A name belongs to a node if they share their words (from .7 on; the code compares vectors), and rules
find it in the question. A record is found by a name only if its own text has it. BM25 counts the words of a
relation one by one. The whole record is told, not the triple alone.
Without a model: there are no triples, and it is `mem0`.
"""

from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes import mem0
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.hipporag import linked
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import bm25
from supervisor_memory.recipes.operators.phrases import as_graph, ends_of, triples_of
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.post_retrieval.rank import gate
from supervisor_memory.understand.entities import entities


@dataclass(frozen=True, slots=True)
class Constants(mem0.Constants):
    """The published constants."""

    similarity: float = constant(0.7, "graph_memory.py: threshold", least=0, most=1)
    triples: int = constant(100, "graph_memory.py: search, limit", least=1, most=1000)
    told: int = constant(5, "graph_memory.py: search, reranked results", least=0, most=100)


def add_relations(c: Constants) -> Reading:
    """An operator that adds records whose triples name what the question names, the best by BM25."""

    def related(plan: Recalling, view: ReadStore) -> Recalling:
        asked = [each.key for each in entities(plan.turn.text)]
        if plan.query is None or not asked or not c.told:
            return plan
        named = terms(" ".join(asked))
        by_words = replace(plan.query, terms=named, vector=None, embedder=None, parts=())
        hits = view.search(by_words, limit=c.triples)
        names = {end for hit in hits for pair in ends_of(hit.record) for end in pair}
        nodes = {name for name, likeness in linked(asked, names).values() if likeness >= c.similarity}
        found = [
            (hit.record, triple)
            for hit in hits
            for triple, ends in zip(triples_of(hit.record), ends_of(hit.record), strict=True)
            if nodes.intersection(ends)
        ][: c.triples]
        scores = bm25(terms(plan.turn.text), [terms(" ".join(triple)) for _, triple in found])
        best = sorted(range(len(found)), key=lambda n: -scores[n])[: c.told]
        told = {found[n][0].id: found[n][0] for n in best}
        kept = [replace(h, found="relation") if told.pop(h.record.id, None) else h for h in plan.hits]
        added = (Hit(record, found="relation") for record in told.values())
        return replace(plan, hits=replace(plan.hits, items=(*kept, *added)))

    return related


def mem0g(c: Constants) -> Recipe:
    """The recipe of these constants."""
    built = mem0.mem0(c)
    at = built.post_retrieval.index(gate)
    steps = (*built.post_retrieval[:at], add_relations(c), *built.post_retrieval[at:])
    return replace(built, post_retrieval=steps, pre_insert=(*PLAIN.pre_insert, beside(as_graph)))


PUBLISHED: Final = Published(
    "mem0g", "mem0, and the relations of the names in the question", __doc__ or "", mem0g, Constants
)
