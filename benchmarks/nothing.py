"""Can a note tell that nothing answers? What the bound of `keep_few` takes of notes, and of answers.

Run: python benchmarks/nothing.py [--together] [--embedder MODEL]

Two memories a language: the facts of `benchmarks/relations` and those of `benchmarks/quality`. Each is asked
its own questions; the other's, which it cannot answer; and its own once more with all records gone that
answer, so that only their like is left. The first is asked those of `benchmarks/nothing`, too, by somebody
who saw its facts alone: answerable ones in other words than the facts', those about things that no fact
knows, those about something else, and those that ask of a known thing what no fact tells of it. Where the
best records of a note together have less evidence than the bound, two are told beside standing preferences,
or a way through them. --together puts both into one memory, where a question of another's is none.

Columns, for every other question of a kind and then for those between: answerable questions with all
evidence in the note; then records of a note, and how many notes have two or fewer, of questions that nothing
answers: those about the memory's own world, the other memory's, those whose answers are gone, those about
unknown things, those about something else, and those that ask what nothing tells of a known thing.
"""

import argparse
import json
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relations import HERE, USER, Question, facts, opened, questions, told

from supervisor_memory import DEFAULT, Scope, SupervisorMemory
from supervisor_memory.stages.post_retrieval import unanswered

BOUNDS: Final = (0.0, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15)
KINDS: Final = ("own", "another's", "gone", "thing", "elsewhere", "attribute")


@dataclass(frozen=True)
class Asked:
    """A question of a kind, "" where it can be answered, with its memory and steps; of its note, by bound,
    how many records, and whether they have all evidence."""

    kind: str
    group: tuple[str, int]
    records: Sequence[int]
    held: Sequence[bool]


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


def asked_of(path: Path) -> Iterator[tuple[str, Question]]:
    """Those of `benchmarks/nothing` about the facts of a file, with their kind; "" where answerable."""
    facts_of = {each["id"]: told(each["content"]) for each in json.loads(path.read_text("utf-8"))["facts"]}
    for each in json.loads((HERE / "nothing" / path.name).read_text("utf-8"))["questions"]:
        evidence = [facts_of[id_] for id_ in each["evidence"]]
        yield "" if evidence else each["kind"], Question(each["q"], len(evidence), evidence)


def asked(memory: SupervisorMemory, world: str, question: Question, kind: str) -> Asked:
    """Put a question, once for each bound."""
    records, held = list[int](), list[bool]()
    for bound in BOUNDS:
        unanswered.KNOWN = bound
        hits = memory.preview(question.text, Scope(USER)).hits
        texts = [told(hit.record.content) for hit in hits]
        records.append(sum("standing" not in hit.parts for hit in hits))
        held.append(all(any(each in text for text in texts) for each in question.evidence))
    return Asked(kind, (world, question.hops), records, held)


def without(memory: SupervisorMemory, world: str, question: Question) -> Asked:
    """Put a question while all records are gone that answer it."""
    every = memory.get_all(user_id=USER, limit=1_000)
    gone = [each for each in every if any(fact in told(each.content) for fact in question.evidence)]
    for record in gone:
        memory.delete(record.id, user_id=USER)
    found = asked(memory, world, question, "gone")
    for record in gone:
        memory.write(record.content, user_id=USER, created_at=record.created_at)
    return found


def together(paths: Sequence[Path], embedder: str | None) -> Iterator[Asked]:
    """The answers of one memory with the facts of all files."""
    worlds = [(path, *world(path)) for path in paths]
    texts = [text for _, some, _ in worlds for text in some]
    random.Random(len(texts)).shuffle(texts)
    with opened(paths[0], DEFAULT, texts, embedder=embedder) as memory:
        for path, _, own in worlds:
            name = path.parent.name
            yield from (asked(memory, name, each, "" if each.evidence else "own") for each in own)
            yield from (without(memory, name, each) for each in own if each.evidence)


def all_asked(paths: Sequence[Path], embedder: str | None) -> Iterator[Asked]:
    worlds = [world(path) for path in paths]
    for path, (texts, own), (_, others) in zip(paths, worlds, reversed(worlds), strict=True):
        name = path.parent.name
        with opened(path, DEFAULT, texts, embedder=embedder) as memory:
            yield from (asked(memory, name, each, "" if each.evidence else "own") for each in own)
            yield from (asked(memory, name, Question(each.text, 0, ()), "another's") for each in others)
            yield from (without(memory, name, each) for each in own if each.evidence)
            if name == "relations":
                yield from (asked(memory, "nothing", each, kind) for kind, each in asked_of(path))


def halves(some: Sequence[Asked]) -> Sequence[Sequence[Asked]]:
    """Every other question of each kind, memory and number of steps; and those between."""
    groups = defaultdict[tuple[str, tuple[str, int]], list[Asked]](list)
    for each in some:
        groups[each.kind, each.group].append(each)
    return [[each for group in groups.values() for each in group[half::2]] for half in (0, 1)]


def figures(some: Sequence[Asked], at: int) -> str:
    """The columns of one half with one bound."""
    columns = [f"{statistics.mean(each.held[at] for each in some if not each.kind):.3f}"]
    for kind in KINDS:
        left = [each.records[at] for each in some if each.kind == kind]
        if not left:
            continue
        few = statistics.mean(each <= unanswered.FEW for each in left)
        columns.append(f"{statistics.mean(left):5.2f} {few:4.2f}")
    return "  ".join(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--embedder")
    options = parser.parse_args()
    for language in ("en", "zh"):
        paths = (HERE / "relations" / f"{language}.json", HERE / "quality" / f"facts_{language}.json")
        answers = halves([*(together if options.together else all_asked)(paths, options.embedder)])
        print(f"{language}: {sum(map(len, answers))} questions")
        for at, bound in enumerate(BOUNDS):
            print(f"  {bound:4.2f}  " + "   ".join(figures(half, at) for half in answers))


if __name__ == "__main__":
    main()
