"""Are facts that have to be joined found? With neighbours of the first hits, and without, on the same facts.

Run: python benchmarks/relations.py [--data FILE …] [--beside N] [--json FILE]

A file holds facts of a data team, and questions whose answer lies one, two or three facts away, or nowhere
(hops 0). Facts are written by `memory.write`, six hours apart; each question is put to `memory.search` with 5
and 10 places, and to `memory.preview`. --beside adds so many texts of `benchmarks/quality` as facts of the
same user, so that the facts are few among many. Without --data, our own files in `benchmarks/relations` are
read, English with all-MiniLM-L6-v2 and Chinese with multilingual-e5-small.

Columns: ev@k, the share of the evidence among the first k; all@k, questions with all of it there; note, with
all of it in the note. "gained" is the paired difference with its 95 % interval. Of questions that nothing
answers: hits at 5 places, and records of a note beside standing preferences. Before the figures, the facts
that merging has lost: none of them should be.
"""

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor_memory import DEFAULT, Recipe, Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.stages.post_retrieval.neighbours import add_joined

HERE = Path(__file__).parent
WITHOUT = replace(DEFAULT, post_retrieval=tuple(o for o in DEFAULT.post_retrieval if o is not add_joined))
HOURS_APART = 6 * 3_600.0
PATIENCE_MS = 60_000
LONGEST_BESIDE = 300
USER = "reader"

Figures = Mapping[str, Sequence[float]]
"""Name → a value a question."""


@dataclass(frozen=True)
class Question:
    """A question, how many facts its answer is away, and the words of these facts."""

    text: str
    hops: int
    evidence: Sequence[str]


def told(text: str) -> str:
    """A text without spaces and full stops: merging changes those between two sentences."""
    return "".join(text.split()).replace(".", "").replace("。", "").casefold()


def questions(path: Path) -> Sequence[Question]:
    data = json.loads(path.read_text("utf-8"))
    texts = {fact["id"]: told(fact["content"]) for fact in data["facts"]}
    return [Question(q["q"], q["hops"], [texts[id_] for id_ in q["evidence"]]) for q in data["questions"]]


def facts(path: Path, beside: int) -> Sequence[str]:
    own = [fact["content"] for fact in json.loads(path.read_text("utf-8"))["facts"]]
    if not beside:
        return own
    others = [
        turn["text"]
        for file in sorted((HERE / "quality").glob(f"*{path.stem[-2:]}.json"))
        for conversation in json.loads(file.read_text("utf-8"))["conversations"]
        for turn in conversation["turns"]
        if len(turn["text"]) < LONGEST_BESIDE
    ]
    rng = random.Random(beside)
    mixed = [*own, *rng.sample(others, min(beside, len(others)))]
    rng.shuffle(mixed)
    return mixed


def opened(
    path: Path, recipe: Recipe, texts: Sequence[str], *, embedder: str | None = None
) -> SupervisorMemory:
    """A memory of these texts, with the language's embedder unless another is named."""
    memory = SupervisorMemory(
        Settings(
            embedding_model=embedder or (E5 if path.stem.endswith("zh") else MINILM),
            search_timeout_ms=PATIENCE_MS,
            write_timeout_ms=PATIENCE_MS,
        ),
        recipe=recipe,
    )
    begun = time.time() - len(texts) * HOURS_APART
    for place, text in enumerate(texts):
        memory.write(text, user_id=USER, created_at=begun + place * HOURS_APART)
    return memory


def asked(memory: SupervisorMemory, question: Question) -> Iterator[tuple[str, float]]:
    """The figures of one question, by name."""
    for places in (5, 10):
        hits = memory.search(question.text, user_id=USER, limit=places)
        if question.evidence:
            texts = [told(hit.record.content) for hit in hits]
            seen = [any(each in text for text in texts) for each in question.evidence]
            yield f"ev@{places}", sum(seen) / len(seen)
            yield f"all@{places}", float(all(seen))
        else:
            yield f"hits@{places}", len(hits)
    note = memory.preview(question.text, Scope(USER))
    if question.evidence:
        yield "note", float(all(each in told(note.text) for each in question.evidence))
    else:
        yield "in a note", sum("standing" not in hit.parts for hit in note.hits)


def figures(memory: SupervisorMemory, some: Sequence[Question]) -> Mapping[int, Figures]:
    """The figures of all questions, by hops."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question in some:
        for name, value in asked(memory, question):
            found[question.hops][name].append(value)
    return found


def gained(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The mean difference, and half of its 95 % interval."""
    differences = [two - one for one, two in zip(before, after, strict=True)]
    spread = statistics.stdev(differences) if len(differences) > 1 else 0.0
    return statistics.mean(differences), 1.96 * spread / len(differences) ** 0.5


def lost(memory: SupervisorMemory, texts: Iterable[str]) -> Iterator[str]:
    """The texts that no record tells any more."""
    known = [told(record.content) for record in memory.get_all(user_id=USER, limit=len(texts))]
    return (text for text in texts if not any(told(text) in each for each in known))


def measured(path: Path, beside: int) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Hops and name → without, with, gained, its interval, and how many questions."""
    texts, some = facts(path, beside), questions(path)
    with opened(path, WITHOUT, texts) as without:
        before = figures(without, some)
    with opened(path, DEFAULT, texts) as memory:
        after = figures(memory, some)
        for text in lost(memory, texts):
            print(f"lost: {text}")
    return {
        str(hops): {
            name: (
                statistics.mean(values),
                statistics.mean(after[hops][name]),
                *gained(values, after[hops][name]),
            )
            for name, values in before[hops].items()
        }
        for hops in sorted(before)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, action="append")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for path in options.data or sorted((HERE / "relations").glob("*.json")):
        results[path.name] = found = measured(path, options.beside)
        print(f"{path.name}{f', {options.beside} other texts beside' if options.beside else ''}")
        for hops, row in found.items():
            for name, (before, after, more, half) in row.items():
                print(
                    f"  hops {hops}  {name:9}  {before:6.3f}  {after:6.3f}  gained {more:+.3f} ± {half:.3f}"
                )
    if options.json:
        options.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
