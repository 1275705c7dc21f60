"""What a note costs a prompt, and how much of the evidence is in it: one line for each of our own sets.

Run: python benchmarks/note_tokens.py [--data FILE …] [--json FILE]

Each corpus of `quality.py` is one user's memory, and for each question the supervisor's note is made with
the settings as they come: its threshold, its number of records, its knee and its budget of tokens. Told are
the tokens of the note with all its words around the records, the records in it, and the share of the
question's evidence among them.
"""

import argparse
import json
import logging
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from quality.corpus import Corpus, read_corpora
from quality.systems import entry
from quality.vectors import Remembered

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.language.tokens import count_tokens

OWN = Path(__file__).parent / "quality"
USER = "reader"


class Noted(NamedTuple):
    """One question: the tokens of its note, its records, and the share of the evidence in it."""

    tokens: int
    records: int
    evidence: float


def noted(corpus: Corpus, memory: SupervisorMemory) -> Iterator[Noted]:
    """Make the note of each question.

    Raises:
        RuntimeError: a note was made without all it could have had.
    """
    results = memory.add_many([entry(item) for item in corpus.items], user_id=USER)
    ids = {result.id: item.id for result, item in zip(results, corpus.items, strict=True)}
    for question in corpus.questions:
        note = memory.recall([("user", question.text)], Scope(USER))
        if note.degraded:
            raise RuntimeError(f"a note was degraded, so its figures mean nothing: {note.reasons}")
        held = {ids[id_] for id_ in note.ids} & set(question.evidence)
        yield Noted(count_tokens(note.text), len(note.ids), len(held) / len(question.evidence))


def measure(path: Path) -> dict[str, float | str]:
    """The means over all questions of a file."""
    opened = open_embedder(E5 if path.stem.endswith("zh") else MINILM, dimension=None)
    embedder = Remembered(opened) if opened else None
    settings = Settings(search_timeout_ms=60_000, write_timeout_ms=60_000)
    notes: list[Noted] = []
    for corpus in read_corpora(path):
        standing_at = corpus.asked
        options = {"clock": lambda at=standing_at: at} if standing_at is not None else {}
        if embedder is not None:  # before any deadline runs: on a loaded machine vectors would be left out
            embedder.embed_documents([item.said for item in corpus.items])
            for question in corpus.questions:
                embedder.embed_query(question.text)
        with SupervisorMemory(settings, embedder=embedder, **options) as memory:
            notes += noted(corpus, memory)
    return {"data": path.name} | {
        name: statistics.fmean(getattr(note, name) for note in notes) for name in Noted._fields
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=sorted(OWN.glob("*.json")))
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    # That a store in memory is lost at the end is said for each, and here it is meant.
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    done = []
    for path in options.data:
        done.append(found := measure(path))
        print(
            f"{path.name}: {found['tokens']:.0f} tokens, {found['records']:.1f} records, "
            f"{found['evidence']:.3f} of the evidence",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
