"""Mem0: a model reads each fact beside the nearest ones, and adds, merges, takes back or skips it.

Paper: Chhikara et al., "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory", 2025.
Code: mem0ai/mem0@fbee8d5c2, mem0/memory/main.py, of mid 2025; what is there now is `mem0_now`.
Follows: the paper: facts are extracted, each is compared with the nearest, and one of ADD, UPDATE, DELETE and
NOOP is done. Search is by meaning alone.
Differs: a record that UPDATE or DELETE changes keeps its earlier versions. No turn waits for the model: rules
decide first, and the model reads the queue later, with extraction and operation in one call. A fact that is
written or added is decided on alone, beside notes of its own kind: the nearest of the ten that words and
meaning find. ADD keeps the words of the fact. An answer that is none of the four is left to the rules; the
code then does nothing. By the rules a contradicting fact replaces the note; the code removes the note and
adds nothing. Without vectors the rules keep "I love plum cake" and "I like plum cake" as two facts.
Without a model: facts are read and compared by the rules of the default recipe.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Judge, Recipe
from supervisor_memory.model.decisions import Add, Decision, Merge, Retract, Rivals, Skip
from supervisor_memory.model.records import Candidate, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.answers import told_in
from supervisor_memory.recipes.operators.order import by_meaning, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.judges.by_evidence import by_evidence, by_model
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked

KNOWN: Final = "model-says-known"
_LONGEST: Final = 2_000  # characters of a text that a model is shown


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    neighbours: int = constant(
        5, "main.py: search(…, limit=5) for each fact; the paper has 10", least=1, most=10
    )


def by_operation(neighbours: int) -> Judge:
    """A judge that asks the model for one of ADD, UPDATE, DELETE and NOOP, and follows the rules without."""

    def judged(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        if not view.has_model or candidate.event is not None or candidate.target is not None:
            return by_model(candidate, rivals, view)
        # By words and meaning they were found; the published code has the nearest by meaning alone.
        nearest = sorted(
            rivals, key=lambda rival: -1.0 if rival.cosine is None else rival.cosine, reverse=True
        )
        near = [rival.record for rival in nearest[:neighbours]]
        if not near:
            return Add()
        notes = "\n".join(f"{n}. {record.content[:_LONGEST]}" for n, record in enumerate(near, start=1))
        answer = view.complete(view.prompt("operation", fact=candidate.content[:_LONGEST], notes=notes))
        found = None if answer is None else _read(answer, near)
        return by_evidence(candidate, rivals, view) if found is None else found

    return judged


def _read(answer: str, near: Sequence[Record]) -> Decision | None:
    """The decision that a model's answer asks for; None: it asks for none that is possible."""
    told = told_in(answer)
    operation, place, text = told.get("operation"), told.get("note"), told.get("text")
    if operation == "ADD":
        return Add()
    if type(place) is not int or not 1 <= place <= len(near):
        return None
    record = near[place - 1]
    if operation == "UPDATE" and isinstance(text, str) and text.strip():
        return Merge(record, text.strip())
    decisions: dict[object, Decision] = {"DELETE": Retract(record), "NOOP": Skip(record, KNOWN)}
    return decisions.get(operation)


def mem0(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, weigh("mem0", by_meaning)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        insert=(deciding(judge=by_operation(c.neighbours)),),
    )


PUBLISHED: Final = Published(
    "mem0",
    "add, update, delete or nothing, fact by fact; found by meaning",
    __doc__ or "",
    mem0,
    Constants,
)
MEM0: Final = PUBLISHED.recipe()
