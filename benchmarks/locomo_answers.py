"""Answers to LoCoMo's questions by extraction, without a language model: out of nothing, all, BM25, memory.

Run: python benchmarks/locomo_answers.py locomo10.json [--embedder none] [--conversations 10] [--json FILE]

FILE is `data/locomo10.json` of github.com/snap-research/locomo, which is no part of this repository (its
licence is CC BY-NC 4.0). Each conversation is the memory of a user, turn by turn, dated as its sessions. A
context is: nothing; the whole history; the ten turns that BM25 ranks best; the ten that a search of memory
finds; the note that memory would give a model. The answer is the one turn of the context that shares most
rare words with the question: a reader that invents nothing, the same for all. Questions of category 5 have
no answer and are left out.

`told`: the share of the reference's words that stand in the context. `F1`: of the extracted turn and the
reference, by words. `tokens`: of the context. Differences to memory's note are told with their 95 % interval,
drawn by conversation (10,000 times, seed 7), and as "no difference" where that holds 0.
"""

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from quality.systems import _bm25 as bm25

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.evaluation.intervals import resampled
from supervisor_memory.language.terms import terms
from supervisor_memory.language.tokens import count_tokens

MOST = 10
NO_ANSWER = 5
PATIENCE_MS = 120_000
USER = "reader"


@dataclass(frozen=True)
class Said:
    """A turn of a conversation; `text` begins with the day and who spoke."""

    text: str
    speaker: str
    words: str
    at: float


def conversation(data: Mapping[str, Any]) -> Iterator[Said]:
    """The turns in order, a second apart."""
    number = 1
    while f"session_{number}" in data:
        told = str(data[f"session_{number}_date_time"])
        began = datetime.strptime(told, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for place, turn in enumerate(data[f"session_{number}"]):
            words = " ".join(filter(None, (turn.get("text"), turn.get("blip_caption"))))
            day = f"{began:%d %B %Y}".lstrip("0")
            yield Said(
                f"{day}, {turn['speaker']}: {words}", turn["speaker"], words, began.timestamp() + place
            )
        number += 1


def extracted(question: str, context: Sequence[str]) -> str:
    """The text of a context that shares most rare words with the question; the first of equals."""
    asked = set(terms(question))
    held = [set(terms(text)) for text in context]
    counts = Counter(term for each in held for term in each)
    worth = [math.fsum(1 / counts[term] for term in sorted(asked & each)) for each in held]
    return context[int(np.argmax(worth))] if context else ""


def f1(answer: str, reference: str) -> float:
    """The harmonic mean of precision and recall, by words with their number."""
    one, other = Counter(terms(answer)), Counter(terms(reference))
    shared = (one & other).total()
    return 2 * shared / (one.total() + other.total()) if shared else 0.0


def told(context: Sequence[str], reference: str) -> float:
    """The share of the reference's different words that stand in the context."""
    wanted = set(terms(reference))
    return len(wanted & set(terms("\n".join(context)))) / len(wanted) if wanted else 0.0


def contexts(said: Sequence[Said], memory: SupervisorMemory) -> dict[str, Callable[[str], Sequence[str]]]:
    """The ways to find what an answer is taken from."""
    texts = [each.text for each in said]
    score = bm25(texts)
    items = [
        {"content": each.words or "(picture)", "speaker": each.speaker, "created_at": each.at}
        for each in said
    ]
    results = memory.add_many(items, user_id=USER, infer=False)
    dated = {result.id: text for result, text in zip(results, texts, strict=True)}

    def found(question: str) -> Sequence[str]:
        hits = memory.search(question, user_id=USER, limit=MOST, threshold=0.0)
        return [dated[hit.record.id] for hit in hits]

    def ranked(question: str) -> Sequence[str]:
        return [texts[row] for row in np.argsort(-score(question), kind="stable")[:MOST]]

    def note(question: str) -> Sequence[str]:
        lines = memory.recall([("user", question)], Scope(USER)).text.splitlines()
        return [line for line in lines if line.startswith("- ")]

    return {
        "none": lambda question: [],
        "whole history": lambda question: texts,
        "BM25": ranked,
        "search": found,
        "note": note,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    figures: dict[str, list[list[tuple[float, float, float]]]] = {}
    began = time.perf_counter()
    for sample in json.loads(asked.file.read_text(encoding="utf-8"))[: asked.conversations]:
        said = [*conversation(sample["conversation"])]
        at = max(each.at for each in said) + 86_400
        patience = {"search_timeout_ms": PATIENCE_MS, "write_timeout_ms": PATIENCE_MS}
        settings = (
            Settings(**patience)
            if asked.embedder is None
            else Settings(embedding_model=asked.embedder, **patience)
        )
        with SupervisorMemory(settings, clock=lambda at=at: at) as memory:
            ways = contexts(said, memory)
            of = {name: figures.setdefault(name, []) for name in ways}
            for each in of.values():
                each.append([])
            for question in (q for q in sample["qa"] if q["category"] != NO_ANSWER):
                reference = str(question["answer"])
                for name, way in ways.items():
                    context = way(question["question"])
                    answer = extracted(question["question"], context)
                    row = f1(answer, reference), told(context, reference), count_tokens("\n".join(context))
                    of[name][-1].append(row)
    report(figures, asked.json)
    print(f"{time.perf_counter() - began:.0f} s")


def report(figures: Mapping[str, list[list[tuple[float, float, float]]]], file: Path | None) -> None:
    """Print a line for each way, and its F1 less that of the note."""
    kept: dict[str, Any] = {}
    base = [[row[0] for row in each] for each in figures["note"]]
    print(f"{'context':<15}{'F1':>7}{'told':>7}{'tokens':>9}   F1 less the note's")
    for name, groups in figures.items():
        rows = [row for group in groups for row in group]
        mean = [sum(row[place] for row in rows) / len(rows) for place in range(3)]
        less = [
            [row[0] - other for row, other in zip(group, others, strict=True)]
            for group, others in zip(groups, base, strict=True)
        ]
        interval = resampled(less, seed=7)
        assert interval is not None
        verdict = "no difference" if interval.holds_zero else f"{interval.value:+.3f}"
        told_of = "" if name == "note" else f"   {verdict} [{interval.low:+.3f}, {interval.high:+.3f}]"
        print(f"{name:<15}{mean[0]:7.3f}{mean[1]:7.3f}{mean[2]:9,.0f}{told_of}")
        kept[name] = {"f1": mean[0], "told": mean[1], "tokens": mean[2], "less": interval._asdict()}
    if file is not None:
        file.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
