"""Can a note tell that nothing answers? What bounds on the best hit take of notes, and of answers.

Run: python benchmarks/nothing.py

Two memories a language: the facts of `benchmarks/relations` and those of `benchmarks/quality`. Each is asked
its own questions and the other's, which it cannot answer. Where the best candidate of a note stays under a
bound the note is cut to its two best records, beside standing preferences. Three measures of it are bounded:

- evidence: its calibrated cosine or its share of the question's rare words, whichever is more, and half of
  the other (what the gate of empty notes reads);
- lead: the same, with the cosine counted from the median of the candidates;
- lead of all: with the cosine counted from the median of all records.

Columns, for every other question and then for those between: answerable questions with all evidence among
the records of the note; records of a note where nothing answers, all, and those about the memory's own world.
"""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relations import HERE, USER, Question, facts, opened, questions, told

from supervisor_memory import DEFAULT, Scope
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.stages.post_retrieval.rank import evidence

BOUNDS = (0.0, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
CUT_TO = 2
FOREIGN = -1
"""The hops of a question that is about the other memory's world."""


@dataclass(frozen=True)
class Asked:
    """A question's measures, and of its note how many records, and whether all, or two, hold all evidence."""

    hops: int
    is_answerable: bool
    measures: Mapping[str, float]
    records: int
    held: bool
    held_by_two: bool


def world(path: Path) -> tuple[Sequence[str], Sequence[Question]]:
    """The texts of a file and its questions."""
    if path.parent.name == "relations":
        return facts(path, 0), questions(path)
    (conversation,) = json.loads(path.read_text("utf-8"))["conversations"]
    texts = {turn["id"]: turn["text"] for turn in conversation["turns"]}
    some = [
        Question(each["q"], 1, [told(texts[id_]) for id_ in each["evidence"]])
        for each in conversation["questions"]
    ]
    return [*texts.values()], some


def asked(path: Path, texts: Sequence[str], some: Sequence[Question], embedder: Embedder) -> Iterator[Asked]:
    """Put questions to a memory of these texts."""
    vectors = embedder.embed_documents(texts)
    steep = embedder.calibration.same - embedder.calibration.unrelated
    with opened(path, DEFAULT, texts) as memory:
        for question in some:
            note = memory.preview(question.text, Scope(USER))
            found = [each.hit for each in note.hits.considered]
            cosines = [hit.parts["cosine"] for hit in found if "cosine" in hit.parts]
            shared = max(hit.parts.get("share", 0.0) for hit in found)
            every = vectors @ embedder.embed_query(question.text)

            def lead(others: Sequence[float], best: float = max(cosines), shared: float = shared) -> float:
                ahead = (best - statistics.median(others)) / steep
                return max(ahead, shared) + min(ahead, shared) / 2

            standing = [hit for hit in note.hits if "standing" in hit.parts]
            records = sorted((hit for hit in note.hits if hit not in standing), key=lambda hit: -hit.score)
            told_by = [told(hit.record.content) for hit in (*standing, *records)]
            yield Asked(
                question.hops,
                bool(question.evidence),
                {
                    "evidence": max(map(evidence, found)),
                    "lead": lead(cosines),
                    "lead of all": lead([float(each) for each in every]),
                },
                len(records),
                all(any(each in text for text in told_by) for each in question.evidence),
                all(
                    any(each in text for text in told_by[: len(standing) + CUT_TO])
                    for each in question.evidence
                ),
            )


def figures(some: Sequence[Asked], measure: str, bound: float) -> str:
    """The columns of one half with one bound."""
    held = [
        each.held_by_two if each.measures[measure] < bound else each.held
        for each in some
        if each.is_answerable
    ]
    left = [
        (each.hops, min(CUT_TO, each.records) if each.measures[measure] < bound else each.records)
        for each in some
        if not each.is_answerable
    ]
    own = [records for hops, records in left if hops != FOREIGN]
    return (
        f"{statistics.mean(held):.3f} {statistics.mean(n for _, n in left):5.2f} {statistics.mean(own):5.2f}"
    )


def main() -> None:
    for language, model in (("en", MINILM), ("zh", E5)):
        embedder = open_embedder(model, dimension=None)
        if embedder is None:
            raise RuntimeError(f"{model} is no embedder")
        paths = (HERE / "relations" / f"{language}.json", HERE / "quality" / f"facts_{language}.json")
        worlds = [world(path) for path in paths]
        answers: list[Asked] = []
        for path, (texts, own), (_, others) in zip(paths, worlds, reversed(worlds), strict=True):
            foreign = [Question(each.text, FOREIGN, ()) for each in others]
            answers += asked(path, texts, [*own, *foreign], embedder)
        answers.sort(key=lambda each: (each.is_answerable, each.hops == FOREIGN))  # so that halves are alike
        for measure in ("evidence", "lead", "lead of all"):
            print(f"{language}, {measure}")
            for bound in BOUNDS:
                halves = (figures(answers[half::2], measure, bound) for half in (0, 1))
                print(f"  {bound:4.2f}  " + "   ".join(halves))


if __name__ == "__main__":
    main()
