"""Does a search find what answers the question? Ours beside BM25, dense vectors and both, on the same texts.

Run: python benchmarks/quality.py [--data FILE …] [--facts FILE] [--embedder NAME] [--ablate] [--json FILE]

Each corpus is one user's memory. Everything in it is stored as it was said, then each question is searched
for with no threshold, and what is found is compared with the items that answer it. No language model takes
part. Without --data, our own sets in `benchmarks/quality` are read, English with all-MiniLM-L6-v2 and Chinese
with multilingual-e5-small, unless --embedder names one for all. Words are cut, stemmed and counted by
`supervisor_memory.language.terms` for every system, and every text is embedded once a run; so what is
compared is the ranking alone. Embedding is left out of "CPU": it is told once, a question.

Columns: the share of the evidence among the first 1, 5 and 10 (R@); questions with any of it among the first
10 (hit@10); nDCG@10 and MRR; tokens of what the first 10 items add to a prompt; processor time of a search.
"""

import argparse
import json
import logging
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quality.corpus import Corpus, Question, read_corpora, read_merges
from quality.metrics import mean, names, score
from quality.systems import OURS, System, ablations, systems
from quality.vectors import Remembered

from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.language.tokens import count_tokens

OWN = Path(__file__).parent / "quality"
_CONTEXT = 10
"""Items that go into a prompt, and the least that is searched for."""


@dataclass(frozen=True)
class Answer:
    """One question as a system answered it: what it found, best first, and how good that is."""

    question: Question
    found: Sequence[str]
    figures: Mapping[str, float]
    tokens: int
    cpu_ms: float


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, list[Corpus], str, str]]:
    """What to measure: a title, the corpora, the embedder, and the recall that is told of categories."""
    paths = options.data or ([] if options.facts else sorted(OWN.glob("*.json")))
    for path in paths:
        yield path.name, read_corpora(path), options.embedder or _reader(path.stem[-2:]), "R@10"
    if options.facts:
        for language, corpora in read_merges(options.facts).items():
            title = f"{options.facts.name}, {language}"
            yield title, corpora, options.embedder or _reader(language), "R@1"


def _reader(language: str) -> str:
    return E5 if language == "zh" else MINILM


def answers(system: System, corpus: Corpus, *, k: int) -> Iterator[Answer]:
    """Ask a system all the questions of a corpus."""
    tokens = {item.id: count_tokens(item.said) for item in corpus.items}
    with system(corpus) as search:
        for question in corpus.questions:
            begun = time.process_time()
            found = search(question.text, max(k, _CONTEXT))
            cpu_ms = 1_000 * (time.process_time() - begun)
            yield Answer(
                question,
                found,
                score(found, question.evidence, k=k),
                sum(tokens[id_] for id_ in found[:_CONTEXT]),
                cpu_ms,
            )


def summary(given: Sequence[Answer]) -> dict[str, Any]:
    """The figures of one system over all questions, and R@5 and R@10 of each category."""
    categories = sorted({answer.question.category for answer in given})
    return {
        "n": len(given),
        **mean([answer.figures for answer in given]),
        "tokens": statistics.mean(answer.tokens for answer in given),
        "cpu_ms": statistics.mean(answer.cpu_ms for answer in given),
        "categories": {
            category: {
                "n": len(own := [answer for answer in given if answer.question.category == category]),
                **mean([answer.figures for answer in own]),
            }
            for category in categories
        },
    }


def table(results: Mapping[str, Mapping[str, Any]], *, k: int, deepest: str) -> str:
    """All figures of one file, a line a system; categories by the recall named `deepest`."""
    columns = [name for name in names(k) if name not in {"hit@1", "hit@5"}]
    categories: Mapping[str, Mapping[str, Any]] = next(iter(results.values()))["categories"]
    heads = [*columns, "tokens", "CPU ms", *(f"{name} ({row['n']})" for name, row in categories.items())]
    heads = [head.rjust(5) for head in heads]
    lines = [
        f"| {'system':24} | " + " | ".join(heads) + " |",
        f"|{'-' * 26}|" + "|".join("-" * (len(head) + 1) + ":" for head in heads) + "|",
    ]
    for name, found in results.items():
        cells = [
            *(f"{found[column]:.3f}" for column in columns),
            f"{found['tokens']:.0f}",
            f"{found['cpu_ms']:.2f}",
            *(f"{row[deepest]:.3f}" for row in found["categories"].values()),
        ]
        aligned = (cell.rjust(len(head)) for cell, head in zip(cells, heads, strict=True))
        lines.append(f"| {name:24} | " + " | ".join(aligned) + " |")
    return "\n".join(lines)


