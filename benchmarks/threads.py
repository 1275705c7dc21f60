"""What the short prompt of a long thread costs, and how much of what a question asks for stands in it.

Run: python benchmarks/threads.py [--threads FILE --questions FILE] [--json FILE]

Each question is asked at the end of its thread. Beside the short prompt, with and without an embedder, are
two simple ones of as many tokens: the newest messages, and the best messages by BM25 over the thread.

A question's evidence is in a prompt where a sentence of an evidence message that holds the answer is,
word for word; "answer" counts the answer anywhere in the prompt. A thread is a line of JSON: id, lang and
messages with role and content. A question is another: id, thread, question, answer (a regular expression)
and evidence (places of messages).
"""

import argparse
import json
import logging
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.language.terms import terms
from supervisor_memory.language.tokens import count_tokens
from supervisor_memory.signals.index import bm25, idf, norms_of
from supervisor_memory.understand.statements import sentences

OWN = Path(__file__).parent / "threads"
OURS, BY_WORDS, NEWEST, BM25 = "supervisor_memory", "… by words alone", "newest messages", "BM25"


class Asked(NamedTuple):
    """A question and a prompt: tokens of the thread and of the prompt, and whether the evidence is in it."""

    thread: str
    lang: str
    id: str
    whole: int
    tokens: int
    evidence: bool
    answer: bool


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@cache
def memory(lang: str) -> SupervisorMemory:
    """A memory with the embedder that reads a language; "": without one."""
    name = {"zh": E5, "": None}.get(lang, MINILM)
    settings = Settings(search_timeout_ms=60_000, embedding_model="none")
    return SupervisorMemory(settings, embedder=open_embedder(name, dimension=None) if name else None)


def short(thread: Mapping[str, Any], question: str, *, lang: str) -> list[str]:
    """The product's prompt, without the question."""
    kept = memory(lang).thread()
    kept.add(*thread["messages"], ("user", question))
    return [str(message.text) for message in kept.prompt()[:-1]]


def newest(texts: Sequence[str], room: int) -> list[str]:
    """The newest messages that the room holds."""
    return [*reversed([*_fitting(reversed(texts), room)])]


def by_words(texts: Sequence[str], question: str, room: int) -> list[str]:
    """The messages with most of the question's words by BM25 that the room holds."""
    held = [terms(text) for text in texts]
    scores = np.zeros(len(texts), dtype=np.float32)
    lengths = np.array([len(each) for each in held], dtype=np.float32)
    norms = norms_of(lengths, float(lengths.mean()))
    for term in dict.fromkeys(terms(question)):
        rows = np.array([nth for nth, each in enumerate(held) if term in each], dtype=np.intp)
        times = np.array([held[row].count(term) for row in rows], dtype=np.float64)
        worth = np.full(len(rows), idf(len(texts), len(rows)))
        scores += bm25(rows, times, worth, norms)
    return [*_fitting((texts[row] for row in np.argsort(-scores, kind="stable")), room)]


def _fitting(texts: Iterable[str], room: int) -> Iterator[str]:
    for text in texts:
        if (cost := count_tokens(text)) <= room:
            room -= cost
            yield text


def asked(thread: Mapping[str, Any], question: Mapping[str, Any]) -> Iterator[tuple[str, Asked]]:
    """The prompt of each system for a question."""
    texts = [message["content"] for message in thread["messages"]]
    ours = short(thread, question["question"], lang=thread["lang"])
    room = sum(map(count_tokens, ours))
    prompts = {
        OURS: ours,
        BY_WORDS: short(thread, question["question"], lang=""),
        NEWEST: newest(texts, room),
        BM25: by_words(texts, question["question"], room),
    }
    whole = sum(map(count_tokens, texts))
    answer = re.compile(question["answer"])
    sought = [
        _plain(each)
        for place in question["evidence"]
        for each in sentences(texts[place])
        if answer.search(each)
    ]
    for name, prompt in prompts.items():
        told = "\n".join(prompt)
        has = answer.search(told) is not None
        holds = any(each in _plain(told) for each in sought) if sought else has
        tokens = sum(map(count_tokens, prompt))
        yield name, Asked(thread["id"], thread["lang"], question["id"], whole, tokens, holds, has)


def _plain(text: str) -> str:
    return " ".join(text.split())


def figures(rows: Sequence[Asked]) -> dict[str, float | int]:
    """The means of some questions."""
    return {
        "questions": len(rows),
        "whole": statistics.fmean(row.whole for row in rows),
        "tokens": statistics.fmean(row.tokens for row in rows),
        "saved": 1 - sum(row.tokens for row in rows) / sum(row.whole for row in rows),
        "evidence": statistics.fmean(row.evidence for row in rows),
        "answer": statistics.fmean(row.answer for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=Path, default=OWN / "threads.jsonl")
    parser.add_argument("--questions", type=Path, default=OWN / "questions.jsonl")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)  # stores in memory are meant here
    threads = {thread["id"]: thread for thread in read(options.threads)}
    found: dict[str, list[Asked]] = {}
    for question in read(options.questions):
        for name, row in asked(threads[question["thread"]], question):
            found.setdefault(name, []).append(row)
    for thread in dict.fromkeys(row.thread for row in found[OURS]):
        each = figures([row for row in found[OURS] if row.thread == thread])
        print(
            f"{thread}: {each['whole']:.0f} tokens before, {each['tokens']:.0f} after (-{each['saved']:.0%})"
        )
    done = []
    for name, rows in found.items():
        for lang in sorted({row.lang for row in rows}):
            done.append({"system": name, "lang": lang, **figures([row for row in rows if row.lang == lang])})
            print("{system}, {lang}: {questions} questions, -{saved:.1%} tokens, evidence {evidence:.3f}, "
                  "answer {answer:.3f}".format(**done[-1]))  # fmt: skip
        print(f"    without the evidence: {', '.join(row.id for row in rows if not row.evidence) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
