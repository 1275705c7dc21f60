"""Where should a note end? What each MEMORY_KNEE costs of the evidence, and what it saves of the rest.

Run: python benchmarks/knee.py [--data FILE …]

Each corpus of `quality.py` is one user's memory. Each question is asked as for a note: with its threshold,
and MEMORY_MAX_NOTES if set, but without standing preferences, the budget of tokens, and the gate for
questions that nothing answers. Columns: records a note; the share of the evidence in it; the share of its
records that are evidence.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quality.corpus import Corpus, read_corpora
from quality.vectors import Remembered

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.stages.post_retrieval.rank import knee

OWN = Path(__file__).parent / "quality"
SHARES = (0.0, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
CANDIDATES = 20


@dataclass(frozen=True)
class Asked:
    """One question: the match of each hit, and whether it is evidence; how much evidence there is."""

    found: Sequence[tuple[float, bool]]
    evidence: int


def asked(corpus: Corpus, memory: SupervisorMemory) -> Iterator[Asked]:
    """Ask the questions of a corpus that have an answer in it."""
    entries = [
        {"content": each.text}
        | ({"speaker": each.speaker} if each.speaker else {})
        | ({"created_at": each.created_at} if each.created_at is not None else {})
        for each in corpus.items
    ]
    results = memory.add_many(entries, user_id="reader", infer=False)
    ids = {result.id: item.id for result, item in zip(results, corpus.items, strict=True)}
    for question in corpus.questions:
        hits = memory.search(question.text, user_id="reader", limit=CANDIDATES)
        if hits.degraded:
            raise RuntimeError(f"the search was degraded, so its figures mean nothing: {hits.notes}")
        found = [(hit.parts["fused"], ids[hit.record.id] in question.evidence) for hit in hits]
        if question.evidence:
            yield Asked(found, len(question.evidence))


def figures(questions: Sequence[Asked], *, share: float, most: int | None) -> tuple[float, float, float]:
    """Of notes that end at such a knee: the columns."""
    notes = [_note(each, share=share, most=most) for each in questions]
    handed = sum(map(len, notes))
    held = [sum(note) / each.evidence for note, each in zip(notes, questions, strict=True)]
    return handed / len(notes), statistics.mean(held), sum(map(sum, notes)) / max(handed, 1)


def _note(question: Asked, *, share: float, most: int | None) -> list[bool]:
    edge = knee((match for match, _ in question.found), share=share)
    return [is_evidence for match, is_evidence in question.found if match >= edge][:most]


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", default=sorted(OWN.glob("*.json")))
    for path in parser.parse_args().data:
        opened = open_embedder(E5 if path.stem.endswith("zh") else MINILM, dimension=None)
        embedder = Remembered(opened) if opened else None
        questions: list[Asked] = []
        for corpus in read_corpora(path):
            settings = Settings(search_timeout_ms=60_000, write_timeout_ms=60_000)
            standing_at = corpus.asked
            options = {"clock": lambda at=standing_at: at} if standing_at is not None else {}
            with SupervisorMemory(settings, embedder=embedder, **options) as memory:
                questions += asked(corpus, memory)
        print(f"\n{path.name}: {len(questions)} questions")
        print("| MEMORY_KNEE | records | evidence | precision |")
        print("|---:|---:|---:|---:|")
        for share in SHARES:
            row = figures(questions, share=share, most=settings.max_notes)
            print(f"| {share:.2f} | " + " | ".join(f"{value:.3f}" for value in row) + " |")


if __name__ == "__main__":
    main()