def verdict(given: Mapping[str, Sequence[Answer]], figure: str) -> str:
    """Ours less the best of the others by one figure, with the interval that holds it 19 times in 20.

    Questions are paired, so a hard one counts for neither. An interval with 0 in it is no difference.
    """
    others = {name: mean([a.figures for a in answered])[figure] for name, answered in given.items()}
    own = others.pop(OURS)
    best = max(others, key=others.__getitem__)
    pairs = zip(given[OURS], given[best], strict=True)
    gains = [ours.figures[figure] - other.figures[figure] for ours, other in pairs]
    error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("inf")
    gain = own - others[best]
    about = f"{gain:+.3f} ± {1.96 * error:.3f}"
    return f"{figure}: {own:.3f}, best other {others[best]:.3f} ({best}); difference {about}"


def measure(
    title: str, corpora: Sequence[Corpus], *, embedder: str, deepest: str, options: argparse.Namespace
) -> dict[str, Any]:
    """Run every system over the corpora and print the table, categories by the recall named `deepest`."""
    opened = open_embedder(embedder, dimension=None)
    vectors = Remembered(opened) if opened is not None else None
    compared = systems(vectors, backend=options.backend)
    changed = ablations(vectors, backend=options.backend) if options.ablate else {}
    measured = compared | changed
    if options.only:
        if unknown := set(options.only) - set(measured):
            raise SystemExit(f"--only {', '.join(sorted(unknown))}: there are {', '.join(measured)}")
        measured = {name: measured[name] for name in options.only}
    questions = [question.text for corpus in corpora for question in corpus.questions]
    print(f"\n{title}: {len(questions)} questions, {len(corpora)} corpora; embedder {embedder}", flush=True)
    if vectors is not None:
        for question in questions:
            vectors.embed_query(question)
        cpu_ms = 1_000 * vectors.query_seconds / len(questions)
        print(f"embedding a question: {cpu_ms:.1f} ms CPU", flush=True)
    given = {
        name: [answer for corpus in corpora for answer in answers(system, corpus, k=options.k)]
        for name, system in measured.items()
    }
    results = {name: summary(answered) for name, answered in given.items()}
    print(table(results, k=options.k, deepest=deepest), flush=True)
    rivals = {name: answered for name, answered in given.items() if name in compared}
    if OURS in rivals and len(rivals) > 1:
        print(*(verdict(rivals, figure) for figure in ("R@1", "R@5", "R@10")), sep="\n", flush=True)
    asked = {name: [_row(answer) for answer in answered] for name, answered in given.items()}
    return {"data": title, "embedder": embedder, "k": options.k, "systems": results, "answers": asked}


def _row(answer: Answer) -> dict[str, Any]:
    question = answer.question
    told = {"q": question.text, "cat": question.category, "evidence": question.evidence}
    return {**told, "found": answer.found, **answer.figures}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="dialogues or facts, JSON")
    parser.add_argument("--facts", type=Path, help="labelled write attempts, JSON lines")
    parser.add_argument("--embedder", choices=(MINILM, E5, "none"), help="for every file")
    parser.add_argument("--k", type=int, default=10, help="a further cut; at least 10 are searched for")
    parser.add_argument("--backend", choices=("in_memory", "sqlite"), default="in_memory")
    parser.add_argument("--only", action="append", metavar="SYSTEM", help="these alone, by name")
    parser.add_argument("--ablate", action="store_true", help="also ours with one thing changed each")
    parser.add_argument("--json", type=Path, help="write the figures there, and each answer")
    options = parser.parse_args()
    # That a store in memory is lost at the end is said for each, and here it is meant.
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    done = [
        measure(title, corpora, embedder=embedder, deepest=deepest, options=options)
        for title, corpora, embedder, deepest in chosen(options)
    ]
    if options.json:
        options.json.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
