"""A-Mem: each memory is a note with keywords, context and tags; a new note may change the notes near it.

Paper: Xu et al., "A-MEM: Agentic Memory for LLM Agents", 2025.
Code: WujiangXu/A-mem@0c8039f, memory_layer.py; not agiresearch/A-mem@ceffb86, which changes wrong notes.
Follows: the code of the paper: a note is embedded as content, context, keywords and tags. A model reads it
beside its five nearest notes, and says which of them it is linked to and which of them change. Notes that
hits link to are told as well.
Differs: a neighbour whose context or tags change is embedded again at once, not after a hundred changes.
Linked notes come behind all hits, and at most k notes are told. No model is asked for the keywords of a
question. No turn waits for a model, so notes from a turn are made as without one. Text that a model wrote
into another note stays there when the first note is deleted.
Without a model: keywords are the words of a text without stop-words, and its names in Chinese. The context is
"General", there are no tags, the nearest notes from a cosine of .7 on are linked, and no note is changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.flow import Recipe, Remembering, Upkeep
from supervisor_memory.model.records import EMBEDDED_AS, AuditEvent, Filter, Query, Record
from supervisor_memory.ports import Maintaining, ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.mem0_now import only_add
from supervisor_memory.recipes.operators.answers import texts_of, told_in
from supervisor_memory.recipes.operators.links import LINKS, expand
from supervisor_memory.recipes.operators.notes import beside, keywords_of
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stores.protocol import Change, Commit

NOTE: Final = "note"  # the metadata key for a note's keywords, context and tags
_GENERAL: Final = "General"  # memory_layer.py: MemoryNote, where the model said none
_MOST_WORDS, _LONGEST = 10, 2_000  # of a list by a model; characters of a text that it is shown


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    neighbours: int = constant(5, "memory_layer.py: process_memory, k", least=1, most=50)
    top_k: int = constant(10, "test_advanced.py: retrieve_k", least=1, most=1000)
    linked: int = constant(10, "memory_layer.py: find_related_memories_raw, k", least=0, most=1000)
    likeness: float = constant(0.7, "SAGE's link_evolution; used without a model alone", least=-1, most=1)


def framed(note: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a note: itself, and what is embedded around the content."""
    keywords, tags = ", ".join(note["keywords"]), ", ".join(note["tags"])
    frame = f"content:{{content}} context:{note['context']} keywords: {keywords} tags: {tags}"
    return {NOTE: dict(note), EMBEDDED_AS: frame}


def as_note(text: str, when: float, view: ReadStore) -> Mapping[str, Any]:
    """The metadata of a text's note, as the model describes it, or by the names in it."""
    told = told_in(view.complete(view.prompt("note", text=text[:_LONGEST]))) if view.has_model else {}
    context = told.get("context")
    return framed(
        {
            "keywords": texts_of(told.get("keywords"), most=_MOST_WORDS) or keywords_of(text),
            "context": context.strip() if isinstance(context, str) and context.strip() else _GENERAL,
            "tags": texts_of(told.get("tags"), most=_MOST_WORDS),
        }
    )


def link_and_evolve(c: Constants) -> Upkeep:
    """An operator that links each new note to its nearest, and changes those that the model names."""

    def evolved(said: Remembering, view: Maintaining) -> Remembering:
        ids = tuple(done.id for done in said.results if done.status == "added")
        embedder = view.embedder if ids else None
        own = Filter(said.scope.user_id, tasks=(said.scope.task,))
        new = [r for r in view.list(replace(own, ids=ids), limit=len(ids)) if NOTE in r.metadata]
        if not new or embedder is None:
            return said
        vectors = view.embed([record.content for record in new])
        asked = [Query("", own, (), vector, embedder.fingerprint, now=view.now) for vector in vectors]
        found = view.search_many(asked, limit=c.neighbours + 1)
        changed: dict[str, Record] = {}
        for record, hits in zip(new, found, strict=True):
            near = [h for h in hits if h.record.id != record.id and NOTE in h.record.metadata][: c.neighbours]
            close = [h.record for h in near if h.parts.get("cosine", 0.0) >= c.likeness]
            there = [changed.get(h.record.id, h.record) for h in near]
            after = _evolved(record, there, view) if view.has_model and there else _linked(record, close)
            changed |= {each.id: each for each in after}
        if changed:
            changes = with_vectors([Change(each, expects=each.version) for each in changed.values()], view)
            view.commit(Commit(changes, tuple(AuditEvent.changed(each, LINKS) for each in changed.values())))
        return said

    return evolved


def _linked(record: Record, others: Sequence[Record]) -> Iterator[Record]:
    if others:
        yield replace(record, metadata={**record.metadata, LINKS: [each.id for each in others]})


def _evolved(record: Record, near: Sequence[Record], view: ReadStore) -> Iterator[Record]:
    """The note and its neighbours as the model has them, those alone that change."""
    notes = "\n".join(f"{n}. {_note_text(each)}" for n, each in enumerate(near, start=1))
    told = told_in(view.complete(view.prompt("evolve", notes=notes, text=_note_text(record))))
    links = told.get("links")
    places = {n for n in (links if isinstance(links, list) else []) if type(n) is int}
    close = [each for n, each in enumerate(near, start=1) if n in places]
    mine = next(_linked(record, close), record)
    if (new := _renoted(mine, told)) != record:
        yield new
    others = told.get("neighbours")
    for each in others if isinstance(others, list) else []:
        place = each.get("note") if isinstance(each, dict) else None
        if type(place) is int and 1 <= place <= len(near):
            yield _renoted(near[place - 1], each)


def _renoted(record: Record, told: Mapping[str, Any]) -> Record:
    """The record with the context and the tags that the model says, if it says any."""
    context, tags = told.get("context"), texts_of(told.get("tags"), most=_MOST_WORDS)
    changed = {"tags": tags, "context": context.strip() if isinstance(context, str) else ""}
    note = {**record.metadata[NOTE], **{name: value for name, value in changed.items() if value}}
    return replace(record, metadata={**record.metadata, **framed(note)})


def _note_text(record: Record) -> str:
    note = record.metadata[NOTE]
    return f"{record.content[:_LONGEST]} (context: {note['context']}; tags: {', '.join(note['tags'])})"


def a_mem(c: Constants) -> Recipe:
    """The recipe of these constants."""
    return replace(
        reranked(PLAIN, weigh("a_mem", by_meaning), first(c.top_k), expand(c.linked)),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        pre_insert=(*PLAIN.pre_insert, beside(as_note)),
        insert=(deciding(judge=only_add),),
        post_insert=(link_and_evolve(c),),
    )


PUBLISHED: Final = Published(
    "a_mem", "linked notes with keywords; a new note may change others", __doc__ or "", a_mem, Constants
)
